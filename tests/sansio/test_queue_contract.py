"""What every queue promises, whichever is chosen: one suite, run over both.

What has to hold in any order of writing, popping and handling is in ``test_queue_model``.
"""

from __future__ import annotations

import gc
import weakref
from typing import Final

import pytest

from kinform.errors import UsageError
from kinform.meta import Entry, ObjectMeta, ObjectName
from kinform.sansio.queue.delta_fifo import DeltaFIFO
from kinform.sansio.queue.deltas import Delta, DeltaType, Progress
from kinform.sansio.queue.interface import Batch, FifoStatistics, Queue, QueueFactory
from kinform.sansio.queue.real_fifo import RealFIFO

DEVIATIONS: Final = {
    "CG-D05": "synced when the last item of the list is handled; popped is not enough",
    "CG-D06": "a pop never blocks: a waiting reader is woken by the close",
    "CG-F18": "as CG-D06",
}

QUEUES: list[QueueFactory] = [RealFIFO, DeltaFIFO]
WRITES = ["add", "update", "delete", "replace", "resync", "bookmark"]


@pytest.fixture(params=QUEUES, ids=["RealFIFO", "DeltaFIFO"])
def make(request: pytest.FixtureRequest) -> QueueFactory:
    return request.param


def entry(name: str, value: int) -> Entry[int]:
    return Entry(ObjectMeta(name=name, resource_version=str(value)), value)


def listing(*entries: Entry[int]) -> dict[ObjectName, Entry[int]]:
    return {listed.metadata.key: listed for listed in entries}


def write(queue: Queue[int], operation: str) -> None:
    """Do one of WRITES, each of which adds something to a queue that knows ``a``."""
    arguments = {"replace": (listing(entry("a", 2)), "2"), "resync": (), "bookmark": ("3",)}
    getattr(queue, operation)(*arguments.get(operation, (entry("a", 2),)))


class Noting:
    """A transform that changes nothing and notes what it was given."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def __call__(self, original: Entry[int]) -> Entry[int]:
        self.seen.append(original.object)
        return original


def handle_all(queue: Queue[int], limit: int = 1000) -> list[Batch[int]]:
    batches: list[Batch[int]] = []
    while (batch := queue.pop_batch(limit)) is not None:
        queue.done(batch)
        batches.append(batch)
    return batches


def values(batch: Batch[int] | None) -> list[int]:
    assert batch is not None
    assert isinstance(batch.content, list)
    return [delta.entry.object for delta in batch.content if delta.entry is not None]


# --- popping ----------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [2, 1000])
def test_a_batch_holds_distinct_keys_in_order_up_to_its_limit(
    make: QueueFactory, limit: int
) -> None:
    """A thousand is what it is unless told otherwise."""
    queue: Queue[int] = make()
    for value in range(limit + 1):
        queue.add(entry(f"pod-{value}", value))
    batches = handle_all(queue) if limit == 1000 else handle_all(queue, limit)
    assert [[*range(limit)], [limit]] == [values(batch) for batch in batches]


def test_bookmarks_stand_alone_and_split_what_is_around_them(make: QueueFactory) -> None:
    queue: Queue[int] = make()
    queue.add(entry("a", 1))
    queue.bookmark("5")
    queue.add(entry("b", 6))
    first, second, third = handle_all(queue)
    assert ([1], Progress("5"), [6]) == (values(first), second.content, values(third))


def test_bookmarks_in_a_row_do_not_pile_up(make: QueueFactory) -> None:
    """A consumer that hangs for a day costs one bookmark, not a thousand."""
    queue: Queue[int] = make()
    queue.add(entry("a", 1))
    for version in ("5", "6", "7"):
        queue.bookmark(version)
    assert [Progress("7")] == [batch.content for batch in handle_all(queue)[1:]]


def test_the_next_batch_waits_for_the_one_before(make: QueueFactory) -> None:
    queue: Queue[int] = make()
    queue.add(entry("a", 1))
    batch = queue.pop_batch()
    with pytest.raises(UsageError, match="still out"):
        queue.pop_batch()
    assert batch is not None
    queue.done(batch)
    assert queue.pop_batch() is None


def test_a_batch_is_done_once(make: QueueFactory) -> None:
    """Even if an equal one is out: the count of the first list depends on it."""
    queue: Queue[int] = make()
    queue.add(entry("a", 1))
    (batch,) = handle_all(queue)
    with pytest.raises(UsageError, match="not out"):
        queue.done(batch)
    queue.add(entry("a", 1))
    equal = queue.pop_batch()
    assert equal == batch
    with pytest.raises(UsageError, match="not out"):
        queue.done(batch)


def test_nothing_popped_is_kept_alive(make: QueueFactory) -> None:
    """Popped slots are released, in front of items that still wait and in an empty queue."""

    class Payload:
        pass

    queue: Queue[Payload] = make()
    for name in "ab":
        queue.add(Entry(ObjectMeta(name=name), Payload()))
    alive: list[int] = []
    for _ in "ab":
        batch = queue.pop_batch(1)
        assert batch is not None
        assert isinstance(batch.content, list)
        (popped,) = batch.content
        assert popped.entry is not None
        payload = weakref.ref(popped.entry.object)
        queue.done(batch)
        del batch, popped
        gc.collect()
        alive.append(payload() is not None)
    assert [False, False] == alive


def test_a_queue_is_idle_when_nothing_waits_and_no_batch_is_out(make: QueueFactory) -> None:
    queue: Queue[int] = make()
    idle = [queue.is_idle]
    queue.add(entry("a", 1))
    idle.append(queue.is_idle)
    batch = queue.pop_batch()
    assert batch is not None
    assert queue.is_empty
    idle.append(queue.is_idle)
    queue.done(batch)
    idle.append(queue.is_idle)
    assert [True, False, False, True] == idle


def test_a_queue_that_was_written_to_meanwhile_is_not_idle_after_done(make: QueueFactory) -> None:
    queue: Queue[int] = make()
    queue.add(entry("a", 1))
    batch = queue.pop_batch()
    assert batch is not None
    queue.add(entry("b", 2))
    queue.done(batch)
    assert not queue.is_idle


# --- the first list ---------------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["add", "update", "delete"])
def test_a_queue_that_starts_with_a_change_has_no_first_list(
    make: QueueFactory, operation: str
) -> None:
    queue = make(known=listing(entry("a", 1)))
    write(queue, operation)
    assert queue.has_synced
    queue.replace(listing(entry("b", 5)), "5")
    assert queue.has_synced
    assert not any(batch.in_initial_list for batch in handle_all(queue))


@pytest.mark.parametrize("operation", ["resync", "bookmark"])
def test_neither_resync_nor_bookmark_counts_as_a_first_list(
    make: QueueFactory, operation: str
) -> None:
    queue = make(known=listing(entry("a", 1)))
    write(queue, operation)
    handle_all(queue)
    assert not queue.has_synced


def test_popped_is_not_handled(make: QueueFactory) -> None:
    """CG-D05. client-go's DeltaFIFO may say synced before the last item was processed."""
    queue: Queue[int] = make()
    queue.replace(listing(entry("a", 1)), "")
    batch = queue.pop_batch()
    assert not queue.has_synced
    assert batch is not None
    queue.done(batch)
    assert queue.has_synced


def test_what_was_popped_before_the_first_list_does_not_pay_for_it(make: QueueFactory) -> None:
    queue = make(known=listing(entry("a", 1)))
    queue.resync()
    early = queue.pop_batch()
    assert early is not None
    queue.replace(listing(entry("a", 2)), "2")
    queue.done(early)
    assert (early.in_initial_list, queue.has_synced) == (False, False)
    assert handle_all(queue)[0].in_initial_list
    assert queue.has_synced
    queue.replace(listing(entry("a", 3)), "3")
    assert queue.has_synced  # a later list is no first list


# --- closing and waking -----------------------------------------------------------------------


def test_a_closed_queue_gives_what_waits_and_then_nothing(make: QueueFactory) -> None:
    queue: Queue[int] = make()
    queue.add(entry("a", 1))
    queue.close()
    assert (queue.closed, queue.is_empty) == (True, False)
    assert [[1]] == [values(batch) for batch in handle_all(queue)]
    assert queue.pop_batch() is None


@pytest.mark.parametrize("operation", WRITES)
def test_what_is_written_after_the_close_is_ignored(make: QueueFactory, operation: str) -> None:
    """A reflector on its way out does no harm, and nothing grows that nobody will pop."""
    transform = Noting()
    queue = make(known=listing(entry("a", 1)), transform=transform)
    queue.close()
    write(queue, operation)
    assert (queue.is_empty, queue.has_synced, transform.seen) == (True, False, [])


@pytest.mark.parametrize("operation", WRITES)
def test_the_reader_is_woken_when_an_empty_queue_gets_something(
    make: QueueFactory, operation: str
) -> None:
    wakes: list[str] = []
    queue = make(known=listing(entry("a", 1)), on_ready=lambda: wakes.append(operation))
    write(queue, operation)
    assert [operation] == wakes
    queue.add(entry("b", 9))  # it is not empty: whoever was woken pops this too
    assert [operation] == wakes


def test_whoever_is_woken_can_pop_at_once(make: QueueFactory) -> None:
    """The call comes last: what it announces is complete, the first list's count included."""
    popped: list[Batch[int] | None] = []
    queue: Queue[int] = make(on_ready=lambda: popped.append(queue.pop_batch()))
    queue.replace(listing(entry("a", 1), entry("b", 2)), "2")
    assert [True] == [batch.in_initial_list for batch in popped if batch is not None]


def test_the_reader_is_woken_once_by_the_close(make: QueueFactory) -> None:
    """CG-D06, CG-F18: readers that wait return after the close; here they are told to look."""
    wakes: list[None] = []
    queue: Queue[int] = make(on_ready=lambda: wakes.append(None))
    assert (queue.pop_batch(), queue.closed) == (None, False)
    queue.close()
    queue.close()
    assert [None] == wakes
    assert (queue.pop_batch(), queue.closed) == (None, True)


# --- transform --------------------------------------------------------------------------------


def test_a_transform_that_raises_leaves_the_queue_as_it_was(make: QueueFactory) -> None:
    """A list is taken whole or not at all."""

    def transform(original: Entry[int]) -> Entry[int]:
        if original.object > 2:
            raise ArithmeticError(original.object)
        return original

    queue = make(known=listing(entry("a", 1)), transform=transform)
    with pytest.raises(ArithmeticError):
        queue.replace(listing(entry("b", 2), entry("c", 3)), "3")
    with pytest.raises(ArithmeticError):
        queue.add(entry("d", 4))
    assert (queue.is_empty, queue.has_synced) == (True, False)


def test_a_transform_has_no_say_in_the_key(make: QueueFactory) -> None:
    queue = make(transform=lambda original: entry("other", original.object))
    queue.update(entry("a", 1))
    (batch,) = handle_all(queue)
    assert [Delta(DeltaType.UPDATED, ObjectName("", "a"), entry("other", 1))] == batch.content


def test_each_object_of_a_list_is_transformed_once(make: QueueFactory) -> None:
    """Deviation (8.3, finding 10): client-go transforms those of a watch-list twice."""
    transform = Noting()
    queue = make(transform=transform)
    queue.replace(listing(entry("a", 1), entry("b", 2)), "2")
    queue.resync()
    queue.replace({}, "3")
    handle_all(queue)
    assert [1, 2] == transform.seen


# --- figures ----------------------------------------------------------------------------------


def test_a_queue_is_congested_from_its_high_water_mark_on(make: QueueFactory) -> None:
    queue: Queue[int] = make(high_water=2)
    congested: list[bool] = []
    for step in (queue.add, queue.update):
        step(entry(step.__name__, 1))
        congested.append(queue.is_congested)
    queue.pop_batch(1)
    assert [False, True, False] == [*congested, queue.is_congested]


def test_a_list_weighs_as_much_as_its_objects(make: QueueFactory) -> None:
    """So that relists cannot pile up unnoticed, each as big as the cache."""
    queue: Queue[int] = make(high_water=3)
    queue.replace(listing(*(entry(name, 1) for name in "abc")), "1")
    congested = queue.is_congested
    handle_all(queue)
    assert [True, False] == [congested, queue.is_congested]


def test_bounds_below_one_are_refused(make: QueueFactory) -> None:
    with pytest.raises(ValueError, match="limit must be positive"):
        make().pop_batch(0)
    with pytest.raises(ValueError, match="high_water must be positive"):
        make(high_water=0)


def test_the_figures_tell_what_waits_and_what_waited(make: QueueFactory) -> None:
    queue: Queue[int] = make()
    for value, name in enumerate("abc"):
        queue.add(entry(name, value))
    assert FifoStatistics(waiting=3, peak=3, batches=0) == queue.statistics()
    handle_all(queue, limit=2)
    assert FifoStatistics(waiting=0, peak=3, batches=2) == queue.statistics()
