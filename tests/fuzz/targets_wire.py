"""Bodies as they arrive: frames of a watch, chunks, compression, the items of a list."""

# ruff: noqa: PT017 - a refusal is one of two valid results, and is checked where it is caught

from __future__ import annotations

import contextlib
import gzip
import json
import zlib
from collections.abc import Iterable
from typing import Any

from kinform.errors import DecodeError
from kinform.meta import Status
from kinform.objects.object import Object
from kinform.sansio.wire.chunked import ChunkedDecoder
from kinform.sansio.wire.gzip import PIECE, GzipDecoder
from kinform.sansio.wire.list import Item, ListDecoder
from kinform.sansio.wire.watch import EventType, Frame, WatchDecoder
from tests.fuzz.cutting import chance, ways

_SMALL = 200
"""A limit that inputs reach."""


# --- frames ------------------------------------------------------------------------------------


def fuzz_watch(data: bytes) -> None:
    """However a watch is cut, its frames are the same, and they are what JSON says they are."""
    limit = _SMALL if chance(data).random() < 0.2 else 1 << 26
    frames, failure, truncated = _watched([data], limit)
    for pieces in ways(data):
        cut, *others = _watched(pieces, limit)
        assert others == [failure, truncated]
        assert _shown(cut) == _shown(frames)
    for frame in frames:
        assert (frame.head is None) is not (frame.error is None)
        assert frame.raw in data
        assert len(frame.raw) <= limit
        _check_object(frame)
    if not failure and limit > _SMALL:
        expected = _events(data)
        if expected is not None:
            assert [_read(frame.raw) for frame in frames] == expected


def _shown(frames: Iterable[Frame | Item]) -> list[object]:
    """Return what frames or items say, to be compared."""
    kinds = (getattr(frame, "type", None) for frame in frames)
    return [(k, f.raw, f.head, str(f.error)) for k, f in zip(kinds, frames, strict=True)]


def _watched(pieces: Iterable[bytes], limit: int) -> tuple[list[Frame], str, int]:
    decoder = WatchDecoder(max_frame=limit)
    frames: list[Frame] = []
    for piece in pieces:
        frames += decoder.feed(piece)
        if decoder.failure:
            return frames, str(decoder.failure), 0
    frames += decoder.finish()
    return frames, str(decoder.failure or ""), decoder.truncated


def _check_object(frame: Frame) -> None:
    """Check that a result is a readable object, or says why not."""
    if frame.head is not None:
        content = _decoded(Object(frame.raw, frame.head))
        if content is not None:
            metadata = content.get("metadata") or {}
            assert (metadata.get("name") or "") == frame.head.metadata.name
    if frame.type is EventType.ERROR:
        with contextlib.suppress(DecodeError):
            frame.status()


def _decoded(obj: Object) -> dict[str, Any] | None:
    try:
        return obj.to_dict()
    except DecodeError:
        return None


def _events(data: bytes) -> list[object] | None:
    """Return the objects of a stream of one event per line; None if it is anything else."""
    found: list[object] = []
    for line in data.split(b"\n"):
        event = _read(line)
        if not line.strip(b" \t\r"):
            continue
        if not isinstance(event, dict) or not line.isascii() or b"\\" in line:
            return None
        found.append(event.get("object"))
    return found


def _read(raw: bytes) -> object:
    """Return a JSON document; None if it is none."""
    try:
        return json.loads(raw, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


# --- chunks ------------------------------------------------------------------------------------


def fuzz_chunked(data: bytes) -> None:
    """However chunks are cut, the body is the same, and it is what RFC 9112 says."""
    body, error, surplus = _unchunked([data])
    for pieces in ways(data):
        cut, other, rest = _unchunked(pieces)
        assert (other, rest) == (error, surplus)
        assert cut == body if not error else body.startswith(cut) or cut.startswith(body)
    # The other way round: chunks of any size, with extensions and trailers.
    rand = chance(data)
    wire, place = b"", 0
    while place < len(data):
        part = data[place : place + rand.randint(1, 100)]
        wire += b"%b%x;a=b\r\n%b\r\n" % (b"0" * rand.randrange(3), len(part), part)
        place += len(part)
    assert _unchunked([wire + b"0\r\nTrailer: x\r\n\r\nrest"]) == (data, "", b"rest")


def _unchunked(pieces: Iterable[bytes]) -> tuple[bytes, str, bytes | None]:
    """Return body, error and what is behind the end; None: it did not end."""
    decoder, body = ChunkedDecoder(), b""
    for piece in pieces:
        try:
            body += decoder.feed(piece)
        except DecodeError as exc:
            return body, str(exc), None
    return body, "", decoder.surplus if decoder.ended else None


# --- compression -------------------------------------------------------------------------------


def fuzz_gzip(data: bytes) -> None:
    """Any chunking gives the same result as zlib; what zlib refuses is refused."""
    for encoding, wbits in (("gzip", 31), ("deflate", 15)):
        whole = _inflated([data], encoding)
        assert whole[1:] == _reference(data, wbits)[1:]
        if not whole[1]:
            assert whole[0] == _reference(data, wbits)[0]
        for pieces in ways(data):
            body, has_failed = _inflated(pieces, encoding)
            assert has_failed == whole[1]
            assert body == whole[0] if not has_failed else True
    rand = chance(data)
    cut = rand.randint(0, len(data))
    level = rand.randrange(10)
    members = [gzip.compress(part, level, mtime=0) for part in (data[:cut], b"", data[cut:])]
    for pieces in ways(b"".join(members)):
        assert _inflated(pieces, "gzip") == (data, False)
    try:
        decoder = GzipDecoder("gzip", max_total=len(data) // 2)
        passed = sum(map(len, decoder.feed(b"".join(members))))
    except DecodeError:
        pass
    else:
        assert passed == len(data) <= len(data) // 2


def _inflated(pieces: Iterable[bytes], encoding: str) -> tuple[bytes, bool]:
    decoder, body = GzipDecoder(encoding), b""
    try:
        for piece in pieces:
            for part in decoder.feed(piece):
                assert 0 < len(part) <= PIECE
                body += part
        decoder.finish()
    except DecodeError as exc:
        assert len(str(exc)) < 100
        return body, True
    assert decoder.total == len(body)
    return body, False


def _reference(data: bytes, wbits: int) -> tuple[bytes, bool]:
    """Decompress all at once, with zlib alone."""
    body = b""
    members = 0
    while data:
        if members and wbits == 15:
            return body, True
        member = zlib.decompressobj(wbits)
        try:
            body += member.decompress(data)
        except zlib.error:
            return body, True
        if not member.eof:
            return body, True
        data = member.unused_data
        members += 1
    return body, False


# --- lists -------------------------------------------------------------------------------------


def fuzz_list(data: bytes) -> None:
    """A list's items are those that JSON says, however it is cut; half a list is none."""
    limit = _SMALL if chance(data).random() < 0.2 else 1 << 26
    items, head = _listed([data], limit)
    for pieces in ways(data):
        cut, other = _listed(pieces, limit)
        assert str(other) == str(head)
        shared = min(len(cut), len(items))
        assert _shown(cut[:shared]) == _shown(items[:shared])
        assert isinstance(head, DecodeError) or len(cut) == len(items)
    body = _read(data)
    if isinstance(head, DecodeError | Status):
        if limit > _SMALL and isinstance(head, DecodeError):
            assert not _is_plain_list(data, body), head
        return
    end = chance(data).randint(0, len(data.rstrip(b" \t\r\n")) - 1)
    assert isinstance(_listed([data[:end]], limit)[1], DecodeError)
    for item in items:
        assert (item.head is None) is not (item.error is None)
    if isinstance(body, dict) and b"\\" not in data:
        _compare(body, items)


def _listed(pieces: Iterable[bytes], limit: int) -> tuple[list[Item], object]:
    decoder = ListDecoder(max_item=limit)
    items: list[Item] = []
    try:
        for piece in pieces:
            items += decoder.feed(piece)
        return items, decoder.finish()
    except DecodeError as exc:
        return items, exc


def _compare(body: dict[str, Any], items: list[Item]) -> None:
    listed = body["items"] or []
    assert len(listed) == len(items)
    for expected, item in zip(listed, items, strict=True):
        content = _read(item.raw)
        if content is not None and item.head is not None and _is_named(expected):
            assert isinstance(content, dict)
            added = {} if {"kind", "apiVersion"} & expected.keys() else content.keys() - expected
            assert set(added) <= {"kind", "apiVersion"}
            assert content == {name: content[name] for name in added} | expected


def _is_named(item: dict[str, Any]) -> bool:
    """Tell whether an item that says what it is says something."""
    return item.get("kind") != "" and item.get("apiVersion") != ""


def _is_plain_list(data: bytes, body: object) -> bool:
    """Return whether a body can only be a readable list."""
    if not isinstance(body, dict) or b"\\" in data or not data.isascii():
        return False
    names = json.loads(data, object_pairs_hook=lambda pairs: [name for name, _ in pairs])
    if len(names) != len(set(names)) or body.get("metadata"):
        return False
    items, kind = body.get("items", 0), body.get("kind")
    return (
        isinstance(kind, str)
        and kind.endswith("List")
        and isinstance(body.get("apiVersion", ""), str)
        and (items is None or (isinstance(items, list) and all(isinstance(i, dict) for i in items)))
    )
