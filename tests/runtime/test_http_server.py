"""The server that probes ask: what it answers, and what it does not put up with."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from kinform import UsageError
from kinform.runtime.healthz.checks import Checks
from kinform.runtime.healthz.http_server import MAX_CONNECTIONS, Address, StatusServer
from tests.runtime.test_health import checks
from tests.support.transports import open_sockets


def exposed(accept: str) -> tuple[str, bytes]:
    return "text/plain; version=0.0.4; charset=utf-8", f"# {accept}\n".encode()


@asynccontextmanager
async def serving(
    live: Checks | None = None, ready: Checks | None = None
) -> AsyncGenerator[tuple[StatusServer, aiohttp.ClientSession]]:
    server = StatusServer(0, live=live or Checks(), ready=ready or Checks(), metrics=exposed)
    async with server, aiohttp.ClientSession(server.url) as session:
        yield server, session


async def get(session: aiohttp.ClientSession, path: str, method: str = "GET") -> tuple[int, str]:
    async with session.request(method, path) as answer:
        return answer.status, await answer.text()


async def connect(server: StatusServer) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = server.url.removeprefix("http://").partition(":")
    return await asyncio.open_connection(host, int(port))


async def raw(server: StatusServer, sent: bytes) -> bytes:
    """Send something, and return all that comes before the server ends the connection."""
    reader, writer = await connect(server)
    try:
        writer.write(sent)
        async with asyncio.timeout(5):
            return await reader.read()
    finally:
        writer.close()


# --- answers


@pytest.mark.parametrize(
    "path, expected",
    [
        ("/livez", (200, "ok")),
        ("/healthz", (200, "ok")),
        ("/livez?verbose", (200, "[+]loop ok\nlivez check passed\n")),
        ("/healthz?verbose", (200, "[+]loop ok\nhealthz check passed\n")),
        ("/livez/loop", (200, "ok")),
        ("/healthz/loop", (200, "ok")),
        ("/readyz", (500, "[+]good ok\n[-]bad failed: late\nreadyz check failed\n")),
        ("/readyz?exclude=bad", (200, "ok")),
        (
            "/readyz?verbose&exclude=bad&exclude=good",
            (200, "[+]good excluded: ok\n[+]bad excluded: ok\nreadyz check passed\n"),
        ),
        ("/readyz/good", (200, "ok")),
        ("/readyz/bad", (500, "late\n")),
        ("/metrics", (200, "# */*\n")),
    ],
)
async def test_every_path_has_its_answer(path: str, expected: tuple[int, str]) -> None:
    async with serving(checks(loop=None), checks(good=None, bad="late")) as (_, session):
        assert await get(session, path) == expected


async def test_a_check_that_is_added_later_counts() -> None:
    ready = Checks()
    async with serving(ready=ready) as (_, session):
        assert await get(session, "/readyz") == (200, "ok")
        ready.add("informers", lambda: "pods has not synced")
        status, text = await get(session, "/readyz")
        assert (status, text.splitlines()[0]) == (
            500,
            "[-]informers failed: pods has not synced",
        )


async def test_metrics_are_made_for_what_is_accepted() -> None:
    async with serving() as (_, session):
        async with session.get("/metrics", headers={"Accept": "a/b"}) as answer:
            assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
            assert await answer.text() == "# a/b\n"


@pytest.mark.parametrize("path", ["/", "/livez/", "/livez/none", "/metrics/x", "/readyz/a/b", "/%"])
async def test_what_is_not_there_is_404_with_what_is(path: str) -> None:
    async with serving(checks(loop=None)) as (_, session):
        status, text = await get(session, path)
    assert (status, text.split("\n")) == (
        404,
        [
            "there is nothing here; try",
            "/livez",
            "/livez/loop",
            "/healthz",
            "/healthz/loop",
            "/readyz",
            "/metrics",
            "",
        ],
    )


async def test_a_server_without_checks_or_metrics_has_no_such_paths() -> None:
    async with StatusServer(0, ready=Checks()) as server:
        async with aiohttp.ClientSession(server.url) as session:
            assert await get(session, "/livez") == (404, "there is nothing here; try\n/readyz\n")
            assert (await get(session, "/metrics"))[0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
async def test_it_can_only_be_read(method: str) -> None:
    async with serving() as (_, session):
        async with session.request(method, "/livez", data=b"x" * 100_000) as answer:
            assert answer.status == 405
            assert answer.headers["Allow"] == "GET, HEAD"


async def test_head_is_get_without_a_body() -> None:
    async with serving(ready=checks(bad="late")) as (server, session):
        assert await get(session, "/livez", "HEAD") == (200, "")
        assert await get(session, "/readyz", "HEAD") == (500, "")
        answer = await raw(server, b"HEAD /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        head, _, body = answer.partition(b"\r\n\r\n")
        assert b"Content-Length: 2\r\n" in head + b"\r\n"
        assert body == b""


async def test_no_failure_shows_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_: object = None) -> tuple[str, bytes]:
        raise ValueError("password=hunter2")

    live = Checks()
    live.add("odd", broken)  # type: ignore[arg-type]
    async with StatusServer(0, live=live, metrics=broken) as server:
        async with aiohttp.ClientSession(server.url) as session:
            assert await get(session, "/metrics") == (
                500,
                "the metrics could not be made; see the log\n",
            )
            assert await get(session, "/livez/odd") == (
                500,
                "the check raised ValueError; see the log\n",
            )
    assert caplog.text.count("ValueError: password=hunter2") == 2


# --- addresses


@pytest.mark.parametrize(
    "given, expected",
    [
        (8081, "127.0.0.1:8081"),
        (0, "127.0.0.1:0"),
        ("127.0.0.1:8081", "127.0.0.1:8081"),
        ("0.0.0.0:80", "0.0.0.0:80"),
        ("localhost:0", "localhost:0"),
        ("[::1]:8081", "[::1]:8081"),
    ],
)
def test_an_address_is_a_host_and_a_port_or_a_port_of_this_machine(
    given: str | int, expected: str
) -> None:
    assert str(Address.parse(given)) == expected


@pytest.mark.parametrize(
    "given, expected",
    [
        (":8081", "names no host; '0.0.0.0:8081' is every interface, '127.0.0.1:8081' this"),
        ("8081", "expected 'host:port'"),
        ("", "expected 'host:port'"),
        ("localhost", "expected 'host:port'"),
        ("::1:8081", "IPv6 host stands in brackets"),
        ("localhost:http", "no port from 0 to 65535"),
        ("localhost:", "no port from 0 to 65535"),
        ("localhost:65536", "no port from 0 to 65535"),
        ("localhost:-1", "no port from 0 to 65535"),
        (65536, "no port from 0 to 65535"),
        (-1, "no port from 0 to 65535"),
        (True, "expected 'host:port', or a port"),
    ],
)
def test_an_address_that_is_none_says_what_is_expected(given: str | int, expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        StatusServer(given)


async def test_a_port_in_use_is_named() -> None:
    async with StatusServer(0) as server:
        address = server.url.removeprefix("http://")
        second = StatusServer(address)
        with pytest.raises(UsageError, match=f"{address} is in use"):
            await second.start()
        await second.stop()
    async with second:  # it is free now
        assert second.url == f"http://{address}"


async def test_an_address_of_another_machine_cannot_be_listened_on() -> None:
    with pytest.raises(UsageError, match=r"cannot listen on 192\.0\.2\.1:0: \w+ \w+"):
        await StatusServer("192.0.2.1:0").start()


async def test_it_is_started_once_and_has_a_url_meanwhile() -> None:
    server = StatusServer(0)
    with pytest.raises(UsageError, match=r"call start\(\) first"):
        _ = server.url
    await server.start()
    with pytest.raises(UsageError, match="started already"):
        await server.start()
    assert server.url.startswith("http://127.0.0.1:")
    await server.stop()
    await server.stop()
    with pytest.raises(UsageError, match=r"call start\(\) first"):
        _ = server.url


@pytest.mark.parametrize("turns", range(6))
async def test_a_start_that_is_cancelled_leaves_no_port_open(turns: int) -> None:
    """A manager that was cancelled as it began would answer probes until its process ended."""
    sockets, server = open_sockets(), StatusServer(0)
    starting = asyncio.get_running_loop().create_task(server.start())
    for _ in range(turns):
        await asyncio.sleep(0)
    if starting.cancel():
        with pytest.raises(asyncio.CancelledError):
            await starting
    await server.stop()
    assert open_sockets() == sockets


async def test_a_stop_that_is_cancelled_stops_all_the_same() -> None:
    sockets = open_sockets()
    async with StatusServer(0, live=Checks()) as server:
        _, writer = await connect(server)
        stopping = asyncio.get_running_loop().create_task(server.stop())
        for _ in range(3):
            await asyncio.sleep(0)
            stopping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stopping
        writer.close()
        await writer.wait_closed()
        assert open_sockets() == sockets


# --- clients that are slow, or mean no good


async def test_every_answer_ends_its_connection() -> None:
    async with serving() as (server, _):
        once = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
        answer = await raw(server, once + once)
        assert answer.count(b"HTTP/1.1 200 OK") == 1
        assert b"Connection: close" in answer


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 TLS\r\n\r\n",
        b"GET /" + b"x" * 5000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 10_000 + b"\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 5000 + b"\r\n",
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    ],
    ids=["TLS", "long path", "long header", "many headers", "negative length"],
)
async def test_what_is_no_request_is_refused_and_not_logged(
    sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving() as (server, session):
        answer = await raw(server, sent)
        assert answer.startswith((b"HTTP/1.0 400 ", b"HTTP/1.1 400 "))
        assert b"Traceback" not in answer
        assert await get(session, "/livez") == (200, "ok")
    assert [record for record in caplog.records if record.levelno > logging.DEBUG] == []


async def test_a_body_that_never_comes_holds_nothing_up() -> None:
    async with serving() as (server, _):
        answer = await raw(
            server, b"GET /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nx"
        )
        assert answer.endswith(b"\r\n\r\nok")


@pytest.mark.parametrize("sent", [b"", b"GET /livez HTTP/1.1\r\nHost:"], ids=["nothing", "a part"])
async def test_who_does_not_come_to_the_point_is_dropped(sent: bytes) -> None:
    async with StatusServer(0, live=Checks(), patience=0.05) as server:
        assert await raw(server, sent) == b""


async def test_too_many_connections_are_at_the_cost_of_the_oldest() -> None:
    async with serving() as (server, session):
        idle = [await connect(server) for _ in range(MAX_CONNECTIONS + 5)]
        try:
            assert await get(session, "/livez") == (200, "ok")
            async with asyncio.timeout(5):
                for reader, _ in idle[:6]:  # five of too many, and one for the session
                    assert await reader.read() == b""
            last, writer = idle[-1]
            writer.write(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert (await last.read()).endswith(b"ok")
        finally:
            for _, writer in idle:
                writer.close()


async def test_it_stops_soon_whoever_is_connected() -> None:
    async with StatusServer(0, live=Checks()) as server:
        writers = [(await connect(server))[1] for _ in range(3)]
        writers[1].write(b"GET /livez HTTP/1.1\r\n")  # and no more
        writers[2].write(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")  # and does not read
        async with asyncio.timeout(10):
            await server.stop()
        for writer in writers:
            writer.close()


async def test_it_does_not_wait_for_who_does_not_read() -> None:
    body = b"x" * 50_000_000
    async with StatusServer(0, metrics=lambda _: ("text/plain", body)) as server:
        reader, writer = await connect(server)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await reader.readline()
        async with asyncio.timeout(10):
            await server.stop()
        with contextlib.suppress(ConnectionResetError):
            assert len(await reader.read()) < len(body)
        writer.close()


# --- web pages


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1:8081",
        "localhost:8081",
        "LOCALHOST",
        "op.localhost",
        "[::1]:8081",
        "10.244.0.17:8081",
        "[fd00::17]:8081",
        "",
    ],
)
async def test_probes_by_address_or_a_loopback_name_are_answered(host: str) -> None:
    """A kubelet sends the address of the pod; kubectl port-forward is reached as localhost."""
    async with serving() as (server, _):
        answer = await raw(server, f"GET /livez HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"ok")


async def test_a_probe_of_http_1_0_without_host_is_answered() -> None:
    async with serving() as (server, _):
        assert (await raw(server, b"GET /livez HTTP/1.0\r\n\r\n")).endswith(b"ok")


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics", "/"])
@pytest.mark.parametrize(
    "headers",
    [
        "Host: rebound.example",
        "Host: rebound.example:8081",
        "Host: 127.0.0.1.rebound.example",
        "Host: localhost.rebound.example",
        "Host: operator.prod.svc",
        "Host: [rebound.example]",
        "Host: a@127.0.0.1",
    ],
)
async def test_a_web_page_that_made_a_name_lead_here_gets_nothing(
    headers: str, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    """DNS rebinding: the browser takes us for the page's own server, and lets the page read."""
    async with serving(checks(secret="x")) as (server, _):
        sent = f"GET {path} HTTP/1.1\r\n{headers}\r\n\r\n".encode()
        answers = [await raw(server, sent) for _ in range(2)]
    for answer in answers:
        assert answer.startswith((b"HTTP/1.1 421 ", b"HTTP/1.0 400 ", b"HTTP/1.1 400 "))
        assert b"secret" not in answer
        assert b"rebound" not in answer
    assert caplog.text.count("a request was refused") <= 1
    assert "rebound" not in caplog.text


@pytest.mark.parametrize("address", ["0.0.0.0:8081", "[::]:8081", "10.244.0.17:8081"])
def test_a_server_for_more_than_this_machine_is_reached_by_names_of_a_cluster(
    address: str,
) -> None:
    """Prometheus may scrape the name of a Service; any other name has to be given."""
    parsed = Address.parse(address)
    for host in ("operator", "operator.prod.svc:8081", "operator.prod.svc.cluster.local"):
        assert parsed.answers_to(host)
        assert not Address.parse(8081).answers_to(host)
        assert not Address.parse("localhost:8081").answers_to(host)
    assert not parsed.answers_to("rebound.example:8081")
    assert not parsed.answers_to("svc.rebound.example")


def test_the_name_that_it_listens_on_is_known() -> None:
    assert Address.parse("metrics.example:8081").answers_to("metrics.example:8081")


async def test_a_name_that_was_given_is_known() -> None:
    server = StatusServer(0, live=Checks(), hosts=["metrics.example"])
    async with server, aiohttp.ClientSession(server.url) as session:
        hosts = ["metrics.example", "METRICS.example:8081", "other.example"]
        found = [await status_for(session, host) for host in hosts]
    assert found == [200, 200, 421]


async def status_for(session: aiohttp.ClientSession, host: str) -> int:
    async with session.get("/livez", headers={"Host": host}) as answer:
        return answer.status
