"""A server that sends a byte now and then is never silent, and given up all the same."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import kinform
from kinform.apiserver import APIServer, faults
from kinform.cache.reflector_options import ReflectorOptions
from kinform.errors import TransportError, TransportFailure
from kinform.rest.config import ANSWER_TIMEOUT, Config
from kinform.testing import in_virtual_time
from tests.support.wire import WireConnection, WireRequest, WireServer

MAPS = kinform.Resource.of("v1/configmaps", kind="ConfigMap", namespaced=True)
CALLS: dict[str, Callable[[Any], Awaitable[object]]] = {
    "get": lambda maps: maps.get("a"),
    "list": lambda maps: maps.list(),
    "create": lambda maps: maps.create({"metadata": {"name": "a"}}),
    "update": lambda maps: maps.patch("a", {"data": {}}),
    "delete": lambda maps: maps.delete("a"),
}
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n"


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("where", ["head", "body"])
async def test_every_call_is_given_up_whatever_part_drips(where: str, call: str) -> None:
    async def drip(_request: WireRequest, conn: WireConnection) -> None:
        await conn.write(HEAD if where == "head" else HEAD + b"\r\n")
        drop = b"X-Filler: and so on\r\n" if where == "head" else b" "
        while not conn.is_closing:
            await conn.write(drop)
            await asyncio.sleep(0.01)  # that is what it does

    async with WireServer(drip) as server:
        config = Config(server=server.url, read_timeout=30, answer_timeout=0.3)
        async with kinform.connect(config) as client:
            with pytest.raises(TransportError, match=r"no answer within 0\.3 s") as caught:
                await CALLS[call](client.resource(MAPS, namespace="default"))
        assert caught.value.failure is TransportFailure.TIMEOUT
        assert len(server.requests) == 1  # and not asked again


@in_virtual_time
async def test_a_request_with_a_deadline_of_its_own_has_that_one() -> None:
    async with APIServer(port=None) as server, server.connect() as client:
        maps = client.resource(MAPS, namespace="default")
        await maps.create({"metadata": {"name": "a"}})
        server.faults.add(faults.drip(size=8, every=30))
        loop = asyncio.get_running_loop()
        began = loop.time()
        assert len(await maps.list(timeout=3600)) == 1
        assert ANSWER_TIMEOUT < loop.time() - began < 3600


@pytest.mark.parametrize("streams", [True, False])
@in_virtual_time
async def test_an_informer_tells_of_it_and_is_equal_when_it_is_over(streams: bool) -> None:
    """Its probes drip too."""
    options = ReflectorOptions(stream_lists=streams)
    async with (
        APIServer(port=None) as server,
        server.connect() as direct,
        server.connect() as client,
    ):
        maps = direct.resource(MAPS, namespace="default")
        await maps.create({"metadata": {"name": "a"}})
        drips = [faults.drip(size=1, every=50, verb=verb) for verb in ("list", "watch")]
        for fault in drips:
            server.faults.add(fault)
        async with client.informer(MAPS, options=options) as informer:
            await asyncio.sleep(2 * ANSWER_TIMEOUT)
            statistics = informer.statistics().reflector
            assert not informer.has_synced
            assert statistics.failures >= 1
            assert isinstance(statistics.last_error, TransportError)
            server.faults.clear()
            await informer.wait_synced(2 * ANSWER_TIMEOUT)
            for fault in drips:
                server.faults.add(fault)
            failures = informer.statistics().reflector.failures
            await asyncio.sleep(3 * ANSWER_TIMEOUT)
            assert informer.statistics().reflector.failures > failures
            server.faults.clear()
            made = await maps.create({"metadata": {"name": "b"}})
            await informer.wait_until(made.resource_version, 2 * ANSWER_TIMEOUT)
            assert len(informer.lister.list()) == 2


@in_virtual_time
async def test_an_answer_that_falls_silent_is_given_up_sooner() -> None:
    async with APIServer(port=None) as server, server.connect() as client:
        maps = client.resource(MAPS, namespace="default")
        await maps.create({"metadata": {"name": "a"}})
        server.faults.add(faults.half_open(after_bytes=20, verb="list"))
        loop = asyncio.get_running_loop()
        began = loop.time()
        with pytest.raises(TransportError) as caught:
            await maps.list()
        assert caught.value.failure is TransportFailure.TIMEOUT
        assert loop.time() - began == pytest.approx(60, abs=1)
