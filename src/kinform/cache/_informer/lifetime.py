"""Lifetime: the start, failure and stop of an informer.

Two tasks run: one reads and fills the cache, one calls the handlers. Reading ends first, so that
every handler finds the changes it receives in the cache; then current callbacks have a grace
period. A task that ignores its cancellation is logged and abandoned.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
from collections.abc import Callable, Coroutine
from typing import Final, Protocol, final

from kinform._parts import error_of
from kinform.errors import UsageError
from kinform.tasks import background, end_in_time

__all__ = ["GRACE", "Delivery", "Lifetime"]

log: Final = logging.getLogger(__name__)

GRACE: Final = 5.0
"""Seconds that callbacks have to finish when an informer is stopped."""

_called_by: Final = contextvars.ContextVar[object]("kinform_called_by", default=None)
"""The lifetime of the informer whose callback is the current task, or has started it."""


class Delivery(Protocol):
    """Calls the handlers: a `Processor`."""

    async def run(self) -> None:
        """Call handlers until stopped or cancelled."""
        ...

    def close(self) -> None:
        """Start no more callbacks; current ones continue."""
        ...

    async def stop(self, grace: float) -> None:
        """Start no more callbacks; current ones have ``grace`` seconds."""
        ...


@final
class Lifetime:
    """One start and one stop, on the event loop in which it is started.

    Args:
        name: the name of the informer.
        read: fills the cache; it ends by cancellation or failure only.
        delivery: calls the handlers.
        on_reading_over: called when reading has ended, before the last callbacks have.
        on_end: called once or more at the end, when `failure` is known.
    """

    def __init__(
        self,
        name: str,
        read: Callable[[], Coroutine[object, object, None]],
        delivery: Delivery,
        *,
        on_reading_over: Callable[[], None],
        on_end: Callable[[], None],
    ) -> None:
        self._name = name
        self._read = read
        self._delivery = delivery
        self._on_reading_over = on_reading_over
        self._on_end = on_end
        # Remembered and not only signalled: an informer that is stopped before its start must never
        # start.
        self._stop_requested = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_cancelled = False
        self.loop: asyncio.AbstractEventLoop | None = None
        self.grace: float = GRACE
        self.failure: BaseException | None = None
        self.is_over: bool = False

    @property
    def is_started(self) -> bool:
        """True if it was started; stays true."""
        return self._task is not None

    @property
    def is_ending(self) -> bool:
        """True if a stop was requested, or it has ended; stays true."""
        return self.is_over or self._stop_requested.is_set()

    def start(self) -> None:
        """Start.

        Raises:
            UsageError: it was started or stopped before.
        """
        if self._task is not None:
            raise UsageError(f"{self._name} was started before; an informer is started once")
        self.refuse_unless_usable("it cannot be started")
        self.loop = asyncio.get_running_loop()
        self._task = self.loop.create_task(self._supervise(), name=f"kinform {self._name}")

    async def wait(self) -> None:
        """Wait for the end."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def stop(self, grace: float) -> None:
        """Stop: see `SharedInformer.stop`."""
        if self._task is None:
            self._stop_requested.set()
            self._end()
            await self._delivery.stop(grace)  # lets streams end; no callback has begun
        elif not self._task.done():
            self.refuse_foreign_loop()
            if not self._stop_requested.is_set():
                self.grace = grace
                self._stop_requested.set()
                # At once and not when the supervisor runs: no callback starts after `stop` was
                # called.
                self._delivery.close()
            # A callback that waited here would wait for itself: the stop waits for current
            # callbacks.
            if _called_by.get() is not self:
                await self._join(self._task)

    def own_context(self) -> contextvars.Context:
        """Return a context for callbacks, in which `stop` does not wait for them."""
        # A copy and not the caller's context: the mark must not stay in the task that adds the
        # handler.
        context = contextvars.copy_context()
        context.run(_called_by.set, self)
        return context

    def refuse_if_idle(self) -> None:
        """Refuse to wait for an informer that was not started.

        Raises:
            UsageError: it was not started.
        """
        if self._task is None and not self.is_over:
            raise UsageError(
                f"{self._name} was not started: async with informer (or await factory.start())"
            )

    def refuse_own_callbacks(self) -> None:
        """Refuse to let a callback wait for the end of its informer.

        Raises:
            UsageError: the current task is a callback, or was started by one.
        """
        if _called_by.get() is self:
            raise UsageError(
                f"a handler of {self._name} cannot wait for the end of {self._name}, which waits "
                "for the handler; stop() there only requests it"
            )

    def stopped_error(self) -> Exception:
        """Return the error for a task that waits: the failure, or that the informer has stopped."""
        if isinstance(self.failure, Exception):
            return self.failure
        stopped = UsageError(f"{self._name} has stopped")
        stopped.__cause__ = self.failure
        return stopped

    def refuse_unless_usable(self, what: str) -> None:
        """Refuse a call after the stop, or from another event loop.

        Raises:
            UsageError: it has stopped, or runs in another event loop.
        """
        if self.is_ending:
            raise UsageError(f"{self._name}: {what} because it has stopped already")
        self.refuse_foreign_loop()

    def refuse_foreign_loop(self) -> None:
        """Refuse a call from another event loop or thread.

        Raises:
            UsageError: the informer runs in another event loop.
        """
        if self.loop is None:
            return
        try:
            is_ours = asyncio.get_running_loop() is self.loop
        except RuntimeError:
            is_ours = False
        if not is_ours:
            raise UsageError(
                f"{self._name} runs in another event loop; from other threads it can only be read"
            )

    async def _join(self, task: asyncio.Task[None]) -> None:
        """Wait until ``task`` is done; when cancelled, cancel it, and wait all the same."""
        try:
            await self._delivery.stop(self.grace)  # from here on no callback starts
            await asyncio.wait([task])
        except asyncio.CancelledError:
            if not self._is_cancelled:  # once: a second time would interrupt its own cleanup
                self._is_cancelled = True
                task.cancel()
            while not task.done():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait([task])
            raise

    async def _supervise(self) -> None:
        tasks: list[asyncio.Task[None]] = []
        try:
            # Delivery is the outer one, because reading must end first: see the module's docstring.
            async with background(self._deliver()) as delivering:
                tasks.append(delivering)
                await self._read_until_stopped(tasks)
                self._end(*tasks)
                await self._delivery.stop(self.grace)
        finally:
            self._end(*tasks)

    async def _deliver(self) -> None:
        _called_by.set(self)  # for this task, and the tasks it starts
        await self._delivery.run()

    async def _read_until_stopped(self, tasks: list[asyncio.Task[None]]) -> None:
        """Read until a stop is requested, or one of ``tasks`` ends."""
        loop = asyncio.get_running_loop()
        reading = loop.create_task(self._read(), name=f"kinform {self._name} reading")
        tasks.append(reading)
        try:
            async with background(self._stop_requested.wait()) as asked:
                await asyncio.wait([*tasks, asked], return_when=asyncio.FIRST_COMPLETED)
            # Without a stop nothing of ours cancels these tasks, so a cancellation came from other
            # code.
            if not self._stop_requested.is_set():
                self._fail_if_cancelled(*tasks)
        finally:
            self._note_failure(*tasks)  # before event streams end, which raise it
            reading.cancel()
            self._on_reading_over()
            async with background(self._delivery.stop(self.grace)):
                await end_in_time(reading, on_abandoned=self._abandoned)

    def _abandoned(self) -> None:
        log.error(
            "%s: its source ignores cancellation and is abandoned",
            self._name,
            extra={"informer": self._name},
        )

    def _end(self, *tasks: asyncio.Task[None]) -> None:
        self._note_failure(*tasks)
        self.is_over = True
        self._on_end()

    def _fail_if_cancelled(self, *tasks: asyncio.Task[None]) -> None:
        """Record a cancellation by other code as a failure."""
        for task in tasks:
            if task.done() and task.cancelled() and self.failure is None:
                self.failure = error_of(task)
                extra = {"informer": self._name}
                log.error("%s failed: %s", self._name, self.failure, extra=extra)

    def _note_failure(self, *tasks: asyncio.Task[None]) -> None:
        for task in tasks:
            error = task.exception() if task.done() and not task.cancelled() else None
            # The first failure counts: those that follow are usually its consequences.
            if error is not None and self.failure is None:
                extra = {"informer": self._name}
                log.error("%s failed: %s: %s", self._name, type(error).__name__, error, extra=extra)
                self.failure = error
