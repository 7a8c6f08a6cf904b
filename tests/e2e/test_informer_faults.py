"""Informers while the servers suffer: each time the cache ends up as the writer's own log.

Two apiservers share an etcd. The informer is connected to the first one, which is hurt; the writer
goes on writing through the second one.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Generator

import pytest
import pytest_asyncio

from kinform import (
    Client,
    ReflectorOptions,
    ResourceExpiredError,
    ResourceVersionRegressed,
    TransportError,
)
from kinform.tasks import background
from kinform.testing import ControlPlane
from kinform.testing.plugin import ControlPlaneFactory
from tests.e2e.support_informer import Writer, shown
from tests.e2e.support_informer_scene import MOST_ATTEMPTS, Scene, patience, scene
from tests.e2e.support_informer_ways import Front, Recording, connect, port_of
from tests.testing.eventually import eventually_async

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

HURT, HEALTHY = 0, 1
LAG = 4.0
"""Seconds one apiserver learns of everything later than the other."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pair(
    kinform_control_plane_factory: ControlPlaneFactory,
) -> AsyncGenerator[ControlPlane]:
    """Two apiservers that tests may hurt, if they heal them again."""
    async with kinform_control_plane_factory(apiservers=2) as cp:
        yield cp


@contextlib.asynccontextmanager
async def observed(
    plane: ControlPlane,
    *,
    port: int | None = None,
    transport: Recording | None = None,
    options: ReflectorOptions | None = None,
) -> AsyncGenerator[Scene]:
    """Run an informer on the apiserver that is to be hurt, and a writer on the other one."""
    async with (
        connect(plane, port=port_of(plane, HEALTHY), qps=40) as admin,
        connect(plane, port=port or port_of(plane, HURT), transport=transport) as client,
    ):
        namespace = await new_namespace(admin)
        writer = Writer(admin.resource("v1/configmaps", namespace=namespace))
        async with scene(client, writer, namespace=namespace, options=options) as made:
            yield made


async def new_namespace(admin: Client) -> str:
    body = {"metadata": {"generateName": "fault-"}}
    return (await admin.resource("v1/namespaces").create(body)).name


def now() -> float:
    return asyncio.get_running_loop().time()


def check_attempts(made: Scene) -> None:
    """All attempts since the informer was started count, the first ones too."""
    assert max(made.attempts) <= MOST_ATTEMPTS


async def test_a_restarted_apiserver(pair: ControlPlane) -> None:
    async with observed(pair) as made:
        async with made.writer.writing():
            await made.writer.wait_written(20)
            began = now()
            await pair.restart_apiserver(HURT)
            outage = now() - began
            await made.writer.wait_written(20)
        await made.catch_up(patience(outage, waits=2))
        check_attempts(made)


async def test_a_killed_apiserver(pair: ControlPlane) -> None:
    async with observed(pair) as made:
        async with made.writer.writing():
            await made.writer.wait_written(20)
            began = now()
            await pair.kill_apiserver(HURT)
            await made.wait_reported(TransportError, 10, since=began)
            await made.writer.wait_written(60)
            await pair.start_apiserver(HURT)
            outage = now() - began
            await made.writer.wait_written(20)
        await made.catch_up(patience(outage, waits=2))
        check_attempts(made)


async def test_a_paused_apiserver(pair: ControlPlane) -> None:
    """F-R02: nothing is closed and nothing comes; the watch's own deadline notices."""
    options = ReflectorOptions(watch_timeout=8, idle_timeout=2)
    async with observed(pair, options=options) as made:
        async with made.writer.writing():
            await made.writer.wait_written(20)
            before, began = made.attempts, now()
            pair.pause(HURT)
            try:
                await made.wait_reported(TransportError, 2 * 8 + 10 + 3, since=began)
                await made.writer.wait_written(20)
            finally:
                pair.resume(HURT)
            outage = now() - began
        await made.catch_up(patience(outage))
        assert max(made.attempts.since(before)) <= MOST_ATTEMPTS


async def test_a_compacted_etcd(pair: ControlPlane) -> None:
    """The version to go on from is gone everywhere: 410, and everything is listed again."""
    async with observed(pair) as made:
        async with made.writer.writing():
            began = now()
            await pair.compact(restart=False)
            await pair.restart_apiserver(HURT)
            outage = now() - began
            await made.wait_reported(ResourceExpiredError, patience(outage))
        await made.catch_up(patience(outage, waits=2))
        check_attempts(made)


async def test_an_etcd_restored_from_a_backup(pair: ControlPlane) -> None:
    """F-R07: the server would accept a watch from a version it has not reached yet, in silence."""
    transport = Recording(pair)
    async with observed(pair, transport=transport) as made:
        snapshot, present = await pair.snapshot(), dict(made.writer.present)
        # More than the apiservers themselves write while they start.
        await made.writer.write(100)
        await made.catch_up(30)
        began = now()
        await pair.restore(snapshot)
        outage = now() - began
        made.writer.go_back_to(present)
        async with made.writer.writing():
            noticed = await made.wait_reported(ResourceVersionRegressed, patience(outage))
        answers = [one.answered_at for one in transport.asked if one.status == 200]
        assert noticed - next(when for when in answers if when > began) < 10
        await made.catch_up(patience(outage, waits=2))
        assert made.informer.statistics().reflector.regressions == 1
        check_attempts(made)


# One server behind the other.


@contextlib.contextmanager
def lagging(plane: ControlPlane, apiserver: int) -> Generator[None]:
    plane.lag(apiserver, LAG)
    try:
        yield
    finally:
        plane.lag(apiserver, 0)


async def any_version(client: Client) -> int:
    """Return how far an apiserver is by itself, without asking etcd."""
    maps = client.resource("v1/configmaps", namespace="default")
    return int((await maps.list(resource_version="0")).resource_version)


async def test_moving_to_a_lagging_apiserver_never_goes_back_in_time(pair: ControlPlane) -> None:
    """F-R06, F-R08: one server is behind; who comes to it from the other must not notice."""
    fresh, stale = port_of(pair, HEALTHY), port_of(pair, HURT)
    async with (
        Front(fresh) as front,
        observed(pair, port=front.port) as made,
        connect(pair, port=stale) as behind,
    ):
        await any_version(behind)  # connects
        versions: list[int] = []

        def look(_: object) -> bool:
            versions.append(int(made.informer.indexer.resource_version))
            return False

        async with background(made.informer.wait_for(look)):
            with lagging(pair, HURT):
                await made.writer.write(20)
                await made.catch_up(30)
                assert await any_version(behind) < versions[-1]
                moved = now()
                front.move(stale)
                async with made.writer.writing():
                    await made.wait_reported(TransportError, 10, since=moved)
                    await wait_connected(made, patience(LAG))
                    await made.writer.wait_written(20)
                await made.catch_up(patience(LAG))
                async with made.writer.writing():
                    front.move(fresh)
                    await made.writer.wait_written(20)
                await made.catch_up(patience(1, waits=2))
        assert versions == sorted(versions)
        assert made.informer.statistics().reflector.regressions == 0
        check_attempts(made)


async def wait_connected(made: Scene, within: float) -> None:
    """Wait until a watch is open."""
    await eventually_async(lambda: made.informer.statistics().reflector.is_connected, within=within)


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed list", "plain list"])
async def test_an_informer_started_on_a_lagging_apiserver_is_not_behind(
    pair: ControlPlane, streamed: bool
) -> None:
    """F-R08: the first list is a consistent one, however long the server takes for it."""
    async with (
        connect(pair, port=port_of(pair, HEALTHY)) as admin,
        connect(pair, port=port_of(pair, HURT)) as client,
    ):
        namespace = await new_namespace(admin)
        writer = Writer(admin.resource("v1/configmaps", namespace=namespace))
        informer = client.informer(
            "v1/configmaps",
            namespace=namespace,
            options=ReflectorOptions(stream_lists=streamed),
        )
        with lagging(pair, HURT):
            await writer.write(40)
            async with informer:
                await informer.wait_synced(30)
                assert shown(informer) == writer.present
