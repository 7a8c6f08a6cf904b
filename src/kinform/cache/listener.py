"""One handler's end of the line: its buffer, its task, its clock, its figures.

The processor puts notifications into the buffer and goes on; the listener's own task takes them
out and calls the handler. So no handler can hold up the cache or another handler, except by
blocking the loop, and then it is named.

Rule 1: one callback at a time, in order. Rule 2: whatever a callback raises concerns nobody but
the log and the figures, unless it is meant for the process (``KeyboardInterrupt``) or for this
task (its cancellation). Rule 3: once retired, nothing new is called.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar, final

from kinform.cache.handlers import Caller, EventHandler
from kinform.errors import UsageError
from kinform.parts import Parts, error_of
from kinform.sansio import coalesce
from kinform.sansio.backoff import Backoff
from kinform.sansio.coalesce import Buffer, Marker
from kinform.sansio.notifications import Notification
from kinform.tasks import apart, end_in_time

__all__ = ["HandlerStatistics", "Listener"]

T = TypeVar("T")

log: Final = logging.getLogger(__name__)

_BLOCKING: Final = 0.25
"""Seconds after which a plain function has blocked the loop for too long."""
_LONG: Final = 30.0
"""Seconds after which an awaited callback is worth a word."""
_TURN: Final = 0.002
"""Seconds after which a busy listener lets the others have the loop."""
_LOGGED_ERRORS: Final = 10
"""How many errors of a handler are logged one by one; then the 100th, the 1,000th and so on."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerStatistics:
    """Figures of one handler or event stream at one moment, for people and metrics.

    What was put into its buffer is ``delivered``, ``coalesced`` or ``pending``, unless it was
    dropped when the handler was removed.
    """

    name: str
    pending: int
    """Notifications that wait in its buffer."""
    peak: int
    """The most that ever waited."""
    delivered: int
    """Notifications dealt with: told, whether it raised or not, or left out by the filter or for
    want of a callback."""
    coalesced: int
    """Notifications merged with others, because too many waited."""
    errors: int
    """Callbacks and filters that raised."""
    slow: int
    """Plain functions that blocked the event loop."""
    last_error: str | None
    """The class of the last error, and the key it was about."""
    has_synced: bool
    busy_for: float | None
    """How long the callback that runs now has been running; ``None`` if none runs."""


@final
class Listener(Generic[T]):
    """Tells one handler. Belongs to one loop; only `statistics` may be called from any thread."""

    __slots__ = (
        "_again",
        "_awaited",
        "_awake",
        "_buffer",
        "_busy_since",
        "_call",
        "_callback",
        "_caller",
        "_delivered",
        "_errors",
        "_handler",
        "_has_synced",
        "_is_marked",
        "_is_retired",
        "_last_error",
        "_loop",
        "_on_resync",
        "_parts",
        "_resync_timer",
        "_retirement",
        "_settled",
        "_slow",
        "_watch",
        "_worker",
        "is_resync_due",
    )

    is_resync_due: bool
    """Whether its period has passed since it was last told of everything."""

    def __init__(
        self,
        handler: EventHandler[T],
        *,
        on_resync: Callable[[], None],
        parts: Parts | None = None,
    ) -> None:
        self._handler = handler
        self._parts = Parts(handler.name) if parts is None else parts
        self._retirement = asyncio.Event()
        self._on_resync = on_resync
        self._caller = Caller(handler)
        self._call = self._caller.__call__  # a method is called faster than an object
        self._buffer: Buffer[T] = Buffer(coalesce.HIGH_WATER)  # looked up: simulations turn it
        self._awaited: Notification[T] | None = None
        self._awake = asyncio.Event()
        self._settled = asyncio.Event()  # synced, or certain never to be
        self._has_synced = False
        self._is_marked = self._is_retired = False
        self.is_resync_due = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._worker: asyncio.Task[None] | None = None
        self._callback: asyncio.Task[object] | None = None  # of an awaited callback
        self._resync_timer: asyncio.TimerHandle | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._busy_since: float | None = None
        self._delivered = self._errors = self._slow = 0
        self._last_error: str | None = None
        self._again: Notification[T] | None = None  # its callback was cut short

    # --- what the processor calls: nothing here waits, nothing raises -------------------------

    def put(self, notifications: Sequence[Notification[T]]) -> None:
        """Have the handler told of all these, soon and in this order."""
        if not self._is_retired:
            self._buffer.extend(notifications)
            self._awake.set()

    def mark_synced(self) -> None:
        """Have ``has_synced`` come true behind all that was put so far. Only the first counts."""
        if not self._is_retired and not self._is_marked:
            self._is_marked = True
            self._buffer.mark(Marker())
            self._awake.set()

    def retire(self) -> None:
        """Call nothing from now on: the callback that runs may end, what waits is dropped."""
        self._is_retired = True
        self._retirement.set()
        self._buffer.clear()
        self._settled.set()
        self._awake.set()
        if self._resync_timer is not None:
            self._resync_timer.cancel()

    # --- its tasks ----------------------------------------------------------------------------

    async def run(self) -> None:
        """Tell the handler what is put, until it is retired.

        Cancelled, it cancels the callback that runs and gives it a quarter of a second. One that
        does not end by then is named in the log and left to itself: so this task, unlike the
        handler's, always ends. If the task that calls the handler ends for another reason, it is
        replaced after a pause. An event whose async callback was cut short by that is delivered
        again, before all others: a handler misses no event, and may receive one twice.

        Raises:
            BaseException: what a callback raised to end the process.
            Exception: the task ended more than five times within a minute; this is the last error.
        """
        if self._is_retired:
            return
        self._loop = loop = asyncio.get_running_loop()
        self._wish_for_resyncs(loop)
        backoff = Backoff()
        while (failure := await self._run_once(loop)) is not None:
            try:
                if not isinstance(failure, Exception):
                    raise failure
                self._parts.report(f"handler {self.name}", failure)
            except BaseException:
                self.retire()
                raise
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(backoff.delay(rand=random.random())):
                    await self._retirement.wait()
            backoff = backoff.failed()
            self._awake.set()  # what waited still waits

    async def _run_once(self, loop: asyncio.AbstractEventLoop) -> BaseException | None:
        """Tell the handler until it is retired; return what ended that before."""
        # The handler's code runs in a task of its own, for only that can be abandoned.
        self._worker = worker = loop.create_task(self._work(), name=f"handler {self.name}")
        try:
            await asyncio.wait([worker])
        except asyncio.CancelledError:
            self.retire()
            await end_in_time(worker, on_abandoned=self._abandoned)
            raise
        return error_of(worker)

    def _abandoned(self) -> None:
        message = "handler %s ignores its cancellation and is abandoned"
        log.error(message, self.name, extra={"handler": self.name})

    async def _work(self) -> None:
        try:
            await asyncio.sleep(0)  # where tasks start eagerly, not within the call that adds us
            if self._again is not None and not self._is_retired:
                await self._deliver_again(self._again)
            while not self._is_retired:
                await self._awake.wait()
                self._awake.clear()
                await self._drain()
        finally:
            self._busy_since = None
            if self._watch is not None:
                self._watch.cancel()

    async def _drain(self) -> None:
        take, call, clock = self._buffer.take, self._call, asyncio.get_running_loop().time
        turn = started = clock()
        # When the listener is retired, nothing is left to take.
        while (item := take()) is not None:
            if isinstance(item, Marker):
                self._has_synced = True
                self._settled.set()
                continue
            self._busy_since = started
            self._delivered += 1
            try:
                result = call(item)
            # Nothing was awaited: a CancelledError here is not a cancellation of this task.
            except (Exception, asyncio.CancelledError) as exc:  # noqa: BLE001 (Rule 2)
                self._failed(item, exc)
            else:
                if result is not None and inspect.isawaitable(result):
                    await self._finish(item, result, started)
                    started = clock()  # what was awaited did not block
            now = clock()
            if now - started > _BLOCKING:
                self._blocked(item, now - started)
            if now - turn > _TURN:
                self._busy_since = None
                await asyncio.sleep(0)
                now = turn = clock()
            started = now
        self._busy_since = None

    async def _deliver_again(self, notification: Notification[T]) -> None:
        """Call the handler again: the end of the last worker cut its callback short."""
        self._busy_since = started = asyncio.get_running_loop().time()
        try:
            result = self._call(notification)
        except (Exception, asyncio.CancelledError) as exc:  # noqa: BLE001 (Rule 2)
            self._failed(notification, exc)
        else:
            if result is not None and inspect.isawaitable(result):
                await self._finish(notification, result, started)
        self._again = self._busy_since = None

    async def _finish(
        self, notification: Notification[T], result: Awaitable[object], started: float
    ) -> None:
        self._awaited = notification
        if self._watch is None:
            self._watch_over(started)
        try:
            # In a task of its own: what it leaves behind there cannot end ours.
            ended = await apart(self._called_back(result), name=f"handler {self.name}")
            try:
                ended.result()
            except (Exception, asyncio.CancelledError) as exc:  # noqa: BLE001 (Rule 2)
                self._failed(notification, exc)
        except asyncio.CancelledError:
            # Only the cancellation of this task gets here. If it was not a stop, `run` replaces
            # the task, and the next one begins with this event.
            if not self._is_retired:
                self._caller.take_back(notification)
                self._again = notification
            raise
        finally:
            self._awaited = self._callback = None

    async def _called_back(self, result: Awaitable[object]) -> None:
        self._callback = asyncio.current_task()
        await result

    def _wish_for_resyncs(self, loop: asyncio.AbstractEventLoop, due: float | None = None) -> None:
        if (period := self._handler.resync_period) is not None:
            now = loop.time()
            # A loop that was held up does not make up for what it missed.
            next_due = now + period if due is None or due + period <= now else due + period
            self._resync_timer = loop.call_at(next_due, self._resync, loop, next_due)

    def _resync(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        self._wish_for_resyncs(loop, due)
        self.is_resync_due = True
        self._on_resync()

    # --- how it stands ------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The handler's name."""
        return self._handler.name

    @property
    def has_synced(self) -> bool:
        """Whether all that was there at first is handled."""
        return self._has_synced

    @property
    def is_calling_us(self) -> bool:
        """Whether this very code is called by a callback of its handler."""
        task = asyncio.current_task()
        return task is not None and (task is self._worker or task is self._callback)

    async def wait_synced(self) -> None:
        """Wait until ``has_synced``.

        Raises:
            UsageError: it was retired before, so it never will be.
        """
        await self._settled.wait()
        if not self._has_synced:
            raise UsageError(f"handler {self.name!r} was removed or stopped before it had synced")

    def what_it_waits_for(self) -> str:
        """Return, in words, what is left to do before it has synced."""
        if not self._is_marked:
            return "the informer has no first list yet"
        awaited, since, loop = self._awaited, self._busy_since, self._loop
        if awaited is None or since is None or loop is None:
            return f"{len(self._buffer)} events wait"
        busy = f"its callback has been busy with {awaited.key} for {loop.time() - since:.1f} s"
        return f"{busy}, {len(self._buffer)} events wait"

    async def wait_idle(self) -> None:
        """Wait, once retired, until no callback runs. Cancelling it cancels the wait alone."""
        if self._worker is not None:
            await asyncio.wait([self._worker])

    def statistics(self) -> HandlerStatistics:
        """Return the figures of this moment."""
        loop, since, buffer = self._loop, self._busy_since, self._buffer
        return HandlerStatistics(
            name=self.name,
            pending=len(buffer),
            peak=buffer.peak,
            delivered=self._delivered,
            coalesced=buffer.coalesced,
            errors=self._errors,
            slow=self._slow,
            last_error=self._last_error,
            has_synced=self._has_synced,
            busy_for=None if loop is None or since is None else loop.time() - since,
        )

    # --- what it has to say, without payload --------------------------------------------------

    def _failed(self, notification: Notification[T], error: BaseException) -> None:
        # A CancelledError too: the callback awaited something that was cancelled elsewhere.
        self._errors += 1
        self._last_error = f"{type(error).__qualname__} on {notification.key.shown}"
        if not _is_worth_a_line(self._errors):
            return
        said = {**self._about(notification), "errors": self._errors}
        message = "handler %(handler)s failed on %(event)s of %(key)s"
        if self._errors > _LOGGED_ERRORS:
            message += ", its error number %(errors)s; not each is logged"
        log.error(message, said, exc_info=error, extra=said)

    def _blocked(self, notification: Notification[T], seconds: float) -> None:
        self._slow += 1
        said = {**self._about(notification), "seconds": round(seconds, 3)}
        message = (
            "handler %(handler)s blocked the event loop for %(seconds)s s on %(event)s of %(key)s"
        )
        log.warning(message, said, extra=said)

    def _watch_over(self, started: float) -> None:
        # One timer for all callbacks, set where none is: when it fires it looks who runs.
        loop = asyncio.get_running_loop()
        self._watch = loop.call_at(started + _LONG, self._look, started)

    def _look(self, started: float) -> None:
        self._watch = None
        since = self._busy_since
        if self._awaited is None or since is None:
            return
        if since != started:  # another one by now
            self._watch_over(since)
            return
        said = {**self._about(self._awaited), "seconds": _LONG}
        message = "handler %(handler)s still runs after %(seconds)s s on %(event)s of %(key)s"
        log.warning(message, said, extra=said)

    def _about(self, notification: Notification[T]) -> dict[str, object]:
        """Return what a log may tell of a callback."""
        match notification:
            case Notification(old=None):
                event = "Added"
            case Notification(new=None):
                event = "Deleted"
            case _:
                event = "Updated"
        return {"handler": self.name, "event": event, "key": notification.key.shown}


def _is_worth_a_line(count: int) -> bool:
    """Whether the error of this number is logged: the first ones, then ever fewer."""
    return count <= _LOGGED_ERRORS or (count >= 100 and not count % 10 ** (len(str(count)) - 1))
