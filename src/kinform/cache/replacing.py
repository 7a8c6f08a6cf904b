"""Replacing: the next state of a store, built aside and piece by piece.

For a million objects that takes seconds, most of them in the users' index functions. An event loop
that stood still for so long would lose leases and fail probes; so who lives on one builds some,
lets the others have a turn, and publishes when all is there (`ThreadSafeStore.publish`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
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

    Made by `ThreadSafeStore.replacing`; the rules are those of `ThreadSafeStore.replace`.
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
        self.after: Final = before.emptied(resource_version)
        self.result: Final[Replacement[T]] = Replacement(
            [], [], [], [], before.version, resource_version
        )
        self.is_done: bool = False
        self._entries = iter(entries.items())
        self._filings = filings
        self._pairs = [(before.indexes[name], new) for name, new in self.after.indexes.items()]
        # Else equal versions prove nothing.
        self._is_comparable = not (afresh or self.result.regressed)

    def advance(self, count: int | None = None) -> bool:
        """Take ``count`` entries more, or all; return whether that was the end.

        Raises:
            IndexFunctionError: an index function failed, and the store was not told what to do
                about it.
        """
        before, after, result = self.before, self.after, self.result
        some = itertools.islice(self._entries, count)
        seen = len(after.entries)
        for key, entry in some:
            old = before.entries.get(key)
            if old is None:
                result.added.append(Transition(key, None, entry))
            elif old is entry or (
                self._is_comparable and versions.same_version(old.metadata, entry.metadata)
            ):
                kept = [(new, was.kept_values(key, old)) for was, new in self._pairs]
                after.enter(key, old, kept)
                result.unchanged.append(old)
                continue
            else:
                result.changed.append(Transition(key, old, entry))
            after.enter(key, entry, self._filings(entry, after.indexes))
        if not self.is_done and (count is None or len(after.entries) - seen < count):
            self.is_done = True
            result.deleted.extend(
                Transition(key, old, None)
                for key, old in before.entries.items()
                if key not in after.entries
            )
        return self.is_done
