"""Reconciling: the workers of a controller, and one call of the user's reconcile function.

controller-runtime: ``pkg/internal/controller``. A worker takes a name from the queue, calls the
function, and decides by the outcome when the name comes again:

================================  ===============  =============================================
the reconcile                     outcome          next
================================  ===============  =============================================
returns ``None``, ``Result()``    success          its failures are forgotten
``Result(requeue_after=…)``       requeue_after    the same; the name is added after that time
raises `TerminalError`            terminal         the same; logged, and not retried
takes longer than ``timeout``     timeout          retried with backoff
raises anything else              error            retried with backoff
is cancelled by a stop            cancelled        nothing: the controller has stopped
raises `LeadershipLost`           cancelled        nothing: another process leads now
is forbidden because its          success          its failures are forgotten: the object is
namespace is being deleted                         deleted with its namespace
================================  ===============  =============================================
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeAlias, cast, final
from urllib.parse import urlsplit

from kinform._parts import Parts
from kinform.cache.store._guard import Role, role
from kinform.errors import (
    ConflictError,
    ForbiddenError,
    KinformError,
    LeadershipLost,
    QueueShutDown,
    TerminalError,
    UsageError,
)
from kinform.meta import ObjectName
from kinform.runtime.controller._threads import Threads
from kinform.runtime.controller.caches import Caches
from kinform.runtime.controller.context import Context, Environment
from kinform.runtime.controller.statistics import ControllerMeter, Outcome
from kinform.tasks import apart, background, end_in_time
from kinform.workqueue.queue import WorkQueue

__all__ = ["Reconcile", "Reconciler", "Result", "Workers", "is_async"]

log: Final = logging.getLogger(__name__)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of a reconcile that did not fail; ``None`` means the same as ``Result()``.

    Raises:
        UsageError: ``requeue_after`` is not a number above 0. To retry after a failure, with
            backoff, raise an error instead.
    """

    requeue_after: float | None = None
    """Reconcile again in so many seconds, unless an event comes first."""

    def __post_init__(self) -> None:
        after = self.requeue_after
        if after is None:
            return
        if not 0 < after < math.inf:
            raise UsageError(
                f"requeue_after is {after!r}; expected seconds, more than 0. To retry with "
                "backoff, raise an error"
            )


Reconcile: TypeAlias = Callable[[Context, ObjectName], Awaitable[Result | None] | Result | None]
"""Brings one object to its desired state: ``async def``, or ``def`` to run in a thread."""


class _ReconcileTimeout(TimeoutError):
    """The controller's ``timeout``, not a `TimeoutError` that the function raised itself."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciler:
    """Calls the user's function for one name, and decides by the outcome what comes next."""

    controller: str
    reconcile: Reconcile
    queue: WorkQueue[ObjectName]
    environment: Environment
    caches: Caches
    meter: ControllerMeter
    threads: Threads | None
    """The threads that run ``reconcile``, if it is a plain function."""
    timeout: float | None

    async def __call__(self, name: ObjectName) -> None:
        """Reconcile ``name``. Errors of the user's function are logged, not raised.

        Raised are only errors that must end the process, and the cancellation of this task. The
        function runs in a task of its own, so other tasks always get a turn.
        """
        queue, meter = self.queue, self.meter
        context = Context(
            self.environment,
            self.caches,
            controller=self.controller,
            name=name,
            causes=queue.causes(name),
            attempt=queue.num_requeues(name),
        )
        clock = asyncio.get_running_loop().time
        began, outcome = clock(), Outcome.CANCELLED
        worker = asyncio.current_task()
        meter.begin()
        try:
            call = self._call if self.timeout is None else self._call_within_timeout
            # In a task of its own: anything the function leaves behind there (a swallowed
            # cancellation, a count of `Task.cancelling`) does not look like a stop of the worker.
            called = await apart(
                call(context, name), name=None if worker is None else worker.get_name()
            )
            outcome = self._settle(context, called)
        finally:
            context.cancel()
            meter.end(outcome, clock() - began)

    async def _call_within_timeout(self, context: Context, name: ObjectName) -> object:
        limit = asyncio.timeout(self.timeout)
        try:
            async with limit:
                return await self._call(context, name)
        except (TimeoutError, asyncio.CancelledError) as exc:
            # Either: asyncio.timeout() relies on `Task.cancelling`, which the function may change.
            if not limit.expired():
                raise
            raise _ReconcileTimeout(f"it takes longer than {self.timeout:g} s") from exc

    async def _call(self, context: Context, name: ObjectName) -> object:
        if self.threads is None:
            returned = self.reconcile(context, name)
        else:
            function = functools.partial(self.reconcile, context, name)
            returned = await self.threads.call(function, on_cancel=context.cancel)
        # Also in a thread: a wrapper around an async function does not show that it is one.
        return await returned if inspect.isawaitable(returned) else returned

    def _settle(self, context: Context, called: asyncio.Task[object]) -> Outcome:
        """Forget the failures of a name, or add it again; return the outcome."""
        try:
            result = called.result()
        except asyncio.CancelledError as exc:
            return self._retry(context, exc)  # something that the function awaited was cancelled
        except Exception as exc:  # noqa: BLE001 - one reconcile's crash harms no other
            return self._settle_error(context, exc)
        if result is not None and not isinstance(result, Result):
            expected = "expected None or a Result"
            text = (
                f"the reconcile of {self.controller} returned {type(result).__name__}; {expected}"
            )
            return self._retry(context, UsageError(text))
        self.queue.forget(context.name)
        if result is None or result.requeue_after is None:
            return Outcome.SUCCESS
        self.queue.add_after(context.name, result.requeue_after)
        return Outcome.REQUEUE_AFTER

    def _settle_error(self, context: Context, error: Exception) -> Outcome:
        match _sole(error):
            case TerminalError() as terminal:
                self.queue.forget(context.name)
                text = "terminal error, not retried until something changes: %s"
                why = str(terminal) or type(terminal).__name__
                context.logger.error(text, why, exc_info=terminal.__cause__)
                return Outcome.TERMINAL
            case LeadershipLost() as lost:
                context.logger.info("reconcile interrupted: %s", lost)
                return Outcome.CANCELLED
            case ForbiddenError() as refusal if _is_namespace_terminating(context, refusal):
                context.logger.info("not retried: its namespace is being deleted")
                self.queue.forget(context.name)
                return Outcome.SUCCESS
            case _:
                return self._retry(context, error)

    def _retry(self, context: Context, error: BaseException) -> Outcome:
        self.queue.add_rate_limited(context.name)
        is_timeout = isinstance(error, _ReconcileTimeout)
        # A traceback for the first failure only, and none for errors that explain themselves: a
        # conflict, or a server that cannot be reached.
        explains_itself = isinstance(error, KinformError) and not isinstance(error, UsageError)
        kind = "TimeoutError" if is_timeout else type(error).__name__
        context.logger.log(
            logging.INFO if isinstance(error, ConflictError) else logging.WARNING,
            "reconcile failed (attempt %d), will be retried: %s",
            context.attempt + 1,
            f"{kind}: {error}" if str(error) else kind,
            exc_info=None if explains_itself or context.attempt else error,
        )
        return Outcome.TIMEOUT if is_timeout else Outcome.ERROR


def _is_namespace_terminating(context: Context, error: ForbiddenError) -> bool:
    """Return whether the server refused a write because the object's own namespace is deleted.

    A write into another namespace, or to another server, is retried: that namespace may come back.
    """
    is_here = error.url.startswith(f"{context.client.config.server.rstrip('/')}/")
    own = f"/namespaces/{context.name.namespace}/" in urlsplit(error.url).path
    return error.is_namespace_terminating and own and is_here


def _sole(error: BaseException) -> BaseException:
    """Return the only error in an exception group that has one; otherwise ``error`` itself."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    group = cast("BaseExceptionGroup[BaseException]", error)
    return _sole(group.exceptions[0]) if len(group.exceptions) == 1 else group


def is_async(function: Callable[..., object]) -> bool:
    """Return whether calling ``function`` returns a coroutine, as far as its definition shows."""
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - of a callable object
    )


@final
class Workers:
    """The workers of one controller: ``count`` tasks that take names until the queue shuts down.

    Args:
        name: the controller's, for messages and tasks.
        reconcile: is awaited for each name, and handles its own errors. It must suspend at least
            once for each name: then all workers take turns, however many names wait.
        slow_after: log a reconcile that takes longer, and again each time its duration has
            doubled. ``None``: never.
        parts: counts workers that ended though the queue was not shut down. They are replaced.
    """

    def __init__(
        self,
        queue: WorkQueue[ObjectName],
        reconcile: Callable[[ObjectName], Awaitable[None]],
        *,
        name: str,
        count: int,
        slow_after: float | None,
        parts: Parts,
    ) -> None:
        self._parts = parts
        self._queue = queue
        self._reconcile = reconcile
        self._name = name
        self._count = count
        self._slow_after = slow_after
        self.has_abandoned: bool = False
        """True after a reconcile was cancelled and did not end in time: it still runs."""
        # By name: when its reconcile began, and when it is logged as slow.
        self._running: dict[ObjectName, tuple[float, float]] = {}

    async def run(self) -> None:
        """Work until the queue is shut down. Cancelled, cancel the reconciles that run.

        Raises:
            BaseException: an error that must end the process: ``SystemExit``,
                ``KeyboardInterrupt``.
            Exception: workers ended more than five times within a minute; this is the last error.
        """
        loop = asyncio.get_running_loop()
        keep_running = self._parts.keep_running
        tasks = [
            loop.create_task(
                keep_running(f"kinform {self._name} worker {number}", self._work, backs_off=False)
            )
            for number in range(1, self._count + 1)
        ]
        try:
            async with background(self._log_slow()):
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
        finally:
            await end_in_time(*tasks, on_abandoned=self._abandoned)

    async def _work(self) -> None:
        role.set(Role.RECONCILE)  # for workers, not for sources, which may read before the sync
        queue, clock = self._queue, asyncio.get_running_loop().time
        while True:
            try:
                name = await queue.get()
            except QueueShutDown:
                return
            began = clock()
            self._running[name] = began, began + (self._slow_after or 0.0)
            try:
                await self._reconcile(name)
            except (Exception, asyncio.CancelledError):
                # The worker failed, not the user's function: the name must not be lost. After a
                # stop the queue drops it.
                queue.add(name)
                raise
            finally:
                del self._running[name]
                queue.done(name)

    def _abandoned(self) -> None:
        self.has_abandoned = True
        names = ", ".join(name.shown for name in self._running)
        log.error(
            "%s: reconcile ignores its cancellation and is abandoned: %s",
            self._name,
            names,
            extra={"controller": self._name},
        )

    async def _log_slow(self) -> None:
        if self._slow_after is None:
            return
        clock = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(self._slow_after / 4)
            now = clock()
            for name, (began, due) in tuple(self._running.items()):
                if now >= due:
                    self._running[name] = began, now + (now - began)
                    log.warning(
                        "%s: slow reconcile: %s has been running for %.0f s",
                        self._name,
                        name.shown,
                        now - began,
                        extra={"controller": self._name, "object": name.shown},
                    )
