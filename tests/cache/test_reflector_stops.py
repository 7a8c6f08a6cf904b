"""Stopped anywhere: at once, without a trace, and able to go on."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import types
import weakref
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import pytest

from kinform.cache.listwatch import ListWatch, SourceOptions
from kinform.cache.reflector import Reflector
from kinform.cache.reflector_options import ReflectorOptions
from kinform.cache.store.store import Store
from kinform.errors import SourceError
from kinform.rest.options import ListOptions
from kinform.rest.rate_limits import TokenBucketLimiter
from kinform.testing import FakeListWatch, in_virtual_time
from kinform.testing.virtual_time import run
from tests.cache.support_reflector import (
    CUT,
    PLAIN,
    Front,
    Told,
    config,
    names,
    running,
    said,
    shown,
    there,
    turns,
    until,
)


@dataclass(slots=True)
class Stopping:
    """Cancels ``task`` at the ``count``-th wait of it or of the tasks that it starts."""

    count: int
    waits: int = 0
    task: asyncio.Task[None] | None = None


_stopping: ContextVar[Stopping | None] = ContextVar("stopping", default=None)


@types.coroutine
def counted(work: Coroutine[Any, Any, Any], stopping: Stopping) -> Generator[Any, Any, Any]:
    """Run ``work``; count its waits, and cancel the task of ``stopping`` at one of them."""
    inner = work.__await__()
    sent: Any = None
    thrown: BaseException | None = None
    while True:
        try:
            future = inner.send(sent) if thrown is None else inner.throw(thrown)
        except StopIteration as end:
            return end.value
        stopping.waits += 1
        if stopping.waits == stopping.count and stopping.task is not None:
            stopping.task.cancel()
        sent, thrown = None, None
        try:
            sent = yield future
        except BaseException as exc:  # noqa: BLE001 - passed on as it is
            thrown = exc


async def run_counted(work: Coroutine[Any, Any, Any], stopping: Stopping) -> object:
    return await counted(work, stopping)


def counting_factory(
    loop: asyncio.AbstractEventLoop, work: Any, **options: Any
) -> asyncio.Task[Any]:
    stopping = _stopping.get()
    if stopping is None:
        return asyncio.Task(work, loop=loop, **options)
    task = asyncio.Task(run_counted(work, stopping), loop=loop, **options)
    task.add_done_callback(lambda _: work.close())  # if cancelled before it has begun
    return task


async def run_stopped(work: Coroutine[Any, Any, None], stopping: Stopping) -> None:
    _stopping.set(stopping)  # for the tasks that this one starts
    stopping.task = asyncio.current_task()
    await counted(work, stopping)


async def scenario(source: FakeListWatch[Any], front: Front, store: Store[Any]) -> None:
    """Let happen what makes a reflector do all that it can do."""
    await asyncio.sleep(5)
    source.add(config("x"))
    source.bookmark()
    await asyncio.sleep(20)
    source.close_watches(CUT)  # probe, watch
    await asyncio.sleep(10)
    source.delete("default/c1", drop=True)
    source.compact()
    source.close_watches()  # expired, list
    await asyncio.sleep(10)
    front.ends = True  # two short ones, list
    source.close_watches()
    await asyncio.sleep(15)
    front.ends = said(500)
    await asyncio.sleep(30)
    front.ends = False
    front.breaks = said(503)
    await asyncio.sleep(30)
    front.breaks = None
    await asyncio.sleep(100)


async def stopped_at(count: int, options: ReflectorOptions) -> int:
    source = FakeListWatch()
    for number in range(4):
        source.add(config(f"c{number}"))
    limiter = TokenBucketLimiter(qps=0.5, burst=1)  # so that there are waits for it
    front, store = Front(source, reconnects=limiter), Store[Any]()

    async def wait_for_room() -> None:
        await asyncio.sleep(0.01)

    reflector = Reflector(
        front,
        store,
        options=options,
        resync_period=7,
        wait_for_room=wait_for_room,
        rand=lambda: 0.5,
        watch_error_handler=Told(),
    )
    stopping = Stopping(count)
    asyncio.get_running_loop().set_task_factory(counting_factory)
    task = asyncio.get_running_loop().create_task(run_stopped(reflector.run(), stopping))
    beside = asyncio.get_running_loop().create_task(scenario(source, front, store))
    await asyncio.wait([task, beside], return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        assert task.cancelled(), f"stopped at wait {count}, it ended otherwise"
        assert source.open_watches == 0
        assert not reflector.statistics().is_connected
        await beside
    else:
        task.cancel()
        await asyncio.wait([task])
    async with running(reflector):  # as if nothing had happened
        await until(lambda: shown(store) == there(source), within=70)
        source.add(config("y"))
        await until(lambda: shown(store) == there(source), within=70)
    assert source.open_watches == 0
    return stopping.waits


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        ReflectorOptions(stream_lists=False, page_size=1, probe_period=8),
        ReflectorOptions(probe_period=8, idle_timeout=12),
    ],
    ids=["plain", "streamed"],
)
def test_stopped_at_any_wait_it_leaves_nothing_and_can_go_on(options: ReflectorOptions) -> None:
    """F-R37: every single one of a scenario that has them all."""
    count = 1
    while run(stopped_at(count, options)) >= count:
        count += 1
    assert count > 30, "the scenario waits often"


# --- F-R39: one state after the other


class Never:
    """A limiter whose turn never comes."""

    async def wait(self) -> None:
        await asyncio.get_running_loop().create_future()


def in_list(source: FakeListWatch[Any], front: Front) -> None:
    source.hang_lists()


def in_second_page(source: FakeListWatch[Any], front: Front) -> None:
    plain_list = front.list

    async def second_hangs(options: Any) -> Any:
        if options.continue_token:
            source.hang_lists()
        return await plain_list(options)

    front.list = second_hangs  # type: ignore[method-assign]


def in_opening(source: FakeListWatch[Any], front: Front) -> None:
    source.hang_watches()


def in_watch(source: FakeListWatch[Any], front: Front) -> None:
    """Nothing has to be done for that."""


def in_silence(source: FakeListWatch[Any], front: Front) -> None:
    asyncio.get_running_loop().call_later(10, source.freeze_watches)


def in_back_off(source: FakeListWatch[Any], front: Front) -> None:
    front.breaks = CUT


def in_line(source: FakeListWatch[Any], front: Front) -> None:
    source.fail_lists(said(503))
    source.fail_watches(said(503))
    front.reconnects = Never()  # type: ignore[attr-defined]


def in_probe(source: FakeListWatch[Any], front: Front) -> None:
    def later() -> None:
        source.hang_lists()
        source.close_watches(CUT)

    asyncio.get_running_loop().call_later(10, later)


@pytest.mark.parametrize(
    "state",
    [in_list, in_second_page, in_opening, in_watch, in_silence, in_back_off, in_line, in_probe],
)
@pytest.mark.parametrize("options", [PLAIN, ReflectorOptions()], ids=["plain", "streamed"])
@in_virtual_time
async def test_in_whatever_state_a_stop_takes_no_time(
    state: Callable[[FakeListWatch[Any], Front], None], options: ReflectorOptions
) -> None:
    """F-R39."""
    source = FakeListWatch()
    for number in range(3):
        source.add(config(f"c{number}"))
    front = Front(source)
    state(source, front)
    async with running(Reflector(front, Store(), options=options, watch_error_handler=Told())):
        await asyncio.sleep(100)
        before = asyncio.get_running_loop().time()
    assert asyncio.get_running_loop().time() == before
    assert source.open_watches == 0


@in_virtual_time
async def test_stopped_while_its_queue_has_no_room_it_ends() -> None:
    """F-R39."""
    source = FakeListWatch()

    async def never() -> None:
        await asyncio.get_running_loop().create_future()

    async with running(Reflector(source, Store(), wait_for_room=never)):
        await source.wait_for_watches()
        source.add(config("a"))
        await turns()
    assert source.open_watches == 0


@in_virtual_time
async def test_an_error_handler_may_stop_it() -> None:
    """F-R39: a callback that calls for the end."""
    source = FakeListWatch()
    source.fail_lists(said(503), forever=True)
    tasks: list[asyncio.Task[None]] = []
    reflector = Reflector(
        source, Store(), options=PLAIN, watch_error_handler=lambda _: tasks[0].cancel()
    )
    tasks.append(asyncio.get_running_loop().create_task(reflector.run()))
    await asyncio.wait(tasks)
    assert tasks[0].cancelled()
    assert len(source.requests) == 1


# --- What somebody else has cancelled


@pytest.mark.parametrize("where", ["list", "opening", "reading", "closing", "probe"])
@in_virtual_time
async def test_what_somebody_else_has_cancelled_is_a_failure_and_no_end(where: str) -> None:
    source, store, told = FakeListWatch[Any](), Store[Any](), Told()
    source.add(config("a"))
    calls: list[str] = []

    async def fail_once(place: str) -> None:
        if place == where and place not in calls:
            calls.append(place)
            other = asyncio.get_running_loop().create_future()
            other.cancel()
            await other

    class Awaiting:
        source_options = SourceOptions(supports_watch_list=False)

        async def list(self, options: ListOptions) -> Any:
            await fail_once("probe" if options.limit == 1 else "list")
            return await source.list(options)

        @contextlib.asynccontextmanager
        async def watch(self, options: ListOptions) -> AsyncGenerator[Any]:
            await fail_once("opening")
            async with source.watch(options) as events:
                yield self.read(events)
            await fail_once("closing")

        async def read(self, events: Any) -> AsyncGenerator[Any]:
            await fail_once("reading")
            async for event in events:
                yield event

    options = ReflectorOptions(probe_period=None)
    reflector = Reflector(Awaiting(), store, options=options, watch_error_handler=told)
    async with running(reflector):
        await asyncio.sleep(5)
        source.close_watches()  # five seconds are early: a probe follows
        await asyncio.sleep(60)
        source.add(config("b"))
        await asyncio.sleep(60)
        assert names(store) == {"a", "b"}
    assert calls == [where]
    assert [type(error) for error in told.errors] == [SourceError]
    assert isinstance(told.errors[0].__cause__, asyncio.CancelledError)


@in_virtual_time
async def test_a_failure_that_is_kept_keeps_nothing_else_alive() -> None:
    class Big:
        pass

    alive: list[weakref.ref[Big]] = []

    async def fail(_: ListOptions) -> Any:
        big = Big()
        alive.append(weakref.ref(big))
        raise LookupError

    lw = ListWatch(list=fail, watch=FakeListWatch[Any]().watch, supports_watch_list=False)
    reflector = Reflector(lw, Store[Any](), watch_error_handler=Told())
    async with running(reflector):
        await asyncio.sleep(100)
        gc.collect()
        assert reflector.statistics().last_error is not None
        assert {one() for one in alive} == {None}
