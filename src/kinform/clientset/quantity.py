"""Quantities for calculations: ``500m`` of a CPU, ``1Gi`` of memory.

Models keep quantities as the server wrote them. Convert them with these functions to compare or
add them.
"""

from __future__ import annotations

import math
from decimal import Decimal

from kinform.clientset.wire import Quantity
from kinform.errors import UsageError
from kinform.sansio import quantity as _quantity
from kinform.sansio.quantity import Notation

__all__ = ["Notation", "parse", "to_text"]


def parse(quantity: Quantity) -> Decimal:
    """Return the amount.

    >>> parse("500m"), parse("1Ki"), parse("1e3"), parse(2)
    (Decimal('0.500'), Decimal('1024'), Decimal('1E+3'), Decimal('2'))

    Raises:
        UsageError: it is not a quantity.
    """
    if not isinstance(quantity, str) and math.isfinite(quantity):
        return Decimal(repr(quantity))
    found = _quantity.read(quantity) if isinstance(quantity, str) else None
    if found is None:
        raise UsageError(f"{quantity!r} is not a quantity like '500m', '1Gi' or '2'")
    return found.amount


def to_text(amount: Decimal | int | float, notation: Notation = "decimal") -> str:
    """Return the canonical text of an amount: a whole number with the largest suffix that fits.

    An amount finer than a billionth is rounded away from zero, as kube-apiserver does.

    >>> to_text(Decimal("0.5")), to_text(1536 * 2**20, "binary"), to_text(12_000, "exponent")
    ('500m', '1536Mi', '12e3')

    Raises:
        UsageError: it is not a finite number.
    """
    exact = amount if isinstance(amount, Decimal) else Decimal(repr(amount))
    if not exact.is_finite():
        raise UsageError(f"{amount} is not an amount")
    return _quantity.write(exact, notation)
