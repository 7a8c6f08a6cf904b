"""The suite's own rules (tests/conftest.py), each broken once to see that it is noticed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parent.parent

OFFENDERS = """
import asyncio, logging, socket, warnings
import kinform, kinform.apiserver
import pytest

async def fails():
    raise ValueError("lost")

async def test_leaves_a_task():
    asyncio.get_running_loop().create_task(asyncio.sleep(10))

async def test_loses_an_exception():
    task = asyncio.get_running_loop().create_task(fails())
    await asyncio.sleep(0)

async def test_leaves_a_socket_open():
    cycle = [socket.socket()]
    cycle.append(cycle)

def block():
    exec(compile("import time; time.sleep(0)", kinform.__file__, "exec"))

async def test_blocks_the_loop():
    block()

def test_warns():
    warnings.warn("old", DeprecationWarning)

def test_logs_a_token():
    token = kinform.apiserver.APIServer().token
    logging.getLogger("kinform.rest").debug("sent", extra={"header": f"Bearer {token}"})

def test_expects_an_error_that_shows_a_token():
    with pytest.raises(kinform.KinformError):
        try:
            raise OSError(kinform.apiserver.APIServer().token)
        except OSError:
            raise kinform.UsageError("no") from None

def test_logs_and_raises_what_anybody_may_see():
    logging.getLogger("kinform.rest").debug("sent")
    with pytest.raises(kinform.KinformError):
        raise kinform.UsageError("no")

async def test_cancels_its_task():
    task = asyncio.get_running_loop().create_task(asyncio.sleep(10))
    await asyncio.sleep(0)
    task.cancel()

async def test_blocks_elsewhere():
    await kinform.clock.offload(block)
"""


@pytest.mark.slow
def test_offences_are_noticed_and_only_those(tmp_path: Path) -> None:
    (tmp_path / "test_offenders.py").write_text(OFFENDERS, encoding="utf-8")
    report = tmp_path / "report.xml"
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-c", "pyproject.toml"]
    options = ["-p", "no:cacheprovider", f"--junitxml={report}", str(tmp_path)]
    subprocess.run([*command, *options], check=False, capture_output=True, cwd=ROOT)
    noticed = {
        case.attrib["name"]: complaint.attrib["message"]
        for case in ElementTree.parse(report).iter("testcase")
        for complaint in (*case.findall("failure"), *case.findall("error"))
    }
    assert noticed.keys() == {
        "test_leaves_a_task",
        "test_loses_an_exception",
        "test_leaves_a_socket_open",
        "test_blocks_the_loop",
        "test_warns",
        "test_logs_a_token",
        "test_expects_an_error_that_shows_a_token",
    }
    assert "BlockingError" in noticed["test_blocks_the_loop"]
    assert "the test left 1 tasks running" in noticed["test_leaves_a_task"]
    assert "asyncio logged" in noticed["test_loses_an_exception"]
    assert "a secret was shown" in noticed["test_logs_a_token"]
    assert "a secret was shown" in noticed["test_expects_an_error_that_shows_a_token"]
