"""Bodies sent to the embedded server: read from authenticated clients only, and in limited time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from kinform.apiserver import APIServer
from kinform.apiserver.endpoints.messages import BODY_LIMIT
from kinform.apiserver.http import HttpServer

MAPS = "/api/v1/namespaces/default/configmaps"


@asynccontextmanager
async def posted(
    port: int, path: str, *, token: str = "", sent: bytes, method: str = "POST"
) -> AsyncGenerator[asyncio.StreamReader]:
    """Send the head of a request with a body of 3 MiB, and ``sent`` of that body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Content-Length: {BODY_LIMIT}"]
    head += [f"Authorization: Bearer {token}"] if token else []
    try:
        writer.write("\r\n".join([*head, "", ""]).encode() + sent)
        yield reader
    finally:
        writer.close()


async def answer_of(reader: asyncio.StreamReader) -> tuple[int, dict[str, object]]:
    async with asyncio.timeout(10):
        head = await reader.readuntil(b"\r\n\r\n")
        fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:-2])
        body = await reader.readexactly(int(fields[b"Content-Length"]))
    return int(head.split()[1]), json.loads(body)


@pytest.mark.parametrize("rbac", [False, True])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("token", ["", "wrong"])
async def test_a_client_without_a_valid_token_is_refused_before_it_sends_its_body(
    method: str, token: str, rbac: bool
) -> None:
    async with APIServer(rbac=rbac) as server:
        port = int(server.url.rpartition(":")[2])
        async with posted(port, f"{MAPS}/a", token=token, sent=b"", method=method) as reader:
            code, body = await answer_of(reader)

    is_anonymous = rbac and not token  # the real server, too, knows system:anonymous
    assert code == body["code"] == (403 if is_anonymous else 401)


@pytest.mark.parametrize("path", ["/version", "/readyz"])
async def test_a_body_is_not_awaited_where_everyone_may_read(path: str) -> None:
    async with APIServer() as server:
        port = int(server.url.rpartition(":")[2])
        async with posted(port, path, sent=b"", method="GET") as reader:
            async with asyncio.timeout(10):
                assert b" 200 " in await reader.readline()
        async with posted(port, path, sent=b"") as reader, asyncio.timeout(10):
            assert await reader.readline()


@pytest.mark.slow
async def test_a_body_that_is_not_sent_in_time_ends_the_request() -> None:
    async with APIServer() as server:
        door = HttpServer(server.application, body_timeout=0.1)
        port = await door.start()
        try:
            async with posted(port, MAPS, token=server.token, sent=b'{"kind":') as reader:
                code, body = await answer_of(reader)
                reason = (code, body["reason"], body["message"])
                async with asyncio.timeout(10):
                    assert await reader.read() == b""  # the connection is closed
        finally:
            await door.stop()

    timeout = "Timeout: request did not complete within the allotted duration"
    assert reason == (504, "Timeout", timeout)


async def test_a_client_whose_body_comes_slowly_but_in_time_is_answered() -> None:
    body = json.dumps({"metadata": {"name": "a"}, "data": {"a": "x" * 2000}}).encode()
    async with APIServer() as server:
        port = int(server.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = [f"POST {MAPS} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}"]
        head += [f"Authorization: Bearer {server.token}", "Content-Type: application/json"]
        writer.write("\r\n".join([*head, "", ""]).encode())
        for at in range(0, len(body), 500):
            writer.write(body[at : at + 500])
            await writer.drain()
        code, _ = await answer_of(reader)
        writer.close()
    assert code == 201


@pytest.mark.slow
@pytest.mark.parametrize("refused", ["no token", "wrong token", "foreign host"])
async def test_a_client_that_is_refused_and_does_not_send_its_body_is_disconnected(
    refused: str,
) -> None:
    """Not even one that goes on to send a little keeps its connection."""
    async with APIServer() as server:
        port = int(server.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        host = "rebound.example" if refused == "foreign host" else "localhost"
        head = [f"POST {MAPS} HTTP/1.1", f"Host: {host}", f"Content-Length: {BODY_LIMIT}"]
        token = {"no token": "", "wrong token": "wrong"}.get(refused, server.token)
        head += [f"Authorization: Bearer {token}"] if token else []
        writer.write("\r\n".join([*head, "", ""]).encode() + b"x" * (BODY_LIMIT - 100))
        try:
            code, _ = await answer_of(reader)
            writer.write(b"x")
            async with asyncio.timeout(10):
                rest = await reader.read()
        finally:
            writer.close()

    assert (code, rest) == (403 if refused == "foreign host" else 401, b"")
