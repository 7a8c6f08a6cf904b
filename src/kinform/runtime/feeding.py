"""From an informer's events to the names in a controller's queue."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar, final

from kinform.cache.events import Added, Deleted, Event, Updated
from kinform.cache.factory import SharedInformerFactory
from kinform.cache.handlers import EventHandler, handler
from kinform.cache.indexes import IndexFunc
from kinform.cache.informer import InformerOptions, SharedInformer
from kinform.cache.selection import Selection
from kinform.meta import ObjectName
from kinform.objects import Object
from kinform.runtime.caches import Caches
from kinform.runtime.mapping import MapFunc, names_of
from kinform.runtime.predicates import Predicate
from kinform.sansio.work_queue import Priority
from kinform.workqueue.causes import Cause, CauseKind
from kinform.workqueue.queue import WorkQueue

__all__ = ["Feed", "Wiring"]

T = TypeVar("T")

log: Final = logging.getLogger(__name__)

_LOW: Final = Priority.LOW
_NORMAL: Final = Priority.NORMAL
_PER_TURN: Final = 512
"""How many names of one event are added in one turn of the loop: a few milliseconds."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """What a controller's sources are connected to."""

    controller: str
    queue: WorkQueue[ObjectName]
    caches: Caches
    factory: SharedInformerFactory

    def informers(
        self,
        source: object,
        selections: Mapping[str, Selection[T]],
        indexers: Mapping[str, IndexFunc[T]] | None,
    ) -> Sequence[SharedInformer[T]]:
        """Return the shared informers of a source's selections, one for each namespace."""
        options = InformerOptions[T](indexers=indexers) if indexers else InformerOptions[T]()
        informers = {
            place: self.factory.informer_of(selection, **options)
            for place, selection in selections.items()
        }
        self.caches.add(source, next(iter(selections.values())), informers)
        return tuple(informers.values())


@final
class Feed(Generic[T]):
    """Puts into a queue what the events of one source mean.

    What was there at first, and what a resync tells again, has a low priority: news come first.

    Args:
        source: what causes call it.
        map: which names an object means; ``None``: its own.
        when: which events count; ``None``: all.
    """

    __slots__ = ("_map", "_queue", "_source", "_when")

    def __init__(
        self,
        queue: WorkQueue[ObjectName],
        *,
        source: str,
        map: MapFunc[T] | None,  # noqa: A002 - as KindSource has it
        when: Predicate[T] | None = None,
    ) -> None:
        self._queue = queue
        self._source = source
        self._map = map
        self._when = when

    def handler(self, *, name: str, resync_period: float | None) -> EventHandler[T]:
        """Return what an informer is to call."""
        return handler(
            on_add=self._on_add,
            on_update=self._on_update,
            on_delete=self._on_delete,
            resync_period=resync_period,
            name=name,
        )

    def _on_add(self, event: Added[T]) -> Awaitable[None] | None:
        cause = Cause(
            CauseKind.ADDED, self._source, object=event.key, new_version=_version(event.obj)
        )
        return self._tell(event, cause, _LOW if event.initial else _NORMAL)

    def _on_update(self, event: Updated[T]) -> Awaitable[None] | None:
        is_resync = event.old is event.new
        cause = Cause(
            CauseKind.RESYNC if is_resync else CauseKind.UPDATED,
            self._source,
            object=event.key,
            old_version=_version(event.old),
            new_version=_version(event.new),
        )
        return self._tell(event, cause, _LOW if is_resync else _NORMAL)

    def _on_delete(self, event: Deleted[T]) -> Awaitable[None] | None:
        cause = Cause(
            CauseKind.DELETED, self._source, object=event.key, old_version=_version(event.obj)
        )
        return self._tell(event, cause, _NORMAL)

    def _tell(self, event: Event[T], cause: Cause, priority: Priority) -> Awaitable[None] | None:
        """Put in the names; return what is to be awaited if there are many of them."""
        if self._when is not None and not self._passes(self._when, event):
            return None
        if self._map is None:
            self._queue.add(event.key, priority=priority, cause=cause)
            return None
        names = names_of(event, self._map)
        if len(names) > _PER_TURN:
            return self._add_in_turns(names, cause, priority)
        for name in names:
            self._queue.add(name, priority=priority, cause=cause)
        return None

    async def _add_in_turns(
        self, names: Collection[ObjectName], cause: Cause, priority: Priority
    ) -> None:
        for number, name in enumerate(names, 1):
            self._queue.add(name, priority=priority, cause=cause)
            if number % _PER_TURN == 0:
                await asyncio.sleep(0)

    def _passes(self, when: Predicate[T], event: Event[T]) -> bool:
        try:
            return when(event)
        except Exception:
            # One reconcile too many does no harm; one that never comes does.
            log.exception("%s: the predicate failed, and %s passes", self._source, event.key.shown)
            return True


def _version(obj: object) -> str:
    return obj.resource_version if isinstance(obj, Object) else ""
