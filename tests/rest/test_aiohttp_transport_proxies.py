"""`AiohttpTransport` behind a proxy: tunnels, refusals, and where the password goes."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from kinform.errors import TransportFailure
from kinform.rest.transport.proxy import Proxy
from tests.support.certs import Authority
from tests.support.transports import (
    CANARY,
    NewTransport,
    always,
    at,
    body_of,
    failure_of,
    get,
    transports,
    unused_port,
)
from tests.support.wire import WireConnection, WireRequest, WireServer, answers, reply

OK = reply(200, json={"kind": "Status"})


@pytest.fixture
async def new() -> AsyncIterator[NewTransport]:
    async with transports() as factory:
        yield factory


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def good_tls(authority: Authority) -> ssl.SSLContext:
    return authority.issue("localhost").server_context()


@pytest.fixture
def trust(authority: Authority) -> Callable[[], Awaitable[ssl.SSLContext]]:
    return always(authority.client_context())


async def silent(request: WireRequest, conn: WireConnection) -> None:
    await conn.stall()


async def eof(request: WireRequest, conn: WireConnection) -> None:
    await conn.fin()


async def garbage(request: WireRequest, conn: WireConnection) -> None:
    await conn.write(b"220 mail.example ESMTP\r\n\r\n")
    await conn.stall()


async def tunnel(request: WireRequest, conn: WireConnection) -> None:
    """Be a CONNECT proxy."""
    assert request.method == "CONNECT"
    host, _, port = request.target.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    await conn.head(200)

    async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await source.read(65536):
                sink.write(data)
                await sink.drain()
        sink.close()

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(pump(conn.reader, writer))
            group.create_task(pump(reader, conn.writer))
    finally:
        writer.close()


async def test_https_goes_through_a_tunnel_and_the_proxy_sees_no_header(
    new: NewTransport, good_tls: ssl.SSLContext, trust: Callable[[], Awaitable[ssl.SSLContext]]
) -> None:
    async with WireServer(tunnel) as proxy, WireServer(answers(then=OK), tls=good_tls) as server:
        via = Proxy(proxy.url, "Basic cHJveHk6cHc=")
        transport = new(tls=trust, proxy=via)
        request = get(server, headers={"Authorization": f"Bearer {CANARY}"})
        assert await body_of(transport, request) == OK.body
        assert await body_of(transport, request) == OK.body
        await transport.aclose()
    assert len(proxy.requests) == 1
    assert proxy.requests[0].target == f"localhost:{server.port}"
    assert proxy.requests[0].headers["proxy-authorization"] == "Basic cHJveHk6cHc="
    assert CANARY.encode() not in proxy.requests[0].head
    assert "proxy-authorization" not in server.requests[0].headers
    assert len(server.connections) == 1


async def test_proxy_may_speak_tls_itself(
    new: NewTransport, good_tls: ssl.SSLContext, trust: Callable[[], Awaitable[ssl.SSLContext]]
) -> None:
    async with (
        WireServer(tunnel, tls=good_tls) as proxy,
        WireServer(answers(OK), tls=good_tls) as server,
    ):
        transport = new(tls=trust, proxy=Proxy(proxy.url))
        assert await body_of(transport, get(server)) == OK.body
        await transport.aclose()


async def test_http_is_given_to_the_proxy_whole(new: NewTransport) -> None:
    async with WireServer(answers(OK)) as proxy:
        transport = new(proxy=Proxy(proxy.url, "Basic cHJveHk6cHc="))
        assert await body_of(transport, at("http://api.example/x")) == OK.body
    assert proxy.requests[0].target == "http://api.example/x"
    assert proxy.requests[0].headers["proxy-authorization"] == "Basic cHJveHk6cHc="


async def test_certificate_is_checked_through_a_tunnel(
    new: NewTransport, good_tls: ssl.SSLContext
) -> None:
    other = always(Authority("another").client_context())
    async with WireServer(tunnel) as proxy, WireServer(answers(), tls=good_tls) as server:
        transport = new(tls=other, proxy=Proxy(proxy.url))
        error = await failure_of(transport, get(server), match="unknown authority")
    assert error.failure is TransportFailure.TLS
    assert f"localhost:{server.port}" in error.message


async def refuse(request: WireRequest, conn: WireConnection) -> None:
    await conn.send(407, {"Proxy-Authenticate": "Basic"})


async def forbid(request: WireRequest, conn: WireConnection) -> None:
    await conn.send(403)


@pytest.mark.parametrize(
    "handler, words",
    [
        (refuse, r"proxy 127\.0\.0\.1:\d+ wants a user name and password \(407\)"),
        (forbid, r"would not connect to api\.example:443: it answered 403"),
        (eof, r"broke off instead of connecting to api\.example:443"),
        (garbage, "broke off instead of connecting"),
    ],
    ids=["407", "403", "eof", "garbage"],
)
async def test_proxy_that_does_not_connect(
    new: NewTransport,
    handler: Callable[[WireRequest, WireConnection], Awaitable[None]],
    words: str,
) -> None:
    async with WireServer(handler) as proxy:
        transport = new(proxy=Proxy(proxy.url, f"Basic {CANARY}"))
        error = await failure_of(transport, at("https://api.example/"), match=words)
        await transport.aclose()
        await proxy.wait_all_gone()
    assert error.failure is TransportFailure.PROXY


async def test_proxy_password_wanted_for_plain_http(new: NewTransport) -> None:
    async with WireServer(refuse) as proxy:
        transport = new(proxy=Proxy(proxy.url))
        error = await failure_of(transport, at("http://api.example/"), match="407")
    assert error.failure is TransportFailure.PROXY


async def test_proxy_that_does_not_listen(new: NewTransport) -> None:
    port = unused_port()
    transport = new(proxy=Proxy(f"http://127.0.0.1:{port}", f"Basic {CANARY}"))
    error = await failure_of(
        transport, at("https://api.example/"), match=f"proxy 127.0.0.1:{port} refused"
    )
    assert error.failure is TransportFailure.PROXY


async def test_proxy_that_says_nothing(new: NewTransport) -> None:
    async with WireServer(silent) as proxy:
        transport = new(proxy=Proxy(proxy.url), connect_timeout=0.05)
        error = await failure_of(
            transport,
            at("https://api.example/"),
            match=r"no connection to api\.example:443 through proxy 127\.0\.0\.1:\d+ within",
        )
        await proxy.wait_all_gone()
    assert error.failure is TransportFailure.CONNECT_TIMEOUT


async def test_unknown_proxy(new: NewTransport) -> None:
    transport = new(proxy=Proxy("http://no-such-proxy.invalid:3128"))
    error = await failure_of(
        transport, at("https://api.example/"), match=r"no address for proxy no-such-proxy\.invalid"
    )
    assert error.failure is TransportFailure.DNS
