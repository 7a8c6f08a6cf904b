"""`run` and `wait_for_cache_sync`: functions of the blocking API."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import ParamSpec, Protocol, TypeVar

from kinform.cache._informer import state_waiters
from kinform.errors import UsageError
from kinform.sync import _loop_thread

__all__ = ["BlockingSyncable", "run", "wait_for_cache_sync"]

P = ParamSpec("P")
R = TypeVar("R")


class BlockingSyncable(Protocol):
    """Something that can be waited for: an informer, a group of them, a registration."""

    @property
    def asynchronous(self) -> state_waiters.Syncable:
        """The asyncio object behind it."""
        ...


def run(
    function: Callable[P, Coroutine[object, object, R]], /, *args: P.args, **kwargs: P.kwargs
) -> R:
    """Run an ``async def`` on kinform's thread and wait for it: for calls without a blocking form.

    .. code-block:: python

        version = run(client.asynchronous.rest().get().abs_path("/version").raw)

    ``client.asynchronous`` and ``informer.asynchronous`` are what such a function works with. It
    shares the thread with everything else and must not block. Ctrl-C cancels it.

    Raises:
        UsageError: called on that thread itself, where one can ``await``.
    """
    return _loop_thread.current().run(function, *args, **kwargs)


def wait_for_cache_sync(*what: BlockingSyncable, timeout: float | None = None) -> None:
    """Wait until all of them have synced: see `kinform.wait_for_cache_sync`.

    Raises:
        TimeoutError: not all have in time; the message names those.
        UsageError: one was not started, or stopped meanwhile, or there is nothing to wait for.
    """
    if not what:
        raise UsageError("there is nothing to wait for; give informers or registrations")
    inner = (one.asynchronous for one in what)
    _loop_thread.current().run(state_waiters.wait_for_cache_sync, *inner, timeout=timeout)
