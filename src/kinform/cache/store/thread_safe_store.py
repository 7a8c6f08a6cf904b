"""ThreadSafeStore: entries by key, their indexes and their version, readable from any thread.

client-go: tools/cache/thread_safe_store.go. `Store` and `Indexer` are built on it: they take keys
from metadata and return objects; here keys are explicit and entries are returned.

Rule 1: one thread writes. It may read what it is about to change without the lock.
Rule 2: index functions of users, which can fail, run before the lock is taken. So a failed write
has changed nothing, and no reader waits for user code.
Rule 3: the version is set after the entries it covers. A reader that sees the version sees at
least those entries.
"""

from __future__ import annotations

import builtins
import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeAlias, TypeVar, cast, final

from kinform.cache.store._guard import Forked
from kinform.cache.store.indexes import Index, IndexFunctionError, UnknownIndexError, Values, each
from kinform.errors import UsageError
from kinform.meta import Entry, ObjectName
from kinform.objects.storage import inherit
from kinform.sansio import versions
from kinform.sansio.queue.deltas import Delta, DeltaType, Transition

__all__ = ["OnIndexError", "Replacement", "Replacing", "ThreadSafeStore"]

T = TypeVar("T")

OnIndexError: TypeAlias = Callable[[IndexFunctionError], None]
"""Called with each failure of an index function on an entry that is written nevertheless."""

# Python 3.11 needs longer to read a member off an enum class than for the rest of a delta.
_DELETED: Final = DeltaType.DELETED
_REPLACED: Final = DeltaType.REPLACED
_SYNC: Final = DeltaType.SYNC


@final
@dataclass(frozen=True, slots=True)
class Replacement(Generic[T]):
    """The effect of a relist. Each key, old or new, is in exactly one of the lists.

    ``added``, ``changed`` and ``unchanged`` are in the order of the list, ``deleted`` in no
    particular order.
    """

    added: list[Transition[T]]
    """New keys."""
    changed: list[Transition[T]]
    """Keys with another entry now. The versions may be equal where that proves nothing: after the
    server went back in time, or where it gives no uid or no version."""
    deleted: list[Transition[T]]
    """Keys that are no longer listed; their final states are unknown."""
    unchanged: list[Entry[T]]
    """Entries with the uid and version of the one held: the one held was kept."""
    previous_version: str
    """The store's version before; ``""`` if it had none."""
    resource_version: str
    """The store's version now: that of the list."""

    @property
    def regressed(self) -> bool:
        """True if the store went back in time: etcd was restored, or a lagging server answered.

        The store then holds the older state.
        """
        return versions.is_older(self.resource_version, self.previous_version)


@final
class ThreadSafeStore(Generic[T]):
    """Entries by key, with indexes and a version: one thread writes, any thread reads.

    The writer is the thread that fills the store: in kinform, the event loop's thread. Reads:

    * `get`, ``in``, ``len`` and `resource_version` take no lock and never wait.
    * All others hold the lock while they copy the result. They see each `apply` wholly or not at
      all, and never wait longer than one takes.
    * `replace` builds the new state aside and publishes it by one assignment: every read, locked
      or not, sees the entries, indexes and version from before it, or those from after it.

    A returned list belongs to the caller; the entries in it are shared and must not be changed.

    `get` without a lock relies on the global interpreter lock. **Free-threaded builds of Python
    are not supported**: nothing here is known to break on them, and nothing was tested.

    Args:
        indexes: names and functions of the indexes; their content is not taken over. See also
            `add_indexes`.
        on_index_error: called with each index function that fails in a write. The entry is then
            written all the same, and is not found by that index until it changes again. Without
            it the write fails, with nothing changed.

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
        # One reference to all that belongs together: a relist replaces it by a single assignment.
        self._state: _State[T] = _State({}, "")
        # Re-entrant: a finalizer or signal handler that reads in the middle of a write, on the
        # writer's own thread, must not deadlock.
        self._lock = threading.RLock()
        self.add_indexes(indexes)

    # --- reading, from any thread

    @property
    def resource_version(self) -> str:
        """The newest version whose changes are all in the store; ``""`` if none is known."""
        return self._state.version

    def get(self, key: ObjectName) -> Entry[T] | None:
        """Return the entry of ``key``, or ``None``."""
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
        """Return all keys, in no particular order; with `get`, that makes it a `KnownObjects`."""
        with self._lock:
            return list(self._state.entries)

    def index_names(self) -> builtins.list[str]:
        """Return the names of all indexes, in the order in which they were added."""
        return list(self._state.indexes)

    def by_index(self, index: str, value: str) -> builtins.list[Entry[T]]:
        """Return the entries under ``value``, in no particular order; perhaps empty.

        Raises:
            UnknownIndexError: if the index does not exist.
        """
        with self._lock:
            return list(self._state.index(index).find(value).values())

    def index(self, index: str, entry: Entry[T]) -> builtins.list[Entry[T]]:
        """Return, each once, the entries that share a value with ``entry``.

        ``entry`` need not be in the store: the index function runs on it.

        Raises:
            UnknownIndexError: if the index does not exist.
            IndexFunctionError: if the function fails on ``entry``.
        """
        # Outside of the lock: it is the user's code (Rule 2).
        values = self._state.index(index).values_of(entry)
        found: dict[ObjectName, Entry[T]] = {}
        with self._lock:
            # Looked up again: a relist may have published other indexes since.
            same = self._state.index(index)
            for value in each(values):
                found.update(same.find(value))
        return list(found.values())

    def index_keys(self, index: str, value: str) -> builtins.list[ObjectName]:
        """Return the keys of the entries under ``value``, sorted.

        Raises:
            UnknownIndexError: if the index does not exist.
        """
        with self._lock:
            keys = list(self._state.index(index).find(value))
        return sorted(keys)

    def list_index_values(self, index: str) -> builtins.list[str]:
        """Return every value that has entries, each once, in no particular order.

        Raises:
            UnknownIndexError: if the index does not exist.
        """
        with self._lock:
            return self._state.index(index).all_values()

    def abandon(self, message: str) -> None:
        """Refuse every read from now on with a `UsageError`: in a forked child."""
        self._lock = threading.RLock()  # another thread of the parent may have held it
        self._state = cast("_State[T]", Forked(message))

    # --- writing, from one thread

    def add(self, key: ObjectName, entry: Entry[T]) -> Entry[T] | None:
        """Set the entry of ``key`` and return the previous one, or ``None``.

        Raises:
            IndexFunctionError: an index function failed; nothing was changed.
        """
        old = self._state.entries.get(key)
        self._write([Transition(key, old, entry)], entry.metadata.resource_version)
        return old

    def delete(self, key: ObjectName, *, resource_version: str = "") -> Entry[T] | None:
        """Remove ``key`` and return its entry, or ``None``.

        ``resource_version`` is the version of the deletion, where it is known.
        """
        old = self._state.entries.get(key)
        self._write([] if old is None else [Transition(key, old, None)], resource_version)
        return old

    def _write(self, changes: Sequence[Transition[T]], seen: str) -> None:
        state = self._state
        values = self._evaluated(changes, state.indexes)
        version = versions.newest(state.version, seen)
        with self._lock:
            state.write(changes, values, version)

    def apply(
        self, deltas: Iterable[Delta[T]], *, initial: bool = False
    ) -> builtins.list[Transition[T]]:
        """Write all ``deltas`` in order, as one transaction; return the effect of each.

        The transitions are one per delta, in the same order. A delta without an entry is a delete.
        A delta that is out of date writes nothing, and its transition goes from the held entry to
        itself: REPLACED and SYNC with the version held unless they are ``afresh``, ADDED and
        UPDATED with that or an older version of the same object, which a server may replay after
        a reconnect. Any other entry is written as it is. Where the last `replace` has shown that
        versions have no order (an entry was newer than the list, or the list had no version),
        only the very same version is out of date.

        The version moves to the newest of the deltas', never back; those of tombstones and
        resyncs do not count, they are older than the delta.

        Args:
            initial: the deltas are part of the first list: mark the transitions of new objects.

        Raises:
            IndexFunctionError: an index function failed; nothing was changed.
        """
        state = self._state
        planned, version = _plan(deltas, state, initial=initial)
        has_effect = True  # as nearly every delta has
        for transition in planned:
            old, new = transition.old, transition.new
            if old is new:
                has_effect = False
            elif old is not None and new is not None:
                # Before the new entry becomes visible: it shares equal parts of the metadata with
                # the old one, which saves memory on updates.
                inherit(old.metadata, new.metadata)
        changes = planned if has_effect else [one for one in planned if one.old is not one.new]
        values = self._evaluated(changes, state.indexes)
        with self._lock:
            state.write(changes, values, version)
        return planned

    def replace(
        self,
        entries: Mapping[ObjectName, Entry[T]],
        resource_version: str,
        *,
        afresh: bool = False,
    ) -> Replacement[T]:
        """Hold ``entries`` and nothing else, as of ``resource_version``; return the effect.

        An entry with the uid and version of the one held is dropped, and the one held stays with
        its index values. Not so when this goes back in time (`Replacement.regressed`), or with
        ``afresh``: after a restore of etcd the same version of the same object may be another
        state.

        The version becomes ``resource_version`` in any case.

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
        initial: bool = False,
    ) -> Replacing[T]:
        """Start an incremental `replace`: advance it until it is done, then `publish` it.

        Until then nothing has changed, and nothing else may be written; indexes may be added.
        With ``initial`` this is the first list: the transitions of new objects are marked so.
        """
        return Replacing(
            self._state,
            entries,
            resource_version,
            afresh=afresh,
            initial=initial,
            values_of=self._values_of,
        )

    def publish(self, work: Replacing[T]) -> Replacement[T]:
        """Hold the entries ``work`` was started with and nothing else; return the effect.

        Raises:
            UsageError: ``work`` is not done, or something was written meanwhile.
            IndexFunctionError: an index function that was added meanwhile failed; nothing was
                changed.
        """
        before, after = self._state, work.after
        # A write that came in between would be lost: the new state was built from the old one.
        if not work.is_done or work.before is not before or work.writes != before.writes:
            raise UsageError(
                "only a replacement that is done, with no write since its start, can be published"
            )
        is_ordered = versions.is_complete(work.result.resource_version, work.newest)
        # A relist that shows nothing new, as after most lost connections, must not cost a second
        # copy of the cache.
        if after is None:
            before.is_ordered = is_ordered
            before.move_to(work.result.resource_version)
            return work.result
        after.is_ordered = is_ordered
        if len(after.indexes) < len(before.indexes):  # some were added meanwhile
            names = before.indexes.keys() - after.indexes.keys()
            self._fill(after, [index for index in before.indexes.values() if index.name in names])
        self._state = after  # the one moment in which all of it becomes visible
        return work.result

    def bookmark(self, resource_version: str, *, of_list: bool = False) -> None:
        """Note that everything up to ``resource_version`` is in the store.

        Ignored if it is certainly older than the store's version, unless it is that ``of_list``:
        after a list, the store shows the state as of the list.
        """
        state = self._state
        newest = versions.newest(state.version, resource_version)
        state.move_to(resource_version if of_list else newest)

    def add_indexes(self, added: Iterable[Index[T]]) -> None:
        """Index the current entries, and all later ones, by more functions.

        The indexes are built aside and become visible at once, all of them or none. The store
        builds its own from each one's name and function: the given indexes stay unchanged.

        Raises:
            UsageError: if an index of such a name exists.
            IndexFunctionError: an index function failed; no index was added.
        """
        given = list(added)
        names = [*self._state.indexes, *(index.name for index in given)]
        for place, name in enumerate(names):
            if name in names[:place]:
                raise UsageError(f"there is an index named {name!r} already; choose another")
        self._fill(self._state, given)

    def _fill(self, state: _State[T], added: Iterable[Index[T]]) -> None:
        """Build the ``added`` indexes from the entries of ``state``, then add them to it."""
        fresh: dict[str, Index[T]] = {}
        for index in added:
            fresh[index.name] = empty = index.emptied()
            for key, entry in state.entries.items():
                empty.enter(key, entry, self._values_of(empty, entry))
        # One assignment: readers see all of the new indexes or none.
        state.indexes = {**state.indexes, **fresh}

    def _evaluated(
        self, changes: Sequence[Transition[T]], indexes: Mapping[str, Index[T]]
    ) -> dict[str, Sequence[Values]]:
        """Run the users' index functions on all new entries; nothing is changed yet (Rule 2).

        Built-in indexes cannot fail: they are evaluated when they are written.
        """
        found: dict[str, Sequence[Values]] = {}
        for name, index in indexes.items():
            if not index.is_built_in:
                found[name] = self._values(index, changes)
        return found

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


@final
class _State(Generic[T]):
    """Entries, indexes and version that belong together. No lock and no user code in here."""

    __slots__ = ("entries", "indexes", "is_ordered", "version", "writes")

    def __init__(self, indexes: dict[str, Index[T]], version: str) -> None:
        # Invariant: every entry is in every index, under the values that were given with it.
        self.entries: dict[ObjectName, Entry[T]] = {}
        self.indexes: dict[str, Index[T]] = indexes
        self.version: str = version
        # Whether versions grow with every write, as far as the last list shows. Those of
        # Kubernetes do; an aggregated server may number its objects in another way.
        self.is_ordered: bool = True
        self.writes: int = 0

    def move_to(self, version: str) -> None:
        """Set the version: the last step of every write."""
        self.version = version
        self.writes += 1

    def index(self, name: str) -> Index[T]:
        try:
            return self.indexes[name]
        except KeyError:
            raise UnknownIndexError(name, known=tuple(self.indexes)) from None

    def write(
        self,
        changes: Sequence[Transition[T]],
        values: Mapping[str, Sequence[Values]],
        version: str,
    ) -> None:
        """Perform ``changes``, each of which starts from the entry held and ends with another.

        A lock-free reader sees each entry or the previous one, never none in between.
        """
        entries = self.entries
        for change in changes:
            if change.new is None:
                del entries[change.key]
            else:
                entries[change.key] = change.new
        for name, index in self.indexes.items():
            index.write(changes, values.get(name))
        self.version = version
        self.writes += 1


def _plan(
    deltas: Iterable[Delta[T]], state: _State[T], *, initial: bool
) -> tuple[list[Transition[T]], str]:
    """Return the effect of each delta on ``state``, one after the other, and the version then.

    The rules are those of `ThreadSafeStore.apply`. Nothing is changed.
    """
    transitions: list[Transition[T]] = []
    ahead: dict[ObjectName, Entry[T] | None] = {}  # keys as they will be: a key may come twice
    version = state.version
    for delta in deltas:
        key, entry = delta.key, delta.entry
        old = ahead[key] if key in ahead else state.entries.get(key)
        new = ahead[key] = _outcome(delta, old, is_ordered=state.is_ordered)
        if new is None and old is not None:
            transitions.append(_deletion(delta, old))
        else:
            transitions.append(Transition(key, old, new, initial and old is None))
        if entry is not None and not delta.final_state_unknown and delta.type is not _SYNC:
            seen = entry.metadata.resource_version
            version = versions.newest(version, seen) if state.is_ordered else seen or version
    return transitions, version


def _deletion(delta: Delta[T], held: Entry[T]) -> Transition[T]:
    """Return the transition of a delete, with the final state if it is one of the held object."""
    final = delta.entry
    # Another uid: the delete of the held object was missed, and this one is of a later object.
    if final is None or delta.final_state_unknown or final.metadata.uid != held.metadata.uid:
        return Transition(delta.key, held, None, final_state_unknown=True)
    return Transition(delta.key, held, None, final=final)


def _outcome(delta: Delta[T], old: Entry[T] | None, *, is_ordered: bool) -> Entry[T] | None:
    """Return the entry that is held after ``delta`` where ``old`` was held before."""
    kind, entry = delta.type, delta.entry
    if old is None or entry is None or old is entry:
        return None if kind is _DELETED else entry
    was, now = old.metadata, entry.metadata
    if kind is _REPLACED or kind is _SYNC:
        return old if not delta.afresh and versions.same_version(was, now) else entry
    if kind is _DELETED:
        # A replay: the delete of an earlier object of that name.
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


@final
class Replacing(Generic[T]):
    """An incremental `ThreadSafeStore.replace`: ``before`` stays as it is, ``after`` grows.

    For a million objects that takes seconds, most of them in the users' index functions. An event
    loop that is blocked for so long loses leases and fails probes; so its owner advances this in
    steps, and publishes the result when it is done. First all entries are compared with those
    held. If nothing differs, as after most lost connections, nothing is built.
    """

    def __init__(
        self,
        before: _State[T],
        entries: Mapping[ObjectName, Entry[T]],
        resource_version: str,
        *,
        afresh: bool,
        initial: bool,
        values_of: Callable[[Index[T], Entry[T]], Values],
    ) -> None:
        self.before: Final = before
        self.writes: Final = before.writes
        self.after: _State[T] | None = None
        """The state to publish; ``None`` if only the version is new."""
        self.result: Final[Replacement[T]] = Replacement(
            [], [], [], [], before.version, resource_version
        )
        self.newest: str = ""
        """The newest version among the entries compared so far."""
        self.is_done: bool = False
        self._initial = initial
        self._values_of = values_of
        self._kept: set[ObjectName] = set()  # the listed keys that are held already
        # Else equal versions prove nothing.
        self._is_comparable = not (afresh or self.result.regressed)
        self._compared: Iterator[tuple[ObjectName, Entry[T]]] = iter(entries.items())
        self._to_build: Iterator[tuple[ObjectName, Entry[T]]] = iter(entries.items())

    def advance(self, count: int | None = None) -> bool:
        """Take a step of ``count`` entries, or all of them; return whether it is done.

        Raises:
            IndexFunctionError: an index function failed, and the store has no
                ``on_index_error``.
        """
        if self.after is None and not self.is_done and self._compare(count):
            self._find_deleted()
            result = self.result
            if result.added or result.changed or result.deleted:
                indexes: dict[str, Index[T]] = {}
                for name, index in self.before.indexes.items():
                    indexes[name] = index.emptied()
                self.after = _State(indexes, result.resource_version)
            else:
                self.is_done = True
        if self.after is not None and not self.is_done:
            self.is_done = self._build(self.after, count)
        return self.is_done

    def _compare(self, count: int | None) -> bool:
        before, result, initial = self.before.entries, self.result, self._initial
        kept, some = self._kept, list(itertools.islice(self._compared, count))
        for key, entry in some:
            self.newest = versions.newest(self.newest, entry.metadata.resource_version)
            old = before.get(key)
            if old is None:
                result.added.append(Transition(key, None, entry, initial))
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
        kept, deleted = self._kept, self.result.deleted
        if len(kept) == len(self.before.entries):
            return
        for key, old in self.before.entries.items():
            if key not in kept:
                deleted.append(Transition(key, old, None, final_state_unknown=True))

    def _build(self, after: _State[T], count: int | None) -> bool:
        before = self.before.entries
        some = list(itertools.islice(self._to_build, count))
        unchanged: set[ObjectName] = set()
        for place, (key, entry) in enumerate(some):
            old = before.get(key)
            if old is not None and self._is_same(old, entry):
                some[place] = key, old
                unchanged.add(key)
        after.entries.update(some)
        for name, index in after.indexes.items():
            was = self.before.indexes[name]
            for key, entry in some:
                if index.is_built_in:
                    values = index.values_of(entry)
                elif key in unchanged:
                    # The function is not run again on objects that did not change: a relist of a
                    # million objects would otherwise run a million user functions.
                    values = was.kept_values(key, entry)
                else:
                    values = self._values_of(index, entry)
                index.enter(key, entry, values)
        return count is None or len(some) < count
