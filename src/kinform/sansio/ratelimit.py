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

    __slots__ = ("_due", "_last", "_tokens", "burst", "rate")

    def __init__(self, *, rate: float, burst: int) -> None:
        if not rate > 0 or burst < 1:
            raise ValueError(f"rate and burst must be positive, got {rate!r} and {burst!r}")
        self.rate: Final = rate
        self.burst: Final = burst
        self._tokens = float(burst)  # negative: that many are promised already
        self._last: float | None = None
        self._due = float("inf")

    def reserve(self, now: float) -> float:
        """Take one token and return how many seconds to wait before using it."""
        at = self._refill(now)
        self._tokens -= 1.0
        self._due = at + max(0.0, -self._tokens / self.rate)
        return self._due - now

    def give_back(self, due: float) -> None:
        """Return the token that was to be used at ``due`` and was not.

        It counts only if nobody reserved after it: a later reservation has its time already, and
        a token given back before it would let two fall due at once.
        """
        if due >= self._due - 1e-9:  # the caller may have added and subtracted
            self._tokens = min(float(self.burst), self._tokens + 1.0)
            self._due = float("inf")  # the one before it is not known any more

    def _refill(self, now: float) -> float:
        """Add what has come in; return the time that counts, which never goes back."""
        last = now if self._last is None else self._last
        self._last = max(now, last)
        self._tokens = min(float(self.burst), self._tokens + (self._last - last) * self.rate)
        return self._last
