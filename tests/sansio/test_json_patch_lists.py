"""What a model does not declare of a list's items stays with its item, or the change is refused."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.errors import UsageError
from kinform.sansio.json_diff import JsonValue, rebase

Item = dict[str, JsonValue]


def shown(items: list[Item], *hidden: str) -> list[JsonValue]:
    return [{key: value for key, value in item.items() if key not in hidden} for item in items]


def carried(whole: list[Item], after: list[Item], *hidden: str) -> JsonValue:
    """Carry a change over to ``whole``, of which the model does not declare ``hidden``."""
    return rebase(list(whole), shown(whole, *hidden), list(after), path="/spec/list")


MOUNTS: list[Item] = [
    {"name": "data", "mountPath": "/a", "subPath": "a"},
    {"name": "data", "mountPath": "/b", "subPath": "b"},
]
PORTS: list[Item] = [
    {"name": "http", "port": 80, "nodePort": 30080},
    {"name": "https", "port": 443, "nodePort": 30443},
]


@pytest.mark.parametrize("mount", MOUNTS)
def test_a_name_that_two_items_share_tells_nothing(mount: Item) -> None:
    after: list[Item] = [{"name": "data", "mountPath": mount["mountPath"], "readOnly": True}]
    assert carried(MOUNTS, after, "subPath") == [{**mount, "readOnly": True}]


def test_a_removal_and_a_move_at_once_are_refused() -> None:
    after: list[Item] = [{"name": "data", "mountPath": "/bb"}]
    with pytest.raises(UsageError) as refused:
        carried(MOUNTS, after, "subPath")
    assert str(refused.value) == (
        "cannot match the items of /spec/list after the change, and the model does not declare "
        "/spec/list/0/subPath, which would be lost; use patch(), or update the object as a dict"
    )


def test_nothing_is_refused_where_nothing_can_be_lost() -> None:
    whole: list[Item] = [{"port": 80, "x": None, "deep": [{"y": 1}]}, {"port": 443}]
    assert carried(whole, [{"port": 9}], "x") == [{"port": 9}]


def test_what_is_hidden_deep_inside_counts() -> None:
    whole: list[JsonValue] = [{"args": [1], "deep": [{"y": 1, "z": 2}]}]
    before: list[JsonValue] = [{"args": [1], "deep": [{"y": 1}]}]
    with pytest.raises(UsageError, match="declare /0/deep/0/z,"):
        rebase(whole, before, [{"args": [2]}, {"args": [3]}])


@pytest.mark.parametrize(
    "whole",
    [
        pytest.param([{"type": "A", "v": 1, "h": 1}, {"type": "B", "v": 1, "h": 2}], id="type"),
        pytest.param([{"key": "A", "v": 1, "h": 1}, {"key": "B", "v": 1, "h": 2}], id="key"),
        pytest.param([{"uid": "A", "v": 1, "h": 1}, {"uid": "B", "v": 1, "h": 2}], id="uid"),
        pytest.param([{"ip": "A", "v": 1, "h": 1}, {"ip": "B", "v": 1, "h": 2}], id="ip"),
        pytest.param(
            [{"devicePath": "/a", "v": 1, "h": 1}, {"devicePath": "/b", "v": 1, "h": 2}],
            id="devicePath",
        ),
        pytest.param(
            [
                {"containerPort": 53, "protocol": "TCP", "v": 1, "h": 1},
                {"containerPort": 53, "protocol": "UDP", "v": 1, "h": 2},
            ],
            id="containerPort and protocol",
        ),
        pytest.param(
            [{"port": 53, "v": 1, "h": 1}, {"port": 53, "protocol": "UDP", "v": 1, "h": 2}],
            id="port and a protocol that may be absent",
        ),
        pytest.param(
            [
                {"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "v": 1, "h": 1},
                {"topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "v": 1, "h": 2},
            ],
            id="topologyKey and whenUnsatisfiable",
        ),
        pytest.param(
            [{"name": "x", "kind": "A", "v": 1, "h": 1}, {"name": "x", "kind": "B", "h": 2}],
            id="name and kind",
        ),
    ],
)
def test_the_usual_keys_tell_items_apart(whole: list[Item]) -> None:
    kept = {key: value for key, value in whole[1].items() if key != "h"}
    assert carried(whole, [{**kept, "v": 2}], "h") == [{**whole[1], "v": 2}]


def test_an_empty_name_is_no_name() -> None:
    whole: list[Item] = [{"name": "", "port": 80, "nodePort": 1}]
    after: list[Item] = [{"name": "web", "port": 80}, {"name": "new", "port": 9}]
    assert carried(whole, after, "nodePort") == [{**whole[0], "name": "web"}, after[1]]


def test_an_item_with_another_name_at_the_same_port_is_the_same() -> None:
    after: list[Item] = [{"name": "web", "port": 80}, {"name": "new", "port": 9}]
    assert carried(PORTS, after, "nodePort") == [{**PORTS[0], "name": "web"}, after[1]]


def test_an_item_with_another_name_gets_nothing_of_the_one_it_replaces() -> None:
    whole: list[Item] = [{"name": "a", "type": "date", "h": 1}, {"name": "b", "type": "x", "h": 2}]
    after: list[Item] = [{"name": "c", "type": "date"}, {"name": "b", "type": "x"}]
    assert carried(whole, after, "h") == [{"name": "c", "type": "date"}, whole[1]]


def test_items_that_look_alike_keep_their_order() -> None:
    whole: list[Item] = [{"v": 1, "h": 1}, {"v": 1, "h": 2}, {"v": 2, "h": 3}]
    assert carried(whole, [{"v": 9}, {"v": 1}, {"v": 1}, {"v": 2}], "h") == [{"v": 9}, *whole]


def test_which_of_two_that_look_alike_is_gone_is_not_guessed() -> None:
    whole: list[Item] = [{"v": 1, "h": 1}, {"v": 1, "h": 2}]
    with pytest.raises(UsageError):
        carried(whole, [{"v": 1}], "h")


def test_which_of_two_that_are_alike_is_gone_does_not_matter() -> None:
    assert carried([{"v": 1, "h": 1}] * 2, [{"v": 1}], "h") == [{"v": 1, "h": 1}]


def test_a_copy_of_an_item_leaves_the_item_at_its_place() -> None:
    whole: list[Item] = [{"v": 1, "h": 1}, {"v": 2, "h": 2}]
    assert carried(whole, [{"v": 2}, {"v": 2}], "h") == [{"v": 2, "h": 1}, {"v": 2, "h": 2}]


def test_a_changed_item_that_left_its_place_is_refused() -> None:
    whole: list[Item] = [{"v": 1, "h": 1}, {"v": 2, "h": 2}]
    with pytest.raises(UsageError):
        carried(whole, [{"v": 2}, {"v": 3}], "h")


@dataclass(frozen=True)
class Edit:
    """A list, what a model shows of it after a change, and the list that must come of it."""

    whole: list[Item]
    after: list[Item]
    expected: list[Item]


@st.composite
def edits(draw: st.DrawFn, key: str) -> Edit:
    """Edit, remove, insert and reorder items with a unique ``key``; the member h is hidden."""
    ids = draw(st.lists(st.integers(1, 9), unique=True, max_size=6))
    whole: list[Item] = [
        {key: f"k{i}", "v": draw(st.integers(0, 1)), "in": {"v": 0, "h": i}, "h": i} for i in ids
    ]
    stay = [item for item in whole if draw(st.booleans())]
    expected: list[Item] = [
        {**item, "v": draw(st.integers(0, 2)), "in": {"v": draw(st.integers(0, 1)), "h": item["h"]}}
        for item in stay
    ]
    # Inserting and removing addresses at once may be a move: that is refused, or by place.
    may_insert = key in {"name", "type", "key", "uid"} or len(stay) == len(whole)
    fresh = draw(st.lists(st.integers(10, 19), unique=True, max_size=3)) if may_insert else []
    inserted: list[Item] = [{key: f"k{i}", "v": 0} for i in fresh]
    expected = draw(st.permutations([*expected, *inserted]))
    after = copy.deepcopy(expected)
    for item in after:
        item.pop("h", None)
        if isinstance(inner := item.get("in"), dict):
            inner.pop("h")
    return Edit(whole, after, expected)


@given(st.sampled_from(["name", "type", "key", "uid", "mountPath", "ip"]).flatmap(edits))
def test_with_unique_keys_nothing_hidden_moves_or_is_lost(edit: Edit) -> None:
    before: list[JsonValue] = [
        {**{key: value for key, value in item.items() if key != "h"}, "in": {"v": 0}}
        for item in edit.whole
    ]
    assert rebase(list(edit.whole), before, list(edit.after)) == edit.expected


@given(st.data())
def test_without_keys_nothing_hidden_is_lost_unsaid(data: st.DataObject) -> None:
    """Whatever the change, each hidden member stays, is refused, or its item is gone."""
    values = st.lists(st.integers(0, 3), max_size=5)
    whole: list[Item] = [{"v": v, "h": place} for place, v in enumerate(data.draw(values))]
    after: list[Item] = [{"v": v} for v in data.draw(values)]
    try:
        result = carried(whole, after, "h")
    except UsageError:
        return
    assert isinstance(result, list)
    kept = [item["h"] for item in result if isinstance(item, dict) and "h" in item]
    assert len(set(kept)) == len(kept) == min(len(whole), len(after))
    assert shown([item for item in result if isinstance(item, dict)], "h") == after
