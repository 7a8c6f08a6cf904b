"""The queue that gathers changes per key: client-go's DeltaFIFO.

Each key waits once, with all its deltas. What a list no longer shows is found here, by asking
what is queued, what is on its way and what the cache holds; `RealFIFO` leaves that to the cache.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Generic, TypeVar, final

from kinform.meta import Entry, ObjectName
from kinform.sansio.deltas import Delta, DeltaType, Progress
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
from kinform.sansio.versions import newest

__all__ = ["DeltaFIFO"]

T = TypeVar("T")

# Looking up a member of an enum class costs as much as appending to a list.
_ADDED: Final = DeltaType.ADDED
_UPDATED: Final = DeltaType.UPDATED
_DELETED: Final = DeltaType.DELETED


@final
class DeltaFIFO(Generic[T]):
    """A `Queue` in which each key waits once and is popped with all its deltas.

    Keys come out in the order in which they began to wait; the deltas of a key stand side by
    side, oldest first, never torn apart by ``limit``. There is no order between keys beyond that,
    and a list comes out key by key: between two batches the cache may show a relist half applied.
    Choose `RealFIFO` where that matters, this one where a burst of changes of few objects is
    better handled object by object.

    Two deletes in a row are one: of two that were seen, the first; of a tombstone and what comes
    after it, what comes after. The delete of an object that is neither queued, nor on its way,
    nor ``known`` is ignored. A list adds a tombstone for all it does not show. Once the list's
    keys are through, a `Progress` tells its version.

    Memory: bounded by the number of changes and not of keys, for no delta but a second delete is
    merged away; see `RealFIFO` for what the writer should do about it.

    Args:
        known: what the cache holds. Without it, only what is queued or on its way is known: the
            delete of anything popped before is ignored, and ``resync`` does nothing.
        transform: runs once for each entry written, before it is queued; not for tombstones and
            resyncs, whose entries have been through it.
        on_ready: see `QueueFactory`.
        high_water: how many deltas may wait before ``is_congested``.
        emit_replaced: whether a list's objects come as REPLACED or, as in older client-go, as
            SYNC, which looks like a resync.

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
        on_ready: Callable[[], None] = never_mind,
        high_water: int = HIGH_WATER,
        emit_replaced: bool = True,
    ) -> None:
        self._on_ready = on_ready
        self._known = known
        self._transform = transform
        self._listed_type = DeltaType.REPLACED if emit_replaced else DeltaType.SYNC
        # Invariant: the keys of ``_deltas`` are those in ``_order``, each once, none without a
        # delta. A Progress waits in ``_order`` alone, behind all that it covers.
        self._deltas: dict[ObjectName, list[Delta[T]]] = {}
        self._order: deque[ObjectName | Progress] = deque()
        # The newest delta of each key in the batch that is out. The cache may or may not have
        # them yet, so for these keys it is not asked: this is what it is about to hold.
        self._in_flight: dict[ObjectName, Delta[T]] = {}
        # The keys that wait before a Progress which takes the cache's version back.
        self._listed: set[ObjectName] = set()
        self._is_versioned = False  # whether the cache was, or will be, told a version
        self._handover: Handover[T] = Handover(high_water)
        self._waiting = 0  # Invariant: the number of deltas in ``_deltas``.
        self._closed = False

    # --- what the reflector writes ----------------------------------------------------------

    def add(self, entry: Entry[T], /) -> None:
        """Queue an ADDED delta."""
        self._put(_ADDED, entry)

    def update(self, entry: Entry[T], /) -> None:
        """Queue an UPDATED delta."""
        self._put(_UPDATED, entry)

    def delete(self, item: Entry[T] | ObjectName, /) -> None:
        """Queue a DELETED delta, unless nobody knows the object; for a key, a tombstone."""
        if self._closed:
            return
        # Even if it comes to nothing: whoever starts with a delete has no first list.
        self._handover.populated = True
        # Before the transform, so that none runs for what is dropped.
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
        # All that can raise comes first: a list is queued whole or not at all.
        if (transform := self._transform) is not None:
            entries = {key: transform(entry) for key, entry in entries.items()}
        # Looked for before the list is queued, but queued behind it (client-go: Replace): who
        # waits for one object of a list does not wait for all that it deletes.
        tombstones = list(self._missing_from(entries))
        was_empty = not self._order
        for key, entry in entries.items():
            self._append(Delta(self._listed_type, key, entry, afresh=afresh))
        for tombstone in tombstones:
            self._append(tombstone)
        # Every key that waits now is in the list or deleted by it: all of them are its items.
        is_first = not self._handover.populated
        self._handover.listed(len(self._deltas))
        # An aggregated API has no versions, and nothing to tell but that its first list is over.
        is_told = resource_version or self._is_versioned or (is_first and not self._order)
        if is_told:
            # What comes for a listed key joins it before this: the version goes back only if it
            # has to.
            goes_back = afresh or not resource_version
            self._append_progress(Progress(resource_version, of_list=goes_back))
            self._listed = set(self._deltas) if goes_back else self._listed
        self._is_versioned = bool(resource_version)
        self._wake(was_empty)

    def resync(self) -> None:
        """Queue a SYNC delta for each known object about which nothing else is to be told.

        An object with a delta that waits or is on its way is left out: what the cache holds of it
        may be older than that delta, and would undo it.
        """
        if self._closed or self._known is None:
            return
        was_empty = not self._order
        for key in self._known.keys():  # noqa: SIM118 (a KnownObjects is no mapping)
            if key in self._deltas or key in self._in_flight:
                continue
            if (entry := self._known.get(key)) is not None:
                self._append(Delta(DeltaType.SYNC, key, entry))
        self._wake(was_empty)

    def bookmark(self, resource_version: str, /) -> None:
        """Queue a `Progress` behind all that waits; two in a row become the newer one."""
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
        key = entry.metadata.key  # before the transform, which has no say in it
        if self._transform is not None:
            entry = self._transform(entry)
        self._handover.populated = True
        was_empty = not self._order
        self._append(Delta(delta_type, key, entry))
        if key in self._listed and entry.metadata.resource_version:
            # The version goes back behind this one too, and comes here again.
            self._append_progress(Progress(entry.metadata.resource_version))
        self._wake(was_empty)

    def _append(self, delta: Delta[T]) -> None:
        deltas = self._deltas.get(delta.key)
        if deltas is None:
            self._deltas[delta.key] = [delta]
            self._order.append(delta.key)
        elif delta.type is _DELETED and deltas[-1].type is _DELETED:
            # The first delete seen is the one that ended the object; a tombstone only guessed.
            # Nothing else is merged: a handler may count (client-go: isDeletionDup).
            if deltas[-1].final_state_unknown:
                deltas[-1] = delta
            return
        else:
            deltas.append(delta)
        self._waiting += 1

    def _append_progress(self, progress: Progress) -> None:
        # Nothing happened since the one that waits at the end, so the newer says it all. It may
        # not take the place of an earlier one: keys in between are not through yet.
        if self._order and isinstance(last := self._order[-1], Progress):
            self._order.pop()
            version = progress.resource_version
            if not progress.of_list:
                version = newest(last.resource_version, version)
            progress = Progress(version, last.of_list or progress.of_list)
        self._order.append(progress)

    # The last thing every writer does: whoever is woken finds the queue consistent.
    def _wake(self, was_empty: bool) -> None:  # noqa: FBT001 (private, and it reads as it is)
        if was_empty and self._order:
            self._on_ready()

    # --- what is known ----------------------------------------------------------------------

    def _has(self, key: ObjectName) -> bool:
        """Tell whether a delete of ``key`` has an object to delete."""
        if key in self._deltas:
            return True  # a second delete in a row is merged later
        if (newest := self._in_flight.get(key)) is not None:
            return newest.type is not _DELETED
        return self._known is not None and self._known.get(key) is not None

    def _missing_from(self, listed: Mapping[ObjectName, Entry[T]]) -> Iterator[Delta[T]]:
        """Yield a tombstone for each object that is there without being ``listed``."""
        # The newest delta knows best what becomes of a key, be it queued or on its way; the cache
        # is asked only for keys that have none.
        newest = self._in_flight | {key: deltas[-1] for key, deltas in self._deltas.items()}
        for key, delta in newest.items():
            if key not in listed and delta.type is not _DELETED:
                yield Delta(_DELETED, key, delta.entry, final_state_unknown=True)
        if self._known is None:
            return
        for key in self._known.keys():  # noqa: SIM118 (a KnownObjects is no mapping)
            if key not in listed and key not in newest:
                yield Delta(_DELETED, key, self._known.get(key), final_state_unknown=True)

    # --- what the pump reads ----------------------------------------------------------------

    def pop_batch(self, limit: int = BATCH_LIMIT) -> Batch[T] | None:
        """Take out the keys that wait longest with all their deltas, or one `Progress`.

        ``limit`` counts deltas and never parts those of one key: a key with more than that is a
        batch of its own. ``pop_batch(1)`` is client-go's ``Pop``.

        Raises:
            UsageError: if the batch before is not ``done`` yet.
            ValueError: if ``limit`` is less than 1.
        """
        self._handover.check(limit)
        if not self._order:
            return None
        waiting = self._waiting
        if isinstance(first := self._order[0], Progress):
            # All keys it covers stood before it, so they are not only popped but done.
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
            # From here the key is no longer queued: what comes for it now waits anew, at the end.
            self._order.popleft()
            del self._deltas[key]
            self._listed.discard(key)
            content += deltas
            self._in_flight[key] = deltas[-1]
            # The last key of the first list ends its batch, so that none is of both kinds.
            if len(self._in_flight) == self._handover.initial:
                break
        self._waiting -= len(content)
        return content

    def done(self, batch: Batch[T]) -> None:
        """Tell that ``batch`` is handled: from now on the cache is asked for its keys again.

        Raises:
            UsageError: if ``batch`` is not the one that is out.
        """
        self._handover.done(batch)
        self._in_flight = {}

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
        return not self._order

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits and no batch is out: all that was written is handled."""
        return not self._order and not self._handover.is_out

    @property
    def has_synced(self) -> bool:
        """Whether all keys of the first list, and of its tombstones, are handled."""
        return self._handover.has_synced

    @property
    def is_congested(self) -> bool:
        """Whether ``high_water`` deltas or more wait."""
        return self._waiting >= self._handover.high_water

    def statistics(self) -> QueueStatistics:
        """Return the figures of this moment."""
        return self._handover.statistics(self._waiting)
