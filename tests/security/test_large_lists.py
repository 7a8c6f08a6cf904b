"""A server that is not trusted with all the memory: `Config.max_list_size` bounds whole lists."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import pytest

import kinform
from kinform.apiserver import APIServer, faults
from kinform.apiserver.memory import MemoryTransport
from kinform.cache.listwatch import ListWatch
from kinform.cache.reflector_options import ReflectorOptions
from kinform.errors import DecodeError, KinformError
from kinform.rest.config import Config
from kinform.testing import in_virtual_time
from tests.support.wire import WireConnection, WireRequest, WireServer

MAPS = kinform.Resource.of("v1/configmaps", kind="ConfigMap", namespaced=True)
LIMIT = 512 * 1024
MOST = 32 * LIMIT  # for what the sockets hold
BLOCK = b"x" * 16_000
MINUTE, HOUR = 60.0, 3600.0
NAMED = r"larger than \d+ bytes, as many as Config\.max_list_size allows"


# --- lists without end, on sockets


def item(number: int) -> bytes:
    return b'{"metadata":{"name":"a%d","namespace":"here"},"data":{"a":"%b"}}' % (number, BLOCK)


class Endless:
    """Answers lists that hardly end, in the form that is asked for, and counts what it sends."""

    def __init__(self) -> None:
        self.sent = 0

    async def __call__(self, request: WireRequest, conn: WireConnection) -> None:
        if "watch=true" in request.target:
            await self._whole(conn, b"", b'{"type":"ADDED","object":%b}\n')
        elif "limit=" in request.target:
            await self._page(conn)
        else:
            head = b'{"kind":"ConfigMapList","metadata":{"resourceVersion":"1"},"items":[{}'
            await self._whole(conn, head, b",%b")

    async def _whole(self, conn: WireConnection, head: bytes, form: bytes) -> None:
        await conn.chunked(headers={"Content-Type": "application/json"})
        if head:
            await conn.chunk(head)
        while not conn.is_closing and self.sent < 2 * MOST:
            self.sent += len(BLOCK)
            await conn.chunk(form % item(self.sent))

    async def _page(self, conn: WireConnection) -> None:
        self.sent += len(BLOCK)
        token = b"%d" % self.sent if self.sent < 2 * MOST else b""
        metadata = b'{"resourceVersion":"1","continue":"%b"}' % token
        page = b'{"kind":"ConfigMapList","metadata":%b,"items":[%b]}' % (metadata, item(self.sent))
        await conn.send(200, {"Content-Type": "application/json"}, page)


@pytest.mark.parametrize("page_size", [500, None], ids=["pages", "one answer"])
async def test_a_list_without_end_is_an_error_that_names_the_setting(page_size: int | None) -> None:
    endless = Endless()
    async with (
        WireServer(endless) as server,
        kinform.connect(Config(server=server.url, max_list_size=LIMIT)) as client,
    ):
        with pytest.raises(DecodeError, match=NAMED):
            await client.resource(MAPS, namespace="here").list(page_size=page_size)
    assert LIMIT // 2 < endless.sent < MOST


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(ReflectorOptions(), id="streamed"),
        pytest.param(ReflectorOptions(stream_lists=False), id="pages"),
    ],
)
@pytest.mark.parametrize("made_by", ["resource", "rest client"])
async def test_an_informer_takes_no_list_without_end(
    options: ReflectorOptions, made_by: str
) -> None:
    endless, errors = Endless(), asyncio.Queue[KinformError]()
    async with (
        WireServer(endless) as server,
        kinform.connect(Config(server=server.url, max_list_size=LIMIT)) as client,
    ):
        source: Any = client.resource(MAPS, namespace="here").list_watch()
        if made_by == "rest client":
            source = ListWatch.from_client(client.rest("v1"), "configmaps", namespace="here")
        informer = kinform.SharedInformer[Any](
            source, options=options, watch_error_handler=errors.put_nowait
        )
        async with asyncio.timeout(20), informer:
            error = await errors.get()
            assert not informer.has_synced
    assert isinstance(error, DecodeError)
    assert "Config.max_list_size" in str(error)
    assert LIMIT // 2 < endless.sent < MOST


# --- lists of a known size


@contextlib.asynccontextmanager
async def limited(server: APIServer, most: int | None) -> AsyncGenerator[kinform.Client]:
    config = Config(server="http://localhost", token=server.token, max_list_size=most)
    async with kinform.connect(config, transport=MemoryTransport(server.application)) as client:
        yield client


async def fill(server: APIServer, *names: str) -> None:
    async with server.connect() as client:
        maps = client.resource(MAPS, namespace="default")
        for name in names:
            await maps.create({"metadata": {"name": name}, "data": {"a": "x" * 1000}})


LISTS: dict[str, Callable[[Any], Awaitable[kinform.ListResult[Any]]]] = {
    "one answer": lambda maps: maps.list(page_size=None),
    "pages": lambda maps: maps.list(page_size=2),
    "one page": lambda maps: maps.list(limit=3),
}


@pytest.mark.parametrize("form", LISTS)
async def test_the_bound_is_met_to_the_byte(form: str) -> None:
    async with APIServer(port=None) as server:
        await fill(server, *"abcde")
        async with limited(server, None) as client:
            listed = await LISTS[form](client.resource(MAPS, namespace="default"))
        assert listed.size > 1000 * len(listed)
        async with limited(server, listed.size) as client:
            again = await LISTS[form](client.resource(MAPS, namespace="default"))
            assert len(again) == len(listed)
        async with limited(server, listed.size - 1) as client:
            with pytest.raises(DecodeError, match=NAMED):
                await LISTS[form](client.resource(MAPS, namespace="default"))


async def test_who_keeps_no_list_is_held_to_the_size_of_a_page() -> None:
    async with APIServer(port=None) as server:
        await fill(server, *"abcde")
        async with limited(server, 3000) as client:
            maps = client.resource(MAPS, namespace="default")
            found = [one.name async for one in maps.iterate(page_size=1)]
            with pytest.raises(DecodeError, match=NAMED):
                [one async for one in maps.iterate(page_size=3)]
        assert found == [*"abcde"]


# --- what informers make of it

FORMS = {
    "streamed": ReflectorOptions(),
    "one answer": ReflectorOptions(stream_lists=False),
    "pages": ReflectorOptions(stream_lists=False, page_size=2),
}


@pytest.mark.parametrize("form", FORMS)
@in_virtual_time
async def test_an_informer_says_what_is_wrong_and_asks_seldom_until_the_list_fits(
    form: str,
) -> None:
    errors: list[KinformError] = []
    async with APIServer(port=None) as server, limited(server, 4000) as client:
        await fill(server, *"abcde")
        informer = client.informer(MAPS, options=FORMS[form], watch_error_handler=errors.append)
        async with informer:
            with pytest.raises(TimeoutError, match=NAMED) as caught:
                await informer.wait_synced(MINUTE)
            assert isinstance(caught.value.__cause__, DecodeError)
            assert errors
            assert {type(error) for error in errors} == {DecodeError}
            assert informer.statistics().reflector.lists <= 8
            assert informer.lister.list() == []
            async with server.connect() as direct:
                for name in "abcd":
                    await direct.resource(MAPS, namespace="default").delete(name)
            await informer.wait_synced(HOUR)
            assert [one.name for one in informer.lister.list()] == ["e"]


@pytest.mark.parametrize("form", FORMS)
@in_virtual_time
async def test_what_watches_bring_is_not_counted_and_stays_when_a_list_is_too_large(
    form: str,
) -> None:
    errors: list[KinformError] = []
    async with APIServer(port=None) as server, limited(server, 4000) as client:
        await fill(server, "a")
        informer = client.informer(MAPS, options=FORMS[form], watch_error_handler=errors.append)
        async with informer:
            await informer.wait_synced(MINUTE)
            await fill(server, *"bcdefgh")
            await informer.wait_for(lambda maps: len(maps.list()) == 8, MINUTE)
            assert errors == []
            server.faults.add(faults.error_event(410, times=1))
            await fill(server, "i")
            await asyncio.sleep(15 * MINUTE)  # the fault is for the next watch; one lives up to 10
            assert any("Config.max_list_size" in str(error) for error in errors)
            assert {one.name for one in informer.lister.list()} >= {*"abcdefgh"}
            async with server.connect() as direct:
                for name in "abcdefgh":
                    await direct.resource(MAPS, namespace="default").delete(name)
            await informer.wait_for(lambda maps: [one.name for one in maps.list()] == ["i"], HOUR)
