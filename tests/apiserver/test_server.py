"""The server as people use it: start, connect, stop, and clients that misbehave."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
import yaml

import kinform
from kinform.apiserver import APIServer
from kinform.apiserver.http import HttpServer
from kinform.errors import NotFoundError, UnauthorizedError, UsageError
from kinform.testing import in_virtual_time


@pytest.fixture
async def server() -> AsyncIterator[APIServer]:
    async with APIServer() as running:
        yield running


async def ask(server: APIServer, target: str, *, method: str = "GET", body: bytes = b"") -> bytes:
    """Send one request by hand and return all that comes back."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]))
    head = (
        f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        f"Authorization: Bearer {server.token}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


async def test_each_server_has_a_token_of_its_own(server: APIServer) -> None:
    assert len(server.token) >= 32
    assert server.token != APIServer().token
    unknown = kinform.Config(server=server.url, token="guessed")
    async with kinform.connect(unknown) as client:
        with pytest.raises(UnauthorizedError):
            await client.resource("v1/namespaces").list()


async def test_a_kubeconfig_is_all_that_a_client_needs(server: APIServer, tmp_path) -> None:
    path = tmp_path / "config"
    path.write_text(server.kubeconfig(), encoding="utf-8")
    async with kinform.connect(path) as client:
        assert "default" in [
            ns.metadata.name for ns in await client.resource("v1/namespaces").list()
        ]
    (cluster,) = yaml.safe_load(server.kubeconfig())["clusters"]
    assert server.token in cluster["cluster"]["server"]


async def test_no_error_shows_the_token_that_is_in_the_url_of_a_kubeconfig(
    server: APIServer, tmp_path
) -> None:
    """It is there for kubectl; we send the header, and the URL is in every error."""
    path = tmp_path / "config"
    path.write_text(server.kubeconfig(), encoding="utf-8")
    async with kinform.connect(path) as client:
        with pytest.raises(NotFoundError) as caught:
            await client.resource("v1/namespaces").get("nowhere")
        assert server.token not in f"{caught.value} {caught.value!r} {caught.value.args!r}"
        assert client.config.server == server.url


async def test_a_token_in_the_path_counts_and_a_wrong_one_does_not(server: APIServer) -> None:
    async with kinform.connect(f"{server.url}/~{server.token}") as client:
        assert (await client.resource("v1/namespaces").get("default")).metadata.name == "default"
    async with kinform.connect(f"{server.url}/~wrong") as client:
        with pytest.raises(UnauthorizedError):
            await client.resource("v1/namespaces").get("default")


async def test_health_needs_no_token(server: APIServer) -> None:
    server.token = ""
    assert (await ask(server, "/readyz")).endswith(b"ok")
    assert b" 401 " in (await ask(server, "/api/v1/pods")).partition(b"\r\n")[0]


async def test_a_request_that_cannot_be_read_is_not_quoted_in_the_log(
    server: APIServer, caplog: pytest.LogCaptureFixture
) -> None:
    port = int(server.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET /~{server.token}/ a b c\r\nHost: localhost\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    assert b" 400 " in answer.partition(b"\r\n")[0]
    assert server.token not in caplog.text
    assert all(not record.exc_info for record in caplog.records)


async def test_it_listens_on_one_loopback_address_only(server: APIServer) -> None:
    """A server that listens on all addresses is reached at each of them, this one included."""
    port = int(server.url.rpartition(":")[2])
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.2", port)


async def test_a_server_is_started_once() -> None:
    server = APIServer(port=None)
    with pytest.raises(UsageError, match="is not started"):
        _ = server.application
    async with server:
        pass
    with pytest.raises(UsageError, match="once"):
        async with server:
            pass


async def test_a_body_of_more_than_three_mebibytes_is_refused_and_not_read(
    server: APIServer,
) -> None:
    body = json.dumps({"metadata": {"name": "a"}, "data": {"k": "x" * (4 << 20)}}).encode()
    path = "/api/v1/namespaces/default/configmaps"
    answer = await ask(server, path, method="POST", body=body)
    assert b" 413 " in answer.partition(b"\r\n")[0]


async def test_an_unread_watch_is_closed_and_costs_nothing(server: APIServer) -> None:
    """The server keeps no queue for it, and after a while not even the connection."""
    door = HttpServer(server.application, patience=0.2)
    port = await door.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    path = "/api/v1/namespaces/default/configmaps?watch=true&resourceVersion=0"
    head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n\r\n"
    writer.write(head.encode())
    await reader.readuntil(b"\r\n\r\n")
    connection = writer.transport
    assert isinstance(connection, asyncio.Transport)
    connection.pause_reading()
    listeners = server.cluster.storage.table("configmaps")._listeners
    assert len(listeners) == 1
    async with server.connect() as client:
        configmaps = client.resource("v1/configmaps")
        for number in range(40):
            data = {"k": "x" * 500_000}
            await configmaps.create({"metadata": {"name": f"c{number}"}, "data": data})
        async with asyncio.timeout(20):
            while listeners:
                await configmaps.list(limit=1)
    writer.close()
    await door.stop()


@in_virtual_time
async def test_without_sockets_it_works_under_virtual_time() -> None:
    async with APIServer(port=None, seed=1) as server, server.connect() as client:
        informer = client.informer("v1/configmaps")
        async with informer:
            await informer.wait_synced(5)
            created = await client.resource("v1/configmaps").create({"metadata": {"name": "a"}})
            await asyncio.sleep(3600)  # bookmarks, time-outs and new watches
            assert informer.lister.namespace("default").get("a") == created
        with pytest.raises(UsageError, match="has no port"):
            _ = server.url


@in_virtual_time
async def test_ages_in_the_table_of_a_watch_are_those_of_the_moment() -> None:
    async with APIServer(port=None) as server, server.connect() as client:
        configmaps = client.resource("v1/configmaps")
        await configmaps.create({"metadata": {"name": "a"}})
        table = "application/json;as=Table;v=v1;g=meta.k8s.io"
        request = client.rest("v1").get().namespace("default").resource("configmaps")
        request = request.params({"watch": "true"}).header("Accept", table)
        async with request.stream() as response:
            ages = []
            for _ in range(2):
                event = json.loads(await response.read_some())
                ages.append(event["object"]["rows"][0]["cells"][-1])
                await asyncio.sleep(90)
                await configmaps.patch("a", {"data": {"k": "v"}})
    assert ages == ["0s", "90s"]


async def test_the_same_seed_gives_the_same_names_and_uids() -> None:
    async def made() -> tuple[str, str]:
        async with APIServer(port=None, seed=7) as server, server.connect() as client:
            body = {"metadata": {"generateName": "a-"}}
            created = await client.resource("v1/configmaps").create(body)
            return created.metadata.name, created.metadata.uid

    assert await made() == await made()
