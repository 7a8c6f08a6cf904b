"""The embedded server is for this machine's programs, not for web pages that reach it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

import kinform
from kinform.apiserver import APIServer
from kinform.apiserver.http import refusal

PATHS = ["/version", "/readyz", "/api/v1/namespaces", "/~{token}/api/v1/namespaces", "/"]


@pytest.fixture
async def server() -> AsyncIterator[APIServer]:
    async with APIServer() as running:
        yield running


async def ask(
    server: APIServer, path: str, *headers: str, method: str = "GET"
) -> tuple[int, bytes]:
    """Send a request with these headers alone, and return code and answer."""
    port = int(server.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    path = path.format(token=server.token)
    lines = [f"{method} {path} HTTP/1.1", *headers, "Connection: close", "", ""]
    writer.write("\r\n".join(lines).encode())
    async with asyncio.timeout(10):
        answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return int(answer.split()[1]), answer


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "host",
    [
        "rebound.example",
        "rebound.example:80",
        "127.0.0.1.rebound.example",
        "localhost.rebound.example",
        "127.0.0.1@rebound.example",
        "10.0.0.1",
        "0.0.0.0",
        "[::ffff:10.0.0.1]",
        "[::1",
    ],
)
async def test_a_name_that_was_made_to_lead_here_gets_nothing(
    server: APIServer, host: str, path: str
) -> None:
    """DNS rebinding: the browser takes the page's own name for ours, and would show the answer."""
    credential = f"Authorization: Bearer {server.token}"
    code, answer = await ask(server, path, f"Host: {host}", credential)
    assert code in {400, 403}
    assert b"default" not in answer
    if code == 403:
        status = json.loads(answer.partition(b"\r\n\r\n")[2])
        assert (status["kind"], status["reason"]) == ("Status", "Forbidden")


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "OPTIONS"])
@pytest.mark.parametrize(
    "origin", ["https://page.example", "null", "http://localhost:3000", "file://", ""]
)
async def test_a_web_page_of_another_origin_gets_nothing(
    server: APIServer, origin: str, method: str
) -> None:
    port = server.url.rpartition(":")[2]
    head = (f"Host: localhost:{port}", f"Origin: {origin}", f"Authorization: Bearer {server.token}")
    code, answer = await ask(server, "/api/v1/namespaces", *head, method=method)
    assert code == 403
    assert b"access-control-allow" not in answer.lower()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]", "a.localhost"])
async def test_programs_of_this_machine_are_answered(server: APIServer, host: str) -> None:
    port = server.url.rpartition(":")[2]
    credential = f"Authorization: Bearer {server.token}"
    for headers in ((f"Host: {host}",), (f"Host: {host}:{port}", f"Origin: http://{host}:{port}")):
        code, answer = await ask(server, "/api/v1/namespaces", *headers, credential)
        assert code == 200
        assert b"access-control-allow" not in answer.lower()


async def test_nothing_but_health_and_version_is_told_without_the_token(server: APIServer) -> None:
    host = "Host: localhost"
    for path in ("/api", "/apis", "/openapi/v2", "/api/v1/secrets", "/~wrong/api", "/~/api", "/"):
        assert (await ask(server, path, host))[0] == 401
        assert (await ask(server, path, host, "Authorization: Bearer wrong"))[0] == 401
    for path in ("/version", "/livez", "/readyz"):
        assert (await ask(server, path, host))[0] == 200


def test_a_refusal_needs_no_host_and_no_origin() -> None:
    assert refusal({}) is None
    assert refusal({"Origin": "http://localhost"}) is not None


async def test_a_client_reads_the_answer_however_many_warnings_there_are(
    server: APIServer,
) -> None:
    """Clients refuse answers with too many headers: aiohttp's accepts 128."""
    warnings: list[str] = []
    config = kinform.Config(server=server.url, token=server.token)
    unknown = {f"f{number}": 1 for number in range(500)}
    async with kinform.connect(
        config, warning_handler=lambda warning: warnings.append(warning.text)
    ) as client:
        maps = client.resource("v1/configmaps", namespace="default")
        created = await maps.create({"metadata": {"name": "a"}, **unknown})

    assert created.name == "a"
    assert warnings == [f'unknown field "f{number}"' for number in range(100)]
