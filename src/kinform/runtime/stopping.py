"""Stop: that the end was asked for, and until when it must be there."""

from __future__ import annotations

import asyncio
from typing import final

__all__ = ["Stop"]


@final
class Stop:
    """One stop of one manager. All that ends in good order shares one deadline.

    Args:
        grace: seconds from the asking to the deadline.
    """

    def __init__(self, grace: float) -> None:
        self.grace = grace
        self._asked = asyncio.Event()
        self._deadline = 0.0

    def ask(self) -> None:
        """Ask for the end. Only the first time counts."""
        if not self._asked.is_set():
            self._deadline = asyncio.get_running_loop().time() + self.grace
            self._asked.set()

    @property
    def is_asked(self) -> bool:
        """Whether the end was asked for; stays true."""
        return self._asked.is_set()

    async def wait(self) -> None:
        """Wait until the end is asked for."""
        await self._asked.wait()

    def left(self, *, least: float = 0.0) -> float:
        """Return how many seconds are left until the deadline; all if nobody has asked."""
        if not self.is_asked:
            return self.grace
        return max(least, self._deadline - asyncio.get_running_loop().time())
