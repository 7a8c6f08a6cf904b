"""Quantities: amounts such as ``500m`` and ``1.5Gi``, exactly, and in the server's own spelling."""

from __future__ import annotations

import functools
import re
from fractions import Fraction
from typing import Final

__all__ = ["QuantityError", "canonical", "parse", "rounded"]

_FORM: Final = re.compile(
    r"([+-]?)(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))"
    r"(?:([eE][+-]?[0-9]{1,3})|([KMGTPE]i|[numkMGTPE]?))"
)
_LONGEST: Final = 4000
"""Longer numbers are not read."""
_SHAPE: Final = re.compile("[+-]?[0-9.]+[eEinumkKMGTP]*[-+]?[0-9]*")
_BAD_SUFFIX: Final = "unable to parse quantity's suffix"
_BAD_SHAPE: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_DECIMAL: Final = {
    -9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E",
}  # fmt: skip
_POWERS: Final = {suffix: power for power, suffix in _DECIMAL.items()}
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_LARGEST_BINARY: Final = 2**63 - 1
_NANO: Final = 10**9


class QuantityError(ValueError):
    """The text is no quantity."""


def parse(value: object) -> Fraction:
    """Return the exact amount; numbers are taken as they are written.

    >>> parse("1.5Ki"), parse("500m"), parse(3)
    (Fraction(1536, 1), Fraction(1, 2), Fraction(3, 1))

    Raises:
        QuantityError: It is no quantity.
    """
    return _read(str(value).strip())[0]


def canonical(value: object) -> str:
    """Return the spelling that the server stores and shows.

    >>> canonical("1000m"), canonical("1024Mi"), canonical("0.5"), canonical("1e3")
    ('1', '1Gi', '500m', '1e3')

    Raises:
        QuantityError: It is no quantity.
    """
    return _canonical(str(value).strip(), 9)


def rounded(value: object) -> str:
    """Return the spelling that the server stores in a container's resources: no part of a milli.

    >>> rounded("100u")
    '1m'

    Raises:
        QuantityError: It is no quantity.
    """
    return _canonical(str(value).strip(), 3)


@functools.lru_cache(maxsize=4096)
def _read(text: str) -> tuple[Fraction, str]:
    """Return the amount and the family of its suffix: ``e``, ``i`` or none."""
    match = _FORM.fullmatch(text)
    if match is None or len(text) > _LONGEST:
        raise QuantityError(_BAD_SUFFIX if _SHAPE.fullmatch(text) else _BAD_SHAPE)
    sign, whole, part, only_part, exponent, suffix = match.groups()
    digits = f"{whole or ''}{part or only_part or ''}"
    amount = Fraction(int(digits), 10 ** len(part or only_part or ""))
    family = ""
    if exponent:
        family = "e"
        power = int(exponent[1:])
        amount = amount * 10**power if power >= 0 else amount / 10**-power
    elif suffix.endswith("i"):
        family = "i"
        amount = min(amount * 1024 ** _BINARY.index(suffix), Fraction(_LARGEST_BINARY))
    else:
        power = _POWERS[suffix]
        amount = amount * 10**power if power >= 0 else amount / 10**-power
    return (-amount if sign == "-" else amount), family


@functools.lru_cache(maxsize=4096)
def _canonical(text: str, places: int) -> str:
    amount, family = _read(text)
    scale = 10**places
    # What is too small to be counted is not nothing: the server rounds away from zero.
    units = abs(amount) * scale
    amount = Fraction(-(-units.numerator // units.denominator), scale) * (-1 if amount < 0 else 1)
    if not amount:
        return "0"
    if family == "i" and amount.denominator == 1 and abs(amount) >= 1024:
        return _in_binary(amount.numerator)
    return _in_decimal(amount, exponential=family == "e")


def _in_binary(number: int) -> str:
    times = 0
    while number % 1024 == 0 and times < len(_BINARY) - 1:
        number //= 1024
        times += 1
    return f"{number}{_BINARY[times]}"


def _in_decimal(amount: Fraction, *, exponential: bool) -> str:
    """Write an integer and the largest power of 1000 that leaves it one."""
    number = (amount * _NANO).numerator
    power = -9
    while number % 1000 == 0 and (exponential or power < 18):
        number //= 1000
        power += 3
    if exponential:
        return f"{number}e{power}" if power else str(number)
    return f"{number}{_DECIMAL[power]}"
