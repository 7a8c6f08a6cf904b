"""OpeningBudget: at most so many requests of one sort in any minute, whatever their cause.

A back-off is reset by success, so it bounds only a series of failures. A server that alternates
success and failure is bounded by this: a rolling window that nothing resets.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, final

__all__ = ["OpeningBudget"]

LIMIT: Final = 8
"""Requests in any window."""
WINDOW: Final = 60.0
"""Its length in seconds."""
_MARGIN: Final = 0.05
"""Added to each wait, so that rounding never ends it too early."""


@final
@dataclass(frozen=True, slots=True)
class OpeningBudget:
    """When the last requests began; a value, so that state machines can hold it.

    >>> budget = OpeningBudget()
    >>> for second in range(8):
    ...     budget = budget.used(float(second))
    >>> budget.wait(now=7.0), budget.wait(now=61.0)
    (53.05, 0.0)
    """

    times: tuple[float, ...] = ()
    """The last `LIMIT` of them, in order."""

    def wait(self, *, now: float) -> float:
        """Return how long the next request has to wait; 0: it may begin at once."""
        if len(self.times) < LIMIT or now - self.times[0] >= WINDOW:
            return 0.0
        return self.times[0] + WINDOW - now + _MARGIN

    def used(self, now: float) -> OpeningBudget:
        """Return the budget after one more request, which began at ``now``."""
        return OpeningBudget((*self.times, now)[-LIMIT:])

    def delayed(self, now: float) -> OpeningBudget:
        """Return the budget if the last request began only at ``now``."""
        return replace(self, times=(*self.times[:-1], now)) if self.times else self
