"""`ChunkedDecoder`: decodes chunked HTTP/1.1 bodies. Uses no sockets.

A watch sends every event as a chunk of its own, and a server that streams a list does the same
with every item: delivering each chunk by itself costs more than decoding it. So one feed returns
one piece, for any number of chunks.

RFC 9112, section 7.1. Chunk extensions and trailers are skipped; every other deviation from the
RFC is an error.
"""

from __future__ import annotations

import re
from typing import Final, final

from kinform.errors import DecodeError

__all__ = ["ChunkedDecoder"]

# Each part is limited, so that a line that is too long never matches, for any split of it.
_SIZE: Final = re.compile(rb"0{0,64}([0-9a-fA-F]{1,15})[ \t]{0,64}(?:;[^\r\n]{0,8000})?\r\n")
_NEWLINE: Final = b"\r\n"
_END: Final = _NEWLINE * 2
_LONGEST_LINE: Final = 8 * 1024
"""Limit of a chunk's size line with its extensions, and of all trailers together."""


@final
class ChunkedDecoder:
    """Decodes one body; the result does not depend on how it is split into reads.

    Bytes after the end are not part of the body: they are kept in `surplus`.
    """

    __slots__ = ("_is_behind", "_kept", "_left", "ended", "surplus")

    ended: bool
    """True once the last chunk and the trailers have arrived."""
    surplus: bytes
    """Bytes that arrived after the end."""

    def __init__(self) -> None:
        self._left = 0  # bytes that are still missing from the current chunk
        self._is_behind = False  # true if the line break behind a chunk comes next
        # The beginning of an incomplete size line, line break or trailer.
        self._kept = b""
        self.ended = False
        self.surplus = b""

    def feed(self, data: bytes) -> bytes:
        """Return the part of the body in ``data``.

        Raises:
            DecodeError: the body is not chunked. The rest of it cannot be decoded.
        """
        if self.ended:
            self.surplus += data
            return b""
        if self._kept:
            data, self._kept = self._kept + data, b""
        # Views: the join at the end then copies the bytes once.
        view, parts = memoryview(data), list[memoryview]()
        place = self._continue_chunk(view, parts) if self._left else 0
        size, match, is_behind = len(data), _SIZE.match, self._is_behind
        while place < size:
            if is_behind:
                if not data.startswith(_NEWLINE, place):
                    self._keep_line_break(data[place:])
                    break
                place += 2
                is_behind = False
                continue
            found = match(data, place)
            if found is None:
                self._keep_size(data[place:])
                break
            start, length = found.end(), int(found[1], 16)
            if not length:
                self._take_trailers(data, start, line=place)
                break
            place = start + length
            parts.append(view[start:place])
            is_behind = place <= size
        if place > size:
            self._left = place - size
        self._is_behind = is_behind
        return bytes(parts[0]) if len(parts) == 1 else b"".join(parts)

    def _continue_chunk(self, view: memoryview, parts: list[memoryview]) -> int:
        """Take the bytes that the chunk begun before still misses; return where they end."""
        place = min(self._left, len(view))
        parts.append(view[:place])
        self._left -= place
        self._is_behind = not self._left
        return place

    def _keep_line_break(self, rest: bytes) -> None:
        # Also true of an empty rest and of a lone CR, which are incomplete and not wrong.
        if not _NEWLINE.startswith(rest):
            raise DecodeError("a chunk of the body is longer than it says")
        self._kept = rest

    def _keep_size(self, rest: bytes) -> None:
        # A complete line that did not match is an error now: waiting for more bytes would never end
        # on a quiet watch.
        if b"\n" in rest or len(rest) > _LONGEST_LINE:
            raise DecodeError("the body holds something else where a chunk's size should be")
        self._kept = rest

    def _take_trailers(self, data: bytes, start: int, *, line: int) -> None:
        """Skip the trailers behind the last chunk, up to an empty line."""
        # Without trailers, the line break of the last size line is one of the two at the end.
        end = data.find(_END, start - 2)
        # Trailers that are too long must fail at the same size if they arrive byte by byte.
        size = (len(data) if end < 0 else end + 3) - start
        if size > _LONGEST_LINE:
            raise DecodeError("the trailers of the body do not end")
        if end >= 0:
            self.ended, self.surplus = True, data[end + 4 :]
        else:
            self._kept = data[line:]
