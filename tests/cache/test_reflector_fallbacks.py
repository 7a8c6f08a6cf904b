"""Watches that cannot be opened while lists work: the cache syncs, and goes on by lists."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from kinform import ReflectorOptions
from kinform.apiserver import APIServer, faults
from kinform.apiserver.faults.kinds import Fault
from kinform.cache.reflector import Reflector
from kinform.cache.store.store import Store
from kinform.objects.object import Object
from kinform.rest.options import ListOptions
from kinform.rest.results import ListResult
from kinform.testing import FakeListWatch, in_virtual_time
from tests.cache.support_reflector import (
    REFUSED,
    Front,
    assert_in_budget,
    config,
    is_probe,
    names,
    running,
    said,
    until,
)

BROKEN: dict[str, Fault] = {
    **{str(code): faults.status(code, verb="watch") for code in (401, 403, 500, 502, 503, 504)},
    "429": faults.status(429, verb="watch"),
    "reset": faults.reset(verb="watch"),
    "silence": faults.stall(verb="watch", duration=1e9),
}


def broken(name: str) -> Fault:
    return Fault(BROKEN[name].effect, BROKEN[name].match)


def lists(source: FakeListWatch[Object]) -> Sequence[float]:
    """Return when everything was listed, plainly."""
    return [one.at for one in source.requests if one.verb == "list" and not is_probe(one.options)]


@pytest.mark.parametrize("name", BROKEN)
@in_virtual_time
async def test_a_cache_syncs_though_no_watch_can_be_opened(name: str) -> None:
    """Within two minutes; silence is noticed after 45 s each time."""
    async with APIServer(port=None) as server, server.connect() as client:
        maps = client.resource("v1/configmaps", namespace="default")
        await maps.create({"metadata": {"name": "old"}})
        server.faults.add(broken(name))
        async with client.informer("v1/configmaps", namespace="default") as informer:
            await informer.wait_synced(120)
            assert informer.lister.get("default/old")


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("stream_lists", [True, False], ids=["streamed", "plain"])
@in_virtual_time
async def test_a_cache_advances_by_lists_though_no_watch_can_be_opened(
    name: str, stream_lists: bool
) -> None:
    async with APIServer(port=None) as server, server.connect() as client:
        maps = client.resource("v1/configmaps", namespace="default")
        await maps.create({"metadata": {"name": "old"}})
        server.faults.add(broken(name))
        options = ReflectorOptions(stream_lists=stream_lists)
        async with client.informer(
            "v1/configmaps", namespace="default", options=options
        ) as informer:
            await informer.wait_synced(120)
            await asyncio.sleep(600)
            await maps.create({"metadata": {"name": "new"}})
            await maps.delete("old")
            await informer.wait_for(lambda lister: lister.get("default/new"), 180)
            assert informer.lister.get("default/old") is None


@pytest.mark.slow
@in_virtual_time
async def test_lists_in_place_of_watches_are_at_least_30_seconds_apart_and_only_for_news() -> None:
    source, store = FakeListWatch[Object](), Store[Any]()
    source.add(config("c0"))
    source.fail_watches(said(503), forever=True)
    async with running(Reflector(source, store)):
        await asyncio.sleep(900)
        quiet = len(lists(source))
        for number in range(3600):
            source.modify(config("c0", str(number)))
            await asyncio.sleep(1)
        assert quiet == 1, "every probe showed our own version"
    at = lists(source)[1:]
    gaps = [after - before for before, after in pairwise(at)]
    assert 60 <= len(at) <= 120
    assert min(gaps) >= 30.0
    assert max(gaps) <= 61.0
    assert_in_budget(source.requests)


@pytest.mark.slow
@in_virtual_time
async def test_slow_lists_in_place_of_watches_are_twice_as_far_apart() -> None:
    class Slow(Front):
        async def list(self, options: ListOptions) -> ListResult[Object]:
            if not is_probe(options):
                await asyncio.sleep(12)
            return await super().list(options)

    source, store = FakeListWatch[Object](), Store[Any]()
    source.add(config("c0"))
    source.fail_watches(said(503), forever=True)
    async with running(Reflector(Slow(source), store)):
        for number in range(3600):
            source.modify(config("c0", str(number)))
            await asyncio.sleep(1)
    at = lists(source)[6:]
    gaps = [after - before for before, after in pairwise(at)]
    assert min(gaps) >= 60.0


@in_virtual_time
async def test_a_fallback_that_an_outage_caused_is_not_remembered() -> None:
    source, store = FakeListWatch[Object](), Store[Any]()
    source.add(config("c0"))
    source.fail_watches(said(503), said(503))
    async with running(Reflector(source, store)):
        await source.wait_for_watches()
        assert [one.verb for one in source.requests] == ["watch", "watch", "list", "watch"]
        source.advance()
        source.compact()
        source.close_watches(said(410))
        await asyncio.sleep(10)
    assert source.requests[-1].options.send_initial_events


@in_virtual_time
async def test_while_connections_are_refused_there_is_no_plain_list() -> None:
    source, store = FakeListWatch[Object](), Store[Any]()
    source.add(config("c0"))
    front = Front(source, breaks=REFUSED)
    async with running(Reflector(front, store)):
        await asyncio.sleep(600)
        assert {one.verb for one in source.requests} == {"watch"}
        front.breaks = None
        await until(lambda: names(store) == {"c0"}, within=61)


@in_virtual_time
async def test_a_source_that_never_answers_is_given_up_after_two_minutes() -> None:
    """A source of the caller's own may have no deadline for that."""
    source, store = FakeListWatch[Object](), Store[Any]()
    source.add(config("c0"))
    source.hang_watches()
    async with running(Reflector(source, store)):
        await until(lambda: names(store) == {"c0"}, within=250)
