"""Informers outlive every fault: without sockets, under virtual time."""

from __future__ import annotations

import asyncio
import itertools
import random
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinform.apiserver import APIServer, faults
from kinform.apiserver.faults import Fault
from kinform.errors import TransportError, TransportFailure
from kinform.testing import in_virtual_time
from kinform.testing.virtual_time import run
from tests.apiserver.faults_world import HOUR, World, until, world

RECOVERABLE: list[Fault] = [
    faults.refuse(verb="watch", resource="configmaps", duration=60),
    faults.refuse(duration=20),
    faults.reset(resource="configmaps", nth=1, times=3),
    faults.reset(after_events=2, times=3),
    faults.reset(verb="list", after_bytes=100, times=2),
    faults.reset(verb="watch", after_bytes=700, times=3),
    faults.close(verb="list", times=2),
    faults.close_watch(after_events=1, resource="configmaps", times=3),
    faults.close(after_bytes=50, times=4),
    faults.half_open(after_events=3, times=2),
    faults.half_open(verb="list", times=1),
    faults.stall(resource="configmaps", duration=100, times=2),
    faults.latency(3, jitter=2),
    faults.drip(size=64, every=0.05, resource="configmaps"),
    faults.gzip(),
    faults.truncate_frame(event=2, times=3),
    faults.corrupt(event=3, verb="watch", times=3),
    faults.corrupt(verb="list", times=2),
    faults.duplicate_events(),
    faults.no_bookmarks(),
    faults.no_bookmarks(initial_end=True),
    faults.no_watch_list(),
    faults.status(401, resource="configmaps", times=2),
    faults.status(410, verb="watch", times=2),
    faults.status(429, retry_after=5, times=3),
    faults.status(500, verb="watch", times=3),
    faults.status(502, text="<html>", times=3),
    faults.status(503, verb="list", times=2),
    faults.error_event(410, after_events=2, times=3),
    faults.error_event(500, times=2),
    faults.error_event(429, after_events=4, times=2),
    faults.error_event(504, after_events=1, times=2),
    faults.stale(revisions=3, verb="watch", times=2),
    faults.stale(seconds=5),
    faults.compact(verb="watch", nth=2),
    faults.clock_offset(-86_400),
]


def twin(fault: Fault) -> Fault:
    """Return the same fault, with counts of its own."""
    return Fault(fault.effect, fault.match)


@pytest.mark.parametrize("fault", RECOVERABLE, ids=repr)
@pytest.mark.parametrize("is_without_watch_list", [False, True], ids=["stream", "list"])
def test_the_cache_equals_the_server_after(fault: Fault, is_without_watch_list: bool) -> None:
    async def check() -> None:
        async with world("a", "b", "c") as here:
            if is_without_watch_list:
                here.server.faults.add(faults.no_watch_list())
            added = here.server.faults.add(twin(fault))
            async with here.informer:
                await here.informer.wait_synced(HOUR)
                await write_a_little(here)
                await here.settled()
                # A second watch, for what happens to second ones.
                here.server.faults.add(faults.close_watch(after_events=1, nth=1))
                await write_a_little(here)
                await until(lambda: added.hits > 0 or _is_moot(added, is_without_watch_list))
                await here.settled()

    run(check())


def _is_moot(fault: Fault, is_without_watch_list: bool) -> bool:
    """There are no lists where they are streamed."""
    return not is_without_watch_list and fault.match.verb == "list"


async def write_a_little(here: World) -> None:
    for number in range(3):
        name = f"n{here.server.cluster.storage.revision}"
        here.create(name)
        await asyncio.sleep(1)
        here.change(name, str(number))
        await asyncio.sleep(30)
    here.delete(here.names()[0])


@pytest.mark.parametrize(
    "fault",
    [
        faults.refuse(),
        faults.stall(),
        faults.stale(revisions=5),
        faults.half_open(after_events=0),
        faults.reset(),
        faults.status(503),
        faults.error_event(410),
    ],
    ids=repr,
)
def test_the_cache_equals_the_server_once_a_lasting_fault_is_removed(fault: Fault) -> None:
    async def check() -> None:
        async with world("a", "b", "c") as here, here.informer:
            await here.informer.wait_synced(HOUR)
            added = here.server.faults.add(twin(fault))
            here.server.faults.add(faults.close_watch(nth=1))
            here.server.cluster.storage.disconnect()  # all watches begin anew
            await write_a_little(here)
            await asyncio.sleep(10)
            assert not here.is_equal()
            here.server.faults.remove(added)
            await here.settled()

    run(check())


@in_virtual_time
async def test_the_cache_equals_a_server_that_was_restored() -> None:
    async with world("a", "b", "c") as here, here.informer:
        await here.informer.wait_synced(HOUR)
        here.delete("a")
        here.server.faults.add(faults.restore(by=2, verb="get"))
        assert await here.get("b") == 200
        assert list(here.on_server()) == ["default/a", "default/b"]
        await here.settled()
        await write_a_little(here)
        await here.settled()


@in_virtual_time
async def test_a_proxy_that_finds_nothing_at_all_empties_no_cache() -> None:
    """F-R17: it says that the kind is gone, and that it knows of no kinds; so it knows nothing."""
    async with world("a", "b", "c") as here, here.informer:
        await here.informer.wait_synced(HOUR)
        proxy = here.server.faults.add(faults.status(404))
        here.server.cluster.storage.disconnect()
        gone: list[str] = []
        here.informer.add_event_handler(on_delete=lambda event: gone.append(str(event.key)))
        await asyncio.sleep(600)
        here.server.faults.remove(proxy)
        here.delete("b")
        await here.settled()
        assert gone == ["default/b"]


@in_virtual_time
async def test_what_was_damaged_in_a_list_is_named_and_comes_with_its_next_change() -> None:
    """It need not wait for `test_a_corrupted_object_is_relisted_even_if_it_does_not_change`."""
    async with world("a", "b", "c") as here:
        here.server.faults.add(faults.no_watch_list())
        here.server.faults.add(faults.corrupt(verb="list", nth=1))
        async with here.informer:
            await here.informer.wait_synced(HOUR)
            assert [key.name for key in here.informer.unreadable] == ["b"]
            assert list(here.in_cache()) == ["default/a", "default/c"]
            here.change("b", "again")
            await until(lambda: not here.informer.unreadable)
            assert here.is_equal()
            assert len(here.in_cache()) == 3


@in_virtual_time
async def test_what_was_damaged_in_a_watch_is_asked_for_again() -> None:
    """F-R23: no event is skipped, least of all one that a proxy has damaged."""
    async with world("a", "b", "c") as here, here.informer:
        await here.informer.wait_synced(HOUR)
        here.server.faults.add(faults.corrupt(event=2, verb="watch", nth=1))
        here.server.cluster.storage.disconnect()  # the next watch is the one that is hit
        for name in "abc":
            here.change(name, "again")
        await until(here.is_equal)
        assert not here.informer.unreadable
        assert here.informer.statistics().reflector.lists == 1


@in_virtual_time
async def test_an_object_that_is_always_corrupted_is_quarantined_and_costs_one_more_watch() -> None:
    async with world("a", "b", "c") as here, here.informer:
        await here.informer.wait_synced(HOUR)
        here.server.faults.add(faults.corrupt(event=1, verb="watch"))
        here.server.cluster.storage.disconnect()
        opened = here.informer.statistics().reflector.watches
        here.change("b", "again")
        await until(lambda: bool(here.informer.unreadable))
        assert [key.name for key in here.informer.unreadable] == ["b"]
        here.change("c", "again")
        await until(here.is_equal)
        assert here.informer.statistics().reflector.watches == opened + 2


@pytest.mark.parametrize("verb", ["list", "watch"])
@in_virtual_time
async def test_a_corrupted_object_is_relisted_even_if_it_does_not_change(
    verb: Literal["list", "watch"],
) -> None:
    """F-R23: a relist does not wait for a change that may never come."""
    async with world("a", "b", "c") as here:
        if verb == "list":
            here.server.faults.add(faults.no_watch_list())
        damage = here.server.faults.add(faults.corrupt(verb=verb))
        async with here.informer:
            await here.informer.wait_synced(HOUR)
            if verb == "watch":
                here.server.cluster.storage.disconnect()
                here.change("b", "again")
            await until(lambda: bool(here.informer.unreadable))
            here.server.faults.remove(damage)
            since, lists = asyncio.get_running_loop().time(), here.lists()
            await here.settled()
            assert 9 <= asyncio.get_running_loop().time() - since <= 25
            assert here.lists() == lists + 1
            await asyncio.sleep(HOUR)
            assert here.lists() == lists + 1  # and that was that


@pytest.mark.parametrize("length", range(1, 250, 6))  # it is the middle of the event that is hit
@in_virtual_time
async def test_a_deletion_that_came_damaged_is_not_lost(length: int) -> None:
    """F-R23: what is damaged may be the very name; a list tells who is gone."""
    name = "n" * length
    async with world(name, "b") as here, here.informer:
        await here.informer.wait_synced(HOUR)
        here.server.faults.add(faults.corrupt(event=1, verb="watch", times=2))
        here.server.cluster.storage.disconnect()
        lists = here.lists()
        here.delete(name)
        await here.settled()
        assert list(here.in_cache()) == ["default/b"]
        await asyncio.sleep(HOUR)
        assert here.lists() == lists + 1  # and that was that


@pytest.mark.parametrize("length", range(1, 250, 6))
@in_virtual_time
async def test_a_quarantined_object_is_reported_by_its_full_name(
    length: int,
) -> None:
    """F-R23: where its namespace is what was damaged, an old state would pass for the current."""
    name = "n" * length
    async with world(name, "b") as here, here.informer:
        await here.informer.wait_synced(HOUR)
        here.server.faults.add(faults.corrupt(event=1, verb="watch", times=2))
        here.server.cluster.storage.disconnect()
        here.change(name, "again")
        named = set[str]()
        for _ in range(240):
            await asyncio.sleep(0.25)
            named.update(map(str, here.informer.unreadable))
        assert named <= {f"default/{name}"}
        assert here.is_equal()


@in_virtual_time
async def test_a_look_at_the_version_that_is_answered_by_drips_holds_up_no_watch_for_long() -> None:
    """F-R03: probes are optional; after two without an answer there are no more."""
    async with world("a") as here, here.informer:
        await here.informer.wait_synced(HOUR)
        here.server.faults.add(faults.drip(size=1, every=30, verb="list"))
        here.server.cluster.storage.disconnect()
        here.change("a", "again")
        began = asyncio.get_running_loop().time()
        await until(here.is_equal)
        # Two probes of 60 s, the waits between them, and the jitter after a clean end.
        assert asyncio.get_running_loop().time() - began <= 131


@pytest.mark.slow
@pytest.mark.parametrize("code", [403, 503])
@in_virtual_time
async def test_damage_that_cannot_be_listed_again_costs_no_other_object(code: int) -> None:
    """F-R27: there is nothing wrong with the watch."""
    async with world("a", "b", "c") as here:
        here.server.faults.add(faults.no_watch_list())
        damage = here.server.faults.add(faults.corrupt(verb="list"))
        async with here.informer:
            await here.informer.wait_synced(HOUR)
            here.server.faults.remove(damage)
            refusal = here.server.faults.add(faults.status(code, verb="list"))
            await asyncio.sleep(HOUR)
            here.change("a", "again")
            await until(here.is_equal, within=130)
            assert [key.name for key in here.informer.unreadable] == ["b"]
            here.server.faults.remove(refusal)
            await here.settled(3 * HOUR)


@pytest.mark.parametrize("code", [401, 503])
@in_virtual_time
async def test_a_server_that_opens_no_watch_but_lists_is_followed_by_lists(code: int) -> None:
    async with world("a", "b") as here, here.informer:
        await here.informer.wait_synced(HOUR)
        here.server.faults.add(faults.status(code, verb="watch"))
        here.server.cluster.storage.disconnect()
        here.change("a", "again")
        await until(here.is_equal, within=15 * 60)


@in_virtual_time
async def test_unanswered_lists_do_not_keep_a_watch_from_being_opened() -> None:
    """A probe of the server's version before it; it runs concurrently with the watch then."""
    async with world("a", "b") as here, here.informer:
        await here.informer.wait_synced(HOUR)
        here.server.faults.add(faults.status(429, verb="watch", times=1))
        lists = here.server.faults.add(faults.status(503, verb="list"))
        here.server.cluster.storage.disconnect()
        here.change("a", "again")
        await until(here.is_equal, within=60)
        looks = here.informer.statistics().reflector.probes
        await asyncio.sleep(600)
        assert 8 <= here.informer.statistics().reflector.probes - looks <= 22
        here.server.faults.remove(lists)
        await asyncio.sleep(61)
        looks = here.informer.statistics().reflector.probes
        await asyncio.sleep(1800)
        assert here.informer.statistics().reflector.probes - looks <= 8


@pytest.mark.parametrize("resource", ["configmaps", "v1/configmaps"])
def test_temporary_not_found_answers_do_not_empty_the_cache(resource: str) -> None:
    """F-R17: in whichever request it begins and ends, by a short name or a full one."""

    async def main(times: int) -> list[str]:
        gone: list[str] = []
        async with world("a", "b") as here, here.server.connect() as client:
            async with client.informer(resource, namespace="default") as informer:
                await informer.wait_synced(HOUR)
                informer.add_event_handler(on_delete=lambda event: gone.append(str(event.key)))
                here.server.faults.add(faults.status(404, times=times))
                here.server.cluster.storage.disconnect()
                await asyncio.sleep(600)
                here.change("a", "again")
                await until(lambda: not informer.unreadable and len(informer.lister.list()) == 2)
        return gone

    assert [run(main(times)) for times in range(1, 13)] == [[]] * 12


@pytest.mark.slow
@in_virtual_time
async def test_what_comes_damaged_for_ever_is_listed_more_and_more_rarely() -> None:
    async with world("a", "b", "c") as here:
        here.server.faults.add(faults.no_watch_list())
        here.server.faults.add(faults.corrupt(verb="list"))
        async with here.informer:
            await here.informer.wait_synced(HOUR)
            listed: list[int] = []
            for minute in range(24 * 60):
                before = here.lists()
                await asyncio.sleep(60)
                listed += [minute] * (here.lists() - before)
            assert [key.name for key in here.informer.unreadable] == ["b"]
            assert list(here.in_cache()) == ["default/a", "default/c"]
            assert 5 <= sum(minute < 60 for minute in listed) <= 8
            # Once an hour a streamed list is refused, 0.2 s before the plain one: perhaps in the
            # minute before.
            late = sorted({minute for minute in listed if minute >= 120} - {1 + m for m in listed})
            waits = [after - before for before, after in itertools.pairwise(late)]
            assert late[0] <= 240
            assert 59 <= min(waits) <= max(waits) <= 121
            assert 24 * 60 - late[-1] <= 121


@in_virtual_time
async def test_a_stale_replica_refuses_what_it_has_not_seen_after_three_seconds() -> None:
    async with world("a", "b") as here:
        here.server.faults.add(faults.stale(revisions=1))
        newest = here.server.cluster.storage.revision
        loop = asyncio.get_running_loop()
        before = loop.time()
        assert await here.get("a", f"resourceVersion={newest - 1}") == 200
        assert await here.get("b", f"resourceVersion={newest - 1}") == 404
        assert loop.time() == before
        assert await here.get("b", f"resourceVersion={newest}") == 504
        assert loop.time() == before + 3
        late = loop.create_task(here.get("b", f"resourceVersion={newest}"))
        await asyncio.sleep(1)
        here.create("c")  # so it sees one more
        assert await late == 200
        assert loop.time() == before + 4


@in_virtual_time
async def test_a_read_without_a_version_waits_until_a_lagging_server_has_caught_up() -> None:
    async with world("a") as here, here.server.connect() as client:
        maps = client.resource("v1/configmaps", namespace="default")
        loop = asyncio.get_running_loop()
        here.server.lag(2)
        assert [each.name for each in await maps.list(resource_version="0")] == ["a"]
        here.create("b")
        before = loop.time()
        assert [each.name for each in await maps.list(resource_version="0")] == ["a"]
        assert loop.time() == before
        assert (await maps.get("b")).name == "b"
        assert loop.time() == before + 2
        here.create("c")
        assert [each.name for each in await maps.list()] == ["a", "b", "c"]
        assert loop.time() == before + 4


@in_virtual_time
async def test_after_three_seconds_a_lagging_server_asks_its_storage() -> None:
    async with world("a") as here, here.server.connect() as client:
        maps = client.resource("v1/configmaps", namespace="default")
        loop = asyncio.get_running_loop()
        here.server.lag(30)
        await maps.list(resource_version="0")  # from here on the replica exists
        for name in "bcd":
            here.create(name)
        before = loop.time()
        assert (await maps.get("d")).name == "d"
        assert loop.time() == before + 3
        assert [each.name for each in await maps.list(page_size=2)] == ["a", "b", "c", "d"]
        assert loop.time() == before + 6  # a further page does not wait


@in_virtual_time
async def test_a_streamed_list_without_a_version_is_never_stale() -> None:
    async with world("a") as here:
        here.server.lag(2)
        await here.get("a", "resourceVersion=0")  # from here on the replica exists
        here.create("b")
        async with here.informer:
            await here.informer.wait_synced(HOUR)
            assert list(here.in_cache()) == ["default/a", "default/b"]
            here.server.lag(0)


@in_virtual_time
async def test_latency_and_its_jitter_are_of_the_plan() -> None:
    async def measured(seed: int) -> list[float]:
        plan = faults.FaultPlan([faults.latency(2, jitter=3)], seed=seed)
        async with world("a", server=APIServer(port=None, faults=plan)) as here:
            times: list[float] = []
            for _ in range(5):
                before = asyncio.get_running_loop().time()
                assert await here.get("a") == 200
                times.append(round(asyncio.get_running_loop().time() - before, 6))
            return times

    first = await measured(1)
    assert all(2 <= taken <= 5 for taken in first)
    assert len(set(first)) == 5
    assert await measured(1) == first
    assert await measured(2) != first


@in_virtual_time
async def test_stall_takes_the_time_it_says() -> None:
    async with world("a") as here:
        loop = asyncio.get_running_loop()
        here.server.faults.add(faults.stall(duration=30, times=1))
        assert (await here.get("a"), loop.time()) == (200, 30)
        assert (await here.get("a"), loop.time()) == (200, 30)


@in_virtual_time
async def test_lag_shows_everything_later() -> None:
    async with world("a") as here:
        here.server.lag(5)
        async with here.informer:
            await here.informer.wait_synced(HOUR)
            here.create("b")
            await asyncio.sleep(4.9)
            assert list(here.in_cache()) == ["default/a"]
            await asyncio.sleep(0.2)
            assert list(here.in_cache()) == ["default/a", "default/b"]
            here.server.lag(0)
            here.create("c")
            await here.settled(within=60)


@in_virtual_time
async def test_pause_holds_everything_up() -> None:
    async with world("a") as here, here.informer:
        await here.informer.wait_synced(HOUR)
        here.server.pause()
        here.create("b")
        await asyncio.sleep(20)
        assert list(here.in_cache()) == ["default/a"]
        here.server.resume()
        await asyncio.sleep(0.1)
        assert here.is_equal()


@pytest.mark.parametrize(
    "fault, failure",
    [
        (faults.refuse(), TransportFailure.REFUSED),
        (faults.reset(), TransportFailure.RESET),
        (faults.close(), TransportFailure.RESET),
        (faults.close(after_bytes=5), TransportFailure.TRUNCATED),
        (faults.reset(after_bytes=5), TransportFailure.RESET),
        (faults.half_open(), TransportFailure.TIMEOUT),
        (faults.stall(), TransportFailure.TIMEOUT),
    ],
    ids=repr,
)
def test_a_client_in_memory_sees_what_one_with_sockets_sees(
    fault: Fault, failure: TransportFailure
) -> None:
    async def check() -> None:
        async with APIServer(port=None) as server, server.connect() as client:
            server.faults.add(twin(fault))
            with pytest.raises(TransportError) as raised:
                await client.rest().get().abs_path("/version").timeout(5).max_retries(0).do()
            assert raised.value.failure is failure

    run(check())


@pytest.mark.slow
@given(seed=st.integers(min_value=0, max_value=1 << 32))
@settings(max_examples=15)
def test_after_any_plan_the_cache_equals_the_server(seed: int) -> None:
    run(survive(seed))


async def survive(seed: int) -> None:
    """Write at random under random faults; end with an equal cache."""
    draw = random.Random(seed)
    plan = faults.random_plan(seed=seed, size=6)
    server = APIServer(port=None, seed=seed, faults=plan)
    async with world("a", "b", server=server) as here, here.informer:
        for step in range(12):
            there = here.names()
            match draw.randrange(3):
                case 0 if there:
                    here.delete(draw.choice(there))
                case 1 if there:
                    here.change(draw.choice(there), str(step))
                case _:
                    here.create(f"s{step}")
            await asyncio.sleep(draw.choice((0, 0.5, 10, 100)))
        plan.clear()
        await here.settled()
