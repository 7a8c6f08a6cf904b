"""The client-go peer does what every peer is asked for, in both encodings.

It is built by hand or by the runner, not by the tests: ``go build`` takes minutes the first time.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from bench import corpus
from bench.compare.peers import CLIENT_GO_PROGRAM, ROOT
from bench.compare.processes import Answer, Child, ChildError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not CLIENT_GO_PROGRAM.exists(),
        reason="build/bench/client-go-peer is not built (in bench/peers/client-go: "
        "go build -o ../../../build/bench/client-go-peer .)",
    ),
]

_PODS: Final = 200
_EVENTS: Final = 450
_TIMEOUT: Final = 60.0


def _ask(child: Child, do: str, key: str, **rest: object) -> Answer:
    return child.ask({"do": do, **rest}, timeout=_TIMEOUT, key=key)


def _then(child: Child, key: str) -> Answer:
    return child.answer(key, timeout=_TIMEOUT, what="finish")


def _number(answer: Answer, key: str) -> float:
    value = answer[key]
    assert isinstance(value, int | float)
    return value


@pytest.fixture(scope="module", name="files")
def fixture_files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the pods as JSON and, by the peer itself, as protobuf."""
    folder = tmp_path_factory.mktemp("corpus")
    source = corpus.json_file(_PODS, folder=folder)
    target = corpus.proto_file(_PODS, folder=folder)
    command = [str(CLIENT_GO_PROGRAM), "encode", str(source), str(target)]
    subprocess.run(command, check=True, timeout=_TIMEOUT)
    return source, target


class Server:
    """The replay server with these pods."""

    def __init__(self, child: Child, url: str) -> None:
        self.child: Final = child
        self.url: Final = url

    def serve(self, lists: str, *, namespaces: int = 0) -> None:
        rest = {"objects": _PODS, "lists": lists, "namespaces": namespaces}
        _ask(self.child, "serve", "serving", **rest)

    def prepare(self) -> None:
        _ask(self.child, "prepare", "prepared", events=_EVENTS)

    def blast(self) -> None:
        assert _ask(self.child, "blast", "sent", watchers=1)["sent"] == _EVENTS

    def statistics(self) -> Answer:
        return _ask(self.child, "stats", "lists")

    def peer(self, *arguments: str) -> Child:
        command = [str(CLIENT_GO_PROGRAM), "--url", self.url, "--timeout", "60", *arguments]
        return Child("the client-go peer", command)


@pytest.fixture(scope="module", name="server")
def fixture_server(files: tuple[Path, Path]) -> Iterator[Server]:
    command = [sys.executable, "-m", "bench.replay"]
    command += ["--json", str(files[0]), "--proto", str(files[1])]
    with Child("the replay server", command, folder=ROOT) as child:
        port = child.answer("port", timeout=_TIMEOUT, what="start")["port"]
        yield Server(child, f"http://127.0.0.1:{port}")


@pytest.mark.parametrize("lists", ["whole", "pages", "stream"])
@pytest.mark.parametrize("form", ["json", "protobuf"])
def test_every_command_is_answered(server: Server, form: str, lists: str) -> None:
    server.serve(lists)
    with server.peer("--form", form, "--lists", lists, "--fields") as peer:
        versions = _then(peer, "ready")["versions"]
        assert isinstance(versions, dict)
        assert versions["client-go"] == "0.36.4"
        synced = _ask(peer, "start", "synced", objects=_PODS)
        assert synced == {"synced": True, "objects": _PODS, "told": _PODS}
        _check_events(peer, server)
        _check_reads(peer)
        assert _ask(peer, "join", "joined_ms")["told"] == _PODS
        _check_relist(peer, server)
        _check_queues(peer, server)
        assert _ask(peer, "release", "released") == {"released": True}
        assert _ask(peer, "dance", "unsupported") == {"unsupported": True}
        assert peer.quit() == 0


def _check_events(peer: Child, server: Server) -> None:
    server.prepare()
    assert _ask(peer, "expect", "expecting", events=_EVENTS) == {"expecting": _EVENTS}
    server.blast()
    assert _then(peer, "told") == {"told": _EVENTS}
    assert _ask(peer, "latency", "expecting", events=50) == {"expecting": 50}
    _ask(server.child, "pace", "sent", events=50, per_second=1_000, watchers=1)
    answer = _then(peer, "told")
    assert answer["told"] == 50
    times = [_number(answer, key) for key in ("p50", "p99", "p999", "max")]
    assert 0 < times[0] <= times[1] <= times[2] <= times[3] < _TIMEOUT * 1e9


def _check_reads(peer: Child) -> None:
    answer = _ask(peer, "lookup", "key_ns", rounds=100)
    assert answer["index_objects"] == corpus.PODS_PER_NODE
    assert 0 < _number(answer, "selector_objects") < _PODS
    times = ("key_ns", "index_ns", "list_ms", "selector_ms")
    assert all(_number(answer, key) > 0 for key in times)


def _check_relist(peer: Child, server: Server) -> None:
    before = server.statistics()
    assert _ask(peer, "relisted", "expecting") == {"expecting": "relist"}
    assert _ask(server.child, "expire", "expired") == {"expired": 1}
    assert _then(peer, "relisted") == {"relisted": True, "objects": _PODS}
    after = server.statistics()
    assert (after["lists"], after["streams"]) != (before["lists"], before["streams"])


def _check_queues(peer: Child, server: Server) -> None:
    """What the relist tells of unchanged pods is not taken for an event."""
    server.prepare()
    assert _ask(peer, "controller", "expecting", items=_EVENTS) == {"expecting": _EVENTS}
    server.blast()
    assert _then(peer, "done")["done"] == _EVENTS
    answer = _ask(peer, "queue", "items", items=1_000)
    assert answer["items"] == 1_000
    assert _number(answer, "wall_ns") > 0


@pytest.mark.parametrize(("lists", "streams"), [("pages", 0), ("stream", 1)])
def test_lists_are_streamed_only_where_asked_for(server: Server, lists: str, streams: int) -> None:
    server.serve(lists)
    before = server.statistics()
    with server.peer("--lists", lists) as peer:
        _then(peer, "ready")
        assert server.statistics() == before  # ready means that nothing was sent yet
        _ask(peer, "start", "synced", objects=_PODS)
        after = server.statistics()
    assert _number(after, "streams") - _number(before, "streams") == streams
    assert _number(after, "lists") - _number(before, "lists") == 1 - streams


def test_namespaces_have_an_informer_each(server: Server) -> None:
    server.serve("stream", namespaces=3)
    with server.peer("--namespaces", "3", "--lists", "stream") as peer:
        _then(peer, "ready")
        assert _ask(peer, "start", "synced", objects=60)["objects"] == 60
        assert server.statistics()["open"] == 3
        _ask(peer, "relisted", "expecting")
        assert _ask(server.child, "expire", "expired") == {"expired": 3}
        assert _then(peer, "relisted") == {"relisted": True, "objects": 60}


def test_what_is_waited_for_in_vain_is_named(server: Server) -> None:
    server.serve("stream")
    with server.peer("--timeout", "0.5") as peer:
        _then(peer, "ready")
        with pytest.raises(ChildError, match=r"start: waited .* for 201 notifications"):
            _ask(peer, "start", "synced", objects=_PODS + 1)


def test_protobuf_keeps_the_fields_of_fixed_width(files: tuple[Path, Path]) -> None:
    encoded = list(corpus.records(files[1]))
    assert len(encoded) == _PODS
    for number, record in enumerate(encoded):
        assert b"%d" % (corpus.FIRST_VERSION + number) in record
        assert corpus.SENT.encode() in record


def test_unknown_fields_are_not_dropped_silently(tmp_path: Path) -> None:
    pod = b'{"metadata":{"name":"a"},"spec":{"nodeNames":"b"}}'
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_bytes(len(pod).to_bytes(4, "big") + pod)
    command = [str(CLIENT_GO_PROGRAM), "encode", str(source), str(target)]
    done = subprocess.run(command, capture_output=True, check=False, timeout=_TIMEOUT)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b'record 0: unknown field "spec.nodeNames"' in done.stderr
    assert list(tmp_path.iterdir()) == [source]
