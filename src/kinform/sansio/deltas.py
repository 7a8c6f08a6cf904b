"""What travels from the reflector to the cache: one change, or one change of everything.

A `Delta` concerns one key. The three others concern the whole cache and stand alone in a batch:
`ReplacedAll` (a relist), `SyncAll` (a resync) and `Progress` (a bookmark).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar, final

import msgspec

from kinform.meta import Entry, ObjectName

__all__ = ["Change", "Delta", "DeltaType", "Progress", "ReplacedAll", "SyncAll"]

T = TypeVar("T")


class DeltaType(enum.StrEnum):
    """What happened to one object, in client-go's words."""

    ADDED = "Added"
    UPDATED = "Updated"
    DELETED = "Deleted"
    REPLACED = "Replaced"
    """It is part of a fresh list; it may be new, changed or the same."""
    SYNC = "Sync"
    """Nothing happened: a resync tells of it again."""


# A Struct, because one is made for every event: a frozen dataclass costs ten times as much. It
# keeps out of the garbage collector's way: nothing it holds can come to refer to it.
@final
class Delta(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """One change of one object.

    A DELETED delta may be a *tombstone*: the delete was inferred from a list that no longer
    shows the key. Then ``final_state_unknown`` is true, and ``entry`` is the last state known,
    or ``None`` if there is none. Every other delta has an entry.

    ``afresh`` on an object of a list as in `ReplacedAll`.
    """

    type: DeltaType
    key: ObjectName
    entry: Entry[T] | None
    final_state_unknown: bool = False
    afresh: bool = False


@final
@dataclass(frozen=True, slots=True)
class ReplacedAll(Generic[T]):
    """A relist: from now on there is this and nothing else, as of ``resource_version``.

    The mapping is handed over, not copied: whoever built it leaves it alone from then on.

    ``afresh`` where it is known to show another history than lists before (etcd was restored):
    the same version of the same object may then be another state.
    """

    entries: Mapping[ObjectName, Entry[T]]
    resource_version: str
    afresh: bool = False


@final
@dataclass(frozen=True, slots=True)
class SyncAll:
    """A resync: tell those who asked for it about everything again."""


@final
@dataclass(frozen=True, slots=True)
class Progress:
    """A bookmark: everything up to ``resource_version`` has been told.

    ``of_list`` where it ends a list that was told object by object: then it is the version even
    if it is older than what was told before.
    """

    resource_version: str
    of_list: bool = False


Change: TypeAlias = Delta[T] | ReplacedAll[T] | SyncAll | Progress
"""What a queue that keeps the order holds."""
