"""The peers that are tested, and the replay server they look at."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from bench import corpus
from bench.compare import build
from bench.compare.peers import (
    CLIENT_GO,
    CLIENT_GO_PROGRAM,
    KUBE_RS,
    KUBE_RS_PROGRAM,
    NULL,
    PEERS,
    ROOT,
    Peer,
    chosen,
)
from bench.compare.processes import Answer, Child
from tests.support.skipping import cannot_run

TIMEOUT: Final = 60.0
PODS: Final = 600
"""Two pages of what clients ask for, 500."""

KUBE_RS_PEER: Final = chosen([KUBE_RS])[0]
THREADS: Final = replace(
    KUBE_RS_PEER, label="kube-rs threads", command=(str(KUBE_RS_PROGRAM), "--form", "threads")
)
FORMS: Final = [*(peer for peer in PEERS if peer.name != NULL), THREADS]
"""Every configuration of every client."""
CLIENTS: Final = list({peer.name: peer for peer in reversed(FORMS)}.values())[::-1]
"""One configuration of each."""


def is_program(peer: Peer) -> bool:
    return peer.name in build.PROGRAMS


def require(peer: Peer) -> None:
    """Skip the test where this peer cannot run; fail in CI, which builds client-go's."""
    if (reason := build.missing(peer)) is None:
        return
    if peer.name == CLIENT_GO:
        cannot_run(reason)
    pytest.skip(reason)


def started(peer: Peer, url: str, *arguments: str) -> Child:
    """Start a peer that looks at ``url``."""
    require(peer)
    command = [*peer.command, "--url", url, "--timeout", "60", *arguments]
    return Child(peer.label, command, folder=ROOT)


def ask(child: Child, do: str, key: str, **rest: object) -> Answer:
    """Ask for something, and return the answer, which has ``key``."""
    return child.ask({"do": do, **rest}, timeout=TIMEOUT, key=key)


def then(child: Child, key: str) -> Answer:
    """Return the next answer, which has ``key``."""
    return child.answer(key, timeout=TIMEOUT, what=f"say {key}")


def figures(answer: Answer) -> dict[str, float]:
    return {name: value for name, value in answer.items() if isinstance(value, int | float)}


def encoded(source: Path, target: Path) -> subprocess.CompletedProcess[bytes]:
    """Have client-go's peer write the pods of a file as protobuf."""
    command = [str(CLIENT_GO_PROGRAM), "encode", str(source), str(target)]
    return subprocess.run(command, capture_output=True, check=False, timeout=TIMEOUT)


class Replay:
    """The replay server, with some pods."""

    def __init__(self, child: Child, url: str) -> None:
        self.child: Final = child
        self.url: Final = url

    def serve(self, lists: str, *, namespaces: int = 0) -> None:
        ask(self.child, "serve", "serving", objects=PODS, lists=lists, namespaces=namespaces)

    def blast(self, events: int) -> None:
        ask(self.child, "prepare", "prepared", events=events)
        assert ask(self.child, "blast", "sent", watchers=1)["sent"] == events

    def statistics(self) -> dict[str, float]:
        return figures(ask(self.child, "stats", "lists"))


@contextmanager
def replaying(folder: Path) -> Iterator[Replay]:
    """Run a replay server with pods; as protobuf too, where client-go's peer can write it."""
    source = corpus.json_file(PODS, folder=folder)
    command = [sys.executable, "-m", "bench.replay", "--json", str(source)]
    if CLIENT_GO_PROGRAM.exists():
        target = corpus.proto_file(PODS, folder=folder)
        encoded(source, target).check_returncode()
        command += ["--proto", str(target)]
    with Child("the replay server", command, folder=ROOT) as child:
        port = child.answer("port", timeout=TIMEOUT, what="start")["port"]
        yield Replay(child, f"http://127.0.0.1:{port}")
