"""Scalars with a canonical form: times, quantities and bytes, in the server's spelling.

Each function returns the value as the server keeps it, or raises `ScalarError` with the text of
the Go type's own complaint.
"""

from __future__ import annotations

import base64
import functools
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

import msgspec

from kinform.apiserver.scheme import resource_quantities

__all__ = ["ScalarError", "micro_time", "octets", "quantity", "time", "written_octets"]

_SECONDS: Final = "2006-01-02T15:04:05Z07:00"
_MICROSECONDS: Final = "2006-01-02T15:04:05.000000Z07:00"
_PARTS: Final = (
    ("2006", r"\d{4}"),
    ("-", "-"),
    ("01", r"\d{2}"),
    ("-", "-"),
    ("02", r"\d{2}"),
    ("T", "T"),
    ("15", r"\d{1,2}"),
    (":", ":"),
    ("04", r"\d{2}"),
    (":", ":"),
    ("05", r"\d{2}"),
)
_FRACTION: Final = re.compile(r"[.,]\d+")
_MICROS: Final = re.compile(r"\.\d{6}")
_ZONE: Final = re.compile(r"Z|[-+]\d{2}:\d{2}")
_RANGES: Final = ((2, "month", 1, 12), (4, "day", 1, 31), (6, "hour", 0, 23), (8, "minute", 0, 59),
                  (10, "second", 0, 59))  # fmt: skip
_ALPHABET: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


class ScalarError(ValueError):
    """The text is not what it has to be."""


@functools.lru_cache(maxsize=4096)
def time(text: str) -> str:
    """Return a time in UTC and whole seconds.

    >>> time("2020-01-01T00:00:00.5+02:00")
    '2019-12-31T22:00:00Z'
    """
    return f"{_parsed(text, _SECONDS):%Y-%m-%dT%H:%M:%S}Z".rjust(20, "0")


@functools.lru_cache(maxsize=4096)
def micro_time(text: str) -> str:
    """Return a time in UTC with microseconds, which must be there."""
    return f"{_parsed(text, _MICROSECONDS):%Y-%m-%dT%H:%M:%S.%f}Z".rjust(27, "0")


def quantity(value: object) -> str:
    """Return an amount in its canonical form."""
    try:
        return resource_quantities.canonical(value)
    except resource_quantities.QuantityError as exc:
        raise ScalarError(str(exc)) from exc


def octets(text: str) -> str:
    """Return base64 as Go writes it again: without line breaks and stray bits."""
    data = text.encode()
    if b"\n" in data or b"\r" in data:
        data = data.replace(b"\n", b"").replace(b"\r", b"")
    bad = _first_bad(data)
    if bad is not None:
        raise ScalarError(f"illegal base64 data at input byte {bad}")
    return base64.b64encode(base64.b64decode(data)).decode()


def written_octets(numbers: Iterable[int]) -> str:
    """Return bytes, which may be given as numbers, as base64."""
    return base64.b64encode(bytes(numbers)).decode()


def _first_bad(data: bytes) -> int | None:
    """Return where Go's decoder gives up: a strange byte, or the quantum that is cut short."""
    body = data.rstrip(b"=") if data.endswith(b"=") else data
    padding = len(data) - len(body)
    for index, byte in enumerate(body):
        if byte not in _ALPHABET:
            # Padding in the middle ends the data; what follows it is the offence.
            after = index + len(body[index:]) - len(body[index:].lstrip(b"="))
            return after if byte == ord("=") and index % 4 > 1 else index
    missing = -len(body) % 4
    if missing == padding and missing != 3:
        return None
    if padding > missing or missing == 3:
        return len(body) + missing if 0 < missing < 3 else len(body) - len(body) % 4
    return len(data) if padding else len(body) - len(body) % 4


def _parsed(text: str, layout: str) -> datetime:
    parts: list[str] = []
    rest = text
    for name, form in _PARTS:
        match = re.match(form, rest)
        if match is None:
            raise _unparsed((text, layout), rest, name)
        parts.append(match[0])
        rest = rest[match.end() :]
        _check_range(text, parts)
    fraction = (_FRACTION if layout == _SECONDS else _MICROS).match(rest)
    if fraction is not None:
        rest = rest[fraction.end() :]
    elif layout == _MICROSECONDS:
        raise _unparsed((text, layout), rest, ".000000")
    zone = _ZONE.match(rest)
    if zone is None:
        raise _unparsed((text, layout), rest, "Z07:00")
    if rest := rest[zone.end() :]:
        raise ScalarError(f"parsing time {_quoted(text)}: extra text: {_quoted(rest)}")
    micros = fraction[0][1:7].ljust(6, "0") if fraction is not None else "000000"
    parts[6] = parts[6].zfill(2)
    return _moment(text, f"{''.join(parts)}.{micros}", zone[0])


def _check_range(text: str, parts: list[str]) -> None:
    for index, name, low, high in _RANGES:
        if index == len(parts) - 1 and not low <= int(parts[index]) <= high:
            raise _out_of_range(text, name)


def _moment(text: str, local: str, zone: str) -> datetime:
    if zone != "Z" and int(zone[1:3]) > 23:
        raise _out_of_range(text, "time zone offset hour")
    if zone != "Z" and int(zone[4:6]) > 59:
        raise _out_of_range(text, "time zone offset minute")
    try:
        return datetime.fromisoformat(local + zone).astimezone(UTC)
    except (ValueError, OverflowError) as exc:
        raise _out_of_range(text, "day") from exc


def _out_of_range(text: str, part: str) -> ScalarError:
    return ScalarError(f"parsing time {_quoted(text)}: {part} out of range")


def _unparsed(given: tuple[str, str], rest: str, part: str) -> ScalarError:
    text, layout = given
    return ScalarError(
        f'parsing time {_quoted(text)} as "{layout}": cannot parse {_quoted(rest)} as "{part}"'
    )


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()
