"""The sockets of an HTTP library: created with our options, tracked until they are closed.

An HTTP library's ``close`` returns while TLS connections still shut down. `Sockets` creates each
socket itself, so `Sockets.wait_closed` returns when the last one is closed. `Lookups` resolves
host names.
"""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final, TypeAlias, final

__all__ = ["Address", "AddressInfo", "Lookups", "Sockets"]

AddressInfo: TypeAlias = tuple[
    int | socket.AddressFamily,
    int | socket.SocketKind,
    int,
    str,
    tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes],
]
"""One result of `socket.getaddrinfo`: family, kind, protocol, name, address."""

Address: TypeAlias = tuple[socket.AddressFamily, str]
"""An IP address and its family."""

# A dead peer is detected after 30 s of silence plus one unanswered probe (45 s at most), and 30 s
# after bytes were sent that it does not acknowledge or has no receive window for.
_KEEPALIVE_IDLE, _KEEPALIVE_INTERVAL, _KEEPALIVE_COUNT = 30, 10, 3
_USER_TIMEOUT_MS = 30_000


def _options() -> Iterator[tuple[int, int, int]]:
    """Yield (level, option, value) for the options of this platform."""
    yield socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1
    yield socket.IPPROTO_TCP, socket.TCP_NODELAY, 1
    named = {
        "TCP_KEEPIDLE": _KEEPALIVE_IDLE,
        "TCP_KEEPINTVL": _KEEPALIVE_INTERVAL,
        "TCP_KEEPCNT": _KEEPALIVE_COUNT,
        "TCP_USER_TIMEOUT": _USER_TIMEOUT_MS,
    }
    if not hasattr(socket, "TCP_KEEPIDLE"):
        named["TCP_KEEPALIVE"] = _KEEPALIVE_IDLE  # macOS' name for it
    for name, value in named.items():
        option: int | None = getattr(socket, name, None)
        if option is not None:
            yield socket.IPPROTO_TCP, option, value


_OPTIONS: Final = tuple(_options())


@final
class _Socket(socket.socket):
    """A socket that calls ``on_gone`` when it is closed."""

    on_gone: Callable[[_Socket], None] | None = None

    def close(self) -> None:
        super().close()
        self._gone()

    def detach(self) -> int:
        # uvloop closes the descriptor itself and detaches the object, in the same step.
        descriptor = super().detach()
        self._gone()
        return descriptor

    def _gone(self) -> None:
        if self.on_gone is not None:
            self.on_gone(self)


@final
class Sockets:
    """Creates TCP sockets with keep-alive and tracks the open ones. For one loop."""

    def __init__(self) -> None:
        self._open: set[_Socket] = set()
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._open)

    def new(self, address: AddressInfo) -> socket.socket:
        """Return a non-blocking socket, not yet connected, for ``address``."""
        family, kind, protocol, _, _ = address
        sock = _Socket(family, kind, protocol)
        try:
            sock.settimeout(0)
            for level, option, value in _OPTIONS:
                with suppress(OSError):  # a sandbox may define the option and refuse to set it
                    sock.setsockopt(level, option, value)
        except BaseException:
            sock.close()
            raise
        # After the options: a socket that could not be prepared is closed above, and never counted.
        self._open.add(sock)
        sock.on_gone = self._forget
        return sock

    def _forget(self, sock: _Socket) -> None:
        self._open.discard(sock)
        self._changed.set()

    def cut(self) -> None:
        """Shut every connection down at once; the loop notices and closes the sockets.

        For the end of the transport only. Nothing waits for the peer any longer: neither a TLS
        shutdown nor bytes that the peer does not read.
        """
        for sock in self._open:
            with suppress(OSError):  # not connected (yet, or any more)
                # Not ``close()``: the descriptor is still registered with the loop, and its number
                # could be reused by another thread before the loop notices.
                sock.shutdown(socket.SHUT_RDWR)

    async def wait_closed(self) -> None:
        """Wait until no socket is open."""
        while self._open:
            self._changed.clear()
            await self._changed.wait()


@final
class Lookups:
    """Resolves host names. Nothing is cached: a server may move.

    Concurrent calls for the same name share one lookup, so that a dead name server blocks one
    thread and not all of them. Cancelling a call leaves no task behind; the thread ends by itself.
    """

    def __init__(self) -> None:
        self._pending: dict[tuple[str, int], asyncio.Future[list[Address]]] = {}

    async def addresses(self, host: str, port: int) -> list[Address]:
        """Return the addresses of ``host``, in the order the system prefers.

        Raises:
            OSError: a `socket.gaierror`, as the system raised it.
        """
        key = host, port
        lookup = self._pending.get(key)
        if lookup is None:
            lookup = asyncio.get_running_loop().run_in_executor(None, _look_up, host, port)
            self._pending[key] = lookup
            lookup.add_done_callback(functools.partial(self._forget, key))
        # Shielded: one caller that is cancelled must not cancel the lookup of all others.
        return await asyncio.shield(lookup)

    def _forget(self, key: tuple[str, int], lookup: asyncio.Future[list[Address]]) -> None:
        del self._pending[key]
        if not lookup.cancelled():
            lookup.exception()  # retrieved, even if every caller was cancelled


def _look_up(host: str, port: int) -> list[Address]:
    name = host.lower()
    if is_local := name == "localhost" or name.endswith(".localhost"):
        host = "localhost"  # RFC 6761: no name server decides where credentials without TLS go
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    addresses: list[Address] = [(family, _numeric(address)) for family, _, _, _, address in found]
    if not is_local:
        return addresses
    # A hosts file may map localhost to another machine as well.
    loopback = [one for one in addresses if ipaddress.ip_address(one[1]).is_loopback]
    if not loopback:
        raise socket.gaierror(socket.EAI_NONAME, "localhost leads to another machine")
    return loopback


def _numeric(address: tuple[str | int, ...] | tuple[int, bytes]) -> str:
    """Return the IP address, with the network it is valid in if it is a link-local one."""
    host, scope = str(address[0]), address[3] if len(address) > 3 else 0
    return f"{host}%{scope}" if scope else host
