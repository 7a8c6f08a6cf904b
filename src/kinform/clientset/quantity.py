"""Reads and writes quantities: ``500m`` of a CPU, ``1Gi`` of memory.

Models keep them as the server wrote them; these functions are for who must calculate.
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from typing import Final, Literal

from kinform.clientset.wire import Quantity
from kinform.errors import UsageError

__all__ = ["Notation", "parse", "to_text"]

Notation = Literal["decimal", "binary", "exponent"]
"""``500M``, ``512Mi`` or ``5e8``."""

_FORM: Final = re.compile(
    r"(?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+))"
    r"(?P<suffix>[numkMGTPE]?|[KMGTPE]i|[eE](?P<exponent>[+-]?\d{1,4}))",
    re.ASCII,
)
_DECIMAL: Final = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_NANO: Final = Decimal("1e-9")
_EXACT: Final = Context(prec=5000)


def parse(quantity: Quantity) -> Decimal:
    """Return the amount.

    >>> parse("500m"), parse("1Ki"), parse("1e3"), parse(2)
    (Decimal('0.500'), Decimal('1024'), Decimal('1E+3'), Decimal('2'))

    Raises:
        UsageError: it is not a quantity.
    """
    if not isinstance(quantity, str) and math.isfinite(quantity):
        return Decimal(repr(quantity))
    found = _FORM.fullmatch(quantity) if isinstance(quantity, str) else None
    if found is None:
        raise UsageError(f"{quantity!r} is not a quantity like '500m', '1Gi' or '2'")
    number, suffix = Decimal(found["number"]), found["suffix"]
    with localcontext(_EXACT):
        if suffix in _BINARY:
            return number * (1 << _BINARY[suffix])
        exponent = int(found["exponent"]) if found["exponent"] else _DECIMAL[suffix]
        return number.scaleb(exponent)


def to_text(amount: Decimal | int | float, notation: Notation = "decimal") -> str:
    """Return the canonical text of an amount: a whole number with the largest suffix that fits.

    What is finer than a billionth is rounded up, as the server would.

    >>> to_text(Decimal("0.5")), to_text(1536 * 2**20, "binary"), to_text(12_000, "exponent")
    ('500m', '1536Mi', '12e3')

    Raises:
        UsageError: it is no finite number.
    """
    exact = amount if isinstance(amount, Decimal) else Decimal(repr(amount))
    if not exact.is_finite():
        raise UsageError(f"{amount} is not an amount")
    with localcontext(_EXACT):
        whole = exact.copy_abs().quantize(_NANO, rounding=ROUND_CEILING).normalize()
    sign = "-" if exact < 0 and whole else ""
    if notation == "binary" and whole == whole.to_integral_value() and whole >= 1024:
        return f"{sign}{_binary(int(whole))}"
    return f"{sign}{_decimal(whole, exponents=notation == 'exponent')}"


def _binary(whole: int) -> str:
    for suffix, bits in reversed(_BINARY.items()):
        if not whole % 2**bits:
            return f"{whole >> bits}{suffix}"
    return str(whole)


def _decimal(whole: Decimal, *, exponents: bool) -> str:
    if not whole:
        return "0"
    for suffix, exponent in reversed(_DECIMAL.items()):
        with localcontext(_EXACT):
            scaled = whole.scaleb(-exponent)
        if scaled == scaled.to_integral_value():
            power = f"e{exponent}" if exponent else ""
            return f"{int(scaled)}{power if exponents else suffix}"
    raise AssertionError("every amount is a number of billionths")
