"""Queue: the interface between a reflector, which writes, and a pump, which pops batches.

Both run on one event loop, so there are no locks. Nothing here waits: ``on_ready`` is called when
an empty queue got something.

Rule 1: a popped batch is in flight until ``done``. `Queue.has_synced` counts batches that are
done, so that a cache does not count as synced while its last objects are in flight.
Rule 2: for a write between ``pop_batch`` and ``done``, a key in flight counts as it will be once
its batch is applied.

client-go: tools/cache/fifo.go and delta_fifo.go, the Queue interface.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeAlias, TypeVar, final

import msgspec

from kinform.errors import UsageError
from kinform.meta import Entry, ObjectName
from kinform.sansio.queue.deltas import Delta, Progress, ReplacedAll, SyncAll

__all__ = [
    "BATCH_LIMIT",
    "HIGH_WATER",
    "Batch",
    "Content",
    "FifoStatistics",
    "Handover",
    "KnownObjects",
    "Queue",
    "QueueFactory",
    "ReflectorStore",
    "Transform",
    "no_op",
]

T = TypeVar("T")

BATCH_LIMIT: Final = 1000
"""The default maximum of deltas in a batch (client-go: the same)."""

HIGH_WATER: Final = 2 * BATCH_LIMIT
"""The default number of queued objects that makes a queue congested (client-go: the same)."""

Content: TypeAlias = Sequence[Delta[T]] | ReplacedAll[T] | SyncAll | Progress
"""The content of a batch: deltas, or a single change of the whole cache."""

Transform: TypeAlias = Callable[[Entry[T]], Entry[T]]
"""Applied to each entry before it is queued; it must not change the key."""


def no_op() -> None:
    """Do nothing: the default callback."""


@final
class Batch(msgspec.Struct, Generic[T], frozen=True):
    """Changes that are applied together; return it with `Queue.done`.

    ``in_initial_list``: it is part of the first list. A batch never holds both objects of the
    first list and later changes.
    """

    content: Content[T]
    in_initial_list: bool


class KnownObjects(Protocol[T]):
    """The content of the cache, as a queue reads it."""

    def keys(self) -> Iterable[ObjectName]:
        """Return the key of every object in the cache."""
        ...

    def get(self, key: ObjectName, /) -> Entry[T] | None:
        """Return the object under ``key``, or ``None``."""
        ...


class ReflectorStore(Protocol[T]):
    """The target of a reflector: a queue, or a plain store."""

    def add(self, entry: Entry[T], /) -> object:
        """Write a new object."""
        ...

    def update(self, entry: Entry[T], /) -> object:
        """Write a changed object."""
        ...

    def delete(self, item: Entry[T] | ObjectName, /) -> object:
        """Write a deletion; given the key alone, the final state is unknown."""
        ...

    def replace(
        self,
        entries: Mapping[ObjectName, Entry[T]],
        resource_version: str,
        *,
        afresh: bool = False,
    ) -> object:
        """Replace the whole content.

        The mapping now belongs to the store and must not be changed. It is taken as a whole or,
        if something raises, not at all.

        ``afresh`` (passed only if true): the server was restored, so objects with the same
        resourceVersion may differ; see `ReplacedAll`.
        """
        ...

    def resync(self) -> None:
        """Deliver every object again; the content stays the same."""
        ...

    def bookmark(self, resource_version: str, /) -> None:
        """Note that every change up to ``resource_version`` was written."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FifoStatistics:
    """Statistics of a queue at one moment."""

    waiting: int
    """Queued objects: each delta counts, and each object of a relist."""
    peak: int
    """The maximum of ``waiting`` so far."""
    batches: int
    """Batches popped so far."""


class Queue(ReflectorStore[T], Protocol[T]):
    """Changes on their way from one reflector to one pump.

    Every queue guarantees: a cache to which all batches are applied, in order, ends with the
    state that was written; the changes of one key keep their order; no delete of an object that
    was popped before is lost. Not guaranteed: that every intermediate state is popped (`DeltaFIFO`
    and `RealFIFO` differ in that).

    A write takes effect as a whole or, if its transform raises, not at all. After ``close``
    writes are ignored, so that a reflector that is being stopped does no harm; queued changes can
    still be popped.
    """

    def pop_batch(self, limit: int = BATCH_LIMIT) -> Batch[T] | None:
        """Remove and return the next changes, in order; ``None`` if the queue is empty.

        An empty queue that is ``closed`` stays empty. Return the batch with ``done`` before the
        next call.

        Raises:
            UsageError: if the previous batch is not ``done`` yet.
            ValueError: if ``limit`` is less than 1.
        """
        ...

    def done(self, batch: Batch[T]) -> None:
        """Mark ``batch`` as handled: applied, or dropped for good.

        Must be called in any case: without it the next ``pop_batch`` raises.

        Raises:
            UsageError: if ``batch`` is not the one in flight.
        """
        ...

    def close(self) -> None:
        """Ignore all writes from now on; queued changes can still be popped.

        A second call does nothing.
        """
        ...

    @property
    def closed(self) -> bool:
        """True if ``close`` was called."""
        ...

    @property
    def is_empty(self) -> bool:
        """True if nothing is queued; a batch may be in flight all the same."""
        ...

    @property
    def is_idle(self) -> bool:
        """True if nothing is queued or in flight: all that was written is handled."""
        ...

    @property
    def has_synced(self) -> bool:
        """True if every object of the first list is handled; never becomes false again.

        Also true once something was added, updated or deleted before any list: such a queue has
        no first list to wait for.
        """
        ...

    @property
    def is_congested(self) -> bool:
        """True if the writer should pause: too many objects are queued."""
        ...

    def statistics(self) -> FifoStatistics:
        """Return the current statistics."""
        ...


class QueueFactory(Protocol):
    """Makes the queue of an informer: ``queue=RealFIFO``."""

    def __call__(
        self,
        *,
        known: KnownObjects[T] | None = None,
        transform: Transform[T] | None = None,
        on_ready: Callable[[], None] = no_op,
        high_water: int = HIGH_WATER,
    ) -> Queue[T]:
        """Return a new, empty queue in front of the cache that holds ``known``.

        ``on_ready`` is called when an empty queue got something, and when it is closed; it may
        pop, but must not raise. It is not called again before the queue was empty: a pump that
        was woken pops until the queue is empty before it waits again.

        Raises:
            ValueError: if ``high_water`` is less than 1.
        """
        ...


@final
class Handover(Generic[T]):
    """The part of a queue that tracks the batch in flight and the rest of the first list.

    Invariant: at most one batch is in flight. So all that was popped before it is handled, and one
    counter, ``initial``, is exact at every pop: the number of unhandled items of the first list,
    which are the first items of the queue.
    """

    __slots__ = ("_batches", "_peak", "_size", "batch", "high_water", "initial", "populated")

    def __init__(self, high_water: int) -> None:
        if high_water < 1:
            raise ValueError(f"high_water must be positive, got {high_water!r}")
        self.high_water: Final = high_water
        self.populated: bool = False  # something was written, so "synced" can become true
        self.initial: int = 0  # items of the first list that are not handled yet
        self.batch: Batch[T] | None = None  # the one in flight
        self._size = 0  # how many of ``initial`` the batch in flight accounts for
        self._peak = 0
        self._batches = 0

    def listed(self, items: int) -> None:
        """Note that a list made ``items`` wait in the queue; only the first list counts."""
        # client-go: initialPopulationCount. All queued items are counted, not only the list:
        # those before it are handled before it.
        if not self.populated:
            self.populated = True
            self.initial = items

    def refuse(self, limit: int) -> None:
        """Raise what `Queue.pop_batch` raises, if a batch is in flight or ``limit`` is wrong."""
        # Two batches at once could be applied in the wrong order, and one of them forgotten.
        if self.batch is not None:
            raise UsageError("the batch before is still out: call done(batch), then pop_batch()")
        if limit < 1:
            raise ValueError(f"limit must be positive, got {limit!r}")

    def give(self, content: Content[T], *, size: int, waiting: int) -> Batch[T]:
        """Return ``content``, ``size`` items, as the batch in flight.

        ``waiting`` is how many objects were queued before it was popped.
        """
        batch = Batch(content, in_initial_list=self.initial > 0)
        self.batch = batch
        # A batch that was popped before the first list was written is not part of it, even if it
        # is done after that.
        self._size = size if batch.in_initial_list else 0
        self._peak = max(self._peak, waiting)
        self._batches += 1
        return batch

    def done(self, batch: Batch[T]) -> None:
        """Mark ``batch`` as handled; see `Queue.done`."""
        if batch is not self.batch:  # by identity: an equal one may have been handled before
            raise UsageError("this batch is not out: done(batch) is called once for each batch")
        # An idle queue must not keep the objects of its last batch alive.
        self.batch = None
        self.initial -= self._size

    def statistics(self, waiting: int) -> FifoStatistics:
        """Return the statistics, given how many objects are queued."""
        # A queue shrinks only when it is popped: comparing then, and now, misses no peak.
        peak = max(self._peak, waiting)
        return FifoStatistics(waiting=waiting, peak=peak, batches=self._batches)
