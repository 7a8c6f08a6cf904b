"""The events that wait to be written: bounded, in order, each at most once. Pure."""

from __future__ import annotations

import enum
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, Protocol, final

from kinform.sansio.event_correlation import EventRecord, Occurrence

__all__ = ["Correlating", "EventOutbox", "Put"]


class Correlating(Protocol):
    """What assigns occurrences to events: `EventCorrelator` or `EventSeries`."""

    def observe(self, occurrence: Occurrence, *, now: float, wall: float) -> Sequence[EventRecord]:
        """Count an occurrence; return what is to be written because of it."""
        ...

    def allows(self, record: EventRecord, now: float) -> bool:
        """Whether one more write is not one too many; counts it then."""
        ...

    def rename(self, record: EventRecord, *, wall: float) -> None:
        """Give an event another name."""
        ...

    def next_due(self) -> float | None:
        """Return when to call `due`."""
        ...

    def due(self, now: float) -> Sequence[EventRecord]:
        """Return what is to be written because time has passed."""
        ...

    def flush(self) -> Sequence[EventRecord]:
        """Return what is to be written because nothing more will come."""
        ...


class Put(enum.Enum):
    """What became of an event that is to be written."""

    WAITING = "waiting"
    MERGED = "merged"
    """It waits already, and will be written with what was counted since."""
    FULL = "full"
    SPAM = "spam"


@final
class EventOutbox:
    """Events in the order in which they are to be written, at most ``capacity`` of them.

    An event that changes while it waits keeps its place and is written once. So a server that is
    away for long costs memory for its different events, not for each time they happened.
    """

    def __init__(self, correlating: Correlating, capacity: int) -> None:
        self._correlating = correlating
        self.capacity: Final = capacity
        self._waiting: OrderedDict[EventRecord, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, record: EventRecord, now: float) -> Put:
        """Have ``record`` written, unless it is one too many."""
        if record in self._waiting:
            return Put.MERGED
        if len(self._waiting) >= self.capacity:
            return Put.FULL
        if not self._correlating.allows(record, now):
            return Put.SPAM
        self._waiting[record] = None
        return Put.WAITING

    def take(self) -> EventRecord | None:
        """Take out the next one."""
        return self._waiting.popitem(last=False)[0] if self._waiting else None

    def put_back(self, record: EventRecord) -> None:
        """Make ``record``, which was taken and not written, the next one again."""
        self._waiting[record] = None
        self._waiting.move_to_end(record, last=False)
