"""Rules for every test: nothing is left behind, nothing blocks the loop, no secret is shown.

A test fails if it leaves a task running, a resource unclosed (warnings are errors, and each test
ends with a garbage collection), an error in asyncio's log, if kinform's code blocks the event
loop, or if a token, a private key or what a canary Secret holds is in a log, in an error, or in
what the test or a process that it started prints. Tests that use a control plane are marked
``e2e`` and run in one worker, so that one control plane is started however many workers there are.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import logging
import os
import signal
from collections.abc import AsyncIterator, Generator, Iterator

import pytest
from blockbuster import BlockBuster
from hypothesis import settings

from kinform.testing import virtual_time
from tests.security.support_canaries import Leaks, drawn_tokens_are_canaries, witness_of_a_test
from tests.security.support_children import Ears, children_are_heard

settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
# The quick round runs on every Python version; the full round looks at more examples.
settings.register_profile("quick", deadline=None, derandomize=True, max_examples=15)
settings.register_profile("thorough", deadline=None, max_examples=5_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if "CI" in os.environ else "dev"))

CONTROL_PLANE_FIXTURES = {"kinform_control_plane", "kinform_control_plane_factory"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what needs a control plane, and keep it together in one xdist worker."""
    for item in items:
        if CONTROL_PLANE_FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.e2e)
        if item.get_closest_marker("e2e") and config.pluginmanager.hasplugin("xdist"):
            item.add_marker(pytest.mark.xdist_group("control-plane"))


def pytest_collection_finish() -> None:
    """Take what is loaded by now out of the garbage collector's sight."""
    collect_garbage()


def collect_garbage() -> None:
    """Collect garbage since the last call; objects in use are not visited again.

    So it costs next to nothing, however much is loaded.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def sigint_interrupts() -> None:
    """Undo what a shell does to its background jobs: children would inherit an ignored SIGINT."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def loop_never_blocks() -> Iterator[None]:
    """Make a blocking call from kinform's code on a running loop raise ``BlockingError``.

    Virtual time is the exception: there, `kinform.clock.offload` runs its calls on the loop.
    """
    guard = BlockBuster("kinform", excluded_modules=[virtual_time])
    for function in guard.functions.values():
        function.can_block_in("kinform/testing/virtual_time.py", {"offload", "run_in_executor"})
        function.can_block_in("kinform/testing/api_server_thread.py", {"call"})  # for a moment
        function.can_block_in("kinform/apiserver/faults/plan.py", {"_at_home"})  # as well
        function.can_block_in("kinform/sync/_calls.py", {"_wait"})  # it is for blocking code
        # While the process forks, its loop rests between two callbacks: for a moment.
        function.can_block_in("kinform/sync/_loop_thread.py", {"before_fork", "rest", "sleep"})
    guard.activate()
    yield
    guard.deactivate()


@pytest.fixture(scope="session", autouse=True)
def tokens_are_canaries() -> Iterator[None]:
    """Let every token that an embedded server draws be one that must not be seen."""
    with drawn_tokens_are_canaries():
        yield


@pytest.fixture(scope="session", autouse=True)
def ears() -> Iterator[Ears]:
    """Listen to all processes that tests start, for as long as these run."""
    with children_are_heard() as ears:
        yield ears


@pytest.fixture(autouse=True)
def no_secret_is_shown(
    request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture, ears: Ears
) -> Iterator[None]:
    """Read along what is logged, at DEBUG, every error that a test expects, and what children say.

    The test itself sees no more than without that: warnings, or what it asks for. Other clients'
    errors, in tests/peers, show what they like: URLs, with the token that stands in them.
    """
    if "peers" in request.path.parts:
        yield
        ears.take()
        return
    level = caplog.handler.level
    caplog.handler.setLevel(logging.WARNING)
    with witness_of_a_test() as leaks:
        yield
    caplog.handler.setLevel(level)
    leaks.extend(ears.take())
    if leaks:
        pytest.fail("a secret was shown:\n" + "\n".join(leaks), pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test if a secret is in what was captured: what it printed, or a child of its."""
    report = yield
    leaks = Leaks()
    leaks.extend(content for _, content in report.sections)
    if leaks and "peers" not in item.path.parts:
        report.outcome = "failed"
        report.longrepr = "a secret was shown:\n" + "\n".join(leaks)
    return report


@pytest.fixture(autouse=True)
def nothing_left_unclosed() -> Iterator[None]:
    """Collect garbage, so that unclosed resources complain, and look into asyncio's log."""
    logger = logging.getLogger("asyncio")
    complaints = _Collector()
    logger.addHandler(complaints)
    yield
    collect_garbage()
    logger.removeHandler(complaints)
    if complaints.messages:
        pytest.fail("asyncio logged:\n" + "\n".join(complaints.messages), pytrace=False)


@pytest.fixture(autouse=True)
def no_task_left_running(
    request: pytest.FixtureRequest,
    nothing_left_unclosed: None,  # to be torn down after the loop is closed
) -> None:
    """Count the tasks of an async test, before its first fixture and after its last."""
    if inspect.iscoroutinefunction(getattr(request.node, "obj", None)):
        request.getfixturevalue("task_census")


@pytest.fixture
async def task_census() -> AsyncIterator[None]:
    """Fail a test after which more tasks run than before it."""
    before = asyncio.all_tasks()
    yield
    if leaked := _others() - before:
        await asyncio.wait(leaked, timeout=0.1)  # what was just cancelled may end in peace
    if leaked := _others() - before:
        tasks = "\n".join(sorted(map(repr, leaked)))
        pytest.fail(f"the test left {len(leaked)} tasks running:\n{tasks}", pytrace=False)


def _others() -> set[asyncio.Task[object]]:
    return {task for task in asyncio.all_tasks() if task is not asyncio.current_task()}


class _Collector(logging.Handler):
    """Keeps what is logged as an error: lost exceptions, pending tasks destroyed."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(logging.Formatter().format(record))
