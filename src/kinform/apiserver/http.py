"""The HTTP server: aiohttp in front of an `Application`. Thin on purpose.

The one module of this package that knows an HTTP library.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import ipaddress
import logging
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias, final
from urllib.parse import urlsplit

from aiohttp import web

from kinform._listening import Connections, half_of_descriptors
from kinform.apiserver._listening_socket import ServerSocket
from kinform.apiserver.endpoints import status
from kinform.apiserver.endpoints.application import Application
from kinform.apiserver.endpoints.messages import (
    BODY_LIMIT,
    Broken,
    Burst,
    Ending,
    ServerRequest,
    ServerResponse,
)
from kinform.apiserver.endpoints.status import StatusError
from kinform.errors import UsageError

__all__ = ["BODY_TIMEOUT", "MAX_CONNECTIONS", "PATIENCE", "HttpServer", "refusal"]

log: Final = logging.getLogger("kinform.apiserver")


def _without_details(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    if error is not None:
        record.msg, record.args = "%s (%s)", (record.getMessage(), type(error).__name__)
        record.exc_info = None
    return True


_Handler: TypeAlias = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

_careful: Final = logging.getLogger("kinform.apiserver.http")
"""The logger of aiohttp. It quotes request lines that it cannot read, and a request line may hold
a token: the text of a traceback is dropped."""
_careful.addFilter(_without_details)

PATIENCE: Final = 60.0
"""Seconds after which the watch of a client that does not read is closed."""
BODY_TIMEOUT: Final = 60.0
"""Seconds that a client has to send the whole body of a request, as in kube-apiserver."""
MAX_CONNECTIONS: Final = 10_000
"""The most open connections, unless half of the process's file descriptors are fewer.

Above the limit, connections without a token are closed, the oldest first. Authenticated
connections stay: a watch is meant to last. If only such are open, new connections are refused.
"""
_WAIT: Final = 0.5
"""Seconds that open answers get when the server stops; blocked ones get it twice."""
_LINGER: Final = 1.0
"""Seconds for which the rest of an unread body is read and dropped, so that the client sees the
answer instead of a reset connection."""
_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})


@final
class HttpServer:
    """Listens on a loopback port and lets an application answer.

    The body of a request is read only after its token has been checked: a client without one
    cannot make the server keep anything.

    Args:
        patience: Seconds after which the watch of a client that does not read is closed.
        body_timeout: Seconds that a client has to send the whole body of a request.
        max_connections: The most open connections; None: `MAX_CONNECTIONS`, or fewer.
    """

    def __init__(
        self,
        application: Application,
        *,
        host: str = "127.0.0.1",
        patience: float = PATIENCE,
        body_timeout: float = BODY_TIMEOUT,
        max_connections: int | None = None,
    ) -> None:
        self._application = application
        self._body_timeout = body_timeout
        self._patience = patience
        self._host = host
        most = max_connections or half_of_descriptors(at_most=MAX_CONNECTIONS)
        self._open: Final = Connections(most)
        self._runner: web.ServerRunner | None = None
        self._listener: ServerSocket | None = None

    async def start(self, port: int = 0) -> int:
        """Listen; return the port. Call `stop` afterwards, also after an error.

        Raises:
            UsageError: the port is in use, or may not be used.
        """
        # As in kube-apiserver, a body is not decompressed: its Content-Encoding is ignored.
        server = _Server(
            self._answer,
            self._open,
            handler_cancellation=True,
            access_log=None,
            lingering_time=_LINGER,
            auto_decompress=False,
            logger=_careful,
        )
        self._runner = web.ServerRunner(server, shutdown_timeout=_WAIT)
        await self._runner.setup()
        try:
            self._listener = listener = await ServerSocket.open(server, self._host, port)
        except OSError as exc:
            if exc.errno == errno.EADDRINUSE:
                raise UsageError(
                    f"port {port} is in use; choose another, or 0 for a free one"
                ) from exc
            raise UsageError(f"cannot listen on {self._host}:{port}: {exc.strerror}") from exc
        self._application.plan.when_refusing(self._refuse_or_admit)
        self._refuse_or_admit()
        return listener.port

    def _refuse_or_admit(self) -> None:
        if self._listener is not None:
            self._listener.turn(is_open=not self._application.plan.is_refusing)

    async def stop(self) -> None:
        """End every connection and listen no longer."""
        if self._runner is not None:
            runner, self._runner = self._runner, None
            if self._listener is not None:
                await self._listener.close()
                self._listener = None
            await runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if (why := refusal(request.headers)) is not None:
            refused = StatusError(403, "Forbidden", why)
            return web.json_response(refused.to_dict(), status=refused.code)
        asked = ServerRequest.of(request.method, request.raw_path, headers=request.headers)
        is_known = self._application.access.knows(asked)
        # Before it is answered: that may take as long as a fault or a pause lasts.
        if is_known and not self._open.is_trusted(request.protocol):
            self._open.trust(request.protocol)
        if request.method in _WITH_BODY and (
            is_known or self._application.access.takes_body(asked)
        ):
            try:
                async with asyncio.timeout(self._body_timeout):
                    asked.body = await _body(request)
            except TimeoutError:
                return _late()
        try:
            response = await self._application.handle(asked)
            if isinstance(response.body, bytes):
                return _whole(response, response.body)
            return await _stream(request, response, patience=self._patience)
        except Broken as exc:
            await _break(request, exc.ending)
            return web.Response()  # not sent: the connection is closed


class _Server(web.Server):
    """aiohttp's server with a limit on open connections."""

    def __init__(self, handler: _Handler, connections: Connections, **options: Any) -> None:
        super().__init__(handler, **options)
        self._open = connections
        self._has_warned = False

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        if not self._open.admit(handler, transport) and not self._has_warned:
            self._has_warned = True  # log it once
            most = f"{MAX_CONNECTIONS}, or half of what ulimit -n says"
            log.warning("connection limit reached, closing a connection", extra={"limit": most})

    def connection_lost(
        self, handler: web.RequestHandler, exc: BaseException | None = None
    ) -> None:
        self._open.forget(handler)
        super().connection_lost(handler, exc)


async def _body(request: web.BaseRequest) -> bytes:
    """Read a body, at most one byte more than an object may have."""
    if not request.can_read_body:
        return b""
    parts, size = list[bytes](), 0
    async for part in request.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > BODY_LIMIT:
            break
    return b"".join(parts)


def _late() -> web.Response:
    """Return the answer to a client that does not send its body; the connection ends with it."""
    error = status.timeout("request did not complete within the allotted duration")
    answer = web.json_response(error.to_dict(), status=error.code)
    answer.force_close()
    return answer


async def _break(request: web.BaseRequest, ending: Ending) -> None:
    """End a connection in the way of a fault."""
    transport = request.transport
    if transport is None:
        return
    if ending is Ending.SILENT:
        await asyncio.Event().wait()  # until the client goes, or the server stops
    elif ending is Ending.CLOSED:
        transport.close()
    else:
        connection = transport.get_extra_info("socket")
        if connection is not None:  # with these options, closing sends a reset
            linger = struct.pack("ii", 1, 0)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        transport.abort()


def _whole(response: ServerResponse, body: bytes) -> web.Response:
    answer = web.Response(status=response.status, body=body)
    _set_headers(answer, response)
    return answer


class _Chunked(web.StreamResponse):
    """An answer whose chunks are framed here, so that many of them are one write."""

    _length_check = False  # as of aiohttp's own WebSocketResponse: it adds no framing


async def _stream(
    request: web.BaseRequest, response: ServerResponse, *, patience: float
) -> web.StreamResponse:
    chunks = response.body
    assert not isinstance(chunks, bytes)
    answer = _Chunked(status=response.status)
    _set_headers(answer, response)
    answer.headers["Transfer-Encoding"] = "chunked"
    # A client that disconnects is expected: its watch ends.
    async with contextlib.aclosing(chunks):
        with contextlib.suppress(ConnectionResetError):
            await answer.prepare(request)
            async for chunk in chunks:
                parts = chunk.parts if isinstance(chunk, Burst) else (chunk,)
                framed = b"".join([b"%x\r\n%b\r\n" % (len(part), part) for part in parts if part])
                await _write(request, answer, framed, patience=patience)
            await answer.write(b"0\r\n\r\n")
            await answer.write_eof()
    return answer


async def _write(
    request: web.BaseRequest, answer: web.StreamResponse, chunk: bytes, *, patience: float
) -> None:
    try:
        async with asyncio.timeout(patience):
            await answer.write(chunk)
    except TimeoutError:
        if request.transport is not None:
            request.transport.abort()
        raise ConnectionResetError("the client does not read") from None


def _set_headers(answer: web.StreamResponse, response: ServerResponse) -> None:
    answer.headers.update(response.headers)
    if response.headers.get("Content-Type", "").startswith("application/"):
        answer.headers.setdefault("Cache-Control", "no-cache, private")
    if response.warnings:
        for warning in response.warning_headers():
            answer.headers.add("Warning", warning)


# --- requests from web pages

# A browser on this machine reaches the loopback port too. A page of another origin can send
# requests here, and with a DNS name that resolves to 127.0.0.1 it could read the answers (DNS
# rebinding). Both show in headers that a page cannot forge.

_FOREIGN_HOST: Final = "the request is for another host; this server answers to loopback names only"
_FOREIGN_ORIGIN: Final = "the request comes from a web page of another origin"


def refusal(headers: Mapping[str, str]) -> str | None:
    """Return why a request with these headers is not answered; None: it is.

    >>> refusal({"Host": "127.0.0.1:8001"})
    >>> refusal({"Host": "rebound.example:8001"})
    'the request is for another host; this server answers to loopback names only'
    """
    host = headers.get("Host", "")
    if host and not _is_loopback(host):
        return _FOREIGN_HOST
    origin = headers.get("Origin")
    if origin is not None and origin.lower() != f"http://{host}".lower():
        return _FOREIGN_ORIGIN
    return None


@functools.lru_cache(maxsize=64)
def _is_loopback(host: str) -> bool:
    try:
        name = (urlsplit(f"//{host}").hostname or "").removesuffix(".")
    except ValueError:
        return False
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
