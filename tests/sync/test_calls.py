"""Ctrl-C at every point of a blocking call."""

from __future__ import annotations

import asyncio
import concurrent.futures
import itertools
import sys
from types import FrameType

from kinform.sync import run
from tests.sync.test_client import tasks_on_the_loop
from tests.testing.eventually import eventually


class _Interrupt:
    """A trace function: raises KeyboardInterrupt before the n-th bytecode instruction of ours.

    Or else where the thread would begin to wait. So each moment has its turn, without a signal
    that hits another one each time.
    """

    def __init__(self, after: int) -> None:
        self.left = after
        self.is_waiting = False

    def __call__(self, frame: FrameType, event: str, _arg: object) -> _Interrupt | None:
        code = frame.f_code
        if code is concurrent.futures.Future.result.__code__:
            self.is_waiting = True
            raise KeyboardInterrupt
        if "kinform/sync/" not in code.co_filename.replace("\\", "/"):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self


async def _endless() -> None:
    await asyncio.Event().wait()


def _interrupted(after: int) -> bool:
    """Interrupt a call that would never end; return whether it waited already."""
    interrupt = _Interrupt(after)
    before = sys.gettrace()
    sys.settrace(interrupt)
    try:
        run(_endless)
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return interrupt.is_waiting


def test_ctrl_c_at_any_point_of_a_call_leaves_nothing_running() -> None:
    points = 0
    for points in itertools.count(1):
        if _interrupted(after=points):
            break
        # What is counted is a call of its own, and comes after all that was cancelled.
        eventually(lambda: run(tasks_on_the_loop) == 0)
    assert points > 50
    eventually(lambda: run(tasks_on_the_loop) == 0)
