"""SIGTERM and SIGINT, told to a callback on the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Generator

__all__ = ["on_signals"]

_ENDING = (signal.SIGTERM, signal.SIGINT)


@contextlib.contextmanager
def on_signals(told: Callable[[str], None]) -> Generator[None]:
    """Within the block, call ``told`` with the name of each signal that asks for an end.

    What handled them before does so again afterwards. Where signals cannot be had, in another
    thread or under virtual time, this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    before = {each: signal.getsignal(each) for each in _ENDING}
    heard: list[signal.Signals] = []
    try:
        for each in _ENDING:
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(each, told, each.name)
                heard.append(each)
        yield
    finally:
        for each in heard:
            loop.remove_signal_handler(each)
            signal.signal(each, before[each])
