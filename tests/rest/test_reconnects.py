"""What the informers of one client share: turns, and probes of the server's version."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable

import pytest

import kinform
from kinform.apiserver import APIServer
from kinform.errors import KinformError, TransportError, TransportFailure, UsageError
from kinform.rest.rate_limits import reconnect_limiter
from kinform.rest.reconnects import ProbedVersion, Reconnects
from kinform.tasks import background, gather
from kinform.testing import in_virtual_time
from tests.cache.support_reflector import said, turns


def now() -> float:
    return asyncio.get_running_loop().time()


# --- the option


@pytest.mark.parametrize("rate", [0, -1.0, math.nan])
def test_a_rate_that_is_not_positive_is_refused_where_it_is_given(rate: float) -> None:
    with pytest.raises(UsageError, match="reconnect_rate must be positive"):
        kinform.connect("http://127.0.0.1:1", reconnect_rate=rate)
    with pytest.raises(UsageError, match="reconnect_rate must be positive"):
        reconnect_limiter(rate)


async def test_a_rate_in_a_config_is_checked_when_the_client_is_opened() -> None:
    config = kinform.Config(server="http://127.0.0.1:1", reconnect_rate=-2)
    with pytest.raises(UsageError, match="reconnect_rate must be positive"):
        await kinform.connect(config).open()


@pytest.mark.parametrize(
    ("in_config", "in_call", "expected"), [(None, None, 5), (7, None, 7), (7, 8, 8), (None, 9, 9)]
)
async def test_the_rate_is_an_option_of_config_and_connect(
    in_config: float | None, in_call: float | None, expected: float
) -> None:
    config = kinform.Config(server="http://127.0.0.1:1", reconnect_rate=in_config)
    async with kinform.connect(config, reconnect_rate=in_call) as client:
        assert client.rest().reconnects.rate == expected
        with client.rest().reconnects.following():
            assert client.guarded(lambda: None).rest("apps/v1").reconnects.informers == 1


@in_virtual_time
async def test_an_infinite_rate_is_no_limit() -> None:
    limiter = reconnect_limiter(math.inf)
    await gather(*(limiter.wait(limiter.ended(rand=0.9)) for _ in range(1000)))
    assert now() == 0.0


# --- turns


@in_virtual_time
async def test_turns_of_watches_and_of_lists_are_counted_apart() -> None:
    limiter = reconnect_limiter(5)
    await gather(*(limiter.wait() for _ in range(11)))
    assert now() == pytest.approx(2.0)
    await gather(*(limiter.wait_to_list() for _ in range(6)))
    assert now() == pytest.approx(3.0)


@in_virtual_time
async def test_a_watch_that_ended_with_others_waits_for_its_random_part_of_their_time() -> None:
    """Clients that all lost the same server do not come back at once either."""
    limiter = reconnect_limiter(5)
    with contextlib.ExitStack() as stack:
        for _ in range(10):
            stack.enter_context(limiter.following())
        ends = [limiter.ended(rand=number / 10) for number in (9, 2, 5, *range(7))]
        back = list[tuple[float, float]]()

        async def reconnect(number: int) -> None:
            await limiter.wait(ends[number])
            limiter.returned()
            back.append((ends[number].rand, now()))

        await gather(*(reconnect(number) for number in range(3)))
    assert back == [(0.2, pytest.approx(0.4)), (0.5, pytest.approx(1.0)), (0.9, pytest.approx(1.8))]


@in_virtual_time
async def test_a_wait_that_is_cancelled_takes_no_turn() -> None:
    limiter = reconnect_limiter(1)
    await limiter.wait()
    async with background(limiter.wait()), background(limiter.wait()):
        await asyncio.sleep(0.5)
    await limiter.wait()
    assert now() == pytest.approx(1.0)


@in_virtual_time
async def test_informers_that_are_added_speed_up_those_that_wait() -> None:
    limiter = reconnect_limiter()
    with contextlib.ExitStack() as stack:
        async with background(gather(*(limiter.wait() for _ in range(101)))) as waiting:
            await asyncio.sleep(9.9)
            for _ in range(1000):
                stack.enter_context(limiter.following())
            await waiting
    assert now() == pytest.approx(10 + 50 / 50, abs=0.1)


# --- probes


class Server:
    """Answers probes with its version after half a second, or with an error."""

    def __init__(self, *errors: Exception) -> None:
        self.version = 1
        self.probes = 0
        self.errors = list(errors)

    async def __call__(self) -> str:
        self.probes += 1
        version = str(self.version)
        await asyncio.sleep(0.5)
        if self.errors:
            raise self.errors.pop(0)
        return version


async def probing(limiter: Reconnects, send: Callable[[], Awaitable[str]]) -> ProbedVersion:
    return await limiter.probe("v1/pods", send, max_age=2.0)


@in_virtual_time
async def test_informers_that_probe_at_the_same_time_share_one_request() -> None:
    limiter, server = reconnect_limiter(), Server()
    found = await gather(*(limiter.probe("v1/pods", server, max_age=2.0) for _ in range(50)))
    assert server.probes == 1
    assert {(one.started, one.version) for one in found} == {(0.0, "1")}


@in_virtual_time
async def test_another_resource_is_probed_by_itself() -> None:
    """Its versions may come from another storage."""
    limiter, server = reconnect_limiter(), Server()
    await probing(limiter, server)
    await limiter.probe("v1/events", server, max_age=2.0)
    assert server.probes == 2


@pytest.mark.parametrize(("after", "probes"), [(0.0, 1), (1.4, 1), (1.6, 2)])
@in_virtual_time
async def test_a_probe_answers_for_two_seconds_from_its_start(after: float, probes: int) -> None:
    limiter, server = reconnect_limiter(), Server()
    await probing(limiter, server)
    await asyncio.sleep(after)
    await probing(limiter, server)
    assert server.probes == probes


@in_virtual_time
async def test_a_probe_from_before_a_loss_is_not_used_even_if_the_clock_has_not_moved() -> None:
    limiter, server = reconnect_limiter(), Server()
    await probing(limiter, server)
    server.version = 2
    limiter.lost("v1/pods")
    assert (await probing(limiter, server)).version == "2"


@in_virtual_time
async def test_a_probe_under_way_when_a_watch_is_lost_is_not_awaited() -> None:
    """It may have read the version of a server that is gone by now."""
    limiter, server = reconnect_limiter(), Server()
    async with background(probing(limiter, server)) as before:
        await turns()
        limiter.lost("v1/pods")
        server.version = 2
        assert (await probing(limiter, server)).version == "2"
        assert (await before).version == "1"
    assert (await probing(limiter, server)).version == "2", "the older one does not replace it"


@in_virtual_time
async def test_a_loss_of_another_resource_changes_nothing() -> None:
    limiter, server = reconnect_limiter(), Server()
    await probing(limiter, server)
    limiter.lost("v1/events")
    await probing(limiter, server)
    assert server.probes == 1


@pytest.mark.parametrize(
    "error",
    [said(503), said(429), TransportError("nobody there", failure=TransportFailure.REFUSED)],
    ids=str,
)
@in_virtual_time
async def test_a_server_that_does_not_answer_is_not_asked_by_each_informer(
    error: KinformError,
) -> None:
    limiter, server = reconnect_limiter(), Server(error)
    found = await asyncio.gather(
        *(probing(limiter, server) for _ in range(20)), return_exceptions=True
    )
    assert found == [error] * 20
    assert server.probes == 1
    assert (await probing(limiter, server)).version == "1", "a failure is not remembered"


@pytest.mark.parametrize("error", [said(403), said(404), ValueError("mine")], ids=str)
@in_virtual_time
async def test_what_one_informer_may_not_read_says_nothing_about_the_others(
    error: Exception,
) -> None:
    limiter, server = reconnect_limiter(), Server(error)
    found = await asyncio.gather(
        *(probing(limiter, server) for _ in range(3)), return_exceptions=True
    )
    assert found.count(error) == 1
    assert server.probes == 3


@in_virtual_time
async def test_an_informer_that_stops_while_it_probes_leaves_that_to_another() -> None:
    limiter, server = reconnect_limiter(), Server()
    async with contextlib.AsyncExitStack() as stack:
        async with background(probing(limiter, server)):
            await turns()
            other = await stack.enter_async_context(background(probing(limiter, server)))
            await turns()
        assert (await other).version == "1"
    assert server.probes == 2


@in_virtual_time
async def test_informers_of_many_namespaces_share_a_probe_of_their_resource() -> None:
    async with APIServer(port=None) as server, server.connect() as client:
        names = ["default", "kube-system", "kube-public", "kube-node-lease"]
        informers = [client.informer("v1/configmaps", namespace=name) for name in names]
        async with contextlib.AsyncExitStack() as stack:
            for informer in informers:
                await stack.enter_async_context(informer)
                await informer.wait_synced(30)
            assert client.rest().reconnects.informers == 4
            await asyncio.sleep(100)
            before = [informer.statistics().reflector for informer in informers]
            server.cluster.storage.disconnect()
            server.cluster.wake_all()
            await asyncio.sleep(10)
            after = [informer.statistics().reflector for informer in informers]
    assert [one.watches - was.watches for one, was in zip(after, before, strict=True)] == [1] * 4
    assert sum(one.probes - was.probes for one, was in zip(after, before, strict=True)) == 1
