from __future__ import annotations

import copy
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.apiserver import defaults
from kinform.apiserver.endpoints.status import StatusError
from kinform.apiserver.scheme.resource_quantities import QuantityError, canonical, parse, rounded
from tests.apiserver.recorded_workloads import (
    WORKLOADS,
    Json,
    cases,
    created,
    kind_of,
    name_of,
    updated,
)

ALL = WORKLOADS | {"pods"}


@pytest.mark.parametrize("case", cases("creates", ALL, 201), ids=name_of)
def test_a_new_object_is_stored_as_the_real_server_stores_it(case: Json) -> None:
    obj, errors = created(case)

    assert errors == []
    assert obj == case["object"]


@pytest.mark.parametrize("case", cases("updates", ALL, 200), ids=name_of)
def test_a_changed_object_is_stored_as_the_real_server_stores_it(case: Json) -> None:
    obj, errors = updated(case)

    assert errors == []
    assert obj == case["object"]


@pytest.mark.parametrize("case", cases("creates", ALL, 201), ids=name_of)
def test_defaults_are_filled_in_once(case: Json) -> None:
    obj, _ = created(case)
    once = copy.deepcopy(obj)

    defaults.default(kind_of(case["storage"]), obj)

    assert obj == once


@pytest.mark.parametrize("case", cases("creates", ALL, 400), ids=name_of)
def test_a_quantity_that_cannot_be_read_makes_the_request_a_bad_one(case: Json) -> None:
    with pytest.raises(StatusError) as refusal:
        created(case)

    assert (refusal.value.code, refusal.value.message) == (400, case["message"])


@given(
    st.integers(-(10**6), 10**6),
    st.integers(0, 999),
    st.sampled_from(["n", "u", "m", "", "k", "M", "G", "T", "Ki", "Mi", "Gi", "e3", "E2", "e-2"]),
)
def test_the_servers_spelling_of_a_quantity_is_stable_and_never_less(
    whole: int, part: int, suffix: str
) -> None:
    text = f"{whole}.{part:03}{suffix}"
    spelled = canonical(text)

    assert canonical(spelled) == spelled
    assert abs(parse(text)) <= abs(parse(spelled)) < abs(parse(text)) + Fraction(1, 10**9)


@pytest.mark.parametrize("text", ["", "abc", "1Kii", "1 1", "0x1", "1e", "--1", "."])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(QuantityError):
        parse(text)


def test_resources_of_a_container_are_never_less_than_a_milli() -> None:
    assert [rounded(text) for text in ("1n", "100u", "0", "-1n")] == ["1m", "1m", "0", "-1m"]
