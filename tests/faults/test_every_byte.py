"""F-R23, F-P13 on real sockets: an answer that flows may be cut at any byte of what TCP carries."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import socket
import struct
from typing import Self, final
from urllib.parse import urlsplit

import pytest

import kinform
from kinform import Added, ReflectorOptions
from kinform.apiserver import APIServer
from kinform.sansio.backoff import Backoff

pytestmark = pytest.mark.slow

AT_ONCE = ReflectorOptions(backoff=Backoff(first=0.001, cap=0.001))
PARTS = 8
"""Tests that share the bytes between them."""
_NO_LINGER = struct.pack("ii", 1, 0)


class Ending(enum.Enum):
    """How a connection ends."""

    FIN = "in good order"
    RST = "by a reset"


@final
class Scissors:
    """Relays connections, and cuts the first watch after so many bytes: head, chunks and all."""

    def __init__(self, port: int, *, after: int, ending: Ending) -> None:
        self._target = port
        self._left = after
        self._ending = ending
        self._tasks: set[asyncio.Task[object]] = set()
        self._watch: asyncio.StreamWriter | None = None
        self.has_cut = False
        self.port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._relay, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _relay(self, reader: asyncio.StreamReader, near: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        there, far = await asyncio.open_connection("127.0.0.1", self._target)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._forward(reader, near, far))
                group.create_task(self._backward(there, near))
        except* OSError:
            pass
        finally:
            for writer in (near, far):
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
            self._tasks.discard(task)

    async def _forward(
        self, reader: asyncio.StreamReader, near: asyncio.StreamWriter, far: asyncio.StreamWriter
    ) -> None:
        while data := await reader.read(1 << 16):
            if self._watch is None and b"watch=true" in data.partition(b"\r\n")[0]:
                self._watch = near
                if not self._left:
                    self._cut(near)
            far.write(data)
            await far.drain()
        raise ConnectionAbortedError

    async def _backward(self, there: asyncio.StreamReader, near: asyncio.StreamWriter) -> None:
        while data := await there.read(1 << 16):
            if near is self._watch and not self.has_cut:
                data, self._left = data[: self._left], self._left - len(data)
            near.write(data)
            await near.drain()
            if near is self._watch and not self.has_cut and self._left <= 0:
                self._cut(near)
        raise ConnectionAbortedError

    def _cut(self, near: asyncio.StreamWriter) -> None:
        self.has_cut = True
        if self._ending is Ending.RST:
            linger = (socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
            near.get_extra_info("socket").setsockopt(*linger)
        raise ConnectionAbortedError


async def is_cut(server: APIServer, after: int, ending: Ending, expected: dict[str, str]) -> bool:
    """Follow the server through scissors; tell whether there was so much to cut."""
    port = urlsplit(server.url).port or 0
    told: list[str] = []
    async with Scissors(port, after=after, ending=ending) as between:
        config = kinform.Config(server=f"http://127.0.0.1:{between.port}", token=server.token)
        async with kinform.connect(config) as client:
            informer = client.informer("v1/configmaps", namespace="default", options=AT_ONCE)

            def note(event: Added[kinform.Object]) -> None:
                told.append(event.obj.name)

            registration = informer.add_event_handler(on_add=note)
            async with informer:
                await registration.wait_synced(20)
                shown = {one.name: one.resource_version for one in informer.lister.list()}
                figures = informer.statistics().reflector
        assert shown == expected, f"cut after {after} bytes"
        assert sorted(told) == sorted(expected), "none twice, none lost"
        assert figures.watches <= 2
        return between.has_cut


@pytest.mark.parametrize("first", range(PARTS))
async def test_a_streamed_list_may_be_cut_at_any_byte(first: int) -> None:
    """Every byte is the last one of one run: of even ones in good order, else by a reset."""
    ending = Ending.RST if first % 2 else Ending.FIN
    async with APIServer(seed=1) as server, server.connect() as client:
        maps = client.resource("v1/configmaps", namespace="default")
        expected: dict[str, str] = {}
        for name, text in (("a", "x"), ("b", "ü\u0085\u2028")):
            made = await maps.create({"metadata": {"name": name}, "data": {"k": text}})
            expected[name] = made.resource_version
        after = first
        while await is_cut(server, after, ending, expected):
            after += PARTS
        assert after > 1000
