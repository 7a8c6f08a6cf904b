"""Tasks beside the reflector: their unexpected ends are reported, and they are started again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kinform._parts import Parts
from kinform.cache.reflector import Reflector
from kinform.cache.reflector_options import ReflectorOptions
from kinform.cache.store.store import Store
from kinform.errors import UsageError
from kinform.objects.object import Object
from kinform.testing import FakeListWatch, in_virtual_time
from tests.cache.support_reflector import config, is_probe, running, until


def cancel(part: str) -> int:
    """Cancel the tasks whose name ends with ``part``, as an application may; return how many."""
    tasks = [one for one in asyncio.all_tasks() if one.get_name().endswith(part)]
    return sum(one.cancel() for one in tasks)


def source_of_one() -> FakeListWatch[Object]:
    source = FakeListWatch[Object]()
    source.add(config("c0"))
    return source


class CountingStore(Store[Any]):
    resyncs = 0

    def resync(self) -> None:
        self.resyncs += 1


@in_virtual_time
async def test_a_resync_that_is_cancelled_is_reported_and_goes_on() -> None:
    store, parts = CountingStore(), Parts("pods")
    reflector = Reflector(source_of_one(), store, name="pods", resync_period=10, parts=parts)
    async with running(reflector):
        await asyncio.sleep(35)
        assert cancel("pods resync") == 1
        await asyncio.sleep(35)
        assert store.resyncs == 6
        assert parts.unexpected_ends == 1
        assert "pods resync" in (parts.problem() or "")


@in_virtual_time(max_turns=1_000_000)
async def test_probes_beside_a_watch_go_on_when_their_task_is_cancelled() -> None:
    source, parts = source_of_one(), Parts("pods")
    async with running(Reflector(source, Store(), name="pods", parts=parts)):
        await until(lambda: source.open_watches)
        assert cancel("pods probes") == 1
        await asyncio.sleep(1000)
    assert parts.unexpected_ends == 1
    assert sum(is_probe(one.options) for one in source.requests) >= 2


@pytest.mark.parametrize("part", ["pods resync", "pods probes"])
@in_virtual_time(max_turns=1_000_000)
async def test_a_task_that_ends_six_times_in_a_minute_ends_the_reflector(part: str) -> None:
    options = ReflectorOptions(stream_lists=False)
    source = source_of_one()
    reflector = Reflector(source, CountingStore(), name="pods", resync_period=10, options=options)
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        task = group.create_task(ended_by(reflector))
        while not task.done():
            await asyncio.sleep(0.1)
            cancel(part)
    assert isinstance(task.result(), UsageError)
    assert source.open_watches == 0


async def ended_by(reflector: Reflector[Any]) -> BaseException:
    with pytest.raises(UsageError, match="cancelled from outside") as failure:
        await reflector.run()
    return failure.value


@in_virtual_time
async def test_a_reflector_that_is_stopped_reports_no_end() -> None:
    parts = Parts("pods")
    reflector = Reflector(source_of_one(), CountingStore(), resync_period=10, parts=parts)
    async with running(reflector):
        await asyncio.sleep(35)
    await asyncio.sleep(100)
    assert parts.unexpected_ends == 0
