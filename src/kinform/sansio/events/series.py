"""Series of Events: the rules of ``events.k8s.io``, which count without writing.

The first occurrence is an Event, the second makes it a series of two. Further ones are counted
here alone. The count is written when the series ends (six minutes without an occurrence), and
every half hour while it goes on (client-go: tools/events/event_broadcaster.go).

Unlike client-go, a series that the server knows completely is not written again, and the number
of series is bounded: the one that was silent for longest is ended first.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final, final

from kinform.sansio.events.correlation import (
    CACHE_SIZE,
    LRU,
    EventNames,
    EventRecord,
    Occurrence,
)

__all__ = ["EventSeries"]

FINISH_AFTER: Final = 360.0
"""Seconds without an occurrence after which a series has ended."""
REFRESH_EVERY: Final = 1800.0
"""Seconds between two writes of a series that goes on."""


@final
class _Series:
    """One Event, and when it last happened."""

    __slots__ = ("last", "record")

    def __init__(self, record: EventRecord, now: float) -> None:
        self.record = record
        self.last = now


@final
class EventSeries:
    """Assigns occurrences to Events of ``events.k8s.io``; ``now`` is a clock that never jumps.

    The returned events are to be written. `due` must be called at `next_due`, or later.
    """

    def __init__(self, *, size: int = CACHE_SIZE) -> None:
        self._names = EventNames()
        # Used last is seen last: the oldest is the first to be over.
        self._series: LRU[Hashable, _Series] = LRU(size)
        self._refresh_at: float | None = None

    def __len__(self) -> int:
        """Return how many series are open."""
        return len(self._series)

    def observe(self, occurrence: Occurrence, *, now: float, wall: float) -> Sequence[EventRecord]:
        """Count ``occurrence``; return the Events to be written now, in this order."""
        over = self._finished(now)
        key = _isomorphic(occurrence)
        series = self._series.get(key)
        if series is None:
            return (*over, *self._begin(key, occurrence, now=now, wall=wall))
        series.last = now
        series.record.count_one(wall=wall)
        # The second occurrence makes it a series, which readers should see at once. Later ones only
        # count.
        return (*over, series.record) if series.record.count == 2 else over

    def allows(self, record: EventRecord, now: float) -> bool:  # noqa: ARG002 - as of a correlator
        """Return True: series are few, and write little."""
        return True

    def rename(self, record: EventRecord, *, wall: float) -> None:
        """Give an Event another name: this one is taken."""
        record.name = self._names.make(record.occurrence.regarding.name, wall=wall)

    def next_due(self) -> float | None:
        """Return when `due` has something to do, or None if there is nothing to wait for."""
        oldest = self._series.oldest()
        if oldest is None or self._refresh_at is None:
            return None
        return min(oldest[1].last + FINISH_AFTER, self._refresh_at)

    def due(self, now: float) -> Sequence[EventRecord]:
        """End series that are due; return those whose count the server does not have."""
        over = self._finished(now)
        if self._refresh_at is None or now < self._refresh_at:
            return over
        self._refresh_at = now + REFRESH_EVERY
        return (*over, *self.flush())

    def flush(self) -> Sequence[EventRecord]:
        """Return every Event of which the server does not know all."""
        return _untold(self._series.values())

    def _begin(
        self, key: Hashable, occurrence: Occurrence, *, now: float, wall: float
    ) -> Sequence[EventRecord]:
        # One time for all series: a timer for each would be one per object and reason.
        if not len(self._series):
            self._refresh_at = now + REFRESH_EVERY
        name = self._names.make(occurrence.regarding.name, wall=wall)
        record = EventRecord(name, occurrence, wall=wall)
        ended = self._series.put(key, _Series(record, now))
        return (*_untold([ended] if ended else []), record)

    def _finished(self, now: float) -> Sequence[EventRecord]:
        """Forget series that have ended; return those whose count the server does not have."""
        over: list[_Series] = []
        while (oldest := self._series.oldest()) and now >= oldest[1].last + FINISH_AFTER:
            over.append(self._series.pop(oldest[0]))
        return _untold(over)


def _isomorphic(occurrence: Occurrence) -> Hashable:
    """Return what two occurrences of one series have in common. The message may differ."""
    return (
        occurrence.regarding,
        occurrence.related,
        occurrence.type,
        occurrence.reason,
        occurrence.action,
    )


def _untold(series: Sequence[_Series]) -> Sequence[EventRecord]:
    return tuple(one.record for one in series if not one.record.is_settled)
