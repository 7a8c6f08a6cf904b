"""SIGTERM and SIGINT, sent to a real process."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from kinform.runtime._signals import on_signals

pytestmark = pytest.mark.slow

PROGRAM = textwrap.dedent("""
    import asyncio, logging, sys
    import kinform
    from kinform.apiserver import APIServer

    logging.basicConfig(level=logging.INFO, stream=sys.stderr)

    async def reconcile(ctx, name):
        print("begun", flush=True)
        try:
            await asyncio.sleep(float(sys.argv[1]))
            print("done", flush=True)
        except asyncio.CancelledError:
            print("cancelled", flush=True)
            raise

    async def main():
        async with APIServer(port=None) as server, server.connect() as client:
            controller = kinform.Controller(
                "test", reconcile, for_=kinform.KindSource("v1/namespaces",
                field_selector="metadata.name=default"))
            async with kinform.Manager(client) as manager:
                manager.add(controller)
                await manager.run()
        print("over", flush=True)

    asyncio.run(main())
""")


def run(tmp_path: Path, seconds: float, *signals: signal.Signals) -> tuple[list[str], str, int]:
    """Run the program, send signals once it works; return what it said, its log, its end."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, str(program), str(seconds)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,  # or what was read ahead with a line is not among the rest
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with process:
        first = process.stdout.readline().decode().strip()
        log = ""
        for number, sent in enumerate(signals):
            process.send_signal(sent)
            while number < len(signals) - 1 and "stopping within" not in log:
                log += process.stderr.readline().decode()
        rest, more = process.communicate(timeout=60)
    return [first, *rest.decode().split()], log + more.decode(), process.returncode


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_first_signal_lets_work_be_done(tmp_path: Path, sent: signal.Signals) -> None:
    said, log, code = run(tmp_path, 0.5, sent)
    assert said == ["begun", "done", "over"]
    assert code == 0
    assert f"{sent.name}: stopping within 20 s; once more to stop at once" in log
    assert "Traceback" not in log


def test_a_second_signal_cancels_it(tmp_path: Path) -> None:
    said, log, code = run(tmp_path, 3600, signal.SIGTERM, signal.SIGINT)
    assert said == ["begun", "cancelled", "over"]
    assert code == 0
    assert "SIGINT: stopping at once" in log
    assert "Traceback" not in log


async def test_who_handled_signals_before_does_so_afterwards() -> None:
    before = signal.getsignal(signal.SIGTERM)
    heard: list[str] = []
    came = asyncio.Event()

    def hear(name: str) -> None:
        heard.append(name)
        came.set()

    with on_signals(hear):
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(10):
            await came.wait()
    assert heard == ["SIGTERM"]
    assert signal.getsignal(signal.SIGTERM) is before


async def test_everybody_hears_of_a_signal_and_a_handler_of_the_loop_is_given_back() -> None:
    loop = asyncio.get_running_loop()
    heard: list[str] = []
    came = asyncio.Event()

    async def send() -> None:
        came.clear()
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(10):
            await came.wait()

    def hear(who: str) -> None:
        heard.append(who)
        came.set()

    loop.add_signal_handler(signal.SIGTERM, hear, "mine")
    try:
        with on_signals(lambda _: hear("first")):
            with on_signals(lambda _: hear("second")):
                await send()
            await send()
        await send()
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
    assert heard == ["first", "second", "first", "mine"]
