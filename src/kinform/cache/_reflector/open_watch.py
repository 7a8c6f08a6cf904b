"""OpenWatch: one watch while it is open, with its deadline, its idle time and its end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from typing import Final, Protocol, TypeVar, cast, final, runtime_checkable

from kinform.errors import KinformError, TransportError, TransportFailure
from kinform.rest.options import ListOptions
from kinform.rest.results import Received, Unreadable
from kinform.sansio.reflector import step

__all__ = ["OpenWatch", "batches_of"]

T = TypeVar("T")

# client-go never applies the timeout of a watch on its own side: a proxy that keeps the connection
# open leaves it waiting for ever (F-R02).
DEADLINE_GRACE: Final = 10.0
"""Seconds after its timeout in which the server may end a watch; then the reflector ends it."""
OPENING_LIMIT: Final = 120.0
"""Seconds in which a server must accept a watch; kinform's own client gives up before that."""


@final
class OpenWatch:
    """A watch from its opening to its end; ``limit`` is the one way to end it.

    Attributes:
        options: the options of its request.
        is_list: whether it is still the first part of a streamed list, up to its end bookmark.
        is_open: whether the server has accepted it.
        has_ended: whether `end` was called: its further events are ignored.
        heard: when the last data arrived.
        decision: the next decision, if it was made while the watch was open.
        repair_timer: ends the watch, so that corrupted objects can be listed again.
        repairs: whether it was ended for that.
    """

    def __init__(self, resource_version: str, *, is_list: bool, timeout: float) -> None:
        self.timeout: Final = timeout
        self.options: Final = ListOptions(
            resource_version=resource_version,
            resource_version_match="NotOlderThan" if is_list else None,
            send_initial_events=True if is_list else None,
            watch=True,
            allow_watch_bookmarks=True,
            timeout=timeout,
        )
        self.started: Final = asyncio.get_running_loop().time()
        self._deadline = self.started + timeout + DEADLINE_GRACE
        self.limit: Final = asyncio.timeout_at(min(self._deadline, self.started + OPENING_LIMIT))
        self.is_list: bool = is_list
        self._listed = asyncio.Event()
        self.is_open: bool = False
        self.has_ended: bool = False
        self.heard: float = self.started
        self.decision: step.Decision | None = None
        self.repair_timer: asyncio.TimerHandle | None = None
        self.repairs: bool = False
        self.is_stopped: bool = False
        self._reason: KinformError | None = None
        self._idle: float | None = None
        self._paused = 0.0  # when `pause` was called

    def opened(self) -> None:
        """Note that the server has accepted it: it may last until its deadline."""
        self.is_open = True
        self._reschedule(self._deadline)

    def end_list(self) -> None:
        """Note that the streamed list is complete: events follow."""
        self.is_list = False
        self._listed.set()

    async def wait_listed(self, within: float) -> None:
        """Wait until the streamed list is complete, at most for ``within`` seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._listed.wait()

    def hear(self, now: float) -> None:
        """Note that data arrived: the idle time begins anew."""
        self.heard = now
        if self._idle is not None:
            self._reschedule(min(self._deadline, now + self._idle))

    def arm(self, idle: float) -> None:
        """From now on, end it after ``idle`` seconds without data."""
        self._idle = idle
        # From the last data and not from now: the time since then was silence already.
        self.hear(self.heard)

    def pause(self) -> None:
        """Suspend all limits while the reflector itself does not read."""
        self._paused = asyncio.get_running_loop().time()
        self._reschedule(None)

    def resume(self) -> None:
        """Undo `pause`: the time since then was not the server's delay."""
        now = asyncio.get_running_loop().time()
        # Data that the server sent meanwhile, its end included, waits to be read. Only that time is
        # added, or a server that never ends a watch could extend it for ever.
        self._deadline += now - self._paused
        self._reschedule(self._deadline)
        self.hear(now)

    def end(
        self, *, reason: KinformError | None = None, decision: step.Decision | None = None
    ) -> None:
        """End it for good: for ``reason``, or because ``decision`` is the next one."""
        self.decision = decision or self.decision
        if not self.has_ended:
            self._reason = reason
            # In the past, so that it expires in the next turn of the loop.
            self._reschedule(self.started)
            self.has_ended = True

    def stop(self) -> None:
        """Note that the reflector was cancelled: `check` ends the reading."""
        self.is_stopped = True

    def check(self) -> None:
        """Raise ``CancelledError`` if the watch must end: its source may have swallowed one."""
        # asyncio.timeout() cancels once. A source that catches that cancellation would go on for
        # ever.
        if self.is_stopped or self.limit.expired():
            raise asyncio.CancelledError

    def cause_of(self, exc: Exception | None) -> Exception | None:
        """Return the reason of its end: ``exc``, unless the limit has ended it."""
        # The limit wins: the exception of an interrupted source is a consequence of the
        # interruption.
        return self._failure() if self.limit.expired() else exc

    def _failure(self) -> KinformError:
        if self._reason is not None:
            return self._reason
        now = asyncio.get_running_loop().time()
        if not self.is_open:
            text = f"the watch was not answered within {now - self.started:g} s"
        elif now >= self._deadline:
            text = f"the watch did not end {self._deadline - self.started:g} s after its start"
        else:
            text = f"the watch was silent for {now - self.heard:g} s"
        return TransportError(text, failure=TransportFailure.TIMEOUT)

    def lived(self) -> float:
        """Return the seconds since it was requested."""
        return asyncio.get_running_loop().time() - self.started

    def reached_timeout(self) -> bool:
        """Return whether it lasted for its timeout, except for rounding."""
        return self.lived() >= self.timeout - min(1.0, self.timeout / 10)

    def _reschedule(self, when: float | None) -> None:
        # `asyncio.Timeout.reschedule` raises once it has expired, and an end that was decided must
        # stay.
        if not (self.has_ended or self.limit.expired()):
            self.limit.reschedule(when)


@runtime_checkable
class _Batched(Protocol[T]):
    def batches(self) -> AsyncGenerator[Sequence[Received[T] | Unreadable]]: ...


async def batches_of(
    stream: AsyncIterable[Received[T]],
) -> AsyncGenerator[Sequence[Received[T] | Unreadable]]:
    """Yield the events of a watch, as many at a time as have arrived."""
    if isinstance(stream, _Batched):
        batched = cast("_Batched[T]", stream)
        async with contextlib.aclosing(batched.batches()) as batches:
            async for batch in batches:
                yield batch
    else:
        async for event in stream:
            yield (event,)
