"""What a write did: the entries before and after, so that handlers can be told.

A store answers every write with them. The processor turns them into notifications, and never has
to look into the store for what was there before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar, final

import msgspec

from kinform.meta import Entry, ObjectName
from kinform.sansio import versions

__all__ = ["Replacement", "Transition"]

T = TypeVar("T")


# A Struct, because one is made for every change: a NamedTuple costs four times as much.
@final
class Transition(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """What one write did to one key: the entry before and the entry after.

    ``old`` is ``None`` where the key was new, ``new`` where it is gone, and both where a delete
    found nothing. ``old is new`` where the write changed nothing: nobody needs to be told.
    Entries of different ``uid`` are two objects: the old one was deleted, unseen.
    """

    key: ObjectName
    old: Entry[T] | None
    new: Entry[T] | None


@final
@dataclass(frozen=True, slots=True)
class Replacement(Generic[T]):
    """What replacing everything did. Each key, old or new, is in exactly one of the lists.

    ``added``, ``changed`` and ``unchanged`` are in the order of the entries given, ``deleted`` in
    no particular one.
    """

    added: list[Transition[T]]
    """Keys that are new."""
    changed: list[Transition[T]]
    """Keys whose entry is another now. The versions may be equal, where equal proves nothing:
    after going back in time, or where the server gives no uid or no version."""
    deleted: list[Transition[T]]
    """Keys that are gone. When and in which state they went, nobody saw."""
    unchanged: list[Entry[T]]
    """The entries that stayed: same uid and version, so the old one was kept, the new dropped."""
    previous_version: str
    """The store's version before; ``""`` if it had none."""
    resource_version: str
    """The store's version now: the one the entries were given with."""

    @property
    def regressed(self) -> bool:
        """Whether the store went back in time: an etcd was restored, or a lagging server asked.

        The store then holds the older state, as it was told to.
        """
        return versions.is_older(self.resource_version, self.previous_version)
