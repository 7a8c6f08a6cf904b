"""Parts: the long-lived tasks of a manager or an informer, restarted when they end unexpectedly.

Workers, the tasks that call handlers, reflectors and sources are parts. A part that ends for any
reason but a stop is an error: it is logged and counted, readiness fails for a minute, and the part
is started again. More than five such ends within a minute are raised, by `Parts.keep_running` and
by `Parts.failed`, which ends the manager.

A manager's `Parts` counts the ends of all parts within it: an informer or a controller that is
started in one of the manager's tasks finds it by a context variable (`Parts.join`).
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import random
from collections.abc import Callable, Coroutine
from typing import Final, NoReturn, final

from kinform.errors import UsageError
from kinform.sansio.backoff import Backoff
from kinform.sansio.part_failures import WINDOW, PartEnd, PartEnds
from kinform.tasks import apart

__all__ = ["Parts", "error_of"]

log: Final = logging.getLogger(__name__)

_owner: Final = contextvars.ContextVar["Parts | None"]("kinform_parts", default=None)
"""The `Parts` of the manager that runs this task."""


@final
class Parts:
    """Keeps the parts of one owner running, and counts their unexpected ends.

    Args:
        name: the owner's, for the log.
        label: the owner's in reports that anyone may read; by default its name.
    """

    def __init__(self, name: str, *, label: str | None = None) -> None:
        self.name: Final = name
        self.label: Final = name if label is None else label
        self._ends = PartEnds()
        self._parent: Parts | None = None
        self._unusable: dict[str, BaseException] = {}
        self._failure: BaseException | None = None
        self._has_failed = asyncio.Event()

    @property
    def unexpected_ends(self) -> int:
        """The number of times that a part ended for another reason than a stop."""
        return self._ends.total

    # --- ownership

    def own_context(self) -> None:
        """Become the owner of all `Parts` that join in this task, or in tasks started by it."""
        _owner.set(self)

    def join(self) -> None:
        """Report unexpected ends also to the `Parts` that owns this task's context, if any."""
        owner = _owner.get()
        self._parent = None if owner is self else owner

    # --- keeping parts running

    async def keep_running(
        self,
        part: str,
        work: Callable[[], Coroutine[object, object, None]],
        *,
        backs_off: bool = True,
        fatal: tuple[type[Exception], ...] = (),
    ) -> None:
        """Run ``work()`` until it returns; if it ends otherwise, report that and run it again.

        Args:
            part: the name of the part, and of its task.
            work: is called again for each run.
            backs_off: whether to wait before another run, with exponential backoff.
            fatal: errors that another run cannot fix. They are raised.

        Raises:
            BaseException: an error that must end the process, a ``fatal`` error, or the error of
                the last end when there were too many.
        """
        loop = asyncio.get_running_loop()
        backoff = Backoff()
        while True:
            began = loop.time()
            ended = await apart(work(), name=part)
            failure = None if ended.cancelled() else ended.exception()
            if failure is None and not ended.cancelled():
                return
            if failure is not None and (
                not isinstance(failure, Exception) or isinstance(failure, fatal)
            ):
                raise failure
            self.report(part, error_of(ended))
            if backs_off:
                backoff = backoff.healthy() if loop.time() - began > WINDOW else backoff
                await asyncio.sleep(backoff.delay(rand=random.random()))
                backoff = backoff.failed()

    def report(self, part: str, error: BaseException | None) -> None:
        """Log and count the unexpected end of a part.

        Args:
            part: the name of the part.
            error: why it ended.

        Raises:
            BaseException: ``error``, if there were too many such ends.
        """
        if error is None:
            error = UsageError(f"{part} ended without an error")
        log.error(
            "part ended unexpectedly: %s: %s: %s",
            part,
            type(error).__name__,
            error,
            exc_info=error,
            extra={"part": part, "owner": self.name},
        )
        shown = part.replace(self.name, self.label)  # a name may hold a namespace and selectors
        end = PartEnd(shown, error, asyncio.get_running_loop().time())
        if self._note(end):
            raise error

    def _note(self, end: PartEnd) -> bool:
        is_too_often = self._ends.note(end)
        if is_too_often and self._failure is None:
            self._failure = end.error
            self._has_failed.set()
        if self._parent is not None:
            return self._parent._note(end)  # noqa: SLF001 - of the same class
        return is_too_often

    def give_up(self, part: str, error: BaseException) -> None:
        """Record that a part cannot run at all: `problem` reports it from now on."""
        self._ends.total += 1
        self._unusable[part] = error
        if self._parent is not None:
            self._parent.give_up(part, error)

    async def failed(self) -> NoReturn:
        """Wait until there were too many unexpected ends, and raise the error of the last one."""
        await self._has_failed.wait()
        assert self._failure is not None
        raise self._failure

    # --- health

    def problem(self) -> str | None:
        """Return one sentence about parts that cannot run or ended within the last minute.

        It names no objects and quotes no error: unauthenticated clients may read readiness.
        """
        for part, error in self._unusable.items():
            return f"{part} cannot run: {type(error).__name__}; see the log"
        recent = self._ends.recent(asyncio.get_running_loop().time())
        if not recent:
            return None
        last = recent[-1]
        count = f"{len(recent)} parts" if len(recent) > 1 else "a part"
        return (
            f"{count} ended unexpectedly within the last minute, last {last.part}: "
            f"{type(last.error).__name__}; see the log"
        )


def error_of(ended: asyncio.Task[None]) -> BaseException | None:
    """Return the error that ended a task; ``None`` if it returned.

    A cancellation is a `UsageError`: kinform does not cancel its own parts in this way.
    """
    if ended.cancelled():
        return UsageError(
            f"the task {ended.get_name()!r} was cancelled from outside kinform; stop the manager "
            "or the informer instead"
        )
    return ended.exception()
