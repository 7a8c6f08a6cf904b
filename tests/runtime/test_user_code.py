"""User code never shares a task with kinform's: workers and caches survive anything it does.

Before Python 3.13 a task keeps ``cancelling()`` at 1 after a ``TaskGroup`` whose child failed.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable

import pytest

import kinform
from kinform._parts import Parts
from kinform.apiserver import faults
from kinform.cache import ListWatch, SharedInformer
from kinform.rest.options import ListOptions
from kinform.rest.results import ListResult
from kinform.runtime.controller.context import Context
from kinform.runtime.controller.reconciler import Reconcile, Result, Workers
from kinform.runtime.manager import Manager
from kinform.runtime.source.kind import KindSource
from kinform.runtime.source.triggers import (
    ChannelSource,
    Enqueue,
    Source,
    StreamSource,
    TimerSource,
)
from kinform.testing import FakeListWatch, in_virtual_time
from kinform.workqueue import WorkQueue
from tests.runtime.support_controllers import MAPS, Log, controller, key, named, running, served

EAGER = [False] if sys.version_info < (3, 12) else [False, True]
"""Before Python 3.12 no task starts eagerly."""


async def fail() -> None:
    raise ValueError("a passing failure")


async def fail_in_group() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(fail())


async def swallow_cancellation() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(1)


async def handle_failure_of_group() -> None:
    try:
        await fail_in_group()
    except* ValueError:
        pass


LEFTOVERS = [fail_in_group, handle_failure_of_group, swallow_cancellation]


# --- reconciles


@pytest.mark.parametrize("leave", LEFTOVERS, ids=lambda each: each.__name__)
@in_virtual_time
async def test_a_reconcile_that_leaves_a_cancellation_count_behind_keeps_its_worker(
    leave: Reconcile,
) -> None:
    async def leave_something(ctx: Context, name: kinform.ObjectName) -> None:
        if name.name.startswith("bad") and not ctx.attempt:
            await leave()  # type: ignore[call-arg, misc]

    log = Log(leave_something)
    async with served() as (_, client):
        maps = client.resource(MAPS, namespace="default")
        async with running(client, controller(log, workers=2)) as manager:
            for name in ("bad-1", "bad-2", "bad-3", "good"):
                await maps.create(named(name))
                await asyncio.sleep(60)
            assert log.names[-1] == "good"
            assert manager.reporting.ready.report().ok
            (figures,) = manager.reporting.controllers()
            assert figures.unexpected_ends == 0


@in_virtual_time
async def test_a_time_out_of_wait_for_cache_costs_no_worker() -> None:
    async def wait(ctx: Context, name: kinform.ObjectName) -> None:
        if name.name == "first":
            there = await ctx.client.resource(MAPS, namespace="default").get("first")
            ahead = str(int(there.resource_version) + 1000)
            metadata = {**there.to_dict("metadata"), "resourceVersion": ahead}
            changed = kinform.Object.from_dict({**there.to_dict(), "metadata": metadata})
            with pytest.raises(TimeoutError):
                await ctx.wait_for_cache(changed, timeout=1)

    log = Log(wait)
    async with served() as (_, client), running(client, controller(log)):
        maps = client.resource(MAPS, namespace="default")
        await maps.create(named("first"))
        await asyncio.sleep(60)
        await maps.create(named("second"))
        await asyncio.sleep(60)
    assert log.names == ["first", "second"]


@in_virtual_time
async def test_discovery_that_fails_in_a_reconcile_costs_no_worker() -> None:
    async def find(ctx: Context, _: kinform.ObjectName) -> None:
        if len(log.names) == 1:
            server.faults.add(faults.status(503, times=2))  # /api and /apis
        await ctx.client.resource("secrets", namespace="default").list()

    log = Log(find)
    async with served() as (server, client), running(client, controller(log)):
        maps = client.resource(MAPS, namespace="default")
        await maps.create(named("first"))
        await log.called(2)
        await maps.create(named("second"))
        await log.called(3)
    assert log.names[0] == "first"
    assert log.names[-1] == "second"


@in_virtual_time
async def test_a_time_limit_holds_though_the_reconcile_left_a_count_behind() -> None:
    async def leave_and_hang(_ctx: Context, _name: kinform.ObjectName) -> None:
        await handle_failure_of_group()
        await asyncio.sleep(1e6)

    log = Log(leave_and_hang)
    async with served() as (_, client):
        one = controller(log, timeout=5)
        await client.resource(MAPS, namespace="default").create(named("slow"))
        async with running(client, one) as manager:
            await log.called(2)
            outcomes = one.statistics().outcomes
            await manager.stop()
    assert outcomes[kinform.runtime.Outcome.TIMEOUT] == 1


@in_virtual_time
async def test_a_reconcile_that_swallows_its_cancellation_does_not_keep_its_worker_alive() -> None:
    async def ignore(_ctx: Context, _name: kinform.ObjectName) -> None:
        for _ in range(20):
            try:
                await asyncio.sleep(0.001)
            except asyncio.CancelledError:
                continue

    log = Log(ignore)
    loop = asyncio.get_running_loop()
    async with served() as (_, client):
        channel = ChannelSource()
        for number in range(1000):
            channel.send(key(f"n{number}"))
        one = controller(log, watches=[channel])
        manager = Manager(client, signals=False, grace=0.05)
        manager.add(one)
        await manager.start()
        await log.called(1)
        began = loop.time()
        await manager.stop()
        assert loop.time() - began < 1
    assert len(log.names) < 20


# --- informers and sources


@pytest.mark.parametrize("leave", LEFTOVERS, ids=lambda each: each.__name__)
@in_virtual_time
async def test_a_list_function_that_leaves_a_count_behind_does_not_end_the_informer(
    leave: Reconcile,
) -> None:
    source = FakeListWatch[kinform.Object](supports_watch_list=False)
    source.add({"metadata": {"name": "a"}})
    lists = 0

    async def list_once_badly(options: ListOptions) -> ListResult[kinform.Object]:
        nonlocal lists
        lists += 1
        if lists == 1:
            await leave()  # type: ignore[call-arg, misc]
        return await source.list(options)

    lw = ListWatch(list=list_once_badly, watch=source.watch, supports_watch_list=False)
    async with SharedInformer(lw) as informer:
        await informer.wait_synced(60)
        source.add({"metadata": {"name": "b"}})
        await informer.wait_for(lambda there: there.get("default/b"), 60)
        assert informer.statistics().unexpected_ends == 0


@in_virtual_time
async def test_an_informer_named_without_a_version_syncs_after_discovery_has_failed() -> None:
    async with served() as (server, client):
        await client.resource(MAPS, namespace="default").create(named("a"))
        server.faults.add(faults.status(503, times=2))  # /api and /apis
        async with client.informer("configmaps", namespace="default") as informer:
            await informer.wait_synced(120)
            assert informer.statistics().reflector.failures > 0
            assert informer.lister.get("default/a") is not None


@in_virtual_time
async def test_a_source_that_leaves_a_count_behind_is_run_again() -> None:
    class Leaving:
        name = "leaving"
        runs = 0

        async def run(self, add: Enqueue) -> None:
            self.runs += 1
            if self.runs < 3:
                await fail_in_group()
            add(key("named"))
            await asyncio.sleep(1e6)

    log = Log()
    async with served() as (_, client), running(client, controller(log, watches=[Leaving()])) as m:
        await asyncio.sleep(0.1)
        assert "source leaving" in (m.reporting.ready.ask("parts") or "")
        await log.called(1)
        await asyncio.sleep(70)
        assert m.reporting.ready.ask("parts") is None
        (figures,) = m.reporting.controllers()
        assert figures.unexpected_ends == 2


@in_virtual_time
async def test_a_source_that_keeps_failing_ends_the_manager_with_its_error() -> None:
    runs: list[float] = []

    async def broken() -> AsyncIterator[object]:
        runs.append(asyncio.get_running_loop().time())
        if runs:
            raise OSError("the database is away")
        yield None

    stream = StreamSource(broken, lambda _: None)
    async with served() as (_, client):
        manager = kinform.Manager(client, signals=False)
        manager.add(controller(Log(), watches=[stream]))
        with pytest.raises(OSError, match="the database is away"):
            await manager.run()
    assert len(runs) == 6
    assert runs[-1] - runs[0] < 60


@in_virtual_time
async def test_a_source_that_fails_now_and_then_does_not_end_the_manager() -> None:
    """A connection that breaks every half minute is an error each time, and not a reason to end."""
    items: list[int] = []

    async def breaking() -> AsyncIterator[int]:
        for _ in range(3):
            await asyncio.sleep(10)
            items.append(len(items))
            yield items[-1]
        raise OSError("the connection broke")

    log = Log()
    stream = StreamSource(breaking, lambda item: key(f"item-{item}"))
    async with served() as (_, client), running(client, controller(log, watches=[stream])) as m:
        await asyncio.sleep(600)
        assert not m.is_stopping
        assert len(items) > 20
        (figures,) = m.reporting.controllers()
        assert figures.unexpected_ends > 5


# --- parts that end


class RaisingLimiter:
    """A rate limiter that fails: so does the worker that asks it."""

    def __init__(self, *, times: int) -> None:
        self.left = times

    def when(self, _key: kinform.ObjectName, _now: float) -> float:
        if self.left:
            self.left -= 1
            raise LookupError("no limit is known")
        return 1.0

    def forget(self, _key: kinform.ObjectName) -> None: ...

    def num_requeues(self, _key: kinform.ObjectName) -> int:
        return 0


async def always_fails(_ctx: Context, _name: kinform.ObjectName) -> Result | None:
    raise OSError("not today")


@in_virtual_time
async def test_a_worker_that_ends_is_logged_counted_and_replaced_and_its_name_comes_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = Log(always_fails)
    one = controller(log, rate_limiter=RaisingLimiter(times=3))
    async with served() as (_, client), running(client, one) as manager:
        await manager.wait_warm(60)
        await client.resource(MAPS, namespace="default").create(named("a"))
        await log.called(6)
        assert one.statistics().unexpected_ends == 3
        assert manager.reporting.ready.ask("parts") == (
            "3 parts ended unexpectedly within the last minute, last kinform test worker 1: "
            "LookupError; see the log"
        )
        await asyncio.sleep(70)
        assert manager.reporting.ready.ask("parts") is None
    ends = [each for each in caplog.records if "ended unexpectedly" in each.getMessage()]
    assert len(ends) == 3
    assert "LookupError: no limit is known" in ends[0].getMessage()


def cancel(role: str) -> None:
    """Cancel the tasks of ours whose names end so, as a program that cancels everything does."""
    for task in asyncio.all_tasks():
        if task.get_name().endswith(role):
            task.cancel()


@in_virtual_time
async def test_the_name_in_the_hands_of_a_cancelled_worker_comes_again() -> None:
    async def wait(_ctx: Context, _name: kinform.ObjectName) -> None:
        if len(log.names) == 1:
            await asyncio.Event().wait()

    log = Log(wait)
    async with served() as (_, client):
        await client.resource(MAPS, namespace="default").create(named("a"))
        async with running(client, controller(log)):
            await log.called(1)
            cancel(" worker 1")
            await log.called(2)
    assert log.names == ["a", "a"]


@in_virtual_time
async def test_readiness_names_neither_namespace_nor_selector_of_a_part_that_ended() -> None:
    source = KindSource(MAPS, namespace="payments", label_selector={"tenant": "acme"})
    async with served() as (_, client), running(client, controller(Log(), for_=source)) as manager:
        await manager.wait_warm(60)
        cancel(" reflector")
        await asyncio.sleep(1)
        text = manager.reporting.ready.ask("parts")
    assert text is not None
    assert "v1/configmaps reflector" in text
    assert "payments" not in text
    assert "acme" not in text


@in_virtual_time
async def test_a_source_may_read_a_cache_that_has_not_synced() -> None:
    ticks: list[int] = []
    log = Log()
    async with served() as (_, client):
        manager = Manager(client, signals=False)
        missing = manager.factory.informer("example.com/v1/widgets")

        def names() -> list[kinform.ObjectName]:
            ticks.append(len(missing.lister.list()))
            return []

        manager.add(controller(log, watches=[TimerSource(every=30, names=names)]))
        await manager.start()
        await asyncio.sleep(100)
        assert manager.reporting.ready.ask("parts") is None
        await manager.stop()
    assert len(ticks) > 2


@in_virtual_time
async def test_waiting_for_a_manager_that_was_cancelled_from_outside_is_an_error() -> None:
    async with served() as (_, client):
        manager = Manager(client, signals=False)
        manager.add(controller(Log()))
        await manager.start()
        cancel("kinform manager")
        with pytest.raises(kinform.UsageError, match="cancelled from outside"):
            await manager.wait_stopped()


@in_virtual_time
async def test_more_than_five_ends_in_a_minute_end_the_manager_with_the_cause() -> None:
    one = controller(always_fails, rate_limiter=RaisingLimiter(times=100))
    async with served() as (_, client):
        manager = Manager(client, signals=False)
        manager.add(one)
        await client.resource(MAPS, namespace="default").create(named("a"))
        with pytest.raises(LookupError, match="no limit is known"):
            await manager.run()
        assert one.statistics().unexpected_ends == 6


@in_virtual_time
async def test_a_task_of_ours_that_is_cancelled_from_outside_is_replaced_and_named() -> None:
    log = Log()
    async with served() as (_, client), running(client, controller(log)) as manager:
        await manager.wait_warm(60)
        await asyncio.sleep(1)
        tasks = {task.get_name(): task for task in asyncio.all_tasks()}
        for name in ("kinform test worker 1", "v1/configmaps in default reflector"):
            tasks[name].cancel()
        await asyncio.sleep(10)
        await client.resource(MAPS, namespace="default").create(named("a"))
        await log.called(1)
        assert "UsageError" in (manager.reporting.ready.ask("parts") or "")


@in_virtual_time
async def test_parts_of_an_informer_count_for_the_manager_that_runs_it() -> None:
    async with served() as (_, client):
        manager = Manager(client, signals=False)
        manager.add(controller(Log()))
        await manager.start()
        await manager.wait_warm(60)

        async def cancel_reflectors() -> None:
            while True:
                await asyncio.sleep(0.1)
                for task in asyncio.all_tasks():
                    if task.get_name().endswith(" reflector"):
                        task.cancel()

        cancelling = asyncio.get_running_loop().create_task(cancel_reflectors())
        with pytest.raises(kinform.UsageError, match="was cancelled from outside kinform"):
            await manager.wait_stopped()
        cancelling.cancel()


# --- turns


class Turns:
    """Counts turns of the loop, as another task sees them."""

    def __init__(self) -> None:
        self.count = 0

    async def run(self) -> None:
        while True:
            self.count += 1
            await asyncio.sleep(0)


@pytest.mark.parametrize("eager", EAGER)
@in_virtual_time
async def test_workers_take_turns_though_no_reconcile_ever_waits(eager: bool) -> None:
    loop = asyncio.get_running_loop()
    if eager:
        loop.set_task_factory(getattr(asyncio, "eager_task_factory"))  # noqa: B009 - not in 3.11
    turns, by, steps = Turns(), Counter[str](), Counter[int]()

    async def reconcile(_ctx: Context, _name: kinform.ObjectName) -> None:
        task = asyncio.current_task()
        assert task is not None
        by[task.get_name()] += 1
        steps[turns.count] += 1

    async with served() as (_, client):
        channel = ChannelSource(buffer=2000)
        for number in range(2000):
            channel.send(key(f"n{number}"))
        counting = loop.create_task(turns.run())
        one = controller(reconcile, watches=[channel], workers=8)
        async with running(client, one):
            while by.total() < 2000:  # noqa: ASYNC110 - turns are what is counted
                await asyncio.sleep(0)
        counting.cancel()
    assert max(steps.values()) <= 8, "one reconcile of each worker in one turn of the loop"
    if not eager:  # a task that starts eagerly has its name only afterwards
        assert len(by) == 8
        assert max(by.values()) <= 2 * min(by.values())


async def most_in_a_turn(queue: WorkQueue[kinform.ObjectName], until: int) -> int:
    """Return by how many keys the queue has grown in one turn of the loop at most."""
    most = before = len(queue)
    while before < until:
        await asyncio.sleep(0)
        most, before = max(most, len(queue) - before), len(queue)
    return most


NAMES = [key(f"n{number}") for number in range(5000)]


async def one_by_one() -> AsyncIterator[kinform.ObjectName]:
    for name in NAMES:
        yield name


async def one_item() -> AsyncIterator[int]:
    yield 1


def full_channel() -> ChannelSource:
    channel = ChannelSource(buffer=len(NAMES))
    for name in NAMES:
        channel.send(name)
    return channel


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(full_channel, id="channel"),
        pytest.param(lambda: TimerSource(300, NAMES), id="timer"),
        pytest.param(lambda: StreamSource(one_by_one, lambda name: name), id="stream"),
        pytest.param(lambda: StreamSource(one_item, lambda _: NAMES), id="one item of a stream"),
    ],
)
@in_virtual_time
async def test_a_source_with_much_to_say_lets_others_have_their_turn(
    make: Callable[[], Source],
) -> None:
    source, queue = make(), WorkQueue[kinform.ObjectName]()
    running = asyncio.get_running_loop().create_task(source.run(queue.add))
    assert await most_in_a_turn(queue, until=len(NAMES)) <= 512
    running.cancel()
    await asyncio.wait([running])


@in_virtual_time
async def test_a_channel_that_is_stopped_while_it_hands_over_keeps_the_rest() -> None:
    channel, queue = full_channel(), WorkQueue[kinform.ObjectName]()
    loop = asyncio.get_running_loop()
    running = loop.create_task(channel.run(queue.add))
    await asyncio.sleep(0)
    running.cancel()
    await asyncio.wait([running])
    handed_over = len(queue)
    assert 0 < handed_over < len(NAMES)
    again = loop.create_task(channel.run(queue.add))
    await most_in_a_turn(queue, until=len(NAMES))
    again.cancel()
    await asyncio.wait([again])


@pytest.mark.slow
@in_virtual_time
async def test_one_event_that_means_many_names_lets_others_have_their_turn() -> None:
    log = Log()
    async with served() as (_, client):
        every = kinform.KindSource("v1/secrets", map=lambda _: NAMES, namespace="default")
        one = controller(log, watches=[every])
        async with running(client, one) as manager:
            await manager.wait_warm(60)
            await asyncio.sleep(1)
            await client.resource("v1/secrets", namespace="default").create(named("s"))
            while len(one.queue) < 1000 and len(log.names) < 1000:  # noqa: ASYNC110 - turns
                await asyncio.sleep(0)
            assert len(one.queue) + len(log.names) < 4000, "not all in one turn"
            await log.called(len(NAMES))


@in_virtual_time
async def test_work_that_never_waits_cannot_keep_others_from_their_turn() -> None:
    """For those who take keys from a queue themselves."""
    queue = WorkQueue[int]()
    for number in range(1000):
        queue.add(number)
    turns, most = Turns(), Counter[int]()

    async def work() -> None:
        for _ in range(1000):
            async with queue.processing():
                most[turns.count] += 1

    loop = asyncio.get_running_loop()
    counting, working = loop.create_task(turns.run()), loop.create_task(work())
    await working
    counting.cancel()
    assert max(most.values()) <= 64


@in_virtual_time
async def test_workers_that_are_left_alone_end_when_the_queue_is_shut_down() -> None:
    queue, done = WorkQueue[kinform.ObjectName](), list[kinform.ObjectName]()

    async def reconcile(name: kinform.ObjectName) -> None:
        await asyncio.sleep(0)
        done.append(name)

    queue.add(key("a"))
    queue.shut_down()
    parts = Parts("test")
    await Workers(queue, reconcile, name="test", count=3, slow_after=None, parts=parts).run()
    assert (done, parts.unexpected_ends) == ([key("a")], 0)
