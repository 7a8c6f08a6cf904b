"""Watches: what is told at once, what is told later, and when it ends.

A watch keeps no queue of its own. It remembers how far it has come and reads on in the table's
bounded history, so a client that does not read costs nothing; one that has fallen behind all
that is remembered is dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Final, final

from kinform.apiserver import options as options_
from kinform.apiserver import status
from kinform.apiserver.blanks import blank
from kinform.apiserver.cluster import Cluster
from kinform.apiserver.options import ListOptions
from kinform.apiserver.paths import Route
from kinform.apiserver.rendering import Renderer, in_version
from kinform.apiserver.status import StatusError
from kinform.apiserver.storage import Change, Expired, Unsaved
from kinform.apiserver.wire import Chunks

__all__ = ["CATCH_UP", "Watch", "event_of"]

CATCH_UP: Final = 3.0
"""How long the server waits for a revision that is not there yet."""
BOOKMARK_PERIOD: Final = 60.0
"""About how often a watch hears how far it has come."""
_LAST_BOOKMARK: Final = 2.0
"""How long before its end a watch with a timeout gets a bookmark."""
_TIMEOUT: Final = 1800.0
"""How long a watch lives at least, unless the client says."""
_END: Final = "k8s.io/initial-events-end"


def event_of(change: Change, watch: ListOptions, prefix: str) -> tuple[bytes, bytes] | None:
    """Return the type and the object that a watch is told of a change, None if nothing.

    An object that begins to match is new to the watch; one that no longer does is gone, and is
    shown as it was, in the version in which it went.
    """
    if not change.key.startswith(prefix):
        return None
    old, new, matches = change.old, change.new, watch.selection.matches
    had = old is not None and matches(old)
    if change.is_delete:
        return (b"DELETED", new.raw) if had else None
    if matches(new):
        return (b"MODIFIED" if had else b"ADDED", new.raw)
    if old is not None and had:
        return (b"DELETED", in_version(old, change.revision))
    return None


@final
class Watch:
    """One watch, from its request to its end."""

    def __init__(
        self, cluster: Cluster, route: Route, options: ListOptions, *, renderer: Renderer
    ) -> None:
        self._cluster = cluster
        self._storage = cluster.storage
        self._kind = route.kind
        self._prefix = route.prefix
        self._options = options
        self._renderer = renderer
        self._table = cluster.storage.table(route.kind.storage)
        self._epoch = cluster.storage.epoch
        self._is_shapeless = renderer.is_shapeless
        self._changed = asyncio.Event()
        self._asked = self._version()
        timeout = options.timeout
        if not timeout or timeout < 0:
            timeout = _TIMEOUT * (1 + cluster.random.random())
        self._deadline = asyncio.get_running_loop().time() + timeout

    def _version(self) -> int:
        try:
            return options_.version(self._options.resource_version)
        except ValueError as exc:
            raise StatusError(500, "", str(exc)) from exc

    async def chunks(self) -> Chunks:
        """Yield the events, each of them one chunk, until the watch ends."""
        stop = self._table.listen(self._changed.set)
        try:
            try:
                position, first = await self._begin()
                await self._storage.saved()
            except StatusError as exc:
                yield self._renderer.error(exc.to_dict())
                return
            gate = self._cluster.gate
            for chunk in first:
                if gate.is_shut:
                    await gate.passed()
                if self._is_shapeless:
                    return
                yield chunk
            async with contextlib.aclosing(self._follow(position)) as following:
                async for chunk in following:
                    if gate.is_shut:
                        await gate.passed()
                    if self._is_shapeless:
                        return
                    yield chunk
        except Unsaved:  # the server cannot tell what may never have happened
            return
        finally:
            stop()

    async def _begin(self) -> tuple[int, list[bytes]]:
        """Return from which revision on to follow, and what is told before."""
        options, storage = self._options, self._storage
        wants_state = options.send_initial_events
        if wants_state is None:
            wants_state = self._asked == 0
        if not wants_state:
            # A revision in the future is accepted: nothing is told until it has come.
            return self._asked or storage.revision, []
        if not await self._cluster.reached(self._asked, within=CATCH_UP):
            raise status.too_large_version(self._asked, storage.revision)
        # No await from here on: state, position and bookmark are of one moment.
        revision = storage.revision
        matches, event = options.selection.matches, self._renderer.event
        told = [
            event(b"ADDED", stored.raw)
            for stored in self._table.now(self._prefix)
            if matches(stored)
        ]
        if options.send_initial_events and options.bookmarks:
            told.append(self._bookmark(revision, is_end=True))
        return revision, told

    async def _follow(self, position: int) -> Chunks:
        loop = asyncio.get_running_loop()
        next_bookmark = self._next_bookmark(loop.time())
        while True:
            self._changed.clear()
            is_saved = False
            for chunk in self._events(position):
                if not is_saved:  # once: all these events were read together
                    await self._storage.saved()
                    is_saved = True
                yield chunk
                if self._storage.epoch != self._epoch:
                    return
            if self._is_behind:
                return
            position = max(position, self._position)
            now = loop.time()
            if now >= self._deadline:
                return
            if now >= next_bookmark:
                has_more = self._changed.is_set()  # of this resource, not told yet
                chunk = self._bookmark(
                    position if has_more else max(position, self._storage.revision)
                )
                await self._storage.saved()
                yield chunk
                next_bookmark = self._next_bookmark(now)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(min(self._deadline, next_bookmark)):
                    await self._changed.wait()
            if self._storage.epoch != self._epoch:
                return

    _position: int = 0
    _is_behind: bool = False

    def _events(self, position: int) -> Iterator[bytes]:
        """Yield what has happened since ``position``; `_position` is how far that went."""
        try:
            changes = list(self._table.since(position))
        except Expired as exc:
            if not self._position:
                oldest = exc.oldest
                text = f"too old resource version: {position} ({oldest})"
                yield self._renderer.error(status.expired(text).to_dict())
            self._is_behind = True
            return
        for change in changes:
            told = event_of(change, self._options, self._prefix)
            if told is not None:
                yield self._renderer.event(*told)
        self._position = changes[-1].revision if changes else position

    def _next_bookmark(self, now: float) -> float:
        if not self._options.bookmarks:
            return self._deadline + 1
        regular = now + BOOKMARK_PERIOD * (1 + 0.25 * self._cluster.random.random())
        last = self._deadline - _LAST_BOOKMARK
        return last if now < last < regular else regular

    def _bookmark(self, revision: int, *, is_end: bool = False) -> bytes:
        metadata: dict[str, object] = {"resourceVersion": str(revision)}
        if is_end:
            metadata["annotations"] = {_END: "true"}
        return self._renderer.bookmark(blank(self._kind, metadata))
