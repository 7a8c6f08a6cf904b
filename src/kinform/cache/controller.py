"""Controller: a reflector, a queue, and the pump that takes out what the reflector puts in.

client-go: tools/cache/controller.go. Not the controller that reconciles: this one only moves
changes from a server to ``process``, in order.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeAlias, TypeVar, final

from kinform.cache.intake import TransformFunc
from kinform.cache.listwatch import ListerWatcher
from kinform.cache.options import ReflectorOptions
from kinform.cache.reflector import Reflector
from kinform.cache.reports import WatchErrorHandler
from kinform.errors import UsageError
from kinform.meta import Entry
from kinform.parts import Parts
from kinform.sansio.queue import Batch, KnownObjects, Queue, QueueFactory, never_mind
from kinform.sansio.real_fifo import RealFIFO
from kinform.tasks import apart, gather

__all__ = ["Controller", "Process"]

T = TypeVar("T")

log: Final = logging.getLogger(__name__)

Process: TypeAlias = Callable[[Batch[T]], Awaitable[object] | None]
"""Handles one batch; the next one is not taken out before it has returned."""


@final
class Controller(Generic[T]):
    """Lists and watches into a queue, and hands batch after batch to ``process``.

    A batch whose ``process`` raises is logged and counts as handled: nothing is tried again, and
    the next one is taken. While more waits in the queue than it likes, the watch is not read.

    Args:
        process: what is done with each batch, in order, one at a time.
        queue: `RealFIFO` or `DeltaFIFO`.
        known: what the cache holds that ``process`` fills; `DeltaFIFO` needs it.
        on_done: called after each batch, when the queue knows that it is handled.
        parts: counts unexpected ends of the reflector and the pump; by default its own.

    The others are those of `Reflector`.

    Raises:
        UsageError: ``resync_period`` is not positive.
    """

    def __init__(
        self,
        lw: ListerWatcher[T],
        *,
        process: Process[T],
        queue: QueueFactory = RealFIFO,
        known: KnownObjects[T] | None = None,
        on_done: Callable[[], None] = never_mind,
        name: str = "controller",
        expected_kind: str | None = None,
        transform: TransformFunc[T] | None = None,
        settle: Callable[[Entry[T]], object] | None = None,
        resync_period: float | None = None,
        should_resync: Callable[[], bool] | None = None,
        watch_error_handler: WatchErrorHandler | None = None,
        options: ReflectorOptions | None = None,
        parts: Parts | None = None,
    ) -> None:
        self.name: Final = name
        self._parts = Parts(name) if parts is None else parts
        self._in_hand: Batch[T] | None = None  # taken out, and not processed yet
        self._process = process
        self._on_done = on_done
        self._wake = asyncio.Event()
        self._room = asyncio.Event()
        self._has_run = False
        self.queue: Final[Queue[T]] = queue(known=known, on_ready=self._wake.set)
        self.reflector: Final[Reflector[T]] = Reflector(
            lw,
            self.queue,
            name=name,
            expected_kind=expected_kind,
            transform=transform,
            settle=settle,
            resync_period=resync_period,
            should_resync=should_resync,
            watch_error_handler=watch_error_handler,
            known=known,
            wait_for_room=self._wait_for_room,
            options=options,
            parts=self._parts,
        )

    @property
    def has_synced(self) -> bool:
        """Whether everything of the first list was processed; never becomes false again."""
        return self.queue.has_synced

    @property
    def last_sync_resource_version(self) -> str:
        """The last version the reflector has put into the queue; ``""`` before the first list."""
        return self.reflector.last_sync_resource_version

    async def run(self) -> None:
        """Move changes until cancelled; what is in the queue by then is dropped.

        If the reflector or the pump ends otherwise, it is started again after a pause.

        Raises:
            UsageError: it was run before, or the source cannot be used this way.
            Exception: the reflector or the pump ended more than five times within a minute; this
                is the last error.
        """
        if self._has_run:
            raise UsageError(f"{self.name} was run before; a controller runs once")
        self._has_run = True
        try:
            keep_running = self._parts.keep_running
            await gather(
                keep_running(f"{self.name} reflector", self.reflector.run, fatal=(UsageError,)),
                keep_running(f"{self.name} pump", self._pump),
            )
        finally:
            self.queue.close()

    async def _pump(self) -> None:
        while True:
            # One that the pump did not finish, because it ended, comes first.
            batch = self._in_hand = self._in_hand or self.queue.pop_batch()
            if batch is None:
                # Nothing is awaited between the pop and here, so no call of set() is missed.
                self._wake.clear()
                await self._wake.wait()
                continue
            await self._process_one(batch)
            # Not where we are cancelled ourselves: what was not processed has not synced.
            self._in_hand = None
            self.queue.done(batch)
            self._on_done()
            if not self.queue.is_congested:
                self._room.set()
            if not self.queue.is_empty:
                await asyncio.sleep(0)  # a full queue must not keep everybody else waiting

    async def _process_one(self, batch: Batch[T]) -> None:
        try:
            outcome = self._process(batch)
        except (Exception, asyncio.CancelledError):
            log.exception("%s: a batch could not be processed; going on", self.name)
            return
        if outcome is None:
            return
        processed = await apart(outcome)
        if processed.cancelled():  # something that it awaited was
            log.error("%s: processing a batch was cancelled; going on", self.name)
        elif (failure := processed.exception()) is not None:
            if not isinstance(failure, Exception):
                raise failure
            text = "%s: a batch could not be processed; going on"
            log.error(text, self.name, exc_info=failure)

    def _wait_for_room(self) -> Awaitable[None] | None:
        return self._has_room() if self.queue.is_congested else None

    async def _has_room(self) -> None:
        while self.queue.is_congested:
            self._room.clear()
            await self._room.wait()
