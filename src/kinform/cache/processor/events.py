"""Events that handlers and event streams receive: an object was added, updated or deleted.

The store has the change before a handler receives its event, and the events of one object come in
the order of its changes.
"""

from __future__ import annotations

from typing import Generic, TypeAlias, TypeVar, final

import msgspec

from kinform.meta import ObjectName
from kinform.sansio.queue.deltas import Transition

__all__ = ["Added", "Deleted", "Event", "Updated", "event_of"]

T = TypeVar("T")


# Structs, because one is made for every event and handler: a frozen dataclass costs ten times as
# much. gc=False: they cannot be part of a reference cycle.
@final
class Added(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """An object was added.

    ``initial``: it existed before the handler did: it was part of the first list, or in the cache
    when the handler was added.
    """

    key: ObjectName
    obj: T
    initial: bool = False


@final
class Updated(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """An object was updated. On a resync it was not: then ``old is new``."""

    key: ObjectName
    old: T
    new: T


@final
class Deleted(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """An object was deleted.

    ``obj`` is its final state, or with ``final_state_unknown`` (a tombstone) the last known one:
    the delete itself was missed, and inferred from a new list or from another object of its name.
    """

    key: ObjectName
    obj: T
    final_state_unknown: bool = False


Event: TypeAlias = Added[T] | Updated[T] | Deleted[T]
"""The events that `SharedInformer.events` yields."""


def event_of(notification: Transition[T]) -> Event[T]:
    """Return the event of ``notification``.

    Raises:
        ValueError: the notification holds no object at all.
    """
    key, old, new = notification.key, notification.old, notification.new
    if new is not None:
        if old is not None:
            return Updated(key, old.object, new.object)
        return Added(key, new.object, notification.initial)
    if old is not None:
        last = notification.final or old
        return Deleted(key, last.object, notification.final_state_unknown)
    raise ValueError(f"a notification of {key} without an object")
