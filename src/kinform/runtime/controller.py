"""Controller: names come in from sources, and are reconciled one by one.

controller-runtime: ``pkg/controller`` and ``pkg/builder``. What it stands on: `WorkQueue` (each
name at most once at a time, news before what was there at first, no namespace before all others),
`Feed` (what an event means), `Workers` and `Reconciler`.

Its life is in the hands of a `Manager`: ``bind``, then ``begin`` to warm up (the caches get what
is there at first), then ``work``, as soon as this process leads; and at the end ``drain`` and
``stop``.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import random
from collections.abc import Sequence
from typing import Final, TypeVar, final

from kinform.cache.factory import SharedInformerFactory
from kinform.cache.processor import Registration
from kinform.cache.waiting import wait_for_all
from kinform.errors import KinformError, UnknownResourceError, UsageError
from kinform.meta import ObjectName
from kinform.parts import Parts
from kinform.runtime.arguments import check, several, sorted_sources
from kinform.runtime.caches import Caches
from kinform.runtime.context import Environment
from kinform.runtime.feeding import Wiring
from kinform.runtime.kind_source import AnyKind, AnyKindSource, kind_source
from kinform.runtime.mapping import MapFunc, to_owner
from kinform.runtime.reconciling import Reconcile, Reconciler, is_async
from kinform.runtime.sources import Source, keep_running
from kinform.runtime.statistics import ControllerMeter, ControllerStatistics
from kinform.runtime.stopping import Stop
from kinform.runtime.threads import Threads
from kinform.runtime.workers import Workers
from kinform.sansio.backoff import Backoff
from kinform.sansio.fair_queue import FairOrder
from kinform.sansio.rate_limiters import RateLimiter
from kinform.sansio.work_queue import Order
from kinform.tasks import gather
from kinform.workqueue.queue import Drained, WorkQueue

__all__ = ["Controller"]

T = TypeVar("T")

log: Final = logging.getLogger(__name__)

EVENTS: Final = 5.0
"""Seconds that the last events may take to be sent."""
PATIENCE: Final = 0.15
"""How long a source may take to end once it is cancelled."""
SLOW: Final = 60.0
"""A reconcile that takes longer is told of in the log."""


@final
class Controller:
    """Keeps the objects of one kind, and what belongs to them, as they should be.

    .. code-block:: python

        async def reconcile(ctx: kinform.Context, name: kinform.ObjectName) -> None:
            widget = ctx.lister("example.com/v1/widgets").get(name)
            if widget is None:
                return  # deleted: what it owned goes with it
            await ctx.apply(pod_for(widget), owner=widget)

        kinform.Controller(
            "widgets", reconcile, for_="example.com/v1/widgets", owns=["v1/pods"], workers=8
        )

    Promised: a name is reconciled after whatever happened to its object, to one it owns, or to
    one that maps to it; never twice at once; and again, later and later, until it succeeds. Not
    promised: one reconcile for each event. Many events of a name are one reconcile, and
    ``ctx.causes`` tells them.

    Args:
        name: in logs, metrics, events, and as the field manager of ``ctx.apply``.
        reconcile: an ``async def``, or a ``def``, which runs in a thread.
        for_: the kind whose objects' names are reconciled: ``"example.com/v1/widgets"``, a model,
            or a `KindSource` with more to say.
        owns: kinds of which the objects' controllers (``ownerReferences``) are of that kind.
        watches: whatever else there is: `KindSource` with a ``map``, `TimerSource`,
            `StreamSource`, `ChannelSource`, or a `Source` of yours.
        workers: how many names are reconciled at a time.
        timeout: seconds after which a reconcile is cancelled and tried again later. A function
            in a thread cannot be cancelled: its name is not worked on again before it returns.
        rate_limiter: how long a name waits that failed; by default 5 ms, doubled up to 1,000 s,
            and 10 a second for all together after the first 100.
        order: who is next; by default `FairOrder`: news before what was there at first, and
            turns for namespaces.
        needs_leader: whether it works only where its manager leads.
        slow_after: a reconcile that takes longer than so many seconds is told of in the log.

    Raises:
        UsageError: something of that makes no sense.
        SelectorError: a selector cannot be read.
    """

    def __init__(
        self,
        name: str,
        reconcile: Reconcile,
        *,
        for_: AnyKind,
        owns: Sequence[AnyKind] = (),
        watches: Sequence[Source | AnyKindSource] = (),
        workers: int = 1,
        timeout: float | None = None,
        rate_limiter: RateLimiter[ObjectName] | None = None,
        order: Order[ObjectName] | None = None,
        needs_leader: bool = True,
        slow_after: float | None = SLOW,
    ) -> None:
        check(name, reconcile, workers=workers, timeout=timeout, slow_after=slow_after)
        self.name: Final = name
        self.workers: Final = workers
        self.needs_leader: Final = needs_leader
        self._reconcile = reconcile
        self._for = kind_source(for_)
        self._owns = [kind_source(each) for each in several(owns, "owns")]
        self._kinds, self._sources = sorted_sources(several(watches, "watches"))
        self._timeout = timeout
        self._slow_after = slow_after
        self._threads = None if is_async(reconcile) else Threads(f"kinform-{name}")
        self._meter = ControllerMeter()
        self._parts = Parts(name)
        self._queue: WorkQueue[ObjectName] = WorkQueue(
            name,
            rate_limiter=rate_limiter,
            order=FairOrder() if order is None else order,
            metrics=self._meter.queue,
        )
        self._wiring: Wiring | None = None
        self._environment: Environment | None = None
        self._registrations: list[Registration[object]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._owner: MapFunc[object] | None = None
        self._warming: asyncio.Task[None] | None = None
        self.has_left_behind: bool = False
        """Whether a reconcile could not be ended."""
        self._is_warm = False

    def __repr__(self) -> str:
        return f"<Controller {self.name} for {self._for.kind_name}>"

    # --- for those who look

    @property
    def is_warm(self) -> bool:
        """Whether the caches have what was there at first; stays true."""
        return self._is_warm

    @property
    def queue(self) -> WorkQueue[ObjectName]:
        """The names to be worked on."""
        return self._queue

    @property
    def caches(self) -> Caches:
        """Its caches.

        Raises:
            UsageError: it has not been added to a manager that runs.
        """
        return self._wired.caches

    @property
    def _wired(self) -> Wiring:
        if self._wiring is None:
            raise UsageError(f"controller {self.name} does not run yet: manager.add(controller)")
        return self._wiring

    def statistics(self) -> ControllerStatistics:
        """Return the figures of this moment."""
        return self._meter.statistics(
            name=self.name,
            workers=self.workers,
            queue=self._queue.statistics(),
            unexpected_ends=self._parts.unexpected_ends,
        )

    # --- its life, for the manager

    def bind(self, environment: Environment, factory: SharedInformerFactory) -> None:
        """Ask for informers. They are started afterwards.

        Raises:
            UsageError: it is another manager's, or of the past.
        """
        if self._environment is not None:
            raise UsageError(f"controller {self.name} has run already; make a new one")
        self._environment = environment
        self._wiring = wiring = Wiring(
            controller=self.name,
            queue=self._queue,
            caches=Caches(self.name, environment.client),
            factory=factory,
        )
        for each in (self._for, *self._kinds, *self._owns):
            each.follow(wiring)

    def begin(self) -> None:
        """Start to warm up; `stop` must follow."""
        loop = asyncio.get_running_loop()
        self._warming = loop.create_task(self._warm_up(), name=f"kinform {self.name} warming up")

    async def wait_warm(self) -> None:
        """Wait until the caches have what was there at first, however long that takes.

        Raises:
            UsageError: an informer has failed or was stopped, or this one was not begun.
        """
        if self._warming is None:
            raise UsageError(f"controller {self.name} does not run: manager.add(controller)")
        await asyncio.wait([self._warming])
        if self._warming.cancelled():
            raise UsageError(f"controller {self.name} was stopped")
        self._warming.result()

    async def _warm_up(self) -> None:
        if self._owns:
            self._owner = await self._owner_mapping()
        await wait_for_all(self.caches.all, None)
        self._is_warm = True

    async def work(self) -> None:
        """Reconcile until `drain` is over. Cancelled, it cancels what runs.

        Only now do names come in, and workers begin when the handlers were told of all that is
        there. Who waits to lead has caches, and no queue that grows and that nobody empties.
        """
        self._parts.join()
        self._listen()
        await gather(*(each.wait_synced() for each in self._registrations))
        log.info("%s: works, with %d workers", self.name, self.workers)
        workers = Workers(
            self._queue,
            self._reconciler(),
            name=self.name,
            count=self.workers,
            slow_after=self._slow_after,
            parts=self._parts,
        )
        try:
            await workers.run()
        finally:
            self.has_left_behind = workers.has_left_behind

    async def drain(self, stop: Stop) -> Drained[ObjectName]:
        """Take in nothing more, and wait for what waits or is worked on, and for its events."""
        report = await self._queue.shut_down_with_drain(stop.left())
        assert self._environment is not None
        await self._environment.recorder.drain(min(EVENTS, stop.left()))
        return report

    async def stop(self) -> None:
        """End its sources; nothing is reconciled any more."""
        self._queue.shut_down()
        for registration in self._registrations:
            registration.remove()
        tasks = [*self._tasks, *([] if self._warming is None else [self._warming])]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=PATIENCE)
        for task in tasks:
            if task.done() and not task.cancelled():
                task.exception()  # taken note of
        if self._threads is not None:
            self._threads.close()

    # --- how it is wired

    def _listen(self) -> None:
        """Have names come in, from all sources."""
        for each in (self._for, *self._kinds):
            self._registrations.extend(each.listen(self._wired))
        for each in self._owns:
            self._registrations.extend(each.listen(self._wired, self._owner))
        loop = asyncio.get_running_loop()
        for source in self._sources:
            run = functools.partial(
                keep_running, source, self._queue.add, controller=self.name, parts=self._parts
            )
            name = f"kinform {self.name} {source.name}"
            self._tasks.append(loop.create_task(self._parts.keep_running(name, run), name=name))

    def _reconciler(self) -> Reconciler:
        assert self._environment is not None
        return Reconciler(
            controller=self.name,
            reconcile=self._reconcile,
            queue=self._queue,
            environment=self._environment,
            caches=self.caches,
            meter=self._meter,
            threads=self._threads,
            timeout=self._timeout,
        )

    async def _owner_mapping(self) -> MapFunc[object]:
        """Find out what kind ``for_`` is, once it exists: owners are named by it."""
        name = self._for.kind_name
        assert self._environment is not None
        backoff = Backoff()
        while True:
            try:
                found = await self._environment.client.find(name)
            except KinformError as exc:
                if isinstance(exc, UsageError) and not isinstance(exc, UnknownResourceError):
                    raise
                if not backoff.failures:
                    log.warning("%s waits for %s: %s", self.name, name, exc)
            else:
                return to_owner(found.gvk, namespaced=found.namespaced)
            await asyncio.sleep(backoff.delay(rand=random.random()))
            backoff = backoff.failed()
