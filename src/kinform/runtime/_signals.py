"""Stopping: SIGTERM and SIGINT as callbacks, and the deadline of a manager's stop."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Generator
from typing import Final, TypeAlias, final
from weakref import WeakKeyDictionary

__all__ = ["Stop", "on_signals"]

_ENDING: Final = (signal.SIGTERM, signal.SIGINT)

OnSignal: TypeAlias = Callable[[str], None]


@contextlib.contextmanager
def on_signals(callback: OnSignal) -> Generator[None]:
    """Within the block, call ``callback`` with the name of each SIGTERM and SIGINT.

    All blocks that are open at the time are notified. The previous signal handlers are restored
    when the last block is left. Where signals are not available, in another thread or under virtual
    time, this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    listeners = _listeners.get(loop)
    if listeners is None:
        listeners = _listeners[loop] = _Listeners(loop)
    listeners.add(callback)
    try:
        yield
    finally:
        listeners.remove(callback)


@final
class _Listeners:
    """The callbacks for signals on one loop; the first one installs the signal handlers."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._callbacks: list[OnSignal] = []
        self._restore = contextlib.ExitStack()

    def add(self, callback: OnSignal) -> None:
        if not self._callbacks:
            for each in _ENDING:
                self._install(each)
        self._callbacks.append(callback)

    def remove(self, callback: OnSignal) -> None:
        self._callbacks.remove(callback)
        if not self._callbacks:
            self._restore.close()

    def _install(self, number: signal.Signals) -> None:
        before = signal.getsignal(number)
        # `signal.getsignal` does not know handlers that were added through the loop.
        handlers: dict[int, asyncio.Handle] = getattr(self._loop, "_signal_handlers", {})
        others = handlers.get(number)
        try:
            self._loop.add_signal_handler(number, self._notify, number.name)
        except (NotImplementedError, RuntimeError, ValueError):
            return

        def restore() -> None:
            self._loop.remove_signal_handler(number)
            if others is not None:
                self._loop.add_signal_handler(number, others._run)  # noqa: SLF001 - there is no public way
            else:
                signal.signal(number, before)

        self._restore.callback(restore)

    def _notify(self, name: str) -> None:
        for callback in tuple(self._callbacks):
            callback(name)


_listeners: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, _Listeners]] = WeakKeyDictionary()


@final
class Stop:
    """The stop of one manager: all clean-up shares one deadline.

    Args:
        grace: seconds from the request to the deadline.
    """

    def __init__(self, grace: float) -> None:
        self.grace = grace
        self._asked = asyncio.Event()
        self._deadline = 0.0

    def ask(self) -> None:
        """Request the stop. Only the first request counts."""
        if not self._asked.is_set():
            self._deadline = asyncio.get_running_loop().time() + self.grace
            self._asked.set()

    @property
    def is_asked(self) -> bool:
        """True after the stop was requested."""
        return self._asked.is_set()

    async def wait(self) -> None:
        """Wait until the stop is requested."""
        await self._asked.wait()

    def left(self, *, least: float = 0.0) -> float:
        """Return the seconds until the deadline; the whole grace before the stop was requested."""
        if not self.is_asked:
            return self.grace
        return max(least, self._deadline - asyncio.get_running_loop().time())
