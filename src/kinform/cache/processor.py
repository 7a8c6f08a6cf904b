"""The processor: from the cache to everybody who listens.

client-go: shared_informer.go ``sharedProcessor``. Left of it the informer's pump, which writes the
store and then calls `Processor.distribute`; right of it one `Listener` for each handler and one
`EventStream` for each ``events()``. It decides who is told, and owns the tasks that tell.

Rule 1: putting never waits. However slow a handler is, the cache goes on.
Rule 2: no await between reading what is in the store and adding the listener: what it is told of
as present and what it is told of as news have neither gap nor overlap.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Generic, TypeVar, final

from kinform.cache.event_stream import EventStream, Feed
from kinform.cache.handlers import EventHandler
from kinform.cache.listener import HandlerStatistics, Listener
from kinform.cache.upstream import Upstream
from kinform.errors import UsageError
from kinform.meta import Entry
from kinform.parts import Parts
from kinform.sansio.coalesce import HIGH_WATER
from kinform.sansio.notifications import Notification
from kinform.sansio.queue import never_mind

__all__ = ["Processor", "Registration"]

T = TypeVar("T")


@final
class Registration(Generic[T]):
    """One handler's place at an informer: how far it is, and how to take it away again."""

    __slots__ = ("_listener", "_processor")

    def __init__(self, processor: Processor[T], listener: Listener[T]) -> None:
        self._processor = processor
        self._listener = listener

    @property
    def name(self) -> str:
        """The handler's name."""
        return self._listener.name

    @property
    def has_synced(self) -> bool:
        """Whether the handler is done with all that was there at first.

        That is: the informer has its first list, and for each object of it the callback has
        returned, raised or been awaited to its end. Never false again.
        """
        return self._listener.has_synced

    async def wait_synced(self, timeout: float | None = None) -> None:
        """Wait until ``has_synced``.

        Raises:
            TimeoutError: it takes longer; the message says what it waits for, ``__cause__`` is
                what went wrong last with the informer, if anything.
            UsageError: the informer was not started, the handler was removed, or the informer
                stopped, before.
        """
        upstream = self._processor.upstream
        if not self.has_synced and not self.is_removed:
            upstream.refuse_if_idle()
        limit = asyncio.timeout(timeout)
        try:
            async with limit:
                await self._listener.wait_synced()
        except TimeoutError as exc:
            if not limit.expired():
                raise
            cause = upstream.trouble()
            text = f"handler {self.name!r} has not synced within {timeout} s"
            why = f"last error: {cause}" if cause else self._listener.what_it_waits_for()
            raise TimeoutError(f"{text}; {why}") from (cause or exc)
        except UsageError:
            failure = upstream.failure()
            if isinstance(failure, Exception):
                raise failure from None
            raise

    @property
    def is_removed(self) -> bool:
        """Whether `remove` was called."""
        return self not in self._processor

    def remove(self) -> None:
        """Take the handler away: see `Processor.remove`."""
        self._processor.remove(self)

    def __repr__(self) -> str:
        state = "removed" if self.is_removed else "synced" if self.has_synced else "not synced"
        return f"<Registration of {self.name} {state}>"

    async def shut_down(self) -> None:
        """Take the handler away, and wait for the callback that runs.

        Cancelled, it does not wait any longer; the handler stays removed.

        Raises:
            UsageError: called from the handler's own callback, which would wait for itself.
                Nothing was done; use `remove` there.
        """
        if self._listener.is_calling_us:
            raise UsageError(
                f"handler {self.name!r} cannot wait for its own callback; use remove() there"
            )
        self.remove()
        await self._listener.wait_idle()


@final
class Processor(Generic[T]):
    """Tells all handlers and event streams what happens to the cache.

    Everything here belongs to one event loop; only `statistics` may be called from any thread.
    For one listener notifications keep their order; each hears everything, or where it is slow
    the sum of it (`kinform.sansio.coalesce`). One listener never waits for another.

    Its life: handlers may be added, and told things, before `run`; then they wait in their
    buffers. `run` owns the tasks that call handlers, and ends in one of three ways. `stop`: the
    callbacks that run get their grace, then are cancelled, and `run` returns. Cancellation: the
    same with no grace, also in the middle of a stop, and `run` raises ``CancelledError``. A
    callback raises what must end the process: all others are cancelled and `run` raises it. In each
    case a callback that ignores its cancellation is left behind after a quarter of a second, event
    streams end once they are read to the end, and the processor is over: it takes no handlers,
    and what it is told concerns nobody.

    Args:
        name: whose handlers these are, for messages and task names.
        resync: called when a handler's resync is due. It should lead to `distribute_resync`,
            sooner or later.
        upstream: knows why nothing comes.
        parts: counts unexpected ends of the tasks that call handlers; by default its own.
    """

    def __init__(
        self,
        *,
        name: str,
        resync: Callable[[], None] = never_mind,
        upstream: Upstream | None = None,
        parts: Parts | None = None,
    ) -> None:
        self._name = name
        self._parts = Parts(name) if parts is None else parts
        self.upstream: Final = upstream or Upstream()
        """Where what it tells comes from."""
        self._resync = resync
        self._handlers: dict[Registration[T], Listener[T]] = {}
        self._feeds: dict[Feed[T], weakref.ref[EventStream[T]]] = {}
        self._group: asyncio.TaskGroup | None = None
        self._tasks: dict[asyncio.Task[None], Listener[T]] = {}
        self._grace: asyncio.Future[float] | None = None
        self._is_started = self._is_stopped = False

    # --- who listens --------------------------------------------------------------------------

    def add(
        self, handler: EventHandler[T], *, present: Iterable[Entry[T]], synced: bool
    ) -> Registration[T]:
        """Add a handler; the same one may be added many times.

        It is told of all ``present`` entries as new and ``initial``, then of what is distributed
        from now on. ``synced`` says that ``present`` is all there was at first; otherwise
        `upstream_synced` will.

        Raises:
            UsageError: the processor has stopped.
        """
        self._refuse_if_stopped(f"handler {handler.name!r}")
        listener = Listener(handler, on_resync=self._resync, parts=self._parts)
        listener.put(_as_new(present))
        if synced:
            listener.mark_synced()
        registration = Registration(self, listener)
        self._handlers[registration] = listener
        if self._group is not None:
            self._start(listener, self._group)
        return registration

    def subscribe(
        self, *, present: Iterable[Entry[T]], synced: bool, high_water: int = HIGH_WATER
    ) -> EventStream[T]:
        """Return a stream of events: first of all ``present`` entries, then of what follows.

        ``synced`` as for `add`. Beyond ``high_water`` events that wait, they are merged.

        Raises:
            UsageError: the processor has stopped.
        """
        self._refuse_if_stopped("an event stream")
        feed: Feed[T] = Feed(high_water=high_water, upstream=self.upstream)
        feed.put(_as_new(present))
        if synced:
            feed.mark_synced()
        feeds = self._feeds

        # The collector calls it wherever it likes, between any two steps, perhaps in another
        # thread: one step of a dict is all that is allowed here.
        def forget(_: object = None) -> None:
            feeds.pop(feed, None)

        stream = EventStream(feed, forget=forget)
        feeds[feed] = weakref.ref(stream, forget)
        return stream

    def remove(self, registration: Registration[T]) -> None:
        """Take a handler away. No callback of it begins after this returns.

        The callback that runs goes on to its end; what waits for the handler is dropped. Nothing
        happens if it is removed already, or another processor's. May be called from anywhere on
        the loop, from the handler's own callback as well.
        """
        if (listener := self._handlers.pop(registration, None)) is not None:
            listener.retire()

    def __contains__(self, registration: object) -> bool:
        """Whether that handler is registered here, and was not removed."""
        return registration in self._handlers

    def _refuse_if_stopped(self, what: str) -> None:
        if self._is_stopped:
            raise UsageError(f"{what} was not added to {self._name} because it has stopped already")

    # --- what is told -------------------------------------------------------------------------

    def distribute(self, notifications: Sequence[Notification[T]]) -> None:
        """Have everybody told of all ``notifications``, in this order.

        The sequence is not kept, the notifications are. It wakes each listener once, and waits
        for none.
        """
        if not notifications:
            return
        for listener in self._listeners():
            listener.put(notifications)

    def distribute_resync(self, entries: Iterable[Entry[T]]) -> None:
        """Tell those whose resync is due of all ``entries``, as updates whose old is new."""
        due = [listener for listener in self._handlers.values() if listener.is_resync_due]
        if not due:
            return
        notifications = [Notification(entry.metadata.key, entry, entry) for entry in entries]
        for listener in due:
            listener.is_resync_due = False
            listener.put(notifications)

    def upstream_synced(self) -> None:
        """Note that the first list was distributed, whole: handlers that are done have synced.

        Only the first call counts, for each handler.
        """
        for listener in self._listeners():
            listener.mark_synced()

    # --- its tasks ----------------------------------------------------------------------------

    async def run(self) -> None:
        """Call the handlers, until `stop` or cancellation: see the class.

        Returns at once if the processor was stopped before.

        Raises:
            UsageError: it was called before.
        """
        if self._is_started:
            raise UsageError(f"{self._name} was started already; it runs once")
        self._is_started = True
        if self._is_stopped:
            return
        self._grace = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.TaskGroup() as self._group:
                for listener in self._handlers.values():
                    self._start(listener, self._group)
                try:
                    grace = await self._grace
                finally:
                    self.close()
                if self._tasks:
                    await asyncio.wait(self._tasks, timeout=grace)
                for task in self._tasks:
                    task.cancel()
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None  # the first; the others were cancelled for it
        finally:
            self._group = None

    async def stop(self, grace: float) -> None:
        """Stop calling handlers; those that run get ``grace`` seconds and are then cancelled.

        No callback begins after this is called. It returns when all have ended, a quarter of a
        second after the grace at the latest: what ignores its cancellation is named in the log and
        left behind. Called from a handler's callback, it waits for the others, not for that one,
        whose grace runs all the same. Cancelled, or called again, it only waits: the first call's
        grace counts.
        """
        self.close()
        if self._grace is None:
            return
        if not self._grace.done():
            self._grace.set_result(max(grace, 0.0))
        others = [task for task, listener in self._tasks.items() if not listener.is_calling_us]
        if others:
            await asyncio.wait(others)

    def _start(self, listener: Listener[T], group: asyncio.TaskGroup) -> None:
        task = group.create_task(listener.run(), name=f"{self._name}: {listener.name}")
        self._tasks[task] = listener
        task.add_done_callback(self._tasks.pop)

    def close(self) -> None:
        """Begin no callback any more; those that run go on. `stop` waits for them."""
        self._is_stopped = True
        for listener in self._handlers.values():
            listener.retire()
        for feed in list(self._feeds):
            feed.end()

    # --- how it stands ------------------------------------------------------------------------

    def statistics(self) -> tuple[HandlerStatistics, ...]:
        """Return the figures of each handler, in the order of adding, then of each stream."""
        return tuple(listener.statistics() for listener in self._listeners())

    def _listeners(self) -> tuple[Listener[T] | Feed[T], ...]:
        # A copy: a stream may be collected while we walk through it.
        return (*self._handlers.values(), *self._feeds)


def _as_new(entries: Iterable[Entry[T]]) -> list[Notification[T]]:
    return [Notification(entry.metadata.key, None, entry, initial=True) for entry in entries]
