"""Changes on their way from the reflector to the event handlers.

Before the store: a `Delta` concerns one key; `ReplacedAll` (a relist), `SyncAll` (a resync) and
`Progress` (a bookmark) concern the whole cache, and each is a batch of its own. Behind the store:
a `Transition` is what a write did to one key. Handlers and event streams receive the same value.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar, final

import msgspec

from kinform.meta import Entry, ObjectName

__all__ = ["Change", "Delta", "DeltaType", "Progress", "ReplacedAll", "SyncAll", "Transition"]

T = TypeVar("T")


class DeltaType(enum.StrEnum):
    """The type of a change, in client-go's words."""

    ADDED = "Added"
    UPDATED = "Updated"
    DELETED = "Deleted"
    REPLACED = "Replaced"
    """The object is part of a new list; it may be new, changed or unchanged."""
    SYNC = "Sync"
    """Nothing changed: a resync delivers the object again."""


# Structs, because one of each is made for every event: a frozen dataclass costs ten times as much.
# gc=False: they cannot be part of a reference cycle, so the collector need not track them.
@final
class Delta(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """One change of one object.

    A DELETED delta may be a *tombstone*: the delete was inferred from a list that no longer
    contains the key. Then ``final_state_unknown`` is true, and ``entry`` is the last known state,
    or ``None`` if there is none. Every other delta has an entry.

    ``afresh`` is set only on objects of a relist; it means the same as in `ReplacedAll`.
    """

    type: DeltaType
    key: ObjectName
    entry: Entry[T] | None
    final_state_unknown: bool = False
    afresh: bool = False


@final
class Transition(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """The effect of one write on one key: the entry before and the entry after.

    ``old`` is ``None`` where the key is new, ``new`` where it was deleted, and both where a delete
    found nothing. ``old is new`` where the write changed nothing; as a notification that is a
    resync. Entries with different uids are two objects: the old one was deleted, and that delete
    was missed. Handlers never receive both in one transition, but a delete and an add.
    """

    key: ObjectName
    old: Entry[T] | None
    new: Entry[T] | None
    initial: bool = False
    """Of a new object: it existed before the listener was added."""
    final_state_unknown: bool = False
    """Of a deleted object: the delete itself was missed, so ``old`` may be stale (a tombstone)."""
    # Apart from ``old``, which is the state that the listener knows: a merged delete may have
    # passed over later ones.
    final: Entry[T] | None = None
    """Of a deleted object: the final state, where it differs from ``old``."""


@final
@dataclass(frozen=True, slots=True)
class ReplacedAll(Generic[T]):
    """A relist: the cache is to hold these entries and no others, as of ``resource_version``.

    The mapping is handed over, not copied: the writer must not change it afterwards.

    ``afresh`` where the list is known to show another history than the lists before (etcd was
    restored from a backup): the same version of the same object may then be another state.
    """

    entries: Mapping[ObjectName, Entry[T]]
    resource_version: str
    afresh: bool = False


@final
@dataclass(frozen=True, slots=True)
class SyncAll:
    """A resync: deliver every object again to the handlers that asked for resyncs."""


@final
@dataclass(frozen=True, slots=True)
class Progress:
    """A bookmark: every change up to ``resource_version`` was written before it.

    ``of_list`` where it ends a list that was written object by object: the cache then takes this
    version even if it is older than the current one.
    """

    resource_version: str
    of_list: bool = False


Change: TypeAlias = Delta[T] | ReplacedAll[T] | SyncAll | Progress
"""An item of a queue that keeps the order of writing."""
