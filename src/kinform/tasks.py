"""Tasks with an owner: tied to a block, or to a call that waits for all of them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Hashable, Iterator
from typing import Final, Generic, TypeVar, final

__all__ = [
    "SharedCalls",
    "background",
    "cancellations",
    "ended",
    "finish",
    "gather",
    "pass_on_cancellation",
    "waits",
]

_TURNS: Final = 20

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")


@contextlib.asynccontextmanager
async def background(
    work: Coroutine[object, object, R], *, patience: int | None = None
) -> AsyncGenerator[asyncio.Task[R]]:
    """Run ``work`` beside the block; when the block is left it is cancelled and waited for.

    In any case: who is cancelled meanwhile ends when ``work`` has, as with a ``TaskGroup``; or,
    after ``patience`` cancellations all in all, leaves it to itself. Unlike a ``TaskGroup`` it may
    stand in an async generator: it belongs to no task, so the block may be left in another one.
    Its failure is seen by whoever awaits the task, and only there.
    """
    task = asyncio.get_running_loop().create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await ended(task, patience=patience)
        if not task.cancelled():
            task.exception()  # taken note of: a failure nobody awaited is not an event-loop error


async def ended(task: asyncio.Task[R], *, patience: int | None = None) -> None:
    """Wait until a task that was cancelled has ended; cancelled meanwhile, wait all the same.

    ``patience``: not if the task that waits was cancelled so often, all in all.
    """
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as exc:
            if patience is not None and cancellations() >= patience:
                raise
            cancelled = exc
    if cancelled is not None:
        raise cancelled


def waits(seconds: float) -> Iterator[float]:
    """Yield how long to wait for something, again and again until ``seconds`` have passed.

    And some turns of the loop: if it was held up for all that time, by a busy machine or a callback
    that blocks, it is not the fault of those who had no turn.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while (left := deadline - loop.time()) > 0:
        yield left
    for _ in range(_TURNS):
        yield 0.0


async def finish(work: Coroutine[object, object, R]) -> R:
    """Run ``work`` to its end and return its result; cancelled meanwhile, wait all the same.

    For what must not stay half done. The cancellation is raised when ``work`` has ended, whatever
    has come of that.
    """
    task = asyncio.get_running_loop().create_task(work)
    try:
        await ended(task)
    except asyncio.CancelledError:
        if not task.cancelled():
            task.exception()  # taken note of: there is something else to be raised
        raise
    return task.result()


async def gather(*works: Coroutine[object, object, R]) -> list[R]:
    """Run all ``works`` at once and return their results in order.

    The first failure cancels the others and is raised as it is, not within a group.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work) for work in works]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


def cancellations() -> int:
    """Return how often the current task was asked to end, and has not yet."""
    task = asyncio.current_task()
    return task.cancelling() if task is not None else 0


def pass_on_cancellation(before: int = 0) -> None:
    """End this task if it was asked to: more often than ``before``, which it has outlived.

    To be called where a user's function may have swallowed that, and in ``except CancelledError``
    around one: what it awaits may have been cancelled by somebody else. Then this returns, and
    there was a failure like any other.
    """
    if cancellations() > before:
        raise asyncio.CancelledError


@final
class SharedCalls(Generic[K, R]):
    """Lets everybody who wants the same thing at the same time share one call for it.

    The first to ask makes the call; the others wait for what comes of it, a failure included. If
    the first is cancelled, one of the others makes the call. Nothing is remembered afterwards.
    """

    def __init__(self) -> None:
        self._under_way: dict[K, asyncio.Future[R]] = {}

    async def call(self, key: K, work: Callable[[], Awaitable[R]]) -> R:
        """Return what ``work()`` returns, called by this task or by another that wants ``key``."""
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
            outcome.exception()  # taken note of: perhaps nobody waits for it
            raise
        finally:
            del self._under_way[key]
            outcome.cancel()  # no effect unless we were cancelled
        return result
