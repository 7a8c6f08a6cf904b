"""The beginning and the end of a listening socket, where asyncio's own leave something behind."""

from __future__ import annotations

import asyncio
import contextlib

__all__ = ["start_serving", "stop_serving"]


async def start_serving(server: asyncio.Server) -> None:
    """Let a server serve that was made with ``start_serving=False``; close it if that fails.

    Who is cancelled while asyncio makes a server that serves at once never gets to know it, and
    its port stays open.

    Raises:
        OSError: it cannot listen.
    """
    try:
        await server.start_serving()
    except BaseException:
        server.close()
        raise


async def stop_serving(server: asyncio.Server) -> None:
    """Close a server; connections that it has accepted by then are made.

    asyncio trips over a connection that is being accepted while its server is closed: it logs an
    error and leaves the socket to the garbage collector.
    """
    loop = asyncio.get_running_loop()
    for listening in server.sockets:
        # Other loops than asyncio's own have no such reader, and do not trip.
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.remove_reader(listening.fileno())
    try:
        for _ in range(2):  # in the first turn a transport is made, in the second it is told of
            await asyncio.sleep(0)
    finally:
        server.close()
