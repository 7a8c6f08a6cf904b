"""The state of a work queue: the keys that wait, are processed, or are to be processed again.

Client-go keeps a queue, a *dirty* set (keys to process) and a *processing* set. Here each key has
one of four states instead, which are the four combinations of these sets:

.. code-block:: text

                 add                  take                     add
    (unknown) ─────────▶ QUEUED ───────────────▶ PROCESSING ─────────▶ DIRTY
        ▲                  ▲   dirty               │   processing        │   both
        │                  │                       │ done                │ done
        └──────────────────┼───────────────────────┘                     │
                           └─────────────────────────────────────────────┘

Rule 1: a key is never worked on twice at once.
Rule 2: many adds before it is taken are one; so are many adds while it is worked on.
Rule 3: after every add the key is taken once more, at least.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Hashable
from typing import Final, Generic, Protocol, TypeVar, final

__all__ = ["AddResult", "Order", "Priority", "WorkState"]

K = TypeVar("K", bound=Hashable)


class Priority(enum.IntEnum):
    """The priority of a key. Its effect depends on the `Order`."""

    LOW = -1
    """Work that can wait: objects of the initial list, resyncs."""
    NORMAL = 0
    HIGH = 1


class Order(Protocol[K]):
    """The order of the keys that wait (client-go: ``workqueue.Queue``)."""

    def push(self, key: K, priority: Priority, /) -> None:
        """Put in a key that does not wait yet."""
        ...

    def touch(self, key: K, priority: Priority, /) -> None:
        """Handle a key that waits and was added again: it may be moved forward."""
        ...

    def pop(self) -> K:
        """Take out the next key. At least one waits."""
        ...

    def __len__(self) -> int:
        """Return how many wait."""
        ...


class AddResult(enum.Enum):
    """The result of adding a key."""

    QUEUED = enum.auto()
    """It stands in line now."""
    LATER = enum.auto()
    """It is being worked on, and stands in line again as soon as that is done."""
    MERGED = enum.auto()
    """It was to be worked on already."""


# Plain integers: a lookup of an enum member for every event would cost more than the comparison.
_QUEUED: Final = 1
_PROCESSING: Final = 2
_DIRTY: Final = 3
_NORMAL: Final = Priority.NORMAL
# Looked up once: this runs for every event.
_NOW, _LATER, _MERGED = AddResult.QUEUED, AddResult.LATER, AddResult.MERGED


@final
class WorkState(Generic[K]):
    """The states of all keys, and the line; first come, first served, unless ``order`` is given.

    Nothing is remembered of a key that was done, so that it takes no memory.
    """

    __slots__ = ("_again", "_fifo", "_order", "_states", "processing", "waiting")

    waiting: int
    """The number of keys that wait. Read-only; a plain attribute, for speed."""
    processing: int
    """The number of keys that are processed. Read-only."""

    def __init__(self, order: Order[K] | None = None) -> None:
        self._order = order
        self._fifo: deque[K] = deque()  # used without an `Order`
        self._states: dict[K, int] = {}
        self.waiting = 0  # how many are QUEUED
        self.processing = 0  # how many are PROCESSING or DIRTY
        self._again: dict[K, Priority] = {}  # those that are DIRTY, and how they come back

    def add(self, key: K, priority: Priority = _NORMAL) -> AddResult:
        """Note that there is something to do for ``key``."""
        states = self._states
        state = states.get(key)
        if state is None:
            if self._order is None:
                self._fifo.append(key)
            else:
                self._order.push(key, priority)  # it may raise; then nothing has happened
            states[key] = _QUEUED
            self.waiting += 1
            return _NOW
        if state == _QUEUED:
            if self._order is not None:
                self._order.touch(key, priority)
            return _MERGED
        if state == _PROCESSING:
            states[key] = _DIRTY
            self._again[key] = priority
            return _LATER
        self._again[key] = max(self._again[key], priority)
        return _MERGED

    def take(self) -> K:
        """Take out the next key; `done` must follow. At least one must wait: see `waiting`."""
        order = self._order
        key = self._fifo.popleft() if order is None else order.pop()
        self._states[key] = _PROCESSING
        self.waiting -= 1
        self.processing += 1
        return key

    def done(self, key: K) -> bool:
        """End the processing of ``key``; return whether it is queued again.

        Raises:
            KeyError: it is not being processed.
        """
        state = self._states.pop(key)
        if state == _PROCESSING:
            self.processing -= 1
            return False
        self._states[key] = state  # it stays
        if state == _QUEUED:
            raise KeyError(key)
        if self._order is None:
            self._fifo.append(key)
        else:
            self._order.push(key, self._again[key])  # it may raise; then nothing has happened
        del self._again[key]
        self._states[key] = _QUEUED
        self.processing -= 1
        self.waiting += 1
        return True

    def __contains__(self, key: object) -> bool:
        """Return whether ``key`` waits or is processed."""
        return key in self._states

    @property
    def returning(self) -> int:
        """The number of keys in processing that will be queued again."""
        return len(self._again)

    def is_processing(self, key: K) -> bool:
        """Return whether ``key`` is being processed."""
        return self._states.get(key, _QUEUED) != _QUEUED

    def unfinished(self) -> list[K]:
        """Return every key that waits or is worked on."""
        return list(self._states)
