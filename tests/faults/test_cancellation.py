"""F-P12: a cancellation at any step leaks nothing, hangs nowhere and loses nothing.

Each scenario is run once to its end and then again and again, cancelled one step later each time,
until no step is left. Each scenario states its own conditions.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kinform.testing import virtual_time
from tests.e2e.test_control_plane_cancelled import CANCELLED
from tests.faults.support_cancelling import Cut, Moment, Scenario, cut_short
from tests.faults.support_scenarios_cache import CACHE_SCENARIOS
from tests.faults.support_scenarios_client import CLIENT_SCENARIOS
from tests.faults.support_scenarios_runtime import RUNTIME_SCENARIOS
from tests.faults.support_scenarios_testing import SOCKET_SCENARIOS, TESTING_SCENARIOS

IN_VIRTUAL_TIME = CLIENT_SCENARIOS | CACHE_SCENARIOS | RUNTIME_SCENARIOS | TESTING_SCENARIOS
SCENARIOS = IN_VIRTUAL_TIME | SOCKET_SCENARIOS
MODULES = (
    "kinform",
    "kinform.apiserver",
    "kinform.cache",
    "kinform.clientset",
    "kinform.runtime",
    "kinform.testing",
    "kinform.workqueue",
)
ON_REAL_SERVERS = {f"kinform.testing.ControlPlane.{name}" for name in CANCELLED}
"""Coroutines that start processes: tests/e2e/test_control_plane_cancelled.py cancels these."""
PARTS = 3
"""Tests that share the steps of a scenario between them."""
ENTRY_POINTS = {"__aenter__", "__aexit__", "__anext__"}


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1, PARTS + 1))
@pytest.mark.parametrize("moment", Moment, ids=lambda moment: moment.name.lower())
@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_cancelled_at_any_step_it_leaves_nothing(
    scenario: Scenario, moment: Moment, first: int
) -> None:
    count = first
    while cut_at(scenario, count, moment).has_cut:
        count += PARTS


def cut_at(scenario: Scenario, count: int, moment: Moment) -> Cut:
    cut = Cut(count, moment)
    run = asyncio.run if scenario in SOCKET_SCENARIOS.values() else virtual_time.run
    try:
        run(cut_short(scenario, cut))
    except BaseException as exc:
        exc.add_note(f"cancelled at step {count}, {moment.value}")
        raise
    return cut


@pytest.mark.slow
def test_every_public_coroutine_is_among_what_is_cancelled() -> None:
    entered: set[types.CodeType] = set()

    def note(frame: types.FrameType, event: str, _: object) -> None:
        if event == "call":
            entered.add(frame.f_code)

    sys.setprofile(note)
    try:
        steps = {name: cut_at(one, 0, Moment.ANY_STEP).steps for name, one in SCENARIOS.items()}
    finally:
        sys.setprofile(None)
    missing = {name for name, code in public_coroutines() if code not in entered}
    assert missing == ON_REAL_SERVERS
    assert min(steps.values()) >= 2, steps


def public_coroutines() -> Iterator[tuple[str, types.CodeType]]:
    """Yield what users can await, iterate or enter; not the protocols they may implement.

    Nor what is asyncio's own, as most of a `kinform.testing.VirtualTimeLoop`.
    """
    for module in map(importlib.import_module, MODULES):
        for name in module.__all__:
            value: Any = getattr(module, name)
            if not inspect.isclass(value):
                yield from _coroutine(f"{module.__name__}.{name}", value)
            elif not getattr(value, "_is_protocol", False):
                for member in dir(value):
                    if not member.startswith("_") or member in ENTRY_POINTS:
                        qualified = f"{module.__name__}.{name}.{member}"
                        yield from _coroutine(qualified, getattr(value, member))


def _coroutine(name: str, value: Any) -> Iterator[tuple[str, types.CodeType]]:
    function = inspect.unwrap(value) if callable(value) else value
    is_awaited = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
    if is_awaited and function.__module__.startswith("kinform."):
        yield name, function.__code__


@pytest.mark.slow
def test_on_real_sockets_a_process_that_was_cancelled_at_any_step_exits() -> None:
    """No thread, no socket and no child keeps it: it ends by itself, and in silence."""
    program = "tests.faults.support_cancelled_process"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", program],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    steps = [int(word) for word in done.stdout.split()]
    assert len(steps) == 6 * len(Moment)
    assert min(steps) > 3, steps
