"""Intake: the path of one object between its arrival and the store.

Nothing here waits or decides about requests: objects are transformed, unreadable objects are
quarantined, and all others are written. One `Intake` lives as long as its reflector.

Rule 1: The transform runs once for each object that arrives, by a list or by a watch.
Rule 2: One object never stops the informer of its kind. An unreadable object is quarantined by its
key, and no older version of it stays readable. A watch is ended by an object without a key, by an
object that arrives corrupted for the first time, and by a corrupted deletion, because a wrong name
would hide another object.
Rule 3: The version advances after the write that it belongs to, and goes back only with a list.
"""

from __future__ import annotations

import copy
import enum
import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, Generic, TypeAlias, TypeVar, final

from msgspec import UNSET
from msgspec.structs import force_setattr

from kinform.cache._reflector.expected_kind import KindCheck
from kinform.errors import DecodeError, ResourceVersionRegressed
from kinform.meta import Entry, ObjectMeta, ObjectName
from kinform.objects.object import Object
from kinform.rest.results import Bookmark, ListResult, Received, Unreadable, WatchEvent
from kinform.sansio import versions
from kinform.sansio.queue.interface import KnownObjects, ReflectorStore
from kinform.sansio.wire.watch import EventType

__all__ = ["TURN", "Intake", "TransformFunc"]

T = TypeVar("T")

log: Final = logging.getLogger(__name__)

TransformFunc: TypeAlias = Callable[[T], T]
"""Changes each object before it is stored; returns an object of the same kind."""

TURN: Final = 128
"""Objects of a page that are added before other tasks run: a few milliseconds at most."""

# Reading a member off an enum costs as much as the comparison itself.
_ADDED: Final = EventType.ADDED
_MODIFIED: Final = EventType.MODIFIED
_DELETED: Final = EventType.DELETED


class _History(enum.Enum):
    """The trust in versions: can an object of a known version be another object?

    After etcd was restored from a backup, the server counts its versions anew from an older one, so
    the same version may be another object.
    """

    TRUSTED = enum.auto()
    RESTORED = enum.auto()
    """The next list shows another history than the lists before."""
    REPLACING = enum.auto()
    """Such a list was written to a queue, and may not have reached the cache behind it."""


@final
class _PartialList(Generic[T]):
    """A list that is under way: the objects that it has brought so far."""

    __slots__ = ("entries", "has_reused", "known", "newest", "newest_length", "unreadable")

    def __init__(self, known: KnownObjects[T] | None = None) -> None:
        self.entries: dict[ObjectName, Entry[T]] = {}
        self.unreadable: dict[ObjectName, DecodeError] = {}
        self.newest = ""
        """The newest version of its objects."""
        self.newest_length = 0
        self.known = known
        """Known objects, which are kept instead of a second copy of the same version."""
        self.has_reused = False

    def drop(self, key: ObjectName) -> None:
        self.entries.pop(key, None)
        self.unreadable.pop(key, None)


@final
class _Corruption:
    """Distinguishes a server that stores corrupted objects from a connection that corrupts them.

    After the first corrupted event the watch is repeated from the version before it. If the same
    event is corrupted again, the server sends it so, and further corrupted events are accepted
    until the next list.
    """

    __slots__ = ("_is_sent", "_last")

    def __init__(self) -> None:
        self._last: tuple[ObjectName, str] | None = None
        self._is_sent = False

    def is_sent(self, metadata: ObjectMeta) -> bool:
        """Note a corrupted event; tell whether the server sends it so."""
        last, self._last = self._last, (metadata.key, metadata.resource_version)
        self._is_sent = self._is_sent or self._last == last
        return self._is_sent


@final
class Intake(Generic[T]):
    """Writes objects into ``store``, one event at a time or as a whole list.

    Attributes:
        version: the last version written; ``""`` before the first.
        events: how many events of watches were written.
        bookmarks: how many bookmarks of watches were received.
        stale_bookmarks: how many of them were older than the version written before.
    """

    def __init__(
        self,
        store: ReflectorStore[T],
        *,
        name: str,
        transform: TransformFunc[T] | None = None,
        settle: Callable[[Entry[T]], object] | None = None,
        expected_kind: str | None = None,
        known: KnownObjects[T] | None = None,
    ) -> None:
        self._store = store
        self._name = name
        self._transform = transform
        self._settle = settle
        self._kinds = KindCheck(expected_kind, name=name)
        self._known = known
        self._unreadable: dict[ObjectName, DecodeError] = {}
        self._list: _PartialList[T] = _PartialList()
        self._history = _History.TRUSTED
        self._corruption = _Corruption()
        # Whether versions grow with each write, as far as the last list shows.
        self._is_ordered = True
        # Whether ADDED events may be of any age: a watch from no version begins with the existing
        # objects, in no order of versions.
        self._is_replaying = False
        # Whether a quarantined object may be a corrupted one: spares a search with each read.
        self._may_have_corrupted = False
        self.version: str = ""
        self.events: int = 0
        self.bookmarks: int = 0
        self.stale_bookmarks: int = 0

    @property
    def unreadable(self) -> Mapping[ObjectName, DecodeError]:
        """The objects that exist and cannot be read, each with its error."""
        return MappingProxyType(self._unreadable)

    @property
    def has_corrupted(self) -> bool:
        """True if some of them arrived corrupted: the server's own copy can probably be read."""
        if self._may_have_corrupted:
            self._may_have_corrupted = any(it.is_damaged for it in self._unreadable.values())
        return self._may_have_corrupted

    @property
    def ignored(self) -> int:
        """The number of objects that were dropped because they are of another kind."""
        return self._kinds.refused

    # --- lists

    def begin_list(self, *, reuse: bool = False) -> None:
        """Drop the objects of a list that was not finished.

        With ``reuse`` a known object of the same version is kept instead of a second copy, which
        halves the memory of a relist. That is correct unless the list turns out to be older than
        the current contents: then it is not finished.
        """
        # A plain store has replaced its contents by now; a queue, when it is idle.
        if self._history is _History.REPLACING and getattr(self._store, "is_idle", True):
            self._history = _History.TRUSTED
        can_reuse = reuse and self._history is _History.TRUSTED
        self._list = _PartialList(self._known if can_reuse else None)

    def distrust(self) -> None:
        """Note that the server went back: in the next list, equal versions prove nothing.

        Not even if the server is ahead of this cache again by then.
        """
        self._history = _History.RESTORED

    @property
    def listed(self) -> int:
        """The number of objects that the list under way has brought so far."""
        return len(self._list.entries) + len(self._list.unreadable)

    def add_page(self, page: ListResult[T]) -> Iterator[None]:
        """Add the objects of one page; yield every `TURN` objects, so that other tasks can run.

        Raises:
            DecodeError: the answer is not a list of the expected kind.
        """
        accepted = self._kinds.of_list(page)
        # A restored server may show another object under a known version.
        if versions.is_older(page.resource_version, self.version):
            self._list.known = None
        entries = map(_lean, page.entries())
        chosen = entries if accepted is None else itertools.compress(entries, accepted)
        for number, entry in enumerate(chosen, 1):
            self._list_one(entry)
            if number % TURN == 0:
                yield
        for item in page.unreadable:
            self._list_unreadable(item)

    def add_streamed(self, batch: Iterable[Received[T] | Unreadable]) -> str | None:
        """Add events of a streamed list; return the version of its end bookmark, or ``None``.

        ``batch`` is an iterator. After the end bookmark it yields the events that are for `write`.

        Raises:
            DecodeError: a change has no key, so one object of the list is outdated.
        """
        for event in batch:
            if isinstance(event, Bookmark):
                self.bookmarks += 1
                if event.initial_events_end:
                    return event.resource_version
            elif event.type is not _ADDED and not event.metadata.name:
                raise _nameless(event)
            elif isinstance(event, Unreadable):
                self._list_unreadable(event)
            elif event.type is _DELETED:
                self._list.drop(event.metadata.key)
            elif self._kinds.accepts(event.object):
                self._list_one(_lean(Entry(event.metadata, event.object)))
        return None

    def finish_list(self, resource_version: str) -> int:
        """Replace the contents of the store by the list; return the number of objects.

        Raises:
            ResourceVersionRegressed: the list is older than the current contents, and objects of
                these were reused for it: on another history the same version may be another
                object. The next list reuses none.
        """
        self._corruption = _Corruption()
        finished = self._list
        is_older = versions.is_older(resource_version, self.version)
        if is_older and finished.has_reused:
            self.distrust()
            raise ResourceVersionRegressed(self.version, resource_version)
        if self._history is _History.RESTORED or is_older:
            self._store.replace(finished.entries, resource_version, afresh=True)
            self._history = _History.REPLACING  # not before: a store may refuse the list
        else:  # without ``afresh``, which a user's store need not accept
            self._store.replace(finished.entries, resource_version)
        self._is_ordered = versions.is_complete(resource_version, finished.newest)
        # After the write: a store may refuse the list, and then the quarantine of before still
        # holds.
        self._unreadable = finished.unreadable
        self._may_have_corrupted = bool(finished.unreadable)
        self.version = resource_version
        # Frees the entries of this one: the store owns them now.
        self.begin_list()
        return len(finished.entries)

    def _list_one(self, entry: Entry[T]) -> None:
        key, under_way = entry.metadata.key, self._list
        if not key.name:
            nameless = DecodeError("the list holds an object without metadata.name")
            self._list_unreadable(Unreadable(entry.metadata, nameless))
            return
        seen, newest = entry.metadata.resource_version, under_way.newest
        # Most objects are older than the newest so far. This check skips them without a function
        # call: a newer version is longer, or greater as text. The store calls `newest` for each
        # object as well.
        if seen > newest or seen[under_way.newest_length :]:
            under_way.newest = versions.newest(newest, seen)
            under_way.newest_length = len(under_way.newest)
        held = None if under_way.known is None else under_way.known.get(key)
        if held is not None and versions.same_version(held.metadata, entry.metadata):
            if under_way.unreadable:
                under_way.unreadable.pop(key, None)
            under_way.entries[key] = held
            under_way.has_reused = True
            return
        if self._transform is None and not under_way.unreadable:  # the usual case, without calls
            prepared: Entry[T] | None = entry
        else:
            prepared = self._prepared(key, entry, under_way.unreadable)
        if prepared is None:
            under_way.entries.pop(key, None)
            return
        if self._settle is not None:
            self._settle(prepared)
        under_way.entries[key] = prepared

    def _list_unreadable(self, item: Unreadable) -> None:
        if item.type is _DELETED:
            self._list.unreadable.pop(item.metadata.key, None)
        else:
            self._quarantine(item, self._list.unreadable)
        self._list.entries.pop(item.metadata.key, None)

    # --- watches

    def begin_watch(self, resource_version: str) -> None:
        """Note the version from which the next events come."""
        self._is_replaying = resource_version in {"", "0"}

    def write(self, batch: Iterable[Received[T] | Unreadable]) -> None:
        """Write the events of a watch, in order.

        Raises:
            DecodeError: an object has no key, or arrived corrupted. All events before it are
                written, so that a watch from ``version`` brings it again.
        """
        for event in batch:
            if isinstance(event, Bookmark):
                self._write_bookmark(event.resource_version)
            elif isinstance(event, Unreadable):
                self._write_unreadable(event)
            else:
                self._write_event(event)

    def _write_event(self, event: WatchEvent[T]) -> None:
        metadata, kind, obj = event.metadata, event.type, event.object
        if not metadata.name:
            raise _nameless(event)
        # The version does not advance by it: it may come again after the next opening, and is
        # dropped again.
        if not self._kinds.accepts(obj):
            return
        self.events += 1
        entry = _lean(Entry(metadata, obj))
        if kind is _DELETED:
            # Handlers get the final state as the transform leaves it. If the transform fails, the
            # object is deleted all the same.
            prepared = self._prepared(metadata.key, entry, {}) if self._transform else entry
            self._store.delete(prepared or metadata.key)
            self._unreadable.pop(metadata.key, None)
        else:
            self._write_present(entry, is_new=kind is _ADDED)
        self._advance(metadata, kind)

    def _write_present(self, entry: Entry[T], *, is_new: bool) -> None:
        if self._transform is None and not self._unreadable:  # the usual case, without calls
            prepared: Entry[T] | None = entry
        else:
            prepared = self._prepared(entry.metadata.key, entry, self._unreadable)
        if prepared is None:
            self._delete_unseen(entry.metadata)
        elif is_new:
            self._store.add(prepared)
        else:
            self._store.update(prepared)

    def _write_unreadable(self, event: Unreadable) -> None:
        if not event.metadata.name:
            raise _nameless(event)
        is_deletion = event.type is _DELETED
        if event.error.is_damaged and (is_deletion or not self._corruption.is_sent(event.metadata)):
            raise DecodeError("an event arrived corrupted", key=str(event.metadata.key))
        self.events += 1
        if is_deletion:
            self._unreadable.pop(event.metadata.key, None)
        else:
            self._quarantine(event, self._unreadable)
        self._delete_unseen(event.metadata)
        self._advance(event.metadata, event.type)

    def _delete_unseen(self, metadata: ObjectMeta) -> None:
        """Delete an object by its key, and advance the version of the store all the same."""
        self._store.delete(metadata.key)
        if metadata.resource_version and not self._is_replaying:
            self._store.bookmark(metadata.resource_version)

    def _write_bookmark(self, version: str) -> None:
        self.bookmarks += 1
        self._is_replaying = False
        if self._is_ordered and versions.is_older(version, self.version):
            self.stale_bookmarks += 1
        elif version:
            self._store.bookmark(version)
            self.version = version

    def _advance(self, metadata: ObjectMeta, kind: EventType) -> None:
        if self._is_replaying:
            # client-go: kubernetes#136583. Existing objects come in no order of versions.
            if kind is _ADDED:
                return
            self._is_replaying = False
        if self._is_ordered:
            self.version = versions.newest(self.version, metadata.resource_version)
        else:  # versions without an order: the server knows where its last event was
            self.version = metadata.resource_version or self.version

    # --- single objects

    def _prepared(
        self, key: ObjectName, entry: Entry[T], unreadable: dict[ObjectName, DecodeError]
    ) -> Entry[T] | None:
        """Return the entry as it is stored; ``None`` if the transform fails: it is quarantined."""
        if self._transform is None:
            unreadable.pop(key, None)
            return entry
        try:
            obj = self._transform(entry.object)
        except Exception as exc:  # noqa: BLE001 - a user's code, and one object of many
            error = DecodeError(f"the transform raised {type(exc).__name__}", key=str(key))
            # Kept as long as the object is unreadable: the traceback would keep the page and the
            # object alive.
            error.__cause__ = exc.with_traceback(None)
        else:
            if obj is not None or entry.object is None:
                unreadable.pop(key, None)
                return entry if obj is entry.object else _without_annotations(entry.metadata, obj)
            error = DecodeError("the transform returned None", key=str(key))
        self._quarantine(Unreadable(entry.metadata, error), unreadable)
        return None

    def _quarantine(self, item: Unreadable, unreadable: dict[ObjectName, DecodeError]) -> None:
        key = item.metadata.key
        known = self._unreadable.get(key) or unreadable.get(key)
        if known is None or str(known) != str(item.error):  # logged once, not with each relist
            what = key.shown if key.name else "an object"
            log.error("%s: %s cannot be read: %s", self._name, what, item.error)
        unreadable[key] = item.error
        self._may_have_corrupted = self._may_have_corrupted or item.error.is_damaged


def _lean(entry: Entry[T]) -> Entry[T]:
    """Return the entry without the annotations in the metadata of a projection.

    They are never read from there: an `Object` has its own, a model has those that it declares.
    """
    if not entry.metadata.raw_annotations or isinstance(entry.object, Object):
        return entry
    return _without_annotations(entry.metadata, entry.object)


def _without_annotations(metadata: ObjectMeta, obj: T) -> Entry[T]:
    """Return an entry of ``obj`` that does not keep the response body alive.

    Annotations are a slice of it.
    """
    metadata = copy.copy(metadata)  # the caller may hold the other one
    force_setattr(metadata, "raw_annotations", UNSET)
    return Entry(metadata, obj)


def _nameless(event: WatchEvent[T] | Unreadable) -> DecodeError:
    """Return the error of an event without a key: only a list shows which object has changed."""
    if isinstance(event, Unreadable):
        return event.error
    return DecodeError(f"the watch brought a {event.type} object without metadata.name")
