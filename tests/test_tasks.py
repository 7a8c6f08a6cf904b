"""Tasks with an owner."""

from __future__ import annotations

import asyncio
import gc
import time

import pytest

from kinform.tasks import CANCEL_TIMEOUT, apart, background, end_in_time, finish, gather, waits
from kinform.testing import in_virtual_time


async def after(seconds: float, outcome: str | Exception, log: list[str] | None = None) -> str:
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        if log is not None:
            log.append("cancelled")
        raise
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


@in_virtual_time
async def test_gather_runs_all_at_once_and_keeps_the_order() -> None:
    assert await gather(after(2, "a"), after(1, "b")) == ["a", "b"]
    assert asyncio.get_running_loop().time() == 2.0


@in_virtual_time
async def test_gather_raises_the_first_failure_as_it_is_and_ends_the_others() -> None:
    log: list[str] = []
    with pytest.raises(ValueError, match="mine"):
        await gather(after(1, ValueError("mine")), after(1000, "never", log))
    assert log == ["cancelled"]


@in_virtual_time
async def test_background_work_ends_with_its_block() -> None:
    log: list[str] = []
    async with background(after(1000, "never", log)):
        await asyncio.sleep(1)
    assert log == ["cancelled"]


@in_virtual_time
async def test_who_is_cancelled_while_background_work_ends_still_waits_for_it() -> None:
    """Found by simulation: who lost the lease and was stopped left his work behind."""
    ended: list[float] = []
    loop = asyncio.get_running_loop()

    async def work() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            await asyncio.sleep(5)  # to end in good order
            ended.append(loop.time())

    async def lead() -> None:
        async with background(work()):
            await asyncio.sleep(1)

    leading = loop.create_task(lead())
    for _ in range(3):
        await asyncio.sleep(1.5)
        leading.cancel()
    await asyncio.wait([leading])
    assert leading.cancelled()
    assert ended == [6.0] == [loop.time()]


@in_virtual_time
async def test_what_is_to_be_finished_is_finished_whoever_is_cancelled() -> None:
    loop = asyncio.get_running_loop()
    log: list[str] = []
    assert await finish(after(1, "done")) == "done"
    with pytest.raises(ValueError, match="mine"):
        await finish(after(1, ValueError("mine")))
    for outcome in ("done", ValueError("of less interest")):
        began = loop.time()
        finishing = loop.create_task(finish(after(5, outcome, log)))
        for _ in range(3):
            await asyncio.sleep(1)
            finishing.cancel()
        await asyncio.wait([finishing])
        assert (finishing.cancelled(), loop.time() - began, log) == (True, 5.0, [])


@in_virtual_time
async def test_a_failure_in_the_background_is_for_whoever_awaits_it() -> None:
    """A failure that no task awaits must not end up in asyncio's log either."""
    async with background(after(1, ValueError("unseen"))):
        await asyncio.sleep(2)
    with pytest.raises(ValueError, match="seen"):
        async with background(after(1, ValueError("seen"))) as task:
            await task


async def test_who_had_no_turn_is_waited_for_however_late_it_is() -> None:
    async def some_turns() -> None:
        for _ in range(5):
            await asyncio.sleep(0)

    work = asyncio.get_running_loop().create_task(some_turns())
    asyncio.get_running_loop().call_soon(time.sleep, 0.02)  # blocks the loop
    for left in waits(0.01):
        if work.done():
            break
        await asyncio.wait([work], timeout=left)
    assert work.done()


@in_virtual_time
async def test_waits_come_to_an_end() -> None:
    never = asyncio.Event()
    loop = asyncio.get_running_loop()
    async with background(never.wait()) as work:
        count = 0
        for left in waits(5):
            await asyncio.wait([work], timeout=left)
            count += 1
    assert loop.time() == pytest.approx(5)
    assert 2 < count < 50


# --- apart: user code in a task of its own


async def group_that_fails() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(after(1, ValueError("mine")))


@in_virtual_time
async def test_gather_leaves_no_cancellation_count_behind() -> None:
    task = asyncio.current_task()
    assert task is not None
    with pytest.raises(ValueError, match="mine"):
        await gather(after(1, ValueError("mine")), after(1000, "never"))
    assert task.cancelling() == 0


@in_virtual_time
async def test_gather_that_is_cancelled_waits_for_the_end_of_all() -> None:
    ends: list[float] = []
    loop = asyncio.get_running_loop()

    async def linger() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            await asyncio.sleep(5)
            ends.append(loop.time())

    gathering = loop.create_task(gather(linger(), linger()))
    for _ in range(3):
        await asyncio.sleep(1)
        gathering.cancel()
    await asyncio.wait([gathering])
    assert gathering.cancelled()
    assert ends == [6.0, 6.0] == [loop.time()] * 2


@in_virtual_time
async def test_what_runs_apart_leaves_its_count_in_its_own_task() -> None:
    task = asyncio.current_task()
    assert task is not None
    ended = await apart(group_that_fails())
    assert isinstance(ended.exception(), ExceptionGroup)
    assert task.cancelling() == 0


@in_virtual_time
async def test_what_was_cancelled_elsewhere_is_not_the_cancellation_of_who_waits_apart() -> None:
    async def await_cancelled() -> None:
        cancelled = asyncio.get_running_loop().create_future()
        cancelled.cancel()
        await cancelled

    assert (await apart(await_cancelled())).cancelled()
    future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(1, future.set_result, "any awaitable")
    assert (await apart(future)).result() == "any awaitable"


@in_virtual_time
async def test_who_waits_apart_and_is_cancelled_is_cancelled_whatever_becomes_of_the_work() -> None:
    loop = asyncio.get_running_loop()
    reported: list[float] = []

    async def ignore() -> str:
        for _ in range(2):
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                reported.append(loop.time())
        return "swallowed"

    async def fail_when_cancelled() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            raise ValueError("of less interest")

    works = (ignore(), fail_when_cancelled(), after(1000, "never"))
    for work in works:
        asked: list[str] = []
        waiting = loop.create_task(apart(work, on_cancel=lambda: asked.append("stop")))  # noqa: B023
        await asyncio.sleep(1)
        waiting.cancel()
        await asyncio.sleep(1)
        waiting.cancel()
        await asyncio.wait([waiting])
        assert waiting.cancelled()
        assert asked
    assert reported == [1.0, 2.0]


# --- tasks that must end in time


async def deaf(release: asyncio.Event) -> None:
    while not release.is_set():
        try:
            await release.wait()
        except asyncio.CancelledError:
            continue


@in_virtual_time
async def test_a_task_that_ignores_its_cancellation_is_abandoned_and_reported_once() -> None:
    loop, release, reports = asyncio.get_running_loop(), asyncio.Event(), list[float]()
    log: list[str] = []
    tasks = [loop.create_task(deaf(release)), loop.create_task(deaf(release))]
    obedient = loop.create_task(after(1000, "never", log))
    await asyncio.sleep(1)
    await end_in_time(*tasks, on_abandoned=lambda: reports.append(loop.time()))
    await end_in_time(obedient, on_abandoned=lambda: reports.append(-1.0))
    assert reports == [1 + CANCEL_TIMEOUT]
    assert log == ["cancelled"]
    assert not any(task.done() for task in tasks)
    release.set()
    await asyncio.wait(tasks)


@in_virtual_time
async def test_a_caller_that_is_cancelled_still_waits_for_tasks_that_end_in_time() -> None:
    loop = asyncio.get_running_loop()
    ended: list[float] = []

    async def slow() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            await asyncio.sleep(5)
            ended.append(loop.time())

    task = loop.create_task(slow())
    await asyncio.sleep(1)
    ending = loop.create_task(end_in_time(task, timeout=None))
    await asyncio.sleep(1)
    ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending
    assert ended == [6.0]


@in_virtual_time
async def test_the_error_of_an_ended_task_is_not_reported_by_asyncio() -> None:
    loop, reports = asyncio.get_running_loop(), list[object]()
    loop.set_exception_handler(lambda _, context: reports.append(context))
    failing = loop.create_task(after(0, ValueError("of the task")))
    await asyncio.sleep(1)
    await end_in_time(failing)
    del failing
    gc.collect()
    assert reports == []
