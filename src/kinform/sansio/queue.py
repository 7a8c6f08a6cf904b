"""Between reflector and cache: what a queue promises to the one and to the other.

The reflector writes (`ReflectorStore`), the pump reads (`Queue`); both live on one loop, so there
are no locks. Nothing here waits: ``on_ready`` says when it is worth looking again.

Rule 1: popped is not handled. A batch is out until ``done``, and `Queue.has_synced` counts what
is done, so that nobody reads a cache as complete while its last objects are on their way.
Rule 2: whoever writes between ``pop_batch`` and ``done`` is not misled: a key on its way counts
as what it will be when it has arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeAlias, TypeVar, final

import msgspec

from kinform.errors import UsageError
from kinform.meta import Entry, ObjectName
from kinform.sansio.deltas import Delta, Progress, ReplacedAll, SyncAll

__all__ = [
    "BATCH_LIMIT",
    "HIGH_WATER",
    "Batch",
    "Content",
    "Handover",
    "KnownObjects",
    "Queue",
    "QueueFactory",
    "QueueStatistics",
    "ReflectorStore",
    "Transform",
    "never_mind",
]

T = TypeVar("T")

BATCH_LIMIT: Final = 1000
"""How many deltas a batch holds at most, unless told otherwise (client-go: the same)."""

HIGH_WATER: Final = 2 * BATCH_LIMIT
"""How many may wait before the writer should (client-go: 2 x the batch size)."""

Content: TypeAlias = Sequence[Delta[T]] | ReplacedAll[T] | SyncAll | Progress
"""What one batch holds: deltas, or one change of everything, alone."""

Transform: TypeAlias = Callable[[Entry[T]], Entry[T]]
"""What is done to each entry before it is queued; it may not change the key."""


def never_mind() -> None:
    """Do nothing: what ``on_ready`` is where nobody waits."""


@final
class Batch(msgspec.Struct, Generic[T], frozen=True):
    """What is handled in one go, to be given back with `Queue.done`.

    ``in_initial_list`` tells that it belongs to what was there at the start; a batch never holds
    both, what was and what came later.
    """

    content: Content[T]
    in_initial_list: bool


class KnownObjects(Protocol[T]):
    """What the cache holds already, as a queue asks for it."""

    def keys(self) -> Iterable[ObjectName]:
        """Return the key of every object in the cache."""
        ...

    def get(self, key: ObjectName, /) -> Entry[T] | None:
        """Return the object under ``key``, if there is one."""
        ...


class ReflectorStore(Protocol[T]):
    """What a reflector writes into: a queue, or a plain store."""

    def add(self, entry: Entry[T], /) -> object:
        """Tell that the object is new."""
        ...

    def update(self, entry: Entry[T], /) -> object:
        """Tell that the object changed."""
        ...

    def delete(self, item: Entry[T] | ObjectName, /) -> object:
        """Tell that the object is gone; given its key alone, the final state is not known."""
        ...

    def replace(
        self,
        entries: Mapping[ObjectName, Entry[T]],
        resource_version: str,
        *,
        afresh: bool = False,
    ) -> object:
        """Tell that there is this and nothing else.

        The mapping now belongs to the store and must not be changed. It is taken whole or, if
        something raises, not at all.

        ``afresh``, which is given only if it is true: equal versions prove nothing, see
        `ReplacedAll`.
        """
        ...

    def resync(self) -> None:
        """Ask that everything be told again; nothing changes by it."""
        ...

    def bookmark(self, resource_version: str, /) -> None:
        """Tell that everything up to ``resource_version`` has been told."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatistics:
    """Figures of a queue at one moment, for people and metrics."""

    waiting: int
    """Objects that wait: each delta counts, and each object of a relist."""
    peak: int
    """The most that ever waited."""
    batches: int
    """Batches handed out so far."""


class Queue(ReflectorStore[T], Protocol[T]):
    """Changes on their way from one reflector to one pump.

    Promised by every queue: whoever applies what is popped, in the order of popping, ends with
    what was written; the changes of one key keep their order; no delete of an object that was
    told of gets lost. Not promised: that every state in between is seen (`DeltaFIFO` and
    `RealFIFO` differ in that).

    A writer's call takes effect whole or, if its transform raises, not at all. After ``close``
    writers are ignored, so that a reflector on its way out does no harm; what waits can still be
    popped.
    """

    def pop_batch(self, limit: int = BATCH_LIMIT) -> Batch[T] | None:
        """Take out the next changes, in order; None if there are none at the moment.

        Nothing more comes once that is so and ``closed`` is true. The batch is to be given back
        with ``done`` before the next one is taken.

        Raises:
            UsageError: if the batch before is not ``done`` yet.
            ValueError: if ``limit`` is less than 1.
        """
        ...

    def done(self, batch: Batch[T]) -> None:
        """Tell that ``batch`` is handled: applied, or given up for good.

        Call it whatever happened (``finally``), else the queue stands still.

        Raises:
            UsageError: if ``batch`` is not the one that is out.
        """
        ...

    def close(self) -> None:
        """End it: what waits can still be popped, what is written from now on is ignored.

        A second call does nothing.
        """
        ...

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        ...

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits; a batch may be out all the same."""
        ...

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits and no batch is out: all that was written is handled."""
        ...

    @property
    def has_synced(self) -> bool:
        """Whether everything of the first list is handled; never becomes false again.

        Also true once something was added, updated or deleted before any list: such a queue has
        no initial list to wait for.
        """
        ...

    @property
    def is_congested(self) -> bool:
        """Whether so much waits that the writer should stop reading until less does."""
        ...

    def statistics(self) -> QueueStatistics:
        """Return the figures of this moment."""
        ...


class QueueFactory(Protocol):
    """How an informer makes the queue it was told to use: ``queue=RealFIFO``."""

    def __call__(
        self,
        *,
        known: KnownObjects[T] | None = None,
        transform: Transform[T] | None = None,
        on_ready: Callable[[], None] = never_mind,
        high_water: int = HIGH_WATER,
    ) -> Queue[T]:
        """Return a new, empty queue in front of the cache that holds ``known``.

        ``on_ready`` is called when an empty queue got something, and when it is closed; it may
        pop, but must not raise. It is not called again before the queue was empty: a pump that
        was woken pops until ``pop_batch`` returns None before it waits again.

        Raises:
            ValueError: if ``high_water`` is less than 1.
        """
        ...


@final
class Handover(Generic[T]):
    """The part of a queue that knows what is out and what the first list still owes.

    Invariant: at most one batch is out. So all that was popped before it is handled, and one
    counter, ``initial``, is exact at every pop: what is left of the first list, of which the
    queue's next items are the first.
    """

    __slots__ = ("_batch", "_batches", "_peak", "_size", "high_water", "initial", "populated")

    def __init__(self, high_water: int) -> None:
        if high_water < 1:
            raise ValueError(f"high_water must be positive, got {high_water!r}")
        self.high_water: Final = high_water
        self.populated: bool = False  # something was written that makes "synced" a question
        self.initial: int = 0  # items of the first list that are not handled yet
        self._batch: Batch[T] | None = None
        self._size = 0  # how many of ``initial`` the batch that is out accounts for
        self._peak = 0
        self._batches = 0

    @property
    def is_out(self) -> bool:
        """Whether a batch is out."""
        return self._batch is not None

    @property
    def has_synced(self) -> bool:
        """Whether the first list is handled, or there is none to wait for."""
        return self.populated and not self.initial

    def listed(self, items: int) -> None:
        """Note that a list is queued and makes ``items`` wait; only the first one counts."""
        # client-go: initialPopulationCount. All that waits is counted, not only the list: what
        # stands before it is handled before it.
        if not self.populated:
            self.populated = True
            self.initial = items

    def check(self, limit: int) -> None:
        """Raise what `Queue.pop_batch` raises."""
        # Two batches at once could be handled in the wrong order, and one of them forgotten.
        if self._batch is not None:
            raise UsageError("the batch before is still out: call done(batch), then pop_batch()")
        if limit < 1:
            raise ValueError(f"limit must be positive, got {limit!r}")

    def give(self, content: Content[T], *, size: int, waiting: int) -> Batch[T]:
        """Hand out ``content``, which is ``size`` items; ``waiting`` objects waited till now."""
        batch = Batch(content, in_initial_list=self.initial > 0)
        self._batch = batch
        # A batch that went out before the first list was written is no part of it, even if it
        # comes back after that.
        self._size = size if batch.in_initial_list else 0
        self._peak = max(self._peak, waiting)
        self._batches += 1
        return batch

    def done(self, batch: Batch[T]) -> None:
        """Take back ``batch``; see `Queue.done`."""
        if batch is not self._batch:  # by identity: an equal one may have been handled before
            raise UsageError("this batch is not out: done(batch) is called once for each batch")
        # Forget it: a queue that waits for days must not keep a batch's objects alive.
        self._batch = None
        self.initial -= self._size

    def statistics(self, waiting: int) -> QueueStatistics:
        """Return the figures, given how many wait."""
        # A queue only shrinks when it is popped: looking then, and now, misses no peak.
        peak = max(self._peak, waiting)
        return QueueStatistics(waiting=waiting, peak=peak, batches=self._batches)
