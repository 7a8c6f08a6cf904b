from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinform.apiserver.fieldmanager import field_sets
from kinform.apiserver.fieldmanager.field_sets import FieldSet
from kinform.apiserver.scheme import schemas

Paths = frozenset[tuple[str, ...]]

elements = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"'])
path_sets = st.frozensets(st.lists(elements, min_size=1, max_size=3).map(tuple), max_size=8)


def built(paths: Paths) -> FieldSet:
    """Return the set of these paths, made by nothing but its definition."""
    root: FieldSet = {}
    for path in paths:
        node = root
        for element in path:
            node = node.setdefault(element, {})
        node["."] = {}
    return _plain(root)


def _plain(node: FieldSet) -> FieldSet:
    if set(node) == {"."}:
        return {}
    return {name: {} if name == "." else _plain(below) for name, below in node.items()}


def pods() -> field_sets.Shape:
    return field_sets.shape_of(schemas.builtin("io.k8s.api.core.v1.Pod"), is_typed=True)


def anything() -> field_sets.Shape:
    return field_sets.shape_of(schemas.custom({}), is_typed=False)


@settings(max_examples=40)
@given(path_sets, path_sets)
def test_a_union_has_what_one_of_the_sets_has(one: Paths, other: Paths) -> None:
    assert field_sets.union(built(one), built(other)) == built(one | other)


@settings(max_examples=40)
@given(path_sets, path_sets)
def test_an_intersection_has_what_both_sets_have(one: Paths, other: Paths) -> None:
    assert field_sets.intersection(built(one), built(other)) == built(one & other)


@settings(max_examples=40)
@given(path_sets, path_sets)
def test_a_difference_has_what_only_the_first_set_has(one: Paths, other: Paths) -> None:
    assert field_sets.difference(built(one), built(other)) == built(one - other)


@settings(max_examples=40)
@given(path_sets, path_sets)
def test_a_set_without_another_has_nothing_below_it_either(one: Paths, other: Paths) -> None:
    left = {path for path in one if not any(path[: len(gone)] == gone for gone in other)}
    assert field_sets.without(built(one), built(other)) == built(frozenset(left))


@settings(max_examples=40)
@given(path_sets)
def test_every_path_of_a_set_is_printed_once(one: Paths) -> None:
    printed = list(field_sets.paths(built(one)))
    assert len(printed) == len(set(printed)) == len(one)


@settings(max_examples=40)
@given(path_sets)
def test_a_set_is_valid(one: Paths) -> None:
    assert field_sets.is_valid(built(one))


@pytest.mark.parametrize(
    "broken",
    [
        *(None, [], {"spec": {}}, {"f:a": 1}, {"k:{": {}}, {"x:a": {}}),
        *({"k:1": {}}, {'i:"x"': {}}, {"f:a": {".": 1}}, {"f:a": {".": {"f:b": {}}}}),
    ],
)
def test_an_invalid_field_set_is_refused(broken: object) -> None:
    assert not field_sets.is_valid(broken)


def test_paths_are_printed_as_the_server_prints_them() -> None:
    one: FieldSet = {
        "f:metadata": {"f:labels": {"f:a.b/c": {}}, "f:finalizers": {'v:"x"': {}}},
        "f:spec": {'k:{"containerPort":80,"protocol":"TCP"}': {"f:name": {}}, "i:2": {}},
    }
    assert list(field_sets.paths(one)) == [
        '.metadata.finalizers[="x"]',
        ".metadata.labels.a.b/c",
        ".spec[2]",
        '.spec[containerPort=80,protocol="TCP"].name',
    ]


def test_a_configuration_states_items_and_leaves_but_no_structures() -> None:
    container = {
        "name": "a",
        "args": ["x", "y"],
        "ports": [{"containerPort": 80}],
        "resources": {},
        "env": [],
    }
    stated = field_sets.applied(pods(), {"spec": {"containers": [container]}})
    assert stated == {
        "f:spec": {
            "f:containers": {
                'k:{"name":"a"}': {
                    ".": {},
                    "f:name": {},
                    "f:args": {},
                    "f:ports": {
                        'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}
                    },
                    "f:resources": {},
                }
            }
        }
    }


def test_without_a_schema_lists_are_whole_and_objects_are_not() -> None:
    stated = field_sets.applied(anything(), {"spec": {"list": [{"a": 1}], "map": {"b": {}}}})
    assert stated == {
        "f:spec": {".": {}, "f:list": {}, "f:map": {".": {}, "f:b": {}}},
    }


def test_twice_the_same_key_is_one_field_without_fields() -> None:
    env = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
    new = {"spec": {"containers": [{"name": "a", "env": env}]}}
    added = field_sets.changes(pods(), {}, new).added
    assert added["f:spec"]["f:containers"]['k:{"name":"a"}']["f:env"] == {
        ".": {},
        'k:{"name":"A"}': {},
    }


def test_a_structure_that_is_implied_is_never_added_nor_removed() -> None:
    without = {"spec": {"containers": [{"name": "a"}]}}
    limits = {"limits": {"cpu": "1"}}
    having = {"spec": {"containers": [{"name": "a", "resources": limits}]}}
    forth = field_sets.changes(pods(), without, having)
    back = field_sets.changes(pods(), having, without)
    branch: FieldSet = {
        "f:spec": {
            "f:containers": {
                'k:{"name":"a"}': {"f:resources": {"f:limits": {".": {}, "f:cpu": {}}}}
            }
        }
    }
    assert forth == (branch, {}, {})
    assert back == ({}, {}, branch)


json_values: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([None, 1, "x", True]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=6,
)
objects = st.dictionaries(st.sampled_from("abc"), json_values, max_size=3)


@settings(max_examples=40)
@given(objects)
def test_an_object_does_not_differ_from_itself(one: dict[str, Any]) -> None:
    assert field_sets.changes(anything(), one, one) == ({}, {}, {})


@settings(max_examples=40)
@given(objects, objects)
def test_what_is_added_one_way_is_removed_the_other_way(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    forth = field_sets.changes(anything(), one, other)
    back = field_sets.changes(anything(), other, one)
    assert (forth.added, forth.modified, forth.removed) == (
        back.removed,
        back.modified,
        back.added,
    )
