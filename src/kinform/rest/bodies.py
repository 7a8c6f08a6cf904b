"""`BodyParser`: reads chunked bodies in place of the HTTP library, which reads all the rest.

The library hands on every chunk by itself, with some calls for each. A watch has a chunk for each
event, so for an informer that was the most expensive thing of all. Here the library parses the
head, as ever, and keeps the stream, its limits and its time-outs; between the two stands
`kinform.sansio.chunked`, which gives the stream one piece for each read of the socket.

Rule: whatever is not plainly a chunked answer is left to the library, from the first byte of its
body to the last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeAlias, final

from kinform.errors import DecodeError
from kinform.sansio.chunked import ChunkedDecoder

__all__ = ["BodyParser", "Parser", "Payload"]


class Payload(Protocol):
    """The library's stream of a body."""

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
"""The heads that were completed with their bodies' streams, whether the connection is no longer
HTTP, and what is left over then."""


class Parser(Protocol):
    """The library's parser."""

    def feed_data(self, data: bytes, /) -> Fed:
        """Take what was read."""
        ...

    def feed_eof(self) -> object:
        """Take the end of the connection."""
        ...


_HEAD_END: Final = b"\r\n\r\n"
_NOTHING: Final[Fed] = ((), False, b"")


@final
class BodyParser:
    """A `Parser` of one answer on one connection, around the library's own.

    Args:
        parser: reads the head, and the body if that is not chunked.
        broken: makes the exception that ends a stream whose chunks cannot be read.
        on_surplus: told of bytes behind the end: nothing more can be read from the connection.
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
        """Take what was read; return what the library's parser makes of a head."""
        if self._decoder is not None:
            self._feed_body(data, self._decoder)
            return _NOTHING
        return self._parser.feed_data(data) if self._is_left_alone else self._feed_head(data)

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
        """Return what else the library's parser has: versions differ in what they ask for."""
        return getattr(self._parser, name)

    def pause_reading(self) -> None:
        """Nothing is held back here: whoever reads the socket stops reading it."""
        if self._decoder is None:
            self._parser.pause_reading()  # type: ignore[attr-defined]  # only newer versions call it

    def _feed_head(self, data: bytes) -> Fed:
        """Give the library a head, and nothing behind it."""
        seen = self._tail + data
        end = seen.find(_HEAD_END)
        if b"\n\n" in (seen if end < 0 else seen[:end]):  # a head without returns, it seems
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
        self._feed_body(rest, self._decoder)
        return messages, False, b""

    def _feed_body(self, data: bytes, decoder: ChunkedDecoder) -> None:
        payload = self._payload
        if payload is None:
            if data:
                self._on_surplus()
            return
        try:
            piece = decoder.feed(data)
        except DecodeError as exc:
            self._payload = None
            error = self._broken(exc.message)
            payload.set_exception(error)
            raise error from None
        if piece:
            payload.feed_data(piece)
        if decoder.ended:
            self._payload = None
            if decoder.surplus:  # first: with the end, the connection goes back to its pool
                self._on_surplus()
            payload.feed_eof()
