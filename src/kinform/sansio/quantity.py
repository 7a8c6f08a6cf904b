"""Kubernetes quantities such as ``500m`` and ``1.5Gi``: the grammar and the canonical spelling.

Amounts are exact decimals. A quantity keeps the notation in which it was written, because the
canonical spelling depends on it: ``1024Mi`` becomes ``1Gi``, ``1e3`` stays ``1e3``.
"""

from __future__ import annotations

import re
from decimal import ROUND_UP, Context, Decimal, localcontext
from typing import Final, Literal, NamedTuple, TypeAlias

__all__ = ["Notation", "Quantity", "read", "write"]

Notation: TypeAlias = Literal["decimal", "binary", "exponent"]
"""``500M``, ``512Mi`` or ``5e8``."""

_FORM: Final = re.compile(
    r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))"
    r"(?:[eE]([+-]?[0-9]{1,3})|([KMGTPE]i|[numkMGTPE]?))"
)
_LONGEST: Final = 4000
"""Longer texts are not read: the time to multiply grows with the square of the digits."""
_DECIMAL: Final = {
    -9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E",
}  # fmt: skip
_POWERS: Final = {suffix: power for power, suffix in _DECIMAL.items()}
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_EXACT: Final = Context(prec=6000)
"""More digits than any amount has: ``_LONGEST`` and the largest exponent."""


class Quantity(NamedTuple):
    """An amount, and how it was written."""

    amount: Decimal
    notation: Notation


def read(text: str) -> Quantity | None:
    """Return the quantity that a text is, None if it is not one.

    >>> read("1.5Ki"), read("500m"), read("lots")
    (Quantity(amount=Decimal('1536.0'), notation='binary'), \
Quantity(amount=Decimal('0.500'), notation='decimal'), None)
    """
    match = _FORM.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        return None
    digits, exponent, suffix = match.groups()
    with localcontext(_EXACT):
        number = Decimal(digits)
        if exponent is not None:
            return Quantity(number.scaleb(int(exponent)), "exponent")
        if suffix.endswith("i"):
            return Quantity(number * 1024 ** _BINARY.index(suffix), "binary")
        return Quantity(number.scaleb(_POWERS[suffix]), "decimal")


def write(amount: Decimal, notation: Notation, *, places: int = 9) -> str:
    """Return the canonical spelling: a whole number with the largest suffix that fits.

    An amount with more decimal ``places`` is rounded away from zero, as kube-apiserver does.

    >>> write(Decimal("0.5"), "decimal"), write(Decimal(1536 * 2**20), "binary")
    ('500m', '1536Mi')
    """
    with localcontext(_EXACT):
        rounded = amount.quantize(Decimal(1).scaleb(-places), rounding=ROUND_UP)
        number = int(rounded.scaleb(9))  # billionths, the smallest unit
    if not number:
        return "0"
    whole, rest = divmod(abs(number), 10**9)
    # kube-apiserver writes fractions and amounts below 1024 in decimal form even if they were
    # written in binary form.
    if notation == "binary" and not rest and whole >= 1024:
        return f"{'-' if number < 0 else ''}{_in_binary(whole)}"
    power = -9
    while number % 1000 == 0 and (notation == "exponent" or power < 18):
        number //= 1000
        power += 3
    if notation == "exponent":
        return f"{number}e{power}" if power else str(number)
    return f"{number}{_DECIMAL[power]}"


def _in_binary(whole: int) -> str:
    times = 0
    while whole % 1024 == 0 and times < len(_BINARY) - 1:
        whole //= 1024
        times += 1
    return f"{whole}{_BINARY[times]}"
