"""Shared code of the tests of the programs in ``examples/``: outages, and running them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final

from kinform.apiserver import APIServer, faults

ROOT: Final = Path(__file__).resolve().parents[2]
SETTLED: Final = 5.0
"""Virtual seconds after which every follower of the server has received everything."""
RECOVERED: Final = 180.0
"""Virtual seconds after which every follower has recovered from an outage."""


@contextlib.asynccontextmanager
async def outage(
    server: APIServer, resource: str, *, compacts: bool = False
) -> AsyncGenerator[None]:
    """Refuse lists and watches: followers miss everything that happens in the block.

    Afterwards they have had the time to find out; with ``compacts``, only by a list.
    """
    for verb in ("list", "watch"):
        server.faults.add(faults.reset(verb=verb, resource=resource))
    server.cluster.storage.disconnect()
    await asyncio.sleep(SETTLED)
    yield
    if compacts:
        server.compact()
    server.faults.clear()
    await asyncio.sleep(RECOVERED)


def run_program(
    name: str, *arguments: str, kubeconfig: Path | None = None, home: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program as people do; without a ``kubeconfig`` no cluster is configured."""
    hidden = {"KUBECONFIG", "KUBERNETES_SERVICE_HOST"}
    env = {key: value for key, value in os.environ.items() if key not in hidden}
    env |= {} if kubeconfig is None else {"KUBECONFIG": str(kubeconfig)}
    env |= {} if home is None else {"HOME": str(home)}
    return subprocess.run(
        [sys.executable, str(ROOT / "examples" / name), *arguments],
        check=False,
        env=env,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )


def check_that_errors_are_one_line(name: str, *arguments: str, home: Path) -> None:
    """A kubeconfig that is wrong: no cluster is looked for elsewhere, and no traceback."""
    kubeconfig = home / "broken"
    kubeconfig.write_text("clusters: 7", encoding="utf-8")
    done = run_program(name, *arguments, kubeconfig=kubeconfig, home=home)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert str(kubeconfig) in done.stderr
