"""Servers that are away, forbid, or answer badly: how often they are asked, and what comes after.

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
    TransportError,
)
from kinform.objects.object import Object
from kinform.rest.options import ListOptions
from kinform.rest.rate_limits import reconnect_limiter
from kinform.testing import FakeListWatch, in_virtual_time
from tests.cache.support_reflector import (
    CUT,
    FOREVER,
    PLAIN,
    REFUSED,
    Front,
    Script,
    Told,
    assert_in_budget,
    config,
    following,
    listed,
    running,
    said,
    shown,
    there,
    until,
)


def filled(count: int = 3) -> FakeListWatch[Object]:
    source = FakeListWatch()
    for number in range(count):
        source.add(config(f"c{number}"))
    return source


def now() -> float:
    return asyncio.get_running_loop().time()


# --- Outages


@pytest.mark.slow
@in_virtual_time(max_turns=1_000_000)
async def test_two_hundred_reflectors_do_not_come_back_at_once() -> None:
    """F-R10: those of one client share a limiter."""
    source, limiter = filled(1), reconnect_limiter()
    front = Front(source, reconnects=limiter)
    stores = [Store[Any]() for _ in range(200)]
    reflectors = [Reflector(front, store) for store in stores]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(reflector.run()) for reflector in reflectors]
        await until(lambda: source.open_watches == 200)
        down, before = now(), len(source.requests)
        front.breaks = REFUSED
        source.close_watches(CUT)
        await asyncio.sleep(60)
        attempts = [one.at for one in source.requests[before:]]
        assert len(attempts) <= 60 * 10 + 1  # one in 20 of them, each second
        per_second = [int(at - down) for at in attempts]
        assert max(per_second.count(second) for second in range(60)) <= 11
        front.breaks = None
        source.add(config("missed"))
        await until(lambda: all(len(store) == 2 for store in stores), within=50)
        for task in tasks:
            task.cancel()
    assert source.open_watches == 0
    assert sum(reflector.statistics().lists for reflector in reflectors) == 200


@in_virtual_time(max_turns=1_000_000)
async def test_a_server_that_goes_away_in_good_order_is_not_run_down_either() -> None:
    """F-R10: it ends all watches, which lived long enough to be opened again at once."""
    source = filled(1)
    front = Front(source, reconnects=reconnect_limiter())
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(Reflector(front, Store()).run()) for _ in range(100)]
        await until(lambda: source.open_watches == 100)
        await asyncio.sleep(200)
        before = len(source.requests)
        source.close_watches()
        await asyncio.sleep(60)
        attempts = [int(one.at) for one in source.requests[before:] if one.verb == "watch"]
        assert len(attempts) == 100
        assert max(attempts.count(second) for second in set(attempts)) <= 15
        for task in tasks:
            task.cancel()


@pytest.mark.parametrize("code", [502, 503, 504])
@in_virtual_time
async def test_a_rolling_restart_costs_no_list_and_loses_nothing(code: int) -> None:
    """F-R11: every five seconds another server goes away while writing goes on."""
    source = filled()
    front = Front(source)
    async with following(source, front) as reflector:
        for round_ in range(12):
            front.breaks = said(code)
            source.close_watches(CUT if round_ % 2 else None)
            for number in range(20):
                source.add(config(f"r{round_}-{number}"))
                await asyncio.sleep(0.1)
            front.breaks = None
            await asyncio.sleep(3)
        assert reflector.statistics().lists == 1
    assert reflector.statistics().events == 240


@in_virtual_time
async def test_a_connection_that_is_cut_every_50_seconds_is_opened_again_at_once() -> None:
    """Some proxies do that to whatever is quiet; half a minute's silence each time is too much."""
    source = filled()
    seen: list[bool] = []
    async with following(source, options=PLAIN) as reflector:
        for _ in range(30):
            for _ in range(50):
                await asyncio.sleep(1)
                seen.append(reflector.statistics().is_connected)
            source.close_watches(CUT)
    assert seen.count(False) / len(seen) < 0.1


@in_virtual_time
async def test_rights_that_are_taken_away_and_given_back_cost_nothing_else() -> None:
    """F-R18: the cache is kept meanwhile."""
    source, store, told = filled(), Store[Any](), Told()
    front = Front(source)
    async with following(source, front, store=store, watch_error_handler=told, within=130):
        front.breaks = said(403)
        await asyncio.sleep(10)
        source.close_watches()
        source.delete("default/c0")
        await asyncio.sleep(300)
        assert len(store) == 3
        assert set(told.kinds) == {"ForbiddenError"}
        front.breaks = None


@pytest.mark.parametrize("asked", [1, 0, 3600, None])
@pytest.mark.parametrize("place", ["answer", "event", "list"])
@in_virtual_time
async def test_too_many_requests_is_waited_for_as_told_but_not_for_ever(
    asked: float | None, place: str
) -> None:
    """F-R29: never sooner than told, never later than the cap and a third."""
    error = said(429, retry_after=asked)
    watches: list[Any] = [(2.0, error)] if place == "event" else [(FOREVER,)]
    source = Script(
        lists=[error, listed(1)] if place == "list" else [listed(1)],
        watches=[error, (FOREVER,)] if place == "answer" else [*watches, (FOREVER,)],
    )
    async with running(Reflector(source, Store(), options=PLAIN)):
        await asyncio.sleep(200)
    waited = [one.at for one in source.requests if one.verb == "watch"][-1]
    waited -= 2.0 if place == "event" else 0.0
    told = min(asked or 0, 120)
    assert max(told, 0.8) <= waited <= max(told * 1.3, 1.6)


# --- Budgets in the worst case


@pytest.mark.parametrize(
    "error",
    [REFUSED, CUT, said(403), said(404), said(410), said(422), said(500), said(503), said(405)],
    ids=str,
)
@pytest.mark.parametrize("options", [ReflectorOptions(), PLAIN], ids=["streamed", "plain"])
@pytest.mark.parametrize("rand", [0.0, 0.999])
@in_virtual_time
async def test_a_server_that_refuses_everything_is_asked_seven_times_in_a_minute(
    error: KinformError, options: ReflectorOptions, rand: float
) -> None:
    source, store = filled(), Store[Any]()
    front = Front(source, breaks=error)
    async with running(Reflector(front, store, options=options, rand=lambda: rand)):
        await asyncio.sleep(600)
        assert_in_budget(source.requests)
        front.breaks = None
        await until(lambda: shown(store) == there(source), within=130)
    first_minute = [one for one in source.requests if one.at < 60]
    assert len(first_minute) <= 9


@in_virtual_time
async def test_a_very_short_time_out_of_the_callers_is_no_excuse_for_a_hot_loop() -> None:
    """A watch that ends at once has not reached its time-out, be that a second."""
    source = Script(lists=[listed(1)], watches=[()])
    options = ReflectorOptions(stream_lists=False, watch_timeout=0.5)
    async with running(Reflector(source, Store(), options=options)):
        await asyncio.sleep(120)
    assert_in_budget(source.requests)


@in_virtual_time
async def test_an_error_that_is_hidden_by_another_in_closing_still_counts() -> None:
    """An expired version behind a connection that cannot even be closed."""

    class Clumsy(Front):
        def watch(self, options: ListOptions) -> Any:
            inner = super().watch(options)

            class Watch:
                async def __aenter__(self) -> Any:
                    return await inner.__aenter__()

                async def __aexit__(self, *details: object) -> None:
                    await inner.__aexit__(None, None, None)
                    raise RuntimeError("cannot close")

            return Watch()

    source, told = filled(), Told()
    async with following(source, Clumsy(source), options=PLAIN, watch_error_handler=told):
        source.add(config("missed"), drop=True)
        source.compact()
        source.close_watches(said(410))
    assert told.kinds[0] == "ResourceExpiredError"


@in_virtual_time
async def test_an_error_that_the_watch_itself_swallows_still_counts() -> None:
    class Polite(Front):
        def watch(self, options: ListOptions) -> Any:
            inner = super().watch(options)

            class Watch:
                async def __aenter__(self) -> Any:
                    return await inner.__aenter__()

                async def __aexit__(self, *details: object) -> bool:
                    await inner.__aexit__(None, None, None)
                    return True

            return Watch()

    source, told = filled(), Told()
    async with following(
        source, Polite(source), options=PLAIN, watch_error_handler=told, rand=lambda: 0.0
    ):
        source.add(config("missed"), drop=True)
        source.compact()
        source.close_watches(said(410))
        await asyncio.sleep(10)
        source.freeze_watches()
        await asyncio.sleep(400)
    assert told.kinds == ["ResourceExpiredError", "TransportError"]
    assert isinstance(told.errors[1], TransportError)
