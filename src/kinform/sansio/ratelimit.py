"""A token bucket that reserves instead of waiting.

The caller says what time it is and does the waiting; the bucket only counts. A reservation that
is not used (the wait was cancelled) can be given back.
"""

from __future__ import annotations

from typing import Final, final

__all__ = ["TokenBucket"]


@final
class TokenBucket:
    """At most ``burst`` at once, then ``rate`` per second.

    Invariant: over any span of ``t`` seconds at most ``burst + rate * t`` reservations fall due.

    Raises:
        ValueError: if ``rate`` or ``burst`` is not positive.
    """

    __slots__ = ("_last", "_tokens", "burst", "rate")

    def __init__(self, *, rate: float, burst: int) -> None:
        if not rate > 0 or burst < 1:
            raise ValueError(f"rate and burst must be positive, got {rate!r} and {burst!r}")
        self.rate: Final = rate
        self.burst: Final = burst
        self._tokens = float(burst)  # negative: that many are promised already
        self._last: float | None = None

    def reserve(self, now: float) -> float:
        """Take one token and return how many seconds to wait before using it."""
        self._refill(now)
        self._tokens -= 1.0
        return max(0.0, -self._tokens / self.rate)

    def give_back(self) -> None:
        """Return a reserved token that was not used."""
        self._tokens = min(float(self.burst), self._tokens + 1.0)

    def _refill(self, now: float) -> None:
        if self._last is not None and now > self._last:
            self._tokens = min(float(self.burst), self._tokens + (now - self._last) * self.rate)
        self._last = now if self._last is None else max(now, self._last)
