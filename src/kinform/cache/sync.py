"""Waiting for several caches at once (client-go: WaitForCacheSync, which polls; this does not)."""

from __future__ import annotations

import asyncio
import logging
from typing import Final, Protocol

__all__ = ["Syncable", "wait_for_cache_sync"]

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
        UsageError: one was not started, or stopped meanwhile.
    """
    missing = sorted(one.name for one in what if not one.has_synced)
    if not missing:
        return
    log.debug("waiting for %d to sync: %s", len(missing), ", ".join(missing))
    waits: dict[asyncio.Task[None], Syncable] = {}
    try:
        async with asyncio.TaskGroup() as group:
            waits = {group.create_task(_wait(one, timeout)): one for one in what}
    except BaseExceptionGroup as failures:
        failure = failures.exceptions[0]
        if not isinstance(failure, TimeoutError):
            raise failure from failure.__cause__
        names = sorted(one.name for one in waits.values() if not one.has_synced)
        text = f"not synced within {timeout} s: {', '.join(names)}"
        raise TimeoutError(text) from failure


async def _wait(one: Syncable, timeout: float | None) -> None:
    started = asyncio.get_running_loop().time()
    await one.wait_synced(timeout)
    took = asyncio.get_running_loop().time() - started
    log.debug("%s has synced after %.1f s", one.name, took)
