"""Features of the client-go peer alone: protobuf, which it also writes for the replay server."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from bench import corpus
from bench.compare.peers import JSON, PROTOBUF, Peer
from tests.bench.support_peers import encoded, require, started, then

pytestmark = pytest.mark.slow

_PODS: Final = 200


@pytest.fixture(autouse=True)
def fixture_program() -> None:
    require(PROTOBUF)


@pytest.mark.parametrize("peer", [JSON, PROTOBUF], ids=lambda peer: peer.label)
def test_it_tells_its_version(peer: Peer) -> None:
    with started(peer, "http://127.0.0.1:1") as child:
        versions = then(child, "ready")["versions"]
    assert isinstance(versions, dict)
    assert versions["client-go"] == "0.36.4"


def test_protobuf_keeps_the_fields_of_fixed_width(tmp_path: Path) -> None:
    source, target = corpus.json_file(_PODS, folder=tmp_path), tmp_path / "out"
    assert encoded(source, target).returncode == 0
    records = list(corpus.records(target))
    assert len(records) == _PODS
    for number, record in enumerate(records):
        assert b"%d" % (corpus.FIRST_VERSION + number) in record
        assert corpus.SENT.encode() in record


def test_unknown_fields_are_not_dropped_silently(tmp_path: Path) -> None:
    pod = b'{"metadata":{"name":"a"},"spec":{"nodeNames":"b"}}'
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_bytes(len(pod).to_bytes(4, "big") + pod)
    done = encoded(source, target)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b'record 0: unknown field "spec.nodeNames"' in done.stderr
    assert list(tmp_path.iterdir()) == [source]
