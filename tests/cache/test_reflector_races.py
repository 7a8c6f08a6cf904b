"""Two things at once: what runs beside a watch, what ends it, and who waits for whom."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from kinform.cache._reflector.open_watch import OpenWatch
from kinform.cache.listwatch import ListWatch
from kinform.cache.reflector import Reflector
from kinform.cache.reflector_options import ReflectorOptions
from kinform.cache.store.store import Store
from kinform.errors import SourceError, TransportError, TransportFailure
from kinform.rest.options import ListOptions
from kinform.rest.results import Bookmark, ListResult, Received
from kinform.sansio.queue.real_fifo import RealFIFO
from kinform.testing import FakeListWatch, in_virtual_time
from tests.cache.support_reflector import (
    PLAIN,
    Script,
    Told,
    assert_in_budget,
    config,
    entry,
    event,
    following,
    listed,
    names,
    running,
    said,
    shown,
    there,
    turns,
    until,
)


def now() -> float:
    return asyncio.get_running_loop().time()


async def at_once() -> None:
    """Have room: nothing to wait for."""


# --- The probe beside a watch


class Together:
    """A source whose probe and whose watch wake up in the same turn of the loop."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.probes = 0
        self.watches: list[str] = []

    async def list(self, options: ListOptions) -> ListResult[Any]:
        if options.limit == 1:
            self.probes += 1
            await self.go.wait()
        version = 5 if self.probes else 50
        return listed(version, entry("old" if self.probes else "new", version))

    @contextlib.asynccontextmanager
    async def watch(self, options: ListOptions) -> AsyncGenerator[AsyncGenerator[Received[Any]]]:
        self.watches.append(options.resource_version)

        async def play() -> AsyncGenerator[Received[Any]]:
            await asyncio.sleep(1)  # so that the probe waits first
            await self.go.wait()
            yield Bookmark(options.resource_version)
            await asyncio.sleep(1e9)

        yield play()


@pytest.mark.parametrize("wait_for_room", [None, at_once])
@in_virtual_time
async def test_what_a_probe_finds_ends_the_watch_even_if_something_comes_with_it(
    wait_for_room: Any,
) -> None:
    """F-R07."""
    source, store = Together(), Store[Any]()
    options = ReflectorOptions(stream_lists=False, probe_period=0.5)
    reflector = Reflector(source, store, options=options, wait_for_room=wait_for_room)
    async with running(reflector):
        await until(lambda: source.probes == 1)
        await asyncio.sleep(5)
        source.go.set()
        await until(lambda: names(store) == {"old"}, within=10)
    assert source.watches[:2] == ["50", "5"]


@in_virtual_time
async def test_a_probe_that_never_comes_back_holds_nobody_up() -> None:
    source, store = FakeListWatch(), Store[Any]()

    async def hang(options: ListOptions) -> ListResult[Any]:
        if options.limit == 1:
            await asyncio.get_running_loop().create_future()
        return await source.list(options)

    lw = ListWatch(list=hang, watch=source.watch)
    async with following(source, lw, store=store, options=PLAIN):
        await asyncio.sleep(400)
        source.add(config("a"))
        await until(lambda: len(store) == 1)


@in_virtual_time
async def test_a_probe_that_fails_is_tried_again_after_the_same_time() -> None:
    source, told = FakeListWatch(), Told()
    options = ReflectorOptions(stream_lists=False, watch_timeout=1800)
    async with following(source, options=options, watch_error_handler=told) as reflector:
        source.fail_lists(said(500), said(500))
        await asyncio.sleep(1000)
        assert reflector.statistics().probes == 3
        assert (reflector.statistics().watches, told.errors) == (1, [])


@in_virtual_time
async def test_a_probe_comes_no_sooner_than_a_429_has_told_the_one_before() -> None:
    """Seed 5623 of the simulator: it was asked again beside the next watch."""
    source = FakeListWatch()
    cut = TransportError("cut", failure=TransportFailure.RESET)
    options = ReflectorOptions(stream_lists=False, watch_timeout=1800)

    def probes() -> list[float]:
        return [one.at for one in source.requests if one.options.limit == 1]

    async with following(source, options=options):
        source.fail_lists(cut, cut, said(429, retry_after=30))
        source.close_watches(cut)
        await until(lambda: len(probes()) == 3, within=60)  # the third one beside a blind watch
        source.close_watches(cut)
        await until(lambda: len(probes()) == 4, within=60)
        await source.wait_for_watches(1)
    assert 29.99 < probes()[3] - probes()[2] < 40


@in_virtual_time
async def test_probes_are_as_far_apart_as_asked_for_however_short_the_watches() -> None:
    source = FakeListWatch()
    options = ReflectorOptions(stream_lists=False, watch_timeout=7, probe_period=100)
    async with running(Reflector(source, Store(), options=options)):
        await asyncio.sleep(3_000)
    probes = [one.at for one in source.requests if one.options.limit == 1]
    assert 25 <= len(probes) <= 35


@in_virtual_time
async def test_without_a_probe_period_none_is_made_beside_a_watch() -> None:
    source = FakeListWatch()
    options = ReflectorOptions(stream_lists=False, probe_period=None)
    async with running(Reflector(source, Store(), options=options)):
        await asyncio.sleep(10_000)
    assert [one.verb for one in source.requests].count("list") == 1


# --- Resyncs


class Resynced(Store[Any]):
    """A store whose resyncs fail."""

    def __init__(self) -> None:
        super().__init__()
        self.resyncs = 0
        self.fails = True

    def resync(self) -> None:
        if self.fails:
            self.resyncs += 1
            raise LookupError


@pytest.mark.parametrize("options", [PLAIN, ReflectorOptions()], ids=["plain", "streamed"])
@in_virtual_time
async def test_a_resync_that_fails_does_not_disturb_a_list(options: ReflectorOptions) -> None:
    source, store, told = FakeListWatch(), Resynced(), Told()
    source.add(config("a"))
    store.fails = False
    reflector = Reflector(
        source, store, options=options, resync_period=15, watch_error_handler=told
    )
    async with running(reflector):
        await source.wait_for_watches()
        await source.wait_delivered()
        source.latency = 20.0
        store.fails = True
        source.add(config("b"), drop=True)
        source.compact()
        source.close_watches(said(410))
        await until(lambda: store.resyncs == 1)
        assert reflector.statistics().phase in {"list", "stream"}
        store.fails = False
        await until(lambda: shown(store) == there(source))
        await source.wait_for_watches()
    assert told.kinds == ["ResourceExpiredError", "SourceError"]
    assert [one.verb for one in source.requests].count("watch") == 2


@in_virtual_time
async def test_a_resync_that_fails_all_the_time_does_not_make_it_loop_hot() -> None:
    source, store = FakeListWatch(), Resynced()
    source.add(config("a"))
    reflector = Reflector(source, store, options=PLAIN, resync_period=0.5)
    async with running(reflector):
        await asyncio.sleep(120)
    assert len(store) == 1
    assert_in_budget(source.requests)


# --- Readers that wait, and sources that do not


@pytest.mark.parametrize("paused", [200.0, 400.0, 5_000.0])
@in_virtual_time
async def test_a_queue_without_room_for_long_is_no_fault_of_the_server(paused: float) -> None:
    """Neither silence nor a late end: what was sent meanwhile is read first."""
    source, store, told = FakeListWatch(), Store[Any](), Told()
    waits = [0.0, paused]

    async def wait_for_room() -> None:
        await asyncio.sleep(waits.pop() if waits else 0)

    reflector = Reflector(
        source,
        store,
        options=ReflectorOptions(stream_lists=False, probe_period=None),
        wait_for_room=wait_for_room,
        watch_error_handler=told,
        rand=lambda: 0.0,
    )
    async with running(reflector):
        await source.wait_for_watches()
        source.bookmark()  # arms the idle watchdog
        await turns()
        for name in "abc":
            source.add(config(name))
        await asyncio.sleep(paused - 1)
        assert len(store) == 0
        await until(lambda: shown(store) == there(source), within=2)
    assert told.errors == []
    assert reflector.statistics().lists == 1


@in_virtual_time
async def test_what_a_server_sends_on_after_such_a_pause_is_still_read() -> None:
    """Its time is long over, but nobody has looked whether it has ended."""
    changes = (event("ADDED", "a", 2), 0.0, event("ADDED", "b", 3), 0.0, Bookmark("4"), 1.0)
    source = Script(lists=[listed(1)], watches=[changes, (1e6,)])
    store, told, waits = Store[Any](), Told(), [5_000.0]

    async def wait_for_room() -> None:
        await asyncio.sleep(waits.pop() if waits else 0)

    options = ReflectorOptions(stream_lists=False, probe_period=None)
    reflector = Reflector(
        source, store, options=options, wait_for_room=wait_for_room, watch_error_handler=told
    )
    async with running(reflector):
        await asyncio.sleep(5_010)
    assert names(store) == {"a", "b"}
    assert told.errors == []
    assert [one.resource_version for one in source.asked("watch")] == ["1", "4"]


@in_virtual_time
async def test_a_watch_that_is_ended_while_it_waits_for_room_ends() -> None:
    source, told = FakeListWatch(), Told()

    async def never() -> None:
        await asyncio.get_running_loop().create_future()

    resyncs: list[float] = []

    def should_resync() -> bool:
        resyncs.append(now())
        if len(resyncs) == 1:
            raise LookupError
        return False

    reflector = Reflector(
        source,
        Store[Any](),
        options=PLAIN,
        wait_for_room=never,
        resync_period=10,
        should_resync=should_resync,
        watch_error_handler=told,
    )
    async with running(reflector):
        await source.wait_for_watches()
        source.add(config("a"))
        await asyncio.sleep(10)
        await turns()
        assert source.open_watches == 0
        await source.wait_for_watches()
    assert isinstance(told.errors[0], SourceError)


@in_virtual_time
async def test_a_source_that_never_pauses_lets_others_have_a_turn() -> None:
    """Else nobody could even stop it."""
    seen = 0

    @contextlib.asynccontextmanager
    async def watch(options: ListOptions) -> AsyncGenerator[AsyncGenerator[Received[Any]]]:
        async def play() -> AsyncGenerator[Received[Any]]:
            nonlocal seen
            while True:
                seen += 1
                yield event("MODIFIED", "a", seen)

        yield play()

    lw = ListWatch(list=Script(lists=[listed(0)]).list, watch=watch)
    async with running(Reflector(lw, Store(), options=PLAIN)):
        await turns(100)
    assert 0 < seen < 100 * 20


@in_virtual_time
async def test_a_source_that_yields_nothing_all_the_time_is_ended_at_its_time() -> None:
    watches: list[float] = []

    class Empty:
        async def batches(self) -> AsyncGenerator[list[Received[Any]]]:
            while True:
                await asyncio.sleep(0.1)
                yield []

        def __aiter__(self) -> Any:
            raise NotImplementedError

    @contextlib.asynccontextmanager
    async def watch(options: ListOptions) -> AsyncGenerator[Any]:
        watches.append(now())
        yield Empty()

    lw = ListWatch(list=Script(lists=[listed(7)]).list, watch=watch)
    options = ReflectorOptions(stream_lists=False, watch_timeout=20)
    async with running(Reflector(lw, Store(), options=options, rand=lambda: 0.0)):
        await asyncio.sleep(70)
    assert watches == pytest.approx([0.0, 30.8, 61.6], abs=0.01)


# --- Cancellation that others swallow


@pytest.mark.parametrize("swallow", ["raise", "return"])
@pytest.mark.parametrize("where", ["list", "enter", "read", "probe"])
@in_virtual_time
async def test_a_stop_is_a_stop_whatever_a_users_function_makes_of_it(
    where: str, swallow: str
) -> None:
    """F-R37: a library that turns a cancellation into an error of its own must not keep it."""

    async def wait_badly(result: Any = None) -> Any:
        try:
            await asyncio.sleep(1e6)
        except asyncio.CancelledError:
            if swallow == "raise":
                raise RuntimeError("cancelled") from None
        return result

    async def my_list(options: ListOptions) -> ListResult[Any]:
        is_probe = options.limit == 1
        if where == ("probe" if is_probe else "list"):
            return await wait_badly(listed(1))
        return listed(1)

    @contextlib.asynccontextmanager
    async def my_watch(options: ListOptions) -> AsyncGenerator[AsyncGenerator[Received[Any]]]:
        async def play() -> AsyncGenerator[Received[Any]]:
            if where == "read":
                await wait_badly()
                yield Bookmark("1")
            await asyncio.sleep(1e6)

        if where == "enter":
            await wait_badly()
        yield play()

    lw = ListWatch(list=my_list, watch=my_watch)
    options = ReflectorOptions(stream_lists=False, probe_period=5, watch_timeout=1000)
    task = asyncio.get_running_loop().create_task(Reflector(lw, Store(), options=options).run())
    await asyncio.sleep(20)
    task.cancel()
    async with asyncio.timeout(1):
        await asyncio.wait([task])
    assert task.cancelled()


# --- One watch, by itself


@in_virtual_time
async def test_what_has_been_ended_stays_so_whatever_comes() -> None:
    watch, reason = OpenWatch("1", is_list=False, timeout=100), SourceError("x")
    with pytest.raises(TimeoutError):
        async with watch.limit:
            watch.end(reason=reason)
            watch.pause()
            watch.hear(now())
            watch.arm(50)
            watch.resume()
            watch.end(reason=SourceError("y"))
            await asyncio.sleep(1)
    assert now() == 0
    assert watch.cause_of(None) is reason


@in_virtual_time
async def test_a_decision_is_kept_even_if_the_watch_had_ended_before() -> None:
    """The state it belongs to is in force already."""
    watch = OpenWatch("1", is_list=False, timeout=100)
    decision: Any = object()
    async with watch.limit:
        watch.end(reason=SourceError("x"))
        watch.end(decision=decision)
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(1)
    assert watch.decision is decision


@in_virtual_time
async def test_what_failed_before_the_limit_is_what_failed() -> None:
    watch = OpenWatch("1", is_list=False, timeout=1)
    error = ValueError()
    async with watch.limit:
        assert watch.cause_of(error) is error
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(100)
        assert isinstance(watch.cause_of(error), TransportError)
    assert now() == 11


@in_virtual_time
async def test_events_go_to_the_store_in_order_while_a_resync_is_asked_for() -> None:
    source, queue = FakeListWatch(), RealFIFO[Any]()
    async with running(Reflector(source, queue, options=PLAIN, resync_period=1)):
        await source.wait_for_watches()
        for number in range(5):
            source.add(config(f"c{number}"))
            await asyncio.sleep(0.7)
    contents = []
    while batch := queue.pop_batch():
        contents.append(type(batch.content).__name__)
        queue.done(batch)
    assert contents == ["ReplacedAll", "list", "SyncAll", "list", "SyncAll", "list", "SyncAll"]


@in_virtual_time
async def test_a_watch_that_never_stops_is_stopped_though_there_is_always_room() -> None:
    """Its time-out and ten seconds more, however much it brings."""
    endless = [step for number in range(2, 900) for step in (event("MODIFIED", "a", number), 1.0)]
    source, told = Script(lists=[listed(1), listed(900)], watches=[endless, (1e6,)]), Told()
    options = ReflectorOptions(stream_lists=False, probe_period=None, watch_timeout=60)
    reflector = Reflector(
        source,
        Store[Any](),
        options=options,
        wait_for_room=at_once,
        watch_error_handler=told,
        rand=lambda: 0.0,
    )
    async with running(reflector):
        await asyncio.sleep(75)
    assert [str(error) for error in told.errors] == ["the watch did not end 70 s after its start"]
