"""A replica: a second cluster that follows the first one with a delay.

Its storage is one like any other, fed by the changes of the first. So lists and watches of it are
true, as of a moment ago, and every one of their rules holds.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from typing import Final, final

from kinform.apiserver._cluster import Cluster
from kinform.apiserver.storage.versioned_store import Change, ObjectDraft

__all__ = ["READS", "Replica"]

READS: Final[ContextVar[Cluster | None]] = ContextVar("kinform_apiserver_reads", default=None)
"""The cluster that answers the reads of the current request; None: the one that is written to."""


@final
class Replica:
    """Follows a cluster, always ``revisions`` or ``delay`` seconds behind.

    Its owner passes all changes of the first cluster to `note`.
    """

    def __init__(self, first: Cluster, *, revisions: int = 0, delay: float = 0.0) -> None:
        self._first = first
        self._revisions = revisions
        self._delay = delay
        self._epoch = first.storage.epoch
        self._pending: deque[tuple[str, Change]] = deque()
        self._timers: set[asyncio.TimerHandle] = set()
        self.cluster: Final = Cluster()
        self.cluster.kinds = first.kinds
        self.cluster.random = first.random
        self.cluster.gate = first.gate
        self.cluster.newest = first.newest
        self._copy()
        # All listeners are notified when the storage is restored, or the replica closed.
        self._stop: Callable[[], None] = first.storage.table("namespaces").listen(self._look)

    @property
    def is_over(self) -> bool:
        """The followed storage was restored: the replica cannot be used any more."""
        return self._first.storage.epoch != self._epoch

    def note(self, resource: str, change: Change) -> None:
        """Queue a change, to apply it later."""
        self._pending.append((resource, change))
        if self._delay:
            loop = asyncio.get_running_loop()
            self._timers.add(loop.call_later(self._delay, self._advance, change.revision))
        else:
            self._advance(change.revision - self._revisions)

    def close(self) -> None:
        """Follow no longer; watches end."""
        self._pending.clear()
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        self._stop()
        self.cluster.storage.disconnect()

    def _copy(self) -> None:
        """Take over what the first one has, its past included, up to where this one is."""
        storage = self._first.storage
        mine = self.cluster.storage
        past: list[tuple[str, Change]] = []
        for resource in storage.resources():
            table, own = storage.table(resource), mine.table(resource)
            own.compact(table.forgotten)
            for stored in table.at(table.forgotten):
                own.load(stored)
            past += [(resource, change) for change in table.since(table.forgotten)]
        self._pending.extend(sorted(past, key=lambda it: it[1].revision))
        oldest = max((storage.table(it).forgotten for it in storage.resources()), default=0)
        mine.revision = max(oldest, 1)
        # What happened before it was made has happened long ago, as far as time is concerned.
        self._advance(max(storage.revision - self._revisions, oldest))

    def _look(self) -> None:
        if self.is_over:
            self.close()

    def _advance(self, revision: int) -> None:
        """Show all changes up to a revision."""
        pending = self._pending
        while pending and pending[0][1].revision <= revision:
            self._apply(*pending.popleft())
        now = asyncio.get_running_loop().time()
        self._timers = {timer for timer in self._timers if timer.when() > now}
        # Revisions that wrote nothing here, and those before the first change, count as well.
        storage = self.cluster.storage
        storage.revision = max(storage.revision, revision if not pending else storage.revision)

    def _apply(self, resource: str, change: Change) -> None:
        storage, new = self.cluster.storage, change.new
        # The next write gets the revision that the first one's had.
        storage.revision = change.revision - 1
        draft = ObjectDraft(
            encode=lambda _: new.raw,
            labels=new.labels,
            fields=new.fields,
            uid=new.uid,
            owners=new.owners,
        )
        if change.is_delete:
            storage.delete(resource, change.key, draft)
        elif change.old is None:
            storage.create(resource, change.key, draft)
        else:
            storage.update(resource, change.key, draft)
