"""The embedded server's limit on open connections: on real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
from collections.abc import AsyncGenerator

import pytest

import kinform
from kinform._listening import half_of_descriptors
from kinform.apiserver import APIServer
from kinform.apiserver.http import MAX_CONNECTIONS, HttpServer

MOST = 8
WATCH = "/api/v1/namespaces/default/configmaps?watch=true&resourceVersion=0"


def plain(path: str) -> bytes:
    """Return a request that says nothing of who sends it."""
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


HEALTH = plain("/readyz")


class Door:
    """A server with a low connection limit, and its clients."""

    def __init__(self, server: APIServer, port: int, stack: contextlib.ExitStack) -> None:
        self.server = server
        self.port = port
        self._stack = stack

    @property
    def config(self) -> kinform.Config:
        return kinform.Config(server=f"http://127.0.0.1:{self.port}", token=self.server.token)

    async def knock(self, sent: bytes = b"") -> asyncio.StreamReader:
        """Open a connection and say no more than ``sent``."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self._stack.callback(writer.close)
        writer.write(sent)
        return reader

    def signed(self, path: str, token: str | None = None) -> bytes:
        """Return a request with a token: the server's own, unless another is given."""
        head = f"Host: localhost\r\nAuthorization: Bearer {token or self.server.token}"
        return f"GET {path} HTTP/1.1\r\n{head}\r\n\r\n".encode()

    async def ask(self, sent: bytes, code: int = 200) -> asyncio.StreamReader:
        """Send a request by hand, and read the head of its answer."""
        reader = await self.knock(sent)
        head = await reader.readuntil(b"\r\n\r\n")
        assert int(head.split()[1]) == code
        return reader


@contextlib.asynccontextmanager
async def opened(*, most: int = MOST, rbac: bool = False) -> AsyncGenerator[Door]:
    async with APIServer(rbac=rbac) as server, asyncio.timeout(20):
        http = HttpServer(server.application, max_connections=most)
        try:
            with contextlib.ExitStack() as stack:
                yield Door(server, await http.start(), stack)
        finally:
            await http.stop()


async def test_unauthenticated_connections_are_closed_oldest_first_and_a_client_is_admitted() -> (
    None
):
    async with opened() as door:
        unauthenticated = [await door.knock() for _ in range(MOST + 5)]
        for reader in unauthenticated[:5]:
            assert await reader.read() == b""
        async with kinform.connect(door.config) as client:
            assert await client.resource("v1/namespaces").list()
        assert await unauthenticated[5].read() == b""
        assert not unauthenticated[6].at_eof()


@pytest.mark.parametrize("said", [b"", b"GET / HT", HEALTH], ids=["nothing", "half", "health"])
async def test_unauthenticated_connections_never_cost_a_client_its_watch(said: bytes) -> None:
    async with opened() as door, kinform.connect(door.config) as client:
        configmaps = client.resource("v1/configmaps", namespace="default")
        async with configmaps.informer() as informer:
            await informer.wait_synced(5)
            for _ in range(5 * MOST):
                await door.knock(said)
            made = await configmaps.create({"metadata": {"name": "a"}})
            await informer.wait_until(made.resource_version, 5)
            figures = informer.statistics().reflector
            assert (figures.watches, figures.failures) == (1, 0)
            assert informer.lister.namespace("default").get("a") == made


async def test_a_token_counts_in_path_and_header_independent_of_rights() -> None:
    async with opened(rbac=True) as door:
        in_header = await door.ask(door.signed(WATCH))
        in_path = await door.ask(plain(f"/~{door.server.token}{WATCH}"))
        jane = door.server.user("jane").token
        forbidden = await door.ask(door.signed(WATCH, jane), 403)
        guessed = await door.ask(door.signed(WATCH, "guessed"), 401)
        for _ in range(3 * MOST):
            await door.knock()
        await guessed.read()  # its answer, and then the end
        assert not any(it.at_eof() for it in (in_header, in_path, forbidden))


async def test_where_all_are_clients_the_last_is_sent_away_until_one_goes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with opened(most=2) as door, kinform.connect(door.config) as client:
        first = await door.ask(door.signed(WATCH))
        async with client.resource("v1/configmaps").watch():
            for _ in range(3):
                assert await (await door.knock(HEALTH)).read() == b""
        assert [one.levelno for one in caplog.records] == [logging.WARNING]
        while not (answer := await (await door.knock(HEALTH)).read(12)):
            pass
        assert answer == b"HTTP/1.1 200"
        assert not first.at_eof()


async def test_a_waiting_request_counts_as_authenticated() -> None:
    """A paused server does not answer, but has authenticated the requests."""
    async with opened() as door:
        door.server.pause()
        asking = await door.knock(door.signed("/readyz"))
        for _ in range(3 * MOST):
            await door.knock(HEALTH)
        door.server.resume()
        assert await asking.read(12) == b"HTTP/1.1 200"


def test_half_of_the_descriptors_are_left_to_others() -> None:
    allowed, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
        assert half_of_descriptors(at_most=MAX_CONNECTIONS) == 512
        assert half_of_descriptors(at_most=64) == 64
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
