"""Streams for blocking readers: fetched in batches on the loop, returned one by one."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Generic, TypeVar, final

from kinform.errors import UsageError
from kinform.sync._loop_thread import LoopThread

__all__ = ["Reader"]

E = TypeVar("E")


@final
class Reader(Generic[E]):
    """Hands out what ``pull`` brings; when that is nothing, it is the end.

    For one thread at a time. A read that is interrupted loses nothing: what ``pull`` had brought
    by then is there for the next one.

    Args:
        loop: where ``pull`` runs.
        pull: fetches the next items. It runs once at a time.
        what: the name of the stream, for messages.
    """

    __slots__ = ("_is_read", "_loop", "_pull", "_ready", "_turn", "_what")

    def __init__(
        self,
        loop: LoopThread,
        pull: Callable[[], Coroutine[object, object, Sequence[E]]],
        *,
        what: str,
    ) -> None:
        self._loop = loop
        self._pull = pull
        self._what = what
        self._ready: deque[E] = deque()
        self._turn = asyncio.Lock()  # one that was interrupted may take a moment to end
        self._is_read = False

    def next(self) -> E:
        """Return the next item.

        Raises:
            StopIteration: nothing does.
            UsageError: another thread waits for it.
        """
        if not self._ready:
            if self._is_read:
                raise UsageError(f"another thread reads this {self._what}; give each its own")
            self._is_read = True
            try:
                self._loop.run(self._fetch)
            finally:
                self._is_read = False
        try:
            return self._ready.popleft()
        except IndexError:
            raise StopIteration from None

    def end(self, close: Callable[[], Coroutine[object, object, object]]) -> None:
        """Call ``close`` as soon as no call reads any more.

        It never waits, so it may be called anywhere: by a garbage collector in any thread, or by a
        reader that was just interrupted.
        """

        async def closing() -> None:
            async with self._turn:
                await close()

        self._loop.spawn(closing)

    async def _fetch(self) -> None:
        async with self._turn:
            if not self._ready:
                self._ready.extend(await self._pull())
