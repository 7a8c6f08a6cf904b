"""`AiohttpTransport` on real loopback sockets: what it sends, reads, keeps and frees."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gzip
import socket
import ssl
from collections.abc import AsyncIterator

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from kinform.errors import TransportError, TransportFailure, UsageError
from kinform.rest.transport import Chunk, HttpRequest
from kinform.rest.transport.aiohttp_transport import AiohttpTransport
from tests.support.certs import Authority
from tests.support.transports import (
    NewTransport,
    body_of,
    client_sockets,
    full_backlog,
    get,
    post,
    transports,
)
from tests.support.wire import WireConnection, WireRequest, WireServer, answers, reply

OK = reply(200, json={"kind": "Status"})


@pytest.fixture
async def new() -> AsyncIterator[NewTransport]:
    async with transports() as factory:
        yield factory


# --- what is sent -----------------------------------------------------------------------------


async def test_url_and_headers_are_sent_as_they_are_and_none_is_invented(new: NewTransport) -> None:
    path = "/api/v1/a%2Fb/%C3%A9?labelSelector=a%3Db%2Cc&x=1+2%20"
    headers = {"User-Agent": "kinform/0", "Accept": "application/json", "X-Twice": "a"}
    async with WireServer(answers(OK)) as server:
        await body_of(new(), get(server, path, headers=headers))
    request = server.requests[0]
    assert request.target == path
    assert {**request.headers} == {
        "host": f"127.0.0.1:{server.port}",
        "user-agent": "kinform/0",
        "accept": "application/json",
        "x-twice": "a",
    }


async def test_no_cookie_is_kept(new: NewTransport) -> None:
    cookie = reply(200, headers={"Set-Cookie": "session=1"})
    async with WireServer(answers(cookie, OK)) as server:
        transport = new()
        for _ in range(2):  # by name: for addresses even a cookie jar keeps none
            url = f"http://localhost:{server.port}/"
            await body_of(transport, HttpRequest(method="GET", url=url))
    assert "cookie" not in server.requests[1].headers


async def test_credentials_in_the_url_are_neither_sent_nor_shown(new: NewTransport) -> None:
    async with WireServer(answers(OK, reply(302, headers={"Location": "/"}))) as server:
        url = server.url.replace("://", "://admin:canary@")
        transport = new()
        await body_of(transport, HttpRequest(method="GET", url=url))
        with pytest.raises(TransportError) as caught:
            await body_of(transport, HttpRequest(method="GET", url=url))
    assert "authorization" not in server.requests[0].headers
    assert "canary" not in str(caught.value) + repr(caught.value)


@pytest.mark.parametrize("size", [0, 2, 3_000_000], ids=["empty", "small", "3 MB"])
async def test_known_body_is_sent_with_its_length(new: NewTransport, size: int) -> None:
    async with WireServer(answers(OK)) as server:
        await body_of(new(), post(server, b"x" * size))
    assert server.requests[0].body == b"x" * size
    assert server.requests[0].headers["content-length"] == str(size)


async def test_streamed_body_is_sent_in_chunks_and_empty_pieces_do_not_end_it(
    new: NewTransport,
) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for piece in (b"one", b"", b"two"):
            yield piece

    async with WireServer(answers(OK)) as server:
        await body_of(new(), post(server, pieces()))
    assert server.requests[0].body == b"onetwo"
    assert server.requests[0].headers["transfer-encoding"] == "chunked"


async def test_what_a_streamed_body_raises_passes_unchanged(new: NewTransport) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"one"
        raise LookupError("mine")

    async with WireServer(answers()) as server:
        with pytest.raises(LookupError, match="mine"):
            await body_of(new(), post(server, pieces()))
        await server.wait_all_gone()
    assert not server.requests


async def test_answer_to_an_unfinished_body_is_given_and_the_body_dropped(
    new: NewTransport,
) -> None:
    """A server may refuse (413) before it has read everything."""
    dropped: list[bool] = []

    async def pieces() -> AsyncIterator[bytes]:
        yield b"one"
        try:
            await asyncio.Event().wait()
        finally:
            dropped.append(True)

    async def refuse(conn: WireConnection) -> None:
        await conn.reader.readuntil(b"one")
        await conn.send(413)
        await conn.stall()

    async with WireServer(on_connect=refuse) as server:
        async with new().send(post(server, pieces())) as response:
            assert response.status == 413
            assert not dropped
        assert dropped
        await server.wait_all_gone()


async def test_header_with_a_line_break_is_a_usage_error_that_hides_the_value(
    new: NewTransport,
) -> None:
    async with WireServer(answers()) as server:
        request = get(server, headers={"Authorization": "Bearer canary\n"})
        with pytest.raises(UsageError, match="'Authorization' holds a control character") as caught:
            await body_of(new(), request)
    assert "canary" not in repr(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("url", ["no-scheme/x", "http:///path", "http://u:canary@[::1", "ftp://h/"])
async def test_unusable_url_is_a_usage_error(new: NewTransport, url: str) -> None:
    with pytest.raises(UsageError, match="URL") as caught:
        await body_of(new(), HttpRequest(method="GET", url=url))
    assert "canary" not in str(caught.value)


# --- what is read -----------------------------------------------------------------------------


async def test_headers_ignore_case_and_repeated_ones_are_joined(new: NewTransport) -> None:
    async def handler(request: WireRequest, conn: WireConnection) -> None:
        await conn.write(
            b"HTTP/1.1 200 OK\r\nWarning: 299 - a\r\nContent-Length: 0\r\nwarning: 299 - b\r\n\r\n"
        )

    async with WireServer(handler) as server, new().send(get(server)) as response:
        assert response.headers["WARNING"] == "299 - a, 299 - b"
        assert response.headers.get("x-none") is None
        assert list(response.headers) == ["Warning", "Content-Length"]


async def chunks_of(transport: AiohttpTransport, request: HttpRequest) -> list[bytes]:
    """Return the HTTP chunks, put together from what `iter_chunks` yields."""
    chunks, current = [], b""
    async with transport.send(dataclasses.replace(request, shows_chunks=True)) as response:
        async for piece, ends in response.iter_chunks():
            current += piece
            if ends:
                chunks.append(current)
                current = b""
    assert not current
    return chunks


async def test_iter_chunks_shows_exactly_the_chunks_the_server_sent(new: NewTransport) -> None:
    sent = [b"a", b"bb" * 40_000, b"c" * 7, b"\n" * 300_000, b"e"]

    async def handler(request: WireRequest, conn: WireConnection) -> None:
        await conn.chunked()
        await conn.chunk(sent[0])
        await conn.write(b"".join(b"%x\r\n%b\r\n" % (len(data), data) for data in sent[1:]))
        await conn.end_chunks()

    async with WireServer(handler) as server:
        transport = new()
        assert await chunks_of(transport, get(server)) == sent
        assert await body_of(transport, get(server)) == b"".join(sent)


async def test_iter_chunks_of_a_plain_body_shows_no_ends(new: NewTransport) -> None:
    async with (
        WireServer(answers(reply(200, body=b"abc"))) as server,
        new().send(get(server)) as response,
    ):
        chunks: list[Chunk] = [chunk async for chunk in response.iter_chunks()]
    assert chunks == [(b"abc", False)]


async def test_iter_bytes_gives_many_chunks_of_one_network_read_at_once(new: NewTransport) -> None:
    """The hot path: one await per read, not per HTTP chunk."""

    async def handler(request: WireRequest, conn: WireConnection) -> None:
        await conn.chunked()
        await conn.write(b"2\r\nab\r\n" * 1000)
        await conn.end_chunks()

    async with WireServer(handler) as server, new().send(get(server)) as response:
        pieces = [piece async for piece in response.iter_bytes()]
    assert b"".join(pieces) == b"ab" * 1000
    assert len(pieces) < 10
    assert all(pieces)


async def test_bytes_arrive_before_the_body_ends(new: NewTransport) -> None:
    async def handler(request: WireRequest, conn: WireConnection) -> None:
        await conn.chunked()
        await conn.chunk(b"first")
        await conn.stall()

    async with (
        WireServer(handler) as server,
        new().send(get(server, long_lived=True)) as response,
        contextlib.aclosing(response.iter_bytes()) as pieces,
    ):
        assert await anext(pieces) == b"first"


@pytest.mark.parametrize("way", ["iter_bytes", "iter_chunks", "read"])
async def test_every_member_of_a_gzip_body_is_read(new: NewTransport, way: str) -> None:
    lines = [b'{"type":"ADDED"}\n', b'{"type":"MODIFIED"}\n' * 100]
    members = [gzip.compress(line) for line in lines]

    async def handler(request: WireRequest, conn: WireConnection) -> None:
        await conn.chunked(headers={"Content-Encoding": "gzip"})
        for member in members:
            await conn.chunk(member)
        await conn.end_chunks()

    async with WireServer(handler) as server:
        transport = new()
        if way == "read":
            assert await body_of(transport, get(server)) == b"".join(lines)
        elif way == "iter_chunks":
            assert await chunks_of(transport, get(server)) == lines
        else:
            async with transport.send(get(server)) as response:
                assert b"".join([p async for p in response.iter_bytes()]) == b"".join(lines)


@pytest.mark.parametrize("method", ["HEAD", "GET"])
async def test_gzip_answer_without_a_body_is_no_error(new: NewTransport, method: str) -> None:
    answer = reply(204 if method == "GET" else 200, headers={"Content-Encoding": "gzip"})
    async with WireServer(answers(answer)) as server:
        request = HttpRequest(method=method, url=server.url)
        assert await body_of(new(), request) == b""


async def test_read_stops_at_its_limit(new: NewTransport) -> None:
    async with WireServer(answers(*[reply(200, body=b"x" * 100)] * 2)) as server:
        transport = new()
        async with transport.send(get(server)) as response:
            assert len(await response.read(limit=100)) == 100
        async with transport.send(get(server)) as response:
            with pytest.raises(TransportError, match="longer than 99 bytes") as caught:
                await response.read(limit=99)
    assert caught.value.failure is TransportFailure.PROTOCOL


async def test_body_may_end_with_the_connection(new: NewTransport) -> None:
    """HTTP/1.0 servers and some proxies give neither length nor chunks."""

    async def handler(request: WireRequest, conn: WireConnection) -> None:
        await conn.write(b"HTTP/1.0 200 OK\r\n\r\nhello")
        await conn.fin()

    async with WireServer(handler) as server:
        assert await body_of(new(), get(server)) == b"hello"


async def test_304_is_an_answer_not_a_redirect(new: NewTransport) -> None:
    async with WireServer(answers(reply(304))) as server, new().send(get(server)) as response:
        assert response.status == 304


# --- the pool ---------------------------------------------------------------------------------


async def test_connection_is_used_again(new: NewTransport) -> None:
    async with WireServer(answers(then=OK)) as server:
        transport = new()
        for _ in range(5):
            await body_of(transport, get(server))
    assert len(server.connections) == 1


async def test_connection_is_used_again_although_a_small_body_was_not_read(
    new: NewTransport,
) -> None:
    async with WireServer(answers(then=OK)) as server:
        transport = new()
        for _ in range(3):
            async with transport.send(get(server)) as response:
                assert response.status == 200
    assert len(server.connections) == 1


async def test_new_tls_context_means_a_new_connection(new: NewTransport) -> None:
    authority = Authority()
    server_tls = authority.issue("localhost").server_context()
    contexts = [authority.client_context(), authority.client_context()]
    order = [contexts[0], contexts[0], contexts[1], contexts[1]]

    async def provide() -> ssl.SSLContext:
        return order.pop(0)

    async with WireServer(answers(then=OK), tls=server_tls) as server:
        transport = new(tls=provide)
        for _ in range(4):
            await body_of(transport, get(server))
    assert [request.connection for request in server.requests] == [0, 0, 1, 1]


@pytest.mark.slow
async def test_150_watches_leave_room_for_a_get(new: NewTransport) -> None:
    async def handler(request: WireRequest, conn: WireConnection) -> None:
        if request.path == "/get":
            await conn.reply(OK)
            return
        await conn.chunked()
        await conn.stall()

    async with WireServer(handler) as server, contextlib.AsyncExitStack() as watches:
        transport = new(max_requests=1)
        for _ in range(150):
            watch = transport.send(get(server, "/watch", long_lived=True, read_timeout=None))
            await watches.enter_async_context(watch)
        assert await body_of(transport, get(server, "/get")) == OK.body
        assert len(server.open_connections) == 151


async def test_ordinary_requests_wait_in_line(new: NewTransport) -> None:
    release = asyncio.Event()

    async def handler(request: WireRequest, conn: WireConnection) -> None:
        await release.wait()
        await conn.reply(OK)

    async with WireServer(handler) as server, asyncio.TaskGroup() as group:
        transport = new(max_requests=2)
        for _ in range(5):
            group.create_task(body_of(transport, get(server)))
        await server.wait_requests(2)
        assert len(server.requests) == 2
        release.set()
        await server.wait_requests(5)
    assert len(server.connections) == 2


async def test_waiting_in_line_has_an_end(new: NewTransport) -> None:
    async def handler(request: WireRequest, conn: WireConnection) -> None:
        await conn.chunked()
        await conn.stall()

    async with WireServer(handler) as server:
        transport = new(max_requests=1, queue_timeout=0.02)
        async with transport.send(get(server)):
            with pytest.raises(
                TransportError, match=r"0\.02 s: 1 requests are under way"
            ) as caught:
                await body_of(transport, get(server))
            assert len(server.requests) == 1
    assert caught.value.failure is TransportFailure.CONNECT_TIMEOUT


async def test_failed_requests_give_their_place_back(new: NewTransport) -> None:
    async with WireServer(
        answers(reply(301), reply(200, headers={"Content-Encoding": "br"}))
    ) as server:
        transport = new(max_requests=1, queue_timeout=0.02)
        for failure in (TransportFailure.REDIRECT, TransportFailure.PROTOCOL):
            with pytest.raises(TransportError) as caught:
                await body_of(transport, get(server))
            assert caught.value.failure is failure


async def test_sockets_are_kept_alive(new: NewTransport) -> None:
    wanted = {
        "TCP_KEEPIDLE": 30,
        "TCP_KEEPINTVL": 10,
        "TCP_KEEPCNT": 3,
        "TCP_USER_TIMEOUT": 30_000,
        "TCP_NODELAY": 1,
    }
    async with WireServer(answers(OK)) as server:
        await body_of(new(), get(server))
        with client_sockets(server) as [sock]:
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            options = {name: getattr(socket, name) for name in wanted}
            seen = {name: sock.getsockopt(socket.IPPROTO_TCP, o) for name, o in options.items()}
    assert seen == wanted


class Addresses(AbstractResolver):
    """Knows the same addresses for every name."""

    def __init__(self, *hosts: str) -> None:
        self._hosts = hosts

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [
            ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)
            for address in self._hosts
        ]

    async def close(self) -> None:
        pass


async def get_at(transport: AiohttpTransport, port: int, *addresses: str) -> bytes:
    connector = transport._connect().session.connector
    connector._resolver = Addresses(*addresses)  # type: ignore[union-attr]
    return await body_of(transport, HttpRequest(method="GET", url=f"http://api.example:{port}/"))


async def test_next_address_is_tried_if_the_first_refuses(new: NewTransport) -> None:
    async with WireServer(answers(OK)) as server:
        assert await get_at(new(), server.port, "127.0.0.9", "127.0.0.1") == OK.body


@pytest.mark.slow
async def test_next_address_is_tried_if_the_first_is_silent(new: NewTransport) -> None:
    """Happy eyeballs (F-R13): long before the connect deadline."""
    async with WireServer(answers(OK)) as server:
        with full_backlog("127.0.0.9", server.port):
            async with asyncio.timeout(5):
                assert await get_at(new(), server.port, "127.0.0.9", "127.0.0.1") == OK.body


# --- guards -----------------------------------------------------------------------------------


async def test_a_guard_is_asked_once_there_is_a_connection_and_nothing_is_sent_if_it_refuses(
    new: NewTransport,
) -> None:
    asked: list[int] = []

    def guard() -> None:
        asked.append(len(server.requests))
        if len(asked) in {2, 4}:
            raise PermissionError("no more")

    async with WireServer(answers(OK, OK, OK)) as server:
        transport = new()
        request = HttpRequest(method="PUT", url=server.url, body=b"{}", guard=guard)
        await body_of(transport, request)
        with pytest.raises(PermissionError, match="no more"):
            await body_of(transport, request)  # on the connection that was kept
        await body_of(transport, request)
        with pytest.raises(PermissionError, match="no more"):
            await body_of(new(), request)  # on a fresh one
        await body_of(transport, request)
    assert asked == [0, 1, 1, 2, 2]
    assert len(server.requests) == 3


async def test_refused_writes_leave_no_connection_behind(new: NewTransport) -> None:
    def refuse() -> None:
        raise PermissionError("no")

    async with WireServer(answers(OK)) as server:
        transport = new()
        request = HttpRequest(method="DELETE", url=server.url, guard=refuse)
        for body in (None, b"{}"):
            for _ in range(10):
                with pytest.raises(PermissionError):
                    await body_of(transport, dataclasses.replace(request, body=body))
        async with asyncio.timeout(10):
            while open_sockets(server):  # noqa: ASYNC110 - the loop closes the last one
                await asyncio.sleep(0)
    assert not server.requests


def open_sockets(server: WireServer) -> int:
    with client_sockets(server) as left:
        return len(left)


async def test_what_is_long_lived_waits_for_no_place(new: NewTransport) -> None:
    async with WireServer(answers(OK, OK)) as server:
        transport = new(max_requests=1)
        async with transport.send(get(server, "/a")):
            urgent = HttpRequest(method="PUT", url=server.url, body=b"{}", long_lived=True)
            await body_of(transport, urgent)
