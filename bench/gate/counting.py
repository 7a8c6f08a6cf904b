"""Counters of the interpreter during a job: the same on every machine, busy or idle.

It depends on the minor version of Python, which has its own compiler. Two runs differ by less
than a thousandth, for some waits are random.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

__all__ = ["calls", "instructions", "tracked"]

_PASSES: Final = ("compress", "decode", "encode")
"""Endings of the names of functions that pass over bytes: of msgspec, zstandard and Python."""


def instructions(job: Callable[[], object]) -> int:
    """Run ``job``; return how many bytecode instructions that took in this thread."""
    count = _monitored if sys.version_info >= (3, 12) else _traced
    with _undisturbed():
        return count(job)


def calls(job: Callable[[], object]) -> tuple[int, int]:
    """Run ``job``; return how many functions in C were called, and how many of them on bytes."""
    called = passes = 0

    def profile(_frame: FrameType, event: str, function: object) -> None:
        nonlocal called, passes
        if event == "c_call":
            called += 1
            passes += getattr(function, "__name__", "").endswith(_PASSES)

    with _undisturbed():
        sys.setprofile(profile)
        try:
            job()
        finally:
            sys.setprofile(None)
    return called, passes


def tracked(job: Callable[[], object]) -> int:
    """Run ``job``; return how many more objects the garbage collector knows of afterwards."""
    with _undisturbed():
        before = len(gc.get_objects())
        kept = job()
        gc.collect()
        after = len(gc.get_objects())
        del kept
    return after - before


@contextmanager
def _undisturbed() -> Generator[None]:
    """Keep the collector out: when it runs depends on all that ran before."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _traced(job: Callable[[], object]) -> int:
    counted = 0

    def inside(_frame: FrameType, event: str, _arg: object) -> Any:
        nonlocal counted
        counted += event == "opcode"
        return inside

    def enter(frame: FrameType, _event: str, _arg: object) -> Any:
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        return inside

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        job()
    finally:
        sys.settrace(before)
    return counted


def _monitored(job: Callable[[], object]) -> int:
    counted = 0

    def instruction(_code: object, _offset: int) -> None:
        nonlocal counted
        counted += 1

    monitoring: Any = vars(sys)["monitoring"]  # since 3.12
    tool, events = monitoring.PROFILER_ID, monitoring.events
    monitoring.use_tool_id(tool, "bench.gate")
    try:
        monitoring.register_callback(tool, events.INSTRUCTION, instruction)
        monitoring.set_events(tool, events.INSTRUCTION)
        job()
    finally:
        monitoring.set_events(tool, events.NO_EVENTS)
        monitoring.register_callback(tool, events.INSTRUCTION, None)
        monitoring.free_tool_id(tool)
    return counted
