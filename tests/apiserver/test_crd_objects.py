"""Objects of custom kinds. What kube-apiserver 1.36 answered is in ``data_crd.json``."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.apiserver.apiextensions.schema import defaulting, object_validation, pruning
from kinform.apiserver.endpoints.status import StatusError
from kinform.apiserver.scheme.field_errors import FieldError
from kinform.apiserver.scheme.kind_registry import CustomVersion, Kind

RECORDED = json.loads(Path(__file__).with_name("data_crd.json").read_text(encoding="utf-8"))
SCALE = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".spec.selector",
}
CASES = [(group, case) for group in RECORDED["objects"] for case in group["cases"]]
SCHEMAS = {group["group"]: group["schema"] for group in RECORDED["objects"]}


def kind(name: str, *, scale: dict[str, str] | None = None) -> Kind:
    version = CustomVersion(definition="widgets.example.com", schema={}, scale=scale)
    return Kind(
        group="example.com", version="v1", kind=name, plural="widgets", singular="widget",
        namespaced=True, verbs=(), custom=version,
    )  # fmt: skip


def causes(errors: list[FieldError]) -> list[list[str]]:
    """Return errors as causes, sorted: the server walks maps in no order."""
    return sorted([str(error.problem), error.field, error.text] for error in errors)


def written(group: dict[str, Any], obj: dict[str, Any]) -> tuple[object, list[str]]:
    """Take an object through all stages; return what is wrong with it, and what was dropped."""
    schema = group["schema"]
    of = kind(obj["kind"], scale=SCALE if group["group"] == "more" else None)
    try:
        pruning.coerce(of, schema, obj)
    except StatusError as exc:
        return exc.message, []
    dropped = pruning.prune(schema, obj)
    defaulting.default(schema, obj)
    return causes(object_validation.validate(of, schema, obj)), dropped


@pytest.mark.parametrize(
    ("group", "case"),
    CASES,
    ids=[f"{group['group']}: {json.dumps(case['in'])[:120]}" for group, case in CASES],
)
def test_an_object_is_written_as_by_the_server(group: dict[str, Any], case: dict[str, Any]) -> None:
    obj = copy.deepcopy(case["in"])
    errors, dropped = written(group, obj)
    expected = case.get("error", [])
    assert errors == (expected if isinstance(expected, str) else sorted(expected))
    if "out" in case:
        identity = ("apiVersion", "kind", "metadata")
        assert {name: obj[name] for name in obj if name not in identity} == case["out"]
        assert dropped == case.get("dropped", [])


@pytest.mark.parametrize("case", RECORDED["ratcheting"]["cases"], ids=lambda case: case["name"])
def test_what_was_wrong_and_has_not_changed_is_tolerated(case: dict[str, Any]) -> None:
    schema = RECORDED["ratcheting"]["schema"]
    new = {"metadata": {"name": "r", "generation": 2}, "spec": case["new"]}
    old = {"metadata": {"name": "r", "generation": 1}, "spec": case["old"]}
    errors = object_validation.validate_update(kind("Rat"), schema, new, old)
    assert causes(errors) == sorted(case["causes"])


def test_true_is_not_one() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer", "enum": [1]}}}
    errors = object_validation.validate(kind("Widget"), schema, {"a": True})
    assert [error.field for error in errors] == ["a", "a"]
    assert object_validation.validate_update(kind("Widget"), schema, {"a": True}, {"a": 1})


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "o", "l", "x", "p", "od", "lo"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(group=st.sampled_from(sorted(SCHEMAS)), spec=VALUES)
def test_to_prune_and_to_default_again_changes_nothing(group: str, spec: object) -> None:
    schema = SCHEMAS[group]
    obj: dict[str, Any] = {"spec": spec}
    pruning.prune(schema, obj)
    defaulting.default(schema, obj)
    again = copy.deepcopy(obj)
    assert pruning.prune(schema, again) == []
    defaulting.default(schema, again)
    assert again == obj


@given(group=st.sampled_from(sorted(SCHEMAS)), spec=VALUES)
def test_an_object_that_does_not_change_is_never_refused(group: str, spec: object) -> None:
    schema = SCHEMAS[group]
    obj: dict[str, Any] = {"metadata": {"name": "x"}, "spec": spec}
    errors = object_validation.validate_update(kind("Widget"), schema, obj, copy.deepcopy(obj))
    embedded = [error for error in errors if ".em" in error.field]
    assert errors == embedded


@given(spec=VALUES)
def test_validation_leaves_the_object_alone(spec: object) -> None:
    obj: dict[str, Any] = {"spec": spec}
    before = copy.deepcopy(obj)
    for schema in SCHEMAS.values():
        object_validation.validate(kind("Widget"), schema, obj)
    assert obj == before
