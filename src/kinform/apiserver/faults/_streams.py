"""Faults in bodies: they transform one stream of chunks into another.

A watch has one event in each chunk; a whole body is one chunk. Transformations of events stand
before those of bytes, which no longer know where an event ends.

Rule 1: closing the outer stream closes the inner one.
"""

from __future__ import annotations

import asyncio
import contextlib
import zlib
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import msgspec

from kinform.apiserver.endpoints.messages import Burst, Chunks

__all__ = [
    "Stop",
    "corrupted",
    "cut_after_bytes",
    "cut_after_events",
    "damaged",
    "dripping",
    "duplicated",
    "failing",
    "packed",
    "truncated",
    "whole",
    "with_bookmarks",
    "with_older",
    "without_bookmarks",
]

Stop: TypeAlias = Callable[[], Awaitable[None]]
"""Ends the stream that awaits it, by an exception of its own."""

_BOOKMARK: Final = b'{"type":"BOOKMARK"'
_ERROR: Final = b'{"type":"ERROR"'
_END: Final = b'"k8s.io/initial-events-end"'


async def whole(body: bytes) -> Chunks:
    """Yield a body as one chunk."""
    yield body


# --- events


async def cut_after_events(chunks: Chunks, count: int, *, stop: Stop) -> Chunks:
    """Yield so many chunks, then stop."""
    seen = 0
    async with contextlib.aclosing(chunks):
        if not count:
            await stop()
        async for chunk in chunks:
            yield chunk
            seen += 1
            if seen == count:
                await stop()


async def truncated(chunks: Chunks, event: int) -> Chunks:
    """Yield the first half of the chunk of this number last."""
    seen = 0
    async with contextlib.aclosing(chunks):
        async for chunk in chunks:
            seen += 1
            if seen == event:
                yield chunk[: len(chunk) // 2]
                return
            yield chunk


async def corrupted(chunks: Chunks, event: int) -> Chunks:
    """Make the chunk of this number no UTF-8."""
    seen = 0
    async with contextlib.aclosing(chunks):
        async for chunk in chunks:
            seen += 1
            yield damaged(chunk) if seen == event else chunk


def damaged(chunk: bytes) -> bytes:
    """Return a chunk of the same length whose middle is not UTF-8."""
    middle = len(chunk) // 2
    return chunk[:middle] + b"\xff" + chunk[middle + 1 :]


async def failing(chunks: Chunks, count: int, *, error: bytes) -> Chunks:
    """Yield so many chunks, then an error, which is the last."""
    seen = 0
    async with contextlib.aclosing(chunks):
        if not count:
            yield error
            return
        async for chunk in chunks:
            yield chunk
            seen += 1
            if seen == count:
                yield error
                return


async def ended(chunks: Chunks, count: int) -> Chunks:
    """Yield so many chunks, and no more."""
    seen = 0
    async with contextlib.aclosing(chunks):
        if not count:
            return
        async for chunk in chunks:
            yield chunk
            seen += 1
            if seen == count:
                return


async def duplicated(chunks: Chunks) -> Chunks:
    """Yield every event about an object twice."""
    async with contextlib.aclosing(chunks):
        async for chunk in chunks:
            yield chunk
            if not chunk.startswith((_BOOKMARK, _ERROR)):
                yield chunk


class _Metadata(msgspec.Struct, gc=False):
    uid: str = ""
    resource_version: str = msgspec.field(name="resourceVersion", default="")


class _Object(msgspec.Struct, gc=False):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    kind: str = ""
    api_version: str = msgspec.field(name="apiVersion", default="")


class _Event(msgspec.Struct, gc=False):
    type: str
    object: _Object


_decode: Final = msgspec.json.Decoder(_Event).decode


def _event(chunk: bytes) -> _Event | None:
    """Return an event about an object; None if it is another one, or not in JSON."""
    if chunk.startswith((_BOOKMARK, _ERROR)) or not chunk.startswith(b"{"):
        return None
    event = _decode(chunk)
    return event if event.object.metadata.uid else None  # tables have none


async def with_older(chunks: Chunks) -> Chunks:
    """Yield behind every change of an object the event about it before that."""
    sent: dict[str, bytes] = {}
    async with contextlib.aclosing(chunks):
        async for chunk in chunks:
            yield chunk
            event = _event(chunk)
            if event is None:
                continue
            before = sent.pop(event.object.metadata.uid, None)
            if event.type != "DELETED":
                sent[event.object.metadata.uid] = chunk
                if before is not None:
                    yield before


async def with_bookmarks(chunks: Chunks, revisions: int) -> Chunks:
    """Yield behind every event a bookmark that is so many revisions older."""
    async with contextlib.aclosing(chunks):
        async for chunk in chunks:
            yield chunk
            if (event := _event(chunk)) is not None:
                yield _bookmark(event.object, revisions)


def _bookmark(obj: _Object, revisions: int) -> bytes:
    version = max(int(obj.metadata.resource_version) - revisions, 1)
    content = {
        "kind": obj.kind,
        "apiVersion": obj.api_version,
        "metadata": {"resourceVersion": str(version)},
    }
    return msgspec.json.encode({"type": "BOOKMARK", "object": content}) + b"\n"


async def without_bookmarks(chunks: Chunks, *, initial_end: bool) -> Chunks:
    """Leave bookmarks out; the one behind the initial events only if sent so."""
    async with contextlib.aclosing(chunks):
        async for chunk in chunks:
            is_end = _END in chunk[-200:] or _END in chunk[:400]
            if not chunk.startswith(_BOOKMARK) or (is_end and not initial_end):
                yield chunk


# --- bytes


async def packed(chunks: Chunks) -> Chunks:
    """Compress each chunk into a gzip member of its own: readers must go on behind the first.

    The members of a `Burst` come together.
    """
    async with contextlib.aclosing(chunks):
        async for chunk in chunks:
            parts = chunk.parts if isinstance(chunk, Burst) else (chunk,)
            yield b"".join(map(_member, parts))


def _member(content: bytes) -> bytes:
    packer = zlib.compressobj(level=1, wbits=31)
    return packer.compress(content) + packer.flush()


async def cut_after_bytes(chunks: Chunks, count: int, *, stop: Stop) -> Chunks:
    """Yield so many bytes, then stop."""
    left = count
    async with contextlib.aclosing(chunks):
        if not left:
            await stop()
        async for chunk in chunks:
            yield chunk[:left]
            left -= min(len(chunk), left)
            if not left:
                await stop()


async def dripping(chunks: Chunks, size: int, *, every: float) -> Chunks:
    """Yield a few bytes at a time."""
    async with contextlib.aclosing(chunks):
        async for chunk in chunks:
            for start in range(0, len(chunk), size):
                await asyncio.sleep(every)
                yield chunk[start : start + size]
