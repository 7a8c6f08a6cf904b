"""`ChunkedDecoder`: the body is a function of the bytes, never of how they were cut."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.errors import DecodeError
from kinform.sansio.wire.chunked import ChunkedDecoder

_chunks = st.lists(st.binary(min_size=1, max_size=40), max_size=8)
_extensions = st.sampled_from([b"", b";a=b", b" ; name", b';q="x"'])
_trailers = st.sampled_from([b"", b"X: 1\r\n", b"X: 1\r\nY: 2\r\n"])


def _encoded(chunks: list[bytes], extension: bytes = b"", trailers: bytes = b"") -> bytes:
    body = b"".join(b"%x%b\r\n%b\r\n" % (len(chunk), extension, chunk) for chunk in chunks)
    return body + b"0" + extension + b"\r\n" + trailers + b"\r\n"


def _decode(pieces: list[bytes]) -> tuple[bytes, ChunkedDecoder]:
    decoder = ChunkedDecoder()
    return b"".join([decoder.feed(piece) for piece in pieces]), decoder


@given(
    _chunks,
    _extensions,
    _trailers,
    st.lists(st.integers(0, 400), max_size=12),
    st.binary(max_size=9),
)
def test_whatever_the_cuts_the_body_is_that_of_the_chunks(
    chunks: list[bytes], extension: bytes, trailers: bytes, cuts: list[int], surplus: bytes
) -> None:
    wire = _encoded(chunks, extension, trailers) + surplus
    edges = [0, *sorted(min(cut, len(wire)) for cut in cuts), len(wire)]
    body, decoder = _decode([wire[a:b] for a, b in itertools.pairwise(edges)])
    assert body == b"".join(chunks)
    assert decoder.ended
    assert decoder.surplus == surplus


@given(_chunks, _extensions, _trailers)
def test_byte_by_byte_it_is_the_same(
    chunks: list[bytes], extension: bytes, trailers: bytes
) -> None:
    wire = _encoded(chunks, extension, trailers)
    body, decoder = _decode([wire[place : place + 1] for place in range(len(wire))])
    assert (body, decoder.ended, decoder.surplus) == (b"".join(chunks), True, b"")


@given(_chunks.filter(bool), st.integers(1, 200))
def test_a_body_that_breaks_off_has_not_ended(chunks: list[bytes], missing: int) -> None:
    wire = _encoded(chunks)
    body, decoder = _decode([wire[: -min(missing, len(wire))]])
    assert not decoder.ended
    assert b"".join(chunks).startswith(body)


@pytest.mark.parametrize(
    "wire",
    [
        b"zz\r\n",
        b"\r\n",
        b"-1\r\n",
        b"0x4\r\nabcd\r\n",
        b"1_0\r\n",
        b"4\nabcd\r\n",
        b"3\r\nabcd\r\n",
        b"3\r\nabc\rX",
        b"1" * 16 + b"\r\n",
        b"5;" + b"x" * 9_000,
        b"0\r\n" + b"X: 1\r\n" * 2_000,
        b"5;" + b"x" * 9_000 + b"\r\nhello\r\n0\r\n\r\n",
        b"0\r\n" + b"X: 1\r\n" * 2_000 + b"\r\n",
    ],
    ids=[
        "letters",
        "nothing",
        "negative",
        "0x",
        "underscore",
        "LF",
        "long",
        "half",
        "huge",
        "extension",
        "trailers",
        "extension-that-ends",
        "trailers-that-end",
    ],
)
def test_what_is_not_chunked_is_an_error_however_it_arrives(wire: bytes) -> None:
    with pytest.raises(DecodeError):
        _decode([wire])
    with pytest.raises(DecodeError):
        _decode([wire[place : place + 7] for place in range(0, len(wire), 7)])


def test_zeros_in_front_of_a_size_mean_nothing() -> None:
    body, decoder = _decode([b"0" * 30 + b"2\r\nab\r\n000\r\n\r\n"])
    assert (body, decoder.ended) == (b"ab", True)


def test_one_feed_gives_one_piece_for_many_chunks() -> None:
    decoder = ChunkedDecoder()
    assert decoder.feed(b"1\r\na\r\n2\r\nbc\r\n3\r\nde") == b"abcde"
    assert decoder.feed(b"f\r\n") == b"f"
    assert decoder.feed(b"") == b""
    assert not decoder.ended
