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
(a client that went away is no error).
"""

from __future__ import annotations

import asyncio
import json as jsonlib
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self
from urllib.parse import parse_qsl, urlsplit

__all__ = ["Handler", "Reply", "WireConnection", "WireRequest", "WireServer", "answers", "reply"]

DEADLINE = 5.0
"""Longest a ``wait_…`` waits before the test fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WireRequest:
    """A request as it arrived."""

    method: str
    target: str
    """Path and query, exactly as on the wire."""
    headers: Mapping[str, str]
    """By lower-case name; of a repeated header, the values joined by ``", "``."""
    body: bytes
    head: bytes = field(repr=False)
    """Request line and headers, exactly as on the wire."""
    connection: int
    """Which of the server's connections it came on, from 0."""

    @property
    def path(self) -> str:
        """The target without its query."""
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        """The query, decoded; of a repeated name, the last value."""
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))


class WireConnection:
    """The server's end of one connection: full control of the bytes."""

    def __init__(
        self, index: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.index = index
        self.reader = reader
        self.writer = writer
        self.requests: list[WireRequest] = []
        self.gone = asyncio.Event()
        """Set when the connection is over: the client left, or the handler closed it."""
        self.saw_eof = False
        """Whether the client closed its side (FIN or RST), as far as was read."""

    async def write(self, data: bytes) -> None:
        """Send raw bytes."""
        self.writer.write(data)
        await self.writer.drain()

    async def head(
        self, status: int = 200, headers: Mapping[str, str] | None = None, *, reason: str = "X"
    ) -> None:
        """Send a status line and headers, and nothing more."""
        lines = [f"HTTP/1.1 {status} {reason}", *(f"{k}: {v}" for k, v in (headers or {}).items())]
        await self.write("\r\n".join([*lines, "", ""]).encode("latin-1"))

    async def send(
        self, status: int = 200, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> None:
        """Send a whole answer. A ``Content-Length`` of your own may lie about the body."""
        own = {name.lower() for name in headers or {}}
        length = {} if "content-length" in own else {"Content-Length": str(len(body))}
        await self.head(status, {**(headers or {}), **length})
        if body:
            await self.write(body)

    async def reply(self, answer: Reply) -> None:
        """Send a prepared answer."""
        await self.send(answer.status, answer.headers, answer.body)

    async def chunked(self, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """Begin a chunked answer; then `chunk` and `end_chunks`."""
        await self.head(status, {**(headers or {}), "Transfer-Encoding": "chunked"})

    async def chunk(self, data: bytes) -> None:
        """Send one HTTP chunk."""
        await self.write(b"%x\r\n%b\r\n" % (len(data), data))

    async def end_chunks(self) -> None:
        """Send the last, empty chunk."""
        await self.write(b"0\r\n\r\n")

    async def stall(self) -> None:
        """Say nothing until the client closes the connection."""
        with suppress(ConnectionError, ssl.SSLError):
            while await self.reader.read(65536):
                pass
        self.saw_eof = True

    async def fin(self) -> None:
        """Close in good order."""
        self.writer.close()
        with suppress(ConnectionError, ssl.SSLError):
            await self.writer.wait_closed()

    def rst(self) -> None:
        """Close with a reset."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    @property
    def is_closing(self) -> bool:
        """Whether this side has closed."""
        return self.writer.is_closing()

    async def read_request(self) -> WireRequest | None:
        """Return the next request, or ``None`` if the client left."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
            line, *fields = head.decode("latin-1").rstrip("\r\n").split("\r\n")
            method, target, _ = line.split(" ", 2)
            headers: dict[str, str] = {}
            for name, value in (text.split(":", 1) for text in fields):
                earlier = headers.get(name.lower())
                headers[name.lower()] = f"{earlier}, {value.strip()}" if earlier else value.strip()
            body = await self._read_body(headers)
        except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            self.saw_eof = True
            return None
        request = WireRequest(
            method=method,
            target=target,
            headers=headers,
            body=body,
            head=head,
            connection=self.index,
        )
        self.requests.append(request)
        return request

    async def _read_body(self, headers: Mapping[str, str]) -> bytes:
        if headers.get("transfer-encoding", "").lower() != "chunked":
            return await self.reader.readexactly(int(headers.get("content-length", "0")))
        pieces: list[bytes] = []
        while size := int(await self.reader.readuntil(b"\r\n"), 16):
            pieces.append((await self.reader.readexactly(size + 2))[:-2])
        await self.reader.readuntil(b"\r\n")
        return b"".join(pieces)


Handler = Callable[[WireRequest, WireConnection], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Reply:
    """A prepared answer; see `reply`."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def reply(
    status: int = 200,
    *,
    json: object = None,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """Prepare an answer, with ``json`` encoded if given."""
    if json is None:
        return Reply(status, dict(headers or {}), body)
    typed = {"Content-Type": "application/json", **(headers or {})}
    return Reply(status, typed, jsonlib.dumps(json, separators=(",", ":")).encode())


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
