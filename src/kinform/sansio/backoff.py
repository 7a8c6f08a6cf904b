"""Backoff: the wait before the next attempt, by one rule for all that is retried.

The wait is ``d * (1 + rand)`` where ``d`` doubles from 0.8 s to 30 s, so that many clients that
failed together do not retry together. Only a success resets it, never the passing of time: during
an outage of an hour the waits stay between half a minute and a minute.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

__all__ = ["Backoff"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """The failures in a row so far; a value, so that state machines can hold it.

    >>> [Backoff(failures=n).delay(rand=0.0) for n in range(7)]
    [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0]
    """

    # client-go's reflector has the same two times, but its backoff also starts again after two
    # minutes, so during a long outage its waits go up and down.
    first: float = 0.8
    cap: float = 30.0
    # Unbounded during a long outage: `delay` caps the exponent, for a float overflows at 2**1024.
    failures: int = 0

    def delay(self, *, rand: float) -> float:
        """Return the next wait; ``rand`` in [0, 1) makes it up to twice as long."""
        doubled = self.first * float(2 ** min(self.failures, 64))
        return min(doubled, self.cap) * (1 + rand)

    def failed(self) -> Backoff:
        """Return the state after one more failure."""
        return replace(self, failures=self.failures + 1)

    def healthy(self) -> Backoff:
        """Return the state after a success."""
        return replace(self, failures=0)
