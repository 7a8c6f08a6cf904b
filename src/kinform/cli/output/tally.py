"""Statistics of a watch: number, rate and lag of changes. Pure: times are arguments."""

from __future__ import annotations

from collections import deque
from typing import Final, final

__all__ = ["Tally", "bytes_text", "lag_text"]

_WINDOW: Final = 5.0
"""Over how many seconds the rate is taken."""
_MOST: Final = 100_000
"""The number of changes in the window that are remembered; above it the rate is a lower bound."""


@final
class Tally:
    """Counts the changes after the initial list."""

    def __init__(self, started: float) -> None:
        self.events: int = 0
        self._started = started
        self._recent: deque[tuple[float, float]] = deque(maxlen=_MOST)

    def note(self, now: float, received: float) -> None:
        """Count a change that came off the wire at ``received``."""
        self.events += 1
        self._recent.append((now, max(0.0, now - received)))

    def rate(self, now: float) -> float:
        """Return the changes per second of late."""
        self._forget(now)
        span = min(_WINDOW, max(1.0, now - self._started))
        return len(self._recent) / span

    def lag(self, now: float) -> float:
        """Return the longest of late that a change took from the wire to here, in seconds."""
        self._forget(now)
        return max((late for _, late in self._recent), default=0.0)

    def _forget(self, now: float) -> None:
        while self._recent and self._recent[0][0] < now - _WINDOW:
            self._recent.popleft()


def bytes_text(size: int) -> str:
    """Return a number of bytes for people.

    >>> bytes_text(900), bytes_text(1_500), bytes_text(2_000_000)
    ('900 B', '1.5 kB', '2.0 MB')
    """
    if size < 1_000:
        return f"{size} B"
    for unit, scale in (("kB", 1e3), ("MB", 1e6)):
        if size < scale * 1_000:
            return f"{size / scale:.1f} {unit}"
    return f"{size / 1e9:.1f} GB"


def lag_text(seconds: float) -> str:
    """Return a short time for people.

    >>> lag_text(0.0021), lag_text(1.25)
    ('2 ms', '1.2 s')
    """
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
