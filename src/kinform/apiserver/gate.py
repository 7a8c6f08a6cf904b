"""A gate before everything the server says: while it is shut, nothing is said."""

from __future__ import annotations

import asyncio
from typing import final

__all__ = ["Gate"]


@final
class Gate:
    """Open, unless told otherwise."""

    def __init__(self) -> None:
        self._opened: asyncio.Event | None = None

    @property
    def is_shut(self) -> bool:
        """Whoever wants to say something has to wait."""
        return self._opened is not None

    def shut(self) -> None:
        """Let nobody pass."""
        if self._opened is None:
            self._opened = asyncio.Event()

    def open(self) -> None:
        """Let everybody pass."""
        if self._opened is not None:
            self._opened.set()
            self._opened = None

    async def passed(self) -> None:
        """Wait until it is open."""
        while self._opened is not None:
            await self._opened.wait()
