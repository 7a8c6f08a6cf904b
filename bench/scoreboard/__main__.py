"""Run the board: ``python -m bench.scoreboard``.

Takes about 20 minutes. Ctrl-C ends it early: what there is by then is written, marked as partial.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final, final

from bench import console
from bench.compare import machine
from bench.compare.peers import BUILD, ROOT
from bench.scoreboard import clients, picture, record, scenarios, table
from bench.scoreboard.clients import Client
from bench.scoreboard.record import Cell, Record
from bench.scoreboard.scenarios import Scenario

__all__ = ["main"]

_RESULTS: Final = ROOT / "bench" / "results"
_LANES: Final = 6
_LONGEST: Final = 180.0
"""Seconds that a cell may take beyond its own deadline: much more than it needs."""
_POLL: Final = 0.1
_INTERRUPTED: Final = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, or report a run; return 0 unless kinform failed somewhere."""
    options = _options(arguments)
    if options.report is not None:
        found = record.load(options.report)
        _finish(found, options.out or options.report.parent, with_record=False)
        return _exit_code(found)
    wanted, rows = clients.chosen(options.only), scenarios.chosen(options.scenarios)
    found = Record(machine=machine.described(), began=console.now())
    if options.resume is not None:
        found = record.load(options.resume)
        found.left_out.clear()
        found.resumed.append(console.now())
    able: list[Client] = []
    for client in wanted:
        if (reason := clients.missing(client)) is None:
            able.append(client)
        else:
            found.left_out[client.label] = reason
            console.say(f"left out: {client.label}: {reason}")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    began = time.monotonic()
    try:
        with contextlib.closing(_Run(able, rows, found)) as run:
            run.run(options.lanes)
        is_interrupted = False
    except KeyboardInterrupt:
        console.say("interrupted; writing what there is")
        is_interrupted = True
    found.seconds += time.monotonic() - began
    found.partial = not _is_whole(found)
    folder = options.out or (BUILD / "partial" if found.partial else _RESULTS)
    _finish(found, folder, with_record=True)
    return _INTERRUPTED if is_interrupted else _exit_code(found)


def _is_whole(found: Record) -> bool:
    """Return whether every client that can run has been through every scenario."""
    able = [it.label for it in clients.CLIENTS if it.label not in found.left_out]
    return all(found.find(name, label) for name in scenarios.NAMES for label in able)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.scoreboard", description=__doc__)
    parser.add_argument("--only", default="", metavar="CLIENT,...", help="these clients alone")
    parser.add_argument("--scenarios", default="", metavar="NAME,...", help="these scenarios alone")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where the results go")
    parser.add_argument("--lanes", type=int, default=_LANES, help="so many cells at a time")
    parser.add_argument("--resume", type=Path, metavar="FILE", help="a record to be completed")
    parser.add_argument("--report", type=Path, metavar="FILE", help="the board of a record")
    options = parser.parse_args(arguments)
    options.only = [name for name in options.only.split(",") if name]
    options.scenarios = [name for name in options.scenarios.split(",") if name]
    try:
        clients.chosen(options.only)
        scenarios.chosen(options.scenarios)
    except ValueError as exc:
        parser.error(str(exc))
    return options


@final
@dataclasses.dataclass
class _Running:
    scenario: Scenario
    client: Client
    process: subprocess.Popen[bytes]
    output: IO[bytes]
    began: float

    @property
    def is_late(self) -> bool:
        longest = _LONGEST + self.scenario.fault + self.scenario.deadline
        return time.monotonic() - self.began > longest


@final
class _Run:
    """All cells, several at a time: while one waits, others can be busy.

    Those that may take minutes, in which nothing happens, have no lane. Of those that the kernel
    counts for there is one at a time, since it counts for the whole machine.
    """

    def __init__(self, able: Sequence[Client], rows: Sequence[Scenario], into: Record) -> None:
        patient = sorted(rows, key=lambda row: not row.is_patient)  # these last the longest
        self._waiting = [
            (row, client)
            for row in patient
            for client in able
            if into.find(row.name, client.label) is None
        ]
        self._running: list[_Running] = []
        self._record = into
        self._total = len(self._waiting) + len(into.cells)

    def run(self, lanes: int) -> None:
        """Do all cells."""
        while self._waiting or self._running:
            while (chosen := self._next(lanes)) is not None:
                self._waiting.remove(chosen)
                self._start(*chosen)
            time.sleep(_POLL)
            for running in tuple(self._running):
                if running.process.poll() is not None or running.is_late:
                    self._running.remove(running)
                    self._end(running)

    def close(self) -> None:
        """End what runs."""
        for running in self._running:
            _kill(running.process)
            running.output.close()

    def _next(self, lanes: int) -> tuple[Scenario, Client] | None:
        busy = sum(not it.scenario.is_patient for it in self._running)
        counting = any(it.scenario.refuses for it in self._running)
        for row, client in self._waiting:
            if (row.is_patient or busy < lanes) and not (row.refuses and counting):
                return row, client
        return None

    def _start(self, scenario: Scenario, client: Client) -> None:
        output = tempfile.TemporaryFile()  # noqa: SIM115 - closed at the end of the cell
        command = [sys.executable, "-m", "bench.scoreboard.cell", scenario.name, client.label]
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            cwd=ROOT, start_new_session=True,
        )  # fmt: skip
        running = _Running(scenario, client, process, output, time.monotonic())
        self._running.append(running)

    def _end(self, running: _Running) -> None:
        _kill(running.process)
        with running.output as output:
            output.seek(0)
            lines = output.read().decode(errors="replace").splitlines()
        cell = self._cell(running, lines)
        self._record.cells.append(cell)
        verdict = cell.verdict
        console.say(
            f"[{len(self._record.cells)} of {self._total}] {cell.scenario}, {cell.client}: "
            f"{verdict.outcome}{f' ({verdict.detail})' if verdict.detail else ''}, "
            f"{time.monotonic() - running.began:.0f} s"
        )

    def _cell(self, running: _Running, lines: list[str]) -> Cell:
        scenario, client = running.scenario.name, running.client.label
        try:
            found = json.loads(lines[-1])
            seen = record.observation(found["seen"])
        except (LookupError, ValueError, TypeError):
            said = lines[-1] if lines else "nothing was said"
            return Cell(scenario=scenario, client=client, error=said[:300])
        self._record.versions.setdefault(client, found["versions"])
        return Cell(scenario=scenario, client=client, seen=seen)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a cell; what it has started dies with it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _finish(found: Record, folder: Path, *, with_record: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if with_record:
        record.save(found, folder / "scoreboard.json")
    text = table.markdown(found)
    (folder / "scoreboard.md").write_text(text, encoding="utf-8")
    rows = [(it.name, it.title) for it in table.shown_scenarios(found)]
    drawn = picture.svg(found, rows, [it.label for it in table.shown_clients(found)])
    (folder / "scoreboard.svg").write_text(drawn, encoding="utf-8")
    print(text)
    console.say(f"wrote {folder / 'scoreboard.md'}")


def _exit_code(found: Record) -> int:
    ours = (cell.verdict.outcome for cell in found.cells if cell.client == clients.CLIENTS[0].label)
    return int(any(outcome != "pass" for outcome in ours))


if __name__ == "__main__":
    sys.exit(main())
