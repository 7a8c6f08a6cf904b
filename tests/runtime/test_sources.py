"""Sources beyond Kubernetes: timers, streams, and channels."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator
from itertools import pairwise

import pytest

import kinform
from kinform.clock import offload
from kinform.runtime.source.triggers import ChannelSource, StreamSource, TimerSource
from kinform.testing import in_virtual_time
from kinform.workqueue import CauseKind, WorkQueue
from tests.runtime.support_controllers import Log, controller, key, running, served


@in_virtual_time
async def test_a_timer_comes_at_once_and_again_and_again_but_not_in_step() -> None:
    times: list[float] = []

    async def note(_ctx: object, _name: object) -> None:
        times.append(asyncio.get_running_loop().time())

    log = Log(note)
    async with served() as (_, client):
        timer = TimerSource(300, [key("cluster")])
        async with running(client, controller(log, watches=[timer])):
            await log.called(5)
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert all(300 <= pause <= 330 for pause in pauses)
    assert len({round(pause, 6) for pause in pauses}) > 1
    assert {cause.kind for ctx in log.contexts for cause in ctx.causes} == {CauseKind.TIMER}


@in_virtual_time
async def test_a_timer_asks_each_time_what_there_is() -> None:
    there, log = ["a"], Log()
    async with served() as (_, client):
        timer = TimerSource(60, lambda: [key(name) for name in there])
        async with running(client, controller(log, watches=[timer])):
            await log.called(1)
            there.append("b")
            await log.called(3)
    assert log.names == ["a", "a", "b"]


@pytest.mark.parametrize("every", [0, -1.0, float("nan"), float("inf")])
def test_a_timer_must_say_how_often(every: float) -> None:
    with pytest.raises(kinform.UsageError, match="expected seconds, more than 0"):
        TimerSource(every, [])


@in_virtual_time
async def test_a_stream_is_opened_again_when_it_fails_and_not_when_it_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    opened: list[float] = []
    closed: list[int] = []

    async def stream() -> AsyncGenerator[str]:
        opened.append(asyncio.get_running_loop().time())
        number = len(opened)
        try:
            if number <= 3:
                raise ConnectionError("refused")
            yield f"item-{number}"
            if number == 4:
                raise ConnectionError("broken")
        finally:
            closed.append(number)

    log = Log()
    source = StreamSource(stream, lambda item: [key(item)], name="hooks")
    async with served() as (_, client):
        async with running(client, controller(log, watches=[source])):
            await log.called(2)
            await asyncio.sleep(600)
    assert log.names == ["item-4", "item-5"]
    assert closed == [1, 2, 3, 4, 5]
    waits = [later - earlier for earlier, later in pairwise(opened)]
    # Doubled with each failure, plus up to as much again at random.
    for wait, least in zip(waits, [0.8, 1.6, 3.2, 6.4], strict=True):
        assert least <= wait <= 2 * least
    assert caplog.text.count("part ended unexpectedly: kinform test source hooks: Connection") == 4


@in_virtual_time
async def test_a_stream_that_cannot_be_closed_will_do() -> None:
    class Items:
        def __init__(self) -> None:
            self._left = ["a", "b"]

        def __aiter__(self) -> AsyncIterator[str]:
            return self

        async def __anext__(self) -> str:
            if not self._left:
                raise StopAsyncIteration
            return self._left.pop()

    queue: WorkQueue[kinform.ObjectName] = WorkQueue()
    await StreamSource(Items, key).run(queue.add)
    assert len(queue) == 2


@in_virtual_time
async def test_what_was_sent_before_the_start_is_kept() -> None:
    log, channel = Log(), ChannelSource(buffer=2)
    for name in ("a", "b", "a"):
        channel.send(key(name))
    with pytest.raises(kinform.UsageError, match="channel 'channel' is full: 2 names wait"):
        channel.send(key("c"))
    async with served() as (_, client):
        async with running(client, controller(log, watches=[channel])):
            await log.called(2)
            channel.send(key("d"))
            await log.called(3)
        channel.send(key("e"))  # no controller runs: it waits for the next
    assert log.names == ["a", "b", "d"]
    assert {cause.kind for ctx in log.contexts for cause in ctx.causes} == {CauseKind.OTHER}


async def test_any_thread_may_send() -> None:
    channel, queue = ChannelSource(), WorkQueue[kinform.ObjectName]()
    async with asyncio.TaskGroup() as group:
        running_source = group.create_task(channel.run(queue.add))
        await asyncio.sleep(0)
        thread = threading.Thread(target=channel.send, args=[key("a")])
        thread.start()
        assert await queue.get() == key("a")
        queue.done(key("a"))
        await offload(thread.join)
        running_source.cancel()


def test_what_is_sent_must_be_a_name() -> None:
    with pytest.raises(kinform.UsageError, match="'a' is not an ObjectName"):
        ChannelSource().send("a")  # type: ignore[arg-type]


@in_virtual_time
async def test_a_source_that_is_cancelled_from_within_is_run_again() -> None:
    runs: list[float] = []

    class Odd:
        name = "odd"

        async def run(self, add: object) -> None:
            runs.append(asyncio.get_running_loop().time())
            inner = asyncio.get_running_loop().create_task(asyncio.sleep(10))
            inner.cancel()
            await inner

    async with served() as (_, client):
        async with running(client, controller(Log(), watches=[Odd()])):
            await asyncio.sleep(10)
    assert len(runs) > 2


@in_virtual_time
async def test_a_channel_belongs_to_one_controller(caplog: pytest.LogCaptureFixture) -> None:
    channel, log = ChannelSource(), Log()
    async with served() as (_, client):
        first = controller(log, watches=[channel])
        second = kinform.Controller("other", Log(), for_="v1/secrets", watches=[channel])
        async with running(client, first, second):
            await asyncio.sleep(5)
            channel.send(key("a"))
            await log.called(1)
    assert "channel 'channel' belongs to another controller already" in caplog.text
