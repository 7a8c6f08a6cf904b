"""Tasks with an owner."""

from __future__ import annotations

import asyncio

import pytest

from kinform.tasks import background, gather
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
async def test_a_failure_in_the_background_is_for_whoever_awaits_it() -> None:
    """A failure nobody waits for must not end up in asyncio's log either."""
    async with background(after(1, ValueError("unseen"))):
        await asyncio.sleep(2)
    with pytest.raises(ValueError, match="seen"):
        async with background(after(1, ValueError("seen"))) as task:
            await task
