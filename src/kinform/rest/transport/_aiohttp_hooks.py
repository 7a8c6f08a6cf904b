"""Classes that replace aiohttp's own, each with one difference in behaviour.

`kinform.rest.transport.aiohttp_transport` installs them. They send a request at most once, call the
guard before the first byte of a write, detect a kept connection that the server has closed, and
parse chunked bodies (`BodyParser`).
"""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import AsyncIterable, Callable, Sequence
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any, Final, Protocol, TypeAlias, final

import aiohttp
from aiohttp.abc import AbstractResolver, AbstractStreamWriter, ResolveResult
from aiohttp.connector import Connection

from kinform.errors import DecodeError
from kinform.rest.transport import HttpRequest
from kinform.rest.transport._sockets import Lookups
from kinform.sansio.wire.chunked import ChunkedDecoder

__all__ = [
    "KEPT",
    "SENDING",
    "BodyParser",
    "ConnectionEnded",
    "GuardRefused",
    "GuardedRequest",
    "GuardedResponse",
    "Parser",
    "Payload",
    "Resolver",
    "Stopped",
    "StreamedBody",
    "let_go",
    "once",
    "see_exception",
    "trace",
]


class GuardedResponse(aiohttp.ClientResponse):
    """A response whose connection is closed if its head does not arrive, for any reason."""

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        """Wait for the head."""
        try:
            return await super().start(connection)
        except BaseException:
            if connection.transport is not None:
                # Aborted, so that no later request on this connection can read the late answer to
                # this one.
                connection.transport.abort()
            raise


@final
class StreamedBody:
    """A streamed request body; keeps the exception it raised, which aiohttp would wrap."""

    def __init__(self, pieces: AsyncIterable[bytes]) -> None:
        self._pieces = aiter(pieces)
        self.error: Exception | None = None

    def __aiter__(self) -> StreamedBody:
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
    """Gives aiohttp the addresses that `kinform.rest.transport._sockets.Lookups` finds."""

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
        """Do nothing: there is nothing to close."""


class Stopped(Exception):
    """Carries an aiohttp error past aiohttp's own second attempt, which repeats PUT and DELETE."""

    def __init__(self, error: aiohttp.ClientError | OSError) -> None:
        super().__init__()
        self.error = error


SENDING: Final[ContextVar[HttpRequest | None]] = ContextVar("kinform_sending", default=None)
"""The request that this task sends; aiohttp may write in a task of its own."""


KEPT: Final[ContextVar[bool]] = ContextVar("kinform_kept", default=False)
"""True if the request is sent on a kept connection, one that has served another before."""


class ConnectionEnded(Exception):
    """A kept connection was closed before a byte of the request was sent on it."""


class GuardedRequest(aiohttp.ClientRequest):
    """A request that calls the guard in the same step in which the first bytes are written."""

    async def send(self, conn: Connection) -> aiohttp.ClientResponse:
        """Write the head, and begin with the body.

        Raises:
            Ended: nothing was written, so that any request may be sent again, writes too.
        """
        request = SENDING.get()
        if not KEPT.get():
            _read_by_records(conn.transport)
        # A write on a closed connection fails after it may have arrived, and then cannot be sent
        # again. Found out before the first byte, any request can.
        elif _is_readable(conn.transport):
            raise ConnectionEnded
        if not self._body:  # else aiohttp holds the head back and sends it with the body
            _call_guard(request)
        if request is not None and not request.shows_chunks:
            _parse_bodies(conn)  # before the first byte of the response can have arrived
        return await super().send(conn)

    async def write_bytes(
        self,
        writer: AbstractStreamWriter,
        conn: Connection,
        content_length: int | None = None,
    ) -> None:
        """Write the body."""
        try:
            # Of a request with a body: aiohttp sends the head together with it, from here.
            _call_guard(SENDING.get())
        except GuardRefused as refused:
            # The task that waits for the response gets this instead, and closes the connection.
            if conn.protocol is not None:
                conn.protocol.set_exception(refused)
            return
        await super().write_bytes(writer, conn, content_length)


def _call_guard(request: HttpRequest | None) -> None:
    if request is not None and request.guard is not None:
        try:
            request.guard()
        except Exception as exc:  # noqa: BLE001 - of any type: the transport raises it again
            raise GuardRefused(exc) from None


class GuardRefused(Exception):
    """Carries a guard's exception past aiohttp, and past our mapping of aiohttp's errors."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


async def once(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Send a request, and keep aiohttp from sending it again: a middleware.

    Raises:
        Stopped: it has failed.
    """
    try:
        return await handler(request)
    except (aiohttp.ClientError, OSError) as exc:
        raise Stopped(exc) from None


def see_exception(closed: asyncio.Future[None]) -> None:
    """Retrieve the exception of a closed connection; asyncio logs those never retrieved."""
    if not closed.cancelled():
        let_go(closed.exception())


def let_go(error: BaseException | None) -> None:
    """Clear the tracebacks of an error and of the errors that led to it.

    Their frames hold all that belonged to the connection, its buffers too, in a reference cycle
    that only a full collection finds, some hundred failures later; and they hold headers. The cost
    is that lines of aiohttp and asyncio are missing from tracebacks.
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


def trace() -> aiohttp.TraceConfig:
    """Set ``connected`` and ``reused`` of each request's ``ctx`` when it has a connection."""
    config = aiohttp.TraceConfig()
    config.on_connection_create_end.append(_note_connected)
    config.on_connection_reuseconn.append(_note_reused)
    return config


async def _note_connected(_session: object, context: SimpleNamespace, _params: object) -> None:
    context.trace_request_ctx.connected = True


async def _note_reused(_session: object, context: SimpleNamespace, _params: object) -> None:
    # A context variable, because `GuardedRequest.send` gets neither the exchange nor the trace
    # context.
    KEPT.set(True)
    context.trace_request_ctx.connected = context.trace_request_ctx.reused = True


_RECORD: Final = 16 * 1024
"""The size limit of a TLS record."""


def _read_by_records(transport: asyncio.BaseTransport | None) -> None:
    """Make asyncio allocate one TLS record at a time, if this asyncio lets us.

    By default it allocates 256 KB for each record and shrinks that to the record's 16 KB, which
    fragments the heap: three busy watches left 3 MB of holes in a minute and a half, and the
    number kept growing.
    """
    protocol = getattr(transport, "_ssl_protocol", None)
    if protocol is not None and hasattr(protocol, "max_size"):
        protocol.max_size = _RECORD


def _is_readable(transport: asyncio.BaseTransport | None) -> bool:
    """Return whether there are bytes, an end or an error that the loop has not seen yet.

    On an idle connection, all three mean that the server has closed it. The loop polls only
    between its iterations, so it would notice too late an end that came while a callback ran.
    """
    connection = None if transport is None else transport.get_extra_info("socket")
    if connection is None or not hasattr(select, "poll"):  # Windows: rely on the loop
        return False
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)  # ends and errors are always reported
    return bool(poll.poll(0))


def _parse_bodies(connection: Connection) -> None:
    """Install our parser for chunked responses on ``connection``, if this aiohttp lets us.

    If it does not, everything works as well but slower: `tests/rest/test_bodies.py`.
    """
    protocol: Any = connection.protocol
    if (parser := getattr(protocol, "_parser", None)) is not None:

        def on_surplus() -> None:
            # Bytes behind the end belong to no request. On a connection that is kept, they would be
            # the beginning of the next answer (response splitting).
            protocol.force_close()
            protocol.close()

        protocol._parser = BodyParser(  # noqa: SLF001 - aiohttp offers no other way
            parser, broken=aiohttp.ClientPayloadError, on_surplus=on_surplus
        )


class Payload(Protocol):
    """aiohttp's stream of a body."""

    def feed_data(self, data: bytes, /) -> object:
        """Take a piece."""
        ...

    def feed_eof(self) -> object:
        """Take the end."""
        ...

    def set_exception(self, exc: BaseException, /) -> object:
        """Break off."""
        ...


Fed: TypeAlias = "tuple[Sequence[tuple[Any, Payload]], bool, bytes]"
"""The completed heads with the streams of their bodies, a flag for a connection that was upgraded
to another protocol, and the bytes that follow such an upgrade."""


class Parser(Protocol):
    """aiohttp's parser."""

    def feed_data(self, data: bytes, /) -> Fed:
        """Take the bytes of one read."""
        ...

    def feed_eof(self) -> object:
        """Take the end of the connection."""
        ...


_HEAD_END: Final = b"\r\n\r\n"
_NOTHING: Final[Fed] = ((), False, b"")


@final
class BodyParser:
    """Parses the chunked body of one response; leaves everything else to aiohttp's parser.

    aiohttp delivers every chunk by itself, with several calls for each. A watch has a chunk for
    each event, so that was the largest cost of an informer. Here aiohttp parses the head and keeps
    the stream, its limits and its timeouts; `kinform.sansio.wire.chunked` gives the stream one
    piece for each read of the socket. A response that is not plainly chunked is left to aiohttp,
    from the first byte of its body to the last.

    Args:
        parser: reads the head, and the body if that is not chunked.
        broken: makes the exception that ends a stream whose chunks cannot be read.
        on_surplus: called for bytes behind the end: nothing more can be read from the connection.
    """

    __slots__ = (
        "_broken",
        "_decoder",
        "_is_left_alone",
        "_on_surplus",
        "_parser",
        "_payload",
        "_tail",
    )

    def __init__(
        self,
        parser: Parser,
        *,
        broken: Callable[[str], Exception],
        on_surplus: Callable[[], object],
    ) -> None:
        self._parser = parser
        self._broken = broken
        self._on_surplus = on_surplus
        self._tail = b""  # the last bytes of the head: its end may be cut
        self._is_left_alone = False
        self._decoder: ChunkedDecoder | None = None
        self._payload: Payload | None = None

    def feed_data(self, data: bytes) -> Fed:
        """Take the bytes of one read; return the result of aiohttp's parser for a head."""
        decoder, payload = self._decoder, self._payload
        if decoder is None:
            return self._parser.feed_data(data) if self._is_left_alone else self._feed_head(data)
        if payload is None:
            if data:
                self._on_surplus()
            return _NOTHING
        try:
            piece = decoder.feed(data)
        except DecodeError as exc:
            self._payload = None
            error = self._broken(exc.message)
            payload.set_exception(error)
            # Both: the reader gets it from the stream, and aiohttp closes the connection because of
            # the exception.
            raise error from None
        if piece:
            payload.feed_data(piece)
        if decoder.ended:
            self._payload = None
            if decoder.surplus:  # first: with the end, the connection goes back to its pool
                self._on_surplus()
            payload.feed_eof()
        return _NOTHING

    def feed_eof(self) -> object:
        """Take the end of the connection.

        Raises:
            Exception: the body is not complete.
        """
        if self._decoder is None:
            return self._parser.feed_eof()
        if not self._decoder.ended:
            raise self._broken("the connection ended within the body")
        return None

    def __getattr__(self, name: str) -> Any:
        """Return the attribute of aiohttp's parser: versions of aiohttp use different ones."""
        return getattr(self._parser, name)

    def pause_reading(self) -> None:
        """Do nothing for a body of ours: no bytes are held back here."""
        if self._decoder is None:
            self._parser.pause_reading()  # type: ignore[attr-defined]  # only newer versions call it

    def _feed_head(self, data: bytes) -> Fed:
        """Give aiohttp a head, and nothing behind it."""
        seen = self._tail + data
        end = seen.find(_HEAD_END)
        if b"\n\n" in (seen if end < 0 else seen[:end]):  # lines of the head end without \r
            self._is_left_alone = True
            return self._parser.feed_data(data)
        if end < 0:
            self._tail = seen[-3:]
            fed = self._parser.feed_data(data)
            self._is_left_alone = bool(fed[0])  # it has found an end where we see none
            return fed
        self._tail, place = b"", end + 4 - len(self._tail)
        messages, is_upgraded, tail = self._parser.feed_data(data[:place])
        rest = data[place:]
        is_plain = len(messages) == 1 and not is_upgraded and not tail
        if not is_plain or not getattr(messages[0][0], "chunked", False):
            self._is_left_alone = True
            if not rest:
                return messages, is_upgraded, tail
            if is_upgraded:
                return messages, True, tail + rest
            more, is_upgraded, tail = self._parser.feed_data(rest)
            return [*messages, *more], is_upgraded, tail
        self._decoder, self._payload = ChunkedDecoder(), messages[0][1]
        self.feed_data(rest)
        return messages, False, b""
