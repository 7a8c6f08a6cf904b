"""One watch, while it is open: its deadline, its silence, and what ended it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from typing import Final, Protocol, TypeVar, cast, final, runtime_checkable

from kinform.errors import KinformError, TransportError, TransportFailure
from kinform.rest.options import ListOptions
from kinform.rest.results import Received, Unreadable
from kinform.sansio import relist

__all__ = ["OpenWatch", "batches_of"]

T = TypeVar("T")

DEADLINE_GRACE: Final = 10.0
"""How long after its time-out a watch may take to end before we end it."""
OPENING_LIMIT: Final = 120.0
"""How long a server may take to accept a watch; kinform's own client gives up before that."""


@final
class OpenWatch:
    """A watch from its opening to its end. ``limit`` ends it, whoever has a reason to.

    Attributes:
        options: what it is asked for with.
        is_list: whether it is still the first part of a streamed list, up to its end bookmark.
        is_open: whether the server has accepted it.
        has_ended: whether `end` was called: nothing that it brings counts any more.
        heard: when something last came.
        decision: what follows, where that was decided while it was open.
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
        self.decision: relist.Decision | None = None
        self.repair_timer: asyncio.TimerHandle | None = None
        self.repairs: bool = False
        self.is_stopped: bool = False
        self._reason: KinformError | None = None
        self._idle: float | None = None
        self._paused = 0.0  # when `pause` was called

    def opened(self) -> None:
        """Note that the server has accepted it: from now on it may last until its deadline."""
        self.is_open = True
        self._reschedule(self._deadline)

    def end_list(self) -> None:
        """Note that the streamed list is complete: what comes now are events."""
        self.is_list = False
        self._listed.set()

    async def wait_listed(self, within: float) -> None:
        """Wait until the streamed list is complete, or for so long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._listed.wait()

    def hear(self, now: float) -> None:
        """Note that something came; the silence is counted from here."""
        self.heard = now
        if self._idle is not None:
            self._reschedule(min(self._deadline, now + self._idle))

    def arm(self, idle: float) -> None:
        """From now on, end it when nothing comes for ``idle`` seconds."""
        self._idle = idle
        self.hear(self.heard)

    def pause(self) -> None:
        """Let it be as long as we ourselves do not read."""
        self._paused = asyncio.get_running_loop().time()
        self._reschedule(None)

    def resume(self) -> None:
        """Undo `pause`; the time until now was neither the server's silence nor its delay."""
        now = asyncio.get_running_loop().time()
        # What the server sent meanwhile, its end too, waits to be read. No more than that time
        # is given, or a server that never stops would never be stopped.
        self._deadline += now - self._paused
        self._reschedule(self._deadline)
        self.hear(now)

    def end(
        self, *, reason: KinformError | None = None, decision: relist.Decision | None = None
    ) -> None:
        """End it, once and for all: for ``reason``, or because ``decision`` says what follows."""
        self.decision = decision or self.decision
        if not self.has_ended:
            self._reason = reason
            self._reschedule(self.started)
            self.has_ended = True

    def stop(self) -> None:
        """Note that the reflector was cancelled: `check` ends the reading."""
        self.is_stopped = True

    def check(self) -> None:
        """Raise ``CancelledError`` if it must end: the source may have swallowed that."""
        if self.is_stopped or self.limit.expired():
            raise asyncio.CancelledError

    def cause_of(self, exc: Exception | None) -> Exception | None:
        """Return what ended it, where ``exc`` was seen: all that follows from the limit is ours."""
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
        """Return for how long it has been there."""
        return asyncio.get_running_loop().time() - self.started

    def reached_timeout(self) -> bool:
        """Tell whether it was there for as long as it was meant to be, give or take rounding."""
        return self.lived() >= self.timeout - min(1.0, self.timeout / 10)

    def _reschedule(self, when: float | None) -> None:
        if not (self.has_ended or self.limit.expired()):
            self.limit.reschedule(when)


@runtime_checkable
class _Batched(Protocol[T]):
    def batches(self) -> AsyncGenerator[Sequence[Received[T] | Unreadable]]: ...


async def batches_of(
    stream: AsyncIterable[Received[T]],
) -> AsyncGenerator[Sequence[Received[T] | Unreadable]]:
    """Yield what a watch brings, as many events at a time as it has at hand."""
    if isinstance(stream, _Batched):
        batched = cast("_Batched[T]", stream)
        async with contextlib.aclosing(batched.batches()) as batches:
            async for batch in batches:
                yield batch
    else:
        async for event in stream:
            yield (event,)
