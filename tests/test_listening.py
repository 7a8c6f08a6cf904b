"""Servers that start and stop at any moment: no port stays open, and no connection fails oddly."""

from __future__ import annotations

import asyncio
import socket

import pytest

from kinform._listening import start_serving, stop_serving
from tests.support.transports import open_sockets


class Refusing(asyncio.Protocol):
    """Closes every connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


async def made() -> asyncio.Server:
    loop = asyncio.get_running_loop()
    return await loop.create_server(Refusing, "127.0.0.1", 0, start_serving=False)


async def test_who_is_cancelled_while_it_begins_to_serve_leaves_no_port_open() -> None:
    sockets = open_sockets()
    server = await made()
    starting = asyncio.get_running_loop().create_task(start_serving(server))
    await asyncio.sleep(0)
    assert server.is_serving()
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert open_sockets() == sockets


@pytest.mark.parametrize("turns", range(5))
async def test_a_connection_that_comes_while_its_server_is_closed_is_not_forgotten(
    turns: int,
) -> None:
    """By itself asyncio logs an error, which fails every test, if it comes at the right turn."""
    sockets = open_sockets()
    server = await made()
    await start_serving(server)
    with socket.create_connection(server.sockets[0].getsockname()):
        for _ in range(turns):
            await asyncio.sleep(0)
        await stop_serving(server)
    for _ in range(3):
        await asyncio.sleep(0)
    assert open_sockets() == sockets


async def test_who_is_cancelled_while_it_stops_to_serve_leaves_no_port_open() -> None:
    sockets = open_sockets()
    server = await made()
    await start_serving(server)
    stopping = asyncio.get_running_loop().create_task(stop_serving(server))
    await asyncio.sleep(0)
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    assert open_sockets() == sockets
