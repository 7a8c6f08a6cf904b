"""Ways from a client to a server: slowed down, recorded, or with something in between."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncGenerator
from typing import Final, NamedTuple, Self, final
from urllib.parse import parse_qs, urlsplit

import kinform
from kinform import Client, TokenBucketLimiter
from kinform.rest.transport import HttpRequest, HttpResponse
from kinform.rest.transport.aiohttp_transport import AiohttpTransport
from kinform.rest.transport.tls import TlsSource
from kinform.testing import ControlPlane, User

_CHUNK: Final = 16 * 1024


def port_of(plane: ControlPlane, apiserver: int = 0) -> int:
    port = urlsplit(plane.urls[apiserver]).port
    assert port is not None
    return port


def connect(
    plane: ControlPlane,
    user: User | None = None,
    *,
    port: int | None = None,
    qps: float = 1000,
    transport: Recording | None = None,
) -> Client:
    """Return a client that does no more than ``qps`` requests a second."""
    config = plane.config if user is None else user.config
    if port is not None:
        config = dataclasses.replace(config, server=f"https://127.0.0.1:{port}")
    limiter = TokenBucketLimiter(qps=qps, burst=10)
    return kinform.connect(config, rate_limiter=limiter, transport=transport)


class Asked(NamedTuple):
    """A list or watch of config maps."""

    query: dict[str, str]
    status: int
    answered_at: float


@final
class Recording:
    """The real transport of a control plane's administrator, and what went through it."""

    def __init__(self, plane: ControlPlane) -> None:
        self._inner = AiohttpTransport(tls=TlsSource(plane.config).context)
        self.asked: list[Asked] = []

    @contextlib.asynccontextmanager
    async def send(self, request: HttpRequest) -> AsyncGenerator[HttpResponse]:
        address = urlsplit(request.url)
        async with self._inner.send(request) as response:
            if address.path.endswith("/configmaps"):
                query = {key: value for key, (value,) in parse_qs(address.query).items()}
                now = asyncio.get_running_loop().time()
                self.asked.append(Asked(query, response.status, now))
            yield response

    async def aclose(self) -> None:
        await self._inner.aclose()


@final
class Front:
    """A load balancer: one loopback port in front of the current server.

    Attributes:
        port: where it listens.
        cuts: after how many bytes more from the server all connections are cut; again and again.
    """

    def __init__(self, target: int) -> None:
        self._target: int | None = target
        self._links: dict[asyncio.Task[object], asyncio.StreamWriter] = {}
        self.port: int = 0
        self.cuts: list[int] = []

    def move(self, target: int) -> None:
        """Pass connections on to another port from now on, and cut those there are."""
        self._target = target
        self._cut()

    def close(self) -> None:
        """Take no connection any more, and cut those there are, until `move`."""
        self._target = None
        self._cut()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._pass_on, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._server.close()
        while self._links:
            self._cut()
            await asyncio.wait(tuple(self._links))
        await self._server.wait_closed()

    def _cut(self) -> None:
        for near in self._links.values():
            near.transport.abort()

    async def _pass_on(self, reader: asyncio.StreamReader, near: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._links[task] = near
        try:
            with contextlib.suppress(OSError):
                await self._join(reader, near)
        finally:
            near.close()
            del self._links[task]

    async def _join(self, reader: asyncio.StreamReader, near: asyncio.StreamWriter) -> None:
        if self._target is None:
            return
        there, far = await asyncio.open_connection("127.0.0.1", self._target)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._copy(reader, far))
                group.create_task(self._copy(there, near, counted=True))
        except* OSError:
            pass
        finally:
            far.close()

    async def _copy(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, counted: bool = False
    ) -> None:
        """Copy until either side ends, which ends both."""
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
            if counted and self.cuts:
                self.cuts[0] -= len(data)
                if self.cuts[0] <= 0:
                    self.cuts.pop(0)
                    self._cut()
        raise ConnectionAbortedError
