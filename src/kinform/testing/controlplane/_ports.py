"""Loopback ports for servers whose port must be known before they start."""

from __future__ import annotations

import socket
import sys
from typing import Final, final

__all__ = ["LOOPBACK", "Ports"]

LOOPBACK: Final = "127.0.0.1"
_HOLD: Final = sys.platform == "linux"


@final
class Ports:
    """Free loopback ports that stay ours, also while no server listens on them.

    On Linux each port is kept bound by a socket that never listens, and the server shares it
    (``SO_REUSEPORT``): no other process can get the port between two starts of a server, not
    even as the local end of a connection. Elsewhere a port is only known to have been free, and
    the caller must be ready to try another one.
    """

    def __init__(self) -> None:
        self._held: list[socket.socket] = []

    @property
    def are_held(self) -> bool:
        """True if a server must share its port (``SO_REUSEPORT``) to listen on it."""
        return _HOLD

    def take(self) -> int:
        """Return a port that was free, and is held from now on where that is possible."""
        holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            if _HOLD:
                holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            holder.bind((LOOPBACK, 0))
            port: int = holder.getsockname()[1]
        except BaseException:
            holder.close()
            raise
        if _HOLD:
            self._held.append(holder)
        else:
            holder.close()
        return port

    def close(self) -> None:
        """Give all ports back. Idempotent."""
        while self._held:
            self._held.pop().close()
