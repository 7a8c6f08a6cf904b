"""`retry_on_conflict`: repeat a read-modify-write after a conflict (client-go: util/retry)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from kinform.errors import ConflictError

__all__ = ["retry_on_conflict"]

R = TypeVar("R")


async def retry_on_conflict(
    attempt: Callable[[], Awaitable[R]],
    *,
    steps: int = 5,
    delay: float = 0.01,
    factor: float = 1.0,
    jitter: float = 0.1,
) -> R:
    """Await ``attempt()`` until it raises no `ConflictError`, at most ``steps`` times.

    ``attempt`` must read the object again each time. The pause between two attempts is ``delay``,
    multiplied by ``factor`` after each, plus a random part of up to ``jitter``.

    Raises:
        ConflictError: the last one, when all steps are used up. Every other error at once.
    """
    for _ in range(steps - 1):
        try:
            return await attempt()
        except ConflictError:
            await asyncio.sleep(delay * (1 + jitter * random.random()))
            delay *= factor
    return await attempt()
