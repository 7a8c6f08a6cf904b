"""A scripted HTTP server on loopback that may misbehave byte by byte.

.. code-block:: python

    async def handler(request: WireRequest, conn: WireConnection) -> None:
        await conn.chunked()
        await conn.chunk(b'{"type":"ADDED"}')
        await conn.stall()  # until the client goes away


    async with WireServer(handler) as server:
        ...  # talk to server.url
    assert server.requests[0].path == "/api"

    async with WireServer(answers(reply(200, json={}), reply(503))) as server:
        ...

The handler runs once per request, in the order of arrival on its connection; when it returns, the
next request of that connection is read. What a handler raises is raised again by ``async with``
(a client that disconnected is not an error).
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

from tests.support.wire_connection import Reply, WireConnection, WireRequest, reply

__all__ = ["Handler", "Reply", "WireConnection", "WireRequest", "WireServer", "answers", "reply"]

DEADLINE = 5.0
"""Longest a ``wait_…`` waits before the test fails."""

Handler = Callable[[WireRequest, WireConnection], Awaitable[None]]


def answers(*replies: Reply, then: Reply | None = None) -> Handler:
    """Return a handler that gives the answers in order, then ``then`` for ever, or fails."""
    waiting = list(replies)

    async def handler(request: WireRequest, conn: WireConnection) -> None:
        answer = waiting.pop(0) if waiting else then
        assert answer is not None, f"no answer left for {request.method} {request.target}"
        await conn.reply(answer)

    return handler


class WireServer:
    """Serve ``handler`` on a free loopback port for the length of an ``async with``.

    ``on_connect`` runs before anything is read and may close the connection. With ``tls`` the
    URL is ``https://localhost:…``, otherwise ``http://127.0.0.1:…``.
    """

    def __init__(
        self,
        handler: Handler | None = None,
        *,
        tls: ssl.SSLContext | None = None,
        on_connect: Callable[[WireConnection], Awaitable[None]] | None = None,
    ) -> None:
        self._handler = handler or answers()
        self._on_connect = on_connect
        self._tls = tls
        self._changed = asyncio.Condition()
        self._tasks: set[asyncio.Task[object]] = set()
        self._errors: list[Exception] = []
        self.requests: list[WireRequest] = []
        """Every request, in the order their bodies were complete."""
        self.connections: list[WireConnection] = []
        """Every connection ever accepted (with TLS: whose handshake succeeded)."""
        self.port = 0

    @property
    def host(self) -> str:
        """The host name in `url`."""
        return "localhost" if self._tls else "127.0.0.1"

    @property
    def url(self) -> str:
        """The base URL, without a final slash."""
        return f"{'https' if self._tls else 'http'}://{self.host}:{self.port}"

    @property
    def open_connections(self) -> list[WireConnection]:
        """The connections that are not over yet."""
        return [conn for conn in self.connections if not conn.gone.is_set()]

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait until ``condition`` holds; asked at each connect, request and disconnect."""
        async with asyncio.timeout(DEADLINE), self._changed:
            await self._changed.wait_for(condition)

    async def wait_requests(self, count: int = 1) -> None:
        """Wait until that many requests have arrived in all."""
        await self.wait_until(lambda: len(self.requests) >= count)

    async def wait_all_gone(self) -> None:
        """Wait until no connection is open."""
        await self.wait_until(lambda: not self.open_connections)

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        conn = WireConnection(len(self.connections), reader, writer)
        self.connections.append(conn)
        try:
            await self._converse(conn)
        except (ConnectionError, ssl.SSLError, asyncio.CancelledError):
            pass  # the client left, or the test is over
        except Exception as exc:  # noqa: BLE001 - raised again by __aexit__
            self._errors.append(exc)
        finally:
            writer.transport.abort() if task.cancelling() else writer.close()
            conn.gone.set()
            self._tasks.discard(task)
            await self._notify()

    async def _converse(self, conn: WireConnection) -> None:
        await self._notify()
        if self._on_connect:
            await self._on_connect(conn)
        while not conn.is_closing and (request := await conn.read_request()):
            self.requests.append(request)
            await self._notify()
            await self._handler(request, conn)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._serve, self.host, family=socket.AF_INET, ssl=self._tls, limit=2**22
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()
        if self._errors and exc is None:
            raise self._errors[0]
