"""`Connection`: credentials, limits, retries and errors of all requests of one client.

Above it, `Request` describes a request; below it, a `Transport` moves bytes. Every request passes
these steps: wait for the rate limiter, start the deadline, add credentials, send, turn an error
response into an exception, decide on another attempt.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import logging
import os
import platform
import random
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar, final

from kinform import clock
from kinform.errors import (
    ApiError,
    KinformError,
    TransportError,
    TransportFailure,
    UnauthorizedError,
    UsageError,
)
from kinform.rest import _responses
from kinform.rest.config import ANSWER_TIMEOUT, MAX_OBJECT_SIZE
from kinform.rest.rate_limits import RateLimiter
from kinform.rest.reconnects import Reconnects
from kinform.rest.transport import (
    AuthHeaders,
    Body,
    HttpRequest,
    HttpResponse,
    Transport,
    merged,
)
from kinform.rest.warnings import WarningHandler, WarningLogger, parse_warnings
from kinform.sansio.retry import Purpose, retry_delay
from kinform.version import __version__

__all__ = ["Authenticator", "Call", "Connection", "user_agent"]

log: Final = logging.getLogger(__name__)

R = TypeVar("R")

_READS: Final = frozenset({"GET", "HEAD"})

HEAD_TIMEOUT: Final = 45.0
"""Longest wait for the head of a response whose body may then be silent: a watch, a log."""

ERROR_BODY_TIMEOUT: Final = 10.0

MAX_RETRIES: Final = 10
"""Default number of retries of a request, as in client-go."""


class Authenticator(Protocol):
    """Provides the headers that authenticate a request."""

    async def headers(self) -> Mapping[str, str]:
        """Return the headers to send; may read a file or run a plugin."""
        ...

    async def refresh(self, used: Mapping[str, str]) -> bool:
        """Renew the credential after a 401 for ``used``; return whether to send again."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request, complete except for the credentials."""

    method: str
    path: str
    """Escaped path with its query, appended to the server's base URL."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    body: Body = field(default=None, repr=False)
    purpose: Purpose = Purpose.CALL
    timeout: float | None = None
    """Deadline for all attempts together; the wait for the limiter does not count."""
    read_timeout: float | None = None
    max_retries: int = MAX_RETRIES
    limiter: RateLimiter | None = None
    is_urgent: bool = False
    """It waits neither for a rate limiter nor for a slot of the request pool."""
    warning_handler: WarningHandler | None = None

    @property
    def repeatable(self) -> bool:
        """True if the body can be sent twice."""
        return self.body is None or isinstance(self.body, bytes)


@final
class Connection:
    """Sends the requests of every `RESTClient` of one client. Any task of its loop may use it.

    Attributes:
        base_url: scheme, host and prefix, without a slash at the end.
        reconnects: the limiter for watches that reconnect after a failure.
    """

    def __init__(
        self,
        base_url: str,
        transport: Transport,
        *,
        credentials: Authenticator | None = None,
        rate_limiter: RateLimiter | None = None,
        warning_handler: WarningHandler | None = None,
        compression: bool = True,
        agent: str | None = None,
        read_timeout: float | None = 60.0,
        answer_timeout: float | None = ANSWER_TIMEOUT,
        max_object_size: int = MAX_OBJECT_SIZE,
        max_list_size: int | None = None,
        reconnect_rate: float | None = None,
        on_tls_failure: Callable[[], None] | None = None,
        guard: Callable[[], None] | None = None,
    ) -> None:
        self.base_url: Final = base_url.rstrip("/")
        self.rate_limiter: Final = rate_limiter
        self.reconnects: Final = Reconnects(rate=reconnect_rate)
        self.compression: Final = compression
        self.read_timeout: Final = read_timeout
        self.answer_timeout: Final = answer_timeout
        self.max_object_size: Final = max_object_size
        self.max_list_size: Final = max_list_size
        self._transport = transport
        self._credentials = credentials
        self._warn = warning_handler or WarningLogger()
        self._agent = agent or user_agent()
        self._on_tls_failure = on_tls_failure
        self._guard = guard
        # One object for all views of a connection (`guarded`).
        self._lifetime = _Lifetime()

    def guarded(self, guard: Callable[[], None]) -> Connection:
        """Return a view of this connection that also calls ``guard`` before each write is sent."""
        before = self._guard

        def both() -> None:
            if before is not None:
                before()
            guard()

        view = copy.copy(self)
        view._guard = both  # noqa: SLF001 - it is one of us
        return view

    def bind(self) -> None:
        """Bind to this process and to the running loop: requests from others are refused."""
        self._lifetime.owner = os.getpid(), asyncio.get_running_loop()

    @property
    def is_closed(self) -> bool:
        """True once `aclose` was called, here or on another view of the same connection."""
        return self._lifetime.is_closed

    async def aclose(self) -> None:
        """Close the transport; later requests are a `UsageError`, those in flight fail."""
        self._lifetime.is_closed = True
        await self._transport.aclose()

    async def call(self, call: Call, consume: Callable[[HttpResponse], Awaitable[R]]) -> R:
        """Send ``call`` and return the result of ``consume(response)``.

        ``consume`` runs once per attempt that got a 2xx response, inside the deadline; a response
        that is cut off while being read counts as a failed attempt.

        Raises:
            ApiError: the server refused, and no retry is left or allowed.
            TransportError: no response, or none within ``call.timeout``; without one, an attempt
                may take ``answer_timeout``.
        """
        limit = self.answer_timeout if call.timeout is None else None

        async def attempt() -> R:
            deadline = asyncio.timeout(limit)
            try:
                async with deadline, contextlib.AsyncExitStack() as stack:
                    return await consume(await self._open(call, stack))
            except TimeoutError as exc:
                if not deadline.expired():
                    raise  # the caller's own, from ``consume``
                raise self._timeout(call, f"no answer within {limit:g} s") from exc

        return await self._attempts(call, attempt)

    @contextlib.asynccontextmanager
    async def open(self, call: Call) -> AsyncGenerator[HttpResponse]:
        """Send ``call`` and return the response while its body still arrives.

        Only opening is retried and timed; once the head has arrived, failures reach the reader.
        """
        async with contextlib.AsyncExitStack() as stack:
            yield await self._attempts(call, lambda: self._open(call, stack))

    async def _wait_turn(self, call: Call) -> None:
        """Wait for the rate limiter.

        Raises:
            UsageError: the client is closed, or belongs to another process or loop.
        """
        if self._lifetime.is_closed:
            raise UsageError("this client is closed")
        pid, loop = self._lifetime.owner or (None, None)
        # Two processes on one TLS connection corrupt each other's records
        # (kubernetes-client/python#1000).
        if pid is not None and pid != os.getpid():
            raise UsageError(
                f"this client belongs to process {pid} and cannot be used after a fork: open a "
                "new one in the child"
            )
        if loop is not None and loop is not asyncio.get_running_loop():
            raise UsageError(
                "this client belongs to another event loop, the one that opened it: open one per "
                "loop"
            )
        limiter = call.limiter or self.rate_limiter
        if limiter is not None and not call.is_urgent:
            await limiter.wait()

    async def _attempts(self, call: Call, attempt: Callable[[], Awaitable[R]]) -> R:
        """Run ``attempt`` until it succeeds or may not be repeated, within ``call.timeout``."""
        # Outside of the deadline: the client's own limiter does not delay the server's answer.
        await self._wait_turn(call)
        failures: list[KinformError] = []
        deadline = asyncio.timeout(call.timeout)
        try:
            async with deadline:
                while True:
                    try:
                        return await attempt()
                    except (ApiError, TransportError) as exc:
                        delay = self._delay(call, exc) if len(failures) < call.max_retries else None
                        if delay is None:
                            _note_attempts(exc, failures)
                            raise
                        failures.append(exc)
                    await self._back_off(call, delay)
        except TimeoutError as exc:
            if not deadline.expired():
                raise  # the caller's own, from ``consume``
            raise self._timeout(call, f"no answer within {call.timeout:g} s") from exc

    async def _back_off(self, call: Call, delay: float) -> None:
        """Wait until ``call`` may be sent again."""
        log.debug(
            "request will be sent again",
            extra={"method": call.method, "path": call.path, "delay": delay},
        )
        await asyncio.sleep(delay)
        if call.purpose is Purpose.WATCH:
            # Watches take turns with the informers that reconnect: after a restart of the server
            # these are the same crowd. The client's own rate limiter has counted the watch once,
            # when it was opened first.
            await self.reconnects.wait()
        else:
            await self._wait_turn(call)

    def _delay(self, call: Call, error: KinformError) -> float | None:
        # A stream cannot be rewound, so a second attempt would send only its rest.
        if not call.repeatable:
            return None
        return retry_delay(error, method=call.method, purpose=call.purpose, rand=random.random())

    async def _open(self, call: Call, stack: contextlib.AsyncExitStack) -> HttpResponse:
        """Send ``call``, again after a 401 if the credential could be renewed.

        ``stack`` closes the response.
        """
        credentials = self._credentials
        # With each attempt: a token may have been rotated while the last attempt waited.
        used: Mapping[str, str] = await credentials.headers() if credentials else AuthHeaders()
        try:
            return await self._send(call, used, stack)
        # Once: a second 401 with fresh credentials is an answer. The request was not executed, so
        # even a write may be sent again.
        except UnauthorizedError:
            if credentials is None or not call.repeatable or not await credentials.refresh(used):
                raise
        return await self._send(call, await credentials.headers(), stack)

    async def _send(
        self, call: Call, identity: Mapping[str, str], stack: contextlib.AsyncExitStack
    ) -> HttpResponse:
        """Send ``call`` once, authenticated by ``identity``; raise on an error response."""
        request = self._http_request(call, identity)
        # Requests without a read timeout are watches and logs, whose silence is normal once they
        # have begun. Before that it is not: client-go relies on the server here and may wait for
        # ever (F-R02).
        limit = HEAD_TIMEOUT if call.read_timeout is None else None
        async with contextlib.AsyncExitStack() as mine:
            deadline = asyncio.timeout(limit)
            try:
                async with deadline:
                    response = await mine.enter_async_context(self._transport.send(request))
            except TimeoutError as exc:
                if not deadline.expired():
                    raise
                message = f"the server has not begun to answer within {limit:g} s"
                raise self._timeout(call, message) from exc
            except TransportError as exc:
                # The CA may have been rotated on disk since it was read: the next attempt reads it
                # at once, not after a minute.
                if exc.failure is TransportFailure.TLS and self._on_tls_failure:
                    self._on_tls_failure()
                raise
            if warnings := response.headers.get("Warning"):
                self._show_warnings(call, warnings)
            if not 200 <= response.status < 300:
                raise _responses.error_of_answer(
                    response.status,
                    response.headers,
                    await _read_some(response, _responses.MAX_ERROR_BODY),
                    method=call.method,
                    url=request.url,
                    wall=clock.current().wall(),
                )
            # Only now: an error response must be closed here, not when the caller's stack ends
            # after all retries.
            stack.push_async_exit(mine.pop_all())
        return response

    def _http_request(self, call: Call, identity: Mapping[str, str]) -> HttpRequest:
        return HttpRequest(
            method=call.method,
            url=self.base_url + call.path,
            headers=merged(call.headers, agent=self._agent, credentials=identity),
            body=call.body,
            read_timeout=call.read_timeout,
            # Watches stay open for minutes. In the pool of ordinary requests they would leave no
            # slot for others, and an urgent call (the renewal of a lease) must not wait behind
            # them.
            long_lived=call.is_urgent or call.purpose is not Purpose.CALL,
            shows_chunks=call.purpose is Purpose.STREAM,
            # Passed down and not called here: between this line and the socket the request may wait
            # for a connection, and a leader may lose its lease in that time.
            guard=None if call.method in _READS else self._guard,
        )

    def _show_warnings(self, call: Call, header: str) -> None:
        handler = call.warning_handler or self._warn
        for warning in parse_warnings(header):
            try:
                handler(warning)
            except Exception:
                # A bug of the callback: the request has succeeded, and its response is valid.
                log.exception("warning handler failed", extra={"path": call.path})

    def _timeout(self, call: Call, message: str) -> TransportError:
        failure, url = TransportFailure.TIMEOUT, self.base_url + call.path
        return TransportError(message, failure=failure, method=call.method, url=url)


@dataclass(slots=True)
class _Lifetime:
    """The state that all views of one connection share."""

    is_closed: bool = False
    owner: tuple[int, asyncio.AbstractEventLoop] | None = None
    """The process and the loop that may use it; ``None``: any."""


async def _read_some(response: HttpResponse, limit: int) -> bytes:
    """Read about ``limit`` bytes of an error's body; stop early if it is cut off or stalls."""
    parts: list[bytes] = []
    size = 0
    # The status alone is a useful error. A body that stalls must not replace it by a timeout.
    with contextlib.suppress(TransportError, TimeoutError):
        async with asyncio.timeout(ERROR_BODY_TIMEOUT):
            while size < limit and (piece := await response.read_some()):
                parts.append(piece)
                size += len(piece)
    return b"".join(parts)


def user_agent() -> str:
    """Return the ``User-Agent`` of kinform: version, Python, system."""
    python = ".".join(map(str, sys.version_info[:2]))
    return f"kinform/{__version__} (python {python}; {sys.platform}/{platform.machine()})"


def _note_attempts(error: KinformError, failures: list[KinformError]) -> None:
    """Add to ``error`` how the attempt before it failed; the last error is the one raised."""
    if failures:
        error.add_note(f"attempt {len(failures) + 1}; the one before failed with: {failures[-1]}")
