"""Waiting for a real condition with a deadline: the only waiting these tests do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

_STEP = 0.01


def eventually(condition: Callable[[], bool], *, within: float = 20.0) -> None:
    """Return once ``condition`` holds; fail if it does not within that many seconds."""
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, f"not within {within:g} s"
        time.sleep(_STEP)


async def eventually_async(condition: Callable[[], bool], *, within: float = 20.0) -> None:
    """Do what `eventually` does, letting the loop run."""
    async with asyncio.timeout(within):
        while not condition():  # noqa: ASYNC110 (the condition lies outside the loop)
            await asyncio.sleep(_STEP)
