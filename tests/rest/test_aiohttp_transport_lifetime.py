"""`AiohttpTransport`: leaving, cancelling, closing, forking. Nothing is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from kinform.errors import TransportError, TransportFailure, UsageError
from kinform.rest.transport import HttpRequest
from kinform.rest.transport.aiohttp_transport import AiohttpTransport
from tests.support.certs import Authority
from tests.support.transports import (
    NewTransport,
    always,
    body_of,
    client_sockets,
    full_backlog,
    get,
    open_sockets,
    post,
    transports,
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


@pytest.fixture(params=["http", "https"])
def tls(request: pytest.FixtureRequest, authority: Authority) -> ssl.SSLContext | None:
    """The server's context, or none: what must hold for both is tested with both."""
    if request.param == "http":
        return None
    return authority.issue("localhost").server_context()


@pytest.fixture
def trust(authority: Authority) -> Callable[[], Awaitable[ssl.SSLContext]]:
    return always(authority.client_context())


async def begin_body(request: WireRequest, conn: WireConnection) -> None:
    await conn.chunked()
    await conn.chunk(b"x")
    await conn.stall()


async def no_head(request: WireRequest, conn: WireConnection) -> None:
    await conn.stall()


def stop_reading(conn: WireConnection) -> None:
    """Be deaf from now on, also for a TLS good-bye."""
    conn.writer.transport.pause_reading()  # type: ignore[attr-defined]  # it is a Transport


async def deaf(request: WireRequest, conn: WireConnection) -> None:
    await conn.chunked()
    await conn.chunk(b"x")
    stop_reading(conn)
    await asyncio.Event().wait()


async def endless(request: WireRequest, conn: WireConnection) -> None:
    """Send more than any buffer holds; ends with the connection."""
    await conn.chunked()
    while True:
        await conn.chunk(b"x" * 100_000)


def has_sockets(server: WireServer) -> bool:
    """Return whether a connection to ``server`` is kept."""
    with client_sockets(server) as ours:
        return bool(ours)


async def until(condition: Callable[[], bool]) -> None:
    """Yield to the loop until ``condition`` holds; for changes without an event to await."""
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0)


# --- reading ----------------------------------------------------------------------------------


async def test_tls_is_read_record_by_record(
    new: NewTransport, authority: Authority, trust: Callable[[], Awaitable[ssl.SSLContext]]
) -> None:
    """256 KB at a time, as asyncio has it, leaves a heap full of holes.

    If this fails with a new Python, see what has become of asyncio's buffers, and of the soak.
    """
    context = authority.issue("localhost").server_context()
    async with (
        WireServer(begin_body, tls=context) as server,
        new(tls=trust).send(get(server)) as response,
        contextlib.aclosing(response.iter_bytes()) as pieces,
    ):
        assert await anext(pieces) == b"x"
        protocols = [one for one in gc.get_objects() if isinstance(one, SSLProtocol)]
        ours = [one for one in protocols if not one._server_side]
        assert [one.max_size for one in ours] == [16 * 1024]


# --- leaving ----------------------------------------------------------------------------------


@pytest.mark.parametrize("handler", [begin_body, endless])
async def test_leaving_early_frees_the_connection_at_once(
    new: NewTransport,
    tls: ssl.SSLContext | None,
    trust: Callable[[], Awaitable[ssl.SSLContext]],
    handler: Callable[[WireRequest, WireConnection], Awaitable[None]],
) -> None:
    async with WireServer(handler, tls=tls) as server:
        async with (
            new(tls=trust).send(get(server)) as response,
            contextlib.aclosing(response.iter_bytes()) as pieces,
        ):
            await anext(pieces)
        async with asyncio.timeout(10):
            await server.wait_all_gone()


async def test_leaving_early_does_not_wait_for_the_peer(
    new: NewTransport,
    tls: ssl.SSLContext | None,
    trust: Callable[[], Awaitable[ssl.SSLContext]],
) -> None:
    """A TLS good-bye would wait 30 s for the peer's."""
    async with WireServer(deaf, tls=tls) as server:
        async with new(tls=trust).send(get(server)) as response:
            assert response.status == 200
        async with asyncio.timeout(10):
            await until(lambda: not has_sockets(server))


async def test_a_request_may_be_entered_and_left_in_different_tasks(new: NewTransport) -> None:
    async with WireServer(begin_body) as server:
        exchange = new().send(get(server))
        async with asyncio.TaskGroup() as group:
            response = await group.create_task(exchange.__aenter__())
        assert response.status == 200
        async with asyncio.TaskGroup() as group:
            group.create_task(exchange.__aexit__(None, None, None))
        await server.wait_all_gone()


async def test_reading_after_leaving_is_a_usage_error(new: NewTransport) -> None:
    async with WireServer(begin_body) as server:
        async with new().send(get(server)) as response:
            pass
        with pytest.raises(UsageError, match="after its request was left"):
            await response.read()


async def test_two_readers_of_one_answer_are_a_usage_error(new: NewTransport) -> None:
    async with WireServer(begin_body) as server, new().send(get(server)) as response:
        first, second = response.iter_bytes(), response.iter_bytes()
        await anext(first)
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(anext(first))
            await asyncio.sleep(0)
            with pytest.raises(UsageError, match="two tasks"):
                await anext(second)
            waiting.cancel()
    assert waiting.cancelled()


# --- cancelling -------------------------------------------------------------------------------


async def cancelled(work: Awaitable[object], when: Awaitable[object]) -> None:
    """Start ``work``, cancel it after ``when``, and see that it ends as cancelled."""

    async def run() -> None:
        await work

    async with asyncio.TaskGroup() as group:
        task = group.create_task(run())
        await when
        task.cancel()
    assert task.cancelled()


@pytest.mark.parametrize("handler", [no_head, begin_body], ids=["head", "body"])
async def test_cancelling_leaves_no_task_and_no_socket(
    new: NewTransport,
    tls: ssl.SSLContext | None,
    trust: Callable[[], Awaitable[ssl.SSLContext]],
    handler: Callable[[WireRequest, WireConnection], Awaitable[None]],
) -> None:
    async with WireServer(handler, tls=tls) as server:
        transport = new(tls=trust)
        tasks = asyncio.all_tasks()
        await cancelled(body_of(transport, get(server)), server.wait_requests())
        await server.wait_all_gone()
        assert server.connections[0].saw_eof
        assert not has_sockets(server)
        assert asyncio.all_tasks() == tasks


async def test_cancelling_an_upload_leaves_no_task_and_no_socket(new: NewTransport) -> None:
    begun = asyncio.Event()

    async def pieces() -> AsyncIterator[bytes]:
        yield b"one"
        begun.set()
        await asyncio.Event().wait()

    async with WireServer() as server:
        tasks = asyncio.all_tasks()
        await cancelled(body_of(new(), post(server, pieces())), begun.wait())
        await server.wait_all_gone()
        assert not has_sockets(server)
        assert asyncio.all_tasks() == tasks


async def test_cancelling_a_tls_handshake_leaves_no_task_and_no_socket(
    new: NewTransport, trust: Callable[[], Awaitable[ssl.SSLContext]]
) -> None:
    async with WireServer(on_connect=lambda conn: conn.stall()) as server:
        request = HttpRequest(method="GET", url=f"https://localhost:{server.port}/")
        tasks = asyncio.all_tasks()
        connected = server.wait_until(lambda: bool(server.connections))
        await cancelled(body_of(new(tls=trust), request), connected)
        await server.wait_all_gone()
        assert not has_sockets(server)
        assert asyncio.all_tasks() == tasks


async def test_cancelling_a_connect_leaves_no_task_and_no_socket(new: NewTransport) -> None:
    with full_backlog() as port:
        request = HttpRequest(method="GET", url=f"http://127.0.0.1:{port}/")
        before, tasks = open_sockets(), asyncio.all_tasks()
        await cancelled(body_of(new(), request), until(lambda: open_sockets() > before))
        assert open_sockets() == before
        assert asyncio.all_tasks() == tasks


async def test_cancelling_in_line_does_not_take_the_place(new: NewTransport) -> None:
    async with WireServer(begin_body) as server:
        transport = new(max_requests=1)
        async with transport.send(get(server)):
            turn = asyncio.sleep(0)
            await cancelled(body_of(transport, get(server)), turn)
        async with asyncio.timeout(10), transport.send(get(server)) as response:
            assert response.status == 200


# --- closing ----------------------------------------------------------------------------------


async def test_aclose_returns_when_every_socket_is_closed(
    tls: ssl.SSLContext | None, trust: Callable[[], Awaitable[ssl.SSLContext]]
) -> None:
    async with WireServer(answers(then=OK), tls=tls) as server:
        transport = AiohttpTransport(tls=trust)
        await body_of(transport, get(server))
        assert has_sockets(server)
        await transport.aclose()
        assert not has_sockets(server)
        await transport.aclose()
    gc.collect()  # nothing unclosed: warnings are errors


@pytest.mark.parametrize("handler", [no_head, begin_body, endless], ids=["head", "body", "flood"])
async def test_aclose_ends_requests_under_way(
    tls: ssl.SSLContext | None,
    trust: Callable[[], Awaitable[ssl.SSLContext]],
    handler: Callable[[WireRequest, WireConnection], Awaitable[None]],
) -> None:
    transport = AiohttpTransport(tls=trust)

    async def ask(server: WireServer) -> None:
        with pytest.raises(TransportError, match="the client is closed") as caught:
            await body_of(transport, get(server))
        assert caught.value.failure is TransportFailure.CLOSED

    async with WireServer(handler, tls=tls) as server, asyncio.TaskGroup() as group:
        group.create_task(ask(server))
        await server.wait_requests()
        async with asyncio.timeout(10):
            await transport.aclose()
            await server.wait_all_gone()


async def test_aclose_ends_a_tls_handshake(
    trust: Callable[[], Awaitable[ssl.SSLContext]],
) -> None:
    transport = AiohttpTransport(tls=trust)

    async def ask(url: str) -> None:
        with pytest.raises(TransportError) as caught:
            await body_of(transport, HttpRequest(method="GET", url=url))
        assert caught.value.failure is TransportFailure.CLOSED

    async with (
        WireServer(on_connect=lambda conn: conn.stall()) as server,
        asyncio.TaskGroup() as group,
    ):
        group.create_task(ask(f"https://localhost:{server.port}/"))
        await server.wait_until(lambda: bool(server.connections))
        async with asyncio.timeout(10):
            await transport.aclose()
            await server.wait_all_gone()


@pytest.mark.parametrize("has_answered", [False, True])
async def test_aclose_does_not_wait_for_a_server_that_does_not_read(has_answered: bool) -> None:
    begun = asyncio.Event()

    async def more_than_fits() -> AsyncIterator[bytes]:
        yield b"x" * 30_000_000

    async def no_reader(conn: WireConnection) -> None:
        await conn.reader.readuntil(b"\r\n\r\n")
        stop_reading(conn)
        if has_answered:
            await conn.chunked()
            await conn.chunk(b"x")
        else:
            begun.set()
        await asyncio.Event().wait()

    transport = AiohttpTransport()
    async with WireServer(on_connect=no_reader) as server, asyncio.TaskGroup() as group:

        async def upload() -> None:
            async with transport.send(post(server, more_than_fits())) as response:
                begun.set()
                await response.read()

        async def ask() -> None:
            with pytest.raises(TransportError) as caught:
                await upload()
            assert caught.value.failure is TransportFailure.CLOSED

        group.create_task(ask())
        await begun.wait()
        async with asyncio.timeout(10):
            await transport.aclose()
        assert not has_sockets(server)


async def test_aclose_does_not_wait_for_good_byes(
    authority: Authority, trust: Callable[[], Awaitable[ssl.SSLContext]]
) -> None:
    """A connection given up earlier still waits for the end of TLS, up to 30 s."""

    async def handler(request: WireRequest, conn: WireConnection) -> None:
        stop_reading(conn)
        await conn.send(200, {"Connection": "close"}, b"x")
        await asyncio.Event().wait()

    tls = authority.issue("localhost").server_context()
    async with WireServer(handler, tls=tls) as server:
        transport = AiohttpTransport(tls=trust)
        await body_of(transport, get(server))
        assert has_sockets(server)
        async with asyncio.timeout(10):
            await transport.aclose()
        assert not has_sockets(server)


def test_aclose_returns_when_every_socket_is_closed_on_uvloop() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def main() -> None:
        async with WireServer(answers(then=OK)) as server:
            transport = AiohttpTransport()
            await body_of(transport, get(server))
            async with asyncio.timeout(10):
                await transport.aclose()
            assert not has_sockets(server)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


async def test_closed_transport_refuses_requests(new: NewTransport) -> None:
    async with WireServer(answers(then=OK)) as server:
        transport = new()
        await body_of(transport, get(server))
        await transport.aclose()
        with pytest.raises(TransportError, match="the client is closed") as caught:
            await body_of(transport, get(server))
    assert caught.value.failure is TransportFailure.CLOSED


async def test_unused_transport_can_be_closed() -> None:
    transport = AiohttpTransport()
    await transport.aclose()
    assert repr(transport) == "<AiohttpTransport closed>"


# --- another loop, another process ------------------------------------------------------------


def test_making_a_transport_needs_no_loop_and_a_second_loop_is_a_usage_error() -> None:
    transport = AiohttpTransport()
    assert repr(transport) == "<AiohttpTransport unused>"

    async def first() -> None:
        async with WireServer(answers(OK)) as server:
            await body_of(transport, get(server))
            server.connections[0].writer.close()

    async def second() -> None:
        with pytest.raises(UsageError, match="another event loop"):
            await body_of(transport, HttpRequest(method="GET", url="http://127.0.0.1:1/"))

    async def close() -> None:
        with pytest.raises(UsageError, match="another event loop"):
            await transport.aclose()

    with asyncio.Runner() as one, asyncio.Runner() as two:
        one.run(first())
        two.run(second())
        two.run(close())
        one.run(transport.aclose())


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
async def test_forked_child_gets_an_error_and_the_parent_goes_on(
    new: NewTransport, authority: Authority, trust: Callable[[], Awaitable[ssl.SSLContext]]
) -> None:
    """Two processes on one TLS stream break it (F-R38)."""
    tls = authority.issue("localhost").server_context()
    async with WireServer(answers(then=OK), tls=tls) as server:
        transport = new(tls=trust)
        await body_of(transport, get(server))
        child = os.fork()
        if child == 0:
            os._exit(in_child(transport, get(server)))
        _, status = os.waitpid(child, 0)  # noqa: ASYNC222 - it ends by itself
        assert os.waitstatus_to_exitcode(status) == 0
        await body_of(transport, get(server))
    assert len(server.connections) == 1


def in_child(transport: AiohttpTransport, request: HttpRequest) -> int:
    """Return 0 if the transport refuses to work here, and closing it touches nothing."""

    async def main() -> int:
        try:
            await body_of(transport, request)
        except UsageError as exc:
            refused = "cannot be used after a fork" in str(exc)
            await transport.aclose()
            return 0 if refused else 1
        return 2

    try:
        return asyncio.run(main())
    except BaseException:  # noqa: BLE001 - a child must not run on as a second test runner
        return 3


# --- a kept connection that the server closes -------------------------------------------------


async def close_after_first(request: WireRequest, conn: WireConnection) -> None:
    """Answer once per connection, and close as the next request arrives."""
    if len(conn.requests) > 1:
        conn.rst() if request.path == "/rst" else await conn.fin()
    else:
        await conn.reply(OK)


@pytest.mark.parametrize("path", ["/fin", "/rst"])
async def test_get_that_meets_a_closing_connection_goes_out_again(
    new: NewTransport, path: str
) -> None:
    async with WireServer(close_after_first) as server:
        transport = new()
        await body_of(transport, get(server, path))
        assert await body_of(transport, get(server, path)) == OK.body
    assert [request.connection for request in server.requests] == [0, 0, 1]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_write_that_meets_a_closing_connection_is_never_sent_twice(
    new: NewTransport, method: str
) -> None:
    async with WireServer(close_after_first) as server:
        transport = new()
        await body_of(transport, get(server))
        request = HttpRequest(method=method, url=server.url, body=b"{}")
        with pytest.raises(TransportError) as caught:
            await body_of(transport, request)
        await server.wait_all_gone()
    assert caught.value.failure is TransportFailure.RESET
    assert [request.method for request in server.requests] == ["GET", method]


async def test_get_on_a_fresh_connection_is_not_sent_twice(new: NewTransport) -> None:
    async def close(request: WireRequest, conn: WireConnection) -> None:
        await conn.fin()

    async with WireServer(close) as server:
        with pytest.raises(TransportError) as caught:
            await body_of(new(), get(server))
    assert caught.value.failure is TransportFailure.RESET
    assert len(server.requests) == 1


async def test_connection_closed_while_idle_is_replaced_also_for_a_post(
    new: NewTransport,
) -> None:
    async def once(request: WireRequest, conn: WireConnection) -> None:
        await conn.reply(OK)
        await conn.fin()

    async with WireServer(once) as server:
        transport = new()
        for _ in range(3):
            await body_of(transport, post(server))
            await until(lambda: not has_sockets(server))
    assert [request.connection for request in server.requests] == [0, 1, 2]


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
async def test_connection_whose_end_the_loop_has_not_seen_yet_is_replaced_also_for_a_write(
    new: NewTransport,
    method: str,
    tls: ssl.SSLContext | None,
    trust: Callable[[], Awaitable[ssl.SSLContext]],
) -> None:
    """The peer ends it while something else runs: nothing was sent, so all may go out again."""
    async with WireServer(answers(OK, OK, OK), tls=tls) as server:
        transport = new(tls=trust if tls else None)
        request = HttpRequest(method=method, url=server.url, body=b"{}")
        await body_of(transport, request)
        await body_of(transport, request)
        server.connections[0].end_unseen()
        assert await body_of(transport, request) == OK.body
    assert [request.connection for request in server.requests] == [0, 0, 1]
