"""Helpers for asyncio tasks with an owner: a block, or a call that waits for all of them.

Rule: ``Task.cancelling()`` is never evidence of a cancellation. Before Python 3.13 it stays at 1
after a ``TaskGroup`` whose child failed, and user code can leave it at any value. Evidence is a
``CancelledError`` raised by an await that only the owner's own cancellation can end. So user code
runs `apart`, in a task of its own, and our task awaits only the end of that task.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Hashable,
    Iterator,
)
from typing import Final, Generic, TypeVar, cast, final

__all__ = [
    "CANCEL_TIMEOUT",
    "SharedCalls",
    "apart",
    "background",
    "end_in_time",
    "ended",
    "finish",
    "gather",
    "waits",
]

CANCEL_TIMEOUT: Final = 0.25
"""Seconds that a cancelled task gets to end before it is abandoned."""
_TURNS: Final = 20

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")


@contextlib.asynccontextmanager
async def background(
    work: Coroutine[object, object, R], *, patience: int | None = None
) -> AsyncGenerator[asyncio.Task[R]]:
    """Run ``work`` beside the block; leaving the block cancels it and waits for its end.

    A caller that is cancelled during that wait still waits for the end of ``work``, as with a
    ``TaskGroup``; after ``patience`` cancellations in total it stops waiting. Unlike a
    ``TaskGroup`` it can be used in an async generator: it belongs to no task, so the block may be
    left in another one. Its failure is raised only where the task is awaited.
    """
    task = asyncio.get_running_loop().create_task(work)
    left_by_cancellation = 0
    try:
        yield task
    except asyncio.CancelledError:
        left_by_cancellation = 1
        raise
    finally:
        task.cancel()
        left = None if patience is None else patience - left_by_cancellation
        await ended(task, patience=left)
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not log it


async def apart(
    work: Awaitable[R], *, name: str | None = None, on_cancel: Callable[[], object] | None = None
) -> asyncio.Task[R]:
    """Run ``work`` in a task of its own, wait for its end, and return that task, which is done.

    For user code. Nothing that ``work`` does to its task (a leftover ``cancelling()`` count, a
    swallowed cancellation) affects the caller's task: a ``CancelledError`` raised here is
    always the caller's own cancellation. If ``work`` itself ended by ``CancelledError``, because
    something it awaited was cancelled, ``task.cancelled()`` of the returned task is true.

    Each cancellation of the caller calls ``on_cancel`` and cancels ``work``. It is raised when
    ``work`` has ended, regardless of its result. Other tasks always run in between.
    """
    loop = asyncio.get_running_loop()
    is_coroutine = asyncio.iscoroutine(work)
    coroutine = cast("Coroutine[object, object, R]", work) if is_coroutine else _awaited(work)
    task = loop.create_task(coroutine, name=name)
    cancelled: asyncio.CancelledError | None = None
    while True:
        # Private to this call: nothing but the caller's cancellation can end the wait early.
        waiter: asyncio.Future[None] = loop.create_future()
        task.add_done_callback(functools.partial(_wake, waiter))
        try:
            await waiter
            break
        except asyncio.CancelledError as exc:
            cancelled = exc
            if task.done():
                break
            if on_cancel is not None:
                on_cancel()
            task.cancel()
    if cancelled is not None:
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not log it
        raise cancelled
    return task


async def _awaited(work: Awaitable[R]) -> R:
    return await work


def _wake(waiter: asyncio.Future[None], _: object) -> None:
    if not waiter.done():
        waiter.set_result(None)


async def ended(task: asyncio.Task[R], *, patience: int | None = None) -> None:
    """Wait until a cancelled task has ended, even if this wait is cancelled.

    After ``patience`` cancellations of the wait it gives up.
    """
    await _all_ended((task,), patience=patience)


async def _all_ended(tasks: Collection[asyncio.Task[R]], *, patience: int | None = None) -> None:
    cancelled: asyncio.CancelledError | None = None
    while left := [task for task in tasks if not task.done()]:
        try:
            await asyncio.wait(left)
        except asyncio.CancelledError as exc:
            patience = None if patience is None else patience - 1
            if patience is not None and patience <= 0:
                raise
            cancelled = exc
    if cancelled is not None:
        raise cancelled


async def end_in_time(
    *tasks: asyncio.Task[R],
    timeout: float | None = CANCEL_TIMEOUT,
    on_abandoned: Callable[[], object] | None = None,
) -> None:
    """Cancel ``tasks`` and wait for their end, for at most ``timeout`` seconds if it is given.

    A task cannot be ended against its will: user code may swallow its cancellation. So that a stop
    always ends, a task that still runs after ``timeout`` is abandoned, and ``on_abandoned`` is
    called once, to log it. The result of every task counts as retrieved, also that of an abandoned
    one. A caller that is cancelled meanwhile waits all the same; the cancellation is raised last.
    """
    cancelled: asyncio.CancelledError | None = None
    left: list[asyncio.Task[R]] = [task for task in tasks if not task.done()]
    for task in left:
        task.cancel()
    for task in tasks:
        task.add_done_callback(_retrieve)
    for seconds in itertools.repeat(None) if timeout is None else waits(timeout):
        if not left:
            break
        try:
            await asyncio.wait(left, timeout=seconds)
        except asyncio.CancelledError as exc:
            cancelled = exc
        left = [task for task in left if not task.done()]
    if left and on_abandoned is not None:
        on_abandoned()
    if cancelled is not None:
        raise cancelled


def _retrieve(task: asyncio.Task[R]) -> None:
    """Retrieve the exception of a task that nothing awaits, so that asyncio does not log it."""
    if not task.cancelled():
        task.exception()


def waits(seconds: float) -> Iterator[float]:
    """Yield the remaining time of a wait, repeatedly until ``seconds`` have passed.

    Then yield 0 for some iterations of the loop: if the loop was blocked for all that time, by a
    busy machine or a blocking callback, the awaited tasks had no chance to run.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while (left := deadline - loop.time()) > 0:
        yield left
    for _ in range(_TURNS):
        yield 0.0


async def finish(work: Coroutine[object, object, R]) -> R:
    """Run ``work`` to its end and return its result, even if the caller is cancelled.

    For work that must not be interrupted. The cancellation is raised when ``work`` has ended,
    regardless of its result.
    """
    task = asyncio.get_running_loop().create_task(work)
    try:
        await ended(task)
    except asyncio.CancelledError:
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not log it
        raise
    return task.result()


async def gather(*works: Coroutine[object, object, R]) -> list[R]:
    """Run all ``works`` at once and return their results in order.

    The first failure cancels the others and is raised as it is, not within a group, when all have
    ended. Unlike a ``TaskGroup``, it leaves no trace in the task that calls it.
    """
    loop = asyncio.get_running_loop()
    tasks = [loop.create_task(work) for work in works]
    left: set[asyncio.Task[R]] = set(tasks)
    failed: asyncio.Task[R] | None = None
    try:
        while left and failed is None:
            done, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
            failed = next((each for each in tasks if each in done and _has_failed(each)), None)
    finally:
        for task in left:
            task.cancel()
        try:
            await _all_ended(left)
        finally:
            for task in tasks:
                _ = task.done() and _has_failed(task)  # retrieved: asyncio does not log it
    if failed is not None:
        failed.result()
    return [task.result() for task in tasks]


def _has_failed(task: asyncio.Task[R]) -> bool:
    return task.cancelled() or task.exception() is not None


@final
class SharedCalls(Generic[K, R]):
    """Shares one call between concurrent callers with the same key (Go: singleflight).

    The first caller makes the call; the others wait for its result or failure. If the first is
    cancelled, one of the others makes the call. Results are not kept.
    """

    def __init__(self) -> None:
        self._under_way: dict[K, asyncio.Future[R]] = {}

    async def call(self, key: K, work: Callable[[], Awaitable[R]]) -> R:
        """Return the result of ``work()``, called by this task or by another with ``key``."""
        while (outcome := self._under_way.get(key)) is not None:
            await asyncio.wait([outcome])  # cancelling this wait does not touch the outcome
            if not outcome.cancelled():
                return outcome.result()
        outcome = self._under_way[key] = asyncio.get_running_loop().create_future()
        try:
            result = await work()
            outcome.set_result(result)
        except Exception as exc:
            outcome.set_exception(exc)
            outcome.exception()  # retrieved, so that asyncio does not log it without a waiter
            raise
        finally:
            del self._under_way[key]
            outcome.cancel()  # no effect unless we were cancelled
        return result
