"""Storage: objects of all resources in many versions, under one revision counter. Pure.

What etcd and the watch cache are to kube-apiserver. Every write gets the next revision, whatever
resource it is of; each resource remembers its last changes, so that a watch can begin in the past
and a list can show it.

Rule 1: a write is done when the call returns: listeners were told, in the order of revisions.
Rule 2: what was forgotten is never guessed at: to ask for it raises `Expired`.
"""

from __future__ import annotations

import bisect
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias, final

import msgspec

from kinform.meta import ObjectName

__all__ = [
    "Change",
    "Conflict",
    "Encode",
    "Exists",
    "Expired",
    "Future",
    "Missing",
    "Storage",
    "Stored",
    "Table",
]

HISTORY: Final = 10_000
"""How many changes each resource remembers, unless told otherwise."""
SNAPSHOTS: Final = 8
"""How many pictures of the past each resource keeps at hand, for lists in pages."""

Encode: TypeAlias = Callable[[str], bytes]
"""Makes an object's JSON, given its resourceVersion."""


class Exists(Exception):
    """There is an object of that name already."""


class Missing(Exception):
    """There is no object of that name."""


class Conflict(Exception):
    """The object is not in the version that was expected."""


class Expired(Exception):
    """That revision is forgotten; ``oldest`` is the oldest that is not."""

    def __init__(self, revision: int, oldest: int) -> None:
        super().__init__(f"revision {revision} is forgotten, the oldest is {oldest}")
        self.revision = revision
        self.oldest = oldest


class Future(Exception):
    """There is no such revision yet; ``current`` is the last one."""

    def __init__(self, revision: int, current: int) -> None:
        super().__init__(f"revision {revision} is to come, now is {current}")
        self.revision = revision
        self.current = current


@final
class Stored(msgspec.Struct, frozen=True, gc=False):
    """One version of one object: its JSON as it is sent, with its resourceVersion in it."""

    key: ObjectName
    raw: bytes
    revision: int
    """Of the write that made this version."""


@final
class Change(msgspec.Struct, frozen=True, gc=False):
    """One write. ``old`` is None for a new object.

    Of an object that is gone, ``new`` is its last state in the revision of its end.
    """

    revision: int
    key: ObjectName
    old: Stored | None
    new: Stored
    is_delete: bool = False


@final
class Table:
    """The objects of one resource, now and as far back as they are remembered."""

    __slots__ = ("_current", "_forgotten", "_history", "_keys", "_listeners", "_snapshots")

    def __init__(self, *, forgotten: int = 0, history: int = HISTORY) -> None:
        self._current: dict[ObjectName, Stored] = {}
        self._keys: list[ObjectName] = []  # Invariant: those of ``_current``, sorted.
        self._history: deque[Change] = deque(maxlen=history)
        # Invariant: every change after it is in ``_history``.
        self._forgotten = forgotten
        self._snapshots: OrderedDict[int, Sequence[Stored]] = OrderedDict()
        self._listeners: list[Callable[[Change], None]] = []

    def __len__(self) -> int:
        return len(self._current)

    @property
    def forgotten(self) -> int:
        """The last revision whose changes are forgotten: a watch can begin there, not before."""
        return self._forgotten

    # --- reading

    def get(self, key: ObjectName) -> Stored | None:
        """Return the object as it is now."""
        return self._current.get(key)

    def now(self) -> Sequence[Stored]:
        """Return all objects as they are now, in the order of their keys."""
        current = self._current
        return [current[key] for key in self._keys]

    def at(self, revision: int) -> Sequence[Stored]:
        """Return all objects as they were at ``revision``, in the order of their keys.

        Raises:
            Expired: that is too long ago.
        """
        if revision < self._forgotten:
            raise Expired(revision, self._forgotten)
        if not self._history or self._history[-1].revision <= revision:
            return self.now()
        if (known := self._snapshots.get(revision)) is not None:
            self._snapshots.move_to_end(revision)
            return known
        past = dict(self._current)
        for change in reversed(self._history):
            if change.revision <= revision:
                break
            if change.old is None:
                past.pop(change.key, None)
            else:
                past[change.key] = change.old
        found = [past[key] for key in sorted(past)]
        self._snapshots[revision] = found
        if len(self._snapshots) > SNAPSHOTS:
            self._snapshots.popitem(last=False)
        return found

    def since(self, revision: int) -> Iterator[Change]:
        """Yield all changes after ``revision``, in order.

        Raises:
            Expired: not all of them are remembered.
        """
        if revision < self._forgotten:
            raise Expired(revision, self._forgotten)
        history = self._history
        start = bisect.bisect_right(history, revision, key=lambda change: change.revision)
        for index in range(start, len(history)):
            yield history[index]

    def listen(self, listener: Callable[[Change], None]) -> Callable[[], None]:
        """Tell ``listener`` of every change from now on; return how to end that."""
        self._listeners.append(listener)

        def stop() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return stop

    # --- writing, by `Storage` alone

    def record(self, change: Change) -> None:
        """Take note of a change, and tell of it."""
        if change.is_delete:
            del self._current[change.key]
            del self._keys[bisect.bisect_left(self._keys, change.key)]
        else:
            if change.old is None:
                bisect.insort(self._keys, change.key)
            self._current[change.key] = change.new
        if len(self._history) == self._history.maxlen:
            self._forgotten = self._history[0].revision
        self._history.append(change)
        for listener in tuple(self._listeners):
            listener(change)

    def compact(self, revision: int) -> None:
        """Forget all changes up to ``revision``."""
        while self._history and self._history[0].revision <= revision:
            self._history.popleft()
        self._forgotten = max(self._forgotten, revision)
        for old in [one for one in self._snapshots if one < revision]:
            del self._snapshots[old]

    def restore(self, revision: int) -> None:
        """Be again as it was at ``revision``.

        Raises:
            Expired: that is too long ago.
        """
        past = self.at(revision)
        while self._history and self._history[-1].revision > revision:
            self._history.pop()
        self._current = {stored.key: stored for stored in past}
        self._keys = [stored.key for stored in past]
        self._snapshots.clear()


@final
class Storage:
    """All tables, and the revision they share. The first revision is 1, as in etcd."""

    def __init__(self, *, history: int = HISTORY) -> None:
        self._history = history
        self._tables: dict[str, Table] = {}
        self._compacted = 0
        self.revision: int = 1

    def table(self, resource: str) -> Table:
        """Return the table of a resource, such as ``pods`` or ``deployments.apps``."""
        table = self._tables.get(resource)
        if table is None:
            table = Table(forgotten=self._compacted, history=self._history)
            self._tables[resource] = table
        return table

    def create(self, resource: str, key: ObjectName, encode: Encode) -> Stored:
        """Store a new object.

        Raises:
            Exists: there is one of that name.
        """
        table = self.table(resource)
        if table.get(key) is not None:
            raise Exists(str(key))
        return self._write(table, key, encode)

    def update(
        self, resource: str, key: ObjectName, encode: Encode, *, expected: int | None = None
    ) -> Stored:
        """Store another version of an object, if it is still in the ``expected`` one.

        Raises:
            Missing: there is no such object.
            Conflict: it is in another version.
        """
        table = self.table(resource)
        self._check(table, key, expected)
        return self._write(table, key, encode)

    def delete(
        self, resource: str, key: ObjectName, encode: Encode, *, expected: int | None = None
    ) -> Stored:
        """Remove an object, if it is still in the ``expected`` version.

        ``encode`` makes its last state, which carries the revision of the deletion.

        Raises:
            Missing: there is no such object.
            Conflict: it is in another version.
        """
        table = self.table(resource)
        self._check(table, key, expected)
        return self._write(table, key, encode, is_delete=True)

    def compact(self, revision: int | None = None) -> None:
        """Forget all changes up to ``revision``, or up to now."""
        revision = self.revision if revision is None else revision
        self._compacted = max(self._compacted, revision)
        for table in self._tables.values():
            table.compact(revision)

    def restore(self, revision: int) -> None:
        """Be again as it was at ``revision``, counter included: an etcd from a backup.

        Raises:
            Expired: that is too long ago; nothing was changed.
            Future: there was no such revision.
        """
        if revision > self.revision:
            raise Future(revision, self.revision)
        for table in self._tables.values():
            table.at(revision)  # all of them, or none
        for table in self._tables.values():
            table.restore(revision)
        self.revision = revision

    def _check(self, table: Table, key: ObjectName, expected: int | None) -> None:
        held = table.get(key)
        if held is None:
            raise Missing(str(key))
        if expected is not None and held.revision != expected:
            raise Conflict(str(key))

    def _write(
        self, table: Table, key: ObjectName, encode: Encode, *, is_delete: bool = False
    ) -> Stored:
        revision = self.revision + 1
        stored = Stored(key, encode(str(revision)), revision)  # may raise: nothing has happened
        self.revision = revision
        table.record(Change(revision, key, table.get(key), stored, is_delete))
        return stored
