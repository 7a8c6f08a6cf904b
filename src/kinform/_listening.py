"""Listening: start, stop and connection limits of asyncio servers.

asyncio leaks sockets when a server is started or closed at a bad moment, and has no limit on
connections.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, final

__all__ = ["Connections", "half_of_descriptors", "start_serving", "stop_serving"]


async def start_serving(server: asyncio.Server) -> None:
    """Start a server that was made with ``start_serving=False``; close it if that fails.

    With ``start_serving=True``, a task that is cancelled during the call never gets the server,
    and its port stays open.

    Raises:
        OSError: it cannot listen.
    """
    try:
        await server.start_serving()
    except BaseException:
        server.close()
        raise


async def stop_serving(server: asyncio.Server) -> None:
    """Close a server; connections that it has accepted by then are established first.

    asyncio does not handle a connection that is being accepted while its server is closed: it
    logs an error and leaves the socket to the garbage collector.
    """
    loop = asyncio.get_running_loop()
    for listening in server.sockets:
        # Event loops other than asyncio's have no such reader, and not this problem.
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.remove_reader(listening.fileno())
    try:
        for _ in range(2):  # the first turn makes a transport, the second calls connection_made
            await asyncio.sleep(0)
    finally:
        server.close()


@final
class Connections:
    """The open connections of a server, at most ``limit``, so that it keeps free descriptors.

    A connection is unauthenticated until `trust` is called. At the limit, a new connection replaces
    the oldest unauthenticated one; if all are trusted, the new one is closed. So unauthenticated
    clients cannot keep out others.
    """

    def __init__(self, limit: int) -> None:
        self._limit: Final = limit
        self._unauthenticated: OrderedDict[Hashable, asyncio.Transport] = OrderedDict()  # by age
        self._trusted: dict[Hashable, asyncio.Transport] = {}

    def admit(self, who: Hashable, transport: asyncio.Transport) -> bool:
        """Add a connection; return false if the limit is reached, and it was closed."""
        if len(self._unauthenticated) + len(self._trusted) >= self._limit:
            if not self._unauthenticated:
                transport.abort()
                return False
            _, oldest = self._unauthenticated.popitem(last=False)
            oldest.abort()
        self._unauthenticated[who] = transport
        return True

    def trust(self, who: Hashable) -> None:
        """Mark a connection as trusted: it is not closed for others. Ignored if it is closed."""
        transport = self._unauthenticated.pop(who, None)
        if transport is not None:
            self._trusted[who] = transport

    def is_trusted(self, who: Hashable) -> bool:
        """Return whether the connection is trusted."""
        return who in self._trusted

    def forget(self, who: Hashable) -> None:
        """Remove a closed connection."""
        self._unauthenticated.pop(who, None)
        self._trusted.pop(who, None)

    def abort(self) -> None:
        """Close all connections now."""
        for transport in (*self._unauthenticated.values(), *self._trusted.values()):
            transport.abort()


def half_of_descriptors(*, at_most: int) -> int:
    """Return half of the file descriptors that this process may open, ``at_most`` that many.

    A client in the same process needs a descriptor for its end of each connection as well.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return at_most
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return at_most if allowed == resource.RLIM_INFINITY else max(1, min(at_most, allowed // 2))
