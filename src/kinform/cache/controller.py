"""Controller: a reflector, a queue, and the pump that writes batches to a store.

client-go: tools/cache/controller.go. This is not the controller that reconciles: it only moves
changes from a server to ``process``, in order. `apply` writes one batch to the store and returns
the transitions to deliver (client-go: processDeltas, processDeltasInBatch,
processReplacedAllInfo).

Rule 1: the store is written first, a whole batch at a time. A handler that receives a change finds
it in the store.
Rule 2: an object whose uid changed is two objects: the old one was deleted, the new one is new.
Rule 3: a change that changed nothing is delivered to no handler, except as a resync.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeAlias, TypeVar, final

from kinform._parts import Parts
from kinform.cache._reflector.intake import TransformFunc
from kinform.cache.listwatch import ListerWatcher
from kinform.cache.reflector import Reflector
from kinform.cache.reflector_options import ReflectorOptions
from kinform.cache.reflector_reports import WatchErrorHandler
from kinform.cache.store.thread_safe_store import Replacement, ThreadSafeStore
from kinform.errors import UsageError
from kinform.meta import Entry
from kinform.sansio.queue.deltas import Delta, DeltaType, Progress, ReplacedAll, SyncAll, Transition
from kinform.sansio.queue.interface import Batch, KnownObjects, Queue, QueueFactory, no_op
from kinform.sansio.queue.real_fifo import RealFIFO
from kinform.tasks import apart, gather

__all__ = ["Applied", "Controller", "Process", "apply", "apply_in_turns", "is_large"]

T = TypeVar("T")

log: Final = logging.getLogger(__name__)

Process: TypeAlias = Callable[[Batch[T]], Awaitable[object] | None]
"""Handles one batch; the next one is not popped before it has returned."""

_TURN: Final = 256
"""Objects of a list that are written before other tasks run: some milliseconds."""
_NOTIFIED_PER_TURN: Final = 16 * _TURN  # a notification is that much cheaper than a write
_SYNC: Final = DeltaType.SYNC
_REPLACED: Final = DeltaType.REPLACED


@final
class Controller(Generic[T]):
    """Lists and watches into a queue, and hands batch after batch to ``process``.

    A batch whose ``process`` raises is logged and counts as handled: it is not retried, and the
    next one is popped. While the queue is congested, the watch is not read (backpressure).

    Args:
        process: handles each batch, in order, one at a time.
        queue: `RealFIFO` or `DeltaFIFO`.
        known: the content of the cache that ``process`` fills; `DeltaFIFO` needs it.
        on_done: called after each batch, when the queue has it marked as done.
        parts: counts unexpected ends of the reflector and the pump; by default its own.

    The others are those of `Reflector`.

    Raises:
        UsageError: ``resync_period`` is not positive.
    """

    def __init__(
        self,
        lw: ListerWatcher[T],
        *,
        process: Process[T],
        queue: QueueFactory = RealFIFO,
        known: KnownObjects[T] | None = None,
        on_done: Callable[[], None] = no_op,
        name: str = "controller",
        expected_kind: str | None = None,
        transform: TransformFunc[T] | None = None,
        settle: Callable[[Entry[T]], object] | None = None,
        resync_period: float | None = None,
        should_resync: Callable[[], bool] | None = None,
        watch_error_handler: WatchErrorHandler | None = None,
        options: ReflectorOptions | None = None,
        parts: Parts | None = None,
    ) -> None:
        self.name: Final = name
        self._parts = Parts(name) if parts is None else parts
        self._in_hand: Batch[T] | None = None  # popped, and not processed yet
        self._process = process
        self._on_done = on_done
        self._wake = asyncio.Event()
        self._capacity: asyncio.Event | None = None  # while the reflector waits for capacity
        self._has_run = False
        self.queue: Final[Queue[T]] = queue(known=known, on_ready=self._wake.set)
        self.reflector: Final[Reflector[T]] = Reflector(
            lw,
            self.queue,
            name=name,
            expected_kind=expected_kind,
            transform=transform,
            settle=settle,
            resync_period=resync_period,
            should_resync=should_resync,
            watch_error_handler=watch_error_handler,
            known=known,
            wait_for_room=self._wait_for_capacity,
            options=options,
            parts=self._parts,
        )

    @property
    def has_synced(self) -> bool:
        """True if everything of the first list was processed; never becomes false again."""
        return self.queue.has_synced

    @property
    def last_sync_resource_version(self) -> str:
        """The last version the reflector has written to the queue; ``""`` before the first list."""
        return self.reflector.last_sync_resource_version

    async def run(self) -> None:
        """Move changes until cancelled; changes still in the queue are then dropped.

        If the reflector or the pump ends otherwise, it is restarted after a pause.

        Raises:
            UsageError: it was run before, or the source cannot be used this way.
            Exception: the reflector or the pump ended more than five times within a minute; this
                is the last error.
        """
        if self._has_run:
            raise UsageError(f"{self.name} was run before; a controller runs once")
        self._has_run = True
        try:
            keep_running = self._parts.keep_running
            # Together, so that the failure of one ends the other: a reflector without a pump would
            # fill the queue for ever, a pump without a reflector would show an old state in
            # silence.
            await gather(
                keep_running(f"{self.name} reflector", self.reflector.run, fatal=(UsageError,)),
                keep_running(f"{self.name} pump", self._pump),
            )
        finally:
            self.queue.close()

    async def _pump(self) -> None:
        while True:
            # A batch that an earlier run of the pump popped and did not finish comes first.
            batch = self._in_hand = self._in_hand or self.queue.pop_batch()
            if batch is not None:
                await self._process_one(batch)
                # Not reached when the pump is cancelled: an unprocessed batch has not synced.
                self._in_hand = None
                # Before `on_done`, which reads whether the queue has synced.
                self.queue.done(batch)
                self._on_done()
                if self._capacity is not None and not self.queue.is_congested:
                    self._capacity.set()
                if not self.queue.is_empty:
                    await asyncio.sleep(0)  # a full queue must not starve other tasks
                    continue
            # Nothing is awaited since the queue was found empty, so no call of set() is missed.
            self._wake.clear()
            await self._wake.wait()

    async def _process_one(self, batch: Batch[T]) -> None:
        try:
            # A plain call where that is possible: a task for each batch, which is often one event,
            # would cost more than the batch.
            outcome = self._process(batch)
        except (Exception, asyncio.CancelledError) as exc:  # noqa: BLE001 - a user's process
            self._log_failure(exc)
            return
        if outcome is None:
            return
        processed = await apart(outcome)
        if processed.cancelled():  # something that it awaited was
            self._log_failure(None)
        elif (failure := processed.exception()) is not None:
            if not isinstance(failure, Exception):
                # KeyboardInterrupt and SystemExit are meant for the process, not for the log.
                raise failure
            self._log_failure(failure)

    def _log_failure(self, failure: BaseException | None) -> None:
        text = (
            "%s: processing a batch was cancelled; continuing with the next batch"
            if failure is None
            else "%s: processing a batch failed; continuing with the next batch"
        )
        log.error(text, self.name, exc_info=failure, extra={"controller": self.name})

    def _wait_for_capacity(self) -> Awaitable[None] | None:
        return self._has_capacity() if self.queue.is_congested else None

    async def _has_capacity(self) -> None:
        # Made for each wait: the pump sets it only while something waits, so no old signal is left
        # over.
        self._capacity = asyncio.Event()
        try:
            while self.queue.is_congested:
                self._capacity.clear()
                await self._capacity.wait()
        finally:
            self._capacity = None


@final
@dataclass(slots=True)
class Applied(Generic[T]):
    """The effect of a batch."""

    notifications: list[Transition[T]]
    """The transitions to deliver to handlers, in order."""
    resynced: Sequence[Entry[T]] = ()
    """The entries to deliver as a resync; they did not change."""
    replayed: int = 0
    """Events that changed nothing: a server may replay events after a reconnect."""
    replacement: Replacement[T] | None = None
    """The effect of a list, where the batch was one."""


def apply(batch: Batch[T], entries: ThreadSafeStore[T]) -> Applied[T]:
    """Write ``batch`` to the store and return what to deliver.

    Raises:
        IndexFunctionError: an index function failed, and the store has no ``on_index_error``;
            nothing was changed.
    """
    content, initial = batch.content, batch.in_initial_list
    if isinstance(content, ReplacedAll):
        work = entries.replacing(
            content.entries, content.resource_version, afresh=content.afresh, initial=initial
        )
        work.advance()
        notifications: list[Transition[T]] = []
        for _ in _add_replacement(notifications, work.result, initial=initial):
            pass
        return Applied(notifications, replacement=entries.publish(work))
    if isinstance(content, SyncAll):
        return Applied([], entries.list())
    if isinstance(content, Progress):
        entries.bookmark(content.resource_version, of_list=content.of_list)
        return Applied([])
    return _of_deltas(content, entries.apply(content, initial=initial), initial=initial)


def is_large(batch: Batch[T]) -> bool:
    """Return whether `apply` would block the event loop for too long: use `apply_in_turns`."""
    # Batches of deltas are bounded by `BATCH_LIMIT`; only a list has no bound.
    return isinstance(batch.content, ReplacedAll) and len(batch.content.entries) > _TURN


async def apply_in_turns(batch: Batch[T], entries: ThreadSafeStore[T]) -> Applied[T]:
    """Do as `apply`, and let other tasks run now and then while a large list is written.

    The list becomes visible as a whole, and nothing is awaited between that and the return.
    Cancelled, it has changed nothing.

    Raises:
        IndexFunctionError: as `apply`.
    """
    content, initial = batch.content, batch.in_initial_list
    if not isinstance(content, ReplacedAll):
        return apply(batch, entries)
    work = entries.replacing(
        content.entries, content.resource_version, afresh=content.afresh, initial=initial
    )
    while not work.advance(_TURN):  # noqa: ASYNC110 - advance() does the work
        await asyncio.sleep(0)
    notifications: list[Transition[T]] = []
    for _ in _add_replacement(notifications, work.result, initial=initial):
        await asyncio.sleep(0)
    return Applied(notifications, replacement=entries.publish(work))


def _add_replacement(
    notifications: list[Transition[T]], done: Replacement[T], *, initial: bool
) -> Iterator[None]:
    """Add what a list has to deliver; yield now and then, for other tasks to run."""
    # Deletes first: a handler that counts objects never counts too many.
    notifications += done.deleted
    for number, transition in enumerate(itertools.chain(done.changed, done.added), 1):
        if _are_two_objects(transition):
            notifications += _delete_and_add(transition, initial=initial)
        else:
            notifications.append(transition)
        if number % _NOTIFIED_PER_TURN == 0:
            yield


def _of_deltas(
    deltas: Iterable[Delta[T]], transitions: Iterable[Transition[T]], *, initial: bool
) -> Applied[T]:
    notifications: list[Transition[T]] = []
    resynced: list[Entry[T]] = []
    replayed = 0
    for delta, transition in zip(deltas, transitions, strict=True):
        new = transition.new
        if transition.old is new:
            if new is None:
                continue  # the delete of an object that was not in the store
            if delta.type is _SYNC:
                resynced.append(new)
            # A relist that repeats the held version is routine. Only an event that repeats one is a
            # replay.
            elif delta.type is not _REPLACED:
                replayed += 1
        elif _are_two_objects(transition):
            notifications += _delete_and_add(transition, initial=initial)
        else:
            notifications.append(transition)
    return Applied(notifications, resynced, replayed)


def _are_two_objects(transition: Transition[T]) -> bool:
    if transition.old is None or transition.new is None:
        return False
    was, now = transition.old.metadata.uid, transition.new.metadata.uid
    return was != now and bool(was) and bool(now)


def _delete_and_add(both: Transition[T], *, initial: bool) -> tuple[Transition[T], Transition[T]]:
    return (
        # client-go delivers one update here, by contract: a controller then keeps state of an
        # object that is gone (F-R21).
        Transition(both.key, both.old, None, final_state_unknown=True),
        Transition(both.key, None, both.new, initial),
    )
