"""EventStream: the events of an informer as an async iterator (`SharedInformer.events`).

The processor fills a `StreamFeed`, and the user reads it through an `EventStream`. The processor
has only a weak reference to the stream, so a stream that is dropped needs no explicit close.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final, Generic, TypeVar, final

from kinform.cache.processor._listener import HandlerStatistics
from kinform.cache.processor._upstream import Upstream
from kinform.cache.processor.events import Event, event_of
from kinform.errors import UsageError
from kinform.sansio.queue.coalesce import HIGH_WATER, Buffer, Marker
from kinform.sansio.queue.deltas import Transition

__all__ = ["EventStream", "StreamFeed"]

T = TypeVar("T")

_TURN: Final = 0.002
"""Seconds after which a reader that always finds an event yields to other tasks."""


@final
class StreamFeed(Generic[T]):
    """The buffer of one `EventStream`, filled by the processor. Only `changed` can be awaited."""

    __slots__ = (
        "_buffer",
        "_delivered",
        "_has_synced",
        "_is_cleared",
        "_is_marked",
        "changed",
        "is_ended",
        "upstream",
    )

    changed: asyncio.Event
    """Set when there may be something to read, or the feed has ended."""
    is_ended: bool
    """True if no more is put. Pending events can still be taken."""

    upstream: Upstream
    """Answers why no event comes."""

    def __init__(self, *, high_water: int = HIGH_WATER, upstream: Upstream | None = None) -> None:
        self.upstream = upstream or Upstream()
        self._buffer: Buffer[T] = Buffer(high_water)
        self._delivered = 0
        self._has_synced = self._is_marked = False
        self.changed = asyncio.Event()
        self.is_ended = False
        self._is_cleared = False

    def put(self, notifications: Sequence[Transition[T]]) -> None:
        """Add all these, in this order."""
        if not self.is_ended:
            self._buffer.extend(notifications)
            self.changed.set()

    def mark_synced(self) -> None:
        """Make ``has_synced`` true behind all that was put so far. Only the first call counts."""
        if not self.is_ended and not self._is_marked:
            self._is_marked = True
            self._buffer.mark(Marker())
            self.changed.set()

    def end(self) -> None:
        """Ignore all later notifications."""
        self.is_ended = True
        self.changed.set()

    def clear(self) -> None:
        """Drop pending events; a reader then gets no failure of the informer."""
        self._buffer.clear()
        self._is_cleared = True

    def ending(self) -> Exception:
        """Return the exception that ends the iteration: its end, or the informer's failure."""
        # A reader that closed its stream asked for the end, and must not get the informer's failure
        # in return.
        failure = None if self._is_cleared else self.upstream.failure()
        return failure if isinstance(failure, Exception) else StopAsyncIteration()

    def take(self) -> Event[T] | None:
        """Remove and return the next event, or ``None``."""
        while (item := self._buffer.take()) is not None:
            if isinstance(item, Transition):
                self._delivered += 1
                return event_of(item)
            # Set when the reader asks for more: only then has it handled all events before the
            # marker.
            self._has_synced = True
        return None

    @property
    def has_synced(self) -> bool:
        """True if every object of the first list was read, and then another event requested."""
        return self._has_synced

    def statistics(self) -> HandlerStatistics:
        """Return the current statistics, as for a handler that never fails."""
        return HandlerStatistics(
            name="events()",
            pending=len(self._buffer),
            peak=self._buffer.peak,
            delivered=self._delivered,
            coalesced=self._buffer.coalesced,
            errors=0,
            slow=0,
            last_error=None,
            has_synced=self._has_synced,
            busy_for=None,
        )


@final
class EventStream(Generic[T]):
    """The events of an informer, as an async iterator.

    It begins with every object in the cache, as `Added` with ``initial``, and continues with the
    changes. If a reader falls far behind, its pending events are merged for each object: it gets
    fewer events, never wrong ones. The stream ends when the informer stops, after the pending
    events were read.

    For one reader at a time. Cancelling ``anext()`` loses no event: the next call returns it. A
    reader may leave at any time with ``break``: a stream without references is removed. Close a
    stream that you keep, with ``async with`` or `aclose`.
    """

    __slots__ = ("__weakref__", "_feed", "_forget", "_is_read", "_turn")

    def __init__(self, feed: StreamFeed[T], *, forget: Callable[[], object]) -> None:
        self._feed = feed
        self._forget = forget
        self._is_read = False
        self._turn = 0.0

    def __aiter__(self) -> EventStream[T]:
        return self

    async def __anext__(self) -> Event[T]:
        """Return the next event, as soon as there is one.

        Raises:
            StopAsyncIteration: the informer has stopped, or the stream was closed.
            UsageError: another task is waiting for the next event, or the informer was not
                started.
            Exception: the failure of the informer.
        """
        if self._is_read:
            raise UsageError("another task reads this stream; give each its own events()")
        feed, clock = self._feed, asyncio.get_running_loop().time
        self._is_read = True
        try:
            # Before an event is taken, for the reason below.
            if clock() - self._turn > _TURN:
                await asyncio.sleep(0)
                self._turn = clock()
            # No await between taking an event and returning it: a cancellation would lose it.
            while (event := feed.take()) is None:
                if feed.is_ended:
                    raise feed.ending()
                feed.upstream.refuse_if_idle()
                # No await since the buffer was found empty, so no wake-up is missed.
                feed.changed.clear()
                await feed.changed.wait()
                self._turn = clock()
            return event
        finally:
            self._is_read = False

    def take_waiting(self, limit: int) -> list[Event[T]]:
        """Return the pending events, at most ``limit``, to read them in batches."""
        events: list[Event[T]] = []
        while len(events) < limit and (event := self._feed.take()) is not None:
            events.append(event)
        return events

    async def __aenter__(self) -> EventStream[T]:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the stream, also for a task that waits for it; pending events are dropped."""
        self._feed.end()
        self._feed.clear()
        self._forget()

    @property
    def has_synced(self) -> bool:
        """True if the reader is done with every object of the first list.

        True when, after the last of those events, the reader has requested another one.
        """
        return self._feed.has_synced
