"""Tasks with an owner: tied to a block, or to a call that waits for all of them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Coroutine
from typing import TypeVar

__all__ = ["background", "gather"]

R = TypeVar("R")


@contextlib.asynccontextmanager
async def background(work: Coroutine[object, object, R]) -> AsyncGenerator[asyncio.Task[R]]:
    """Run ``work`` beside the block; when the block is left it is cancelled and waited for.

    Unlike a ``TaskGroup`` it may stand in an async generator: it belongs to no task, so the block
    may be left in another one. Its failure is seen by whoever awaits the task, and only there.
    """
    task = asyncio.get_running_loop().create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # taken note of: a failure nobody awaited is not an event-loop error


async def gather(*works: Coroutine[object, object, R]) -> list[R]:
    """Run all ``works`` at once and return their results in order.

    The first failure cancels the others and is raised as it is, not within a group.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work) for work in works]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]
