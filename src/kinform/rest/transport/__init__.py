"""The `Transport` seam: one HTTP exchange, its request, its response and their headers.

Below it is an HTTP library (`kinform.rest.transport.aiohttp_transport`) or a server in memory; the
code above it does not depend on which. A transport adds no credentials and follows no redirect. It
repeats no request that may have been sent, except a GET or HEAD on a kept connection that the
server closed at the same moment. It raises `TransportError`, and `UsageError` for use that can
never work (after a fork, on another loop).
"""

from __future__ import annotations

import contextlib
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Callable,
    Generator,
    ItemsView,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias, final

from kinform.errors import DecodeError, TransportError, TransportFailure
from kinform.sansio.wire.gzip import GzipDecoder

__all__ = [
    "AuthHeaders",
    "Body",
    "BodySource",
    "Chunk",
    "Headers",
    "HttpRequest",
    "HttpResponse",
    "StreamedResponse",
    "Transport",
    "fields_of",
    "merged",
]

Body: TypeAlias = bytes | AsyncIterable[bytes] | None
"""A request body: known bytes, or a stream that can be sent only once."""

Chunk: TypeAlias = tuple[bytes, bool]
"""Bytes as they arrived, and whether an HTTP chunk ends after them."""


@final
class AuthHeaders(Mapping[str, str]):
    """The headers of a request, credentials included; ``repr()`` shows only names.

    A name may stand for several fields (one ``Impersonate-Group`` per group). ``fields`` and
    ``items()`` hold every field; send those. Looking up a name gives all its values, joined by
    ``", "``.
    """

    __slots__ = ("fields",)

    def __init__(self, fields: Sequence[tuple[str, str]] = ()) -> None:
        self.fields: Final = tuple(fields)

    def __getitem__(self, name: str) -> str:
        values = [value for field_name, value in self.fields if field_name == name]
        if not values:
            raise KeyError(name)
        return ", ".join(values)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for name, _ in self.fields))

    def __len__(self) -> int:
        return len({name for name, _ in self.fields})

    def items(self) -> ItemsView[str, str]:
        """Return every field, repeated names included."""
        return _Fields(self, self.fields)

    def __repr__(self) -> str:
        return f"<AuthHeaders {' '.join(self)}>"


@final
class _Fields(ItemsView[str, str]):
    def __init__(self, headers: AuthHeaders, fields: Sequence[tuple[str, str]]) -> None:
        super().__init__(headers)
        self._pairs = fields

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._pairs)

    def __len__(self) -> int:
        return len(self._pairs)


def fields_of(headers: Mapping[str, str]) -> Sequence[tuple[str, str]]:
    """Return every field of a request's headers, repeated names included."""
    return headers.fields if isinstance(headers, AuthHeaders) else tuple(headers.items())


def merged(own: Mapping[str, str], *, agent: str, credentials: Mapping[str, str]) -> AuthHeaders:
    """Return all headers of a request; its own ones override the others of the same name."""
    # Names are compared without case: ``authorization`` of the caller must replace ours, not follow
    # it.
    names = set(map(str.lower, own))
    fields = [("User-Agent", agent), *fields_of(credentials)]
    if names.isdisjoint(map(str.lower, dict(fields))):  # the usual case
        return AuthHeaders([*fields, *own.items()])
    return AuthHeaders([pair for pair in fields if pair[0].lower() not in names] + [*own.items()])


@final
class Headers(Mapping[str, str]):
    """The headers of a response, read-only; lookups ignore case.

    Fields of the same name are one, their values joined by ``", "`` in order of arrival.
    Iterating gives each name as it was first spelled.

    >>> headers = Headers([("Warning", '299 - "a"'), ("warning", '299 - "b"')])
    >>> headers["WARNING"]
    '299 - "a", 299 - "b"'
    """

    __slots__ = ("_fields",)

    def __init__(self, fields: Iterable[tuple[str, str]] = ()) -> None:
        self._fields: dict[str, tuple[str, str]] = {}
        for name, value in fields:
            key = name.lower()
            if key in self._fields:
                first, before = self._fields[key]
                self._fields[key] = first, f"{before}, {value}"
            else:
                self._fields[key] = name, value

    def __getitem__(self, name: str) -> str:
        return self._fields[name.lower()][1]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._fields

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._fields.values())

    def __len__(self) -> int:
        return len(self._fields)

    def __repr__(self) -> str:
        # Values may hold credentials (Set-Cookie): names only.
        return f"<Headers {' '.join(self)}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """One request, ready to be sent."""

    method: str
    """In capitals."""
    url: str
    """Absolute, escaped; sent as it is."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Every field of ``items()`` is sent as it is; a name may occur repeatedly. They hold
    credentials: never log them."""
    body: Body = field(default=None, repr=False)
    read_timeout: float | None = 60.0
    """Longest silence between two reads of the response; ``None``: no limit."""
    long_lived: bool = False
    """A watch or a followed log: it takes no slot of the request pool."""
    shows_chunks: bool = False
    """Makes `HttpResponse.iter_chunks` report where HTTP chunks end, which costs time."""
    guard: Callable[[], None] | None = None
    """Called when the connection is ready, right before the first byte is sent; an exception it
    raises stops the request and reaches the caller."""

    def __repr__(self) -> str:
        return f"<HttpRequest {self.method} {self.url}>"


class HttpResponse(Protocol):
    """A response whose head has arrived. Its body is read once, in one of four ways.

    Content encodings are already undone, so an HTTP chunk's end is where it was on the wire
    only if the server did not compress.
    """

    @property
    def status(self) -> int:
        """The HTTP status code."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; lookups ignore case, repeated ones are joined by ``", "``."""
        ...

    async def read_some(self, *, gather: float = 0.0) -> bytes:
        """Return the bytes that have arrived, at least one; ``b""`` at the end.

        A cancelled call loses nothing: the next one continues. With ``gather`` the call first
        pauses reading for that many seconds, so that bytes accumulate: waking up for each piece
        of a large body costs more than reading it.
        """
        ...

    def iter_bytes(self) -> AsyncGenerator[bytes]:
        """Yield the bytes as they arrive, in pieces of any size, none empty."""
        ...

    def iter_chunks(self) -> AsyncGenerator[Chunk]:
        """Yield the same bytes with the HTTP chunk ends, if the request asked for them."""
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
        """Send ``request``; entering waits for the response head, leaving frees the connection.

        A body that was not read to its end costs the connection, never the caller's time.

        Raises:
            TransportError: on entering or reading, with `TransportFailure` set.
        """
        ...

    async def aclose(self) -> None:
        """Close every connection. Later requests fail; calling it again does nothing."""
        ...


class BodySource(Protocol):
    """Delivers the bytes of a response body. Its reads raise only `TransportError`."""

    async def read(self) -> bytes:
        """Return all bytes that have arrived, at least one; ``b""`` at the end."""
        ...

    async def gather(self, seconds: float) -> None:
        """Read nothing from the network for that long."""
        ...

    async def read_chunk(self) -> Chunk:
        """Return bytes up to an HTTP chunk's end, if one is known; ``(b"", False)`` at the end."""
        ...

    def error(self, kind: TransportFailure, message: str) -> TransportError:
        """Return an error that names the request."""
        ...


@final
class StreamedResponse:
    """An `HttpResponse` over a `BodySource`, with content encodings undone.

    Raises:
        TransportError: if the body has an encoding that we cannot undo.
    """

    def __init__(self, status: int, headers: Mapping[str, str], *, source: BodySource) -> None:
        self.status: Final = status
        """The HTTP status code."""
        self.headers: Final = headers
        """The headers as they arrived; ``Content-Encoding`` names the encoding that was undone."""
        self._source = source
        self._decoder: GzipDecoder | None = None
        self._decoded: Iterator[bytes] = iter(())
        # Undone here and not by the HTTP library: aiohttp decodes one gzip member, and
        # kube-apiserver 1.37 sends one member per flush of a watch. The rest would be lost
        # silently.
        encoding = headers.get("Content-Encoding", "").strip().lower()
        if encoding not in {"", "identity"}:
            with self._readable(TransportFailure.PROTOCOL):
                self._decoder = GzipDecoder(encoding)

    def __repr__(self) -> str:
        return f"<StreamedResponse {self.status}>"

    async def read_some(self, *, gather: float = 0.0) -> bytes:
        """Return the bytes that have arrived; see `HttpResponse.read_some`."""
        if gather:
            await self._source.gather(gather)
        if self._decoder is None:
            return await self._source.read()
        while True:
            with self._readable(TransportFailure.PROTOCOL):
                if (decoded := next(self._decoded, None)) is not None:
                    return decoded
            piece = await self._source.read()
            # A gzip body that ends early decodes without an error up to there: only `finish`
            # notices.
            if not piece:
                with self._readable(TransportFailure.TRUNCATED):
                    self._decoder.finish()
                return b""
            # Kept as an iterator: a small piece may decode to very much, and a reader that stops,
            # or is cancelled, must neither lose the rest nor hold it in memory.
            self._decoded = iter(self._decoder.feed(piece))

    async def iter_bytes(self) -> AsyncGenerator[bytes]:
        """Yield the bytes as they arrive, in pieces of any size, none empty."""
        while piece := await self.read_some():
            yield piece

    async def iter_chunks(self) -> AsyncGenerator[Chunk]:
        """Yield the same bytes with the HTTP chunk ends.

        A chunk's end may come after its bytes, as ``(b"", True)``.
        """
        read_chunk = self._source.read_chunk
        while (chunk := await read_chunk()) != (b"", False):
            if self._decoder is None:
                yield chunk
                continue
            piece, ends = chunk
            with self._readable(TransportFailure.PROTOCOL):
                for decoded in self._decoder.feed(piece):
                    yield decoded, False
            if ends:
                yield b"", True
        if self._decoder is not None:
            with self._readable(TransportFailure.TRUNCATED):
                self._decoder.finish()

    async def read(self, limit: int | None = None) -> bytes:
        """Return the whole body; see `HttpResponse.read`."""
        parts: list[bytes] = []
        size = 0
        while piece := await self.read_some():
            size += len(piece)
            # Counted after decoding: a limit on the bytes of the wire would let a decompression
            # bomb pass.
            if limit is not None and size > limit:
                message = f"the body of the answer is longer than {limit} bytes"
                raise self._source.error(TransportFailure.PROTOCOL, message)
            parts.append(piece)
        return b"".join(parts)

    @contextlib.contextmanager
    def _readable(self, kind: TransportFailure) -> Generator[None]:
        """Turn a decoder's error into a `TransportError` that names the request."""
        try:
            yield
        except DecodeError as exc:
            raise self._source.error(kind, exc.message) from exc
