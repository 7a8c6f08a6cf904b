"""A listening socket that can close and reopen its port."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Final, final

from kinform._listening import start_serving, stop_serving

__all__ = ["ServerSocket"]

_BACKLOG: Final = 128


@final
class ServerSocket:
    """Accepts connections, or refuses them and keeps the port all the same."""

    def __init__(
        self, factory: Callable[[], asyncio.BaseProtocol], server: asyncio.Server, host: str
    ) -> None:
        self._factory = factory
        self._host = host
        self._server: asyncio.Server | None = server
        address: tuple[str, int] = server.sockets[0].getsockname()
        self.port: Final = address[1]
        self._kept: socket.socket | None = None
        self._opening: asyncio.Task[None] | None = None
        self._is_open = True

    @classmethod
    async def open(
        cls, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int
    ) -> ServerSocket:
        """Listen; cancelled, leave nothing.

        Raises:
            OSError: it cannot.
        """
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            factory, host, port, backlog=_BACKLOG, start_serving=False
        )
        await start_serving(server)
        return cls(factory, server, host)

    def turn(self, *, is_open: bool) -> None:
        """Accept connections, a moment later; or refuse them from now on."""
        if not is_open:
            self._refuse()
            return
        self._is_open = True
        if self._kept is not None:
            kept, self._kept = self._kept, None
            kept.listen(_BACKLOG)  # they are let in from now on, and served as soon as can be
            loop = asyncio.get_running_loop()
            self._opening = loop.create_task(self._serve(kept))

    async def close(self) -> None:
        """Listen no longer, and give the port back."""
        if self._opening is not None:
            await self._opening
        if self._server is not None:
            server, self._server = self._server, None
            await stop_serving(server)
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def _refuse(self) -> None:
        self._is_open = False
        if self._server is None:  # it does already, or will once it has begun to listen
            return
        self._server.close()
        self._server = None
        # Bound and not listening: the port is taken, and connections are refused.
        self._kept = kept = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        kept.setblocking(False)  # noqa: FBT003 - the socket module's own signature
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind((self._host, self.port))

    async def _serve(self, kept: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            self._factory, sock=kept, backlog=_BACKLOG, start_serving=False
        )
        await start_serving(server)
        self._server = server
        if not self._is_open:
            self._refuse()
