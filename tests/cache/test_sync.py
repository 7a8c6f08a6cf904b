"""Waiting for several caches and handlers at once."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

import pytest

from kinform.cache._informer.state_waiters import wait_for_cache_sync
from kinform.cache.shared_informer import SharedInformer
from kinform.errors import UsageError
from kinform.objects.object import Object
from kinform.testing import in_virtual_time
from tests.cache.support_informer import REFUSED, source_of

DEVIATIONS: Final = {"CG-I25": "an empty list of informers is a UsageError"}


def synced_after(seconds: float, name: str) -> SharedInformer[Object]:
    source = source_of("a")
    source.latency = seconds
    return SharedInformer(source, name=name)


def never_synced(name: str) -> SharedInformer[Object]:
    source = source_of("a")
    source.fail_watches(REFUSED, forever=True)
    source.fail_lists(REFUSED, forever=True)
    return SharedInformer(source, name=name)


async def test_nothing_to_wait_for_is_a_mistake() -> None:
    """CG-I25: in client-go it is done at once, and whoever forgot the informers never knows."""
    with pytest.raises(UsageError, match="there is nothing to wait for"):
        await wait_for_cache_sync()
    with pytest.raises(UsageError, match="there is nothing to wait for"):
        await wait_for_cache_sync(timeout=0)


async def test_a_time_out_goes_by_its_name() -> None:
    with pytest.raises(UsageError, match="for a timeout pass timeout=30"):
        await wait_for_cache_sync(never_synced("pods"), 30)  # type: ignore[arg-type]


async def test_what_does_not_sync_is_not_waited_for() -> None:
    with pytest.raises(UsageError, match="str cannot sync; expected informers"):
        await wait_for_cache_sync("v1/pods")  # type: ignore[arg-type]


@in_virtual_time
async def test_it_waits_for_the_last_and_says_when_each_was_there(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """CG-I25."""
    caplog.set_level(logging.DEBUG, "kinform.cache._informer.state_waiters")
    slow, fast = synced_after(3, "slow"), synced_after(1, "fast")
    registration = fast.add_event_handler(on_add=lambda _: None, name="handler")
    async with slow, fast:
        await wait_for_cache_sync(slow, fast, registration, timeout=10)
        assert slow.has_synced
        assert registration.has_synced
        assert asyncio.get_running_loop().time() == pytest.approx(3)
        await wait_for_cache_sync(slow, fast, timeout=0)  # no time is enough for what is there
    waiting = "waiting for 3 to sync: fast, handler, slow"
    synced = ["fast has synced after 1.0 s", "handler has synced after 1.0 s"]
    assert caplog.messages == [waiting, *synced, "slow has synced after 3.0 s"]


@in_virtual_time
async def test_the_time_out_names_who_is_missing_in_order_and_why() -> None:
    """CG-I25, CG-I26."""
    informers = never_synced("pods"), synced_after(1, "nodes"), never_synced("jobs")
    async with informers[0], informers[1], informers[2]:
        with pytest.raises(TimeoutError, match=r"^not synced within 5 s: jobs, pods$") as caught:
            await wait_for_cache_sync(*informers, timeout=5)
        assert asyncio.get_running_loop().time() == pytest.approx(5)
    cause = caught.value.__cause__
    assert isinstance(cause, TimeoutError)
    assert cause.__cause__ is REFUSED


@in_virtual_time
async def test_one_that_stops_is_told_as_it_is() -> None:
    one, other = never_synced("one"), never_synced("other")
    async with one, other:
        async with asyncio.TaskGroup() as group:
            group.create_task(_stop_later(one))
            with pytest.raises(UsageError, match=r"^one has stopped$"):
                await wait_for_cache_sync(one, other, timeout=5)
    assert asyncio.get_running_loop().time() < 2


async def _stop_later(informer: SharedInformer[Object]) -> None:
    await asyncio.sleep(1)
    await informer.stop()


@in_virtual_time
async def test_one_that_was_not_started_is_a_mistake() -> None:
    with pytest.raises(UsageError, match="pods was not started"):
        await wait_for_cache_sync(never_synced("pods"), timeout=5)


@in_virtual_time
async def test_the_wait_can_be_cancelled() -> None:
    informer = never_synced("pods")
    async with informer:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await wait_for_cache_sync(informer, informer)
        assert asyncio.get_running_loop().time() == pytest.approx(1)


@in_virtual_time
async def test_a_handler_that_is_removed_never_syncs() -> None:
    informer = synced_after(3, "slow")
    registration = informer.add_event_handler(on_add=lambda _: None)
    async with informer:
        asyncio.get_running_loop().call_later(1, registration.remove)
        with pytest.raises(UsageError, match="was removed or stopped before it had synced"):
            await wait_for_cache_sync(informer, registration, timeout=10)
