"""Looking at processes from outside, and running a test runner that can be killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


def is_alive(pid: int) -> bool:
    """Tell whether a process runs; a zombie does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # gone since we looked, or while we read
        return not Path("/proc").exists()
    return state != "Z"


@contextmanager
def running(program: str) -> Generator[tuple[subprocess.Popen[bytes], dict[str, object]]]:
    """Run a Python program that prints one JSON line and then waits; yield it and the line."""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            facts: dict[str, object] = json.loads(process.stdout.readline())
            yield process, facts
        finally:
            process.kill()
