"""The open watches of pods, and the threads that wait for them."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import final

from bench.replay.frames import LAST_CHUNK, chunk
from bench.replay.http import Connection, GoneError
from bench.replay.pods import Pods

__all__ = ["Watch", "Watches"]


@dataclass(eq=False, slots=True)
class Watch:
    """One watch: where it is sent, what it wants, and whether the server ended it."""

    connection: Connection
    pods: Pods
    namespace: str
    wants_bookmarks: bool = False
    ended: threading.Event = field(default_factory=threading.Event)

    def end(self, last: bytes) -> bool:
        """Send a last event and the end of the body; tell whether the client takes it.

        The connection can be used for another request after that.
        """
        self.ended.set()  # before the client knows: its next request may come at once
        try:
            self.connection.send(chunk(last) + LAST_CHUNK)
        except GoneError:
            return False
        return True


@final
class Watches:
    """All open watches, in the order in which they were opened. Any thread may call."""

    def __init__(self) -> None:
        self._open: dict[Watch, None] = {}
        self._changed = threading.Condition()

    def __len__(self) -> int:
        return len(self._open)

    def add(self, watch: Watch) -> None:
        """Add a watch whose client knows already that it is open."""
        with self._changed:
            self._open[watch] = None
            self._changed.notify_all()

    def discard(self, watch: Watch) -> None:
        """Forget a watch."""
        with self._changed:
            self._open.pop(watch, None)
            self._changed.notify_all()

    def all(self) -> list[Watch]:
        """Return the watches that are open now."""
        with self._changed:
            return list(self._open)

    def take_all(self) -> list[Watch]:
        """Return the watches that are open now, and forget them."""
        with self._changed:
            taken = list(self._open)
            self._open.clear()
            self._changed.notify_all()
            return taken

    def wait(self, count: int, *, timeout: float) -> list[Watch]:
        """Return all open watches as soon as there are ``count``.

        Raises:
            TimeoutError: there were not.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._open) >= count, timeout):
                opened = len(self._open)
                raise TimeoutError(f"waited {timeout:g} s for {count} watches, {opened} are open")
            return list(self._open)
