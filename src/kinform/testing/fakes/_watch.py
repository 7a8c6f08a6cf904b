"""Parts of a `kinform.testing.FakeListWatch`: its watches, its faults, and its waiters."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar, final

from kinform.rest.options import ListOptions
from kinform.rest.results import Bookmark, Received, Unreadable
from kinform.testing.fakes._answers import Start
from kinform.testing.fakes._history import FakeSelection, HistoryChange

__all__ = ["FakeRequest", "FakeWatch", "Verb", "VerbFaults", "Waiters"]

T = TypeVar("T")

Verb: TypeAlias = Literal["list", "watch"]


@final
@dataclass(frozen=True, slots=True)
class FakeRequest:
    """One list or watch request, also if it was refused."""

    verb: Verb
    options: ListOptions
    at: float
    """When, by the time of the loop."""


@final
class FakeWatch(AsyncIterator[Received[T]]):
    """An open watch: iterates over events and bookmarks, as `kinform.rest.watch.Receiving` does.

    It ends when its ``timeout`` is over, when the source closes it, or when its block is left. A
    read that is cancelled loses nothing. What is not read waits, without a bound: tests are
    short.
    """

    options: Final[ListOptions]
    """The options of the request."""

    def __init__(
        self, options: ListOptions, start: Start[T], *, on_change: Callable[[], None]
    ) -> None:
        self.options = options
        self._selection = FakeSelection.of(options)
        self._version = start.version
        self._pending: deque[Received[T] | Unreadable] = deque(start.received)
        self._has_ended = start.error is not None
        self._error: Exception | None = start.error
        self._is_frozen = False
        self._is_read = False
        self._news = asyncio.Event()
        self._on_change = on_change

    # The reader's side.

    async def __anext__(self) -> Received[T]:
        """Return the next event or bookmark.

        Raises:
            KinformError: what the source ended the watch with, or said instead of an object.
        """
        if not await self._has_more():
            raise StopAsyncIteration
        received = self._pending.popleft()
        if isinstance(received, Unreadable):
            raise received.error
        return received

    async def batches(self) -> AsyncGenerator[list[Received[T] | Unreadable]]:
        """Yield all there is at once, again and again: see `kinform.rest.watch.Watch.batches`."""
        while await self._has_more():
            batch = list(self._pending)
            self._pending.clear()
            yield batch

    async def _has_more(self) -> bool:
        while not (self._pending or self._has_ended):
            self._news.clear()
            self._is_read = True
            self._on_change()
            try:
                await self._news.wait()
            finally:
                self._is_read = False
        if not self._pending and self._error is not None:
            raise self._error
        return bool(self._pending)

    # The source's side.

    @property
    def has_ended(self) -> bool:
        """True if nothing more will come after the events that wait to be read."""
        return self._has_ended

    @property
    def is_idle(self) -> bool:
        """True if a reader waits and no event is there."""
        return self._is_read and not self._pending and not self._has_ended

    def tell(self, change: HistoryChange[T]) -> None:
        """Deliver a change, if it is selected and newer than the last delivered one."""
        if change.version <= self._version:
            return
        self._version = change.version
        event = self._selection.event(change)
        if event is not None:
            self.push(event)

    def tell_version(self, version: int, bookmark: Bookmark) -> None:
        """Deliver a bookmark, if it was requested and is not older than the last event."""
        if self.options.allow_watch_bookmarks and version >= self._version:
            self._version = version
            self.push(bookmark)

    def push(self, received: Received[T] | Unreadable) -> None:
        """Pass on anything."""
        if not (self._has_ended or self._is_frozen):
            self._pending.append(received)
            self._news.set()

    def end(self, error: Exception | None = None) -> None:
        """End it after the events sent so far: cleanly, or with an error."""
        if not (self._has_ended or self._is_frozen):
            self._has_ended, self._error = True, error
            self._news.set()
            self._on_change()

    def freeze(self) -> None:
        """Send nothing any more, without ending the watch."""
        self._is_frozen = True

    @contextlib.contextmanager
    def open(self) -> Generator[None]:
        """End it when its time is over, and when the block is left."""
        timer: asyncio.TimerHandle | None = None
        if self.options.timeout is not None:
            loop = asyncio.get_running_loop()
            timer = loop.call_later(self.options.timeout, self.end)
        try:
            yield
        finally:
            if timer is not None:
                timer.cancel()
            self._is_frozen = False
            self.end()


@final
class VerbFaults:
    """The faults of the next requests of one verb."""

    def __init__(self) -> None:
        self._errors: deque[Exception] = deque()
        self._last_stays = False
        self._answers = asyncio.Event()
        self._answers.set()

    def fail(self, errors: Sequence[Exception], *, forever: bool) -> None:
        """Raise ``errors`` one by one, after those that are due; the last one for ever?"""
        self._errors.extend(errors)
        self._last_stays = forever

    def hang(self) -> None:
        """Block all requests."""
        self._answers.clear()

    def heal(self) -> None:
        """Forget everything."""
        self._errors.clear()
        self._answers.set()

    async def strike(self) -> None:
        """Do to one request what is due."""
        await self._answers.wait()
        if not self._errors:
            return
        error = self._errors[0]
        if len(self._errors) > 1 or not self._last_stays:
            self._errors.popleft()
        raise error.with_traceback(None)  # it may be raised a thousand times


class _Waiter(NamedTuple):
    condition: Callable[[], bool]
    future: asyncio.Future[None]


@final
class Waiters:
    """Waiters for a condition, which is evaluated after every change."""

    def __init__(self) -> None:
        self._waiters: list[_Waiter] = []

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait until ``condition`` holds, or has held for a moment."""
        if condition():
            return
        waiter = _Waiter(condition, asyncio.get_running_loop().create_future())
        self._waiters.append(waiter)
        try:
            await waiter.future
        finally:
            self._waiters.remove(waiter)

    def look(self) -> None:
        """Wake those whose condition holds."""
        for condition, future in self._waiters:
            if not future.done() and condition():
                future.set_result(None)
