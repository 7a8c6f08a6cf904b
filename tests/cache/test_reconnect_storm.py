"""Many reflectors of one client lose their watches: how fast they return, and what that costs."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest

from kinform.cache._reflector.reconnect_turns import MAX_PROBE_AGE, Turns
from kinform.cache.reflector import Reflector
from kinform.cache.reflector_options import ReflectorOptions
from kinform.cache.store.store import Store
from kinform.errors import ResourceVersionRegressed
from kinform.objects.object import Object
from kinform.rest.options import ListOptions
from kinform.rest.rate_limits import reconnect_limiter
from kinform.rest.results import ListResult
from kinform.sansio.token_bucket import reconnect_rate
from kinform.tasks import background, gather
from kinform.testing import FakeListWatch, in_virtual_time
from kinform.testing.fakes.list_watch import FakeRequest
from tests.cache.support_reflector import CUT, REFUSED, Front, Told, config, is_probe, said, until


class Fleet:
    """Reflectors that share one limiter and follow one resource."""

    def __init__(self, count: int, *, rate: float | None = None, **options: Any) -> None:
        self.source: FakeListWatch[Object] = FakeListWatch()
        self.source.add(config("c0"))
        self.limiter = reconnect_limiter(rate)
        self.front = Front(
            self.source, reconnects=self.limiter, probed_resource=lambda: "v1/configmaps"
        )
        self.told = [Told() for _ in range(count)]
        self.stores = [Store[Any]() for _ in range(count)]
        rand = random.Random(count)
        self.reflectors = [
            Reflector(
                self.front,
                store,
                options=ReflectorOptions(**options),
                watch_error_handler=told,
                rand=rand.random,
            )
            for store, told in zip(self.stores, self.told, strict=True)
        ]
        self._seen = 0

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one.run()) for one in self.reflectors]
            await until(self.is_connected)
            self.forget()
            yield
            for task in tasks:
                task.cancel()
        assert self.limiter.informers == 0
        assert self.source.open_watches == 0

    def is_connected(self) -> bool:
        return self.source.open_watches == len(self.reflectors)

    def forget(self) -> None:
        self._seen = len(self.source.requests)

    def made_at(self, kind: str) -> Sequence[float]:
        """Return when requests of a kind were made: watch, stream, list or probe."""
        return [one.at for one in self.source.requests[self._seen :] if kind == kind_of(one)]


def kind_of(request: FakeRequest) -> str:
    if is_probe(request.options):
        return "probe"
    return "stream" if request.options.send_initial_events else request.verb


def busiest_second(times: Sequence[float]) -> int:
    """Return how many of ``times``, in order, lie in the busiest half-open second."""
    most = start = 0
    for end, at in enumerate(times):
        while at - times[start] >= 1.0 - 1e-6:
            start += 1
        most = max(most, end - start + 1)
    return most


def now() -> float:
    return asyncio.get_running_loop().time()


@pytest.mark.slow
@in_virtual_time(max_turns=10_000_000)
async def test_a_thousand_informers_return_within_20_seconds_at_50_per_second() -> None:
    """The server shuts down gracefully: all watches end at once, and it is back at once."""
    fleet = Fleet(1000)
    async with fleet.running():
        await asyncio.sleep(100)
        fleet.forget()
        down = now()
        fleet.source.close_watches()
        await until(fleet.is_connected, within=25)
        openings, probes = fleet.made_at("watch"), fleet.made_at("probe")
        assert fleet.limiter.rate == 50
        assert len(openings) == 1000
        assert busiest_second(openings) <= 50
        assert openings[-1] - down <= 1000 / 50 + 1.0
        assert openings[-1] - down >= 1000 / 50 - 1.0, "spread, so they need all that time"
        assert not fleet.made_at("list")
        assert len(probes) <= 11, "one every two seconds, for all of them"


@pytest.mark.slow
@pytest.mark.parametrize("away", [3, 8])
@in_virtual_time(max_turns=10_000_000)
async def test_a_thousand_informers_return_though_the_server_was_away_and_forgot_versions(
    away: float,
) -> None:
    """As a kube-apiserver that is restarted: refused connections, then 410 for each of them."""
    fleet = Fleet(1000)
    async with fleet.running():
        fleet.forget()
        fleet.front.breaks = REFUSED
        fleet.source.close_watches()
        await asyncio.sleep(away)
        fleet.source.add(config("missed"))
        fleet.source.compact()
        fleet.front.breaks = None
        back = now()
        await until(lambda: all(len(store) == 2 for store in fleet.stores), within=30)
        await until(fleet.is_connected, within=30)
        assert now() - back <= 30
        probes = fleet.made_at("probe")
        assert len([at for at in probes if at > back + 1]) <= 20, "a 410 is no reason for another"
        assert busiest_second(fleet.made_at("watch")) <= 50
        assert busiest_second(fleet.made_at("stream")) <= 50
        assert busiest_second(probes) <= 50


@pytest.mark.slow
@in_virtual_time(max_turns=10_000_000)
async def test_a_load_balancer_that_ends_watches_after_65_seconds_leaves_no_cache_behind() -> None:
    """1,000 informers were connected 32 % of the time when the limit was 5 per second."""
    fleet = Fleet(300)
    fleet.front.watch = ended_after(fleet.front, 65)  # type: ignore[method-assign]
    connected = samples = 0
    async with fleet.running():
        await asyncio.sleep(300)
        for _ in range(60):
            await asyncio.sleep(5)
            connected += fleet.source.open_watches
            samples += len(fleet.reflectors)
    assert connected / samples > 0.99


def ended_after(front: Front, seconds: float | None) -> Any:
    """Return ``front.watch``, but each is ended cleanly after so long; ``None``: at its timeout."""
    watch = front.watch

    @contextlib.asynccontextmanager
    async def ending(options: ListOptions) -> AsyncGenerator[Any]:
        async def until_then(stream: Any) -> AsyncGenerator[Any]:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(options.timeout if seconds is None else seconds):
                    async for received in stream:
                        yield received

        async with watch(options) as stream:
            yield until_then(stream)

    return ending


@in_virtual_time(max_turns=1_000_000)
async def test_watches_that_reach_their_own_timeout_are_reopened_at_once_without_a_probe() -> None:
    """They do not wait for the limiter: with one reconnect in 10 s they would wait for minutes."""
    fleet = Fleet(50, rate=0.1, watch_timeout=100, idle_timeout=None, probe_period=None)
    fleet.front.watch = ended_after(fleet.front, None)  # type: ignore[method-assign]
    async with fleet.running():
        for second in range(1, 1000):
            await asyncio.sleep(second + 0.5 - now())  # time-outs are whole seconds
            assert fleet.is_connected()
        assert len(fleet.made_at("watch")) >= 50 * (1000 // 200 - 1)
        assert not fleet.made_at("probe")
        assert not fleet.made_at("list")


@pytest.mark.slow
@in_virtual_time(max_turns=3_000_000)
async def test_a_server_that_ends_every_watch_at_once_reaches_no_timeout() -> None:
    """No claim of the server counts, only the time: so none of them bypasses the limiter."""
    fleet = Fleet(200, watch_timeout=1)
    async with fleet.running():
        fleet.front.ends = True
        fleet.source.close_watches()
        await asyncio.sleep(120)
        assert busiest_second(fleet.made_at("watch")) <= 20
        assert len(fleet.made_at("watch")) <= 8 * 2 * 200


@in_virtual_time(max_turns=1_000_000)
async def test_a_watch_that_is_ended_alone_is_reopened_within_a_moment() -> None:
    """The spread is for those that end together: one of 200 waits for up to 1 / 10 s."""
    fleet = Fleet(200)
    plain, ended = fleet.front.watch, list[float]()
    fleet.front.watch = ended_after(fleet.front, 90)  # type: ignore[method-assign]
    first = fleet.reflectors.pop()
    fleet.front.watch, ending = plain, fleet.front.watch  # type: ignore[method-assign]
    async with fleet.running():
        fleet.reflectors.append(first)
        fleet.front.watch = ending  # type: ignore[method-assign]
        async with asyncio.TaskGroup() as group:
            task = group.create_task(first.run())
            await until(fleet.is_connected)
            fleet.forget()
            began = now()
            await asyncio.sleep(95)
            ended += fleet.made_at("watch")
            task.cancel()
    assert len(ended) == 1
    assert 90 - 1 <= ended[0] - began <= 90 + 1 / 10


@pytest.mark.slow
@in_virtual_time(max_turns=1_000_000)
async def test_openings_are_paced_again_after_a_probe_that_took_long() -> None:
    """All that had their turn meanwhile waited for the same probe."""
    fleet = Fleet(200)
    async with fleet.running():
        await asyncio.sleep(100)
        fleet.forget()
        slow = asyncio.Event()
        fleet.front.list = waiting_for(fleet.front, slow)  # type: ignore[method-assign]
        fleet.source.close_watches()
        await asyncio.sleep(10)
        assert not fleet.made_at("watch")
        slow.set()
        await until(fleet.is_connected, within=60)
        assert busiest_second(fleet.made_at("watch")) <= 20
        await asyncio.sleep(1)
        assert fleet.made_at("probe")[-1] >= fleet.made_at("watch")[-1] - MAX_PROBE_AGE


def waiting_for(front: Front, event: asyncio.Event) -> Any:
    plain = front.list

    async def waiting(options: ListOptions) -> ListResult[Object]:
        await event.wait()
        return await plain(options)

    return waiting


# --- shared probes


@pytest.mark.slow
@in_virtual_time(max_turns=3_000_000)
async def test_a_restored_server_is_noticed_by_all_that_share_a_probe() -> None:
    fleet = Fleet(100)
    async with fleet.running():
        version = fleet.source.resource_version
        fleet.source.advance(10)
        fleet.source.bookmark()
        await asyncio.sleep(100)
        fleet.forget()
        fleet.source.restore(version)
        fleet.source.close_watches(CUT)
        await until(lambda: all(one.kinds for one in fleet.told), within=30)
        await until(lambda: all(regressed(one) for one in fleet.told), within=30)
        assert len(fleet.made_at("probe")) < 50


@in_virtual_time
async def test_a_probe_from_before_the_server_was_lost_again_is_not_used() -> None:
    """The server is restored a moment after the informers had come back, and had probed it."""
    fleet = Fleet(3)
    async with fleet.running():
        version = fleet.source.resource_version
        fleet.source.advance(10)
        fleet.source.bookmark()
        await asyncio.sleep(100)
        fleet.forget()
        fleet.source.close_watches()
        await until(fleet.is_connected, within=1)
        assert len(fleet.made_at("probe")) == 1
        fleet.source.restore(version)
        fleet.source.close_watches()
        await until(lambda: all(regressed(one) for one in fleet.told), within=10)


def regressed(told: Told) -> bool:
    return any(isinstance(error, ResourceVersionRegressed) for error in told.errors)


@pytest.mark.slow
@in_virtual_time(max_turns=3_000_000)
async def test_a_restored_server_whose_watches_stay_open_is_noticed_by_all_in_340_seconds() -> None:
    fleet = Fleet(100)
    async with fleet.running():
        version = fleet.source.resource_version
        fleet.source.advance(10)
        fleet.source.bookmark()
        await asyncio.sleep(300)  # some have probed by now, and others will use their probe
        fleet.source.restore(version)
        await until(lambda: all(regressed(one) for one in fleet.told), within=340)


@pytest.mark.slow
@in_virtual_time(max_turns=3_000_000)
async def test_open_watches_of_one_resource_share_their_probes_and_none_takes_them_amiss() -> None:
    """Objects change all the time: what was applied may be newer than another informer's probe."""
    fleet = Fleet(100)
    async with fleet.running():
        for number in range(1000):
            await asyncio.sleep(1)
            if number % 20 == 0:
                fleet.source.modify(config("c0", str(number)))
        assert len(fleet.made_at("probe")) <= 1000 / 10, "3 or 4 of each would be 350"
        assert not any(told.errors for told in fleet.told)
        assert Counter(one.statistics().lists for one in fleet.reflectors) == {1: 100}


@in_virtual_time
async def test_informers_that_know_more_than_a_shared_probe_wait_for_one_newer_probe() -> None:
    """It was sent before they listed: that it shows an older version is no regression."""
    fleet = Fleet(0)
    turns = [Turns(fleet.front, rand=random.random) for _ in range(20)]
    versions = ["5", "9"]

    async def send() -> str:
        version = versions.pop(0)
        await asyncio.sleep(0.5)
        return version

    first = await turns[0].probe(send, "5")
    for one in turns[1:]:
        one.learned("9")
    answers = await gather(*(one.probe(send, "9") for one in turns[1:]))
    assert first.version == "5"
    assert {answer.version for answer in answers} == {"9"}
    assert not versions, "one probe for all of them"


@in_virtual_time
async def test_a_probe_that_was_sent_before_a_list_is_no_regression_when_it_is_answered() -> None:
    fleet = Fleet(0)
    first, second = (Turns(fleet.front, rand=random.random) for _ in range(2))
    versions = ["5", "9"]

    async def send() -> str:
        version = versions.pop(0)
        await asyncio.sleep(0.5)
        return version

    async with background(first.probe(send, "5")):
        await asyncio.sleep(0.1)
        second.learned("9")
        assert (await second.probe(send, "9")).version == "9"


@in_virtual_time(max_turns=1_000_000)
async def test_a_shared_probe_that_hangs_delays_the_informers_by_10_seconds() -> None:
    fleet = Fleet(20)
    async with fleet.running():
        await asyncio.sleep(100)
        plain, hung = fleet.front.list, list[float]()

        async def first_hangs(options: ListOptions) -> ListResult[Object]:
            if is_probe(options) and not hung:
                hung.append(now())
                await asyncio.sleep(1e6)
            return await plain(options)

        fleet.front.list = first_hangs  # type: ignore[method-assign]
        fleet.source.close_watches()
        await until(lambda: fleet.source.open_watches == 0)
        await until(fleet.is_connected, within=20)
        assert now() - hung[0] <= 10 + 1.6 + 20 / 5 + 1, "the limit, a backoff and the turns"


@in_virtual_time
async def test_a_probe_that_one_informer_may_not_make_is_made_by_the_others() -> None:
    """Each reads a namespace of its own; one of them may not list any more."""
    fleet = Fleet(20)
    refused = 0
    plain = fleet.front.list

    async def first_is_forbidden(options: ListOptions) -> ListResult[Object]:
        nonlocal refused
        if is_probe(options) and not refused:
            refused += 1
            await asyncio.sleep(0.5)
            raise said(403)
        return await plain(options)

    fleet.front.list = first_is_forbidden  # type: ignore[method-assign]
    async with fleet.running():
        version = fleet.source.resource_version
        fleet.source.advance(10)
        fleet.source.bookmark()
        await asyncio.sleep(100)
        fleet.source.restore(version)
        fleet.source.close_watches()
        await until(lambda: sum(regressed(one) for one in fleet.told) >= 19, within=30)
    assert refused == 1


@in_virtual_time
async def test_the_limit_counts_the_reflectors_that_run() -> None:
    fleet = Fleet(150)
    assert (fleet.limiter.informers, fleet.limiter.rate) == (0, 5.0)
    async with fleet.running():
        assert (fleet.limiter.informers, fleet.limiter.rate) == (150, reconnect_rate(150))
    assert fleet.limiter.rate == 5.0
