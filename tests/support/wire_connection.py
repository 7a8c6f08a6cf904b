"""The server's end of a connection, and what goes over it; see `tests.support.wire`."""

from __future__ import annotations

import asyncio
import json as jsonlib
import os
import socket
import ssl
import struct
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

__all__ = ["Reply", "WireConnection", "WireRequest", "reply"]


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
    """The index of the server's connection, from 0."""

    @property
    def path(self) -> str:
        """The target without its query."""
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        """The query, decoded; of a repeated name, the last value."""
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))


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
        """True if the client closed its side (FIN or RST), as far as was read."""

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

    def end_unseen(self) -> None:
        """Close in good order, at once: no loop, not even the client's, has a turn meanwhile."""
        sock = self.writer.get_extra_info("socket")
        with socket.socket(fileno=os.dup(sock.fileno())) as same:
            same.shutdown(socket.SHUT_WR)

    def rst(self) -> None:
        """Close with a reset."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    @property
    def is_closing(self) -> bool:
        """True if this side has closed."""
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
