"""The loop thread: it runs the event loop behind all of `kinform.sync`.

One thread for each process, started when it is first needed. It is a daemon, and is wound up when
the interpreter exits. A fork leaves it behind in the parent: what belongs to it is refused in the
child, by name, and the child starts a thread of its own when it needs one.

Rule 1: the loop polls (``poll``, not ``epoll``). What an epoll watches is shared with a forked
child, so that a connection collected there would be forgotten here.
Rule 2: while the process forks the loop rests between two callbacks, so that it holds no lock
which the child would then wait for.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import logging
import os
import selectors
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import Final, ParamSpec, TypeAlias, TypeVar, final

from kinform.errors import UsageError
from kinform.sync._calls import SCOPE, BlockingCall, too_late
from kinform.tasks import end_in_time

__all__ = ["LoopThread", "current"]

P = ParamSpec("P")
R = TypeVar("R")

log: Final = logging.getLogger(__name__)

Work: TypeAlias = Callable[[], Coroutine[object, object, object]]

_EXIT: Final = 2.5
"""Seconds that winding up may take when the interpreter exits."""
_LAST_WORDS: Final = 0.5
"""The part of these seconds that cancelled tasks may take to end."""
_REST: Final = 0.5
"""Seconds that a fork waits for the loop to rest. A loop that is stuck is forked as it is."""


@final
class LoopThread:
    """An event loop in a thread of its own, and the way there for all other threads."""

    def __init__(self) -> None:
        self.process: Final = os.getpid()
        self.is_left_behind: bool = False
        """True in a forked child: a plain attribute, because it is checked before each read."""
        self._selector, self._loop = _new_loop()
        self._thread = threading.Thread(target=self._serve, name="kinform-sync", daemon=True)
        self._is_ending = False
        self._running: dict[object, Work] = {}
        self._open: dict[object, Work] = {}
        self._awake = threading.Event()
        self._thread.start()

    def __repr__(self) -> str:
        return f"<LoopThread of process {self.process}>"

    # --- calls, from any other thread

    def run(
        self,
        function: Callable[P, Coroutine[object, object, R]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R:
        """Run a coroutine function on the loop, in the caller's context; wait for its result.

        Raises:
            UsageError: called on the loop's own thread, in a forked child, or at the very end.
            CancelledError: of ``concurrent.futures``; the call was cancelled.
        """
        self.refuse_strangers()
        make = functools.partial(function, *args, **kwargs)
        call = BlockingCall(self._loop, make, is_mute=lambda: self._is_ending)
        scope = SCOPE.get()
        with contextlib.nullcontext() if scope is None else scope.holding(call):
            return call.run()

    def call(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a plain function on the loop, as `run`."""

        async def plain() -> R:
            return function(*args, **kwargs)

        return self.run(plain)

    def spawn(self, work: Work) -> None:
        """Start ``work`` on the loop without waiting for it; its result is discarded.

        After the loop has ended, or in a forked child, this does nothing.
        """
        if os.getpid() != self.process:
            return
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(BlockingCall(self._loop, work).begin)

    def refuse_strangers(self) -> None:
        """Refuse a call that would wait for ever.

        Raises:
            UsageError: see `run`.
        """
        self.refuse_children()
        if threading.get_ident() == self._thread.ident:
            raise UsageError(
                "a blocking call on kinform's own thread would wait for itself: index functions, "
                "filters, transforms and predicates run there and may only compute. Handlers run "
                "on threads of their own: make the call there"
            )
        if self._is_ending:
            if threading.current_thread() is not threading.main_thread():
                threading.Event().wait()  # a daemon's, which ends with the process
            raise too_late()

    def refuse_children(self) -> None:
        """Refuse to work in a forked child.

        Raises:
            UsageError: this is one.
        """
        if os.getpid() != self.process:
            raise UsageError(
                f"made in process {self.process}, and this is process {os.getpid()}, forked from "
                "it: a connection cannot be shared. Open a new one after the fork: connect()"
            )

    # --- its end

    def note_running(self, key: object, stop: Work) -> None:
        """Register ``stop``, to run if the interpreter exits before `forget` of ``key``."""
        self._running[key] = stop

    def note_open(self, key: object, close: Work) -> None:
        """Register ``close`` to be called after all tasks have stopped."""
        self._open[key] = close

    def forget(self, key: object) -> None:
        """Remove what was registered for ``key``."""
        self._running.pop(key, None)
        self._open.pop(key, None)

    def close(self) -> None:
        """Close all connections, cancel all tasks, end the thread. Always returns soon.

        Threads that wait for a call go on waiting: only daemon threads are left by now, and an
        error raised in them would be shown to the users of a program that has ended.
        """
        if self._is_ending or os.getpid() != self.process:
            return
        self._is_ending = True
        last = BlockingCall(self._loop, self._wind_up)
        with contextlib.suppress(RuntimeError, TimeoutError):
            last.run(_EXIT)
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_LAST_WORDS)

    async def _wind_up(self) -> None:
        for works in (self._running, self._open):
            tasks = [self._loop.create_task(_quietly(work)) for work in works.values()]
            if tasks:
                await asyncio.wait(tasks, timeout=_EXIT / 2 - _LAST_WORDS)
        for _ in range(2):  # a second time for tasks that wait for a thread after the first
            others = asyncio.all_tasks() - {asyncio.current_task()}
            await end_in_time(*others, timeout=_LAST_WORDS / 2)
        # One generator within another: the inner one says it is being closed already.
        self._loop.set_exception_handler(_say_nothing)
        await self._loop.shutdown_asyncgens()

    def _serve(self) -> None:
        while not self._loop.is_closed():
            try:
                self._loop.run_forever()
            except (KeyboardInterrupt, SystemExit):
                # A user's coroutine or callback raised it. Its caller gets it; the loop, which all
                # callers share, goes on.
                log.debug("loop continues after an exit request", exc_info=True)
            else:
                self._loop.close()

    # --- forks

    def rest(self) -> None:
        """Wait until the loop rests, for a fork; `wake` must follow."""
        if threading.get_ident() == self._thread.ident or self._is_ending:
            return
        asleep = threading.Event()
        self._awake.clear()

        def sleep() -> None:
            asleep.set()
            self._awake.wait(_REST)

        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(sleep)
            asleep.wait(_REST)

    def wake(self) -> None:
        """Let the loop continue."""
        self._awake.set()

    def disown(self) -> None:
        """In a forked child: drop the parent's connections without sending anything.

        They are objects here as well, and collecting one closes it: over TLS that would end the
        session of the parent.
        """
        self.is_left_behind = True
        self._loop.set_exception_handler(_say_nothing)  # not about sessions left open, either
        if self._selector is None:
            return
        nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for key in tuple((self._selector.get_map() or {}).values()):
            with contextlib.suppress(OSError):
                os.dup2(nowhere, key.fd, inheritable=False)
        os.close(nowhere)


@final
class _Home:
    """Knows the loop thread of this process, if there is one."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal handler may come in between
        self._forking = threading.Lock()
        self._thread: LoopThread | None = None
        self._abandoned: list[LoopThread] = []

    def thread(self) -> LoopThread:
        found = self._thread
        if found is not None and found.process == os.getpid():
            return found
        with self._lock:
            if self._thread is None or self._thread.process != os.getpid():
                self._thread = LoopThread()
            return self._thread

    def close(self) -> None:
        if self._thread is not None:
            self._thread.close()

    def before_fork(self) -> None:
        self._forking.acquire(timeout=_REST)
        if self._thread is not None:
            self._thread.rest()

    def after_fork_in_parent(self) -> None:
        if self._thread is not None:
            self._thread.wake()
        with contextlib.suppress(RuntimeError):  # we did not get it in time
            self._forking.release()

    def after_fork_in_child(self) -> None:
        self._lock, self._forking = threading.RLock(), threading.Lock()
        if self._thread is not None:
            self._abandoned.append(self._thread)  # never collected, never closed
            self._thread.disown()
            self._thread = None


def current() -> LoopThread:
    """Return the loop thread of this process; start it if there is none."""
    return _HOME.thread()


def _new_loop() -> tuple[selectors.BaseSelector | None, asyncio.AbstractEventLoop]:
    if sys.platform == "win32":  # it has no fork
        return None, asyncio.new_event_loop()
    selector = selectors.PollSelector()
    return selector, asyncio.SelectorEventLoop(selector)


async def _quietly(work: Work) -> None:
    with contextlib.suppress(Exception):
        await work()


def _say_nothing(_loop: asyncio.AbstractEventLoop, _context: dict[str, object]) -> None:
    """Handle an error that no caller waits for any more."""


_HOME: Final = _Home()
atexit.register(_HOME.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_HOME.before_fork,
        after_in_parent=_HOME.after_fork_in_parent,
        after_in_child=_HOME.after_fork_in_child,
    )
