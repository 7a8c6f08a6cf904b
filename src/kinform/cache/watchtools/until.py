"""Waiting for changes: `until` the events of a watch meet a sequence of conditions.

If a program has an informer anyway, `SharedInformer.wait_for` is simpler.

client-go: tools/watch/until.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Callable, Sequence
from typing import Generic, TypeAlias, TypeVar, final

from kinform.cache.lister import Lister
from kinform.cache.listwatch import ListerWatcher
from kinform.cache.processor.events import Event
from kinform.cache.shared_informer import SharedInformer
from kinform.cache.watchtools.retry_watcher import RetryWatcher
from kinform.errors import KinformError, UsageError
from kinform.rest.results import Received, WatchEvent

__all__ = [
    "Condition",
    "UnmetConditionError",
    "WaitTimeoutError",
    "WatchClosedError",
    "until",
    "until_with_sync",
    "until_without_retry",
]

T = TypeVar("T")
E = TypeVar("E")

Condition: TypeAlias = Callable[[WatchEvent[T]], bool]
"""Returns whether an event meets the condition. Its exceptions end the wait."""


class UnmetConditionError(KinformError):
    """A wait has ended before every condition was met."""

    met: int
    """The number of conditions that were met."""
    last_event: object | None
    """The last event, or ``None``."""

    def __init__(self, message: str, *, met: int = 0, last_event: object | None = None) -> None:
        super().__init__(message)
        self.met = met
        self.last_event = last_event


class WatchClosedError(UnmetConditionError):
    """The watch ended before every condition was met."""


class WaitTimeoutError(UnmetConditionError, TimeoutError):
    """The timeout expired before every condition was met."""


async def until(
    lw: ListerWatcher[T],
    resource_version: str,
    *conditions: Condition[T],
    timeout: float | None = None,
) -> WatchEvent[T]:
    """Watch from a version on until every condition was met; return the last event.

    .. code-block:: python

        await until(lw, pod.resource_version, lambda e: e.object.at("status", "phase") == "Running")

    Conditions are met one after the other; one event may meet several. The watch is resumed as
    `RetryWatcher` does: no change after ``resource_version`` is missed.

    Raises:
        WaitTimeoutError: it takes longer than ``timeout`` seconds; a `TimeoutError`, with the
            last event.
        ResourceExpiredError: the version has expired, so changes may be missed; list again.
        ForbiddenError: the server refuses the watch; likewise `UnauthorizedError`.
        UsageError: no condition is given, or the version is ``""`` or ``"0"``.
        Exception: an exception of a condition.
    """
    async with RetryWatcher(lw, resource_version) as events:
        return await until_without_retry(events, *conditions, timeout=timeout)


async def until_without_retry(
    events: AsyncIterable[Received[T]],
    *conditions: Condition[T],
    timeout: float | None = None,
) -> WatchEvent[T]:
    """Read an open watch until every condition was met; return the last event.

    As `until`, but it ends with the watch. Bookmarks are skipped. Later events stay unread in the
    watch.

    Raises:
        WatchClosedError: the watch ended first; with the last event.
        WaitTimeoutError: it takes longer than ``timeout`` seconds; a `TimeoutError`, with the
            last event.
        UsageError: no condition is given.
        Exception: an exception of a condition or of the watch.
    """
    if not conditions:
        raise UsageError("no condition is given; expected at least one")
    progress: _Progress[WatchEvent[T]] = _Progress(conditions)
    limit = asyncio.timeout(timeout)
    try:
        async with limit:
            async for event in events:
                if isinstance(event, WatchEvent) and progress.is_done_with(event):
                    return event
    except TimeoutError as exc:
        if not limit.expired():
            raise
        raise progress.timed_out(timeout) from exc
    unmet = f"the watch ended when {progress} were met"
    raise WatchClosedError(unmet, met=progress.met, last_event=progress.last_event)


async def until_with_sync(
    lw: ListerWatcher[T],
    *conditions: Callable[[Event[T]], bool],
    precondition: Callable[[Lister[T]], bool] | None = None,
    timeout: float | None = None,
) -> Event[T] | None:
    """Follow objects with an informer until every condition was met; return the last event.

    Unlike `until` it needs no version, and an expired version does not end it. In return it sees
    states rather than every change: an object that was created and deleted between two lists
    meets no condition. It begins with every existing object, as `Added`.

    ``precondition`` is called once with the synced cache; if it returns true, ``None`` is returned
    at once.

    Raises:
        WaitTimeoutError: it takes longer than ``timeout`` seconds; a `TimeoutError`, with the
            last event.
        UsageError: no condition is given.
        Exception: an exception of a condition.
    """
    if not conditions:
        raise UsageError("no condition is given; expected at least one")
    progress: _Progress[Event[T]] = _Progress(conditions)
    informer = SharedInformer(lw, name="until_with_sync")
    events = informer.events()
    limit = asyncio.timeout(timeout)
    try:
        async with limit, informer:
            if precondition is not None:
                await informer.wait_synced()
                if precondition(informer.lister):
                    return None
            async for event in events:
                if progress.is_done_with(event):
                    return event
    except TimeoutError as exc:
        if not limit.expired():
            raise
        raise progress.timed_out(timeout) from exc
    raise AssertionError("the events of a running informer never end")


@final
class _Progress(Generic[E]):
    """The number of conditions that were met, and the last event."""

    def __init__(self, conditions: Sequence[Callable[[E], bool]]) -> None:
        self._conditions = conditions
        self.met = 0
        self.last_event: E | None = None

    def is_done_with(self, event: E) -> bool:
        """Check ``event`` against the conditions that are left; return whether all are met."""
        self.last_event = event
        # One event may meet several conditions in a row, as in client-go.
        while self._conditions[self.met](event):
            self.met += 1
            if self.met == len(self._conditions):
                return True
        return False

    def timed_out(self, timeout: float | None) -> WaitTimeoutError:
        """Return the error for a wait that took too long."""
        unmet = f"only {self} were met within {timeout} s"
        return WaitTimeoutError(unmet, met=self.met, last_event=self.last_event)

    def __str__(self) -> str:
        return f"{self.met} of {len(self._conditions)} conditions"
