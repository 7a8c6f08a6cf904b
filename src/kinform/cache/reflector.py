"""Reflector: keeps a store equal to what the server has, by listing and watching for ever.

It performs what `kinform.sansio.relist` decides, one action after the other, and tells it what
came of each. What happens to the objects on the way stands in `kinform.cache.intake`.

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
    Generator,
    Iterator,
    Mapping,
)
from typing import Final, Generic, TypeVar, final

from kinform.cache.intake import Intake, TransformFunc
from kinform.cache.listing import take_list
from kinform.cache.listwatch import ListerWatcher, source_options
from kinform.cache.open_watch import OpenWatch, batches_of
from kinform.cache.options import ReflectorOptions
from kinform.cache.reports import ReflectorStatistics, Reports, Trace, WatchErrorHandler
from kinform.cache.turns import MAX_PROBE_AGE, Turns
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
from kinform.sansio import relist
from kinform.sansio.queue import KnownObjects, ReflectorStore
from kinform.sansio.retry import MAX_RETRY_AFTER
from kinform.tasks import apart, background

__all__ = ["Reflector"]

T = TypeVar("T")

log: Final = logging.getLogger(__name__)

END_BOOKMARK_PATIENCE: Final = 10
"""After how much silence of a streamed list somebody should hear of it."""
END_BOOKMARK_LIMIT: Final = 30
"""After how much silence it is given up: some servers know nothing of end bookmarks."""
LOOK_TIMEOUT: Final = 60.0
"""How long a look at the server's version may take: longer than its own limit makes no sense."""
LOOK_AGAIN: Final = 30.0
"""After how long a look at the server's version that failed is taken again, if it is overdue."""
FAIR_AFTER: Final = 16
"""After how many batches all other tasks get a turn, even if there is more to read."""


@final
class Reflector(Generic[T]):
    """Fills a store from a `ListerWatcher` and keeps it up to date, whatever happens.

    .. code-block:: python

        store = kinform.cache.Store()
        await kinform.cache.Reflector(lw, store).run()

    It first lists, then watches, and goes on from the last version applied whenever a watch ends.
    It lists again only when it must. Every failure is waited out with one back-off: no answer of
    a server makes it loop hot. A list is written to the store as a whole, or not at all.

    It is run by one task at a time, and ends only when that task is cancelled, or by an error in
    the way it is used. It may be run again, and goes on from what it has.

    Args:
        lw: where the objects come from.
        store: where they go; a queue, or a store.
        name: stands in every line it logs.
        expected_kind: objects of another kind are left out (and lists of another kind refused).
        transform: runs once for each object, before it is stored.
        settle: is shown each entry of a list that is new, before it is stored.
        resync_period: how often the store's ``resync`` is called; ``None``: never.
        should_resync: asked each time before that.
        watch_error_handler: told of every failure, also of those within a watch. By default
            they are logged.
        known: what the cache behind the store holds. With it, a relist takes over what did not
            change instead of holding it twice.
        wait_for_room: asked between two reads of a watch; what it returns is awaited first: a
            way to slow it down. ``None``: there is room.
        options: times and sizes.
        rand: gives numbers in [0, 1), by which waits and time-outs are spread.

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
        self._state = relist.State(backoff=self._options.backoff)
        self._reports = Reports(name, on_error=watch_error_handler)
        self._statistics = self._reports.statistics
        self._watch: OpenWatch | None = None
        self._refusal: KinformError | None = None  # why the last request was none
        self._probe_due = 0.0  # when the server's version is to be looked at
        self._no_probe_before = 0.0  # the server's own word
        self._mend_due: float | None = None  # when what came damaged is to be listed again
        self._lists_whole = False  # for a token ran out, and no list was finished since
        self._turns = Turns(lw, rand=rand)
        self._is_running = False

    # --- how it stands

    @property
    def last_sync_resource_version(self) -> str:
        """The last version written to the store; ``""`` before the first list."""
        return self._intake.version

    @property
    def unreadable(self) -> Mapping[ObjectName, DecodeError]:
        """The objects that exist and cannot be read, with what is wrong with them."""
        return self._intake.unreadable

    def statistics(self) -> ReflectorStatistics:
        """Return the figures of this moment."""
        return dataclasses.replace(
            self._statistics,
            events=self._intake.events,
            stale_bookmarks=self._intake.stale_bookmarks,
            ignored=self._intake.ignored,
            phase=self._state.phase,
        )

    # --- running

    async def run(self) -> None:
        """List and watch until cancelled.

        Raises:
            UsageError: the source cannot be used this way, and nothing would get better by
                waiting; or it is being run already.
        """
        async with self._running():
            decision = self._decide(relist.Started(self._intake.version))
            while True:
                decision = await self._follow(decision)

    async def list_and_watch(self) -> None:
        """Do one round: list, and watch until another list is needed.

        The wait before that list is left to the caller.

        Raises:
            KinformError: the list failed, or the watch could not be opened.
            UsageError: as `run`.
        """
        self._refusal = None
        async with self._running():
            decision = self._decide(relist.Started(self._intake.version))
            if isinstance(decision.action, relist.Wait):  # the budget of requests is used up
                decision = await self._follow(decision)
            while not self._needs_list(decision):
                decision = await self._follow(decision)
        if self._refusal is not None:
            raise self._refusal

    def _needs_list(self, decision: relist.Decision) -> bool:
        return isinstance(decision.action, relist.Wait) and self._state.after_wait == "list"

    @contextlib.asynccontextmanager
    async def _running(self) -> AsyncGenerator[None]:
        if self._is_running:
            raise UsageError(f"{self.name} is being run already; one task runs a reflector")
        self._is_running = True
        try:
            with self._turns.following():
                async with background(self._resync()):
                    yield
        finally:
            self._is_running = False

    async def _follow(self, decision: relist.Decision) -> relist.Decision:
        """Perform one action, and decide what follows."""
        return await self._perform(decision.action)

    async def _perform(self, action: relist.Action) -> relist.Decision:
        match action:
            case relist.Wait(seconds):
                self._intake.begin_list()  # what a failed list has brought is not kept meanwhile
                await asyncio.sleep(seconds)
                return self._decide(relist.Waited())
            case relist.Relist():
                return await self._ask(lambda: self._list(action), to_list=True)
            case relist.Probe():
                return await self._ask(self._probe)
            case relist.Clear():
                return await self._ask(self._clear)
            case relist.StreamList(version):
                return await self._open(action, version)
            case relist.Rewatch(version):
                return await self._open(action, version)
            case None:
                raise AssertionError("only an open watch can go on")

    def _decide(self, signal: relist.Signal) -> relist.Decision:
        now = asyncio.get_running_loop().time()
        decision = relist.step(self._state, signal, now=now, rand=self._rand(), policy=self._policy)
        self._state = decision.state
        for notice in decision.notices:
            self._reports.notice(notice)
            if isinstance(notice, relist.Regressed) and isinstance(signal, relist.Probed):
                self._intake.distrust()
        # What comes after a wait takes its turn with all else that connects again.
        self._turns.is_due = self._turns.is_due or isinstance(decision.action, relist.Wait)
        return decision

    async def _ask(
        self, work: Callable[[], Awaitable[relist.Signal]], *, to_list: bool = False
    ) -> relist.Decision:
        """Make a request; its failure is a signal too."""
        self._refusal = None
        await self._turns.take(to_list=to_list)
        asked = await apart(_signal_of(work))  # the source's code
        try:
            signal = asked.result()
        except asyncio.CancelledError as exc:
            self._refusal = self._failed(_cancelled_elsewhere(exc))
            signal = relist.Failed(self._refusal)
        except Exception as exc:  # noqa: BLE001 - whatever a user's functions raise
            self._refusal = self._failed(exc)
            signal = relist.Failed(self._refusal)
        return self._decide(signal)

    def _failed(self, exc: Exception) -> KinformError:
        """Tell of a failure, and return it as one of ours."""
        error = self._reports.failure(exc)
        if error is not exc:
            # It is told by now. From here on it is kept for long, and with it whatever its
            # frames had in their hands.
            exc.__traceback__ = None
        return error

    @contextlib.contextmanager
    def _counted(self, action: relist.Action) -> Generator[None]:
        """Count the request for ``action`` from the end of the block on, not from its decision."""
        try:
            yield
        finally:
            now = asyncio.get_running_loop().time()
            self._state = relist.counted(self._state, action, now=now)

    # --- lists

    async def _list(self, action: relist.Relist) -> relist.Signal:
        version = action.resource_version
        in_pages = not (self._lists_whole or source_options(self._lw).disable_chunking)
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
                # Pages of two versions make no list: everything once more, in one piece, and so
                # from now on until that has worked (client-go: FullListIfExpired).
                self._lists_whole = True
                whole = dataclasses.replace(options, limit=None)
                taken = await take_list(self._lw, self._intake, whole, on_page=note)
                assert taken is not None, "a list in one piece has no token that could expire"
        trace.step(f"{self._intake.finish_list(taken.resource_version)} objects stored")
        self._mend_due = None
        trace.end()
        # Only this is a surprise: a server with a watch cache has any version in one piece.
        is_paginated = version == "0" and (taken.pages > 1 or self._lists_whole)
        self._lists_whole = False
        took = loop.time() - began
        return relist.Listed(taken.resource_version, paginated=is_paginated, took=took)

    async def _probe(self) -> relist.Signal:
        loop = asyncio.get_running_loop()
        if (left := self._no_probe_before - loop.time()) > 0:
            await asyncio.sleep(left)
        applied, now = self._intake.version, loop.time()
        max_age = self._max_probe_age()
        self._put_off_probe()
        try:
            with self._counted(relist.Probe()):
                answer = await self._turns.probe(self._send_probe, applied, max_age=max_age)
        except ApiError as exc:
            self._no_probe_before = loop.time() + min(exc.retry_after or 0.0, MAX_RETRY_AFTER)
            raise
        self._probe_due -= max(0.0, now - answer.started)  # it may be another informer's
        return relist.Probed(answer.version, answer.applied)

    def _max_probe_age(self) -> float | None:
        """Return how old a probe may be that is used beside an open watch."""
        if self._watch is None:
            return None
        if self._state.looks or self._turns.is_blind:
            return MAX_PROBE_AGE
        return (self._options.probe_period or 0.0) / 5

    async def _send_probe(self) -> str:
        """Ask the server for its version, with one item and the version unset."""
        self._statistics.probes += 1
        limit = asyncio.timeout(LOOK_TIMEOUT)
        try:
            async with limit:
                return (await self._lw.list(ListOptions(limit=1))).resource_version
        except (TimeoutError, asyncio.CancelledError):
            # Either, for asyncio.timeout() trusts a count that the source may have changed.
            if not limit.expired():
                raise
            text = f"the server did not tell its version within {LOOK_TIMEOUT:g} s"
            raise TransportError(text, failure=TransportFailure.TIMEOUT) from None

    def _put_off_probe(self) -> None:
        """Reckon the time until the next probe from here: this request shows the same."""
        now, period = asyncio.get_running_loop().time(), self._options.probe_period or 0.0
        self._probe_due = now + period * (0.9 + self._rand() / 5)

    async def _clear(self) -> relist.Signal:
        self._intake.begin_list()
        self._intake.finish_list("")
        return relist.Cleared()

    # --- watches

    async def _open(
        self, action: relist.StreamList | relist.Rewatch, version: str
    ) -> relist.Decision:
        """Run one watch from its opening to its end."""
        is_list = isinstance(action, relist.StreamList)
        timeout = max(1, round(self._options.watch_timeout * (1 + self._rand())))
        await self._turns.take(to_list=is_list)
        watch = self._watch = OpenWatch(version, is_list=is_list, timeout=timeout)
        self._refusal = None
        self._statistics.watches += 1
        self._statistics.lists += is_list
        if self._state.looks or self._turns.is_blind:  # the version is not known: probe it now
            self._probe_due = watch.started
        self._intake.begin_list(reuse=True)
        self._intake.begin_watch(version)
        events = self._intake.events
        try:
            # The source's code: what it leaves behind in that task is not taken for a stop.
            watched = await apart(self._run_watch(watch, action), on_cancel=watch.stop)
            failure = _cancelled_elsewhere() if watched.cancelled() else watched.result()
        finally:
            if watch.mending is not None:
                watch.mending.cancel()
            self._watch, self._statistics.is_connected = None, False
        self._note_end(watch, failure)
        if watch.decision is not None:
            return watch.decision
        if watch.mends:
            log.info("%s: %s", self.name, failure)
            failure = None
        error = None if failure is None else self._failed(failure)
        if error is not None and not watch.is_open:
            self._refusal = error
            return self._decide(relist.Failed(error))
        return self._decide(self._ended(watch, error, events=self._intake.events - events))

    async def _run_watch(
        self, watch: OpenWatch, action: relist.StreamList | relist.Rewatch
    ) -> Exception | None:
        """Open a watch and read it to its end; return what ended it, if that was a failure."""
        failure: Exception | None = None
        try:
            async with (
                watch.limit,
                self._opening(watch, action) as stream,
                background(self._mind(watch)),
            ):
                watch.opened()
                self._statistics.is_connected = True
                watch.hear(self._reports.heard())
                self._mend_later(watch)
                try:
                    await self._read(watch, stream)
                # Caught here, so that nothing which fails in closing it can take its place.
                except asyncio.CancelledError as exc:
                    watch.check()  # the limit's too: it is outside
                    failure = _cancelled_elsewhere(exc)
                except Exception as exc:  # noqa: BLE001 - whatever a user's functions raise
                    failure = watch.cause_of(exc)
        except asyncio.CancelledError as exc:
            failure = failure or watch.cause_of(_cancelled_elsewhere(exc))
        except Exception as exc:  # noqa: BLE001 - whatever a user's functions raise
            failure = failure or watch.cause_of(exc)
        return failure or watch.cause_of(None)

    @contextlib.asynccontextmanager
    async def _opening(
        self, watch: OpenWatch, action: relist.StreamList | relist.Rewatch
    ) -> AsyncGenerator[AsyncIterable[Received[T]]]:
        async with contextlib.AsyncExitStack() as stack:
            with self._counted(action):
                stream = await stack.enter_async_context(self._lw.watch(watch.options))
            yield stream

    def _ended(self, watch: OpenWatch, error: KinformError | None, *, events: int) -> relist.Ended:
        reached_timeout = error is None and watch.reached_timeout()
        return relist.Ended(
            resource_version=self._intake.version,
            lived=watch.lived(),
            events=events,
            error=error,
            reached_timeout=reached_timeout,
            mends=watch.mends,
        )

    def _note_end(self, watch: OpenWatch, failure: Exception | None) -> None:
        """Have the next watch wait for its turn, unless this one lasted until its timeout."""
        if failure is None and watch.reached_timeout():
            self._turns.kept()
            return
        is_answer = isinstance(failure, ApiError) and (
            isinstance(failure, ResourceExpiredError) or failure.is_resource_version_too_large
        )
        self._turns.lost(cleanly=failure is None, is_answer=is_answer)

    async def _read(self, watch: OpenWatch, stream: AsyncIterable[Received[T]]) -> None:
        idle, bookmarks, turns = self._options.idle_timeout, self._intake.bookmarks, 0
        # The first bookmark may be the end of a streamed list, and for a kind without a watch cache
        # (events) the only one. A server that sends a second one goes on sending them.
        watch.check()
        async with contextlib.aclosing(batches_of(stream)) as batches:
            async for batch in batches:
                watch.check()
                watch.hear(self._reports.heard())
                self._take(watch, iter(batch))
                if idle is not None and self._intake.bookmarks > bookmarks + 1:
                    watch.arm(idle)
                    idle = None
                room = self._wait_for_room() if self._wait_for_room and not watch.is_list else None
                if room is not None:
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
            self._intake.begin_watch(end)
            self._mend_due = None
            self._put_off_probe()
            watch.end_list()
            self._decide(relist.Streamed(end))
        self._intake.write(batch)
        self._mend_later(watch)

    def _mend_later(self, watch: OpenWatch) -> None:
        """See to it that what came damaged is listed again: no watch brings it any more."""
        if not self._intake.has_damaged:
            self._mend_due = None
        if watch.is_list or not self._intake.has_damaged:
            return
        loop = asyncio.get_running_loop()
        if self._mend_due is None:  # else a watch before this one has ended too soon
            now = loop.time()
            self._mend_due = now + relist.mend_after(self._state, now=now, rand=self._rand())
        if watch.mending is None:
            watch.mending = loop.call_at(self._mend_due, self._mend, watch)

    def _mend(self, watch: OpenWatch) -> None:
        watch.mending = None
        due, self._mend_due = self._mend_due, None
        if due is not None and not watch.has_ended:
            watch.mends = True
            watch.end(reason=DecodeError("objects that came damaged are listed again"))

    async def _mind(self, watch: OpenWatch) -> None:
        """Do beside a watch what has to be done at times."""
        loop = asyncio.get_running_loop()
        while watch.is_list and not watch.has_ended:
            await watch.wait_listed(END_BOOKMARK_PATIENCE)
            self._mind_silence(watch, round(loop.time() - watch.heard))
        while not watch.has_ended and (
            self._options.probe_period or self._state.looks or self._turns.is_blind
        ):
            await asyncio.sleep(self._probe_due - loop.time())
            await self._probe_beside(watch)

    def _mind_silence(self, watch: OpenWatch, silence: int) -> None:
        """Tell of a streamed list that does not come to its end, and end it in the end."""
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
            log.info("%s: the request for the server's version was cancelled", self.name)
        except Exception as exc:  # noqa: BLE001 - whatever a user's functions raise
            log.info("%s: the server's version could not be asked for: %s", self.name, exc)
        else:
            self._heed(watch, probed)
            return
        if self._state.looks or self._turns.is_blind:
            self._probe_due = asyncio.get_running_loop().time() + LOOK_AGAIN * (1 + self._rand())

    async def _wait_for_budget(self) -> None:
        """Wait until a probe beside a watch may be sent: it counts as a list."""
        loop = asyncio.get_running_loop()
        while True:
            self._state, wait = relist.probe_wait(self._state, now=loop.time())
            if not wait:
                return
            await asyncio.sleep(wait)

    def _heed(self, watch: OpenWatch, probed: relist.Signal) -> None:
        if watch.has_ended:
            return
        self._turns.is_blind = False
        self._reports.heard()
        decision = self._decide(probed)
        if decision.action is not None:
            watch.end(decision=decision)

    # --- resync

    async def _resync(self) -> None:
        while (period := self._resync_period) is not None:
            await asyncio.sleep(period)
            if not self._state.has_listed:
                continue
            try:
                if self._should_resync is None or self._should_resync():
                    self._store.resync()
            except Exception as exc:  # noqa: BLE001 - a store's or a user's
                failure = SourceError(f"resync raised {type(exc).__name__}")
                failure.__cause__ = exc.with_traceback(None)
                if self._watch is None or self._watch.is_list:
                    self._reports.failure(failure)
                else:
                    self._watch.end(reason=failure)


async def _signal_of(work: Callable[[], Awaitable[relist.Signal]]) -> relist.Signal:
    return await work()


def _cancelled_elsewhere(exc: asyncio.CancelledError | None = None) -> SourceError:
    """Return the failure that it is when not our own task was cancelled."""
    error = SourceError("list or watch awaited something that somebody else has cancelled")
    error.__cause__ = None if exc is None else exc.with_traceback(None)
    return error
