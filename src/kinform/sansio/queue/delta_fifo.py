"""DeltaFIFO: a queue that collects the changes of each key (client-go's DeltaFIFO).

Each key is queued once, with all its deltas. Objects that a list no longer contains are found
here, by comparing it with the queue, the batch in flight and the cache; `RealFIFO` leaves that to
the cache.

client-go: tools/cache/delta_fifo.go.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Generic, TypeVar, final

from kinform.meta import Entry, ObjectName
from kinform.sansio.queue.deltas import Delta, DeltaType, Progress
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
from kinform.sansio.versions import newest

__all__ = ["DeltaFIFO"]

T = TypeVar("T")

# Reading a member off an enum class costs as much as appending to a list.
_ADDED: Final = DeltaType.ADDED
_UPDATED: Final = DeltaType.UPDATED
_DELETED: Final = DeltaType.DELETED


@final
class DeltaFIFO(Generic[T]):
    """A `Queue` in which each key is queued once and popped with all its deltas.

    Keys are popped in the order in which they were queued; the deltas of a key stay together,
    oldest first, and ``limit`` never splits them. Keys have no other order, and
    a list is popped key by key: between two batches the cache may show a relist half applied.
    Choose `RealFIFO` where that matters, this one where a burst of changes of few objects is
    better handled object by object.

    Two deletes in a row become one: of two deletes from a watch, the first; of a tombstone and a
    later delete, the later. The delete of an object that is neither queued, nor in flight, nor
    ``known`` is ignored. A list adds a tombstone for each object it does not contain. Behind the
    keys of a list comes a `Progress` with its version.

    Memory: bounded by the number of changes and not of keys, because no delta but a second delete
    is merged; see `RealFIFO` for how the writer bounds it.

    Args:
        known: the content of the cache. Without it, only keys that are queued or in flight are
            known: the delete of anything popped before is ignored, and ``resync`` does nothing.
        transform: runs once for each entry written, before it is queued; not for tombstones and
            resyncs, whose entries were transformed before.
        on_ready: see `QueueFactory`.
        high_water: the number of queued deltas from which ``is_congested`` is true.
        emit_replaced: queue the objects of a list as REPLACED; if false, as SYNC like older
            versions of client-go, which looks like a resync.

    Raises:
        ValueError: if ``high_water`` is less than 1.
    """

    __slots__ = (
        "_closed",
        "_deltas",
        "_handover",
        "_in_flight",
        "_is_versioned",
        "_known",
        "_listed",
        "_listed_type",
        "_on_ready",
        "_order",
        "_transform",
        "_waiting",
    )

    def __init__(
        self,
        *,
        known: KnownObjects[T] | None = None,
        transform: Transform[T] | None = None,
        on_ready: Callable[[], None] = no_op,
        high_water: int = HIGH_WATER,
        emit_replaced: bool = True,
    ) -> None:
        self._on_ready = on_ready
        self._known = known
        self._transform = transform
        self._listed_type = DeltaType.REPLACED if emit_replaced else DeltaType.SYNC
        # Invariant: the keys of ``_deltas`` are those in ``_order``, each once, none without a
        # delta. A Progress is in ``_order`` alone, behind all that it covers.
        self._deltas: dict[ObjectName, list[Delta[T]]] = {}
        self._order: deque[ObjectName | Progress] = deque()
        # The newest delta of each key in the batch in flight. The cache may or may not have them
        # yet, so for these keys it is not read: this is what it is about to hold.
        self._in_flight: dict[ObjectName, Delta[T]] = {}
        # The keys queued before a Progress that takes the version of the cache back.
        self._listed: set[ObjectName] = set()
        self._is_versioned = False  # whether the cache has a version, or one is queued
        self._handover: Handover[T] = Handover(high_water)
        self._waiting = 0  # Invariant: the number of deltas in ``_deltas``.
        self._closed = False

    # --- writing: the reflector

    def add(self, entry: Entry[T], /) -> None:
        """Queue an ADDED delta."""
        self._put(_ADDED, entry)

    def update(self, entry: Entry[T], /) -> None:
        """Queue an UPDATED delta."""
        self._put(_UPDATED, entry)

    def delete(self, item: Entry[T] | ObjectName, /) -> None:
        """Queue a DELETED delta, unless the object is unknown; for a key, a tombstone."""
        if self._closed:
            return
        # Even if it is ignored: a queue that starts with a delete has no first list.
        self._handover.populated = True
        # Before the transform, so that it does not run for an ignored delete.
        key = item.metadata.key if isinstance(item, Entry) else item
        if not self._has(key):
            return
        if isinstance(item, Entry):
            self._put(_DELETED, item)
        else:
            was_empty = not self._order
            self._append(Delta(_DELETED, key, None, final_state_unknown=True))
            self._wake(was_empty)

    def replace(
        self,
        entries: Mapping[ObjectName, Entry[T]],
        resource_version: str,
        *,
        afresh: bool = False,
    ) -> None:
        """Queue a delta for each object of the list, then a tombstone for each it lacks."""
        if self._closed:
            return
        # All that can raise comes first: a list is queued as a whole or not at all.
        if (transform := self._transform) is not None:
            entries = {key: transform(entry) for key, entry in entries.items()}
        # Found before the list is queued, but queued behind it (client-go: Replace): the objects
        # of a list are applied before all that it deletes.
        tombstones = list(self._missing_from(entries))
        was_empty = not self._order
        for key, entry in entries.items():
            self._append(Delta(self._listed_type, key, entry, afresh=afresh))
        for tombstone in tombstones:
            self._append(tombstone)
        # Every queued key is in the list or deleted by it: all of them are its items.
        is_first = not self._handover.populated
        self._handover.listed(len(self._deltas))
        # A list without a version (some aggregated APIs) needs a Progress only to take back an
        # earlier version, or to complete a first list that is empty.
        if resource_version or self._is_versioned or (is_first and not self._order):
            # Later deltas of a listed key are queued before this: the version goes back only if
            # it has to.
            goes_back = afresh or not resource_version
            self._append_progress(Progress(resource_version, of_list=goes_back))
            self._listed = set(self._deltas) if goes_back else self._listed
        self._is_versioned = bool(resource_version)
        self._wake(was_empty)

    def resync(self) -> None:
        """Queue a SYNC delta for each known object that has no other delta.

        An object with a delta that is queued or in flight is left out: its state in the cache may
        be older than that delta, and would undo it.
        """
        if self._closed or self._known is None:
            return
        was_empty = not self._order
        for key in self._known.keys():  # noqa: SIM118 (not a mapping)
            if key in self._deltas or key in self._in_flight:
                continue
            if (entry := self._known.get(key)) is not None:
                self._append(Delta(DeltaType.SYNC, key, entry))
        self._wake(was_empty)

    def bookmark(self, resource_version: str, /) -> None:
        """Queue a `Progress` as the last item; two in a row become the newer one."""
        if self._closed:
            return
        if not resource_version:
            return
        self._is_versioned = True
        was_empty = not self._order
        self._append_progress(Progress(resource_version))
        self._wake(was_empty)

    def _put(self, delta_type: DeltaType, entry: Entry[T]) -> None:
        if self._closed:
            return
        key = entry.metadata.key  # before the transform, which must not change it
        if self._transform is not None:
            entry = self._transform(entry)
        self._handover.populated = True
        was_empty = not self._order
        self._append(Delta(delta_type, key, entry))
        if key in self._listed and entry.metadata.resource_version:
            # The version goes back behind this delta, and then forward to it again.
            self._append_progress(Progress(entry.metadata.resource_version))
        self._wake(was_empty)

    def _append(self, delta: Delta[T]) -> None:
        deltas = self._deltas.get(delta.key)
        if deltas is None:
            self._deltas[delta.key] = [delta]
            self._order.append(delta.key)
        elif delta.type is _DELETED and deltas[-1].type is _DELETED:
            # The first delete of a watch has the final state; a tombstone was only inferred.
            # Nothing else is merged: a handler may count events (client-go: isDeletionDup).
            if deltas[-1].final_state_unknown:
                deltas[-1] = delta
            return
        else:
            deltas.append(delta)
        self._waiting += 1

    def _append_progress(self, progress: Progress) -> None:
        # Nothing was queued since the last Progress, so the newer one covers both. It must not
        # replace an earlier one: keys in between are not handled yet.
        if self._order and isinstance(last := self._order[-1], Progress):
            self._order.pop()
            version = progress.resource_version
            if not progress.of_list:
                version = newest(last.resource_version, version)
            progress = Progress(version, last.of_list or progress.of_list)
        self._order.append(progress)

    # The last step of every write: a callback finds the queue consistent.
    def _wake(self, was_empty: bool) -> None:  # noqa: FBT001 (private)
        if was_empty and self._order:
            self._on_ready()

    # --- known objects

    def _has(self, key: ObjectName) -> bool:
        """Return whether a delete of ``key`` has an object to delete."""
        if key in self._deltas:
            return True  # a second delete in a row is merged later
        if (newest := self._in_flight.get(key)) is not None:
            return newest.type is not _DELETED
        return self._known is not None and self._known.get(key) is not None

    def _missing_from(self, listed: Mapping[ObjectName, Entry[T]]) -> Iterator[Delta[T]]:
        """Yield a tombstone for each known object that is not ``listed``."""
        # The newest delta of a key, queued or in flight, decides whether it exists; the cache
        # decides only for keys without deltas.
        newest = self._in_flight | {key: deltas[-1] for key, deltas in self._deltas.items()}
        for key, delta in newest.items():
            if key not in listed and delta.type is not _DELETED:
                yield Delta(_DELETED, key, delta.entry, final_state_unknown=True)
        if self._known is None:
            return
        for key in self._known.keys():  # noqa: SIM118 (not a mapping)
            if key not in listed and key not in newest:
                yield Delta(_DELETED, key, self._known.get(key), final_state_unknown=True)

    # --- reading: the pump

    def pop_batch(self, limit: int = BATCH_LIMIT) -> Batch[T] | None:
        """Pop the keys that were queued first with all their deltas, or one `Progress`.

        ``limit`` counts deltas and never splits those of one key: a key with more than that is a
        batch of its own. ``pop_batch(1)`` is client-go's ``Pop``.

        Raises:
            UsageError: if the previous batch is not ``done`` yet.
            ValueError: if ``limit`` is less than 1.
        """
        self._handover.refuse(limit)
        if not self._order:
            return None
        waiting = self._waiting
        if isinstance(first := self._order[0], Progress):
            # All keys it covers were queued before it, so they are not only popped but done.
            self._order.popleft()
            return self._handover.give(first, size=0, waiting=waiting)
        content = self._leading_deltas(limit)
        return self._handover.give(content, size=len(self._in_flight), waiting=waiting)

    def _leading_deltas(self, limit: int) -> list[Delta[T]]:
        content: list[Delta[T]] = []
        while self._order and not isinstance(key := self._order[0], Progress):
            deltas = self._deltas[key]
            if content and len(content) + len(deltas) > limit:
                break
            # From here the key is not queued: a new delta queues it again, at the end.
            self._order.popleft()
            del self._deltas[key]
            self._listed.discard(key)
            content += deltas
            self._in_flight[key] = deltas[-1]
            # The last key of the first list ends its batch: see `Batch.in_initial_list`.
            if len(self._in_flight) == self._handover.initial:
                break
        self._waiting -= len(content)
        return content

    def done(self, batch: Batch[T]) -> None:
        """Mark ``batch`` as handled: from now on the cache decides about its keys.

        Raises:
            UsageError: if ``batch`` is not the one in flight.
        """
        self._handover.done(batch)
        self._in_flight = {}

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
        return not self._order

    @property
    def is_idle(self) -> bool:
        """True if nothing is queued or in flight: all that was written is handled."""
        return not self._order and self._handover.batch is None

    @property
    def has_synced(self) -> bool:
        """True if all keys of the first list, and of its tombstones, are handled."""
        return self._handover.populated and not self._handover.initial

    @property
    def is_congested(self) -> bool:
        """True if ``high_water`` deltas or more are queued."""
        return self._waiting >= self._handover.high_water

    def statistics(self) -> FifoStatistics:
        """Return the current statistics."""
        return self._handover.statistics(self._waiting)
