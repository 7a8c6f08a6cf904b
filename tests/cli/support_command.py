"""The command in a process of its own: bounded, read line by line, gone at the end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import final

TIMEOUT = 30.0
"""Seconds that one step of a process may take; only a broken one ever needs them."""


def environment(home: Path, **more: str) -> dict[str, str]:
    """Return an environment without any configuration of the user's."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    return {**kept, "HOME": str(home), "PYTHONUTF8": "1", **more}


@final
class Command:
    """A running ``kinform``."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        assert process.stdout is not None
        assert process.stderr is not None
        self._stdout = process.stdout
        self._stderr = process.stderr
        self.seen: list[str] = []

    async def line(self, *words: str) -> str:
        """Return the next line of stdout that holds all ``words``."""
        return await self._line(self._stdout, words)

    async def complaint(self, *words: str) -> str:
        """Return the next line of stderr that holds all ``words``."""
        return await self._line(self._stderr, words)

    async def _line(self, stream: asyncio.StreamReader, words: tuple[str, ...]) -> str:
        async with asyncio.timeout(TIMEOUT):
            while raw := await stream.readline():
                text = raw.decode().rstrip("\n")
                self.seen.append(text)
                if all(word in text for word in words):
                    return text
        raise AssertionError(f"no line with {words} in {self.seen}")

    def send(self, signum: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(signum)

    async def end(self) -> tuple[int, str, str]:
        """Wait for its end; return the exit code and the rest of stdout and stderr."""
        async with asyncio.timeout(TIMEOUT):
            out, err = await asyncio.gather(self._stdout.read(), self._stderr.read())
            return await self._process.wait(), out.decode(), err.decode()


@contextlib.asynccontextmanager
async def kinform(*args: str, env: dict[str, str]) -> AsyncGenerator[Command]:
    """Run ``kinform args`` within the block."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "kinform",
        *args,
        env=env,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=1 << 22,
    )
    try:
        yield Command(process)
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        await process.communicate()


async def run(*args: str, env: dict[str, str]) -> tuple[int, str, str]:
    """Run ``kinform args`` to its end; return the exit code, stdout and stderr."""
    async with kinform(*args, env=env) as command:
        return await command.end()
