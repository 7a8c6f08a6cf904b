"""IndexerInformer: the indexer first, then the one handler, inside the pop."""

from __future__ import annotations

import asyncio
import logging
import random

import pytest

from kinform.cache.indexer_informer import IndexerInformer
from kinform.cache.processor.events import Added, Deleted, Updated
from kinform.cache.processor.handlers import handler
from kinform.errors import UsageError
from kinform.objects.object import Object
from kinform.sansio.queue.delta_fifo import DeltaFIFO
from kinform.sansio.queue.interface import QueueFactory
from kinform.sansio.queue.real_fifo import RealFIFO
from kinform.tasks import background
from kinform.testing import FakeListWatch, in_virtual_time
from tests.cache.support_informer import Recorder, quiet, source_of, thing, value_of

both_queues = pytest.mark.parametrize("queue", [RealFIFO, DeltaFIFO])


@both_queues
@in_virtual_time
async def test_the_seeds_program(queue: QueueFactory) -> None:
    """CG-C02: each change is told once, as add, update or delete."""
    source, recorder = source_of("a", "b"), Recorder()
    informer = IndexerInformer(
        source, recorder.handler, indexers={"value": value_of}, queue=queue, name="things"
    )
    before = informer.has_synced
    async with background(informer.run()):
        await quiet()
        assert (before, informer.has_synced) == (False, True)
        assert recorder.take() == ["+a@2 initial", "+b@3 initial"]
        source.modify(thing("a", "red"))
        source.delete("default/b")
        source.add(thing("c"))
        await quiet()
        assert recorder.take() == ["a@2>4", "-b@5", "+c@6"]
        assert [obj.key.name for obj in informer.indexer.by_index("value", "red")] == ["a"]
        assert informer.last_sync_resource_version == "6"


@in_virtual_time
async def test_the_handler_finds_the_change_in_the_indexer() -> None:
    source = source_of("a")
    found: list[str | None] = []

    def look(event: Added[Object] | Updated[Object] | Deleted[Object]) -> None:
        held = informer.indexer.get_by_key(event.key)
        found.append(held.resource_version if held else None)

    informer = IndexerInformer(source, handler(on_add=look, on_update=look, on_delete=look))
    async with background(informer.run()):
        await quiet()
        source.modify(thing("a", "x"))
        await quiet()
        source.delete("default/a")
        await quiet()
    assert found == ["2", "3", None]


@in_virtual_time
async def test_an_awaited_handler_holds_back_the_next_event() -> None:
    source, told = source_of("a", "b"), list[str]()

    async def slowly(event: Added[Object]) -> None:
        told.append(f"begin {event.key.name}")
        await asyncio.sleep(10)
        told.append(f"end {event.key.name}")

    informer = IndexerInformer(source, handler(on_add=slowly))
    async with background(informer.run()):
        await quiet(15)
        assert told == ["begin a", "end a", "begin b"]
        before = informer.has_synced
        await quiet(10)
        assert (before, informer.has_synced) == (False, True)
    assert told[-1] == "end b"


@in_virtual_time
async def test_a_failing_handler_is_logged_and_the_next_event_follows(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """CG-C03 differs: client-go's panic ends the run; here the pump survives, and the log tells."""
    source, told = source_of("a", "b"), list[str]()

    def fail_once(event: Added[Object]) -> None:
        told.append(event.key.name)
        if event.key.name == "a":
            raise LookupError("no luck")

    informer = IndexerInformer(source, handler(on_add=fail_once), name="things")
    async with background(informer.run()) as running:
        await quiet()
        assert informer.has_synced
        assert not running.done()
    assert told == ["a", "b"]
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.getMessage() == "things: the handler failed on default/a"


@both_queues
@in_virtual_time
async def test_resync_tells_everything_again(queue: QueueFactory) -> None:
    source, recorder = source_of("a", "b"), Recorder()
    told = handler(on_add=recorder.note, on_update=recorder.note, resync_period=60)
    informer = IndexerInformer(source, told, queue=queue)
    async with background(informer.run()):
        await quiet()
        recorder.take()
        await quiet(60)
        assert recorder.take() == ["a@2=", "b@3="]


@in_virtual_time
async def test_an_index_function_that_fails_costs_its_object_a_place_in_that_index(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = source_of("a")

    def picky(obj: Object) -> str:
        if value_of(obj) == "bad":
            raise ValueError
        return value_of(obj)

    informer = IndexerInformer(source, indexers={"value": picky})
    async with background(informer.run()):
        await quiet()
        source.modify(thing("a", "bad"))
        source.add(thing("b", "good"))
        await quiet()
        assert "index 'value' failed on default/a" in caplog.text
        assert sorted(map(str, informer.indexer.list_keys())) == ["default/a", "default/b"]
        source.modify(thing("a", "good"))
        await quiet()
        found = informer.indexer.by_index("value", "good")
        assert sorted(obj.key.name for obj in found) == ["a", "b"]


@in_virtual_time
async def test_what_a_handler_waits_for_may_be_cancelled_by_others() -> None:
    source, told = source_of("a", "b"), list[str]()
    shared: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    shared.cancel()

    async def wait_for_others(event: Added[Object]) -> None:
        told.append(event.key.name)
        await shared

    informer = IndexerInformer(source, handler(on_add=wait_for_others))
    async with background(informer.run()) as running:
        await quiet()
        assert told == ["a", "b"]
        assert not running.done()


@in_virtual_time
async def test_it_runs_once() -> None:
    informer = IndexerInformer(FakeListWatch())
    async with background(informer.run()):
        await quiet()
        with pytest.raises(UsageError, match="runs once"):
            await informer.run()


@in_virtual_time
async def test_it_survives_being_hammered() -> None:
    """CG-C01: three writers at random, with resyncs: it syncs, and nothing is left over."""
    source, recorder = FakeListWatch(), Recorder()
    told = handler(
        on_add=recorder.note,
        on_update=recorder.note,
        on_delete=recorder.note,
        resync_period=1,
    )
    informer = IndexerInformer(source, told)

    async def write(seed: int) -> None:
        dice = random.Random(seed)
        for number in range(100):
            name = f"{seed}-{dice.randrange(5)}"
            known = name in {key.name for key in source.entries}
            if not known:
                source.add(thing(name))
            elif dice.random() < 0.5:
                source.modify(thing(name, str(number)))
            else:
                source.delete(f"default/{name}")
            await asyncio.sleep(dice.random() / 10)

    before = informer.has_synced
    async with background(informer.run()):
        await asyncio.gather(*(write(seed) for seed in range(3)))
        await quiet(1)
        assert (before, informer.has_synced) == (False, True)
        held = {entry.metadata.key: entry for entry in informer.indexer.entries.list()}
        assert held == dict(source.entries)
