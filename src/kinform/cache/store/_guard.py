"""Guards of an informer's cache: an empty cache must not look like an empty cluster.

Rule 1: a cache that was never filled cannot be read.
Rule 2: a key that no object can have is a mistake of the caller, not an absent object.
Rule 3: a cache cannot be read in a forked child, where no task fills it.

The first two are checked where a read could mislead: until the first sync, and when nothing was
found. A successful read costs nothing more.
"""

from __future__ import annotations

import contextvars
import enum
import logging
import os
import weakref
from collections.abc import Callable, Sequence
from typing import Final, NoReturn, Protocol, final

from kinform.errors import UsageError
from kinform.meta import ObjectName

__all__ = [
    "Forkable",
    "Forked",
    "Guard",
    "ReadGuard",
    "Role",
    "filled",
    "no_longer_filled",
    "role",
]

log: Final = logging.getLogger(__name__)


class Role(enum.Enum):
    """The kind of code that runs in a task, as far as a guard distinguishes it."""

    ANY = enum.auto()
    MANAGER = enum.auto()
    """A `Manager`: informers that it starts are its own."""
    RECONCILE = enum.auto()
    """A reconcile of a `Manager`."""


role: Final = contextvars.ContextVar[Role]("kinform_role", default=Role.ANY)
"""The role of the current task."""


class Guard(Protocol):
    """The checks that a `Store` makes before it answers a reader."""

    def check(self) -> None:
        """Raise `UsageError` if the cache cannot be read now."""
        ...

    def check_key(self, key: object) -> None:
        """Raise `UsageError` if no object can have ``key``."""
        ...


class Life(Protocol):
    """The part of the informer's `Lifetime` that a guard reads."""

    @property
    def is_started(self) -> bool:
        """True if the informer was started; stays true."""
        ...

    is_over: bool


class _Cache(Protocol):
    def keys(self) -> Sequence[ObjectName]: ...


@final
class ReadGuard:
    """Checks the reads of one informer's cache. Any thread may call it.

    Args:
        name: the name of the informer.
        has_synced: returns whether the first list is in the cache.
        namespaced: returns whether the resource is namespaced; ``None`` if that is unknown.
        known: the cache: where the scope is unknown, it is taken from its objects.
    """

    def __init__(
        self,
        name: str,
        life: Life,
        *,
        has_synced: Callable[[], bool],
        namespaced: Callable[[], bool | None],
        known: _Cache,
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
        """Note whether a `Manager` has started the informer."""
        # By the task that starts it: a manager starts its informers in a context of its own.
        self._is_managed = role.get() is Role.MANAGER

    def check(self) -> None:
        """Refuse a read before the start; log a warning at the first read before the first sync.

        Raises:
            UsageError: the informer was not started; or it has not synced, belongs to a
                `Manager`, and a reconcile reads it.
        """
        # A stopped informer may be read: its last state is documented to stay.
        if not self._life.is_started and not self._life.is_over:
            raise UsageError(
                f"{self._name} was not started, so its cache holds nothing: use `async with "
                "informer` or `await factory.start()`, then `await informer.wait_synced()`"
            )
        if self._has_synced():
            return
        # An error only there: a reconcile that takes an object for absent would create it again or
        # delete its children. Other readers get a warning.
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
            UsageError: it is not a key, or has no namespace where the resource is namespaced, or
                has one where the resource is cluster-scoped.
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
            # All objects of a resource have the same scope. Kept, because keys() makes a copy.
            if self._seen is None and (keys := self._known.keys()):
                self._seen = bool(keys[0].namespace)
            found = self._seen
        return found


def _is_segment(text: object) -> bool:
    return isinstance(text, str) and bool(text) and "/" not in text


class Forkable(Protocol):
    """A cache whose content can be made unreadable: a `ThreadSafeStore`."""

    def abandon(self, message: str) -> None:
        """Refuse every read from now on."""
        ...


@final
class Forked:
    """Replaces the state of a store: every read raises `UsageError`."""

    __slots__ = ("_message",)

    def __init__(self, message: str) -> None:
        self._message = message

    def __getattr__(self, name: str) -> NoReturn:
        raise UsageError(self._message)


# Weak: a cache that is dropped without a stop must not be kept alive by this list.
_filled: Final[weakref.WeakSet[Forkable]] = weakref.WeakSet()
"""The caches that tasks of this process fill."""


def filled(cache: Forkable) -> None:
    """Note that ``cache`` is being filled: reading it in a forked child raises an error."""
    _filled.add(cache)


def no_longer_filled(cache: Forkable) -> None:
    """Note that ``cache`` will not change any more: a forked child may read it too."""
    _filled.discard(cache)


def _in_child() -> None:
    # The tasks that fill a cache run in the parent alone. In the child the cache would stay as it
    # was at the fork, without any sign of that. Doing this at the fork costs reads nothing.
    message = (
        f"this cache belongs to process {os.getppid()} and is not kept up to date after a fork: "
        "open a client and an informer of its own in the child"
    )
    for cache in tuple(_filled):
        cache.abandon(message)
    _filled.clear()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_in_child)
