"""F-R01, F-P5: packets get lost, and no end of the connection hears of it. In real time."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.skipping import cannot_run

PROGRAM = "tests.faults.support_half_open"
OWN_NETWORK = ("unshare", "-rn")


def why_no_network() -> str | None:
    """Tell why this user may not make a network and take it apart; None: they may."""
    if sys.platform != "linux":
        return "only Linux has networks of one's own"
    if missing := [name for name in ("unshare", "ip") if shutil.which(name) is None]:
        return f"no network of one's own can be made without {' and '.join(missing)}"
    command = [*OWN_NETWORK, "ip", "link", "set", "lo", "up"]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"{' '.join(command)}: {made.stderr.strip()}" if made.returncode else None


@pytest.mark.slow
def test_a_peer_that_is_gone_without_a_word_is_noticed_within_45_seconds() -> None:
    """The kernel has to wait, so this takes as long as it says."""
    if reason := why_no_network():
        cannot_run(reason)
    done = subprocess.run(
        [*OWN_NETWORK, sys.executable, "-W", "error", "-m", PROGRAM],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert 25 < found["noticed"] < 45
    assert found["lists"] == 1, "what it missed, the next watch tells"
