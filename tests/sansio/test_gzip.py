"""Content encodings: any number of members, bounded steps, and no guessing about broken ones."""

from __future__ import annotations

import gzip
import itertools
import random
import tracemalloc
import zlib
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.errors import DecodeError
from kinform.sansio.wire.gzip import PIECE, GzipDecoder
from kinform.sansio.wire.watch import WatchDecoder
from tests.support.growth import assert_linear

EVENTS = [b'{"type":"ADDED","object":{"metadata":{"name":"pod-%d"}}}\n' % n for n in range(5)]


def decoded(pieces: Iterable[bytes], encoding: str = "gzip") -> bytes:
    decoder = GzipDecoder(encoding)
    out = b"".join(part for piece in pieces for part in decoder.feed(piece))
    decoder.finish()
    assert decoder.total == len(out)
    return out


def test_one_member() -> None:
    assert decoded([gzip.compress(b"hello")]) == b"hello"


def test_member_per_event_is_cut_into_all_its_events() -> None:
    """F-R26: a plain decompressobj stops after the first member."""
    body = b"".join(gzip.compress(event) for event in EVENTS)
    frames = WatchDecoder().feed(decoded([body]))
    assert [frame.head.metadata.name for frame in frames if frame.head] == [
        f"pod-{n}" for n in range(5)
    ]


def test_member_is_given_as_soon_as_it_is_whole() -> None:
    decoder = GzipDecoder()
    for event in EVENTS:
        assert b"".join(decoder.feed(gzip.compress(event))) == event


def test_flush_within_a_member_is_given_at_once() -> None:
    compressor = zlib.compressobj(wbits=31)
    decoder = GzipDecoder()
    for event in EVENTS:
        data = compressor.compress(event) + compressor.flush(zlib.Z_SYNC_FLUSH)
        assert b"".join(decoder.feed(data)) == event


@pytest.mark.parametrize("count", [1, 3])
def test_body_split_at_every_byte(count: int) -> None:
    body = b"".join(gzip.compress(event) for event in EVENTS[:count])
    for cut in range(len(body) + 1):
        assert decoded([body[:cut], body[cut:]]) == b"".join(EVENTS[:count])
    assert decoded(body[i : i + 1] for i in range(len(body))) == b"".join(EVENTS[:count])


@pytest.mark.slow
@given(members=st.lists(st.binary(max_size=60), max_size=5), data=st.data())
def test_every_split_gives_the_same(members: list[bytes], data: st.DataObject) -> None:
    body = b"".join(gzip.compress(member) for member in members)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=6)))
    pieces = [body[a:b] for a, b in itertools.pairwise([0, *cuts, len(body)])]
    assert decoded(pieces) == b"".join(members)


def test_nothing_is_nothing() -> None:
    assert decoded([]) == b""
    assert decoded([b"", b""]) == b""


def test_deflate_is_one_zlib_stream() -> None:
    body = zlib.compress(b"hello")
    assert decoded([body[:4], body[4:]], "deflate") == b"hello"
    with pytest.raises(DecodeError, match="corrupt"):
        decoded([body, body], "deflate")


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", " GZip "])
def test_names_of_gzip(encoding: str) -> None:
    assert decoded([gzip.compress(b"hello")], encoding) == b"hello"


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", ""])
def test_other_encodings_are_refused(encoding: str) -> None:
    with pytest.raises(DecodeError, match="not supported"):
        GzipDecoder(encoding)


def test_body_cut_at_any_byte_is_truncated() -> None:
    body = gzip.compress(b"hello")
    for cut in range(1, len(body)):
        decoder = GzipDecoder()
        assert b"hello".startswith(b"".join(decoder.feed(body[:cut])))
        with pytest.raises(DecodeError, match="truncated"):
            decoder.finish()


def test_body_that_was_not_read_to_its_end_counts_as_truncated() -> None:
    decoder = GzipDecoder()
    decoder.feed(gzip.compress(b"hello"))
    with pytest.raises(DecodeError, match="truncated"):
        decoder.finish()


@pytest.mark.parametrize("garbage", [b"garbage", b"\0", b"\n", b"\x1f\x8c", b"{}"], ids=repr)
@pytest.mark.parametrize("members", [0, 1, 2])
def test_garbage_is_refused_wherever_it_stands(garbage: bytes, members: int) -> None:
    decoder = GzipDecoder()
    body = gzip.compress(b"hello") * members + garbage
    with pytest.raises(DecodeError, match="corrupt"):
        list(decoder.feed(body + b"\0" * 20))
    with pytest.raises(DecodeError, match="corrupt"):
        list(decoder.feed(gzip.compress(b"more")))
    with pytest.raises(DecodeError, match="corrupt"):
        decoder.finish()


def test_wrong_checksum_is_noticed() -> None:
    body = bytearray(gzip.compress(b"hello"))
    body[-6] ^= 1
    with pytest.raises(DecodeError, match="corrupt"):
        decoded([bytes(body)])


def test_abandoned_iterator_loses_nothing() -> None:
    decoder = GzipDecoder()
    content = random.Random(1).randbytes(PIECE * 5 // 4)
    body = gzip.compress(content)
    first = next(decoder.feed(body[:-20]))
    rest = b"".join(decoder.feed(body[-20:]))
    decoder.finish()
    assert first + rest == content


@pytest.mark.parametrize("size", [PIECE - 1, PIECE, PIECE + 1, 3 * PIECE], ids=repr)
def test_no_piece_is_larger_than_promised_or_empty(size: int) -> None:
    decoder = GzipDecoder()
    sizes = [len(piece) for piece in decoder.feed(gzip.compress(b"x" * size))]
    decoder.finish()
    assert sum(sizes) == size
    assert all(0 < one <= PIECE for one in sizes)


ZEROS = bytes(1 << 20)


def bomb(megabytes: int) -> bytes:
    """Return one endless member: blocks behind a full flush do not depend on each other."""
    compressor = zlib.compressobj(9, wbits=31)
    start, block = (compressor.compress(ZEROS) + compressor.flush(zlib.Z_FULL_FLUSH) for _ in "ab")
    return start + block * (megabytes - 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "max_total, max_ratio, message",
    [(None, 900, "900 times"), (20 << 20, 2000, "larger than 20971520 bytes")],
    ids=["ratio", "total"],
)
@pytest.mark.parametrize("body", [bomb(100), gzip.compress(ZEROS) * 100], ids=["one", "many"])
def test_bomb_fails_at_the_limit_in_little_memory(
    body: bytes, max_total: int | None, max_ratio: float, message: str
) -> None:
    """F-R26: 100 MB out of 102 KB, in one piece; as one member, and as a hundred."""
    decoder = GzipDecoder(max_total=max_total, max_ratio=max_ratio)
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError, match=message):
            for piece in decoder.feed(body):
                assert len(piece) <= PIECE
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert decoder.total <= 21 << 20
    assert peak < 4 * PIECE


def test_limits_may_be_wide() -> None:
    decoder = GzipDecoder(max_ratio=2000, max_total=20 << 20)
    assert sum(map(len, decoder.feed(gzip.compress(ZEROS) * 20))) == 20 << 20
    decoder.finish()


def test_small_bodies_may_expand_as_they_like() -> None:
    decoder = GzipDecoder(max_ratio=1)
    assert sum(map(len, decoder.feed(gzip.compress(ZEROS) * 16))) == 16 << 20


@pytest.mark.slow
def test_many_tiny_members_are_linear() -> None:
    def decoding(count: int) -> Callable[[], object]:
        body = gzip.compress(b"{}") * count
        return lambda: GzipDecoder().feed(body)

    assert_linear(decoding, 1_000)
