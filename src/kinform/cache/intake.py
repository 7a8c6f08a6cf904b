"""Intake: what becomes of one object between its arrival and the store.

Here nothing waits and nothing is decided about requests: objects are transformed, those that
cannot be read are set apart, and the rest is written. One `Intake` lives as long as its reflector.

Rule 1: the transform runs once for each object that arrives, whichever way it arrives.
Rule 2: one object never takes its kind down. What cannot be read is set apart by its key, and no
older version of it stays readable. What ends a watch: an object without a key, one that came
damaged for the first time, and a deletion that came damaged, for a wrong name would hide it.
Rule 3: the version moves after the write it speaks of, and never back but with a list.
"""

from __future__ import annotations

import copy
import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, Generic, TypeAlias, TypeVar, final

from msgspec import UNSET
from msgspec.structs import force_setattr

from kinform.cache.kinds import KindCheck
from kinform.errors import DecodeError, ResourceVersionRegressed
from kinform.meta import Entry, ObjectMeta, ObjectName
from kinform.objects import Object
from kinform.rest.results import Bookmark, ListResult, Received, Unreadable, WatchEvent
from kinform.sansio import versions
from kinform.sansio.queue import KnownObjects, ReflectorStore
from kinform.sansio.watch import EventType

__all__ = ["TURN", "Intake", "TransformFunc"]

T = TypeVar("T")

log: Final = logging.getLogger(__name__)

TransformFunc: TypeAlias = Callable[[T], T]
"""What is done to each object before it is stored; it must return an object of the same kind."""

TURN: Final = 128
"""How many objects of a page are taken before the others have a turn: some milliseconds at most."""

# Reading a member off an enum costs as much as the comparison itself.
_ADDED: Final = EventType.ADDED
_MODIFIED: Final = EventType.MODIFIED
_DELETED: Final = EventType.DELETED


@final
class Intake(Generic[T]):
    """Writes what arrives into ``store``, object by object or as a whole list.

    Attributes:
        version: the last version written; ``""`` before the first.
        events: how many events of watches were written.
        bookmarks: how many bookmarks of watches were seen.
        stale_bookmarks: how many of them were older than what had been written already.
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
        # A list under way: what it has brought so far, and what of that could not be read.
        self._listed: dict[ObjectName, Entry[T]] = {}
        self._listed_unreadable: dict[ObjectName, DecodeError] = {}
        self._newest_listed = ""
        self._reuses = self._has_reused = False
        # Whether versions grow with every write, as far as the last list shows.
        self._is_ordered = True
        # Whether the next list is known to show another history than the lists before.
        self._is_afresh = False
        # Whether such a list was written and may not have reached what is known.
        self._is_afresh_pending = False
        # Whether ADDED events may be of any age: a watch from no version begins with what is there.
        self._is_replaying = False
        # The object that came damaged last, in which version; and whether that is the server's.
        self._doubted: tuple[ObjectName, str] | None = None
        self._sends_corrupted = False
        self._may_have_corrupted = False
        self.version: str = ""
        self.events: int = 0
        self.bookmarks: int = 0
        self.stale_bookmarks: int = 0

    @property
    def unreadable(self) -> Mapping[ObjectName, DecodeError]:
        """The objects that exist and cannot be read, with what is wrong with them."""
        return MappingProxyType(self._unreadable)

    @property
    def has_corrupted(self) -> bool:
        """Whether some of them are damaged: what the server has can be read, as likely as not."""
        if self._may_have_corrupted:  # asked with every read: not looked for where there is none
            self._may_have_corrupted = any(it.is_damaged for it in self._unreadable.values())
        return self._may_have_corrupted

    @property
    def ignored(self) -> int:
        """How many objects were dropped for being of another kind."""
        return self._kinds.refused

    # --- lists

    def begin_list(self, *, reuse: bool = False) -> None:
        """Forget what a list that was not finished has brought.

        With ``reuse`` an object of a known version is the object we know, and not held twice. That
        is so unless the list turns out to be older than what we have: then it is not finished.
        """
        self._listed, self._listed_unreadable = {}, {}
        self._newest_listed = ""
        if getattr(self._store, "is_idle", True):  # a plain store has it at once
            self._is_afresh_pending = False
        in_doubt = self._is_afresh or self._is_afresh_pending
        self._reuses = reuse and self._known is not None and not in_doubt
        self._has_reused = False

    def distrust(self) -> None:
        """Note that the server went back: in the next list, equal versions prove nothing.

        Not even if it is ahead of us again by then.
        """
        self._is_afresh = True

    @property
    def listed(self) -> int:
        """How many objects the list under way has brought so far."""
        return len(self._listed) + len(self._listed_unreadable)

    def add_page(self, page: ListResult[T]) -> Iterator[None]:
        """Take the objects of one page, and yield now and then for others to have a turn.

        Raises:
            DecodeError: the answer is no list of our kind.
        """
        accepted = self._kinds.of_list(page)
        # A server that went back in time may show another state under a version we know.
        self._reuses = self._reuses and not versions.is_older(page.resource_version, self.version)
        entries = map(_lean, page.entries())
        chosen = entries if accepted is None else itertools.compress(entries, accepted)
        for number, entry in enumerate(chosen, 1):
            self._list_one(entry)
            if number % TURN == 0:
                yield
        for item in page.unreadable:
            self._list_unreadable(item)

    def add_streamed(self, batch: Iterable[Received[T] | Unreadable]) -> str | None:
        """Take events of a streamed list; return the version of its end once that has come.

        ``batch`` is an iterator that then stands right behind the end: what is left is for `write`.

        Raises:
            DecodeError: a change has no key, so some object in the list is not what it was.
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
                self._listed.pop(event.metadata.key, None)
                self._listed_unreadable.pop(event.metadata.key, None)
            elif self._kinds.accepts(event.object):
                self._list_one(_lean(Entry(event.metadata, event.object)))
        return None

    def finish_list(self, resource_version: str) -> int:
        """Replace the store's content by what the list has brought; return how much that is.

        Raises:
            ResourceVersionRegressed: objects we had were taken for those of the list, which shows
                an older state: on another history the same version may be another object. The
                next list trusts none.
        """
        self._doubted, self._sends_corrupted = None, False
        listed, unreadable = self._listed, self._listed_unreadable
        is_older = versions.is_older(resource_version, self.version)
        if is_older and self._has_reused:
            self.distrust()
            raise ResourceVersionRegressed(self.version, resource_version)
        if self._is_afresh or is_older:
            self._is_afresh_pending = True
            self._store.replace(listed, resource_version, afresh=True)
        else:  # in words that a store also understands which knows nothing of that
            self._store.replace(listed, resource_version)
        self._is_afresh = False
        self._is_ordered = versions.is_complete(resource_version, self._newest_listed)
        self._unreadable = unreadable
        self._may_have_corrupted = bool(unreadable)
        self.version = resource_version
        self.begin_list()
        return len(listed)

    def _list_one(self, entry: Entry[T]) -> None:
        key = entry.metadata.key
        if not key.name:
            nameless = DecodeError("the list holds an object without metadata.name")
            self._list_unreadable(Unreadable(entry.metadata, nameless))
            return
        seen, newest = entry.metadata.resource_version, self._newest_listed
        # Most objects are older than the newest so far: compared here, for a call costs more. The
        # store calls `newest` for each object as well.
        if len(seen) != len(newest) or seen > newest:
            self._newest_listed = versions.newest(newest, seen)
        # To keep what we have, instead of a second copy of it, halves the memory of a relist.
        held = self._known.get(key) if self._reuses and self._known is not None else None
        if held is not None and versions.same_version(held.metadata, entry.metadata):
            self._listed_unreadable.pop(key, None)
            self._listed[key] = held
            self._has_reused = True
        elif (prepared := self._prepared(key, entry, self._listed_unreadable)) is not None:
            if self._settle is not None:
                self._settle(prepared)
            self._listed[key] = prepared
        else:
            self._listed.pop(key, None)

    def _list_unreadable(self, item: Unreadable) -> None:
        if item.type is _DELETED:
            self._listed_unreadable.pop(item.metadata.key, None)
        else:
            self._set_apart(item, self._listed_unreadable)
        self._listed.pop(item.metadata.key, None)

    # --- watches

    def begin_watch(self, resource_version: str) -> None:
        """Tell from which version the events come that are written next."""
        self._is_replaying = resource_version in {"", "0"}

    def write(self, batch: Iterable[Received[T] | Unreadable]) -> None:
        """Write the events of a watch, in order.

        Raises:
            DecodeError: an object has no key, or was damaged on its way; everything before it is
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
        if not self._kinds.accepts(obj):
            return
        self.events += 1
        entry = _lean(Entry(metadata, obj))
        if kind is _DELETED:
            # A transform may matter to who is told of the final state; if it fails, it is gone
            # all the same.
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
        if event.error.is_damaged and (is_deletion or not self._is_sent_so(event.metadata)):
            raise DecodeError("an event was damaged on its way", key=str(event.metadata.key))
        self.events += 1
        if is_deletion:
            self._unreadable.pop(event.metadata.key, None)
        else:
            self._set_apart(event, self._unreadable)
        self._delete_unseen(event.metadata)
        self._advance(event.metadata, event.type)

    def _is_sent_so(self, metadata: ObjectMeta) -> bool:
        """Tell whether the server sends damaged objects, rather than somebody between us.

        What comes damaged once is asked for again, from the version before it. If it comes so
        again, it is set apart, and so is what comes damaged after it, until the next list.
        """
        doubted, self._doubted = self._doubted, (metadata.key, metadata.resource_version)
        self._sends_corrupted = self._sends_corrupted or self._doubted == doubted
        return self._sends_corrupted

    def _delete_unseen(self, metadata: ObjectMeta) -> None:
        """Delete an object by its key; the store learns how far it is all the same."""
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
            # client-go: kubernetes#136583. What is there comes in no order of versions.
            if kind is _ADDED:
                return
            self._is_replaying = False
        if self._is_ordered:
            self.version = versions.newest(self.version, metadata.resource_version)
        else:  # the server alone knows what follows its last event
            self.version = metadata.resource_version or self.version

    # --- single objects

    def _prepared(
        self, key: ObjectName, entry: Entry[T], unreadable: dict[ObjectName, DecodeError]
    ) -> Entry[T] | None:
        """Return the entry as it is stored; if the transform fails, set it apart."""
        if self._transform is None:
            unreadable.pop(key, None)
            return entry
        try:
            obj = self._transform(entry.object)
        except Exception as exc:  # noqa: BLE001 - a user's code, and one object of many
            error = DecodeError(f"the transform raised {type(exc).__name__}", key=str(key))
            error.__cause__ = exc.with_traceback(None)
        else:
            if obj is not None or entry.object is None:
                unreadable.pop(key, None)
                return entry if obj is entry.object else _without_annotations(entry.metadata, obj)
            error = DecodeError("the transform returned None", key=str(key))
        self._set_apart(Unreadable(entry.metadata, error), unreadable)
        return None

    def _set_apart(self, item: Unreadable, unreadable: dict[ObjectName, DecodeError]) -> None:
        key = item.metadata.key
        known = self._unreadable.get(key) or unreadable.get(key)
        if known is None or str(known) != str(item.error):
            what = key.shown if key.name else "an object"
            log.error("%s: %s cannot be read: %s", self._name, what, item.error)
        unreadable[key] = item.error
        self._may_have_corrupted = self._may_have_corrupted or item.error.is_damaged


def _lean(entry: Entry[T]) -> Entry[T]:
    """Return what is kept: of a projection's metadata not the annotations.

    Nobody reads them there: an `Object` has its own, a model has those that it declares.
    """
    if not entry.metadata.raw_annotations or isinstance(entry.object, Object):
        return entry
    return _without_annotations(entry.metadata, entry.object)


def _without_annotations(metadata: ObjectMeta, obj: T) -> Entry[T]:
    """Return an entry of ``obj`` that keeps nothing alive of the bytes it came in.

    Annotations are a window into them.
    """
    metadata = copy.copy(metadata)  # the other one may be somebody's
    force_setattr(metadata, "raw_annotations", UNSET)
    return Entry(metadata, obj)


def _nameless(event: WatchEvent[T] | Unreadable) -> DecodeError:
    """Return why nobody knows what this is about: everything has to be listed again."""
    if isinstance(event, Unreadable):
        return event.error
    return DecodeError(f"the watch brought a {event.type} object without metadata.name")
