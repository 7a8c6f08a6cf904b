"""Guards of an informer's cache: an empty cache must not look like an empty cluster.

Rule 1: a cache that was never filled cannot be read. Rule 2: a key that no object can have is a
mistake of the caller, not an absent object. Both are checked where a read could mislead: until the
first sync, and when nothing was found. A read that finds something costs nothing more.
"""

from __future__ import annotations

import builtins
import contextvars
import enum
import logging
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar, final

from kinform.cache.thread_safe_store import ThreadSafeStore
from kinform.errors import UsageError
from kinform.meta import Entry, ObjectName

__all__ = ["Guard", "Guarded", "ReadGuard", "Role", "role"]

T = TypeVar("T")

log: Final = logging.getLogger(__name__)


class Role(enum.Enum):
    """For whom code runs, as far as a guard distinguishes it."""

    ANY = enum.auto()
    MANAGER = enum.auto()
    """A `Manager`: informers that it starts are its own."""
    RECONCILE = enum.auto()
    """A reconcile of a `Manager`."""


role: Final = contextvars.ContextVar[Role]("kinform_role", default=Role.ANY)
"""For whom this task runs."""


class Guard(Protocol):
    """What a `Store` asks about its readers."""

    def check(self) -> None:
        """Raise `UsageError` if the cache cannot be read now."""
        ...

    def check_key(self, key: object) -> None:
        """Raise `UsageError` if no object can have ``key``."""
        ...


class Life(Protocol):
    """What a guard asks of the informer's `Lifetime`."""

    @property
    def is_started(self) -> bool:
        """Whether it has begun; stays true."""
        ...

    is_over: bool


@final
class ReadGuard:
    """Checks the reads of one informer's cache. Any thread may call it.

    Args:
        name: the informer's.
        has_synced: whether the first list is in the cache.
        namespaced: whether the kind has namespaces; ``None`` if that is not known.
        known: the cache: where the scope is not known, its objects show it.
    """

    def __init__(
        self,
        name: str,
        life: Life,
        *,
        has_synced: Callable[[], bool],
        namespaced: Callable[[], bool | None],
        known: ThreadSafeStore[T],
    ) -> None:
        self._name = name
        self._life = life
        self._has_synced = has_synced
        self._namespaced = namespaced
        self._known = known
        self._seen: bool | None = None
        self._is_managed = False
        self._has_warned = False

    def started(self) -> None:
        """Note who has started the informer: a `Manager`, or any other code."""
        self._is_managed = role.get() is Role.MANAGER

    def check(self) -> None:
        """Refuse a read before the start; warn once of one before the first sync.

        Raises:
            UsageError: the informer was not started; or it has not synced, belongs to a
                `Manager`, and a reconcile reads it.
        """
        if not self._life.is_started and not self._life.is_over:
            raise UsageError(
                f"{self._name} was not started, so its cache holds nothing: use `async with "
                "informer` or `await factory.start()`, then `await informer.wait_synced()`"
            )
        if self._has_synced():
            return
        if self._is_managed and role.get() is Role.RECONCILE:
            raise UsageError(
                f"{self._name} has not synced, so a reconcile cannot rely on it: list the kind in "
                "owns or watches, or await informer.wait_synced() first"
            )
        if not self._has_warned:
            self._has_warned = True
            log.warning(
                "%s is read before its first sync, so objects may be missing; "
                "await informer.wait_synced() first",
                self._name,
            )

    def check_key(self, key: object) -> None:
        """Refuse a key that no object can have. Called for keys that the cache does not hold.

        Raises:
            UsageError: it is no key, or has no namespace where the kind has namespaces, or has
                one where the kind has none.
        """
        if isinstance(key, str):
            key = ObjectName.parse(key)
        if not isinstance(key, ObjectName):
            raise UsageError(
                f"{self._name}: a key is text like 'namespace/name' or an ObjectName, not "
                f"{type(key).__name__}; of an object pass obj.key"
            )
        namespace, name = key
        if not _is_segment(name) or (namespace and not _is_segment(namespace)):
            raise UsageError(
                f"{self._name}: no object can have the name {name!r} in the namespace "
                f"{namespace!r}; pass 'namespace/name', or lister.namespace('namespace')"
                ".get('name')"
            )
        namespaced = self._scope(by_content=not namespace)
        if namespaced and not namespace:
            raise UsageError(
                f"{self._name}: {name!r} has no namespace, and objects of this kind have one; pass "
                f"'namespace/{name}'"
            )
        if namespaced is False and namespace:
            raise UsageError(
                f"{self._name}: '{namespace}/{name}' has a namespace, and objects of this kind "
                f"have none; pass {name!r}"
            )

    def _scope(self, *, by_content: bool) -> bool | None:
        found = self._namespaced()
        if found is None and by_content:
            # All objects of a kind have the same scope. Remembered, because keys() is a copy.
            if self._seen is None and (keys := self._known.keys()):
                self._seen = bool(keys[0].namespace)
            found = self._seen
        return found


def _is_segment(text: object) -> bool:
    return isinstance(text, str) and bool(text) and "/" not in text


@final
class Guarded(Generic[T]):
    """Stands in the place of a `ThreadSafeStore`, and has every read checked first."""

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
