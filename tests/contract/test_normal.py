"""The record keeps identity and loses what differs from run to run; comparing misses nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.contract import record
from tests.contract.exchange import Answer, Exchange, ListVersion
from tests.contract.normal import Normal

UID = "0e6a2e6c-6c43-4dcb-b7c4-3d2f0e6a2e6c"
OTHER_UID = "1e6a2e6c-6c43-4dcb-b7c4-3d2f0e6a2e6c"


def normal() -> Normal:
    return Normal(ident="c1234", ns="contract-c1234", url="http://127.0.0.1:80", named={})


def exchange(
    body: object, *, sent: object = None, query: list[tuple[str, str]] | None = None
) -> Exchange:
    content = json.dumps(body).encode()
    answer = Answer(200, {"content-type": "application/json"}, content)
    return Exchange("GET", "/", query or [], {}, sent, answer)


def recorded(*bodies: object) -> list[Any]:
    one = normal()
    return [one.exchange(exchange(body))["body"] for body in bodies]


def thing(version: str, **metadata: str) -> dict[str, Any]:
    return {"kind": "Thing", "metadata": {"resourceVersion": version, **metadata}}


def listing(version: str, *items: object, **metadata: str) -> dict[str, Any]:
    return {"kind": "ThingList", "items": list(items), **thing(version, **metadata)} | {
        "kind": "ThingList"
    }


def test_the_same_version_is_the_same_symbol_and_another_is_another() -> None:
    one, same, other = recorded(thing("5"), thing("5"), thing("6"))
    assert one == same
    assert one != other


def test_uids_keep_their_identity_inside_texts() -> None:
    message = f"UID in precondition: {UID}, UID in object meta: {OTHER_UID}"
    _, text = recorded({"uid": UID}, {"message": message})
    assert text["message"] == "UID in precondition: <uid-1>, UID in object meta: <uid-2>"


def test_the_version_of_a_list_is_not_compared_unless_the_request_pinned_it() -> None:
    assert recorded(listing("5")) == recorded(listing("6"))
    query = [("resourceVersion", "5"), ("resourceVersionMatch", "Exact")]
    pinned = normal().exchange(exchange(listing("5"), query=query))
    moved = normal().exchange(exchange(listing("6"), query=query))
    assert pinned["body"]["metadata"]["resourceVersion"] == "<requested-rv>"
    assert moved["body"] != pinned["body"]


def test_a_list_older_than_what_is_in_it_is_a_difference() -> None:
    assert recorded(listing("4", thing("5"))) != recorded(listing("5", thing("5")))


def test_a_next_page_of_another_version_is_a_difference() -> None:
    first = exchange(listing("5", **{"continue": "abc"}))
    query = [("continue", "abc"), ("limit", "1")]

    def second(version: str) -> object:
        one = normal()
        one.exchange(first)
        return one.exchange(exchange(listing(version), query=query))["body"]

    assert second("5") != second("6")


def test_a_lists_version_is_distinguished_from_an_equal_one_of_an_object() -> None:
    one = normal()
    one.exchange(exchange(thing("5")))
    sent = one.exchange(exchange({}, query=[("resourceVersion", ListVersion("5"))]))
    assert sent["request"]["query"] == ["resourceVersion=<list-rv>"]


def test_times_of_the_server_go_and_times_that_were_sent_stay() -> None:
    mine, its = "2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z"
    body = {"renewTime": mine, "creationTimestamp": its}
    shown = normal().exchange(exchange(body, sent={"renewTime": mine}))["body"]
    assert shown == {"renewTime": mine, "creationTimestamp": "<time>"}


def test_generated_names_keep_their_base() -> None:
    made = thing("1", generateName="gen-", name="gen-x7k2p")
    _, text = recorded(made, {"message": "gen-x7k2p is there"})
    assert text["message"] == "gen-<random-1> is there"


leaves = st.none() | st.booleans() | st.integers(0, 9) | st.sampled_from(["a", "b", ""])
documents = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab"), inner)
)


@given(documents, documents)
def test_two_bodies_differ_exactly_if_they_are_not_equal(one: object, other: object) -> None:
    request = {"method": "GET", "path": "/"}
    found = record.differences(
        [{"request": request, "body": one}], [{"request": request, "body": other}]
    )
    assert bool(found) == (json.dumps(one, sort_keys=True) != json.dumps(other, sort_keys=True))


@given(documents)
def test_the_layout_of_a_record_is_json(value: object) -> None:
    assert json.loads(record.layout({"x" * 50: value, "y" * 50: value})) == {
        "x" * 50: value,
        "y" * 50: value,
    }


@pytest.mark.parametrize("count", [0, 2])
def test_missing_and_superfluous_exchanges_are_differences(count: int) -> None:
    one = {"request": {"method": "GET", "path": "/"}}
    assert record.differences([one], [one] * count)


def test_an_age_that_grows_every_day_is_not_a_difference() -> None:
    columns = [{"name": name} for name in ("Name", "Restarts", "Age", "Duration")]

    def table(*cells: object) -> dict[str, Any]:
        return {"kind": "Table", "columnDefinitions": columns, "rows": [{"cells": list(cells)}]}

    [one, other] = recorded(
        table("3y", "3 (6y321d ago)", "6y321d", "10s"),
        table("3y", "3 (6y322d ago)", "7y", "10s"),
    )
    assert one == other
    assert one["rows"][0]["cells"][1:] == ["3 (<years> ago)", "<age>", "10s"]
    assert one != recorded(table("3y", "4 (6y322d ago)", "7y", "10s"))[0]
