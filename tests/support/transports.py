"""Helpers for tests of `AiohttpTransport`: make transports, ask short questions, count leaks."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import traceback
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Generator, Iterator
from pathlib import Path
from typing import Protocol

import pytest

from kinform.errors import TransportError
from kinform.rest.transport import HttpRequest
from kinform.rest.transport.aiohttp_transport import AiohttpTransport, TlsContext
from kinform.rest.transport.proxy import Proxy
from tests.support.wire import WireServer

__all__ = [
    "CANARY",
    "NewTransport",
    "always",
    "at",
    "body_of",
    "client_sockets",
    "failure_of",
    "full_backlog",
    "get",
    "open_sockets",
    "post",
    "transports",
    "unused_port",
]

CANARY = "canary-token"
"""A secret; `failure_of` sends it and sees that no error shows it."""


class NewTransport(Protocol):
    """Makes a transport; the settings are those of `AiohttpTransport`."""

    def __call__(
        self,
        *,
        tls: TlsContext | None = None,
        server_hostname: str | None = None,
        proxy: Proxy | None = None,
        connect_timeout: float = 15.0,
        max_requests: int = 64,
        queue_timeout: float = 60.0,
    ) -> AiohttpTransport: ...


@contextlib.asynccontextmanager
async def transports() -> AsyncGenerator[NewTransport]:
    """Make transports that are closed at the end."""
    made: list[AiohttpTransport] = []

    def new(
        *,
        tls: TlsContext | None = None,
        server_hostname: str | None = None,
        proxy: Proxy | None = None,
        connect_timeout: float = 15.0,
        max_requests: int = 64,
        queue_timeout: float = 60.0,
    ) -> AiohttpTransport:
        made.append(
            AiohttpTransport(
                tls=tls,
                server_hostname=server_hostname,
                proxy=proxy,
                connect_timeout=connect_timeout,
                max_requests=max_requests,
                queue_timeout=queue_timeout,
            )
        )
        return made[-1]

    yield new
    for transport in made:
        await transport.aclose()


def get(
    server: WireServer,
    path: str = "/",
    *,
    headers: dict[str, str] | None = None,
    read_timeout: float | None = 60.0,
    long_lived: bool = False,
) -> HttpRequest:
    """Return a GET for ``server``."""
    return HttpRequest(
        method="GET",
        url=server.url + path,
        headers=headers or {},
        read_timeout=read_timeout,
        long_lived=long_lived,
    )


def post(server: WireServer, body: bytes | AsyncIterable[bytes] = b"{}") -> HttpRequest:
    """Return a POST for ``server``."""
    return HttpRequest(method="POST", url=server.url + "/", body=body)


async def body_of(transport: AiohttpTransport, request: HttpRequest) -> bytes:
    """Send ``request`` and return the body of the answer."""
    async with transport.send(request) as response:
        return await response.read()


def always(context: ssl.SSLContext) -> Callable[[], Awaitable[ssl.SSLContext]]:
    """Return a provider of one TLS context."""

    async def provide() -> ssl.SSLContext:
        return context

    return provide


@contextlib.contextmanager
def full_backlog(host: str = "127.0.0.1", port: int = 0) -> Generator[int]:
    """Give a port that neither accepts nor refuses, because its queue is full (Linux)."""
    with socket.socket() as listener, contextlib.ExitStack() as stack:
        listener.bind((host, port))
        listener.listen(0)
        for _ in range(8):
            sock = stack.enter_context(socket.socket())
            sock.settimeout(0)
            sock.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


def open_sockets() -> int:
    """Return how many sockets this process has, connected or not (Linux)."""
    with contextlib.ExitStack() as stack:
        return len([stack.enter_context(sock) for sock in _sockets()])


@contextlib.contextmanager
def client_sockets(server: WireServer) -> Generator[list[socket.socket]]:
    """Give copies of our ends of the connections to ``server`` that we have not closed (Linux)."""
    addresses = {conn.writer.get_extra_info("peername") for conn in server.connections}
    with contextlib.ExitStack() as stack:
        found = [stack.enter_context(sock) for sock in _sockets()]
        yield [sock for sock in found if sock.getsockname() in addresses]


def _sockets() -> Iterator[socket.socket]:
    for entry in list(Path("/proc/self/fd").iterdir()):
        try:
            if entry.readlink().name.startswith("socket:"):
                yield socket.socket(fileno=os.dup(int(entry.name)))
        except OSError:
            continue  # closed meanwhile: the one that lists the folder


def unused_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def at(url: str) -> HttpRequest:
    return HttpRequest(method="GET", url=url)


async def failure_of(
    transport: AiohttpTransport, request: HttpRequest, *, match: str
) -> TransportError:
    """Send ``request`` with a token, see it fail with ``match``, and find the token nowhere."""
    secret = HttpRequest(
        method=request.method,
        url=request.url,
        headers={**request.headers, "Authorization": f"Bearer {CANARY}"},
        body=request.body,
        read_timeout=request.read_timeout,
        long_lived=request.long_lived,
    )
    with pytest.raises(TransportError, match=match) as caught:
        await body_of(transport, secret)
    error = caught.value
    assert (error.method, error.url) == (request.method, request.url)
    assert error.message[0].islower() or not error.message[0].isalpha()
    assert not error.message.endswith(".")
    link: BaseException | None = error
    while link is not None:
        assert CANARY not in f"{link!r} {link} {link.__context__!r}"
        link = link.__cause__
    assert CANARY not in "".join(traceback.format_exception(error))
    return error
