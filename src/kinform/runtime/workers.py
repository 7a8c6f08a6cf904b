"""Workers: so many tasks that take names out of a queue and have them reconciled."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, final

from kinform.cache.guard import Role, role
from kinform.errors import QueueShutDown
from kinform.meta import ObjectName
from kinform.parts import Parts
from kinform.tasks import background
from kinform.workqueue.queue import WorkQueue

__all__ = ["Workers"]

log: Final = logging.getLogger(__name__)

PATIENCE: Final = 0.15
"""How long a reconcile may take to end once it is cancelled, before it is left behind."""


@final
class Workers:
    """Works on the names of a queue, ``count`` at a time, until the queue is shut down.

    Args:
        name: the controller's, for messages and tasks.
        reconcile: is awaited for each name; its failures are its own matter. It must suspend at
            least once for each name: then all workers take turns, however much waits.
        slow_after: a reconcile that takes longer is told of in the log, again each time it has
            taken twice as long. ``None``: never.
        parts: counts workers that ended though the queue was not shut down. They are replaced.
    """

    def __init__(
        self,
        queue: WorkQueue[ObjectName],
        reconcile: Callable[[ObjectName], Awaitable[None]],
        *,
        name: str,
        count: int,
        slow_after: float | None,
        parts: Parts,
    ) -> None:
        self._parts = parts
        self._queue = queue
        self._reconcile = reconcile
        self._name = name
        self._count = count
        self._slow_after = slow_after
        self.has_left_behind: bool = False
        """Whether a reconcile was cancelled and goes on all the same."""
        self._running: dict[ObjectName, tuple[float, float]] = {}  # since when, told again when

    async def run(self) -> None:
        """Work until nothing more comes. Cancelled, it cancels what runs and waits a moment.

        Raises:
            BaseException: what must end the process: ``SystemExit``, ``KeyboardInterrupt``.
            Exception: why the last worker ended, of more than five within a minute.
        """
        loop = asyncio.get_running_loop()
        tasks = [
            loop.create_task(
                self._parts.keep_running(
                    f"kinform {self._name} worker {number}", self._work, backs_off=False
                )
            )
            for number in range(1, self._count + 1)
        ]
        try:
            async with background(self._tell_of_slow()):
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
        finally:
            await self._part_with(tasks)

    async def _work(self) -> None:
        role.set(Role.RECONCILE)  # for this worker, and not for sources: they may read early
        queue, clock = self._queue, asyncio.get_running_loop().time
        while True:
            try:
                name = await queue.get()
            except QueueShutDown:
                return
            began = clock()
            self._running[name] = began, began + (self._slow_after or 0.0)
            try:
                await self._reconcile(name)
            except (Exception, asyncio.CancelledError):
                # Not the user's failure, and no reason to forget the name. After a stop the queue
                # takes no more names.
                queue.add(name)
                raise
            finally:
                del self._running[name]
                queue.done(name)

    async def _part_with(self, tasks: list[asyncio.Task[None]]) -> None:
        left = [task for task in tasks if not task.done()]
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=PATIENCE)
        for task in tasks:
            if not task.done():
                names = ", ".join(name.shown for name in self._running)
                self.has_left_behind = True
                log.error("%s: left behind, for it ignores its cancellation: %s", self._name, names)
                break
            if not task.cancelled():
                task.exception()  # taken note of: the first was raised

    async def _tell_of_slow(self) -> None:
        if self._slow_after is None:
            return
        clock = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(self._slow_after / 4)
            now = clock()
            for name, (began, due) in tuple(self._running.items()):
                if now >= due:
                    self._running[name] = began, now + (now - began)
                    log.warning(
                        "%s: %s has been worked on for %.0f s", self._name, name.shown, now - began
                    )
