"""One reconcile: call the user's function, and make of its end what is to happen next.

================================  ===============  =============================================
it                                outcome          then
================================  ===============  =============================================
returns ``None``, ``Result()``    success          the count of its failures ends
``Result(requeue_after=…)``       requeue_after    the same, and it comes again
raises `TerminalError`            terminal         the same; told, and not tried again
takes longer than ``timeout``     timeout          tried again, later and later
raises anything else              error            tried again, later and later
is cancelled by a stop            cancelled        nothing: the end has come
raises `LeadershipLost`           cancelled        nothing: it is for another to do now
is refused, for its namespace     success          the count of its failures ends: the object goes
is being deleted                                   with its namespace
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

from kinform.cache.guard import Role, role
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
from kinform.parts import Parts
from kinform.runtime.caches import Caches
from kinform.runtime.context import Context, Environment
from kinform.runtime.statistics import ControllerMeter, Outcome
from kinform.runtime.threads import Threads
from kinform.tasks import apart, background
from kinform.workqueue.queue import WorkQueue

__all__ = ["Reconcile", "Reconciler", "Result", "Workers", "is_async"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a reconcile went on that did not fail; ``None`` says the same as ``Result()``.

    Raises:
        UsageError: ``requeue_after`` is not a number above 0. Who wants to be called again because
            something went wrong raises an error: then there is a back-off.
    """

    requeue_after: float | None = None
    """Reconcile again in so many seconds, unless something happens before."""

    def __post_init__(self) -> None:
        after = self.requeue_after
        if after is None:
            return
        if not 0 < after < math.inf:
            raise UsageError(
                f"requeue_after is {after!r}; expected seconds, more than 0. To be tried again "
                "with a back-off, raise an error"
            )


log: Final = logging.getLogger(__name__)

Reconcile: TypeAlias = Callable[[Context, ObjectName], Awaitable[Result | None] | Result | None]
"""Makes things as they should be, for one object: ``async def``, or ``def`` to run in a thread."""


class _TimeUp(TimeoutError):
    """Our time-out, not one of the reconcile's own."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciler:
    """Reconciles one name at a time, for a worker."""

    controller: str
    reconcile: Reconcile
    queue: WorkQueue[ObjectName]
    environment: Environment
    caches: Caches
    meter: ControllerMeter
    threads: Threads | None
    """Where it runs, if it is a plain function."""
    timeout: float | None

    async def __call__(self, name: ObjectName) -> None:
        """Reconcile ``name``; never raises what the user's function raises.

        Except for what must end the process, and for the cancellation of this task. The function
        runs in a task of its own, so other tasks always get a turn.
        """
        context = Context(
            self.environment,
            self.caches,
            controller=self.controller,
            name=name,
            causes=self.queue.causes(name),
            attempt=self.queue.num_requeues(name),
        )
        clock = asyncio.get_running_loop().time
        began, outcome = clock(), Outcome.CANCELLED
        worker = asyncio.current_task()
        self.meter.begin()
        try:
            call = self._called(context, name)
            called = await apart(call, name=None if worker is None else worker.get_name())
            outcome = self._outcome(context, called)
        finally:
            context.cancel()
            self.meter.end(outcome, clock() - began)

    def _outcome(self, context: Context, called: asyncio.Task[object]) -> Outcome:
        try:
            return self._went_well(context.name, called.result())
        except asyncio.CancelledError as exc:
            return self._failed(context, exc)  # something it waited for was cancelled
        except Exception as exc:  # noqa: BLE001 - a crash of one reconcile harms no other
            return self._ended_badly(context, exc)

    async def _called(self, context: Context, name: ObjectName) -> object:
        if self.timeout is None:
            return await self._call(context, name)
        limit = asyncio.timeout(self.timeout)
        try:
            async with limit:
                return await self._call(context, name)
        except (TimeoutError, asyncio.CancelledError) as exc:
            # Either, for asyncio.timeout() trusts a count that the function may have changed.
            if not limit.expired():
                raise
            raise _TimeUp(f"it takes longer than {self.timeout:g} s") from exc

    async def _call(self, context: Context, name: ObjectName) -> object:
        if self.threads is None:
            returned = self.reconcile(context, name)
            return await returned if inspect.isawaitable(returned) else returned

        function = functools.partial(self.reconcile, context, name)
        returned = await self.threads.call(function, on_cancel=context.cancel)
        # Of a wrapper around an async function nobody can tell before that it is one.
        return await returned if inspect.isawaitable(returned) else returned

    def _went_well(self, name: ObjectName, result: object) -> Outcome:
        if result is None:
            self.queue.forget(name)
            return Outcome.SUCCESS
        if not isinstance(result, Result):
            raise UsageError(
                f"the reconcile of {self.controller} returned {type(result).__name__}; expected "
                "None or a Result"
            )
        self.queue.forget(name)
        if result.requeue_after is None:
            return Outcome.SUCCESS
        self.queue.add_after(name, result.requeue_after)
        return Outcome.REQUEUE_AFTER

    def _ended_badly(self, context: Context, error: Exception) -> Outcome:
        match _sole(error):
            case TerminalError() as hopeless:
                return self._is_hopeless(context, hopeless)
            case LeadershipLost() as lost:
                context.logger.info("broken off: %s", lost)  # it is for another to do now
                return Outcome.CANCELLED
            case ForbiddenError() as refusal if _goes_with_namespace(context, refusal):
                context.logger.info("left alone: its namespace is being deleted")
                self.queue.forget(context.name)
                return Outcome.SUCCESS
            case _:
                return self._failed(context, error)

    def _is_hopeless(self, context: Context, error: TerminalError) -> Outcome:
        self.queue.forget(context.name)
        why = str(error) or type(error).__name__
        text = "given up until something changes: %s"
        context.logger.error(text, why, exc_info=error.__cause__)
        return Outcome.TERMINAL

    def _failed(self, context: Context, error: BaseException) -> Outcome:
        self.queue.add_rate_limited(context.name)
        # The first time with all there is to know; where it fails again and again, in one line.
        # That somebody else wrote first, or that the server cannot be reached, is no riddle.
        is_riddle = not isinstance(error, KinformError) or isinstance(error, UsageError)
        with_traceback = error if is_riddle and not context.attempt else None
        level = logging.INFO if isinstance(error, ConflictError) else logging.WARNING
        kind = "TimeoutError" if isinstance(error, _TimeUp) else type(error).__name__
        context.logger.log(
            level,
            "failed (attempt %d), to be tried again: %s",
            context.attempt + 1,
            f"{kind}: {error}" if str(error) else kind,
            exc_info=with_traceback,
        )
        return Outcome.TIMEOUT if isinstance(error, _TimeUp) else Outcome.ERROR


def _goes_with_namespace(context: Context, error: ForbiddenError) -> bool:
    """Tell whether it is the object's own namespace that is refused: another may come back.

    One of the same name on another server is another one.
    """
    is_here = error.url.startswith(f"{context.client.config.server.rstrip('/')}/")
    own = f"/namespaces/{context.name.namespace}/" in urlsplit(error.url).path
    return error.is_namespace_terminating and own and is_here


def _sole(error: BaseException) -> BaseException:
    """Return the only error of a task group in which there was no other, or ``error`` itself."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    group = cast("BaseExceptionGroup[BaseException]", error)
    return _sole(group.exceptions[0]) if len(group.exceptions) == 1 else group


def is_async(function: Callable[..., object]) -> bool:
    """Tell whether calling ``function`` gives a coroutine, as far as can be known before."""
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - of an object that can be called
    )


PATIENCE: Final = 0.15
"""How long a reconcile may take to end once it is cancelled, before it is left behind."""


@final
class Workers:
    """Works on the names of a queue, ``count`` at a time, until the queue is shut down.

    Args:
        name: the controller's, for messages and tasks.
        reconcile: is awaited for each name; its failures are its own matter. It must suspend at
            least once for each name: then all workers take turns, however much waits.
        slow_after: a reconcile that takes longer is told of in the log, again each time it has
            taken twice as long. ``None``: never.
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
        self.has_left_behind: bool = False
        """Whether a reconcile was cancelled and goes on all the same."""
        self._running: dict[ObjectName, tuple[float, float]] = {}  # since when, told again when

    async def run(self) -> None:
        """Work until nothing more comes. Cancelled, it cancels what runs and waits a moment.

        Raises:
            BaseException: what must end the process: ``SystemExit``, ``KeyboardInterrupt``.
            Exception: why the last worker ended, of more than five within a minute.
        """
        loop = asyncio.get_running_loop()
        tasks = [
            loop.create_task(
                self._parts.keep_running(
                    f"kinform {self._name} worker {number}", self._work, backs_off=False
                )
            )
            for number in range(1, self._count + 1)
        ]
        try:
            async with background(self._tell_of_slow()):
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
        finally:
            await self._part_with(tasks)

    async def _work(self) -> None:
        role.set(Role.RECONCILE)  # for this worker, and not for sources: they may read early
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
                # Not the user's failure, and no reason to forget the name. After a stop the queue
                # takes no more names.
                queue.add(name)
                raise
            finally:
                del self._running[name]
                queue.done(name)

    async def _part_with(self, tasks: list[asyncio.Task[None]]) -> None:
        left = [task for task in tasks if not task.done()]
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=PATIENCE)
        for task in tasks:
            if not task.done():
                names = ", ".join(name.shown for name in self._running)
                self.has_left_behind = True
                log.error("%s: left behind, for it ignores its cancellation: %s", self._name, names)
                break
            if not task.cancelled():
                task.exception()  # taken note of: the first was raised

    async def _tell_of_slow(self) -> None:
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
                        "%s: %s has been worked on for %.0f s", self._name, name.shown, now - began
                    )
