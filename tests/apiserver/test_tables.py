from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.apiserver import printers
from kinform.apiserver.endpoints.status import StatusError
from kinform.apiserver.printers import ages, column_paths
from tests.apiserver.recorded_objects import kind_of, recorded

NOW = datetime(2026, 1, 1, tzinfo=UTC)
# The server takes the values of a map in any order: these columns show the first one.
ANY_ORDER = "c22"


def rows() -> list[Any]:
    return [
        pytest.param(key, index, id=f"{key}-{obj['metadata']['name']}")
        for key, case in recorded()["tables"].items()
        for index, obj in enumerate(case["items"])
    ]


@pytest.mark.parametrize("key, index", rows())
def test_a_row_has_the_cells_and_conditions_of_the_real_server(key: str, index: int) -> None:
    case = recorded()["tables"][key]
    kind = kind_of(key, case.get("columns"))
    expected, conditions = case["rows"][index]
    now = datetime.fromisoformat(case["now"])

    [row] = printers.table(kind, [case["items"][index]], list_metadata={}, now=now)["rows"]

    shown = [
        "*" if column["name"].startswith(ANY_ORDER) else cell
        for column, cell in zip(printers.columns(kind), row["cells"], strict=False)
    ]
    assert expected[: len(shown)] == shown
    assert len(expected) == len(row["cells"])
    assert conditions == row.get("conditions")


@pytest.mark.parametrize("key", recorded()["tables"])
def test_an_object_with_nothing_but_metadata_has_the_row_of_a_bookmark(key: str) -> None:
    case = recorded()["tables"][key]

    cells = printers.cells(kind_of(key, case.get("columns")), {"metadata": {}}, NOW)

    assert case["bookmark"] == cells


def test_a_table_carries_metadata_of_objects_in_the_version_that_was_asked_for() -> None:
    kind = kind_of("/v1/configmaps")
    obj = {"metadata": {"name": "a", "creationTimestamp": "2025-12-31T23:00:00Z"}, "data": {}}

    table = printers.table(
        kind,
        [obj],
        list_metadata={"resourceVersion": "7"},
        now=NOW,
        group_version="meta.k8s.io/v1beta1",
    )

    assert table["kind"] == "Table"
    assert table["apiVersion"] == "meta.k8s.io/v1beta1"
    assert table["metadata"] == {"resourceVersion": "7"}
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert table["rows"] == [
        {
            "cells": ["a", 0, "60m"],
            "object": {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1beta1",
                "metadata": obj["metadata"],
            },
        }
    ]


def test_include_object_decides_what_a_row_says_of_its_object() -> None:
    kind = kind_of("/v1/configmaps")
    obj = {"metadata": {"name": "a"}}

    def included(include: str) -> object:
        table = printers.table(kind, [obj], list_metadata={}, now=NOW, include=include)
        return table["rows"][0]["object"]

    assert included("None") is None
    assert included("Object") == {"kind": "ConfigMap", "apiVersion": "v1", **obj}


def test_an_unknown_include_object_is_refused_in_the_words_of_the_server() -> None:
    with pytest.raises(StatusError) as refusal:
        printers.table(kind_of("/v1/configmaps"), [], list_metadata={}, now=NOW, include="foo")

    assert refusal.value.code == 400
    assert refusal.value.message == (
        'Unable to convert to Table as requested: includeObject: Invalid value: "foo": '
        "must be 'Metadata', 'Object', 'None', or empty"
    )


def test_a_slice_with_a_port_that_has_neither_number_nor_name_shows_none() -> None:
    kind = kind_of("discovery.k8s.io/v1/endpointslices")
    obj = {"metadata": {"name": "a"}, "addressType": "IPv4", "ports": [{"name": ""}]}

    assert printers.cells(kind, obj, NOW) == ["a", "IPv4", "<unset>", "<unset>", "<unknown>"]


def test_later_events_of_a_watch_have_no_columns() -> None:
    table = printers.table(kind_of("/v1/pods"), [], list_metadata={}, now=NOW, with_columns=False)

    assert table["columnDefinitions"] is None


def test_flow_schemas_are_in_the_order_in_which_they_are_tried() -> None:
    case = recorded()["tables"]["flowcontrol.apiserver.k8s.io/v1/flowschemas"]
    kind = kind_of("flowcontrol.apiserver.k8s.io/v1/flowschemas")

    table = printers.table(kind, reversed(case["items"]), list_metadata={}, now=NOW)

    precedences = [row["cells"][2] for row in table["rows"]]
    assert sorted(precedences) == precedences


@pytest.mark.parametrize(
    "seconds, expected",
    [
        (-2, "<invalid>"), (-1, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (182, "3m2s"),
        (600, "10m"), (10799, "179m"), (10800, "3h"), (10860, "3h1m"), (28800, "8h"),
        (172799, "47h"), (172800, "2d"), (176400, "2d1h"), (691200, "8d"), (63071999, "729d"),
        (63072000, "2y"), (63158400, "2y1d"), (252288000, "8y"),
    ],
)  # fmt: skip
def test_ages_are_in_two_units_at_most(seconds: int, expected: str) -> None:
    assert expected == ages.duration(seconds)


@given(st.integers(min_value=0, max_value=10**10))
def test_an_age_never_claims_more_than_has_passed(seconds: int) -> None:
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400, "y": 365 * 86400}
    words = ages.since((NOW - timedelta(seconds=seconds)).isoformat(), NOW)
    total, number = 0, ""
    for character in words:
        if character.isdigit():
            number += character
        else:
            total, number = total + int(number) * units[character], ""

    assert total <= seconds
    assert seconds - total <= max(1, seconds) / 2


@pytest.mark.parametrize(
    "path, expected",
    [
        (".a.b", [1]),
        (".a.missing", []),
        ("['a']['b']", [1]),
        (".l[0]", ["x"]),
        (".l[-1]", ["z"]),
        (".l[3]", []),
        (".l[0,2]", ["x", "z"]),
        (".l[1:]", ["y", "z"]),
        (".l[0:3:2]", ["x", "z"]),
        (".l[0:4]", []),
        (".l[*]", ["x", "y", "z"]),
        (".o[*].n", ["p", "q"]),
        ('.o[?(@.n=="q")].v', [2]),
        ('.o[?(@.n!="q")].v', [1]),
        (".o[?(@.v>=2)].n", ["q"]),
        (".o[?(@.w)].n", ["q"]),
        ('.o[?(@.v=="2")].n', []),
        ("..n", ["p", "q"]),
        (r".k\.d/e", ["dotted"]),
        ('.t[?(@.x=="]")].y', ["bracket"]),
        (".a.*", [1]),
    ],
)
def test_a_json_path_finds_what_it_names(path: str, expected: list[object]) -> None:
    obj = {
        "a": {"b": 1},
        "l": ["x", "y", "z"],
        "o": [{"n": "p", "v": 1}, {"n": "q", "v": 2, "w": True}],
        "k.d/e": "dotted",
        "t": [{"x": "]", "y": "bracket"}],
    }

    assert expected == column_paths.compiled(path).find(obj)


@pytest.mark.parametrize(
    "value, expected",
    [
        (1.5, "1.5"), (1234567.5, "1.2345675e+06"), (0.00001, "1e-05"), (123456.0, "123456"),
        (3.0, "3"), (1e-4, "0.0001"), ({"x": "<&>"}, '{"x":"\\u003c\\u0026\\u003e"}'),
        (-2.5, "-2.5"), (100000.5, "100000.5"), (12345678, "12345678"), (None, "<no value>"),
        (10**20, "1e+20"), (False, "false"), (["a", 1], '["a",1]'),
    ],
)  # fmt: skip
def test_a_custom_column_of_text_shows_values_as_the_real_server_prints_them(
    value: object, expected: str
) -> None:
    column = {"name": "F", "type": "string", "jsonPath": ".spec.f"}
    kind = kind_of("example.com/v1/gizmos", [column])

    cells = printers.cells(kind, {"metadata": {"name": "a"}, "spec": {"f": value}}, NOW)

    assert cells == ["a", expected]


@pytest.mark.parametrize(
    "value, expected",
    [
        ("", "<unknown>"),
        ("null", "<unknown>"),
        ("2025-12-31T23:59:00.5Z", "59s"),
        ("2026-01-01T01:00:00+02:00", "60m"),
        ("2025-12-31", "<invalid>"),
        ("2030-01-01T00:00:00Z", "<invalid>"),
        (5, None),
    ],
)
def test_a_custom_column_of_dates_shows_ages(value: object, expected: str | None) -> None:
    column = {"name": "D", "type": "date", "jsonPath": ".spec.d"}
    kind = kind_of("example.com/v1/gizmos", [column])

    cells = printers.cells(kind, {"metadata": {"name": "a"}, "spec": {"d": value}}, NOW)

    assert cells == ["a", expected]


@pytest.mark.parametrize("path", [".a[", ".a[x]", '.a[?(@.b=="c")', ".a b"])
def test_an_invalid_json_path_is_refused(path: str) -> None:
    with pytest.raises(ValueError):
        column_paths.compiled(path)
