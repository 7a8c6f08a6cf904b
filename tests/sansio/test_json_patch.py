"""diff and rebase against an independent patch applier."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.errors import UsageError
from kinform.sansio.json_diff import JsonValue, diff, rebase

scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab/~", max_size=3)
keys = st.text("ab/~", max_size=2)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


def apply(document, operations):
    """RFC 6902 add, remove and replace, written from the RFC."""
    document = copy.deepcopy(document)
    for operation in operations:
        if operation["path"] == "":
            document = operation["value"]
            continue
        *parents, last = [
            part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]
        ]
        target = document
        for part in parents:
            target = target[int(part)] if isinstance(target, list) else target[part]
        key = int(last) if isinstance(target, list) else last
        match operation["op"]:
            case "remove":
                del target[key]
            case "replace":
                _ = target[key]  # must exist
                target[key] = operation["value"]
            case _:
                target[key] = operation["value"]
    return document


def exact(value) -> str:
    """Tell True from 1, and ignore the order of keys."""
    if isinstance(value, dict):
        return repr(sorted((key, exact(one)) for key, one in value.items()))
    return repr([exact(one) for one in value]) if isinstance(value, list) else repr(value)


@given(values, values)
def test_applying_the_difference_gives_the_other(before: JsonValue, after: JsonValue) -> None:
    assert exact(apply(before, diff(before, after))) == exact(after)


@given(values)
def test_equal_documents_have_no_difference(value: JsonValue) -> None:
    assert diff(value, copy.deepcopy(value)) == []


@pytest.mark.parametrize(("before", "after"), [(True, 1), (0, False), ({"a": 1}, {"a": True})])
def test_true_and_one_are_different_values(before: JsonValue, after: JsonValue) -> None:
    assert diff(before, after)


def test_a_field_the_part_does_not_show_survives() -> None:
    whole: JsonValue = {"spec": {"replicas": 1, "paused": True}, "status": {"x": 1}}
    assert rebase(whole, {"spec": {"replicas": 1}}, {"spec": {"replicas": 3}}) == {
        "spec": {"replicas": 3, "paused": True},
        "status": {"x": 1},
    }


def test_a_default_that_was_never_on_the_wire_is_not_written() -> None:
    shown: JsonValue = {"spec": {"replicas": 1}}
    assert rebase({"spec": {}}, shown, shown) == {"spec": {}}


def test_changing_such_a_default_writes_it() -> None:
    assert rebase({"spec": {}}, {"spec": {"replicas": 1}}, {"spec": {"replicas": 2}}) == {
        "spec": {"replicas": 2}
    }


def test_a_removed_field_is_removed() -> None:
    assert rebase({"a": 1, "b": 2}, {"a": 1}, {}) == {"b": 2}


CONTAINERS: list[dict[str, JsonValue]] = [
    {"name": "web", "image": "nginx:1", "ports": [80]},
    {"name": "log", "image": "log:1", "env": ["A"]},
]
SHOWN = [{"name": "web", "image": "nginx:1"}, {"name": "log", "image": "log:1"}]


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        pytest.param(
            [{"name": "web", "image": "nginx:2"}, SHOWN[1]],
            [{**CONTAINERS[0], "image": "nginx:2"}, CONTAINERS[1]],
            id="one changed",
        ),
        pytest.param([SHOWN[1]], [CONTAINERS[1]], id="one removed"),
        pytest.param([SHOWN[1], SHOWN[0]], [CONTAINERS[1], CONTAINERS[0]], id="order changed"),
        pytest.param(
            [{"name": "new", "image": "n"}, *SHOWN],
            [{"name": "new", "image": "n"}, *CONTAINERS],
            id="one put in front",
        ),
    ],
)
def test_items_of_a_list_keep_what_the_part_does_not_show(
    after: JsonValue, expected: JsonValue
) -> None:
    assert rebase(CONTAINERS, SHOWN, after) == expected  # type: ignore[arg-type]


def test_nameless_items_are_known_by_their_place() -> None:
    whole: JsonValue = [{"ip": "a", "host": "x"}, {"ip": "b", "host": "y"}]
    assert rebase(whole, [{"ip": "a"}, {"ip": "b"}], [{"ip": "a"}, {"ip": "c"}]) == [
        {"ip": "a", "host": "x"},
        {"ip": "c", "host": "y"},
    ]


def test_scalars_of_another_number_than_shown_are_taken_as_they_are() -> None:
    assert rebase([1, 2, 3], [1], [5]) == [5]


def test_objects_of_another_number_than_shown_are_not_guessed_at() -> None:
    with pytest.raises(UsageError, match="/0/a, which would be lost"):
        rebase([{"a": 1}, {"a": 2}], [{"a": 1}], [{"a": 3}])


@given(values, values)
def test_a_part_that_shows_everything_is_the_whole(before: JsonValue, after: JsonValue) -> None:
    assert exact(rebase(before, before, after)) == exact(after)
