"""What goes wrong between a reflector and its server, and that the store equals it afterwards.

Every test here also checks the budget (8 lists and 8 watches in any minute) and that nothing is
left open: `following` does that.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kinform.cache.reflector import Reflector
from kinform.cache.reflector_options import ReflectorOptions
from kinform.cache.store.store import Store
from kinform.errors import (
    KinformError,
    ResourceVersionRegressed,
    UnknownResourceError,
    api_error,
)
from kinform.objects.object import Object
from kinform.rest.options import ListOptions
from kinform.rest.results import Bookmark, ListResult
from kinform.sansio.queue.real_fifo import RealFIFO
from kinform.testing import FakeListWatch, in_virtual_time
from kinform.testing.virtual_time import run
from tests.cache.support_reflector import (
    CUT,
    FOREVER,
    PLAIN,
    Front,
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
    until,
    without_probes,
)
from tests.cache.test_reflector_lists import FORMS


def filled(count: int = 3) -> FakeListWatch[Object]:
    source = FakeListWatch()
    for number in range(count):
        source.add(config(f"c{number}"))
    return source


def now() -> float:
    return asyncio.get_running_loop().time()


# --- Silence


@in_virtual_time
async def test_a_watch_that_says_nothing_is_ended_ten_seconds_after_its_time() -> None:
    """F-R01 (b), F-R15: on a server that sends no bookmarks."""
    source, told = filled(), Told()
    options = ReflectorOptions(stream_lists=False, probe_period=None)
    async with following(
        source, options=options, rand=lambda: 0.0, watch_error_handler=told
    ) as reflector:
        source.freeze_watches()
        source.add(config("missed"))
        await asyncio.sleep(309)
        assert reflector.statistics().watches == 1
        await until(lambda: reflector.statistics().watches == 2, within=5)
    assert told.kinds == ["TransportError"]
    assert "did not end 310 s after its start" in str(told.errors[0])
    assert [one.verb for one in source.requests] == ["list", "watch", "list", "watch"]
    assert source.requests[2].options.limit == 1, "a probe, no list"
    assert source.requests[3].options.resource_version == "4"


@in_virtual_time
async def test_a_watch_that_had_bookmarks_may_be_silent_for_150_seconds() -> None:
    """F-R01 (c)."""
    source, told = filled(), Told()
    async with following(source, options=PLAIN, watch_error_handler=told) as reflector:
        for _ in range(2):
            await asyncio.sleep(60)
            source.bookmark()
        await source.wait_delivered()
        source.freeze_watches()
        source.add(config("missed"))
        await asyncio.sleep(149)
        assert reflector.statistics().watches == 1
        await until(lambda: reflector.statistics().watches == 2, within=5)
    assert "silent for 150 s" in str(told.errors[0])
    assert reflector.statistics().lists == 1


@in_virtual_time
async def test_bookmarks_every_minute_keep_a_quiet_watch_open() -> None:
    source = filled()
    async with following(source, options=PLAIN, rand=lambda: 0.9) as reflector:
        for _ in range(9):
            await asyncio.sleep(60)
            source.bookmark()
        assert (reflector.statistics().watches, reflector.statistics().failures) == (1, 0)


@pytest.mark.parametrize("bookmarks", ["none", "the end of the list only", "the first only"])
@in_virtual_time
async def test_bookmarks_are_a_bonus(bookmarks: str) -> None:
    """F-R15: a quiet kind without them is not connected to again and again.

    Events have no watch cache: the only bookmark of their watches is the end of a streamed list.
    """
    source, told = filled(), Told()
    options = PLAIN if bookmarks != "the end of the list only" else ReflectorOptions()
    async with following(
        source, options=options, within=400, watch_error_handler=told
    ) as reflector:
        if bookmarks == "the first only":
            source.bookmark()
        await asyncio.sleep(1500)
        source.add(config("late"))
    assert told.errors == []
    assert reflector.statistics().watches <= 6
    assert reflector.statistics().lists == 1


@in_virtual_time
async def test_a_bookmark_from_the_past_is_counted_and_nothing_else() -> None:
    """F-R15."""
    source, store = filled(), Store[Any]()
    async with following(source, store=store, options=PLAIN) as reflector:
        source.send(Bookmark("1"), Bookmark(""))
        await source.wait_delivered()
        assert reflector.last_sync_resource_version == store.resource_version == "4"
    assert reflector.statistics().stale_bookmarks == 1


@in_virtual_time
async def test_a_server_that_is_wedged_and_goes_on_is_followed_again() -> None:
    """F-R02: it answers nothing for a quarter of an hour, and closes nothing either."""
    source = filled()
    async with following(source, within=400) as reflector:
        source.freeze_watches()
        source.hang_lists()
        source.hang_watches()
        source.add(config("missed"))
        await asyncio.sleep(900)
        assert reflector.statistics().failures >= 1
        assert not reflector.statistics().is_connected
        source.heal()
    assert reflector.statistics().lists == 1


# --- Watches that end


@in_virtual_time
async def test_a_server_that_closes_every_watch_at_once_is_not_asked_more_than_it_can_bear() -> (
    None
):
    """F-R03: two in a row make the version suspect."""
    source = filled()
    front = Front(source)
    async with following(source, front, options=PLAIN) as reflector:
        front.ends = True
        source.close_watches()
        source.add(config("missed"))
        await asyncio.sleep(60)
        assert reflector.statistics().lists >= 2
        front.ends = False


@pytest.mark.slow
@in_virtual_time
async def test_thousands_of_watches_that_end_at_once_take_a_day() -> None:
    """No answer of a server makes it loop hot, however long it goes on."""
    source = Script(lists=[listed(7)], watches=[()])
    async with running(Reflector(source, Store(), options=PLAIN)):
        await asyncio.sleep(86_400)
    assert 1_000 < len(source.asked("watch")) < 86_400 / 25
    assert len(source.requests) < 2 * 86_400 / 25
    assert_in_budget(source.requests[:500])


async def meets(error: KinformError, *, for_a_minute: bool, options: ReflectorOptions) -> None:
    source = filled()
    front = Front(source)
    async with following(source, front, options=options, within=130) as reflector:
        before = reflector.statistics().lists
        source.close_watches(error)
        source.modify(config("c1", "blue"))
        front.ends = error if for_a_minute else False
        await asyncio.sleep(60)
        front.ends = False
    assert reflector.statistics().failures >= 1
    if not for_a_minute:
        assert reflector.statistics().lists - before <= 2


@pytest.mark.slow
@pytest.mark.parametrize("for_a_minute", [False, True], ids=["once", "for a minute"])
@pytest.mark.parametrize("options", [ReflectorOptions(), PLAIN], ids=["streamed", "plain"])
def test_any_error_within_a_watch_is_survived(
    for_a_minute: bool, options: ReflectorOptions
) -> None:
    """F-R05: every code from 400 to 599."""
    for code in range(400, 600):
        run(meets(said(code), for_a_minute=for_a_minute, options=options))


@pytest.mark.parametrize("form", range(3))
@pytest.mark.parametrize("place", ["answer", "event"])
@pytest.mark.parametrize("options", [ReflectorOptions(), PLAIN], ids=["streamed", "plain"])
@in_virtual_time
async def test_a_version_from_the_future_leads_to_one_consistent_list(
    form: int, place: str, options: ReflectorOptions
) -> None:
    """F-R06: in all the forms that servers have said so."""
    source, told, error = filled(), Told(), api_error(FORMS[form])
    async with following(source, options=options, watch_error_handler=told) as reflector:
        before = len(source.requests)
        if place == "answer":
            source.close_watches()
            source.fail_watches(error)
        else:
            source.close_watches(error)
        source.add(config("missed"))
        await until(lambda: reflector.statistics().lists == 2)
    asked = [one.options for one in without_probes(source.requests[before:])]
    newest = [one for one in asked if not one.resource_version]
    assert len(newest) == 1
    assert len(told.errors) == 1


# --- Versions


@pytest.mark.parametrize("watch_timeout", [300.0, 60.0, 20.0])
@in_virtual_time
async def test_a_restored_server_is_noticed_though_its_watches_stay_open(
    watch_timeout: float,
) -> None:
    """F-R07: however short they are; without a probe the cache would be blind."""
    source, told = filled(), Told()
    source.advance(1000)
    options = ReflectorOptions(stream_lists=False, watch_timeout=watch_timeout)
    store = Store[Any]()
    async with following(source, store=store, options=options, watch_error_handler=told):
        source.modify(config("c0", "blue"))
        await source.wait_delivered()
        await asyncio.sleep(100)
        source.restore("4")
        source.modify(config("c1", "green"))
        source.delete("default/c2")
        restored = now()
        await until(lambda: shown(store) == there(source), within=340)
        assert now() - restored <= 340
    regressed = [error for error in told.errors if isinstance(error, ResourceVersionRegressed)]
    assert [(error.before, error.now) for error in regressed] == [("1005", "6")]


@pytest.mark.parametrize("options", [ReflectorOptions(), PLAIN], ids=["streamed", "plain"])
@in_virtual_time
async def test_a_restored_server_is_noticed_soon_after_a_lost_connection(
    options: ReflectorOptions,
) -> None:
    """F-R07."""
    source, store, told = filled(), Store[Any](), Told()
    source.advance(1000)
    async with following(
        source, store=store, options=options, watch_error_handler=told
    ) as reflector:
        source.modify(config("c0", "blue"))
        await source.wait_delivered()
        source.restore("4")
        source.delete("default/c2")
        source.close_watches(CUT)
        await until(lambda: shown(store) == there(source), within=10)
    assert "ResourceVersionRegressed" in told.kinds
    assert reflector.statistics().regressions == 1
    assert reflector.last_sync_resource_version == source.resource_version


@in_virtual_time
async def test_a_list_that_is_older_than_what_we_had_is_obeyed_and_told() -> None:
    """F-R08: 8.3, finding 11, whoever answered it."""
    source = Script(
        lists=[listed(50, entry("a", 50)), said(410), listed(40, entry("b", 40))],
        watches=[(2.0, said(410)), (FOREVER,)],
    )
    store, told = Store[Any](), Told()
    reflector = Reflector(source, store, options=PLAIN, watch_error_handler=told)
    async with running(reflector):
        await until(lambda: names(store) == {"b"})
    assert isinstance(told.errors[-1], ResourceVersionRegressed)
    assert reflector.last_sync_resource_version == store.resource_version == "40"


@in_virtual_time
async def test_no_reflector_begins_with_whatever_a_lagging_server_has() -> None:
    """F-R08: unless it was asked to, the newest state comes first, also after a restart."""
    source = filled()
    stale = await source.list()

    async def lagging(options: ListOptions) -> ListResult[Object]:
        return stale if options.resource_version == "0" else await source.list(options)

    for number in range(50):
        source.add(config(f"n{number}"))
        store = Store[Any]()
        lw = Front(source, list=lagging, supports_watch_list=number % 2 == 0)
        async with running(Reflector(lw, store)):
            await source.wait_for_watches()
            await source.wait_delivered()
            assert shown(store) == there(source)


# --- Kinds


@in_virtual_time
async def test_a_server_without_versions_and_without_watches_is_listed_again_and_again() -> None:
    """F-R16: RV "", 405 on watch, no uid, no bookmarks."""
    held = [entry("a", "", uid="")]

    class Aggregated(Script):
        async def list(self, options: ListOptions) -> ListResult[Any]:
            await super().list(options)
            return listed("", *held)

    source = Aggregated(lists=[listed("")], watches=[said(405)], supports_watch_list=True)
    store = Store[Any]()
    async with running(Reflector(source, store)):
        await until(lambda: names(store) == {"a"})
        await asyncio.sleep(200)
        held[:] = [entry("b", "", uid="")]
        await until(lambda: names(store) == {"b"}, within=61)
        await asyncio.sleep(300)
    assert_in_budget(source.requests)
    assert all(not one.options.resource_version for one in source.requests)


@pytest.mark.parametrize("version", ["", "0"])
@in_virtual_time
async def test_a_server_without_versions_loses_no_delete(version: str) -> None:
    """F-R16: a watch cannot go on where the last one ended, so a list comes first."""
    held = [entry("a", "", uid=""), entry("b", "", uid="")]

    class Aggregated(Script):
        async def list(self, options: ListOptions) -> ListResult[Any]:
            await super().list(options)
            return listed(version, *held)

    start = (event("ADDED", "a", "", uid=""), 100.0)
    source = Aggregated(lists=[listed("")], watches=[start], supports_watch_list=False)
    store, told = Store[Any](), Told()
    async with running(Reflector(source, store, watch_error_handler=told)):
        await until(lambda: names(store) == {"a", "b"})
        del held[1]
        await until(lambda: names(store) == {"a"}, within=110)
        await asyncio.sleep(1000)
    assert told.errors == []
    assert_in_budget(source.requests)
    assert {one.resource_version for one in source.asked("watch")} == {""}


@in_virtual_time
async def test_an_aggregated_server_may_expire_with_any_answer_and_have_odd_versions() -> None:
    """F-R16: versions are opaque."""
    source = Script(
        lists=[listed("k-7", entry("a", "x")), listed("k-9", entry("b", "y"))],
        watches=[(2.0, event("MODIFIED", "a", "k-8"), said(410)), (FOREVER,)],
    )
    store = Store[Any]()
    async with running(Reflector(source, store, options=PLAIN)):
        await until(lambda: names(store) == {"b"})
    assert [one.resource_version for one in source.asked("list")] == ["", "k-8"]


@pytest.mark.parametrize("options", [ReflectorOptions(), PLAIN], ids=["streamed", "plain"])
@in_virtual_time
async def test_a_kind_that_is_deleted_and_made_again_is_emptied_once_and_filled(
    options: ReflectorOptions,
) -> None:
    """F-R17."""
    source, queue = filled(), RealFIFO[Any]()
    front = Front(source)
    told = Told()
    reflector = Reflector(front, queue, options=options, watch_error_handler=told)

    def popped() -> list[Any]:
        contents = []
        while batch := queue.pop_batch():
            contents.append(batch.content)
            queue.done(batch)
        return contents

    async with running(reflector):
        await source.wait_for_watches()
        assert len(popped()[0].entries) == 3
        before = len(source.requests)
        front.breaks = said(404)
        source.close_watches()
        await until(lambda: len(source.requests) > before)
        front.breaks = UnknownResourceError("widgets", is_gone=True)
        for name in ("c0", "c1", "c2"):
            source.delete(f"default/{name}")
        await asyncio.sleep(150)
        assert len(source.requests) - before <= 12
        assert [len(content.entries) for content in popped()] == [0]
        assert reflector.last_sync_resource_version == ""
        front.breaks = None
        source.restore("1")
        source.add(config("new"))
        await until(lambda: not queue.is_empty, within=61)
        (again,) = popped()
        assert [key.name for key in again.entries] == ["new"]
    assert_in_budget(source.requests)


@in_virtual_time
async def test_a_kind_that_goes_with_its_server_is_emptied_too() -> None:
    """F-R17: after a lost connection one object is listed first, and that is refused as well."""
    source, store = filled(), Store[Any]()
    front = Front(source)
    async with running(Reflector(front, store)):
        await source.wait_for_watches()
        await source.wait_delivered()
        front.breaks = UnknownResourceError("widgets", is_gone=True)
        source.close_watches(CUT)
        began = now()
        await until(lambda: not len(store), within=120)
        assert now() - began >= 30
    assert_in_budget(source.requests)


@pytest.mark.parametrize(
    "error",
    [
        said(404),
        UnknownResourceError("widgets"),
        UnknownResourceError("v1/widgets", served_in=["v2/widgets"]),
    ],
    ids=["404", "discovery is stale", "served in another version"],
)
@in_virtual_time
async def test_nothing_less_than_proof_empties_a_store(error: KinformError) -> None:
    """F-R17: a 404 may be a proxy's."""
    source, store = filled(), Store[Any]()
    front = Front(source)
    async with following(source, front, store=store, within=130):
        front.breaks = error
        source.close_watches()
        await asyncio.sleep(3600)
        assert len(store) == 3
        front.breaks = None


# --- Objects that went unseen


@in_virtual_time
async def test_what_was_deleted_or_made_anew_unseen_is_found_out() -> None:
    """F-R20, F-R21: in an outage that is longer than the server remembers."""
    source, store = filled(10), Store[Any]()
    async with following(source, store=store) as reflector:
        uids = {one.metadata.name: one.metadata.uid for one in store.entries.list()}
        source.close_watches(CUT)
        for number in range(5):
            source.delete(f"default/c{number}")
        source.add(config("c4"))
        source.compact()
        await until(lambda: reflector.statistics().lists == 2)
    after = {one.metadata.name: one.metadata.uid for one in store.entries.list()}
    assert after.keys() == {"c4", "c5", "c6", "c7", "c8", "c9"}
    assert after.pop("c4") != uids["c4"]
    assert after.items() <= uids.items()


@in_virtual_time
async def test_a_server_that_repeats_itself_does_not_take_the_version_back() -> None:
    """F-R22: the next watch goes on from the newest that was seen."""
    changes = [event("ADDED", "a", 2), event("MODIFIED", "a", 3), event("MODIFIED", "a", 4)]
    source = Script(
        lists=[listed(1), listed(4)],
        watches=[(*changes, 2.0), (*changes[:2], 2.0), (FOREVER,)],
    )
    queue = RealFIFO[Any]()
    store = Store[Any]()
    async with running(Reflector(source, queue, options=PLAIN)):
        await until(lambda: len(source.asked("watch")) == 3)
    assert [one.resource_version for one in source.asked("watch")] == ["1", "4", "4"]
    while batch := queue.pop_batch():
        if isinstance(batch.content, list):
            store.apply(batch.content)
        queue.done(batch)
    assert [one.metadata.resource_version for one in store.entries.list()] == ["4"]
