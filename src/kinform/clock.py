"""`Clock` and `offload`: boot time, wall time and blocking calls, replaceable in tests.

Timeouts and sleeps always use the running loop's own time. Other times (with suspend, and the wall
clock) come from `current`: the ``clock`` attribute of the running loop, else the system's clock. A
loop with virtual time therefore brings its own clock, and no function needs a clock argument.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final, ParamSpec, Protocol, TypeVar, final

__all__ = ["SYSTEM", "Clock", "SystemClock", "current", "offload"]

P = ParamSpec("P")
R = TypeVar("R")

_BOOT_CLOCK: Final[int | None] = getattr(time, "CLOCK_BOOTTIME", None)  # Linux only


class Clock(Protocol):
    """Times that the loop does not have, and a way to run blocking calls."""

    def boot(self) -> float:
        """Return seconds since some fixed point, counting time spent suspended."""
        ...

    def wall(self) -> float:
        """Return seconds since 1970, as in certificates; it may jump."""
        ...

    async def offload(self, call: Callable[[], R]) -> R:
        """Run a blocking ``call`` without blocking the loop; see `offload`."""
        ...


@final
class SystemClock:
    """The machine's own clocks; blocking calls go to the loop's thread pool."""

    def boot(self) -> float:
        """Return the boot clock: it counts suspend and never jumps (Linux; elsewhere monotonic)."""
        return time.monotonic() if _BOOT_CLOCK is None else time.clock_gettime(_BOOT_CLOCK)

    def wall(self) -> float:
        """Return the wall clock."""
        return time.time()

    async def offload(self, call: Callable[[], R]) -> R:
        """Run ``call`` in a thread of the loop's default pool."""
        return await asyncio.to_thread(call)


SYSTEM: Final[Clock] = SystemClock()
"""The clock of every loop without a ``clock`` attribute."""


def current() -> Clock:
    """Return the clock of the running loop (its ``clock`` attribute), or `SYSTEM`."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return SYSTEM
    clock: Clock = getattr(loop, "clock", SYSTEM)
    return clock


async def offload(call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a call that may block (files, processes, compression) without blocking the loop.

    Under virtual time it runs inline, so that a simulation stays deterministic. Cancelling the
    wait does not stop a call that has begun: give the call its own deadline.
    """
    return await current().offload(lambda: call(*args, **kwargs))
