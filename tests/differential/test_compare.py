"""The comparison: a wrong informer is found, and a right one is not accused."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tools.differential import proof, report
from tools.differential.__main__ import SHARE
from tools.differential.compare import compared, lag, normal_form, staleness
from tools.differential.outcome import Note, Outcome
from tools.differential.rules import RULES, Case, explained
from tools.differential.running import Tally, judge
from tools.differential.script import Change, Fault, Script
from tools.differential.server import Asked

CHANGES = (
    Change(-1.0, 3, "ADDED", "ns/a", "u1", 1),
    Change(10.0, 5, "MODIFIED", "ns/a", "u1", 2),
    Change(20.0, 7, "DELETED", "ns/a", "u1", 2),
    Change(600.0, 8, "ADDED", "ns/a", "u2", 3),
)
SCRIPT = Script(seed=0, theme="test", duration=1500.0, changes=CHANGES)
ADD = Note(0.1, "add", "ns/a", "u1/3/1")
UPDATE = Note(10.1, "update", "ns/a", "u1/5/2", "u1/3/1")
DELETE = Note(20.1, "delete", "ns/a", "u1/7/2")
AGAIN = Note(600.1, "add", "ns/a", "u2/8/3")
RIGHT = Outcome(
    notes=(ADD, UPDATE, DELETE, AGAIN),
    cache={"ns/a": "u2/8/3"},
    synced=0.1,
    asked=(Asked(0.0, "stream", whole=0.05), Asked(500.0, "watch"), Asked(1000.0, "watch")),
)


def kinds(ours: Outcome, *, script: Script = SCRIPT, theirs: Outcome = RIGHT) -> set[str]:
    return {one.kind for one in compared(script, ours, theirs)}


def ours(*notes: Note, **parts: Any) -> Outcome:
    return replace(RIGHT, notes=notes, **parts)


def test_equal_outcomes_do_not_differ() -> None:
    assert kinds(RIGHT) == set()


def test_the_normal_form_has_each_state_once_and_no_absence_within_a_replacement() -> None:
    replaced = (
        ADD,
        replace(ADD, what="update", old="u1/3/1"),
        Note(30.0, "delete", "ns/a", "u1/3/1"),
        Note(30.0, "add", "ns/a", "u2/8/3"),
    )
    states = [state for _, state in normal_form(replaced)["ns/a"]]
    assert states == ["", "u1/3/1", "u2/8/3"]


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        pytest.param(ours(ADD, DELETE, AGAIN), "lost", id="an event is dropped"),
        pytest.param(ours(ADD, UPDATE, AGAIN), "grammar", id="a deletion is not told"),
        pytest.param(
            ours(ADD, UPDATE, replace(UPDATE, at=11.0, old="u1/5/2"), DELETE, AGAIN),
            "grammar",
            id="nothing new is told",
        ),
        pytest.param(
            ours(ADD, DELETE, replace(UPDATE, at=21.0, what="add", old=""), AGAIN),
            "invented",
            id="an object comes back",
        ),
        pytest.param(
            ours(ADD, replace(UPDATE, state="u1/6/2"), DELETE, AGAIN),
            "invented",
            id="a state that never was",
        ),
        pytest.param(
            ours(ADD, UPDATE, DELETE, cache={}), "cache", id="the last change is not seen"
        ),
        pytest.param(
            ours(*(RIGHT.notes or ()), cache={}),
            "cache is not what was notified",
            id="the cache is empty",
        ),
        pytest.param(replace(RIGHT, synced=None), "synced", id="never synced"),
        pytest.param(replace(RIGHT, synced=100.0), "synced", id="synced late"),
        pytest.param(
            ours(ADD, UPDATE, DELETE, replace(AGAIN, at=700.0)), "stale", id="a change is late"
        ),
        pytest.param(replace(RIGHT, error="Livelock"), "ended", id="it ended"),
        pytest.param(replace(RIGHT, unlike_plain="notes"), "user code", id="handlers matter"),
        pytest.param(
            replace(RIGHT, asked=[Asked(n * 6.0, "watch") for n in range(9)]),
            "budget of watches",
            id="nine watches in a minute",
        ),
        pytest.param(
            replace(RIGHT, asked=[Asked(n * 6.0, "list") for n in range(9)]),
            "budget of lists",
            id="nine lists in a minute",
        ),
        pytest.param(
            replace(RIGHT, asked=[Asked(n * 60.0, "list") for n in range(20)]),
            "requests",
            id="too many lists in all",
        ),
        pytest.param(replace(RIGHT, broken="a watch is left open"), "broken", id="invariant"),
        pytest.param(
            ours(ADD, UPDATE, replace(DELETE, unknown=True), AGAIN),
            "grammar",
            id="an event passes for a tombstone",
        ),
        pytest.param(
            ours(ADD, UPDATE, replace(DELETE, state="u1/5/2"), AGAIN),
            "grammar",
            id="a tombstone passes for an event",
        ),
        pytest.param(
            ours(ADD, DELETE, AGAIN, asked=[*RIGHT.asked[:1], Asked(12.0, "list", whole=12.1)]),
            "listed",
            id="a list is not shown",
        ),
        pytest.param(replace(RIGHT, synced=0.04), "synced", id="synced before the list"),
        pytest.param(
            replace(RIGHT, asked=[*RIGHT.asked, Asked(1200.0, "watch", invalid="no")]),
            "invalid request",
            id="a request that a server refuses",
        ),
        pytest.param(
            replace(RIGHT, asked=[*RIGHT.asked, Asked(1200.0, "watch", version="5")]),
            "older version",
            id="a watch from an older version than was shown",
        ),
        pytest.param(
            replace(
                RIGHT,
                asked=[
                    *RIGHT.asked,
                    Asked(1200.0, "probe", retry_after=10),
                    Asked(1209.0, "watch", version="8"),
                ],
            ),
            "too early",
            id="Retry-After is ignored",
        ),
        pytest.param(
            replace(
                RIGHT,
                asked=[*RIGHT.asked, Asked(1200.0, "list", failed=True), Asked(1200.1, "list")],
            ),
            "too early",
            id="a failed list is repeated at once",
        ),
        pytest.param(
            replace(
                RIGHT,
                asked=[
                    *RIGHT.asked,
                    Asked(1200.0, "watch", version="8", refused=1200.1),
                    Asked(1205.0, "watch", version="8"),
                ],
            ),
            "refused version",
            id="an expired version is asked for again",
        ),
    ],
)
def test_a_wrong_informer_is_caught(wrong: Outcome, kind: str) -> None:
    assert kind in kinds(wrong)
    case = Case(SCRIPT, wrong, RIGHT)
    found = [one for one in compared(SCRIPT, wrong, RIGHT) if one.kind == kind]
    assert [explained(case, one) for one in found] == [None] * len(found), "no rule hides it"


def test_a_relist_may_jump_over_states() -> None:
    listed = (*RIGHT.asked, Asked(15.0, "list"))
    assert kinds(ours(ADD, DELETE, AGAIN, asked=listed)) == set()


def test_probes_and_pages_are_not_counted_as_lists() -> None:
    probes = [Asked(n * 1.0, "probe") for n in range(50)]
    pages = [Asked(n * 1.0, "page") for n in range(50)]
    assert kinds(replace(RIGHT, asked=[*RIGHT.asked, *probes, *pages])) == set()


def test_what_both_invent_is_no_difference() -> None:
    back = replace(UPDATE, at=21.0, what="add", old="")
    gone = replace(DELETE, at=22.0)
    both = ours(ADD, UPDATE, DELETE, back, gone, AGAIN)
    other = ours(ADD, DELETE, back, gone, AGAIN, asked=(*RIGHT.asked, Asked(15.0, "list")))
    assert "invented" not in kinds(other, theirs=both)


def test_staleness_and_lag_are_measured_against_the_server() -> None:
    late = ours(replace(ADD, at=4.0), replace(UPDATE, at=15.0), replace(DELETE, at=22.0), AGAIN)
    assert staleness(SCRIPT, late) == pytest.approx(4 + 5 + 2 + 0.1)
    assert lag(SCRIPT, late) == pytest.approx(5.0)


def test_a_rule_explains_only_where_its_fault_is() -> None:
    wrong = replace(RIGHT, cache={}, notes=(ADD, UPDATE, DELETE))
    silent = replace(SCRIPT, faults=[Fault("mute", ("watch",), after=1.0)])
    assert judge(silent, RIGHT, wrong).rules == {"silent"}
    assert judge(SCRIPT, RIGHT, wrong).defects
    assert judge(silent, wrong, RIGHT).defects, "it excuses client-go, not us"


def test_a_tally_counts_scripts_and_not_differences() -> None:
    wrong = replace(RIGHT, cache={}, notes=(ADD, UPDATE, DELETE))
    silent = replace(SCRIPT, faults=[Fault("mute", ("watch",), after=1.0)])
    tally = Tally()
    for result in (judge(silent, RIGHT, wrong), judge(SCRIPT, RIGHT, wrong)):
        tally.add(result)
    assert (tally.scripts, tally.hits["silent"], len(tally.defects)) == (2, 1, 1)


def test_the_record_has_2000_scripts_and_every_frequent_rule_a_reason() -> None:
    record = report.load()
    assert record["scripts"] >= 2000
    frequent = {name for name, hits in record["hits"].items() if hits > SHARE * record["scripts"]}
    assert {rule.name for rule in RULES if rule.name in frequent and not rule.review} == set()
    assert all(found["scripts"] for found in record["defects"].values())
    found = sum(seed >= 0 for seed in record["mutants"].values())
    assert found >= 0.8 * len(record["mutants"])
    assert record["mutants"].keys() == {patch.name for patch in proof.hunted()}


def test_the_page_is_as_it_would_be_written() -> None:
    assert report.PAGE.read_text("utf-8") == report.page(report.load())
