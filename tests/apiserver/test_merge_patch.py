"""Merge patches (RFC 7386)."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinform.apiserver.patch import merge_patch
from kinform.apiserver.serializer.json_values import Json

names = st.sampled_from(["a", "b", "c"])
leaves = st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "x"])
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=3)
)
objects = st.dictionaries(names, values, max_size=3)


def without_nulls(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: without_nulls(entry) for key, entry in value.items() if entry is not None}


def difference(old: Json, new: Json) -> Json:
    patch: Json = {name: None for name in old if name not in new}
    for name, value in new.items():
        before = old.get(name)
        if isinstance(before, dict) and isinstance(value, dict):
            patch[name] = difference(before, value)
        elif name not in old or before != value or type(before) is not type(value):
            patch[name] = value
    return patch


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"a": "text"}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}),
    ],
)
def test_the_examples_of_the_standard_hold(target: Json, patch: Json, expected: Json) -> None:
    assert merge_patch.apply(target, patch) == expected


@settings(max_examples=40)
@given(objects, objects)
def test_the_difference_of_two_objects_makes_one_of_the_other(old: Json, new: Json) -> None:
    old, new = without_nulls(old), without_nulls(new)
    assert merge_patch.apply(old, difference(old, new)) == new


@settings(max_examples=40)
@given(objects, objects)
def test_neither_target_nor_patch_is_changed(target: Json, patch: Json) -> None:
    before = copy.deepcopy((target, patch))
    merge_patch.apply(target, patch)
    assert (target, patch) == before


@settings(max_examples=40)
@given(objects, objects)
def test_to_apply_a_patch_twice_is_to_apply_it_once(target: Json, patch: Json) -> None:
    once = merge_patch.apply(target, patch)
    assert merge_patch.apply(once, patch) == once
