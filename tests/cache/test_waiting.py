"""Waiting for a cache: answered at once by the change, never polled, and never in vain."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kinform.cache._informer.state_waiters import StateWaiters
from kinform.cache.lister import Lister
from kinform.cache.shared_informer import SharedInformer
from kinform.errors import TransportError, UsageError
from kinform.objects.object import Object
from kinform.sansio.queue.delta_fifo import DeltaFIFO
from kinform.sansio.queue.interface import QueueFactory
from kinform.sansio.queue.real_fifo import RealFIFO
from kinform.testing import FakeListWatch, in_virtual_time
from tests.cache.support_entries import entry_of
from tests.cache.support_informer import REFUSED, quiet, source_of, thing

both_queues = pytest.mark.parametrize("queue", [RealFIFO, DeltaFIFO])


def clock() -> float:
    return asyncio.get_running_loop().time()


# --- waiters


@in_virtual_time
async def test_a_true_answer_is_returned_without_waiting() -> None:
    assert await StateWaiters().wait(lambda: "yes") == "yes"


@in_virtual_time
async def test_the_first_true_answer_counts_even_if_it_has_changed_since() -> None:
    waiters, answers = StateWaiters(), iter(["", "", "first", "second", ""])
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(waiters.wait(lambda: next(answers)))
        await quiet()
        for _ in range(4):
            waiters.check()
    assert waiting.result() == "first"


@pytest.mark.parametrize("error", [ValueError("no"), StopIteration(), TimeoutError("its own")])
@in_virtual_time
async def test_what_a_question_raises_is_its_askers_alone(error: Exception) -> None:
    waiters, is_broken, is_there = StateWaiters(), False, False

    def broken() -> bool:
        if is_broken:
            raise error
        return False

    async with asyncio.TaskGroup() as group:
        asker = group.create_task(_outcome(waiters.wait(broken)))
        other = group.create_task(waiters.wait(lambda: is_there))
        await quiet()
        is_broken = True
        waiters.check()
        await quiet()
        is_there = True
        waiters.check()
    assert other.result()
    failure = asker.result()
    assert failure is error or (failure is not None and failure.__cause__ is error)


async def _outcome(work: Awaitable[object]) -> Exception | None:
    try:
        await work
    except Exception as exc:  # noqa: BLE001 - that is what is asked for
        return exc
    return None


@in_virtual_time
async def test_everybody_is_failed_with_an_error_of_their_own() -> None:
    waiters = StateWaiters()
    async with asyncio.TaskGroup() as group:
        askers = [group.create_task(_outcome(waiters.wait(lambda: False))) for _ in range(3)]
        await quiet()
        waiters.fail(lambda: UsageError("over"))
    assert len({id(asker.result()) for asker in askers}) == 3


@in_virtual_time
async def test_who_is_cancelled_when_the_answer_comes_leaves_nothing_behind() -> None:
    waiters, is_there = StateWaiters(), False
    task = asyncio.get_running_loop().create_task(waiters.wait(lambda: is_there))
    await quiet()
    waiters.fail(lambda: UsageError("over"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    is_there = True
    waiters.check()


# --- for the sync


@in_virtual_time
async def test_a_sync_that_takes_too_long_says_what_went_wrong_last() -> None:
    source = source_of("a")
    source.fail_watches(REFUSED, forever=True)
    source.fail_lists(REFUSED, forever=True)
    async with SharedInformer(source, name="things") as informer:
        expected = "things has not synced within 10 s; last error: nobody there"
        with pytest.raises(TimeoutError) as caught:
            await informer.wait_synced(10)
        assert str(caught.value) == expected
        assert caught.value.__cause__ is REFUSED
        assert isinstance(caught.value.__cause__, TransportError)
        assert clock() == pytest.approx(10)


@in_virtual_time
async def test_a_sync_that_takes_too_long_for_no_reason_blames_nobody() -> None:
    source = source_of("a")
    source.hang_watches()
    async with SharedInformer(source) as informer:
        with pytest.raises(TimeoutError, match=r"^informer has not synced within 10 s$") as caught:
            await informer.wait_synced(10)
        assert caught.value.__cause__ is None


@in_virtual_time
async def test_no_time_at_all_is_enough_for_what_has_synced() -> None:
    async with SharedInformer(source_of("a")) as informer:
        await informer.wait_synced()
        await informer.wait_synced(0)
    await informer.wait_synced(0)


@in_virtual_time
async def test_nobody_can_wait_for_one_that_was_not_started() -> None:
    informer = SharedInformer(source_of("a"), name="things")
    with pytest.raises(UsageError, match="things was not started: async with informer"):
        await informer.wait_synced(5)


WAITS: dict[str, Callable[[SharedInformer[Object]], Awaitable[object]]] = {
    "wait_synced": lambda informer: informer.wait_synced(),
    "wait_until": lambda informer: informer.wait_until("99"),
    "wait_for": lambda informer: informer.wait_for(lambda _: None),
}


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
@in_virtual_time
async def test_who_waits_when_it_stops_is_told(
    wait: Callable[[SharedInformer[Object]], Awaitable[object]],
) -> None:
    source = source_of("a")
    source.hang_watches()
    informer = SharedInformer(source, name="things")
    async with informer, asyncio.TaskGroup() as group:
        outcome = group.create_task(_outcome(wait(informer)))
        await asyncio.sleep(1)
        await informer.stop()
    assert str(outcome.result()) == "things has stopped"
    assert isinstance(outcome.result(), UsageError)
    assert clock() < 1.5
    with pytest.raises(UsageError, match="things has stopped"):
        await wait(informer)


# --- for a version


@both_queues
@in_virtual_time
async def test_a_write_of_ones_own_can_be_waited_for(queue: QueueFactory) -> None:
    source = source_of("a")
    async with SharedInformer(source, queue=queue) as informer:
        await informer.wait_until("2", 5)  # that is there with the first list
        written = source.modify(thing("a", "1"))
        await informer.wait_until(written.metadata.resource_version, 5)
        held = informer.lister.get("default/a")
        assert held is not None
        assert held.resource_version == "3"
        gone = source.delete("a")
        await informer.wait_until(gone.metadata.resource_version, 5)
        assert informer.lister.get("default/a") is None


@in_virtual_time
async def test_that_a_version_has_passed_is_known_with_the_next_bookmark() -> None:
    source = source_of("a")
    async with SharedInformer(source, name="things") as informer:
        await informer.wait_synced(5)
        source.advance(5)
        with pytest.raises(TimeoutError, match="things has not seen version 7 within 10 s"):
            await informer.wait_until("7", 10)
        source.bookmark()
        await informer.wait_until("7", 0.1)
        assert informer.last_sync_resource_version == "7"


@both_queues
@in_virtual_time
async def test_a_version_has_passed_only_when_all_before_it_is_in_the_cache(
    queue: QueueFactory,
) -> None:
    """A queue that gathers changes per object hands out the newest of one before all of others."""
    source: FakeListWatch[str] = FakeListWatch(str)
    source.add(entry_of("default/first", "0"))
    async with SharedInformer(source, queue=queue) as informer:
        await informer.wait_synced(5)
        source.modify(entry_of("default/first", "1"))
        for i in range(1500):
            source.add(entry_of(f"default/o{i}", "1"))
        version = source.resource_version
        source.modify(entry_of("default/first", "2"))  # gathered with its first change
        await informer.wait_until(version, 5)
        assert informer.lister.get("default/o1499") == "1"


@both_queues
@in_virtual_time
async def test_a_version_is_not_there_before_the_whole_list_is(queue: QueueFactory) -> None:
    source: FakeListWatch[str] = FakeListWatch(str)
    for i in range(1500):
        source.add(entry_of(f"default/{2000 - i:04}", "1"))  # the newest come first
    async with SharedInformer(source, queue=queue) as informer:
        await informer.wait_until("5", 5)
        assert len(informer.indexer) == 1500
        assert informer.has_synced


@in_virtual_time
async def test_there_is_no_waiting_for_no_version() -> None:
    async with SharedInformer(source_of("a")) as informer:
        with pytest.raises(UsageError, match="there is no version to wait for"):
            await informer.wait_until("")


# --- for anything


@in_virtual_time
async def test_a_state_of_the_cache_can_be_waited_for() -> None:
    source = source_of("a")
    async with SharedInformer(source) as informer, asyncio.TaskGroup() as group:
        waiting = group.create_task(informer.wait_for(lambda cache: cache.get("default/b"), 30))
        await asyncio.sleep(1)
        source.add(thing("b"))
        found = await waiting
        assert found is not None
        assert found.name == "b"
        assert clock() == pytest.approx(1)


@in_virtual_time
async def test_what_a_predicate_raises_ends_its_wait_and_nothing_else() -> None:
    source = source_of("a")

    def broken(cache: Lister[Object]) -> bool:
        names = {obj.name for obj in cache.list()}
        if "b" in names:
            raise TimeoutError("the predicate's own")
        return False

    def careless(cache: Lister[Object]) -> Object:
        return next(obj for obj in cache.list() if obj.name not in {"a", "b"})

    async with SharedInformer(source) as informer, asyncio.TaskGroup() as group:
        await informer.wait_synced(5)
        waiting = group.create_task(_outcome(informer.wait_for(broken, 30)))
        with pytest.raises(RuntimeError, match="StopIteration"):
            await informer.wait_for(careless)
        await quiet()
        source.add(thing("b"))
        await quiet()
        assert str(waiting.result()) == "the predicate's own"
        source.add(thing("c"))
        await informer.wait_until("4", 5)
        assert (await informer.wait_for(careless)).name == "c"


@in_virtual_time
async def test_a_predicate_cannot_wait_itself() -> None:
    async def waits(_: object) -> bool:
        return True

    async with SharedInformer(source_of("a")) as informer:
        with pytest.raises(UsageError, match="async function"):
            _ = await informer.wait_for(waits)


@in_virtual_time
async def test_a_stopped_cache_can_still_be_asked() -> None:
    informer = SharedInformer(source_of("a"))
    async with informer:
        await informer.wait_synced(5)
    found = await informer.wait_for(lambda cache: cache.get("default/a"))
    assert found is not None
    await informer.wait_until("2")
