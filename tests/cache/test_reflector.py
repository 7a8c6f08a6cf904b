"""The reflector runs: what it asks for, what it writes, and how it ends."""

from __future__ import annotations

import asyncio
import itertools
import logging
from typing import Any, Final

import pytest

from kinform.cache.listwatch import ListWatch
from kinform.cache.reflector import Reflector
from kinform.cache.reflector_options import ReflectorOptions
from kinform.cache.store.store import Store
from kinform.errors import (
    KinformError,
    NotFoundError,
    UsageError,
)
from kinform.meta import Entry
from kinform.rest.client import RESTClient
from kinform.rest.results import Bookmark
from kinform.sansio.backoff import Backoff
from kinform.sansio.queue.delta_fifo import DeltaFIFO
from kinform.sansio.queue.deltas import Delta, ReplacedAll
from kinform.sansio.queue.interface import Queue, QueueFactory
from kinform.sansio.queue.real_fifo import RealFIFO
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
from tests.support.scripted import JSON, Answer, answer, connection

DEVIATIONS: Final = {
    "CG-R01": "unreadable data ends the watch, which is resumed once before everything is listed "
    "again; and the error handler is called",
    "CG-R08": "one such watch is resumed after a wait; two in a row make the version suspect, and "
    "that is logged with the reflector's name",
    "CG-R09": "as CG-R08",
    "CG-R10": "an event never moves the version back",
    "CG-R14": "a watch that is refused by an overloaded server is retried without a relist; any "
    "other refusal is raised",
    "CG-R15": "after each wait a probe (a list of one object) checks whether the server was "
    "restored; and the backoff is not reset every two minutes",
    "CG-R19": "internal errors wait too, and their waits grow",
    "CG-R20": "the watch resumes from the last version, without a list",
    "CG-R28": "types are not described by reflection: the resource has the name it was given",
    "CG-R29": "kinds are compared, groups are not",
    "CG-R30": "a shorter value is used as well",
}


# --- Running and stopping


@in_virtual_time
async def test_what_cannot_be_read_ends_the_watch_and_at_last_the_round() -> None:
    """CG-R01: an ERROR event without a Status."""
    page = {"kind": "PodList", "metadata": {"resourceVersion": "5"}, "items": []}
    rubbish = Answer(200, JSON, [b'{"type":"ERROR","object":{"kind":"Pod","code":"x"}}\n'])
    conn, transport = connection(answer(200, page), rubbish, answer(200, page), rubbish)
    told = Told()
    source = ListWatch.from_client(RESTClient(conn), "pods")
    reflector = Reflector(source, Store(), options=PLAIN, watch_error_handler=told)
    await reflector.list_and_watch()
    assert transport.open == 0
    assert len(transport.requests) == 4  # of which one is a look at the server's version
    assert told.kinds == ["DecodeError", "DecodeError"]


@in_virtual_time
async def test_cancelled_while_it_watches_it_leaves_nothing_open() -> None:
    """CG-R02."""
    source = FakeListWatch()
    task = asyncio.get_running_loop().create_task(Reflector(source, Store()).run())
    await source.wait_for_watches()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert source.open_watches == 0


@in_virtual_time
async def test_a_resync_period_of_a_millisecond_is_kept() -> None:
    """CG-R03."""
    source, queue = FakeListWatch(), RealFIFO[Any]()
    asked: list[float] = []

    def should_resync() -> bool:
        asked.append(asyncio.get_running_loop().time())
        return True

    reflector = Reflector(source, queue, resync_period=0.001, should_resync=should_resync)
    async with running(reflector):
        await asyncio.sleep(0.0105)
    assert len(asked) == 10


@in_virtual_time
async def test_stopped_before_it_began_it_asks_for_nothing() -> None:
    """CG-R04."""
    source, told = FakeListWatch(), Told()
    reflector = Reflector(source, Store(), watch_error_handler=told)
    task = asyncio.get_running_loop().create_task(reflector.run())
    task.cancel()
    await asyncio.wait([task])
    assert (list(source.requests), told.errors) == ([], [])


@in_virtual_time
async def test_stopped_soon_it_has_opened_one_watch_and_closed_it() -> None:
    """CG-R05."""
    source, told = Script(lists=[listed(1)]), Told()
    async with running(Reflector(source, Store(), watch_error_handler=told)):
        await asyncio.sleep(0.01)
        assert source.open == 1
    assert (source.open, source.closed, len(source.asked("watch"))) == (0, 1, 1)
    assert told.errors == []


@pytest.mark.parametrize("delay", [pytest.param(0.0, id="CG-R06"), pytest.param(5.0, id="CG-R07")])
@in_virtual_time
async def test_a_stream_that_meets_a_stop_is_read_once_and_closed_once(delay: float) -> None:
    tasks: list[asyncio.Task[None]] = []

    def stop() -> None:
        tasks[0].cancel()

    source = Script(lists=[listed(1)], watches=[(delay, stop, FOREVER)])
    tasks.append(asyncio.get_running_loop().create_task(Reflector(source, Store()).run()))
    await asyncio.wait(tasks)
    assert tasks[0].cancelled()
    assert (source.reads, source.closed, len(source.asked("watch"))) == (1, 1, 1)


@in_virtual_time
async def test_a_round_that_is_stopped_ends_as_stopped() -> None:
    """CG-R11: as any other task."""
    source = FakeListWatch()
    reflector = Reflector(source, Store())
    task = asyncio.get_running_loop().create_task(reflector.list_and_watch())
    await source.wait_for_watches()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert (len(source.requests), source.open_watches) == (1, 0)


@in_virtual_time
async def test_it_can_be_run_again_and_goes_on_from_what_it_has() -> None:
    source, store = FakeListWatch(), Store[Any]()
    source.add(config("a"))
    reflector = Reflector(source, store, options=PLAIN)
    for name in "bcd":
        async with running(reflector):
            await source.wait_for_watches()
            source.add(config(name))
            await source.wait_delivered()
    asked = [one.options.resource_version for one in source.requests if one.verb == "list"]
    assert asked == ["", "3", "4"]
    assert shown(store) == there(source)


@in_virtual_time
async def test_two_tasks_cannot_run_it_at_once() -> None:
    reflector = Reflector(FakeListWatch(), Store(), name="pods")
    async with running(reflector):
        await turns()
        with pytest.raises(UsageError, match="pods is being run already"):
            await reflector.list_and_watch()


# --- Watches


@pytest.mark.parametrize("lived", [pytest.param(0.0, id="CG-R08"), pytest.param(0.01, id="CG-R09")])
@in_virtual_time
async def test_two_very_short_watches_make_the_version_suspect(
    lived: float, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    source = Script(lists=[listed(7)], watches=[(lived,), (lived,), (FOREVER,)])
    async with running(Reflector(source, Store(), name="pods", options=PLAIN)):
        await until(lambda: source.open and source.closed == 2)
    asked = without_probes(source.requests)
    assert [one.verb for one in asked] == ["list", "watch", "watch", "list", "watch"]
    assert [one.resource_version for one in source.asked("list")] == ["", "", ""]
    assert "pods: version 7 has expired; listing again" in caplog.messages
    assert source.closed == 3


@in_virtual_time
async def test_events_reach_the_store_and_the_version_is_that_of_the_newest() -> None:
    """CG-R10: an object of another kind is passed over."""
    source = Script(
        lists=[listed(1, entry("foo", 1), entry("bar", 1))],
        watches=[
            (
                event("ADDED", "alien", 50, kind="Service"),
                event("DELETED", "foo", 51),
                event("MODIFIED", "bar", 55),
                event("ADDED", "baz", 32),
                FOREVER,
            )
        ],
    )
    store = Store[Any]()
    reflector = Reflector(source, store, expected_kind="Pod")
    async with running(reflector):
        await turns(50)
    versions = {key.name: store.entries.get(key) for key in store.list_keys()}
    assert {n: e.metadata.resource_version for n, e in versions.items() if e} == {
        "bar": "55",
        "baz": "32",
    }
    assert reflector.last_sync_resource_version == "55"
    statistics = reflector.statistics()
    assert (statistics.events, statistics.ignored) == (3, 1)


@pytest.mark.parametrize("first", ["", "0"])
@in_virtual_time
async def test_a_plain_list_in_pages_is_followed_by_a_watch_from_its_version(first: Any) -> None:
    """CG-R13.

    CG-R13 differs: the first list asks for the newest state, unless first_version="0" is given.
    """
    source, store = FakeListWatch(), Store[Any]()
    source.add(config("a"))
    options = ReflectorOptions(stream_lists=False, first_version=first)
    async with running(Reflector(source, store, options=options)):
        await source.wait_for_watches()
    plain_list, watch = (one.options for one in source.requests)
    assert (plain_list.resource_version, plain_list.limit) == (first, 500)
    assert plain_list.resource_version_match == ("NotOlderThan" if first else None)
    assert (watch.resource_version, watch.allow_watch_bookmarks) == ("2", True)
    assert watch.send_initial_events is None
    assert shown(store) == there(source)


@in_virtual_time
async def test_a_round_reports_the_error_of_its_list_or_of_its_watch() -> None:
    """CG-R14."""
    gone = said(404)
    source = Script(
        lists=[listed(1, entry("a", 1)), said(500), listed(3, entry("b", 3)), listed(4)],
        watches=[(2.0, said(410)), gone, (2.0, said(410))],
    )
    store = Store[Any]()
    reflector = Reflector(source, store, options=PLAIN)
    await reflector.list_and_watch()
    assert names(store) == {"a"}
    with pytest.raises(KinformError, match="500"):
        await reflector.list_and_watch()
    assert names(store) == {"a"}
    with pytest.raises(NotFoundError) as caught:
        await reflector.list_and_watch()
    assert caught.value is gone
    assert names(store) == {"b"}
    await reflector.list_and_watch()
    assert names(store) == set()


@in_virtual_time
async def test_a_round_lasts_until_a_list_is_needed() -> None:
    """CG-R14: F-R11, a server in trouble is no reason to list."""
    source = Script(lists=[listed(1)], watches=[said(503), said(500), CUT, (2.0, said(410))])
    reflector = Reflector(source, Store(), options=PLAIN)
    await reflector.list_and_watch()
    assert reflector.statistics().lists == 1
    assert reflector.statistics().watches == 4


@in_virtual_time
async def test_refused_connections_wait_longer_and_longer_without_a_list() -> None:
    """CG-R15: up to a bound."""
    source = FakeListWatch()
    source.fail_watches(*[REFUSED] * 40)
    reflector = Reflector(source, Store(), options=PLAIN, rand=lambda: 0.0)
    async with running(reflector):
        await source.wait_for_watches()
    tries = [one.at for one in source.requests if one.verb == "watch"]
    waits = [round(b - a, 3) for a, b in itertools.pairwise(tries)]
    assert waits[:7] == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0]
    assert set(waits[6:]) == {30.0}
    assert len(tries) == 41
    statistics = reflector.statistics()
    assert (statistics.lists, statistics.probes, statistics.failures) == (1, 40, 40)


@in_virtual_time
async def test_an_hour_without_a_server_is_met_with_long_waits_from_beginning_to_end() -> None:
    """8.3, finding 1: the waits do not start afresh every two minutes."""
    source = FakeListWatch()
    source.fail_lists(REFUSED, forever=True)
    source.fail_watches(REFUSED, forever=True)
    async with running(Reflector(source, Store(), options=PLAIN)):
        await asyncio.sleep(3600)
    late = [one.at for one in source.requests if one.at > 130]
    assert min(b - a for a, b in itertools.pairwise(late)) >= 30
    assert_in_budget(source.requests)


@in_virtual_time
async def test_the_callers_own_back_off_is_used() -> None:
    """CG-R16. There are five openings: a sixth would be paced (`OpeningBudget`)."""
    source = FakeListWatch()
    source.fail_watches(*[REFUSED] * 4)
    options = ReflectorOptions(stream_lists=False, backoff=Backoff(first=0.01, cap=0.1))
    async with running(Reflector(source, Store(), options=options, rand=lambda: 0.0)):
        await source.wait_for_watches()
        assert asyncio.get_running_loop().time() == pytest.approx(0.15)


@in_virtual_time
async def test_too_many_requests_costs_one_wait_as_an_answer_and_one_as_an_event() -> None:
    """CG-R17: the server's own wish is kept to."""
    source = Script(
        lists=[listed(7)],
        watches=[said(429), (said(429, retry_after=9.0),), (FOREVER,)],
    )
    async with running(Reflector(source, Store(), options=PLAIN, rand=lambda: 0.0)):
        await until(lambda: source.open)
    asked = without_probes(source.requests)
    assert [one.at for one in asked] == pytest.approx([0.0, 0.0, 0.8, 9.8])


@in_virtual_time
async def test_too_many_requests_is_no_reason_to_list() -> None:
    """CG-R18."""
    source = FakeListWatch()
    source.fail_watches(*[said(429)] * 4)
    async with running(Reflector(source, Store(), options=PLAIN)):
        await source.wait_for_watches()
    assert [one.verb for one in without_probes(source.requests)] == ["list"] + ["watch"] * 5


@pytest.mark.parametrize(
    ("window", "watches"),
    [pytest.param(0.0, 1, id="CG-R19-none"), pytest.param(30.0, 7, id="CG-R19-half-a-minute")],
)
@in_virtual_time
async def test_internal_errors_are_retried_on_the_watch_as_long_as_allowed(
    window: float, watches: int
) -> None:
    """8.3, finding 9: every one of them waits."""
    source = Script(lists=[listed(7)], watches=[(said(500),)])
    options = ReflectorOptions(stream_lists=False, internal_error_window=window)
    await Reflector(source, Store(), options=options, rand=lambda: 0.0).list_and_watch()
    tries = [one.at for one in source.requests if one.verb == "watch"]
    assert tries == pytest.approx([0.0, 0.8, 2.4, 5.6, 12.0, 24.8, 50.4][:watches])


@in_virtual_time
async def test_a_quiet_minute_opens_the_window_for_internal_errors_anew() -> None:
    """CG-R19, CG-R36."""
    source = Script(
        lists=[listed(7)],
        watches=[(said(500),), (20.0, said(500)), (70.0, said(500)), (said(500),)],
    )
    options = ReflectorOptions(stream_lists=False, internal_error_window=10.0)
    reflector = Reflector(source, Store(), options=options, rand=lambda: 0.0)
    await reflector.list_and_watch()
    assert len(source.asked("watch")) == 2
    await reflector.list_and_watch()
    assert len(source.asked("watch")) >= 5, "the one after 70 s was borne with"


@in_virtual_time
async def test_a_resync_that_fails_ends_the_watch_but_not_the_reflector() -> None:
    """CG-R20: the second one fails."""
    source, told = FakeListWatch(), Told()
    resyncs: list[float] = []

    class Odd(Store[Any]):
        def resync(self) -> None:
            resyncs.append(asyncio.get_running_loop().time())
            if len(resyncs) == 2:
                raise RuntimeError

    reflector = Reflector(source, Odd(), resync_period=10, watch_error_handler=told, options=PLAIN)
    async with running(reflector):
        await asyncio.sleep(19)
        assert source.open_watches == 1
        await asyncio.sleep(1)
        await turns()
        assert (source.open_watches, len(resyncs)) == (0, 2)
        await source.wait_for_watches()
        await asyncio.sleep(10)
    asked = without_probes(source.requests)
    assert [one.verb for one in asked] == ["list", "watch", "watch"]
    assert told.kinds == ["SourceError"]
    assert isinstance(told.errors[0].__cause__, RuntimeError)
    assert len(resyncs) == 3


@in_virtual_time
async def test_nothing_is_resynced_before_there_was_a_list() -> None:
    source, queue = FakeListWatch(), RealFIFO[Any]()
    source.hang_lists()
    async with running(Reflector(source, queue, options=PLAIN, resync_period=1)):
        await asyncio.sleep(10)
        assert queue.is_empty


# --- What is written


@pytest.mark.parametrize("name", [None, "v1/pods"])
@in_virtual_time
async def test_what_is_reflected_has_a_name_in_every_line_that_is_logged(
    name: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """CG-R28."""
    source = Script(
        lists=[said(503), listed(1)], watches=[(event("ADDED", "", 2),), (said(410),), (FOREVER,)]
    )
    named: dict[str, Any] = {} if name is None else {"name": name}
    reflector = Reflector(source, Store(), options=PLAIN, **named)
    async with running(reflector):
        await until(lambda: source.open and source.closed == 2)
    assert reflector.name == (name or "reflector")
    assert len(caplog.messages) >= 3
    assert all(message.startswith(f"{reflector.name}: ") for message in caplog.messages)


@pytest.mark.parametrize("expected", [None, "Pod"])
@in_virtual_time
async def test_kinds_are_checked_where_one_was_given(expected: str | None) -> None:
    """CG-R29: and only for objects that say which they are."""
    source = Script(
        lists=[listed(1)],
        watches=[
            (
                event("ADDED", "pod", 2),
                event("ADDED", "untold", 3, kind=""),
                event("ADDED", "service", 4, kind="Service"),
                FOREVER,
            )
        ],
    )
    store = Store[Any]()
    async with running(Reflector(source, store, expected_kind=expected)):
        await turns(50)
    assert names(store) == {"pod", "untold"} | (set() if expected else {"service"})


@pytest.mark.parametrize(
    ("wanted", "least", "most"),
    [
        pytest.param(None, 300, 600, id="CG-R30-by-default"),
        pytest.param(1.0, 1, 2, id="CG-R30-a-second"),
        pytest.param(1800.0, 1800, 3600, id="CG-R30-half-an-hour"),
    ],
)
@in_virtual_time
async def test_watches_are_asked_to_last_as_long_as_wanted_and_up_to_twice_that(
    wanted: float | None, least: float, most: float
) -> None:
    source = FakeListWatch()
    options = ReflectorOptions() if wanted is None else ReflectorOptions(watch_timeout=wanted)
    async with running(Reflector(source, Store(), options=options)):
        await asyncio.sleep(max(20 * most, 180))  # there are at most 8 in any minute
    timeouts = [one.options.timeout or 0 for one in source.requests if one.verb == "watch"]
    assert len(timeouts) >= 15
    assert all(least <= timeout <= most for timeout in timeouts)
    assert len(set(timeouts)) > 1


@in_virtual_time
async def test_a_store_is_told_each_version() -> None:
    """CG-R31: of the list, of every event, of every bookmark."""
    told: list[str] = []

    class Watcher(Store[Any]):
        def add(self, entry: Entry[Any]) -> Entry[Any] | None:
            told.append(entry.metadata.resource_version)
            return super().add(entry)

        update = add

        def delete(self, item: Any) -> Entry[Any] | None:
            told.append(item.metadata.resource_version)
            return super().delete(item)

        def replace(self, entries: Any, resource_version: str, *, afresh: bool = False) -> Any:
            told.append(resource_version)
            return super().replace(entries, resource_version, afresh=afresh)

        def bookmark(self, resource_version: str) -> None:
            told.append(resource_version)
            super().bookmark(resource_version)

    changes = (event("MODIFIED", "a", 20), Bookmark("30"), event("DELETED", "a", 40), FOREVER)
    source = Script(lists=[listed(10, entry("a", 10))], watches=[changes])
    store = Watcher()
    async with running(Reflector(source, store)):
        await turns(50)
    assert told == ["10", "20", "30", "40"]
    assert store.resource_version == "40"


@in_virtual_time
async def test_an_object_that_the_server_cannot_read_any_more_is_dropped_by_a_list() -> None:
    """CG-R33: the rest stays."""
    source, store, told = FakeListWatch(), Store[Any](), Told()
    for name in "abc":
        source.add(config(name))
    async with running(Reflector(source, store, watch_error_handler=told)):
        await source.wait_for_watches()
        await source.wait_delivered()
        source.delete("default/b", drop=True)
        source.close_watches(said(500, "StoreReadError"))
        await until(lambda: len(store) == 2)
    assert names(store) == {"a", "c"}
    assert shown(store) == there(source)
    assert told.kinds == ["ApiError"]


@pytest.mark.parametrize("make", [RealFIFO, DeltaFIFO])
@pytest.mark.parametrize("options", [ReflectorOptions(), PLAIN], ids=["streamed", "plain"])
@in_virtual_time
async def test_a_transform_runs_once_for_each_object_that_comes(
    make: QueueFactory, options: ReflectorOptions
) -> None:
    """CG-R34: whichever queue is used. 8.3, finding 10.

    CG-R34 differs: it runs three times for three objects, not twice for those of a streamed list.
    """
    source, calls = FakeListWatch(), list[str]()
    queue: Queue[Any] = make()
    source.add(config("a"))
    source.add(config("b"))

    def transform(obj: Any) -> Any:
        calls.append(obj.metadata.name)
        return {**obj.to_dict(), "transformed": True}

    async with running(Reflector(source, queue, transform=transform, options=options)):
        await source.wait_for_watches()
        source.add(config("c"))
        await source.wait_delivered()
    assert calls == ["a", "b", "c"]
    entries: list[Entry[Any]] = []
    while batch := queue.pop_batch():
        if isinstance(batch.content, ReplacedAll):
            entries += batch.content.entries.values()
        elif isinstance(batch.content, list):
            deltas: list[Delta[Any]] = batch.content
            entries += [delta.entry for delta in deltas if delta.entry]
        queue.done(batch)
    assert len(entries) == 3
    assert all(one.object["transformed"] for one in entries)
