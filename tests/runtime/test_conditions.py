"""Conditions as the API machinery keeps them."""

from __future__ import annotations

import asyncio
import copy
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform import Object
from kinform.clientset import apps_v1, core_v1, meta_v1
from kinform.errors import UsageError
from kinform.runtime.status_conditions import (
    Condition,
    Conditions,
    ConditionStatus,
    conditions_of,
    find_condition,
    is_condition_true,
    remove_condition,
    set_condition,
    with_condition,
)
from kinform.testing import in_virtual_time

EPOCH = "1970-01-01T00:00:00Z"
LATER = "1970-01-01T00:01:00Z"


def ready(**other: object) -> Condition:
    whole = {"type": "Ready", "status": "True", "reason": "Up", "message": ""}
    return {**whole, "lastTransitionTime": EPOCH, **other}


def stored(*conditions: Condition) -> Object:
    return Object.from_dict({"kind": "Site", "status": {"conditions": list(conditions)}})


def test_a_new_condition_has_every_field_the_server_asks_for() -> None:
    conditions: list[Condition] = []
    assert set_condition(conditions, "Ready", status=True, reason="Up", now=0)
    assert conditions == [ready()]


@pytest.mark.parametrize(
    ("status", "text"),
    [(True, "True"), (False, "False"), (None, "Unknown"), ("Unknown", "Unknown"), ("True", "True")],
)
def test_a_status_is_one_of_three(status: ConditionStatus, text: str) -> None:
    (condition,) = with_condition(None, "Ready", status=status, reason="Up", now=0)
    assert condition["status"] == text


@pytest.mark.parametrize(
    ("change", "moves"),
    [({"reason": "Down"}, False), ({"message": "so"}, False), ({"status": "False"}, True)],
)
def test_the_time_moves_only_with_the_status(change: dict[str, Any], moves: bool) -> None:
    conditions = [ready()]
    said: dict[str, Any] = {"status": "True", "reason": "Up", "message": "", **change}
    assert set_condition(conditions, "Ready", now=60, **said)
    assert conditions == [ready(**said, lastTransitionTime=LATER if moves else EPOCH)]


def test_saying_the_same_again_changes_nothing() -> None:
    conditions = [ready(observedGeneration=3)]
    before = copy.deepcopy(conditions)
    assert not set_condition(
        conditions, "Ready", status=True, reason="Up", observed_generation=3, now=60
    )
    assert conditions == before


def test_a_report_that_names_no_generation_has_none() -> None:
    conditions = [ready(observedGeneration=3)]
    assert set_condition(conditions, "Ready", status=True, reason="Up", now=60)
    assert conditions == [ready()]


def test_a_time_that_is_missing_is_filled_in() -> None:
    conditions = [ready(lastTransitionTime=None)]
    assert set_condition(conditions, "Ready", status=True, reason="Up", now=60)
    assert conditions == [ready(lastTransitionTime=LATER)]


def test_other_conditions_and_other_fields_stay_and_doubles_go() -> None:
    other: Condition = {"type": "Progressing", "status": "False"}
    twice = ready(status="False")
    conditions = [other, ready(lastProbeTime="x"), twice]
    set_condition(conditions, "Ready", status=True, reason="New", now=60)
    assert conditions == [other, ready(lastProbeTime="x", reason="New")]


def test_conditions_of_an_object_are_read_as_they_are_and_changed_in_a_copy() -> None:
    obj = stored(ready())
    for source in (obj, obj.at("status", "conditions"), [ready()], iter([ready()])):
        assert is_condition_true(source, "Ready")
    assert find_condition(obj, "Other") is None
    changed = with_condition(obj, "Ready", status=False, reason="Down", now=60)
    assert [each["status"] for each in changed] == ["False"]
    assert with_condition(obj, "Ready", status=True, reason="Up") == obj.at("status", "conditions")
    assert is_condition_true(obj, "Ready")
    assert conditions_of(obj) == [ready()]


def test_where_there_are_none_there_are_none() -> None:
    bare = Object.from_dict({"kind": "Site"})
    assert conditions_of(bare) == conditions_of(None) == conditions_of([]) == []
    assert not is_condition_true(bare, "Ready")


def test_a_condition_is_removed_by_its_type() -> None:
    conditions = [ready(), ready(type="Other")]
    assert remove_condition(conditions, "Ready")
    assert not remove_condition(conditions, "Ready")
    assert conditions == [ready(type="Other")]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"type_": "not ready"}, "type 'not ready' must be one word"),
        ({"type_": ""}, "type '' must be one word"),
        ({"type_": "Ready\n"}, "type 'Ready"),
        ({"type_": "Bad_Domain/Ready"}, "must be one word"),
        ({"type_": "a" * 317}, "type has 317 characters, 316 are allowed"),
        ({"reason": ""}, "reason '' must be one word"),
        ({"reason": "1st"}, "reason '1st' must be one word"),
        ({"reason": "Ends:"}, "reason 'Ends:'"),
        ({"reason": "a" * 1025}, "1024 are allowed"),
        ({"message": "a" * 32_769}, "message has 32769 characters"),
        ({"message": None}, "message must be text, got NoneType"),
        ({"status": "true"}, "status is 'true', expected True, False"),
        ({"status": 1}, "status is 1, expected True"),
        ({"observed_generation": -1}, "observed_generation is -1"),
        ({"observed_generation": True}, "observed_generation is True"),
        ({"now": datetime(2026, 1, 1)}, "has no time zone"),  # noqa: DTZ001 - the point
        ({"now": float("nan")}, "now is nan, expected seconds"),
    ],
)
def test_what_the_server_would_refuse_is_refused_and_nothing_changes(
    said: dict[str, Any], words: str
) -> None:
    conditions = [ready(type="Other")]
    whole: dict[str, Any] = {"type_": "Ready", "status": True, "reason": "Up", **said}
    with pytest.raises(UsageError, match=words):
        set_condition(conditions, whole.pop("type_"), **whole)
    assert conditions == [ready(type="Other")]


@pytest.mark.parametrize("source", ["Ready", {"type": "Ready"}, [1], 5], ids=repr)
def test_what_holds_no_conditions_is_refused(source: Any) -> None:
    with pytest.raises(UsageError, match="expected a list of conditions"):
        find_condition(source, "Ready")


def test_types_of_other_domains_are_fine() -> None:
    (made,) = with_condition(None, "example.com/All.Up-2", status=None, reason="A_b:C,d", now=0)
    assert made["type"] == "example.com/All.Up-2"


def test_times_are_written_in_utc_and_whole_seconds() -> None:
    moment = datetime(2026, 7, 1, 1, 2, 3, 999_999, timezone(timedelta(hours=2)))
    (made,) = with_condition(None, "Ready", status=True, reason="Up", now=moment)
    assert made["lastTransitionTime"] == "2026-06-30T23:02:03Z"


@in_virtual_time
async def test_the_time_is_that_of_the_clock() -> None:
    await asyncio.sleep(90)
    (made,) = with_condition(None, "Ready", status=True, reason="Up")
    assert made["lastTransitionTime"] == "2026-01-01T00:01:30Z"


STATUSES = st.sampled_from(["True", "False", "Unknown"])
TYPES = st.sampled_from(["A", "B"])


@given(st.lists(st.tuples(TYPES, STATUSES, st.sampled_from(["X", "Y"]))))
def test_after_any_history_each_type_stands_once_with_the_time_of_its_last_transition(
    history: list[tuple[str, Literal["True", "False", "Unknown"], str]],
) -> None:
    conditions: list[Condition] = []
    model: dict[str, tuple[str, str, str]] = {}
    for second, (type_, status, reason) in enumerate(history):
        known = model.get(type_)
        now = datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        since = known[2] if known and known[0] == status else now
        differs = set_condition(conditions, type_, status=status, reason=reason, now=second)
        assert differs is (known != (status, reason, since))
        model[type_] = (status, reason, since)
    found = {
        str(each["type"]): (each["status"], each["reason"], each["lastTransitionTime"])
        for each in conditions
    }
    assert found == model
    assert len(conditions) == len(model)


# --- models

STORED = meta_v1.Condition(
    type="Ready", status="True", reason="Up", message="", last_transition_time=EPOCH
)
SERVICE = core_v1.Service(status=core_v1.ServiceStatus(conditions=[STORED]))
OBJECT = {"metadata": {"name": "a"}, "status": {"conditions": [ready()]}}


@pytest.mark.parametrize(
    "source", [SERVICE, [STORED], OBJECT, {**OBJECT, "status": SERVICE.status}, stored(ready())]
)
def test_conditions_are_read_from_any_form_of_an_object(source: Conditions) -> None:
    assert conditions_of(source) == [ready()]
    assert find_condition(source, "Ready") == ready()
    assert is_condition_true(source, "Ready")
    assert with_condition(source, "Ready", status=True, reason="Up", now=60) == [ready()]
    (changed,) = with_condition(source, "Ready", status=False, reason="Up", now=60)
    assert changed == ready(status="False", lastTransitionTime=LATER)


@pytest.mark.parametrize(
    "source",
    [
        core_v1.Service(),
        apps_v1.Deployment(status=apps_v1.DeploymentStatus()),
        {"metadata": {}},
        {"metadata": {}, "status": {}},
    ],
)
def test_an_object_without_conditions_has_none(source: Conditions) -> None:
    assert conditions_of(source) == []
    assert not is_condition_true(source, "Ready")


def test_a_model_that_does_not_declare_conditions_does_not_hide_them() -> None:
    with pytest.raises(UsageError, match="ConfigMap does not declare status"):
        is_condition_true(core_v1.ConfigMap(), "Ready")
    with pytest.raises(UsageError, match="NamespaceSpec does not declare conditions"):
        is_condition_true({"metadata": {}, "status": core_v1.NamespaceSpec()}, "Ready")
