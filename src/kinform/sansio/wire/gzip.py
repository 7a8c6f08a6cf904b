"""`GzipDecoder`: decompresses a response body, member by member, in bounded steps.

It is used between the transport and the decoders when a server compresses. kube-apiserver gzips
lists above 128 KiB, and a watch may arrive as one gzip member per flush, so the end of a member
is not the end of the body.

Rule 1: no step returns more than `PIECE` bytes, for any expansion of the input.
Rule 2: bytes that are not compressed data are an error, also behind the last member.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final, final

from kinform.errors import DecodeError

__all__ = ["PIECE", "GzipDecoder"]

PIECE: Final = 1024 * 1024
"""The limit of one step's output, in bytes."""

# Input is passed to zlib in windows: it copies the input it does not use (behind a member, or
# beyond the output limit), so a window bounds that copy and many small members stay linear.
_WINDOW: Final = 16 * 1024
# Below this size the ratio is not limited: small bodies of a few repeated lines expand much.
_RATIO_FLOOR: Final = 16 * 1024 * 1024
# zlib's own numbers for "expect a gzip header" and "expect a zlib header".
_GZIP: Final = 31
_ZLIB: Final = 15
_WBITS: Final = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": _ZLIB}


@final
class GzipDecoder:
    """Decompresses one body, independent of how it is split into reads.

    Supports the encodings ``gzip`` (any number of members, back to back) and ``deflate`` (one zlib
    stream). After a `DecodeError` the decoder cannot be used any more and raises it again.
    """

    __slots__ = (
        "_data",
        "_failure",
        "_has_output",
        "_in_member",
        "_max_ratio",
        "_max_total",
        "_member",
        "_members",
        "_pos",
        "_taken",
        "_wbits",
        "_window",
        "total",
    )

    total: int
    """The number of decompressed bytes so far."""

    def __init__(
        self, encoding: str = "gzip", *, max_total: int | None = None, max_ratio: float = 900.0
    ) -> None:
        """Prepare for a body in ``encoding``, the value of its Content-Encoding header.

        ``max_total`` limits the decompressed body, ``max_ratio`` its size relative to the
        compressed one (checked from 16 MiB on; gzip cannot exceed 1,032, and objects that are
        one repeated byte reach about 700). A body beyond either is refused.

        Raises:
            DecodeError: if the encoding is another one.
        """
        # Stacked encodings ("gzip, gzip") are refused too: only decompression bombs use them.
        wbits = _WBITS.get(encoding.strip().lower())
        if wbits is None:
            raise DecodeError(f"content encoding {encoding[:32]!r} is not supported")
        self.total = 0
        self._wbits = wbits
        self._max_total = max_total
        self._max_ratio = max_ratio
        self._failure: DecodeError | None = None
        # Invariant: input not yet given to zlib is _window, then _data[_pos:]. _in_member is
        # false before the first member and after each one's end, and only then.
        self._member = zlib.decompressobj(wbits)
        self._in_member = False
        self._members = 0
        self._window = b""
        self._data = b""
        self._pos = 0
        # zlib may hold output back although all input is used: when a step was filled up.
        self._has_output = False
        self._taken = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take ``data``; return an iterator over the decompressed pieces, none empty.

        The work is done while iterating, each piece at most `PIECE` bytes. An iterator left
        early loses nothing: the next one continues where it stopped.

        Raises:
            DecodeError: while iterating, if this is not valid compressed data or a limit is
                exceeded. The pieces before it are valid, but may not be all of the valid ones.
        """
        # The input is taken now, not with the first piece: the caller may drop the iterator
        # early. In the usual case nothing is left and nothing is copied.
        self._data = self._data[self._pos :] + data
        self._pos = 0
        return iter(self._step, b"")

    def finish(self) -> None:
        """Take the end of the body, after the last iterator was used up.

        Raises:
            DecodeError: if the body ends inside a member, or was not read to its end.
        """
        if self._failure is not None:
            raise self._failure
        if self._in_member or self._window or self._pos < len(self._data):
            raise DecodeError("the compressed body is truncated")

    def _step(self) -> bytes:
        """Return the next piece, ``b""`` if more input is needed."""
        if self._failure is not None:
            raise self._failure
        # Each iteration consumes input or returns output, so the loop ends; there is no output
        # only while a header, a trailer or an empty block is consumed.
        try:
            while self._has_output or self._window or self._pos < len(self._data):
                if piece := self._inflate():
                    self._check_limits(len(piece))
                    return piece
        except zlib.error:
            # zlib's own message is an internal one that adds nothing.
            self._failure = DecodeError("the compressed body is corrupt")
            raise self._failure from None
        return b""

    def _inflate(self) -> bytes:
        """Run zlib once. May return nothing, but always consumes input."""
        if not self._window and not self._has_output:
            self._window = self._data[self._pos : self._pos + _WINDOW]
            self._pos += len(self._window)
            self._taken += len(self._window)
        if not self._in_member:
            self._start_member()
        # Invariant: behind this call _window holds exactly what zlib did not use.
        member = self._member
        piece = member.decompress(self._window, PIECE)
        if member.eof:
            self._window = member.unused_data
            self._has_output = False
            self._in_member = False
        else:
            self._window = member.unconsumed_tail
            # After a full piece zlib may hold more output, even if it consumed all the input.
            self._has_output = len(piece) == PIECE
        return piece

    def _start_member(self) -> None:
        # Garbage or padding between members fails on its first bytes, as a bad header. Only
        # gzip has members: nothing may follow a zlib stream.
        if self._members and self._wbits == _ZLIB:
            raise zlib.error
        self._member = zlib.decompressobj(self._wbits)
        self._members += 1
        self._in_member = True

    def _check_limits(self, size: int) -> None:
        # Counted before the piece is returned, so that no byte beyond the limit is delivered.
        self.total += size
        if self._max_total is not None and self.total > self._max_total:
            self._failure = DecodeError(f"the body is larger than {self._max_total} bytes")
        # The unused part of the window has produced no output yet: counted at gzip's best ratio,
        # it would allow another 16 MB.
        used = self._taken - len(self._window)
        if self.total > max(_RATIO_FLOOR, self._max_ratio * used):
            self._failure = DecodeError(f"the body expands more than {self._max_ratio:g} times")
        if self._failure is not None:
            raise self._failure
