"""Buffer: the pending notifications of one listener, merged per key where there are too many.

The processor puts, the listener takes; both run on one event loop, so there are no locks, and
nothing here waits. A buffer must not grow with the traffic: a slow listener gets fewer
notifications, never wrong ones. A notification is the `Transition` of a key.

Rule 1: a listener that applies everything it takes ends with the state that was put, key by key.
Rule 2: the notifications of one key form a possible history: added, updated, deleted, added again.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Final, Generic, TypeAlias, TypeVar, final

import msgspec

from kinform.meta import ObjectName
from kinform.sansio.queue.deltas import Transition

__all__ = ["HIGH_WATER", "Buffer", "Marker", "merge"]

T = TypeVar("T")

HIGH_WATER: Final = 1024
"""Pending notifications above this number are merged (client-go: initial size of the ring)."""

_Pair: TypeAlias = tuple[Transition[T], Transition[T]]
"""The delete of one object, and the add of another with the same name."""


@final
class Marker:
    """A position in a `Buffer`."""

    __slots__ = ()


_Stretch: TypeAlias = OrderedDict[ObjectName, Transition[T] | _Pair[T]]
"""The merged notifications between two markers: each key once, at its first position."""


def merge(first: Transition[T], second: Transition[T]) -> Transition[T] | _Pair[T] | None:
    """Return the one notification that two successive ones of a key amount to.

    ``None``: none, because the object was added and deleted before the listener received either.
    A pair: both, in order, because they are two objects of one name, or may be (without a uid).
    """
    if second.new is None:
        # Also for an update + delete: the listener knows the object, so it must get the delete.
        if first.old is None:
            return None
        # ``old`` stays the state that the listener knows; it receives the last one as ``final``.
        return msgspec.structs.replace(second, old=first.old, final=second.final or second.old)
    if first.new is None:
        gone = first.old
        if gone is None or not gone.metadata.uid or gone.metadata.uid != second.new.metadata.uid:
            return first, second
        # The same object again: an update from the state that the listener knows.
        return Transition(first.key, gone, second.new)
    # A resync as well: its ``new`` is the one that is pending already.
    return Transition(first.key, first.old, second.new, first.initial)


@final
class Buffer(Generic[T]):
    """The pending notifications of one listener.

    Up to ``high_water`` they are taken one by one, in the order in which they were put. Above that
    they are merged, so that each key is pending once, or twice where one object was deleted and
    another of its name added. A merged notification has the position of the first one of its key,
    so keys may overtake each other; the changes of one key never do. Once the buffer was empty,
    the order is exact again.

    A marker is a barrier: everything put before it is taken before it, merged or not, and
    everything put later is taken later. Nothing is merged across it, so a key can be pending on
    both sides.

    Raises:
        ValueError: if ``high_water`` is less than 1.
    """

    __slots__ = ("_coalesced", "_fifo", "_high_water", "_marks", "_pairs", "_peak", "_stretches")

    def __init__(self, high_water: int = HIGH_WATER) -> None:
        if high_water < 1:
            raise ValueError(f"high_water is {high_water}; expected at least 1")
        self._high_water = high_water
        # Invariant: one of the two is empty. _stretches holds the merged ones.
        self._fifo: deque[Transition[T] | Marker] = deque()
        self._stretches: deque[_Stretch[T] | Marker] = deque()
        self._marks = 0  # in _fifo
        self._pairs = 0  # in _stretches, none of which is empty
        self._peak = 0
        self._coalesced = 0

    # --- the processor puts

    def put(self, notification: Transition[T], /) -> None:
        """Add one notification. Those of one key must form a history (Rule 2)."""
        self.extend((notification,))

    def extend(self, notifications: Sequence[Transition[T]], /) -> None:
        """Add all ``notifications``, in order."""
        if not self._stretches:
            size = len(self._fifo) - self._marks + len(notifications)
            if size <= self._high_water:
                self._fifo.extend(notifications)
                self._peak = max(self._peak, size)
                return
            self._merge_all()
        self._merge_in(notifications)

    def mark(self, marker: Marker, /) -> None:
        """Add a marker behind all notifications put so far."""
        if self._stretches:
            self._stretches.append(marker)
        else:
            self._fifo.append(marker)
            self._marks += 1

    def clear(self) -> None:
        """Drop all pending notifications and markers."""
        self._fifo.clear()
        self._stretches.clear()
        self._marks = self._pairs = 0

    def _merge_all(self) -> None:
        waiting = list(self._fifo)
        self._fifo.clear()
        self._marks = 0
        for item in waiting:
            if isinstance(item, Marker):
                self._stretches.append(item)
            else:
                self._merge_in((item,))

    def _merge_in(self, notifications: Sequence[Transition[T]]) -> None:
        before = len(self)
        stretch = self._stretches[-1] if self._stretches else None
        if not isinstance(stretch, OrderedDict):  # nothing there, or a marker
            stretch = OrderedDict[ObjectName, Transition[T] | _Pair[T]]()
            self._stretches.append(stretch)
        for notification in notifications:
            # One lookup both finds the pending one and adds where there is none: this runs for
            # each object of a long first list.
            waiting = stretch.setdefault(notification.key, notification)
            if waiting is not notification:
                self._replace(stretch, waiting, notification)
        if not stretch:
            # An add and a delete may cancel out, and `_take_merged` relies on stretches that are
            # not empty.
            self._stretches.pop()
        after = len(self)
        self._peak = max(self._peak, after)
        self._coalesced += len(notifications) - (after - before)

    def _replace(
        self, stretch: _Stretch[T], waiting: Transition[T] | _Pair[T], second: Transition[T]
    ) -> None:
        left: Transition[T] | _Pair[T] | None
        if isinstance(waiting, tuple):
            gone, there = waiting
            left = _behind(gone, merge(there, second))
        else:
            left = merge(waiting, second)
        self._pairs += isinstance(left, tuple) - isinstance(waiting, tuple)
        if left is None:
            del stretch[second.key]
        else:
            stretch[second.key] = left  # at the position of the first

    # --- the listener takes

    def take(self) -> Transition[T] | Marker | None:
        """Remove and return the next item; ``None`` if the buffer is empty."""
        if self._fifo:
            item = self._fifo.popleft()
            if isinstance(item, Marker):
                self._marks -= 1
            return item
        return self._take_merged() if self._stretches else None

    def _take_merged(self) -> Transition[T] | Marker:
        head = self._stretches[0]
        if isinstance(head, Marker):
            self._stretches.popleft()
            return head
        key, waiting = head.popitem(last=False)
        if isinstance(waiting, tuple):
            waiting, head[key] = waiting
            # The add stays where its delete stood: a key keeps the position of its first
            # notification.
            head.move_to_end(key, last=False)
            self._pairs -= 1
        elif not head:
            self._stretches.popleft()
        return waiting

    # --- state

    def __len__(self) -> int:
        """Return the number of pending notifications; markers do not count."""
        # A copy, made in one step: statistics are read from any thread.
        stretches = tuple(self._stretches)
        merged = sum(len(one) for one in stretches if isinstance(one, OrderedDict))
        return len(self._fifo) - self._marks + merged + self._pairs

    @property
    def peak(self) -> int:
        """The maximum of pending notifications so far."""
        return self._peak

    @property
    def coalesced(self) -> int:
        """The number of notifications that were merged into others."""
        return self._coalesced


def _behind(gone: Transition[T], rest: Transition[T] | _Pair[T] | None) -> Transition[T] | _Pair[T]:
    # merge() makes a pair only of a delete and an add, and ``gone`` is followed by no delete.
    return gone if rest is None or isinstance(rest, tuple) else (gone, rest)
