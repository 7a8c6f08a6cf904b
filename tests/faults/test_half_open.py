"""F-R01, F-P5: packets get lost, and no end of the connection hears of it. In real time."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

PROGRAM = "tests.faults.support_half_open"
OWN_NETWORK = ("unshare", "-rn")


@cache
def may_have_a_network() -> bool:
    """Tell whether this user may make a network and take it apart."""
    if sys.platform != "linux" or not all(map(shutil.which, ("unshare", "ip"))):
        return False
    command = [*OWN_NETWORK, "ip", "link", "set", "lo", "up"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(not may_have_a_network(), reason="no network of one's own can be made here")
def test_a_peer_that_is_gone_without_a_word_is_noticed_within_45_seconds() -> None:
    """The kernel has to wait, so this takes as long as it says."""
    done = subprocess.run(
        [*OWN_NETWORK, sys.executable, "-W", "error", "-m", PROGRAM],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=170,
        check=True,
    )
    found = json.loads(done.stdout)
    assert 25 < found["noticed"] < 45
    assert found["lists"] == 1, "what it missed, the next watch tells"
