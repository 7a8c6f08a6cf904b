"""Every way to get no answer: the right `TransportFailure`, words that help, and no secret."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import logging
import socket
import ssl
import threading
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Generator

import pytest

from kinform.errors import TransportError, TransportFailure
from tests.support.certs import Authority
from tests.support.transports import (
    CANARY,
    NewTransport,
    always,
    at,
    body_of,
    failure_of,
    full_backlog,
    get,
    post,
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


# --- no connection ----------------------------------------------------------------------------


async def test_unknown_host(new: NewTransport) -> None:
    error = await failure_of(
        new(), at("https://no-such-host.invalid:6443/"), match=r"no address for no-such-host\.inv"
    )
    assert error.failure is TransportFailure.DNS
    assert error.__cause__ is not None


async def test_nobody_listens(new: NewTransport) -> None:
    port = unused_port()
    error = await failure_of(
        new(), at(f"http://127.0.0.1:{port}/"), match=f"127.0.0.1:{port} refused the connection"
    )
    assert error.failure is TransportFailure.REFUSED


async def test_no_way_there(new: NewTransport) -> None:
    """Connecting to the network's own address is refused by the kernel itself."""
    error = await failure_of(new(), at("http://255.255.255.255:6443/"), match=r"255\.255\.255\.255")
    assert error.failure is TransportFailure.CONNECT


async def test_no_connection_in_time(new: NewTransport) -> None:
    with full_backlog() as port:
        error = await failure_of(
            new(connect_timeout=0.05),
            at(f"http://127.0.0.1:{port}/"),
            match=rf"no connection to 127\.0\.0\.1:{port} within 0\.05 s",
        )
    assert error.failure is TransportFailure.CONNECT_TIMEOUT


async def test_no_tls_handshake_in_time(
    new: NewTransport, trust: Callable[[], Awaitable[ssl.SSLContext]]
) -> None:
    async with WireServer(on_connect=lambda conn: conn.stall()) as server:
        error = await failure_of(
            new(tls=trust, connect_timeout=0.05),
            at(f"https://localhost:{server.port}/"),
            match="no connection to localhost",
        )
        await server.wait_all_gone()
    assert error.failure is TransportFailure.CONNECT_TIMEOUT


# --- TLS --------------------------------------------------------------------------------------


async def test_unknown_authority(new: NewTransport, good_tls: ssl.SSLContext) -> None:
    other = always(Authority("another").client_context())
    async with WireServer(answers(), tls=good_tls) as server:
        error = await failure_of(new(tls=other), get(server), match="set certificate-authority to")
    assert error.failure is TransportFailure.TLS
    assert f"localhost:{server.port} is signed by an unknown authority" in error.message


async def test_system_trust_store_is_used_without_a_context(
    new: NewTransport, good_tls: ssl.SSLContext
) -> None:
    async def provide() -> None:
        return None

    async with WireServer(answers(), tls=good_tls) as server:
        for transport in (new(), new(tls=provide)):
            await failure_of(transport, get(server), match="unknown authority")


async def test_expired_certificate(
    new: NewTransport, authority: Authority, trust: Callable[[], Awaitable[ssl.SSLContext]]
) -> None:
    tls = authority.issue("localhost", expired=True).server_context()
    async with WireServer(answers(), tls=tls) as server:
        error = await failure_of(new(tls=trust), get(server), match="has expired: renew it")
    assert error.failure is TransportFailure.TLS


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
async def test_certificate_for_another_name(
    new: NewTransport,
    authority: Authority,
    trust: Callable[[], Awaitable[ssl.SSLContext]],
    host: str,
) -> None:
    tls = authority.issue("api.example").server_context()
    async with WireServer(answers(OK), tls=tls) as server:
        request = at(f"https://{host}:{server.port}/")
        error = await failure_of(new(tls=trust), request, match=f"is not for '{host}'")
        assert "set tls-server-name" in error.message
        assert error.failure is TransportFailure.TLS
        named = new(tls=trust, server_hostname="api.example")
        assert await body_of(named, request) == OK.body
        wrong = new(tls=trust, server_hostname="other.example")
        await failure_of(wrong, request, match=r"is not for 'other\.example'")


async def test_server_that_demands_a_client_certificate(
    new: NewTransport, authority: Authority, trust: Callable[[], Awaitable[ssl.SSLContext]]
) -> None:
    tls = authority.issue("localhost").server_context(client_ca=authority.certificate)
    async with WireServer(answers(OK), tls=tls) as server:
        mine = always(authority.client_context(authority.issue(common_name="me")))
        assert await body_of(new(tls=mine), get(server)) == OK.body
    with one_handshake(tls) as port:
        request = at(f"https://localhost:{port}/")
        error = await failure_of(new(tls=trust), request, match="another client-certificate")
    assert error.failure is TransportFailure.TLS


@contextlib.contextmanager
def one_handshake(tls: ssl.SSLContext) -> Generator[int]:
    """A server that says in TLS why it refuses us, which those of asyncio do not."""

    def serve() -> None:
        sock, _ = listener.accept()
        with sock.dup() as raw, contextlib.suppress(OSError):
            with pytest.raises(ssl.SSLError):
                tls.wrap_socket(sock, server_side=True)
            while raw.recv(65536):  # closing on unread bytes would be a reset
                pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


async def test_https_to_a_plain_port(
    new: NewTransport, trust: Callable[[], Awaitable[ssl.SSLContext]]
) -> None:
    async def plain(conn: WireConnection) -> None:
        await conn.reader.read(100)
        await conn.send(400)

    async with WireServer(on_connect=plain) as server:
        request = at(f"https://localhost:{server.port}/")
        error = await failure_of(new(tls=trust), request, match="does not speak TLS.*http://")
    assert error.failure is TransportFailure.TLS


async def test_http_to_a_tls_port(new: NewTransport) -> None:
    async def alert(request: WireRequest, conn: WireConnection) -> None:
        await conn.write(b"\x15\x03\x01\x00\x02\x02\x46")  # what OpenSSL and nginx may say
        await conn.fin()

    async with WireServer(alert) as server:
        error = await failure_of(new(), get(server), match="not HTTP: does the port want https://")
    assert error.failure is TransportFailure.PROTOCOL


async def test_connection_closed_in_the_handshake(
    new: NewTransport, trust: Callable[[], Awaitable[ssl.SSLContext]]
) -> None:
    async def leave(conn: WireConnection) -> None:
        await conn.reader.read(1)
        await conn.fin()

    async with WireServer(on_connect=leave) as server:
        error = await failure_of(
            new(tls=trust), at(f"https://localhost:{server.port}/"), match="TLS"
        )
    assert error.failure is TransportFailure.TLS


# --- no answer, or half of one ----------------------------------------------------------------


async def silent(request: WireRequest, conn: WireConnection) -> None:
    await conn.stall()


async def eof(request: WireRequest, conn: WireConnection) -> None:
    await conn.fin()


async def reset(request: WireRequest, conn: WireConnection) -> None:
    conn.rst()


async def half_a_head(request: WireRequest, conn: WireConnection) -> None:
    await conn.write(b"HTTP/1.1 200 OK\r\nContent-Le")
    await conn.fin()


async def garbage(request: WireRequest, conn: WireConnection) -> None:
    await conn.write(b"220 mail.example ESMTP\r\n\r\n")
    await conn.stall()


async def binary(request: WireRequest, conn: WireConnection) -> None:
    await conn.write(bytes(range(256)) * 4)
    await conn.stall()


async def huge_header(request: WireRequest, conn: WireConnection) -> None:
    await conn.send(200, {"X-Huge": "x" * 70_000})


async def short_length(request: WireRequest, conn: WireConnection) -> None:
    await conn.send(200, {"Content-Length": "100"}, b"half")
    await conn.fin()


async def no_last_chunk(request: WireRequest, conn: WireConnection) -> None:
    await conn.chunked()
    await conn.chunk(b"half")
    await conn.fin()


async def half_a_chunk(request: WireRequest, conn: WireConnection) -> None:
    await conn.chunked()
    await conn.write(b"10\r\nhalf")
    await conn.fin()


async def reset_in_body(request: WireRequest, conn: WireConnection) -> None:
    await conn.chunked()
    await conn.chunk(b"half")
    conn.rst()


async def bad_chunk(request: WireRequest, conn: WireConnection) -> None:
    await conn.write(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\ncanary-payload\r\n"
    )
    await conn.stall()


async def silent_body(request: WireRequest, conn: WireConnection) -> None:
    await conn.chunked()
    await conn.chunk(b"half")
    await conn.stall()


F = TransportFailure
SILENCES: dict[object, float] = {silent: 0.05, silent_body: 0.5}


@pytest.mark.slow
@pytest.mark.parametrize(
    "handler, failure, words",
    [
        (silent, F.TIMEOUT, r"no answer from 127\.0\.0\.1:\d+ within 0\.05 s"),
        (eof, F.RESET, "closed the connection without an answer"),
        (reset, F.RESET, "reset the connection without an answer"),
        (half_a_head, F.RESET, "closed the connection without an answer"),
        (garbage, F.PROTOCOL, r"what 127\.0\.0\.1:\d+ answered is not HTTP"),
        (binary, F.PROTOCOL, "not HTTP"),
        (huge_header, F.PROTOCOL, "header of more than 64 KiB"),
        (short_length, F.TRUNCATED, r"the answer of 127\.0\.0\.1:\d+ broke off"),
        (no_last_chunk, F.TRUNCATED, "broke off"),
        (half_a_chunk, F.TRUNCATED, "broke off"),
        (reset_in_body, F.TRUNCATED, "broke off"),
        (bad_chunk, F.PROTOCOL, "not HTTP"),
        (silent_body, F.TIMEOUT, r"nothing more from 127\.0\.0\.1:\d+ within 0\.5 s"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_answer_that_fails(
    new: NewTransport,
    handler: Callable[[WireRequest, WireConnection], Awaitable[None]],
    failure: TransportFailure,
    words: str,
) -> None:
    async with WireServer(handler) as server:
        limit = SILENCES.get(handler, 60.0)  # what is not about silence has time
        error = await failure_of(new(), get(server, read_timeout=limit), match=words)
        await server.wait_all_gone()
    assert error.failure is failure
    assert "canary" not in "".join(traceback.format_exception(error))
    assert len(server.requests) == 1


async def test_body_that_stops_being_http(new: NewTransport) -> None:
    go_on = asyncio.Event()

    async def handler(request: WireRequest, conn: WireConnection) -> None:
        await conn.chunked()
        await conn.chunk(b"half")
        await go_on.wait()
        await conn.write(b"canary-payload\r\n")
        await conn.stall()

    async with WireServer(handler) as server, new().send(get(server)) as response:
        pieces = response.iter_bytes()
        assert await anext(pieces) == b"half"
        go_on.set()
        with pytest.raises(TransportError) as caught:
            await anext(pieces)
    assert caught.value.failure is TransportFailure.TRUNCATED
    assert "canary" not in "".join(traceback.format_exception(caught.value))


async def test_header_of_60_kib_is_read(new: NewTransport) -> None:
    async with (
        WireServer(answers(reply(200, headers={"X-Big": "x" * 60_000}))) as server,
        new().send(get(server)) as response,
    ):
        assert len(response.headers["x-big"]) == 60_000


async def test_reset_while_the_body_is_sent(new: NewTransport) -> None:
    async def rst(conn: WireConnection) -> None:
        await conn.reader.read(10)
        conn.rst()

    async with WireServer(on_connect=rst) as server:
        error = await failure_of(new(), post(server, b"x" * 20_000_000), match="reset|broke")
    assert error.failure is TransportFailure.RESET


@pytest.mark.slow
async def test_silence_is_counted_from_the_last_byte(new: NewTransport) -> None:
    """Six pieces, each within the limit, all together beyond it."""

    async def slow(request: WireRequest, conn: WireConnection) -> None:
        await conn.chunked()
        for _ in range(6):
            await asyncio.sleep(0.4)
            await conn.chunk(b"x")
        await conn.end_chunks()

    async with WireServer(slow) as server:
        assert await body_of(new(), get(server, read_timeout=2)) == b"x" * 6


@pytest.mark.parametrize(
    "encoding, body, failure, words",
    [
        ("gzip", b"not gzip", F.PROTOCOL, "corrupt"),
        ("gzip", gzip.compress(b"x" * 1000)[:-9], F.TRUNCATED, "truncated"),
        ("br", b"?", F.PROTOCOL, "encoding 'br' is not supported"),
    ],
    ids=["corrupt", "truncated", "unknown"],
)
async def test_encoding_that_cannot_be_undone(
    new: NewTransport, encoding: str, body: bytes, failure: TransportFailure, words: str
) -> None:
    answer = reply(200, headers={"Content-Encoding": encoding}, body=body)
    async with WireServer(answers(answer)) as server:
        error = await failure_of(new(), get(server), match=words)
    assert error.failure is failure


@pytest.mark.parametrize("status", [300, 301, 302, 303, 307, 308])
async def test_redirect_is_never_followed(new: NewTransport, status: int) -> None:
    async with WireServer(answers()) as other:
        location = other.url.replace("http://", "http://user:pw@") + "/secret?token=1"
        async with WireServer(answers(reply(status, headers={"Location": location}))) as server:
            error = await failure_of(new(), get(server), match="never follows a redirect")
    assert error.failure is TransportFailure.REDIRECT
    assert f"to '{other.url}' ({status})" in error.message
    assert "secret" not in error.message
    assert "pw" not in error.message
    assert not other.connections


@pytest.mark.parametrize(
    "location, shown",
    [
        ("/login", "redirects to another path (302)"),
        (None, "redirects (302)"),
        ("http://[", "redirects (302)"),
        ("http://h:x/", "redirects (302)"),
        ("https://[::1]:8443/x", "redirects to 'https://[::1]:8443' (302)"),
        ("//other/x", "redirects to 'other' (302)"),
    ],
)
async def test_redirect_names_the_target_if_it_can(
    new: NewTransport, location: str | None, shown: str
) -> None:
    headers = {} if location is None else {"Location": location}
    async with WireServer(answers(reply(302, headers=headers))) as server:
        error = await failure_of(new(), get(server), match="redirects")
    assert shown in error.message


async def test_nothing_secret_is_logged(
    new: NewTransport, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with WireServer(reset) as server:
        await failure_of(new(), get(server), match="reset")
    assert CANARY not in caplog.text
