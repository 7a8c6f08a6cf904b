"""Every client does what a peer is asked for, against the replay server.

``make bench-peers`` builds those that are programs, not the tests: the first time takes minutes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import pytest

from bench import corpus
from bench.compare.peers import KINFORM, LIGHTKUBE, PROTOBUF, RAW, TYPED, Peer
from bench.compare.processes import Child, ChildError
from bench.peers import goals
from tests.bench.support_peers import (
    CLIENTS,
    FORMS,
    KUBE_RS_PEER,
    PODS,
    TIMEOUT,
    Replay,
    ask,
    figures,
    is_program,
    replaying,
    require,
    started,
    then,
)
from tests.testing.eventually import eventually

pytestmark = pytest.mark.slow

_EVENTS: Final = 300
_REPEATED: Final = 900
"""More events than pods: some keys are queued again."""
_NAMESPACES: Final = 3
_UNSUPPORTED: Final = {"unsupported": True}
_BOOKMARKED: Final = {KINFORM, "kopf", "kubernetes_asyncio"}
"""The Python clients that ask for bookmarks."""
_PROGRAMS: Final = [peer for peer in CLIENTS if is_program(peer)]
_STREAMING: Final = [peer for peer in CLIENTS if peer.name in {KINFORM, "kopf"}]
_SCENES: Final = [
    *((peer, "whole") for peer in FORMS),
    *((peer, "pages") for peer in FORMS if is_program(peer) or peer in CLIENTS),
    *((peer, "stream") for peer in FORMS if is_program(peer) or peer in _STREAMING),
]


def _label(value: object) -> str | None:
    return value.label if isinstance(value, Peer) else None


def _lacks(peer: Peer) -> set[str]:
    """Return the commands for which this client has nothing."""
    match peer.name:
        case "client-go":
            return set()
        case "kinform":
            return {"latency"} if peer is TYPED else set()
        case "kube-rs":
            return {"join", "queue"}
        case "kr8s":
            return {"join", "queue", "controller", "relisted"}
        case _:
            return {"join", "queue", "controller"}


@pytest.fixture(scope="module", name="replay")
def fixture_replay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replay]:
    with replaying(tmp_path_factory.mktemp("corpus")) as replay:
        yield replay


@pytest.mark.parametrize(("peer", "lists"), _SCENES, ids=_label)
def test_a_peer_follows_all_commands(replay: Replay, peer: Peer, lists: str) -> None:
    replay.serve(lists)
    with started(peer, replay.url, "--lists", lists, "--fields") as child:
        assert isinstance(then(child, "ready")["versions"], dict)
        answer = {"synced": True, "objects": PODS, "delivered": PODS}
        assert ask(child, "start", "synced", objects=PODS) == answer
        _check_events(child, replay)
        lacks = _lacks(peer)
        for command in lacks:
            assert ask(child, command, "unsupported", items=1, events=1) == _UNSUPPORTED
        if "latency" not in lacks:
            _check_latency(child, replay)
        _check_reads(child)
        if "join" not in lacks:
            assert ask(child, "join", "joined_ms")["delivered"] == PODS
        if "relisted" not in lacks:
            _check_relist(child, replay, asks_for_bookmarks=peer.name in _BOOKMARKED)
        if "controller" not in lacks:
            # kinform's peer counts keys, the others events.
            _check_controller(child, replay, PODS if peer.name == KINFORM else _REPEATED)
        if "queue" not in lacks:
            _check_queue(child)
        assert ask(child, "release", "released") == {"released": True}
        assert ask(child, "something else", "unsupported") == _UNSUPPORTED
        assert child.quit() == 0


def _check_events(child: Child, replay: Replay) -> None:
    assert ask(child, "expect", "expecting", events=_EVENTS) == {"expecting": _EVENTS}
    replay.blast(_EVENTS)
    assert then(child, "delivered") == {"delivered": _EVENTS}


def _check_latency(child: Child, replay: Replay) -> None:
    assert ask(child, "latency", "expecting", events=50) == {"expecting": 50}
    ask(replay.child, "pace", "sent", events=50, per_second=1_000, watchers=1)
    ranks = figures(then(child, "p999"))
    assert ranks["delivered"] == 50
    assert 0 < ranks["p50"] <= ranks["p99"] <= ranks["p999"] == ranks["max"] < TIMEOUT * 1e9


def _check_reads(child: Child) -> None:
    found = figures(ask(child, "lookup", "key_ns", rounds=100))
    assert found["index_objects"] == corpus.PODS_PER_NODE
    assert 0 < found["selector_objects"] < PODS
    assert all(found[key] > 0 for key in ("key_ns", "index_ns", "list_ms", "selector_ms"))


def _check_relist(child: Child, replay: Replay, *, asks_for_bookmarks: bool) -> None:
    if asks_for_bookmarks:
        ask(replay.child, "bookmark", "bookmarked")
    before = replay.statistics()
    assert ask(child, "relisted", "expecting") == {"expecting": "relist"}
    assert ask(replay.child, "expire", "expired") == {"expired": 1}
    assert then(child, "relisted") == {"relisted": True, "objects": PODS}
    after = replay.statistics()
    assert (after["lists"], after["streams"]) != (before["lists"], before["streams"])
    _check_events(child, replay)  # it goes on as before


def _check_controller(child: Child, replay: Replay, items: int) -> None:
    """Unchanged pods of the relist do not count as events."""
    assert ask(child, "controller", "expecting", items=items) == {"expecting": items}
    replay.blast(items)
    done = then(child, "done")
    done.pop("reconciled", None)  # client-go alone tells
    assert done == {"done": items}


def _check_queue(child: Child) -> None:
    found = figures(ask(child, "queue", "items", items=10_000))
    assert found["items"] == 10_000
    assert found["wall_ns"] > 0
    assert found["cpu_ns"] > 0


@pytest.mark.parametrize(
    ("lists", "requests", "streams"), [("whole", 1, 0), ("pages", 2, 0), ("stream", 0, 1)]
)
@pytest.mark.parametrize("peer", [*_PROGRAMS, RAW], ids=_label)
def test_lists_are_streamed_only_where_asked_for(
    replay: Replay, peer: Peer, lists: str, requests: int, streams: int
) -> None:
    replay.serve(lists)
    before = replay.statistics()
    with started(peer, replay.url, "--lists", lists) as child:
        then(child, "ready")
        assert replay.statistics() == before  # ready means that nothing was sent yet
        ask(child, "start", "synced", objects=PODS)
        after = replay.statistics()
    made = [after[key] - before[key] for key in ("lists", "streams")]
    assert made == [requests, streams]


@pytest.mark.parametrize("peer", CLIENTS, ids=_label)
def test_a_peer_watches_many_namespaces(replay: Replay, peer: Peer) -> None:
    replay.serve("whole", namespaces=_NAMESPACES)
    with started(peer, replay.url, "--namespaces", str(_NAMESPACES)) as child:
        then(child, "ready")
        count = 20 * _NAMESPACES
        assert ask(child, "start", "synced", objects=count)["objects"] == count
        found = ask(child, "lookup", "key_ns", rounds=10)
        assert found == _UNSUPPORTED if is_program(peer) else figures(found)["key_ns"] > 0


@pytest.mark.parametrize("peer", [*_PROGRAMS, RAW], ids=_label)
def test_each_namespace_has_a_watch_that_lists_again(replay: Replay, peer: Peer) -> None:
    replay.serve("stream", namespaces=_NAMESPACES)
    arguments = ("--namespaces", str(_NAMESPACES), "--lists", "stream")
    with started(peer, replay.url, *arguments) as child:
        then(child, "ready")
        count = 20 * _NAMESPACES
        assert ask(child, "start", "synced", objects=count)["objects"] == count
        eventually(lambda: replay.statistics()["open"] == _NAMESPACES)  # counted after the answer
        ask(child, "relisted", "expecting")
        assert ask(replay.child, "expire", "expired") == {"expired": _NAMESPACES}
        assert then(child, "relisted") == {"relisted": True, "objects": count}


@pytest.mark.parametrize(
    ("peer", "words"),
    [
        (PROTOBUF, r"start: waited .* for 601 notifications"),
        (KUBE_RS_PEER, "waited 1 s for 601 objects at the start"),
    ],
    ids=["client-go", "kube-rs"],
)
def test_a_peer_that_waits_for_objects_in_vain_says_so(
    replay: Replay, peer: Peer, words: str
) -> None:
    replay.serve("stream")
    with started(peer, replay.url, "--timeout", "1") as child:
        then(child, "ready")
        with pytest.raises(ChildError, match=words):
            ask(child, "start", "synced", objects=PODS + 1)


def test_a_peer_that_waits_for_events_in_vain_says_so(replay: Replay) -> None:
    replay.serve("whole")
    with started(LIGHTKUBE, replay.url, "--timeout", "5") as child:
        then(child, "ready")
        ask(child, "start", "synced", objects=PODS)
        ask(child, "expect", "expecting", events=7)
        with pytest.raises(ChildError, match="events delivered: 0 of 7 within 5 s"):
            then(child, "delivered")


@pytest.mark.parametrize(
    ("peer", "ci", "outcome"),
    [
        (PROTOBUF, "true", pytest.fail.Exception),
        (PROTOBUF, "", pytest.skip.Exception),
        (KUBE_RS_PEER, "true", pytest.skip.Exception),
    ],
    ids=["client-go in CI", "client-go elsewhere", "kube-rs in CI"],
)
def test_a_program_that_is_not_built_is_skipped_but_not_client_go_in_ci(
    monkeypatch: pytest.MonkeyPatch, peer: Peer, ci: str, outcome: type[BaseException]
) -> None:
    monkeypatch.setenv("CI", ci)
    either = (pytest.fail.Exception, pytest.skip.Exception)  # a skip of its own would go unseen
    words = f"ghost is not built .`make bench-peers ARGS={peer.name}` builds it"
    with pytest.raises(either, match=words) as caught:
        require(replace(peer, command=("/nowhere/ghost",)))
    assert caught.type is outcome


def test_a_percentile_is_the_nearest_rank() -> None:
    ranks = [goals.percentile(range(1, 1001), share) for share in (0.5, 0.99, 0.999, 1.0)]
    assert ranks == [500, 990, 999, 1000]
    assert goals.percentile([7], 0.5) == 7
