"""Lifetime: how an informer starts, fails and stops.

Two things run: one that reads (and fills the cache), one that tells (and calls handlers). Reading
ends first, so that whoever is told of something finds it in the cache; then callbacks that run
have their grace. What ignores its cancellation is named in the log and left behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
from collections.abc import Callable, Coroutine
from typing import Final, Protocol, final

from kinform.errors import UsageError
from kinform.parts import error_of
from kinform.tasks import background, waits

__all__ = ["GRACE", "Lifetime", "Telling"]

log: Final = logging.getLogger(__name__)

GRACE: Final = 5.0
"""How long callbacks that run when an informer is stopped may take to finish."""
PATIENCE: Final = 0.25
"""How long a source may take to end once it is cancelled."""

_told_by: Final = contextvars.ContextVar[object]("kinform_told_by", default=None)
"""The lifetime whose callback this is, or has started this."""


class Telling(Protocol):
    """What tells: a `Processor`."""

    async def run(self) -> None:
        """Call handlers until stopped or cancelled."""
        ...

    def close(self) -> None:
        """Call no more; those that run go on."""
        ...

    async def stop(self, grace: float) -> None:
        """Call no more; those that run have ``grace`` seconds."""
        ...


@final
class Lifetime:
    """One start, one end. Belongs to the event loop in which it is started.

    Args:
        name: whose life it is.
        read: what reads; it ends by cancellation or failure only.
        telling: what tells.
        on_reading_over: called when reading is over, before the last callbacks are.
        on_end: called once or more at the end, when `failure` is known.
    """

    def __init__(
        self,
        name: str,
        read: Callable[[], Coroutine[object, object, None]],
        telling: Telling,
        *,
        on_reading_over: Callable[[], None],
        on_end: Callable[[], None],
    ) -> None:
        self._name = name
        self._read = read
        self._telling = telling
        self._on_reading_over = on_reading_over
        self._on_end = on_end
        self._stop_asked = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_cancelled = False
        self.loop: asyncio.AbstractEventLoop | None = None
        self.grace: float = GRACE
        self.failure: BaseException | None = None
        self.is_over: bool = False

    @property
    def is_started(self) -> bool:
        """Whether it has begun; stays true."""
        return self._task is not None

    @property
    def is_ending(self) -> bool:
        """Whether the end was asked for, or has come; stays true."""
        return self.is_over or self._stop_asked.is_set()

    def start(self) -> None:
        """Begin.

        Raises:
            UsageError: it has begun before, or has ended.
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
        """End: see `SharedInformer.stop`."""
        if self._task is None:
            self._stop_asked.set()
            self._end()
            await self._telling.stop(grace)  # lets streams end; no callback has begun
        elif not self._task.done():
            self.refuse_foreign_loop()
            if not self._stop_asked.is_set():
                self.grace = grace
                self._stop_asked.set()
                self._telling.close()
            if _told_by.get() is not self:
                await self._join(self._task)

    def own_context(self) -> contextvars.Context:
        """Return a context for callbacks: `stop`, called there, does not wait for them."""
        context = contextvars.copy_context()
        context.run(_told_by.set, self)
        return context

    def refuse_if_idle(self) -> None:
        """Refuse to wait for what will never come.

        Raises:
            UsageError: it was not started.
        """
        if self._task is None and not self.is_over:
            raise UsageError(
                f"{self._name} was not started: async with informer (or await factory.start())"
            )

    def refuse_own_callbacks(self) -> None:
        """Refuse to let a callback wait for its own end.

        Raises:
            UsageError: it is one, or was started by one.
        """
        if _told_by.get() is self:
            raise UsageError(
                f"a handler of {self._name} cannot wait for the end of {self._name}, which waits "
                "for the handler; stop() there only asks for it"
            )

    def stopped_error(self) -> Exception:
        """Return the error for a task that waits: the failure, or that the informer has stopped."""
        if isinstance(self.failure, Exception):
            return self.failure
        stopped = UsageError(f"{self._name} has stopped")
        stopped.__cause__ = self.failure
        return stopped

    def refuse_unless_usable(self, what: str) -> None:
        """Refuse what cannot be done any more, or not from here.

        Raises:
            UsageError: it has stopped, or runs in another event loop.
        """
        if self.is_ending:
            raise UsageError(f"{self._name}: {what} because it has stopped already")
        self.refuse_foreign_loop()

    def refuse_foreign_loop(self) -> None:
        """Refuse whatever comes from another event loop or thread.

        Raises:
            UsageError: it does.
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
        """Wait until ``task`` is done; cancelled, cancel it, and wait all the same."""
        try:
            await self._telling.stop(self.grace)  # from this moment no callback begins
            await asyncio.wait([task])
        except asyncio.CancelledError:
            if not self._is_cancelled:  # once: a second time would keep it from waiting itself
                self._is_cancelled = True
                task.cancel()
            while not task.done():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait([task])
            raise

    async def _supervise(self) -> None:
        tasks: list[asyncio.Task[None]] = []
        try:
            async with background(self._tell()) as telling:
                tasks.append(telling)
                await self._read_until_asked(tasks)
                self._end(*tasks)
                await self._telling.stop(self.grace)
        finally:
            self._end(*tasks)

    async def _tell(self) -> None:
        _told_by.set(self)  # for this task, and those it starts
        await self._telling.run()

    async def _read_until_asked(self, tasks: list[asyncio.Task[None]]) -> None:
        """Read until somebody wants it to stop, or one of ``tasks`` ends."""
        loop = asyncio.get_running_loop()
        reading = loop.create_task(self._read(), name=f"kinform {self._name} reading")
        tasks.append(reading)
        try:
            async with background(self._stop_asked.wait()) as asked:
                await asyncio.wait([*tasks, asked], return_when=asyncio.FIRST_COMPLETED)
            if not self._stop_asked.is_set():
                self._fail_if_cancelled(*tasks)
        finally:
            self._note_failure(*tasks)  # before streams end, which may have to tell it
            reading.cancel()
            self._on_reading_over()
            async with background(self._telling.stop(self.grace)):
                await self._part_with(reading)

    async def _part_with(self, reading: asyncio.Task[None]) -> None:
        reading.add_done_callback(_take_note)
        is_cancelled = False
        for left in waits(PATIENCE):
            if reading.done():
                break
            try:
                await asyncio.wait([reading], timeout=left)
            except asyncio.CancelledError:
                is_cancelled = True
        if not reading.done():
            log.error("%s: its source ignores cancellation and is abandoned", self._name)
        if is_cancelled:
            raise asyncio.CancelledError

    def _end(self, *tasks: asyncio.Task[None]) -> None:
        self._note_failure(*tasks)
        self.is_over = True
        self._on_end()

    def _fail_if_cancelled(self, *tasks: asyncio.Task[None]) -> None:
        """Make a failure of a cancellation that is neither a stop nor our own."""
        for task in tasks:
            if task.done() and task.cancelled() and self.failure is None:
                self.failure = error_of(task)
                log.error("%s ends: %s", self._name, self.failure)

    def _note_failure(self, *tasks: asyncio.Task[None]) -> None:
        for task in tasks:
            error = task.exception() if task.done() and not task.cancelled() else None
            if error is not None and self.failure is None:
                log.error("%s ends: %s: %s", self._name, type(error).__name__, error)
                self.failure = error


def _take_note(task: asyncio.Task[None]) -> None:
    """Look at how it ended: nobody else may be there any more to do so."""
    if not task.cancelled():
        task.exception()
