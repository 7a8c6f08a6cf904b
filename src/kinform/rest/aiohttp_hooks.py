"""What kinform changes in aiohttp: classes in the place of aiohttp's, each with one difference.

`kinform.rest.aiohttp_transport` puts them there.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterable
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any, Final, final

import aiohttp
from aiohttp.abc import AbstractResolver, AbstractStreamWriter, ResolveResult
from aiohttp.connector import Connection

from kinform.rest.bodies import BodyParser
from kinform.rest.sockets import Lookups, has_news, read_by_records
from kinform.rest.transport import HttpRequest

__all__ = [
    "KEPT",
    "SENDING",
    "Body",
    "Ended",
    "Refused",
    "Request",
    "Resolver",
    "Response",
    "Stopped",
    "let_go",
    "once",
    "see_exception",
    "trace",
]


class Response(aiohttp.ClientResponse):
    """An answer whose connection is cut if its head does not arrive, for whatever reason."""

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        """Wait for the head."""
        try:
            return await super().start(connection)
        except BaseException:
            if connection.transport is not None:
                connection.transport.abort()
            raise


@final
class Body:
    """A streamed request body; keeps what it raised, which aiohttp would wrap."""

    def __init__(self, pieces: AsyncIterable[bytes]) -> None:
        self._pieces = aiter(pieces)
        self.error: Exception | None = None

    def __aiter__(self) -> Body:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await anext(self._pieces)
        except StopAsyncIteration:
            raise
        except Exception as exc:
            self.error = exc
            raise


@final
class Resolver(AbstractResolver):
    """Gives aiohttp the addresses that `kinform.rest.sockets.Lookups` finds."""

    def __init__(self) -> None:
        self._lookups = Lookups()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses of ``host``."""
        return [
            ResolveResult(hostname=host, host=address, port=port, family=found, proto=0, flags=0)
            for found, address in await self._lookups.addresses(host, port)
            if family in {socket.AF_UNSPEC, found}
        ]

    async def close(self) -> None:
        """Nothing to close."""


class Stopped(Exception):
    """Carries an error of aiohttp past aiohttp's own second try, which repeats PUT and DELETE."""

    def __init__(self, error: aiohttp.ClientError | OSError) -> None:
        super().__init__()
        self.error = error


SENDING: Final[ContextVar[HttpRequest | None]] = ContextVar("kinform_sending", default=None)
"""The request that this task sends; aiohttp may write in a task of its own."""


KEPT: Final[ContextVar[bool]] = ContextVar("kinform_kept", default=False)
"""Whether the connection that it goes out on has served before."""


class Ended(Exception):
    """A kept connection was over before a byte of the request went out on it."""


class Request(aiohttp.ClientRequest):
    """Asks the guard in the very step in which the first bytes are written."""

    async def send(self, conn: Connection) -> aiohttp.ClientResponse:
        """Write the head, and begin with the body.

        Raises:
            Ended: nothing was written, so that any request may go out again, writes too.
        """
        if KEPT.get() and has_news(conn.transport):
            raise Ended
        if not self._body:  # else the head is kept back, and sent with it
            self._ask()
        request = SENDING.get()
        read_by_records(conn.transport)
        if request is not None and not request.shows_chunks:
            _parse_bodies(conn)  # before the first byte of the answer can have come
        return await super().send(conn)

    async def write_bytes(
        self,
        writer: AbstractStreamWriter,
        conn: Connection,
        content_length: int | None = None,
    ) -> None:
        """Write the body."""
        try:
            self._ask()
        except Refused as refused:
            # Whoever waits for the answer gets this instead, and closes the connection.
            if conn.protocol is not None:
                conn.protocol.set_exception(refused)
            return
        await super().write_bytes(writer, conn, content_length)

    @staticmethod
    def _ask() -> None:
        request = SENDING.get()
        if request is not None and request.guard is not None:
            try:
                request.guard()
            except Exception as exc:  # noqa: BLE001 - whatever it is, it is raised again
                raise Refused(exc) from None


def _parse_bodies(connection: Connection) -> None:
    """Have chunked answers on ``connection`` parsed by us, if this aiohttp lets us.

    If it does not, everything works as well, and takes longer: `tests/rest/test_bodies.py`.
    """
    protocol: Any = connection.protocol
    if (parser := getattr(protocol, "_parser", None)) is not None:

        def on_surplus() -> None:
            protocol.force_close()
            protocol.close()

        protocol._parser = BodyParser(  # noqa: SLF001 - there is no other way in
            parser, broken=aiohttp.ClientPayloadError, on_surplus=on_surplus
        )


class Refused(Exception):
    """Carries what a guard raised past aiohttp, and past what is made of aiohttp's errors."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


async def once(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Send a request, and do not let aiohttp send it again: a middleware.

    Raises:
        Stopped: it has failed.
    """
    try:
        return await handler(request)
    except (aiohttp.ClientError, OSError) as exc:
        raise Stopped(exc) from None


def see_exception(closed: asyncio.Future[None]) -> None:
    """Look at how a connection ended; asyncio complains of exceptions that nobody saw."""
    if not closed.cancelled():
        let_go(closed.exception())


def let_go(error: BaseException | None) -> None:
    """Let an error, and what led to it, forget the frames it has passed through.

    They hold all that belonged to the connection, its buffers too, in a ring that only
    a full collection would find, some hundred failures later; and they hold headers. What is lost
    are lines of aiohttp and asyncio in tracebacks.
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


def trace() -> aiohttp.TraceConfig:
    """Have each request told of its connection, by ``note_connected`` of its ``ctx``."""
    config = aiohttp.TraceConfig()
    config.on_connection_create_end.append(_note_connected)
    config.on_connection_reuseconn.append(_note_reused)
    return config


async def _note_connected(_session: object, context: SimpleNamespace, _params: object) -> None:
    context.trace_request_ctx.note_connected(reused=False)


async def _note_reused(_session: object, context: SimpleNamespace, _params: object) -> None:
    KEPT.set(True)
    context.trace_request_ctx.note_connected(reused=True)
