"""A TCP relay that makes a healthy connection a bad one: late, slow, silent or cut at any byte.

Bytes from the client pass at once. Bytes from the server pass through a queue, where they can
be held back; what is held back keeps its order. Used between an apiserver and its etcd by
`kinform.testing.ControlPlane`, and useful between a client and its server as well.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Final, Self, TypeAlias, final

from kinform._listening import start_serving, stop_serving
from kinform.tasks import background, finish

__all__ = ["Relay", "RelayThread"]

_Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_CHUNK: Final = 256 * 1024
_NO_LINGER: Final = struct.pack("ii", 1, 0)
_HELD_LIMIT: Final = 64 * 1024 * 1024
"""Bytes a connection may hold back before it stops reading from the server."""
_PORTIONS: Final = 20
"""In how many portions a second what is throttled is delivered."""


@final
class Relay:
    """Listens on a loopback port and relays every connection to ``host:port``.

    ``async with`` opens and closes it; closing cuts every connection, and who is cancelled
    meanwhile waits for that. All methods belong to the loop it was opened on, except that `delay`
    may be set from any thread.

    Example:
        >>> async def main() -> None:
        ...     async with Relay("127.0.0.1", 2379) as relay:
        ...         relay.delay = 5.0  # answers arrive five seconds late
        ...         relay.cut()  # every connection is reset; new ones are taken
    """

    def __init__(self, host: str, port: int) -> None:
        self._target: Final = (host, port)
        self._delay = 0.0
        self._rate: float | None = None
        self._limit: int | None = None
        self._stalled = False
        self._links: set[_Link] = set()
        self._server: asyncio.Server | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._port = 0
        self._closing = False

    @property
    def port(self) -> int:
        """The loopback port it listens on; 0 before it is opened."""
        return self._port

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return len(self._links)

    @property
    def held_bytes(self) -> int:
        """The bytes from the server that are held back now."""
        return sum(link.held_bytes for link in self._links)

    @property
    def delay(self) -> float:
        """Seconds each byte from the server is held back, counted from its arrival.

        A change counts for what is held back already, too: with ``0`` all of it goes on.
        """
        return self._delay

    @delay.setter
    def delay(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError(f"delay is {seconds!r}; expected 0 or more seconds")
            # A plain assignment, safe from any thread: all bytes that arrive after it are delayed.
        self._delay = seconds
        self._wake()

    @property
    def rate(self) -> float | None:
        """Bytes from the server that each connection delivers in a second; None: all at once."""
        return self._rate

    @rate.setter
    def rate(self, bytes_per_second: float | None) -> None:
        if bytes_per_second is not None and not bytes_per_second > 0:
            raise ValueError(f"a rate of {bytes_per_second!r}: to hold back everything is stall()")
        self._rate = bytes_per_second
        self._wake()

    @property
    def limit(self) -> int | None:
        """Bytes from the server after which a connection is reset, from its first; None: never.

        One that has delivered as many already is reset at its next byte.
        """
        return self._limit

    @limit.setter
    def limit(self, count: int | None) -> None:
        if count is not None and count < 0:
            raise ValueError(f"a limit of {count!r} bytes: none is 0")
        self._limit = count
        self._wake()

    def stall(self) -> None:
        """Hold back all bytes from the server, connections staying open, until `resume`."""
        self._stalled = True
        self._wake()

    def resume(self) -> None:
        """Deliver again, beginning with what was held back by `stall`."""
        self._stalled = False
        self._wake()

    def cut(self) -> None:
        """Reset every connection, with what it holds back. New ones are taken."""
        for link in tuple(self._links):
            link.abort()

    def drop(self) -> None:
        """End every connection in good order, without what it holds back. New ones are taken."""
        for link in tuple(self._links):
            link.drop()

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._closing = False
        server = await asyncio.start_server(
            self._relay, "127.0.0.1", self._port, limit=_CHUNK, start_serving=False
        )
        await start_serving(server)
        self._server = server
        self._port = server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        if self._server is not None:
            server, self._server = self._server, None
            await finish(self._close(server))

    async def _close(self, server: asyncio.Server) -> None:
        self._closing = True
        await stop_serving(server)
        for link in tuple(self._links):
            link.give_up()
        while self._links:
            await asyncio.gather(*(link.finished.wait() for link in self._links))
        await server.wait_closed()

    def _hold(self) -> float | None:
        """Return the seconds to hold back now; None is until further notice."""
        return None if self._stalled else self._delay

    def _portion(self, delivered: int) -> tuple[int, float]:
        """Return how many bytes may follow those ``delivered``, and the seconds to wait then."""
        size, pause = _CHUNK, 0.0
        if self._rate is not None:
            size = max(1, int(self._rate / _PORTIONS))
            pause = size / self._rate
        if self._limit is not None:
            size = max(0, min(size, self._limit - delivered))
        return size, pause

    def _wake(self) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # The loop is closed: no task is left to wake.
                self._loop.call_soon_threadsafe(self._wake_links)

    def _wake_links(self) -> None:
        for link in self._links:
            link.changed.set()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._closing:  # Accepted before the end, begun after it.
            _reset(writer)
            return
        link = _Link(self._hold, self._portion, writer)
        self._links.add(link)
        try:
            await link.run(reader, self._target)
        finally:
            self._links.discard(link)
            link.finished.set()


@final
class RelayThread:
    """A `Relay` on a loop and thread of its own, for users of any loop or of none."""

    def __init__(self, host: str, port: int) -> None:
        self._relay: Final = Relay(host, port)
        self._opened: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self._thread = threading.Thread(target=self._run, name="kinform-relay", daemon=True)

    @property
    def port(self) -> int:
        """The loopback port it listens on; 0 before `start`."""
        return self._relay.port

    def start(self) -> None:
        """Open the relay; it listens when this returns."""
        self._thread.start()
        self._opened.result()

    def delay(self, seconds: float) -> None:
        """Set `Relay.delay`. Never waits, and applies to all bytes that arrive after it."""
        self._relay.delay = seconds

    def close(self) -> None:
        """Cut every connection and end the thread."""
        loop, stop = self._opened.result()
        with suppress(RuntimeError):  # The loop is closed: it has ended already.
            loop.call_soon_threadsafe(stop.set)
        self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            if not self._opened.done():
                self._opened.set_exception(error)
            raise

    async def _serve(self) -> None:
        stop = asyncio.Event()
        async with self._relay:
            self._opened.set_result((asyncio.get_running_loop(), stop))
            await stop.wait()


@final
class _Link:
    """One relayed connection: near is the client's side, far the server's."""

    def __init__(
        self,
        hold: Callable[[], float | None],
        portion: Callable[[int], tuple[int, float]],
        near: asyncio.StreamWriter,
    ) -> None:
        self._hold = hold
        self._portion = portion
        self._near = near
        self._delivered = 0
        self._connecting: asyncio.Task[_Streams] | None = None
        self._far: asyncio.StreamWriter | None = None
        # Invariant: arrival times ascend; empty bytes, the server's end, can only be last.
        self._held: deque[tuple[float, bytes]] = deque()
        self.held_bytes = 0
        self._aborted = False
        self.changed = asyncio.Event()
        self.finished = asyncio.Event()

    def abort(self) -> None:
        """Reset both sides, and drop the bytes that are held back; `run` ends."""
        self._aborted = True
        self.changed.set()
        for writer in (self._near, self._far):
            if writer is not None:
                _reset(writer)

    def give_up(self) -> None:
        """Do what `abort` does, and wait no longer for a server that does not answer."""
        self.abort()
        if self._connecting is not None:
            self._connecting.cancel()

    def drop(self) -> None:
        """End both sides in good order; `run` ends."""
        self._aborted = True
        self.changed.set()

    async def run(self, near: asyncio.StreamReader, target: tuple[str, int]) -> None:
        """Relay until either side ends."""
        # In a task of its own, which can be given up.
        async with background(asyncio.open_connection(*target, limit=_CHUNK)) as self._connecting:
            await asyncio.wait([self._connecting])
        if self._connecting.cancelled():
            return
        try:
            far, self._far = self._connecting.result()
        except OSError:
            self.abort()  # No server listens: the client gets a reset.
            return
        if self._aborted and self._near.transport.is_closing():  # While connecting.
            self.abort()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._forward(near, self._far))
                tasks.create_task(self._take(far))
                tasks.create_task(self._deliver())
        except* OSError:
            self.abort()  # One side was reset: so is the other.
        except* _Done:
            pass
        finally:
            for writer in (self._near, self._far):
                writer.close()  # Unlike abort, it delivers what is written first.
                with suppress(OSError):
                    await writer.wait_closed()

    async def _forward(self, near: asyncio.StreamReader, far: asyncio.StreamWriter) -> None:
        """Pass on the client's bytes as they come, and its end."""
        while data := await near.read(_CHUNK):
            far.write(data)
            await far.drain()
        with suppress(OSError):
            far.write_eof()

    async def _take(self, far: asyncio.StreamReader) -> None:
        """Queue the server's bytes with their time of arrival."""
        loop = asyncio.get_running_loop()
        data = b"?"
        while data:
            data = await far.read(_CHUNK)
            self._held.append((loop.time(), data))
            self.held_bytes += len(data)
            self.changed.set()
            while self.held_bytes > _HELD_LIMIT:
                await self._changed()

    async def _deliver(self) -> None:
        """Pass on what is queued when its time has come; end the link after the server's end."""
        while True:
            await self._wait_due()
            arrived, data = self._held.popleft()
            if not data:
                raise _Done
            size, pause = self._portion(self._delivered)
            if not size:
                raise ConnectionResetError
            if rest := data[size:]:
                self._held.appendleft((arrived, rest))
                data = data[:size]
            self.held_bytes -= len(data)
            self._delivered += len(data)
            self._near.write(data)
            await self._near.drain()
            self.changed.set()
            if pause:
                await asyncio.sleep(pause)

    async def _wait_due(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if self._aborted:
                raise _Done
            hold = self._hold()
            wait = None
            if self._held and hold is not None:
                wait = self._held[0][0] + hold - loop.time()
                if wait <= 0:
                    return
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._changed()

    async def _changed(self) -> None:
        self.changed.clear()
        await self.changed.wait()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close a connection so that the other side sees a reset, not an end."""
    socket_ = writer.get_extra_info("socket")
    with suppress(OSError, AttributeError):  # Closed already.
        socket_.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
    writer.transport.abort()


@final
class _Done(Exception):
    """The server has closed the connection and all it sent is delivered."""
