"""Each handler has its own period, and is told of everything again when it is over."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from kinform.cache.processor.events import Updated
from kinform.cache.processor.handlers import handler
from kinform.cache.processor.processor import Processor
from kinform.meta import Entry
from kinform.testing import in_virtual_time
from tests.cache.support_processor import (
    all_settled,
    hearing,
    in_stepping_time,
    pods,
    running,
    stepping_loop,
)

# --- resyncs --------------------------------------------------------------------------------------


class Resyncing:
    """A processor whose resyncs lead to all entries being told again, as an informer's do."""

    def __init__(self, entries: Iterable[Entry[str]] = (), *, delay: float = 0) -> None:
        self.entries = list(entries)
        self.delay = delay
        self.asked_at: list[float] = []
        self.processor: Processor[str] = Processor(name="pods", resync=self.resync)
        self.loop = asyncio.get_running_loop()

    def resync(self) -> None:
        self.asked_at.append(round(self.loop.time(), 3))
        self.loop.call_later(self.delay, self.processor.distribute_resync, self.entries)

    def add(self, period: float | None) -> list[float]:
        """Add a handler with that period; return when it is told of a resync of one object."""
        told_at: list[float] = []

        def on_update(event: Updated[str]) -> None:
            assert event.old is event.new
            told_at.append(round(self.loop.time(), 3))

        self.processor.add(
            handler(on_update=on_update, resync_period=period), present=self.entries, synced=True
        )
        return told_at


@pytest.mark.parametrize("delay", [0, 1], ids=["CG-I02", "CG-I03 started late"])
@in_virtual_time
async def test_each_handler_is_resynced_at_its_own_period(delay: float) -> None:
    """CG-I02, CG-I03: never, every 2 s and every 3 s, counted from the start."""
    resyncing = Resyncing(pods("pod1", "pod2"))
    never, second, third = resyncing.add(None), resyncing.add(2), resyncing.add(3)
    await asyncio.sleep(delay)
    async with running(resyncing.processor):
        await asyncio.sleep(6.5)
    assert never == []
    assert second == [delay + at for at in (2, 2, 4, 4, 6, 6)]
    assert third == [delay + at for at in (3, 3, 6, 6)]


@in_virtual_time
async def test_a_shorter_period_of_one_handler_is_none_of_the_others_business() -> None:
    """CG-I04: client-go lowers one period for all, or raises the late one's. Here each has one."""
    resyncing = Resyncing(pods("pod1"))
    day, never = resyncing.add(43_200), resyncing.add(None)
    async with running(resyncing.processor):
        await asyncio.sleep(10)
        minute = resyncing.add(60)
        odd = resyncing.add(55)
        short = resyncing.add(5)
        await asyncio.sleep(131)
    assert (day, never) == ([], [])
    assert minute == [70, 130]
    assert odd == [65, 120]
    assert short == [10 + 5 * n for n in range(1, 27)]
    assert len(resyncing.asked_at) == 2 + 2 + 26


@in_virtual_time
async def test_a_resync_that_is_late_is_told_once_to_all_who_wait_for_one() -> None:
    resyncing = Resyncing(pods("pod1"), delay=2.5)
    two, three, five = resyncing.add(2), resyncing.add(3), resyncing.add(5)
    async with running(resyncing.processor):
        await asyncio.sleep(5.2)
    assert resyncing.asked_at == [2, 3, 4, 5]
    assert (two, three, five) == ([4.5], [4.5], [])


@in_virtual_time
async def test_a_resync_nobody_asked_for_is_told_to_nobody() -> None:
    resyncing = Resyncing(pods("pod1"))
    told = resyncing.add(10)
    async with running(resyncing.processor):
        resyncing.processor.distribute_resync(resyncing.entries)
        await all_settled()
        assert told == []


@pytest.mark.parametrize("how", ["removed", "stopped"])
@in_virtual_time
async def test_a_handler_that_is_gone_asks_for_no_resync(how: str) -> None:
    asked: list[None] = []
    processor: Processor[str] = Processor(name="pods", resync=lambda: asked.append(None))
    registration = processor.add(hearing([], resync_period=10), present=(), synced=True)
    async with running(processor):
        await asyncio.sleep(5)
        if how == "removed":
            registration.remove()
            await asyncio.sleep(100)
    await asyncio.sleep(100)
    assert asked == []


def test_a_loop_that_was_held_up_does_not_make_up_for_the_resyncs_it_missed() -> None:
    asked_at: list[float] = []

    async def main() -> None:
        loop = stepping_loop()
        processor: Processor[str] = Processor(
            name="pods", resync=lambda: asked_at.append(loop.time())
        )
        processor.add(hearing([], resync_period=10), present=(), synced=True)
        async with running(processor):
            for seconds in (10, 10, 35, 5, 5):
                for _ in range(3):
                    await asyncio.sleep(0)
                loop.take(seconds)
            for _ in range(3):
                await asyncio.sleep(0)

    in_stepping_time(main())
    assert asked_at == [10, 20, 55, 65]


@in_virtual_time
async def test_whoever_cares_for_no_resync_gives_no_function_for_it() -> None:
    processor: Processor[str] = Processor(name="pods")
    processor.add(hearing([], resync_period=10), present=(), synced=True)
    async with running(processor):
        await asyncio.sleep(25)
