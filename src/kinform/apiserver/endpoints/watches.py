"""Watches: the initial events, the events that follow, and the end of the stream.

A watch keeps no queue of its own. It remembers how far it has come and reads on in the table's
bounded history, so a client that does not read costs nothing; one that has fallen behind all
that is remembered is dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Final, final

from kinform.apiserver import _recorded
from kinform.apiserver._cluster import Cluster
from kinform.apiserver.endpoints import list_options as options_
from kinform.apiserver.endpoints import status
from kinform.apiserver.endpoints.list_options import ListQuery
from kinform.apiserver.endpoints.messages import Burst, Chunks
from kinform.apiserver.endpoints.request_paths import Route
from kinform.apiserver.endpoints.status import StatusError
from kinform.apiserver.scheme.kind_registry import Kind
from kinform.apiserver.serializer.encoding import Renderer, in_version
from kinform.apiserver.serializer.json_values import Json
from kinform.apiserver.storage.versioned_store import Change, RevisionExpired, Stored, Unsaved

__all__ = ["CATCH_UP", "ServerWatch", "blank", "event_of"]

CATCH_UP: Final = 3.0
"""Seconds that the server waits for a revision that does not exist yet."""
BOOKMARK_PERIOD: Final = 60.0
"""About how often a watch hears how far it has come."""
_LAST_BOOKMARK: Final = 2.0
"""Seconds before the end of a watch with a timeout when the last bookmark is sent."""
_TIMEOUT: Final = 1800.0
"""The shortest lifetime of a watch, in seconds, if the client gives none."""
_BURST: Final = 64
"""The number of events that are encoded at once."""
_END: Final = "k8s.io/initial-events-end"


def event_of(change: Change, watch: ListQuery, prefix: str) -> tuple[bytes, bytes] | None:
    """Return the type and the object of a change's event in a watch, None if it has no event.

    An object that begins to match is ADDED. One that no longer matches is DELETED, and is sent in
    its last matching state with the revision of the change.
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
class ServerWatch:
    """One watch, from its request to its end."""

    def __init__(
        self, cluster: Cluster, route: Route, options: ListQuery, *, renderer: Renderer
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
        gate = self._cluster.gate
        try:
            async with contextlib.aclosing(self._bursts()) as bursts:
                async for burst in bursts:
                    if gate.is_shut:
                        await gate.passed()
                    # Changes are sent when they are durable, and never if a restore undid them.
                    await self._storage.saved()
                    if self._is_shapeless or self._storage.epoch != self._epoch:
                        return
                    yield Burst.of(burst)
        except StatusError as exc:
            yield self._renderer.error(exc.to_dict())
        except Unsaved:  # the server cannot tell what may never have happened
            return
        finally:
            stop()

    async def _bursts(self) -> AsyncGenerator[list[bytes]]:
        """Yield lists of events that are there at the same time."""
        position, state = await self._begin()
        for start in range(0, len(state), _BURST):
            part = state[start : start + _BURST]
            yield [self._renderer.event(b"ADDED", stored.raw) for stored in part]
        if self._options.send_initial_events and self._options.bookmarks:
            yield [self._bookmark(position, is_end=True)]
        async with contextlib.aclosing(self._follow(position)) as following:
            async for burst in following:
                yield burst

    async def _begin(self) -> tuple[int, Sequence[Stored]]:
        """Return the revision to follow from, and the state to send before."""
        options, storage = self._options, self._storage
        wants_state = options.send_initial_events
        if wants_state is None:
            wants_state = self._asked == 0
        if not wants_state:
            # A revision in the future is accepted: nothing is sent until it exists.
            return self._asked or storage.revision, []
        asked = self._asked
        if options.send_initial_events and not options.resource_version:
            asked = self._cluster.newest()  # a streamed list without a version is consistent
        if not await self._cluster.reached(asked, within=CATCH_UP):
            raise status.too_large_version(asked, storage.revision)
        # No await from here on: state and position are of one moment.
        matches = options.selection.matches
        return storage.revision, [it for it in self._table.now(self._prefix) if matches(it)]

    async def _follow(self, position: int) -> AsyncGenerator[list[bytes]]:
        loop = asyncio.get_running_loop()
        next_bookmark = self._next_bookmark(loop.time())
        while self._storage.epoch == self._epoch:
            self._changed.clear()
            for changes in self._changes(position):
                if events := self._events(changes):
                    yield events
                position = max(position, changes[-1].revision)
            if self._is_behind:
                return
            now = loop.time()
            if now >= self._deadline:
                return
            if now >= next_bookmark:
                has_more = self._changed.is_set()  # changes of this resource that were not sent yet
                yield [self._bookmark(position if has_more else self._ahead(position))]
                next_bookmark = self._next_bookmark(now)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(min(self._deadline, next_bookmark)):
                    await self._changed.wait()

    _is_new: bool = True
    """Nothing was sent yet, not even a bookmark."""
    _is_behind: bool = False

    def _ahead(self, position: int) -> int:
        return max(position, self._storage.revision)

    def _changes(self, position: int) -> Iterator[Sequence[Change]]:
        """Yield what has happened since ``position``, in parts.

        Raises:
            StatusError: that is forgotten, and the watch began there.
        """
        try:
            changes = list(self._table.since(position))
        except RevisionExpired as exc:
            if self._is_new:
                text = f"too old resource version: {position} ({exc.oldest})"
                raise status.expired(text) from exc
            self._is_behind = True
            return
        self._is_new = False
        for start in range(0, len(changes), _BURST):
            yield changes[start : start + _BURST]

    def _events(self, changes: Sequence[Change]) -> list[bytes]:
        event, options, prefix = self._renderer.event, self._options, self._prefix
        found = (event_of(change, options, prefix) for change in changes)
        return [event(*it) for it in found if it is not None]

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


def blank(kind: Kind, metadata: Json) -> Json:
    """Return an object of ``kind`` with this metadata and no content."""
    content: Json = {} if kind.custom is not None else _recorded.blanks().get(str(kind.gvk), {})
    return {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata, **content}
