"""`AiohttpTransport`: the `Transport` over real sockets.

It turns off what aiohttp does by default and a Kubernetes client must not have: cookies,
redirects, ``.netrc``, proxies from the environment, invented headers, one pool and one deadline
for everything, and sending a PUT or DELETE twice. It also closes what aiohttp leaves open: an
abandoned connection is aborted, and `AiohttpTransport.aclose` returns when no socket is left. The
changes inside aiohttp are in `kinform.rest.transport._aiohttp_hooks`; no other module of the client
depends on aiohttp.

Flow of one request: ``_Exchange`` takes a slot of the pool, waits for the head, then returns a
`kinform.rest.transport.StreamedResponse` that reads the body through ``_Stream``. aiohttp's errors
become ours in one place, ``_Exchange.explained``.
"""

from __future__ import annotations

import asyncio
import io
import logging
import os
import ssl
from collections.abc import AsyncIterable, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from typing import Final, TypeAlias, TypedDict, final

import aiohttp
from aiohttp.http_exceptions import LineTooLong
from yarl import URL

from kinform.errors import KinformError, TransportError, TransportFailure, UsageError
from kinform.rest.transport import (
    Chunk,
    Headers,
    HttpRequest,
    HttpResponse,
    StreamedResponse,
    _failures,
    fields_of,
)
from kinform.rest.transport._aiohttp_hooks import (
    KEPT,
    SENDING,
    ConnectionEnded,
    GuardedRequest,
    GuardedResponse,
    GuardRefused,
    Resolver,
    Stopped,
    StreamedBody,
    let_go,
    once,
    see_exception,
    trace,
)
from kinform.rest.transport._sockets import Sockets
from kinform.rest.transport.proxy import Proxy

__all__ = ["AiohttpTransport", "TlsContext"]

log: Final = logging.getLogger(__name__)

TlsContext: TypeAlias = Callable[[], Awaitable[ssl.SSLContext | None]]
"""Gives the TLS context for a new request; ``None``: the system's trust store, no certificate."""

_READ_BUFFER: Final = 256 * 1024
_MAX_HEADER: Final = 64 * 1024
_IDLE: Final = 55.0  # below the 60 s after which common load balancers drop an idle connection
_BIG_BODY: Final = 2**20  # aiohttp warns when it is given more than this as one bytes object
_NO_AUTO_HEADERS: Final = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
_CLOSED: Final = "the client is closed"
_OTHER_LOOP: Final = "this client belongs to another event loop: open one per loop"


@final
class AiohttpTransport:
    """Sends requests with aiohttp; one connection per request in flight, kept for the next.

    The constructor does no I/O; the first request binds it to the running loop and to this process.
    Ordinary requests share ``max_requests`` slots and queue for one, long-lived requests need none.
    A request that still queues after ``queue_timeout`` fails with a `TransportError` with
    `TransportFailure.CONNECT_TIMEOUT`: nothing was sent.

    A request that may have been sent is not retried, with one exception: a GET or HEAD on a kept
    connection that the server closed at that moment is sent again on another one. A write never
    is. No request is sent on a kept connection that is known, at that moment, to be closed.

    Args:
        tls: called for each ``https`` request. A connection is kept for the context it was made
            with, so a new context takes effect with the next request.
        server_hostname: the name the certificate must carry, if not the host of the URL.
        proxy: the proxy of every request; ``https`` requests use a tunnel.
        connect_timeout: longest time for address, connection, tunnel and TLS together.

    Raises:
        UsageError: from a request, if this is another process (after a fork) or another loop
            than that of the first request: the connections belong to those.
    """

    def __init__(
        self,
        *,
        tls: TlsContext | None = None,
        server_hostname: str | None = None,
        proxy: Proxy | None = None,
        connect_timeout: float = 15.0,
        max_requests: int = 64,
        queue_timeout: float = 60.0,
    ) -> None:
        self._settings = _Settings(
            tls=tls,
            server_hostname=server_hostname,
            proxy=proxy,
            connect_timeout=connect_timeout,
            max_requests=max_requests,
            queue_timeout=queue_timeout,
        )
        self._pool: _Pool | None = None
        self._closed = False

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open" if self._pool else "unused"
        return f"<AiohttpTransport {state}>"

    def send(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpResponse]:
        """Send ``request``; see `kinform.Transport.send`.

        An exception of a streamed body passes through unchanged.
        """
        return _Exchange(request, settings=self._settings, connect=self._connect)

    async def aclose(self) -> None:
        """Abort every connection and wait until its socket is closed.

        Requests in flight fail with `TransportFailure.CLOSED`. In a forked child this only
        marks the transport closed: the connections are the parent's.

        Raises:
            UsageError: if this is another loop than that of the requests.
        """
        self._closed = True
        if self._pool is not None and self._pool.pid == os.getpid():
            if self._pool.loop is not asyncio.get_running_loop():
                raise UsageError(_OTHER_LOOP)
            await self._pool.aclose()

    def _connect(self) -> _Pool:
        """Return the pool, made at the first call, if it may be used here."""
        if self._pool is None and not self._closed:
            self._pool = _Pool(self._settings.max_requests)
        pool = self._pool
        if pool is not None and pool.pid != os.getpid():
            raise UsageError(
                f"this client belongs to process {pool.pid} and cannot be used after a fork: "
                "open a new one in the child"
            )
        if pool is None or self._closed:
            raise TransportError(_CLOSED, failure=TransportFailure.CLOSED)
        if pool.loop is not asyncio.get_running_loop():
            raise UsageError(_OTHER_LOOP)
        return pool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settings:
    """The arguments of an `AiohttpTransport`, documented there."""

    tls: TlsContext | None
    server_hostname: str | None
    proxy: Proxy | None
    connect_timeout: float
    max_requests: int
    queue_timeout: float


@final
class _Pool:
    """The connections of one transport, on one loop, in one process."""

    def __init__(self, slots: int) -> None:
        self.pid: Final = os.getpid()
        self.loop: Final = asyncio.get_running_loop()
        self.slots: Final = asyncio.Semaphore(slots)
        self.entering: Final = set[asyncio.Timeout]()
        """The scope of each request that waits for its head; `aclose` ends it."""
        self.closed = False
        self._sockets = Sockets()
        self.session: Final = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0,  # ``slots`` bounds ordinary requests; watches have no bound
                keepalive_timeout=_IDLE,
                resolver=Resolver(),
                # A cached address would outlive a server that moved (F-R13): an informer reconnects
                # exactly when the old address has stopped answering.
                use_dns_cache=False,
                socket_factory=self._sockets.new,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            request_class=GuardedRequest,
            response_class=GuardedResponse,
            middlewares=(once,),
            trace_configs=[trace()],
            skip_auto_headers=_NO_AUTO_HEADERS,
            auto_decompress=False,
            trust_env=False,
            read_bufsize=_READ_BUFFER,
            max_line_size=_MAX_HEADER,
            max_field_size=_MAX_HEADER,
        )

    async def aclose(self) -> None:
        self.closed = True
        # A request that still waits for a slot, an address or a connection has no socket that could
        # be cut.
        while self.entering:
            self.entering.pop().reschedule(self.loop.time())
        self._sockets.cut()  # before the session waits for connections that wait for their peer
        await self.session.close()
        await self._sockets.wait_closed()


class _Arguments(TypedDict):
    """Keywords of `aiohttp.ClientSession.request`."""

    headers: list[tuple[str, str]]
    data: bytes | io.BytesIO | AsyncIterable[bytes] | None
    allow_redirects: bool
    timeout: aiohttp.ClientTimeout
    ssl: ssl.SSLContext | bool
    server_hostname: str | None
    proxy: str | None
    proxy_headers: list[tuple[str, str]]
    trace_request_ctx: object


@final
class _Exchange(AbstractAsyncContextManager[HttpResponse]):
    """One request and its answer. May be entered in one task and left in another."""

    def __init__(
        self, request: HttpRequest, *, settings: _Settings, connect: Callable[[], _Pool]
    ) -> None:
        self._request = request
        self._settings = settings
        self._connect = connect
        try:
            url = URL(request.url, encoded=True)
        except ValueError:  # its text may hold the password
            raise UsageError("the URL of the request cannot be read") from None
        # Without a user and password: credentials are headers here.
        self._url = url.with_user(None) if url.raw_user or url.raw_password else url
        self._body: StreamedBody | None = None
        self._stream: _Stream | None = None
        self._slot: asyncio.Semaphore | None = None
        self.connected = False
        """True once there was a connection to the server."""
        self.reused = False
        """True if that connection had served another request before."""
        self._answered = False

    async def __aenter__(self) -> HttpResponse:
        pool = self._connect()
        closing = asyncio.timeout(None)  # no limit, until `_Pool.aclose` sets one: now
        try:
            async with closing:
                pool.entering.add(closing)
                if not self._request.long_lived:
                    await self._take_slot(pool.slots)
                response = await self._head(pool.session)
                # Before `_refuse`, which may raise: `_leave` can close only a response that it
                # knows.
                self._stream = _Stream(response, exchange=self, pool=pool)
                self._answered = True
                if response.status >= 300:
                    self._refuse(response)
                headers = Headers(response.headers.items())
                return StreamedResponse(response.status, headers, source=self._stream)
        except BaseException as exc:
            await self._leave()
            if not (isinstance(exc, TimeoutError) and closing.expired()):
                raise
        finally:
            pool.entering.discard(closing)
        raise self.error(TransportFailure.CLOSED, _CLOSED)

    async def _leave(self, *_: object) -> None:
        stream, self._stream = self._stream, None  # it refers to us: a reference cycle
        try:
            if stream is not None:
                await stream.aclose()
        finally:
            if self._slot is not None:
                self._slot.release()
                self._slot = None

    __aexit__ = _leave

    async def _take_slot(self, slots: asyncio.Semaphore) -> None:
        limit = self._settings.queue_timeout
        try:
            async with asyncio.timeout(limit):
                await slots.acquire()
                # Within the timeout: no await between the acquisition and this line, so a slot is
                # never lost.
                self._slot = slots
        except TimeoutError:
            under_way = f"{self._settings.max_requests} requests are under way"
            message = f"still in line after {limit:g} s: {under_way}"
            raise self.error(TransportFailure.CONNECT_TIMEOUT, message) from None

    async def _head(self, session: aiohttp.ClientSession) -> aiohttp.ClientResponse:
        """Send the request and wait for the head of the response."""
        is_tls = self._url.scheme == "https"
        tls = await self._settings.tls() if is_tls and self._settings.tls else None
        error: Exception  # of any type; those that are not aiohttp's are the system's
        while True:
            self.connected = self.reused = False
            SENDING.set(self._request)
            KEPT.set(False)
            try:
                arguments = self._arguments(tls)
                return await session.request(self._request.method, self._url, **arguments)
            except (
                ConnectionEnded
            ):  # each time there is one kept connection fewer: the loop terminates
                continue
            except GuardRefused as refused:
                raise refused.error from None
            except Stopped as stopped:
                error = stopped.error
            except (aiohttp.ClientError, OSError, RuntimeError, ValueError) as exc:
                error = exc
            # Raised here, not within ``except``: aiohttp's errors may hold the request's headers
            # and must not stay reachable as the context of ours.
            # The caller's own exception, which aiohttp has wrapped: it must arrive as it was
            # raised.
            if self._body is not None and self._body.error is not None:
                raise self._body.error
            # On a fresh connection the server has chosen to close it, so that is its answer. Only a
            # kept one may have been closed before it saw the request.
            if not (self.reused and self._is_repeatable and _is_stale(error)):
                raise self.explained(error)
            log.debug("kept connection was closed, request is sent again")

    def _arguments(self, tls: ssl.SSLContext | None) -> _Arguments:
        """Return the keywords of aiohttp's ``request`` for one attempt."""
        request, proxy = self._request, self._settings.proxy
        headers, proxy_headers = [*fields_of(request.headers)], list[tuple[str, str]]()
        if proxy is not None and proxy.authorization is not None:
            # In a tunnel the proxy reads only the CONNECT; without one it reads the request.
            target = proxy_headers if self._url.scheme == "https" else headers
            target.append(("Proxy-Authorization", proxy.authorization))
        body = request.body
        if body is not None and not isinstance(body, bytes):
            body = self._body = StreamedBody(body)
        return {
            "headers": headers,
            "data": io.BytesIO(body) if isinstance(body, bytes) and len(body) > _BIG_BODY else body,
            "allow_redirects": False,
            # No total: a watch may last for ever. Deadlines of whole answers are those of
            # `Connection`.
            "timeout": aiohttp.ClientTimeout(
                total=None, connect=self._settings.connect_timeout, sock_read=request.read_timeout
            ),
            "ssl": True if tls is None else tls,
            "server_hostname": self._settings.server_hostname,
            "proxy": None if proxy is None else proxy.url,
            "proxy_headers": proxy_headers,
            "trace_request_ctx": self,
        }

    @property
    def _is_repeatable(self) -> bool:
        return self._request.method in {"GET", "HEAD"} and self._request.body is None

    def _refuse(self, response: aiohttp.ClientResponse) -> None:
        """Raise for responses no caller may see: a redirect, a proxy that asks for a password."""
        status = response.status
        # Never followed: the target could be any host, and a client certificate would be presented
        # there even if the token is left out.
        if 300 <= status < 400 and status != 304:
            raise self.error(*self._route.redirected(status, response.headers.get("Location")))
        if status == 407 and self._settings.proxy is not None:
            raise self.error(*self._route.no_tunnel(status))

    @property
    def _route(self) -> _failures.ServerRoute:
        url, name = self._url, self._settings.server_hostname
        proxy = None
        if self._settings.proxy is not None:
            via = URL(self._settings.proxy.url)
            proxy = _failures.Peer(host=via.host or "", port=via.port, role="proxy")
        return _failures.ServerRoute(
            server=_failures.Peer(host=url.host or "", port=url.port, certificate_name=name),
            proxy=proxy,
            tls=url.scheme == "https",
        )

    def error(self, kind: TransportFailure, message: str) -> TransportError:
        """Return an error that names this request."""
        method, url = self._request.method, str(self._url)
        return TransportError(message, failure=kind, method=method, url=url)

    def explained(self, exc: Exception) -> KinformError:
        """Return our error for one of aiohttp's, which becomes its cause if that leaks nothing."""
        if _is_flaw(exc):
            request = f"{self._request.method} {self._url}"
            return UsageError(f"cannot send {request}: {self._flaw(exc)}")
        error = self.error(*self._failure(exc))
        # A ClientResponseError holds the request's headers, and bytes of the response.
        error.__cause__ = None if isinstance(exc, aiohttp.ClientResponseError) else exc
        let_go(exc)
        return error

    def _flaw(self, exc: Exception) -> str:
        for name, value in self._request.headers.items():
            if not (name + value).isprintable():
                return f"header {name!r} holds a control character"
        return "that is not a usable URL" if isinstance(exc, aiohttp.ClientError) else str(exc)

    def _failure(self, exc: Exception) -> _failures.Failure:
        route, answered = self._route, self._answered
        match exc:
            case aiohttp.ConnectionTimeoutError():
                return route.not_connected_within(self._settings.connect_timeout)
            case aiohttp.ServerTimeoutError():
                return route.silent_for(self._request.read_timeout or 0, answered=answered)
            case aiohttp.ClientHttpProxyError(status=status):
                return route.no_tunnel(status)
            case aiohttp.ClientConnectorError():
                return route.refused(_reason(exc), host=exc.host, port=exc.port)
            # After the errors that name their host. Any other failure before there was a connection
            # happened between us and the proxy.
            case _ if self._settings.proxy is not None and not self.connected:
                return route.no_tunnel(None)
            case aiohttp.ClientResponseError():
                return route.header_over(_MAX_HEADER) if _is_too_long(exc) else route.not_http()
            case _:
                by_peer = isinstance(exc, aiohttp.ServerDisconnectedError)
                return route.lost(None if by_peer else exc.__cause__ or exc, answered=answered)


@final
class _Stream:
    """The body of a response as aiohttp delivers it: a `kinform.rest.transport.BodySource`."""

    def __init__(
        self, response: aiohttp.ClientResponse, *, exchange: _Exchange, pool: _Pool
    ) -> None:
        self._exchange = exchange
        self._pool = pool
        self._response = response
        self._left = False
        self.error: Final = exchange.error
        connection = response.connection  # None if the whole body has arrived
        protocol = None if connection is None else connection.protocol
        self._closed = None if protocol is None else protocol.closed
        if self._closed is not None:
            self._closed.remove_done_callback(see_exception)  # of an earlier request
            self._closed.add_done_callback(see_exception)
            self._closed.add_done_callback(self._wake)

    def _wake(self, _: object) -> None:
        """Wake the reader of a body that can no longer arrive.

        aiohttp itself does not when it cannot parse the next chunk: the reader would wait for
        ever, without even a deadline.
        """
        content = self._response.content
        if not content.is_eof() and content.exception() is None:
            content.set_exception(aiohttp.ClientPayloadError("the connection is closed"))

    async def read(self) -> bytes:
        try:
            return await self._response.content.readany()
        except (aiohttp.ClientError, OSError, RuntimeError) as exc:
            error = self._explained(exc)
        try:
            raise error
        finally:
            del error  # its traceback holds this frame: a reference cycle

    async def read_chunk(self) -> Chunk:
        try:
            return await self._response.content.readchunk()
        except (aiohttp.ClientError, OSError, RuntimeError) as exc:
            error = self._explained(exc)
        try:
            raise error
        finally:
            del error

    async def gather(self, seconds: float) -> None:
        connection = self._response.connection
        protocol = None if connection is None else connection.protocol
        if protocol is None or self._is_lost:
            return
        # Reading is paused at the socket, not in a buffer of ours: TCP then slows the server down.
        protocol.pause_reading()
        try:
            await asyncio.sleep(seconds)
        finally:
            protocol.resume_reading()

    def _explained(self, exc: Exception) -> KinformError:
        # First: leaving closes the connection, so all other explanations would be true as well.
        if self._left:
            return UsageError("an answer cannot be read after its request was left")
        if self._pool.closed:
            return self.error(TransportFailure.CLOSED, _CLOSED)
        # aiohttp raises a RuntimeError for two readers, and another one for a lost connection.
        if isinstance(exc, RuntimeError) and not self._is_lost:
            return UsageError("an answer cannot be read by two tasks at the same time")
        return self._exchange.explained(exc)

    @property
    def _is_lost(self) -> bool:
        return self._closed is None or self._closed.done()

    async def aclose(self) -> None:
        """Cut the connection, unless the whole body has arrived and it went back to the pool."""
        self._left = True
        if self._closed is not None:
            self._closed.remove_done_callback(self._wake)
        connection = self._response.connection
        if connection is not None and connection.transport is not None:
            connection.transport.abort()  # TLS would wait for the peer's close_notify
        self._response.close()
        with suppress(aiohttp.ClientError, OSError):
            await self._response.wait_for_close()  # for the task that sends a streamed body


def _is_stale(exc: Exception) -> bool:
    """Return whether the connection was found closed, by us or while we waited for the head."""
    return isinstance(
        exc,
        aiohttp.ServerDisconnectedError
        | aiohttp.ClientOSError
        | aiohttp.ClientConnectionResetError,
    )


def _is_flaw(exc: Exception) -> bool:
    """Return whether the request itself is impossible."""
    impossible = isinstance(exc, ValueError | aiohttp.NonHttpUrlClientError)
    return impossible and not isinstance(exc, OSError)  # a certificate error is both


def _reason(exc: aiohttp.ClientConnectorError) -> Exception:
    """Return the error of the system or of TLS; versions of aiohttp keep it in different places."""
    if isinstance(exc, aiohttp.ClientConnectorCertificateError):
        return exc.certificate_error
    return exc.os_error


def _is_too_long(exc: BaseException | None) -> bool:
    while exc is not None and not isinstance(exc, LineTooLong):
        exc = exc.__cause__
    return exc is not None
