"""Later: delays and retries in virtual time, and what becomes of them at the end."""

from __future__ import annotations

import asyncio
import math

import pytest

from kinform.testing import in_virtual_time
from kinform.workqueue import (
    FairOrder,
    ItemExponentialFailureRateLimiter,
    Priority,
    WorkQueue,
)

MS = 0.001


async def arrivals(queue: WorkQueue[str], until: float) -> list[tuple[float, str]]:
    """Take and do what comes until then; return when it came."""
    loop = asyncio.get_running_loop()
    came = list[tuple[float, str]]()
    try:
        async with asyncio.timeout_at(until):
            while True:
                async with queue.processing() as key:
                    came.append((round(loop.time(), 6), key))
    except TimeoutError:
        return came


@pytest.mark.parametrize("delay", [0.05, 25.0], ids=["soon", "past client-go's heartbeat"])
@in_virtual_time
async def test_a_delayed_key_comes_after_its_time_and_once(delay: float) -> None:
    """CG-Q12."""
    queue = WorkQueue[str]()
    queue.add_after("a", delay)
    assert (len(queue), queue.statistics().delayed) == (0, 1)
    assert await arrivals(queue, 100) == [(delay, "a")]
    assert queue.statistics().delayed == 0


@pytest.mark.parametrize("delays", [(50 * MS, 70 * MS), (70 * MS, 50 * MS)])
@in_virtual_time
async def test_of_two_times_the_earlier_counts_and_the_key_comes_once(
    delays: tuple[float, float],
) -> None:
    """CG-Q13."""
    queue = WorkQueue[str]()
    for delay in delays:
        queue.add_after("a", delay)
    assert await arrivals(queue, 1) == [(50 * MS, "a")]


@in_virtual_time
async def test_a_shorter_delay_added_later_fires_first() -> None:
    """CG-Q14."""
    queue = WorkQueue[str]()
    queue.add_after("third", 1.0)
    queue.add_after("first", 50 * MS)
    await asyncio.sleep(10 * MS)
    queue.add_after("second", 50 * MS)
    assert await arrivals(queue, 5) == [(0.05, "first"), (0.06, "second"), (1.0, "third")]


@in_virtual_time
async def test_what_fell_due_meanwhile_comes_out_by_time() -> None:
    """CG-Q15."""
    queue = WorkQueue[str]()
    for key, delay in {"third": 1.0, "second": 0.5, "first": 0.3}.items():
        queue.add_after(key, delay)
    await asyncio.sleep(2)
    assert [key for _, key in await arrivals(queue, 3)] == ["first", "second", "third"]


@in_virtual_time
async def test_retries_wait_as_the_rate_limiter_says() -> None:
    """CG-Q16."""
    limiter = ItemExponentialFailureRateLimiter[str](1 * MS, 1.0)
    queue = WorkQueue[str](rate_limiter=limiter)
    queue.add_rate_limited("one")
    assert await arrivals(queue, 1) == [(1 * MS, "one")]
    queue.add_rate_limited("one")
    queue.add_rate_limited("two")
    assert [queue.num_requeues(key) for key in ("one", "two")] == [2, 1]
    assert await arrivals(queue, 2) == [(1.001, "two"), (1.002, "one")]
    queue.forget("one")
    assert queue.num_requeues("one") == 0
    queue.add_rate_limited("one")
    assert await arrivals(queue, 3) == [(2.001, "one")]


@in_virtual_time
async def test_without_a_limiter_of_ones_own_it_is_that_of_controllers() -> None:
    queue = WorkQueue[str]()
    queue.add_rate_limited("a")
    queue.add_rate_limited("b")
    queue.add_rate_limited("b")
    assert await arrivals(queue, 1) == [(0.005, "a"), (0.005, "b")]


@pytest.mark.parametrize("delay", [0, -1.0])
@in_virtual_time
async def test_no_delay_is_an_add(delay: float) -> None:
    queue = WorkQueue[str]()
    queue.add_after("a", delay)
    assert (len(queue), queue.statistics().delayed) == (1, 0)


@pytest.mark.parametrize("delay", [math.nan, math.inf, -math.inf])
@in_virtual_time
async def test_a_delay_that_is_no_time_is_refused(delay: float) -> None:
    with pytest.raises(ValueError, match="delay is"):
        WorkQueue[str]().add_after("a", delay)


@in_virtual_time
async def test_an_add_now_does_not_change_what_comes_later() -> None:
    queue = WorkQueue[str]()
    queue.add_after("a", 1)
    queue.add("a")
    assert await arrivals(queue, 2) == [(0, "a"), (1, "a")]


@pytest.mark.parametrize(
    "priorities", [(Priority.LOW, Priority.HIGH), (Priority.HIGH, Priority.LOW)]
)
@in_virtual_time
async def test_a_delayed_key_keeps_the_highest_priority(
    priorities: tuple[Priority, Priority],
) -> None:
    queue = WorkQueue[str](order=FairOrder())
    queue.add_after("a/1", 1, priority=Priority.LOW)
    queue.add_after("a/2", 1, priority=priorities[0])
    queue.add_after("a/2", 5, priority=priorities[1])
    await asyncio.sleep(2)
    assert [key for _, key in await arrivals(queue, 3)] == ["a/2", "a/1"]


@in_virtual_time(timeout=None)
async def test_a_drain_reports_what_is_delayed_and_leaves_no_timer_behind() -> None:
    """8.3, finding 7: client-go keeps such keys in vain, and a goroutine for ten seconds."""
    queue = WorkQueue[str]()
    queue.add_after("later", 20)
    queue.add_after("sooner", 2)
    queue.add("now")
    taken = await queue.get()
    async with asyncio.TaskGroup() as group:
        draining = group.create_task(queue.shut_down_with_drain())
        await asyncio.sleep(5)  # what falls due meanwhile is reported, not added
        assert len(queue) == 0
        queue.add_rate_limited(taken)  # it failed, and would have been tried again
        queue.add_after("at once", 0)
        queue.done(taken)
    assert draining.result().delayed == ("sooner", "at once", "now", "later")
    assert draining.result().unfinished == ()
    scheduled = getattr(asyncio.get_running_loop(), "_scheduled", [])
    assert [timer for timer in scheduled if not timer.cancelled()] == []
    assert queue.statistics().delayed == 0


@in_virtual_time
async def test_a_shut_down_forgets_what_is_delayed() -> None:
    queue = WorkQueue[str]()
    queue.add_after("a", 1)
    queue.shut_down()
    await asyncio.sleep(2)
    assert (len(queue), queue.statistics().delayed) == (0, 0)
    assert (await queue.shut_down_with_drain()).delayed == ()


def no_bad_ones(key: str) -> str:
    if key == "bad":
        raise KeyError(key)
    return ""


async def test_an_order_that_refuses_one_delayed_key_does_not_lose_the_others() -> None:
    problems = list[object]()
    asyncio.get_running_loop().set_exception_handler(lambda _, what: problems.append(what))
    queue = WorkQueue[str](order=FairOrder(tenant=no_bad_ones))
    queue.add("first")
    for key in ("a", "bad", "b"):
        queue.add_after(key, 0.001)
    until = asyncio.get_running_loop().time() + 0.1
    assert [key for _, key in await arrivals(queue, until)] == ["first", "a", "b"]
    assert len(problems) == 1
