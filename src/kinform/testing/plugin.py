"""The pytest plugin: fixtures that give tests an API server, real or embedded.

It is loaded by every pytest run on a machine where kinform is installed. Rule of the file:
nothing of kinform is imported before a fixture is used.
"""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from typing import TYPE_CHECKING, Final, ParamSpec, TypeAlias

import pytest

if TYPE_CHECKING:
    from kinform.client import Client
    from kinform.testing.api_server_thread import APIServerThread
    from kinform.testing.controlplane.control_plane import ControlPlane

__all__ = [
    "ControlPlaneFactory",
    "kinform_apiserver",
    "kinform_client",
    "kinform_control_plane",
    "kinform_control_plane_factory",
    "kinform_namespace",
]

P = ParamSpec("P")
ControlPlaneFactory: TypeAlias = "Callable[..., AbstractAsyncContextManager[ControlPlane]]"
"""Takes the arguments of `kinform.testing.ControlPlane`; to be used with ``async with``."""

_REQUIRE: Final = "KINFORM_REQUIRE_CONTROL_PLANE"
_BEGAN: Final = pytest.StashKey[float]()


@pytest.fixture
def kinform_apiserver() -> Iterator[APIServerThread]:
    """An embedded API server, new for each test: `kinform.testing.APIServerThread`.

    It needs no cluster and no binaries, runs in a thread of its own, and works from tests on
    any event loop and from tests without one.
    """
    from kinform.testing.api_server_thread import APIServerThread

    with APIServerThread() as server:
        yield server


@pytest.fixture
def kinform_client(kinform_apiserver: APIServerThread) -> Client:
    """A client of the test's own `kinform_apiserver`: ``async with kinform_client as client``."""
    return kinform_apiserver.connect()


@pytest.fixture(scope="session")
def kinform_control_plane() -> Iterator[ControlPlane]:
    """A `kinform.testing.ControlPlane` with one apiserver, shared by the whole session.

    Tests share it: keep apart by namespace (`kinform_namespace`) and do it no harm. It works
    from tests on any event loop, and from tests without one. Where no binaries are found the
    test is skipped, or fails if ``KINFORM_REQUIRE_CONTROL_PLANE=1`` is set.
    """
    from kinform.testing.controlplane.control_plane import ControlPlane

    control_plane = ControlPlane()
    with _skipped_where_unavailable():
        control_plane.start()
    try:
        yield control_plane
    finally:
        control_plane.close()


@pytest.fixture(scope="session")
def kinform_control_plane_factory() -> ControlPlaneFactory:
    """Control planes of your own, to be treated as badly as you like.

    The fixture is a function with the arguments of `kinform.testing.ControlPlane`:
    ``async with kinform_control_plane_factory(apiservers=2) as cp``. It skips or fails as
    `kinform_control_plane` does, and fixtures of any scope can use it.
    """
    from kinform.testing.controlplane.control_plane import ControlPlane

    return _guarded(ControlPlane)


@pytest.fixture
def kinform_namespace(kinform_control_plane: ControlPlane) -> str:
    """The name of a new, empty namespace on the shared `kinform_control_plane`.

    It is not deleted: no controller runs that would empty it, and the whole control plane is
    removed at the end of the session.
    """
    name = f"test-{secrets.token_hex(4)}"
    kinform_control_plane.raw_apis[0].call(
        "POST", "/api/v1/namespaces", body={"metadata": {"name": name}}
    )
    return name


def _guarded(
    make: Callable[P, ControlPlane],
) -> Callable[P, AbstractAsyncContextManager[ControlPlane]]:
    """Return ``make`` with its result started, and a test that cannot have it skipped."""

    @asynccontextmanager
    async def started(*args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[ControlPlane]:
        async with AsyncExitStack() as stack:
            with _skipped_where_unavailable():
                control_plane = await stack.enter_async_context(make(*args, **kwargs))
            yield control_plane

    return started


@contextmanager
def _skipped_where_unavailable() -> Generator[None]:
    from kinform.testing.errors import ControlPlaneUnavailable

    try:
        yield
    except ControlPlaneUnavailable as error:
        if os.environ.get(_REQUIRE) == "1":
            pytest.fail(f"{error} ({_REQUIRE}=1 forbids to skip)", pytrace=False)
        pytest.skip(str(error))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Remember when a test began, to distinguish its control planes from older ones."""
    item.stash[_BEGAN] = time.monotonic()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the end of the apiservers' logs below a test that failed."""
    report = yield
    if report.failed and "kinform.testing.controlplane.control_plane" in sys.modules:
        for name, text in _log_tails(item):
            report.sections.append((f"Log of {name}", text))
    return report


def _log_tails(item: pytest.Item) -> Iterator[tuple[str, str]]:
    """Yield the logs of the control planes that ``item`` started, and of the one it shares."""
    from kinform.testing.controlplane.control_plane import started_since

    planes = started_since(item.stash.get(_BEGAN, 0.0))
    shared = getattr(item, "funcargs", {}).get("kinform_control_plane")
    if shared is not None and shared not in planes:
        planes.append(shared)
    for plane in planes:
        yield from plane.log_tails().items()
