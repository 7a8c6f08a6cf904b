"""RetryWatcher: every change once, over any number of watches, and never a hot loop."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.cache.listwatch import ListWatch
from kinform.cache.watchtools.retry_watcher import RetryWatcher
from kinform.errors import (
    ConfigError,
    DecodeError,
    ForbiddenError,
    KinformError,
    ResourceExpiredError,
    SourceError,
    TransportError,
    TransportFailure,
    UnknownResourceError,
    UsageError,
    api_error,
    status_of_code,
)
from kinform.meta import ObjectMeta, ObjectName
from kinform.objects.object import Object
from kinform.rest.options import ListOptions
from kinform.rest.reconnects import Reconnects
from kinform.rest.results import Bookmark, ListResult, Received, Unreadable, WatchEvent
from kinform.sansio.wire.watch import EventType
from kinform.tasks import background, gather
from kinform.testing import FakeListWatch, in_virtual_time

CUT = TransportError("cut", failure=TransportFailure.RESET)
CLOSED = TransportError("closed", failure=TransportFailure.CLOSED)


def said(code: int, *, retry_after: float | None = None) -> KinformError:
    return api_error(status_of_code(code, method="GET", message="no"), retry_after=retry_after)


def named(name: str) -> dict[str, object]:
    return {"metadata": {"name": name}}


def watcher(source: FakeListWatch[Object], version: str = "1") -> RetryWatcher[Object]:
    """Return a watcher whose waits are the shortest possible."""
    return RetryWatcher(source, version, rand=lambda: 0.0)


async def read(events: RetryWatcher[Object], count: int) -> list[tuple[str, str]]:
    """Return type and version of the next events."""
    read = [await anext(events) for _ in range(count)]
    return [(event.type, event.metadata.resource_version) for event in read]


def asked_from(source: FakeListWatch[Object]) -> list[str]:
    return [request.options.resource_version for request in source.requests]


def gaps(source: FakeListWatch[Object]) -> list[float]:
    """Return the times between the requests."""
    times = [request.at for request in source.requests]
    return [round(later - sooner, 6) for sooner, later in itertools.pairwise(times)]


def now() -> float:
    return asyncio.get_running_loop().time()


# --- How it begins ---


@pytest.mark.parametrize("version", ["", "0"])
def test_a_version_that_nobody_could_resume_from_is_refused(version: str) -> None:
    """CG-T01."""
    with pytest.raises(UsageError, match="list first"):
        RetryWatcher(FakeListWatch(), version)


@pytest.mark.parametrize("timeout", [0.0, -1.0, float("nan")])
def test_a_time_out_shorter_than_a_second_is_refused(timeout: float) -> None:
    with pytest.raises(UsageError, match="a second or more"):
        RetryWatcher(FakeListWatch(), "1", watch_timeout=timeout)


@in_virtual_time
async def test_it_asks_for_bookmarks_and_for_five_to_ten_minutes() -> None:
    source = FakeListWatch()
    source.add(named("a"))
    for rand in ([0.0].pop, [0.5].pop):
        async with RetryWatcher(source, "1", rand=rand) as events:
            await anext(events)
    assert [request.options for request in source.requests] == [
        ListOptions(resource_version="1", watch=True, allow_watch_bookmarks=True, timeout=timeout)
        for timeout in (300.0, 450.0)
    ]


@in_virtual_time
async def test_events_that_the_caller_knows_are_not_asked_for() -> None:
    """CG-T03."""
    source = FakeListWatch()
    for name in "abc":
        source.add(named(name))
    async with watcher(source, "3") as events:
        assert await read(events, 1) == [("ADDED", "4")]
    assert asked_from(source) == ["3"]


@in_virtual_time
async def test_it_is_entered_once_and_read_only_inside_the_block() -> None:
    events = watcher(FakeListWatch())
    with pytest.raises(UsageError, match="open the watcher first"):
        await anext(events)
    async with events:
        with pytest.raises(UsageError, match="opened before"):
            await events.__aenter__()


# --- What it survives ---

TRANSIENT = [
    CUT,
    said(500),
    said(504),
    said(429),
    said(503),
    said(404),
    said(599),
    ConfigError("no token"),
    UnknownResourceError("widgets"),
    DecodeError("not JSON"),
]


@pytest.mark.parametrize("error", TRANSIENT, ids=lambda error: f"{type(error).__name__}-{error}")
@in_virtual_time
async def test_a_watch_that_cannot_be_opened_is_asked_for_again(error: KinformError) -> None:
    """CG-T02: two starts, and nothing is lost."""
    source = FakeListWatch()
    source.add(named("a"))
    source.fail_watches(error)
    async with watcher(source) as events:
        assert await read(events, 1) == [("ADDED", "2")]
    assert asked_from(source) == ["1", "1"]
    assert gaps(source) == [0.8]


@pytest.mark.parametrize(
    "error",
    [*TRANSIENT, said(401), said(403)],
    ids=lambda error: f"{type(error).__name__}-{error}",
)
@in_virtual_time
async def test_a_watch_that_breaks_is_resumed_behind_its_last_event(error: KinformError) -> None:
    """CG-T06: also after errors that would be final at the start: the start will tell."""
    source = FakeListWatch()
    async with watcher(source) as events:
        source.add(named("a"))
        await read(events, 1)
        source.modify(named("a"))
        source.close_watches(error)
        source.delete("a")
        assert await read(events, 2) == [("MODIFIED", "3"), ("DELETED", "4")]
        assert source.open_watches == 1
    assert asked_from(source) == ["1", "3"]
    assert source.open_watches == 0


@pytest.mark.parametrize("closes", [1, 2, 3, 4])
@in_virtual_time
async def test_each_event_comes_once_over_any_number_of_closed_watches(closes: int) -> None:
    """CG-T07: with gaps between the versions; one start more than ends."""
    source = FakeListWatch()
    seen: list[str] = []
    async with watcher(source) as events:
        for number in range(closes):
            source.advance(3)
            source.add(named(f"a{number}"))
            source.advance(2)
            source.add(named(f"b{number}"))
            seen += [version for _, version in await read(events, 2)]
            source.close_watches()
        source.add(named("last"))
        seen += [version for _, version in await read(events, 1)]
    assert len(source.requests) == closes + 1
    versions = [entry.metadata.resource_version for entry in source.entries.values()]
    assert seen == sorted(versions, key=int)


@in_virtual_time
async def test_an_event_that_is_not_new_is_dropped() -> None:
    source = FakeListWatch()
    async with watcher(source) as events:
        entry = source.add(named("a"))
        again: WatchEvent[Object] = WatchEvent(EventType.ADDED, entry.object, entry.metadata)
        source.send(again, again)
        source.add(named("b"))
        source.send(again)
        source.add(named("c"))
        assert await read(events, 3) == [("ADDED", "2"), ("ADDED", "3"), ("ADDED", "4")]


@in_virtual_time
async def test_a_bookmark_moves_the_version_to_resume_from() -> None:
    source = FakeListWatch()
    async with watcher(source) as events:
        source.add(named("a"))
        await read(events, 1)
        source.advance(10)
        source.bookmark()
        source.send(Bookmark("5"), Bookmark(""))  # such do not move it
        source.close_watches()
        source.compact()
        source.add(named("b"))
        assert await read(events, 1) == [("ADDED", "13")]
        assert events.resource_version == "13"
    assert asked_from(source) == ["1", "12"]


@in_virtual_time
async def test_bookmarks_are_shown_on_request() -> None:
    source = FakeListWatch()
    async with watcher(source) as events:
        received = events.with_bookmarks()
        asyncio.get_running_loop().call_later(1, source.bookmark)
        assert await anext(received) == Bookmark("1")
        source.add(named("a"))
        source.send(Bookmark("1"))
        source.bookmark()
        first = await anext(received)
        assert isinstance(first, WatchEvent)
        assert await anext(received) == Bookmark("2")


@in_virtual_time
async def test_a_bookmark_does_not_move_the_version_past_what_was_not_handed_out() -> None:
    source = FakeListWatch()
    async with watcher(source) as events:
        await_first = asyncio.get_running_loop().call_later
        await_first(1, source.add, named("a"))
        await_first(1, source.add, named("b"))
        await_first(1, source.bookmark)
        await read(events, 1)
        assert events.resource_version == "2"


@in_virtual_time
async def test_an_unreadable_object_is_told_and_the_next_read_goes_on_behind_it() -> None:
    source = FakeListWatch()
    poison = Unreadable(ObjectMeta(name="x", resource_version="2"), DecodeError("too deep"))
    nameless = Unreadable(ObjectMeta(), DecodeError("no UTF-8"))
    async with watcher(source) as events:
        asyncio.get_running_loop().call_later(1, source.send, poison, poison, nameless)
        for words in ("too deep", "no UTF-8"):
            with pytest.raises(DecodeError, match=words):
                await anext(events)
            assert events.resource_version == "2"
        source.advance()
        source.add(named("a"))
        assert await read(events, 1) == [("ADDED", "3")]
    assert len(source.requests) == 1


# --- What it does not ---


@pytest.mark.parametrize("at_start", [True, False])
@in_virtual_time
async def test_an_expired_version_is_the_end(at_start: bool) -> None:
    """CG-T04: one start, in whichever way it is told.

    CG-T02 differs: client-go retries forever if the start itself is refused (client-go#904).
    """
    source = FakeListWatch()
    source.add(named("a"))
    source.compact()
    source.expires_at_start = at_start
    async with watcher(source) as events:
        for _ in range(2):  # and it stays the end
            with pytest.raises(ResourceExpiredError):
                await anext(events)
    assert asked_from(source) == ["1"]


@in_virtual_time
async def test_a_version_that_expires_while_watching_is_the_end_after_what_came_before() -> None:
    """CG-T04."""
    source = FakeListWatch()
    async with watcher(source) as events:
        source.add(named("a"))
        source.close_watches()
        loop = asyncio.get_running_loop()
        loop.call_later(1, source.add, named("b"))
        loop.call_later(1, source.close_watches, said(410))
        assert await read(events, 2) == [("ADDED", "2"), ("ADDED", "3")]
        with pytest.raises(ResourceExpiredError):
            await anext(events)
        assert source.open_watches == 0


@pytest.mark.parametrize("error", [said(401), said(403), CLOSED, UsageError("wrong")], ids=str)
@in_virtual_time
async def test_a_refusal_at_the_start_is_the_end(error: KinformError) -> None:
    """CG-T05: one start."""
    source = FakeListWatch()
    source.fail_watches(error)
    async with watcher(source) as events:
        for _ in range(2):
            with pytest.raises(type(error)):
                await anext(events)
    assert len(source.requests) == 1


@in_virtual_time
async def test_a_refusal_after_a_break_is_the_end_too() -> None:
    source = FakeListWatch()
    async with watcher(source) as events:
        loop = asyncio.get_running_loop()
        loop.call_later(1, source.close_watches, CUT)
        loop.call_later(1, source.fail_watches, said(403))
        with pytest.raises(ForbiddenError):
            await anext(events)
    assert len(source.requests) == 2


@in_virtual_time
async def test_an_event_without_a_version_is_the_end() -> None:
    source = FakeListWatch()
    obj = Object.from_dict(named("a"))
    nameless: WatchEvent[Object] = WatchEvent(EventType.ADDED, obj, obj.metadata)
    async with watcher(source) as events:
        loop = asyncio.get_running_loop()
        loop.call_later(1, source.send, nameless)
        loop.call_later(1, source.add, named("b"))
        for _ in range(2):
            with pytest.raises(DecodeError, match="a: the event has no version"):
                await anext(events)
        await source.wait_for_watches(0)


@pytest.mark.parametrize("error", [ValueError("a bug"), TimeoutError("a bug")])
@in_virtual_time
async def test_what_a_foreign_source_raises_is_not_hidden_and_is_the_end(error: Exception) -> None:
    source = FakeListWatch()
    async with watcher(source) as events:
        await source.wait_for_watches()
        source.add(named("a"))
        source.close_watches(error)
        assert await read(events, 1) == [("ADDED", "2")]
        for _ in range(2):
            with pytest.raises(type(error), match="a bug"):
                await anext(events)
    assert len(source.requests) == 1


# --- Waits ---


@in_virtual_time
async def test_waits_double_up_to_half_a_minute() -> None:
    source = FakeListWatch()
    source.fail_watches(CUT, forever=True)
    async with watcher(source) as events:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(200):
                await anext(events)
    assert gaps(source) == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30, 30, 30]


@in_virtual_time
async def test_a_watch_that_is_closed_at_once_again_and_again_is_no_hot_loop() -> None:
    source = FakeListWatch()

    async def close_all() -> None:
        while True:
            await source.wait_for_watches()
            source.close_watches()

    async with watcher(source) as events, asyncio.TaskGroup() as group:
        closing = group.create_task(close_all())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60):
                await anext(events)
        closing.cancel()
    assert len(source.requests) <= 8
    assert gaps(source)[:3] == [0.8, 1.6, 3.2]


@pytest.mark.parametrize(
    ("asked", "waited"), [(0.1, 0.8), (7.0, 7.0), (3600.0, 120.0)], ids=["less", "more", "absurd"]
)
@in_virtual_time
async def test_the_server_may_ask_for_longer_waits_within_reason(
    asked: float, waited: float
) -> None:
    source = FakeListWatch()
    source.add(named("a"))
    source.fail_watches(said(429, retry_after=asked))
    async with watcher(source) as events:
        await read(events, 1)
    assert gaps(source) == [waited]


@in_virtual_time
async def test_a_watch_that_reached_its_time_out_is_followed_by_another_at_once() -> None:
    source = FakeListWatch()
    source.fail_watches(CUT, CUT)
    async with RetryWatcher(source, "1", watch_timeout=20, rand=lambda: 0.0) as events:
        asyncio.get_running_loop().call_later(55, source.close_watches, CUT)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60):
                await anext(events)
    # Two failures; two watches to their time-out; one that breaks, with the back-off begun anew.
    assert gaps(source) == [0.8, 1.6, 20, 20, 13.4]


@in_virtual_time
async def test_a_watch_that_lived_for_a_minute_begins_the_back_off_anew() -> None:
    source = FakeListWatch()
    source.fail_watches(CUT, CUT, CUT)
    async with watcher(source) as events:
        loop = asyncio.get_running_loop()
        loop.call_later(70, source.close_watches, CUT)
        loop.call_later(100, source.close_watches)
        loop.call_later(110, source.add, named("a"))
        await read(events, 1)
    # It opened at 5.6; broke at 70 and is opened again 0.8 s later; closed cleanly at 100.
    assert gaps(source) == [0.8, 1.6, 3.2, 65.2, 29.2]


def most_in_a_minute(times: list[float]) -> int:
    return max(sum(at <= one < at + 60.0 for one in times) for at in times)


@pytest.mark.parametrize("timeout", [1, 300])
@in_virtual_time(max_turns=1_000_000)
async def test_a_server_that_sends_one_event_and_closes_is_opened_8_times_a_minute(
    timeout: float,
) -> None:
    """However healthy that looks. No event waits for longer than the pace of the openings."""
    source = FakeListWatch[Object]()

    async def send_one_and_close() -> None:
        for number in itertools.count():
            await source.wait_for_watches()
            source.add(named(f"n{number}"))
            await source.wait_delivered()
            source.close_watches()
            await asyncio.sleep(0.01)

    async with (
        RetryWatcher(source, "1", watch_timeout=timeout, rand=lambda: 0.0) as events,
        background(send_one_and_close()),
    ):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(600):
                async for _ in events:
                    pass
    assert most_in_a_minute([one.at for one in source.requests]) <= 8
    assert len(source.requests) >= 7 * 10
    assert max(gaps(source)) <= 15.3


@in_virtual_time(max_turns=1_000_000)
async def test_watches_that_a_proxy_ends_cleanly_after_10_seconds_are_reopened_at_once() -> None:
    source = FakeListWatch[Object]()
    async with watcher(source) as events, background(anext(events)):
        for _ in range(30):
            await asyncio.sleep(10)
            source.close_watches()
    assert gaps(source)[:29] == [10.0] * 29


@in_virtual_time
async def test_waits_are_spread_at_random() -> None:
    source = FakeListWatch()
    source.add(named("a"))
    source.fail_watches(CUT, said(429, retry_after=10))
    async with RetryWatcher(source, "1", rand=lambda: 0.5) as events:
        await read(events, 1)
    assert gaps(source) == [1.2, 11.25]


@in_virtual_time
async def test_a_watch_that_falls_silent_is_given_up_after_its_time() -> None:
    source = FakeListWatch()
    async with watcher(source) as events:
        loop = asyncio.get_running_loop()
        loop.call_later(5, source.freeze_watches)
        loop.call_later(6, source.add, named("a"))
        assert await read(events, 1) == [("ADDED", "2")]
    assert gaps(source) == [310.8]


@in_virtual_time
async def test_a_start_that_hangs_is_given_up_too() -> None:
    source = FakeListWatch()
    source.add(named("a"))
    source.hang_watches()
    async with watcher(source) as events:
        asyncio.get_running_loop().call_later(310.5, source.heal)
        assert await read(events, 1) == [("ADDED", "2")]
    assert gaps(source) == [310.8]


# --- Cancellation and leaving ---


@in_virtual_time
async def test_an_impatient_reader_disturbs_neither_waits_nor_slow_starts() -> None:
    source = FakeListWatch()
    source.latency = 1
    source.fail_watches(*[CUT] * 5)
    source.add(named("a"))
    async with watcher(source) as events:
        for _ in range(400):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.1):
                    assert await read(events, 1) == [("ADDED", "2")]
                    break
    assert gaps(source) == [1.8, 2.6, 4.2, 7.4, 13.8]


@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["add", "close", "cut", "fail", "bookmark"]),
            st.sampled_from([0.0, 0.3, 1.0, 10.0]),
        ),
        max_size=12,
    ),
    patience=st.sampled_from([None, 0.3, 2.0]),
    latency=st.sampled_from([0.0, 0.1]),
)
@pytest.mark.slow
def test_whenever_a_read_is_cancelled_each_event_comes_once_and_in_order(
    steps: list[tuple[str, float]], patience: float | None, latency: float
) -> None:
    @in_virtual_time
    async def scenario() -> None:
        source = FakeListWatch()
        source.latency = latency
        seen: list[str] = []

        async def disturb() -> None:
            for number, (step, pause) in enumerate(steps):
                await asyncio.sleep(pause)
                match step:
                    case "add":
                        source.add(named(f"n{number}"))
                    case "close":
                        source.close_watches()
                    case "cut":
                        source.close_watches(CUT)
                    case "fail":
                        source.fail_watches(CUT)
                    case _:
                        source.bookmark()
            source.add(named("last"))

        async with watcher(source) as events, asyncio.TaskGroup() as group:
            disturbing = group.create_task(disturb())
            while not disturbing.done() or events.resource_version != source.resource_version:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(patience):
                        seen.append((await anext(events)).metadata.name)
        versions = {e.metadata.resource_version: e.metadata.name for e in source.entries.values()}
        assert seen == [versions[version] for version in sorted(versions, key=int)]

    scenario()


@in_virtual_time
async def test_leaving_with_unread_events_ends_everything_at_once() -> None:
    """CG-T08: twice, and with events that nobody read."""
    source = FakeListWatch()
    for name in "abc":
        source.add(named(name))
    async with watcher(source) as events:
        await read(events, 1)
        await events.aclose()
        await events.aclose()
        assert [event async for event in events] == []
    assert [event async for event in events] == []
    assert (source.open_watches, now()) == (0, 0)


@pytest.mark.parametrize("state", ["reading", "opening", "waiting"])
@in_virtual_time
async def test_leaving_in_another_task_ends_a_read_at_once(state: str) -> None:
    source = FakeListWatch()
    if state == "waiting":
        source.fail_watches(said(429, retry_after=100))
    if state == "opening":
        source.hang_watches()
    async with asyncio.TaskGroup() as group:
        async with watcher(source) as events:
            reading = group.create_task(anext(events, None))
            await asyncio.sleep(5)
        assert await reading is None
    assert (now(), len(source.requests), source.open_watches) == (5, 1, 0)


@in_virtual_time
async def test_no_more_than_one_batch_waits_for_a_slow_reader() -> None:
    """And what it took long to read does not come again with the next watch."""
    source = FakeListWatch()
    async with watcher(source) as events:
        await source.wait_for_watches()
        source.add(named("a"))
        source.add(named("b"))
        await read(events, 1)
        source.add(named("c"))
        await asyncio.sleep(3600)
        assert await read(events, 2) == [("ADDED", "3"), ("ADDED", "4")]
    assert asked_from(source) == ["1", "3"]


# --- Other sources ---


def event(name: str, version: str) -> WatchEvent[str]:
    return WatchEvent(EventType.ADDED, name, ObjectMeta(name=name, resource_version=version))


def scripted(*watches: Iterable[Received[str] | Exception]) -> ListWatch[str]:
    """Return a source of plain generators, one for each watch; the last one stays open."""
    remaining = list(watches)

    async def play(steps: Iterable[Received[str] | Exception]) -> AsyncIterator[Received[str]]:
        for step in steps:
            await asyncio.sleep(1)
            if isinstance(step, Exception):
                raise step
            yield step
        if not remaining:
            await asyncio.Event().wait()

    @contextlib.asynccontextmanager
    async def watch(options: ListOptions) -> AsyncIterator[AsyncIterator[Received[str]]]:
        async with contextlib.aclosing(play(remaining.pop(0))) as events:  # type: ignore[type-var]
            yield events

    async def lists_nothing(options: ListOptions) -> ListResult[str]:
        return ListResult()

    return ListWatch(list=lists_nothing, watch=watch)


@in_virtual_time
async def test_a_source_of_plain_generators_will_do() -> None:
    source = scripted(
        [event("a", "2"), Bookmark("3")],
        [event("b", "4"), DecodeError("broken")],
        [event("b", "4"), event("c", "5")],
    )
    async with RetryWatcher(source, "1", rand=lambda: 0.0) as events:
        assert [(await anext(events)).object for _ in range(3)] == ["a", "b", "c"]
        assert events.resource_version == "5"


@in_virtual_time
async def test_watches_that_the_server_ended_early_all_at_once_are_reopened_in_turn() -> None:
    """A server that shuts down ends them cleanly, and each has brought an event before."""
    reconnects, opened = Reconnects(rate=5), list[float]()

    def source() -> ListWatch[str]:
        played = scripted([event("a", "2")], [event("b", "3")])

        @contextlib.asynccontextmanager
        async def watch(options: ListOptions) -> AsyncIterator[AsyncIterator[Received[str]]]:
            opened.append(now())
            async with played.watch(options) as events:
                yield aiter(events)

        return ListWatch(list=played.list, watch=watch, reconnects=reconnects)

    async def read() -> list[str]:
        async with RetryWatcher(source(), "1", rand=lambda: 0.0) as events:
            return [(await anext(events)).object for _ in range(2)]

    assert await gather(*(read() for _ in range(50))) == [["a", "b"]] * 50
    again = sorted(opened)[50:]
    assert again[-1] - again[0] == pytest.approx(49 / 5, abs=0.5)


@in_virtual_time
async def test_a_cancelled_read_does_not_touch_the_generator() -> None:
    source = scripted([event("a", "2"), event("b", "3")])
    async with RetryWatcher(source, "1", rand=lambda: 0.0) as events:
        assert (await anext(events)).object == "a"
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await anext(events)
        assert (await anext(events)).object == "b"


@in_virtual_time
async def test_versions_that_are_no_numbers_are_compared_for_equality_alone() -> None:
    source = scripted([event("a", "v9"), event("b", "v10")], [event("b", "v10"), event("c", "v1")])
    async with RetryWatcher(source, "v8", rand=lambda: 0.0) as events:
        assert [(await anext(events)).object for _ in range(3)] == ["a", "b", "c"]


@in_virtual_time
async def test_a_watch_that_fails_while_it_is_closed_does_not_hold_anybody_up() -> None:
    fake = FakeListWatch()

    @contextlib.asynccontextmanager
    async def watch(options: ListOptions) -> AsyncIterator[AsyncIterator[Received[Object]]]:
        try:
            async with fake.watch(options) as events:
                yield events
        finally:
            raise CUT

    source = ListWatch(list=fake.list, watch=watch)
    fake.add(named("a"))
    async with RetryWatcher(source, "1") as events:
        assert (await anext(events)).metadata.key == ObjectName("default", "a")
    assert [event async for event in events] == []
    assert (now(), len(fake.requests)) == (0, 1)
    async with RetryWatcher(source, "1") as events:
        assert (await anext(events)).metadata.key == ObjectName("default", "a")
        obj = Object.from_dict(named("a"))
        fake.send(WatchEvent(EventType.MODIFIED, obj, obj.metadata))
        for _ in range(2):
            with pytest.raises(DecodeError, match="no version"):
                await anext(events)
        await asyncio.sleep(1000)
    assert len(fake.requests) == 2


@in_virtual_time
async def test_what_somebody_else_has_cancelled_is_the_end_and_not_a_silent_one() -> None:
    @contextlib.asynccontextmanager
    async def watch(_: ListOptions) -> AsyncIterator[AsyncIterator[Received[Object]]]:
        other = asyncio.get_running_loop().create_future()
        other.cancel()
        await other
        yield  # type: ignore[misc]

    lw = ListWatch(list=FakeListWatch[Object]().list, watch=watch)
    async with RetryWatcher(lw, "1") as events:
        with pytest.raises(SourceError, match="cancelled elsewhere"):
            await anext(events)
