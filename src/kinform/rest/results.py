"""The results of lists and watches: typed objects, each with its metadata.

``T`` is the caller's model, which kinform never looks into; the fields that kinform itself needs
(key, uid, version, labels) are in a separate `ObjectMeta`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeAlias, TypeVar, final, overload

import msgspec

from kinform.errors import DecodeError
from kinform.meta import Entry, ListMeta, ObjectMeta
from kinform.sansio.wire.watch import EventType

__all__ = [
    "INITIAL_EVENTS_END",
    "Bookmark",
    "ListResult",
    "Received",
    "Unreadable",
    "WatchEvent",
    "list_too_large",
]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
"""The annotation of the bookmark that ends a streamed list."""


@final
class ListResult(Sequence[T_co]):
    """The objects of a list, in the server's order, and the version of the list.

    A watch from ``resource_version`` continues without a gap. With ``limit`` given,
    ``continue_token`` is set as long as there are more objects. ``unreadable`` holds the objects
    that could not be decoded, if the caller asked for that instead of an error. ``size`` is the
    number of bytes, not compressed, if known.
    """

    __slots__ = ("_metas", "_objects", "api_version", "kind", "metadata", "size", "unreadable")

    def __init__(
        self,
        entries: Sequence[Entry[T_co]] = (),
        *,
        metadata: ListMeta | None = None,
        kind: str = "List",
        api_version: str = "v1",
        unreadable: Sequence[Unreadable] = (),
        size: int = 0,
    ) -> None:
        self._objects: tuple[T_co, ...] = tuple(entry.object for entry in entries)
        self._metas: tuple[ObjectMeta, ...] = tuple(entry.metadata for entry in entries)
        self.metadata: Final = metadata or ListMeta()
        self.kind: Final = kind
        self.api_version: Final = api_version
        self.unreadable: Final[Sequence[Unreadable]] = tuple(unreadable)
        self.size: Final = size

    @property
    def resource_version(self) -> str:
        """The version of the whole list."""
        return self.metadata.resource_version

    @property
    def continue_token(self) -> str:
        """The token for the next page; ``""`` on the last one."""
        return self.metadata.continue_token

    def entries(self) -> Iterator[Entry[T_co]]:
        """Yield every object with its metadata."""
        return map(Entry, self._metas, self._objects)

    @overload
    def __getitem__(self, index: int) -> T_co: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T_co]: ...
    def __getitem__(self, index: int | slice) -> T_co | Sequence[T_co]:
        return self._objects[index]

    def __len__(self) -> int:
        return len(self._objects)

    def __repr__(self) -> str:
        return f"<ListResult {self.kind} of {len(self)} rv={self.resource_version}>"


# A Struct, because one is made for every event: a frozen dataclass costs ten times as much.
@final
class WatchEvent(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """One change: ``type`` is ADDED, MODIFIED or DELETED; a deleted object is its last state."""

    type: EventType
    object: T
    metadata: ObjectMeta


@final
@dataclass(frozen=True, slots=True)
class Bookmark:
    """The server has sent all events up to this version.

    ``initial_events_end`` marks the end of the objects that ``send_initial_events`` requested.
    """

    resource_version: str
    initial_events_end: bool = False


@final
@dataclass(frozen=True, slots=True)
class Unreadable:
    """An object that arrived and cannot be decoded: too deep, not UTF-8, not as its model declares.

    ``metadata`` is the part that could be decoded; without a name the object is unknown.
    ``error`` gives the reason and shows no payload.
    """

    metadata: ObjectMeta
    error: DecodeError
    type: EventType = EventType.ADDED
    """The event type of the watch; ADDED for the items of a list."""


Received: TypeAlias = WatchEvent[T] | Bookmark
"""The items of a watch that yields bookmarks too."""


def list_too_large(limit: int) -> DecodeError:
    """Return the error for a list of more than ``limit`` bytes."""
    return DecodeError(
        f"the server's list is larger than {limit} bytes, as many as Config.max_list_size allows; "
        "if it is meant to be, set that higher, else ask for less with a selector or a namespace"
    )
