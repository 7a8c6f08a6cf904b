"""RealFIFO: a queue that keeps the order of all changes (client-go's RealFIFO, atomic form).

One flat sequence across all keys. A relist is one item, and so is a resync: their effect on each
object is computed when they are applied, against the cache at that time.

client-go: tools/cache/the_real_fifo.go.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Final, Generic, TypeVar, final

from kinform.meta import Entry, ObjectName
from kinform.sansio.queue.deltas import Change, Delta, DeltaType, Progress, ReplacedAll, SyncAll
from kinform.sansio.queue.interface import (
    BATCH_LIMIT,
    HIGH_WATER,
    Batch,
    FifoStatistics,
    Handover,
    KnownObjects,
    Transform,
    no_op,
)

__all__ = ["RealFIFO"]

T = TypeVar("T")

# Reading a member off an enum class costs as much as appending to a deque.
_ADDED: Final = DeltaType.ADDED
_UPDATED: Final = DeltaType.UPDATED
_DELETED: Final = DeltaType.DELETED


@final
class RealFIFO(Generic[T]):
    """A `Queue` that returns every change, in the order of writing, across all keys.

    Nothing is merged and nothing is dropped, deletes of unknown objects included. A list is one
    `ReplacedAll`, a resync one `SyncAll`: after each batch the cache is a state that existed on
    the server at one moment, never a relist half applied.

    A batch holds deltas of distinct keys, up to ``limit``. It ends before a key that it already
    contains (so all old states can be looked up before it is applied) and before a change of the
    whole cache, which is a batch of its own. Exception to "nothing is merged": of two `Progress`
    or two `SyncAll` in a row only the last is kept.

    Memory: the queue itself has no bound, because dropping or merging would break the guarantee.
    It holds the changes that were written and not popped yet. The writer bounds it: a reflector
    that stops reading while ``is_congested`` exceeds ``high_water`` by one network read or one
    list at most; then the socket's buffer fills, and the server waits.

    Args:
        known: not used; accepted so that both queues have one signature.
        transform: runs once for each entry written, before it is queued.
        on_ready: see `QueueFactory`.
        high_water: the number of queued objects from which ``is_congested`` is true.

    Raises:
        ValueError: if ``high_water`` is less than 1.
    """

    __slots__ = ("_changes", "_closed", "_handover", "_listed", "_on_ready", "_transform")

    def __init__(
        self,
        *,
        known: KnownObjects[T] | None = None,  # noqa: ARG002 (one signature for both queues)
        transform: Transform[T] | None = None,
        on_ready: Callable[[], None] = no_op,
        high_water: int = HIGH_WATER,
    ) -> None:
        self._on_ready = on_ready
        self._transform = transform
        # Oldest first. A deque and not a list, so that popping frees slots one by one.
        self._changes: deque[Change[T]] = deque()
        self._handover: Handover[T] = Handover(high_water)
        # Invariant: the number of objects in all queued ReplacedAll.
        self._listed = 0
        self._closed = False

    # --- writing: the reflector

    def add(self, entry: Entry[T], /) -> None:
        """Queue an ADDED delta."""
        self._put(_ADDED, entry)

    def update(self, entry: Entry[T], /) -> None:
        """Queue an UPDATED delta."""
        self._put(_UPDATED, entry)

    def delete(self, item: Entry[T] | ObjectName, /) -> None:
        """Queue a DELETED delta, whether the object is known or not; for a key, a tombstone."""
        if isinstance(item, Entry):
            self._put(_DELETED, item)
        elif not self._closed:
            self._handover.populated = True
            self._append(Delta(_DELETED, item, None, final_state_unknown=True))

    def replace(
        self,
        entries: Mapping[ObjectName, Entry[T]],
        resource_version: str,
        *,
        afresh: bool = False,
    ) -> None:
        """Queue one `ReplacedAll`, also for an empty list."""
        if self._closed:
            return
        # Before anything changes: if one of them raises, there was no list.
        if (transform := self._transform) is not None:
            entries = {key: transform(entry) for key, entry in entries.items()}
        self._listed += len(entries)
        # Items queued before the first list (a bookmark, a resync) are handled before it, so they
        # count too. The list is the last of them and a batch of its own: that alone keeps the
        # first list and later changes in different batches.
        self._handover.listed(len(self._changes) + 1)
        self._append(ReplacedAll(entries, resource_version, afresh))

    def resync(self) -> None:
        """Queue one `SyncAll`, unless the last item is one."""
        if not self._closed:
            self._append_latest(SyncAll())

    def bookmark(self, resource_version: str, /) -> None:
        """Queue one `Progress`; it replaces one that is the last item."""
        if not self._closed:
            self._append_latest(Progress(resource_version))

    def _put(self, delta_type: DeltaType, entry: Entry[T]) -> None:
        if self._closed:
            return
        key = entry.metadata.key  # before the transform, which must not change it
        if self._transform is not None:
            entry = self._transform(entry)
        self._handover.populated = True
        # `_append` inlined: this runs for every event.
        changes = self._changes
        changes.append(Delta(delta_type, key, entry))
        if len(changes) == 1:
            self._on_ready()

    def _append_latest(self, change: SyncAll | Progress) -> None:
        # Nothing was written since the last item, so the newer one covers both. This cannot change
        # the count of the first list, whose last item is a ReplacedAll.
        if self._changes and type(self._changes[-1]) is type(change):
            self._changes[-1] = change
        else:
            self._append(change)

    def _append(self, change: Change[T]) -> None:
        self._changes.append(change)
        if len(self._changes) == 1:
            self._on_ready()

    # --- reading: the pump

    def pop_batch(self, limit: int = BATCH_LIMIT) -> Batch[T] | None:
        """Pop deltas of distinct keys, at most ``limit``, or one change of the whole cache.

        Raises:
            UsageError: if the previous batch is not ``done`` yet.
            ValueError: if ``limit`` is less than 1.
        """
        # client-go: the_real_fifo.go PopBatch. There, a key that cannot be computed ends a batch
        # as well; here every entry has its key.
        handover, changes = self._handover, self._changes
        if handover.batch is not None or limit < 1:
            handover.refuse(limit)
        if not changes:
            return None
        waiting = len(changes) + self._listed
        if not isinstance(first := changes[0], Delta):
            changes.popleft()
            if isinstance(first, ReplacedAll):
                self._listed -= len(first.entries)
            return handover.give(first, size=1, waiting=waiting)
        deltas = self._leading_deltas(limit)
        return handover.give(deltas, size=len(deltas), waiting=waiting)

    def _leading_deltas(self, limit: int) -> list[Delta[T]]:
        changes = self._changes
        taken: dict[ObjectName, Delta[T]] = {}
        # In two steps: a deque must not shrink while it is iterated.
        for change in changes:
            # setdefault both finds a duplicate key and takes a new one.
            if (
                not isinstance(change, Delta)
                or len(taken) == limit
                or taken.setdefault(change.key, change) is not change
            ):
                break
        if len(taken) == len(changes):
            changes.clear()
        else:
            for _ in taken:
                changes.popleft()  # frees the slot: a popped object lives as long as its batch
        return list(taken.values())

    def done(self, batch: Batch[T]) -> None:
        """Mark ``batch`` as handled.

        Raises:
            UsageError: if ``batch`` is not the one in flight.
        """
        self._handover.done(batch)

    def close(self) -> None:
        """Ignore all writes from now on; queued changes can still be popped."""
        if not self._closed:
            self._closed = True
            self._on_ready()

    # --- state

    @property
    def closed(self) -> bool:
        """True if ``close`` was called."""
        return self._closed

    @property
    def is_empty(self) -> bool:
        """True if nothing is queued; a batch may be in flight all the same."""
        return not self._changes

    @property
    def is_idle(self) -> bool:
        """True if nothing is queued or in flight: all that was written is handled."""
        return not self._changes and self._handover.batch is None

    @property
    def has_synced(self) -> bool:
        """True if the first list is handled; an empty one too must be popped and done."""
        return self._handover.populated and not self._handover.initial

    @property
    def is_congested(self) -> bool:
        """True if ``high_water`` objects or more are queued; all objects of a list count."""
        return len(self._changes) + self._listed >= self._handover.high_water

    def statistics(self) -> FifoStatistics:
        """Return the current statistics."""
        return self._handover.statistics(len(self._changes) + self._listed)
