"""A clock for ordinary loops: real processes and threads, and time that the test sets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from kinform.clock import SYSTEM

__all__ = ["ManualClock"]

R = TypeVar("R")


class ManualClock:
    """Implements `kinform.clock.Clock`; stands still until it is moved."""

    def __init__(self) -> None:
        self.boot_time = 1000.0
        self.wall_time = 1_767_225_600.0  # 2026-01-01T00:00:00Z

    @classmethod
    def install(cls) -> ManualClock:
        """Make a clock the one of the running loop."""
        clock = cls()
        setattr(asyncio.get_running_loop(), "clock", clock)  # noqa: B010 - loops declare no such
        return clock

    def boot(self) -> float:
        return self.boot_time

    def wall(self) -> float:
        return self.wall_time

    async def offload(self, call: Callable[[], R]) -> R:
        return await SYSTEM.offload(call)

    def advance(self, seconds: float) -> None:
        """Let time pass by both clocks."""
        self.boot_time += seconds
        self.wall_time += seconds
