"""Streamed lists (watch-list): one request brings everything and then the changes."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

import pytest

from kinform.cache.listwatch import ListWatch, SourceOptions
from kinform.cache.reflector import Reflector
from kinform.cache.reflector_options import ReflectorOptions
from kinform.cache.store.store import Store
from kinform.errors import DecodeError, KinformError, ResourceExpiredError, SourceError
from kinform.meta import ObjectMeta
from kinform.rest.options import ListOptions
from kinform.rest.results import Bookmark, Unreadable
from kinform.sansio.queue.delta_fifo import DeltaFIFO
from kinform.sansio.queue.interface import Queue, QueueFactory
from kinform.sansio.queue.real_fifo import RealFIFO
from kinform.sansio.wire.watch import EventType
from kinform.testing import FakeListWatch, in_virtual_time
from tests.cache.support_reflector import (
    CUT,
    FOREVER,
    PLAIN,
    REFUSED,
    Script,
    Told,
    assert_in_budget,
    config,
    end,
    entry,
    event,
    listed,
    names,
    running,
    said,
    shown,
    there,
    turns,
    until,
    without_probes,
)

NOT_APPLICABLE: Final = {
    "CG-W15": "client-go's check of streamed lists in its own test clusters; in kinform, "
    "SharedInformer.verify() checks a running cache",
    "CG-W16": "as CG-W15",
}
DEVIATIONS: Final = {
    "CG-W02": "a stream that is silent for half a minute is abandoned; after two, plain lists",
    "CG-W05": 'the list requests the most recent state, unless first_version="0"',
    "CG-W06": "only a refusal is followed by a plain list at once; other errors wait, and the "
    "second in a row leads to one plain list",
    "CG-W07": "and streams are not tried again for an hour",
    "CG-W10": "the second in a row leads to one plain list, 30 s later at the earliest",
    "CG-W11": "after a wait; and a second such stream leads to one plain list",
    "CG-W17": "no conversion exists: the reflector creates stream options directly",
}


def stream(*steps: Any) -> Script:
    """Return a source of one streamed list, which then stays open."""
    return Script(
        lists=[listed(9, entry("plain", 9))],
        watches=[(*steps, FOREVER)],
        supports_watch_list=True,
    )


# --- When lists are streamed


@pytest.mark.parametrize(
    ("wanted", "marker", "streams"),
    [
        pytest.param(False, None, False, id="CG-W01-switched-off"),
        pytest.param(True, True, True, id="CG-W01-switched-on"),
        pytest.param(True, False, False, id="CG-W01-source-cannot"),
        pytest.param(True, None, True, id="CG-W01-nothing-said"),
    ],
)
@in_virtual_time
async def test_lists_are_streamed_unless_somebody_says_no(
    wanted: bool, marker: bool | None, streams: bool
) -> None:
    """CG-W18: only a source that says so counts as one that cannot."""
    source = FakeListWatch()

    class Unmarked:
        list = source.list
        watch = source.watch

    lw: Any = Unmarked()
    if marker is not None:
        lw.source_options = SourceOptions(supports_watch_list=marker)
    async with running(Reflector(lw, Store(), options=ReflectorOptions(stream_lists=wanted))):
        await source.wait_for_watches()
    assert (source.requests[0].verb == "watch") is streams


@in_virtual_time
async def test_only_a_source_that_says_so_cannot_stream() -> None:
    """CG-W18."""
    source = FakeListWatch()
    for lw in (
        ListWatch(list=source.list, watch=source.watch),
        ListWatch(list=source.list, watch=source.watch, supports_watch_list=False),
    ):
        async with running(Reflector(lw, Store())):
            await source.wait_for_watches()
    assert [one.verb for one in source.requests] == ["watch", "list", "watch"]


@in_virtual_time
async def test_one_request_brings_the_objects_and_then_the_changes() -> None:
    """CG-R12."""
    source, store = FakeListWatch(), Store[Any]()
    for name in ("foo", "bar"):
        source.add(config(name))
    reflector = Reflector(source, store)
    async with running(reflector):
        await source.wait_for_watches()
        source.add(config("baz"))
        source.modify(config("foo", "blue"))
        source.add(config("qux"))
        source.delete("default/bar")
        await source.wait_delivered()
    assert shown(store) == there(source)
    assert names(store) == {"foo", "baz", "qux"}
    assert reflector.last_sync_resource_version == source.resource_version
    (asked,) = source.requests
    assert asked.options == ListOptions(
        resource_version="",
        resource_version_match="NotOlderThan",
        send_initial_events=True,
        watch=True,
        allow_watch_bookmarks=True,
        timeout=asked.options.timeout,
    )


@in_virtual_time
async def test_a_stream_asks_for_no_pages_and_no_exact_version() -> None:
    """CG-W17: whatever page size the caller wishes for lists."""
    source = FakeListWatch()
    options = ReflectorOptions(page_size=10, first_version="0")
    async with running(Reflector(source, Store(), options=options)):
        await source.wait_for_watches()
        source.compact()
        source.advance()
        source.close_watches(said(410))
        await source.wait_for_requests(2)
    for asked in (one.options for one in source.requests):
        assert (asked.limit, asked.continue_token) == (None, "")
        assert asked.resource_version_match == "NotOlderThan"
    assert [one.options.resource_version for one in source.requests] == ["", "1"]


@pytest.mark.parametrize("first", ["", "0"])
@in_virtual_time
async def test_switched_off_it_is_a_list_and_a_watch(first: Any) -> None:
    """CG-W05."""
    source, store = FakeListWatch(), Store[Any]()
    source.add(config("p1"))
    options = ReflectorOptions(stream_lists=False, first_version=first)
    async with running(Reflector(source, store, options=options)):
        await source.wait_for_watches()
    asked = [(one.verb, one.options.resource_version) for one in source.requests]
    assert asked == [("list", first), ("watch", "2")]
    assert source.requests[0].options.limit == 500
    assert names(store) == {"p1"}


# --- Up to the end bookmark


@in_virtual_time
async def test_a_stream_that_came_to_its_end_wakes_nobody_later() -> None:
    """Fifty informers that have nothing to do are to do nothing."""
    source, store = stream(event("ADDED", "a", 1), 2.0, end(5)), Store[Any]()
    async with running(Reflector(source, store)):
        await until(lambda: len(store) == 1)
        await turns(5)
        loop: Any = asyncio.get_running_loop()
        waiting = [timer.when() - loop.time() for timer in loop._scheduled if not timer.cancelled()]
        assert min(waiting) > 100


@in_virtual_time
async def test_before_its_end_a_stream_has_no_version() -> None:
    """CG-W03, CG-W04: and stopped before it, nothing is in the store."""
    source, store = stream(event("ADDED", "p1", 1), event("MODIFIED", "p1", 5)), Store[Any]()
    reflector = Reflector(source, store)
    async with running(reflector):
        await turns(50)
        assert reflector.statistics().phase == "stream"
    assert reflector.last_sync_resource_version == ""
    assert len(store) == 0


@pytest.mark.parametrize("make", [RealFIFO, DeltaFIFO])
@in_virtual_time
async def test_nothing_of_an_unfinished_stream_reaches_a_queue(make: QueueFactory) -> None:
    """CG-W04."""
    source = stream(event("ADDED", "p1", 1))
    queue: Queue[Any] = make()
    async with running(Reflector(source, queue)):
        await turns(50)
        assert queue.is_empty
        assert not queue.has_synced


@in_virtual_time
async def test_two_objects_and_an_end_are_a_synced_store() -> None:
    """CG-W08, CG-W03: by one request; the version is the end's."""
    source = stream(event("ADDED", "p1", 1), event("ADDED", "p2", 2), end(7))
    store = Store[Any]()
    reflector = Reflector(source, store)
    async with running(reflector):
        await turns(50)
    assert names(store) == {"p1", "p2"}
    assert reflector.last_sync_resource_version == store.resource_version == "7"
    assert len(source.requests) == 1


@in_virtual_time
async def test_what_changes_before_the_end_is_not_in_the_store_as_it_was() -> None:
    """CG-W09."""
    source = stream(
        event("ADDED", "p1", 1),
        event("ADDED", "p2", 2),
        event("MODIFIED", "p1", 3),
        event("ADDED", "p3", 4),
        event("DELETED", "p3", 5),
        end(5),
    )
    store = Store[Any]()
    async with running(Reflector(source, store)):
        await turns(50)
    versions = {e.metadata.name: e.metadata.resource_version for e in store.entries.list()}
    assert versions == {"p1": "3", "p2": "2"}


@in_virtual_time
async def test_a_bookmark_that_says_it_is_not_the_end_is_not_the_end() -> None:
    """CG-W14."""
    source, store = stream(event("ADDED", "p1", 1), Bookmark("5")), Store[Any]()
    reflector = Reflector(source, store)
    async with running(reflector):
        await turns(50)
        assert reflector.statistics().phase == "stream"
    assert len(store) == 0


class Batched(Script):
    """Gives all it has up to the first pause as one batch, as a network read does."""

    def _play(self, steps: Any) -> Any:
        received = [step for step in steps if not isinstance(step, float | Exception)]
        failures = [step for step in steps if isinstance(step, Exception)]

        class Stream:
            async def batches(self) -> Any:
                yield received
                for failure in failures:
                    raise failure
                await asyncio.sleep(1e9)

        return Stream()


@in_virtual_time
async def test_what_follows_the_end_in_the_same_read_is_a_change() -> None:
    source = Batched(
        watches=[
            (
                event("ADDED", "p1", 1),
                end(2),
                event("ADDED", "p2", 3),
                event("DELETED", "p1", 4),
                Bookmark("9"),
            )
        ],
        supports_watch_list=True,
    )
    queue = RealFIFO[Any]()
    reflector = Reflector(source, queue)
    async with running(reflector):
        await turns(50)
    contents = []
    while batch := queue.pop_batch():
        contents.append(type(batch.content).__name__)
        queue.done(batch)
    assert contents == ["ReplacedAll", "list", "Progress"]
    assert reflector.last_sync_resource_version == "9"
    assert reflector.statistics().events == 2


@in_virtual_time
async def test_what_is_added_after_the_end_moves_the_version() -> None:
    """Unlike what is added before it, which is in no order of versions."""
    source = stream(event("ADDED", "p9", 9), end(12), event("ADDED", "p1", 13))
    reflector = Reflector(source, Store[Any]())
    async with running(reflector):
        await turns(50)
    assert reflector.last_sync_resource_version == "13"


@in_virtual_time
async def test_an_error_right_behind_the_end_is_one_of_the_watch() -> None:
    source = Batched(
        lists=[listed(9, entry("p1", 1))],
        watches=[(event("ADDED", "p1", 1), end(2), said(410)), (end(3),)],
        supports_watch_list=True,
    )
    store = Store[Any]()
    async with running(Reflector(source, store)):
        await turns(50)
        assert names(store) == {"p1"}
        await until(lambda: len(source.requests) == 2)
    assert [one.options.resource_version for one in source.requests] == ["", "2"]
    assert source.requests[1].options.send_initial_events


@in_virtual_time
async def test_an_end_without_a_version_is_an_end() -> None:
    """F-R16."""
    source, store = stream(event("ADDED", "p1", 1), end("")), Store[Any]()
    reflector = Reflector(source, store)
    async with running(reflector):
        await turns(50)
        assert (names(store), reflector.statistics().phase) == ({"p1"}, "watch")


@in_virtual_time
async def test_of_an_object_that_cannot_be_read_no_older_state_is_in_the_stream() -> None:
    """F-R27."""
    poison = ObjectMeta(name="p1", namespace="default", uid="u", resource_version="3")
    source = Batched(
        watches=[
            (
                event("ADDED", "p1", 1),
                event("ADDED", "p2", 2),
                Unreadable(poison, DecodeError("too deep"), EventType.MODIFIED),
                end(3),
            )
        ],
        supports_watch_list=True,
    )
    store = Store[Any]()
    reflector = Reflector(source, store)
    async with running(reflector):
        await turns(50)
    assert names(store) == {"p2"}
    assert [key.name for key in reflector.unreadable] == ["p1"]


# --- Failures


@pytest.mark.parametrize("error", [said(403), said(500), SourceError("x"), DecodeError("x")])
@in_virtual_time
async def test_whatever_error_a_stream_meets_a_plain_list_fills_the_store(
    error: KinformError,
) -> None:
    """CG-W06: who may list need not be allowed to watch."""
    source, store = FakeListWatch(), Store[Any]()
    for name in ("p1", "p2"):
        source.add(config(name))
    source.fail_watches(error, error)
    async with running(Reflector(source, store, rand=lambda: 0.0)):
        await source.wait_for_watches()
    assert shown(store) == there(source)
    assert [one.verb for one in source.requests] == ["watch", "watch", "list", "watch"]
    assert [one.at for one in source.requests] == pytest.approx([0.0, 0.8, 2.4, 2.4])


@in_virtual_time
async def test_who_may_list_but_not_watch_has_a_cache_all_the_same() -> None:
    """Lists, as far apart as the back-off gets, follow what changes."""
    source, store = FakeListWatch(), Store[Any]()
    source.fail_watches(said(403), forever=True)
    reflector = Reflector(source, store)
    async with running(reflector):
        for number in range(10):
            source.add(config(f"p{number}"))
            await until(lambda: shown(store) == there(source), within=250)
    assert_in_budget(source.requests)


@pytest.mark.parametrize("code", [422, 400, 405])
@in_virtual_time
async def test_a_server_that_refuses_is_listed_plainly_for_an_hour(code: int) -> None:
    """CG-W07: 8.3, finding 13, it is not asked at every list."""
    source, store = FakeListWatch(), Store[Any]()
    source.add(config("p1"))
    source.fail_watches(said(code))
    async with running(Reflector(source, store)):
        await source.wait_for_watches()
        assert shown(store) == there(source)
        assert [one.verb for one in source.requests] == ["watch", "list", "watch"]
        for minutes in (20, 20, 30):
            await asyncio.sleep(minutes * 60)
            source.advance()
            source.compact()
            source.close_watches(said(410))
            await asyncio.sleep(10)
    streams = [one.at for one in source.requests if one.options.send_initial_events]
    lists = [one.at for one in source.requests if one.verb == "list" and one.options.limit != 1]
    assert (len(streams), len(lists)) == (2, 3)
    assert streams[1] > 4200


@in_virtual_time
async def test_too_many_requests_is_no_reason_for_a_plain_list() -> None:
    """CG-W10."""
    source, store = FakeListWatch(), Store[Any]()
    source.add(config("p1"))
    source.fail_watches(said(429))
    async with running(Reflector(source, store)):
        await source.wait_for_watches()
        await source.wait_delivered()
    assert names(store) == {"p1"}
    first, other = (one.options for one in source.requests)
    assert (other.resource_version, other.send_initial_events) == ("", True)
    assert other.resource_version_match == first.resource_version_match
    assert {one.verb for one in source.requests} == {"watch"}


@pytest.mark.parametrize("asked", [None, 5.0, 60.0])
@in_virtual_time
async def test_too_many_requests_twice_lead_to_one_late_plain_list(asked: float | None) -> None:
    """A server that refuses all watches for ever is still listed (see CG-W10)."""
    source, store = FakeListWatch(), Store[Any]()
    source.add(config("p1"))
    source.fail_watches(said(429, retry_after=asked), forever=True)
    async with running(Reflector(source, store)):
        await until(lambda: names(store) == {"p1"}, within=300)
    verbs = [one.verb for one in source.requests[:3]]
    assert verbs == ["watch", "watch", "list"]
    assert source.requests[2].at - source.requests[1].at >= max(30.0, asked or 0.0)


@in_virtual_time
async def test_a_stream_that_is_cut_is_asked_for_again_from_the_start() -> None:
    """CG-W11: nothing of it is left."""
    source = Script(
        watches=[
            (event("ADDED", "old", 1), event("ADDED", "p1", 2)),
            (event("ADDED", "p1", 2), end(3), FOREVER),
        ],
        supports_watch_list=True,
    )
    store = Store[Any]()
    async with running(Reflector(source, store)):
        await until(lambda: len(store))
    assert names(store) == {"p1"}
    assert [one.resource_version for one in source.asked("watch")] == ["", ""]
    assert all(one.send_initial_events for one in source.asked("watch"))


@in_virtual_time
async def test_two_streams_that_are_cut_lead_to_a_plain_list() -> None:
    """CG-W11: client-go tries for ever, without a pause."""
    source, store = FakeListWatch(), Store[Any]()
    source.add(config("p1"))
    source.ends_initial_events = False
    reflector = Reflector(source, store, options=ReflectorOptions(watch_timeout=5))
    async with running(reflector):
        await until(lambda: len(store))
    assert [one.verb for one in source.requests][:3] == ["watch", "watch", "list"]


@in_virtual_time
async def test_after_its_end_a_stream_that_is_cut_goes_on_as_a_watch() -> None:
    """CG-W12."""
    source, store = FakeListWatch(), Store[Any]()
    for name in ("p1", "p2"):
        source.add(config(name))
    async with running(Reflector(source, store)):
        await source.wait_for_watches()
        await source.wait_delivered()
        source.close_watches()
        source.add(config("p3"))
        await source.wait_for_requests(3)
        await source.wait_for_watches()
        await source.wait_delivered()
    assert shown(store) == there(source)
    _, again = without_probes(source.requests)
    assert (again.verb, again.options.resource_version) == ("watch", "3")
    assert again.options.send_initial_events is None


@in_virtual_time
async def test_if_that_watch_has_expired_the_round_ends_with_that_error() -> None:
    """CG-W13: the store stays."""
    source, store = FakeListWatch(), Store[Any]()
    source.add(config("p1"))
    source.expires_at_start = True
    reflector = Reflector(source, store)
    task = asyncio.get_running_loop().create_task(reflector.list_and_watch())
    await source.wait_for_watches()
    await source.wait_delivered()
    source.add(config("p2"), drop=True)
    source.compact()
    source.close_watches()
    with pytest.raises(ResourceExpiredError):
        await task
    assert names(store) == {"p1"}


@in_virtual_time
async def test_a_wait_within_a_streamed_list_ends_at_once_when_stopped() -> None:
    """8.3, finding 2: client-go's may take a minute."""
    source = FakeListWatch()
    source.fail_watches(REFUSED, forever=True)
    async with running(Reflector(source, Store())):
        await asyncio.sleep(200)  # it waits for half a minute at a time by now
        before = asyncio.get_running_loop().time()
    assert asyncio.get_running_loop().time() == before


# --- Silence


@in_virtual_time
async def test_a_stream_whose_end_is_late_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    """CG-W02: with how long nothing came; never after its end."""
    source = stream(12.0, event("ADDED", "p1", 1), 15.0, end(7))
    async with running(Reflector(source, Store(), name="pods")):
        await asyncio.sleep(100)
    warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert warnings == ["pods: the streamed list has been silent for 10 s"]


@in_virtual_time
async def test_a_server_that_knows_no_end_bookmarks_does_not_keep_us_waiting(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """CG-W02: client-go waits for ever (kubernetes#140890)."""
    source, store, told = FakeListWatch(), Store[Any](), Told()
    source.add(config("p1"))
    source.ends_initial_events = False
    async with running(Reflector(source, store, watch_error_handler=told)):
        await until(lambda: len(store), within=70)
        await asyncio.sleep(3000)
    assert told.kinds == ["TransportError", "TransportError"]
    assert "silent for 30 s" in str(told.errors[0])
    assert caplog.text.count("has been silent for") == 6
    assert_in_budget(source.requests)


@in_virtual_time
async def test_a_queue_without_room_does_not_hold_up_a_stream() -> None:
    """Nothing of it goes to the queue before its end, and a server cuts who reads too slowly."""
    source, store = stream(*(event("ADDED", f"p{n}", n) for n in range(5)), end(9)), Store[Any]()
    waits = 0

    async def wait_for_room() -> None:
        nonlocal waits
        waits += 1
        await asyncio.get_running_loop().create_future()

    async with running(Reflector(source, store, wait_for_room=wait_for_room)):
        await asyncio.sleep(1)
        assert len(store) == 5
        assert waits == 1, "once the list is in the queue"


@in_virtual_time
async def test_a_cut_stream_with_a_known_version_asks_for_nothing_older() -> None:
    source, store = FakeListWatch(), Store[Any]()
    source.add(config("p1"))
    async with running(Reflector(source, store)):
        await source.wait_for_watches()
        await source.wait_delivered()
        source.advance(5)
        source.compact()
        source.close_watches(said(410))
        source.fail_watches(CUT)
        await source.wait_for_requests(3)
        await source.wait_for_watches()
        await source.wait_delivered()
    assert [one.options.resource_version for one in source.requests] == ["", "2", "2"]


@in_virtual_time
async def test_the_option_to_list_plainly_is_kept_to() -> None:
    source = FakeListWatch()
    async with running(Reflector(source, Store(), options=PLAIN)):
        await asyncio.sleep(10_000)
    assert not any(one.options.send_initial_events for one in source.requests)
