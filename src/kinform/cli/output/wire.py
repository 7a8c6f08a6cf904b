"""``-o wire``: HTTP as it arrives, each chunk with its size."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Final, final

import msgspec

from kinform.cli.cluster.row_sources import Wanted, collection
from kinform.cli.problems import without_secrets
from kinform.errors import ApiError, TransportError
from kinform.meta import ObjectMeta
from kinform.rest.options import ListOptions
from kinform.rest.request import Request
from kinform.rest.transport import HttpResponse

__all__ = ["follow", "show"]

_PAUSE: Final = 1.0
"""Seconds between the end of a watch and the next one."""


class _Object(msgspec.Struct):
    metadata: ObjectMeta = ObjectMeta()


class _Frame(msgspec.Struct):
    type: str = ""
    object: _Object = msgspec.field(default_factory=_Object)


_decoder: Final = msgspec.json.Decoder(_Frame)


@final
class _Wire:
    """Writes what one kind's connection brings."""

    def __init__(self, wanted: Wanted, write: Callable[[str], object], *, label: str) -> None:
        self._wanted = wanted
        self._write = write
        self._label = label
        self._version = ""

    async def follow(self) -> None:
        """Watch until cancelled; show the end of each watch, and begin the next one there."""
        while True:
            try:
                await self._answer(self._request(watch=True))
                self._say("-- the server has ended the watch")
            except (TransportError, ApiError) as exc:
                if isinstance(exc, ApiError) and not self._version:
                    raise
                self._say(f"-- {without_secrets(str(exc))}")
                self._version = "" if isinstance(exc, ApiError) else self._version
            await asyncio.sleep(_PAUSE)

    async def show(self, name: str) -> None:
        """Show one answer: of an object, or of the list."""
        request = self._request(watch=False)
        await self._answer(request.name(name) if name else request)

    async def _answer(self, request: Request) -> None:
        self._say(f"GET {without_secrets(request.url)}")
        async with request.stream() as response:
            self._say(f"HTTP {response.status} {_framing(response)}")
            async with contextlib.aclosing(_chunks(response)) as chunks:
                async for chunk in chunks:
                    payload = chunk.decode(errors="backslashreplace").rstrip("\n")
                    self._say(f"{len(chunk):>7} bytes  {payload}")
                    self._note_version(chunk)

    def _request(self, *, watch: bool) -> Request:
        wanted = self._wanted
        request = collection(wanted)
        if watch:
            options = ListOptions(
                label_selector=wanted.selection.labels,
                field_selector=wanted.fields,
                resource_version=self._version,
                watch=True,
                allow_watch_bookmarks=True,
            )
            request.params(options)
        elif not wanted.target.name:
            selectors = ListOptions(
                label_selector=wanted.selection.labels, field_selector=wanted.selection.fields
            )
            request.params(selectors)
        if wanted.metadata_only:
            kind = "PartialObjectMetadata" + ("" if watch or wanted.target.name else "List")
            request.header("Accept", f"application/json;as={kind};g=meta.k8s.io;v=v1")
        return request

    def _note_version(self, chunk: bytes) -> None:
        for line in chunk.splitlines():
            with contextlib.suppress(msgspec.DecodeError):  # a part of an event
                frame = _decoder.decode(line)
                self._version = frame.object.metadata.resource_version or self._version
                if frame.type == "ERROR":
                    self._version = ""

    def _say(self, text: str) -> None:
        shown = "".join(char if char.isprintable() else "?" for char in text)
        self._write(f"{self._label}{shown}\n")


async def _chunks(response: HttpResponse) -> AsyncGenerator[bytes]:
    """Yield the HTTP chunks, each put together from the reads it came in.

    An answer without chunks is yielded read by read.
    """
    is_chunked = "chunked" in response.headers.get("Transfer-Encoding", "").lower()
    chunk = b""
    async with contextlib.aclosing(response.iter_chunks()) as pieces:
        async for data, chunk_ends in pieces:
            chunk += data
            if chunk and (chunk_ends or not is_chunked):
                yield chunk
                chunk = b""
    if chunk:
        yield chunk


def _framing(response: HttpResponse) -> str:
    names = ("Transfer-Encoding", "Content-Length", "Content-Encoding", "Content-Type")
    found = [(name, response.headers.get(name)) for name in names]
    return ", ".join(f"{name}: {value}" for name, value in found if value)


async def follow(wanted: Wanted, write: Callable[[str], object], *, with_kind: bool) -> None:
    """Show the watch of one kind until cancelled."""
    await _Wire(wanted, write, label=_label(wanted, with_kind=with_kind)).follow()


async def show(wanted: Wanted, write: Callable[[str], object]) -> None:
    """Show the answer to one GET."""
    await _Wire(wanted, write, label="").show(wanted.target.name)


def _label(wanted: Wanted, *, with_kind: bool) -> str:
    return f"{wanted.target.label}: " if with_kind else ""
