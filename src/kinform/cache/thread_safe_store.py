"""ThreadSafeStore: entries by key, their indexes and their version, read from any thread.

client-go: tools/cache/thread_safe_store.go. `Store` and `Indexer` are made of it: they take keys
from metadata and hand out objects, here keys are explicit and entries are handed out.

Rule 1: one thread writes. It reads what it is about to change without the lock.
Rule 2: whatever can fail, the users' index functions, runs before the lock is taken, so that a
failed write has changed nothing and no reader ever waits for a user's code.
Rule 3: the version is set after the entries it speaks of, so who sees the version and then reads
sees at least the entries.
"""

from __future__ import annotations

import builtins
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, TypeAlias, TypeVar, cast, final

from kinform.cache.forking import Forked
from kinform.cache.indexes import Index, IndexFunctionError, Values, each
from kinform.cache.replacing import Replacing
from kinform.cache.state import Filed, Filing, State, plan
from kinform.cache.transitions import Replacement, Transition
from kinform.errors import UsageError
from kinform.meta import Entry, ObjectName
from kinform.sansio import versions
from kinform.sansio.deltas import Delta
from kinform.storage import inherit

__all__ = ["OnIndexError", "ThreadSafeStore"]

T = TypeVar("T")

OnIndexError: TypeAlias = Callable[[IndexFunctionError], None]
"""Is told of an index function that failed on an entry that is written nevertheless."""


@final
class ThreadSafeStore(Generic[T]):
    """Entries by key, with indexes and a version: one thread writes, any thread reads.

    The writer is whoever fills the store, with kinform the event loop's thread. Reads:

    * `get`, ``in``, ``len`` and `resource_version` take no lock and never wait.
    * All others take the one lock, copy what was asked for and let go. They see each `apply`
      wholly or not at all, and never wait longer than one takes.
    * `replace` is built aside and published by one assignment: every read, locked or not, sees
      the entries, the indexes and the version from before it, or those from after it.

    What is handed out is a list of the caller's own, of entries that are everybody's.

    That a lone `get` needs no lock rests on the interpreter's. **Free-threaded builds of Python
    are not supported**: nothing here is known to break on them, and nothing was tested.

    Args:
        indexes: taken as they are described, not as they are filled: more in `add_indexes`.
        on_index_error: told of each index function that fails in a write. The entry is then
            written all the same and is found under no value of that index until it changes
            again. Without it the write fails, with nothing changed.

    Raises:
        UsageError: if two indexes have one name.
    """

    __slots__ = ("__weakref__", "_lock", "_on_index_error", "_state")

    def __init__(
        self,
        *,
        indexes: Iterable[Index[T]] = (),
        on_index_error: OnIndexError | None = None,
    ) -> None:
        self._on_index_error = on_index_error
        self._state: State[T] = State({}, "")
        # Re-entrant: a finalizer or signal handler that reads in the middle of a write, on the
        # writer's own thread, must not wait for itself.
        self._lock = threading.RLock()
        self.add_indexes(indexes)

    # --- reading, from any thread

    @property
    def resource_version(self) -> str:
        """The newest version whose changes are all in the store; ``""`` if none is known."""
        return self._state.version

    def get(self, key: ObjectName) -> Entry[T] | None:
        """Return the entry of ``key``, if there is one."""
        return self._state.entries.get(key)

    def __contains__(self, key: object) -> bool:
        return key in self._state.entries

    def __len__(self) -> int:
        return len(self._state.entries)

    def list(self) -> builtins.list[Entry[T]]:
        """Return all entries, in no particular order."""
        with self._lock:
            return list(self._state.entries.values())

    def keys(self) -> builtins.list[ObjectName]:
        """Return all keys, in no particular order: with `get`, what a queue's `KnownObjects` is."""
        with self._lock:
            return list(self._state.entries)

    def index_names(self) -> builtins.list[str]:
        """Return the names of all indexes, in the order of adding."""
        return list(self._state.indexes)

    def by_index(self, index: str, value: str) -> builtins.list[Entry[T]]:
        """Return the entries under ``value``, in no particular order; none if nobody has it.

        Raises:
            UnknownIndexError: if there is no such index.
        """
        with self._lock:
            return list(self._state.index(index).find(value).values())

    def index(self, index: str, entry: Entry[T]) -> builtins.list[Entry[T]]:
        """Return, each once, the entries that share a value with ``entry``.

        ``entry`` need not be in the store. Its values are found by running the index function.

        Raises:
            UnknownIndexError: if there is no such index.
            IndexFunctionError: if the function fails on ``entry``.
        """
        values = self._state.index(index).values_of(entry)
        found: dict[ObjectName, Entry[T]] = {}
        with self._lock:
            same = self._state.index(index)
            for value in each(values):
                found.update(same.find(value))
        return list(found.values())

    def index_keys(self, index: str, value: str) -> builtins.list[ObjectName]:
        """Return the keys of the entries under ``value``, sorted.

        Raises:
            UnknownIndexError: if there is no such index.
        """
        with self._lock:
            keys = list(self._state.index(index).find(value))
        return sorted(keys)

    def list_index_values(self, index: str) -> builtins.list[str]:
        """Return every value that has entries, each once, in no particular order.

        Raises:
            UnknownIndexError: if there is no such index.
        """
        with self._lock:
            return self._state.index(index).all_values()

    def abandon(self, message: str) -> None:
        """Refuse every read from now on with a `UsageError`: in a forked child."""
        self._lock = threading.RLock()  # another thread of the parent may have held it
        self._state = cast("State[T]", Forked(message))

    # --- writing, from one thread

    def add(self, key: ObjectName, entry: Entry[T]) -> Entry[T] | None:
        """Set the entry of ``key`` and return the one before, if there was one.

        Raises:
            IndexFunctionError: an index function failed; nothing was changed.
        """
        state = self._state
        old = state.entries.get(key)
        changes = [Transition(key, old, entry)]
        filed = self._filed(changes, state)
        version = versions.newest(state.version, entry.metadata.resource_version)
        with self._lock:
            state.write(changes, filed)
            state.move_to(version)
        return old

    def delete(self, key: ObjectName, *, resource_version: str = "") -> Entry[T] | None:
        """Forget ``key`` and return its entry, if there was one.

        ``resource_version`` is the version of the deletion, where it is known.
        """
        state = self._state
        old = state.entries.get(key)
        changes = [] if old is None else [Transition(key, old, None)]
        filed = self._filed(changes, state)
        version = versions.newest(state.version, resource_version)
        with self._lock:
            state.write(changes, filed)
            state.move_to(version)
        return old

    def apply(self, deltas: Iterable[Delta[T]]) -> builtins.list[Transition[T]]:
        """Write all ``deltas`` in order, as one transaction; tell what each of them did.

        The transitions are one per delta, in the same order. A delta without an entry leaves
        nothing to hold and is a delete. What is no news writes nothing, and its transition goes
        from the entry held to itself: REPLACED and SYNC with the version held unless they are
        ``afresh``, ADDED and UPDATED
        with that or an older one of the same object, which a server may replay after a
        reconnect. Any other entry is taken as it is. Where the last `replace` has shown that
        versions have no order (an entry was newer than the list, or the list had no version),
        only the very same version is no news.

        The version moves to the newest of the deltas', never back; those of tombstones and
        resyncs do not count, they are older than the delta.

        Raises:
            IndexFunctionError: an index function failed; nothing was changed.
        """
        state = self._state
        planned, version = plan(deltas, state)
        changes = [transition for transition in planned if transition.old is not transition.new]
        for change in changes:
            if change.old is not None and change.new is not None:
                inherit(change.old.metadata, change.new.metadata)
        filed = self._filed(changes, state)
        with self._lock:
            state.write(changes, filed)
            state.move_to(version)
        return planned

    def replace(
        self,
        entries: Mapping[ObjectName, Entry[T]],
        resource_version: str,
        *,
        afresh: bool = False,
    ) -> Replacement[T]:
        """Hold ``entries`` and nothing else, as of ``resource_version``; tell what that changed.

        An entry of the same uid and version as the one held is dropped and the one held stays,
        with its index values. Not so when this goes back in time (`Replacement.regressed`), or
        is told to have done so meanwhile (``afresh``): on a restored etcd the same version of
        the same object may be another state.

        The version becomes ``resource_version`` in any case: it is what the store then shows.

        Raises:
            IndexFunctionError: an index function failed; nothing was changed.
        """
        work = self.replacing(entries, resource_version, afresh=afresh)
        work.advance()
        return self.publish(work)

    def replacing(
        self,
        entries: Mapping[ObjectName, Entry[T]],
        resource_version: str,
        *,
        afresh: bool = False,
    ) -> Replacing[T]:
        """Begin to `replace` everything, for who has other things to do meanwhile.

        Advance it to its end, then `publish` it. Until then nothing has changed, and nothing
        else may be written; indexes may be added.
        """
        return Replacing(
            self._state, entries, resource_version, afresh=afresh, filings=self._filings
        )

    def publish(self, work: Replacing[T]) -> Replacement[T]:
        """Hold what ``work`` was begun with and nothing else; tell what that changed.

        Raises:
            UsageError: it has not come to its end, or something was written meanwhile.
            IndexFunctionError: an index function that was added meanwhile failed; nothing was
                changed.
        """
        if not work.is_done or work.is_outdated(self._state):
            raise UsageError("what was begun before the last write, or not ended, is not published")
        if work.after is None:
            self._state.is_ordered = work.is_ordered
            self._state.move_to(work.result.resource_version)
            return work.result
        work.after.is_ordered = work.is_ordered
        added = {
            name: index.emptied()
            for name, index in self._state.indexes.items()
            if name not in work.after.indexes
        }
        self._fill(work.after, added)
        self._state = work.after  # the one moment in which all of it happens
        return work.result

    def bookmark(self, resource_version: str, *, of_list: bool = False) -> None:
        """Note that everything up to ``resource_version`` is in the store.

        Ignored if it is certainly older than the version the store has, unless it is that
        ``of_list``: what the store shows after a list, it shows as of the list.
        """
        state = self._state
        newest = versions.newest(state.version, resource_version)
        state.move_to(resource_version if of_list else newest)

    def add_indexes(self, added: Iterable[Index[T]]) -> None:
        """Index what is held, and from now on what comes, by more functions.

        The indexes are built aside and appear at once, all of them or none. The store builds its
        own from each one's name and function: what is given stays as it is.

        Raises:
            UsageError: if there is an index of such a name already.
            IndexFunctionError: an index function failed; no index was added.
        """
        state, fresh = self._state, dict[str, Index[T]]()
        for index in added:
            if index.name in state.indexes or index.name in fresh:
                raise UsageError(f"there is an index named {index.name!r} already; choose another")
            fresh[index.name] = index.emptied()
        self._fill(state, fresh)

    def _fill(self, state: State[T], fresh: Mapping[str, Index[T]]) -> None:
        """Enter what ``state`` holds into indexes that it does not have, then let it have them."""
        for key, entry in state.entries.items() if fresh else ():
            for index, values in self._filings(entry, fresh):
                index.enter(key, entry, values)
        state.indexes = {**state.indexes, **fresh}

    def _filed(self, changes: Sequence[Transition[T]], state: State[T]) -> builtins.list[Filed[T]]:
        """Run the functions of all indexes on all new entries. Nothing is changed yet."""
        return [(index, self._values(index, changes)) for index in state.indexes.values()]

    def _values(self, index: Index[T], changes: Iterable[Transition[T]]) -> builtins.list[Values]:
        is_unchanged = index.is_unchanged
        if is_unchanged is None:
            return [() if c.new is None else self._values_of(index, c.new) for c in changes]
        found: builtins.list[Values] = []
        ahead: dict[ObjectName, Values] = {}  # as they will be: a key may come twice
        for change in changes:
            key, old, new = change.key, change.old, change.new
            if new is None:
                values: Values = ()
            elif old is not None and is_unchanged(old, new):
                values = ahead[key] if key in ahead else index.kept_values(key, old)
            else:
                values = self._values_of(index, new)
            ahead[key] = values
            found.append(values)
        return found

    def _values_of(self, index: Index[T], entry: Entry[T]) -> Values:
        try:
            return index.values_of(entry)
        except IndexFunctionError as error:
            if self._on_index_error is None:
                raise
            self._on_index_error(error)
            return ()

    def _filings(
        self, entry: Entry[T], indexes: Mapping[str, Index[T]]
    ) -> builtins.list[Filing[T]]:
        """Run the functions of ``indexes`` on ``entry``. Nothing is changed yet."""
        return [(index, self._values_of(index, entry)) for index in indexes.values()]
