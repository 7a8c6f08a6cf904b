"""Capture of the output of processes that tests start: a tap on their pipes.

A test that starts a process to print a secret uses the fixture ``ears`` and takes the captured
text. A process that kinform itself starts is left alone: a plugin must print a credential (and is
read by a protocol of kinform's own). pytest captures the output to inherited descriptors together
with the test's own. Files, terminals and pipes that are never read are not captured.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import subprocess
from asyncio.subprocess import SubprocessStreamProtocol
from collections.abc import Callable, Generator
from types import FrameType
from typing import Any, final
from weakref import WeakSet

__all__ = ["Ears", "children_are_heard"]

_GO_BETWEENS = ("subprocess", "asyncio", "contextlib", __name__)
"""The modules that start processes for others."""


@final
class Ears:
    """Keeps the output since it was last taken, separately for each pipe."""

    def __init__(self) -> None:
        self._started: WeakSet[subprocess.Popen[Any]] = WeakSet()
        self._said: dict[tuple[int, str], bytearray] = {}

    def take(self) -> list[str]:
        """Return the captured output, and forget it."""
        said, self._said = self._said, {}
        return [text.decode(errors="replace") for text in said.values()]

    def listen(self, process: subprocess.Popen[Any]) -> None:
        """Capture the output of a new process, if a test has started it."""
        if _is_for_kinform(inspect.currentframe()):
            return
        self._started.add(process)
        for pipe in ("stdout", "stderr"):
            if (stream := getattr(process, pipe)) is not None:
                show = functools.partial(self._note, process.pid, pipe)
                setattr(process, pipe, _overheard(stream, show))

    def hear(self, process: subprocess.Popen[Any], pipe: str, data: str | bytes | None) -> None:
        """Keep data that was read from a pipe without its stream."""
        if data and process in self._started:
            self._note(process.pid, pipe, data.encode() if isinstance(data, str) else data)

    def _note(self, pid: int, pipe: str, data: bytes) -> None:
        self._said.setdefault((pid, pipe), bytearray()).extend(data)


def _overheard(stream: Any, show: Callable[[bytes], None]) -> Any:
    """Return the same stream, with a tap at its lowest layer."""
    if isinstance(stream, io.TextIOWrapper):
        encoding, errors = stream.encoding, stream.errors
        return io.TextIOWrapper(_overheard(stream.detach(), show), encoding, errors)
    if isinstance(stream, io.BufferedReader):
        return io.BufferedReader(_overheard(stream.detach(), show))
    return _Tap(stream, show)


class _Tap(io.RawIOBase):
    """A pipe that passes the data of each read to ``show``."""

    def __init__(self, pipe: io.FileIO, show: Callable[[bytes], None]) -> None:
        self._pipe = pipe
        self._show = show

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._pipe.fileno()

    def readinto(self, buffer: Any) -> int | None:
        count = self._pipe.readinto(buffer)
        self._show(bytes(buffer[: count or 0]))
        return count

    def close(self) -> None:
        self._pipe.close()
        super().close()


def _is_for_kinform(frame: FrameType | None) -> bool:
    """Return whether kinform's code starts the process."""
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module not in _GO_BETWEENS and not module.startswith("asyncio."):
            return module.partition(".")[0] == "kinform"
        frame = frame.f_back
    return False


@contextlib.contextmanager
def children_are_heard() -> Generator[Ears]:
    """Listen to every process that is started within the block, for as long as it lasts."""
    ears, kind = Ears(), subprocess.Popen
    start, communicate = kind.__init__, kind.communicate
    receive = SubprocessStreamProtocol.pipe_data_received

    def started(self: subprocess.Popen[Any], *args: Any, **options: Any) -> None:
        start(self, *args, **options)
        ears.listen(self)

    def communicated(self: subprocess.Popen[Any], *args: Any, **options: Any) -> tuple[Any, Any]:
        try:
            out, err = communicate(self, *args, **options)
        except subprocess.TimeoutExpired as exc:
            ears.hear(self, "stdout", exc.stdout)
            ears.hear(self, "stderr", exc.stderr)
            raise
        ears.hear(self, "stdout", out)
        ears.hear(self, "stderr", err)
        return out, err

    def received(self: Any, fd: int, data: bytes | str) -> None:
        process = self._transport.get_extra_info("subprocess")
        ears.hear(process, "stdout" if fd == 1 else "stderr", data)
        receive(self, fd, data)

    with contextlib.ExitStack() as undone:
        undone.enter_context(_replaced(kind, "__init__", started))
        undone.enter_context(_replaced(kind, "communicate", communicated))
        undone.enter_context(_replaced(SubprocessStreamProtocol, "pipe_data_received", received))
        yield ears


@contextlib.contextmanager
def _replaced(kind: type, name: str, function: Callable[..., object]) -> Generator[None]:
    before = getattr(kind, name)
    setattr(kind, name, function)
    try:
        yield
    finally:
        setattr(kind, name, before)
