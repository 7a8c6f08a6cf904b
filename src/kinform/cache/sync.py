"""Waiting for several caches at once (client-go: WaitForCacheSync, which polls; this does not)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from typing import Final, Protocol

from kinform.errors import UsageError
from kinform.tasks import gather

__all__ = ["Syncable", "wait_for_all", "wait_for_cache_sync"]

log: Final = logging.getLogger(__name__)


class Syncable(Protocol):
    """What can be waited for: a `SharedInformer`, or a handler's `Registration`."""

    @property
    def name(self) -> str:
        """What it is called in messages."""
        ...

    @property
    def has_synced(self) -> bool:
        """Whether there is nothing to wait for any more."""
        ...

    async def wait_synced(self, timeout: float | None = None) -> None:
        """Wait until ``has_synced``."""
        ...


async def wait_for_cache_sync(*what: Syncable, timeout: float | None = None) -> None:
    """Wait until all of them have synced.

    .. code-block:: python

        await kinform.wait_for_cache_sync(pods, nodes, timeout=30)

    Raises:
        TimeoutError: not all have in time; the message names those, ``__cause__`` is what one of
            them says about it.
        UsageError: one was not started, or stopped meanwhile, or there is nothing to wait for.
    """
    if not what:
        raise UsageError("there is nothing to wait for; give informers or registrations")
    for one in what:
        _check_syncable(one)
    await wait_for_all(what, timeout)


async def wait_for_all(what: Collection[Syncable], timeout: float | None) -> None:
    """Do what `wait_for_cache_sync` does, for any number of them: none have synced at once."""
    missing = sorted(one.name for one in what if not one.has_synced)
    if not missing:
        return
    log.debug("waiting for %d to sync: %s", len(missing), ", ".join(missing))
    try:
        await gather(*(_wait(one, timeout) for one in what))
    except TimeoutError as failure:
        names = sorted(one.name for one in what if not one.has_synced)
        text = f"not synced within {timeout} s: {', '.join(names)}"
        raise TimeoutError(text) from failure


async def _wait(one: Syncable, timeout: float | None) -> None:
    started = asyncio.get_running_loop().time()
    await one.wait_synced(timeout)
    took = asyncio.get_running_loop().time() - started
    log.debug("%s has synced after %.1f s", one.name, took)


def _check_syncable(one: object) -> None:
    if isinstance(one, int | float):
        raise UsageError(f"{one!r} is nothing that syncs; for a time-out say timeout={one!r}")
    if not hasattr(one, "wait_synced"):
        raise UsageError(
            f"{type(one).__name__} is nothing that syncs; expected informers or registrations"
        )
