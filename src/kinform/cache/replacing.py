"""Replacing: the next state of a store, built aside and piece by piece.

For a million objects that takes seconds, most of them in the users' index functions. An event loop
that stood still for so long would lose leases and fail probes; so who lives on one builds some,
lets the others have a turn, and publishes when all is there (`ThreadSafeStore.publish`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Generic, TypeAlias, TypeVar, final

from kinform.cache.indexes import Index
from kinform.cache.state import Filing, State
from kinform.cache.transitions import Replacement, Transition
from kinform.meta import Entry, ObjectName
from kinform.sansio import versions

__all__ = ["Replacing"]

T = TypeVar("T")

Filings: TypeAlias = Callable[[Entry[T], Mapping[str, Index[T]]], Sequence[Filing[T]]]
"""Runs the functions of indexes on an entry."""


@final
class Replacing(Generic[T]):
    """A replacement under way: ``before`` is not touched, ``after`` grows.

    First everything is compared with what is there. If nothing differs, as after most lost
    connections, nothing is built. Made by `ThreadSafeStore.replacing`; the rules are those of
    `ThreadSafeStore.replace`.
    """

    def __init__(
        self,
        before: State[T],
        entries: Mapping[ObjectName, Entry[T]],
        resource_version: str,
        *,
        afresh: bool,
        filings: Filings[T],
    ) -> None:
        self.before: Final = before
        self.after: State[T] | None = None
        """What is to be published; ``None`` if only the version is new."""
        self.result: Final[Replacement[T]] = Replacement(
            [], [], [], [], before.version, resource_version
        )
        self.is_done: bool = False
        self._writes = before.writes
        self._filings = filings
        self._newest = ""  # of the entries compared so far
        self._kept: set[ObjectName] = set()  # the keys of what is there already
        # Else equal versions prove nothing.
        self._is_comparable = not (afresh or self.result.regressed)
        self._compared: Iterator[tuple[ObjectName, Entry[T]]] = iter(entries.items())
        self._to_build: Iterator[tuple[ObjectName, Entry[T]]] = iter(entries.items())
        self._pairs: list[tuple[Index[T], Index[T]]] = []

    def advance(self, count: int | None = None) -> bool:
        """Take a step, of ``count`` entries or as far as it goes; return whether that was the end.

        Raises:
            IndexFunctionError: an index function failed, and the store was not told what to do
                about it.
        """
        if self.after is None and not self.is_done and self._compare(count):
            self._find_deleted()
            result = self.result
            if result.added or result.changed or result.deleted:
                before = self.before
                self.after = after = before.emptied(result.resource_version)
                self._pairs = [(before.indexes[name], new) for name, new in after.indexes.items()]
            else:
                self.is_done = True
        if self.after is not None and not self.is_done:
            self.is_done = self._build(self.after, count)
        return self.is_done

    @property
    def is_ordered(self) -> bool:
        """Whether no entry is newer than the list: so it is where versions grow with each write."""
        return versions.is_complete(self.result.resource_version, self._newest)

    def is_outdated(self, state: State[T]) -> bool:
        """Tell whether ``state`` is not the one, or not as it was, when this was begun."""
        return state is not self.before or state.writes != self._writes

    def _compare(self, count: int | None) -> bool:
        before, result = self.before.entries, self.result
        kept, some = self._kept, list(itertools.islice(self._compared, count))
        for key, entry in some:
            self._newest = versions.newest(self._newest, entry.metadata.resource_version)
            old = before.get(key)
            if old is None:
                result.added.append(Transition(key, None, entry))
                continue
            kept.add(key)
            if self._is_same(old, entry):
                result.unchanged.append(old)
            else:
                result.changed.append(Transition(key, old, entry))
        return count is None or len(some) < count

    def _is_same(self, old: Entry[T], entry: Entry[T]) -> bool:
        return old is entry or (
            self._is_comparable and versions.same_version(old.metadata, entry.metadata)
        )

    def _find_deleted(self) -> None:
        kept, entries = self._kept, self.before.entries
        if len(kept) < len(entries):
            self.result.deleted.extend(
                Transition(key, old, None) for key, old in entries.items() if key not in kept
            )

    def _build(self, after: State[T], count: int | None) -> bool:
        before = self.before.entries
        some = list(itertools.islice(self._to_build, count))
        for key, entry in some:
            old = before.get(key)
            if old is not None and self._is_same(old, entry):
                kept = [(new, was.kept_values(key, old)) for was, new in self._pairs]
                after.enter(key, old, kept)
            else:
                after.enter(key, entry, self._filings(entry, after.indexes))
        return count is None or len(some) < count
