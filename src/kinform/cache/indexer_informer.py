"""IndexerInformer: the seeds' small informer, whose one handler runs inside the pop.

client-go: NewIndexerInformer and NewInformer. `SharedInformer` is what most programs want: there
a handler has a buffer and a task of its own, and there may be many.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Mapping
from typing import Final, Generic, TypeVar, final

from kinform.cache.applying import apply_in_turns
from kinform.cache.controller import Controller
from kinform.cache.forking import filled, no_longer_filled
from kinform.cache.guard import ReadGuard
from kinform.cache.handlers import Caller, EventHandler
from kinform.cache.index_errors import IndexErrors
from kinform.cache.indexer import Indexer
from kinform.cache.indexes import IndexFunc
from kinform.cache.intake import TransformFunc
from kinform.cache.listwatch import ListerWatcher
from kinform.cache.options import ReflectorOptions
from kinform.cache.reports import WatchErrorHandler
from kinform.sansio.notifications import Notification
from kinform.sansio.queue import Batch, QueueFactory
from kinform.sansio.real_fifo import RealFIFO
from kinform.tasks import apart

__all__ = ["IndexerInformer"]

T = TypeVar("T")

log: Final = logging.getLogger(__name__)


@final
class _Life:
    """What a `ReadGuard` asks: only whether it was ever run."""

    def __init__(self) -> None:
        self.is_started = False
        self.is_over = False


@final
class IndexerInformer(Generic[T]):
    """An `Indexer` and the ``Controller`` that fills it and tells one handler.

    .. code-block:: python

        informer = IndexerInformer(lw, handler(on_add=enqueue, on_update=enqueue))
        await informer.run()

    The handler is told after the indexer has the change, in order, and nothing else is taken
    from the queue before it has returned: a slow handler slows down the watch. What it raises is
    logged, and the next event follows.

    Args:
        lw: where the objects come from.
        handler: who is told; nobody, if there is none. Its ``resync_period`` is the informer's.
        indexers: index functions by name; see `Indexer`. Where one fails on an object, the
            object is cached all the same, and is not found by that index.
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
        """The cache; to be read only, from any thread, and not before `run`: see
        `SharedInformer.indexer`."""
        self._entries = self.indexer.entries
        self._life = _Life()
        # Its handler reads before `has_synced`, when the first list is in the cache: no warning.
        self.indexer.guard(
            ReadGuard(
                name,
                self._life,
                has_synced=lambda: bool(self._entries.resource_version),
                namespaced=getattr(lw, "namespaced", lambda: None),
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
        """What moves changes into the indexer."""

    @property
    def has_synced(self) -> bool:
        """Whether the first list is in the indexer and was told."""
        return self.controller.has_synced

    @property
    def last_sync_resource_version(self) -> str:
        """The version the indexer shows; ``""`` before the first list."""
        return self.indexer.resource_version

    async def run(self) -> None:
        """Fill the indexer and tell the handler until cancelled.

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
        self.indexer.release()
        for notification in applied.notifications:
            await self._tell(notification)
        for entry in applied.resynced:
            await self._tell(Notification(entry.metadata.key, entry, entry))

    async def _tell(self, notification: Notification[T]) -> None:
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
            log.error(text, self.name, notification.key.shown, exc_info=failure)


async def _failure_of(result: Awaitable[object]) -> BaseException | None:
    """Await what a handler returned; return what it raised, unless that must end the process."""
    task = await apart(result)
    try:
        task.result()
    except (Exception, asyncio.CancelledError) as exc:  # noqa: BLE001 - the handler's own
        return exc
    return None
