"""The embedded server answers every case as the real one did."""

from __future__ import annotations

import asyncio

import pytest

from tests.contract import record, runner
from tests.contract.case import STRICT_AREAS, all_cases
from tests.contract.selection import chosen

# The cases of one worker run at once; they wait for clocks, twenty seconds in all.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("contract")]
MOST_DIFFERENCES = 15


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest) -> dict[str, runner.Outcome]:
    """Run the cases that were asked for, many at once: most of them wait for a clock."""
    return asyncio.run(runner.run_embedded(chosen(request)))


@pytest.mark.parametrize("case_id", all_cases())
def test_the_embedded_server_answers_as_recorded(
    case_id: str, outcomes: dict[str, runner.Outcome]
) -> None:
    found = record.judged(case_id, outcomes[case_id].exchanges, outcomes[case_id].error)
    if case_id in record.listed_differences():
        assert found, f"{case_id} does not differ: take it off differences.toml"
    elif found:
        pytest.fail(f"{all_cases()[case_id].title}\n" + "\n".join(found), pytrace=False)


def test_listed_differences_are_few_and_not_where_none_are_allowed() -> None:
    listed = record.listed_differences()
    assert len(listed) <= MOST_DIFFERENCES
    assert listed.keys() <= all_cases().keys()
    assert not [each for each in listed if all_cases()[each].area in STRICT_AREAS]
    assert all(reason.strip() for reason in listed.values())


def test_what_is_recorded_are_the_cases_that_there_are() -> None:
    areas = [file.stem for file in record.FOLDER.glob("*.json")]
    assert {case_id for area in areas for case_id in record.load(area)} == all_cases().keys()
