"""Servers end when the test run ends, however it ends."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kinform.testing.controlplane._supervisor import Server, Supervisor
from kinform.testing.errors import ControlPlaneError
from tests.testing.eventually import eventually
from tests.testing.processes import is_alive, running

SLEEPER = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(1000)"]
IGNORE_SIGTERM = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
STUBBORN = [*SLEEPER[:-1], IGNORE_SIGTERM + SLEEPER[-1]]
RUNNER = f"""
import json, os, signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job inherits it ignored
from kinform.testing.controlplane._supervisor import Supervisor
supervisor = Supervisor()
server = supervisor.server("sleeper")
server.start({SLEEPER!r}, env={{}})
facts = {{"folder": str(supervisor.folder), "pid": server.pid, "reaper": supervisor._process.pid}}
"""
REPORT = """
print(json.dumps(facts), flush=True)
threading.Event().wait()
"""


@pytest.fixture
def supervisor() -> Iterator[Supervisor]:
    it = Supervisor()
    yield it
    it.close()


def started(supervisor: Supervisor, argv: list[str] = SLEEPER) -> Server:
    server = supervisor.server("server")
    server.start(argv, env={})
    eventually(lambda: "up" in server.log_tail())
    return server


def test_a_started_server_runs_until_it_is_stopped(supervisor: Supervisor) -> None:
    server = started(supervisor)
    assert server.is_running
    server.stop()
    assert (server.is_running, server.poll(), server.pid) == (False, -signal.SIGKILL, None)


def test_a_stopped_server_has_not_crashed_and_one_that_ended_on_its_own_has(
    supervisor: Supervisor,
) -> None:
    stopped, crashed = started(supervisor), supervisor.server("crashing")
    stopped.stop()
    crashed.start([sys.executable, "-c", "raise SystemExit(3)"], env={})
    eventually(lambda: crashed.has_crashed)
    assert (stopped.has_crashed, crashed.poll()) == (False, 3)


def test_a_server_is_asked_first_and_killed_when_its_grace_is_over(supervisor: Supervisor) -> None:
    polite, stubborn = started(supervisor), supervisor.server("stubborn")
    stubborn.start(STUBBORN, env={})
    eventually(lambda: "up" in stubborn.log_tail())
    polite.stop(grace=20)
    stubborn.stop(grace=0.1)
    assert (polite.poll(), stubborn.poll()) == (-signal.SIGTERM, -signal.SIGKILL)


def test_a_paused_server_can_be_stopped_in_good_order(supervisor: Supervisor) -> None:
    server = started(supervisor)
    server.signal(signal.SIGSTOP)
    server.stop(grace=20)
    assert server.poll() == -signal.SIGTERM


def test_a_server_can_be_started_again_and_its_log_goes_on(supervisor: Supervisor) -> None:
    server = started(supervisor)
    server.stop()
    server.start(SLEEPER, env={})
    eventually(lambda: server.log_tail() == "up\nup")


def test_starting_a_running_server_is_refused(supervisor: Supervisor) -> None:
    server = started(supervisor)
    with pytest.raises(ControlPlaneError, match="server is running already"):
        server.start(SLEEPER, env={})


def test_a_file_that_cannot_be_run_is_named(supervisor: Supervisor, tmp_path: Path) -> None:
    missing = tmp_path / "etcd"
    with pytest.raises(ControlPlaneError, match=f"cannot start {missing}: .*No such file"):
        supervisor.server("etcd").start([str(missing)], env={})


def test_the_folder_is_private(supervisor: Supervisor) -> None:
    assert supervisor.folder.stat().st_mode & 0o777 == 0o700


def test_closing_kills_every_server_and_removes_the_folder() -> None:
    supervisor = Supervisor()
    pids = [started(supervisor).pid for _ in range(3)]
    supervisor.close()
    supervisor.close()
    assert not any(is_alive(pid) for pid in pids if pid is not None)
    assert not supervisor.folder.exists()


def test_a_closed_supervisor_starts_nothing() -> None:
    supervisor = Supervisor()
    server = supervisor.server("late")
    supervisor.close()
    with pytest.raises(ControlPlaneError, match="closed"):
        server.start(SLEEPER, env={})


def test_many_threads_may_use_one_supervisor(supervisor: Supervisor) -> None:
    servers = [supervisor.server(f"server-{number}") for number in range(8)]

    def live(server: Server) -> None:
        server.start(SLEEPER, env={})
        server.stop()

    threads = [threading.Thread(target=live, args=(server,)) for server in servers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [server.poll() for server in servers] == [-signal.SIGKILL] * 8


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_server_survives_a_killed_runner(number: signal.Signals) -> None:
    with running(RUNNER + REPORT) as (runner, facts):
        pid, folder = int(str(facts["pid"])), Path(str(facts["folder"]))
        assert is_alive(pid)
        runner.send_signal(number)
        runner.wait(30)
        eventually(lambda: not is_alive(pid) and not folder.exists())


@pytest.mark.slow
def test_no_server_survives_although_a_forked_child_of_the_runner_does() -> None:
    """A child forked without exec keeps the pipe to the reaper open."""
    fork = "facts['child'] = child = os.fork()\nif not child: threading.Event().wait()\n"
    with running(RUNNER + fork + REPORT) as (runner, facts):
        pid, child, folder = int(str(facts["pid"])), int(str(facts["child"])), facts["folder"]
        try:
            runner.kill()
            runner.wait(30)
            eventually(lambda: not is_alive(pid) and not Path(str(folder)).exists())
            assert is_alive(child)
        finally:
            os.kill(child, signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="needs a death signal set by prctl")
def test_no_server_survives_a_killed_reaper() -> None:
    with running(RUNNER + REPORT) as (_, facts):
        pid, folder = int(str(facts["pid"])), Path(str(facts["folder"]))
        os.kill(int(str(facts["reaper"])), signal.SIGKILL)
        eventually(lambda: not is_alive(pid))
        assert folder.exists()
        for leftover in folder.iterdir():
            leftover.unlink()
        folder.rmdir()


def test_a_killed_reaper_is_a_crash_of_its_servers() -> None:
    supervisor = Supervisor()
    server = started(supervisor)
    os.kill(supervisor._process.pid, signal.SIGKILL)
    eventually(lambda: server.has_crashed)
    supervisor.close()
    assert not supervisor.folder.exists()


def test_the_tail_of_a_log_is_short_and_without_known_noise(supervisor: Supervisor) -> None:
    server = supervisor.server("chatty")
    lines = [f"line {number}" for number in range(100)] + ["x" * 5000]
    noise = ["grpc: the client connection is closing"] * 100
    server.log_path.write_text("\n".join(lines + noise), encoding="utf-8")
    assert server.log_tail(3) == "line 98\nline 99\n" + "x" * 400


def test_a_server_without_a_log_has_an_empty_tail(supervisor: Supervisor) -> None:
    assert supervisor.server("silent").log_tail() == ""
