"""Storage: objects of all resources in many versions, under one revision counter. Pure.

The counterpart of etcd and the watch cache. All resources share the revision: every write gets the
next one. Each resource remembers its last changes, so that a watch can begin in the past and a list
can show a past state.

Keys are those of etcd without their prefix: ``namespace/name``, or ``name`` alone. They are sorted
as text, so ``a-b/x`` comes before ``a/x``, which is the order of every list.

Rule 1: a write is done when the call returns: listeners were notified, in the order of revisions.
Rule 2: a forgotten revision is never approximated: reading it raises `RevisionExpired`.
"""

from __future__ import annotations

import bisect
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Protocol, TypeAlias, final

import msgspec

__all__ = [
    "Change",
    "Conflict",
    "DurableLog",
    "Encode",
    "Exists",
    "Future",
    "Missing",
    "ObjectDraft",
    "Observer",
    "ResourceTable",
    "RevisionExpired",
    "Storage",
    "Stored",
    "Unsaved",
]

HISTORY: Final = 10_000
"""The default number of changes that each resource remembers."""
SNAPSHOTS: Final = 8
"""The number of past states that each resource caches, for lists in pages."""
_LAST: Final = chr(0x10FFFF)
"""Sorts behind every character of a key."""
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})

Encode: TypeAlias = Callable[[str], bytes]
"""Makes an object's JSON, given its resourceVersion."""
Observer: TypeAlias = "Callable[[str, Change], None]"
"""Called with the resource and the change, after the change."""


class Exists(Exception):
    """There is an object of that name already."""


class Missing(Exception):
    """An object of that name does not exist."""


class Conflict(Exception):
    """The object is not in the version that was expected."""


class RevisionExpired(Exception):
    """That revision is forgotten; ``oldest`` is the oldest that is not."""

    def __init__(self, revision: int, oldest: int) -> None:
        super().__init__(f"revision {revision} is forgotten, the oldest is {oldest}")
        self.revision = revision
        self.oldest = oldest


class Future(Exception):
    """The revision does not exist yet; ``current`` is the last one."""

    def __init__(self, revision: int, current: int) -> None:
        super().__init__(f"revision {revision} is to come, now is {current}")
        self.revision = revision
        self.current = current


class Unsaved(Exception):
    """A write is in memory only, and would not survive a crash."""


@final
class Stored(msgspec.Struct, frozen=True, gc=False):
    """One version of one object, with what selectors look at."""

    key: str
    raw: bytes
    """Its JSON without ``kind`` and ``apiVersion``, with its resourceVersion."""
    revision: int
    """Of the write that made this version."""
    labels: Mapping[str, str] = _NOTHING
    fields: Mapping[str, str] = _NOTHING
    """The values of the fields that can be selected."""
    uid: str = ""
    owners: tuple[str, ...] = ()
    """The uids of its owners."""


@final
class ObjectDraft(msgspec.Struct, frozen=True):
    """An object as it is to be stored."""

    encode: Encode
    labels: Mapping[str, str] = _NOTHING
    fields: Mapping[str, str] = _NOTHING
    uid: str = ""
    owners: tuple[str, ...] = ()


@final
class Change(msgspec.Struct, frozen=True, gc=False):
    """One write. ``old`` is None for a new object.

    Of an object that is gone, ``new`` is its last state in the revision of its end.
    """

    revision: int
    key: str
    old: Stored | None
    new: Stored
    is_delete: bool = False


class DurableLog(Protocol):
    """The durable copy of a storage."""

    def note(self, resource: str, change: Change) -> None:
        """Record a change."""
        ...

    def reset(self) -> None:
        """Read the storage again: it was restored."""
        ...

    async def saved(self) -> None:
        """Wait until all that was written before this call is durable."""
        ...


@final
class ResourceTable:
    """The objects of one resource, now and as far back as they are remembered."""

    __slots__ = ("_forgotten", "_history", "_keys", "_listeners", "_snapshots", "current")

    def __init__(self, *, forgotten: int = 0, history: int = HISTORY) -> None:
        self.current: Final[dict[str, Stored]] = {}
        """The current objects by key. Written by this class alone."""
        self._keys: list[str] = []  # Invariant: those of ``current``, sorted.
        self._history: deque[Change] = deque(maxlen=history)
        # Invariant: every change after it is in ``_history``.
        self._forgotten = forgotten
        self._snapshots: OrderedDict[int, Sequence[Stored]] = OrderedDict()
        self._listeners: list[Callable[[], None]] = []

    def __len__(self) -> int:
        return len(self.current)

    @property
    def forgotten(self) -> int:
        """The last revision whose changes are forgotten: a watch can begin there, not before."""
        return self._forgotten

    # --- reading

    def get(self, key: str) -> Stored | None:
        """Return the object as it is now."""
        return self.current.get(key)

    def now(self, prefix: str = "") -> Sequence[Stored]:
        """Return the objects whose keys begin with ``prefix``, in the order of their keys."""
        current, keys = self.current, self._keys
        if prefix:
            start = bisect.bisect_left(keys, prefix)
            keys = keys[start : bisect.bisect_left(keys, prefix + _LAST, start)]
        return [current[key] for key in keys]

    def at(self, revision: int, prefix: str = "") -> Sequence[Stored]:
        """Return the objects as they were at ``revision``, in the order of their keys.

        Raises:
            Expired: that is too long ago.
        """
        if revision < self._forgotten:
            raise RevisionExpired(revision, self._forgotten)
        if not self._history or self._history[-1].revision <= revision:
            return self.now(prefix)
        past = self._past(revision)
        return [one for one in past if one.key.startswith(prefix)] if prefix else past

    def _past(self, revision: int) -> Sequence[Stored]:
        if (known := self._snapshots.get(revision)) is not None:
            self._snapshots.move_to_end(revision)
            return known
        past = dict(self.current)
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
            raise RevisionExpired(revision, self._forgotten)
        history = self._history
        start = bisect.bisect_right(history, revision, key=lambda change: change.revision)
        for index in range(start, len(history)):
            yield history[index]

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` after every change from now on; return how to end that.

        It reads with `since` what has changed, so nothing waits for a listener that is slow.
        """
        self._listeners.append(listener)

        def stop() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return stop

    # --- writing, by `Storage` alone

    def record(self, change: Change) -> None:
        """Apply a change, and notify the listeners."""
        if change.is_delete:
            del self.current[change.key]
            del self._keys[bisect.bisect_left(self._keys, change.key)]
        else:
            if change.old is None:
                bisect.insort(self._keys, change.key)
            self.current[change.key] = change.new
        if len(self._history) == self._history.maxlen:
            self._forgotten = self._history[0].revision
        self._history.append(change)
        self.notify()

    def notify(self) -> None:
        """Call all listeners."""
        for listener in tuple(self._listeners):
            listener()

    def compact(self, revision: int) -> None:
        """Forget all changes up to ``revision``."""
        while self._history and self._history[0].revision <= revision:
            self._history.popleft()
        self._forgotten = max(self._forgotten, revision)
        for old in [one for one in self._snapshots if one < revision]:
            del self._snapshots[old]

    def load(self, stored: Stored) -> None:
        """Load an object from a backup, without a change and without notifications."""
        if stored.key not in self.current:
            bisect.insort(self._keys, stored.key)
        self.current[stored.key] = stored

    def restore(self, revision: int) -> None:
        """Restore the state at ``revision``.

        Raises:
            Expired: that is too long ago.
        """
        past = self.at(revision)
        while self._history and self._history[-1].revision > revision:
            self._history.pop()
        self.current.clear()
        self.current.update((stored.key, stored) for stored in past)
        self._keys = [stored.key for stored in past]
        self._snapshots.clear()


@final
class Storage:
    """All tables, and the revision they share. The first revision is 1, as in etcd."""

    def __init__(self, *, history: int = HISTORY) -> None:
        self._history = history
        self._tables: dict[str, ResourceTable] = {}
        self._compacted = 0
        self._observers: list[tuple[Observer, frozenset[str] | None]] = []
        self.revision: int = 1
        self.epoch: int = 0
        """Counts the restores: what was read in another epoch may never have happened."""
        self.journal: DurableLog | None = None
        """Makes it outlive the process; None: it does not."""

    def table(self, resource: str) -> ResourceTable:
        """Return the table of a resource, such as ``pods`` or ``deployments.apps``."""
        table = self._tables.get(resource)
        if table is None:
            table = ResourceTable(forgotten=self._compacted, history=self._history)
            self._tables[resource] = table
        return table

    def resources(self) -> Sequence[str]:
        """Return the names of all tables."""
        return list(self._tables)

    def get(self, resource: str, key: str) -> Stored | None:
        """Return the current version of an object, None if it does not exist."""
        table = self._tables.get(resource)
        if table is None:
            table = self.table(resource)
        return table.current.get(key)

    def observe(self, observer: Observer, *, resources: Iterable[str] | None = None) -> None:
        """Call ``observer`` within every write to these resources; None: to any resource."""
        of = None if resources is None else frozenset(resources)
        self._observers.append((observer, of))

    def load(self, revision: int, rows: Iterable[tuple[str, Stored]]) -> None:
        """Begin where another storage was at ``revision``, whose past is unknown."""
        self.revision = revision
        self.compact()
        for resource, stored in rows:
            self.table(resource).load(stored)

    async def saved(self) -> None:
        """Wait until all earlier writes are durable, if the storage has a journal.

        Call it before a write is reported to a client.

        Raises:
            Unsaved: they could not be saved.
        """
        if self.journal is not None:
            await self.journal.saved()

    def create(self, resource: str, key: str, draft: ObjectDraft) -> Stored:
        """Store a new object.

        Raises:
            Exists: there is one of that name.
        """
        if self.get(resource, key) is not None:
            raise Exists(key)
        return self._write(resource, key, draft)

    def update(
        self, resource: str, key: str, draft: ObjectDraft, *, expected: int | None = None
    ) -> Stored:
        """Store another version of an object, if it is still in the ``expected`` one.

        Raises:
            Missing: the object does not exist.
            Conflict: it is in another version.
        """
        self._check(resource, key, expected)
        return self._write(resource, key, draft)

    def delete(
        self, resource: str, key: str, draft: ObjectDraft, *, expected: int | None = None
    ) -> Stored:
        """Remove an object, if it is still in the ``expected`` version.

        ``draft`` is its last state, which carries the revision of the deletion.

        Raises:
            Missing: the object does not exist.
            Conflict: it is in another version.
        """
        self._check(resource, key, expected)
        return self._write(resource, key, draft, is_delete=True)

    def compact(self, revision: int | None = None) -> None:
        """Forget all changes up to ``revision``, or up to now."""
        revision = self.revision if revision is None else revision
        self._compacted = max(self._compacted, revision)
        for table in self._tables.values():
            table.compact(revision)

    def restore(self, revision: int) -> None:
        """Restore the state at ``revision``, with the counter, as etcd from a backup.

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
        if self.journal is not None:
            self.journal.reset()
        self.disconnect()

    def disconnect(self) -> None:
        """Begin a new epoch: listeners are notified, and must end their watches."""
        self.epoch += 1
        for table in self._tables.values():
            table.notify()

    def _check(self, resource: str, key: str, expected: int | None) -> None:
        held = self.get(resource, key)
        if held is None:
            raise Missing(key)
        if expected is not None and held.revision != expected:
            raise Conflict(key)

    def _write(
        self, resource: str, key: str, draft: ObjectDraft, *, is_delete: bool = False
    ) -> Stored:
        revision = self.revision + 1
        raw = draft.encode(str(revision))  # may raise: nothing has happened
        stored = Stored(key, raw, revision, draft.labels, draft.fields, draft.uid, draft.owners)
        self.revision = revision
        table = self.table(resource)
        change = Change(revision, key, table.current.get(key), stored, is_delete)
        table.record(change)
        if self.journal is not None:
            self.journal.note(resource, change)
        for observer, resources in self._observers:
            if resources is None or resource in resources:
                observer(resource, change)
        return stored
