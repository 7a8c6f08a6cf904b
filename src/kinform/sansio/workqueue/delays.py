"""Delayed keys: each key once, at the earliest due time that was requested.

Client-go's delaying queue without its goroutine: the caller passes the time, takes the keys that
are due, and sleeps until `Delays.next_due`.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar, final

__all__ = ["Delays"]

K = TypeVar("K", bound=Hashable)


@final
class Delays(Generic[K]):
    """Keys and their due times.

    A key waits once. Added twice, it keeps the earlier time. Keys come out by due time; of two keys
    with the same time, the one that was added first.
    """

    __slots__ = ("_due", "_heap", "_pushed")

    def __init__(self) -> None:
        self._due: dict[K, tuple[float, int]] = {}
        # Invariant: every entry of _due is in the heap. What else is there was overtaken by an
        # earlier time of its key, is passed over, and is at most as much again, and 16.
        self._heap: list[tuple[float, int, K]] = []
        self._pushed = 0

    def add(self, key: K, due: float) -> bool:
        """Make ``key`` due at ``due`` if that is sooner; return whether it is."""
        known = self._due.get(key)
        # client-go too keeps the earlier of two times. Otherwise a stream of rate-limited retries
        # could put off a key for ever.
        if known is not None and known[0] <= due:
            return False
        self._pushed += 1
        self._due[key] = due, self._pushed
        heapq.heappush(self._heap, (due, self._pushed, key))  # numbers differ: keys never compare
        # A heap cannot remove from its middle. Without this a key whose time is moved forward again
        # and again would grow the heap without a bound; rebuilding at twice the size costs constant
        # time per add.
        if len(self._heap) > 2 * len(self._due) + 16:
            self._heap = [(due, number, key) for key, (due, number) in self._due.items()]
            heapq.heapify(self._heap)
        return True

    def pop(self) -> K:
        """Take out what falls due next; `next_due` says when, and whether there is anything.

        Raises:
            IndexError: if nothing waits.
        """
        while True:
            _, number, key = heapq.heappop(self._heap)
            if self._is_current(key, number):
                del self._due[key]
                return key

    def clear(self) -> None:
        """Forget everything."""
        self._due.clear()
        self._heap.clear()

    @property
    def next_due(self) -> float | None:
        """When something falls due next; ``None`` if nothing waits."""
        heap = self._heap
        while heap and not self._is_current(heap[0][2], heap[0][1]):
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def __len__(self) -> int:
        return len(self._due)

    def __contains__(self, key: object) -> bool:
        return key in self._due

    def __iter__(self) -> Iterator[K]:
        """Iterate over the keys that wait, by time."""
        return iter(sorted(self._due, key=self._due.__getitem__))

    def _is_current(self, key: K, number: int) -> bool:
        known = self._due.get(key)
        return known is not None and known[1] == number
