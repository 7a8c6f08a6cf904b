"""A transport without sockets: a client and an `Application` in one event loop.

Under virtual time nothing of it depends on the machine: neither order nor timing.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Final, final
from urllib.parse import urlsplit

from kinform.apiserver.endpoints.messages import (
    Broken,
    Burst,
    Chunks,
    Ending,
    ServerRequest,
    ServerResponse,
)
from kinform.errors import TransportError, TransportFailure
from kinform.rest.transport import Headers
from kinform.sansio.wire.gzip import GzipDecoder

if TYPE_CHECKING:
    from kinform.apiserver.endpoints.application import Application
    from kinform.rest.transport import Chunk, HttpRequest

__all__ = ["MemoryResponse", "MemoryTransport"]

_FAILURES: Final = {
    Ending.REFUSED: (TransportFailure.REFUSED, "the connection was refused"),
    Ending.RESET: (TransportFailure.RESET, "the connection was reset"),
    Ending.CLOSED: (TransportFailure.TRUNCATED, "the connection ended before the answer did"),
    Ending.SILENT: (TransportFailure.TIMEOUT, "no answer within the deadline"),
}


@final
class MemoryTransport:
    """A `kinform.Transport` that calls an application.

    The host of a URL is ignored.
    """

    def __init__(self, application: Application) -> None:
        self._application = application
        self._is_closed = False

    @contextlib.asynccontextmanager
    async def send(self, request: HttpRequest) -> AsyncGenerator[MemoryResponse]:
        """Pass the request to the application; leaving the block ends a watch.

        Raises:
            TransportError: this is closed, or the connection is to break.
        """
        if self._is_closed:
            raise self._error(request, TransportFailure.CLOSED, "the client is closed")
        if request.guard is not None:
            request.guard()
        answered = await self._answered(request)
        response = MemoryResponse(request, answered)
        try:
            yield response
        finally:
            await response.aclose()

    async def aclose(self) -> None:
        """Refuse all further requests."""
        self._is_closed = True

    async def _answered(self, request: HttpRequest) -> ServerResponse:
        parts = urlsplit(request.url)
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        body = request.body
        if body is not None and not isinstance(body, bytes):
            body = b"".join([part async for part in body])
        sent = ServerRequest.of(
            request.method, target, headers=dict(request.headers), body=body or b""
        )
        try:
            async with asyncio.timeout(request.read_timeout):
                try:
                    return await self._application.handle(sent)
                except Broken as exc:
                    await _silence(exc.ending)
                    failure, text = _FAILURES[exc.ending]
                    if exc.ending is Ending.CLOSED:  # before the answer has begun
                        failure = TransportFailure.RESET
                    raise self._error(request, failure, text) from exc
        except TimeoutError as exc:
            raise self._error(request, *_FAILURES[Ending.SILENT]) from exc

    def _error(self, request: HttpRequest, failure: TransportFailure, text: str) -> TransportError:
        return TransportError(text, failure=failure, method=request.method, url=request.url)


async def _silence(ending: Ending) -> None:
    if ending is Ending.SILENT:
        await asyncio.Event().wait()


@final
class MemoryResponse:
    """An answer; see `kinform.rest.transport.HttpResponse`."""

    def __init__(self, request: HttpRequest, response: ServerResponse) -> None:
        self._request = request
        self.status: int = response.status
        fields = list(response.headers.items())
        fields += [("Warning", warning) for warning in response.warning_headers()]
        self.headers: Mapping[str, str] = Headers(fields)
        body = response.body
        if isinstance(body, bytes):
            body = _whole(body)
        if self.headers.get("Content-Encoding") == "gzip":
            body = _unpacked(body)
        self._chunks: Chunks = body
        # A read that is cancelled leaves its piece to the next one.
        self._pending: asyncio.Task[bytes] | None = None
        self._is_reset = False

    def reset(self) -> None:
        """Break the connection: current and later reads fail."""
        self._is_reset = True
        if self._pending is not None:
            self._pending.cancel()

    async def read_some(self, *, gather: float = 0.0) -> bytes:  # noqa: ARG002 - all is there
        """Return the next chunk, ``b""`` at the end."""
        if self._is_reset:
            raise self._error(*_FAILURES[Ending.RESET])
        if self._pending is None:
            loop = asyncio.get_running_loop()
            self._pending = loop.create_task(self._next())
        try:
            async with asyncio.timeout(self._request.read_timeout):
                piece = await asyncio.shield(self._pending)
        except TimeoutError as exc:
            raise self._error(*_FAILURES[Ending.SILENT]) from exc
        except Broken as exc:
            self._pending = None
            raise self._error(*_FAILURES[exc.ending]) from exc
        except asyncio.CancelledError as exc:
            if self._was_reset():
                raise self._error(*_FAILURES[Ending.RESET]) from exc
            raise  # it is the reader who was cancelled
        self._pending = None
        return piece

    def _was_reset(self) -> bool:
        return self._is_reset and self._pending is not None and self._pending.cancelled()

    async def _next(self) -> bytes:
        try:
            async for chunk in self._chunks:
                if chunk:
                    return chunk
        except Broken as exc:
            await _silence(exc.ending)
            raise
        return b""

    async def iter_bytes(self) -> AsyncGenerator[bytes]:
        """Yield every chunk."""
        while piece := await self.read_some():
            yield piece

    async def iter_chunks(self) -> AsyncGenerator[Chunk]:
        """Yield every chunk, each of them whole."""
        while piece := await self.read_some():
            for part in piece.parts if isinstance(piece, Burst) else (piece,):
                yield part, True

    async def read(self, limit: int | None = None) -> bytes:
        """Return the whole body."""
        body = bytearray()
        while piece := await self.read_some():
            body += piece
            if limit is not None and len(body) > limit:
                raise self._error(TransportFailure.PROTOCOL, f"more than {limit} bytes")
        return bytes(body)

    async def aclose(self) -> None:
        """End what makes the body."""
        if self._pending is not None:
            self._pending.cancel()
            with contextlib.suppress(asyncio.CancelledError, Broken):
                await self._pending
        await self._chunks.aclose()

    def _error(self, failure: TransportFailure, text: str) -> TransportError:
        request = self._request
        return TransportError(text, failure=failure, method=request.method, url=request.url)


async def _whole(body: bytes) -> Chunks:
    yield body


async def _unpacked(chunks: Chunks) -> Chunks:
    decoder = GzipDecoder()
    async with contextlib.aclosing(chunks):
        async for chunk in chunks:
            yield b"".join(decoder.feed(chunk))
