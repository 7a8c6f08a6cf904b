"""Manager: runs controllers, with their informers, leader election, health and metrics.

controller-runtime: ``pkg/manager``. It starts, in this order: health endpoints, informers, event
recorders, sources; then, where it leads, workers. It stops in reverse order: workers finish their
queues, the lease is released, informers stop, and the health endpoints last.

Rule: everything runs in one supervisor task, so `Manager.run` may be cancelled, and the block be
left, in any task.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
from collections.abc import AsyncGenerator, Coroutine, Sequence
from types import TracebackType
from typing import Final, Unpack, final

from kinform._parts import Parts, error_of
from kinform.cache.factory import SharedInformerFactory
from kinform.cache.shared_informer import InformerOptions
from kinform.cache.store._guard import Role, role
from kinform.client import Client
from kinform.errors import UsageError
from kinform.objects.object import Object
from kinform.runtime._signals import Stop, on_signals
from kinform.runtime.controller.context import Environment
from kinform.runtime.controller.controller import Controller
from kinform.runtime.events.recorder import EventRecorder
from kinform.runtime.leader_election import LeaderElection, LeaderElector
from kinform.runtime.reporting import Reporting
from kinform.tasks import background, end_in_time, gather

__all__ = [
    "Manager",
]

log: Final = logging.getLogger(__name__)

_run_by: Final = contextvars.ContextVar[object]("kinform_run_by", default=None)
"""The manager that runs this task, or has started what did."""

GRACE: Final = 20.0
"""Seconds that work may take to finish after a stop: less than the 30 s kubelet gives a pod."""
FORCED: Final = 1.0
"""Seconds that cancelled work gets to end cleanly before it is cancelled again."""
LEAST: Final = 0.15
"""Minimum seconds to stop informers and recorders, and to release the lease, after the deadline."""
_SHOWN: Final = 10
"""The number of unfinished names that a log line lists."""
MAX_SILENCE: Final = 180.0
"""Seconds without contact to the server after which a cache counts as stale."""


@final
class Manager:
    """Runs controllers: their informers, workers, leader election, health and metrics.

    .. code-block:: python

        async with kinform.connect() as client, kinform.Manager(client) as manager:
            manager.add(controller)
            await manager.run()  # until SIGTERM, SIGINT or cancellation

    The first signal stops it cleanly, within ``grace``: no new names are queued, queued and running
    reconciles are finished, the lease is released. The second signal cancels everything.

    Args:
        client: if it is not open, entering the manager opens it, and leaving closes it.
        leader_election: if given, only the leader among all processes with this lease works. The
            others keep their caches warm and wait. A leader that loses the lease stops: `run`
            raises `LeadershipLost`, and the process should exit and be started again.
        namespaces: the namespaces of controllers that do not set their own; all by default.
        namespace: the same for one namespace.
        health: where to serve ``/livez``, ``/readyz`` and ``/metrics``: ``"0.0.0.0:8081"`` for
            kubelet's probes, a port for this machine alone. Nowhere by default.
        health_hosts: names under which that is reached, where they are neither addresses nor
            names within a cluster. Requests with another ``Host`` are refused.
        grace: seconds that work may take to finish after a stop.
        max_silence: seconds without contact to the server after which readiness fails.
        signals: whether SIGTERM and SIGINT stop it; needs the main thread.
        defaults: keywords of `SharedInformer` for every informer.

    Raises:
        UsageError: an argument is invalid.
    """

    def __init__(
        self,
        client: Client,
        *,
        leader_election: LeaderElection | None = None,
        namespaces: str | Sequence[str] | None = "",
        namespace: str | None = None,
        health: str | int | None = None,
        health_hosts: Sequence[str] = (),
        grace: float = GRACE,
        max_silence: float = MAX_SILENCE,
        signals: bool = True,
        **defaults: Unpack[InformerOptions[Object]],
    ) -> None:
        _check(client, leader_election, grace=grace, defaults=defaults)
        self._client = client
        self._factory = SharedInformerFactory(
            client, namespaces=namespaces, namespace=namespace, **defaults
        )
        self._election = leader_election
        self._elector: LeaderElector | None = None
        self._stack = contextlib.AsyncExitStack()
        self._controllers: dict[str, Controller] = {}
        self._recorders: list[EventRecorder] = []
        self._signals = signals
        self._stop = Stop(grace)
        self._force_asked = asyncio.Event()
        self._bound = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._has_told = False  # how it ended
        self._parts = Parts("manager")
        self._reporting = Reporting(
            self._controllers.values(),
            factory=self._factory,
            elector=lambda: self._elector,
            recorders=self._recorders,
            parts=self._parts,
            is_stopping=lambda: self._stop.is_asked,
            max_silence=max_silence,
            address=health,
            hosts=health_hosts,
        )

    def __repr__(self) -> str:
        state = "not started" if self._task is None else "over" if self._task.done() else "running"
        return f"<Manager of {', '.join(self._controllers) or 'nothing'}: {state}>"

    # --- before

    def add(self, *controllers: Controller) -> None:
        """Add controllers to run.

        Raises:
            UsageError: it runs already, or has one of that name.
        """
        if self._task is not None:
            raise UsageError("a controller must be added before the manager runs")
        for controller in controllers:
            if not isinstance(controller, Controller):  # pyright: ignore[reportUnnecessaryIsInstance] - users err
                raise UsageError(f"{controller!r} is not a Controller")
            if controller.name in self._controllers:
                raise UsageError(f"there is a controller {controller.name!r} already")
            self._controllers[controller.name] = controller

    @property
    def factory(self) -> SharedInformerFactory:
        """The shared informers: create your own here before `run`, and the manager starts them."""
        return self._factory

    # --- while it runs

    @property
    def controllers(self) -> Sequence[Controller]:
        """Its controllers."""
        return tuple(self._controllers.values())

    @property
    def elector(self) -> LeaderElector | None:
        """Knows who leads, if there is an election; ``None`` before the start."""
        return self._elector

    @property
    def reporting(self) -> Reporting:
        """The health checks and statistics; you can add checks of your own."""
        return self._reporting

    @property
    def is_stopping(self) -> bool:
        """Whether a stop was requested; stays true."""
        return self._stop.is_asked

    async def wait_warm(self, timeout: float | None = None) -> None:
        """Wait until all caches have synced.

        Raises:
            TimeoutError: it takes longer; names the controllers that are not ready.
            UsageError: it does not run.
        """
        if self._task is None:
            raise UsageError("the manager was not started: await manager.start(), or run()")
        async with background(self._all_warm()) as warm:
            done, _ = await asyncio.wait(
                [self._task, warm], timeout=timeout, return_when=asyncio.FIRST_COMPLETED
            )
            if warm in done:
                warm.result()
            elif done:
                self._task.result()  # raises what ended it
                raise UsageError("the manager has stopped")
            else:
                cold = ", ".join(each.name for each in self.controllers if not each.is_warm)
                why = (
                    self._reporting.ready.ask("informers")
                    or "the kind of an owner is not known yet"
                )
                raise TimeoutError(f"not ready within {timeout} s: {cold}; {why}")

    async def _all_warm(self) -> None:
        await self._bound.wait()
        await gather(*(each.wait_warm() for each in self.controllers))
        await self._factory.wait_for_cache_sync()

    # --- its life

    async def run(self) -> None:
        """Run until a signal or a cancellation; see the class.

        Cancelled, it ends as by a signal before it raises; cancelled again, at once.

        Raises:
            LeadershipLost: it led, and cannot be sure of that any more.
            UsageError: it was run before, the client is not open, or a port is taken.
            Exception: why the last part ended (a worker, a reflector, a handler's task), of more
                than five that ended within a minute though nothing stopped them.
        """
        await self.start()
        assert self._task is not None
        try:
            await asyncio.wait([self._task])
        except asyncio.CancelledError:
            await self.stop()
            raise
        self._has_told = True
        self._task.result()

    async def start(self) -> None:
        """Begin, and return once everything is set up; it need not be warm yet: `wait_warm`.

        For tests, and for programs that do more: `wait_stopped` waits for the end. `stop` must
        follow.

        Raises:
            UsageError: it was started before, the client is not open, a controller has run
                already, or a port is taken.
        """
        if self._task is not None:
            raise UsageError("a manager runs once; make a new one")
        if not self._client.is_open:
            raise UsageError("the client is not open: async with client, or async with manager")
        if self._election is not None:
            self._elector = LeaderElector(self._client, self._election)
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self._supervise(), name="kinform manager")
        try:
            async with background(self._bound.wait()) as bound:
                await asyncio.wait([self._task, bound], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self._force()
            raise
        if self._task.done():
            self._has_told = True
            self._task.result()

    async def stop(self) -> None:
        """Stop cleanly, within the grace period. Cancelled, stop at once.

        Errors are raised by `run`, not here. In a reconcile, or in a task started by one, this only
        requests the stop and does not wait: the manager waits for the reconcile.
        """
        self._stop.ask()
        if self._task is None or _run_by.get() is self:
            return
        try:
            await asyncio.wait([self._task])
        except asyncio.CancelledError:
            await self._force()
            raise

    async def wait_stopped(self) -> None:
        """Wait until a manager that was started has stopped, for any reason.

        Cancelled, it does not wait any longer; the manager goes on.

        .. code-block:: python

            await manager.start()
            ...  # the rest of the program
            await manager.wait_stopped()

        Raises:
            UsageError: it was not started; or a reconcile of it would wait for itself.
            Exception: what ended the manager, as `run` raises it.
        """
        if self._task is None:
            raise UsageError("the manager was not started: await manager.start(), or run()")
        if not self._task.done() and _run_by.get() is self:
            raise UsageError(
                "a reconcile cannot wait for the end of its manager, which waits for the "
                "reconcile; stop() there only asks for it"
            )
        await asyncio.wait([self._task])
        self._has_told = True
        if not self._task.cancelled():
            self._task.result()
        elif not self._stop.is_asked and (error := error_of(self._task)) is not None:
            raise error

    async def __aenter__(self) -> Manager:
        if not self._client.is_open:
            await self._stack.enter_async_context(self._client)
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        async with self._stack:
            await self.stop()
        if self._task is None or not self._task.done() or self._task.cancelled():
            return
        failure = self._task.exception()
        if failure is not None and exc is None and not self._has_told:
            raise failure

    async def _force(self) -> None:
        assert self._task is not None
        self._force_asked.set()
        await asyncio.wait([self._task], timeout=2 * FORCED)
        if not self._task.done():
            log.error("manager did not stop within %.0f s after cancellation", 2 * FORCED)

    def _signalled(self, name: str) -> None:
        if not self._stop.is_asked:
            text = "%s: stopping within %.0f s; once more to stop at once"
            log.info(text, name, self._stop.grace, extra={"signal": name})
            self._stop.ask()
        else:
            log.warning("%s: stopping at once", name, extra={"signal": name})
            self._force_asked.set()

    # --- the supervisor task

    async def _supervise(self) -> None:
        _run_by.set(self)  # for this task, and those it starts
        self._parts.own_context()
        role.set(Role.MANAGER)
        with on_signals(self._signalled) if self._signals else contextlib.nullcontext():
            async with (
                self._forcible(),
                self._reporting,
                self._informed(),
                beside(self._parts.failed()),
            ):
                await self._operate()

    @contextlib.asynccontextmanager
    async def _forcible(self) -> AsyncGenerator[None]:
        """Cancel the block when the second signal comes."""
        block = asyncio.current_task()
        assert block is not None

        async def force() -> None:
            await self._force_asked.wait()
            while True:
                block.cancel()
                await asyncio.sleep(FORCED)  # time for a clean end

        async with background(force()):
            try:
                yield
            except asyncio.CancelledError:
                if not self._force_asked.is_set():
                    raise
                while block.uncancel():
                    pass

    @contextlib.asynccontextmanager
    async def _informed(self) -> AsyncGenerator[None]:
        """Run informers and recorders, and let controllers warm up."""
        check = None if self._elector is None else self._elector.check
        async with contextlib.AsyncExitStack() as stack:
            for controller in self._controllers.values():
                client = self._client
                if check is not None and controller.needs_leader:
                    client = client.guarded(check)
                recorder = EventRecorder(client, controller.name)
                self._recorders.append(recorder)
                environment = Environment(
                    client=client, recorder=recorder, fencing_number=self._fencing_number
                )
                controller.bind(environment, self._factory)
            stack.push_async_callback(self._end)
            await self._factory.start()
            for recorder in self._recorders:
                recorder.start()
            for controller in self._controllers.values():
                controller.begin()
            self._bound.set()
            yield

    async def _end(self) -> None:
        """Stop controllers, recorders and informers, all at once."""
        left = self._stop.left(least=LEAST) if self._stop.is_asked else LEAST
        await gather(
            *(controller.stop() for controller in self.controllers),
            *(recorder.stop(LEAST) for recorder in self._recorders),  # they were drained
            self._factory.shut_down(left),
        )

    async def _operate(self) -> None:
        """Work until the stop; what needs to lead, while it does."""
        elector = self._elector
        for_leaders = [each for each in self.controllers if each.needs_leader and elector]
        others = [each for each in self.controllers if each not in for_leaders]
        async with beside(self._all_warm()):  # its failure must also end a wait for the lease
            if elector is None or not for_leaders:
                await Operation(others, self._stop).run()
                return
            async with beside(Operation(others, self._stop).run()) as always:
                await Operation(for_leaders, self._stop).run_elected(elector)
                await asyncio.wait([always])

    def _fencing_number(self) -> str:
        return "" if self._elector is None else self._elector.fencing_number


def _check(
    client: object, election: object, *, grace: float, defaults: InformerOptions[Object]
) -> None:
    if not isinstance(client, Client):
        raise UsageError(f"client is of type {type(client).__name__}; expected kinform.connect()")
    if election is not None and not isinstance(election, LeaderElection):
        raise UsageError(f"leader_election is {election!r}; expected LeaderElection(lease=...)")
    if not grace >= 0:
        raise UsageError(f"grace is {grace!r}; expected seconds, 0 or more")
    for name in defaults:
        if name not in InformerOptions.__annotations__:
            raise TypeError(f"Manager() got an unexpected keyword argument {name!r}")


@final
class Operation:
    """The operation of some controllers that start and stop together.

    Args:
        stop: the stop: controllers accept no more names and finish their queues, within its
            grace.
    """

    def __init__(self, controllers: Sequence[Controller], stop: Stop) -> None:
        self._controllers = controllers
        self._stop = stop
        self._has_begun = False
        self._working: list[Controller] = []

    async def run(self) -> None:
        """Work until the stop. Cancelled, work ends at once.

        An error that ends a controller before that is raised.
        """
        self._has_begun = True
        loop = asyncio.get_running_loop()
        tasks = [
            loop.create_task(self._work(each), name=f"kinform {each.name}")
            for each in self._controllers
        ]
        try:
            async with background(self._stop.wait()) as asked:
                await asyncio.wait([asked, *tasks], return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()
            await self._drain()
        finally:
            await end_in_time(*tasks, timeout=None)  # the workers have their own time limit

    async def run_elected(self, elector: LeaderElector) -> None:
        """Work while ``elector`` leads, until the stop.

        Raises:
            LeadershipLost: it led, and does not any more.
        """
        election = elector.run(self.run, release_within=self._release_within)
        async with background(election) as electing, background(self._stop.wait()) as asked:
            await asyncio.wait([electing, asked], return_when=asyncio.FIRST_COMPLETED)
            if not electing.done() and not self._has_begun:
                return  # it still waits for the lease, and must not acquire it any more
            await electing

    def _release_within(self) -> float | None:
        """Return how long releasing the lease may take; None if a reconcile still runs.

        Then the lease is not released: it expires later, and the reconcile may end by then.
        """
        if any(each.has_abandoned for each in self._controllers):
            return None
        return self._stop.left(least=LEAST)

    async def _work(self, controller: Controller) -> None:
        await controller.wait_warm()
        if self._stop.is_asked:
            return
        self._working.append(controller)  # before that it has no workers that could drain its queue
        await controller.work()

    async def _drain(self) -> None:
        working = tuple(self._working)
        reports = await gather(*(each.drain(self._stop) for each in working))
        for controller, report in zip(working, reports, strict=True):
            if report.unfinished:
                shown = ", ".join(name.shown for name in report.unfinished[:_SHOWN])
                text = "%s: %d not done within the grace of %.0f s: %s"
                details = {"controller": controller.name, "count": len(report.unfinished)}
                log.warning(text, *details.values(), self._stop.grace, shown, extra=details)
            if report.delayed:
                shown = ", ".join(name.shown for name in report.delayed[:_SHOWN])
                text = "%s: %d delayed names dropped by the stop: %s"
                details = {"controller": controller.name, "count": len(report.delayed)}
                log.info(text, *details.values(), shown, extra=details)


@contextlib.asynccontextmanager
async def beside(work: Coroutine[object, object, None]) -> AsyncGenerator[asyncio.Task[None]]:
    """Run ``work`` beside the block. If it fails, the block is cancelled and the failure raised.

    At the end of the block it is cancelled: await the task there if it is to end by itself.
    """
    block = asyncio.current_task()
    assert block is not None
    has_failed = False

    def on_done(task: asyncio.Task[None]) -> None:
        nonlocal has_failed
        if not task.cancelled() and task.exception() is not None:
            has_failed = True
            block.cancel()

    async with background(work) as running:
        running.add_done_callback(on_done)
        try:
            yield running
        except asyncio.CancelledError:
            if not has_failed:
                raise
            block.uncancel()
            running.result()
        finally:
            running.remove_done_callback(on_done)
