"""RetryWatcher: a watch that is reopened after each end, as long as its version has not expired.

For callers that need every single change and nothing else: no cache, no list. When the version
expires, only a list can help; use a reflector or an informer then.

client-go: tools/watch/retrywatcher.go. Differences: an expired version ends it both as an answer
and as an event (client-go retries for ever if the server answers the first request so,
client-go#904); waits grow as the reflector's do instead of being a second each; and at most 8
watches are opened in any minute.
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

from kinform.cache._reflector.open_watch import batches_of
from kinform.cache.listwatch import ListerWatcher, source_options
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
from kinform.sansio.backoff import Backoff
from kinform.sansio.reflector import step
from kinform.sansio.reflector.opening_budget import OpeningBudget
from kinform.sansio.retry import MAX_RETRY_AFTER
from kinform.sansio.versions import is_older, is_replay, newest
from kinform.tasks import apart, background

__all__ = ["RetryWatcher"]

T = TypeVar("T")

log: Final = logging.getLogger(__name__)

_GRACE: Final = 10.0
"""Seconds after its timeout in which the server may end a watch; then the watcher ends it."""


@final
class RetryWatcher(AsyncIterator[WatchEvent[T]]):
    """Every change after a version, in order, each exactly once, over any number of watches.

    .. code-block:: python

        async with RetryWatcher(lw, listed.resource_version) as events:
            async for event in events:
                ...

    A watch that ends, breaks or cannot be opened is followed by another, from the version of the
    last event handed out. Waits in between grow with each failure, are never shorter than the
    server asks for, and begin anew once a watch was healthy: it lived for a minute or to its
    time-out, or it ended cleanly and brought an event or lived for 8 s. However healthy they were,
    at most 8 watches are opened in any minute, the last of them spread over it. A watch that ended
    before its time-out is reopened in turn with all others of the client (``reconnects``).

    Bookmarks move ``resource_version`` and are not yielded; `with_bookmarks` yields them too.

    Entering the block starts the watch, in a task of its own; leaving it ends the watch and the
    iteration. It may be entered and left in different tasks, and read by one at a time. A read that
    is cancelled loses nothing. If the caller does not read, at most one batch is buffered.

    Args:
        lw: the resource to watch; its ``list`` is not used.
        resource_version: the version to begin from.
        watch_timeout: the shortest requested duration of a watch in seconds; up to as much is
            added at random.
        rand: returns numbers in [0, 1), which spread waits and timeouts.

    Raises:
        UsageError: the version is ``""`` or ``"0"``, from which no watch can be resumed.
        ResourceExpiredError: while reading: changes were lost; list again. This error and the next
            two end the iteration.
        ForbiddenError: while reading: the server refuses to begin a watch; `UnauthorizedError`
            likewise.
        SourceError: while reading: ``lw`` awaited something that was cancelled elsewhere.
        Exception: while reading: any other exception of ``lw``.
        DecodeError: while reading: an object cannot be read; the next read goes on behind it. Or
            an event has no version, so that no watch can be resumed after it: the iteration ends.
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
        self._budget = OpeningBudget()
        self._was_cut = False  # the last watch ended before its timeout, perhaps with all others
        self._exit = contextlib.AsyncExitStack()
        self._task: asyncio.Task[None] | None = None
        self._pending: deque[Received[T] | Unreadable] = deque()  # one batch at most
        self._news = asyncio.Event()  # wakes the reader
        self._room = asyncio.Event()  # wakes the task: the batch was read
        self._is_over = False  # no more events will arrive; _ending is the reason
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

    # Called by the reader.

    async def _receive(self) -> Received[T]:
        if self._task is None:
            raise UsageError("open the watcher first: async with RetryWatcher(...) as events")
        while True:
            # No await between the buffer and the return: a cancelled read loses no event.
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
        """Return whether it is new for the caller, and advance the version if so.

        Raises:
            DecodeError: it cannot be read, or has no version.
        """
        if isinstance(received, Bookmark):
            version = received.resource_version
            # A bookmark may repeat the version of the last event; an event that does is a replay.
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
        """End the watch at an event from which it could not be resumed."""
        key = str(event.metadata.key)
        self._ending = error = DecodeError("the event has no version to resume from", key=key)
        self._is_over = True
        self._pending.clear()
        assert self._task is not None, "read only inside the block"
        self._task.cancel()
        return error

    # Called by the task.

    async def _take_turn(self) -> None:
        """Wait for a turn among all reconnects of the client."""
        limiter = source_options(self._lw).reconnects
        if limiter is not None:
            await limiter.wait()

    async def _run(self) -> None:
        """Open watch after watch, until a final error."""
        loop = asyncio.get_running_loop()
        try:
            wait = 0.0
            while not self._is_over:
                # A healthy end is followed by the next watch at once, so a server could make this
                # loop hot without a budget: by ending watches right after one event, for example.
                wait = max(wait, self._budget.wait(now=loop.time()))
                if wait:
                    await asyncio.sleep(wait)
                if wait or self._was_cut:
                    await self._take_turn()
                self._budget = self._budget.used(loop.time())
                watched = await apart(self._watch())  # user code
                if watched.cancelled():
                    raise SourceError("watch awaited something that was cancelled elsewhere")
                wait = watched.result()
                await self._until_read()  # or the next watch would repeat the buffered events
        except Exception as exc:  # noqa: BLE001 - raised in the reader
            if not self._is_over:
                self._ending = exc
        finally:
            self._is_over = True
            self._news.set()

    async def _watch(self) -> float:
        """Watch once, and return the wait before the next watch.

        Raises:
            KinformError: a final error.
        """
        loop = asyncio.get_running_loop()
        # In whole seconds, as it is sent; at random, so that not all watches end together.
        timeout = float(round(self._watch_timeout * (1 + self._rand())))
        options = ListOptions(
            resource_version=self.resource_version,
            watch=True,
            allow_watch_bookmarks=True,
            timeout=timeout,
        )
        opened: float | None = None
        error: KinformError | None = None
        before = self.resource_version
        limit = asyncio.timeout(timeout + _GRACE)
        try:
            async with limit, self._lw.watch(options) as events:
                opened = loop.time()
                await self._read(events)
        except KinformError as exc:
            error = exc
        except (TimeoutError, asyncio.CancelledError) as exc:
            # Either: asyncio.timeout() relies on Task.cancelling(), which user code may change.
            if not limit.expired():
                raise
            error = _silent(timeout + _GRACE, cause=exc)
        if error is not None and _is_final(error, at_start=opened is None):
            raise error
        # The server may count from a little earlier; a second is the shortest timeout.
        whole = max(timeout - 1, step.SHORT_WATCH)
        healthy_after = min(step.HEALTHY_AFTER, whole)
        lived = 0.0 if opened is None else loop.time() - opened
        advanced = self.resource_version != before
        is_clean = opened is not None and error is None
        self._was_cut = not (is_clean and lived >= whole)
        is_healthy = opened is not None and (
            lived >= healthy_after or (is_clean and (advanced or lived >= step.CLEAN_AFTER))
        )
        return self._wait_after(error, is_healthy=is_healthy)

    async def _read(self, events: AsyncIterable[Received[T]]) -> None:
        async with contextlib.aclosing(batches_of(events)) as batches:
            async for batch in batches:
                # One batch at most: the socket's buffer, and then the server, waits for a slow
                # reader.
                self._pending.extend(batch)
                self._news.set()
                await self._until_read()

    async def _until_read(self) -> None:
        while self._pending:
            self._room.clear()
            await self._room.wait()

    def _wait_after(self, error: KinformError | None, *, is_healthy: bool) -> float:
        """Return the wait after a watch that ended; ``error`` is ``None`` if it ended cleanly."""
        if is_healthy:
            self._backoff = self._backoff.healthy()
            if error is None:
                return 0.0
        rand = self._rand()
        asked = (error.retry_after or 0.0) if isinstance(error, ApiError) else 0.0
        shortest = min(asked, MAX_RETRY_AFTER) * (1 + rand / 4)
        wait = max(self._backoff.delay(rand=rand), shortest)
        self._backoff = self._backoff.failed()
        cause = type(error).__name__ if error is not None else "closed"
        log.debug("watch is reopened later", extra={"cause": cause, "wait": wait})
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
    """Return whether another watch would end in the same way."""
    if isinstance(error, TransportError):
        return error.failure is TransportFailure.CLOSED  # the client was closed
    if isinstance(error, UsageError):
        return not isinstance(error, UnknownResourceError)  # a CRD may be created later
    if isinstance(error, ForbiddenError | UnauthorizedError):
        # client-go also stops for these at the start only (since 1.32).
        return at_start
    return isinstance(error, ResourceExpiredError)
