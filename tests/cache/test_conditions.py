"""Waiting for changes: conditions in order, and what is told when they are not met."""

from __future__ import annotations

import asyncio
import copy

import pytest

from kinform.cache.lister import Lister
from kinform.cache.processor.events import Added, Deleted, Updated
from kinform.cache.shared_informer import SharedInformer
from kinform.cache.watchtools.until import (
    UnmetConditionError,
    WaitTimeoutError,
    WatchClosedError,
    until,
    until_with_sync,
    until_without_retry,
)
from kinform.errors import (
    KinformError,
    ResourceExpiredError,
    TransportError,
    TransportFailure,
    UsageError,
)
from kinform.objects.object import Object
from kinform.rest.options import ListOptions
from kinform.rest.results import WatchEvent
from kinform.sansio.wire.watch import EventType
from kinform.tasks import background
from kinform.testing import FakeListWatch, in_virtual_time

CUT = TransportError("cut", failure=TransportFailure.RESET)
FROM_HERE = ListOptions(resource_version="1", allow_watch_bookmarks=True)


def phase(name: str) -> dict[str, object]:
    return {"metadata": {"name": "web"}, "status": {"phase": name}}


def is_pending(event: WatchEvent[Object]) -> bool:
    return event.object.at("status", "phase") == "Pending"


def is_running(event: WatchEvent[Object]) -> bool:
    return event.object.at("status", "phase") == "Running"


def is_deleted(event: WatchEvent[Object]) -> bool:
    return event.type is EventType.DELETED


def version_of(error: UnmetConditionError) -> str | None:
    last = error.last_event
    return last.metadata.resource_version if isinstance(last, WatchEvent) else None


@in_virtual_time
async def test_conditions_are_met_in_order_and_the_last_event_is_returned() -> None:
    """CG-T09."""
    source = FakeListWatch()
    async with source.watch(FROM_HERE) as events:
        source.add(phase("Running"))  # too early for the second condition
        source.modify(phase("Pending"))
        source.bookmark()
        source.modify(phase("Pending"))
        source.modify(phase("Running"))
        source.delete("web")
        event = await until_without_retry(events, is_pending, is_running)
        assert (event.type, event.metadata.resource_version) == ("MODIFIED", "5")
        following = await anext(events)
        assert isinstance(following, WatchEvent)
        assert following.type == "DELETED"


@in_virtual_time
async def test_one_event_may_meet_several_conditions() -> None:
    """CG-T09."""
    source = FakeListWatch()
    async with source.watch(FROM_HERE) as events:
        source.add(phase("Running"))
        event = await until_without_retry(events, is_running, is_running, lambda _: True)
        assert event.metadata.resource_version == "2"


@in_virtual_time
async def test_a_watch_that_ends_first_is_told_with_its_last_event() -> None:
    """CG-T09."""
    source = FakeListWatch()
    async with source.watch(FROM_HERE) as events:
        source.add(phase("Pending"))
        source.modify(phase("Pending"))
        source.close_watches()
        with pytest.raises(WatchClosedError, match="1 of 2 conditions") as caught:
            await until_without_retry(events, is_pending, is_running)
    assert (caught.value.met, version_of(caught.value)) == (1, "3")
    async with source.watch(ListOptions(resource_version="3")) as events:
        source.close_watches()
        with pytest.raises(WatchClosedError) as caught:
            await until_without_retry(events, is_running)
    assert (caught.value.met, version_of(caught.value)) == (0, None)


@in_virtual_time
async def test_what_a_condition_raises_surfaces() -> None:
    """CG-T09."""
    source = FakeListWatch()

    def refuse(event: WatchEvent[Object]) -> bool:
        raise TimeoutError(event.metadata.name)

    async with source.watch(FROM_HERE) as events:
        source.add(phase("Pending"))
        with pytest.raises(TimeoutError, match="web") as caught:
            await until_without_retry(events, is_pending, refuse, timeout=5)
    assert type(caught.value) is TimeoutError


@in_virtual_time
async def test_what_the_watch_raises_surfaces() -> None:
    source = FakeListWatch()
    async with source.watch(FROM_HERE) as events:
        source.close_watches(CUT)
        with pytest.raises(TransportError):
            await until_without_retry(events, is_running)


@in_virtual_time
async def test_a_wait_that_is_too_long_is_told_with_its_last_event() -> None:
    """CG-T09: interrupted; a TimeoutError for those who know no kinform."""
    source = FakeListWatch()
    source.add(phase("Pending"))
    with pytest.raises(TimeoutError) as caught:
        await until(source, "1", is_pending, is_running, timeout=30)
    error = caught.value
    assert isinstance(error, WaitTimeoutError)
    assert isinstance(error, KinformError)
    assert str(error) == "only 1 of 2 conditions were met within 30 s"
    assert (error.met, version_of(error)) == (1, "2")
    assert asyncio.get_running_loop().time() == 30
    assert source.open_watches == 0


@in_virtual_time
async def test_an_outer_time_out_is_not_taken_for_ours() -> None:
    with pytest.raises(TimeoutError) as caught:
        async with asyncio.timeout(1):
            await until(FakeListWatch(), "1", is_running, timeout=5)
    assert type(caught.value) is TimeoutError


@in_virtual_time
async def test_until_goes_on_over_broken_watches() -> None:
    source = FakeListWatch()
    loop = asyncio.get_running_loop()
    loop.call_later(1, source.add, phase("Pending"))
    loop.call_later(2, source.close_watches, CUT)
    loop.call_later(2.1, source.modify, phase("Running"))
    loop.call_later(30, source.close_watches)
    loop.call_later(30.1, source.delete, "web")
    event = await until(source, "1", is_pending, is_running, is_deleted)
    assert (event.type, event.metadata.resource_version) == ("DELETED", "4")
    assert [request.verb for request in source.requests] == ["watch"] * 3


@in_virtual_time
async def test_until_ends_where_a_resuming_watch_does() -> None:
    source = FakeListWatch()
    source.add(phase("Pending"))
    source.compact()
    with pytest.raises(ResourceExpiredError):
        await until(source, "1", is_running)
    for version in ("", "0"):
        with pytest.raises(UsageError):
            await until(source, version, is_running)


@in_virtual_time
async def test_no_condition_is_a_mistake() -> None:
    with pytest.raises(UsageError, match="no condition is given"):
        await until(FakeListWatch(), "1")


@in_virtual_time
async def test_the_error_shows_no_object_and_can_be_copied() -> None:
    source = FakeListWatch()
    source.add({"metadata": {"name": "web"}, "data": {"password": "secret"}})
    with pytest.raises(WaitTimeoutError) as caught:
        await until(source, "1", is_running, timeout=1)
    assert "secret" not in f"{caught.value!r} {caught.value}"
    again = copy.copy(caught.value)
    assert (again.met, again.last_event) == (0, caught.value.last_event)


# --- until_with_sync


@in_virtual_time
async def test_without_a_precondition_events_count_before_the_cache_is_complete() -> None:
    """CG-T10: no precondition, so nothing waits for the sync: the first object will do."""
    source = FakeListWatch()
    source.add({"metadata": {"name": "a"}})
    event = await until_with_sync(source, lambda event: event.key.name == "a", timeout=5)
    assert isinstance(event, Added)
    assert event.initial


@in_virtual_time
async def test_a_precondition_waits_for_the_sync() -> None:
    """CG-T10: a list that never comes makes the precondition wait, until the time is over."""
    source = FakeListWatch()
    source.hang_watches()
    with pytest.raises(WaitTimeoutError, match=r"0 of 1 conditions .* 5 s"):
        await until_with_sync(source, lambda _: True, precondition=lambda _: True, timeout=5)


@in_virtual_time
async def test_a_precondition_that_is_met_ends_the_wait() -> None:
    """CG-T10: the cache is complete when it is asked, and nothing more is waited for."""
    source = FakeListWatch()
    for name in "ab":
        source.add({"metadata": {"name": name}})
    seen: list[int] = []

    def has_both(lister: Lister[Object]) -> bool:
        seen.append(len(lister.list()))
        return True

    assert await until_with_sync(source, lambda _: False, precondition=has_both) is None
    assert seen == [2]


@in_virtual_time
async def test_a_precondition_that_is_not_met_leads_to_the_conditions() -> None:
    """CG-T10: then the conditions are met one after the other, also across an expired version."""
    source = FakeListWatch()
    source.add({"metadata": {"name": "a"}})
    async with background(
        until_with_sync(
            source,
            lambda event: isinstance(event, Updated),
            lambda event: isinstance(event, Deleted),
            precondition=lambda _: False,
            timeout=600,
        )
    ) as waiting:
        await source.wait_for_watches()
        source.modify({"metadata": {"name": "a"}, "data": {"n": "1"}})
        await source.wait_delivered()
        source.delete("default/a", drop=True)
        source.compact()
        source.close_watches()
        event = await waiting
    assert isinstance(event, Deleted)
    assert event.final_state_unknown


@in_virtual_time
async def test_without_conditions_there_is_nothing_to_wait_for() -> None:
    with pytest.raises(UsageError, match="no condition is given"):
        await until_with_sync(FakeListWatch())


# --- an informer as a watch


@pytest.mark.parametrize("supports_watch_list", [True, False])
@in_virtual_time
async def test_an_informers_events_are_a_watch_that_never_ends(supports_watch_list: bool) -> None:
    """CG-T11: complete with streamed and with plain lists; ends cleanly with events unread."""
    source = FakeListWatch(supports_watch_list=supports_watch_list)
    source.add({"metadata": {"name": "a"}})
    informer = SharedInformer(source)
    events = informer.events()
    async with informer:
        assert isinstance(await anext(events), Added)
        source.modify({"metadata": {"name": "a"}, "data": {"n": "1"}})
        source.delete("default/a")
        assert isinstance(await anext(events), Updated)
        assert isinstance(await anext(events), Deleted)
        source.add({"metadata": {"name": "unread"}})
        await source.wait_delivered()
    assert [event.key.name async for event in events] == ["unread"]


@in_virtual_time
async def test_what_a_relist_misses_is_deleted_with_its_last_state() -> None:
    """CG-T12: nobody saw it go, and the event says so."""
    source = FakeListWatch()
    source.add({"metadata": {"name": "a"}, "data": {"n": "7"}})
    informer = SharedInformer(source)
    events = informer.events()
    async with informer:
        await anext(events)
        source.delete("default/a", drop=True)
        source.compact()
        source.close_watches()
        gone = await anext(events)
    assert isinstance(gone, Deleted)
    assert (gone.final_state_unknown, gone.obj.at("data", "n")) == (True, "7")
