from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.cli.output.rows import Column, cell_text, duration, parse_table, row_texts, shown
from tests.cli.support_rows import COLUMNS, WALL, pod, row


def table(*rows: dict[str, object], columns: object = None) -> bytes:
    document = {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": "7", "continue": "next"},
        "columnDefinitions": columns,
        "rows": rows,
    }
    return json.dumps(document).encode()


def test_a_table_gives_objects_with_their_cells_and_columns() -> None:
    columns = [{"name": "Name", "type": "string", "format": "name", "priority": 0}]
    raw = table({"cells": ["web", 3, None], "object": pod("web").to_dict()}, columns=columns)
    found = parse_table(raw, received=5.0)
    (only,) = found.rows
    assert (only.obj.name, only.cells, only.received) == ("web", ("web", 3, None), 5.0)
    assert only.columns == found.columns == (Column("Name", type="string"),)
    assert (found.metadata.resource_version, found.metadata.continue_token) == ("7", "next")


def test_a_watch_names_its_columns_once() -> None:
    raw = table({"cells": ["web"], "object": pod("web").to_dict()})
    assert parse_table(raw, columns=COLUMNS).rows[0].columns == COLUMNS


def test_a_list_from_a_server_without_tables_has_names_and_ages() -> None:
    items = [{"metadata": {"name": "a", "creationTimestamp": "2027-01-15T07:59:00Z"}}]
    raw = json.dumps({"kind": "WidgetList", "items": items}).encode()
    (only,) = parse_table(raw).rows
    assert only.obj.kind == "Widget"
    assert row_texts(only, wide=False, wall=WALL) == ["a", "60s"]


def test_an_answer_that_is_not_a_table_is_refused() -> None:
    with pytest.raises(msgspec.DecodeError):
        parse_table(b'{"rows": 3}')


def test_columns_of_lower_priority_are_shown_when_wide() -> None:
    assert shown(COLUMNS, wide=False) == [0, 1, 2]
    assert shown(COLUMNS, wide=True) == [0, 1, 2, 3]


def test_the_age_goes_on_after_the_server_has_said_it() -> None:
    assert row_texts(row("web"), wide=False, wall=WALL + 3600)[2] == "61m"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "0s"),
        (0, "0s"),
        (119.9, "119s"),
        (120, "2m"),
        (599, "9m59s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (8 * 3600 - 1, "7h59m"),
        (8 * 3600, "8h"),
        (48 * 3600 - 1, "47h"),
        (48 * 3600, "2d"),
        (8 * 86400 - 1, "7d23h"),
        (8 * 86400, "8d"),
        (2 * 365 * 86400, "2y"),
        (3 * 365 * 86400 + 86400, "3y1d"),
        (9 * 365 * 86400, "9y"),
    ],
)
def test_durations_are_kubectls(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@given(st.text())
def test_a_cell_never_holds_what_a_terminal_obeys(text: str) -> None:
    assert cell_text(text).isprintable()
