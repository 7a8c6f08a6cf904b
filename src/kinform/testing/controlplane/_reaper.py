"""A process of its own that starts servers, and ends them when its parent ends.

Run by path (``python -I -S reaper.py``) by `kinform.testing.controlplane._supervisor`; it imports
nothing but the standard library. Rules of the file:

* The servers are *its* children, so a server never runs unknown to it. A death
  signal set in the parent (``PR_SET_PDEATHSIG``) would fire when the spawning thread ends.
* The parent's end is seen as end of file on stdin, even after SIGKILL. A process forked from the
  parent may hold that pipe open, so the parent's process id is checked as well.
* Should this process itself be killed, the servers follow by a death signal (Linux only). Here
  that is safe: this process has one thread. The folder then stays behind.
* A dead server stays a zombie until the parent asks: no process id is reused before the parent
  knows, so that the parent may signal by process id.

Protocol: one JSON object per line, each request answered by one line. The first line, unasked,
is ``{"folder": …}``: a private folder that goes when this process goes.

.. code-block:: text

    {"do": "start", "argv": […], "env": {…}, "log": path}   ->  {"pid": n} or {"error": text}
    {"do": "status", "pid": n}                              ->  {"code": null or n}
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

PARENT_CHECK = 1.0
"""Seconds between two looks at the parent's process id."""
PR_SET_PDEATHSIG = 1
# Loaded here: between fork and exec a process should do as little as it can.
LIBC = ctypes.CDLL(None)


def die_with_parent() -> None:
    """Have the kernel kill the calling process when its parent's thread ends."""
    if sys.platform == "linux":
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Children:
    """The servers started so far, by process id."""

    def __init__(self) -> None:
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, argv: list[str], *, env: dict[str, str], log: str) -> int:
        """Start one server in its own session, with all its output appended to ``log``."""
        with Path(log).open("ab") as output:
            process = subprocess.Popen(
                argv,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=die_with_parent,  # noqa: PLW1509 (this process has one thread)
            )
        self._processes[process.pid] = process
        return process.pid

    def status(self, pid: int) -> int | None:
        """Return the exit code of a server, or None while it runs; negative is a signal."""
        return self._processes[pid].poll()

    def kill(self) -> None:
        """Kill all that still run, and wait until they are gone."""
        for process in self._processes.values():
            process.kill()
        for process in self._processes.values():
            process.wait()


def requests(parent: int) -> Iterator[bytes]:
    """Yield each request line, until the parent closes its end or is gone."""
    pending = b""
    while os.getppid() == parent:
        readable, _, _ = select.select([0], [], [], PARENT_CHECK)
        if not readable:
            continue
        data = os.read(0, 65536)
        if not data:
            return
        *lines, pending = (pending + data).split(b"\n")
        yield from lines


def answer(children: Children, line: bytes) -> dict[str, object]:
    """Carry out one request."""
    request = json.loads(line)
    try:
        if request["do"] == "start":
            return {"pid": children.start(request["argv"], env=request["env"], log=request["log"])}
        return {"code": children.status(request["pid"])}
    except OSError as error:
        return {"error": str(error)}


def reply(message: dict[str, object]) -> None:
    """Send one line to the parent."""
    os.write(1, json.dumps(message).encode() + b"\n")


def leave(number: int, frame: FrameType | None) -> None:
    """End in good order on a signal."""
    del number, frame
    raise SystemExit(1)


def main() -> None:
    """Serve the parent until it is gone, then leave nothing behind."""
    parent = int(sys.argv[1])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, leave)
    children = Children()
    folder = tempfile.mkdtemp(prefix="kinform-control-plane-")
    try:
        reply({"folder": folder})
        for line in requests(parent):
            reply(answer(children, line))
    except BrokenPipeError:
        pass  # The parent went between a request and its answer.
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        children.kill()
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
