"""Store and Indexer: the objects of a cache by key and by index.

A reflector or a controller fills them with entries; `Lister` and users read objects. Keys are
taken from the metadata of an entry. Indexes are described in `kinform.cache.store.indexes`.

client-go: tools/cache/store.go and index.go.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeAlias, TypeVar, cast, final

from kinform.cache.store._guard import Guard
from kinform.cache.store.indexes import (
    NAMESPACE_INDEX,
    OWNER_INDEX,
    Index,
    IndexFunc,
    function_index,
    namespace_of,
    owners_of,
)
from kinform.cache.store.thread_safe_store import OnIndexError, Replacement, ThreadSafeStore
from kinform.errors import UsageError
from kinform.meta import Entry, ObjectName
from kinform.sansio.queue.deltas import Delta, Transition

__all__ = ["Indexer", "Key", "Store"]

T = TypeVar("T")

Key: TypeAlias = ObjectName | str
"""The key of an object: an `ObjectName`, or its text, ``namespace/name`` or ``name``."""


class Store(Generic[T]):
    """Objects by key, and their version. The store never inspects a ``T``.

    >>> from kinform.meta import ObjectMeta
    >>> web = ObjectMeta(name="web", namespace="default", uid="u1", resource_version="7")
    >>> store: Store[str] = Store()
    >>> store.add(Entry(web, "any object"))
    >>> store.get("default/web"), "default/db" in store, store.resource_version
    ('any object', False, '7')

    One thread writes, any thread reads: see `ThreadSafeStore`. Every write takes effect as it is
    given, without a comparison of versions: the writer knows the order of events. Returned lists
    belong to the caller; the objects in them are shared, and must not be changed.

    Where a key may be given as text, text that cannot be a key raises ``ValueError``. The store of
    an informer also checks its readers: see `SharedInformer.indexer`.
    """

    __slots__ = ("_entries", "_guard")

    def __init__(self) -> None:
        self._entries: ThreadSafeStore[T] = ThreadSafeStore()
        self._guard: Guard | None = None

    def guard(self, guard: Guard) -> None:
        """Call ``guard`` before each read, until `release`, and for each key that is not held.

        For the owner of the store: an informer. The value of `entries` from before is not guarded.
        """
        self._guard = guard
        self._entries = cast("ThreadSafeStore[T]", _Guarded(self._entries, guard.check))

    def release(self) -> None:
        """Stop calling the guard before each read; it is still called for keys not held."""
        # A second call, or one for a store without a guard, finds the store itself.
        held = cast("object", self._entries)
        if isinstance(held, _Guarded):
            self._entries = cast("_Guarded[T]", held).store

    # --- reading, from any thread

    @property
    def entries(self) -> ThreadSafeStore[T]:
        """The underlying store: the objects with their metadata, by `ObjectName`."""
        return self._entries

    @property
    def resource_version(self) -> str:
        """The newest version whose changes are all in the store; ``""`` if none is known.

        Writes, relists and bookmarks advance it. Only a relist can take it back.
        """
        return self._entries.resource_version

    def get(self, item: Entry[T] | Key) -> T | None:
        """Return the object of that key, or of the key of that entry; ``None`` if there is none."""
        key = _key(item)
        entry = self._entries.get(key)
        if entry is None:
            self._check_absent(key)
            return None
        return entry.object

    def get_by_key(self, key: Key) -> T | None:
        """Return the object of ``key``, or ``None``.

        Raises:
            UsageError: ``key`` is not a key.
        """
        entry = self._entries.get(self._parsed(key) if not isinstance(key, ObjectName) else key)
        if entry is None:
            self._check_absent(key)
            return None
        return entry.object

    def _parsed(self, key: object) -> ObjectName:
        if isinstance(key, str):
            return ObjectName.parse(key)
        self._check_absent(key)
        raise _not_a_key(key)

    def __contains__(self, item: object) -> bool:
        if isinstance(item, str):
            item = ObjectName.parse(item)
        try:
            if item in self._entries:
                return True
        except TypeError:  # a list or a dict, for example
            self._check_absent(item)
            raise _not_a_key(item) from None
        self._check_absent(item)
        return False

    def __len__(self) -> int:
        return len(self._entries)

    def list(self) -> builtins.list[T]:
        """Return all objects, in no particular order."""
        return [entry.object for entry in self._entries.list()]

    def list_keys(self) -> builtins.list[ObjectName]:
        """Return all keys, in no particular order."""
        return self._entries.keys()

    def _check_absent(self, key: object) -> None:
        if self._guard is not None:
            self._guard.check_key(key)

    # --- writing, from one thread

    def add(self, entry: Entry[T]) -> Entry[T] | None:
        """Hold ``entry``, and return the entry that had its key before, or ``None``.

        Raises:
            UsageError: the entry's metadata has no name.
            IndexFunctionError: an index function failed; nothing was changed.
        """
        return self._entries.add(_own_key(entry), entry)

    def update(self, entry: Entry[T]) -> Entry[T] | None:
        """Do as `add`: client-go's name for writing a key that is held already.

        Raises:
            UsageError: the entry's metadata has no name.
            IndexFunctionError: an index function failed; nothing was changed.
        """
        return self._entries.add(_own_key(entry), entry)

    def delete(self, item: Entry[T] | Key) -> Entry[T] | None:
        """Remove an object and return its entry, or ``None``.

        Given the entry of a watch's DELETED event, the store moves to its version. Given a key,
        the version stays: the version of the deletion is unknown.
        """
        version = item.metadata.resource_version if isinstance(item, Entry) else ""
        return self._entries.delete(_key(item), resource_version=version)

    def apply(self, deltas: Iterable[Delta[T]]) -> builtins.list[Transition[T]]:
        """Write all ``deltas`` in order, as one transaction: see `ThreadSafeStore.apply`.

        Raises:
            IndexFunctionError: an index function failed; nothing was changed.
        """
        return self._entries.apply(deltas)

    def replace(
        self,
        entries: Mapping[ObjectName, Entry[T]],
        resource_version: str,
        *,
        afresh: bool = False,
    ) -> Replacement[T]:
        """Hold ``entries`` and nothing else: see `ThreadSafeStore.replace`.

        Each key must be that of the entry. The mapping is not kept.

        Raises:
            IndexFunctionError: an index function failed; nothing was changed.
        """
        return self._entries.replace(entries, resource_version, afresh=afresh)

    def bookmark(self, resource_version: str) -> None:
        """Note that everything up to ``resource_version`` is in the store.

        Ignored if it is certainly older than the store's version.
        """
        self._entries.bookmark(resource_version)

    def resync(self) -> None:
        """Do nothing: a store has no handlers. Queues do something here."""


@final
class Indexer(Store[T]):
    """A `Store` with indexes: two built-in ones, by namespace and by owner, and your own.

    >>> from kinform.meta import ObjectMeta
    >>> words: Indexer[str] = Indexer(indexers={"initial": lambda word: word[:1]})
    >>> for name in ("apple", "avocado", "beet"):
    ...     words.add(Entry(ObjectMeta(name=name, namespace="garden"), name))
    >>> words.by_index("initial", "a"), words.by_index("namespace", "garden")
    (['apple', 'avocado'], ['apple', 'avocado', 'beet'])

    An index function takes the object and returns the values it is found under: one, several or
    ``None``. It runs once for each change, before the change is visible, and the index keeps its
    result. It must depend on the object alone.

    Args:
        indexers: index functions by name.
        on_index_error: called when a function fails: see `ThreadSafeStore`. Without it the write
            fails, with nothing changed.

    Raises:
        UsageError: a name is that of a built-in index, or a function is not callable, or async.
    """

    __slots__ = ()

    def __init__(
        self,
        *,
        indexers: Mapping[str, IndexFunc[T]] | None = None,
        on_index_error: OnIndexError | None = None,
    ) -> None:
        built_in: builtins.list[Index[T]] = [
            Index(NAMESPACE_INDEX, namespace_of, is_built_in=True),
            Index(OWNER_INDEX, owners_of, is_built_in=True),
        ]
        self._guard = None
        self._entries = ThreadSafeStore(indexes=built_in, on_index_error=on_index_error)
        self.add_indexers(indexers or {})

    def add_indexers(self, indexers: Mapping[str, IndexFunc[T]]) -> None:
        """Index the current objects, and all later ones, by more functions.

        The indexes are built aside and become visible at once, all of them or none. This is a
        write: call it on the writer's thread, which is busy for as long as the functions take.

        Raises:
            UsageError: an index of such a name exists, or a function is not callable, or async.
            IndexFunctionError: a function failed; no index was added.
        """
        if not isinstance(indexers, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - untyped callers
            raise UsageError(
                f"indexers is of type {type(indexers).__name__}; expected functions by name"
            )
        self._entries.add_indexes(
            [function_index(name, function) for name, function in indexers.items()]
        )

    def index_names(self) -> builtins.list[str]:
        """Return the names of all indexes, the built-in ones first."""
        return self._entries.index_names()

    def by_index(self, index: str, value: str) -> builtins.list[T]:
        """Return the objects under ``value``, in no particular order; perhaps empty.

        Raises:
            UnknownIndexError: the index does not exist.
        """
        return [entry.object for entry in self._entries.by_index(index, value)]

    def index(self, index: str, entry: Entry[T]) -> builtins.list[T]:
        """Return, each once, the objects that share a value of the index with ``entry``.

        ``entry`` need not be held: the function runs on it.

        Raises:
            UnknownIndexError: the index does not exist.
            IndexFunctionError: the function failed on ``entry``.
        """
        return [found.object for found in self._entries.index(index, entry)]

    def index_keys(self, index: str, value: str) -> builtins.list[ObjectName]:
        """Return the keys of the objects under ``value``, sorted.

        Raises:
            UnknownIndexError: the index does not exist.
        """
        return self._entries.index_keys(index, value)

    def list_index_values(self, index: str) -> builtins.list[str]:
        """Return every value that has objects, each once, in no particular order.

        Raises:
            UnknownIndexError: the index does not exist.
        """
        return self._entries.list_index_values(index)


@final
class _Guarded(Generic[T]):
    """Replaces a `ThreadSafeStore` until `Store.release`: every read is checked first.

    A stand-in, and not a test in each method of `Store`: after the first sync reads cost nothing.
    """

    __slots__ = ("_check", "store")

    def __init__(self, store: ThreadSafeStore[T], check: Callable[[], None]) -> None:
        self.store: ThreadSafeStore[T] = store
        self._check = check

    def __getattr__(self, name: str) -> object:
        return getattr(self.store, name)  # writes, the names of indexes, the version

    def get(self, key: ObjectName) -> Entry[T] | None:
        """Return the entry of ``key``."""
        self._check()
        return self.store.get(key)

    def __contains__(self, key: object) -> bool:
        self._check()
        return key in self.store

    def __len__(self) -> int:
        self._check()
        return len(self.store)

    def list(self) -> builtins.list[Entry[T]]:
        """Return all entries."""
        self._check()
        return self.store.list()

    def keys(self) -> builtins.list[ObjectName]:
        """Return all keys."""
        self._check()
        return self.store.keys()

    def by_index(self, index: str, value: str) -> builtins.list[Entry[T]]:
        """Return the entries under ``value``."""
        self._check()
        return self.store.by_index(index, value)

    def index(self, index: str, entry: Entry[T]) -> builtins.list[Entry[T]]:
        """Return the entries that share a value with ``entry``."""
        self._check()
        return self.store.index(index, entry)

    def index_keys(self, index: str, value: str) -> builtins.list[ObjectName]:
        """Return the keys of the entries under ``value``."""
        self._check()
        return self.store.index_keys(index, value)

    def list_index_values(self, index: str) -> builtins.list[str]:
        """Return every value that has entries."""
        self._check()
        return self.store.list_index_values(index)


def _key(item: Entry[T] | Key) -> ObjectName:
    if isinstance(item, ObjectName):
        return item
    if isinstance(item, str):
        return ObjectName.parse(item)
    try:
        return item.metadata.key
    except AttributeError:
        raise _not_a_key(item) from None


def _not_a_key(item: object) -> UsageError:
    return UsageError(
        f"{type(item).__name__} is not a key; pass text like 'namespace/name' or an ObjectName"
    )


def _own_key(entry: Entry[T]) -> ObjectName:
    metadata = entry.metadata
    if not metadata.name:
        raise UsageError("an entry without metadata.name has no key and cannot be held")
    return ObjectName(metadata.namespace, metadata.name)
