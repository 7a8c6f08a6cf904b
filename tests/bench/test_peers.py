"""Every Python client does what a peer is asked for, against the replay server."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from bench import corpus
from bench.compare.processes import Answer, Child, ChildError
from bench.peers import goals

pytestmark = pytest.mark.slow

_PODS: Final = 200
_EVENTS: Final = 300
_NAMESPACES: Final = 3
_TIMEOUT: Final = 60.0
_ROOT: Final = Path(__file__).parent.parent.parent

CLIENTS: Final = {
    "kinform": "kinform_informer",
    "kubernetes": "official_informer",
    "kubernetes_asyncio": "kubernetes_asyncio_watch",
    "lightkube": "lightkube_watch",
    "kr8s": "kr8s_watch",
    "kopf": "kopf_event",
}
FORMS: Final = [
    *((client,) for client in CLIENTS),
    ("kinform", "--form", "zstd"),
    ("kinform", "--form", "typed"),
    ("kinform", "--loop", "uvloop"),
]
_UNSUPPORTED: Final = {"unsupported": True}


def _ask(child: Child, do: str, key: str, **rest: object) -> Answer:
    return child.ask({"do": do, **rest}, timeout=_TIMEOUT, key=key)


def _then(child: Child, key: str) -> Answer:
    return child.answer(key, timeout=_TIMEOUT, what=f"say {key}")


def _figures(answer: Answer) -> dict[str, float]:
    return {name: value for name, value in answer.items() if isinstance(value, int | float)}


class Replay:
    """The replay server, with some pods."""

    def __init__(self, child: Child, url: str) -> None:
        self.child: Final = child
        self.url: Final = url

    def serve(self, lists: str, *, namespaces: int = 0) -> None:
        _ask(self.child, "serve", "serving", objects=_PODS, lists=lists, namespaces=namespaces)

    def blast(self, events: int, *, watchers: int = 1) -> None:
        _ask(self.child, "prepare", "prepared", events=events)
        assert _ask(self.child, "blast", "sent", watchers=watchers)["sent"] == events

    def peer(self, client: str, *arguments: str) -> Child:
        pytest.importorskip(client)
        command = [sys.executable, "-m", f"bench.peers.{CLIENTS[client]}", "--url", self.url]
        return Child(client, [*command, "--timeout", "60", *arguments], folder=_ROOT)


@pytest.fixture(scope="module", name="replay")
def fixture_replay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replay]:
    file = corpus.json_file(_PODS, folder=tmp_path_factory.mktemp("corpus"))
    command = [sys.executable, "-m", "bench.replay", "--json", str(file)]
    with Child("replay", command, folder=_ROOT) as child:
        port = child.answer("port", timeout=_TIMEOUT, what="start")["port"]
        yield Replay(child, f"http://127.0.0.1:{port}")


@pytest.mark.parametrize("form", FORMS, ids=" ".join)
def test_a_peer_follows_all_commands(replay: Replay, form: tuple[str, ...]) -> None:
    replay.serve("whole")
    with replay.peer(*form, "--fields") as peer:
        ready = peer.answer("ready", timeout=_TIMEOUT, what="start")
        assert isinstance(ready["versions"], dict)
        told = {"synced": True, "objects": _PODS, "told": _PODS}
        assert _ask(peer, "start", "synced", objects=_PODS) == told

        assert _ask(peer, "expect", "expecting", events=_EVENTS) == {"expecting": _EVENTS}
        replay.blast(_EVENTS)
        assert _then(peer, "told") == {"told": _EVENTS}

        if _ask(peer, "latency", "expecting", events=20) != _UNSUPPORTED:
            _ask(replay.child, "pace", "sent", events=20, per_second=200)
            ranks = _figures(_then(peer, "p999"))
            assert 0 < ranks["p50"] <= ranks["p99"] <= ranks["p999"] == ranks["max"]
        else:
            assert "typed" in form

        found = _figures(_ask(peer, "lookup", "key_ns", rounds=100))
        assert found["index_objects"] == corpus.PODS_PER_NODE
        assert 0 < found["selector_objects"] < _PODS
        assert _ask(peer, "release", "released") == {"released": True}
        assert _ask(peer, "something else", "unsupported") == _UNSUPPORTED
        assert peer.quit() == 0


@pytest.mark.parametrize(
    ("client", "lists"),
    [*((client, "pages") for client in CLIENTS), ("kinform", "stream"), ("kopf", "stream")],
)
def test_a_peer_lists_as_the_server_does_and_once_more_when_it_must(
    replay: Replay, client: str, lists: str
) -> None:
    replay.serve(lists)
    with replay.peer(client, "--lists", lists) as peer:
        peer.answer("ready", timeout=_TIMEOUT, what="start")
        _ask(peer, "start", "synced", objects=_PODS)
        _ask(peer, "expect", "expecting", events=_EVENTS)
        replay.blast(_EVENTS)  # there is a watch now
        _then(peer, "told")
        if client in {"kinform", "kopf", "kubernetes_asyncio"}:  # the others do not ask for any
            _ask(replay.child, "bookmark", "bookmarked")
        if _ask(peer, "relisted", "expecting") == _UNSUPPORTED:
            assert client == "kr8s"
            return
        assert _ask(replay.child, "expire", "expired")["expired"] == 1
        assert _then(peer, "relisted") == {"relisted": True, "objects": _PODS}

        _ask(peer, "expect", "expecting", events=_EVENTS)  # it goes on as before
        replay.blast(_EVENTS)
        assert _then(peer, "told") == {"told": _EVENTS}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_peer_watches_many_namespaces(replay: Replay, client: str) -> None:
    replay.serve("whole", namespaces=_NAMESPACES)
    with replay.peer(client, "--namespaces", str(_NAMESPACES)) as peer:
        peer.answer("ready", timeout=_TIMEOUT, what="start")
        count = 20 * _NAMESPACES
        assert _ask(peer, "start", "synced", objects=count)["objects"] == count
        assert _figures(_ask(peer, "lookup", "key_ns", rounds=10))["key_ns"] > 0


def test_kinform_has_a_second_handler_a_queue_and_a_controller(replay: Replay) -> None:
    replay.serve("whole")
    with replay.peer("kinform") as peer:
        peer.answer("ready", timeout=_TIMEOUT, what="start")
        _ask(peer, "start", "synced", objects=_PODS)
        assert _ask(peer, "join", "joined_ms")["told"] == _PODS
        assert _figures(_ask(peer, "queue", "wall_ns", items=1000))["cpu_ns"] > 0
        assert _ask(peer, "controller", "expecting", items=_PODS) == {"expecting": _PODS}
        replay.blast(_PODS)
        assert _then(peer, "done") == {"done": _PODS}


def test_a_peer_that_waits_in_vain_says_for_what(replay: Replay) -> None:
    replay.serve("whole")
    with replay.peer("lightkube", "--timeout", "2") as peer:
        peer.answer("ready", timeout=_TIMEOUT, what="start")
        _ask(peer, "start", "synced", objects=_PODS)
        _ask(peer, "expect", "expecting", events=7)
        with pytest.raises(ChildError, match="events told: 0 of 7 within 2 s"):
            _then(peer, "told")


def test_a_percentile_is_the_nearest_rank() -> None:
    figures = range(1, 1001)
    ranks = [goals.percentile(figures, share) for share in (0.5, 0.99, 0.999, 1.0)]
    assert ranks == [500, 990, 999, 1000]
    assert goals.percentile([7], 0.5) == 7
