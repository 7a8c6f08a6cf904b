"""IndexerInformer: an informer with one handler, which is called before the next batch is popped.

Most programs use `SharedInformer`, where each of many handlers has a buffer and a task.

client-go: NewIndexerInformer and NewInformer.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Mapping
from typing import Final, Generic, TypeVar, final

from kinform.cache._reflector.intake import TransformFunc
from kinform.cache.controller import Controller, apply_in_turns
from kinform.cache.listwatch import ListerWatcher, source_options
from kinform.cache.processor._listener import Caller
from kinform.cache.processor.handlers import EventHandler
from kinform.cache.reflector_options import ReflectorOptions
from kinform.cache.reflector_reports import WatchErrorHandler
from kinform.cache.store._guard import ReadGuard, filled, no_longer_filled
from kinform.cache.store.indexes import IndexErrors, IndexFunc
from kinform.cache.store.store import Indexer
from kinform.sansio.queue.deltas import Transition
from kinform.sansio.queue.interface import Batch, QueueFactory
from kinform.sansio.queue.real_fifo import RealFIFO
from kinform.tasks import apart

__all__ = ["IndexerInformer"]

T = TypeVar("T")

log: Final = logging.getLogger(__name__)


@final
class _Life:
    """The state that a `ReadGuard` reads: only whether the informer was ever run."""

    def __init__(self) -> None:
        self.is_started = False
        self.is_over = False


@final
class IndexerInformer(Generic[T]):
    """An `Indexer`, and the ``Controller`` that fills it and calls one handler.

    .. code-block:: python

        informer = IndexerInformer(lw, handler(on_add=enqueue, on_update=enqueue))
        await informer.run()

    The handler is called after the indexer has the change, in order, and the next batch is not
    popped before it has returned: a slow handler slows down the watch. Its exceptions are logged,
    and the next event follows.

    Args:
        lw: the source of the objects.
        handler: the handler, if any. Its ``resync_period`` is that of the informer.
        indexers: index functions by name; see `Indexer`. An object on which one fails is cached
            all the same, and not found by that index.
        queue: `RealFIFO` or `DeltaFIFO`.

    The others are those of `Reflector`.
    """

    def __init__(
        self,
        lw: ListerWatcher[T],
        handler: EventHandler[T] | None = None,
        *,
        indexers: Mapping[str, IndexFunc[T]] | None = None,
        transform: TransformFunc[T] | None = None,
        queue: QueueFactory = RealFIFO,
        name: str = "informer",
        watch_error_handler: WatchErrorHandler | None = None,
        options: ReflectorOptions | None = None,
    ) -> None:
        self.name: Final = name
        self._call = None if handler is None else Caller(handler)
        self.indexer: Final[Indexer[T]] = Indexer(
            indexers=indexers, on_index_error=IndexErrors(name)
        )
        """The cache, read-only, from any thread, and not before `run`: see
        `SharedInformer.indexer`."""
        self._entries = self.indexer.entries
        self._life = _Life()
        # Its handler reads before `has_synced`, with the first list in the cache: no warning then.
        self.indexer.guard(
            ReadGuard(
                name,
                self._life,
                has_synced=lambda: bool(self._entries.resource_version),
                namespaced=source_options(lw).namespaced,
                known=self._entries,
            )
        )
        self.controller: Final[Controller[T]] = Controller(
            lw,
            process=self._process,
            queue=queue,
            known=self._entries,
            name=name,
            transform=transform,
            resync_period=None if handler is None else handler.resync_period,
            watch_error_handler=watch_error_handler,
            options=options,
        )
        """Moves changes into the indexer."""

    @property
    def has_synced(self) -> bool:
        """True if the first list is in the indexer and was delivered."""
        return self.controller.has_synced

    @property
    def last_sync_resource_version(self) -> str:
        """The version of the indexer; ``""`` before the first list."""
        return self.indexer.resource_version

    async def run(self) -> None:
        """Fill the indexer and call the handler until cancelled.

        Raises:
            UsageError: it was run before, or the source cannot be used this way.
        """
        self._life.is_started = True
        filled(self._entries)
        try:
            await self.controller.run()
        finally:
            no_longer_filled(self._entries)

    async def _process(self, batch: Batch[T]) -> None:
        applied = await apply_in_turns(batch, self._entries)
        # With the first batch and not with the sync: the handler of the first list reads the cache.
        self.indexer.release()
        for notification in applied.notifications:
            await self._call_handler(notification)
        for entry in applied.resynced:
            await self._call_handler(Transition(entry.metadata.key, entry, entry))

    async def _call_handler(self, notification: Transition[T]) -> None:
        if self._call is None:
            return
        failure: BaseException | None = None
        try:
            result = self._call(notification)
        except (Exception, asyncio.CancelledError) as exc:  # noqa: BLE001 - the handler's own
            failure = exc
        else:
            if inspect.isawaitable(result):
                failure = await _failure_of(result)
        if failure is not None:
            text = "%s: the handler failed on %s"
            shown = notification.key.shown
            extra = {"informer": self.name, "key": shown}
            log.error(text, self.name, shown, exc_info=failure, extra=extra)


async def _failure_of(result: Awaitable[object]) -> BaseException | None:
    """Await the result of a handler; return its exception, unless that must end the process."""
    task = await apart(result)
    try:
        task.result()
    except (Exception, asyncio.CancelledError) as exc:  # noqa: BLE001 - the handler's own
        return exc
    return None
