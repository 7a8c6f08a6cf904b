"""A counter of notifications with a goal, for any thread and without a lock.

A step runs for every notification, so it must cost next to nothing: `itertools.count` is
one call into C, which no other thread can interrupt.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, final

__all__ = ["Goal", "Tell", "latencies", "percentile", "quiet", "telling"]

Tell: TypeAlias = Callable[[Any], object]
"""The function that a handler calls with each object it receives."""


@final
class Goal:
    """So many steps. To be made on the event loop that waits; `step` is for any thread."""

    def __init__(self, steps: int, *, what: str) -> None:
        self.steps = steps
        self._what = what
        self._reached = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self.count = itertools.count(1).__next__
        """Take one step and return its number; the caller that gets ``steps`` calls `reach`."""
        if steps <= 0:
            self._reached.set()

    def step(self) -> None:
        """Come one nearer. Steps beyond the goal do no harm."""
        if self.count() == self.steps:
            self.reach()

    def reach(self) -> None:
        """Wake the waiting task."""
        self._loop.call_soon_threadsafe(self._reached.set)

    async def wait(self, timeout: float) -> None:
        """Wait until it is reached.

        Raises:
            TimeoutError: it takes longer; the message says how far it came.
        """
        limit = asyncio.timeout(timeout)
        try:
            async with limit:
                await self._reached.wait()
        except TimeoutError:
            made = self.count() - 1
            text = f"{self._what}: {made} of {self.steps} within {timeout:g} s"
            raise TimeoutError(text) from None


def quiet(_: object) -> None:
    """Count nothing."""


def telling(goal: Goal, look: Tell | None = None) -> Tell:
    """Return a function that counts one step per object, and first calls ``look`` if given."""
    count, steps, reach = goal.count, goal.steps, goal.reach

    def counted(_: object) -> None:
        if count() == steps:
            reach()

    def looked_at(obj: object) -> None:
        assert look is not None
        look(obj)
        if count() == steps:
            reach()

    return counted if look is None else looked_at


def latencies(goal: Goal, sent: Callable[[Any], str], into: list[int]) -> Tell:
    """Return a callback that records how many nanoseconds ago each object was sent.

    The measured time includes reading the time of sending from the object.
    """
    count, steps, reach = goal.count, goal.steps, goal.reach
    now, note = time.time_ns, into.append

    def timed(obj: object) -> None:
        stamp = int(sent(obj))
        note(now() - stamp)
        if count() == steps:
            reach()

    return timed


def percentile(ordered: Sequence[int], share: float) -> int:
    """Return the nearest rank of sorted figures.

    >>> percentile([10, 20, 30, 40], 0.5), percentile([10, 20, 30, 40], 0.999)
    (20, 40)
    """
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]
