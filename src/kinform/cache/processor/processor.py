"""Processor: distributes the changes of the cache to all handlers and event streams.

The informer's pump writes the store and then calls `Processor.distribute`. There is one `Listener`
for each handler and one `EventStream` for each ``events()``. The processor owns the tasks that
call handlers.

Rule 1: distributing never waits. A slow handler does not delay the cache.
Rule 2: no await between reading the store and adding the listener. So the initial objects and the
later changes that a listener gets have neither gap nor overlap.

client-go: shared_informer.go ``sharedProcessor``.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Generic, TypeVar, final

from kinform._parts import Parts
from kinform.cache.processor._listener import HandlerStatistics, Listener
from kinform.cache.processor._upstream import Upstream
from kinform.cache.processor.event_stream import EventStream, StreamFeed
from kinform.cache.processor.handlers import EventHandler
from kinform.errors import UsageError
from kinform.meta import Entry
from kinform.sansio.queue.coalesce import HIGH_WATER
from kinform.sansio.queue.deltas import Transition
from kinform.sansio.queue.interface import no_op

__all__ = ["Processor", "Registration"]

T = TypeVar("T")


@final
class Registration(Generic[T]):
    """The registration of one handler at an informer: its progress, and how to remove it."""

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
        """True if the handler is done with every object of the first list.

        That is: the informer has its first list, and for each of its objects the callback has
        returned or raised, an ``async`` one to its end. Never becomes false again.
        """
        return self._listener.has_synced

    async def wait_synced(self, timeout: float | None = None) -> None:
        """Wait until ``has_synced``.

        Raises:
            TimeoutError: it takes longer; the message gives the reason, ``__cause__`` is the last
                error of the informer, if any.
            UsageError: the informer was not started, or the handler was removed or the informer
                stopped before that.
        """
        upstream = self._processor.upstream
        # A wait for an informer that was never started would never end.
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
            why = f"last error: {cause}" if cause else self._listener.pending_work()
            raise TimeoutError(f"{text}; {why}") from (cause or exc)
        except UsageError:
            failure = upstream.failure()
            if isinstance(failure, Exception):
                raise failure from None
            raise

    @property
    def is_removed(self) -> bool:
        """True if `remove` was called."""
        return self not in self._processor

    def remove(self) -> None:
        """Remove the handler: see `Processor.remove`."""
        self._processor.remove(self)

    def __repr__(self) -> str:
        state = "removed" if self.is_removed else "synced" if self.has_synced else "not synced"
        return f"<Registration of {self.name} {state}>"

    async def shut_down(self) -> None:
        """Remove the handler, and wait for the current callback to finish.

        Cancellation ends only the wait; the handler stays removed.

        Raises:
            UsageError: called from the handler's own callback, which would wait for itself. The
                handler was not removed; use `remove` there.
        """
        if self._listener.is_calling_us:
            raise UsageError(
                f"handler {self.name!r} cannot wait for its own callback; use remove() there"
            )
        self.remove()
        await self._listener.wait_idle()


@final
class Processor(Generic[T]):
    """Distributes the changes of a cache to all handlers and event streams.

    All methods must be called on one event loop; only `statistics` may be called from any thread.
    Each listener gets its notifications in order, all of them or, if it is slow, merged ones
    (`kinform.sansio.queue.coalesce`). One listener never waits for another.

    Lifecycle: handlers may be added, and changes distributed, before `run`; then the notifications
    stay in their buffers. `run` owns the tasks that call handlers, and ends in one of three ways:

    * `stop`: the current callbacks have a grace period, then they are cancelled; `run` returns.
    * Cancellation: the same without grace, also during a stop; `run` raises ``CancelledError``.
    * A callback raises an exception that must end the process: all others are cancelled, and `run`
      raises it.

    In each case a callback that ignores its cancellation is abandoned after a quarter of a second,
    event streams end after their pending events, and the processor has stopped: it takes no
    handlers, and ignores what is distributed.

    Args:
        name: the name of the informer, for messages and task names.
        resync: called when a handler's resync is due. It should call `distribute_resync`, now or
            later.
        upstream: answers why no event comes.
        parts: counts unexpected ends of the tasks that call handlers; by default its own.
    """

    def __init__(
        self,
        *,
        name: str,
        resync: Callable[[], None] = no_op,
        upstream: Upstream | None = None,
        parts: Parts | None = None,
    ) -> None:
        self._name = name
        self._parts = Parts(name) if parts is None else parts
        self.upstream: Final = upstream or Upstream()
        """The informer, as far as waiting handlers and streams need it."""
        self._resync = resync
        self._handlers: dict[Registration[T], Listener[T]] = {}
        # Weak, so that ``break`` out of a loop over events() is enough: a stream that nothing reads
        # would collect a merged event of every object for ever.
        self._feeds: dict[StreamFeed[T], weakref.ref[EventStream[T]]] = {}
        self._group: asyncio.TaskGroup | None = None
        self._tasks: dict[asyncio.Task[None], Listener[T]] = {}
        self._grace: asyncio.Future[float] | None = None
        self._is_started = self._is_stopped = False

    # --- listeners

    def add(
        self, handler: EventHandler[T], *, present: Iterable[Entry[T]], synced: bool
    ) -> Registration[T]:
        """Add a handler; the same one may be added many times.

        It gets all ``present`` entries as new and ``initial``, then all that is distributed from
        now on. ``synced``: ``present`` includes the whole first list; otherwise `upstream_synced`
        will be called.

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
        """Return a stream of events: first all ``present`` entries, then the changes.

        ``synced`` as for `add`. Above ``high_water`` pending events, they are merged.

        Raises:
            UsageError: the processor has stopped.
        """
        self._refuse_if_stopped("an event stream")
        feed: StreamFeed[T] = StreamFeed(high_water=high_water, upstream=self.upstream)
        feed.put(_as_new(present))
        if synced:
            feed.mark_synced()
        feeds = self._feeds

        # The garbage collector calls it at any point, perhaps in another thread: only one atomic
        # operation on a dict is allowed here.
        def forget(_: object = None) -> None:
            feeds.pop(feed, None)

        stream = EventStream(feed, forget=forget)
        feeds[feed] = weakref.ref(stream, forget)
        return stream

    def remove(self, registration: Registration[T]) -> None:
        """Remove a handler. None of its callbacks starts after this returns.

        The current callback continues to its end; pending notifications are dropped. A handler
        that is removed already, or of another processor, is ignored. May be called from anywhere
        on the event loop, also from the handler's own callback.
        """
        if (listener := self._handlers.pop(registration, None)) is not None:
            listener.retire()

    def __contains__(self, registration: object) -> bool:
        """Return whether that handler is registered here, and was not removed."""
        return registration in self._handlers

    def _refuse_if_stopped(self, what: str) -> None:
        if self._is_stopped:
            raise UsageError(f"{what} was not added to {self._name} because it has stopped already")

    # --- distribution

    def distribute(self, notifications: Sequence[Transition[T]]) -> None:
        """Deliver all ``notifications`` to all listeners, in this order.

        The sequence is not kept, the notifications are. It wakes each listener once, and waits
        for none.
        """
        if not notifications:
            return
        # A copy of the feeds: a stream may be garbage-collected meanwhile.
        listeners: tuple[Listener[T] | StreamFeed[T], ...] = (
            *self._handlers.values(),
            *self._feeds,
        )
        for listener in listeners:
            listener.put(notifications)

    def distribute_resync(self, entries: Iterable[Entry[T]]) -> None:
        """Deliver all ``entries`` to the handlers whose resync is due, as ``old is new``."""
        due = [listener for listener in self._handlers.values() if listener.is_resync_due]
        if not due:
            return
        notifications = [Transition(entry.metadata.key, entry, entry) for entry in entries]
        for listener in due:
            listener.is_resync_due = False
            listener.put(notifications)

    def upstream_synced(self) -> None:
        """Note that the whole first list was distributed: handlers that are done have synced.

        Only the first call counts, for each handler.
        """
        for listener in self._listeners():
            listener.mark_synced()

    # --- tasks

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
        # A future and not an event: the first grace that is set counts, for all callers of `stop`.
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
            raise failures.exceptions[0] from None  # the others were cancelled for it
        finally:
            self._group = None

    async def stop(self, grace: float) -> None:
        """Stop calling handlers; current callbacks have ``grace`` seconds, then are cancelled.

        No callback starts after this is called. It returns when all have ended, a quarter of a
        second after the grace at the latest: a callback that ignores its cancellation is logged
        and abandoned. Called from a handler's callback, it waits for the others, not for that one,
        which has the same grace. A second call, or one that is cancelled, only waits: the grace of
        the first call counts.
        """
        self.close()
        if self._grace is None:
            return
        if not self._grace.done():
            self._grace.set_result(max(grace, 0.0))
        # A callback that stops its own processor must not wait for itself.
        others = [task for task, listener in self._tasks.items() if not listener.is_calling_us]
        if others:
            await asyncio.wait(others)

    def _start(self, listener: Listener[T], group: asyncio.TaskGroup) -> None:
        task = group.create_task(listener.run(), name=f"{self._name}: {listener.name}")
        self._tasks[task] = listener
        # A removed handler's task may still run its last callback: it stays here until it ends, so
        # that a stop waits for it too.
        task.add_done_callback(self._tasks.pop)

    def close(self) -> None:
        """Start no callback any more; current ones continue. `stop` waits for them."""
        self._is_stopped = True
        for listener in self._handlers.values():
            listener.retire()
        for feed in list(self._feeds):
            feed.end()

    # --- state

    def statistics(self) -> tuple[HandlerStatistics, ...]:
        """Return the statistics of each handler, in the order of adding, then of each stream."""
        return tuple(listener.statistics() for listener in self._listeners())

    def _listeners(self) -> tuple[Listener[T] | StreamFeed[T], ...]:
        # A copy: a stream may be garbage-collected during the iteration.
        return (*self._handlers.values(), *self._feeds)


def _as_new(entries: Iterable[Entry[T]]) -> list[Transition[T]]:
    return [Transition(entry.metadata.key, None, entry, initial=True) for entry in entries]
