"""The timer behind ``add_after``: it wakes when a key falls due, and for nothing else.

There is one timer of the loop's for all delayed keys, and no task. Client-go's wakes every ten
seconds besides, and lingers after a drain.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar, final

from kinform.sansio.workqueue.delays import Delays

__all__ = ["DelayTimer"]

K = TypeVar("K", bound=Hashable)

_PER_TURN: Final = 512
"""The limit of keys that fall due in one turn of the loop: a few milliseconds."""


@final
class DelayTimer(Generic[K]):
    """Calls ``on_due`` with each key when it falls due, in order of time, on the loop."""

    __slots__ = ("_delays", "_handle", "_on_due", "_stopped")

    def __init__(self, on_due: Callable[[K], None]) -> None:
        self._on_due = on_due
        self._delays: Delays[K] = Delays()
        self._handle: asyncio.TimerHandle | None = None
        self._stopped = False

    def add(self, key: K, delay: float) -> None:
        """Make ``key`` due in ``delay`` seconds, unless it is due sooner already."""
        loop = asyncio.get_running_loop()
        # Also while it is stopped: a queue that drains reports the keys that workers delay
        # meanwhile.
        if self._delays.add(key, loop.time() + delay) and not self._stopped:
            self._set(loop)

    def stop(self) -> None:
        """Stop the timer: no key falls due any more. Keys can still be listed and added."""
        self._stopped = True
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def clear(self) -> None:
        """Stop, and forget everything."""
        self.stop()
        self._delays.clear()

    def keys(self) -> list[K]:
        """Return the delayed keys, by due time."""
        return list(self._delays)

    def __len__(self) -> int:
        return len(self._delays)

    def _set(self, loop: asyncio.AbstractEventLoop) -> None:
        due = self._delays.next_due
        if self._handle is not None:
            if due is not None and self._handle.when() <= due:
                return  # it fires early enough, and is set again then
            self._handle.cancel()
        self._handle = None if due is None else loop.call_at(due, self._fire)

    def _fire(self) -> None:
        loop = asyncio.get_running_loop()
        handle, self._handle = self._handle, None
        # The loop may wake us within its clock's resolution before the time we asked for.
        now = loop.time() if handle is None else max(loop.time(), handle.when())
        try:
            # One by one: if a call raises or stops us, the others still wait. And not all at once:
            # keys that are left are due already, and come in the next turn of the loop.
            for _ in range(_PER_TURN):
                due = self._delays.next_due
                if self._stopped or due is None or due > now:
                    break
                self._on_due(self._delays.pop())
        finally:
            if not self._stopped:
                self._set(loop)
