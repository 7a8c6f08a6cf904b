"""Fault matching, fault plans, and the file format: without a server."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinform.apiserver import faults
from kinform.apiserver.faults import Fault, FaultPlan
from kinform.apiserver.faults.kinds import EFFECTS, Match, Subject
from kinform.errors import UsageError

PODS = Subject("list", "pods", "", "default")
WATCH = Subject("watch", "pods", "", "default")
DEPLOYMENTS = Subject("list", "deployments", "apps", "")
DISCOVERY = Subject()


@pytest.mark.parametrize(
    "match, hit, spared",
    [
        (Match(), [PODS, WATCH, DEPLOYMENTS, DISCOVERY], []),
        (Match(verb="list"), [PODS, DEPLOYMENTS], [WATCH, DISCOVERY]),
        (Match(resource="pods"), [PODS, WATCH], [DEPLOYMENTS, DISCOVERY]),
        (Match(resource="deployments.apps"), [DEPLOYMENTS], [PODS, DISCOVERY]),
        (Match(resource="deployments"), [DEPLOYMENTS], [PODS]),
        (Match(resource="deployments.extensions"), [], [DEPLOYMENTS]),
        (Match(namespace="default"), [PODS, WATCH], [DEPLOYMENTS, DISCOVERY]),
        (Match(namespace="other"), [], [PODS, DEPLOYMENTS]),
    ],
    ids=repr,
)
def test_a_fault_covers_what_fits_all_it_says(
    match: Match, hit: list[Subject], spared: list[Subject]
) -> None:
    assert all(match.covers(subject) for subject in hit)
    assert not any(match.covers(subject) for subject in spared)


@pytest.mark.parametrize(
    "fault, struck",
    [
        (faults.reset(), [1, 2, 3, 4, 5]),
        (faults.reset(nth=2), [2]),
        (faults.reset(times=2), [1, 2]),
        (faults.reset(nth=2, times=3), [2, 3, 4]),
        (faults.reset(nth=3, times=None), [3, 4, 5]),
        (faults.compact(), [1]),
        (faults.restore(by=1, times=2), [1, 2]),
    ],
    ids=repr,
)
def test_nth_and_times_count_the_requests_that_are_covered(fault: Fault, struck: list[int]) -> None:
    fault = Fault(fault.effect, fault.match)
    hits = [number for number in range(1, 6) if fault.strikes(PODS)]
    assert hits == struck
    assert (fault.seen, fault.hits) == (5, len(struck))


def test_requests_that_are_not_covered_are_not_counted() -> None:
    fault = faults.reset(verb="watch", nth=2)
    assert [fault.strikes(subject) for subject in (WATCH, PODS, PODS, WATCH)] == [
        False,
        False,
        False,
        True,
    ]


def test_what_counts_events_is_about_watches() -> None:
    assert faults.close(after_events=1).match.verb == "watch"
    assert faults.error_event().match.verb == "watch"
    assert faults.close(after_bytes=1).match.verb is None


def test_a_plan_tells_all_that_hit_in_the_order_they_were_added() -> None:
    plan = FaultPlan()
    first = plan.add(faults.latency(1))
    plan.add(faults.reset(verb="watch"))
    last = plan.add(faults.gzip())
    assert plan.struck(PODS) == [first, last]
    plan.remove(first)
    assert plan.struck(PODS) == [last]
    plan.clear()
    assert len(plan) == 0
    assert plan.struck(PODS) == []


def test_a_plan_holds_a_fault_once() -> None:
    plan = FaultPlan()
    fault = plan.add(faults.gzip())
    with pytest.raises(UsageError, match="in the plan already"):
        plan.add(fault)
    plan.remove(fault)
    with pytest.raises(UsageError, match="not in the plan"):
        plan.remove(fault)


def test_what_ends_with_a_fault_ends_when_it_is_removed() -> None:
    plan, ended = FaultPlan(), list[str]()
    fault = plan.add(faults.gzip())
    plan.when_removed(fault, lambda: ended.append("first"))
    assert ended == []
    plan.remove(fault)
    plan.when_removed(fault, lambda: ended.append("second"))
    assert ended == ["first", "second"]


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda: faults.close(nth=0), "close: nth: must be at least 1, got 0"),
        (lambda: faults.close(after_events=-1), "close: after_events: must be at least 0, got -1"),
        (lambda: faults.latency(1, jitter=-1), "latency: jitter: must be at least 0, got -1"),
        (lambda: faults.status(200), "status: code: must be 400 to 599, got 200"),
        (faults.restore, "restore: give either `revision` or `by`"),
        (lambda: faults.restore(by=1, revision=2), "restore: give either `revision` or `by`"),
        (faults.stale, "stale: give either `revisions` or `seconds`"),
        (
            lambda: faults.reset(after_events=1, after_bytes=1),
            "reset: give `after_events` or `after_bytes`, not both",
        ),
    ],
)
def test_figures_that_make_no_sense_are_refused(make, text: str) -> None:
    with pytest.raises(UsageError) as raised:
        make()
    assert str(raised.value) == text


# --- files

EXAMPLE = """
- close: {verb: watch, resource: pods, after_events: 3, nth: 2}
- status:
    verb: list
    code: 429
    retry_after: 2
    times: 3
- gzip:
- no_watch_list
- latency: {seconds: 1.5, nth: 1, times: null}
"""


def test_a_file_says_what_the_functions_say() -> None:
    expected = [
        faults.close_watch(resource="pods", after_events=3, nth=2),
        faults.status(429, verb="list", retry_after=2, times=3),
        faults.gzip(),
        faults.no_watch_list(),
        faults.latency(1.5, nth=1, times=None),
    ]
    assert repr(faults.load(EXAMPLE)) == repr(expected)
    assert faults.load("") == []
    assert faults.load("[]") == []


def test_all_faults_can_be_in_a_file() -> None:
    made = {
        "refuse", "reset", "close", "half_open", "stall", "truncate_frame", "corrupt", "status",
        "error_event", "end_watch", "drip", "duplicate_events", "older_events", "stray_bookmarks",
        "no_bookmarks", "no_watch_list", "gzip", "latency", "stale", "stale_cache", "compact",
        "restore", "clock_offset",
    }  # fmt: skip
    assert set(EFFECTS) == made
    assert made < set(faults.__all__)


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("a: [", "f.yaml: this is not YAML: line 1"),
        ("close: {}", "f.yaml: expected a list of faults"),
        ("- [close]", "f.yaml: entry 1: expected one fault with its options"),
        ("- gzip:\n- {close: , reset: }", "f.yaml: entry 2: expected one fault with its options"),
        ("- clsoe: {}", "f.yaml: entry 1: unknown fault 'clsoe'; did you mean 'close'?"),
        ("- zzz: {}", "f.yaml: entry 1: unknown fault 'zzz'; expected one of clock_offset, close,"),
        ("- close: 3", "f.yaml: entry 1 (close): expected options, such as `{nth: 2}`, got 3"),
        (
            "- gzip:\n- drip: {sice: 3}",
            "f.yaml: entry 2 (drip): sice: unknown option; did you mean 'size'?",
        ),
        (
            "- close: {after_events: three}",
            "f.yaml: entry 1 (close): after_events: expected `int | null`, got `str`",
        ),
        (
            "- close: {nth: true}",
            "f.yaml: entry 1 (close): nth: expected `int | null`, got `bool`",
        ),
        (
            "- close: {verb: lst}",
            "f.yaml: entry 1 (close): verb: there is no 'lst', did you mean 'list'?",
        ),
        ("- close: {nth: 0}", "f.yaml: entry 1 (close): nth: must be at least 1, got 0"),
        ("- status: {}", "f.yaml: entry 1 (status): missing required field `code`"),
        ("- restore: {}", "f.yaml: entry 1 (restore): give either `revision` or `by`"),
    ],
)
def test_errors_name_the_file_the_entry_and_the_key(text: str, complaint: str) -> None:
    with pytest.raises(UsageError) as raised:
        faults.load(text, source="f.yaml")
    assert str(raised.value).startswith(complaint)


@given(seed=st.integers())
@settings(max_examples=10)
def test_a_seed_makes_a_plan_and_a_file_keeps_it(seed: int) -> None:
    plan = faults.random_plan(seed=seed, size=6, resource="pods")
    assert len(plan) == 6
    assert str(plan) == str(faults.random_plan(seed=seed, size=6, resource="pods"))
    assert faults.dump(faults.load(str(plan))) == str(plan)
    assert repr(faults.load(str(plan))) == repr(list(plan))
    assert all(fault.match.count is not None for fault in plan)


def test_other_seeds_make_other_plans() -> None:
    assert len({str(faults.random_plan(seed=seed)) for seed in range(20)}) == 20
