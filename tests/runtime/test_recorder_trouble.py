"""EventRecorder when the server is slow, dead or refuses, and when the recorder is stopped."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.apiserver import APIServer, faults
from kinform.errors import (
    AlreadyExistsError,
    ApiError,
    ConfigError,
    ForbiddenError,
    LeadershipLost,
    TransportError,
    TransportFailure,
    UsageError,
    api_error,
)
from kinform.meta import Status
from kinform.runtime.events.recorder import EventAPI, EventRecorder, is_expected, retry_wait
from kinform.testing import in_virtual_time, virtual_time
from tests.runtime.support_recorder import POD, Scene, scene


def time() -> float:
    return asyncio.get_running_loop().time()


# --- the server is away


@in_virtual_time
async def test_a_server_that_is_away_holds_up_nobody_and_hears_of_everything_later() -> None:
    async with scene() as s, s.recorder as recorder:
        away = s.server.faults.add(faults.refuse(duration=90))
        for _ in range(10_000):
            s.say()
        s.say("Second")
        assert time() == 0
        await asyncio.sleep(60)
        assert (recorder.statistics().sent, recorder.statistics().failed) == (0, 0)
        await asyncio.sleep(60)
        s.server.faults.remove(away)
        assert await s.written() == [("Pulled", 10_000), ("Second", 1)]
        assert recorder.statistics().sent == 2


@in_virtual_time
async def test_a_failing_write_is_tried_twelve_times_ten_seconds_apart() -> None:
    async with scene() as s, s.recorder as recorder:
        fault = s.server.faults.add(faults.status(500, verb="create", times=12))
        s.say("First")
        s.say("Second")
        await asyncio.sleep(99)
        assert fault.hits in {10, 11}  # the first wait is random
        await asyncio.sleep(13)
        assert fault.hits == 12
        assert await s.written() == [("Second", 1)]
        assert recorder.statistics().failed == 1
        s.say("First")  # what failed stays counted
        await asyncio.sleep(1)
        assert ("First", 2) in await s.written()


@in_virtual_time
async def test_a_silent_server_is_given_up_after_half_a_minute_each_time() -> None:
    async with scene() as s, s.recorder:
        fault = s.server.faults.add(faults.stall(verb="create"))
        s.say()
        await asyncio.sleep(29)
        assert fault.hits == 1
        await asyncio.sleep(12)
        assert fault.hits == 2
        s.server.faults.remove(fault)
        await asyncio.sleep(60)
        assert await s.written() == [("Pulled", 1)]


@in_virtual_time
async def test_a_server_that_asks_for_patience_gets_it() -> None:
    async with scene() as s, s.recorder:
        fault = s.server.faults.add(faults.status(429, verb="create", retry_after=60, nth=1))
        s.say()
        await asyncio.sleep(59)
        assert await s.written() == []
        await asyncio.sleep(2)
        assert await s.written() == [("Pulled", 1)]
        assert fault.hits == 1


@in_virtual_time
async def test_a_create_whose_answer_was_lost_is_no_second_event() -> None:
    async with scene() as s, s.recorder:
        s.server.faults.add(faults.close(verb="create", after_bytes=10, nth=1))
        s.say()
        await asyncio.sleep(0.01)
        assert await s.written() == [("Pulled", 1)]
        s.say()  # counted while the first one is about to be tried again
        await asyncio.sleep(60)
        assert await s.written() == [("Pulled", 2)]
        assert (s.recorder.statistics().sent, s.recorder.statistics().failed) == (1, 0)


@in_virtual_time
async def test_what_was_told_with_an_earlier_write_is_not_written_again() -> None:
    async with scene() as s, s.recorder:
        s.server.faults.add(faults.close(verb="create", after_bytes=10, nth=1))
        slow = s.server.faults.add(faults.latency(20.0, verb="create", nth=2))
        s.say()
        await asyncio.sleep(15)
        assert slow.hits == 1
        s.say()  # waits behind the second try, which finds the event there and patches it
        await asyncio.sleep(60)
        assert await s.written() == [("Pulled", 2)]
        assert (s.recorder.statistics().sent, s.recorder.statistics().patched) == (1, 1)


@in_virtual_time
async def test_too_many_that_wait_are_dropped_and_complained_of_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with scene(capacity=5) as s:
        async with s.recorder as recorder:
            s.server.faults.add(faults.refuse(duration=100))
            for n in range(20):
                s.say(f"Reason{n}")
            assert recorder.statistics().waiting == 5
            assert recorder.statistics().dropped_full == 15
            s.say("Reason2")  # waits already: counted, and not dropped
            assert recorder.statistics().dropped_full == 15
            assert len(caplog.messages) == 1
            await asyncio.sleep(61)
            s.say("Late")
            s.say("Later")
            assert len(caplog.messages) == 2
            assert "5 events wait to be written" in caplog.messages[1]
            await asyncio.sleep(120)
            counts = [1, 1, 2, 1, 1]
            expected = [(f"Reason{n}", count) for n, count in enumerate(counts)]
            assert await s.written() == expected


# --- the server says no


@pytest.mark.parametrize("code", [400, 401, 403, 422])
@in_virtual_time
async def test_a_refusal_is_not_repeated_and_is_told_once_a_minute(
    code: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with scene() as s, s.recorder as recorder:
        fault = s.server.faults.add(faults.status(code, verb="create"))
        s.say("One")
        s.say("Two")
        await asyncio.sleep(30)
        assert fault.hits == 2
        assert recorder.statistics().failed == 2
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert "events cannot be written" in caplog.text


@in_virtual_time
async def test_events_about_a_namespace_that_goes_away_are_dropped_quietly(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with scene() as s, s.recorder as recorder:
        await s.client.resource("v1/namespaces").create({"metadata": {"name": "old"}})
        maps = s.client.resource("v1/configmaps", namespace="old")
        held = await maps.create({"metadata": {"name": "a", "finalizers": ["example.com/wait"]}})
        await s.client.resource("v1/namespaces").delete("old")
        s.say("Terminating", regarding=held)
        await asyncio.sleep(1)
        assert recorder.statistics().failed == 1
        await maps.patch("a", {"metadata": {"finalizers": None}})
        await asyncio.sleep(1)
        s.say("Gone", regarding=held)
        await asyncio.sleep(1)
        assert recorder.statistics().failed == 2
    assert caplog.messages == []


@in_virtual_time
async def test_who_leads_no_more_drops_his_events_and_goes_on_when_he_leads_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    leads = False

    def guard() -> None:
        if not leads:
            raise LeadershipLost("no longer ours", lease="ops/me")

    async with APIServer(port=None) as server, server.connect() as client:
        async with EventRecorder(client.guarded(guard), "tests") as recorder:
            s = Scene(server, client, recorder)
            s.say("First")
            s.say("Second")
            await asyncio.sleep(1)
            assert (recorder.statistics().failed, recorder.statistics().waiting) == (2, 0)
            leads = True
            s.say("Third")
            await asyncio.sleep(1)
            assert await s.written() == [("Third", 1)]
    assert caplog.messages == []


@in_virtual_time
async def test_a_guard_that_fails_in_a_way_of_its_own_does_not_end_the_recorder(
    caplog: pytest.LogCaptureFixture,
) -> None:
    guards = itertools.count()

    def guard() -> None:
        if next(guards) == 0:
            raise ZeroDivisionError

    async with APIServer(port=None) as server, server.connect() as client:
        async with EventRecorder(client.guarded(guard), "tests") as recorder:
            s = Scene(server, client, recorder)
            s.say("First")
            s.say("Second")
            await asyncio.sleep(1)
            assert await s.written() == [("Second", 1)]
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize("api", ["v1", "events.k8s.io/v1"])
@in_virtual_time
async def test_a_name_that_somebody_else_has_is_exchanged_for_another(api: EventAPI) -> None:
    async with scene(api) as s, s.recorder as recorder:
        name = f"web-0.{int(virtual_time.virtual_clock().wall() * 1e9):x}"
        events = s.client.resource("v1/events", namespace="default")
        foreign = {"metadata": {"name": name}, "involvedObject": {"namespace": "default"}}
        await events.create({**foreign, "reason": "Foreign"})
        s.say()
        await asyncio.sleep(11)
        assert [event["reason"] for event in await s.events()] == ["Foreign", "Pulled"]
        assert recorder.statistics().sent == 1


@in_virtual_time
async def test_a_server_for_which_every_name_exists_is_given_up() -> None:
    async with scene() as s, s.recorder as recorder:
        fault = s.server.faults.add(faults.status(409, reason="AlreadyExists", verb="create"))
        s.say()
        await asyncio.sleep(200)
        assert (fault.hits, recorder.statistics().failed) == (12, 1)


@in_virtual_time
async def test_the_events_of_an_object_are_created_in_their_order_whatever_fails() -> None:
    async with scene() as s, s.recorder:
        s.server.faults.add(faults.status(503, verb="create", nth=3, times=2))
        s.server.faults.add(faults.latency(2.0, verb="create"))
        reasons = [f"Reason{n}" for n in range(8)]
        watch = s.client.resource("v1/events", namespace="default").watch()
        async with watch as events:
            for reason in reasons:
                s.say(reason)
            created = [event.object.at("reason") async for event in _first(events, len(reasons))]
    assert created == reasons


async def _first(events, number: int):
    async for event in events:
        yield event
        number -= 1
        if not number:
            return


# --- ends


@in_virtual_time
async def test_what_waits_is_sent_when_the_block_is_left_and_later_events_are_dropped() -> None:
    async with scene() as s:
        async with s.recorder as recorder:
            s.say("First")
            s.say("Second")
        assert await s.written() == [("First", 1), ("Second", 1)]
        s.say("Late")
        statistics = recorder.statistics()
        assert (statistics.dropped_late, statistics.waiting) == (1, 0)
        await recorder.stop()  # once more
        with pytest.raises(UsageError, match="started before"):
            recorder.start()


@pytest.mark.parametrize("pause", [0, 2])
@in_virtual_time
async def test_a_dead_server_holds_up_the_end_for_no_longer_than_its_grace(
    pause: float, caplog: pytest.LogCaptureFixture
) -> None:
    async with scene() as s:
        s.server.faults.add(faults.stall())
        async with s.recorder:
            s.say("First")
            s.say("Second")
            if pause:
                await asyncio.sleep(pause)
                assert s.recorder.statistics().waiting == 2
        assert time() == 5 + pause
        assert s.recorder.statistics().waiting == 2
    assert "2 events not sent" in caplog.text


@in_virtual_time
async def test_a_drain_does_not_wait_for_the_next_try() -> None:
    async with scene() as s, s.recorder as recorder:
        s.server.faults.add(faults.status(503, verb="create", times=2))
        s.say()
        await asyncio.sleep(11)  # two tries: the next is ten seconds away
        assert await recorder.drain(1) == 0
        assert await s.written() == [("Pulled", 1)]


@in_virtual_time
async def test_a_drain_sends_by_itself_where_nobody_runs() -> None:
    async with scene() as s:
        s.say()
        assert s.recorder.statistics().waiting == 1
        assert await s.recorder.drain(1) == 0
        assert await s.written() == [("Pulled", 1)]
        s.server.faults.add(faults.stall(verb="create"))
        s.say("Second")
        assert await s.recorder.drain(3) == 1
        with pytest.raises(ValueError, match="timeout is -1"):
            await s.recorder.drain(-1)


@in_virtual_time
async def test_the_block_may_be_left_in_another_task() -> None:
    async with scene() as s:
        async with asyncio.TaskGroup() as group:
            await group.create_task(s.recorder.__aenter__())
        s.say()
        async with asyncio.TaskGroup() as group:
            await group.create_task(s.recorder.__aexit__(None, None, None))
        assert await s.written() == [("Pulled", 1)]


@in_virtual_time
async def test_a_recorder_is_run_by_one_at_a_time() -> None:
    async with scene() as s, s.recorder as recorder:
        await asyncio.sleep(0)
        with pytest.raises(UsageError, match="runs already"):
            await recorder.run()


@in_virtual_time
async def test_a_recorder_that_was_never_started_sends_what_waits_when_it_stops() -> None:
    async with scene() as s:
        s.say()
        await s.recorder.stop()
        assert await s.written() == [("Pulled", 1)]


@in_virtual_time
async def test_a_stop_that_is_cancelled_ends_at_once() -> None:
    async with scene() as s:
        s.server.faults.add(faults.stall())
        s.recorder.start()
        s.say()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1):
                await s.recorder.stop(grace=100)
        assert time() == 1


async def cancelled_now_and_then(moments: list[float], messages: int) -> None:
    async with scene() as s:
        s.server.faults.add(faults.latency(1.0, verb="create"))
        s.server.faults.add(faults.latency(1.0, verb="patch"))
        for n in range(messages):
            s.say("AB"[n % 2])
        for moment in moments:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(moment):
                    await s.recorder.run()
            s.say("A")
        assert await s.recorder.drain(100) == 0
        written = dict(await s.written())
        expected = {"A": (messages + 1) // 2 + len(moments), "B": messages // 2}
        assert written == {reason: count for reason, count in expected.items() if count}
        assert s.recorder.statistics().sent == len(written)


@pytest.mark.slow
@given(st.lists(st.floats(0, 4), max_size=8), st.integers(0, 5))
def test_wherever_it_is_cancelled_nothing_is_lost_and_nothing_doubled(
    moments: list[float], messages: int
) -> None:
    virtual_time.run(cancelled_now_and_then(moments, messages))


def say_often(s: Scene, times: int) -> None:
    for _ in range(times):
        s.say()


async def test_events_may_come_from_other_threads() -> None:
    async with APIServer(port=None) as server, server.connect() as client:
        async with EventRecorder(client, "tests") as recorder:
            s = Scene(server, client, recorder)
            await asyncio.sleep(0)  # it runs
            loop = asyncio.get_running_loop()
            loop.set_debug(True)  # asyncio raises if another thread wakes a task
            await loop.run_in_executor(None, say_often, s, 100)
            assert recorder.statistics().recorded == 100
        assert await s.written() == [("Pulled", 100)]
    thread = threading.Thread(target=s.say)
    thread.start()
    thread.join()


@in_virtual_time
async def test_a_client_that_is_closed_is_complained_of(caplog: pytest.LogCaptureFixture) -> None:
    async with APIServer(port=None) as server:
        async with server.connect() as client:
            recorder = EventRecorder(client, "tests")
        recorder.event(POD, "Normal", "Late", "too late")
        assert await recorder.drain(1) == 0
        assert recorder.statistics().failed == 1
    assert "this client is closed" in caplog.text
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


# --- which failures are worth another try


def refusal(code: int, **status: object) -> ApiError:
    return api_error(Status(code=code, **status))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "error, is_retried",
    [
        (refusal(500), True),
        (refusal(503), True),
        (refusal(504), True),
        (refusal(429), True),
        (refusal(409, reason="Conflict"), True),
        (refusal(409, reason="AlreadyExists"), True),
        (ConfigError("no token"), True),
        (TransportError("gone", failure=TransportFailure.RESET), True),
        (TransportError("closed", failure=TransportFailure.CLOSED), False),
        (refusal(403), False),
        (refusal(404), False),
        (refusal(422), False),
        (LeadershipLost("lost"), False),
        (UsageError("no"), False),
    ],
)
def test_only_what_may_pass_is_tried_again(error: Exception, is_retried: bool) -> None:
    assert retry_wait(error, tries=1, rand=0.5) == (5.0 if is_retried else None)
    assert retry_wait(error, tries=11, rand=0.5) == (10.0 if is_retried else None)
    assert retry_wait(error, tries=12, rand=0.5) is None


@given(st.floats(0, 1e6), st.integers(1, 11), st.floats(0, 1, exclude_max=True))
def test_a_wait_is_as_long_as_asked_for_within_reason(
    asked: float, tries: int, rand: float
) -> None:
    error = api_error(Status(code=503), retry_after=asked)
    wait = retry_wait(error, tries=tries, rand=rand)
    assert wait is not None
    assert min(asked, 120.0) <= wait <= max(10.0, min(asked, 120.0))


def test_a_plain_refusal_is_not_expected() -> None:
    assert not is_expected(refusal(403, message="pods is forbidden"))
    assert not is_expected(refusal(403, message="the old machine is being terminated"))
    said = "unable to create new content in namespace blue because it is being terminated"
    assert is_expected(refusal(403, message=said))
    assert isinstance(refusal(403), ForbiddenError)
    assert not is_expected(AlreadyExistsError(Status(code=409)))
