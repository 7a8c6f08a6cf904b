"""Events for whoever would rather read than be called: ``async for event in informer.events()``.

The processor holds a `Feed`, the user an `EventStream` that reads it. The processor knows the
stream by a weak reference only, so a stream that is dropped needs no goodbye.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final, Generic, TypeVar, final

from kinform.cache.events import Added, Deleted, Event, Updated
from kinform.cache.listener import HandlerStatistics
from kinform.cache.upstream import Upstream
from kinform.errors import UsageError
from kinform.sansio.coalesce import HIGH_WATER, Buffer, Marker
from kinform.sansio.notifications import Notification

__all__ = ["EventStream", "Feed", "event_of"]

T = TypeVar("T")

_TURN: Final = 0.002
"""Seconds after which a reader that always finds something lets the others have the loop."""


def event_of(notification: Notification[T]) -> Event[T]:
    """Return the event that tells of ``notification``.

    Raises:
        ValueError: the notification holds no object at all.
    """
    key, old, new = notification.key, notification.old, notification.new
    if new is not None:
        if old is not None:
            return Updated(key, old.object, new.object)
        return Added(key, new.object, notification.initial)
    if old is not None:
        return Deleted(key, old.object, notification.final_state_unknown)
    raise ValueError(f"a notification of {key} that tells nothing")


@final
class Feed(Generic[T]):
    """What the processor fills for one `EventStream`. Nothing here waits, except `changed`."""

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
    """Set whenever there may be something to read, or nothing ever again."""
    is_ended: bool
    """Whether nothing will be put any more. What was put can still be taken."""

    upstream: Upstream
    """Knows why nothing comes."""

    def __init__(self, *, high_water: int = HIGH_WATER, upstream: Upstream | None = None) -> None:
        self.upstream = upstream or Upstream()
        self._buffer: Buffer[T] = Buffer(high_water)
        self._delivered = 0
        self._has_synced = self._is_marked = False
        self.changed = asyncio.Event()
        self.is_ended = False
        self._is_cleared = False

    def put(self, notifications: Sequence[Notification[T]]) -> None:
        """Have all these read, in this order."""
        if not self.is_ended:
            self._buffer.extend(notifications)
            self.changed.set()

    def mark_synced(self) -> None:
        """Have ``has_synced`` come true behind all that was put so far. Only the first counts."""
        if not self.is_ended and not self._is_marked:
            self._is_marked = True
            self._buffer.mark(Marker())
            self.changed.set()

    def end(self) -> None:
        """Put nothing any more."""
        self.is_ended = True
        self.changed.set()

    def clear(self) -> None:
        """Drop what was not read; who reads on is told of no failure."""
        self._buffer.clear()
        self._is_cleared = True

    def ending(self) -> Exception:
        """Return what ends the reading: the end itself, or what the informer has died of."""
        failure = None if self._is_cleared else self.upstream.failure()
        return failure if isinstance(failure, Exception) else StopAsyncIteration()

    def take(self) -> Event[T] | None:
        """Take out the next event; ``None`` if none waits."""
        while (item := self._buffer.take()) is not None:
            if isinstance(item, Notification):
                self._delivered += 1
                return event_of(item)
            self._has_synced = True
        return None

    @property
    def has_synced(self) -> bool:
        """Whether all that was there at first was read, and then more was asked for."""
        return self._has_synced

    def statistics(self) -> HandlerStatistics:
        """Return the figures of this moment, as for a handler that never fails."""
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

    It begins with everything that is in the cache, as `Added` with ``initial``, and goes on with
    what happens. A reader that falls far behind is told less often, not wrongly: what waits is
    merged for each object. The stream ends when the informer stops, after what waits was read.

    For one reader at a time. Cancelling ``anext()`` loses nothing: the next one gets what it
    would have got. A reader may leave at any time with ``break``: a stream that nobody holds is
    forgotten. Whoever keeps it closes it, with ``async with`` or `aclose`.
    """

    __slots__ = ("__weakref__", "_feed", "_forget", "_is_read", "_turn")

    def __init__(self, feed: Feed[T], *, forget: Callable[[], object]) -> None:
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
            UsageError: somebody else is waiting for the next event, or the informer was not
                started.
            Exception: what the informer has died of.
        """
        if self._is_read:
            raise UsageError("another task reads this stream; give each its own events()")
        feed, clock = self._feed, asyncio.get_running_loop().time
        self._is_read = True
        try:
            if clock() - self._turn > _TURN:
                await asyncio.sleep(0)
                self._turn = clock()
            # No await from a take that found something to the return: cancelled, it would be lost.
            while (event := feed.take()) is None:
                if feed.is_ended:
                    raise feed.ending()
                feed.upstream.refuse_if_idle()
                feed.changed.clear()
                await feed.changed.wait()
                self._turn = clock()
            return event
        finally:
            self._is_read = False

    def take_waiting(self, limit: int) -> list[Event[T]]:
        """Return the events that wait already, at most ``limit``: for who reads in batches."""
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
        """End the stream, also for a task that waits for it; what was not read is dropped."""
        self._feed.end()
        self._feed.clear()
        self._forget()

    @property
    def has_synced(self) -> bool:
        """Whether the reader is done with all that was there at first.

        True when, after the last of those events, the reader has come back for more.
        """
        return self._feed.has_synced
