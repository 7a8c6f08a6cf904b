"""Cancelling a task at each step of everything that runs, one step after the other.

A *step* is the moment in which any task of the loop is about to wait. `Cut` counts them all, and
cancels one task at the ``count``-th, in any state of the tasks that it waits for.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, TypeAlias, final

from kinform import Client, Object, ResourceClient
from kinform.apiserver import APIServer, faults

__all__ = ["Cut", "Moment", "Scenario", "Scene", "Work", "cut_short", "quiet"]

HOUR: Final = 3600.0
LONGEST_END: Final = 21.0
"""Seconds that anything may take to end: the grace of a manager, and a little."""
AFTERMATH: Final = 5.0
"""A task that was cancelled twice does not wait; what it has stopped may take so long to end."""

Work: TypeAlias = Coroutine[Any, Any, object]


@final
class Moment(enum.Enum):
    """When in a step the cancellation comes."""

    ANY_STEP = "as any task begins to wait"
    WOKEN = "as the task itself is woken"
    """The awaited result is already there, and is lost unless the code keeps it."""
    TWICE = "as the task itself begins to wait, and once more at its next step"
    """The second one hits the cleanup after the first."""


@final
class Cut:
    """Cancels ``target`` at one step; counts the steps since it was set.

    Attributes:
        target: who is cancelled, and whose steps alone count unless it is `Moment.ANY_STEP`.
        steps: how many there were.
        has_cut: whether the target was running when its time had come.
        when: the loop's time at that moment.
    """

    def __init__(self, count: int, moment: Moment) -> None:
        self._count = count
        self._moment = moment
        self.target: asyncio.Task[object] | None = None
        self.steps = 0
        self.has_cut = False
        self.when = 0.0
        self._is_second_due = False

    @property
    def aftermath(self) -> float:
        """The time that other work may take after the target has ended."""
        return AFTERMATH if self._moment is Moment.TWICE else 0.0

    def create_task(
        self, loop: asyncio.AbstractEventLoop, work: Any, /, **options: Any
    ) -> asyncio.Task[Any]:
        """Make a task whose steps count: a task factory."""
        return asyncio.Task(_Stepping(work, self.step), loop=loop, **options)

    def step(self, future: object) -> None:
        """Take note that the current task is about to wait for ``future``."""
        if self.target is None:
            return
        is_own = asyncio.current_task() is self.target
        if self._is_second_due and is_own:
            self._is_second_due = False
            self.target.cancel()
        if self._moment is not Moment.ANY_STEP and not is_own:
            return
        self.steps += 1
        if self.steps != self._count:
            return
        if self._moment is Moment.WOKEN and isinstance(future, asyncio.Future):
            future.add_done_callback(self._cancel)  # it is called before the task is woken
        else:
            self._cancel()
        self._is_second_due = self._moment is Moment.TWICE and self.has_cut

    def _cancel(self, _: object = None) -> None:
        assert self.target is not None
        self.has_cut = self.target.cancel()
        self.when = asyncio.get_running_loop().time()


@final
class _Stepping(Coroutine[Any, Any, object]):
    """A coroutine that reports each of its steps, and otherwise behaves like the wrapped one."""

    def __init__(self, work: Work, step: Callable[[object], None]) -> None:
        self.cr_await = work  # so that the waiting line can be printed
        self._step = step

    def send(self, value: Any, /) -> Any:
        future = self.cr_await.send(value)
        self._step(future)
        return future

    def throw(self, *error: Any) -> Any:
        future = self.cr_await.throw(*error)
        self._step(future)
        return future

    def close(self) -> None:
        self.cr_await.close()

    def __await__(self) -> Generator[Any, Any, object]:
        raise NotImplementedError("it belongs to a task")


@final
class Scene:
    """An embedded server with config maps ``a``, ``b`` and ``c``, and a client that outlives all.

    Attributes:
        was_cut: whether the work was cancelled, for those who look at what is left.
        has_others: whether a scenario runs something beside the work, which outlives it.
    """

    def __init__(self, server: APIServer, client: Client) -> None:
        self.server = server
        self.client = client
        self.was_cut = False
        self.has_others = False

    @property
    def maps(self) -> ResourceClient[Object]:
        """The config maps of the default namespace."""
        return self.client.resource("v1/configmaps", namespace="default")

    def watches(self) -> int:
        """Return how many watches of config maps are open on the server."""
        return len(self.server.cluster.storage.table("configmaps")._listeners)

    async def on_server(self) -> dict[str, str]:
        """Return the versions of the config maps, by name."""
        return {one.name: one.resource_version for one in (await self.maps.list())}


Scenario: TypeAlias = Callable[[Scene], AbstractAsyncContextManager[Work]]
"""Prepares, gives the work that is to be cancelled, and then looks at what that has left."""


async def cut_short(scenario: Scenario, cut: Cut) -> None:
    """Run a scenario; check what holds for all of them."""
    loop = asyncio.get_running_loop()
    async with APIServer(port=None, seed=1) as server, server.connect() as client:
        here = Scene(server, client)
        for name in "abc":
            await here.maps.create({"metadata": {"name": name}, "data": {"n": "0"}})
        server.faults.add(faults.latency(0.01))  # so that there is a wait in each request
        before = asyncio.all_tasks()
        async with _counting(cut), scenario(here) as work:
            cut.target = task = loop.create_task(work, name="the one to be cancelled")
            await asyncio.wait([task], timeout=HOUR)
            assert task.done(), f"it hangs: {task!r}"
            ended = loop.time()
            cut.target, here.was_cut = None, cut.has_cut
            if cut.has_cut:
                assert task.cancelled(), f"it swallowed its cancellation: {task!r}"
                assert ended - cut.when <= LONGEST_END
            else:
                task.result()
            if not here.has_others:
                await quiet(before, within=cut.aftermath)
                assert not here.watches(), "a watch was left open"
        await quiet(before, within=cut.aftermath)
        assert not here.watches(), "a watch was left open"
        assert (await client.version()).major == "1", "the client can be used as before"


@contextlib.asynccontextmanager
async def _counting(cut: Cut) -> AsyncGenerator[None]:
    loop = asyncio.get_running_loop()
    loop.set_task_factory(cut.create_task)
    try:
        yield
    finally:
        loop.set_task_factory(None)


async def quiet(before: set[asyncio.Task[Any]], *, within: float = 0.0) -> None:
    """Check that no other task than those of ``before`` is left, after a few turns of the loop."""
    for _ in range(20):
        await asyncio.sleep(0)
    if within and (left := asyncio.all_tasks() - before):
        await asyncio.wait(left, timeout=within)
    left = asyncio.all_tasks() - before
    assert not left, f"left behind: {sorted(map(repr, left))}"
