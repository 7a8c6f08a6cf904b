"""Client-go's work queue for asyncio: handlers add keys, workers take them, one at a time per key.

The decisions are in `kinform.sansio.workqueue.key_queue.WorkState`; this module waits and wakes.
One class replaces three interfaces of client-go: delays and retries cost nothing until they are
used.

Rule: between two awaits the queue is consistent. A key leaves the line in the same step in which
`WorkQueue.get` returns it, so no cancellation can come in between.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Generic, TypeVar, final

from kinform.errors import QueueShutDown, UsageError
from kinform.sansio.workqueue.key_queue import AddResult, Order, Priority, WorkState
from kinform.sansio.workqueue.rate_limiters import RateLimiter, default_controller_rate_limiter
from kinform.workqueue._delaying import DelayTimer
from kinform.workqueue.causes import MAX_CAUSES, Cause, CauseKind, Causes
from kinform.workqueue.metrics import QueueMetrics, QueueStatistics

__all__ = ["Drained", "Processing", "WorkQueue"]

K = TypeVar("K", bound=Hashable)

_NORMAL: Final = Priority.NORMAL
_QUEUED: Final = AddResult.QUEUED
_MERGED: Final = AddResult.MERGED
_NO_CAUSES: Final = Causes()
_FAIR_AFTER: Final = 64
"""After how many keys `WorkQueue.get` lets other tasks have a turn though more keys wait."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Drained(Generic[K]):
    """The keys that `WorkQueue.shut_down_with_drain` left undone."""

    delayed: tuple[K, ...]
    """Keys that were to be added later, by due time. They were dropped."""
    unfinished: tuple[K, ...]
    """Keys that wait or are processed, because of the timeout or a call of ``shut_down``."""


@final
class WorkQueue(Generic[K]):
    """A queue of keys to work on, each at most once at a time.

    Many adds of one key before it is taken are one. A key that is added while it is worked on is
    taken once more, after `done`. First come, first served, unless there is another ``order``.

    All methods belong to one event loop: call them from its thread only (from others,
    ``loop.call_soon_threadsafe(queue.add, key)``). The number of keys is not bounded: it is that of
    the distinct keys that are added, usually of the objects in a cache.

    Args:
        name: for metrics and messages.
        rate_limiter: decides how long `add_rate_limited` waits; by default
            `default_controller_rate_limiter`. It keeps counts, so it must not be shared.
        order: the order of keys; `FairOrder` for priorities and tenants. It must not be shared.
        metrics: a hook, see `QueueMetrics`; adding needs a running loop then.
        max_causes: the limit of different causes that are kept for one key.

    Raises:
        ValueError: if ``max_causes`` is negative.
    """

    __slots__ = (
        "_added_at",
        "_causes",
        "_current",
        "_drainers",
        "_getters",
        "_is_draining",
        "_is_shut_down",
        "_later",
        "_max_causes",
        "_metrics",
        "_rate_limiter",
        "_started_at",
        "_state",
        "_taken",
        "_timer",
        "name",
    )

    def __init__(
        self,
        name: str = "",
        *,
        rate_limiter: RateLimiter[K] | None = None,
        order: Order[K] | None = None,
        metrics: QueueMetrics | None = None,
        max_causes: int = MAX_CAUSES,
    ) -> None:
        if max_causes < 0:
            raise ValueError(f"max_causes is {max_causes}; expected 0 or more")
        self.name: Final = name
        self._rate_limiter = rate_limiter or default_controller_rate_limiter()
        self._metrics = metrics
        # Times for the metrics hook; empty without one. Bounded as the queue is: each key once.
        self._added_at: dict[K, float] = {}
        self._started_at: dict[K, float] = {}
        self._max_causes = max_causes
        self._state: WorkState[K] = WorkState(order)
        self._timer: DelayTimer[K] = DelayTimer(self._add_delayed)
        self._later: dict[K, tuple[Priority, Causes]] = {}  # of delayed keys
        self._causes: dict[K, Causes] = {}  # of keys that wait
        self._current: dict[K, Causes] = {}  # of keys in processing
        self._getters: deque[asyncio.Future[None]] = deque()
        self._drainers: list[asyncio.Future[None]] = []
        self._taken = 0
        self._is_shut_down = False
        self._is_draining = False  # `shut_down_with_drain` waits

    # --- putting in ---------------------------------------------------------------------------

    def add(self, key: K, *, priority: Priority = _NORMAL, cause: Cause | None = None) -> None:
        """Add ``key`` to be processed. After a shut-down it is dropped, as in client-go.

        ``priority`` has an effect only with an ``order`` that uses it.
        """
        if self._is_shut_down:
            return
        # First, because an ``order`` of the user's may raise: then nothing has happened.
        added = self._state.add(key, priority)
        if cause is not None:
            before = self._causes.get(key)
            self._causes[key] = (
                Causes((cause,), limit=self._max_causes)
                if before is None
                else before.with_more((cause,))
            )
        # Not for LATER: a worker that was woken for a key that is still processed would find
        # nothing.
        if added is _QUEUED and self._getters:
            self._wake_one()
        if self._metrics is not None and added is not _MERGED:
            # The first time counts: a key that is added again and again must not look young.
            self._added_at.setdefault(key, asyncio.get_running_loop().time())
            self._metrics.added(depth=self._state.waiting)

    def add_after(
        self,
        key: K,
        delay: float,
        *,
        priority: Priority = _NORMAL,
        cause: Cause | None = None,
    ) -> None:
        """Add ``key`` in ``delay`` seconds; at once if that is not positive.

        A key that is already to be added later keeps the earlier of the two times, the higher of
        the two priorities, and both causes. A call of `add` does not cancel the delayed one. After
        a shut-down the key is dropped; while the queue drains it is reported (`Drained.delayed`).

        Raises:
            ValueError: if ``delay`` is not a finite number.
        """
        if not math.isfinite(delay):
            raise ValueError(f"delay is {delay!r}; expected a number of seconds")
        causes = (cause or Cause(CauseKind.TIMER),)
        self._add_later(key, delay, priority=priority, causes=causes)

    def add_rate_limited(
        self, key: K, *, priority: Priority = _NORMAL, cause: Cause | None = None
    ) -> None:
        """Add ``key`` when the rate limiter says that it may be tried again.

        While it is worked on, the causes of this try stay causes of the next one.
        """
        if self._is_shut_down and not self._is_draining:
            return
        delay = self._rate_limiter.when(key, asyncio.get_running_loop().time())
        causes = (*self._current.get(key, ()), cause or Cause(CauseKind.RETRY))
        self._add_later(key, delay, priority=priority, causes=causes)

    def forget(self, key: K) -> None:
        """Reset the rate limiter's failure count of ``key``. `done` must still be called."""
        self._rate_limiter.forget(key)

    def num_requeues(self, key: K) -> int:
        """Return how many failures the rate limiter has counted."""
        return self._rate_limiter.num_requeues(key)

    # --- taking out ---------------------------------------------------------------------------

    async def get(self) -> K:
        """Wait for a key and take it; `done` must follow.

        Cancelled, it takes nothing: a key is either returned or still in the queue. While keys
        wait it lets other tasks have a turn now and then, so that workers which never wait cannot
        hold up the event loop.

        Raises:
            QueueShutDown: if the queue was shut down and nothing more will come.
        """
        state = self._state
        self._taken += 1
        if self._taken % _FAIR_AFTER == 0:
            await asyncio.sleep(0)  # work that never waits must not hold up everything else
        # A loop: between the wake-up and this task's turn, another worker may have taken the key
        # without waiting.
        while not state.waiting:
            getter = self._getter()
            try:
                await getter
            # A cancelled getter may have been woken for a key already. If it kept that wake-up, a
            # key would wait although a worker is idle.
            except BaseException:
                self._give_up(getter)
                raise
        key = state.take()
        if self._causes:
            causes = self._causes.pop(key, None)
            if causes is not None:
                self._current[key] = causes
        if self._metrics is not None:
            now = self._started_at[key] = asyncio.get_running_loop().time()
            self._metrics.started(depth=state.waiting, waited=now - self._added_at.pop(key, now))
        return key

    def done(self, key: K) -> None:
        """End the processing of ``key``. If it was added meanwhile, it is queued again, at the end.

        Raises:
            UsageError: it is not being processed: it was not taken, or is done already.
        """
        try:
            returned = self._state.done(key)
        except KeyError:
            name = f" of queue {self.name!r}" if self.name else ""
            raise UsageError(f"done({key!r}){name} without a get that returned it") from None
        if self._current:
            self._current.pop(key, None)
        # The key is in the line again: any worker may take it.
        if returned and self._getters:
            self._wake_one()
        if self._is_shut_down:
            self._wake_for_the_end()
        if self._metrics is not None:
            took = asyncio.get_running_loop().time() - self._started_at.pop(key)
            self._metrics.finished(depth=self._state.waiting, took=took)

    def processing(self) -> Processing[K]:
        """Take a key for the length of a block: ``async with queue.processing() as key``.

        However the block is left, the key is done then.
        """
        return Processing(self)

    def causes(self, key: K) -> Causes:
        """Return why ``key`` is worked on; else why it waits; else why it is to be added later."""
        found = self._current.get(key)
        if found is None and not self._state.is_processing(key):
            found = self._causes.get(key)
            if found is None and key in self._later and key not in self._state:
                found = self._later[key][1]
        return _NO_CAUSES if found is None else found

    # --- the end ------------------------------------------------------------------------------

    def shut_down(self) -> None:
        """Accept no more keys, and drop delayed ones.

        Keys that wait can still be taken; after that `get` raises. It does not wait, and ends the
        wait of `shut_down_with_drain`.
        """
        self._is_shut_down = True
        self._is_draining = False
        self._timer.stop()
        for drainer in self._drainers:
            _wake(drainer)
        if not self._drainers:  # otherwise they report the delayed keys, and then drop them
            self._drop_delayed()
        self._wake_all()

    async def shut_down_with_drain(self, timeout: float | None = None) -> Drained[K]:
        """Accept no more keys, and wait until all keys that wait or are processed are done.

        Keys added meanwhile are dropped, but a key that was added while it was processed is taken
        once more. Unlike client-go, this also waits for keys that no worker has taken yet, so there
        must be workers. It does not wait for delayed keys: they are reported, with the keys that
        workers delay meanwhile.

        It does not raise on timeout: see `Drained.unfinished`. Cancelled, the queue is shut down as
        by `shut_down`.
        """
        self._is_shut_down = self._is_draining = True
        self._timer.stop()
        self._wake_all()  # callers of `get` for which no key can come any more
        drainer = asyncio.get_running_loop().create_future()
        self._drainers.append(drainer)
        try:
            async with asyncio.timeout(timeout):
                if self._state.waiting or self._state.processing:
                    await drainer
        except TimeoutError:
            pass  # reported as `Drained.unfinished`
        finally:
            self._drainers.remove(drainer)
            # Read after the wait: workers may have delayed keys during the drain. client-go drops
            # these silently.
            delayed = tuple(self._timer.keys())
            # The last one of several drains: the others still report the same delayed keys.
            if not self._drainers:
                self._is_draining = False
                self._drop_delayed()
                self._wake_all()
        return Drained(delayed=delayed, unfinished=tuple(self._state.unfinished()))

    @property
    def is_shut_down(self) -> bool:
        """True after a shut-down; keys may still be queued."""
        return self._is_shut_down

    # --- how it stands ------------------------------------------------------------------------

    def __len__(self) -> int:
        """Return how many keys wait to be taken."""
        return self._state.waiting

    def __bool__(self) -> bool:
        return True  # it is a queue even if it is empty

    def statistics(self) -> QueueStatistics:
        """Return the current statistics."""
        now = 0.0 if self._metrics is None else asyncio.get_running_loop().time()
        running = [now - since for since in self._started_at.values()]
        return QueueStatistics(
            name=self.name,
            depth=self._state.waiting,
            processing=self._state.processing,
            delayed=len(self._timer),
            oldest_waiting=now - min(self._added_at.values(), default=now),
            unfinished_work=sum(running),
            longest_running=max(running, default=0.0),
        )

    # --- waiting and waking -------------------------------------------------------------------

    def _getter(self) -> asyncio.Future[None]:
        """Return a future that is done when there may be a key to take.

        Raises:
            QueueShutDown: no key can come any more.
        """
        # While the queue drains, a key that is being processed may be queued again. After a plain
        # shut-down the workers end all the same, as in client-go; a later get() finds such a key.
        may_come = self._state.returning if self._is_draining else not self._is_shut_down
        if not may_come:
            raise QueueShutDown(self.name)
        getter = asyncio.get_running_loop().create_future()
        self._getters.append(getter)
        return getter

    def _give_up(self, getter: asyncio.Future[None]) -> None:
        """End the wait of a caller of `get` that was cancelled."""
        if not getter.cancelled() and getter.done():
            self._wake_one()  # the key it was woken for is for another caller
        with contextlib.suppress(ValueError):  # removed already when it was woken
            self._getters.remove(getter)

    def _wake_one(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            # A getter that was cancelled may still be in the line.
            if not getter.done():
                getter.set_result(None)
                break

    def _wake_all(self) -> None:
        while self._getters:
            _wake(self._getters.popleft())

    def _wake_for_the_end(self) -> None:
        """Wake callers of `get` and of the drain that have nothing left to wait for."""
        if self._state.waiting:
            return
        # Workers that wait are kept while a key is to come back: it was added during its
        # processing, and the drain promises to deliver it once more.
        if not self._state.returning:
            self._wake_all()
        if not self._state.processing:
            for drainer in self._drainers:
                _wake(drainer)

    # --- later --------------------------------------------------------------------------------

    def _add_later(
        self, key: K, delay: float, *, priority: Priority, causes: tuple[Cause, ...]
    ) -> None:
        if self._is_shut_down and not self._is_draining:
            return
        if self._metrics is not None:
            self._metrics.retried()
        # While the queue drains, also a key without a delay goes to the timer, which is stopped: so
        # it is reported instead of dropped.
        if delay <= 0 and not self._is_shut_down:
            self._add_with(key, priority, Causes(causes, limit=self._max_causes))
            return
        self._timer.add(key, delay)
        known, before = self._later.get(key, (priority, _NO_CAUSES))
        merged = Causes(before, limit=self._max_causes).with_more(causes)
        self._later[key] = max(known, priority), merged

    def _add_delayed(self, key: K) -> None:
        priority, causes = self._later.pop(key)
        self._add_with(key, priority, causes)

    def _add_with(self, key: K, priority: Priority, causes: Causes) -> None:
        # Without ``cause``: a delayed key has several, with their counts, which are merged as a
        # whole.
        self.add(key, priority=priority)
        before = self._causes.get(key)
        self._causes[key] = (
            causes if before is None else before.with_more(causes, dropped=causes.dropped)
        )

    def _drop_delayed(self) -> None:
        self._timer.clear()
        self._later.clear()


@final
class Processing(Generic[K]):
    """The block of `WorkQueue.processing`. It may be entered once."""

    __slots__ = ("_key", "_queue")

    def __init__(self, queue: WorkQueue[K]) -> None:
        self._queue = queue
        self._key: K

    async def __aenter__(self) -> K:
        self._key = await self._queue.get()
        return self._key

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._queue.done(self._key)


def _wake(waiter: asyncio.Future[None]) -> bool:
    """Let ``waiter`` go on; return whether it still waited."""
    if waiter.done():
        return False
    waiter.set_result(None)
    return True
