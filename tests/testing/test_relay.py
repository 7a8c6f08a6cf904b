"""The relay on real sockets: late, slow, silent, cut at any byte, and never out of order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field

import pytest

from kinform.clock import offload
from kinform.testing.relay import Relay, RelayThread
from tests.support.transports import full_backlog
from tests.testing.eventually import eventually_async

FAR_FUTURE = 1000.0


@dataclass
class Peer:
    """A server whose single connection the test holds in its hands."""

    port: int = 0
    reader: asyncio.StreamReader = field(default_factory=asyncio.StreamReader)
    writer: asyncio.StreamWriter | None = None
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.arrived.set()

    async def send(self, data: bytes) -> None:
        await self.arrived.wait()
        assert self.writer is not None
        self.writer.write(data)
        await self.writer.drain()

    async def close(self) -> None:
        await self.arrived.wait()
        assert self.writer is not None
        self.writer.close()
        await self.writer.wait_closed()


@asynccontextmanager
async def peer() -> AsyncGenerator[Peer]:
    it = Peer()
    server = await asyncio.start_server(it.accept, "127.0.0.1", 0)
    it.port = server.sockets[0].getsockname()[1]
    try:
        yield it
    finally:
        server.close()
        if it.writer is not None:
            it.writer.transport.abort()
        await server.wait_closed()


@asynccontextmanager
async def connected(
    port: int,
) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with closing(writer):
        yield reader, writer


def held(relay: Relay, count: int) -> Callable[[], bool]:
    return lambda: relay.held_bytes == count


async def test_bytes_pass_both_ways_unchanged() -> None:
    async with peer() as server, Relay("127.0.0.1", server.port) as relay:
        async with connected(relay.port) as (reader, writer):
            writer.write(b"question")
            await server.arrived.wait()
            assert await server.reader.readexactly(8) == b"question"
            payload = bytes(range(256)) * 20_000
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(server.send(payload))
                received = tasks.create_task(reader.readexactly(len(payload)))
            assert received.result() == payload


async def test_delayed_bytes_are_held_back_and_delivered_in_order_when_the_delay_ends() -> None:
    async with peer() as server, Relay("127.0.0.1", server.port) as relay:
        relay.delay = FAR_FUTURE
        async with connected(relay.port) as (reader, _):
            for number in range(5):
                await server.send(b"%d" % number)
                await eventually_async(held(relay, number + 1))
            relay.delay = 0.0
            assert await reader.readexactly(5) == b"01234"
            assert relay.held_bytes == 0


async def test_delayed_bytes_arrive_after_the_delay_and_not_before() -> None:
    async with peer() as server, Relay("127.0.0.1", server.port) as relay:
        relay.delay = 0.1
        async with connected(relay.port) as (reader, _):
            await server.arrived.wait()
            loop = asyncio.get_running_loop()
            began = loop.time()
            await server.send(b"late")
            assert await reader.readexactly(4) == b"late"
            assert loop.time() - began >= 0.1


async def test_the_clients_bytes_are_not_delayed() -> None:
    async with peer() as server, Relay("127.0.0.1", server.port) as relay:
        relay.delay = FAR_FUTURE
        async with connected(relay.port) as (_, writer):
            writer.write(b"now")
            await server.arrived.wait()
            assert await server.reader.readexactly(3) == b"now"


async def test_a_stalled_relay_keeps_the_connection_and_goes_on_when_resumed() -> None:
    async with peer() as server, Relay("127.0.0.1", server.port) as relay:
        async with connected(relay.port) as (reader, _):
            await server.arrived.wait()
            relay.stall()
            await server.send(b"patience")
            await eventually_async(held(relay, 8))
            assert relay.connections == 1
            relay.resume()
            assert await reader.readexactly(8) == b"patience"


async def test_a_cut_resets_every_connection_and_drops_what_is_held_back() -> None:
    async with peer() as server, Relay("127.0.0.1", server.port) as relay:
        relay.stall()
        async with connected(relay.port) as (reader, _):
            await server.send(b"never seen")
            await eventually_async(held(relay, 10))
            relay.cut()
            with pytest.raises(ConnectionResetError):
                await reader.read()
            await eventually_async(lambda: relay.connections == 0)


async def test_a_drop_ends_every_connection_in_good_order() -> None:
    async with peer() as server, Relay("127.0.0.1", server.port) as relay:
        async with connected(relay.port) as (reader, _):
            await server.send(b"seen")
            assert await reader.readexactly(4) == b"seen"
            relay.stall()
            await server.send(b"never seen")
            await eventually_async(held(relay, 10))
            relay.drop()
            assert await reader.read() == b""
            await eventually_async(lambda: relay.connections == 0)


@pytest.mark.parametrize("limit", range(8))
async def test_a_connection_is_reset_after_exactly_as_many_bytes_as_its_limit(limit: int) -> None:
    async with peer() as server, Relay("127.0.0.1", server.port) as relay:
        relay.limit = limit
        async with connected(relay.port) as (reader, _):
            await server.send(b"12345678")
            assert await reader.readexactly(limit) == b"12345678"[:limit]
            with pytest.raises(ConnectionResetError):
                await reader.read()


async def test_a_limit_that_is_lifted_or_not_reached_changes_nothing() -> None:
    async with peer() as server, Relay("127.0.0.1", server.port) as relay:
        relay.limit = 4
        async with connected(relay.port) as (reader, _):
            await server.send(b"1234")
            assert await reader.readexactly(4) == b"1234"
            relay.limit = None
            await server.send(b"5678")
            assert await reader.readexactly(4) == b"5678"


async def test_throttled_bytes_come_in_order_and_no_faster() -> None:
    data = bytes(range(256)) * 4
    async with peer() as server, Relay("127.0.0.1", server.port) as relay:
        relay.rate = 4096
        async with connected(relay.port) as (reader, _):
            loop = asyncio.get_running_loop()
            began = loop.time()
            await server.send(data)
            assert await reader.readexactly(len(data)) == data
            assert loop.time() - began >= 0.2
            relay.rate = None
            await server.send(data)
            assert await reader.readexactly(len(data)) == data


@pytest.mark.parametrize("wrong", [0, -1])
def test_a_rate_of_nothing_and_a_limit_below_it_are_refused(wrong: int) -> None:
    with pytest.raises(ValueError, match="rate"):
        Relay("127.0.0.1", 1).rate = wrong
    with pytest.raises(ValueError, match="limit"):
        Relay("127.0.0.1", 1).limit = wrong - 1


async def test_new_connections_are_taken_after_a_cut() -> None:
    async with peer() as server, Relay("127.0.0.1", server.port) as relay:
        async with connected(relay.port):
            await server.arrived.wait()
            relay.cut()
            await eventually_async(lambda: relay.connections == 0)
        server.arrived.clear()
        async with connected(relay.port) as (reader, _):
            await server.send(b"again")
            assert await reader.readexactly(5) == b"again"


async def test_all_bytes_before_the_servers_end_are_delivered_before_the_end() -> None:
    async with peer() as server, Relay("127.0.0.1", server.port) as relay:
        relay.delay = FAR_FUTURE
        async with connected(relay.port) as (reader, _):
            await server.send(b"x" * 100_000)
            await server.close()
            await eventually_async(held(relay, 100_000))
            relay.delay = 0.0
            assert await reader.read() == b"x" * 100_000


async def test_a_client_that_ends_its_side_still_gets_the_answer() -> None:
    async with peer() as server, Relay("127.0.0.1", server.port) as relay:
        async with connected(relay.port) as (reader, writer):
            writer.write(b"last words")
            writer.write_eof()
            await server.arrived.wait()
            assert await server.reader.read() == b"last words"
            await server.send(b"heard")
            await server.close()
            assert await reader.read() == b"heard"


async def test_a_reset_by_the_server_is_a_reset_to_the_client() -> None:
    async with peer() as server, Relay("127.0.0.1", server.port) as inner:
        async with Relay("127.0.0.1", inner.port) as outer:
            async with connected(outer.port) as (reader, _):
                await server.arrived.wait()
                inner.cut()
                with pytest.raises(ConnectionResetError):
                    await reader.read()


async def test_a_server_that_is_not_there_resets_the_client() -> None:
    async with peer() as server:
        gone = server.port
    async with Relay("127.0.0.1", gone) as relay:
        async with connected(relay.port) as (reader, _):
            with pytest.raises(ConnectionResetError):
                await reader.read()


async def test_closing_does_not_wait_for_what_is_held_back() -> None:
    async with peer() as server:
        async with asyncio.timeout(5):
            async with Relay("127.0.0.1", server.port) as relay:
                relay.delay = FAR_FUTURE
                async with connected(relay.port):
                    await server.send(b"held")
                    await eventually_async(held(relay, 4))


async def test_closing_does_not_wait_for_a_server_that_does_not_answer() -> None:
    """It would, for as long as the operating system asks again: some two minutes."""
    with full_backlog() as port:
        async with asyncio.timeout(10), Relay("127.0.0.1", port) as relay:
            async with connected(relay.port):
                await eventually_async(lambda: relay.connections == 1)
    assert relay.connections == 0


def test_a_negative_delay_is_refused() -> None:
    relay = Relay("127.0.0.1", 1)
    with pytest.raises(ValueError, match=r"-1"):
        relay.delay = -1


async def test_a_relay_on_a_thread_of_its_own_serves_any_loop() -> None:
    async with peer() as server:
        relay = RelayThread("127.0.0.1", server.port)
        await offload(relay.start)
        try:
            async with connected(relay.port) as (reader, _):
                await server.send(b"threads")
                assert await reader.readexactly(7) == b"threads"
        finally:
            await offload(relay.close)
