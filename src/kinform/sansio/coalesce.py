"""What one listener has not been told yet: in order, or merged where too much piles up.

The processor puts, the listener takes; both live on one loop, so there are no locks, and nothing
here waits. A buffer must not grow with the traffic: whoever listens slowly is told less often,
never wrongly.

Rule 1: whoever applies what comes out ends with what was put in, key by key.
Rule 2: what comes out for one key is a history that can be: new, changed, gone, new again.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Final, Generic, TypeAlias, TypeVar, final

import msgspec

from kinform.meta import ObjectName
from kinform.sansio.notifications import Notification

__all__ = ["HIGH_WATER", "Buffer", "Marker", "merge"]

T = TypeVar("T")

HIGH_WATER: Final = 1024
"""How many notifications may wait before they are merged (client-go: the ring's first size)."""

_Pair: TypeAlias = tuple[Notification[T], Notification[T]]
"""One object that is gone, and another of its name that has come."""


@final
class Marker:
    """A place in the order of a `Buffer`: it says nothing but "here"."""

    __slots__ = ()


_Stretch: TypeAlias = OrderedDict[ObjectName, Notification[T] | _Pair[T]]
"""What waits between two markers, merged: each key once, where it first stood."""


def merge(first: Notification[T], second: Notification[T]) -> Notification[T] | _Pair[T] | None:
    """Return what is left to tell of two changes of one key that follow each other.

    ``None``: nothing, for the object came and went unseen. A pair: both, in order, because they
    are two objects of one name. Without a uid nobody knows, so that is a pair as well.
    """
    if second.new is None:
        # Also for an update + delete: the listener knows the object, and must hear that it is gone.
        if first.old is None:
            return None
        return msgspec.structs.replace(second, told=first.told or first.old)
    if first.new is None:
        gone = first.old
        if gone is None or not gone.metadata.uid or gone.metadata.uid != second.new.metadata.uid:
            return first, second
        # It never went, or is back: an update of what the listener knows, which is not how it went.
        return Notification(first.key, first.told or gone, second.new)
    # A resync falls under this too: its ``new`` is the one that waits already.
    return Notification(first.key, first.old, second.new, first.initial)


@final
class Buffer(Generic[T]):
    """The notifications that wait for one listener.

    Up to ``high_water`` they come out one by one, in the order of putting. What is put beyond
    that is merged with what waits, so that each key waits once, or twice where one object went
    and another of its name came. A merged notification stands where the first of its key stood,
    so keys may overtake each other; the changes of one key never do. When the last one is taken,
    everything is in order again.

    A marker is a wall: what was put before it comes out before it, merged or not, and what was
    put later comes out later. Nothing is merged across it, so a key can wait on both sides.

    Raises:
        ValueError: if ``high_water`` is less than 1.
    """

    __slots__ = ("_coalesced", "_fifo", "_high_water", "_marks", "_pairs", "_peak", "_stretches")

    def __init__(self, high_water: int = HIGH_WATER) -> None:
        if high_water < 1:
            raise ValueError(f"high_water is {high_water}; expected at least 1")
        self._high_water = high_water
        # Invariant: one of the two is empty. Merged is what stands in _stretches.
        self._fifo: deque[Notification[T] | Marker] = deque()
        self._stretches: deque[_Stretch[T] | Marker] = deque()
        self._marks = 0  # in _fifo
        self._pairs = 0  # in _stretches, none of which is empty
        self._peak = 0
        self._coalesced = 0

    # --- what the processor puts --------------------------------------------------------------

    def put(self, notification: Notification[T], /) -> None:
        """Add one notification. Those of one key must be a history: see `Notification`."""
        self.extend((notification,))

    def extend(self, notifications: Sequence[Notification[T]], /) -> None:
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
        """Add a marker behind all that was put so far."""
        if self._stretches:
            self._stretches.append(marker)
        else:
            self._fifo.append(marker)
            self._marks += 1

    def clear(self) -> None:
        """Drop all that waits, markers too."""
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

    def _merge_in(self, notifications: Sequence[Notification[T]]) -> None:
        before = len(self)
        stretch = self._stretches[-1] if self._stretches else None
        if not isinstance(stretch, OrderedDict):  # nothing there, or a marker
            stretch = OrderedDict[ObjectName, Notification[T] | _Pair[T]]()
            self._stretches.append(stretch)
        for notification in notifications:
            # One look both finds what waits and adds where nothing does: this is what runs for
            # each object of a long first list.
            waiting = stretch.setdefault(notification.key, notification)
            if waiting is not notification:
                self._replace(stretch, waiting, notification)
        if not stretch:
            self._stretches.pop()
        after = len(self)
        self._peak = max(self._peak, after)
        self._coalesced += len(notifications) - (after - before)

    def _replace(
        self, stretch: _Stretch[T], waiting: Notification[T] | _Pair[T], second: Notification[T]
    ) -> None:
        left: Notification[T] | _Pair[T] | None
        if isinstance(waiting, tuple):
            gone, there = waiting
            left = _behind(gone, merge(there, second))
        else:
            left = merge(waiting, second)
        self._pairs += isinstance(left, tuple) - isinstance(waiting, tuple)
        if left is None:
            del stretch[second.key]
        else:
            stretch[second.key] = left  # in the place of the first

    # --- what the listener takes --------------------------------------------------------------

    def take(self) -> Notification[T] | Marker | None:
        """Take out what comes next; ``None`` if nothing waits."""
        if self._fifo:
            item = self._fifo.popleft()
            if isinstance(item, Marker):
                self._marks -= 1
            return item
        return self._take_merged() if self._stretches else None

    def _take_merged(self) -> Notification[T] | Marker:
        head = self._stretches[0]
        if isinstance(head, Marker):
            self._stretches.popleft()
            return head
        key, waiting = head.popitem(last=False)
        if isinstance(waiting, tuple):
            waiting, head[key] = waiting
            head.move_to_end(key, last=False)
            self._pairs -= 1
        elif not head:
            self._stretches.popleft()
        return waiting

    # --- how it stands ------------------------------------------------------------------------

    def __len__(self) -> int:
        """Return how many notifications wait; markers do not count."""
        # A copy, made in one step: figures are read from any thread.
        stretches = tuple(self._stretches)
        merged = sum(len(one) for one in stretches if isinstance(one, OrderedDict))
        return len(self._fifo) - self._marks + merged + self._pairs

    @property
    def peak(self) -> int:
        """The most that ever waited."""
        return self._peak

    @property
    def coalesced(self) -> int:
        """How many notifications were merged away: put, and never to be taken."""
        return self._coalesced


def _behind(
    gone: Notification[T], rest: Notification[T] | _Pair[T] | None
) -> Notification[T] | _Pair[T]:
    # Only with an end of something does merge() make a pair, and behind ``gone`` stands none.
    return gone if rest is None or isinstance(rest, tuple) else (gone, rest)
