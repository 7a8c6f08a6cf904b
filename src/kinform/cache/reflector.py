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
    Iterator,
    Mapping,
    Sequence,
)
from typing import Final, Generic, Protocol, TypeVar, cast, final, runtime_checkable

from kinform.cache.intake import Intake, TransformFunc
from kinform.cache.listwatch import ListerWatcher
from kinform.cache.open_watch import OpenWatch
from kinform.cache.options import ReflectorOptions
from kinform.cache.reports import ReflectorStatistics, Reports, Trace, WatchErrorHandler
from kinform.errors import (
    DecodeError,
    KinformError,
    ResourceExpiredError,
    SourceError,
    UsageError,
)
from kinform.meta import ObjectName
from kinform.rest.limits import RateLimiter
from kinform.rest.options import ListOptions
from kinform.rest.pager import ListPager
from kinform.rest.results import Bookmark, ListResult, Received, Unreadable
from kinform.sansio import relist
from kinform.sansio.queue import KnownObjects, ReflectorStore
from kinform.tasks import background

__all__ = ["Reflector"]

T = TypeVar("T")

log: Final = logging.getLogger(__name__)

END_BOOKMARK_PATIENCE: Final = 10.0
"""After how much silence of a streamed list somebody should hear of it."""


@final
class Reflector(Generic[T]):
    """Fills a store from a `ListerWatcher` and keeps it up to date, whatever happens.

    .. code-block:: python

        store = kinform.cache.Store()
        await kinform.cache.Reflector(lw, store).run()

    It first lists, then watches, and goes on from the last version applied whenever a watch ends.
    It lists again only when it must. Every failure is waited out with one back-off: no answer of
    a server makes it loop hot. A list is written to the store as a whole, or not at all.

    It is run by one task, and ends only when that task is cancelled, or by an error in the way
    it is used.

    Args:
        lw: where the objects come from.
        store: where they go; a queue, or a store.
        name: stands in every line it logs.
        expected_kind: objects of another kind are left out (and lists of another kind refused).
        transform: runs once for each object, before it is stored.
        resync_period: how often the store's ``resync`` is called; ``None``: never.
        should_resync: asked each time before that.
        watch_error_handler: told of every failure, also of those within a watch. By default
            they are logged.
        known: what the cache behind the store holds. With it, a relist takes over what did not
            change instead of holding it twice.
        wait_for_room: awaited between two reads of a watch: a way to slow it down.
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
        resync_period: float | None = None,
        should_resync: Callable[[], bool] | None = None,
        watch_error_handler: WatchErrorHandler | None = None,
        known: KnownObjects[T] | None = None,
        wait_for_room: Callable[[], Awaitable[None]] | None = None,
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
        if not getattr(lw, "supports_watch_list", True):
            self._policy = dataclasses.replace(self._policy, stream_lists=False)
        self._resync_period = resync_period
        self._should_resync = should_resync
        self._wait_for_room = wait_for_room
        self._rand = rand
        self._intake: Intake[T] = Intake(
            store, name=name, transform=transform, expected_kind=expected_kind, known=known
        )
        self._state = relist.State()
        self._reports = Reports(name, on_error=watch_error_handler)
        self._statistics = self._reports.statistics
        self._watch: OpenWatch | None = None
        self._refusal: KinformError | None = None  # why the last request was none
        self._is_retrying = False

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
            ignored=self._intake.ignored,
            phase=self._state.phase,
        )

    # --- running

    async def run(self) -> None:
        """List and watch until cancelled.

        Raises:
            UsageError: the source cannot be used this way; nothing would get better by waiting.
        """
        async with background(self._resync()):
            decision = self._decide(relist.Started())
            while True:
                decision = await self._follow(decision)

    async def list_and_watch(self) -> None:
        """Do one round: list, and watch until another list is needed.

        The wait before that list is left to the caller.

        Raises:
            KinformError: the list failed, or the watch could not be opened.
        """
        async with background(self._resync()):
            decision = self._decide(relist.Started())
            while not (
                isinstance(decision.action, relist.Wait) and self._state.after_wait == "list"
            ):
                self._refusal = None
                decision = await self._follow(decision)
        if self._refusal is not None:
            raise self._refusal

    async def _follow(self, decision: relist.Decision) -> relist.Decision:
        """Perform one action, and decide what follows."""
        match decision.action:
            case relist.Wait(seconds):
                await asyncio.sleep(seconds)
                return self._decide(relist.Waited())
            case relist.Relist() as action:
                return await self._ask(self._list(action))
            case relist.Probe():
                return await self._ask(self._probe())
            case relist.StreamList(version):
                return await self._open(version, is_list=True)
            case relist.Rewatch(version):
                return await self._open(version, is_list=False)
            case relist.Clear():
                self._intake.begin_list()
                self._intake.finish_list("")
                return self._decide(relist.Cleared())
            case None:
                raise AssertionError("only an open watch can go on")

    def _decide(self, signal: relist.Signal) -> relist.Decision:
        now = asyncio.get_running_loop().time()
        decision = relist.step(self._state, signal, now=now, rand=self._rand(), policy=self._policy)
        self._state = decision.state
        for notice in decision.notices:
            self._reports.notice(notice)
        # What comes after a wait takes its turn with all else that connects again.
        self._is_retrying = self._is_retrying or isinstance(decision.action, relist.Wait)
        return decision

    async def _ask(self, work: Awaitable[relist.Signal]) -> relist.Decision:
        """Make a request; its failure is a signal too."""
        signal: relist.Signal
        try:
            await self._take_turn()
            signal = await work
        except Exception as exc:  # noqa: BLE001 - whatever a user's functions raise
            self._refusal = self._reports.failure(exc)
            signal = relist.Failed(self._refusal)
        return self._decide(signal)

    async def _take_turn(self) -> None:
        limiter: RateLimiter | None = getattr(self._lw, "reconnects", None)
        if self._is_retrying and limiter is not None:
            await limiter.wait()
        self._is_retrying = False

    # --- lists

    async def _list(self, action: relist.Relist) -> relist.Signal:
        version = action.resource_version
        chunked = not getattr(self._lw, "disable_chunking", False)
        options = ListOptions(
            resource_version=version,
            resource_version_match="NotOlderThan" if version else None,
            limit=action.page_size if chunked else None,
        )
        self._statistics.lists += 1
        trace = Trace(f"{self.name}: list")
        listed, paginated = await self._list_pages(options, trace)
        trace.step(f"{self._intake.finish_list(listed)} objects stored")
        trace.end()
        # Only this is a surprise: a server with a watch cache has any version in one piece.
        return relist.Listed(listed, paginated=paginated and version == "0")

    async def _list_pages(self, options: ListOptions, trace: Trace) -> tuple[str, bool]:
        """Take in all pages; return the version of the first, which is that of all."""
        pages = 0
        try:
            version = ""
            self._intake.begin_list()
            async with contextlib.aclosing(self._pages(options)) as every:
                async for page in every:
                    pages += 1
                    version = page.resource_version if pages == 1 else version
                    self._reports.heard()
                    self._intake.add_page(page)
                    trace.step(f"page {pages}: {len(page)} objects")
        except ResourceExpiredError:
            if not pages:
                raise
            # A token ran out. Pages of two versions make no list: everything once more, in one
            # piece (client-go: FullListIfExpired).
            whole = dataclasses.replace(options, limit=None)
            return (await self._list_pages(whole, trace))[0], True
        return version, pages > 1

    async def _pages(self, options: ListOptions) -> AsyncGenerator[ListResult[T]]:
        async def fetch(options: ListOptions) -> ListResult[T]:
            page = await self._lw.list(options)
            if not isinstance(page, ListResult):  # pyright: ignore[reportUnnecessaryIsInstance] - users err
                raise SourceError(f"list() gave a {type(page).__name__} instead of a ListResult")
            return page

        async with contextlib.aclosing(ListPager(fetch, page_size=None).pages(options)) as pages:
            async for page in pages:
                yield page

    async def _probe(self) -> relist.Signal:
        applied = self._intake.version
        self._statistics.probes += 1
        result = await self._lw.list(ListOptions(limit=1))
        self._reports.heard()
        return relist.Probed(result.resource_version, applied)

    # --- watches

    async def _open(self, version: str, *, is_list: bool) -> relist.Decision:
        """Run one watch from its opening to its end."""
        await self._take_turn()
        timeout = max(1, round(self._options.watch_timeout * (1 + self._rand())))
        watch = OpenWatch(version, is_list=is_list, timeout=timeout)
        options = ListOptions(
            resource_version=version,
            resource_version_match="NotOlderThan" if is_list else None,
            send_initial_events=True if is_list else None,
            watch=True,
            allow_watch_bookmarks=True,
            timeout=timeout,
        )
        self._statistics.watches += 1
        self._statistics.lists += is_list
        self._intake.begin_list()
        self._intake.begin_watch(version)
        events = self._intake.events
        error: KinformError | None = None
        self._watch = watch
        try:
            async with (
                watch.limit,
                self._lw.watch(options) as stream,
                background(self._mind(watch)),
            ):
                watch.is_open = self._statistics.is_connected = True
                await self._read(watch, stream)
        except Exception as exc:  # noqa: BLE001 - whatever a user's functions raise
            ended = isinstance(exc, TimeoutError) and watch.limit.expired()
            if watch.decision is None:
                error = self._reports.failure(watch.failure() if ended else exc)
        finally:
            self._watch, self._statistics.is_connected = None, False
        if watch.decision is not None:
            return watch.decision
        if error is not None and not watch.is_open:
            self._refusal = error
            return self._decide(relist.Failed(error))
        return self._decide(self._ended(watch, error, events=self._intake.events - events))

    def _ended(self, watch: OpenWatch, error: KinformError | None, *, events: int) -> relist.Ended:
        lived = watch.lived()
        reached_timeout = error is None and lived >= watch.timeout - 1  # give or take rounding
        # A server that goes away ends all its watches at once: do not come back all at once.
        self._is_retrying = not reached_timeout
        return relist.Ended(
            # Nothing of a streamed list counts if it did not come to its end.
            resource_version="" if watch.is_list else self._intake.version,
            lived=lived,
            events=events,
            error=error,
            reached_timeout=reached_timeout,
        )

    async def _read(self, watch: OpenWatch, stream: AsyncIterable[Received[T]]) -> None:
        idle, is_armed = self._options.idle_timeout, False
        async with contextlib.aclosing(_batches(stream)) as batches:
            async for batch in batches:
                watch.heard = self._reports.heard()
                if is_armed:
                    watch.watch_silence()
                elif idle is not None and any(isinstance(event, Bookmark) for event in batch):
                    is_armed = True  # a server that sends one sends more: silence means something
                    watch.arm(idle)
                self._take(watch, iter(batch))
                if self._wait_for_room is not None:
                    watch.pause()
                    await self._wait_for_room()
                    watch.resume()

    def _take(self, watch: OpenWatch, batch: Iterator[Received[T] | Unreadable]) -> None:
        if watch.is_list:
            # A list not older than what we have cannot show another state under a known version.
            end = self._intake.add_streamed(batch, reuse=bool(watch.resource_version))
            if end is None:
                return
            self._intake.finish_list(end)
            self._intake.begin_watch(end)
            watch.is_list = False
            self._decide(relist.Streamed(end))
        self._intake.write(batch)

    async def _mind(self, watch: OpenWatch) -> None:
        """Do beside a watch what has to be done at times."""
        loop = asyncio.get_running_loop()
        while watch.is_list:
            await asyncio.sleep(END_BOOKMARK_PATIENCE)
            if watch.is_list and (silence := loop.time() - watch.heard) >= END_BOOKMARK_PATIENCE:
                log.warning("%s: the streamed list has been silent for %.0f s", self.name, silence)
        while (period := self._options.probe_period) is not None:
            await asyncio.sleep(period * (0.9 + self._rand() / 5))
            await self._probe_beside(watch)

    async def _probe_beside(self, watch: OpenWatch) -> None:
        self._decide(relist.ProbeDue())
        try:
            decision = self._decide(await self._probe())
        except Exception as exc:  # noqa: BLE001 - whatever a user's functions raise
            log.info("%s: the server's version could not be asked for: %s", self.name, exc)
            return
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
                failure.__cause__ = exc
                if self._watch is None:
                    self._reports.failure(failure)
                else:
                    self._watch.end(reason=failure)


@runtime_checkable
class _Batched(Protocol[T]):
    def batches(self) -> AsyncGenerator[Sequence[Received[T] | Unreadable]]: ...


async def _batches(
    stream: AsyncIterable[Received[T]],
) -> AsyncGenerator[Sequence[Received[T] | Unreadable]]:
    """Yield what a watch brings, as many events at a time as it has at hand."""
    if isinstance(stream, _Batched):
        batched = cast("_Batched[T]", stream)
        async with contextlib.aclosing(batched.batches()) as batches:
            async for batch in batches:
                yield batch
    else:
        async for event in stream:
            yield (event,)
