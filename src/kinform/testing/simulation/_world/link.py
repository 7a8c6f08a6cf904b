"""A link: one process's way to the server, which can be cut, and which remembers all requests."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import random
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, final
from urllib.parse import parse_qs, urlsplit

import msgspec

from kinform.apiserver.endpoints.request_paths import NoSuchPath, UnreadablePath, route
from kinform.apiserver.endpoints.status import StatusError
from kinform.apiserver.memory import MemoryResponse, MemoryTransport
from kinform.errors import TransportError, TransportFailure

if TYPE_CHECKING:
    from kinform.apiserver.endpoints.application import Application
    from kinform.rest.transport import Chunk, HttpRequest, HttpResponse

__all__ = ["Link", "Sent", "Stage"]

Stage: TypeAlias = Literal["done", "answered"]
"""The stage of a write: done by the server, then answered to the process."""

_READS: Final = frozenset({"list", "watch", "probe"})
_PACED: Final = frozenset({"list", "watch"})
_WAYS: Final = ("as sent", "as sent", "cut", "gathered")
_WRITES: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_FAILED_WITHIN: Final = 120.0
_FAILED_AT_MOST: Final = 12
"""So many lists, or watches, may fail in two minutes while none works: with a back-off that grows
to half a minute there are 10."""


@final
class Sent(msgspec.Struct, frozen=True, gc=False):
    """A request that left a process."""

    at: float
    method: str
    path: str
    verb: str
    """``list``, ``watch``, ``probe`` (a list of one), or the method in small letters."""
    stream: str
    """The reader: an informer is identified by its path, its selectors and a serial number."""
    continues: bool
    """It is a further page of a list."""

    @property
    def is_write(self) -> bool:
        """True if the request may change something."""
        return self.method in _WRITES


@final
class Link:
    """A `kinform.Transport` to an application in this event loop.

    Args:
        application: The server.
        sent: Where all requests are noted.
        latency: Seconds that each request takes: without it, a busy loop would never end.
        dice: How bodies are cut into reads.
    """

    def __init__(
        self,
        application: Application,
        sent: list[Sent],
        *,
        dice: random.Random,
        latency: float = 0.01,
    ) -> None:
        self.latency: Final = latency
        self.dice: Final = dice
        self._inner = MemoryTransport(application)
        self._kinds = application.cluster.kinds
        self._sent = sent
        self._is_dead = False
        self._cut: asyncio.Event | None = None  # set when the link is healed
        self._is_silent = False
        self._streams: dict[_Answer, None] = {}  # in order: a set of objects has none
        self._resets = 0
        self.on_write: Callable[[Stage, str], None] | None = None
        """Called for each write, at both stages, with its path."""
        self.on_any_write: Callable[[Stage, str], None] | None = None
        """The same, to count the writes of all processes."""
        self.on_sent: Callable[[Sent], None] | None = None
        """Called for each request."""
        self.before_write: Callable[[str], None] | None = None
        """Called with the path of each write, at the instant in which it is sent."""
        self.renewals: Counter[str] = Counter()
        """The number of times that informers with this in their path were replaced by new ones."""
        self.impatience: list[str] = []
        """Lists and watches that came sooner than a 429 allowed, or failed too often."""
        self.alters: Callable[[bytes], bytes] | None = None
        """Changes each piece of the answers to lists and watches."""
        self._not_before: dict[tuple[str, str], float] = {}
        self._failed: dict[tuple[str, str], list[float]] = {}  # since the last that worked

    @property
    def open_streams(self) -> int:
        """The number of answers that are being read."""
        return len(self._streams)

    # --- faults

    def kill(self) -> None:
        """Let nothing pass any more: the process behind it has ended."""
        self._is_dead = True
        self.heal()  # requests that wait for the link fail at once
        self.reset()

    def cut(self, *, silent: bool) -> None:
        """Let nothing pass until `heal`; with ``silent``, requests hang instead of failing."""
        if self._cut is None:
            self._cut = asyncio.Event()
        self._is_silent = silent
        if not silent:
            self.reset()

    def heal(self) -> None:
        """Let everything pass."""
        if self._cut is not None:
            self._cut.set()
            self._cut = None

    def reset(self) -> None:
        """Break all connections, those too whose request is on its way; new ones can be made."""
        self._resets += 1
        for answer in tuple(self._streams):
            answer.reset()

    # --- requests

    @contextlib.asynccontextmanager
    async def send(self, request: HttpRequest) -> AsyncGenerator[HttpResponse]:
        """Send a request, if anything passes."""
        sent, resets = self._note(request), self._resets
        failed = self._count_failure(sent)
        await asyncio.sleep(self.latency)
        await self.passed(request)
        if self._resets != resets:
            raise _error(request, TransportFailure.RESET)
        is_write = request.method in _WRITES
        async with self._inner.send(self._minded(request) if is_write else request) as response:
            if self._resets != resets:  # the server that had the request is gone
                raise _error(request, TransportFailure.RESET)
            if is_write and self._notify("done", sent.path):
                await asyncio.sleep(0)  # lets the process end here, if that was scheduled
            if response.status < 300:
                failed.clear()
            if response.status == 429:
                self._note_retry_after(sent, response.headers.get("Retry-After", ""))
            answer = _Answer(self, request, response)
            answer.alters = self.alters if sent.verb in _READS else None
            self._streams[answer] = None
            try:
                yield answer
            finally:
                self._streams.pop(answer, None)
            if is_write:
                self._notify("answered", sent.path)

    def _notify(self, stage: Stage, path: str) -> bool:
        """Notify listeners of a write; return whether there are any."""
        listeners = [each for each in (self.on_write, self.on_any_write) if each is not None]
        for listener in listeners:
            listener(stage, path)
        return bool(listeners)

    def _minded(self, request: HttpRequest) -> HttpRequest:
        def guard() -> None:
            if request.guard is not None:
                request.guard()
            if self.before_write is not None:
                self.before_write(urlsplit(request.url).path)

        return dataclasses.replace(request, guard=guard)

    async def aclose(self) -> None:
        """Refuse all further requests."""
        await self._inner.aclose()

    async def passed(self, request: HttpRequest) -> None:
        """Wait until something passes.

        Raises:
            TransportError: nothing does.
        """
        while self._cut is not None and self._is_silent and not self._is_dead:
            try:
                async with asyncio.timeout(request.read_timeout):
                    await self._cut.wait()
            except TimeoutError as exc:
                raise _error(request, TransportFailure.TIMEOUT) from exc
        if self._is_dead or self._cut is not None:
            raise _error(request, TransportFailure.REFUSED)

    def _is_collection(self, path: str) -> bool:
        try:
            return not route(self._kinds, path).name
        except (StatusError, NoSuchPath, UnreadablePath):
            return False  # it is about no objects: discovery, the version

    def _count_failure(self, sent: Sent) -> list[float]:
        """Count a list or watch as failed until it works; return what to clear then."""
        failed = self._failed.setdefault((sent.stream, sent.verb), [])
        if sent.verb in _PACED and not sent.continues:
            failed[:] = [at for at in failed if at > sent.at - _FAILED_WITHIN] + [sent.at]
            if len(failed) == _FAILED_AT_MOST + 1:
                text = f"{len(failed)} times {sent.verb} of {sent.stream} failed in two minutes"
                self.impatience.append(text)
        return failed

    def _note_retry_after(self, sent: Sent, seconds: str) -> None:
        if seconds.isdigit() and sent.verb in _READS:
            again = asyncio.get_running_loop().time() + int(seconds)
            self._not_before[sent.stream, sent.verb] = again

    def _note(self, request: HttpRequest) -> Sent:
        parts = urlsplit(request.url)
        query = parse_qs(parts.query)
        verb = request.method.lower()
        if request.method == "GET" and self._is_collection(parts.path):
            if "watch" in query:
                verb = "watch"
            else:
                verb = "probe" if query.get("limit") == ["1"] else "list"
        renewed = [f"{part}{times}" for part, times in self.renewals.items() if part in parts.path]
        selectors = [*query.get("labelSelector", ()), *query.get("fieldSelector", ())]
        sent = Sent(
            asyncio.get_running_loop().time(),
            request.method,
            parts.path,
            verb,
            "?".join([parts.path, *selectors, *renewed]),
            "continue" in query,
        )
        self._sent.append(sent)
        if self.on_sent is not None:
            self.on_sent(sent)
        if (early := self._not_before.get((sent.stream, verb), 0.0) - sent.at) > 0:
            self.impatience.append(f"{verb} of {sent.stream} came {early:.2f} s too early")
        return sent


@final
class _Answer:
    """An `HttpResponse` that ends with its link, and comes in reads of its own.

    A piece that was sent may arrive in several, cut anywhere, and several as one.
    """

    def __init__(self, link: Link, request: HttpRequest, response: MemoryResponse) -> None:
        self.alters: Callable[[bytes], bytes] | None = None
        self._link = link
        self._request = request
        self._response = response
        self._way = link.dice.choice(_WAYS)
        self._held = b""
        self._failure: TransportError | None = None  # to be raised behind what is held
        self.status: int = response.status
        self.headers: Mapping[str, str] = response.headers

    async def read_some(self, *, gather: float = 0.0) -> bytes:
        """Return the bytes that have arrived; a cut link holds them back."""
        if not self._held:
            if self._failure is not None:
                raise self._failure
            self._held = await self._response.read_some(gather=gather)
            if self._way == "gathered":
                await self._gather()
            if self.alters is not None:
                self._held = self.alters(self._held)
        await self._link.passed(self._request)
        size = len(self._held)
        if self._way == "cut":
            size = self._link.dice.randint(min(1, size), size)
        found, self._held = self._held[:size], self._held[size:]
        return found

    async def _gather(self) -> None:
        """Also take the bytes that arrive within one latency after this."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._link.latency):
                while piece := await self._read_on():
                    self._held += piece

    async def _read_on(self) -> bytes:
        try:
            return await self._response.read_some()
        except TransportError as exc:
            self._failure = exc
            return b""

    def reset(self) -> None:
        """Make the next read fail with a reset connection."""
        self._response.reset()

    async def iter_bytes(self) -> AsyncGenerator[bytes]:
        """Yield what arrives."""
        while piece := await self.read_some():
            yield piece

    async def iter_chunks(self) -> AsyncGenerator[Chunk]:
        """Yield what arrives, each piece whole."""
        while piece := await self.read_some():
            yield piece, True

    async def read(self, limit: int | None = None) -> bytes:
        """Return all."""
        body = bytearray()
        while piece := await self.read_some():
            body += piece
            if limit is not None and len(body) > limit:
                raise _error(self._request, TransportFailure.PROTOCOL)
        return bytes(body)


def _error(request: HttpRequest, failure: TransportFailure) -> TransportError:
    text = {
        TransportFailure.REFUSED: "the connection was refused",
        TransportFailure.RESET: "the connection was reset",
        TransportFailure.TIMEOUT: "no answer within the deadline",
    }.get(failure, "the answer is too long")
    return TransportError(text, failure=failure, method=request.method, url=request.url)
