"""Operation: controllers at work until the stop, and how they come to their end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Sequence
from typing import Final, final

from kinform.runtime.controller import Controller
from kinform.runtime.leader_election import LeaderElector
from kinform.tasks import background, gather

__all__ = ["Operation"]

log: Final = logging.getLogger(__name__)


@final
class Operation:
    """Some controllers that work at the same times.

    Args:
        stop: asks for the end: they take in nothing more and finish what they have, within
            ``grace``.
    """

    def __init__(
        self, controllers: Sequence[Controller], *, stop: asyncio.Event, grace: float
    ) -> None:
        self._controllers = controllers
        self._stop = stop
        self._grace = grace
        self._has_begun = False
        self._working: list[Controller] = []

    async def run(self) -> None:
        """Work until the stop. Cancelled, work ends at once.

        What ends a controller before that is raised.
        """
        self._has_begun = True
        loop = asyncio.get_running_loop()
        tasks = [
            loop.create_task(self._work(each), name=f"kinform {each.name}")
            for each in self._controllers
        ]
        try:
            async with background(self._stop.wait()) as asked:
                await asyncio.wait([asked, *tasks], return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()
            await self._drain()
        finally:
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)
                _take_note(tasks)

    async def run_elected(self, elector: LeaderElector) -> None:
        """Work while ``elector`` leads, until the stop.

        Raises:
            LeadershipLost: it led, and does not any more.
        """
        async with (
            background(elector.run(self.run)) as electing,
            background(self._stop.wait()) as asked,
        ):
            await asyncio.wait([electing, asked], return_when=asyncio.FIRST_COMPLETED)
            if not electing.done() and not self._has_begun:
                return  # it waits to lead, and need not any more
            await electing

    @contextlib.asynccontextmanager
    async def beside(self) -> AsyncGenerator[None]:
        """Work beside the block, which is cancelled if that fails; wait for the end after it."""
        block = asyncio.current_task()
        assert block is not None
        running = asyncio.get_running_loop().create_task(self.run())
        failed = False

        def over(task: asyncio.Task[None]) -> None:
            nonlocal failed
            if not task.cancelled() and task.exception() is not None:
                failed = True
                block.cancel()

        running.add_done_callback(over)
        try:
            yield
            running.remove_done_callback(over)
            await running
        except asyncio.CancelledError:
            if not failed:
                raise
            block.uncancel()
            running.result()
        finally:
            running.remove_done_callback(over)
            running.cancel()
            await asyncio.wait([running])

    async def _work(self, controller: Controller) -> None:
        await controller.wait_warm()
        self._working.append(controller)  # until then nobody is there who could drain its queue
        log.info("%s: works, with %d workers", controller.name, controller.workers)
        await controller.work()

    async def _drain(self) -> None:
        working = tuple(self._working)
        reports = await gather(*(each.drain(self._grace) for each in working))
        for controller, report in zip(working, reports, strict=True):
            if report.unfinished:
                shown = ", ".join(map(str, report.unfinished[:10]))
                text = "%s: %d not done within the grace of %.0f s: %s"
                log.warning(text, controller.name, len(report.unfinished), self._grace, shown)


def _take_note(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        if task.done() and not task.cancelled():
            task.exception()
