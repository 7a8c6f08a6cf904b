"""The real server still answers every case as it was recorded."""

from __future__ import annotations

import asyncio

import pytest

from kinform.testing.plugin import ControlPlaneFactory
from tests.contract import record, runner
from tests.contract.case import all_cases
from tests.contract.selection import chosen
from tests.contract.target import APISERVER_FLAGS, CONTROLLERS, of_control_plane

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture(scope="module")
def outcomes(
    request: pytest.FixtureRequest, kinform_control_plane_factory: ControlPlaneFactory
) -> dict[str, runner.Outcome]:
    """Run the cases that were asked for, many at once: most of them wait for a clock."""

    async def run() -> dict[str, runner.Outcome]:
        async with kinform_control_plane_factory(
            controllers=CONTROLLERS, apiserver_flags=APISERVER_FLAGS
        ) as plane:
            return await runner.run_all(chosen(request), of_control_plane(plane))

    return asyncio.run(run())


@pytest.mark.parametrize("case_id", all_cases())
def test_the_real_server_answers_as_recorded(
    case_id: str, outcomes: dict[str, runner.Outcome]
) -> None:
    outcome = outcomes[case_id]
    if found := record.judged(case_id, outcome.exchanges, outcome.error):
        pytest.fail("\n".join(found), pytrace=False)
