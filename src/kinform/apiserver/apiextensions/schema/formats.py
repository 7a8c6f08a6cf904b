"""The ``format`` of strings, as far as the server checks it; it ignores all other formats."""

from __future__ import annotations

import datetime
import ipaddress
import re
from collections.abc import Callable
from typing import Final

__all__ = ["CHECKED", "KNOWN"]

_DATE_TIME: Final = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.\d+)?(?:[Zz]|[+-]\d{2}:\d{2})", re.ASCII
)
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_GO_DURATION: Final = re.compile(r"[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+", re.ASCII)
_WORDY_DURATION: Final = re.compile(
    r"\d\s*(?:n|ns|nano|nanos|nanoseconds?|u|us|µs|micros?|microseconds?|ms|millis?|milliseconds?|"
    r"s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|wks?|weeks?)(?![a-zµ])",
    re.IGNORECASE,
)
_BASE64: Final = re.compile(
    r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)"
)
_UUID: Final = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
_MAC: Final = re.compile(
    r"(?:[0-9a-f]{2}(?::[0-9a-f]{2}){5}|[0-9a-f]{2}(?::[0-9a-f]{2}){7}|"
    r"[0-9a-f]{2}(?::[0-9a-f]{2}){19}|"
    r"[0-9a-f]{2}(?:-[0-9a-f]{2}){5}|[0-9a-f]{2}(?:-[0-9a-f]{2}){7}|"
    r"[0-9a-f]{2}(?:-[0-9a-f]{2}){19}|"
    r"[0-9a-f]{4}(?:\.[0-9a-f]{4}){2}|[0-9a-f]{4}(?:\.[0-9a-f]{4}){3}|"
    r"[0-9a-f]{4}(?:\.[0-9a-f]{4}){9})",
    re.IGNORECASE,
)
_URI: Final = re.compile(
    r"(?:[A-Za-z][A-Za-z0-9+.-]*:"
    r"(?://(?:\[[^\]\s]*\]|[^\s\[\]/?#%<>\"]*)(?::\d*)?(?=[/?#]|$)|(?!//))|/)"
    r"(?:[^%\x00-\x1f\x7f]|%[0-9A-Fa-f]{2})*"
)
_ADDRESS: Final = re.compile(
    r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*@"
    r"(?:[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*|\[[^\]]+\])"
)
_ONE_LABEL: Final = re.compile(r"[^\W_](?:-?[^\W_]{0,62})?")
_INNER_LABEL: Final = re.compile(r"[^\W_](?:(?:[^\W_]|-){0,61}[^\W_])?")
_TOP_LABEL: Final = re.compile(r"[^\W\d_]{2,63}")
_CARD: Final = re.compile(
    r"4\d{12}(?:\d{3})?|5[1-5]\d{14}|6(?:011|5\d\d)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|"
    r"(?:2131|1800|35\d{3})\d{11}",
    re.ASCII,
)
_RGB: Final = re.compile(r"rgb\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\)", re.ASCII)
_LABEL: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_LONGEST_NAME: Final = 253
_LONGEST_HOST: Final = 255


def _is_date(text: str) -> bool:
    if not _DATE.fullmatch(text):
        return False
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_date_time(text: str) -> bool:
    found = _DATE_TIME.fullmatch(text)
    if found is None or not _is_date(found[1]):
        return False
    return found[2] <= "23" and found[3] <= "59" and found[4] <= "59"


def _is_duration(text: str) -> bool:
    return bool(_GO_DURATION.fullmatch(text) or _WORDY_DURATION.search(text))


def _is_uuid(version: str) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        if not _UUID.fullmatch(text):
            return False
        digits = text.replace("-", "").lower()
        if not version:
            return True
        return digits[12] == version and (version == "3" or digits[16] in "89ab")

    return check


def _is_ipv4(text: str) -> bool:
    parts = text.split(".")
    return len(parts) == 4 and all(
        part.isascii() and part.isdigit() and len(part) <= 3 and int(part) <= 255 for part in parts
    )


def _is_ipv6(text: str) -> bool:
    if ":" not in text or "%" in text:
        return False
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def _is_cidr(text: str) -> bool:
    address, slash, length = text.partition("/")
    if not slash or not length.isdigit() or not length.isascii():
        return False
    if _is_ipv4(address):
        return int(length) <= ipaddress.IPV4LENGTH
    return _is_ipv6(address) and int(length) <= ipaddress.IPV6LENGTH


def _is_email(text: str) -> bool:
    named = re.fullmatch(r"\s*(?:\"[^\"]*\"|[\w !#$%&'*+/=?^`{|}~.-]*)\s*<([^<>]*)>\s*", text)
    return bool(_ADDRESS.fullmatch(named[1] if named else text.strip()))


def _is_hostname(text: str) -> bool:
    if len(text) > _LONGEST_HOST:
        return False
    *inner, last = text.split(".")
    if not inner:
        return bool(_ONE_LABEL.fullmatch(last))
    return all(map(_INNER_LABEL.fullmatch, inner)) and bool(_TOP_LABEL.fullmatch(last))


def _digits(text: str) -> str:
    return re.sub(r"[\s-]", "", text)


def _is_isbn10(text: str) -> bool:
    text = _digits(text)
    if not re.fullmatch(r"\d{9}[\dX]", text, re.ASCII):
        return False
    values = [10 if char == "X" else int(char) for char in text]
    return sum(weight * value for weight, value in enumerate(values, 1)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    text = _digits(text)
    if not re.fullmatch(r"\d{13}", text, re.ASCII):
        return False
    return sum(int(char) * (3 if index % 2 else 1) for index, char in enumerate(text)) % 10 == 0


def _is_credit_card(text: str) -> bool:
    text = re.sub(r"[^0-9]", "", text)
    if not _CARD.fullmatch(text):
        return False
    doubled = (int(char) * (1 + index % 2) for index, char in enumerate(reversed(text)))
    return sum(value - 9 * (value > 9) for value in doubled) % 10 == 0


def _is_rgb(text: str) -> bool:
    found = _RGB.fullmatch(text)
    return found is not None and all(int(part) <= 255 for part in found.groups())


def _is_long_name(text: str) -> bool:
    label = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
    return len(text) <= _LONGEST_NAME and all(map(label.fullmatch, text.split(".")))


def _matches(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.ASCII)
    return lambda text: compiled.fullmatch(text) is not None


CHECKED: Final[dict[str, Callable[[str], bool]]] = {
    "bsonobjectid": _matches(r"[0-9a-fA-F]{24}"),
    "byte": lambda text: _BASE64.fullmatch(text) is not None,
    "cidr": _is_cidr,
    "creditcard": _is_credit_card,
    "date": _is_date,
    "date-time": _is_date_time,
    "datetime": _is_date_time,
    "duration": _is_duration,
    "email": _is_email,
    "hexcolor": _matches(r"#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "hostname": _is_hostname,
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "k8s-long-name": _is_long_name,
    "k8s-short-name": lambda text: _LABEL.fullmatch(text) is not None,
    "mac": lambda text: _MAC.fullmatch(text) is not None,
    "rgbcolor": _is_rgb,
    "ssn": _matches(r"\d{3}[- ]\d{2}[- ]\d{4}"),
    "uri": lambda text: _URI.fullmatch(text) is not None,
    "uuid": _is_uuid(""),
    "uuid3": _is_uuid("3"),
    "uuid4": _is_uuid("4"),
    "uuid5": _is_uuid("5"),
}
"""The checks of the formats of strings, by name."""

KNOWN: Final = {
    "string": frozenset({*CHECKED, "password"}),
    "integer": frozenset({"int32", "int64"}),
    "number": frozenset({"float", "double"}),
}
"""The formats that a type may have without a warning."""
