"""Virtual time: it jumps, it carries its clocks along, and it turns hangs into failures."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import math
import socket
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform import clock
from kinform.errors import UsageError
from kinform.testing import virtual_time
from kinform.testing.virtual_time import (
    Deadlock,
    LeakedTasks,
    Livelock,
    in_virtual_time,
    virtual_clock,
)


async def spin() -> None:
    while True:  # noqa: ASYNC110 - the very mistake to be noticed
        await asyncio.sleep(0)


def test_a_day_passes_without_waiting() -> None:
    async def main() -> float:
        async with asyncio.timeout(100_000):
            await asyncio.sleep(86_400)
        return asyncio.get_running_loop().time()

    began = time.perf_counter()
    assert virtual_time.run(main()) == 86_400
    assert time.perf_counter() - began < 5


@in_virtual_time
async def test_timers_fire_in_order_whatever_the_order_they_were_set_in() -> None:
    fired: list[float] = []

    async def sleeper(seconds: float) -> None:
        await asyncio.sleep(seconds)
        fired.append(asyncio.get_running_loop().time())

    async with asyncio.TaskGroup() as group:
        for seconds in (3_000.0, 0.001, 40.0):
            group.create_task(sleeper(seconds))
    assert [0.001, 40.0, 3_000.0] == fired


@in_virtual_time
async def test_no_time_passes_while_tasks_have_work() -> None:
    queue: asyncio.Queue[int] = asyncio.Queue(1)

    async def produce() -> None:
        for number in range(1_000):
            await queue.put(number)

    async with asyncio.TaskGroup() as group:
        group.create_task(produce())
        for number in range(1_000):
            assert number == await queue.get()
    assert asyncio.get_running_loop().time() == 0


@pytest.mark.parametrize("seconds", [0.1, 1e7 / 3, 1e9 + 0.7], ids=str)
def test_a_timer_is_reached_in_spite_of_rounding(seconds: float) -> None:
    async def main() -> float:
        await asyncio.sleep(0.3)
        await asyncio.sleep(seconds)
        due = asyncio.Event()
        asyncio.get_running_loop().call_later(0, due.set)
        await due.wait()
        return asyncio.get_running_loop().time()

    assert virtual_time.run(main(), timeout=None) == pytest.approx(0.3 + seconds)


@given(seconds=st.lists(st.floats(0, 1e8), min_size=1, max_size=20))
def test_no_timer_runs_before_its_time(seconds: list[float]) -> None:
    async def main() -> list[tuple[float, float]]:
        loop = asyncio.get_running_loop()
        ran: list[tuple[float, float]] = []

        def note(when: float) -> None:
            ran.append((when, loop.time()))

        for when in seconds:
            loop.call_at(when, note, when)
            after = math.nextafter(when, math.inf)
            loop.call_at(after, note, after)
        await asyncio.sleep(max(seconds) + 1)
        return ran

    ran = virtual_time.run(main(), timeout=None)
    assert len(ran) == 2 * len(seconds)
    assert [when for when, now in ran if now < when] == []


@in_virtual_time
async def test_who_waits_for_the_next_instant_does_not_keep_time_from_coming() -> None:
    """Two tasks took turns for ever: of one a timer ran too early whenever the other was awake."""
    await asyncio.sleep(5)
    loop = asyncio.get_running_loop()
    end = math.nextafter(5.0, math.inf)

    async def wait() -> None:
        while loop.time() < end:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(end):
                    await asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        group.create_task(wait())
        await asyncio.sleep(0)
        group.create_task(wait())


@in_virtual_time
async def test_boot_and_wall_time_follow_the_loop() -> None:
    boot, wall = virtual_clock().boot(), virtual_clock().wall()
    await asyncio.sleep(30)
    assert (boot + 30, wall + 30) == (clock.current().boot(), clock.current().wall())


@in_virtual_time
async def test_suspend_moves_boot_and_wall_time_but_no_timer() -> None:
    boot, wall = virtual_clock().boot(), virtual_clock().wall()
    virtual_clock().suspend(3_600)
    assert asyncio.get_running_loop().time() == 0
    assert (boot + 3_600, wall + 3_600) == (virtual_clock().boot(), virtual_clock().wall())


@in_virtual_time
async def test_the_wall_clock_can_be_set_back() -> None:
    boot, wall = virtual_clock().boot(), virtual_clock().wall()
    virtual_clock().jump_wall(-60)
    assert (boot, wall - 60) == (virtual_clock().boot(), virtual_clock().wall())


def test_nobody_sleeps_a_negative_time() -> None:
    with pytest.raises(ValueError, match="zero or more"):
        virtual_time.VirtualClock(lambda: 0.0).suspend(-1)


@in_virtual_time(wall=1.5)
async def test_the_wall_clock_starts_where_it_is_told() -> None:
    assert virtual_clock().wall() == 1.5


@in_virtual_time
async def test_the_loops_own_time_is_no_boot_time() -> None:
    assert virtual_clock().boot() != asyncio.get_running_loop().time()


@in_virtual_time
async def test_offload_runs_inline_and_takes_no_time() -> None:
    assert "result" == await clock.offload(lambda: "result")
    assert asyncio.get_running_loop().time() == 0


@in_virtual_time
async def test_offload_may_block() -> None:
    """The block detector must know that under virtual time the loop is where blocking belongs."""
    await clock.offload(time.sleep, 0)


@in_virtual_time
async def test_other_tasks_get_a_turn_during_an_offload() -> None:
    order: list[str] = []
    async with asyncio.TaskGroup() as group:
        group.create_task(clock.offload(order.append, "offloaded"))
        await asyncio.sleep(0)  # it has begun
        order.append("first")
    assert ["first", "offloaded"] == order


@in_virtual_time
async def test_executor_jobs_run_inline_and_hand_over_their_errors() -> None:
    loop = asyncio.get_running_loop()
    assert await loop.run_in_executor(None, divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        await loop.run_in_executor(None, divmod, 7, 0)


def test_waiting_for_ever_is_a_deadlock_that_tells_who_waits_where() -> None:
    async def waits_for_ever() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(waits_for_ever(), name="the-waiter")

    place = r"in .*waits_for_ever > locks\.py:\d+ in Event\.wait"
    with pytest.raises(Deadlock, match=f"the-waiter: .*{place}"):
        virtual_time.run(main(), timeout=None)


def test_code_under_test_cannot_swallow_a_deadlock() -> None:
    async def main() -> None:
        try:
            await asyncio.Event().wait()
        except Exception:  # noqa: BLE001 - the point of the test
            return

    with pytest.raises(Deadlock):
        virtual_time.run(main(), timeout=None)


def test_spinning_is_a_livelock() -> None:
    with pytest.raises(Livelock, match=r"100 turns .* still 0\.0\n.*:\d+ in spin"):
        virtual_time.run(spin(), max_turns=100)


def test_turns_count_from_the_last_time_that_moved() -> None:
    async def main() -> None:
        for _ in range(50):
            for _ in range(50):
                await asyncio.sleep(0)
            await asyncio.sleep(0.001)

    virtual_time.run(main(), max_turns=100)


def test_a_test_that_needs_too_much_time_ends() -> None:
    """A ticking timer keeps a deadlock from being one; the time-out finds it all the same."""

    async def tick() -> None:
        while True:  # noqa: ASYNC110 - a periodic timer
            await asyncio.sleep(30)

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(tick())
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        virtual_time.run(main(), timeout=3_600)


def test_a_task_left_behind_is_a_failure() -> None:
    async def main() -> None:
        asyncio.get_running_loop().create_task(asyncio.sleep(1), name="orphan")

    with pytest.raises(LeakedTasks, match="orphan"):
        virtual_time.run(main())


def test_a_task_that_was_cancelled_is_not_left_behind() -> None:
    async def main() -> None:
        task = asyncio.get_running_loop().create_task(asyncio.sleep(1))
        await asyncio.sleep(0)
        task.cancel()

    virtual_time.run(main())


@in_virtual_time
async def test_real_sockets_are_refused() -> None:
    with socket.socket() as listener:
        listener.setblocking(False)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with pytest.raises(UsageError, match="cannot wait for a real socket"):
            await asyncio.get_running_loop().sock_accept(listener)


async def test_an_ordinary_loop_has_no_virtual_clock() -> None:
    with pytest.raises(UsageError, match="has no virtual clock"):
        virtual_clock()


@given(st.floats(0, 100))
@in_virtual_time
async def test_the_decorator_gets_on_with_hypothesis(seconds: float) -> None:
    await asyncio.sleep(seconds)
    assert seconds == pytest.approx(asyncio.get_running_loop().time())


@pytest.mark.parametrize("number", [1, 2])
@in_virtual_time
async def test_the_decorator_keeps_parameters(number: int, tmp_path_factory: object) -> None:
    assert number in {1, 2}
    assert tmp_path_factory is not None


def test_a_decorated_test_is_no_coroutine_function() -> None:
    assert not inspect.iscoroutinefunction(test_real_sockets_are_refused)
