"""How long to wait before the next try. One rule for everything that tries again.

The wait is ``d * (1 + rand)`` where ``d`` doubles from 0.8 s to 30 s, so that many clients that
failed together do not come back together. It is reset by health, never by the passing of time:
an outage of an hour is met with waits of half a minute to a minute from beginning to end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

__all__ = ["Backoff"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Where one sequence of failures stands; a value, so that state machines can hold it.

    >>> [Backoff(failures=n).delay(rand=0.0) for n in range(7)]
    [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0]
    """

    first: float = 0.8
    cap: float = 30.0
    failures: int = 0

    def delay(self, *, rand: float) -> float:
        """Return the next wait; ``rand`` in [0, 1) makes it up to twice as long."""
        doubled = self.first * float(2 ** min(self.failures, 64))
        return min(doubled, self.cap) * (1 + rand)

    def failed(self) -> Backoff:
        """Return the state after one more failure."""
        return replace(self, failures=self.failures + 1)

    def healthy(self) -> Backoff:
        """Return the state after things went well."""
        return replace(self, failures=0)
