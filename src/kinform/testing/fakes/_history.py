"""The history of one kind on a fake server: its objects, a version counter, and all changes.

Pure, without a loop: `kinform.testing.fakes.list_watch` serves lists and watches from it. The
counter is that of etcd: it starts at 1, and every change of any object takes the next number.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeAlias, TypeVar, final

import msgspec

from kinform.errors import ApiError, UsageError, api_error
from kinform.meta import Entry, ObjectName, Status, StatusCause, StatusDetails
from kinform.objects.object import Object
from kinform.rest.options import ListOptions
from kinform.rest.results import WatchEvent
from kinform.sansio.wire.watch import EventType
from kinform.selectors import FieldSelector, LabelSelector, SelectorError

__all__ = [
    "FakeHistory",
    "FakeSelection",
    "HistoryChange",
    "ObjectLike",
    "Revision",
    "expired",
    "invalid",
    "too_large",
]

T = TypeVar("T")

ObjectLike: TypeAlias = Mapping[str, object] | Entry[T]
"""An object as callers give it: a dict, an `Object`, or an `Entry` of anything."""


@final
@dataclass(frozen=True, slots=True)
class Revision(Generic[T]):
    """One state of one object: what was given, and the entry made of it."""

    content: Object | Entry[T]
    entry: Entry[T]
    stamp: Callable[[int], Entry[T]]
    """Makes the same state with another version: what a DELETED event shows."""

    def field(self, path: str) -> str | None:
        """Return the value that a field selector compares; None where there is none.

        An object that was given as an `Entry` has no fields but its name and namespace.
        """
        if path == "metadata.name":
            return self.entry.metadata.name
        if path == "metadata.namespace":
            return self.entry.metadata.namespace
        if not isinstance(self.content, Object):
            return None
        value: object = self.content.at(*path.split("."))
        if value is None or isinstance(value, str):
            return value
        return msgspec.json.encode(value).decode()


@final
@dataclass(frozen=True, slots=True)
class HistoryChange(Generic[T]):
    """One write: what was before (None: created), what is after it (None: deleted)."""

    version: int
    before: Revision[T] | None
    after: Revision[T] | None
    visible: bool
    """Whether watches deliver it."""

    @property
    def entry(self) -> Entry[T]:
        """The object after the change, or its last state."""
        if self.after is not None:
            return self.after.entry
        assert self.before is not None, "a change has a before or an after"
        return self.before.stamp(self.version)


@final
@dataclass(frozen=True, slots=True)
class FakeSelection:
    """The objects that a list or a watch asks for."""

    labels: LabelSelector
    fields: FieldSelector

    @classmethod
    def of(cls, options: ListOptions) -> FakeSelection:
        """Return what ``options`` select.

        Raises:
            InvalidError: a selector cannot be read.
        """
        try:
            return cls(
                LabelSelector.parse(options.label_selector),
                FieldSelector.parse(options.field_selector),
            )
        except SelectorError as exc:
            raise invalid(str(exc), code=400) from exc

    def matches(self, revision: Revision[T] | None) -> bool:
        """Return whether there is an object, and it is selected."""
        if revision is None or not self.labels.matches(revision.entry.metadata.labels):
            return False
        return self.fields.matches(revision.field)

    def event(self, change: HistoryChange[T]) -> WatchEvent[T] | None:
        """Return what a watch hears of ``change``; None: nothing.

        An object that begins to match is added to those who select it, one that ceases to match
        is deleted for them.
        """
        was, is_now = self.matches(change.before), self.matches(change.after)
        if change.after is not None and is_now:
            entry = change.after.entry
            kind = EventType.MODIFIED if was else EventType.ADDED
        elif change.before is not None and was:
            entry, kind = change.before.stamp(change.version), EventType.DELETED
        else:
            return None
        return WatchEvent(kind, entry.object, entry.metadata)


@final
class FakeHistory(Generic[T]):
    """The objects of one kind and their past, as far back as it is kept."""

    def __init__(self, model: type[T], *, kind: str, api_version: str, namespace: str) -> None:
        self._model: Final = model
        self._head: Final = {"apiVersion": api_version, "kind": kind}
        self._namespace: Final = namespace
        self._now: dict[ObjectName, Revision[T]] = {}
        # Invariant: _now is _then plus _changes, whose versions grow.
        self._then: dict[ObjectName, Revision[T]] = {}
        self._changes: list[HistoryChange[T]] = []
        self._uids = 0  # never goes back, not even with the versions
        self.version: int = 1
        """The version of the newest state."""
        self.oldest: int = 1
        """The oldest version whose state is still known, and everything that happened since."""

    # Reading.

    def now(self) -> Sequence[Revision[T]]:
        """Return the newest state, in the order of keys."""
        return _in_order(self._now)

    def at(self, version: int) -> Sequence[Revision[T]]:
        """Return the state at ``version``, which must not be older than the oldest."""
        if version >= self.version:
            return self.now()
        state = dict(self._then)
        for change in self._changes:
            if change.version > version:
                break
            _apply(change, state)
        return _in_order(state)

    def since(self, version: int) -> Iterator[HistoryChange[T]]:
        """Yield the visible changes after ``version``, oldest first."""
        return (change for change in self._changes if change.version > version and change.visible)

    # Writing.

    def add(self, obj: ObjectLike[T], *, visible: bool) -> HistoryChange[T]:
        """Create an object, with a uid of its own.

        Raises:
            UsageError: there is one of that name, or it has none.
        """
        key, content = self.key(obj), _content(obj)
        if key in self._now:
            raise UsageError(f"{key} is there already; modify() it")
        self._uids += 1
        return self._write(key, content, uid=f"uid-{self._uids}", visible=visible)

    def modify(self, obj: ObjectLike[T], *, visible: bool) -> HistoryChange[T]:
        """Replace an object; it keeps its uid.

        Raises:
            UsageError: there is none of that name.
        """
        key, content = self.key(obj), _content(obj)
        before = self._existing(key)
        return self._write(key, content, uid=before.entry.metadata.uid, visible=visible)

    def delete(self, obj: str | ObjectName | ObjectLike[T], *, visible: bool) -> HistoryChange[T]:
        """Delete an object, given as an object or by its key.

        Raises:
            UsageError: no object has that name.
        """
        key = self.key(obj)
        before = self._existing(key)
        self.version += 1
        return self._record(before, None, visible=visible)

    def compact(self) -> None:
        """Forget what happened up to now."""
        self._then = dict(self._now)
        self._changes.clear()
        self.oldest = self.version

    def restore(self, version: int) -> None:
        """Go back to the state at ``version``, as if nothing had happened since.

        Raises:
            UsageError: that state is not known any more, or not yet.
        """
        if not self.oldest <= version <= self.version:
            known = f"{self.oldest} to {self.version}"
            raise UsageError(f"version {version} cannot be restored; known are {known}")
        self._now = {revision.entry.metadata.key: revision for revision in self.at(version)}
        self._changes = [change for change in self._changes if change.version <= version]
        self.version = version

    # Details.

    def key(self, obj: str | ObjectName | ObjectLike[T]) -> ObjectName:
        """Return the key of an object; without a namespace it is in the default one.

        Raises:
            UsageError: it has no name.
        """
        if isinstance(obj, ObjectName):
            return obj
        key = ObjectName.parse(obj) if isinstance(obj, str) else _content(obj).metadata.key
        if not key.name:
            raise UsageError("an object needs a name in its metadata")
        return ObjectName(key.namespace or self._namespace, key.name)

    def _existing(self, key: ObjectName) -> Revision[T]:
        if key not in self._now:
            raise UsageError(f"there is no {key}; add() it")
        return self._now[key]

    def _write(
        self, key: ObjectName, content: Object | Entry[T], *, uid: str, visible: bool
    ) -> HistoryChange[T]:
        stamp = functools.partial(self._stamped, content=content, key=key, uid=uid)
        entry = stamp(self.version + 1)  # first: where the model refuses it, nothing has happened
        self.version += 1
        return self._record(self._now.get(key), Revision(content, entry, stamp), visible=visible)

    def _record(
        self, before: Revision[T] | None, after: Revision[T] | None, *, visible: bool
    ) -> HistoryChange[T]:
        change = HistoryChange(self.version, before, after, visible)
        self._changes.append(change)
        _apply(change, self._now)
        return change

    def _stamped(
        self, version: int, *, content: Object | Entry[T], key: ObjectName, uid: str
    ) -> Entry[T]:
        """Return an object with what only the server says: its uid and its version."""
        if isinstance(content, Entry):
            metadata = msgspec.structs.replace(
                content.metadata, namespace=key.namespace, uid=uid, resource_version=str(version)
            )
            return Entry(metadata, content.object)
        body = {**self._head, **content.to_dict()}
        said = {"name": key.name, "namespace": key.namespace, "uid": uid}
        body["metadata"] = {
            **content.to_dict("metadata"),
            **{name: text for name, text in said.items() if text},
            "resourceVersion": str(version),
        }
        stamped = Object.from_dict(body)
        return Entry(stamped.metadata, stamped.decode(self._model))


def _content(obj: ObjectLike[T]) -> Object | Entry[T]:
    """Return ``obj`` in a form that later changes to it do not touch."""
    return obj if isinstance(obj, Entry | Object) else Object.from_dict(obj)


def _apply(change: HistoryChange[T], state: dict[ObjectName, Revision[T]]) -> None:
    if change.after is not None:
        state[change.after.entry.metadata.key] = change.after
    elif change.before is not None:
        del state[change.before.entry.metadata.key]


def _in_order(state: Mapping[ObjectName, Revision[T]]) -> Sequence[Revision[T]]:
    return [state[key] for key in sorted(state)]


# --- What a server says where it gives nothing --------------------------------------------------


def expired(version: int, oldest: int) -> ApiError:
    """Return the 410 for a version that is not known any more."""
    message = f"version {version} is too old; the oldest is {oldest}"
    return api_error(Status(status="Failure", code=410, reason="Expired", message=message))


def too_large(version: int, current: int) -> ApiError:
    """Return the 504 for a version that is not there yet."""
    message = f"Too large resource version: {version}, current: {current}"
    cause = StatusCause(reason="ResourceVersionTooLarge", message="Too large resource version")
    details = StatusDetails(causes=(cause,), retry_after_seconds=1)
    return api_error(
        Status(status="Failure", code=504, reason="Timeout", message=message, details=details)
    )


def invalid(message: str, *, code: int = 422) -> ApiError:
    """Return the 422 for an invalid request, or another error that a server answers."""
    reason = {400: "BadRequest", 422: "Invalid"}.get(code, "")
    return api_error(Status(status="Failure", code=code, reason=reason, message=message))
