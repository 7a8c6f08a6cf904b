"""The judge, on observations made by hand; and one cell of the board, with real processes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from bench.scoreboard import __main__ as board
from bench.scoreboard import clients, record, scenarios, table
from bench.scoreboard.cell import observe
from bench.scoreboard.judge import (
    GRACE,
    HOT,
    Observation,
    Outcome,
    Verdict,
    delivered_as_update,
    delivered_twice,
    judged,
    notes,
)
from bench.scoreboard.record import Cell, Record
from kinform.apiserver import faults

_GOOD: Final = Observation(
    has_synced=True, fault=6.0, fault_requests=6, recovery=3.0, recovery_requests=2, is_right=True
)
_OURS: Final = ("7", "uid-1", "ours")
_WRONG: Final[dict[str, Any]] = {"is_right": False, "recovery": 20.0}


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({}, Outcome.PASSED),
        ({"was_right": True, "restarts": 3, "delivered_twice": 1}, Outcome.PASSED),
        ({"died": "exit code 1"}, Outcome.DIED),
        ({"has_synced": False}, Outcome.FAIL),
        ({"leaked": 1}, Outcome.LEAK),
        ({"followed": 1}, Outcome.PASSED),
        ({"fault_requests": int(6 * HOT) + 1}, Outcome.HOT),
        ({"fault_requests": int(6 * HOT)}, Outcome.PASSED),
        ({"recovery_requests": 5_000}, Outcome.HOT),
        ({"recovery_requests": 50, "recovery": 0.3}, Outcome.PASSED),
        ({**_WRONG, "cache": {"a": _OURS}}, Outcome.GHOSTS),
        ({**_WRONG, "cache": {"a": _OURS}, "recovery_requests": 0}, Outcome.GHOSTS),
        ({**_WRONG, "server": {"a": _OURS}}, Outcome.FAIL),
        ({**_WRONG, "server": {"a": _OURS}, "recovery_requests": 0}, Outcome.STALL),
        (
            {**_WRONG, "server": {"a": _OURS}, "recovery_requests": 0, "is_awake": True},
            Outcome.FAIL,
        ),
        ({**_WRONG, "cache": {"a": _OURS, "b": _OURS}, "server": {"b": ("8", "", "")}}, "fail"),
        ({**_WRONG, "cache": {"a": _OURS}, "server": {"a": ("7", "uid-1", "its")}}, "corrupted"),
    ],
)
def test_an_observation_has_one_verdict(changes: dict[str, Any], outcome: str) -> None:
    assert judged(replace(_GOOD, **changes)).outcome == outcome


def test_the_worse_of_two_verdicts_counts() -> None:
    hot = replace(_GOOD, fault_requests=6_000, is_right=False, server={"a": _OURS})
    assert judged(hot) == Verdict(Outcome.HOT, "1,000/s, and did not recover")
    assert judged(replace(hot, died="exit code 1")).outcome is Outcome.DIED


def test_what_differs_is_counted() -> None:
    cache = {"gone": _OURS, "behind": ("3", "uid-2", "old")}
    server = {"behind": ("4", "uid-2", "new"), "lost": _OURS}
    verdict = judged(replace(_GOOD, **_WRONG, cache=cache, server=server))
    assert verdict == Verdict(Outcome.FAIL, "1 lost, 1 old, 1 ghosts")


@pytest.mark.parametrize(
    ("took", "outcome"),
    [(0.1, Outcome.PASSED), (GRACE + 0.1, Outcome.SLOW), (None, Outcome.UNKNOWN)],
)
def test_a_stop_is_judged_by_its_time_alone(took: float | None, outcome: Outcome) -> None:
    seen = replace(_GOOD, is_right=False, stop=took)
    assert judged(seen, is_stop=True).outcome is outcome


def test_the_same_state_twice_in_a_row_is_told_twice() -> None:
    add, update = ("add", "a", "u", "1"), ("update", "a", "u", "2")
    delete = ("delete", "a", "u", "3")
    assert delivered_twice([add, update, delete, ("add", "a", "v", "4")]) == 0
    assert delivered_twice([add, ("update", "a", "u", "1"), update, update, delete, delete]) == 3
    assert delivered_twice([add, ("add", "b", "u", "1")]) == 0


def test_another_uid_without_a_delete_is_told_as_an_update() -> None:
    add, other = ("add", "a", "u", "1"), ("update", "a", "v", "9")
    assert delivered_as_update([add, other]) == 1
    assert delivered_as_update([add, ("delete", "a", "u", "5"), ("add", "a", "v", "9")]) == 0
    assert delivered_as_update([add, ("update", "a", "u", "2")]) == 0


def test_notes_are_no_failures() -> None:
    seen = replace(_GOOD, restarts=1, delivered_twice=2, delivered_as_update=1, followed=1)
    assert notes(seen) == ["restarted", "duplicate", "recreated as update", "followed"]
    assert notes(_GOOD) == []


# --- the record and the table


def _record() -> Record:
    wrong = replace(_GOOD, is_right=False, cache={"default/a": _OURS}, said="| a `word`")
    return Record(
        machine={"cores": "2"},
        versions={"kinform": {"kinform": "1"}},
        left_out={"kr8s": "kr8s is not installed"},
        cells=[
            Cell(scenario="clean", client="kinform", seen=_GOOD),
            Cell(scenario="clean", client="kopf", seen=replace(_GOOD, restarts=1)),
            Cell(scenario="missed-deletes", client="kopf", seen=wrong),
            Cell(scenario="refused", client="kinform", error="the API server ended"),
        ],
    )


def test_a_record_survives_its_file(tmp_path: Path) -> None:
    made = _record()
    record.save(made, tmp_path / "scoreboard.json")
    assert record.load(tmp_path / "scoreboard.json") == made


def test_the_head_tells_of_a_run_that_was_gone_on_with() -> None:
    found = _record()
    assert "Gone on with" not in table.markdown(found)
    found.resumed.append("2026-11-17T19:38:46+00:00")
    assert "Gone on with: 2026-11-17T19:38:46+00:00." in table.markdown(found)


def test_the_table_has_a_row_for_each_scenario_and_says_what_is_missing() -> None:
    text = table.markdown(_record())
    assert "| | kinform | kopf |" in text
    assert "| nothing goes wrong | pass | pass ¹ |" in text
    assert "| 3 deletes and a compaction during an outage | – | **ghost objects**: 1 |" in text
    assert "| connections are refused for 10 s | not judged | – |" in text
    assert "| **passed** | **1 of 1** | **1 of 2** |" in text
    assert "Left out: kr8s: kr8s is not installed." in text
    assert "It is not a whole run" in text


def test_a_report_is_made_anew_from_a_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record.save(_record(), tmp_path / "scoreboard.json")
    assert board.main(["--report", str(tmp_path / "scoreboard.json")]) == 1
    page = (tmp_path / "scoreboard.md").read_text(encoding="utf-8")
    assert page == table.markdown(_record())
    assert page in capsys.readouterr().out


def test_what_a_record_has_is_not_done_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "scoreboard.json"
    record.save(_record(), file)
    wanted = ["--only", "kinform,kopf", "--scenarios", "clean"]
    assert board.main([*wanted, "--resume", str(file), "--out", str(tmp_path / "new")]) == 1
    resumed = record.load(tmp_path / "new" / "scoreboard.json")
    assert resumed.cells == _record().cells
    assert resumed.partial
    assert "[" not in capsys.readouterr().err  # no cell was reported


@pytest.mark.parametrize("option", ["--only", "--scenarios"])
def test_unknown_name_is_refused(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        board.main([option, "unknown"])
    assert "'unknown'" in capsys.readouterr().err


# --- the scenarios


def test_every_fault_of_every_scenario_is_one() -> None:
    steps = [step for it in scenarios.SCENARIOS for step in (*it.before, *it.steps)]
    texts = [str(step["faults"]) for step in steps if step["do"] == "faults"]
    assert len(texts) > 10
    assert all(faults.load(text) for text in texts)


def test_scenarios_and_clients_have_names_of_their_own() -> None:
    assert len(set(scenarios.NAMES)) == len(scenarios.SCENARIOS)
    assert len({client.label for client in clients.CLIENTS}) == len(clients.CLIENTS)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["missed-deletes", "redirected"])
def test_kinform_stands_a_scenario(name: str) -> None:
    [scenario], [client] = scenarios.chosen([name]), clients.chosen(["kinform"])
    seen, versions = observe(scenario, client)
    assert judged(seen) == Verdict(Outcome.PASSED)
    assert notes(seen) == []
    assert seen.was_right == (name == "redirected")  # nothing is written meanwhile
    assert seen.fault_requests
    assert (seen.followed, seen.leaked) == (0, 0)
    assert seen.stop is not None
    assert seen.stop < GRACE
    assert {"kinform", "aiohttp"} <= versions.keys()


@pytest.mark.slow
def test_a_client_without_a_loop_around_it_dies_of_an_error_and_that_is_told() -> None:
    [scenario], [client] = scenarios.chosen(["error-500"]), clients.chosen(["lightkube"])
    seen, _ = observe(scenario, replace(client, arguments=("--journal",)))
    assert judged(seen).outcome is Outcome.DIED
