"""The gate's own logic: what is better, what is worse, what the baseline becomes."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import msgspec
import pytest

from bench.gate import baseline, counting
from bench.gate.baseline import Baseline, Row, compare

KNOWN = Baseline(
    versions={
        "3.11": {"get": {"calls": 2.0, "cpu": 5.0}, "list": {"calls": 40.0, "cpu": 2.0}},
        "3.12": {"get": {"calls": 1.0, "cpu": 4.0}, "list": {"calls": 39.0, "cpu": 3.0}},
    }
)


@pytest.mark.parametrize(
    "measure, before, now, verdict",
    [
        ("instructions", 1000.0, 1000.0, "same"),
        ("instructions", 1000.0, 1020.0, "same"),
        ("instructions", 1000.0, 1021.0, "WORSE"),
        ("instructions", 1000.0, 979.0, "better"),
        ("passes", 3.0, 4.0, "WORSE"),
        ("passes", 3.0, 2.0, "better"),
        ("cpu", 4.0, 5.3, "same"),
        ("cpu", 4.0, 5.5, "WORSE"),
        ("cpu", 4.0, 2.5, "better"),
        ("tracked", 0.0, 0.04, "same"),
        ("tracked", 0.0, 1.0, "WORSE"),
        ("tracked", 0.04, 0.0, "same"),
        ("calls", None, 1.0, "UNKNOWN"),
        ("calls", 1.0, None, "GONE"),
    ],
)
def test_verdict(measure: str, before: float | None, now: float | None, verdict: str) -> None:
    assert verdict == Row("a path", measure, before, now).verdict


@pytest.mark.parametrize(
    "now, is_failure", [(40.0, False), (30.0, False), (50.0, True), (None, True)]
)
def test_only_what_is_worse_or_missing_closes_the_gate(now: float | None, is_failure: bool) -> None:
    assert is_failure == Row("list", "calls", 40.0, now).is_failure


def test_paths_and_measures_of_either_side_are_compared() -> None:
    rows = compare({"old": {"calls": 1.0}}, {"new": {"calls": 2.0, "cpu": 3.0}})

    assert [("new", "calls"), ("new", "cpu"), ("old", "calls")] == [row[:2] for row in rows]


def test_a_row_shows_the_change() -> None:
    row = str(Row("list", "instructions", 1000.0, 1100.0))

    assert ["list", "instructions", "1,000.00", "1,100.00", "+10.0%", "WORSE"] == row.split()


def test_a_known_version_expects_counts_and_ratios() -> None:
    assert {"calls": 2.0, "cpu": 5.0} == KNOWN.expected("3.11")["get"]


def test_an_unknown_version_expects_the_greatest_ratios_alone() -> None:
    assert {"get": {"cpu": 5.0}, "list": {"cpu": 3.0}} == KNOWN.expected("3.99")


def test_update_replaces_figures_of_its_version_only() -> None:
    now = {"get": {"calls": 2.01, "cpu": 5.0}}
    updated = KNOWN.updated("3.13", now)

    assert ["3.11", "3.12", "3.13"] == list(updated.versions)
    assert KNOWN.versions["3.11"] == updated.versions["3.11"]
    assert now == updated.versions["3.13"]


def test_update_lets_counts_follow_and_ratios_only_if_they_are_not_the_same() -> None:
    now = {
        "get": {"calls": 2.01, "cpu": 5.9},
        "list": {"calls": 41.0, "cpu": 4.0},
        "new": {"cpu": 7.0},
    }
    expected = now | {"get": {"calls": 2.01, "cpu": 5.0}}

    assert expected == KNOWN.updated("3.11", now).versions["3.11"]


def test_baseline_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    assert Baseline(versions={}) == Baseline.load(file)

    KNOWN.save(file)

    assert KNOWN == Baseline.load(file)


def test_baseline_in_the_repository_has_a_tolerance_for_every_measure() -> None:
    known = Baseline.load(Path(baseline.__file__).with_name("baseline.json"))
    paths = [figures for version in known.versions.values() for figures in version.values()]

    assert paths
    assert {measure for figures in paths for measure in figures} <= baseline.TOLERANCES.keys()


def test_instructions_are_counted_the_same_each_time_and_grow_with_the_work() -> None:
    def job(rounds: int) -> int:
        return sum(number for number in range(rounds))

    few, again, many = (counting.instructions(partial(job, n)) for n in (100, 100, 200))

    assert few == again
    assert 0 < few < many < 2 * few


def test_calls_are_counted_and_those_on_bytes_told_apart() -> None:
    decode = msgspec.json.Decoder().decode

    def job() -> None:
        for _ in range(10):
            decode(b"{}")
            msgspec.json.decode(b"{}")
            "text".upper()

    called, passes = counting.calls(job)

    assert 20 == passes
    assert 30 <= called < 35


def test_what_the_collector_walks_through_is_counted() -> None:
    assert 100 <= counting.tracked(lambda: [[number] for number in range(100)]) < 110
    assert 10 > counting.tracked(lambda: [str(number) for number in range(100)])
