"""Values on protobuf's wire, as Kubernetes means them: numbers, times, amounts and JSON."""

from __future__ import annotations

import base64
import functools
import math
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from kinform.apiserver import scalars
from kinform.apiserver.json import JsonValue

__all__ = [
    "EOF",
    "NEGATIVE",
    "WireError",
    "base64_text",
    "micro_time",
    "number",
    "quantity",
    "raw",
    "signed",
    "text",
    "time",
    "varint",
]

EOF: Final = "unexpected EOF"
NEGATIVE: Final = "proto: negative length found during unmarshaling"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_WHOLE: Final = 1 << 53
"""Up to here a float that is a whole number is written like one."""
_FULL: Final = (1 << 64) - 1


class WireError(ValueError):
    """The bytes are not what they have to be, in Go's words."""


def varint(data: bytes, position: int) -> tuple[int, int]:
    """Return an unsigned number of 64 bits, and where it ends.

    Raises:
        WireError: it is longer than that, or the data ends in it.
    """
    value = shift = 0
    for index in range(position, min(position + 10, len(data))):
        byte = data[index]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _FULL, index + 1
        shift += 7
    raise WireError(EOF if position + 10 > len(data) else "proto: integer overflow")


def signed(value: int, *, bits: int) -> int:
    """Return the number whose two's complement the lowest ``bits`` of ``value`` are.

    >>> signed(0xFFFF_FFFF, bits=32)
    -1
    """
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def text(data: bytes) -> str:
    """Return a text; what is no UTF-8 in it becomes U+FFFD."""
    return data.decode(errors="replace")


def base64_text(data: bytes) -> str:
    """Return bytes as JSON has them."""
    return base64.b64encode(data).decode()


def number(value: float) -> int | float:
    """Return a float as Go writes it: without a point if it is a whole number."""
    if not math.isfinite(value):
        raise WireError("json: unsupported value: NaN or infinite")
    return int(value) if value.is_integer() and abs(value) < _WHOLE else value


@functools.lru_cache(maxsize=4096)
def quantity(data: bytes) -> str:
    """Return an amount; without any it is 0."""
    content = b""
    for tag, value in _fields(data):
        if tag == 0x0A and isinstance(value, bytes):
            content = value
    try:
        return scalars.quantity(text(content)) if content else "0"
    except scalars.ScalarError as exc:
        raise WireError(str(exc)) from exc


@functools.lru_cache(maxsize=4096)
def time(data: bytes) -> str | None:
    """Return a time in whole seconds; nothing at all is none."""
    moment = _moment(data)
    return moment and moment[:19] + "Z"


@functools.lru_cache(maxsize=4096)
def micro_time(data: bytes) -> str | None:
    """Return a time with microseconds; nothing at all is none."""
    return _moment(data)


def raw(data: bytes) -> JsonValue:
    """Return the JSON that a message carries."""
    content = b""
    for tag, value in _fields(data):
        if tag == 0x0A and isinstance(value, bytes):
            content = value
    if not content:
        return None
    try:
        return msgspec.json.decode(content)
    except (ValueError, RecursionError) as exc:
        raise WireError(f"the raw part is no JSON: {exc}") from exc


def _moment(data: bytes) -> str | None:
    if not data:
        return None
    seconds = nanoseconds = 0
    for tag, value in _fields(data):
        if isinstance(value, int) and tag == 0x08:
            seconds = signed(value, bits=64)
        elif isinstance(value, int) and tag == 0x10:
            nanoseconds = signed(value, bits=32)
    # Microseconds are cut off towards zero.
    microseconds = int(math.copysign(abs(nanoseconds) // 1000, nanoseconds))
    try:
        moment = _EPOCH + timedelta(seconds=seconds, microseconds=microseconds)
    except OverflowError as exc:
        raise WireError("Time.MarshalJSON: year outside of range [0,9999]") from exc
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z".rjust(27, "0")


def _fields(data: bytes) -> list[tuple[int, int | bytes]]:
    """Return the tags and values of a message that has numbers and bytes only."""
    found: list[tuple[int, int | bytes]] = []
    position = 0
    while position < len(data):
        tag, position = varint(data, position)
        value, position = varint(data, position)
        if tag & 7 == 0:
            found.append((tag, value))
        elif tag & 7 == 2:
            if position + value > len(data):
                raise WireError(EOF)
            found.append((tag, data[position : position + value]))
            position += value
        else:
            raise WireError(f"proto: illegal wireType {tag & 7}")
    return found
