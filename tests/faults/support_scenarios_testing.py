"""Scenarios of the test tools, each with the conditions after a cancellation."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final

from kinform import ListOptions, Object, ResourceClient, WatchEvent
from kinform.apiserver import APIServer
from kinform.client import Client
from kinform.clock import offload
from kinform.tasks import background
from kinform.testing import FakeListWatch, Relay, ServiceAccount
from kinform.testing.controlplane._raw_api import RawApi
from tests.faults.support_cancelling import Scenario, Scene, Work
from tests.support.transports import open_sockets

__all__ = ["SOCKET_SCENARIOS", "TESTING_SCENARIOS"]

LIMIT: Final = 60.0
UNAUTHENTICATED: Final = "system:unauthenticated"


def maps_of(client: Client) -> ResourceClient[Object]:
    return client.resource("v1/configmaps", namespace="default")


# --- the embedded server


def embedded(*, on_port: bool) -> Scenario:
    """Return a scenario in which a server is started and stopped, with a data file."""

    @contextlib.asynccontextmanager
    async def scenario(_: Scene) -> AsyncGenerator[Work]:
        """Acknowledged writes are in the file, which the next server can open."""
        confirmed: list[str] = []
        port = 0 if on_port else None
        sockets = open_sockets()

        async def write(client: Client) -> None:
            for name in "xyz":
                await maps_of(client).create({"metadata": {"name": name}})
                confirmed.append(name)

        async def work(data: Path) -> None:
            async with contextlib.AsyncExitStack() as clients:  # they outlive the server
                async with APIServer(port=port, data=data) as server:
                    client = await clients.enter_async_context(server.connect())
                    await clients.enter_async_context(maps_of(client).watch())
                    await write(client)

        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder) / "data"
            yield work(data)
            assert open_sockets() == sockets
            async with APIServer(port=None, data=data) as server, server.connect() as client:
                found = [one.name for one in await maps_of(client).list()]
        assert found in (confirmed, [*"xyz"][: len(confirmed) + 1])

    return scenario


# --- a source in memory


def name_of(received: object) -> str:
    assert isinstance(received, WatchEvent)
    return received.metadata.name


@contextlib.asynccontextmanager
async def a_source_in_memory(_: Scene) -> AsyncGenerator[Work]:
    """No watch stays open, and what waits for something is forgotten when it goes."""
    source = FakeListWatch()
    source.latency = 0.01
    for name in "abc":
        source.add({"metadata": {"name": name}})
    seen: list[str] = []

    async def read(version: str) -> None:
        async with source.watch(ListOptions(resource_version=version)) as events:
            seen.append(name_of(await anext(events)))
            async for batch in events.batches():
                seen.extend(map(name_of, batch))

    async def work() -> None:
        async with asyncio.timeout(LIMIT):
            listed = await source.list()
            async with background(read(listed.resource_version)):
                await source.wait_for_requests(2)
                await source.wait_for_watches()
                for name in "ab":
                    source.modify({"metadata": {"name": name}})
                    await asyncio.sleep(0)
                await source.wait_delivered()
            await source.wait_for_watches(0)

    yield work()
    assert seen == [*"ab"][: len(seen)]
    assert not source.open_watches
    assert not source._waiters._waiters


# --- on sockets


class Echo(asyncio.Protocol):
    """A server with scripted responses."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._transport.write(data)


async def echoed(relay: Relay, count: int) -> None:
    """Send so many bytes through a relay and read them again; leave without a farewell."""
    reader, writer = await asyncio.open_connection("127.0.0.1", relay.port)
    try:
        writer.write(bytes(count))
        await reader.readexactly(count)
    finally:
        writer.transport.abort()


@contextlib.asynccontextmanager
async def a_relay(_: Scene) -> AsyncGenerator[Work]:
    """It listens no longer and has cut all connections; it can be opened again."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Echo, "127.0.0.1", 0)
    sockets = open_sockets()
    relay = Relay("127.0.0.1", server.sockets[0].getsockname()[1])

    async def work() -> None:
        async with relay, asyncio.timeout(LIMIT):
            await echoed(relay, 10)
            relay.stall()
            async with background(echoed(relay, 10)):
                while not relay.held_bytes:  # noqa: ASYNC110 - it takes a few turns
                    await asyncio.sleep(0)

    yield work()
    assert relay.connections == 0
    assert open_sockets() == sockets
    relay.resume()
    async with relay, asyncio.timeout(LIMIT):
        await echoed(relay, 10)
    server.close()
    await server.wait_closed()


@contextlib.asynccontextmanager
async def a_service_account(here: Scene) -> AsyncGenerator[Work]:
    """A started operation is completed; a revocation covers all earlier tokens."""
    here.has_others = True
    with tempfile.TemporaryDirectory() as folder:
        async with APIServer(rbac=True) as server, server.connect() as client:
            await let_everybody_in(client)
            account = account_of(server, Path(folder))
            await offload(account.create)

            async def work() -> None:
                await account.token()
                await account.revoke()
                await account.token()

            yield work()
            token = await account.token()
            assert account.token_path.read_text("utf-8") == token
            await account.revoke()
            assert not await client.resource("v1/secrets", namespace="default").list()


async def let_everybody_in(client: Client) -> None:
    group = "rbac.authorization.k8s.io"
    await client.resource(f"{group}/v1/clusterrolebindings").create(
        {
            "metadata": {"name": "unauthenticated"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"apiGroup": group, "kind": "Group", "name": UNAUTHENTICATED}],
        }
    )


def account_of(server: APIServer, folder: Path) -> ServiceAccount:
    from kinform.rest.config import Config

    return ServiceAccount(
        RawApi(int(server.url.rpartition(":")[2])),
        namespace="default",
        name="bot",
        token_path=folder / "token",
        kubeconfig_path=folder / "kubeconfig",
        config=Config(server=server.url, token_file=str(folder / "token")),
    )


TESTING_SCENARIOS: Final[dict[str, Scenario]] = {
    "an embedded server": embedded(on_port=False),
    "a source in memory": a_source_in_memory,
}
SOCKET_SCENARIOS: Final[dict[str, Scenario]] = {
    "an embedded server at a port": embedded(on_port=True),
    "a relay": a_relay,
    "a service account": a_service_account,
}
"""Those that need real sockets, and so real time."""
