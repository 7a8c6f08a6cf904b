"""Waiting for caches: until a condition is met, or until several caches have synced.

Conditions are checked after every change, never polled (client-go's WaitForCacheSync polls).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import Final, Protocol, TypeVar, final

from kinform.errors import UsageError
from kinform.tasks import gather

__all__ = ["StateWaiters", "Syncable", "wait_for_all", "wait_for_cache_sync"]

R = TypeVar("R")

log: Final = logging.getLogger(__name__)


@final
class StateWaiters:
    """The tasks that wait for a condition of one cache. Everything here is on one event loop.

    An exception of a condition is raised in its own waiter; `check` and the other waiters are not
    affected, unless it is meant for the process (``KeyboardInterrupt``).
    """

    def __init__(self) -> None:
        self.pending: Final[dict[Callable[[], None], Callable[[Exception], None]]] = {}
        """A check and a failure function for each waiter; empty if no task waits."""

    async def wait(self, condition: Callable[[], R]) -> R:
        """Return the first true result of ``condition``, which runs now and at each `check`.

        Exceptions of ``condition``, and those given to `fail`, are raised here.
        """
        result = condition()
        if result:
            return result
        answered: asyncio.Future[R] = asyncio.get_running_loop().create_future()

        def check() -> None:
            # The first true result counts: the waiter has not run yet, and it may change again.
            if answered.done():
                return
            try:
                result = condition()
            except Exception as exc:  # noqa: BLE001 - raised in the waiter
                fail(exc)
            else:
                if result:
                    answered.set_result(result)

        def fail(error: Exception) -> None:
            if isinstance(error, StopIteration):  # next() without a default; futures refuse it
                error, stop = RuntimeError("the condition raised StopIteration"), error
                error.__cause__ = stop
            if not answered.done():
                answered.set_exception(error)

        self.pending[check] = fail
        try:
            return await answered
        finally:
            del self.pending[check]

    def check(self) -> None:
        """Check the condition of every waiter again."""
        # A copy: a condition is user code and may start or end other waits.
        for check in tuple(self.pending):
            check()

    def fail(self, error: Callable[[], Exception]) -> None:
        """Raise an error in every waiter; each gets an error of its own."""
        for fail in tuple(self.pending.values()):
            # One instance raised in several tasks would collect the tracebacks of all of them.
            fail(error())


class Syncable(Protocol):
    """A `SharedInformer`, an `InformerGroup`, or the `Registration` of a handler."""

    @property
    def name(self) -> str:
        """The name in messages."""
        ...

    @property
    def has_synced(self) -> bool:
        """True if it has synced."""
        ...

    async def wait_synced(self, timeout: float | None = None) -> None:
        """Wait until ``has_synced``."""
        ...


async def wait_for_cache_sync(*what: Syncable, timeout: float | None = None) -> None:
    """Wait until all of them have synced.

    .. code-block:: python

        await kinform.wait_for_cache_sync(pods, nodes, timeout=30)

    Raises:
        TimeoutError: not all have in time; the message names those, ``__cause__`` is the error of
            one of them.
        UsageError: one was not started, or stopped meanwhile, or none is given.
    """
    if not what:
        raise UsageError("there is nothing to wait for; give informers or registrations")
    for one in what:
        _check_syncable(one)
    await wait_for_all(what, timeout)


async def wait_for_all(what: Collection[Syncable], timeout: float | None) -> None:
    """Do as `wait_for_cache_sync`; with no arguments it returns at once."""
    missing = sorted(one.name for one in what if not one.has_synced)
    if not missing:
        return
    log.debug(
        "waiting for %d to sync: %s",
        len(missing),
        ", ".join(missing),
        extra={"informers": missing},
    )
    try:
        # All at once and not one after the other: the timeout is that of all together.
        await gather(*(_wait(one, timeout) for one in what))
    except TimeoutError as failure:
        names = sorted(one.name for one in what if not one.has_synced)
        text = f"not synced within {timeout} s: {', '.join(names)}"
        raise TimeoutError(text) from failure


async def _wait(one: Syncable, timeout: float | None) -> None:
    started = asyncio.get_running_loop().time()
    await one.wait_synced(timeout)
    took = asyncio.get_running_loop().time() - started
    log.debug(
        "%s has synced after %.1f s", one.name, took, extra={"informer": one.name, "seconds": took}
    )


def _check_syncable(one: object) -> None:
    if isinstance(one, int | float):
        raise UsageError(f"{one!r} cannot sync; for a timeout pass timeout={one!r}")
    if not hasattr(one, "wait_synced"):
        raise UsageError(f"{type(one).__name__} cannot sync; expected informers or registrations")
