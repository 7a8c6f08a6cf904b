"""Tasks with an owner."""

from __future__ import annotations

import asyncio
import time

import pytest

from kinform.tasks import background, finish, gather, waits
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
    """A failure nobody waits for must not end up in asyncio's log either."""
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
    asyncio.get_running_loop().call_soon(time.sleep, 0.02)  # somebody blocks the loop
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
