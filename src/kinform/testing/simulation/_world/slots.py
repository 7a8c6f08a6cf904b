"""A slot: the place of a process, in which one life follows another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from kinform.testing.simulation._oracles.activity import is_bookkeeping
from kinform.testing.simulation._world.link import Link, Stage
from kinform.testing.simulation.actions import CrashAtWrite
from kinform.testing.simulation.process import Process

__all__ = ["Countdown", "Slot"]


@dataclass(slots=True)
class Slot:
    """One process, whether it runs or not."""

    number: int
    process: Process | None = None
    ends: bool = False
    after: float = 0.0
    ended_at: float | None = None
    crashed: bool = False
    _task: asyncio.Task[None] | None = field(default=None)

    @property
    def link(self) -> Link | None:
        """The way to the server, while it runs."""
        return None if self.process is None else self.process.link

    def begin(self, process: Process, task: asyncio.Task[None]) -> None:
        """Note that a life begins."""
        self.process, self._task, self.ended_at, self.crashed = process, task, None, False
        if self.ends:
            self.end(crash=False)

    def over(self) -> None:
        """Record that it has ended."""
        self.process = self._task = None

    def end(self, *, crash: bool, after: float = 0.0) -> None:
        """End the life that runs, if one does."""
        if self._task is None or self.process is None or self.ended_at is not None:
            return
        self.after = after
        self.ended_at = asyncio.get_running_loop().time()
        self.crashed = crash
        self._task.cancel()
        if crash:  # a crash is not a clean stop
            self.process.link.kill()
            asyncio.get_running_loop().call_soon(self._task.cancel)


class Countdown:
    """Ends a process at the nth write."""

    def __init__(self, action: CrashAtWrite) -> None:
        self._action = action
        self._count = 0

    def of(self, slot: Slot) -> Callable[[Stage, str], None]:
        """Return what counts the writes of one process, and ends it at the nth of all."""

        def count(stage: Stage, path: str) -> None:
            if (stage == "done") is not self._action.before_answer:
                return
            if is_bookkeeping(path) and not self._action.bookkeeping:
                return
            self._count += 1
            if self._count == self._action.nth:
                slot.end(crash=True, after=1.0)

        return count
