"""The real server still answers every case as it was recorded."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import pytest

from kinform.testing.plugin import ControlPlaneFactory
from tests.contract import record, runner
from tests.contract.case import Case, all_cases
from tests.contract.selection import chosen
from tests.contract.target import APISERVER_FLAGS, CONTROLLERS, Target, of_control_plane

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


OF_CONTROLLERS: Final = frozenset({"namespaces", "owners"})
"""Areas whose cases wait for controllers. Controllers list every kind, and stall for half a minute
when custom kinds are created and deleted. So these areas have a server without custom kinds."""


class Runs:
    """The answers of the real server, area by area: each is run on first use."""

    def __init__(self, start: Callable[[], Target], cases: Sequence[Case]) -> None:
        self._start = start
        self._targets: dict[bool, Target] = {}
        self._cases = cases
        self._outcomes: dict[str, runner.Outcome] = {}

    def outcome(self, case_id: str) -> runner.Outcome:
        if case_id not in self._outcomes:
            # Many at once: most of them wait for a clock.
            area = all_cases()[case_id].area
            cases = [case for case in self._cases if case.area == area]
            self._outcomes |= asyncio.run(self._run(cases, self._target(area)))
        return self._outcomes[case_id]

    def _target(self, area: str) -> Target:
        of_controllers = area in OF_CONTROLLERS
        if of_controllers not in self._targets:
            self._targets[of_controllers] = self._start()
        return self._targets[of_controllers]

    async def _run(self, cases: Sequence[Case], target: Target) -> dict[str, runner.Outcome]:
        outcomes = await runner.run_all(cases, target)
        await _all_closed()
        return outcomes


async def _all_closed() -> None:
    """Wait for the goodbyes of TLS connections: a closed session leaves them to the loop."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, asyncio.SelectorEventLoop)
    async with asyncio.timeout(60):
        # The one that stays is the loop's own pipe.
        while len(loop._selector.get_map()) > 1:  # type: ignore[attr-defined]  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.fixture(scope="module")
def runs(
    request: pytest.FixtureRequest, kinform_control_plane_factory: ControlPlaneFactory
) -> Iterator[Runs]:
    with asyncio.Runner() as loop:
        planes = contextlib.AsyncExitStack()

        def start() -> Target:
            plane = kinform_control_plane_factory(
                controllers=CONTROLLERS, apiserver_flags=APISERVER_FLAGS
            )
            return of_control_plane(loop.run(planes.enter_async_context(plane)))

        try:
            yield Runs(start, chosen(request))
        finally:
            loop.run(planes.aclose())


@pytest.mark.parametrize("case_id", all_cases())
def test_the_real_server_answers_as_recorded(case_id: str, runs: Runs) -> None:
    outcome = runs.outcome(case_id)
    if found := record.judged(case_id, outcome.exchanges, outcome.error):
        pytest.fail("\n".join(found), pytrace=False)
