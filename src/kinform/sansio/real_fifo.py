"""The queue that keeps everything in order: client-go's RealFIFO in its atomic form.

One flat sequence across all keys. A relist is one item, so is a resync: what they mean for each
object is found out where they are applied, against the cache as it is by then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Final, Generic, TypeVar, final

from kinform.meta import Entry, ObjectName
from kinform.sansio.deltas import Change, Delta, DeltaType, Progress, ReplacedAll, SyncAll
from kinform.sansio.queue import (
    BATCH_LIMIT,
    HIGH_WATER,
    Batch,
    Handover,
    KnownObjects,
    QueueStatistics,
    Transform,
    never_mind,
)

__all__ = ["RealFIFO"]

T = TypeVar("T")

# Looking up a member of an enum class costs as much as appending to a deque.
_ADDED: Final = DeltaType.ADDED
_UPDATED: Final = DeltaType.UPDATED
_DELETED: Final = DeltaType.DELETED


@final
class RealFIFO(Generic[T]):
    """A `Queue` that hands out every change, in the order of writing, across all keys.

    Nothing is merged and nothing is left out, deletes of unknown objects included. A list is one
    `ReplacedAll`, a resync one `SyncAll`: after each batch the cache is a state that was true on
    the server at one moment, never a relist half applied.

    A batch holds deltas of distinct keys, up to ``limit``. It ends before a key it has already
    (whoever applies it may look up all old states beforehand) and before a change of everything,
    which is a batch of its own. `Progress` and `SyncAll` are the exception to "nothing is
    merged": two in a row say what the last one says.

    Memory: nothing bounds it from inside, for to drop or to merge would break the promise. It
    holds what was written and not popped yet, a popped slot is free at once. The bound is its
    writer's: a reflector that stops reading while ``is_congested`` overshoots ``high_water`` by
    one network read or one list, and the server's socket buffer does the rest.

    Args:
        known: not needed here; it lets both queues be made alike.
        transform: runs once for each entry written, before it is queued.
        on_ready: see `QueueFactory`.
        high_water: how many objects may wait before ``is_congested``.

    Raises:
        ValueError: if ``high_water`` is less than 1.
    """

    __slots__ = ("_changes", "_closed", "_handover", "_listed", "_on_ready", "_transform")

    def __init__(
        self,
        *,
        known: KnownObjects[T] | None = None,  # noqa: ARG002 (one signature for both queues)
        transform: Transform[T] | None = None,
        on_ready: Callable[[], None] = never_mind,
        high_water: int = HIGH_WATER,
    ) -> None:
        self._on_ready = on_ready
        self._transform = transform
        # Oldest first. A deque and not a list, so that popping frees slots one by one.
        self._changes: deque[Change[T]] = deque()
        self._handover: Handover[T] = Handover(high_water)
        # Invariant: the number of objects in all the ReplacedAll that wait.
        self._listed = 0
        self._closed = False

    # --- what the reflector writes ----------------------------------------------------------

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
        # What waits before the first list (a bookmark, a resync) is handled before it, so it
        # counts too. The list is the last of them and a batch of its own: that alone keeps what
        # was there at the start and what came later in different batches.
        self._handover.listed(len(self._changes) + 1)
        self._append(ReplacedAll(entries, resource_version, afresh))

    def resync(self) -> None:
        """Queue one `SyncAll`, unless the last thing that waits is one."""
        if not self._closed:
            self._append_latest(SyncAll())

    def bookmark(self, resource_version: str, /) -> None:
        """Queue one `Progress`; it takes the place of one that waits at the end."""
        if not self._closed:
            self._append_latest(Progress(resource_version))

    def _put(self, delta_type: DeltaType, entry: Entry[T]) -> None:
        if self._closed:
            return
        key = entry.metadata.key  # before the transform, which has no say in it
        if self._transform is not None:
            entry = self._transform(entry)
        self._handover.populated = True
        # As `_append`, spelled out: this runs for every event, and a call more would show.
        changes = self._changes
        changes.append(Delta(delta_type, key, entry))
        if len(changes) == 1:
            self._on_ready()

    def _append_latest(self, change: SyncAll | Progress) -> None:
        # Nothing happened since the one that waits, so the newer says it all. This cannot touch
        # the first list's count, whose last item is a ReplacedAll.
        if self._changes and type(self._changes[-1]) is type(change):
            self._changes[-1] = change
        else:
            self._append(change)

    def _append(self, change: Change[T]) -> None:
        self._changes.append(change)
        if len(self._changes) == 1:
            self._on_ready()

    # --- what the pump reads ----------------------------------------------------------------

    def pop_batch(self, limit: int = BATCH_LIMIT) -> Batch[T] | None:
        """Take out deltas of distinct keys, at most ``limit``, or one change of everything.

        Raises:
            UsageError: if the batch before is not ``done`` yet.
            ValueError: if ``limit`` is less than 1.
        """
        # client-go: the_real_fifo.go PopBatch. There, one more thing ends a batch, a key that
        # cannot be told; here every entry has its key.
        self._handover.check(limit)
        changes, waiting = self._changes, self._waiting
        if not changes:
            return None
        if not isinstance(first := changes[0], Delta):
            changes.popleft()
            if isinstance(first, ReplacedAll):
                self._listed -= len(first.entries)
            return self._handover.give(first, size=1, waiting=waiting)
        deltas = self._leading_deltas(limit)
        return self._handover.give(deltas, size=len(deltas), waiting=waiting)

    def _leading_deltas(self, limit: int) -> list[Delta[T]]:
        changes = self._changes
        taken: dict[ObjectName, Delta[T]] = {}
        # Look first, take later: a deque must not shrink while it is walked through.
        for change in changes:
            # One look into the dict both finds a duplicate and takes what is none.
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
                changes.popleft()  # frees the slot: a popped object lives only as long as its batch
        return list(taken.values())

    def done(self, batch: Batch[T]) -> None:
        """Tell that ``batch`` is handled.

        Raises:
            UsageError: if ``batch`` is not the one that is out.
        """
        self._handover.done(batch)

    def close(self) -> None:
        """End it: what waits can still be popped, what is written from now on is ignored."""
        if not self._closed:
            self._closed = True
            self._on_ready()

    # --- how it stands ----------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._closed

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits; a batch may be out all the same."""
        return not self._changes

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits and no batch is out: all that was written is handled."""
        return not self._changes and not self._handover.is_out

    @property
    def has_synced(self) -> bool:
        """Whether the first list is handled; an empty one too has to be popped and done."""
        return self._handover.has_synced

    @property
    def is_congested(self) -> bool:
        """Whether ``high_water`` objects or more wait; a list counts with all its objects."""
        return self._waiting >= self._handover.high_water

    def statistics(self) -> QueueStatistics:
        """Return the figures of this moment."""
        return self._handover.statistics(self._waiting)

    @property
    def _waiting(self) -> int:
        return len(self._changes) + self._listed
