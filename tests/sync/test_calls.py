"""Ctrl-C at every point of a blocking call."""

from __future__ import annotations

import _thread
import asyncio
import gc
import itertools
import sys
from types import FrameType

import pytest

from kinform.sync import run
from tests.sync.test_client import tasks_on_the_loop
from tests.testing.eventually import eventually


class _Interrupt:
    """A trace function: raises KeyboardInterrupt before the n-th bytecode instruction of ours.

    What others' functions do is not ours, but they are interrupted too, where they begin and where
    they end. At the latest it raises where the thread goes round a loop, for then it waits. So
    each moment has its turn, without a signal that hits another one each time.
    """

    def __init__(self, after: int) -> None:
        self.left = after
        self.is_waiting = False
        self._passed: set[tuple[FrameType, int]] = set()

    def __call__(self, frame: FrameType, event: str, _arg: object) -> _Interrupt | None:
        is_ours = "kinform/sync/" in frame.f_code.co_filename.replace("\\", "/")
        frame.f_trace_opcodes = is_ours
        if event == "opcode":
            point = (frame, frame.f_lasti)
            self.is_waiting = point in self._passed
            self._passed.add(point)
        if event == "opcode" or (event in {"call", "return"} and not is_ours):
            self.left -= 1
            if self.left == 0 or self.is_waiting:
                raise KeyboardInterrupt
        return self


async def _long() -> None:
    await asyncio.sleep(30)


def _interrupted(after: int) -> bool:
    """Interrupt a call that would take long; return whether it waited already.

    Garbage collection is off meanwhile: a callback on collections, as Hypothesis has one, would be
    interrupted instead, and an error raised there is lost.
    """
    interrupt = _Interrupt(after)
    before = sys.gettrace()
    gc.disable()
    try:
        with pytest.raises(KeyboardInterrupt):
            sys.settrace(interrupt)
            run(_long)
    finally:
        sys.settrace(before)
        gc.enable()
    return interrupt.is_waiting


@pytest.mark.slow
def test_ctrl_c_at_any_point_of_a_call_leaves_nothing_running() -> None:
    points = 0
    for points in itertools.count(1):
        if _interrupted(after=points):
            break
        # What is counted is a call of its own, and comes after all that was cancelled.
        eventually(lambda: run(tasks_on_the_loop) == 0)
    assert points > 50
    eventually(lambda: run(tasks_on_the_loop) == 0)


def test_ctrl_c_that_does_not_wake_the_thread_is_noticed_all_the_same() -> None:
    """As one that comes when the thread is about to wait, and does not sleep yet."""
    ended = []

    async def interrupt() -> None:
        try:
            await asyncio.sleep(0.1)  # it waits by now
            _thread.interrupt_main()  # like a signal, but it does not wake a waiting thread
            await asyncio.sleep(5)
            ended.append("by itself")
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    with pytest.raises(KeyboardInterrupt):
        run(interrupt)
    eventually(lambda: len(ended) == 1)
    assert ended == ["cancelled"]
