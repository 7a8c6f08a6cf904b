from __future__ import annotations

import pytest

from tests.apiserver.recorded_workloads import (
    Json,
    assert_same_causes,
    cases,
    created,
    name_of,
    updated,
)

PODS = frozenset({"pods"})


@pytest.mark.parametrize("case", cases("creates", PODS, 422), ids=name_of)
def test_a_pod_is_refused_as_the_real_server_refuses_it(case: Json) -> None:
    _, errors = created(case)

    assert_same_causes(case, errors)


@pytest.mark.parametrize("case", cases("updates", PODS, 422), ids=name_of)
def test_a_change_of_a_pod_is_refused_as_the_real_server_refuses_it(case: Json) -> None:
    _, errors = updated(case)

    assert_same_causes(case, errors)


def test_there_are_enough_cases_to_mean_something() -> None:
    assert len(cases("creates", PODS, 422)) > 50
    assert len(cases("updates", PODS, 422)) > 20
