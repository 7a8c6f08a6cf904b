"""A watchdog for the event loop: says where a loop is stuck that does not turn.

One call that blocks (a ``time.sleep``, a request with a blocking library, a long computation) stops
watches, handlers, probes and the renewal of leases alike, and nothing on the loop can tell. So a
thread looks. What it concludes is `LoopLag`'s, which is pure; the thread and the log are at the
edge.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import sys
import threading
import time
import traceback
from collections import deque
from dataclasses import dataclass
from typing import Final, final

from kinform.errors import UsageError

__all__ = ["Blocked", "Free", "LoopLag", "LoopWatchdog"]

log: Final = logging.getLogger(__name__)

LOOKS: Final = 4
"""So often within the limit the loop shows that it turns, and the thread looks."""
FRAMES: Final = 30
"""The number of innermost stack frames that are logged."""
KEPT: Final = 16
"""The number of blocks that are remembered."""


@final
@dataclass(frozen=True, slots=True)
class Blocked:
    """The loop has not turned for longer than the limit, and was not known to be stuck."""

    seconds: float


@final
@dataclass(frozen=True, slots=True)
class Free:
    """The loop turns again."""

    seconds: float
    """For how long it did not, at least."""


@final
class LoopLag:
    """Decides, from the due time and the arrival of a heartbeat, whether a loop is blocked.

    A late heartbeat does not count if the check itself was late and the process used no processor
    time meanwhile: then the whole process was stopped (SIGSTOP), starved or frozen. If it did use
    some, one call kept all threads from running, and the loop was blocked.

    Args:
        limit: how late a heartbeat may be.
        interval: seconds between two checks.
    """

    __slots__ = ("_cpu", "_interval", "_limit", "_looked", "_stopped_until", "_stuck_since")

    def __init__(self, *, limit: float, interval: float, now: float, cpu: float) -> None:
        self._limit = limit
        self._interval = interval
        self._looked = now
        self._cpu = cpu
        self._stopped_until = -math.inf
        self._stuck_since: float | None = None  # when the heartbeat was due that did not come

    def late(self, due: float, now: float) -> float:
        """Return for how long, at least, the loop has not turned; 0 if nothing is overdue."""
        return max(0.0, now - max(due, self._stopped_until))

    def look(self, *, due: float, now: float, cpu: float) -> Blocked | Free | None:
        """Return a change of state; ``due`` is the due time of the next heartbeat."""
        slept, used = now - self._looked, cpu - self._cpu
        self._looked, self._cpu = now, cpu
        if slept > 2 * self._interval and used < slept / 2:
            self._stopped_until = now
        if self._stuck_since is not None:
            return self._is_free(due)
        late = self.late(due, now)
        if late <= self._limit:
            return None
        self._stuck_since = now - late
        return Blocked(late)

    def _is_free(self, due: float) -> Free | None:
        since = self._stuck_since
        beat = due - self._interval  # when the last heartbeat came
        if since is None or beat < since:
            return None
        self._stuck_since = None
        return Free(beat - since)


@final
class LoopWatchdog:
    """Warns, once each time, when the event loop does not turn for ``limit`` seconds.

    The warning has the stack of the loop's thread, and the name of the task that runs; a second
    line says how long it took, when the loop is free again. It is one timer on the loop and one
    daemon thread, which both wake up four times within the limit. Under virtual time it does
    nothing: there, blocking takes no time.

    `start` and `stop` belong to the loop's thread; `blocked_for` and `longest_block` may be read
    from any.

    Raises:
        ValueError: ``limit`` is not a positive number.
    """

    def __init__(self, limit: float = 1.0) -> None:
        if not (math.isfinite(limit) and limit > 0):
            raise ValueError(f"limit is {limit!r}; expected a positive number of seconds")
        self._limit = limit
        self._interval = limit / LOOKS
        self._due = math.inf  # until it is started
        self._lag = self._new_lag()
        self._blocks: deque[tuple[float, float]] = deque(maxlen=KEPT)  # ended when, took how long
        self._timer: asyncio.TimerHandle | None = None
        self._end: threading.Event | None = None

    def start(self) -> None:
        """Begin to watch the running loop; `stop` must follow.

        Raises:
            UsageError: it watches already.
        """
        loop = asyncio.get_running_loop()
        if self._end is not None:
            raise UsageError("the watchdog was started already")
        self._end = end = threading.Event()
        if hasattr(loop, "clock"):  # virtual time
            return
        self._lag = self._new_lag()
        self._beat(loop)
        watched = _Watched(loop, threading.get_ident())
        threading.Thread(
            target=self._watch, args=(watched, end), name="kinform-loop-watchdog", daemon=True
        ).start()

    def stop(self) -> None:
        """Watch no longer; does nothing if it does not. The thread ends by itself, at once."""
        if self._end is not None:
            self._end.set()
            self._end = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._due = math.inf

    @property
    def blocked_for(self) -> float:
        """For how long the loop has not turned, at least; 0 if it does."""
        return self._lag.late(self._due, time.monotonic())

    def longest_block(self, within: float) -> float:
        """Return the longest block that lasts, or ended in the last ``within`` seconds; or 0."""
        since = time.monotonic() - within
        ended = [took for at, took in tuple(self._blocks) if at >= since]
        return max([self.blocked_for, *ended])

    # --- on the loop

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        self._due = time.monotonic() + self._interval
        self._timer = loop.call_later(self._interval, self._beat, loop)

    # --- in the thread

    def _watch(self, watched: _Watched, end: threading.Event) -> None:
        where = ""
        while not end.wait(self._interval):
            now, cpu = time.monotonic(), time.process_time()
            match self._lag.look(due=self._due, now=now, cpu=cpu):
                case Blocked(seconds):
                    where = watched.task()
                    log.warning(
                        "the event loop has been blocked for %.1f s, in %s:\n%s",
                        seconds,
                        where,
                        watched.stack(),
                        extra={"seconds": seconds, "where": where},
                    )
                case Free(seconds):
                    self._blocks.append((now, seconds))
                    log.warning(
                        "the event loop was blocked for %.1f s, in %s",
                        seconds,
                        where,
                        extra={"seconds": seconds, "where": where},
                    )
                case None:
                    pass

    def _new_lag(self) -> LoopLag:
        return LoopLag(
            limit=self._limit,
            interval=self._interval,
            now=time.monotonic(),
            cpu=time.process_time(),
        )


@final
class _Watched:
    """A loop and its thread, as seen from another thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, thread: int) -> None:
        self._loop = loop
        self._thread = thread

    def task(self) -> str:
        """Return the name of the running task."""
        task = None
        with contextlib.suppress(RuntimeError):  # it changes while we look
            task = asyncio.current_task(self._loop)
        return "a callback" if task is None else f"task {task.get_name()!r}"

    def stack(self) -> str:
        """Return where the thread is, the innermost frame last."""
        # Documented, and for this use.
        frame = sys._current_frames().get(self._thread)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        if frame is None:
            return "(its thread has ended)"
        return "".join(traceback.format_stack(frame, limit=FRAMES)).rstrip()
