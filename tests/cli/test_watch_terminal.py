"""``kinform watch`` on a terminal: a pseudo one, read as it is written."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
from collections.abc import AsyncGenerator
from typing import final

import pytest

from kinform.clock import offload
from tests.cli.conftest import Scene, pod
from tests.cli.support_command import TIMEOUT

pytestmark = pytest.mark.slow

HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
CTRL_C = b"\x03"


@final
class Terminal:
    """A process whose terminal we are."""

    def __init__(self, process: subprocess.Popen[bytes], descriptor: int) -> None:
        self._process = process
        self._descriptor = descriptor
        self.shown = ""

    async def until(self, text: str) -> str:
        """Read until ``text`` has been written; return what was written since the last time."""
        before = len(self.shown)
        async with asyncio.timeout(TIMEOUT):
            while text not in self.shown[before:]:
                assert await self._read(), f"no {text!r} in {self.shown!r}"
        return self.shown[before:]

    async def type(self, keys: bytes) -> None:
        await offload(os.write, self._descriptor, keys)

    async def end(self) -> int:
        """Read to the end; return the exit code."""
        async with asyncio.timeout(TIMEOUT):
            while await self._read():
                pass
            return await offload(self._process.wait)

    async def _read(self) -> str:
        text = await offload(self._read_some)
        self.shown += text
        return text

    def _read_some(self) -> str:
        """Wait for output; nothing is returned only after the process has ended."""
        while True:
            has_ended = self._process.poll() is not None
            if select.select([self._descriptor], [], [], 0.05)[0]:
                return os.read(self._descriptor, 1 << 16).decode(errors="replace")
            if has_ended:
                return ""


@contextlib.asynccontextmanager
async def terminal(
    *args: str, env: dict[str, str], lines: int = 24, columns: int = 120
) -> AsyncGenerator[Terminal]:
    """Run ``kinform args`` on a terminal of so many lines and columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    before = termios.tcgetattr(theirs)
    process = await offload(start, args, theirs, env)
    try:
        yield Terminal(process, ours)
        assert termios.tcgetattr(theirs) == before, "the terminal is as it was"
    finally:
        if process.poll() is None:
            process.kill()
        await offload(process.wait)
        os.close(theirs)
        os.close(ours)


def start(args: tuple[str, ...], tty: int, env: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", _AT_TERMINAL, *args],
        env={**env, "TERM": "xterm-256color"},
        stdin=tty,
        stdout=tty,
        stderr=tty,
        start_new_session=True,
    )


_AT_TERMINAL = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from kinform.cli import main
main()
"""
"""Makes the terminal the one whose Ctrl-C it gets."""


async def test_a_live_table_shows_what_is_there_and_what_changes(scene: Scene) -> None:
    async with terminal("watch", "pods", env=scene.env) as screen:
        first = await screen.until("synced")
        assert first.startswith(HIDE_CURSOR)
        assert "READY" in first
        assert "web-0" in first
        assert "2 objects" in await screen.until("resourceVersion")
        await scene.pods.create(pod("web-2"))
        await screen.until("\x1b[1;32mweb-2")  # it stands out
        await screen.until("\nweb-2")  # and stands out no more
        await scene.pods.status.patch("web-2", {"status": {"phase": "Running"}})
        await screen.until("\x1b[1;30;43mRunning")
        await scene.pods.delete("web-2", grace_period=0)
        await screen.until("\x1b[31mweb-2")
        await screen.until("2 objects")
        await screen.type(CTRL_C)
        assert await screen.end() == 130
    assert screen.shown.endswith(f"\r\n{SHOW_CURSOR}")
    assert "Traceback" not in screen.shown


@pytest.mark.parametrize("lines", [2, 5])
async def test_a_tiny_terminal_has_the_status_line_at_least(scene: Scene, lines: int) -> None:
    args = ("watch", "pods,namespaces", "--for", "3s")
    async with terminal(*args, env=scene.env, lines=lines, columns=40) as screen:
        assert "● synced" in await screen.until("synced")
        assert await screen.end() == 0
    assert ("READY" in screen.shown) == (lines == 5)
    assert "RESTARTS" not in screen.shown, "there is no room for it"


async def test_other_forms_are_lines_on_a_terminal_too(scene: Scene) -> None:
    async with terminal("watch", "pods", "-o", "name", "--for", "3s", env=scene.env) as screen:
        assert await screen.end() == 0
    assert HIDE_CURSOR not in screen.shown
    assert screen.shown.startswith("pod/web-0\r\npod/web-1\r\n")


async def test_the_end_of_the_time_leaves_the_last_table_and_the_summary(scene: Scene) -> None:
    async with terminal("watch", "pods", "--for", "3s", env=scene.env) as screen:
        assert await screen.end() == 0
    last = screen.shown.rpartition("READY")[2]
    assert "web-1" in last
    assert "cache equals a fresh list: yes" in last
    assert SHOW_CURSOR in last
