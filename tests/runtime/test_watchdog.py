"""A loop that does not turn: judged in pure code, and noticed by a real thread."""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform import UsageError
from kinform.runtime.watchdog import Blocked, Free, LoopLag, LoopWatchdog
from kinform.testing import in_virtual_time

INTERVAL = 0.25


class Judged:
    """A `LoopLag` with a loop and a thread that are simulated: time passes by words."""

    def __init__(self) -> None:
        self.now = self.cpu = 0.0
        self.due = INTERVAL
        self.lag = LoopLag(limit=1.0, interval=INTERVAL, now=0.0, cpu=0.0)

    def pass_time(self, seconds: float, *, busy: bool = False) -> Blocked | Free | None:
        """Let one look follow the last one after ``seconds``."""
        self.now += seconds
        self.cpu += seconds if busy else 0.0
        return self.lag.look(due=self.due, now=self.now, cpu=self.cpu)

    def turn(self) -> None:
        self.due = self.now + INTERVAL


def test_a_loop_that_turns_is_no_news() -> None:
    judged = Judged()
    for _ in range(20):
        judged.turn()
        assert judged.pass_time(INTERVAL) is None
        assert judged.lag.late(judged.due, judged.now) == 0


def test_a_block_is_told_once_and_its_end_once() -> None:
    judged = Judged()
    news = [judged.pass_time(INTERVAL) for _ in range(12)]
    assert [one for one in news if one is not None] == [Blocked(1.25)]
    assert judged.lag.late(judged.due, judged.now) == 2.75
    judged.turn()
    assert judged.pass_time(INTERVAL) == Free(2.75)
    judged.turn()
    assert judged.pass_time(INTERVAL) is None


def test_after_a_stop_of_the_whole_process_there_is_no_alarm() -> None:
    judged = Judged()
    judged.turn()
    assert judged.pass_time(3600) is None  # the thread looks first, the loop has had no turn
    assert judged.lag.late(judged.due, judged.now) == 0
    assert judged.pass_time(INTERVAL) is None
    judged.turn()
    assert judged.pass_time(INTERVAL) is None


def test_a_loop_that_stays_stuck_after_a_stop_is_told_with_the_time_since_then() -> None:
    judged = Judged()
    judged.pass_time(3600)
    news = [judged.pass_time(INTERVAL) for _ in range(8)]
    assert [one for one in news if one is not None] == [Blocked(1.25)]


def test_a_call_that_keeps_every_thread_from_running_is_a_block() -> None:
    """The thread itself is late, and the processor was busy: a call held the interpreter lock."""
    judged = Judged()
    judged.turn()
    assert judged.pass_time(5, busy=True) == Blocked(4.75)
    judged.turn()
    assert judged.pass_time(INTERVAL) == Free(4.75)


@given(st.lists(st.tuples(st.floats(0.01, 10), st.booleans(), st.booleans()), max_size=60))
def test_blocks_and_their_ends_alternate_and_are_longer_than_the_limit(
    steps: list[tuple[float, bool, bool]],
) -> None:
    judged, news = Judged(), list[Blocked | Free]()
    for seconds, busy, turns in steps:
        if turns:
            judged.turn()
        if (one := judged.pass_time(seconds, busy=busy)) is not None:
            news.append(one)
    assert all(isinstance(one, Blocked if n % 2 == 0 else Free) for n, one in enumerate(news))
    assert all(one.seconds > 1.0 for one in news if isinstance(one, Blocked))


# --- with a thread


def busy_until(condition: Callable[[], bool]) -> None:
    """Block the loop, with a computation that never ends by itself."""
    give_up = time.monotonic() + 10
    while not condition() and time.monotonic() < give_up:
        sum(range(1000))


async def turns_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - another thread changes it
            await asyncio.sleep(0.005)


def threads() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "kinform-loop-watchdog"]


@pytest.mark.slow
async def test_a_blocked_loop_is_told_with_the_stack_and_the_task(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """F-R36."""
    watchdog, blocked_for = LoopWatchdog(limit=0.08), list[float]()
    watchdog.start()

    def logged(words: str) -> list[str]:
        return [text for text in caplog.messages if words in text and "in task 'web-1'" in text]

    def has_more_than(count: int) -> bool:
        return len(caplog.messages) > count

    async def reconcile() -> None:
        while not logged("has been blocked"):  # a busy machine may be logged as well
            busy_until(functools.partial(has_more_than, len(caplog.messages)))
            blocked_for.append(watchdog.blocked_for)
            await asyncio.sleep(0)

    try:
        await turns_until(lambda: watchdog.blocked_for == 0)
        async with asyncio.TaskGroup() as group:
            group.create_task(reconcile(), name="web-1")
        await turns_until(lambda: bool(logged("was blocked")))
        await turns_until(lambda: watchdog.blocked_for == 0)
        assert watchdog.longest_block(60) > 0.08
        assert watchdog.longest_block(0) == 0
    finally:
        watchdog.stop()
    assert blocked_for[-1] > 0.08
    stuck, free = logged("has been blocked")[0], logged("was blocked")[0]
    assert re.match(r"the event loop has been blocked for \d\.\d s, in task 'web-1':\n", stuck)
    assert "busy_until(functools" in stuck
    assert "in busy_until" in stuck
    assert re.fullmatch(r"the event loop was blocked for \d\.\d s, in task 'web-1'", free)
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


@pytest.mark.slow
async def test_a_callback_that_blocks_has_no_task(caplog: pytest.LogCaptureFixture) -> None:
    watchdog = LoopWatchdog(limit=0.05)
    watchdog.start()
    try:
        asyncio.get_running_loop().call_soon(busy_until, lambda: "busy_until" in caplog.text)
        await turns_until(lambda: "was blocked" in caplog.text)
    finally:
        watchdog.stop()
    (logged,) = (text for text in caplog.messages if "in busy_until" in text)
    assert re.match(r".* has been blocked for \d\.\d s, in a callback:\n", logged)


async def test_its_thread_ends_with_it_and_it_can_be_started_again() -> None:
    watchdog = LoopWatchdog()
    await turns_until(lambda: not threads())  # that of the test before may take a moment
    for _ in range(2):
        watchdog.start()
        with pytest.raises(UsageError, match="started already"):
            watchdog.start()
        (thread,) = threads()
        assert thread.daemon
        watchdog.stop()
        watchdog.stop()
        await turns_until(lambda: not threads())
        assert watchdog.blocked_for == 0


@in_virtual_time
async def test_under_virtual_time_it_does_nothing() -> None:
    watchdog, before = LoopWatchdog(), threads()
    watchdog.start()
    assert set(threads()) <= set(before)
    await asyncio.sleep(100)
    assert watchdog.longest_block(1000) == 0
    watchdog.stop()


@pytest.mark.parametrize("limit", [0, -1, float("inf"), float("nan")])
def test_the_limit_is_a_time(limit: float) -> None:
    with pytest.raises(ValueError, match="positive number of seconds"):
        LoopWatchdog(limit)


STOPPED = """
import asyncio, logging
from kinform.runtime.watchdog import LoopWatchdog

async def main():
    watchdog = LoopWatchdog(limit=0.2)
    watchdog.start()
    while True:
        print("turning", flush=True)
        await asyncio.sleep(0.02)

logging.basicConfig()
asyncio.run(main())
"""


@pytest.mark.slow
def test_a_process_that_was_stopped_and_goes_on_gives_no_alarm() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STOPPED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            process.stdout.readline()
            os.kill(process.pid, signal.SIGSTOP)
            time.sleep(0.6)  # three times the limit: this clock is the system's
            os.kill(process.pid, signal.SIGCONT)
            for _ in range(20):  # it turns again, and the thread has looked
                assert process.stdout.readline() == "turning\n"
        finally:
            process.kill()
        assert process.stderr.read() == ""
