"""One scenario with one client: ``python -m bench.scoreboard.cell SCENARIO CLIENT``.

Prints an observation as one line of JSON. Everything is seen from outside: the server counts
requests, the client is asked for its cache, the kernel counts connections that were refused.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import sys
import tempfile
import time
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, final

from bench.compare.peers import ROOT
from bench.compare.processes import Child, ChildError
from bench.scoreboard import clients, scenarios
from bench.scoreboard.clients import Client
from bench.scoreboard.judge import GRACE, Kept, Observation, delivered_as_update, delivered_twice
from bench.scoreboard.scenarios import PODS, Scenario, Step, pod

__all__ = ["main", "observe"]

_SNMP: Final = Path("/proc/net/snmp")
_START: Final = 60.0
_ANSWER: Final = 15.0
_POLL: Final = 0.25
_SETTLED: Final = 1.5
"""Seconds that the watch is left alone before the fault: to end a younger one is another fault."""
_EXCEPTION: Final = re.compile(r"[\w.]*(Error|Exception|Group|Expired)\b")
_TOKEN: Final = re.compile(r"/~[\w-]+")
_AWAKE: Final = "default/last"
_LAST: Final[Step] = {"do": "write", "changes": [("update", pod(19)), ("create", "last")]}
"""Written after the fault has ended: a client that has these pods has recovered."""


def refused_connections() -> int:
    """Return the number of failed connection attempts on this machine; 0 if it is not counted."""
    with contextlib.suppress(OSError, ValueError):
        lines = [line.split() for line in _SNMP.read_text(encoding="ascii").splitlines()]
        names, values = [line for line in lines if line[0] == "Tcp:"]
        return int(values[names.index("AttemptFails")])
    return 0


def observe(scenario: Scenario, client: Client) -> tuple[Observation, Mapping[str, str]]:
    """Run the scenario; return the observation, and the versions that the client reports."""
    command = [sys.executable, "-m", "bench.scoreboard.server"]
    with (
        Child("the API server", command, folder=ROOT) as server,
        tempfile.TemporaryDirectory() as folder,
    ):
        server.answer("ready", timeout=_START, what="start")
        ask = {"do": "serve", "front": scenario.front}
        answer = server.ask(ask, timeout=_ANSWER, key="kubeconfig")
        kubeconfig = Path(folder) / "kubeconfig"
        kubeconfig.touch(mode=0o600)
        kubeconfig.write_text(str(answer["kubeconfig"]), encoding="utf-8")
        # kopf looks for it in the environment alone.
        environment = {"KUBECONFIG": str(kubeconfig)}
        command = client.command(str(kubeconfig))
        with Child(client.label, command, environment=environment, folder=ROOT) as peer:
            cell = _Cell(scenario, server, peer)
            cell.live()
            return cell.seen, cell.versions


@final
class _Cell:
    """The steps and observations of a cell, in order."""

    def __init__(self, scenario: Scenario, server: Child, peer: Child) -> None:
        self._scenario = scenario
        self._server = server
        self._peer = peer
        self.seen = Observation()
        self.versions: Mapping[str, str] = {}

    def live(self) -> None:
        """Go through the scenario; what the client cannot stand is what was seen."""
        try:
            self._sync()
            self._break()
            if self._scenario.is_stop:
                self._stop()
                return
            self._heal()
            self._hear()
            self._stop()
        except ChildError as exc:
            if str(exc).startswith(self._server.name):
                raise
            self._note(died=_summary(str(exc)))

    # --- the parts

    def _sync(self) -> None:
        ready = self._peer.answer("ready", timeout=_START, what="start")
        versions = ready.get("versions")
        self.versions = versions if isinstance(versions, dict) else {}
        ask = {"do": "start", "objects": PODS}
        self._peer.ask(ask, timeout=_START, key="synced")
        self._do(self._scenario.before)
        deadline = time.monotonic() + _ANSWER
        while not (self._is_right() and self._look()["watches"]):
            if time.monotonic() > deadline:
                return
            time.sleep(_POLL)
        time.sleep(_SETTLED)
        self._note(has_synced=True)

    def _break(self) -> None:
        if not self.seen.has_synced:
            return
        before, began = self._requests(), time.monotonic()
        self._do(self._scenario.steps)
        self._pass(began + self._scenario.fault)
        self._note(
            fault=time.monotonic() - began,
            fault_requests=self._requests() - before,
        )
        if not self._scenario.is_stop:
            self._note(was_right=self._is_right())

    def _heal(self) -> None:
        if not self.seen.has_synced:
            return
        self._server.ask({"do": "heal"}, timeout=_ANSWER, key="healed")
        before, began = self._requests(), time.monotonic()
        self._do([_LAST])
        is_right = False
        while time.monotonic() < began + self._scenario.deadline and not is_right:
            time.sleep(1.0 if self._scenario.is_patient else _POLL)
            is_right = self._is_right()
        took = time.monotonic() - began
        found, content = self._look(), self._content(delivered=True)
        cache, server = self._differences(content["content"], found["objects"])
        delivered = content.get("delivered") or ()
        self._note(
            recovery=took,
            recovery_requests=self._requests() - before,
            is_awake=_AWAKE not in server,
            is_right=is_right,
            cache=cache,
            server=server,
            delivered_twice=delivered_twice(delivered),
            delivered_as_update=delivered_as_update(delivered),
            restarts=content.get("restarts", 0),
            redirected=found["redirected"],
            followed=found["elsewhere"],
            leaked=found["credentials"],
        )

    def _hear(self) -> None:
        lines = [line for line in self._peer.stderr_tail() if line.strip()]
        self._note(said=_without_token(lines[-1].strip()) if lines else "")

    def _stop(self) -> None:
        if not self.seen.has_synced:
            return
        began = time.monotonic()
        self._peer.send({"do": "stop"})
        try:
            answer = self._peer.answer("stopped_ms", timeout=2 * GRACE, what="stop")
        except ChildError:
            self._note(stop=time.monotonic() - began)
            return
        if "unsupported" not in answer:
            self._note(stop=time.monotonic() - began)

    # --- what they are made of

    def _do(self, steps: Sequence[Step]) -> None:
        keys = {"faults": "added", "write": "written", "act": "done"}
        for step in steps:
            self._server.ask(step, timeout=_ANSWER, key=keys[str(step["do"])])

    def _pass(self, until: float) -> None:
        """Wait; notice at once when the client's process has ended."""
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, 1.0))
            if not self._scenario.is_stop:
                self._content()

    def _look(self) -> dict[str, Any]:
        return self._server.ask({"do": "look"}, timeout=_ANSWER, key="objects")

    def _content(self, *, delivered: bool = False) -> dict[str, Any]:
        command = {"do": "content", "delivered": delivered}
        return self._peer.ask(command, timeout=_ANSWER, key="content")

    def _requests(self) -> int:
        found = self._look()
        asked: int = found["lists"] + found["watches"] + found["redirected"]
        return asked + (refused_connections() if self._scenario.refuses else 0)

    def _is_right(self) -> bool:
        return not any(self._differences(self._content()["content"], self._look()["objects"]))

    def _differences(
        self, cache: Mapping[str, Sequence[str]], server: Mapping[str, Sequence[str]]
    ) -> tuple[dict[str, Kept], dict[str, Kept]]:
        """Return of each side what the other has not, without what need not be right."""
        ours, theirs = (
            {key: _kept(kept) for key, kept in side.items() if key not in self._scenario.ignored}
            for side in (cache, server)
        )
        return (
            {key: kept for key, kept in ours.items() if theirs.get(key) != kept},
            {key: kept for key, kept in theirs.items() if ours.get(key) != kept},
        )

    def _note(self, **seen: Any) -> None:
        self.seen = dataclasses.replace(self.seen, **seen)


def _kept(values: Sequence[str]) -> Kept:
    version, uid, text = values
    return version, uid, text


def _summary(error: str) -> str:
    """Return what a client's end was, in a line: its own last words, if it had any."""
    first, *said = error.splitlines()
    if code := re.search(r"exit code -?\d+", first):
        first = code[0]
    words = [line.strip(" |+-") for line in said]
    named = [line for line in words if _EXCEPTION.match(line)]
    ending = next(reversed(named or [line for line in words if line]), "")
    return _without_token(f"{first}: {ending}" if ending else first)


def _without_token(text: str) -> str:
    return _TOKEN.sub("/~", text)[:300]


def _shortened(seen: Observation) -> dict[str, object]:
    """Return an observation for a record: contents as their beginnings."""
    found = dataclasses.asdict(seen)
    for side in ("cache", "server"):
        found[side] = {
            key: (version, uid, (text or "")[:40] + _mark(text))
            for key, (version, uid, text) in found[side].items()
        }
    return found


def _mark(text: str | None) -> str:
    """Return what tells two long contents apart when their beginnings are the same."""
    return f" #{zlib.crc32(text.encode()):08x}" if text and len(text) > 40 else ""


def main(arguments: Sequence[str]) -> None:
    """Observe one cell."""
    scenario, client = arguments
    seen, versions = observe(scenarios.chosen([scenario])[0], clients.chosen([client])[0])
    print(json.dumps({"seen": _shortened(seen), "versions": versions}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
