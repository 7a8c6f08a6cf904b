"""Scripts and the server that plays them: the same for both clients, and honest."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.differential.compare import truth
from tools.differential.drawing import THEMES, draw
from tools.differential.script import PATH, Change, Fault, Script, Style, held, history
from tools.differential.server import Plan, Server

SEEDS = st.integers(0, 100_000)
A = Change(-1.0, 3, "ADDED", "ns/a", "u1", 1)
B = Change(10.0, 5, "MODIFIED", "ns/a", "u1", 2)
C = Change(20.0, 7, "DELETED", "ns/a", "u1", 2)


def script(*changes: Change, **parts: Any) -> Script:
    return Script(seed=0, theme="test", duration=100.0, changes=changes, **parts)


def documents(plan: Plan) -> list[Any]:
    """Read every JSON document of a body, whatever is between them."""
    text = b"".join(data for _, data in plan.chunks).decode()
    decoder, found = json.JSONDecoder(), list[Any]()
    while text := text.lstrip():
        document, end = decoder.raw_decode(text)
        found.append(document)
        text = text[end:]
    return found


def events(plan: Plan) -> list[tuple[str, str]]:
    return [(one["type"], one["object"]["metadata"]["resourceVersion"]) for one in documents(plan)]


@given(SEEDS)
def test_a_seed_draws_the_same_script_each_time_and_it_survives_json(seed: int) -> None:
    drawn = draw(seed)
    assert drawn == draw(seed)
    assert msgspec.json.decode(msgspec.json.encode(drawn), type=Script) == msgspec.convert(
        msgspec.to_builtins(drawn), type=Script
    )


def test_every_theme_is_drawn() -> None:
    assert {draw(seed).theme for seed in range(300)} == THEMES.keys()


@given(SEEDS, st.floats(0, 1500), st.booleans())
def test_a_list_and_the_watch_from_its_version_are_the_whole_history(
    seed: int, at: float, streams: bool
) -> None:
    """Without faults; from a list at any time, events lead to the state at the end."""
    drawn = draw(seed)
    quiet = msgspec.structs.replace(
        drawn, faults=(), compactions=(), served=drawn.served[:1], drops=(), lags=(), style=Style()
    )
    restores = [one.at for one in quiet.changes if one.op == "restore" and one.at > at]
    end = min([*restores, quiet.duration])
    server = Server(quiet)
    (listed,) = documents(server.answer(PATH, at))
    state = {one["metadata"]["name"]: one["spec"]["n"] for one in listed["items"]}
    version = "" if streams else listed["metadata"]["resourceVersion"]
    suffix = "&sendInitialEvents=true" if streams else ""
    plan = server.answer(f"{PATH}?watch=true&resourceVersion={version}{suffix}", at)
    for event in documents(plan):
        metadata = event["object"]["metadata"]
        if event["type"] == "DELETED":
            state.pop(metadata["name"])
        elif event["type"] not in {"BOOKMARK", "ERROR"}:
            state[metadata["name"]] = event["object"]["spec"]["n"]
    before = history(quiet, min(end, at + 3600) - 1e-6)
    expected = {one.key.split("/")[1]: str(one.n) for one in held(before).values()}
    assert state == expected


@pytest.mark.parametrize(
    "style",
    [
        Style(nulls=True),
        Style(pretty=True),
        Style(reordered=True),
        Style(unknown_fields=True),
        Style(pieces=7),
    ],
)
def test_a_style_changes_bytes_and_no_meaning(style: Style) -> None:
    def meant(document: Any) -> Any:
        if isinstance(document, dict):
            return {
                key: meant(value)
                for key, value in document.items()
                if value is not None and key != "aNewField"
            }
        return [meant(one) for one in document] if isinstance(document, list) else document

    plain, styled = script(A, B), script(A, B, style=style)
    for target in (PATH, f"{PATH}?watch=true&sendInitialEvents=true"):
        one, other = Server(plain).answer(target, 0.0), Server(styled).answer(target, 0.0)
        assert one.chunks != other.chunks
        assert meant(documents(one)) == meant(documents(other))


def test_a_watch_replays_what_it_missed_and_then_follows() -> None:
    plan = Server(script(A, B, C)).answer(f"{PATH}?watch=1&resourceVersion=3", 15.0)
    assert events(plan)[:2] == [("MODIFIED", "5"), ("DELETED", "7")]
    assert [at for at, _ in plan.chunks[:2]] == [0.0, 5.0]


def test_a_restore_takes_versions_back_and_breaks_watches() -> None:
    restored = script(A, B, Change(30.0, 3, "restore"))
    plan = Server(restored).answer(f"{PATH}?watch=1&resourceVersion=5", 15.0)
    assert (documents(plan)[-1]["type"], plan.ends) == ("ERROR", 15.0)
    other = msgspec.structs.replace(restored, seed=1)
    plan = Server(other).answer(f"{PATH}?watch=1&resourceVersion=5", 15.0)
    assert (plan.end, plan.ends) == ("reset", 15.0)
    (listed,) = documents(Server(restored).answer(PATH, 31.0))
    assert listed["metadata"]["resourceVersion"] == "3"
    assert Server(restored).answer(f"{PATH}?resourceVersion=5", 31.0).status == 504
    assert [state for _, state in truth(restored)["ns/a"]] == ["", "u1/3/1", "u1/5/2", "u1/3/1"]


def test_a_compacted_version_has_expired() -> None:
    compacted = script(A, B, compactions=[(12.0, 5)])
    assert events(Server(compacted).answer(f"{PATH}?watch=1&resourceVersion=3", 11.0))
    (event,) = documents(Server(compacted).answer(f"{PATH}?watch=1&resourceVersion=3", 13.0))
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


def test_a_fault_matches_by_verb_time_and_count() -> None:
    fault = Fault("status", ("watch",), since=5, until=50, skip=1, times=2, code=503)
    server = Server(script(A, faults=[fault]))
    watch = f"{PATH}?watch=1&resourceVersion=3"
    assert server.answer(watch, 1.0).status == 200, "too early"
    assert server.answer(PATH, 6.0).status == 200, "another verb"
    answers = [server.answer(watch, 6.0).status for _ in range(4)]
    assert answers == [200, 503, 503, 200]
    assert server.answer(watch, 51.0).status == 200


def test_a_version_that_is_not_served_is_404_and_discovery_has_the_others() -> None:
    moved = script(A, served=[(0.0, ("v1", "v2")), (10.0, ("v2",))], aggregated=False)
    server = Server(moved)
    assert server.answer(PATH, 9.0).status == 200
    assert server.answer(PATH, 11.0).status == 404
    assert server.answer("/apis/example.dev/v1", 11.0).status == 404
    assert server.answer("/apis/example.dev/v2", 11.0).status == 200


@pytest.mark.parametrize(("what", "end"), [("cut", "cut"), ("broken", "reset")])
def test_a_body_breaks_at_the_byte_that_the_fault_names(what: str, end: str) -> None:
    plan = Server(script(A, faults=[Fault(what, ("list",), size=17)])).answer(PATH, 0.0)
    assert sum(len(data) for _, data in plan.chunks) == 17
    assert plan.end == end


def test_pages_lead_through_the_whole_list() -> None:
    more = [Change(-1.0, 10 + n, "ADDED", f"ns/{n}", f"u{n}", n) for n in range(5)]
    server = Server(script(*more, page=2))
    names, token = list[str](), ""
    while True:
        (page,) = documents(server.answer(f"{PATH}?limit=500&continue={token}", 0.0))
        names += [one["metadata"]["name"] for one in page["items"]]
        if not (token := page["metadata"].get("continue", "")):
            break
    assert names == ["0", "1", "2", "3", "4"]
    assert [one.kind for one in server.asked] == ["list", "page", "page"]
