"""Operation: controllers at work until the stop, and how they come to their end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Coroutine, Sequence
from typing import Final, final

from kinform.runtime.controller import Controller
from kinform.runtime.leader_election import LeaderElector
from kinform.runtime.stopping import Stop
from kinform.tasks import background, ended, gather

__all__ = ["Operation", "beside"]

log: Final = logging.getLogger(__name__)

LEAST: Final = 0.15
"""Seconds that giving a lease back may take though no time is left."""
_SHOWN: Final = 10


@final
class Operation:
    """Some controllers that work at the same times.

    Args:
        stop: asks for the end: they take in nothing more and finish what they have, within its
            grace.
    """

    def __init__(self, controllers: Sequence[Controller], stop: Stop) -> None:
        self._controllers = controllers
        self._stop = stop
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
        election = elector.run(self.run, release_within=self._release_within)
        async with background(election) as electing, background(self._stop.wait()) as asked:
            await asyncio.wait([electing, asked], return_when=asyncio.FIRST_COMPLETED)
            if not electing.done() and not self._has_begun:
                return  # it waits to lead, and need not any more
            await electing

    def _release_within(self) -> float | None:
        """Return how long giving the lease back may take; None if a reconcile could not be ended.

        Then the lease runs out, before another one leads, and perhaps the reconcile ends by then.
        """
        if any(each.has_left_behind for each in self._controllers):
            return None
        return self._stop.left(least=LEAST)

    async def _work(self, controller: Controller) -> None:
        await controller.wait_warm()
        if self._stop.is_asked:
            return
        self._working.append(controller)  # until then nobody is there who could drain its queue
        await controller.work()

    async def _drain(self) -> None:
        working = tuple(self._working)
        reports = await gather(*(each.drain(self._stop) for each in working))
        for controller, report in zip(working, reports, strict=True):
            if report.unfinished:
                shown = ", ".join(name.shown for name in report.unfinished[:_SHOWN])
                text = "%s: %d not done within the grace of %.0f s: %s"
                log.warning(text, controller.name, len(report.unfinished), self._stop.grace, shown)
            if report.delayed:
                shown = ", ".join(name.shown for name in report.delayed[:_SHOWN])
                text = "%s: %d were to be looked at again later: %s"
                log.info(text, controller.name, len(report.delayed), shown)


@contextlib.asynccontextmanager
async def beside(work: Coroutine[object, object, None]) -> AsyncGenerator[asyncio.Task[None]]:
    """Run ``work`` beside the block. If it fails, the block is cancelled and the failure raised.

    At the end of the block it is cancelled: await the task there if it is to end by itself.
    """
    block = asyncio.current_task()
    assert block is not None
    has_failed = False

    def over(task: asyncio.Task[None]) -> None:
        nonlocal has_failed
        if not task.cancelled() and task.exception() is not None:
            has_failed = True
            block.cancel()

    running = asyncio.get_running_loop().create_task(work)
    running.add_done_callback(over)
    try:
        yield running
    except asyncio.CancelledError:
        if not has_failed:
            raise
        block.uncancel()
        running.result()
    finally:
        running.remove_done_callback(over)
        running.cancel()
        await ended(running)


def _take_note(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        if task.done() and not task.cancelled():
            task.exception()
