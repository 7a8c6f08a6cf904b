"""The state of a server that is not stored: kinds, time, randomness, and waiters for a revision."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import final

from kinform import clock
from kinform.apiserver.scheme import kind_registry
from kinform.apiserver.scheme.kind_registry import Kinds
from kinform.apiserver.storage.versioned_store import Change, Storage

__all__ = ["Cluster", "Gate"]

_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"
"""The characters of generated suffixes: no vowels, so that they form no words."""


@final
class Gate:
    """Holds back every answer of a paused server."""

    def __init__(self) -> None:
        self.is_shut: bool = False
        """The server is paused: answers wait for `passed`."""
        self._opened: asyncio.Event | None = None

    def shut(self) -> None:
        """Hold back all answers from now on."""
        if self._opened is None:
            self._opened = asyncio.Event()
            self.is_shut = True

    def open(self) -> None:
        """Release all waiting answers."""
        if self._opened is not None:
            self._opened.set()
            self._opened = None
            self.is_shut = False

    async def passed(self) -> None:
        """Wait until the gate is open."""
        while self._opened is not None:
            await self._opened.wait()


@final
class Cluster:
    """One API server's world.

    Args:
        history: How many changes of each resource are remembered.
        seed: Makes uids and generated names reproducible.
    """

    def __init__(self, *, history: int = 10_000, seed: int | None = None) -> None:
        self.storage: Storage = Storage(history=history)
        self.kinds: Kinds = kind_registry.builtin()
        self.random: random.Random = random.Random(seed)
        self.clock_offset: float = 0.0
        """Seconds that the server's clock is ahead."""
        self.gate: Gate = Gate()
        """Shut, while the server is paused."""
        self.newest: Callable[[], int] = lambda: self.storage.revision
        """Returns the revision of the newest write, which a replica may not have seen yet."""
        self._waiting: dict[asyncio.Future[None], int] = {}
        self.storage.observe(self._wake)

    def now(self) -> datetime:
        """Return the time, as people read it."""
        return datetime.fromtimestamp(clock.current().wall() + self.clock_offset, UTC)

    def timestamp(self) -> str:
        """Return the time as objects carry it, in whole seconds."""
        wall = clock.current().wall() + self.clock_offset
        return datetime.fromtimestamp(wall, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def uid(self) -> str:
        """Return a new uid."""
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def suffix(self) -> str:
        """Return the end of a generated name."""
        return "".join(self.random.choices(_SUFFIX, k=5))

    async def reached(self, revision: int, *, within: float) -> bool:
        """Wait until the storage is at ``revision``; tell whether it is, in time."""
        if self.storage.revision >= revision:
            return True
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[future] = revision
        try:
            async with asyncio.timeout(within):
                await future
        except TimeoutError:
            return False
        finally:
            del self._waiting[future]
        return self.storage.revision >= revision

    def wake_all(self) -> None:
        """End every wait for a revision: it will not come any more."""
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    def _wake(self, resource: str, change: Change) -> None:
        del resource
        for future, revision in self._waiting.items():
            if revision <= change.revision and not future.done():
                future.set_result(None)
