"""Side tasks: parts that run beside a block of the reflector, and are started again if they end.

A side task resyncs, or probes beside an open watch. Nothing awaits it while it runs, so without
supervision its end would not be noticed: the reflector would go on and never resync or probe again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Final, final

from kinform._parts import Parts, error_of
from kinform.tasks import ended

__all__ = ["beside"]

RESTART_AFTER: Final = 1.0
"""The pause before a restart. It need not grow: `Parts` allows five ends in a minute."""


@contextlib.asynccontextmanager
async def beside(
    parts: Parts,
    part: str,
    work: Callable[[], Coroutine[object, object, None]],
    *,
    on_failure: Callable[[BaseException], object],
) -> AsyncGenerator[None]:
    """Run ``work()`` beside the block; when the block is left it is cancelled and waited for.

    If it fails or is cancelled from outside, that is reported to ``parts``, and it is started again
    after a second. If it returns, it is done.

    Args:
        parts: counts the unexpected ends.
        part: the name of the task.
        work: is called again for each run.
        on_failure: is called with the error when there were too many unexpected ends. The task is
            not started again then.
    """
    side_task = _SideTask(parts, part, work, on_failure=on_failure)
    side_task.start()
    try:
        yield
    finally:
        await side_task.stop()


@final
class _SideTask:
    def __init__(
        self,
        parts: Parts,
        part: str,
        work: Callable[[], Coroutine[object, object, None]],
        *,
        on_failure: Callable[[BaseException], object],
    ) -> None:
        self._parts = parts
        self._part = part
        self._work = work
        self._on_failure = on_failure
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._restart: asyncio.TimerHandle | None = None
        self._is_stopping = False

    def start(self) -> None:
        # A plain task and not a ``TaskGroup``: the failure of a side task must not cancel the watch
        # beside it.
        self._task = self._loop.create_task(self._work(), name=self._part)
        self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if self._is_stopping or (not task.cancelled() and task.exception() is None):
            return
        # Reported when it is restarted, not now: when a loop shuts down, all tasks are cancelled at
        # once, this one before the block is left. That end is expected.
        self._restart = self._loop.call_later(RESTART_AFTER, self._report_and_start, task)

    def _report_and_start(self, task: asyncio.Task[None]) -> None:
        try:
            self._parts.report(self._part, error_of(task))
        except BaseException as exc:  # noqa: BLE001 - the owner raises it
            self._on_failure(exc)
        else:
            self.start()

    async def stop(self) -> None:
        self._is_stopping = True
        if self._restart is not None:
            self._restart.cancel()
        if self._task is not None:
            self._task.cancel()
            await ended(self._task)
            if not self._task.cancelled():
                self._task.exception()  # retrieved, so that asyncio does not log it
