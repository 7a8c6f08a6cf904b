"""An API server in memory, at the `Transport` seam: it gives one answer, piece by piece.

Everything above the seam is what runs in production: connection, request, watch, informer.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from typing import Final, final

from kinform.cache.listwatch import ListWatch
from kinform.objects.object import Object
from kinform.rest.client import RESTClient
from kinform.rest.connection import Connection
from kinform.rest.transport import Chunk, Headers, HttpRequest, HttpResponse

__all__ = ["READ_SIZE", "Answer", "pieces", "source"]

READ_SIZE: Final = 64 * 1024
"""The size of one read of a busy connection."""


def pieces(parts: Iterable[bytes], size: int = READ_SIZE) -> Iterator[bytes]:
    """Cut what ``parts`` make together into pieces of ``size``; the last one may be shorter."""
    buffer = bytearray()
    for part in parts:
        buffer += part
        while len(buffer) >= size:
            yield bytes(buffer[:size])
            del buffer[:size]
    if buffer:
        yield bytes(buffer)


@final
class Answer:
    """An answer whose body is what is put, as it is put; it ends with an empty piece."""

    def __init__(self) -> None:
        self._bodies: list[Iterator[bytes]] = []
        self._more = asyncio.Event()

    def put(self, body: Iterable[bytes]) -> None:
        """Send these pieces behind all that was put before."""
        self._bodies.append(iter(body))
        self._more.set()

    @property
    def status(self) -> int:
        """The HTTP status code."""
        return 200

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers."""
        return Headers([("Content-Type", "application/json")])

    async def read_some(self, *, gather: float = 0.0) -> bytes:  # noqa: ARG002
        """Return the next piece; wait until there is one."""
        await asyncio.sleep(0)  # as with a socket, all others have a turn between two reads
        while True:
            while self._bodies:
                piece = next(self._bodies[0], None)
                if piece is not None:
                    return piece
                self._bodies.pop(0)
            self._more.clear()
            await self._more.wait()

    async def iter_bytes(self) -> AsyncGenerator[bytes]:
        """Yield piece after piece."""
        while piece := await self.read_some():
            yield piece

    async def iter_chunks(self) -> AsyncGenerator[Chunk]:
        """Yield piece after piece as an HTTP chunk."""
        async for piece in self.iter_bytes():
            yield piece, True

    async def read(self, limit: int | None = None) -> bytes:
        """Return the whole body."""
        del limit
        return b"".join([piece async for piece in self.iter_bytes()])


@final
class _Transport:
    def __init__(self, answers: Iterable[Answer]) -> None:
        self._answers = iter(answers)

    @contextlib.asynccontextmanager
    async def send(self, request: HttpRequest) -> AsyncGenerator[HttpResponse]:
        del request
        yield next(self._answers)

    async def aclose(self) -> None:
        pass


def source(*answers: Answer) -> ListWatch[Object]:
    """Return the pods of a server that gives these answers, in this order, to what it is asked."""
    connection = Connection("https://bench.invalid", _Transport(answers))
    return ListWatch.from_client(RESTClient(connection), "pods")
