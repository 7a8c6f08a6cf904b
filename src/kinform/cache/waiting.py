"""Waiting until a cache is in some state: asked after every change, never polled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar, final

__all__ = ["Waiters"]

R = TypeVar("R")


@final
class Waiters:
    """Those who wait for something to be true. All of it happens on one event loop.

    Whatever a question does, it is its asker's business: neither `ask` nor the other askers
    notice, unless it is meant for the process (``KeyboardInterrupt``).
    """

    def __init__(self) -> None:
        self._asking: dict[Callable[[], None], Callable[[Exception], None]] = {}

    async def wait(self, question: Callable[[], R]) -> R:
        """Return the first true answer to ``question``, which is asked now and at each `ask`.

        What ``question`` raises, the waiter gets; so it does what `fail` was called with.
        """
        answer = question()
        if answer:
            return answer
        answered: asyncio.Future[R] = asyncio.get_running_loop().create_future()

        def ask() -> None:
            # The first answer counts: the waiter has not run yet, and by now it may be another.
            if answered.done():
                return
            try:
                answer = question()
            except Exception as exc:  # noqa: BLE001 - whatever it raises is its asker's
                fail(exc)
            else:
                if answer:
                    answered.set_result(answer)

        def fail(error: Exception) -> None:
            if isinstance(error, StopIteration):  # next() without a default; no future takes it
                error, stop = RuntimeError("the question raised StopIteration"), error
                error.__cause__ = stop
            if not answered.done():
                answered.set_exception(error)

        self._asking[ask] = fail
        try:
            return await answered
        finally:
            del self._asking[ask]

    def ask(self) -> None:
        """Ask everybody's question again."""
        for ask in tuple(self._asking):
            ask()

    def fail(self, error: Callable[[], Exception]) -> None:
        """Let everybody know that it will never be; each gets an error of its own."""
        for fail in tuple(self._asking.values()):
            fail(error())
