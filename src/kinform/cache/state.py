"""State: entries, indexes and version that belong together, and how one write changes them.

No locks and no users' code: `ThreadSafeStore` decides when, with index values that it found
before. To publish another state is one assignment there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar, final

from kinform.cache import versions
from kinform.cache.indexes import Index, UnknownIndexError, Values
from kinform.cache.transitions import Transition
from kinform.meta import Entry, ObjectName
from kinform.sansio.deltas import Delta, DeltaType

__all__ = ["State", "plan"]

T = TypeVar("T")


@final
class State(Generic[T]):
    """The entries by key, the indexes by name, and the version they all show."""

    __slots__ = ("entries", "indexes", "version")

    def __init__(self, indexes: dict[str, Index[T]], version: str) -> None:
        # Invariant: every entry is in every index, under the values that were given with it.
        self.entries: dict[ObjectName, Entry[T]] = {}
        self.indexes = indexes
        self.version = version

    def emptied(self, version: str) -> State[T]:
        """Return a state of ``version`` with the same indexes, and nothing in it."""
        return State({name: index.emptied() for name, index in self.indexes.items()}, version)

    def index(self, name: str) -> Index[T]:
        """Return the index of that name.

        Raises:
            UnknownIndexError: if there is none.
        """
        try:
            return self.indexes[name]
        except KeyError:
            raise UnknownIndexError(name, known=tuple(self.indexes)) from None

    def kept_values(self, key: ObjectName, entry: Entry[T]) -> list[Values]:
        """Return what ``entry``, which is held, is found under in each index."""
        return [index.kept_values(key, entry) for index in self.indexes.values()]

    def enter(self, key: ObjectName, entry: Entry[T], values: Sequence[Values]) -> None:
        """Hold ``entry`` under a key that is new; ``values`` are one per index, in order."""
        self.entries[key] = entry
        for index, of_entry in zip(self.indexes.values(), values, strict=True):
            index.enter(key, entry, of_entry)

    def write(self, transition: Transition[T], values: Sequence[Values]) -> None:
        """Perform ``transition``, which starts from the entry held; ``values`` are its new one's.

        A lone reader sees the key's old entry or its new one, never none in between.
        """
        key, old, new = transition
        if old is new:
            return
        if old is None and new is not None:
            self.enter(key, new, values)
        elif new is None and old is not None:
            del self.entries[key]
            for index in self.indexes.values():
                index.leave(key, old)
        elif old is not None and new is not None:
            self.entries[key] = new
            for index, of_new in zip(self.indexes.values(), values, strict=True):
                index.move(key, old, new, values=of_new)


def plan(deltas: Iterable[Delta[T]], state: State[T]) -> tuple[list[Transition[T]], str]:
    """Return what ``deltas`` would do to ``state``, one after the other, and the version then.

    The rules are those of `ThreadSafeStore.apply`. Nothing is changed.
    """
    transitions: list[Transition[T]] = []
    ahead: dict[ObjectName, Entry[T] | None] = {}  # keys as they will be: a key may come twice
    version = state.version
    for delta in deltas:
        key = delta.key
        old = ahead[key] if key in ahead else state.entries.get(key)
        new = _outcome(delta, old)
        ahead[key] = new
        transitions.append(Transition(key, old, new))
        if delta.entry and not delta.final_state_unknown and delta.type is not DeltaType.SYNC:
            version = versions.newest(version, delta.entry.metadata.resource_version)
    return transitions, version


def _outcome(delta: Delta[T], old: Entry[T] | None) -> Entry[T] | None:
    """Return the entry that ``delta`` leaves where ``old`` was."""
    match delta.type:
        case DeltaType.SYNC:
            return old
        case DeltaType.DELETED:
            return None
        case DeltaType.REPLACED if old and delta.entry and _same(old, delta.entry):
            return old
        case _:
            return delta.entry


def _same(old: Entry[T], new: Entry[T]) -> bool:
    return versions.same_version(old.metadata, new.metadata)
