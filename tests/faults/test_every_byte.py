"""F-R23, F-P13 on real sockets: an answer that flows may be cut at any byte of what TCP carries."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import struct
from collections.abc import AsyncGenerator, AsyncIterator
from typing import NamedTuple, Self, final
from urllib.parse import urlsplit

import pytest

import kinform
from kinform import Bookmark, Client, Config
from kinform.apiserver import APIServer
from tests.faults.support_cutting import LISTED, MAPS, Ending, followed

pytestmark = pytest.mark.slow

_NO_LINGER = struct.pack("ii", 1, 0)


class Cut(NamedTuple):
    """The part of a response that is sent: head, chunks and all."""

    sent: bytes
    ending: Ending


@final
class Scissors:
    """Relays connections. A watch that is to be cut it answers itself, as far as it goes."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._tasks: set[asyncio.Task[object]] = set()
        self.port = 0
        self.heard = b""
        """All that the server said."""
        self._cut: Cut | None = None

    def cut_next(self, cut: Cut) -> None:
        """Let the next watch receive only this."""
        self._cut = cut

    @property
    def has_cut(self) -> bool:
        """True if no further watch is to be cut."""
        return self._cut is None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, near: asyncio.StreamWriter) -> None:
        # Before Python 3.12 asyncio logs an error for a connection whose task was cancelled.
        with contextlib.suppress(asyncio.CancelledError):
            await self._serve(reader, near)

    async def _serve(self, reader: asyncio.StreamReader, near: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            request = await reader.read(1 << 16)
            if (cut := self._cut) is not None and b"watch=true" in request:
                self._cut = None
                near.write(cut.sent)
                await near.drain()
                if cut.ending is Ending.RST:
                    linger = (socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
                    near.get_extra_info("socket").setsockopt(*linger)
            else:
                await self._relay(request, reader, near)
        except* OSError:
            pass
        finally:
            await _close(near)
            self._tasks.discard(task)

    async def _relay(
        self, request: bytes, reader: asyncio.StreamReader, near: asyncio.StreamWriter
    ) -> None:
        there, far = await asyncio.open_connection("127.0.0.1", self._target)
        try:
            far.write(request)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._forward(reader, far))
                group.create_task(self._backward(there, near))
        finally:
            await _close(far)

    async def _forward(self, reader: asyncio.StreamReader, far: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            far.write(data)
            await far.drain()
        raise ConnectionAbortedError  # the other half is of no use

    async def _backward(self, there: asyncio.StreamReader, near: asyncio.StreamWriter) -> None:
        while data := await there.read(1 << 16):
            self.heard += data
            near.write(data)
            await near.drain()
        raise ConnectionAbortedError


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


@final
class Scene:
    """A server, and the whole of what it once said in a watch."""

    def __init__(self, server: APIServer) -> None:
        self._server = server
        self.answer = b""
        self.expected: dict[str, str] = {}

    async def record(self) -> None:
        """Have a watch that holds events of every type."""
        async with self._server.connect() as writer, self._client() as (between, client):
            maps = writer.resource(MAPS, namespace="default")
            await maps.create({"metadata": {"name": "a"}})
            watched = client.resource(MAPS, namespace="default")
            async with watched.watch(send_initial_events=True, timeout=6) as events:
                received = aiter(events.with_bookmarks())
                await bookmark(received)
                await change(writer)
                await bookmark(received)  # two seconds before the end, as real servers do
            self.answer = between.heard
            await maps.create({"metadata": {"name": "c"}})  # only another watch can deliver it
            listed = await maps.list()
        self.expected = {one.name: one.resource_version for one in listed}

    async def check(self, after: int, ending: Ending) -> None:
        """Cut the first watch of an informer; see that it finds out all that it missed."""
        async with self._client() as (between, client):
            between.cut_next(cut := Cut(self.answer[:after], ending))
            figures = await followed(client, namespace="default", expected=self.expected)
        assert between.has_cut
        assert (figures.watches, figures.lists) == (2, 1 if LISTED in cut.sent else 2)

    @contextlib.asynccontextmanager
    async def _client(self) -> AsyncGenerator[tuple[Scissors, Client]]:
        """Connect by way of scissors."""
        async with Scissors(urlsplit(self._server.url).port or 0) as between:
            url = f"http://127.0.0.1:{between.port}"
            async with kinform.connect(Config(server=url, token=self._server.token)) as client:
                yield between, client


async def bookmark(received: AsyncIterator[object]) -> None:
    """Read on up to the next bookmark."""
    while not isinstance(await anext(received), Bookmark):
        pass


async def change(writer: Client) -> None:
    """Add an object, change it, delete another.

    What is written last no event shows: the bookmark has a version of its own.
    """
    maps = writer.resource(MAPS, namespace="default")
    await maps.create({"metadata": {"name": "b"}})
    annotations = {"k": "ü\u0085\u2028"}
    await maps.patch("b", {"metadata": {"managedFields": [{}], "annotations": annotations}})
    await maps.delete("a")
    await writer.resource("v1/secrets", namespace="default").create({"metadata": {"name": "s"}})


@pytest.mark.parametrize("ending", Ending, ids=lambda ending: ending.name)
async def test_a_watch_may_be_cut_at_any_byte(ending: Ending) -> None:
    """Every byte is the last one of one run, and then the cache equals the server."""
    async with APIServer(seed=1) as server:
        scene = Scene(server)
        await scene.record()
        types = re.findall(rb'"type":"(\w+)"', scene.answer)
        assert types == [b"ADDED", b"BOOKMARK", b"ADDED", b"MODIFIED", b"DELETED", b"BOOKMARK"]
        for after in range(len(scene.answer) + 1):
            await scene.check(after, ending)
