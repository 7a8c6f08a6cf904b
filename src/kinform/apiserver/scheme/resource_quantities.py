"""Quantities of stored objects, with kube-apiserver's limits and errors."""

from __future__ import annotations

import functools
import re
from decimal import Decimal
from fractions import Fraction
from typing import Final

from kinform.sansio import quantity
from kinform.sansio.quantity import Quantity

__all__ = ["QuantityError", "canonical", "parse", "rounded"]

_SHAPE: Final = re.compile("[+-]?[0-9.]+[eEinumkKMGTP]*[-+]?[0-9]*")
_BAD_SUFFIX: Final = "unable to parse quantity's suffix"
_BAD_SHAPE: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_LARGEST_BINARY: Final = Decimal(2**63 - 1)


class QuantityError(ValueError):
    """The text is not a quantity."""


def parse(value: object) -> Fraction:
    """Return the exact amount; numbers are taken as they are written.

    >>> parse("1.5Ki"), parse("500m"), parse(3)
    (Fraction(1536, 1), Fraction(1, 2), Fraction(3, 1))

    Raises:
        QuantityError: it is not a quantity.
    """
    return Fraction(_read(str(value).strip()).amount)


def canonical(value: object) -> str:
    """Return the spelling that the server stores and shows.

    >>> canonical("1000m"), canonical("1024Mi"), canonical("0.5"), canonical("1e3")
    ('1', '1Gi', '500m', '1e3')

    Raises:
        QuantityError: it is not a quantity.
    """
    return _canonical(str(value).strip(), 9)


def rounded(value: object) -> str:
    """Return the spelling that the server stores in a container's resources: no part of a milli.

    >>> rounded("100u")
    '1m'

    Raises:
        QuantityError: it is not a quantity.
    """
    return _canonical(str(value).strip(), 3)


@functools.lru_cache(maxsize=4096)
def _read(text: str) -> Quantity:
    found = quantity.read(text)
    if found is None:
        raise QuantityError(_BAD_SUFFIX if _SHAPE.fullmatch(text) else _BAD_SHAPE)
    if found.notation == "binary" and abs(found.amount) > _LARGEST_BINARY:
        # A binary amount saturates at what Go's int64 can hold.
        return found._replace(amount=_LARGEST_BINARY.copy_sign(found.amount))
    return found


@functools.lru_cache(maxsize=4096)
def _canonical(text: str, places: int) -> str:
    found = _read(text)
    return quantity.write(found.amount, found.notation, places=places)
