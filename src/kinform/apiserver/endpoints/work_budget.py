"""A budget for the work that one request may cause.

Some input is small and costs much: schemas with alternatives within alternatives, regular
expressions, long enumerations checked against long lists. Code with such costs calls `spend`.
kube-apiserver limits CEL rules in the same way.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, final

import msgspec

__all__ = ["MESSAGE", "Exhausted", "begin", "limited", "spend"]

MESSAGE: Final = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)
"""kube-apiserver's refusal of a write whose validation costs too much."""
_BUDGET: Final = 4_000_000
"""Units of work for one request; a unit takes about a tenth of a microsecond."""


@final
class _Budget(msgspec.Struct):
    """The rest of one request's budget."""

    left: int = _BUDGET


_CURRENT: Final[ContextVar[_Budget | None]] = ContextVar("work", default=None)


@final
class Exhausted(Exception):
    """The request has spent its budget."""

    def __init__(self) -> None:
        super().__init__(MESSAGE)


def begin() -> None:
    """Give the request that is answered in this context a new budget."""
    _CURRENT.set(_Budget())


@contextmanager
def limited(units: int) -> Generator[None]:
    """Give a part of the work a budget of its own, independent of the request's."""
    token = _CURRENT.set(_Budget(units))
    try:
        yield
    finally:
        _CURRENT.reset(token)


def spend(units: int) -> None:
    """Take work from the budget of the current request; outside of requests nothing is limited.

    Raises:
        Exhausted: the request has spent all of it.
    """
    budget = _CURRENT.get()
    if budget is None:
        return
    budget.left -= units
    if budget.left < 0:
        raise Exhausted
