"""Controller: sources add names to a queue, and workers reconcile them.

controller-runtime: ``pkg/controller`` and ``pkg/builder``. Its parts: `WorkQueue` (each name at
most once at a time, changes before the initial list, equal shares for namespaces), ``Feed`` (maps
events to names), `Workers` and `Reconciler`.

A `Manager` runs it: ``bind``, then ``begin`` to warm up (the caches sync), then ``work``, as soon
as this process leads; and at the end ``drain`` and ``stop``.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
import random
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar, cast, final

from kinform._parts import Parts
from kinform.cache._informer.state_waiters import wait_for_all
from kinform.cache.factory import SharedInformerFactory
from kinform.cache.processor.handlers import refuse_generators
from kinform.cache.processor.processor import Registration
from kinform.errors import KinformError, UnknownResourceError, UsageError
from kinform.meta import ObjectName
from kinform.runtime._signals import Stop
from kinform.runtime.controller._threads import Threads
from kinform.runtime.controller.caches import Caches
from kinform.runtime.controller.context import Environment
from kinform.runtime.controller.reconciler import Reconcile, Reconciler, Workers, is_async
from kinform.runtime.controller.statistics import ControllerMeter, ControllerStatistics
from kinform.runtime.map_functions import MapFunc, to_owner
from kinform.runtime.source.kind import AnyKind, AnyKindSource, KindSource, Wiring, kind_source
from kinform.runtime.source.triggers import Source
from kinform.sansio.backoff import Backoff
from kinform.sansio.workqueue.fair_order import FairOrder
from kinform.sansio.workqueue.key_queue import Order
from kinform.sansio.workqueue.rate_limiters import RateLimiter
from kinform.tasks import end_in_time, gather
from kinform.workqueue.queue import Drained, WorkQueue

__all__ = ["Controller"]

T = TypeVar("T")

log: Final = logging.getLogger(__name__)

_NAME: Final = re.compile(r"[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?")

EVENTS: Final = 5.0
"""Seconds to send the last events."""
SLOW: Final = 60.0
"""Seconds after which a reconcile that still runs is logged as slow."""


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

    Promised: a name is reconciled after every change of its object, of an object it owns, or of
    one that maps to it; never twice at once; and again, with backoff, until it succeeds. Not
    promised: one reconcile for each event. Many events of one name may be one reconcile, and
    ``ctx.causes`` lists them.

    Args:
        name: in logs, metrics, events, and as the field manager of ``ctx.apply``.
        reconcile: an ``async def``, or a ``def``, which runs in a thread.
        for_: the kind whose objects' names are reconciled: ``"example.com/v1/widgets"``, a model,
            or a `KindSource` with more options.
        owns: kinds whose objects are controlled (``ownerReferences``) by objects of that kind.
        watches: other sources: `KindSource` with a ``map``, `TimerSource`, `StreamSource`,
            `ChannelSource`, or your own `Source`.
        workers: how many names are reconciled at a time.
        timeout: seconds after which a reconcile is cancelled and tried again later. A function
            in a thread cannot be cancelled: its name is not worked on again before it returns.
        rate_limiter: the delay before a failed name is retried; by default 5 ms, doubled up to
            1,000 s, and 10 a second for all names together after the first 100.
        order: the order of the queue; by default `FairOrder`: changes before the initial list, and
            equal shares for namespaces.
        needs_leader: whether it works only while its manager leads.
        slow_after: log a reconcile that takes longer than so many seconds.

    Raises:
        UsageError: an argument is invalid.
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
        _check_arguments(name, reconcile, workers=workers, timeout=timeout, slow_after=slow_after)
        self.name: Final = name
        self.workers: Final = workers
        self.needs_leader: Final = needs_leader
        self._reconcile = reconcile
        self._for = kind_source(for_)
        self._owns = [kind_source(each) for each in _several(owns, "owns")]
        self._kinds, self._sources = _sorted_sources(_several(watches, "watches"))
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
        self.has_abandoned: bool = False
        """Whether a reconcile ignored its cancellation and still runs."""
        self._is_warm = False

    def __repr__(self) -> str:
        return f"<Controller {self.name} for {self._for.kind_name}>"

    # --- state

    @property
    def is_warm(self) -> bool:
        """Whether all caches have synced; stays true."""
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
        """Return the current statistics."""
        return self._meter.statistics(
            name=self.name,
            workers=self.workers,
            queue=self._queue.statistics(),
            unexpected_ends=self._parts.unexpected_ends,
        )

    # --- life cycle, called by the manager

    def bind(self, environment: Environment, factory: SharedInformerFactory) -> None:
        """Create the informers. They are started afterwards.

        Raises:
            UsageError: the controller belongs to another manager, or has run already.
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
        """Wait until the caches have synced, without a time limit.

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
        """Reconcile until `drain` has ended. Cancelled, cancel the reconciles that run.

        Names are queued from now on, and workers start when the handlers have received the initial
        list. A process that waits to lead has caches, but no queue that grows without workers.
        """
        self._parts.join()
        self._listen()
        await gather(*(each.wait_synced() for each in self._registrations))
        details = {"controller": self.name, "workers": self.workers}
        log.info("%s: controller started with %d workers", *details.values(), extra=details)
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
            self.has_abandoned = workers.has_abandoned

    async def drain(self, stop: Stop) -> Drained[ObjectName]:
        """Accept no more names; wait until the queue is empty and its events are sent."""
        report = await self._queue.shut_down_with_drain(stop.left())
        assert self._environment is not None
        await self._environment.recorder.drain(min(EVENTS, stop.left()))
        return report

    async def stop(self) -> None:
        """Stop the sources and shut down the queue."""
        self._queue.shut_down()
        for registration in self._registrations:
            registration.remove()
        await end_in_time(*self._tasks, *([] if self._warming is None else [self._warming]))
        if self._threads is not None:
            self._threads.close()

    # --- wiring

    def _listen(self) -> None:
        """Connect all sources to the queue."""
        for each in (self._for, *self._kinds):
            self._registrations.extend(each.listen(self._wired))
        for each in self._owns:
            self._registrations.extend(each.listen(self._wired, self._owner))
        loop = asyncio.get_running_loop()
        for source in self._sources:
            self._tasks.append(loop.create_task(self._run_source(source)))

    async def _run_source(self, source: Source) -> None:
        """Run a source until it returns. If it fails, it is a part that ended unexpectedly."""
        part = f"kinform {self.name} source {source.name}"
        details = {"controller": self.name, "source": source.name}

        async def run() -> None:
            await source.run(self._queue.add)

        try:
            await self._parts.keep_running(part, run, fatal=(UsageError,))
        except UsageError as exc:
            self._parts.give_up(part, exc)
            message = "%s: source %r cannot be used"
            log.exception(message, self.name, source.name, extra=details)
        else:
            log.info("%s: source %r ended", self.name, source.name, extra=details)

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
        """Discover the kind of ``for_``, once it is served: owner references contain it."""
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
                    log.warning(
                        "%s: waiting for resource %s: %s",
                        self.name,
                        name,
                        exc,
                        extra={"controller": self.name, "resource": name},
                    )
            else:
                return to_owner(found.gvk, namespaced=found.namespaced)
            await asyncio.sleep(backoff.delay(rand=random.random()))
            backoff = backoff.failed()


def _several(given: Iterable[T], role: str) -> list[T]:
    """Return the argument ``role`` as a list.

    Raises:
        UsageError: it is one, not several.
    """
    if isinstance(given, str | type) or not isinstance(given, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] - users err
        raise UsageError(f"{role} is {given!r}; expected a list, perhaps [{given!r}]")
    return list(given)


def _check_arguments(
    name: str,
    reconcile: object,
    *,
    workers: int,
    timeout: float | None,
    slow_after: float | None,
) -> None:
    """Check the arguments of a controller.

    Raises:
        UsageError: an argument is invalid.
    """
    if not _NAME.fullmatch(name):  # also the component of its events
        raise UsageError(
            f"no controller can be called {name!r}: up to 63 letters, digits, '-', '_' and '.', of "
            "which the first and the last are letters or digits"
        )
    if not callable(reconcile):
        raise UsageError(f"reconcile is of type {type(reconcile).__name__}; expected a function")
    refuse_generators("reconcile", reconcile)
    _check_signature(reconcile)
    if workers < 1:
        raise UsageError(f"workers is {workers}; expected at least 1")
    if timeout is not None and not 0 < timeout < math.inf:
        raise UsageError(f"timeout is {timeout!r}; expected seconds, more than 0, or None")
    if slow_after is not None and not slow_after > 0:
        raise UsageError(f"slow_after is {slow_after!r}; expected seconds, more than 0, or None")


def _check_signature(reconcile: Callable[..., object]) -> None:
    try:
        signature = inspect.signature(reconcile)
    except (TypeError, ValueError):
        return  # nothing is known of it
    try:
        signature.bind("ctx", "name")
    except TypeError:
        raise UsageError(
            f"reconcile is called with a Context and an ObjectName, and takes {signature}"
        ) from None


def _sorted_sources(
    watches: Sequence[Source | AnyKindSource],
) -> tuple[list[AnyKindSource], list[Source]]:
    """Return which of them are kinds, and which sources of their own.

    Raises:
        UsageError: one is neither, or a kind does not say what its objects mean.
    """
    kinds, others = list[AnyKindSource](), list[Source]()
    for each in watches:
        if isinstance(each, KindSource):
            kind = cast("AnyKindSource", each)
            _check_map(kind)
            kinds.append(kind)
        elif callable(getattr(each, "run", None)) and isinstance(getattr(each, "name", None), str):
            others.append(cast("Source", each))
        else:
            raise UsageError(
                f"watches has {each!r}, which is not a source: a KindSource('v1/pods', map=...), "
                "TimerSource, StreamSource, ChannelSource, or what has a name and a run(add), is"
            )
    return kinds, others


def _check_map(kind: AnyKindSource) -> None:
    if not kind.has_map:
        raise UsageError(
            f"watches has {kind.kind_name} without a map: say which names its objects mean, for "
            f"example KindSource({kind.kind_name!r}, map=to_label('example.com/widget'))"
        )
