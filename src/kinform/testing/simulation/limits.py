"""Limits: how much a program may write, and how long a run may take."""

from __future__ import annotations

import contextlib
import signal
import sys
import sysconfig
import threading
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final, final

import kinform

__all__ = ["WATCHER", "Limits", "TimeUp", "limited"]

WATCHER: Final = "kinform time limit"
"""The thread that ends a run that waits."""
_AGAIN: Final = 5.0
"""Seconds after which a run that goes on after its time is interrupted again."""
_IDLE: Final = 0.01
"""A run that uses less of its time than that is blocked: a busy machine leaves it more."""
_OURS: Final = tuple(
    str(Path(path)) for path in (Path(kinform.__file__).parent, sysconfig.get_path("stdlib"))
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a program in one run, in addition to its check.

    Args:
        quiet: After all faults have ended and nothing else changes, a program must stop changing
            objects: within three times ``quiet`` virtual seconds it must change none for ``quiet``.
            0: no limit.
        writes: How often one process may write one object in any virtual minute, plus ten times for
            each write of the schedule in the last two minutes; for all objects together, ten times
            as often. Leases and events do not count. 0: no limit.
        seconds: CPU time of one run, and real time for which it may be blocked. 0: no limit.
    """

    quiet: float = 120.0
    writes: int = 60
    seconds: float = 60.0


class TimeUp(SystemExit):
    """A run has taken too long. Derived from SystemExit, so no ``except Exception`` hides it."""


@contextlib.contextmanager
def limited(seconds: float) -> Generator[list[str]]:
    """Raise `TimeUp` in this block once it has taken so much CPU time, or was blocked as long.

    The message is in the list, even if the block raises another error. A signal raises it, since
    nothing else ends a program that never yields. Without such signals, and in threads other than
    the main one, there is no limit.
    """
    if sys.platform == "win32" or not seconds or not _is_main():
        yield []
        return
    said: list[str] = []

    def end(_: int, frame: FrameType | None) -> None:
        said.append(
            f"the run took more than {seconds:g} s of CPU time, or was blocked for as long; it was "
            f"at {_where(frame)}. Blocking calls run in the event loop's own thread under virtual "
            "time: they must not wait for what the loop has to do"
        )
        raise TimeUp(said[-1])

    main = threading.get_ident()
    over = threading.Event()

    def watch() -> None:
        used = time.process_time()
        while not over.wait(seconds):
            before, used = used, time.process_time()
            if used - before < _IDLE * seconds:  # it waits for something other than the CPU
                signal.pthread_kill(main, signal.SIGPROF)

    before = signal.signal(signal.SIGPROF, end)
    watcher = threading.Thread(target=watch, name=WATCHER, daemon=True)
    try:
        signal.setitimer(signal.ITIMER_PROF, seconds, _AGAIN)
        watcher.start()
        yield said
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        over.set()
        watcher.join()
        signal.signal(signal.SIGPROF, before)


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


def _where(frame: FrameType | None) -> str:
    """Return the innermost line that is neither kinform's nor Python's, else the innermost."""
    place = frame
    while place is not None and place.f_code.co_filename.startswith((*_OURS, "<")):
        place = place.f_back
    place = place or frame
    if place is None:
        return "an unknown place"
    return f"{place.f_code.co_filename}:{place.f_lineno} in {place.f_code.co_qualname}"
