"""RetryWatcher: a watch that outlives its connections, as long as its version does.

For those who want every single change and nothing else: no cache, no list. Where the version
expires, only a list can help; that is what a reflector is for.

client-go: tools/watch/retrywatcher.go. Differences: a version that has expired ends it however it
is told (client-go asks again for ever if the server says so at the start, client-go#904), and
waits grow as the reflector's do instead of being a second each.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import Final, Self, TypeGuard, TypeVar, final

from kinform.cache.listwatch import ListerWatcher, source_options
from kinform.cache.open_watch import batches_of
from kinform.errors import (
    ApiError,
    DecodeError,
    ForbiddenError,
    KinformError,
    ResourceExpiredError,
    SourceError,
    TransportError,
    TransportFailure,
    UnauthorizedError,
    UnknownResourceError,
    UsageError,
)
from kinform.rest.options import ListOptions
from kinform.rest.results import Bookmark, Received, Unreadable, WatchEvent
from kinform.sansio import relist
from kinform.sansio.backoff import Backoff
from kinform.sansio.versions import is_older, is_replay, newest
from kinform.tasks import apart, background

__all__ = ["RetryWatcher"]

T = TypeVar("T")

log: Final = logging.getLogger(__name__)

_GRACE: Final = 10.0
"""How long after its time-out a watch may take to end before we end it."""


@final
class RetryWatcher(AsyncIterator[WatchEvent[T]]):
    """Every change after a version, in order, each exactly once, over any number of watches.

    .. code-block:: python

        async with RetryWatcher(lw, listed.resource_version) as events:
            async for event in events:
                ...

    A watch that ends, breaks or cannot be opened is followed by another, from the version of the
    last event handed out. Waits in between grow with each failure, are never shorter than the
    server asks for, and begin anew once a watch was healthy: it lived for a minute, or to its
    time-out. Bookmarks are taken note of in ``resource_version`` and not yielded; `with_bookmarks`
    yields them too.

    Entering the block begins to watch, in a task of its own; leaving it ends that, and iteration
    with it. It may be entered and left in different tasks, and read by one at a time. A read that
    is cancelled loses nothing. While nobody reads, no more than one read of the network waits.

    Args:
        lw: what to watch; its ``list`` is not used.
        resource_version: where to begin.
        watch_timeout: how many seconds each watch is asked to last, at least; up to as many are
            added at random.
        rand: gives numbers in [0, 1), by which waits and time-outs are spread.

    Raises:
        UsageError: the version is ``""`` or ``"0"``: where to resume would be unknown.
        ResourceExpiredError: while reading: changes were lost; list again. This is the end, as
            are the next two.
        ForbiddenError: while reading: the server refuses to begin a watch; `UnauthorizedError`
            likewise.
        SourceError: while reading: ``lw`` awaited something that somebody else has cancelled.
        Exception: while reading: what ``lw`` raised, if it is none of kinform's.
        DecodeError: while reading: an object cannot be read; the next read goes on behind it. Or
            an event has no version, which is the end: nobody could resume there.
    """

    def __init__(
        self,
        lw: ListerWatcher[T],
        resource_version: str,
        *,
        watch_timeout: float = 300.0,
        rand: Callable[[], float] = random.random,
    ) -> None:
        if resource_version in {"", "0"}:
            raise UsageError(
                f"cannot resume from version {resource_version!r}; list first, and begin there"
            )
        if not watch_timeout >= 1:
            raise UsageError(f"watch_timeout must be a second or more, got {watch_timeout!r}")
        self._lw = lw
        self._watch_timeout = watch_timeout
        self._rand = rand
        self._backoff = Backoff()
        self._exit = contextlib.AsyncExitStack()
        self._task: asyncio.Task[None] | None = None
        self._pending: deque[Received[T] | Unreadable] = deque()  # one batch at most
        self._news = asyncio.Event()  # for the reader: look again
        self._room = asyncio.Event()  # for the task: the batch was read
        self._is_over = False  # nothing more will come; why stands in _ending
        self._ending: Exception | None = None
        self.resource_version: str = resource_version
        """The version of the last event or bookmark handed out."""

    async def __aenter__(self) -> Self:
        if self._task is not None:
            raise UsageError("this watcher was opened before; make a new one")
        self._task = await self._exit.enter_async_context(background(self._run()))
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the watch now, unread events with it; idempotent."""
        self._is_over = True
        self._ending = None
        self._pending.clear()
        self._news.set()
        await self._exit.aclose()

    async def __anext__(self) -> WatchEvent[T]:
        """Wait for the next change."""
        while True:
            received = await self._receive()
            if isinstance(received, WatchEvent):
                return received

    def with_bookmarks(self) -> AsyncIterator[Received[T]]:
        """Iterate over changes and bookmarks, in order."""
        return _Receiving(self._receive)

    # The reader's side.

    async def _receive(self) -> Received[T]:
        if self._task is None:
            raise UsageError("open the watcher first: async with RetryWatcher(...) as events")
        while True:
            # No await between a thing's leaving the buffer and its leaving us: nothing is lost.
            while self._pending:
                received = self._pending.popleft()
                if not self._pending:
                    self._room.set()
                if self._is_new(received):
                    return received
            if self._is_over:
                raise self._ending or StopAsyncIteration
            self._news.clear()
            await self._news.wait()

    def _is_new(self, received: Received[T] | Unreadable) -> TypeGuard[Received[T]]:
        """Tell whether the caller should get it, and move the version if so.

        Raises:
            DecodeError: instead of something that cannot be handed out.
        """
        if isinstance(received, Bookmark):
            version = received.resource_version
            is_new = not is_older(version, self.resource_version)
        else:
            version = received.metadata.resource_version
            is_new = not is_replay(self.resource_version, version)
        if is_new:
            self.resource_version = newest(self.resource_version, version)
        if is_new and isinstance(received, Unreadable):
            raise received.error
        if is_new and isinstance(received, WatchEvent) and not version:
            raise self._unresumable(received)
        return is_new

    def _unresumable(self, event: WatchEvent[T]) -> DecodeError:
        """End everything with an event behind which nobody could begin again."""
        key = str(event.metadata.key)
        self._ending = error = DecodeError("the event has no version to resume from", key=key)
        self._is_over = True
        self._pending.clear()
        assert self._task is not None, "read only inside the block"
        self._task.cancel()
        return error

    # The task's side.

    async def _take_turn(self) -> None:
        """Wait for all else that comes back to the same server."""
        limiter = source_options(self._lw).reconnects
        if limiter is not None:
            await limiter.wait()

    async def _run(self) -> None:
        """Watch again and again, until something is final."""
        try:
            wait = 0.0
            while not self._is_over:
                if wait:
                    await asyncio.sleep(wait)
                    await self._take_turn()
                watched = await apart(self._watch())  # the source's code
                if watched.cancelled():
                    raise SourceError("watch awaited something that was cancelled elsewhere")
                wait = watched.result()
                await self._until_read()  # or the next watch would repeat what waits here
        except Exception as exc:  # noqa: BLE001 - it is the reader's
            if not self._is_over:
                self._ending = exc
        finally:
            self._is_over = True
            self._news.set()

    async def _watch(self) -> float:
        """Watch once, and return how long to wait before the next time.

        Raises:
            KinformError: there is no next time.
        """
        loop = asyncio.get_running_loop()
        # Whole seconds, as they are sent; and not all watchers' watches end together.
        timeout = float(round(self._watch_timeout * (1 + self._rand())))
        options = ListOptions(
            resource_version=self.resource_version,
            watch=True,
            allow_watch_bookmarks=True,
            timeout=timeout,
        )
        opened: float | None = None
        error: KinformError | None = None
        limit = asyncio.timeout(timeout + _GRACE)
        try:
            async with limit, self._lw.watch(options) as events:
                opened = loop.time()
                await self._read(events)
        except KinformError as exc:
            error = exc
        except (TimeoutError, asyncio.CancelledError) as exc:
            # Either, for asyncio.timeout() trusts a count that the source may have changed.
            if not limit.expired():
                raise
            error = _silent(timeout + _GRACE, cause=exc)
        if error is not None and _is_final(error, at_start=opened is None):
            raise error
        # The server may count from a little earlier; a second is the shortest time-out.
        healthy_after = min(relist.HEALTHY_AFTER, max(timeout - 1, relist.SHORT_WATCH))
        is_healthy = opened is not None and loop.time() - opened >= healthy_after
        return self._wait_after(error, is_healthy=is_healthy)

    async def _read(self, events: AsyncIterable[Received[T]]) -> None:
        async with contextlib.aclosing(batches_of(events)) as batches:
            async for batch in batches:
                self._pending.extend(batch)
                self._news.set()
                await self._until_read()

    async def _until_read(self) -> None:
        while self._pending:
            self._room.clear()
            await self._room.wait()

    def _wait_after(self, error: KinformError | None, *, is_healthy: bool) -> float:
        """Return how long to wait after a watch that ended; None: in good order."""
        if is_healthy:
            self._backoff = self._backoff.healthy()
            if error is None:
                return 0.0
        rand = self._rand()
        asked = (error.retry_after or 0.0) if isinstance(error, ApiError) else 0.0
        told = min(asked, relist.MAX_RETRY_AFTER) * (1 + rand / 4)
        wait = max(self._backoff.delay(rand=rand), told)
        self._backoff = self._backoff.failed()
        cause = type(error).__name__ if error is not None else "closed"
        log.debug("watch again later", extra={"cause": cause, "wait": wait})
        return wait


@final
class _Receiving(AsyncIterator[Received[T]]):
    """Iterates over what a function receives."""

    def __init__(self, receive: Callable[[], Awaitable[Received[T]]]) -> None:
        self._receive = receive

    async def __anext__(self) -> Received[T]:
        return await self._receive()


def _silent(seconds: float, *, cause: BaseException) -> TransportError:
    message = f"the watch did not end {seconds:g} s after its start"
    error = TransportError(message, failure=TransportFailure.TIMEOUT)
    error.__cause__ = cause
    return error


def _is_final(error: KinformError, *, at_start: bool) -> bool:
    """Tell whether another watch could not end otherwise."""
    if isinstance(error, TransportError):
        return error.failure is TransportFailure.CLOSED  # our own client is
    if isinstance(error, UsageError):
        return not isinstance(error, UnknownResourceError)  # a kind may appear
    if isinstance(error, ForbiddenError | UnauthorizedError):
        return at_start
    return isinstance(error, ResourceExpiredError)
