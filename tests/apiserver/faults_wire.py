"""A raw HTTP client over sockets, to see the bytes on the wire."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
from collections.abc import AsyncIterator
from typing import Any

from kinform.apiserver import APIServer

TIMEOUT = 10.0
"""Far more than anything here takes: a test that hangs is to fail."""


@dataclasses.dataclass
class Answer:
    """An answer, as far as it came."""

    status: int
    headers: dict[str, str]
    body: bytes
    chunks: list[bytes]
    is_whole: bool
    """It ended as HTTP says: all bytes that were promised, or the last chunk."""

    def json(self) -> Any:
        return json.loads(self.body)


class Wire:
    """One connection."""

    def __init__(
        self, server: APIServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._server = server
        self._reader = reader
        self._writer = writer

    async def send(self, target: str, *, method: str = "GET", body: Any = None) -> None:
        content = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{method} {target} HTTP/1.1\r\nHost: localhost\r\n"
            f"Authorization: Bearer {self._server.token}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(content)}\r\n\r\n"
        )
        self._writer.write(head.encode() + content)
        await self._writer.drain()

    async def head(self) -> tuple[int, dict[str, str]]:
        async with asyncio.timeout(TIMEOUT):
            raw = await self._reader.readuntil(b"\r\n\r\n")
        first, *lines = raw.decode().split("\r\n")
        pairs = (line.partition(": ") for line in lines if line)
        return int(first.split()[1]), {name.lower(): value for name, _, value in pairs}

    async def chunk(self) -> bytes | None:
        """Return the next chunk, ``b""`` for the last one, None if there is none."""
        async with asyncio.timeout(TIMEOUT):
            line = await self._reader.readline()
            if not line:
                return None
            size = int(line, 16)
            data = await self._reader.readexactly(size + 2)
            return data[:-2]

    async def event(self) -> Any:
        data = await self.chunk()
        assert data, "the stream has ended"
        return json.loads(data)

    async def answer(self) -> Answer:
        """Read until the answer ends, in order or not."""
        status, headers = await self.head()
        if "content-length" in headers:
            size = int(headers["content-length"])
            async with asyncio.timeout(TIMEOUT):
                body = await self._reader.readexactly(size)
            return Answer(status, headers, body, [body], is_whole=True)
        chunks: list[bytes] = []
        while data := await self.chunk():
            chunks.append(data)
        return Answer(status, headers, b"".join(chunks), chunks, is_whole=data is not None)

    async def is_closed(self) -> bool:
        """Tell whether the connection ends in order, with nothing more in it."""
        async with asyncio.timeout(TIMEOUT):
            return not await self._reader.read(1)

    async def ask(self, target: str, *, method: str = "GET", body: Any = None) -> Answer:
        await self.send(target, method=method, body=body)
        return await self.answer()


@contextlib.asynccontextmanager
async def wire(server: APIServer) -> AsyncIterator[Wire]:
    """Open a connection of one's own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]))
    try:
        yield Wire(server, reader, writer)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def ask(server: APIServer, target: str, *, method: str = "GET", body: Any = None) -> Answer:
    """Ask on a connection of its own."""
    async with wire(server) as connection:
        return await connection.ask(target, method=method, body=body)


CONFIGS = "/api/v1/namespaces/default/configmaps"
WATCH = f"{CONFIGS}?watch=true&resourceVersion=1"


async def put(server: APIServer, *names: str) -> None:
    """Create config maps, past all faults that are not about creating."""
    for name in names:
        body = {"metadata": {"name": name}, "data": {"key": "value"}}
        answer = await ask(server, CONFIGS, method="POST", body=body)
        assert answer.status == 201, answer.body
