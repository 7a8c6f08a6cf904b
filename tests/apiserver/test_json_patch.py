"""JSON patches, as the server applies them: what is lenient was asked of a real one."""

from __future__ import annotations

import contextlib
import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinform.apiserver.endpoints.status import StatusError
from kinform.apiserver.patch import json_patch
from kinform.apiserver.serializer.json_values import Json

REJECTED = "the server rejected our request due to an error in our request"
TARGET: Json = {
    "data": {"a": "1", "b": "2"},
    "metadata": {"labels": {"a/b": "1", "x~y": "2"}},
    "items": [{"name": "c"}, {"name": "d"}],
    "number": 30,
}


def op(name: str, path: str, **more: object) -> Json:
    return {"op": name, "path": path, **more}


@pytest.mark.parametrize(
    ("operation", "at", "expected"),
    [
        (op("add", "/data/c", value="3"), "data", {"a": "1", "b": "2", "c": "3"}),
        (op("add", "/data/c"), "data", {"a": "1", "b": "2", "c": None}),
        (op("replace", "/data/zz", value="3"), "data", {"a": "1", "b": "2", "zz": "3"}),
        (op("remove", "/data/a"), "data", {"b": "2"}),
        (op("move", "/data/c", **{"from": "/data/a"}), "data", {"b": "2", "c": "1"}),
        (op("move", "/data/a", **{"from": "/data/a"}), "data", {"b": "2", "a": "1"}),
        (op("copy", "/data/c", **{"from": "/data/a"}), "data", {"a": "1", "b": "2", "c": "1"}),
        (op("copy", "/data/c", **{"from": "/data/q"}), "data", {"a": "1", "b": "2", "c": None}),
        (op("add", "/items/-", value=1), "items", [{"name": "c"}, {"name": "d"}, 1]),
        (op("add", "/items/0", value=1), "items", [1, {"name": "c"}, {"name": "d"}]),
        (op("add", "/items/-1", value=1), "items", [{"name": "c"}, {"name": "d"}, 1]),
        (op("add", "/items/+1", value=1), "items", [{"name": "c"}, 1, {"name": "d"}]),
        (op("remove", "/items/-1"), "items", [{"name": "c"}]),
        (op("replace", "/items/01/name", value="e"), "items", [{"name": "c"}, {"name": "e"}]),
        (op("remove", "/metadata/labels/a~1b"), "metadata", {"labels": {"x~y": "2"}}),
        (op("remove", "/metadata/labels/x~0y"), "metadata", {"labels": {"a/b": "1"}}),
        (op("add", "data/c", value=1), "c", 1),
        (op("add", "/", value=1), "", 1),
        (op("test", "/data/a", value="1"), "number", 30),
        (op("test", "/data/zz", value=None), "number", 30),
        (op("test", "/data/zz"), "number", 30),
        (op("test", "/items/-2/name", value="c"), "number", 30),
        (op("replace", "", value={"new": True}), "new", True),
    ],
)
def test_an_operation_changes_what_it_names(operation: Json, at: str, expected: object) -> None:
    assert json_patch.apply(TARGET, [operation])[at] == expected


@pytest.mark.parametrize(
    "operation",
    [
        {},
        op("foo", "/a"),
        op("Add", "/data/c", value="x"),
        {"op": "add"},
        op("add", "", value={}),
        op("remove", ""),
        op("test", "", value={}),
        op("test", "/data/a", value="2"),
        op("test", "/data/a"),
        op("test", "/number", value=30.0),
        op("test", "/q/z", value=None),
        op("test", "/data/a/x", value=None),
        op("remove", "/data/zz"),
        op("replace", "/q/zz", value=1),
        op("add", "/q/zz", value=1),
        op("add", "/data/a/b", value=1),
        op("move", "/data/zz"),
        op("move", "/data/zz", **{"from": "/data/q"}),
        op("move", "/data/x", **{"from": "/data"}),
        op("copy", "/data/zz", **{"from": "/q/q"}),
        op("add", "/items/3", value=1),
        op("add", "/items/x", value=1),
        op("remove", "/items/-"),
        op("remove", "/items/2"),
        op("replace", "/items/-", value=1),
        op("test", "/items/-3/name", value="c"),
        op("add", "/items/99999999999999999999", value=1),
    ],
    ids=str,
)
def test_what_cannot_be_done_is_refused_without_a_reason(operation: Json) -> None:
    with pytest.raises(StatusError) as caught:
        json_patch.apply(TARGET, [operation])
    assert (caught.value.code, caught.value.reason, caught.value.message) == (
        422,
        "Invalid",
        REJECTED,
    )


def test_a_document_that_becomes_a_list_is_refused() -> None:
    with pytest.raises(StatusError) as caught:
        json_patch.apply(TARGET, [op("replace", "", value=[])])
    assert caught.value.message.startswith(
        ' "" is invalid: patch: Invalid value: "[]": couldn\'t get version/kind; json parse error'
    )


operations = st.builds(
    lambda name, path, value, source: op(name, path, value=value, **{"from": source}),
    st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]),
    st.sampled_from(["/data/a", "/data/c", "/items/0", "/items/-", "/items/1/name", "/new"]),
    st.sampled_from([None, 1, "x", {"k": []}]),
    st.sampled_from(["/data/a", "/data", "/items/0", "/items"]),
)


@settings(max_examples=40)
@given(st.lists(operations, max_size=6))
def test_neither_target_nor_patch_is_changed(patch: list[Json]) -> None:
    before = copy.deepcopy((TARGET, patch))
    with contextlib.suppress(StatusError):
        json_patch.apply(TARGET, patch)
    assert (TARGET, patch) == before
