"""Waiting for a condition that only the other side knows: ask again, with a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

R = TypeVar("R")


async def eventually(
    attempt: Callable[[], Awaitable[R]], *unless: type[Exception], timeout: float = 30.0
) -> R:
    """Return what ``attempt`` returns once it raises none of ``unless``."""
    async with asyncio.timeout(timeout):
        while True:
            try:
                return await attempt()
            except unless:
                await asyncio.sleep(0.05)
