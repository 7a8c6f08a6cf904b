"""Rate limits without a clock: a token bucket, and the reconnects of one client.

The caller passes the time and does the waiting; nothing here sleeps.

Reconnects are limited in two steps. `Wave` spreads the watches that a server ended before their
timeout, which happens to all of them at once when a server shuts down. `Pace` then keeps any two
reconnects at least ``1 / rate`` seconds apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

__all__ = [
    "MAX_LATENESS",
    "MIN_RECONNECT_RATE",
    "Departure",
    "Pace",
    "TokenBucket",
    "Wave",
    "reconnect_rate",
]

MIN_RECONNECT_RATE: Final = 5.0
"""Reconnects per second of a client with few informers."""
MAX_LATENESS: Final = 0.1
"""Seconds: turns that are late by at most this are made up for, so that a busy event loop keeps
the rate."""
INFORMERS_PER_RATE: Final = 20
"""Informers per reconnect per second: all informers have reconnected after 20 seconds."""


@final
class TokenBucket:
    """At most ``burst`` at once, then ``rate`` per second.

    It reserves instead of waiting. A reservation that is not used (the wait was cancelled) can be
    given back.

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
        # From ``at`` and not from ``now``: a clock that went back must not pay out the same time
        # twice.
        at = self._refill(now)
        self._tokens -= 1.0
        self._due = at + max(0.0, -self._tokens / self.rate)
        return self._due - now

    def give_back(self, due: float) -> None:
        """Return the token that was to be used at ``due`` and was not.

        It counts only if it was the last reservation: a later one has its time already, and a
        token given back before it would let two fall due at once.
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


def reconnect_rate(informers: int) -> float:
    """Return the default limit on reconnects per second of a client with so many informers.

    >>> reconnect_rate(3), reconnect_rate(1_000)
    (5.0, 50.0)
    """
    return max(MIN_RECONNECT_RATE, informers / INFORMERS_PER_RATE)


@final
class Pace:
    """Turns that are at least ``1 / rate`` seconds apart, taken one after the other.

    Unlike a `TokenBucket` it collects nothing while it is idle, and the rate may change at any
    time. The turns of an event loop that was too busy to take them in time are not all made up
    for: only those of the last `MAX_LATENESS` seconds.

    Invariant: with a constant rate, at most ``rate * (t + MAX_LATENESS) + 1`` turns are taken in
    any ``t`` seconds, and at most ``rate * t + 1`` if each is taken as soon as it is due.
    """

    __slots__ = ("_next",)

    def __init__(self) -> None:
        self._next = float("-inf")

    def due(self, asked: float) -> float:
        """Return when the next turn is due, which was asked for at ``asked``."""
        return max(asked, self._next)

    def take(self, asked: float, *, now: float, rate: float) -> None:
        """Take the next turn, whose time `due` returns, and schedule the one after it."""
        # From when the turn was due, not from now: with a busy loop every turn is a little late,
        # and counting from now would add all these delays up.
        self._next = max(self.due(asked), now - MAX_LATENESS) + 1.0 / rate


@final
@dataclass(frozen=True, slots=True)
class Departure:
    """One watch that ended early, as `Wave` counts it."""

    at: float
    rand: float
    waiting: int
    """The number of watches that were waiting when this one joined, itself included."""
    serial: int
    """The number of watches that had joined until then, itself included."""


@final
class Wave:
    """Spreads reconnects over the time that all which ended together need at the allowed rate.

    If all ``n`` watches of a client end at the same time, each waits for a random part of
    ``n / rate`` seconds. A watch that ends alone waits for a random part of ``1 / rate``. The size
    of the wave becomes known only while it arrives, so a wait may grow until it has passed.
    """

    __slots__ = ("_serial", "waiting")

    def __init__(self) -> None:
        self.waiting: int = 0
        self._serial = 0

    def join(self, now: float, *, rand: float) -> Departure:
        """Count one more watch that ended early; `leave` must follow. ``rand`` is in [0, 1)."""
        self.waiting += 1
        self._serial += 1
        return Departure(now, rand, self.waiting, self._serial)

    def leave(self) -> None:
        """Stop counting one that joined: it reconnects now, or never."""
        self.waiting -= 1

    def due(self, departure: Departure, *, rate: float, informers: int) -> float:
        """Return when it may reconnect, as far as is known now: later if the wave still grows."""
        # All that waited when it joined, and all that joined since. Those that have left in between
        # still count: they have used up turns of the same wave.
        ended = departure.waiting + self._serial - departure.serial
        # The bound is for informers that end again and again: the same few would otherwise look
        # like a wave that grows for ever.
        return departure.at + departure.rand * min(ended, max(informers, 1)) / rate
