"""Checks of the kube-rs peer alone: its versions, its end and its errors."""

from __future__ import annotations

import subprocess

import pytest

from bench.compare.peers import KUBE_RS_PROGRAM, Peer
from bench.compare.processes import ChildError
from tests.bench.support_peers import (
    KUBE_RS_PEER,
    THREADS,
    TIMEOUT,
    require,
    started,
    then,
)

_NOWHERE = "http://127.0.0.1:1"


@pytest.fixture(autouse=True)
def fixture_program() -> None:
    require(KUBE_RS_PEER)


@pytest.mark.parametrize("peer", [KUBE_RS_PEER, THREADS], ids=lambda peer: peer.label)
def test_it_tells_its_versions(peer: Peer) -> None:
    with started(peer, _NOWHERE) as child:
        versions = then(child, "ready")["versions"]
    assert isinstance(versions, dict)
    assert versions.keys() == {"kube", "k8s-openapi", "tokio", "rustc"}


def test_the_end_of_stdin_ends_it_whatever_it_waits_for() -> None:
    command = [str(KUBE_RS_PROGRAM), "--url", _NOWHERE]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b'{"do":"expect","events":1}\n')
        process.stdin.flush()
        assert process.stdout.readline().startswith(b'{"ready":true')
        assert process.stdout.readline() == b'{"expecting":1}\n'
        process.stdin.close()
        assert process.wait(TIMEOUT) == 0


def test_a_wrong_argument_is_named() -> None:
    with started(KUBE_RS_PEER, _NOWHERE, "--form", "protobuf") as child:
        with pytest.raises(ChildError, match='--form is json or threads, not "protobuf"'):
            then(child, "ready")
