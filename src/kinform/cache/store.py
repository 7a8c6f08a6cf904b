"""Store: a cache's objects by key, with keys taken from their metadata.

client-go: tools/cache/store.go. The left end is whatever fills it, a reflector or a controller;
to the right stand `Lister` and the users, who see objects and never the entries around them.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from typing import Generic, TypeAlias, TypeVar, cast

from kinform.cache.guard import Guard, Guarded
from kinform.cache.thread_safe_store import ThreadSafeStore
from kinform.cache.transitions import Replacement, Transition
from kinform.errors import UsageError
from kinform.meta import Entry, ObjectName
from kinform.sansio.deltas import Delta

__all__ = ["Key", "Store"]

T = TypeVar("T")

Key: TypeAlias = ObjectName | str
"""Which object: an `ObjectName`, or its text, ``namespace/name`` or ``name``."""


class Store(Generic[T]):
    """Objects by key, and the version they show. ``T`` is never looked into.

    >>> from kinform.meta import ObjectMeta
    >>> web = ObjectMeta(name="web", namespace="default", uid="u1", resource_version="7")
    >>> store: Store[str] = Store()
    >>> store.add(Entry(web, "any object"))
    >>> store.get("default/web"), "default/db" in store, store.resource_version
    ('any object', False, '7')

    One thread writes, any thread reads, as `ThreadSafeStore` says. Every write takes effect as
    it is given, whatever version the store has: whoever fills it knows the order of events.
    Lists are the caller's own; the objects in them are everybody's, to be read only.

    Wherever a key may be given as text, text that is no key raises ``ValueError``. An informer's
    store also checks its readers: see `SharedInformer.indexer`.
    """

    __slots__ = ("_entries", "_guard")

    def __init__(self) -> None:
        self._entries: ThreadSafeStore[T] = ThreadSafeStore()
        self._guard: Guard | None = None

    def guard(self, guard: Guard) -> None:
        """Have ``guard`` asked before each read, until `release`, and for keys that are not held.

        For the owner of the store: an informer. What `entries` returned before is not guarded.
        """
        self._guard = guard
        self._entries = cast("ThreadSafeStore[T]", Guarded(self._entries, guard.check))

    def release(self) -> None:
        """Let reads pass from now on: only keys that are not held are still checked."""
        held = cast("object", self._entries)
        if isinstance(held, Guarded):
            self._entries = cast("Guarded[T]", held).store

    # --- reading, from any thread

    @property
    def entries(self) -> ThreadSafeStore[T]:
        """What the store is made of: the objects with their metadata, by `ObjectName`."""
        return self._entries

    @property
    def resource_version(self) -> str:
        """The newest version whose changes are all in the store; ``""`` if none is known.

        It follows writes, relists and bookmarks. Only a relist can take it back.
        """
        return self._entries.resource_version

    def get(self, item: Entry[T] | Key) -> T | None:
        """Return the object of that key, or what the store holds of the object in that entry."""
        key = _key(item)
        entry = self._entries.get(key)
        if entry is None:
            self._check_absent(key)
            return None
        return entry.object

    def get_by_key(self, key: Key) -> T | None:
        """Return the object of ``key``, if there is one."""
        entry = self._entries.get(ObjectName.parse(key) if isinstance(key, str) else key)
        if entry is None:
            self._check_absent(key)
            return None
        return entry.object

    def __contains__(self, item: object) -> bool:
        if isinstance(item, str):
            item = ObjectName.parse(item)
        if item in self._entries:
            return True
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
        """Hold ``entry``, in the place of what has its key, and return that.

        Raises:
            UsageError: the entry's metadata has no name.
            IndexFunctionError: an index function failed; nothing was changed.
        """
        return self._entries.add(_own_key(entry), entry)

    def update(self, entry: Entry[T]) -> Entry[T] | None:
        """Do as `add`: client-go's other word, for those who know the key is there.

        Raises:
            UsageError: the entry's metadata has no name.
            IndexFunctionError: an index function failed; nothing was changed.
        """
        return self._entries.add(_own_key(entry), entry)

    def delete(self, item: Entry[T] | Key) -> Entry[T] | None:
        """Forget an object and return what was held of it, if anything.

        Given the entry that a watch showed with the deletion, the store's version moves to its
        version. Given a key, the version stays: nobody knows when it happened.
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

        Each key is the entry's own. The mapping is not kept.

        Raises:
            IndexFunctionError: an index function failed; nothing was changed.
        """
        return self._entries.replace(entries, resource_version, afresh=afresh)

    def bookmark(self, resource_version: str) -> None:
        """Note that everything up to ``resource_version`` is in the store.

        Ignored if it is certainly older than the version the store has.
        """
        self._entries.bookmark(resource_version)

    def resync(self) -> None:
        """Do nothing: a store has nobody to tell everything to again. Queues do."""


def _key(item: Entry[T] | Key) -> ObjectName:
    if isinstance(item, ObjectName):
        return item
    if isinstance(item, str):
        return ObjectName.parse(item)
    try:
        return item.metadata.key
    except AttributeError:
        raise _no_key(item) from None


def _no_key(item: object) -> UsageError:
    return UsageError(
        f"{type(item).__name__} is no key; pass text like 'namespace/name' or an ObjectName"
    )


def _own_key(entry: Entry[T]) -> ObjectName:
    metadata = entry.metadata
    if not metadata.name:
        raise UsageError("an entry without metadata.name has no key and cannot be held")
    return ObjectName(metadata.namespace, metadata.name)
