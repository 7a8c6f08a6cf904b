from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.apiserver.validation.workloads.cron_schedule import ScheduleError, check_schedule
from tests.apiserver.recorded_workloads import (
    WORKLOADS,
    Json,
    assert_same_causes,
    cases,
    created,
    name_of,
    updated,
)


@pytest.mark.parametrize("case", cases("creates", WORKLOADS, 422), ids=name_of)
def test_a_workload_is_refused_as_the_real_server_refuses_it(case: Json) -> None:
    _, errors = created(case)

    assert_same_causes(case, errors)


@pytest.mark.parametrize("case", cases("updates", WORKLOADS, 422), ids=name_of)
def test_a_change_of_a_workload_is_refused_as_the_real_server_refuses_it(case: Json) -> None:
    _, errors = updated(case)

    assert_same_causes(case, errors)


@given(st.text(alphabet="0123456789*/,-?@ TZ=every", max_size=20))
def test_any_schedule_is_either_read_or_refused(schedule: str) -> None:
    with contextlib.suppress(ScheduleError):
        check_schedule(schedule)


@given(st.integers(0, 59), st.integers(0, 23), st.integers(1, 31))
def test_a_schedule_within_bounds_is_read(minute: int, hour: int, day: int) -> None:
    check_schedule(f"{minute} {hour} {day} * mon-fri")
