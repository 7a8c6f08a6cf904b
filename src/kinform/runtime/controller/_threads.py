"""Threads for reconciles that are plain functions: as many as there are workers, made when needed.

Not a ``ThreadPoolExecutor``: the interpreter waits for its threads when it exits, and a function
that never returns would keep the process from ending.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import itertools
import queue
import threading
from collections.abc import Callable
from typing import TypeAlias, TypeVar, final

from kinform import clock

__all__ = ["Threads"]

R = TypeVar("R")

_Job: TypeAlias = Callable[[], None]


@final
class Threads:
    """Runs blocking calls in threads. Under virtual time they run inline."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._number = itertools.count(1)
        self._threads = 0
        self._busy = 0

    async def call(self, function: Callable[[], R], *, on_cancel: Callable[[], None]) -> R:
        """Run ``function()`` in a thread; return its result, or raise its error.

        A thread cannot be ended: cancelled, this calls ``on_cancel`` and waits for the function's
        end before it raises ``CancelledError``. Cancelled twice, it waits no longer.
        """
        if clock.current() is not clock.SYSTEM:
            return await clock.offload(function)
        loop = asyncio.get_running_loop()
        # Not the result itself: a future takes no StopIteration, which any next() may raise.
        outcome: asyncio.Future[Callable[[], R]] = loop.create_future()
        context = contextvars.copy_context()

        def job() -> None:
            end = _end_of_call(functools.partial(context.run, function))
            with contextlib.suppress(RuntimeError):  # the loop is closed: nothing waits any more
                loop.call_soon_threadsafe(outcome.set_result, end)

        self._start(job)
        try:
            await _wait(outcome, on_cancel)
        finally:
            self._busy -= 1
        return outcome.result()()

    def close(self) -> None:
        """Let the threads end once they are idle."""
        for _ in range(self._threads):
            self._jobs.put(None)
        self._threads = 0

    def _start(self, job: _Job) -> None:
        self._busy += 1
        if self._busy > self._threads:
            self._threads += 1
            name = f"{self._name}-{next(self._number)}"
            threading.Thread(target=self._serve, name=name, daemon=True).start()
        self._jobs.put(job)

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()


async def _wait(outcome: asyncio.Future[Callable[[], R]], on_cancel: Callable[[], None]) -> None:
    try:
        await asyncio.wait([outcome])
    except asyncio.CancelledError:
        on_cancel()
        await asyncio.wait([outcome])
        raise


def _end_of_call(call: Callable[[], R]) -> Callable[[], R]:
    """Call the function; return a function that returns its result, or raises its error."""
    try:
        result = call()
    except BaseException as exc:  # noqa: BLE001 - raised again in the task that waits
        error = exc
    else:
        return lambda: result

    def fail() -> R:
        if isinstance(error, StopIteration):  # it cannot leave a coroutine
            raise RuntimeError("the function raised StopIteration") from error  # noqa: TRY004 - as a generator
        raise error

    return fail
