"""PartEnds: a count of the recent unexpected ends of parts, with a limit.

A part is a task that runs until its owner stops it: a worker, a handler's pump, a reflector. When
one ends for any other reason it is started again, but not for ever: more than `LIMIT` ends within
`WINDOW` seconds mean that restarting does not help.
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple, final

__all__ = ["LIMIT", "WINDOW", "PartEnd", "PartEnds"]

WINDOW: Final = 60.0
"""Seconds for which an unexpected end is remembered."""
LIMIT: Final = 5
"""Unexpected ends within `WINDOW` that are followed by a restart; the next one is an error."""


class PartEnd(NamedTuple):
    """One unexpected end."""

    part: str
    """The name of the part, as reports show it."""
    error: BaseException
    """The reason."""
    at: float


@final
class PartEnds:
    """Counts unexpected ends. Bounded: only those within `WINDOW` are kept.

    >>> ends = PartEnds()
    >>> [ends.note(PartEnd("worker", ValueError(), at=float(n))) for n in range(6)]
    [False, False, False, False, False, True]
    >>> ends.total, len(ends.recent(now=63.0))
    (6, 3)
    """

    __slots__ = ("_recent", "total")

    def __init__(self) -> None:
        self._recent: deque[PartEnd] = deque()
        self.total: int = 0
        """The number of all unexpected ends."""

    def note(self, end: PartEnd) -> bool:
        """Count an end; return whether there were more than `LIMIT` within `WINDOW`."""
        self.total += 1
        self._recent.append(end)
        self._forget(end.at)
        return len(self._recent) > LIMIT

    def recent(self, now: float) -> list[PartEnd]:
        """Return the ends within the last `WINDOW` seconds, oldest first."""
        self._forget(now)
        return list(self._recent)

    def _forget(self, now: float) -> None:
        while self._recent and now - self._recent[0].at > WINDOW:
            self._recent.popleft()
