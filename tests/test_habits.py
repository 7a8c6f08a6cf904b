"""The suite's own rules (tests/conftest.py), each broken once to see that it is noticed."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parent.parent

OFFENDERS = """
import asyncio, logging, socket, subprocess, sys, warnings
import kinform, kinform.apiserver
import pytest

def says(*words, to="stdout"):
    return [sys.executable, "-c", f"import sys; sys.{to}.write({' '.join(words)!r})"]

def token():
    return kinform.apiserver.APIServer().token

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
    logging.getLogger("kinform.rest").debug("sent", extra={"header": f"Bearer {token()}"})

def test_expects_an_error_that_shows_a_token():
    with pytest.raises(kinform.KinformError):
        try:
            raise OSError(token())
        except OSError:
            raise kinform.UsageError("no") from None

def test_child_shows_a_token():
    subprocess.run(says("sent", token(), to="stderr"), check=True, capture_output=True, text=True)

def test_child_shows_a_token_and_is_read_in_pieces():
    with subprocess.Popen(says(token()), stdout=subprocess.PIPE, bufsize=0) as child:
        while child.stdout.read(5):
            pass

def test_child_shows_a_token_in_a_line():
    with subprocess.Popen(says("sent", token()), stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline().startswith("sent canary")

async def test_child_on_the_loop_shows_a_token():
    child = await asyncio.create_subprocess_exec(*says(token()), stdout=subprocess.PIPE)
    await child.communicate()

def test_child_shows_a_token_on_what_it_has_inherited():
    subprocess.run(says(token(), to="stderr"), check=True)

def test_child_says_what_anybody_may_know():
    done = subprocess.run(says("sent"), check=True, capture_output=True, text=True)
    assert done.stdout == "sent"

def test_child_shows_what_it_was_asked_for(ears):
    subprocess.run(says(token()), check=True, capture_output=True)
    assert ["canary" in said for said in ears.take()] == [True]

def test_plugin_that_kinform_starts_gives_a_token():
    start = "done = subprocess.run(command, check=True, capture_output=True, text=True)"
    kinform_s = {"__name__": "kinform.rest", "subprocess": subprocess, "command": says(token())}
    exec(start, kinform_s)
    assert kinform_s["done"].stdout.startswith("canary")

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
    # Its report quotes what was shown: that goes into the file alone.
    subprocess.run([*command, *options], check=False, stdout=subprocess.DEVNULL, cwd=ROOT)
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
        "test_child_shows_a_token",
        "test_child_shows_a_token_and_is_read_in_pieces",
        "test_child_shows_a_token_in_a_line",
        "test_child_on_the_loop_shows_a_token",
        "test_child_shows_a_token_on_what_it_has_inherited",
    }
    assert "BlockingError" in noticed["test_blocks_the_loop"]
    assert "the test left 1 tasks running" in noticed["test_leaves_a_task"]
    assert "asyncio logged" in noticed["test_loses_an_exception"]
    shown = {name for name, complaint in noticed.items() if "a secret was shown" in complaint}
    assert shown == {name for name in noticed if "token" in name}


def test_no_code_of_ours_takes_a_cancellation_count_for_a_cancellation() -> None:
    """Before Python 3.13 it is 1 after a TaskGroup that failed, and user code may leave it so."""
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in (ROOT / "src").rglob("*.py")
        if "cancelling" in (text := path.read_text("utf-8"))  # parsing all takes seconds
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and node.attr == "cancelling"
    ]
    assert found == [], "run what may leave a count behind apart: kinform.tasks.apart"
