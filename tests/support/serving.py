"""``kinform serve`` as a process of its own, for tests from the outside."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

__all__ = ["serving"]


@contextmanager
def serving(folder: Path, env: Mapping[str, str]) -> Iterator[Path]:
    """Run the command within the block; give the kubeconfig that it writes into ``folder``."""
    kubeconfig = folder / "kubeconfig"
    command = [sys.executable, "-m", "kinform", "serve", "--kubeconfig", str(kubeconfig)]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline().startswith("serving http://127.0.0.1:")
            assert server.stdout.readline() == f"kubeconfig {kubeconfig}\n"
            yield kubeconfig
        finally:
            server.send_signal(signal.SIGTERM)
            assert server.wait(30) == 0
