"""`Watch`: an open watch, which turns HTTP bytes into typed events.

`WatchDecoder` cuts the bytes into frames; here they are read, timed and delivered. One network
read gives one batch, so a reader of batches awaits once for many events.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Final, NamedTuple, TypeVar, final

from kinform.errors import (
    DecodeError,
    KinformError,
    TransportError,
    TransportFailure,
    UsageError,
    api_error,
)
from kinform.meta import ObjectMeta
from kinform.rest import _responses
from kinform.rest.results import (
    INITIAL_EVENTS_END,
    Bookmark,
    Received,
    Unreadable,
    WatchEvent,
    list_too_large,
)
from kinform.rest.transport import HttpResponse
from kinform.sansio.wire import heads
from kinform.sansio.wire.heads import Head
from kinform.sansio.wire.watch import EventType, Frame, WatchDecoder

__all__ = ["Receiving", "Watch", "WatchResponse"]

T = TypeVar("T")

_GATHER: Final = 0.005
"""Seconds between two reads of a large list, in which its bytes accumulate."""
_LARGE: Final = 256 * 1024
"""Size from which a list is a large one."""
_PLENTY: Final = 64 * 1024
"""Size of a read that is worth waking up for."""

# Reading a member off an enum costs as much as the comparison itself.
_BOOKMARK: Final = EventType.BOOKMARK
_ERROR: Final = EventType.ERROR


class WatchResponse(NamedTuple):
    """A response whose body arrives, and its URL."""

    response: HttpResponse
    url: str


@final
class Watch(AsyncIterator[WatchEvent[T]]):
    """A stream of changes; opened by ``async with``, read by ``async for``, by one task at a time.

    Iterating yields `WatchEvent` until the server ends the watch, which it does sooner or later:
    a clean end is the end of the loop, not an error. Bookmarks only update
    ``resource_version``; `with_bookmarks` yields them too. It does not reconnect: an informer does.

    A cancelled read, or a loop that is left, loses nothing: the next one continues. Leaving
    the block closes the connection, also in the middle of an event. It may be entered and left in
    different tasks.

    Raises:
        ApiError: on entering, if the server refuses; while reading, for its ERROR events
            (`ResourceExpiredError`: list again).
        TransportError: the connection broke, or the watch exceeded its timeout by ten seconds.
        DecodeError: an event cannot be decoded, or the streamed list that it begins with is larger
            than ``Config.max_list_size``.
    """

    def __init__(
        self,
        connect: Callable[[], AbstractAsyncContextManager[WatchResponse]],
        read: Callable[[bytes, Head], T],
        *,
        resource_version: str = "",
        deadline: float | None = None,
        max_frame: int | None = None,
        is_list: bool = False,
        max_list: int | None = None,
    ) -> None:
        self._connect = connect
        self._read = read
        self._deadline_after = deadline
        self._decoder = WatchDecoder() if max_frame is None else WatchDecoder(max_frame=max_frame)
        # A stack of its own instead of ``async with`` in a method: the block may be entered and
        # left in different tasks.
        self._exit = contextlib.AsyncExitStack()
        self._open: WatchResponse | None = None
        self._deadline: float | None = None
        self._frames: deque[Frame] = deque()
        # Kept, because the error belongs after all events of the same read: the batch is returned
        # first, the error is raised by the next call.
        self._ending: KinformError | StopAsyncIteration | None = None
        self._is_list = is_list  # whether the end of the initial events is still to come
        self._max_list = max_list
        self._received = self._last = 0
        self.resource_version: str = resource_version
        """The version of the last event or bookmark; a new watch may continue from it."""
        self.initial_events_end: bool = False
        """True after the end of the initial objects (``send_initial_events``)."""

    @property
    def _url(self) -> str:
        return self._open.url if self._open else ""

    async def __aenter__(self) -> Watch[T]:
        if self._open is not None:
            raise UsageError("this watch was opened before; ask the resource for a new one")
        self._open = await self._exit.enter_async_context(self._connect())
        if self._deadline_after is not None:
            # From the answer and not from the first attempt: retries and limiters must not shorten
            # the watch.
            self._deadline = asyncio.get_running_loop().time() + self._deadline_after
        try:
            _responses.check_json(self._open.response.headers, method="GET", url=self._open.url)
        except KinformError:
            await self._exit.aclose()
            raise
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._exit.aclose()

    async def __anext__(self) -> WatchEvent[T]:
        while True:
            received = await self._receive()
            if isinstance(received, WatchEvent):
                return received

    def with_bookmarks(self) -> Receiving[T]:
        """Iterate over events and bookmarks, in order."""
        return Receiving(self._receive, self.batches)

    async def batches(self) -> AsyncGenerator[list[Received[T] | Unreadable]]:
        """Yield the events of each network read: faster, and with `Unreadable` items.

        An object that cannot be decoded is yielded as `Unreadable` instead of being raised. ERROR
        events end the stream as exceptions, after all events before them were yielded.
        """
        while batch := await self._read_batch():
            yield self._events(batch)

    async def _receive(self) -> Received[T]:
        if not self._frames:
            self._frames.extend(await self._read_batch())
        if not self._frames:
            raise StopAsyncIteration
        return self._event(self._frames.popleft())

    async def _read_batch(self) -> list[Frame]:
        """Read until at least one frame is complete and return the frames; empty at the end.

        A cancelled call loses nothing.
        """
        while self._ending is None:
            if self._open is None:
                raise UsageError("open the watch first: async with resource.watch() as events")
            gather = self._gather() if self._is_list else 0.0
            try:
                # One deadline for the whole watch. A timeout per read would never end a watch on
                # which bytes arrive now and then.
                async with asyncio.timeout_at(self._deadline):
                    piece = await self._open.response.read_some(gather=gather)
            except TimeoutError as exc:
                raise TransportError(
                    f"the watch did not end {self._deadline_after:g} s after its start",
                    failure=TransportFailure.TIMEOUT,
                    method="GET",
                    url=self._url,
                ) from exc
            self._last = len(piece)
            self._received += self._last
            # No await from here to the return: a cancellation in between would lose the frames.
            frames = self._decoder.feed(piece) if piece else self._decoder.finish()
            batch, error = self._split(frames)
            if error is not None or not piece:
                self._ending = error or StopAsyncIteration()
            if batch:
                return batch
        if isinstance(self._ending, KinformError):
            raise self._ending
        return []

    def _gather(self) -> float:
        """Return how long to pause before the next read of a streamed list.

        A server sends the objects of a streamed list one by one, as it encodes them, and the list
        is of no use before its end. Where it sends faster than we read, each read is large anyway,
        and a pause would only block the server. Events are read as they arrive.

        Raises:
            DecodeError: the list is larger than ``max_list``.
        """
        # Only here is it known whether the frames read before have ended the list.
        if self._max_list is not None and self._received > self._max_list:
            raise self._located(list_too_large(self._max_list))
        is_slow = self._received >= _LARGE and self._last < _PLENTY
        return _GATHER if is_slow else 0.0

    def _split(self, frames: list[Frame]) -> tuple[list[Frame], KinformError | None]:
        """Separate the frames before the first ERROR from the error that ends the stream."""
        for index, frame in enumerate(frames):
            if frame.type is _ERROR:
                return frames[:index], self._error(frame)
        failure = self._decoder.failure
        return frames, None if failure is None else self._located(failure)

    def _error(self, frame: Frame) -> KinformError:
        try:
            return api_error(frame.status(), method="GET", url=self._url)
        except DecodeError as exc:  # an ERROR without a valid Status
            return self._located(exc)

    def _located(self, error: DecodeError) -> DecodeError:
        error.method, error.url = "GET", self._url
        return error

    def _event(self, frame: Frame) -> Received[T]:
        if frame.head is None:
            raise self._located(frame.error or DecodeError("the object cannot be read"))
        metadata = frame.head.metadata
        if frame.type is _BOOKMARK:
            ended = self._is_end(metadata)
            event: Received[T] = Bookmark(metadata.resource_version, ended)
            self.initial_events_end |= ended
            self._is_list = self._is_list and not ended
        else:
            event = WatchEvent(frame.type, self._decode(frame.raw, frame.head), metadata)
        # After the decoding, which may raise: a watch that continues from here must bring the event
        # again.
        self.resource_version = metadata.resource_version or self.resource_version
        return event

    def _is_end(self, bookmark: ObjectMeta) -> bool:
        try:
            return bookmark.annotations.get(INITIAL_EVENTS_END) == "true"
        except DecodeError as exc:
            raise self._located(exc) from None

    def _events(self, frames: list[Frame]) -> list[Received[T] | Unreadable]:
        """Return the events of ``frames``. As `_event`, with fewer calls for the usual types."""
        events: list[Received[T] | Unreadable] = []
        for frame in frames:
            kind, head = frame.type, frame.head
            if head is None or kind is _BOOKMARK:
                events.append(self._event_or_unreadable(frame))
                continue
            try:
                obj = self._read(frame.raw, head)
            except DecodeError:
                events.append(self._event_or_unreadable(frame))
                continue
            events.append(WatchEvent(kind, obj, head.metadata))
            self.resource_version = head.metadata.resource_version or self.resource_version
        return events

    def _event_or_unreadable(self, frame: Frame) -> Received[T] | Unreadable:
        try:
            return self._event(frame)
        except DecodeError as exc:
            metadata = frame.head.metadata if frame.head else heads.salvage(frame.raw)
            # Detached: the cache keeps this error for as long as the object stays unreadable, and
            # its traceback would keep the whole read buffer.
            return Unreadable(metadata, heads.detached(exc), frame.type)

    def _decode(self, raw: bytes, head: Head) -> T:
        try:
            return self._read(raw, head)
        except DecodeError as exc:
            raise self._located(exc) from exc.__cause__


@final
class Receiving(AsyncIterator[Received[T]]):
    """Iterates over the events and bookmarks of a watch, one by one or in batches."""

    def __init__(
        self,
        receive: Callable[[], Awaitable[Received[T]]],
        batches: Callable[[], AsyncGenerator[list[Received[T] | Unreadable]]],
    ) -> None:
        self._receive = receive
        self.batches = batches
        """Yields the events of each network read: see `Watch.batches`."""

    async def __anext__(self) -> Received[T]:
        return await self._receive()
