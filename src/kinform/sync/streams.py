"""Streams: watches, logs, and the events of an informer, as plain iterators."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from types import TracebackType
from typing import Generic, TypeVar, final

from kinform.cache.processor import event_stream
from kinform.cache.processor.events import Event
from kinform.errors import UsageError
from kinform.rest import logs, watch
from kinform.rest.results import Bookmark, Received, Unreadable, WatchEvent
from kinform.sync._batches import Reader
from kinform.sync._loop_thread import LoopThread

__all__ = ["EventStream", "LogStream", "Watch"]

T = TypeVar("T")

_AT_ONCE = 100
"""The number of buffered events that are fetched from an informer at once."""


@final
class Watch(Iterator[WatchEvent[T]]):
    """A stream of changes; opened by ``with``, read by ``for``, by one thread at a time.

    .. code-block:: python

        with pods.watch(resource_version=listed.resource_version) as events:
            for event in events: ...

    It ends when the server ends the watch, which it does sooner or later. Bookmarks are taken
    note of in ``resource_version`` and not yielded; `with_bookmarks` yields them too. It does not
    reconnect: an informer does. A loop that is left or interrupted loses nothing: the next one
    goes on.

    Raises:
        ApiError: on entering, if the server refuses; while reading, for its ERROR events
            (`ResourceExpiredError`: list again).
        TransportError: the connection broke, or the watch outlived its time-out by ten seconds.
        DecodeError: what arrived cannot be read.
    """

    def __init__(self, loop: LoopThread, inner: watch.Watch[T]) -> None:
        self._loop = loop
        self._inner = inner
        self._is_open = False
        self._batches: AsyncGenerator[list[Received[T] | Unreadable]] | None = None
        self._reader = Reader(loop, self._pull, what="watch")
        self.resource_version: str = inner.resource_version
        """The version of the last event or bookmark handed out; a new watch may go on from it."""
        self.initial_events_end: bool = False
        """True after the end of the initial objects (``send_initial_events``)."""

    def __enter__(self) -> Watch[T]:
        try:
            self._loop.run(self._inner.__aenter__)
        except BaseException as exc:
            if not isinstance(exc, UsageError):
                self._loop.spawn(self._close)  # interrupted, it may have been opened
            raise
        self._is_open = True
        self._loop.note_running(self, self._close)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._loop.forget(self)
        self._loop.run(self._close)

    def __next__(self) -> WatchEvent[T]:
        while True:
            received = self._receive()
            if isinstance(received, WatchEvent):
                return received

    def with_bookmarks(self) -> Iterator[Received[T]]:
        """Iterate over events and bookmarks, in order."""
        while True:
            try:
                received = self._receive()
            except StopIteration:
                return
            yield received

    def _receive(self) -> Received[T]:
        if not self._is_open:
            raise UsageError("open the watch first: with resource.watch() as events")
        received = self._reader.next()
        if isinstance(received, Unreadable):
            raise received.error
        if isinstance(received, Bookmark):
            self.initial_events_end |= received.initial_events_end
            version = received.resource_version
        else:
            version = received.metadata.resource_version
        self.resource_version = version or self.resource_version
        return received

    async def _pull(self) -> Sequence[Received[T] | Unreadable]:
        if self._batches is None:
            self._batches = self._inner.batches()
        try:
            return await anext(self._batches)
        except StopAsyncIteration:
            return ()
        except BaseException:
            self._batches = None  # a generator that was cancelled is over; the watch is not
            raise

    async def _close(self) -> None:
        await self._inner.__aexit__(None, None, None)


@final
class LogStream(Iterator[str]):
    """Lines of a log; opened by ``with``, read by ``for``, once, by one thread at a time.

    Lines come without their line end, as text; bytes that are no UTF-8 are replaced. A line of
    over 1 MiB is handed out in pieces.
    """

    def __init__(self, loop: LoopThread, inner: logs.LogStream) -> None:
        self._loop = loop
        self._inner = inner
        self._batches: AsyncGenerator[list[str]] | None = None
        self._reader = Reader(loop, self._pull, what="log")

    def __enter__(self) -> LogStream:
        try:
            self._loop.run(self._inner.__aenter__)
        except BaseException as exc:
            if not isinstance(exc, UsageError):
                self._loop.spawn(self._close)
            raise
        self._batches = self._inner.batches()
        self._loop.note_running(self, self._close)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._loop.forget(self)
        self._loop.run(self._close)

    def __next__(self) -> str:
        if self._batches is None:
            raise UsageError("open the log first: with pods.logs(name) as lines")
        return self._reader.next()

    async def _pull(self) -> Sequence[str]:
        try:
            return () if self._batches is None else await anext(self._batches)
        except StopAsyncIteration:  # anext(..., default) raises SystemError in Python 3.11
            return ()

    async def _close(self) -> None:
        if self._batches is not None:
            await self._batches.aclose()
        await self._inner.__aexit__(None, None, None)


@final
class EventStream(Iterator[Event[T]], Generic[T]):
    """The events of an informer, as an iterator: see `kinform.cache.EventStream`.

    For one thread at a time. It ends when the informer stops. The owner closes it, with
    ``with`` or `close`.
    """

    def __init__(self, loop: LoopThread, inner: event_stream.EventStream[T]) -> None:
        self._loop = loop
        self._inner = inner
        # Not a bound method: that would be a reference cycle and keep an unused stream alive.
        self._source = _Source(inner)
        self._reader = Reader(loop, self._source.pull, what="stream")

    def __next__(self) -> Event[T]:
        return self._reader.next()

    def __enter__(self) -> EventStream[T]:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the stream, also for a thread that waits for it; unread events are dropped."""
        self._loop.run(self._inner.aclose)

    @property
    def has_synced(self) -> bool:
        """True after the reader has processed the initial objects and asked for more."""
        return self._inner.has_synced and not self._source.holds_initial


@final
class _Source(Generic[T]):
    """Fetches buffered events of an informer, several at once."""

    def __init__(self, inner: event_stream.EventStream[T]) -> None:
        self._inner = inner
        self.holds_initial: bool = False

    async def pull(self) -> Sequence[Event[T]]:
        was_synced, self.holds_initial = self._inner.has_synced, False
        try:
            first = await anext(self._inner)
        except StopAsyncIteration:
            return ()
        events = [first, *self._inner.take_waiting(_AT_ONCE - 1)]
        self.holds_initial = not was_synced
        return events
