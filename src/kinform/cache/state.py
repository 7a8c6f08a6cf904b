"""State: entries, indexes and version that belong together, and how one write changes them.

No locks and no users' code: `ThreadSafeStore` decides when, with index values that it found
before. To publish another state is one assignment there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Generic, TypeAlias, TypeVar, final

from kinform.cache.indexes import Index, UnknownIndexError, Values
from kinform.cache.transitions import Transition
from kinform.meta import Entry, ObjectName
from kinform.sansio import versions
from kinform.sansio.deltas import Delta, DeltaType

__all__ = ["Filed", "Filing", "State", "plan"]

T = TypeVar("T")

# To read a member off an enum takes Python 3.11 longer than all else a delta needs.
_DELETED: Final = DeltaType.DELETED
_REPLACED: Final = DeltaType.REPLACED
_SYNC: Final = DeltaType.SYNC

Filing: TypeAlias = tuple[Index[T], Values]
"""Where an entry goes in one index. A write has one for every index of the state."""

Filed: TypeAlias = tuple[Index[T], Sequence[Values]]
"""Where the new entries of several changes go in one index, change by change."""


@final
class State(Generic[T]):
    """The entries by key, the indexes by name, and the version they all show."""

    __slots__ = ("entries", "indexes", "is_ordered", "version", "writes")

    def __init__(self, indexes: dict[str, Index[T]], version: str) -> None:
        # Invariant: every entry is in every index, under the values that were given with it.
        self.entries: dict[ObjectName, Entry[T]] = {}
        self.indexes: dict[str, Index[T]] = indexes
        self.version: str = version
        self.is_ordered: bool = True
        """Whether versions grow with every write, as far as the last list shows. Kubernetes' own
        do; an aggregated server may number its objects in another way."""
        self.writes: int = 0
        """How often something was written."""

    def emptied(self, version: str) -> State[T]:
        """Return a state of ``version`` with the same indexes, and nothing in it."""
        return State({name: index.emptied() for name, index in self.indexes.items()}, version)

    def move_to(self, version: str) -> None:
        """Show ``version``: the last step of every write."""
        self.version = version
        self.writes += 1

    def index(self, name: str) -> Index[T]:
        """Return the index of that name.

        Raises:
            UnknownIndexError: if there is none.
        """
        try:
            return self.indexes[name]
        except KeyError:
            raise UnknownIndexError(name, known=tuple(self.indexes)) from None

    def enter(self, key: ObjectName, entry: Entry[T], filings: Sequence[Filing[T]]) -> None:
        """Hold ``entry`` under a key that is new."""
        self.entries[key] = entry
        for index, values in filings:
            index.enter(key, entry, values)

    def write(self, changes: Sequence[Transition[T]], filed: Sequence[Filed[T]]) -> None:
        """Perform ``changes``, each of which starts from the entry held and ends with another.

        A lone reader sees each entry or the one before it, never none in between.
        """
        entries = self.entries
        for change in changes:
            if change.new is None:
                del entries[change.key]
            else:
                entries[change.key] = change.new
        for index, values in filed:
            index.write(changes, values)


def plan(deltas: Iterable[Delta[T]], state: State[T]) -> tuple[list[Transition[T]], str]:
    """Return what ``deltas`` would do to ``state``, one after the other, and the version then.

    The rules are those of `ThreadSafeStore.apply`. Nothing is changed.
    """
    transitions: list[Transition[T]] = []
    ahead: dict[ObjectName, Entry[T] | None] = {}  # keys as they will be: a key may come twice
    version = state.version
    for delta in deltas:
        key, entry = delta.key, delta.entry
        old = ahead[key] if key in ahead else state.entries.get(key)
        new = ahead[key] = _outcome(delta, old, is_ordered=state.is_ordered)
        transitions.append(Transition(key, old, new))
        if entry is not None and not delta.final_state_unknown and delta.type is not _SYNC:
            seen = entry.metadata.resource_version
            version = versions.newest(version, seen) if state.is_ordered else seen or version
    return transitions, version


def _outcome(delta: Delta[T], old: Entry[T] | None, *, is_ordered: bool) -> Entry[T] | None:
    """Return the entry that ``delta`` leaves where ``old`` was."""
    kind, entry = delta.type, delta.entry
    if old is None or entry is None or old is entry:
        return None if kind is _DELETED else entry
    was, now = old.metadata, entry.metadata
    if kind is _REPLACED or kind is _SYNC:
        return old if not delta.afresh and versions.same_version(was, now) else entry
    if kind is _DELETED:
        # Of another object of that name, which was gone before this one came: a replay.
        is_past = (
            is_ordered
            and was.uid != now.uid
            and versions.is_older(now.resource_version, was.resource_version)
        )
        return old if is_past and not delta.final_state_unknown else None
    if not is_ordered:  # follow the server: the last event counts
        return old if versions.same_version(was, now) else entry
    # Versions are those of the whole server: an older one is a replay, whichever object it was.
    is_replay = versions.is_replay(was.resource_version, now.resource_version)
    return old if is_replay and was.uid and now.uid else entry
