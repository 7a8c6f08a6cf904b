"""How listening ends: by removal, by stop, by cancellation; and what is kept meanwhile."""

from __future__ import annotations

import asyncio
import gc

import pytest

from kinform.cache.processor.events import Added, Event, Updated
from kinform.cache.processor.handlers import EventHandler, handler
from kinform.cache.processor.processor import Processor
from kinform.errors import UsageError
from kinform.meta import Entry
from kinform.sansio.queue.deltas import Transition
from kinform.testing import in_virtual_time, virtual_time
from tests.cache.support_entries import entry_of
from tests.cache.support_processor import (
    all_settled,
    awaiting,
    changed,
    hearing,
    named,
    new,
    pods,
    running,
    words,
)

# --- the end --------------------------------------------------------------------------------------


@in_virtual_time
async def test_stopping_lets_the_callback_that_runs_end_and_begins_no_other() -> None:
    done: list[str] = []
    processor: Processor[str] = Processor(name="pods")
    processor.add(awaiting(5, done), present=pods("a", "b"), synced=True)
    loop = asyncio.get_running_loop()
    async with running(processor, grace=10):
        await all_settled()
        processor.add(awaiting(5, done), present=pods("c"), synced=True)
        began = loop.time()
    assert loop.time() - began == pytest.approx(5, abs=0.001)
    assert done == ["a begun", "a done"]
    processor.distribute([new("d")])
    assert [figures.pending for figures in processor.statistics()] == [0, 0]


@in_virtual_time
async def test_stopping_cancels_a_callback_that_exceeds_the_grace(
    caplog: pytest.LogCaptureFixture,
) -> None:
    done: list[str] = []
    processor: Processor[str] = Processor(name="pods")
    processor.add(awaiting(50, done), present=pods("a", "b"), synced=True)
    processor.add(awaiting(1, done), present=pods("c", "d"), synced=True)
    loop = asyncio.get_running_loop()
    async with running(processor, grace=10):
        await all_settled()
        began = loop.time()
    assert loop.time() - began == pytest.approx(10, abs=0.001)
    assert done == ["a begun", "c begun", "c done", "a cancelled"]
    assert [figures.errors for figures in processor.statistics()] == [0, 0]
    assert caplog.records == []


@in_virtual_time
async def test_the_last_callback_of_a_removed_handler_has_the_same_grace() -> None:
    done: list[str] = []
    processor: Processor[str] = Processor(name="pods")
    patient = processor.add(awaiting(2, done), present=pods("a"), synced=True)
    endless = processor.add(awaiting(50, done), present=pods("b"), synced=True)
    async with running(processor, grace=3):
        await all_settled()
        patient.remove()
        endless.remove()
    assert done == ["a begun", "b begun", "a done", "b cancelled"]


def ignoring(release: asyncio.Event, name: str = "deaf") -> EventHandler[str]:
    """Return a handler that does not hear that it is cancelled."""

    async def wait(event: Added[str]) -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        raise ValueError("too late")

    return handler(on_add=wait, name=name)


@pytest.mark.parametrize("grace", [0.0, 7.0, -1.0])
@pytest.mark.parametrize("way", ["stop", "cancel"])
@in_virtual_time
async def test_a_callback_that_ignores_its_cancellation_is_abandoned_by_name(
    grace: float, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It is over within the grace and half a second, whatever the handler does."""
    release = asyncio.Event()
    processor: Processor[str] = Processor(name="pods")
    processor.add(ignoring(release), present=pods("a", "b"), synced=True)
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(processor.run())
        await all_settled()
        began = loop.time()
        if way == "stop":
            await processor.stop(grace)
        else:
            grace = 0.0
            task.cancel()
    assert max(grace, 0) <= loop.time() - began <= max(grace, 0) + 0.5
    assert task.cancelled() == (way == "cancel")
    said = [record.getMessage() for record in caplog.records]
    assert said == ["handler deaf ignores its cancellation and is abandoned"]
    release.set()
    await all_settled()
    (figures,) = processor.statistics()
    assert (figures.delivered, figures.busy_for) == (1, None)


@in_virtual_time
async def test_cancelled_again_and_again_it_still_waits_for_callbacks_to_clean_up() -> None:
    """Each handler gets its quarter of a second, however often everybody is cancelled."""
    done: list[str] = []
    processor: Processor[str] = Processor(name="pods")

    async def wait(event: Added[str]) -> None:
        try:
            await asyncio.sleep(100)
        finally:
            await asyncio.sleep(0.2)
            done.append("cleaned up")

    processor.add(handler(on_add=wait, name="tidy"), present=pods("a"), synced=True)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(processor.run())
        await all_settled()
        supervisors = [one for one in asyncio.all_tasks() if one.get_name() == "pods: tidy"]
        for _ in range(3):
            task.cancel()
            supervisors[0].cancel()
            await asyncio.sleep(0.01)
    assert (done, task.cancelled()) == (["cleaned up"], True)


@in_virtual_time
async def test_cancelling_run_in_the_middle_of_a_stop_cuts_the_grace_short() -> None:
    done: list[str] = []
    processor: Processor[str] = Processor(name="pods")
    processor.add(awaiting(50, done), present=pods("a"), synced=True)
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(processor.run())
        await all_settled()
        stopping = group.create_task(processor.stop(40))
        await asyncio.sleep(1)
        task.cancel()
        await stopping
    assert loop.time() == pytest.approx(1, abs=0.001)
    assert (done, task.cancelled()) == (["a begun", "a cancelled"], True)


@in_virtual_time
async def test_a_stop_that_is_cancelled_goes_on_and_another_waits_for_its_end() -> None:
    done: list[str] = []
    processor: Processor[str] = Processor(name="pods")
    processor.add(awaiting(5, done), present=pods("a"), synced=True)
    async with asyncio.TaskGroup() as group:
        group.create_task(processor.run())
        await all_settled()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await processor.stop(10)
        assert done == ["a begun"]
        await processor.stop(0)
        assert done == ["a begun", "a done"]
        await processor.stop(0)


@in_virtual_time
async def test_a_callback_may_stop_the_processor() -> None:
    """F-R39: it waits for the others, not for itself, whose grace runs all the same."""
    done: list[str] = []
    processor: Processor[str] = Processor(name="pods")

    async def stop(event: Added[str]) -> None:
        await asyncio.sleep(1)
        await processor.stop(3)
        done.append("stopped")
        try:
            await asyncio.sleep(100)
        finally:
            done.append("cancelled")

    processor.add(handler(on_add=stop), present=pods("a", "b"), synced=True)
    processor.add(awaiting(2, done), present=pods("c", "d"), synced=True)
    loop = asyncio.get_running_loop()
    await processor.run()
    assert loop.time() == pytest.approx(4, abs=0.001)
    assert done == ["c begun", "c done", "stopped", "cancelled"]


@in_virtual_time
async def test_stopped_before_it_ran_it_does_not_run() -> None:
    heard: list[Event[str]] = []
    processor: Processor[str] = Processor(name="pods")
    processor.add(hearing(heard), present=pods("a"), synced=True)
    await processor.stop(10)
    await processor.run()
    assert heard == []


@in_virtual_time
async def test_it_runs_once() -> None:
    processor: Processor[str] = Processor(name="pods")
    async with running(processor):
        with pytest.raises(UsageError, match="pods was started already; it runs once"):
            await processor.run()
    with pytest.raises(UsageError, match="pods was started already; it runs once"):
        await processor.run()


@in_virtual_time
async def test_a_handler_is_not_added_to_a_stopped_processor() -> None:
    """CG-I16."""
    processor: Processor[str] = Processor(name="pods")
    async with running(processor):
        pass
    complaint = "handler 'web' was not added to pods because it has stopped already"
    with pytest.raises(UsageError, match=f"^{complaint}$"):
        processor.add(named("web"), present=(), synced=True)


@in_virtual_time
async def test_a_callback_that_ends_the_program_takes_the_others_along() -> None:
    class Fatal(BaseException):
        pass

    async def fail(event: Added[str]) -> None:
        await asyncio.sleep(1)
        raise Fatal

    done: list[str] = []
    processor: Processor[str] = Processor(name="pods")
    processor.add(handler(on_add=fail), present=pods("a"), synced=True)
    processor.add(awaiting(50, done), present=pods("a"), synced=True)
    with pytest.raises(Fatal):
        await processor.run()
    assert done == ["a begun", "a cancelled"]
    with pytest.raises(UsageError, match="stopped already"):
        processor.add(named("late"), present=(), synced=True)


@in_virtual_time
async def test_cancelled_at_every_turn_it_leaves_nothing_behind() -> None:
    """F-R37: virtual time complains of every task that is left."""
    for turns in range(25):
        done: list[str] = []
        processor: Processor[str] = Processor(name="pods")
        processor.add(awaiting(1, done), present=pods("a", "b"), synced=True)
        processor.add(hearing([], resync_period=1), present=pods("a"), synced=True)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(processor.run())
            for turn in range(turns):
                await asyncio.sleep(turn // 8)
                if turn == turns // 2:
                    processor.add(awaiting(1, done), present=pods("c"), synced=True)
            task.cancel()
        begun = sum(word.endswith("begun") for word in done)
        assert begun == len(done) - begun
        assert task.cancelled()


def test_nothing_is_left_that_could_wake_the_loop() -> None:
    """Neither a resync nor the watch over a long callback: a loop with a timer is no deadlock."""
    loops: list[asyncio.AbstractEventLoop] = []

    async def main() -> None:
        loops.append(asyncio.get_running_loop())
        processor: Processor[str] = Processor(name="pods")
        processor.add(awaiting(1, []), present=pods("a"), synced=True)
        processor.add(hearing([], resync_period=10), present=(), synced=True)
        async with running(processor):
            await asyncio.sleep(2)
        await asyncio.Event().wait()

    with pytest.raises(virtual_time.Deadlock):
        virtual_time.run(main(), timeout=None)
    assert loops[0].time() == pytest.approx(2)


# --- memory ---------------------------------------------------------------------------------------


@pytest.mark.slow
@in_virtual_time
async def test_a_million_updates_and_a_handler_that_is_blocked() -> None:
    """F-R34: 10^6 updates of 10^3 keys. What waits is bounded by keys; then all is told."""
    release = asyncio.Event()
    final: dict[str, int] = {}

    async def wait(event: Updated[int]) -> None:
        await release.wait()
        assert final.get(event.key.name, 0) == event.old
        final[event.key.name] = event.new

    processor: Processor[int] = Processor(name="pods")
    present = [entry_of(f"pod-{n}", 0, 0) for n in range(1000)]
    registration = processor.add(handler(on_update=wait), present=present, synced=True)
    async with asyncio.TaskGroup() as group:
        group.create_task(processor.run())
        await registration.wait_synced()
        objects = len(gc.get_objects())
        for version in range(1, 1001):
            after = [Entry(entry.metadata, version) for entry in present]
            processor.distribute(
                [
                    Transition(new.metadata.key, old, new)
                    for old, new in zip(present, after, strict=True)
                ]
            )
            present = after
            await asyncio.sleep(0)
        (figures,) = processor.statistics()
        assert figures.pending <= 1000
        assert figures.peak <= 1024
        assert figures.pending + figures.coalesced + figures.delivered == 1_001_000
        assert len(gc.get_objects()) - objects < 10_000
        release.set()
        await all_settled()
        assert final == {f"pod-{n}": 1000 for n in range(1000)}
        assert processor.statistics()[0].pending == 0
        await processor.stop(0)


@in_virtual_time
async def test_what_was_there_at_first_is_not_merged_with_what_came_later() -> None:
    """F-R34: has_synced stands between the two, so a key can wait on either side of it."""
    release = asyncio.Event()
    heard: list[str] = []
    synced: list[bool] = []

    async def wait(event: Event[str]) -> None:
        await release.wait()
        heard.extend(words([event]))
        synced.append(registration.has_synced)

    processor: Processor[str] = Processor(name="pods")
    names = [f"pod-{n}" for n in range(2000)]
    blocked = handler(on_add=wait, on_update=wait, on_delete=wait)
    registration = processor.add(blocked, present=pods(*names), synced=True)
    async with running(processor):
        for version in range(2, 12):
            processor.distribute([changed(name, version) for name in names])
        await all_settled()
        assert processor.statistics()[0].pending == 3999
        release.set()
        await all_settled()
    later = [f"{name}@1>{name}@11" for name in names]
    assert heard == [f"*{name}@1" for name in names] + later
    assert synced == [False] * 2000 + [True] * 2000
