"""The `Transport` seam: one HTTP exchange, as little of it as the rest of kinform needs.

Below it stands an HTTP library (`kinform.rest.aiohttp_transport`) or a server in memory; above it
nobody knows which. A transport adds no credentials and follows no redirect. It repeats nothing
that may have been sent, except a GET or HEAD that met a kept connection just as the server closed
it. It raises `TransportError`, and `UsageError` for what can never work (after a fork, on another
loop).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

__all__ = ["Body", "Chunk", "HttpRequest", "HttpResponse", "Transport"]

Body: TypeAlias = bytes | AsyncIterable[bytes] | None
"""A request body: known bytes, or a stream that can be sent only once."""

Chunk: TypeAlias = tuple[bytes, bool]
"""Bytes as they arrived, and whether an HTTP chunk ends after them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """One request, ready to be sent."""

    method: str
    """In capitals."""
    url: str
    """Absolute, escaped; sent as it is."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Every field of ``items()`` is sent as it is; a name may come repeatedly. They hold
    credentials: never log them."""
    body: Body = field(default=None, repr=False)
    read_timeout: float | None = 60.0
    """Longest silence between two reads of the answer; ``None``: wait for ever."""
    long_lived: bool = False
    """A watch or a followed log: it takes no place in the request pool."""
    shows_chunks: bool = False
    """Whether `HttpResponse.iter_chunks` is to show where HTTP chunks end, which takes time."""
    guard: Callable[[], None] | None = None
    """Called when the connection is there, right before the first byte is sent; what it raises
    stops the request and reaches the caller."""

    def __repr__(self) -> str:
        return f"<HttpRequest {self.method} {self.url}>"


class HttpResponse(Protocol):
    """An answer whose head has arrived. Its body is read once, in one of four ways.

    Content encodings are already undone, so an HTTP chunk's end is where it was on the wire
    only if the server did not compress.
    """

    @property
    def status(self) -> int:
        """The HTTP status code."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; look-ups ignore case, repeated ones are joined by ``", "``."""
        ...

    async def read_some(self, *, gather: float = 0.0) -> bytes:
        """Return what has arrived, waiting if that is nothing; ``b""`` at the end.

        A call that is cancelled loses nothing: the next one goes on. With ``gather`` that many
        seconds pass first, in which bytes may gather: to be woken for each piece of a large body
        costs more than to read it.
        """
        ...

    def iter_bytes(self) -> AsyncGenerator[bytes]:
        """Yield whatever has arrived, in pieces of any size, none empty."""
        ...

    def iter_chunks(self) -> AsyncGenerator[Chunk]:
        """Yield the same bytes with the HTTP chunk ends shown, if the request asked for that."""
        ...

    async def read(self, limit: int | None = None) -> bytes:
        """Return the whole body.

        Raises:
            TransportError: if the connection ends before the body does, or the body is
                longer than ``limit``.
        """
        ...


class Transport(Protocol):
    """Sends requests to one API server."""

    def send(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpResponse]:
        """Send ``request``; entering waits for the answer's head, leaving frees the connection.

        A body that was not read to its end costs the connection, never the caller's time.

        Raises:
            TransportError: on entering or reading, with `TransportFailure` set.
        """
        ...

    async def aclose(self) -> None:
        """Close every connection. Later requests fail; calling it again does nothing."""
        ...
