"""What happened to one key, on its way from the cache to those who listen."""

from __future__ import annotations

from typing import Generic, TypeVar, final

import msgspec

from kinform.meta import Entry, ObjectName

__all__ = ["Notification"]

T = TypeVar("T")


@final
class Notification(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """One change as a listener's buffer holds it.

    ``old is None``: the object is new. ``new is None``: it is gone, and ``old`` is its final
    state or the last one seen. Both: it changed, or ``old is new`` and this is a resync. Never
    neither; and never two objects in one, whose uids differ: that is a delete and an add.
    """

    key: ObjectName
    old: Entry[T] | None
    new: Entry[T] | None
    initial: bool = False
    """Of an object that is new: it was there before the listener was."""
    final_state_unknown: bool = False
    """Of an object that is gone: nobody saw it go."""
    told: Entry[T] | None = None
    """Of an object that is gone: the state before, if ``old`` is one that nobody was told of."""
