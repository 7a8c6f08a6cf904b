"""Reading events instead of being called."""

from __future__ import annotations

import asyncio
import gc
import itertools

import pytest

from kinform.cache.processor.event_stream import EventStream
from kinform.cache.processor.events import Event, event_of
from kinform.cache.processor.processor import Processor
from kinform.errors import UsageError
from kinform.meta import ObjectName
from kinform.sansio.queue.deltas import Transition
from kinform.testing import in_virtual_time
from tests.cache.support_processor import (
    all_settled,
    changed,
    gone,
    in_stepping_time,
    new,
    pods,
    running,
    stepping_loop,
    words,
)


def subscribed(*names: str, synced: bool = True) -> tuple[Processor[str], EventStream[str]]:
    processor: Processor[str] = Processor(name="pods")
    return processor, processor.subscribe(present=pods(*names), synced=synced)


async def read(stream: EventStream[str], count: int) -> list[str]:
    return words([await anext(stream) for _ in range(count)])


@in_virtual_time
async def test_it_begins_with_what_is_there_and_goes_on_with_what_happens() -> None:
    processor, stream = subscribed("a", "b")
    processor.distribute([changed("a"), gone("b", unknown=True), new("c")])
    assert await read(stream, 5) == ["*a@1", "*b@1", "a@1>a@2", "-b@1?", "+c@1"]


@in_virtual_time
async def test_what_waits_can_be_taken_together_and_in_order() -> None:
    processor, stream = subscribed("a", "b")
    processor.distribute([new("c")])
    assert words(stream.take_waiting(2)) == ["*a@1", "*b@1"]
    assert words(stream.take_waiting(2)) == ["+c@1"]
    assert stream.take_waiting(2) == []
    assert stream.has_synced


@in_virtual_time
async def test_a_reader_that_waits_is_woken() -> None:
    processor, stream = subscribed()
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(read(stream, 2))
        await all_settled()
        processor.distribute([new("a")])
        await all_settled()
        assert not reading.done()
        processor.distribute([changed("a")])
    assert reading.result() == ["+a@1", "a@1>a@2"]


@in_virtual_time
async def test_it_works_without_any_task_of_the_processor() -> None:
    processor, stream = subscribed("a")
    async with running(processor):
        assert await read(stream, 1) == ["*a@1"]


@in_virtual_time
async def test_when_the_processor_stops_what_waits_is_read_and_then_it_ends() -> None:
    processor, stream = subscribed("a")
    async with running(processor):
        processor.distribute([changed("a")])
    processor.distribute([changed("a", 3)])
    assert words([event async for event in stream]) == ["*a@1", "a@1>a@2"]
    assert [event async for event in stream] == []


@pytest.mark.parametrize("way", ["stop", "cancel"])
@in_virtual_time
async def test_a_reader_that_waits_hears_of_the_end(way: str) -> None:
    processor, stream = subscribed()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(processor.run())
        reading = group.create_task(collect(stream))
        await all_settled()
        if way == "stop":
            await processor.stop(0)
        else:
            task.cancel()
    assert reading.result() == []


async def collect(stream: EventStream[str]) -> list[Event[str]]:
    return [event async for event in stream]


@in_virtual_time
async def test_a_stream_that_is_dropped_is_forgotten() -> None:
    processor: Processor[str] = Processor(name="pods")
    async for event in processor.subscribe(present=pods("a", "b"), synced=True):
        assert words([event]) == ["*a@1"]
        assert len(processor.statistics()) == 1
        break
    assert processor.statistics() == ()
    processor.distribute([new("c")])


@in_virtual_time
async def test_a_stream_that_is_dropped_in_a_cycle_is_forgotten_when_it_is_collected() -> None:
    processor: Processor[str] = Processor(name="pods")
    cycle: list[object] = [processor.subscribe(present=(), synced=True)]
    cycle.append(cycle)
    assert len(processor.statistics()) == 1
    del cycle
    gc.collect()
    assert processor.statistics() == ()


@in_virtual_time
async def test_a_stream_outlives_its_processor() -> None:
    processor, stream = subscribed("a")
    del processor
    gc.collect()
    assert await read(stream, 1) == ["*a@1"]


@in_virtual_time
async def test_leaving_the_block_ends_it_and_drops_what_was_not_read() -> None:
    processor, stream = subscribed("a", "b")
    async with stream as same:
        assert same is stream
        assert await read(stream, 1) == ["*a@1"]
    processor.distribute([new("c")])
    assert [event async for event in stream] == []
    assert processor.statistics() == ()
    await stream.aclose()


@in_virtual_time
async def test_closing_it_ends_the_wait_of_another_task() -> None:
    _, stream = subscribed()
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(collect(stream))
        await all_settled()
        await stream.aclose()
    assert reading.result() == []


@pytest.mark.parametrize("when", ["before", "together", "after"])
@in_virtual_time
async def test_a_cancelled_anext_loses_nothing(when: str) -> None:
    """Whether the event came after the cancellation, in the same turn, or before."""
    processor, stream = subscribed()
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(read(stream, 1))
        await all_settled()
        if when == "before":
            reading.cancel()
            await all_settled()
        processor.distribute([new("a"), new("b")])
        if when == "together":
            reading.cancel()
        await all_settled()
    told = [] if reading.cancelled() else reading.result()
    assert reading.cancelled() == (when != "after")
    assert told + await read(stream, 2 - len(told)) == ["+a@1", "+b@1"]


@in_virtual_time
async def test_cancelled_at_every_await_a_reader_hears_all_in_the_end() -> None:
    processor, stream = subscribed(*"abcdefgh")
    heard: list[str] = []

    async def keep_reading() -> None:
        async for event in stream:
            heard.extend(words([event]))

    for turn in range(20):
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(keep_reading())
            for _ in range(turn % 4):
                await asyncio.sleep(0)
            processor.distribute([new(f"later-{turn}")])
            reading.cancel()
    heard += await read(stream, 28 - len(heard))
    assert heard == [f"*{name}@1" for name in "abcdefgh"] + [f"+later-{n}@1" for n in range(20)]


@in_virtual_time
async def test_it_is_for_one_reader_at_a_time() -> None:
    processor, stream = subscribed()
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(read(stream, 1))
        await all_settled()
        with pytest.raises(UsageError, match="another task reads this stream"):
            await anext(stream)
        processor.distribute([new("a"), new("b")])
        with pytest.raises(UsageError, match="another task reads this stream"):
            await anext(stream)
    assert reading.result() == ["+a@1"]
    assert await read(stream, 1) == ["+b@1"]


@in_virtual_time
async def test_a_reader_that_falls_behind_is_told_the_sum() -> None:
    processor: Processor[str] = Processor(name="pods")
    stream = processor.subscribe(present=pods("a"), synced=True, high_water=2)
    assert await read(stream, 1) == ["*a@1"]
    for version in range(2, 100):
        processor.distribute([changed("a", version)])
    (figures,) = processor.statistics()
    assert (figures.name, figures.pending, figures.peak) == ("events()", 1, 2)
    assert (figures.delivered, figures.coalesced) == (1, 97)
    assert await read(stream, 1) == ["a@1>a@99"]


@pytest.mark.parametrize("synced", [True, False], ids=["added late", "added at first"])
@in_virtual_time
async def test_it_has_synced_when_the_reader_is_done_with_the_first(synced: bool) -> None:
    processor, stream = subscribed("a", synced=synced)
    if not synced:
        processor.distribute([new("b", initial=True)])
        processor.upstream_synced()
        assert await read(stream, 1) == ["*a@1"]
    processor.distribute([new("c")])
    assert words([await anext(stream)])[0][0] == "*"
    assert not stream.has_synced
    assert await read(stream, 1) == ["+c@1"]
    assert stream.has_synced


@in_virtual_time
async def test_to_sync_twice_or_after_the_end_changes_nothing() -> None:
    processor, stream = subscribed("a", synced=False)
    await processor.stop(0)
    processor.upstream_synced()
    assert [len(words([event])) async for event in stream] == [1]
    assert not stream.has_synced


def test_a_reader_that_always_finds_something_lets_others_have_the_loop() -> None:
    """Each event takes it 0.5 ms: after 2 ms the others are due."""
    read_so_far = 0
    seen: list[int] = []

    async def others() -> None:
        while True:
            seen.append(read_so_far)
            await asyncio.sleep(0)

    async def main() -> None:
        nonlocal read_so_far
        _, stream = subscribed(*[f"pod-{n}" for n in range(100)])
        async with asyncio.TaskGroup() as group:
            other = group.create_task(others())
            for _ in range(100):
                await anext(stream)
                stepping_loop().take(0.0005)
                read_so_far += 1
            other.cancel()

    in_stepping_time(main())
    assert read_so_far == 100
    assert max(after - before for before, after in itertools.pairwise(seen)) <= 5


@in_virtual_time
async def test_a_stream_of_a_stopped_processor_is_refused() -> None:
    processor: Processor[str] = Processor(name="pods")
    await processor.stop(0)
    with pytest.raises(UsageError, match="an event stream was not added to pods because it has"):
        processor.subscribe(present=(), synced=True)


def test_a_notification_without_an_object_has_no_event() -> None:
    with pytest.raises(ValueError, match="a notification of web without an object"):
        event_of(Transition(ObjectName("", "web"), None, None))
