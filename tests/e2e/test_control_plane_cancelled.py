"""The real control plane, cancelled: at once, halfway, as it is done, and twice.

What starts, stops or asks real processes runs in a thread, and that cannot be cancelled. So it has
not begun or goes on to its end; and nothing is left of a control plane that was to end.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest
import pytest_asyncio

from kinform.clock import offload
from kinform.testing import ControlPlane, ControlPlaneError, Snapshot
from kinform.testing.plugin import ControlPlaneFactory
from tests.faults.support_cancelling import Cut, Moment
from tests.testing.eventually import eventually_async
from tests.testing.processes import is_alive

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

CONFIG_MAPS: Final = "/api/v1/namespaces/default/configmaps"
MOMENTS: Final = pytest.mark.parametrize("moment", Moment, ids=lambda one: one.name.lower())
"""As its only wait begins, as that ends, and twice."""

Method: TypeAlias = Callable[[ControlPlane, Snapshot], Coroutine[Any, Any, object]]


METHODS: Final[dict[str, Method]] = {
    "compact": lambda cp, _: cp.compact(),
    "kill_apiserver": lambda cp, _: cp.kill_apiserver(),
    "restart_apiserver": lambda cp, _: cp.restart_apiserver(),
    "restore": lambda cp, snapshot: cp.restore(snapshot),
    "service_account": lambda cp, _: cp.service_account("default", "bot"),
    "snapshot": lambda cp, _: cp.snapshot(),
    "start_apiserver": lambda cp, _: cp.start_apiserver(),
}
CANCELLED: Final = {*METHODS, "__aenter__", "__aexit__"}
"""All that can be cancelled; tests/faults/test_cancellation.py holds it against what there is."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(
    kinform_control_plane_factory: ControlPlaneFactory,
) -> AsyncGenerator[ControlPlane]:
    async with kinform_control_plane_factory() as cp:
        await offload(cp.raw_apis[0].call, "POST", CONFIG_MAPS, body={"metadata": {"name": "kept"}})
        yield cp


@pytest_asyncio.fixture
async def one_thread() -> AsyncGenerator[None]:
    """Let what runs in threads run one after the other: who comes next comes after it."""
    with ThreadPoolExecutor(1) as pool:
        asyncio.get_running_loop().set_default_executor(pool)
        yield


def pids(cp: ControlPlane) -> set[int]:
    return {server.pid for server in cp._servers._all if server.pid is not None}


def processes(cp: ControlPlane) -> Iterator[int]:
    """Yield all that runs for a control plane: what the one that keeps its servers has started."""
    supervisor = cp._servers._supervisor
    keeper = None if supervisor is None else supervisor._process.pid
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = int(status.read_text("utf-8").rpartition(")")[2].split()[1])
            if parent == keeper and is_alive(int(status.parent.name)):
                yield int(status.parent.name)


async def cancelled(work: Coroutine[Any, Any, object], moment: Moment) -> None:
    """Run ``work`` in a task that is cancelled at its first wait."""
    loop, cut = asyncio.get_running_loop(), Cut(1, moment)
    loop.set_task_factory(cut.create_task)
    try:
        cut.target = task = loop.create_task(work)
    finally:
        loop.set_task_factory(None)
    await asyncio.wait([task], timeout=60)
    assert task.cancelled(), f"it hangs, or has swallowed its cancellation: {task!r}"


async def is_as_before(cp: ControlPlane) -> None:
    """Wait for what goes on, start what it has stopped, and see that all is there, once."""
    with suppress(ControlPlaneError):  # it is running already
        await cp.start_apiserver()
    await offload(cp.raw_apis[0].call, "GET", f"{CONFIG_MAPS}/kept")
    assert set(processes(cp)) == pids(cp)
    assert len(pids(cp)) == 2


# Methods.


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("moment", [Moment.ANY_STEP, Moment.WOKEN], ids=["at once", "done"])
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
async def test_a_method_that_is_cancelled_has_not_begun_or_goes_on_to_its_end(
    shared: ControlPlane, method: Method, moment: Moment
) -> None:
    snapshot = await shared.snapshot()
    if method is METHODS["start_apiserver"]:
        await shared.kill_apiserver()
    await cancelled(method(shared, snapshot), moment)
    await is_as_before(shared)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("name", ["compact", "restart_apiserver", "restore", "start_apiserver"])
async def test_a_method_that_is_cancelled_while_a_server_starts_goes_on(
    shared: ControlPlane, name: str
) -> None:
    snapshot = await shared.snapshot()
    if name == "start_apiserver":
        await shared.kill_apiserver()
    before = pids(shared)
    under_way = asyncio.get_running_loop().create_task(METHODS[name](shared, snapshot))
    await eventually_async(lambda: bool(pids(shared) - before))
    under_way.cancel()
    with pytest.raises(asyncio.CancelledError):
        await under_way
    await is_as_before(shared)


# The start and the end.


async def nothing_is_left(cp: ControlPlane) -> None:
    supervisor = cp._servers._supervisor
    if supervisor is not None:  # it has come that far
        assert not set(processes(cp))
        assert not supervisor.folder.exists()
        assert not is_alive(supervisor._process.pid)
    assert not cp._servers._relays


@MOMENTS
async def test_a_start_that_is_cancelled_at_any_moment_leaves_nothing(
    kinform_control_plane: ControlPlane, moment: Moment
) -> None:
    cp = ControlPlane(etcd_relay=True)
    await cancelled(cp.__aenter__(), moment)
    await nothing_is_left(cp)


@pytest.mark.parametrize("count", [1, 2])
async def test_a_start_that_is_cancelled_while_a_server_starts_leaves_nothing(
    kinform_control_plane: ControlPlane, count: int
) -> None:
    cp = ControlPlane(etcd_relay=True)
    starting = asyncio.get_running_loop().create_task(cp.__aenter__())
    await eventually_async(lambda: len(pids(cp)) == count)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    await nothing_is_left(cp)


@MOMENTS
async def test_an_end_that_is_cancelled_at_any_moment_leaves_nothing(
    kinform_control_plane: ControlPlane, moment: Moment
) -> None:
    cp = ControlPlane(etcd_relay=True)
    await cp.__aenter__()
    await cancelled(cp.__aexit__(), moment)
    await nothing_is_left(cp)


@pytest.mark.usefixtures("one_thread")
async def test_an_end_that_is_cancelled_while_no_thread_is_free_leaves_nothing(
    kinform_control_plane: ControlPlane,
) -> None:
    """A queued thread job is dropped with the task that awaits it: the servers stayed."""
    loop, free = asyncio.get_running_loop(), threading.Event()
    cp = ControlPlane()
    await cp.__aenter__()
    busy = loop.run_in_executor(None, free.wait)
    ending = loop.create_task(cp.__aexit__())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    ending.cancel()
    await asyncio.sleep(0)
    free.set()
    await busy
    with pytest.raises(asyncio.CancelledError):
        await ending
    await nothing_is_left(cp)


async def test_the_end_does_not_wait_for_a_server_that_does_not_come_up(
    kinform_control_plane: ControlPlane,
) -> None:
    """A task that had cancelled the start of a server waited for it anyway: a minute."""
    loop = asyncio.get_running_loop()
    async with ControlPlane() as cp:
        await cp.kill_apiserver()
        etcd = next(iter(pids(cp)))
        os.kill(etcd, signal.SIGSTOP)  # so that no apiserver is ever ready
        starting = loop.create_task(cp.start_apiserver())
        await eventually_async(lambda: len(pids(cp)) == 2)
        starting.cancel()
        with suppress(asyncio.CancelledError):
            await starting
        began = loop.time()
    assert loop.time() - began < 20
    await nothing_is_left(cp)
