"""Controller: what the source says is processed in order, one batch at a time, come what may."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import random
from collections.abc import AsyncGenerator, Callable
from typing import Final

import pytest

from kinform.cache.controller import Controller, apply
from kinform.cache.store.store import Indexer
from kinform.errors import UsageError
from kinform.meta import Entry
from kinform.objects.object import Object
from kinform.sansio.queue.delta_fifo import DeltaFIFO
from kinform.sansio.queue.deltas import Delta, Transition
from kinform.sansio.queue.interface import Batch, QueueFactory
from kinform.sansio.queue.real_fifo import RealFIFO
from kinform.tasks import background
from kinform.testing import FakeListWatch, in_virtual_time
from tests.cache.support_entries import entry_of
from tests.cache.support_informer import quiet, source_of, thing, value_of

DEVIATIONS: Final = {
    "CG-C12": "metadata is kept beside the object, so the version follows every event, with "
    "any transform",
}

both_queues = pytest.mark.parametrize("queue", [RealFIFO, DeltaFIFO])


class Cache:
    """A controller and what it fills: an informer in its simplest form."""

    def __init__(
        self, source: FakeListWatch[Object], *, queue: QueueFactory = RealFIFO, **options
    ) -> None:
        self.indexer: Indexer[Object] = Indexer()
        self.told: list[Transition[Object]] = []
        self.resynced: list[Entry[Object]] = []
        self.controller: Controller[Object] = Controller(
            source, process=self._process, queue=queue, known=self.indexer.entries, **options
        )

    def _process(self, batch: Batch[Object]) -> None:
        applied = apply(batch, self.indexer.entries)
        self.told += applied.notifications
        self.resynced += applied.resynced

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        async with background(self.controller.run()):
            while not self.controller.has_synced:
                await quiet()
            yield


def values(cache: Cache) -> dict[str, str]:
    return {obj.name: value_of(obj) for obj in cache.indexer.list()}


# --- what is processed


@both_queues
@in_virtual_time
async def test_it_has_synced_when_the_first_list_is_processed(queue: QueueFactory) -> None:
    """CG-C01: not before it runs, and not while the last batch is on its way."""
    source = source_of("a", "b")
    release = asyncio.Event()

    async def process(batch: Batch[Object]) -> None:
        await release.wait()

    controller: Controller[Object] = Controller(source, process=process, queue=queue)
    await quiet()
    assert controller.last_sync_resource_version == ""
    async with background(controller.run()):
        await quiet()
        flags = [controller.has_synced]
        assert controller.last_sync_resource_version == "3"
        release.set()
        await quiet()
        flags.append(controller.has_synced)
    assert flags == [False, True]


@both_queues
@in_virtual_time
async def test_three_writers_at_random_with_resyncs_end_in_the_sources_state(
    queue: QueueFactory,
) -> None:
    """CG-C01, CG-C02: nobody sees a transition that did not happen."""
    source = FakeListWatch()
    cache = Cache(source, queue=queue, resync_period=0.1)

    async def write(prefix: str) -> None:
        rng = random.Random(prefix)
        there: set[str] = set()
        for i in range(100):
            name = f"{prefix}{rng.randrange(10)}"
            if name not in there:
                source.add(thing(name, "from"))
                there.add(name)
            elif rng.random() < 0.5:
                source.modify(thing(name, "to"))
            else:
                source.delete(name)
                there.discard(name)
            await asyncio.sleep(rng.random() / 10 * (i % 3))

    async with cache.running():
        async with asyncio.TaskGroup() as group:
            for prefix in "abc":
                group.create_task(write(prefix))
        await quiet()
        assert set(cache.indexer.list_keys()) == set(source.entries)
        assert cache.indexer.resource_version == source.resource_version
    changes = {
        (value_of(one.old.object), value_of(one.new.object))
        for one in cache.told
        if one.old is not None and one.new is not None
    }
    assert changes <= {("from", "to"), ("from", "from"), ("to", "to")}
    assert sum(one.new is None for one in cache.told) > 0
    assert cache.resynced


@both_queues
@in_virtual_time
async def test_after_a_gap_one_change_is_told_and_not_as_initial(queue: QueueFactory) -> None:
    """CG-C10."""
    source = source_of("a")
    cache = Cache(source, queue=queue)
    async with cache.running():
        source.modify(thing("a", "hidden"), drop=True)
        source.add(thing("b"), drop=True)
        source.compact()
        source.close_watches()
        await quiet(60)
    told = [(one.key.name, one.old is None, one.initial) for one in cache.told]
    assert told == [("a", True, True), ("a", False, False), ("b", True, False)]


RELISTS = [
    ("create only", "", "ab", ["+a", "+b"]),
    ("delete all", "ab", "", ["-a unseen", "-b unseen"]),
    ("mixed", "ab", "ac", ["+c", "-b unseen", "a"]),
]


@both_queues
@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [case[1:] for case in RELISTS],
    ids=[f"CG-C09 {case[0]}" for case in RELISTS],
)
@in_virtual_time
async def test_a_relist_tells_the_same_whichever_queue_it_passes(
    before: str, after: str, expected: list[str], queue: QueueFactory
) -> None:
    source = source_of(*before)
    cache = Cache(source, queue=queue)
    async with cache.running():
        cache.told.clear()
        for name in before:
            if name in after:
                source.modify(thing(name, "new"), drop=True)
            else:
                source.delete(name, drop=True)
        for name in sorted(set(after) - set(before)):
            source.add(thing(name), drop=True)
        source.advance()
        source.compact()
        source.close_watches()
        await quiet(60)
        assert cache.indexer.resource_version == source.resource_version
        assert {key.name for key in cache.indexer.list_keys()} == set(after)
    assert sorted(map(_said, cache.told)) == expected
    held = {key: entry.metadata for key, entry in source.entries.items()}
    assert all(one.new is None or one.new.metadata == held[one.key] for one in cache.told)


def _said(one: Transition[Object]) -> str:
    if one.new is None:
        return f"-{one.key.name}{' unseen' if one.final_state_unknown else ''}"
    return f"+{one.key.name}" if one.old is None else one.key.name


@both_queues
@in_virtual_time
async def test_the_stores_version_follows_updates_and_deletes(queue: QueueFactory) -> None:
    """CG-C11."""
    source = source_of("a", "b")
    cache = Cache(source, queue=queue)
    source.advance(3)
    changes: list[Callable[[], object]] = [
        lambda: source.modify(thing("a", "1")),
        lambda: source.delete("b"),
        lambda: source.advance(3),
        source.bookmark,
    ]
    async with cache.running():
        await quiet()
        seen = [cache.indexer.resource_version]
        for change in changes:
            change()
            await quiet()
            seen.append(cache.indexer.resource_version)
    assert seen == ["6", "7", "8", "8", "11"]


@in_virtual_time
async def test_the_version_follows_events_whatever_a_transform_makes_of_objects() -> None:
    """CG-C12."""
    source: FakeListWatch[object] = FakeListWatch(object)
    source.add(entry_of("default/a", "first"))
    indexer: Indexer[object] = Indexer()

    def process(batch: Batch[object]) -> None:
        apply(batch, indexer.entries)

    controller: Controller[object] = Controller(
        source, process=process, transform=lambda obj: (obj, "without metadata")
    )
    async with background(controller.run()):
        await quiet()
        source.modify(entry_of("default/a", "second"))
        source.add(entry_of("default/b", "other"))
        await quiet()
        assert indexer.resource_version == "4"
        assert indexer.get("default/a") == ("second", "without metadata")


@both_queues
@in_virtual_time
async def test_under_constant_resyncs_nothing_is_transformed_twice(queue: QueueFactory) -> None:
    """CG-C05: and nobody reads what is not transformed."""
    source = source_of("a", "b", "c")
    seen: list[object] = []

    def stamp(obj: Object) -> Object:
        assert value_of(obj) == ""
        return Object.from_dict({**obj.to_dict(), "data": {"value": "stamped"}})

    cache = Cache(source, queue=queue, resync_period=0.005, transform=stamp)
    async with cache.running():
        for i in range(100):
            source.modify(thing("abc"[i % 3]))
            await asyncio.sleep(0.01)
            seen += values(cache).values()
    assert set(seen) == {"stamped"}
    assert {value_of(entry.object) for entry in cache.resynced} == {"stamped"}
    assert len(cache.resynced) >= 300


# --- whatever happens


@both_queues
@in_virtual_time
async def test_a_batch_that_cannot_be_processed_is_logged_and_the_next_follows(
    queue: QueueFactory, caplog: pytest.LogCaptureFixture
) -> None:
    """CG-C03: one bad object must not end a cache."""
    source = source_of("a")
    handled: list[str] = []

    def process(batch: Batch[Object]) -> None:
        if batch.in_initial_list:
            raise ValueError("the list")
        if isinstance(batch.content, list):
            handled.extend(delta.key.name for delta in batch.content)

    controller: Controller[Object] = Controller(source, process=process, queue=queue, name="it")
    async with background(controller.run()):
        await quiet()
        assert controller.has_synced
        source.add(thing("b"))
        await quiet()
    assert handled == ["b"]
    assert caplog.messages == ["it: processing a batch failed; continuing with the next batch"]


@in_virtual_time
async def test_batches_are_processed_one_at_a_time() -> None:
    source = source_of("a")
    running = 0
    peak = 0

    async def process(batch: Batch[Object]) -> None:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        await asyncio.sleep(1)
        running -= 1

    controller: Controller[Object] = Controller(source, process=process)
    async with background(controller.run()):
        for i in range(5):
            await asyncio.sleep(0.5)
            source.modify(thing("a", str(i)))
        await asyncio.sleep(10)
    assert (running, peak) == (0, 1)


@both_queues
@in_virtual_time
async def test_a_watch_is_not_read_while_too_much_waits(queue: QueueFactory) -> None:
    source: FakeListWatch[str] = FakeListWatch(str)
    release = asyncio.Event()
    batches: list[int] = []

    async def process(batch: Batch[str]) -> None:
        if isinstance(batch.content, list):
            batches.append(len(batch.content))
            await release.wait()

    controller: Controller[str] = Controller(
        source, process=process, queue=functools.partial(queue, high_water=10)
    )
    async with background(controller.run()):
        await quiet()
        for i in range(100):
            source.add(entry_of(f"default/{i}", "any"))
            await quiet()
        flags = [controller.queue.is_congested]
        assert controller.queue.statistics().waiting < 20
        release.set()
        await quiet()
        flags.append(controller.queue.is_congested)
        assert controller.queue.is_empty
    assert flags == [True, False]
    assert sum(batches) == 100


@in_virtual_time
async def test_a_full_queue_leaves_others_their_turn() -> None:
    source = source_of("a")
    order: list[str] = []

    def process(batch: Batch[Object]) -> None:
        if isinstance(batch.content, list):
            order.extend("batch" for delta in batch.content if isinstance(delta, Delta))

    async def neighbour() -> None:
        for _ in range(30):
            await asyncio.sleep(0)
            order.append("neighbour")

    controller: Controller[Object] = Controller(source, process=process)
    async with background(controller.run()):
        await quiet()
        for i in range(10):
            source.modify(thing("a", str(i)))  # of one object: a batch for each
        await neighbour()
    assert order.count("batch") == 10
    first, last = order.index("batch"), len(order) - order[::-1].index("batch")
    assert order[first:last].count("neighbour") >= 8


@in_virtual_time
async def test_it_runs_once_and_closes_its_queue() -> None:
    controller: Controller[Object] = Controller(source_of("a"), process=lambda batch: None)
    async with background(controller.run()):
        await quiet()
        with pytest.raises(UsageError, match="controller was run before; a controller runs once"):
            await controller.run()
        flags = [controller.queue.closed]
    assert [*flags, controller.queue.closed] == [False, True]


@pytest.mark.parametrize("period", [0, -1])
def test_a_resync_period_is_positive(period: float) -> None:
    with pytest.raises(UsageError, match="resync_period"):
        Controller(source_of(), process=lambda batch: None, resync_period=period)


@in_virtual_time
async def test_a_mistake_in_using_the_source_ends_it_as_it_is() -> None:
    source = source_of("a")
    source.supports_watch_list = False
    source.fail_lists(UsageError("closed"))
    controller: Controller[Object] = Controller(source, process=lambda batch: None)
    with pytest.raises(UsageError, match="closed"):
        await controller.run()
    assert controller.queue.closed


@in_virtual_time
async def test_a_batch_that_awaits_what_somebody_else_has_cancelled_ends_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source, batches = source_of("a"), list[Batch[Object]]()

    async def process(batch: Batch[Object]) -> None:
        batches.append(batch)
        if len(batches) == 1:
            other = asyncio.get_running_loop().create_future()
            other.cancel()
            await other

    controller: Controller[Object] = Controller(source, process=process)
    async with background(controller.run()):
        await asyncio.sleep(1)
        source.add(thing("b"))
        await asyncio.sleep(1)
        assert any(isinstance(batch.content, list) for batch in batches[1:])
    assert "processing a batch was cancelled" in caplog.text
