"""The proxy between a client and the server: a relay that can freeze or redirect.

`kinform.testing.relay` holds connections back and lets them go on; here they never do.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable
from typing import Final, final

__all__ = ["Elsewhere", "Front"]

_CHUNK: Final = 65536
_STATUS: Final = b'{"kind":"Status","apiVersion":"v1","status":"Failure","code":404}'


async def _head(reader: asyncio.StreamReader) -> bytes:
    with contextlib.suppress(asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
        return await reader.readuntil(b"\r\n\r\n")
    return b""


def _close(writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError, RuntimeError):
        writer.close()


@final
class Elsewhere:
    """A second server, under another name: it counts who comes, and who brings credentials."""

    def __init__(self) -> None:
        self.requests = 0
        self.credentials = 0
        self.port = 0

    async def open(self, context: ssl.SSLContext) -> None:
        """Listen."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context)
        self.port = server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await _head(reader):
            self.requests += 1
            self.credentials += b"\nauthorization:" in head.lower()
            length = len(_STATUS)
            writer.write(
                b"HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\n"
                b"Content-Length: %d\r\n\r\n%b" % (length, _STATUS)
            )
        _close(writer)


@final
class Front:
    """Relays every connection to a port, until it is frozen."""

    def __init__(self, target: int) -> None:
        self._target: Final = target
        self._pumps: Final[dict[asyncio.Task[None], tuple[asyncio.StreamWriter, ...]]] = {}
        self._frozen: Final[list[asyncio.StreamWriter]] = []
        self._redirect: Callable[[bytes], bytes] | None = None
        self.port = 0
        self.redirected = 0

    async def open(self, context: ssl.SSLContext | None) -> None:
        """Listen."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context)
        self.port = server.sockets[0].getsockname()[1]

    def freeze(self) -> None:
        """Copy nothing more on the connections that are open, and close none of them."""
        for task, writers in tuple(self._pumps.items()):
            self._frozen.extend(writers)
            task.cancel()

    def redirect(self, port: int | None) -> None:
        """Cut all connections; answer every request with a redirect to ``port``, None: no longer.

        The other server is called ``localhost`` there, this one ``127.0.0.1``.
        """
        if port is None:
            self._redirect = None
        else:
            self._redirect = lambda path: b"https://localhost:%d%b" % (port, path)
        for task in tuple(self._pumps):
            task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._redirect is not None:
            await self._send_away(reader, writer)
            return
        far, near = await asyncio.open_connection("127.0.0.1", self._target)
        task = asyncio.current_task()
        assert task is not None
        self._pumps[task] = (writer, near)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_pump(reader, near))
                group.create_task(_pump(far, writer))
        except* (OSError, _Ended):
            pass
        except* asyncio.CancelledError:
            pass
        finally:
            del self._pumps[task]
            if writer not in self._frozen:
                _close(writer)
                _close(near)

    async def _send_away(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while self._redirect is not None and (head := await _head(reader)):
            self.redirected += 1
            location = self._redirect(head.split(b" ", 2)[1])
            writer.write(
                b"HTTP/1.1 307 Temporary Redirect\r\nLocation: %b\r\nContent-Length: 0\r\n\r\n"
                % location
            )
        _close(writer)


@final
class _Ended(Exception):
    """One side has closed the connection."""


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()
    raise _Ended
