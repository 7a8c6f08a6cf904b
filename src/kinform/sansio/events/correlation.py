"""Event correlation: occurrences are counted in an Event, combined with others, or limited.

An *occurrence* is what a controller reports; an *Event* is the object on the server that stands
for one or many of them (client-go: events_cache.go). `EventCorrelator` decides, in this order:

1. The tenth and each further distinct message about one object, with the same type and reason and
   none of them more than ten minutes after the one before, belongs to one combined Event.
2. An occurrence of a known Event is counted in it.
3. `EventCorrelator.allows` decides whether it may be written: each object has 25 writes, and one
   more every five minutes. A count that may not be written is kept, and sent with the next write.

All memory is bounded: the least recently used entries are forgotten, and start again.
"""

from __future__ import annotations

import dataclasses
import re
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, Literal, TypeAlias, TypeVar, final

from kinform.sansio.token_bucket import TokenBucket

__all__ = [
    "LRU",
    "EventCorrelator",
    "EventNames",
    "EventRecord",
    "EventType",
    "ObjectReference",
    "Occurrence",
    "cut",
    "event_name",
]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

EventType: TypeAlias = Literal["Normal", "Warning"]

MAX_SIMILAR: Final = 10
"""So many distinct messages of similar occurrences are combined into one Event."""
SIMILAR_WITHIN: Final = 600.0
"""Seconds without a similar occurrence after which distinct messages are counted from 0."""
CACHE_SIZE: Final = 4096
BURST: Final = 25
REFILL: Final = 1 / 300.0
COMBINED: Final = "(combined from similar events): "
MAX_MESSAGE: Final = 1024
"""Bytes: the server counts these, not characters."""
MAX_NAME: Final = 253

_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9.-]")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectReference:
    """The object of an Event: a reference to it, without its content.

    Two references are equal if they refer to the same object, in any version.
    """

    api_version: str = ""
    kind: str
    namespace: str = ""
    """Empty for kinds that have none."""
    name: str
    uid: str = ""
    field_path: str = ""
    """The part of the object: ``spec.containers{web}``."""
    resource_version: str = field(default="", compare=False)

    @property
    def whole(self) -> Hashable:
        """The identity of the object, without the part of it."""
        return (self.api_version, self.kind, self.namespace, self.name, self.uid)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """Something happened to an object."""

    regarding: ObjectReference
    type: EventType
    reason: str
    message: str
    action: str = ""
    related: ObjectReference | None = None
    annotations: Mapping[str, str] = field(default_factory=dict[str, str])


@final
class EventRecord:
    """The local state of one Event: its count, and the part of it that the server has.

    Records are compared by identity: two records are never equal.
    """

    __slots__ = ("attempts", "count", "exists", "first", "last", "name", "occurrence", "written")

    def __init__(self, name: str, occurrence: Occurrence, *, wall: float) -> None:
        self.name: str = name
        self.occurrence: Occurrence = occurrence
        """The latest one; the first one in a series."""
        self.count: int = 1
        self.first: float = wall
        self.last: float = wall
        self.exists: bool = False
        """True if the server has it, as far as we know."""
        self.attempts: int = 0
        """The number of attempts to create it; it may exist even if none was answered."""
        self.written: int = 0
        """The count that the server knows."""

    @property
    def namespace(self) -> str:
        """The namespace of the Event: that of its object, or ``default``."""
        return self.occurrence.regarding.namespace or "default"

    @property
    def is_settled(self) -> bool:
        """True if the server has the full count."""
        return self.exists and self.written >= self.count

    def count_one(self, *, wall: float) -> None:
        """Count one more occurrence."""
        self.count += 1
        self.last = wall

    def settle(self, count: int) -> None:
        """Record that the server has the Event, with this count."""
        self.exists = True
        self.written = count

    def vanish(self) -> None:
        """Record that the server does not have the Event: Events live for an hour."""
        self.exists = False
        self.attempts = self.written = 0


@final
class LRU(Generic[K, V]):
    """At most ``size`` values by their keys; the least recently used one makes room.

    Raises:
        ValueError: if ``size`` is not positive.
    """

    __slots__ = ("_held", "size")

    def __init__(self, size: int) -> None:
        if size < 1:
            raise ValueError(f"size is {size!r}; expected 1 or more")
        self.size: Final = size
        self._held: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held)

    def get(self, key: K) -> V | None:
        """Return the value, which counts as a use."""
        value = self._held.get(key)
        if value is not None:
            self._held.move_to_end(key)
        return value

    def put(self, key: K, value: V) -> V | None:
        """Keep ``value`` as the most recently used one; return the evicted one, if any."""
        self._held[key] = value
        self._held.move_to_end(key)
        return self._held.popitem(last=False)[1] if len(self._held) > self.size else None

    def oldest(self) -> tuple[K, V] | None:
        """Return the least recently used entry. This does not count as a use."""
        return next(iter(self._held.items()), None)

    def pop(self, key: K) -> V:
        """Forget ``key``; return its value."""
        return self._held.pop(key)

    def values(self) -> Sequence[V]:
        """Return all values, the least recently used one first."""
        return tuple(self._held.values())


@final
class EventNames:
    """Gives each Event a name of its own: the object's, and the time in nanoseconds.

    No two names are equal, even if the clock is coarse or jumps.
    """

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last = 0

    def make(self, name: str, *, wall: float) -> str:
        """Return a name for a new Event about the object ``name``."""
        # Some clocks advance in steps of milliseconds, and two Events of one step would have one
        # name.
        self._last = max(self._last + 1, int(wall * 1e9))
        return event_name(name, self._last)


@final
class _Similar:
    """The distinct messages of one kind of occurrence, lately."""

    __slots__ = ("last", "messages")

    def __init__(self, now: float) -> None:
        self.last = now
        self.messages: set[int] = set()  # hashes: the texts may be long

    def is_one_too_many(self, message: str) -> bool:
        """Count ``message``; return whether it is to be combined with the others."""
        key = hash(message)
        if key in self.messages:
            return False
        # The message is not added: the set stays bounded however many messages a controller makes
        # up.
        if len(self.messages) >= MAX_SIMILAR - 1:
            return True
        self.messages.add(key)
        return False


@final
class EventCorrelator:
    """Assigns occurrences to Events of the core group; ``now`` is any clock that never jumps."""

    def __init__(self, *, size: int = CACHE_SIZE) -> None:
        self._names = EventNames()
        self._similar: LRU[Hashable, _Similar] = LRU(size)
        self._records: LRU[Hashable, EventRecord] = LRU(size)
        self._buckets: LRU[Hashable, TokenBucket] = LRU(size)

    def __len__(self) -> int:
        """Return how many entries the largest of the caches holds."""
        return max(len(self._similar), len(self._records), len(self._buckets))

    def observe(self, occurrence: Occurrence, *, now: float, wall: float) -> Sequence[EventRecord]:
        """Count ``occurrence`` and return the one Event it belongs to, to be written."""
        key, occurrence = self._identify(occurrence, now)
        record = self._records.get(key)
        if record is None:
            name = self._names.make(occurrence.regarding.name, wall=wall)
            record = EventRecord(name, occurrence, wall=wall)
            self._records.put(key, record)
        else:
            # The latest one: the message of a combined Event is that of the last occurrence.
            record.occurrence = occurrence
            record.count_one(wall=wall)
        return (record,)

    def allows(self, record: EventRecord, now: float) -> bool:
        """Return whether one more write about this object is allowed; if so, count it."""
        # By the whole object and not by its field path: a pod with many containers has one budget,
        # as in client-go.
        key = record.occurrence.regarding.whole
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = TokenBucket(rate=REFILL, burst=BURST)
            self._buckets.put(key, bucket)
        wait = bucket.reserve(now)
        # The bucket promises a later token, and nothing will wait for it: given back, or a burst
        # over the limit would lock the object out for hours.
        if wait > 0:
            bucket.give_back(now + wait)
        return wait <= 0

    def rename(self, record: EventRecord, *, wall: float) -> None:
        """Give an Event another name: this one is taken."""
        record.name = self._names.make(record.occurrence.regarding.name, wall=wall)

    def next_due(self) -> float | None:
        """Return None: every occurrence is written at once."""
        return None

    def due(self, now: float) -> Sequence[EventRecord]:  # noqa: ARG002 - as of a series
        """Return nothing: every occurrence is written at once."""
        return ()

    def flush(self) -> Sequence[EventRecord]:
        """Return nothing: events over the limit are not written later."""
        return ()

    def _identify(self, occurrence: Occurrence, now: float) -> tuple[Hashable, Occurrence]:
        """Return the key of the Event it belongs to, and the occurrence as it is written there."""
        kind = (occurrence.regarding.whole, occurrence.type, occurrence.reason)
        similar = self._similar.get(kind)
        if similar is None or now - similar.last > SIMILAR_WITHIN:
            similar = _Similar(now)
            self._similar.put(kind, similar)
        similar.last = now
        if not similar.is_one_too_many(occurrence.message):
            return (*kind, occurrence.regarding.field_path, occurrence.message), occurrence
        message = cut(COMBINED + occurrence.message)
        return kind, dataclasses.replace(occurrence, message=message)


def event_name(name: str, stamp: int) -> str:
    """Return the name of an Event: always a DNS subdomain, for any object name.

    >>> event_name("web-0", 0x17E9F3AC)
    'web-0.17e9f3ac'
    >>> event_name("system:node", 1)
    'system-node.1'
    """
    suffix = f"{stamp:x}"
    # RBAC objects may have names with colons, which an Event may not.
    stem = _NOT_IN_NAMES.sub("-", name.lower()[: MAX_NAME - 1 - len(suffix)])
    labels = [label.strip("-") for label in stem.split(".")]
    return ".".join([*filter(None, labels), suffix])


def cut(message: str, size: int = MAX_MESSAGE) -> str:
    """Return ``message`` with at most ``size`` bytes of UTF-8, its end marked where it is cut.

    >>> cut("all of it"), cut("most of it", 7)
    ('all of it', 'most...')
    """
    # "replace": a lone surrogate, which a message may have from a file name, is not valid UTF-8.
    encoded = message.encode("utf-8", "replace")
    if len(encoded) > size:
        encoded = encoded[: size - 3] + b"..."
    return encoded.decode("utf-8", "ignore")
