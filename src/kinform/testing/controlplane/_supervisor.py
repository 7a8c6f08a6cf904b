"""Servers as child processes that never outlive the test run, however it ends.

`Supervisor` talks to a small process of its own (`kinform.testing.controlplane._reaper`), which is
the parent of every server and ends them, and removes their folder, as soon as this process is gone:
after a normal end, after a crash, after SIGKILL.

Everything here blocks for milliseconds at most and may be called from any thread.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, final

from kinform.testing.controlplane import _reaper
from kinform.testing.errors import ControlPlaneError

__all__ = ["Server", "Supervisor"]

_POLL: Final = 0.01
_TAIL: Final = 128 * 1024
_LINE: Final = 400
_NOISE: Final = "grpc: the client connection is closing"
"""The message that an apiserver repeats after closing its first, short-lived etcd client."""
_GOODBYE: Final = 20.0
"""Seconds the reaper gets to kill and sweep; it needs a fraction of one."""


@final
class Server:
    """One server process: started, signalled, stopped, and started again."""

    def __init__(self, supervisor: Supervisor, *, name: str, log_path: Path) -> None:
        self._supervisor = supervisor
        self.name: Final = name
        """The name in messages, for example ``kube-apiserver-0``."""
        self.log_path: Final = log_path
        """The log file of its output; a second start appends."""
        self._pid: int | None = None
        self._code: int | None = None
        self._wanted = False

    @property
    def pid(self) -> int | None:
        """Its process id; None before the start, or once its end was noticed."""
        return self._pid if self._code is None else None

    @property
    def is_running(self) -> bool:
        """True while the process runs, also while it is paused."""
        return self._pid is not None and self.poll() is None

    @property
    def has_crashed(self) -> bool:
        """True if it was started and has ended without being stopped."""
        return self._wanted and not self.is_running

    def start(self, argv: Sequence[str], *, env: Mapping[str, str]) -> None:
        """Start the process. It may still fail a moment later: see `poll`.

        Raises:
            ControlPlaneError: It runs already, or the file cannot be executed.
        """
        if self.is_running:
            raise ControlPlaneError(f"{self.name} is running already")
        self._pid = self._supervisor.spawn(argv, env=env, log_path=self.log_path)
        self._code = None
        self._wanted = True

    def poll(self) -> int | None:
        """Return its exit code, or None while it runs; negative is the signal that ended it."""
        if self._code is None and self._pid is not None:
            self._code = self._supervisor.exit_code(self._pid)
        return self._code

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; does nothing if the process has ended.

        Safe against a reused process id: a dead child keeps its id until `poll` has reaped it.
        """
        if self.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def stop(self, *, grace: float | None = None) -> None:
        """End the process and wait for that: SIGTERM and ``grace`` seconds first, then SIGKILL.

        Without ``grace`` it is killed at once. A paused process is woken to hear SIGTERM.
        """
        self._wanted = False
        if not self.is_running:
            return
        if grace is not None:
            self.signal(signal.SIGTERM)
            self.signal(signal.SIGCONT)
            if self._wait(grace):
                return
        self.signal(signal.SIGKILL)
        if not self._wait(_GOODBYE):
            raise ControlPlaneError(f"{self.name} (process {self._pid}) survives SIGKILL")

    def _wait(self, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL)
        return True

    def log_tail(self, lines: int = 40) -> str:
        """Return the last ``lines`` lines of its output, long ones cut; empty if there is none."""
        try:
            with self.log_path.open("rb") as log:
                size = log.seek(0, os.SEEK_END)
                log.seek(max(0, size - _TAIL))
                text = log.read().decode(errors="replace")
        except FileNotFoundError:
            return ""
        kept = [line[:_LINE] for line in text.splitlines() if _NOISE not in line]
        return "\n".join(kept[-lines:])


@final
class Supervisor:
    """The owner of all servers of one control plane and of their private folder."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # A session of its own: Ctrl-C in a terminal is for the test runner to handle first.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", _reaper.__file__, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            folder = str(self._receive()["folder"])
        except BaseException:
            self._end()
            raise
        self.folder: Final = Path(folder)
        """A folder only this user can enter; it goes with the supervisor."""

    def server(self, name: str) -> Server:
        """Return a server that can be started; its log stands in `folder`."""
        return Server(self, name=name, log_path=self.folder / f"{name}.log")

    def spawn(self, argv: Sequence[str], *, env: Mapping[str, str], log_path: Path) -> int:
        """Start a process and return its id.

        Raises:
            ControlPlaneError: The file cannot be executed, or the supervisor is closed.
        """
        message = {"do": "start", "argv": list(argv), "env": dict(env), "log": str(log_path)}
        answer = self._ask(message)
        pid = answer.get("pid")
        if not isinstance(pid, int):
            raise ControlPlaneError(f"cannot start {argv[0]}: {answer.get('error')}")
        return pid

    def exit_code(self, pid: int) -> int | None:
        """Return how a process that `spawn` started ended, or None while it runs.

        No process outlives the supervisor, so all have ended once that is gone.
        """
        try:
            code = self._ask({"do": "status", "pid": pid}).get("code")
        except ControlPlaneError:
            return -signal.SIGKILL
        return code if isinstance(code, int) else None

    def close(self) -> None:
        """Kill every server, remove the folder, and wait until both are done. Idempotent."""
        self._end()
        shutil.rmtree(self.folder, ignore_errors=True)  # Gone, unless the reaper was killed.

    def _end(self) -> None:
        with self._lock, self._process as process:
            if process.stdin is not None:
                # Closed even if that fails: what the reaper did not read no longer matters.
                with suppress(BrokenPipeError):
                    process.stdin.close()
            try:
                process.wait(_GOODBYE)
            except subprocess.TimeoutExpired:
                process.kill()

    def _ask(self, message: Mapping[str, object]) -> Mapping[str, object]:
        with self._lock:
            stdin = self._process.stdin
            if stdin is None or stdin.closed:
                raise ControlPlaneError("the control plane is closed")
            with suppress(BrokenPipeError):  # `_receive` tells why.
                stdin.write(json.dumps(message).encode() + b"\n")
                stdin.flush()
            return self._receive()

    def _receive(self) -> Mapping[str, object]:
        stdout = self._process.stdout
        line = stdout.readline() if stdout else b""
        if not line:
            code = self._process.wait()
            raise ControlPlaneError(f"the process that keeps the servers ended with code {code}")
        answer: dict[str, object] = json.loads(line)
        return answer
