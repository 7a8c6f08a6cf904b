"""What handlers are told: one object came, changed or went.

The store has the change already when a handler hears of it, and for each object the events come
in the order in which things happened.
"""

from __future__ import annotations

from typing import Generic, TypeAlias, TypeVar, final

import msgspec

from kinform.meta import ObjectName

__all__ = ["Added", "Deleted", "Event", "Updated"]

T = TypeVar("T")


# Structs, because one is made for every event and handler: a frozen dataclass costs ten times as
# much. They refer to nothing that could refer to them, so the garbage collector may overlook them.
@final
class Added(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """An object is new.

    ``initial`` tells that it was there before the handler was: part of the first list, or in the
    cache when the handler was added.
    """

    key: ObjectName
    obj: T
    initial: bool = False


@final
class Updated(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """An object changed. On a resync nothing did: then ``old is new``."""

    key: ObjectName
    old: T
    new: T


@final
class Deleted(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """An object is gone.

    ``obj`` is its final state, or with ``final_state_unknown`` the last one that was seen: the
    delete itself was missed, and found out by a fresh list or by another object of its name.
    """

    key: ObjectName
    obj: T
    final_state_unknown: bool = False


Event: TypeAlias = Added[T] | Updated[T] | Deleted[T]
"""What `SharedInformer.events` yields."""
