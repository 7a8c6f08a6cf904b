"""FakeListWatch: its faults, how to watch its readers, and any sequence of changes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.cache.listwatch import ListerWatcher
from kinform.errors import (
    ApiError,
    TransportError,
    TransportFailure,
    UsageError,
)
from kinform.meta import ObjectName
from kinform.objects.object import Object
from kinform.rest.options import ListOptions
from kinform.rest.pager import ListPager
from kinform.rest.results import Bookmark, Received
from kinform.sansio.wire.watch import EventType
from kinform.selectors import FieldSelector, LabelSelector
from kinform.testing import FakeListWatch, in_virtual_time
from kinform.testing.virtual_time import Livelock, run
from tests.testing.support_fakes import brief, labelled, named, names, watch_events

CUT = TransportError("cut", failure=TransportFailure.RESET)


# --- Faults ---


@in_virtual_time
async def test_errors_are_raised_one_by_one_and_then_all_is_well() -> None:
    source = FakeListWatch()
    source.fail_lists(CUT, ValueError("foreign"))
    for expected in (TransportError, ValueError):
        with pytest.raises(expected):
            await source.list()
    assert len(await source.list()) == 0
    source.fail_watches(CUT)
    with pytest.raises(TransportError):
        await watch_events(source)
    assert await watch_events(source) == []


@in_virtual_time
async def test_the_last_error_may_stay_until_all_is_healed() -> None:
    source = FakeListWatch()
    source.fail_lists(ValueError(), CUT, forever=True)
    for expected in (ValueError, TransportError, TransportError, TransportError):
        with pytest.raises(expected):
            await source.list()
    source.heal()
    assert len(await source.list()) == 0


@in_virtual_time
async def test_a_request_can_hang_and_is_answered_in_the_end() -> None:
    source = FakeListWatch()
    source.hang_lists()
    source.hang_watches()
    loop = asyncio.get_running_loop()
    loop.call_later(60, source.heal)
    loop.call_later(50, source.add, named("a"))
    async with asyncio.TaskGroup() as group:
        listed = group.create_task(source.list())
        watched = group.create_task(watch_events(source))
    assert (loop.time(), len(listed.result())) == (60, 1)
    assert watched.result() == [("ADDED", "a", "2")]


@in_virtual_time
async def test_requests_may_take_their_time() -> None:
    source = FakeListWatch()
    source.latency = 1.5
    await source.list()
    async with source.watch():
        assert asyncio.get_running_loop().time() == 3


@in_virtual_time
async def test_a_frozen_watch_is_silent_for_good() -> None:
    source = FakeListWatch()
    async with source.watch(ListOptions(timeout=30)) as events:
        source.freeze_watches()
        source.add(named("a"))
        source.close_watches()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60):
                await anext(events)
        assert source.open_watches == 1
        assert await watch_events(source, resource_version="1") == [("ADDED", "a", "2")]
    assert source.open_watches == 0


@in_virtual_time
async def test_after_a_restore_no_watch_is_told_a_version_twice() -> None:
    source = FakeListWatch()
    source.add(named("a"))
    source.add(named("b"))
    async with source.watch(ListOptions(resource_version="2")) as events:
        source.restore("2")
        source.add(named("c"))
        source.add(named("d"))
        source.close_watches()
        seen = [brief(received) async for received in events]
    assert seen == [("ADDED", "b", "3"), ("ADDED", "d", "4")]


@in_virtual_time
async def test_versions_go_back_when_etcd_is_restored() -> None:
    source = FakeListWatch()
    source.add(named("a", colour="red"))
    version = source.resource_version
    source.add(named("b"))
    source.modify(named("a", colour="blue"))
    lost = source.resource_version
    options = ListOptions(resource_version=lost, allow_watch_bookmarks=True)
    async with source.watch(options) as events:
        source.restore(version)
        assert source.resource_version == version
        (entry,) = source.entries.values()
        assert entry.object.at("data", "colour") == "red"
        source.add(named("b"))  # version 3 for the second time, and 4
        source.add(named("c"))
        source.bookmark()
        source.add(named("d"))
        source.close_watches()
        seen = [brief(received) async for received in events]
        assert seen == [("BOOKMARK", "", "4"), ("ADDED", "d", "5")]
    assert source.entries[ObjectName("default", "b")].metadata.uid == "uid-3"
    assert await watch_events(source, resource_version=version) == [
        ("ADDED", "b", "3"),
        ("ADDED", "c", "4"),
        ("ADDED", "d", "5"),
    ]


def test_what_is_forgotten_cannot_be_restored() -> None:
    source = FakeListWatch()
    source.add(named("a"))
    source.compact()
    for version in ("1", "3"):
        with pytest.raises(UsageError, match="known are 2 to 2"):
            source.restore(version)
    source.restore("2")


@in_virtual_time
async def test_a_page_of_a_state_that_a_restore_undid_is_too_large() -> None:
    source = FakeListWatch()
    source.add(named("a"))
    source.add(named("b"))
    page = await source.list(ListOptions(limit=1))
    source.restore("2")
    with pytest.raises(ApiError) as caught:
        await names(source, continue_token=page.continue_token)
    assert caught.value.is_resource_version_too_large


# --- Watching the watchers ---


@in_virtual_time
async def test_every_request_is_on_record_also_those_that_failed() -> None:
    source = FakeListWatch()
    source.fail_lists(CUT)
    with pytest.raises(TransportError):
        await source.list(ListOptions(limit=5))
    await asyncio.sleep(2)
    await watch_events(source, resource_version="1")
    assert [(request.verb, request.at) for request in source.requests] == [
        ("list", 0),
        ("watch", 2),
    ]
    assert [request.options for request in source.requests] == [
        ListOptions(limit=5),
        ListOptions(resource_version="1"),
    ]


@in_virtual_time
async def test_tests_can_wait_for_watches_and_requests() -> None:
    source = FakeListWatch()
    loop = asyncio.get_running_loop()

    async def reader(begin: float, end: float) -> None:
        await asyncio.sleep(begin)
        async with source.watch(ListOptions(timeout=end - begin)) as events:
            await asyncio.sleep(0.5)  # a watch is open before it is read
            async for _ in events:
                pass

    async with asyncio.TaskGroup() as group:
        group.create_task(reader(1, 10))
        group.create_task(reader(2, 5))
        await source.wait_for_watches()
        assert loop.time() == 1
        await source.wait_for_requests(2, verb="watch")
        assert loop.time() == 2
        await source.wait_for_watches(2)
        assert (loop.time(), source.open_watches) == (2, 2)
        await source.wait_for_watches(0)
        assert (loop.time(), source.open_watches) == (10, 0)
        loop.call_later(3, lambda: group.create_task(source.list()))
        await source.wait_for_requests(3)
        assert loop.time() == 13
        await source.wait_for_requests(1, verb="list")


@in_virtual_time
async def test_a_wait_that_is_cancelled_leaves_nothing_behind() -> None:
    source = FakeListWatch()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await source.wait_for_watches()
    async with source.watch():
        await source.wait_for_watches()


@in_virtual_time
async def test_tests_can_wait_until_all_was_handled() -> None:
    source = FakeListWatch()
    handled: list[str] = []

    async def reader() -> None:
        async with source.watch() as events:
            async for received in events:
                await asyncio.sleep(3)
                handled.append(brief(received)[1])

    async with asyncio.TaskGroup() as group:
        task = group.create_task(reader())
        await source.wait_for_watches()
        source.add(named("a"))
        source.add(named("b"))
        await source.wait_delivered()
        assert (handled, asyncio.get_running_loop().time()) == (["a", "b"], 6)
        source.add(named("c"))
        await asyncio.sleep(1)  # it is taken by now, and not yet handled
        await source.wait_delivered()
        assert (handled, asyncio.get_running_loop().time()) == (["a", "b", "c"], 9)
        await source.wait_delivered()
        task.cancel()
    await source.wait_delivered()


@in_virtual_time
async def test_leaving_the_block_ends_a_read_in_another_task() -> None:
    source = FakeListWatch()
    async with asyncio.TaskGroup() as group:
        async with source.watch() as events:
            task = group.create_task(anext(events, None))
            await source.wait_delivered()
        assert await task is None


def test_who_lists_or_watches_in_a_hot_loop_is_found_out() -> None:
    async def spin(*, watching: bool) -> None:
        source = FakeListWatch()
        source.fail_lists(CUT, forever=True)
        source.close_watches()
        while True:
            with pytest.raises(TransportError):
                if watching:
                    await watch_events(source)
                    raise CUT
                await source.list()

    for watching in (True, False):
        with pytest.raises(Livelock):
            run(spin(watching=watching), max_turns=100)


async def test_it_works_on_an_ordinary_loop() -> None:
    source = FakeListWatch()
    lw: ListerWatcher[Object] = source
    async with lw.watch(ListOptions(resource_version="1", timeout=0.001)) as events:
        source.add(named("a"))
        assert [brief(received) async for received in events] == [("ADDED", "a", "2")]


# --- Any sequence of changes ---

OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["put", "delete", "compact", "bookmark", "cut", "advance"]),
        st.sampled_from("abc"),
        st.sampled_from(["web", "db"]),
    ),
    max_size=30,
)


@dataclass
class Cache:
    """The state of a reader: the objects by key, and its version."""

    objects: dict[ObjectName, Object]
    version: str

    def apply(self, received: Received[Object]) -> None:
        if isinstance(received, Bookmark):
            assert int(received.resource_version) >= int(self.version)
            self.version = received.resource_version
            return
        assert int(received.metadata.resource_version) > int(self.version)
        key = received.metadata.key
        assert (key in self.objects) == (received.type is not EventType.ADDED)
        if received.type is EventType.DELETED:
            del self.objects[key]
        else:
            self.objects[key] = received.object
        self.version = received.metadata.resource_version


def perform(source: FakeListWatch[Object], operation: str, name: str, app: str) -> None:
    """Change the source; a change that is not possible becomes one that is."""
    is_there = ObjectName("default", name) in source.entries
    if operation == "put" and is_there:
        source.modify(labelled(name, app=app))
    elif operation == "put":
        source.add(labelled(name, app=app))
    elif operation == "delete" and is_there:
        source.delete(name)
    elif operation == "compact":
        source.compact()
    elif operation == "bookmark":
        source.bookmark()
    elif operation == "advance":
        source.advance()


def selected(source: FakeListWatch[Object], labels: str, fields: str) -> Mapping[ObjectName, str]:
    """Return the versions of the source's objects that are selected, worked out once more."""
    return {
        key: entry.metadata.resource_version
        for key, entry in source.entries.items()
        if LabelSelector.parse(labels).matches(entry.metadata.labels)
        and FieldSelector.parse(fields).matches({"metadata.name": key.name}.get)
    }


@pytest.mark.slow
@given(
    before=OPERATIONS,
    after=OPERATIONS,
    labels=st.sampled_from(["", "app=web"]),
    fields=st.sampled_from(["", "metadata.name!=b"]),
    page_size=st.sampled_from([None, 1, 2]),
)
def test_a_list_and_the_watch_from_it_lead_to_the_same_state(
    before: list[tuple[str, str, str]],
    after: list[tuple[str, str, str]],
    labels: str,
    fields: str,
    page_size: int | None,
) -> None:
    @in_virtual_time
    async def scenario() -> None:
        source = FakeListWatch()
        for operation in before:
            perform(source, *operation)
        options = ListOptions(label_selector=labels, field_selector=fields)
        listed = await ListPager(source.list, page_size=page_size).list(options)
        objects = {entry.metadata.key: entry.object for entry in listed.entries()}
        cache = Cache(objects, listed.resource_version)
        remaining = list(after)
        while remaining:
            options = ListOptions(
                label_selector=labels,
                field_selector=fields,
                resource_version=cache.version,
                allow_watch_bookmarks=True,
            )
            async with source.watch(options) as events:
                while remaining and remaining[0][0] != "cut":
                    perform(source, *remaining.pop(0))
                del remaining[:1]
                source.bookmark()  # so that a compaction cannot make the next watch expire
                source.close_watches(None if len(remaining) % 2 else CUT)
                try:
                    async for received in events:
                        cache.apply(received)
                except TransportError:
                    pass
        versions = {key: obj.resource_version for key, obj in cache.objects.items()}
        assert versions == selected(source, labels, fields)

    scenario()
