"""Reflector: keeps a store equal to the server's objects, by lists and watches.

It performs the actions that `kinform.sansio.reflector.step` decides, one after the other, and
reports their outcome. `kinform.cache._reflector.intake` writes the objects to the store.

client-go: tools/cache/reflector.go.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import random
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterator,
    Mapping,
)
from typing import Any, Final, Generic, TypeVar, final

from kinform._parts import Parts
from kinform.cache._reflector.intake import Intake, TransformFunc
from kinform.cache._reflector.open_watch import OpenWatch, batches_of
from kinform.cache._reflector.paged_list import take_list
from kinform.cache._reflector.reconnect_turns import MAX_PROBE_AGE, Turns
from kinform.cache._reflector.side_tasks import beside
from kinform.cache.listwatch import ListerWatcher, source_options
from kinform.cache.reflector_options import ReflectorOptions
from kinform.cache.reflector_reports import ReflectorStatistics, Reports, Trace, WatchErrorHandler
from kinform.errors import (
    ApiError,
    DecodeError,
    KinformError,
    ResourceExpiredError,
    SourceError,
    TransportError,
    TransportFailure,
    UsageError,
)
from kinform.meta import Entry, ObjectName
from kinform.rest.options import ListOptions
from kinform.rest.results import ListResult, Received, Unreadable
from kinform.sansio.queue.interface import KnownObjects, ReflectorStore
from kinform.sansio.reflector import step
from kinform.tasks import apart

__all__ = ["Reflector"]

T = TypeVar("T")

log: Final = logging.getLogger(__name__)

END_BOOKMARK_PATIENCE: Final = 10
"""Seconds without data from a streamed list after which a warning is logged."""
END_BOOKMARK_LIMIT: Final = 30
"""Seconds without data after which it is given up: some servers send no end bookmark."""
PROBE_TIMEOUT: Final = 10.0
"""The longest time for a probe. All informers of a resource may wait for one before they watch, and
a list of one object takes milliseconds: after this time the probe has failed."""
FAIR_AFTER: Final = 16
"""Batches after which all other tasks get a turn, even if there is more to read."""


@final
class Reflector(Generic[T]):
    """Fills a store from a `ListerWatcher` and keeps it up to date through all failures.

    .. code-block:: python

        store = kinform.cache.Store()
        await kinform.cache.Reflector(lw, store).run()

    It first lists, then watches, and continues from the last applied version when a watch ends.
    It lists again only if it must. After each failure it waits by one backoff: no answer of a
    server makes it loop hot. A list is written to the store as a whole, or not at all.

    One task at a time runs it. It ends only when that task is cancelled, or by a usage error. It
    may be run again, and continues from the last applied version.

    Args:
        lw: the source of the objects.
        store: the store or the queue that they are written to.
        name: part of every log line.
        expected_kind: objects of another kind are dropped, and lists of another kind refused.
        transform: runs once for each object, before it is stored.
        settle: called with each new entry of a list, before it is stored.
        resync_period: how often the store's ``resync`` is called; ``None``: never.
        should_resync: called before each resync, which is skipped if it returns false.
        watch_error_handler: called with every failure, also with those within a watch. By default
            they are logged.
        known: the objects in the cache behind the store. With it, a relist keeps unchanged objects
            instead of holding them twice.
        wait_for_room: backpressure: called between two reads of a watch; its result is awaited
            before the next read. ``None``: there is capacity.
        options: times and sizes.
        parts: counts unexpected ends of its tasks; by default its own.
        rand: returns numbers in [0, 1), which spread waits and timeouts.

    Raises:
        UsageError: ``resync_period`` is not positive.
    """

    def __init__(
        self,
        lw: ListerWatcher[T],
        store: ReflectorStore[T],
        *,
        name: str = "reflector",
        expected_kind: str | None = None,
        transform: TransformFunc[T] | None = None,
        settle: Callable[[Entry[T]], object] | None = None,
        resync_period: float | None = None,
        should_resync: Callable[[], bool] | None = None,
        watch_error_handler: WatchErrorHandler | None = None,
        known: KnownObjects[T] | None = None,
        wait_for_room: Callable[[], Awaitable[None] | None] | None = None,
        options: ReflectorOptions | None = None,
        parts: Parts | None = None,
        rand: Callable[[], float] = random.random,
    ) -> None:
        if resync_period is not None and not resync_period > 0:
            raise UsageError(f"resync_period must be positive or None, got {resync_period!r}")
        self.name: Final = name
        self._lw = lw
        self._store = store
        self._options = options or ReflectorOptions()
        self._policy = self._options.policy
        if not source_options(lw).supports_watch_list:
            # Otherwise every list would begin with a stream that cannot succeed.
            self._policy = dataclasses.replace(self._policy, stream_lists=False)
        self._resync_period = resync_period
        self._should_resync = should_resync
        self._wait_for_room = wait_for_room
        self._rand = rand
        self._intake: Intake[T] = Intake(
            store,
            name=name,
            transform=transform,
            settle=settle,
            expected_kind=expected_kind,
            known=known,
        )
        self._state = step.State(backoff=self._options.backoff)
        self._reports = Reports(name, on_error=watch_error_handler)
        self._statistics = self._reports.statistics
        self._watch: OpenWatch | None = None
        self._refusal: KinformError | None = None  # the error of the last request
        self._turns = Turns(lw, rand=rand)
        self._parts = Parts(name) if parts is None else parts
        self._broken: BaseException | None = None  # the error of a side task that ended too often
        self._is_running = False

    # --- statistics

    @property
    def last_sync_resource_version(self) -> str:
        """The last version written to the store; ``""`` before the first list."""
        return self._intake.version

    @property
    def unreadable(self) -> Mapping[ObjectName, DecodeError]:
        """The objects that exist and cannot be read, each with its error."""
        return self._intake.unreadable

    def statistics(self) -> ReflectorStatistics:
        """Return the current statistics."""
        return dataclasses.replace(
            self._statistics,
            events=self._intake.events,
            stale_bookmarks=self._intake.stale_bookmarks,
            ignored=self._intake.ignored,
            phase=self._state.phase.name,
        )

    # --- running

    async def run(self) -> None:
        """List and watch until cancelled.

        Raises:
            UsageError: the source cannot be used in this way, which a retry would not change; or
                it is being run already.
            BaseException: one of its side tasks ended more than five times within a minute; this
                is the last error.
        """
        async with self._running():
            decision = self._decide(step.Started(self._intake.version))
            while True:
                decision = await self._follow(decision)

    async def list_and_watch(self) -> None:
        """Run one round: list, and watch until another list is needed.

        The caller waits before that list.

        Raises:
            KinformError: the list failed, or the watch could not be opened.
            UsageError: as `run`.
        """
        self._refusal = None
        async with self._running():
            decision = self._decide(step.Started(self._intake.version))
            if isinstance(decision.action, step.Wait):  # the budget of requests is used up
                decision = await self._follow(decision)
            while not self._needs_list():
                decision = await self._follow(decision)
        if self._refusal is not None:
            raise self._refusal

    def _needs_list(self) -> bool:
        phase = self._state.phase
        return isinstance(phase, step.Waiting) and phase.then == "list"

    @contextlib.asynccontextmanager
    async def _running(self) -> AsyncGenerator[None]:
        if self._is_running:
            raise UsageError(f"{self.name} is being run already; one task runs a reflector")
        self._is_running, self._broken = True, None
        try:
            # Around everything: the rate of reconnects depends on the number of informers that run,
            # also of those that wait.
            with self._turns.following():
                async with contextlib.AsyncExitStack() as stack:
                    if self._resync_period is not None:
                        await stack.enter_async_context(self._beside("resync", self._resync))
                    yield
        finally:
            self._is_running = False

    def _beside(
        self, part: str, work: Callable[[], Coroutine[object, object, None]]
    ) -> contextlib.AbstractAsyncContextManager[None]:
        return beside(self._parts, f"{self.name} {part}", work, on_failure=self._break)

    def _break(self, error: BaseException) -> None:
        """End the reflector with ``error``: one of its tasks ended too often."""
        self._broken = error
        if self._watch is not None:
            self._watch.end(reason=SourceError("a task of the reflector ended too often"))

    async def _follow(self, decision: step.Decision) -> step.Decision:
        """Perform one action, and decide the next one."""
        if self._broken is not None:
            # Here and not in `_break`, which runs in a callback of the loop, where nothing would
            # catch it.
            raise self._broken
        return await self._perform(decision.action)

    async def _perform(self, action: step.Action) -> step.Decision:
        match action:
            case step.Wait(seconds):
                self._intake.begin_list()  # frees the objects of a failed list during the wait
                await asyncio.sleep(seconds)
                return self._decide(step.Waited())
            case step.Relist():
                return await self._ask(lambda: self._list(action), to_list=True)
            case step.Probe():
                return await self._ask(self._probe)
            case step.Clear():
                return await self._ask(self._clear)
            case step.StreamList(version):
                return await self._open(action, version)
            case step.Rewatch(version):
                return await self._open(action, version)
            case None:
                raise AssertionError("only an open watch can go on")

    def _decide(self, signal: step.Signal) -> step.Decision:
        now = asyncio.get_running_loop().time()
        decision = step.step(self._state, signal, now=now, rand=self._rand(), policy=self._policy)
        self._state = decision.state
        for notice in decision.notices:
            self._reports.notice(notice)
            # Not for a list that went back: `finish_list` has compared the versions itself.
            if isinstance(notice, step.Regressed) and isinstance(signal, step.Probed):
                self._intake.distrust()
        # After a wait the next request takes its turn among all reconnects of the client.
        self._turns.is_due = self._turns.is_due or isinstance(decision.action, step.Wait)
        return decision

    def _update(self, **changes: Any) -> None:
        self._state = dataclasses.replace(self._state, **changes)

    async def _ask(
        self, work: Callable[[], Awaitable[step.Signal]], *, to_list: bool = False
    ) -> step.Decision:
        """Send a request; a failure is a signal too."""
        self._refusal = None
        await self._turns.take(to_list=to_list)
        asked = await apart(_signal_of(work))  # user code
        try:
            signal = asked.result()
        except asyncio.CancelledError as exc:
            self._refusal = self._failed(_cancelled_elsewhere(exc))
            signal = step.Failed(self._refusal)
        except Exception as exc:  # noqa: BLE001 - user code may raise anything
            self._refusal = self._failed(exc)
            signal = step.Failed(self._refusal)
        return self._decide(signal)

    def _failed(self, exc: Exception) -> KinformError:
        """Report a failure, and return it as a `KinformError`."""
        error = self._reports.failure(exc)
        if error is not exc:
            # The error has been reported. From here on it is kept for long, and its traceback
            # would keep the local variables of all its frames alive.
            exc.__traceback__ = None
        return error

    @contextlib.contextmanager
    def _counted(self, action: step.Action) -> Generator[None]:
        """Count the request of ``action`` from the end of the block on, not from its decision."""
        try:
            yield
        finally:
            now = asyncio.get_running_loop().time()
            self._state = step.counted(self._state, action, now=now)

    # --- lists

    async def _list(self, action: step.Relist) -> step.Signal:
        version = action.resource_version
        in_pages = not source_options(self._lw).disable_chunking
        options = ListOptions(
            resource_version=version,
            resource_version_match="NotOlderThan" if version else None,
            limit=action.page_size if in_pages else None,
        )
        self._statistics.lists += 1
        self._put_off_probe()
        loop = asyncio.get_running_loop()
        began = loop.time()
        trace = Trace(f"{self.name}: list")

        def note(page: ListResult[T]) -> None:
            self._reports.heard()
            trace.step(f"a page of {len(page)} objects")

        with self._counted(action):
            taken = await take_list(self._lw, self._intake, options, on_page=note)
            if taken is None:
                # Pages of two versions are not a list: list everything again in one piece, and so
                # from now on until such a list is complete (client-go: FullListIfExpired).
                self._state = step.pages_expired(self._state)
                whole = dataclasses.replace(options, limit=None)
                taken = await take_list(self._lw, self._intake, whole, on_page=note)
                assert taken is not None, "a list in one piece has no token that could expire"
        trace.step(f"{self._intake.finish_list(taken.resource_version)} objects stored")
        # From now on an older version from a probe is a regression, if the probe is sent later.
        self._turns.learned(taken.resource_version)
        self._update(corrupted=self._state.corrupted.cleared())
        trace.end()
        # A server with a watch cache answers version 0 in one piece: pages show that it has none.
        is_paginated = version == "0" and (taken.pages > 1 or self._state.list_mode.is_whole)
        took = loop.time() - began
        return step.Listed(taken.resource_version, paginated=is_paginated, took=took)

    async def _probe(self) -> step.Signal:
        loop = asyncio.get_running_loop()
        if (left := self._state.probe_timer.not_before - loop.time()) > 0:
            await asyncio.sleep(left)
        # Both before the request: the watch beside it may apply newer versions meanwhile, and these
        # say nothing about an answer that was on its way.
        applied, now = self._intake.version, loop.time()
        max_age = self._max_probe_age()
        self._put_off_probe()
        try:
            with self._counted(step.Probe()):
                answer = await self._turns.probe(self._send_probe, applied, max_age=max_age)
        except ApiError as exc:
            timer = self._state.probe_timer
            timer = timer.refused(now=loop.time(), retry_after=exc.retry_after or 0.0)
            self._update(probe_timer=timer)
            raise
        # The probe may be another informer's, which sent it some time ago.
        self._update(probe_timer=self._state.probe_timer.shared(now - answer.started))
        return step.Probed(answer.version, answer.applied, answer.is_stale)

    def _max_probe_age(self) -> float | None:
        """Return the greatest age of a shared probe; ``None`` before a watch is opened."""
        if self._watch is None:
            return None
        if self._state.health.needs_probe:
            return MAX_PROBE_AGE
        # A fifth of the period: with it, open watches of one resource share their probes, and a
        # restore is still noticed by all of them within 340 s.
        return (self._options.probe_period or 0.0) / 5

    async def _send_probe(self) -> str:
        """Request the server's version: a list of one object with the version unset."""
        self._statistics.probes += 1
        limit = asyncio.timeout(PROBE_TIMEOUT)
        try:
            async with limit:
                return (await self._lw.list(ListOptions(limit=1))).resource_version
        except (TimeoutError, asyncio.CancelledError):
            # A timeout may raise either of the two: asyncio.timeout() relies on Task.cancelling(),
            # which user code may change.
            if not limit.expired():
                raise
            text = f"the server did not answer a probe within {PROBE_TIMEOUT:g} s"
            raise TransportError(text, failure=TransportFailure.TIMEOUT) from None

    def _put_off_probe(self) -> None:
        """Schedule the next probe from now on: this request shows the version as well."""
        now, period = asyncio.get_running_loop().time(), self._options.probe_period or 0.0
        timer = self._state.probe_timer.put_off(now=now, rand=self._rand(), period=period)
        self._update(probe_timer=timer)

    async def _clear(self) -> step.Signal:
        self._intake.begin_list()
        # An ordinary list without objects, so that handlers receive a tombstone of each.
        self._intake.finish_list("")
        return step.Cleared()

    # --- watches

    async def _open(self, action: step.StreamList | step.Rewatch, version: str) -> step.Decision:
        """Run one watch from its opening to its end."""
        is_list = isinstance(action, step.StreamList)
        # client-go: 5 to 10 minutes at random, so that watches which began together do not end
        # together.
        timeout = max(1, round(self._options.watch_timeout * (1 + self._rand())))
        await self._turns.take(to_list=is_list)
        # After the turn: its timeout and its deadline begin here, and a turn may take many seconds.
        watch = self._watch = OpenWatch(version, is_list=is_list, timeout=timeout)
        self._refusal = None
        self._statistics.watches += 1
        self._statistics.lists += is_list
        if self._state.health.needs_probe:
            self._update(probe_timer=self._state.probe_timer.overdue(watch.started))
        self._intake.begin_list(reuse=True)
        self._intake.begin_watch(version)
        events = self._intake.events
        try:
            # User code in a task of its own: a cancellation that it leaves there is not our stop.
            watched = await apart(self._run_watch(watch, action), on_cancel=watch.stop)
            failure = _cancelled_elsewhere() if watched.cancelled() else watched.result()
        finally:
            if watch.repair_timer is not None:
                watch.repair_timer.cancel()
            self._watch, self._statistics.is_connected = None, False
        self._note_end(watch, failure)
        # A probe beside the watch has decided already. To decide about its end as well would count
        # one loss twice.
        if watch.decision is not None:
            return watch.decision
        # We ended it ourselves: not a failure, and not for the watch error handler.
        if watch.repairs:
            log.info("%s: %s", self.name, failure)
            failure = None
        error = None if failure is None else self._failed(failure)
        if error is not None and not watch.is_open:
            self._refusal = error
            return self._decide(step.Failed(error))
        return self._decide(self._ended(watch, error, events=self._intake.events - events))

    async def _run_watch(
        self, watch: OpenWatch, action: step.StreamList | step.Rewatch
    ) -> Exception | None:
        """Open a watch and read it to its end; return the failure that ended it, if any."""
        failure: Exception | None = None
        try:
            async with (
                watch.limit,
                self._opening(watch, action) as stream,
                self._beside("probes", lambda: self._probe_when_due(watch)),
            ):
                watch.opened()
                self._statistics.is_connected = True
                watch.hear(self._reports.heard())
                self._repair_later(watch)
                try:
                    await self._read(watch, stream)
                # Caught here, so that a failure while the watch is closed does not replace it.
                except asyncio.CancelledError as exc:
                    watch.check()  # re-raised: the limit is handled outside
                    failure = _cancelled_elsewhere(exc)
                except Exception as exc:  # noqa: BLE001 - user code may raise anything
                    failure = watch.cause_of(exc)
        except asyncio.CancelledError as exc:
            failure = failure or watch.cause_of(_cancelled_elsewhere(exc))
        except Exception as exc:  # noqa: BLE001 - user code may raise anything
            failure = failure or watch.cause_of(exc)
        return failure or watch.cause_of(None)

    @contextlib.asynccontextmanager
    async def _opening(
        self, watch: OpenWatch, action: step.StreamList | step.Rewatch
    ) -> AsyncGenerator[AsyncIterable[Received[T]]]:
        async with contextlib.AsyncExitStack() as stack:
            with self._counted(action):
                stream = await stack.enter_async_context(self._lw.watch(watch.options))
            yield stream

    def _ended(self, watch: OpenWatch, error: KinformError | None, *, events: int) -> step.Ended:
        # By our own clock: a server cannot claim it, so it cannot make us reopen without a turn and
        # a probe.
        reached_timeout = error is None and watch.reached_timeout()
        return step.Ended(
            resource_version=self._intake.version,
            lived=watch.lived(),
            events=events,
            error=error,
            reached_timeout=reached_timeout,
            repairs=watch.repairs,
        )

    def _note_end(self, watch: OpenWatch, failure: Exception | None) -> None:
        """Make the next watch wait for its turn, unless this one lasted until its timeout."""
        # Before the next probe: one that another informer has sent while this watch was open may be
        # older than what it brought.
        self._turns.learned(self._intake.version)
        if failure is None and watch.reached_timeout():
            self._turns.kept()
            return
        is_answer = isinstance(failure, ApiError) and (
            isinstance(failure, ResourceExpiredError) or failure.is_resource_version_too_large
        )
        self._turns.lost(cleanly=failure is None, is_answer=is_answer)

    async def _read(self, watch: OpenWatch, stream: AsyncIterable[Received[T]]) -> None:
        idle, bookmarks, turns = self._options.idle_timeout, self._intake.bookmarks, 0
        # The first bookmark may be the end of a streamed list, and the only one of a resource
        # without a watch cache (events). A server that sends a second one sends them periodically,
        # so from there on silence means that the connection is dead.
        watch.check()
        # Closed explicitly: an async generator that is only dropped is finalized by the loop later,
        # with the connection still open.
        async with contextlib.aclosing(batches_of(stream)) as batches:
            async for batch in batches:
                watch.check()
                watch.hear(self._reports.heard())
                self._take(watch, iter(batch))
                if idle is not None and self._intake.bookmarks > bookmarks + 1:
                    watch.arm(idle)
                    idle = None
                # Not during a streamed list, which goes to a temporary list and not to the queue.
                room = self._wait_for_room() if self._wait_for_room and not watch.is_list else None
                if room is not None:
                    # The time for which our own queue is full must not count as silence of the
                    # server.
                    watch.pause()
                    await room
                    watch.resume()
                turns += 1
                if turns % FAIR_AFTER == 0:
                    await asyncio.sleep(0)

    def _take(self, watch: OpenWatch, batch: Iterator[Received[T] | Unreadable]) -> None:
        if watch.is_list:
            end = self._intake.add_streamed(batch)
            if end is None:
                return
            self._intake.finish_list(end)
            self._turns.learned(end)
            self._intake.begin_watch(end)
            self._update(corrupted=self._state.corrupted.cleared())
            self._put_off_probe()
            watch.end_list()
            # Its action is always "go on": the rest of the batch holds the first events of the
            # watch.
            self._decide(step.Streamed(end))
        self._intake.write(batch)
        self._repair_later(watch)

    def _repair_later(self, watch: OpenWatch) -> None:
        """Schedule a list for corrupted objects: no watch brings them again."""
        if not self._intake.has_corrupted:
            if self._state.corrupted.due is not None:
                self._update(corrupted=self._state.corrupted.cleared())
            return
        if watch.is_list:
            return
        loop = asyncio.get_running_loop()
        if self._state.corrupted.due is None:  # else it was scheduled during an earlier watch
            seen = self._state.corrupted.seen(now=loop.time(), rand=self._rand())
            self._update(corrupted=seen)
        if watch.repair_timer is None:
            due = self._state.corrupted.due
            assert due is not None
            watch.repair_timer = loop.call_at(due, self._repair, watch)

    def _repair(self, watch: OpenWatch) -> None:
        watch.repair_timer = None
        is_due = self._state.corrupted.due is not None
        self._update(corrupted=self._state.corrupted.cleared())
        if is_due and not watch.has_ended:
            watch.repairs = True
            watch.end(reason=DecodeError("corrupted objects are listed again"))

    async def _probe_when_due(self, watch: OpenWatch) -> None:
        """Watch for silence of a streamed list, then send the probes that are due."""
        loop = asyncio.get_running_loop()
        # client-go waits for the end bookmark, or streams again, for ever (kubernetes#140890): some
        # servers never send it.
        while watch.is_list and not watch.has_ended:
            await watch.wait_listed(END_BOOKMARK_PATIENCE)
            self._check_silence(watch, round(loop.time() - watch.heard))
        while not watch.has_ended and (
            self._options.probe_period or self._state.health.needs_probe
        ):
            await asyncio.sleep(self._state.probe_timer.due - loop.time())
            await self._probe_beside(watch)

    def _check_silence(self, watch: OpenWatch, silence: int) -> None:
        """Log a warning for a silent streamed list, and end it after `END_BOOKMARK_LIMIT`."""
        if not watch.is_list or silence < END_BOOKMARK_PATIENCE:
            return
        text = f"the streamed list has been silent for {silence} s"
        log.warning("%s: %s", self.name, text)
        if silence >= END_BOOKMARK_LIMIT:
            watch.end(reason=TransportError(text, failure=TransportFailure.TIMEOUT))

    async def _probe_beside(self, watch: OpenWatch) -> None:
        await self._wait_for_budget()
        asked = await apart(self._probe())  # the source's code
        try:
            probed = asked.result()
        except asyncio.CancelledError:
            log.info("%s: probe of the server's version was cancelled", self.name)
        except Exception as exc:  # noqa: BLE001 - user code may raise anything
            log.info("%s: probe of the server's version failed: %s", self.name, exc)
        else:
            self._apply_probe(watch, probed)
            return
        if self._state.health.needs_probe:
            now = asyncio.get_running_loop().time()
            self._update(probe_timer=self._state.probe_timer.failed(now=now, rand=self._rand()))

    async def _wait_for_budget(self) -> None:
        """Wait until the budget allows a probe beside a watch."""
        loop = asyncio.get_running_loop()
        while True:
            self._state, wait = step.probe_wait(self._state, now=loop.time())
            if not wait:
                return
            await asyncio.sleep(wait)

    def _apply_probe(self, watch: OpenWatch, probed: step.Signal) -> None:
        # The answer may come after the end of its watch. The state has moved on then, and has its
        # own probe.
        if watch.has_ended:
            return
        self._reports.heard()
        decision = self._decide(probed)
        if decision.action is not None:
            watch.end(decision=decision)

    # --- resync

    async def _resync(self) -> None:
        while (period := self._resync_period) is not None:
            await asyncio.sleep(period)
            # client-go: no resync before the first sync. It would deliver a part of the objects as
            # all of them.
            if not self._state.has_listed:
                continue
            try:
                if self._should_resync is None or self._should_resync():
                    self._store.resync()
            except Exception as exc:  # noqa: BLE001 - user code may raise anything
                failure = SourceError(f"resync raised {type(exc).__name__}")
                failure.__cause__ = exc.with_traceback(None)
                if self._watch is None or self._watch.is_list:
                    self._reports.failure(failure)
                else:
                    # client-go ends ListAndWatch as well.
                    self._watch.end(reason=failure)


async def _signal_of(work: Callable[[], Awaitable[step.Signal]]) -> step.Signal:
    return await work()


def _cancelled_elsewhere(exc: asyncio.CancelledError | None = None) -> SourceError:
    """Return the error of a request that was cancelled, though the reflector was not."""
    error = SourceError("list or watch awaited something that was cancelled elsewhere")
    error.__cause__ = None if exc is None else exc.with_traceback(None)
    return error
