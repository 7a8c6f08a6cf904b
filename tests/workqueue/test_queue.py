"""The work queue in virtual time: client-go's scenarios, and cancellation at every wait."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections import Counter
from typing import Final

import pytest

from kinform.errors import QueueShutDown, UsageError
from kinform.runtime.controller.statistics import QueueMeter
from kinform.testing import in_virtual_time
from kinform.workqueue import Cause, CauseKind, FairOrder, Priority, WorkQueue

NOT_APPLICABLE: Final = {
    "CG-Q24": "pieces of work are awaited with asyncio.TaskGroup or kinform.tasks.gather",
}


async def quiet() -> None:
    """Let all tasks run until they wait."""
    await asyncio.sleep(0.001)


def now() -> float:
    return asyncio.get_running_loop().time()


async def drain(queue: WorkQueue[str]) -> list[str]:
    """Take and do everything, in order."""
    taken = list[str]()
    while len(queue):
        async with queue.processing() as key:
            taken.append(key)
    return taken


# --- client-go's scenarios


@pytest.mark.parametrize("is_drained", [False, True], ids=["shut down", "drained"])
@pytest.mark.parametrize("is_fair", [False, True], ids=["plain", "fair"])
@in_virtual_time
async def test_many_producers_and_workers_and_nothing_is_lost_or_worked_on_twice_at_once(
    is_drained: bool, is_fair: bool
) -> None:
    """CG-Q01."""
    queue = WorkQueue[int](order=FairOrder() if is_fair else None)
    processing, worked = set[int](), Counter[int]()

    async def produce(number: int) -> None:
        for _ in range(50):
            queue.add(number)
            await quiet()

    async def work() -> None:
        while True:
            try:
                async with queue.processing() as key:
                    assert key != "added after shutdown"
                    assert key not in processing
                    processing.add(key)
                    await asyncio.sleep(0.003)
                    processing.remove(key)
                    worked[key] += 1
            except QueueShutDown:
                return

    async with asyncio.TaskGroup() as workers:
        for _ in range(10):
            workers.create_task(work())
        async with asyncio.TaskGroup() as producers:
            for number in range(50):
                producers.create_task(produce(number))
        if is_drained:
            report = await queue.shut_down_with_drain()
            assert (report.unfinished, report.delayed) == ((), ())
        else:
            queue.shut_down()
        queue.add(99)
    assert len(queue) == 0
    assert worked.keys() == set(range(50))


@in_virtual_time
async def test_what_every_worker_adds_again_ends_too() -> None:
    """CG-Q02."""
    queue = WorkQueue[int]()

    async def work() -> None:
        seen = Counter[int]()
        while True:
            try:
                key = await queue.get()
            except QueueShutDown:
                return
            seen[key] += 1
            if seen[key] < 2:
                queue.add(key)
            queue.done(key)

    async with asyncio.TaskGroup() as workers:
        for _ in range(10):
            workers.create_task(work())
        for _ in range(20):
            for number in range(50):
                queue.add(number)
            await quiet()
        queue.shut_down()
    assert len(queue) == 0


@in_virtual_time
async def test_the_length_counts_each_key_once() -> None:
    """CG-Q03."""
    queue = WorkQueue[str]()
    lengths = list[int]()
    for key in "aba":
        queue.add(key)
        lengths.append(len(queue))
    assert lengths == [1, 2, 2]
    assert queue  # a queue, even if it is empty


@in_virtual_time
async def test_a_key_added_while_it_is_worked_on_is_delivered_after_done() -> None:
    """CG-Q04."""
    queue = WorkQueue[str]()
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    assert len(queue) == 0
    queue.done("a")
    assert await queue.get() == "a"
    queue.done("a")
    assert len(queue) == 0


@in_virtual_time
async def test_a_drain_waits_until_all_that_was_taken_is_done() -> None:
    """CG-Q07."""
    queue = WorkQueue[str]()
    for key in "ab":
        queue.add(key)
    taken = [await queue.get(), await queue.get()]
    async with asyncio.TaskGroup() as group:
        draining = group.create_task(queue.shut_down_with_drain())
        for key in taken:
            await quiet()
            assert not draining.done()
            queue.done(key)
    assert draining.result().unfinished == ()
    assert queue.is_shut_down


@in_virtual_time
async def test_a_plain_shut_down_waits_for_nobody() -> None:
    """CG-Q08."""
    queue = WorkQueue[str]()
    queue.add("a")
    key = await queue.get()
    queue.shut_down()
    with pytest.raises(QueueShutDown):
        await queue.get()
    queue.done(key)


@in_virtual_time
async def test_a_shut_down_ends_the_wait_of_every_drain() -> None:
    """CG-Q09."""
    queue = WorkQueue[str]()
    for key in "ab":
        queue.add(key)
    queue.add_after("later", 60)
    assert await queue.get() == "a"
    async with asyncio.TaskGroup() as group:
        draining = [group.create_task(queue.shut_down_with_drain()) for _ in range(2)]
        await quiet()
        queue.shut_down()
    for each in draining:
        assert each.result().unfinished == ("a", "b")
        assert each.result().delayed == ("later",)


@in_virtual_time
async def test_a_drain_delivers_what_was_added_while_it_was_worked_on_once_more() -> None:
    """CG-Q10."""
    queue = WorkQueue[str]()
    queue.add("a")
    await queue.get()
    queue.add("a")
    async with asyncio.TaskGroup() as group:
        draining = group.create_task(queue.shut_down_with_drain())
        await quiet()
        other = group.create_task(queue.get())  # it waits, and does not raise
        await quiet()
        assert not other.done()
        queue.add("a")  # too late
        queue.done("a")
        assert await other == "a"
        await quiet()
        assert not draining.done()
        queue.done("a")
    assert draining.result().unfinished == ()
    with pytest.raises(QueueShutDown):
        await queue.get()


@in_virtual_time
async def test_while_a_drain_waits_for_one_key_to_come_back_workers_are_not_sent_away() -> None:
    queue = WorkQueue[str]()
    for key in "ab":
        queue.add(key)
    taken = [await queue.get(), await queue.get()]
    queue.add("a")
    async with asyncio.TaskGroup() as group:
        group.create_task(queue.shut_down_with_drain())
        other = group.create_task(queue.get())
        for key in reversed(taken):
            await quiet()
            assert not other.done()
            queue.done(key)
        queue.done(await other)


class Key:
    """Something that can be seen to go."""

    namespace = "x"


@pytest.mark.parametrize("is_fair", [False, True], ids=["plain", "fair"])
@in_virtual_time
async def test_nothing_is_kept_of_a_key_that_is_done(is_fair: bool) -> None:
    """CG-Q11."""
    queue = WorkQueue[Key](order=FairOrder() if is_fair else None)
    keys = [Key(), Key()]
    gone = [weakref.ref(key) for key in keys]
    while keys:
        queue.add(keys.pop())
    for _ in gone:
        queue.done(await queue.get())
    gc.collect()
    assert [each() for each in gone] == [None, None]


# --- ours


@in_virtual_time
async def test_keys_come_in_the_order_of_adding() -> None:
    queue = WorkQueue[str]()
    for key in "cabac":
        queue.add(key)
    assert await drain(queue) == ["c", "a", "b"]


@in_virtual_time
async def test_an_order_may_decide_who_is_next() -> None:
    queue = WorkQueue[str](order=FairOrder())
    for key in ("a/1", "a/2", "a/3"):
        queue.add(key, priority=Priority.LOW)
    queue.add("a/3", priority=Priority.HIGH)
    queue.add("b/1")
    assert await drain(queue) == ["a/3", "b/1", "a/1", "a/2"]


@in_virtual_time
async def test_keys_can_be_added_before_there_is_a_loop_and_by_call_soon_threadsafe() -> None:
    queue = WorkQueue[str]()
    asyncio.get_running_loop().call_soon_threadsafe(queue.add, "a")
    assert await queue.get() == "a"
    queue.done("a")


def test_a_queue_needs_no_loop_until_somebody_waits() -> None:
    queue = WorkQueue[str]()
    queue.add("a")
    queue.shut_down()
    assert (len(queue), queue.statistics().depth) == (1, 1)


@in_virtual_time
async def test_one_add_wakes_one_of_those_who_wait() -> None:
    queue = WorkQueue[str]()
    async with asyncio.TaskGroup() as group:
        getters = [group.create_task(queue.get()) for _ in range(3)]
        await quiet()
        queue.add("a")
        await quiet()
        assert [getter.done() for getter in getters] == [True, False, False]
        queue.add("b")
        queue.add("c")
    assert [getter.result() for getter in getters] == ["a", "b", "c"]


@in_virtual_time
async def test_a_get_cancelled_while_it_waits_loses_nothing() -> None:
    queue = WorkQueue[str]()
    async with asyncio.TaskGroup() as group:
        getter = group.create_task(queue.get())
        await quiet()
        getter.cancel()
    queue.add("a")
    assert await drain(queue) == ["a"]


@pytest.mark.parametrize("is_added_first", [True, False])
@in_virtual_time
async def test_a_get_cancelled_in_the_moment_it_is_woken_passes_the_key_on(
    is_added_first: bool,
) -> None:
    queue = WorkQueue[str]()
    async with asyncio.TaskGroup() as group:
        cancelled = group.create_task(queue.get())
        other = group.create_task(queue.get())
        await quiet()
        if is_added_first:
            queue.add("a")
            cancelled.cancel()
        else:
            cancelled.cancel()
            queue.add("a")
    assert cancelled.cancelled()
    assert other.result() == "a"


@in_virtual_time
async def test_a_get_that_times_out_as_the_key_comes_leaves_it_in_the_queue_or_returns_it() -> None:
    queue = WorkQueue[str]()
    queue.add_after("a", 1.0)
    try:
        async with asyncio.timeout(1.0):
            await queue.get()
    except TimeoutError:
        assert len(queue) == 1
    else:
        assert queue.statistics().processing == 1


@in_virtual_time
async def test_a_block_ends_with_done_however_it_is_left() -> None:
    queue = WorkQueue[str]()
    for key in "abc":
        queue.add(key)
    async with queue.processing():
        pass
    with pytest.raises(ValueError, match="a failure"):
        async with queue.processing():
            raise ValueError("a failure")
    async with asyncio.TaskGroup() as group:

        async def work() -> None:
            async with queue.processing():
                await asyncio.sleep(60)

        worker = group.create_task(work())
        await quiet()
        worker.cancel()
    assert queue.statistics().processing == 0


@pytest.mark.parametrize("before", ["nothing", "added", "done"])
@in_virtual_time
async def test_done_without_get_is_told(before: str) -> None:
    queue = WorkQueue[str]("pods")
    if before != "nothing":
        queue.add("a")
    if before == "done":
        queue.done(await queue.get())
    with pytest.raises(UsageError, match=r"done\('a'\) of queue 'pods' without a get"):
        queue.done("a")
    assert len(queue) == (before == "added")


@in_virtual_time
async def test_after_a_shut_down_what_waits_can_be_taken_and_nothing_can_be_added() -> None:
    queue = WorkQueue[str]("pods")
    async with asyncio.TaskGroup() as group:

        async def is_told() -> None:
            with pytest.raises(QueueShutDown, match="work queue 'pods' was shut down"):
                await queue.get()

        for _ in range(2):
            group.create_task(is_told())
        await quiet()
        queue.shut_down()
    queue.add("late")
    queue.add_after("late", 1)
    queue.add_rate_limited("late")
    await asyncio.sleep(10)
    assert (len(queue), queue.num_requeues("late"), queue.statistics().delayed) == (0, 0, 0)
    queue.shut_down()  # again: nothing happens


@in_virtual_time
async def test_a_drain_waits_for_what_nobody_has_taken_yet() -> None:
    """Client-go returns at once, and the keys are lost (kubernetes#141079)."""
    queue = WorkQueue[str]()
    for key in "ab":
        queue.add(key)
    async with asyncio.TaskGroup() as group:
        draining = group.create_task(queue.shut_down_with_drain(60))
        await asyncio.sleep(10)
        assert not draining.done()
        assert await drain(queue) == ["a", "b"]
    assert draining.result().unfinished == ()


@pytest.mark.parametrize("timeout", [0, 5])
@in_virtual_time
async def test_a_drain_ends_at_its_deadline_and_says_what_is_left(timeout: float) -> None:
    queue = WorkQueue[str]()
    for key in "abc":
        queue.add(key)
    queue.done(await queue.get())
    taken = await queue.get()
    began = now()
    report = await queue.shut_down_with_drain(timeout)
    assert now() - began == pytest.approx(timeout)
    assert report.unfinished == ("b", "c")
    queue.done(taken)
    assert await drain(queue) == ["c"]
    with pytest.raises(QueueShutDown):
        await queue.get()


@in_virtual_time
async def test_a_deadline_lets_those_go_who_waited_for_a_key_to_come_back() -> None:
    queue = WorkQueue[str]()
    queue.add("stuck")
    await queue.get()
    queue.add("stuck")
    async with asyncio.TaskGroup() as group:
        group.create_task(queue.shut_down_with_drain(5))
        await quiet()
        with pytest.raises(QueueShutDown):
            await queue.get()
        assert now() == pytest.approx(5)


@in_virtual_time
async def test_a_drain_that_is_cancelled_has_shut_the_queue_down() -> None:
    queue = WorkQueue[str]()
    queue.add("a")
    taken = await queue.get()
    queue.add("a")
    async with asyncio.TaskGroup() as group:
        draining = group.create_task(queue.shut_down_with_drain())
        await quiet()
        draining.cancel()
    assert queue.is_shut_down
    with pytest.raises(QueueShutDown):
        await queue.get()
    queue.done(taken)


@in_virtual_time
async def test_a_drain_of_a_queue_with_nothing_to_do_is_over_at_once() -> None:
    queue = WorkQueue[str]()
    assert (await queue.shut_down_with_drain()).unfinished == ()
    with pytest.raises(QueueShutDown, match="the queue was shut down"):
        await queue.get()


def test_a_negative_number_of_causes_is_refused() -> None:
    with pytest.raises(ValueError, match="max_causes is -1"):
        WorkQueue[str](max_causes=-1)


@in_virtual_time
async def test_the_causes_of_a_key_that_waits_for_its_retry_can_be_read() -> None:
    queue = WorkQueue[str]()
    queue.add("x", cause=Cause(CauseKind.UPDATED, "pods"))
    async with queue.processing() as key:
        queue.add_rate_limited(key)
    kinds = [CauseKind.UPDATED, CauseKind.RETRY]
    assert [cause.kind for cause in queue.causes("x")] == kinds
    await asyncio.sleep(1)
    assert [cause.kind for cause in queue.causes("x")] == kinds
    queue.add_after("x", 5, cause=Cause(CauseKind.TIMER))
    assert [cause.kind for cause in queue.causes("x")] == kinds, "why it waits now"


async def test_of_an_empty_queue_no_time_of_waiting_is_below_zero() -> None:
    queue = WorkQueue[str](metrics=QueueMeter())
    assert {queue.statistics().oldest_waiting for _ in range(200)} == {0.0}


@in_virtual_time
async def test_many_keys_that_fall_due_together_come_in_several_turns_and_in_order() -> None:
    queue = WorkQueue[int]()
    for number in range(5000):
        queue.add_after(number, 10)
    await asyncio.sleep(10)
    most = before = 0
    while before < 5000:
        await asyncio.sleep(0)
        most, before = max(most, len(queue) - before), len(queue)
    assert most < 2000
    assert [await queue.get() for _ in range(5000)] == list(range(5000))
