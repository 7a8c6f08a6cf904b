"""A child process that speaks JSON lines, and the kernel's counters for it.

Rules of the file: every wait has a deadline, and its error says what was waited for. A child has
its own session, so that Ctrl-C reaches only the runner, which then ends its children. It
dies with the process that started it, even after SIGKILL (Linux). Start children from the
main thread: the kernel ties them to the thread that started them.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeAlias, final

__all__ = ["Answer", "Child", "ChildError", "Usage"]

Answer: TypeAlias = dict[str, object]

_STDERR_LINES: Final = 12
_READ_SIZE: Final = 1 << 16
_DEATH_SIGNAL: Final = 1  # PR_SET_PDEATHSIG
_QUIT_TIMEOUT: Final = 5.0
_PEAK_RESET: Final = "5"


class ChildError(Exception):
    """A child ended, said something else than asked for, or nothing in time.

    Its text ends with the last lines of what the child wrote to stderr.
    """


@final
class Usage:
    """The kernel's counters for a process, all its threads included."""

    def __init__(self, pid: int) -> None:
        self._clock: Final = (~pid << 3) | 2  # the CPU clock of a process, see clock_getcpuclockid
        self._folder: Final = Path("/proc") / str(pid)

    def cpu_ns(self) -> int:
        """Return the CPU time so far, user and system, in nanoseconds."""
        return time.clock_gettime_ns(self._clock)

    def resident(self) -> int:
        """Return how many bytes are resident now."""
        return self._status("VmRSS")

    def peak(self) -> int:
        """Return the most bytes that were resident since `reset_peak`."""
        return self._status("VmHWM")

    def reset_peak(self) -> None:
        """Let the peak begin anew from what is resident now."""
        (self._folder / "clear_refs").write_text(_PEAK_RESET, encoding="ascii")

    def _status(self, what: str) -> int:
        for line in (self._folder / "status").read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name == what:
                return int(value.split()[0]) * 1024
        raise ChildError(f"the kernel does not tell {what} of process {self._folder.name}")


@final
class Child:
    """A running child process; use it with ``with``, which ends it at the latest.

    Args:
        name: What errors call it.
        command: Program and arguments.
        environment: More variables for it.
        folder: Its working directory.

    Raises:
        ChildError: The program cannot be started.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        self.name: Final = name
        self._stderr: Final = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the child
        self._rest = b""
        self._lines: Final[list[bytes]] = []
        try:
            self._process: Final = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                env={**os.environ, **(environment or {})},
                cwd=folder,
                bufsize=0,
                start_new_session=True,
                preexec_fn=_dying_with(os.getpid()),  # noqa: PLW1509 - called with one thread
            )
        except OSError as exc:
            self._stderr.close()
            raise ChildError(f"{name} cannot be started: {exc}") from exc
        self.usage: Final = Usage(self._process.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def ask(self, request: Mapping[str, object], *, timeout: float, key: str) -> Answer:
        """Send one request and return the answer; see `answer`."""
        self.send(request)
        return self.answer(key, timeout=timeout, what=str(request.get("do")))

    def send(self, request: Mapping[str, object]) -> None:
        """Send one request.

        Raises:
            ChildError: The process does not read its input.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
        except OSError as exc:
            raise self._error(f"cannot be asked to {request.get('do')}") from exc

    def answer(self, key: str, *, timeout: float, what: str) -> Answer:
        """Return the next line, which has to be a JSON object that has ``key``.

        The one exception is ``{"unsupported": true}``, which is returned as it is.

        Raises:
            ChildError: It is not, the child ended, or ``timeout`` seconds passed.
        """
        line = self._line(timeout, what=what)
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict) or (key not in answer and "unsupported" not in answer):
            text = line.decode(errors="replace").strip()[:200]
            raise self._error(f"answered {text!r} to {what!r}, without {key!r}")
        return answer

    def close(self) -> None:
        """End the process and all it has started; idempotent.

        A process that was asked to quit gets a moment to do so.
        """
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._stderr.close()

    def quit(self) -> int:
        """Ask the process to quit and return its exit code.

        Raises:
            ChildError: It does not, within five seconds.
        """
        self.send({"do": "quit"})
        try:
            return self._process.wait(_QUIT_TIMEOUT)
        except subprocess.TimeoutExpired:
            raise self._error(f"did not quit within {_QUIT_TIMEOUT:g} s") from None

    def stderr_tail(self) -> list[str]:
        """Return the last lines that the child wrote to stderr."""
        size = os.fstat(self._stderr.fileno()).st_size
        text = os.pread(self._stderr.fileno(), 1 << 14, max(0, size - (1 << 14)))
        return text.decode(errors="replace").splitlines()[-_STDERR_LINES:]

    def _line(self, timeout: float, *, what: str) -> bytes:
        assert self._process.stdout is not None
        source = self._process.stdout.fileno()
        deadline = time.monotonic() + timeout
        while not self._lines:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([source], [], [], left)[0]:
                raise self._error(f"did not answer to {what!r} within {timeout:g} s")
            data = os.read(source, _READ_SIZE)
            if not data:
                raise self._error(f"ended before it answered to {what!r}")
            *lines, self._rest = (self._rest + data).split(b"\n")
            self._lines.extend(line for line in lines if line.strip())
        return self._lines.pop(0)

    def _error(self, text: str) -> ChildError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.5)  # one that is ending may still say why
        code = self._process.poll()
        ending = "" if code is None else f" (exit code {code})"
        tail = "".join(f"\n  | {line}" for line in self.stderr_tail())
        return ChildError(f"{self.name} {text}{ending}{tail}")


def _dying_with(parent: int) -> Callable[[], None] | None:
    """Return what a child does first, so that it never outlives ``parent``."""
    if sys.platform != "linux":
        return None
    control = ctypes.CDLL(None).prctl

    def first() -> None:
        control(_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:  # it went before the line above
            os._exit(1)

    return first
