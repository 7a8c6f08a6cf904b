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
async def test_a_failure_in_the_background_is_for_whoever_awaits_it() -> None:
    """A failure nobody waits for must not end up in asyncio's log either."""
    async with background(after(1, ValueError("unseen"))):
        await asyncio.sleep(2)
    with pytest.raises(ValueError, match="seen"):
        async with background(after(1, ValueError("seen"))) as task:
            await task
