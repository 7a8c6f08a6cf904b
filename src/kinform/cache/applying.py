"""From a queue's batch to the store, and from there to what listeners are told.

The store is written first, whole batch by whole batch; what it answers becomes notifications.

Rule 1: whoever is told of a change finds it in the store already.
Rule 2: an object whose uid changed is two objects: the old one is gone, the new one is new.
Rule 3: what did not change is told to nobody, except to those who asked for a resync.

client-go: controller.go processDeltas, processDeltasInBatch, processReplacedAllInfo.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar, final

from kinform.cache.thread_safe_store import ThreadSafeStore
from kinform.cache.transitions import Replacement, Transition
from kinform.meta import Entry
from kinform.sansio.deltas import Delta, DeltaType, Progress, ReplacedAll, SyncAll
from kinform.sansio.notifications import Notification
from kinform.sansio.queue import Batch

__all__ = ["Applied", "apply", "apply_in_turns", "is_large"]

T = TypeVar("T")

_TURN: Final = 256
"""How many objects of a list are written before the others have a turn: some milliseconds."""
_TOLD_PER_TURN: Final = 16 * _TURN  # to tell of one takes so much less than to write it
_SYNC: Final = DeltaType.SYNC
_REPLACED: Final = DeltaType.REPLACED


@final
@dataclass(slots=True)
class Applied(Generic[T]):
    """What a batch did."""

    notifications: list[Notification[T]]
    """In the order in which they are to be told."""
    resynced: Sequence[Entry[T]] = ()
    """What a resync is to be told about; nothing happened to it."""
    replayed: int = 0
    """Events that told nothing new: a server may repeat itself after a reconnect."""
    replacement: Replacement[T] | None = field(default=None)
    """What a list did, where the batch was one."""


def apply(batch: Batch[T], entries: ThreadSafeStore[T]) -> Applied[T]:
    """Write ``batch`` to the store and return what there is to tell.

    Raises:
        IndexFunctionError: an index function failed, and the store was not told what to do
            about it; nothing was changed.
    """
    content, initial = batch.content, batch.in_initial_list
    if isinstance(content, ReplacedAll):
        replacement = entries.replace(
            content.entries, content.resource_version, afresh=content.afresh
        )
        told = _of_replacement(replacement, initial=initial)
        return Applied(told, replacement=replacement)
    if isinstance(content, SyncAll):
        return Applied([], entries.list())
    if isinstance(content, Progress):
        entries.bookmark(content.resource_version, of_list=content.of_list)
        return Applied([])
    return _of_deltas(content, entries.apply(content), initial=initial)


def is_large(batch: Batch[T]) -> bool:
    """Tell whether to write ``batch`` at once would hold up all others for too long."""
    return isinstance(batch.content, ReplacedAll) and len(batch.content.entries) > _TURN


async def apply_in_turns(batch: Batch[T], entries: ThreadSafeStore[T]) -> Applied[T]:
    """Do as `apply`, and let others have a turn now and then while a large list is taken in.

    Nobody sees anything of it before it is whole, and nothing is awaited from there to the return.
    Cancelled, it has changed nothing.

    Raises:
        IndexFunctionError: as `apply`.
    """
    content = batch.content
    if not isinstance(content, ReplacedAll):
        return apply(batch, entries)
    work = entries.replacing(content.entries, content.resource_version, afresh=content.afresh)
    while not work.advance(_TURN):  # noqa: ASYNC110 - it is we who work
        await asyncio.sleep(0)
    told: list[Notification[T]] = []
    for _ in _tell_of_replacement(told, work.result, initial=batch.in_initial_list):
        await asyncio.sleep(0)
    return Applied(told, replacement=entries.publish(work))


def _of_replacement(done: Replacement[T], *, initial: bool) -> list[Notification[T]]:
    told: list[Notification[T]] = []
    for _ in _tell_of_replacement(told, done, initial=initial):
        pass
    return told


def _tell_of_replacement(
    told: list[Notification[T]], done: Replacement[T], *, initial: bool
) -> Iterator[None]:
    """Add what there is to tell, and yield now and then for others to have a turn."""
    # Deletes first: who counts what there is never counts too much.
    told += [
        Notification(gone.key, gone.old, None, final_state_unknown=True) for gone in done.deleted
    ]
    for number, transition in enumerate(itertools.chain(done.changed, done.added), 1):
        _tell_of_present(told, transition, initial=initial)
        if number % _TOLD_PER_TURN == 0:
            yield


def _of_deltas(
    deltas: Iterable[Delta[T]], transitions: Iterable[Transition[T]], *, initial: bool
) -> Applied[T]:
    told: list[Notification[T]] = []
    resynced: list[Entry[T]] = []
    replayed = 0
    for delta, transition in zip(deltas, transitions, strict=True):
        old, new = transition.old, transition.new
        if old is new:
            if new is None:
                continue  # the delete of what nobody was told of
            if delta.type is _SYNC:
                resynced.append(new)
            elif delta.type is not _REPLACED:
                replayed += 1
        elif new is None:
            told.append(_of_delete(delta, transition))
        else:
            _tell_of_present(told, transition, initial=initial)
    return Applied(told, resynced, replayed)


def _of_delete(delta: Delta[T], transition: Transition[T]) -> Notification[T]:
    """Tell of the final state if it is one of the object that was held."""
    key, held, final = transition.key, transition.old, delta.entry
    assert held is not None
    if final is None or delta.final_state_unknown or final.metadata.uid != held.metadata.uid:
        return Notification(key, held, None, final_state_unknown=True)
    return Notification(key, final, None, told=held)


def _tell_of_present(
    told: list[Notification[T]], transition: Transition[T], *, initial: bool
) -> None:
    key, old, new = transition.key, transition.old, transition.new
    assert new is not None
    if old is not None and _are_two_objects(old, new):
        told.append(Notification(key, old, None, final_state_unknown=True))
        old = None
    told.append(Notification(key, old, new, initial=initial and old is None))


def _are_two_objects(old: Entry[T], new: Entry[T]) -> bool:
    was, now = old.metadata.uid, new.metadata.uid
    return was != now and bool(was) and bool(now)
