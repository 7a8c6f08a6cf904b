"""Rough programs: user code that is legal, and hard on the tasks that run it.

Some schedules (`themes.is_rough`) have handlers and reconciles that use a ``TaskGroup`` whose child
fails, a timeout that expires and a thread; objects with nulls in their metadata; and a controller
with a large backlog whose reconciles never await.
"""

from __future__ import annotations

import asyncio
from typing import Final, final

from kinform.meta import ObjectName
from kinform.runtime.controller.context import Context
from kinform.runtime.controller.controller import Controller
from kinform.runtime.source.triggers import TimerSource
from kinform.testing.simulation.process import Process

__all__ = ["Backlog", "misuse", "with_nulls"]

_WORKERS: Final = 4
_EVERY: Final = 60.0
_NAMES: Final = tuple(ObjectName("backlog", f"n{number}") for number in range(300))
_NAMED: Final = b'"metadata":{"name":'
_NULLS: Final = b'"metadata":{"generateName":null,"generation":null,"finalizers":null,"name":'


async def misuse() -> None:
    """Let a timeout expire, call a thread, and handle the failure of a ``TaskGroup``.

    Before Python 3.13 the last leaves ``cancelling()`` of the running task at 1. It is the last
    because the timeout would trust that count.
    """
    try:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(1.0)
    except TimeoutError:
        pass
    await asyncio.to_thread(len, _NAMES)  # noqa: TID251 - as users do; here it runs inline
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_fail())
    except* ArithmeticError:
        pass


async def _fail() -> None:
    await asyncio.sleep(0)
    raise ArithmeticError("it is handled")


def with_nulls(piece: bytes) -> bytes:
    """Return a part of an answer in which fields of metadata that are not set are null."""
    return piece.replace(_NAMED, _NULLS)


@final
class Backlog:
    """Many names at once, and a reconcile that never awaits.

    Promises checked (``turns``): the event loop runs other callbacks while there is a backlog, and
    every worker gets some of the names.
    """

    def __init__(self, process: Process) -> None:
        self._process = process
        self._count = 0
        self._turned = 0  # the count when the loop last ran another callback
        self._workers: set[str] = set()

    def controller(self) -> Controller:
        """Return a controller with this backlog."""
        source = TimerSource(_EVERY, _NAMES)
        return Controller(
            "backlog", self._reconcile, for_="v1/configmaps", watches=[source], workers=_WORKERS
        )

    async def _reconcile(self, ctx: Context, name: ObjectName) -> None:
        del ctx
        if name.namespace != _NAMES[0].namespace:
            return
        self._count += 1
        asyncio.get_running_loop().call_soon(self._turn, self._count)
        task = asyncio.current_task()
        self._workers.add("" if task is None else task.get_name())
        if (held := self._count - self._turned) > 2 * _WORKERS:
            self._process.fail("turns", f"the loop did not turn for {held} reconciles")
        if self._count == len(_NAMES) and len(self._workers) < _WORKERS:
            self._process.fail("turns", f"only {', '.join(sorted(self._workers))} had a turn")

    def _turn(self, count: int) -> None:
        self._turned = count
