"""SIGTERM and SIGINT, told to everybody on an event loop who wants to hear of them."""

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

Told: TypeAlias = Callable[[str], None]


@contextlib.contextmanager
def on_signals(told: Told) -> Generator[None]:
    """Within the block, call ``told`` with the name of each signal that asks for an end.

    Everybody who is in such a block is told. What handled the signals before does so again after
    the last of them. Where signals cannot be had, in another thread or under virtual time, this
    does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    listeners = _listeners.get(loop)
    if listeners is None:
        listeners = _listeners[loop] = _Listeners(loop)
    listeners.add(told)
    try:
        yield
    finally:
        listeners.remove(told)


@final
class _Listeners:
    """Those who want to hear of signals on one loop; the first installs handlers."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._told: list[Told] = []
        self._restore = contextlib.ExitStack()

    def add(self, told: Told) -> None:
        if not self._told:
            for each in _ENDING:
                self._install(each)
        self._told.append(told)

    def remove(self, told: Told) -> None:
        self._told.remove(told)
        if not self._told:
            self._restore.close()

    def _install(self, number: signal.Signals) -> None:
        before = signal.getsignal(number)
        # A handler of the loop's own is known to nobody but the loop.
        handlers: dict[int, asyncio.Handle] = getattr(self._loop, "_signal_handlers", {})
        others = handlers.get(number)
        try:
            self._loop.add_signal_handler(number, self._tell, number.name)
        except (NotImplementedError, RuntimeError, ValueError):
            return

        def restore() -> None:
            self._loop.remove_signal_handler(number)
            if others is not None:
                self._loop.add_signal_handler(number, others._run)  # noqa: SLF001 - it has no other way
            else:
                signal.signal(number, before)

        self._restore.callback(restore)

    def _tell(self, name: str) -> None:
        for told in tuple(self._told):
            told(name)


_listeners: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, _Listeners]] = WeakKeyDictionary()


@final
class Stop:
    """One stop of one manager. All that ends in good order shares one deadline.

    Args:
        grace: seconds from the asking to the deadline.
    """

    def __init__(self, grace: float) -> None:
        self.grace = grace
        self._asked = asyncio.Event()
        self._deadline = 0.0

    def ask(self) -> None:
        """Ask for the end. Only the first time counts."""
        if not self._asked.is_set():
            self._deadline = asyncio.get_running_loop().time() + self.grace
            self._asked.set()

    @property
    def is_asked(self) -> bool:
        """Whether the end was asked for; stays true."""
        return self._asked.is_set()

    async def wait(self) -> None:
        """Wait until the end is asked for."""
        await self._asked.wait()

    def left(self, *, least: float = 0.0) -> float:
        """Return how many seconds are left until the deadline; all if nobody has asked."""
        if not self.is_asked:
            return self.grace
        return max(least, self._deadline - asyncio.get_running_loop().time())
