"""The two clients as processes that play scripts, one after the other."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final, final

import msgspec

from tools.differential.outcome import Outcome
from tools.differential.script import Script
from tools.differential.server import Server

__all__ = ["PROGRAM", "ROOT", "Broken", "ClientGo", "Kinform", "build"]

ROOT: Final = Path(__file__).resolve().parents[2]
PROGRAM: Final = ROOT / "build" / "differential" / "client-go.test"
SOURCE: Final = ROOT / "bench" / "peers" / "client-go"
"""The module whose go.mod pins client-go, for the benchmark too."""
PATIENCE: Final = 120.0
"""Seconds of real time that a script may take."""


class Broken(RuntimeError):
    """A player has ended, or says nothing."""


def build() -> Path:
    """Build client-go's side, if its toolchain is there; Go's own cache makes it quick.

    Raises:
        Broken: it cannot be built.
    """
    if shutil.which("go") is None:
        raise Broken("there is no Go toolchain to build client-go's side with")
    PROGRAM.parent.mkdir(parents=True, exist_ok=True)
    command = ["go", "test", "-c", "-p", "2", "-vet=off", "-o", str(PROGRAM), "."]
    done = subprocess.run(command, cwd=SOURCE, check=False, capture_output=True, text=True)
    if done.returncode:
        raise Broken(f"client-go's side cannot be built: {done.stderr.strip()[-600:]}")
    return PROGRAM


class _Process:
    def __init__(self, command: list[str], **environment: str) -> None:
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if "client-go" in command[0] else None,
        )
        self._rest = b""

    def write(self, line: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
        except BrokenPipeError:
            raise Broken("the player has ended") from None

    def line(self) -> bytes:
        """Return the next line that it writes.

        Raises:
            Broken: there is none.
        """
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        while b"\n" not in self._rest:
            if not select.select([descriptor], [], [], PATIENCE)[0]:
                raise Broken(f"nothing for {PATIENCE:g} s of real time")
            data = os.read(descriptor, 1 << 20)
            if not data:
                raise Broken("the player has ended")
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@final
class Kinform:
    """kinform of a source folder; after a script that it does not survive, a new process."""

    def __init__(self, source: Path = ROOT / "src", *, python: str = sys.executable) -> None:
        self._source = source
        self._python = python
        self._process: _Process | None = None

    def play(self, script: Script) -> Outcome:
        """Play one script.

        Raises:
            Broken: there is no kinform in the source folder that plays anything.
        """
        if self._process is None:
            path = os.pathsep.join((str(self._source), str(ROOT)))
            command = [self._python, "-P", "-m", "tools.differential.ours"]
            self._process = _Process(command, PYTHONPATH=path, PYTHONHASHSEED="0")
            self._process.line()
        try:
            self._process.write(msgspec.json.encode(script) + b"\n")
            return msgspec.json.decode(self._process.line(), type=Outcome)
        except Broken as exc:
            self.close()
            return Outcome(error=str(exc))

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.close()
            self._process = None


@final
class ClientGo:
    """client-go's informer, in the bubble of a Go test binary."""

    def __init__(self, program: Path = PROGRAM) -> None:
        godebug = "randautoseed=0,randseednop=0"  # so that a script's seed decides the jitter
        command = [str(program), "-test.run=^TestDifferential$", "-test.timeout=0"]
        self._process = _Process(command, KINFORM_DIFFERENTIAL="1", GODEBUG=godebug, GOMAXPROCS="1")

    def play(self, script: Script) -> Outcome:
        """Play one script.

        Raises:
            Broken: the program has ended.
        """
        server = Server(script)
        head = {"seed": script.seed, "duration": script.duration}
        self._process.write(json.dumps(head).encode() + b"\n")
        while True:
            said = json.loads(self._process.line())
            if "outcome" in said:
                outcome = msgspec.convert(said["outcome"], type=Outcome)
                return msgspec.structs.replace(
                    outcome, notes=outcome.notes or (), asked=server.asked
                )
            self._process.write(server.answer(said["ask"], said["at"]).to_json())

    def close(self) -> None:
        """End the process."""
        self._process.close()
