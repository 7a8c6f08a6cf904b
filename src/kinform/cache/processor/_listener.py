"""Listener: delivers notifications to one handler, from a buffer and in a task of its own.

The processor puts notifications into the buffer and continues; the listener's task takes them and
calls the handler. So no handler can delay the cache or another handler, except by blocking the
event loop, which is logged with the handler's name.

Rule 1: one callback at a time, in order.
Rule 2: exceptions of a callback are logged and counted, and end nothing, unless they are meant for
the process (``KeyboardInterrupt``) or for this task (its cancellation).
Rule 3: once retired, no callback is started.

client-go: shared_informer.go ``processorListener``.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar, cast, final

from kinform._parts import Parts, error_of
from kinform.cache.processor.events import Event, event_of
from kinform.cache.processor.handlers import EventHandler
from kinform.errors import UsageError
from kinform.meta import ObjectName
from kinform.sansio.backoff import Backoff
from kinform.sansio.queue import coalesce
from kinform.sansio.queue.coalesce import Buffer, Marker
from kinform.sansio.queue.deltas import Transition
from kinform.tasks import apart, end_in_time

__all__ = ["Caller", "Filtering", "HandlerStatistics", "Listener"]

T = TypeVar("T")

log: Final = logging.getLogger(__name__)

_BLOCKING: Final = 0.25
"""Seconds after which a plain function is logged as blocking the event loop."""
_LONG: Final = 30.0
"""Seconds after which an awaited callback is logged as slow."""
_TURN: Final = 0.002
"""Seconds after which a busy listener yields to other tasks."""
_LOGGED_ERRORS: Final = 10
"""The first errors of a handler, all of which are logged; then every 100th, 1,000th and so on."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerStatistics:
    """Statistics of one handler or event stream at one moment.

    Each notification is ``delivered``, ``coalesced`` or ``pending``, unless it was dropped when
    the handler was removed.
    """

    name: str
    pending: int
    """Notifications in its buffer."""
    peak: int
    """The maximum of ``pending`` so far."""
    delivered: int
    """Notifications handled: the callback was called, whether it raised or not, or there was no
    callback for the event, or the filter dropped it."""
    coalesced: int
    """Notifications merged into others, because too many were pending."""
    errors: int
    """Callbacks and filters that raised."""
    slow: int
    """Plain functions that blocked the event loop."""
    last_error: str | None
    """The class of the last error, and the key of the object."""
    has_synced: bool
    busy_for: float | None
    """Seconds since the current callback was called; ``None`` if none runs."""


@final
class Listener(Generic[T]):
    """Delivers to one handler. For one event loop; any thread may call `statistics`."""

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
    """True if its resync period has passed since the last resync."""

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
        self._buffer: Buffer[T] = Buffer(coalesce.HIGH_WATER)  # looked up: simulations change it
        self._awaited: Transition[T] | None = None
        self._awake = asyncio.Event()
        self._settled = asyncio.Event()  # synced, or will never be
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
        self._again: Transition[T] | None = None  # its callback was cut short

    # --- called by the processor: nothing here waits or raises

    def put(self, notifications: Sequence[Transition[T]]) -> None:
        """Deliver all these to the handler, soon and in this order."""
        if not self._is_retired:
            self._buffer.extend(notifications)
            self._awake.set()

    def mark_synced(self) -> None:
        """Make ``has_synced`` true behind all that was put so far. Only the first call counts."""
        if not self._is_retired and not self._is_marked:
            self._is_marked = True
            self._buffer.mark(Marker())
            self._awake.set()

    def retire(self) -> None:
        """Start no callback from now on: the current one may finish, the buffer is dropped."""
        self._is_retired = True
        self._retirement.set()
        self._buffer.clear()
        self._settled.set()
        self._awake.set()
        if self._resync_timer is not None:
            self._resync_timer.cancel()

    # --- tasks

    async def run(self) -> None:
        """Deliver to the handler until it is retired.

        Cancelled, it cancels the current callback and gives it a quarter of a second. A callback
        that has not ended by then is logged and abandoned: so this task always ends. If the task
        that calls the handler ends for another reason, it is replaced after a pause. An event whose
        async callback was cut short by that is delivered again, before all others: a handler misses
        no event, and may receive one twice.

        Raises:
            BaseException: an exception of a callback that is meant to end the process.
            Exception: the task ended more than five times within a minute; this is the last error.
        """
        if self._is_retired:
            return
        self._loop = loop = asyncio.get_running_loop()
        self._schedule_resync(loop)
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
                    # Not a plain sleep: a handler that is removed meanwhile must not hold up the
                    # stop.
                    await self._retirement.wait()
            backoff = backoff.failed()
            self._awake.set()  # the buffer may not be empty

    async def _run_once(self, loop: asyncio.AbstractEventLoop) -> BaseException | None:
        """Deliver until it is retired; return the error that ended the task before."""
        # The handler's code runs in a task of its own, because only a task can be abandoned.
        self._worker = worker = loop.create_task(self._work(), name=f"handler {self.name}")
        try:
            # `asyncio.wait` and not ``await worker``: the latter would raise the worker's
            # exceptions here, and its cancellation would look like ours.
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
            await asyncio.sleep(0)  # an eager task must not call back within `add`
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
                self._watch = None  # the next worker sets its own

    async def _drain(self) -> None:
        take, call, clock = self._buffer.take, self._call, asyncio.get_running_loop().time
        turn = started = clock()
        # Once the listener is retired, its buffer is empty.
        while (item := take()) is not None:
            if isinstance(item, Marker):
                self._has_synced = True
                self._settled.set()
                continue
            self._busy_since = started
            # Before the call: an event whose callback raises counts as delivered.
            self._delivered += 1
            try:
                result = call(item)
            # Nothing was awaited: a CancelledError here is not a cancellation of this task.
            except (Exception, asyncio.CancelledError) as exc:  # noqa: BLE001 (Rule 2)
                self._failed(item, exc)
            else:
                if result is not None and inspect.isawaitable(result):
                    await self._finish(item, result, started)
                    started = clock()  # awaiting did not block the loop
            now = clock()
            if now - started > _BLOCKING:
                self._blocked(item, now - started)
            # By time and not by count: one callback may take a microsecond or a millisecond.
            if now - turn > _TURN:
                self._busy_since = None
                await asyncio.sleep(0)
                now = turn = clock()
            started = now
        self._busy_since = None

    async def _deliver_again(self, notification: Transition[T]) -> None:
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
        self, notification: Transition[T], result: Awaitable[object], started: float
    ) -> None:
        self._awaited = notification
        if self._watch is None:
            self._watch_over(started)
        try:
            # In a task of its own: a cancellation that it leaves pending cannot end this task.
            ended = await apart(self._called_back(result), name=f"handler {self.name}")
            try:
                ended.result()
            except (Exception, asyncio.CancelledError) as exc:  # noqa: BLE001 (Rule 2)
                self._failed(notification, exc)
        except asyncio.CancelledError:
            # Only the cancellation of this task gets here. If it was not a stop, `run` replaces
            # the task, and the next one begins with this event.
            if not self._is_retired:
                self._caller.undo(notification)
                self._again = notification
            raise
        finally:
            self._awaited = self._callback = None

    async def _called_back(self, result: Awaitable[object]) -> None:
        self._callback = asyncio.current_task()
        await result

    def _schedule_resync(self, loop: asyncio.AbstractEventLoop, due: float | None = None) -> None:
        if (period := self._handler.resync_period) is not None:
            now = loop.time()
            # After a blocked loop, missed resyncs are not made up for.
            next_due = now + period if due is None or due + period <= now else due + period
            self._resync_timer = loop.call_at(next_due, self._resync, loop, next_due)

    def _resync(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        # First, so that a resync that raises does not end the series.
        self._schedule_resync(loop, due)
        self.is_resync_due = True
        self._on_resync()

    # --- state

    @property
    def name(self) -> str:
        """The handler's name."""
        return self._handler.name

    @property
    def has_synced(self) -> bool:
        """True if every object of the first list was delivered."""
        return self._has_synced

    @property
    def is_calling_us(self) -> bool:
        """True if the caller runs within a callback of this handler."""
        task = asyncio.current_task()
        # Both tasks: a plain callback runs in the worker, an awaited one in a task of its own.
        return task is not None and (task is self._worker or task is self._callback)

    async def wait_synced(self) -> None:
        """Wait until ``has_synced``.

        Raises:
            UsageError: it was retired before that.
        """
        await self._settled.wait()
        if not self._has_synced:
            raise UsageError(f"handler {self.name!r} was removed or stopped before it had synced")

    def pending_work(self) -> str:
        """Return a text that says why it has not synced yet."""
        if not self._is_marked:
            return "the informer has not finished its first list"
        awaited, since, loop = self._awaited, self._busy_since, self._loop
        if awaited is None or since is None or loop is None:
            return f"{len(self._buffer)} events are pending"
        busy = f"its callback has been busy with {awaited.key} for {loop.time() - since:.1f} s"
        return f"{busy}, {len(self._buffer)} events are pending"

    async def wait_idle(self) -> None:
        """Once retired, wait until no callback runs. Cancellation ends only the wait."""
        if self._worker is not None:
            await asyncio.wait([self._worker])

    def statistics(self) -> HandlerStatistics:
        """Return the current statistics."""
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

    # --- logging, without payload

    def _failed(self, notification: Transition[T], error: BaseException) -> None:
        # Also for a CancelledError: the callback awaited something that was cancelled elsewhere.
        self._errors += 1
        # The class and the key, never the text: an exception may quote the object, for example a
        # Secret.
        self._last_error = f"{type(error).__qualname__} on {notification.key.shown}"
        if not _is_logged(self._errors):
            return
        said = {**self._about(notification), "errors": self._errors}
        message = "handler %(handler)s failed on %(event)s of %(key)s"
        if self._errors > _LOGGED_ERRORS:
            message += ", its error number %(errors)s; not every error is logged"
        log.error(message, said, exc_info=error, extra=said)

    def _blocked(self, notification: Transition[T], seconds: float) -> None:
        self._slow += 1
        said = {**self._about(notification), "seconds": round(seconds, 3)}
        message = (
            "handler %(handler)s blocked the event loop for %(seconds)s s on %(event)s of %(key)s"
        )
        log.warning(message, said, extra=said)

    def _watch_over(self, started: float) -> None:
        # One timer for all callbacks: when it fires, it checks which callback runs.
        loop = asyncio.get_running_loop()
        self._watch = loop.call_at(started + _LONG, self._check_slow, started)

    def _check_slow(self, started: float) -> None:
        self._watch = None
        since = self._busy_since
        if self._awaited is None or since is None:
            return
        if since != started:  # another callback by now
            self._watch_over(since)
            return
        said = {**self._about(self._awaited), "seconds": _LONG}
        message = "handler %(handler)s still runs after %(seconds)s s on %(event)s of %(key)s"
        log.warning(message, said, extra=said)

    def _about(self, notification: Transition[T]) -> dict[str, object]:
        """Return the fields of a log record about a callback."""
        match notification:
            case Transition(old=None):
                event = "Added"
            case Transition(new=None):
                event = "Deleted"
            case _:
                event = "Updated"
        return {"handler": self.name, "event": event, "key": notification.key.shown}


def _is_logged(count: int) -> bool:
    """Return whether the error of this number is logged: the first ten, then fewer and fewer."""
    return count <= _LOGGED_ERRORS or (count >= 100 and not count % 10 ** (len(str(count)) - 1))


@final
class Filtering(Generic[T]):
    """Translates the changes of all objects into the changes of those that pass a filter.

    An object that begins to pass is added, one that no longer passes is deleted:

    =====================  ====================  =======================
    the object             passes now            does not, or is deleted
    =====================  ====================  =======================
    was delivered before   the event as it is    deleted
    was not                added                 no event
    =====================  ====================  =======================

    The filter runs once for each state. The delivered keys are kept in a set; client-go runs the
    filter on the old state instead. So a delete is delivered even if the final state does not
    pass, and a filter that raises or is not deterministic leaves no deleted object behind.
    """

    __slots__ = ("_delivered", "_passes", "_was_delivered")

    def __init__(self, passes: Callable[[T], bool]) -> None:
        self._passes = passes
        self._delivered: set[ObjectName] = set()
        self._was_delivered = False  # before the last translation

    def translate(self, notification: Transition[T]) -> Transition[T] | None:
        """Return the notification to deliver, or ``None``. Exceptions of the filter propagate."""
        key, new = notification.key, notification.new
        was_delivered = self._was_delivered = key in self._delivered
        if new is None:
            self._delivered.discard(key)
            return notification if was_delivered else None
        if self._passes(new.object):
            self._delivered.add(key)
            is_itself = was_delivered or notification.old is None
            return notification if is_itself else Transition(key, None, new)
        if not was_delivered:
            return None
        self._delivered.discard(key)
        return Transition(key, notification.old, None)

    def undo(self, notification: Transition[T]) -> None:
        """Undo the last translation: its notification will be translated again."""
        # Without this the second call would find the object as the first one left it, and deliver
        # another event.
        if self._was_delivered:
            self._delivered.add(notification.key)
        else:
            self._delivered.discard(notification.key)


@final
class Caller(Generic[T]):
    """Calls the right callback of a handler for a notification that passes its filter."""

    __slots__ = ("_filtering", "_handler")

    def __init__(self, handler: EventHandler[T]) -> None:
        self._handler = handler
        self._filtering = None if handler.filter is None else Filtering(handler.filter)

    def __call__(self, notification: Transition[T]) -> object:
        """Return the callback's result, perhaps an awaitable; its exceptions propagate."""
        if self._filtering is not None:
            passed = self._filtering.translate(notification)
            if passed is None:
                return None
            notification = passed
        handler = self._handler
        if notification.new is None:
            callback: object = handler.on_delete
        elif notification.old is None:
            callback = handler.on_add
        else:
            callback = handler.on_update
        if callback is None:
            return None
        # The event is of the type that belongs to the callback chosen above.
        return cast("Callable[[Event[T]], object]", callback)(event_of(notification))

    def undo(self, notification: Transition[T]) -> None:
        """Prepare for another call with ``notification``, the last one."""
        if self._filtering is not None:
            self._filtering.undo(notification)
