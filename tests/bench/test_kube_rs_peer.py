"""The kube-rs peer does what every peer is asked for, as far as kube-rs can.

It is built by hand or by the runner, not by the tests: ``cargo build`` takes minutes at first.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from bench import corpus
from bench.compare.processes import Answer, Child, ChildError

_ROOT: Final = Path(__file__).parents[2]
_PROGRAM: Final = _ROOT / "build" / "bench" / "kube-rs-target" / "release" / "kube-rs-peer"

pytestmark = pytest.mark.skipif(
    not _PROGRAM.exists(),
    reason="build/bench/kube-rs-target/release/kube-rs-peer is not built (in bench/peers/kube-rs: "
    "cargo build --release -j 2 --target-dir ../../../build/bench/kube-rs-target)",
)

_PODS: Final = 1_200  # three pages
_EVENTS: Final = 300
_TIMEOUT: Final = 60.0


class Server:
    """The replay server, and peers that look at it."""

    def __init__(self, child: Child, url: str) -> None:
        self.child: Final = child
        self._url: Final = url

    def peer(self, *arguments: str) -> Child:
        command = [str(_PROGRAM), "--url", self._url, "--timeout", "50", *arguments]
        return Child("the kube-rs peer", command)

    def serve(self, lists: str, *, namespaces: int = 0) -> None:
        _ask(self.child, "serve", "serving", objects=_PODS, lists=lists, namespaces=namespaces)

    def blast(self) -> None:
        assert _ask(self.child, "blast", "sent", watchers=1)["sent"] == _EVENTS

    def prepare(self) -> None:
        _ask(self.child, "prepare", "prepared", events=_EVENTS)

    def statistics(self) -> Answer:
        return _ask(self.child, "stats", "lists")


def _ask(child: Child, do: str, key: str, **rest: object) -> Answer:
    return child.ask({"do": do, **rest}, timeout=_TIMEOUT, key=key)


def _then(child: Child, key: str) -> Answer:
    return child.answer(key, timeout=_TIMEOUT, what="finish")


def _number(answer: Answer, key: str) -> float:
    value = answer[key]
    assert isinstance(value, int | float)
    return value


@pytest.fixture(scope="module", name="server")
def replay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    source = corpus.json_file(_PODS, folder=tmp_path_factory.mktemp("corpus"))
    command = [sys.executable, "-m", "bench.replay", "--json", str(source)]
    with Child("the replay server", command, folder=_ROOT) as child:
        port = child.answer("port", timeout=_TIMEOUT, what="start")["port"]
        yield Server(child, f"http://127.0.0.1:{port}")


@pytest.mark.parametrize("form", ["json", "threads"])
@pytest.mark.parametrize("lists", ["whole", "pages", "stream"])
def test_every_command_is_answered(server: Server, form: str, lists: str) -> None:
    server.serve(lists)
    with server.peer("--form", form, "--lists", lists, "--fields") as peer:
        versions = _then(peer, "ready")["versions"]
        assert isinstance(versions, dict)
        assert versions.keys() == {"kube", "k8s-openapi", "tokio", "rustc"}
        synced = _ask(peer, "start", "synced", objects=_PODS)
        assert synced == {"synced": True, "objects": _PODS, "told": _PODS}
        _check_events(peer, server)
        _check_reads(peer)
        _check_relist(peer, server)
        _check_controller(peer, server)
        assert _ask(peer, "release", "released") == {"released": True}
        for command in ("join", "queue", "dance"):
            assert _ask(peer, command, "unsupported", items=1) == {"unsupported": True}
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


def _check_controller(peer: Child, server: Server) -> None:
    server.prepare()
    assert _ask(peer, "controller", "expecting", items=_EVENTS) == {"expecting": _EVENTS}
    server.blast()
    assert _then(peer, "done") == {"done": _EVENTS}


@pytest.mark.parametrize(("lists", "streams"), [("whole", 0), ("pages", 0), ("stream", 1)])
def test_lists_are_streamed_only_where_asked_for(server: Server, lists: str, streams: int) -> None:
    server.serve(lists)
    before = server.statistics()
    with server.peer("--lists", lists) as peer:
        _then(peer, "ready")
        assert server.statistics() == before  # ready means that nothing was sent yet
        _ask(peer, "start", "synced", objects=_PODS)
        after = server.statistics()
    assert _number(after, "streams") - _number(before, "streams") == streams
    assert (after["lists"] == before["lists"]) is bool(streams)


def test_namespaces_have_a_watch_each(server: Server) -> None:
    server.serve("stream", namespaces=3)
    with server.peer("--namespaces", "3", "--lists", "stream") as peer:
        _then(peer, "ready")
        assert _ask(peer, "start", "synced", objects=60)["objects"] == 60
        assert server.statistics()["open"] == 3
        assert _ask(peer, "lookup", "unsupported", rounds=1) == {"unsupported": True}
        _ask(peer, "relisted", "expecting")
        assert _ask(server.child, "expire", "expired") == {"expired": 3}
        assert _then(peer, "relisted") == {"relisted": True, "objects": 60}


def test_what_is_waited_for_in_vain_is_named(server: Server) -> None:
    server.serve("stream")
    with server.peer("--timeout", "1") as peer:
        _then(peer, "ready")
        with pytest.raises(ChildError, match="waited 1 s for 1201 objects at the start"):
            _ask(peer, "start", "synced", objects=_PODS + 1)


def test_the_end_of_stdin_ends_it_whatever_it_waits_for() -> None:
    command = [str(_PROGRAM), "--url", "http://127.0.0.1:1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b'{"do":"expect","events":1}\n')
        process.stdin.flush()
        assert process.stdout.readline().startswith(b'{"ready":true')
        assert process.stdout.readline() == b'{"expecting":1}\n'
        process.stdin.close()
        assert process.wait(_TIMEOUT) == 0


def test_a_wrong_argument_is_named(server: Server) -> None:
    with server.peer("--form", "protobuf") as peer:
        with pytest.raises(ChildError, match='--form is json or threads, not "protobuf"'):
            _then(peer, "ready")
