from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinform.apiserver.endpoints.status import StatusError
from kinform.apiserver.fieldmanager import apply as server_side_apply
from kinform.apiserver.fieldmanager import managed_fields
from tests.apiserver import recorded_apply

NOW = "2024-05-01T00:00:00Z"


def apply(
    config: dict[str, Any],
    live: dict[str, Any] | None = None,
    *,
    by: str = "a",
    force: bool = False,
    kind: str = "widgets",
) -> dict[str, Any]:
    found, schema = recorded_apply.kind_of(kind)
    stated = {"apiVersion": found.api_version, "kind": found.kind, "metadata": {"name": "x"}}
    return server_side_apply.apply(
        found, schema, stated | config, live=live, manager=by, force=force, now=NOW
    )


@pytest.mark.parametrize("name", recorded_apply.names(applying=True))
def test_an_apply_leaves_the_owners_that_the_server_leaves(name: str) -> None:
    live = None
    for step in recorded_apply.steps(name):
        answer = step["answer"]
        if live is not None and live["kind"] != recorded_apply.kind_of(step["kind"])[0].kind:
            live = None
        ours = recorded_apply.replay(step, live)
        if recorded_apply.is_refusal(answer):
            assert ours == answer
            continue
        assert not recorded_apply.is_refusal(ours)
        assert recorded_apply.owners(ours) == recorded_apply.owners(answer)
        if "applied" in step and "subresource" not in step and live is not None:
            assert _lacks(ours, answer) == []
        live = answer


_LATER = {"status", "generation", "resourceVersion", "tolerations", "externalTrafficPolicy"}
"""The changes that the server makes after the merge."""


def _lacks(ours: Any, theirs: Any, path: str = "") -> list[str]:
    """Return where an answer is not what we made; defaults may be added to it, empties go."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return [
            problem
            for name, value in ours.items()
            if name not in _LATER
            if not (value in ({}, [], None) and theirs.get(name) in ({}, [], None))
            for problem in _lacks(value, theirs.get(name), f"{path}.{name}")
        ]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = zip(ours, theirs, strict=True)
        return [problem for one, other in pairs for problem in _lacks(one, other, f"{path}[]")]
    return [] if ours == theirs else [path]


def test_arguments_stay_as_they_are() -> None:
    live = apply({"spec": {"size": 1, "keyed": [{"k": "a"}]}})
    config = {"spec": {"keyed": [{"k": "b"}]}}
    before = copy.deepcopy((live, config))
    apply(config, live)
    assert (live, config) == before


def test_what_others_own_stays_when_its_applier_leaves_it_out() -> None:
    live = apply({"spec": {"size": 1, "color": "red"}})
    live = apply({"spec": {"size": 1}}, live, by="b")
    assert apply({}, live)["spec"] == {"size": 1}


def test_a_plain_writer_keeps_what_an_applier_leaves_out() -> None:
    kind, schema = recorded_apply.kind_of("widgets")
    live = apply({"spec": {"size": 1}})
    changed = copy.deepcopy(live)
    changed["spec"]["size"] = 2
    managed_fields.on_update(kind, schema, changed, old=live, manager="u", now=NOW)
    live = apply({"spec": {"size": 2}}, changed)
    assert apply({}, live)["spec"] == {"size": 2}


def test_a_conflict_names_the_other_manager_and_the_field() -> None:
    live = apply({"spec": {"size": 1}})
    with pytest.raises(StatusError) as caught:
        apply({"spec": {"size": 2}}, live, by="b")
    assert caught.value.code == 409
    assert caught.value.message == ('Apply failed with 1 conflict: conflict with "a": .spec.size')
    assert caught.value.details == {
        "causes": [
            {
                "reason": "FieldManagerConflict",
                "message": 'conflict with "a"',
                "field": ".spec.size",
            }
        ]
    }


def test_force_takes_the_field_over() -> None:
    live = apply({"spec": {"size": 1}})
    taken = apply({"spec": {"size": 2}}, live, by="b", force=True)
    assert taken["spec"] == {"size": 2}
    assert [entry["manager"] for entry in recorded_apply.owners(taken)] == ["b"]


def test_a_configuration_may_not_say_who_owns_what() -> None:
    with pytest.raises(StatusError) as caught:
        apply({"metadata": {"name": "x", "managedFields": []}})
    assert (caught.value.code, caught.value.message) == (400, "metadata.managedFields must be nil")


def test_items_keep_the_order_of_the_configuration_and_their_place() -> None:
    live = apply({"spec": {"keyed": [{"k": name} for name in "abcd"]}})
    merged = apply({"spec": {"keyed": [{"k": name} for name in "xdyaz"]}}, live, by="b")
    recorded = recorded_apply.steps("apply-order")[1]["answer"]
    assert merged["spec"]["keyed"] == recorded["spec"]["keyed"]


letters = st.sampled_from("abc")
specs = st.fixed_dictionaries(
    {},
    optional={
        "size": st.integers(1, 2),
        "tags": st.lists(letters, unique=True, max_size=3),
        "plain": st.lists(letters, max_size=2),
        "labels": st.dictionaries(letters, letters, max_size=3),
        "whole": st.dictionaries(letters, letters, max_size=2),
        "keyed": st.lists(
            st.fixed_dictionaries({"k": letters}, optional={"v": letters}),
            unique_by=lambda item: item["k"],
            max_size=3,
        ),
        "deep": st.dictionaries(
            letters,
            st.fixed_dictionaries({}, optional={"x": st.integers(1, 2), "y": st.integers(1, 2)}),
            max_size=2,
        ),
    },
)


@settings(max_examples=30)
@given(specs, specs)
def test_to_apply_the_same_again_changes_nothing(
    mine: dict[str, Any], others: dict[str, Any]
) -> None:
    live = apply({"spec": others}, by="b")
    once = apply({"spec": mine}, live, force=True)
    again = apply({"spec": mine}, once)
    assert managed_fields.restore_times(again, once)


@settings(max_examples=30)
@given(specs, specs)
def test_an_apply_sets_all_that_it_states(mine: dict[str, Any], others: dict[str, Any]) -> None:
    live = apply({"spec": others}, by="b")
    merged = apply({"spec": mine}, live, force=True)["spec"]
    for name in ("size", "plain", "whole"):
        if name in mine:
            assert merged[name] == mine[name]
    assert set(mine.get("tags", ())) <= set(merged.get("tags") or ())
    assert mine.get("labels", {}).items() <= (merged.get("labels") or {}).items()


@settings(max_examples=30)
@given(specs)
def test_who_applies_nothing_any_more_owns_nothing(mine: dict[str, Any]) -> None:
    gone = apply({}, apply({"spec": mine}))
    assert "a" not in {entry["manager"] for entry in recorded_apply.owners(gone)}


@settings(max_examples=30)
@given(specs, specs)
def test_nothing_of_mine_is_left_of_what_only_i_applied(
    mine: dict[str, Any], others: dict[str, Any]
) -> None:
    live = apply({"spec": others}, by="b")
    try:
        both = apply({"spec": mine}, live)
    except StatusError:
        return
    left = apply({}, both).get("spec") or {}
    assert left.get("size") == others.get("size")
    assert set(left.get("tags") or ()) == set(others.get("tags", ()))
    assert (left.get("labels") or {}) == others.get("labels", {})
