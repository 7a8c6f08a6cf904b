"""Watches that end cleanly and soon: the cache stays fresh, and the server is not run down."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from typing import Any

import pytest

from kinform.cache.reflector import Reflector
from kinform.cache.store.store import Store
from kinform.objects.object import Object
from kinform.rest.rate_limits import reconnect_limiter
from kinform.tasks import background
from kinform.testing import FakeListWatch, in_virtual_time
from tests.cache.support_reflector import (
    PLAIN,
    Front,
    assert_in_budget,
    config,
    is_probe,
    running,
    until,
)


async def write_every(source: FakeListWatch[Object], seconds: float) -> None:
    while True:
        await asyncio.sleep(seconds)
        source.modify(config("c0", str(asyncio.get_running_loop().time())))


async def end_after(source: FakeListWatch[Object], least: float, most: float) -> None:
    """End each watch cleanly, so many seconds after it was opened."""
    dice = random.Random(7)
    while True:
        await source.wait_for_watches()
        await asyncio.sleep(dice.uniform(least, most))
        source.close_watches()
        await asyncio.sleep(0)


async def freshness(
    source: FakeListWatch[Object], store: Store[Any], *, within: float
) -> list[bool]:
    """Return, for twice a second, whether the store shows what was written two seconds ago."""
    before, seen = deque([0] * 4, maxlen=4), list[bool]()
    for _ in range(round(within * 2)):
        await asyncio.sleep(0.5)
        seen.append(int(store.resource_version or 0) >= before[0])
        before.append(int(source.resource_version))
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("writes", [1.0, 13.0, 45.0], ids=lambda each: f"write every {each:g} s")
@pytest.mark.parametrize(("least", "most"), [(8.0, 8.0), (8.0, 20.0), (10.0, 10.0)])
@in_virtual_time(max_turns=1_000_000)
async def test_watches_that_end_cleanly_after_8_seconds_or_more_leave_the_store_fresh(
    least: float, most: float, writes: float
) -> None:
    """Proxies limit how long an answer may take. client-go: 100 %."""
    source, store = FakeListWatch[Object](), Store[Any]()
    source.add(config("c0"))
    front = Front(source, reconnects=reconnect_limiter())
    async with (
        running(Reflector(front, store, options=PLAIN)),
        background(write_every(source, writes)),
        background(end_after(source, least, most)),
    ):
        await until(lambda: store.resource_version)
        seen = await freshness(source, store, within=900)
    assert seen.count(True) / len(seen) >= 0.95
    assert_in_budget(source.requests)
    assert sum(one.verb == "list" and not is_probe(one.options) for one in source.requests) == 1


@pytest.mark.slow
@in_virtual_time(max_turns=1_000_000)
async def test_a_server_that_sends_one_event_and_closes_is_opened_8_times_a_minute() -> None:
    """For an hour, and there is no relist."""
    source, store = FakeListWatch[Object](), Store[Any]()
    source.add(config("c0"))

    async def send_one_and_close() -> None:
        while True:
            await source.wait_for_watches()
            source.modify(config("c0", str(asyncio.get_running_loop().time())))
            await source.wait_delivered()
            source.close_watches()
            await asyncio.sleep(0.01)

    reflector = Reflector(source, store, options=PLAIN)
    async with running(reflector), background(send_one_and_close()):
        await asyncio.sleep(3600)
    assert_in_budget(source.requests)
    assert sum(one.verb == "watch" for one in source.requests) >= 7 * 60
    assert reflector.statistics().lists == 1
