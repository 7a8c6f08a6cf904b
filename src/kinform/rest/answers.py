"""`Answer`: an HTTP answer over any `Source` of bytes, with content encodings undone.

The part of `kinform.rest.transport.HttpResponse` that does not depend on an HTTP library.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Generator, Iterator, Mapping
from typing import Protocol, final

from kinform.errors import DecodeError, TransportError, TransportFailure
from kinform.rest.transport import Chunk
from kinform.sansio.gzip import GzipDecoder

__all__ = ["Answer", "Source"]


class Source(Protocol):
    """Where the bytes of an answer's body come from. Its reads raise only `TransportError`."""

    async def read(self) -> bytes:
        """Return all that has arrived, waiting if that is nothing; ``b""`` at the end."""
        ...

    async def gather(self, seconds: float) -> None:
        """Take nothing from the network for that long."""
        ...

    async def read_chunk(self) -> Chunk:
        """Return bytes up to an HTTP chunk's end, if one is known; ``(b"", False)`` at the end."""
        ...

    def error(self, kind: TransportFailure, message: str) -> TransportError:
        """Return an error that names the request."""
        ...


@final
class Answer:
    """A `kinform.rest.transport.HttpResponse` over a `Source`.

    Raises:
        TransportError: if the body has an encoding that we cannot undo.
    """

    def __init__(self, status: int, headers: Mapping[str, str], *, source: Source) -> None:
        self._status = status
        self._headers = headers
        self._source = source
        self._decoder: GzipDecoder | None = None
        self._decoded: Iterator[bytes] = iter(())
        encoding = headers.get("Content-Encoding", "").strip().lower()
        if encoding not in {"", "identity"}:
            with self._readable(TransportFailure.PROTOCOL):
                self._decoder = GzipDecoder(encoding)

    def __repr__(self) -> str:
        return f"<Answer {self._status}>"

    @property
    def status(self) -> int:
        """The HTTP status code."""
        return self._status

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers as they arrived; ``Content-Encoding`` tells what was undone."""
        return self._headers

    async def read_some(self, *, gather: float = 0.0) -> bytes:
        """Return what has arrived; see `kinform.rest.transport.HttpResponse.read_some`."""
        if gather:
            await self._source.gather(gather)
        if self._decoder is None:
            return await self._source.read()
        while True:
            with self._readable(TransportFailure.PROTOCOL):
                if (decoded := next(self._decoded, None)) is not None:
                    return decoded
            piece = await self._source.read()
            if not piece:
                with self._readable(TransportFailure.TRUNCATED):
                    self._decoder.finish()
                return b""
            self._decoded = iter(self._decoder.feed(piece))

    async def iter_bytes(self) -> AsyncGenerator[bytes]:
        """Yield whatever has arrived, in pieces of any size, none empty."""
        while piece := await self.read_some():
            yield piece

    async def iter_chunks(self) -> AsyncGenerator[Chunk]:
        """Yield the same bytes with the HTTP chunk ends shown.

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
        """Return the whole body; see `kinform.rest.transport.HttpResponse.read`."""
        parts: list[bytes] = []
        size = 0
        async with contextlib.aclosing(self.iter_bytes()) as pieces:
            async for piece in pieces:
                size += len(piece)
                if limit is not None and size > limit:
                    message = f"the body of the answer is longer than {limit} bytes"
                    raise self._source.error(TransportFailure.PROTOCOL, message)
                parts.append(piece)
        return b"".join(parts)

    @contextlib.contextmanager
    def _readable(self, kind: TransportFailure) -> Generator[None]:
        """Name the request in what the decoder raises."""
        try:
            yield
        except DecodeError as exc:
            raise self._source.error(kind, exc.message) from exc
