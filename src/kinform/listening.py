"""What servers have in common: how they begin and end to listen, and how many they let in.

asyncio's own beginning and end leave something behind, and it lets everybody in.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, final

__all__ = ["Connections", "half_of_descriptors", "start_serving", "stop_serving"]


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


@final
class Connections:
    """The open connections of a server, ``limit`` at most: whoever comes, it has descriptors left.

    Each is a stranger's until `trust` says otherwise. One too many costs the oldest stranger's;
    where all are trusted, it is ended itself. So nobody is at the mercy of strangers, and who has
    just come gets a hearing.
    """

    def __init__(self, limit: int) -> None:
        self._limit: Final = limit
        self._strangers: OrderedDict[Hashable, asyncio.Transport] = OrderedDict()  # by age
        self._trusted: dict[Hashable, asyncio.Transport] = {}

    def admit(self, who: Hashable, transport: asyncio.Transport) -> bool:
        """Take in a connection; false: there is no place, and it has been ended."""
        if len(self._strangers) + len(self._trusted) >= self._limit:
            if not self._strangers:
                transport.abort()
                return False
            _, oldest = self._strangers.popitem(last=False)
            oldest.abort()
        self._strangers[who] = transport
        return True

    def trust(self, who: Hashable) -> None:
        """Keep a connection, whoever else comes; one that was ended stays so."""
        transport = self._strangers.pop(who, None)
        if transport is not None:
            self._trusted[who] = transport

    def is_trusted(self, who: Hashable) -> bool:
        """Tell whether it is one that is kept."""
        return who in self._trusted

    def forget(self, who: Hashable) -> None:
        """Take note that a connection is over."""
        self._strangers.pop(who, None)
        self._trusted.pop(who, None)

    def abort(self) -> None:
        """End all of them now."""
        for transport in (*self._strangers.values(), *self._trusted.values()):
            transport.abort()


def half_of_descriptors(*, at_most: int) -> int:
    """Return half of what this process may open at once, as far as that can be told.

    A client in the same process has the other end of each connection open as well.
    """
    try:
        import resource
    except ImportError:  # there is no such limit on Windows
        return at_most
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return at_most if allowed == resource.RLIM_INFINITY else max(1, min(at_most, allowed // 2))
