"""One client's way to one server: credentials, limits, retries and errors in one place.

Above it `Request` says what to ask; below it a `Transport` moves bytes. Everything a request has
in common with all others of the client happens here, in this order: wait for the limiter, start
the clock, add credentials, send, turn a bad answer into an error, decide on another try.
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
from kinform.rest import responses
from kinform.rest.auth import AuthHeaders
from kinform.rest.config import ANSWER_TIMEOUT, MAX_OBJECT_SIZE
from kinform.rest.limits import RateLimiter
from kinform.rest.reconnects import Reconnects
from kinform.rest.transport import Body, HttpRequest, HttpResponse, Transport
from kinform.rest.warnings import WarningHandler, WarningLogger, parse_warnings
from kinform.sansio.retry import Purpose, retry_delay
from kinform.version import __version__

__all__ = ["Call", "Connection", "Credentials", "user_agent"]

log: Final = logging.getLogger(__name__)

R = TypeVar("R")

_READS: Final = frozenset({"GET", "HEAD"})

HEAD_TIMEOUT: Final = 45.0
"""Longest wait for the head of an answer whose body may then be silent: a watch, a log."""

ERROR_BODY_TIMEOUT: Final = 10.0

MAX_RETRIES: Final = 10
"""How often a request is repeated unless told otherwise, as in client-go."""


class Credentials(Protocol):
    """Where the ``Authorization`` header comes from."""

    async def headers(self) -> Mapping[str, str]:
        """Return the headers that say who we are; may read a file or run a plugin."""
        ...

    async def refresh(self, used: Mapping[str, str]) -> bool:
        """Take note that ``used`` was refused; return whether another try may go better."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request as the connection needs it: everything but the credentials."""

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
    """It waits neither for a rate limiter nor for a place among the requests under way."""
    warning_handler: WarningHandler | None = None

    @property
    def repeatable(self) -> bool:
        """Whether the body can be sent twice."""
        return self.body is None or isinstance(self.body, bytes)


@final
class Connection:
    """Shared by every `RESTClient` of one client. Any task of its loop may use it.

    Attributes:
        base_url: scheme, host and prefix, without a slash at the end.
        reconnects: the limiter that all which reconnects after a failure waits for.
    """

    def __init__(
        self,
        base_url: str,
        transport: Transport,
        *,
        credentials: Credentials | None = None,
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
        self._parent: Connection | None = None
        self._closed = False
        self._home: tuple[int, asyncio.AbstractEventLoop] | None = None

    def guarded(self, guard: Callable[[], None]) -> Connection:
        """Return the same connection, but ``guard`` too is asked before each write is sent."""
        before = self._guard

        def both() -> None:
            if before is not None:
                before()
            guard()

        view = copy.copy(self)
        view._guard = both  # noqa: SLF001 - it is one of us
        view._parent = self  # noqa: SLF001
        return view

    def bind(self) -> None:
        """Belong to this process and to the running loop: others are refused from now on."""
        self._home = os.getpid(), asyncio.get_running_loop()

    def _refuse_strangers(self) -> None:
        if self._home is None:
            return
        pid, loop = self._home
        if pid != os.getpid():
            raise UsageError(
                f"this client belongs to process {pid} and cannot be used after a fork: open a "
                "new one in the child"
            )
        if loop is not asyncio.get_running_loop():
            raise UsageError(
                "this client belongs to another event loop, the one that opened it: open one per "
                "loop"
            )

    @property
    def is_closed(self) -> bool:
        """Whether `aclose` was called, here or on what this is a view of."""
        return self._closed or (self._parent is not None and self._parent.is_closed)

    async def aclose(self) -> None:
        """Close the transport; later requests are a `UsageError`, those under way fail."""
        self._closed = True
        await self._transport.aclose()

    async def call(self, call: Call, consume: Callable[[HttpResponse], Awaitable[R]]) -> R:
        """Send ``call`` and return what ``consume`` makes of the answer.

        ``consume`` runs once per attempt that got a good answer, inside the deadline; an answer
        that breaks off while being read counts as a failed attempt.

        Raises:
            ApiError: the server refused, finally.
            TransportError: no answer, or none within ``call.timeout``; without one, an attempt
                may take ``answer_timeout``.
        """

        async def answered() -> R:
            async with self._answer(call) as response:
                return await consume(response)

        async def attempt() -> R:
            if call.timeout is not None:
                return await answered()
            return await self._within(self.answer_timeout, call, answered())

        await self._wait_turn(call)
        return await self._within(call.timeout, call, self._attempts(call, attempt))

    @contextlib.asynccontextmanager
    async def open(self, call: Call) -> AsyncGenerator[HttpResponse]:
        """Send ``call`` and hand out the answer while its body still flows.

        Only opening is retried and timed; once the head is there, failures are the reader's.
        """
        async with contextlib.AsyncExitStack() as stack:

            async def attempt() -> HttpResponse:
                return await stack.enter_async_context(self._answer(call))

            await self._wait_turn(call)
            yield await self._within(call.timeout, call, self._attempts(call, attempt))

    async def _wait_turn(self, call: Call) -> None:
        if self.is_closed:
            raise UsageError("this client is closed")
        self._refuse_strangers()
        limiter = call.limiter or self.rate_limiter
        if limiter is not None and not call.is_urgent:
            await limiter.wait()

    async def _within(self, limit: float | None, call: Call, work: Awaitable[R]) -> R:
        deadline = asyncio.timeout(limit)
        try:
            async with deadline:
                return await work
        except TimeoutError as exc:
            if not deadline.expired():
                raise  # the caller's own, from ``consume``
            message = f"no answer within {limit:g} s"
            raise self._transport_error(call, message, TransportFailure.TIMEOUT) from exc

    async def _attempts(self, call: Call, attempt: Callable[[], Awaitable[R]]) -> R:
        """Run ``attempt`` until it succeeds or may not be repeated."""
        failures: list[KinformError] = []
        while True:
            try:
                return await attempt()
            except (ApiError, TransportError) as exc:
                delay = self._delay(call, exc) if len(failures) < call.max_retries else None
                if delay is None:
                    _note_attempts(exc, failures)
                    raise
                failures.append(exc)
            log.debug(
                "request will be sent again",
                extra={"method": call.method, "path": call.path, "delay": delay},
            )
            await asyncio.sleep(delay)
            if call.purpose is Purpose.WATCH:
                await self.reconnects.wait()
            else:
                await self._wait_turn(call)

    def _delay(self, call: Call, error: KinformError) -> float | None:
        if not call.repeatable:
            return None
        return retry_delay(error, method=call.method, purpose=call.purpose, rand=random.random())

    @contextlib.asynccontextmanager
    async def _answer(self, call: Call) -> AsyncGenerator[HttpResponse]:
        """Send once (twice after a 401 that fresh credentials may cure); raise on a bad answer."""
        async with contextlib.AsyncExitStack() as stack:
            used = await self._identity()
            try:
                response = await self._enter(stack, call, used)
            except UnauthorizedError:
                if not (self._credentials and call.repeatable):
                    raise
                if not await self._credentials.refresh(used):
                    raise
                response = await self._enter(stack, call, await self._identity())
            yield response

    async def _identity(self) -> Mapping[str, str]:
        return await self._credentials.headers() if self._credentials else {}

    async def _enter(
        self, stack: contextlib.AsyncExitStack, call: Call, identity: Mapping[str, str]
    ) -> HttpResponse:
        """Send ``call`` as ``identity``; the open answer is left on ``stack`` if it is good."""
        request = HttpRequest(
            method=call.method,
            url=self.base_url + call.path,
            headers=self._headers(call, identity),
            body=call.body,
            read_timeout=call.read_timeout,
            long_lived=call.is_urgent or call.purpose is not Purpose.CALL,
            shows_chunks=call.purpose is Purpose.STREAM,
            guard=None if call.method in _READS else self._guard,
        )
        async with contextlib.AsyncExitStack() as mine:
            response = await self._head(mine, call, request)
            self._show_warnings(call, response)
            if not 200 <= response.status < 300:
                raise responses.error_of_answer(
                    response.status,
                    response.headers,
                    await _read_some(response, responses.MAX_ERROR_BODY),
                    method=call.method,
                    url=request.url,
                    wall=clock.current().wall(),
                )
            stack.push_async_exit(mine.pop_all())
        return response

    async def _head(
        self, stack: contextlib.AsyncExitStack, call: Call, request: HttpRequest
    ) -> HttpResponse:
        """Send ``request`` and wait for the answer to begin, not for ever."""
        limit = HEAD_TIMEOUT if call.read_timeout is None else None
        deadline = asyncio.timeout(limit)
        try:
            async with deadline:
                return await stack.enter_async_context(self._transport.send(request))
        except TimeoutError as exc:
            if not deadline.expired():
                raise
            message = f"the server has not begun to answer within {limit:g} s"
            raise self._transport_error(call, message, TransportFailure.TIMEOUT) from exc
        except TransportError as exc:
            if exc.failure is TransportFailure.TLS and self._on_tls_failure:
                self._on_tls_failure()
            raise

    def _headers(self, call: Call, identity: Mapping[str, str]) -> AuthHeaders:
        """Return all headers; the request's own win. Some of the identity's may come repeatedly."""
        own = {name.lower() for name in call.headers}
        ours = [("User-Agent", self._agent), *identity.items()]
        kept = [(name, value) for name, value in ours if name.lower() not in own]
        return AuthHeaders([*kept, *call.headers.items()])

    def _show_warnings(self, call: Call, response: HttpResponse) -> None:
        handler = call.warning_handler or self._warn
        for warning in parse_warnings(response.headers.get("Warning")):
            try:
                handler(warning)
            except Exception:
                # A callback's fault: what the request did is done, and its answer is good.
                log.exception("warning handler failed", extra={"path": call.path})

    def _transport_error(
        self, call: Call, message: str, failure: TransportFailure
    ) -> TransportError:
        return TransportError(
            message, failure=failure, method=call.method, url=self.base_url + call.path
        )


async def _read_some(response: HttpResponse, limit: int) -> bytes:
    """Read about ``limit`` bytes of an error's body; one that breaks off or stalls is cut short."""
    parts: list[bytes] = []
    size = 0
    with contextlib.suppress(TransportError, TimeoutError):
        async with asyncio.timeout(ERROR_BODY_TIMEOUT):
            while size < limit and (piece := await response.read_some()):
                parts.append(piece)
                size += len(piece)
    return b"".join(parts)


def user_agent() -> str:
    """Return how kinform introduces itself: version, Python, system."""
    python = ".".join(map(str, sys.version_info[:2]))
    return f"kinform/{__version__} (python {python}; {sys.platform}/{platform.machine()})"


def _note_attempts(error: KinformError, failures: list[KinformError]) -> None:
    """Tell in ``error`` how the attempts before it ended; the error itself stays the last one."""
    if failures:
        error.add_note(f"attempt {len(failures) + 1}; the one before failed with: {failures[-1]}")
