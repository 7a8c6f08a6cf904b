"""SharedInformer: a cache of one kind of object, with event handlers, shared by a whole program.

A ``Controller`` (reflector, queue, pump) reads from the server and writes to the `Indexer`; the
`Processor` delivers the changes to handlers and event streams.

client-go: tools/cache/shared_informer.go.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Final, Generic, TypedDict, TypeVar, cast, final

from kinform._parts import Parts
from kinform.cache._informer.argument_checks import check_values
from kinform.cache._informer.lifetime import GRACE, Lifetime
from kinform.cache._informer.state_waiters import StateWaiters
from kinform.cache._reflector.intake import TransformFunc
from kinform.cache._reflector.missing_permission import explained
from kinform.cache.controller import Applied, Controller, apply, apply_in_turns, is_large
from kinform.cache.informer_statistics import InformerStatistics
from kinform.cache.lister import Lister
from kinform.cache.listwatch import ListerWatcher, source_options
from kinform.cache.processor._upstream import Upstream
from kinform.cache.processor.event_stream import EventStream
from kinform.cache.processor.events import Added, Deleted, Updated
from kinform.cache.processor.handlers import EventHandler, handler
from kinform.cache.processor.processor import Processor, Registration
from kinform.cache.reflector_options import ReflectorOptions
from kinform.cache.reflector_reports import WatchErrorHandler
from kinform.cache.store._guard import ReadGuard, filled, no_longer_filled
from kinform.cache.store.compaction import Compactor
from kinform.cache.store.indexes import FieldIndex, IndexErrors, IndexFunc
from kinform.cache.store.store import Indexer
from kinform.cache.verification import Picture, Verification, identities, verified
from kinform.errors import DecodeError, KinformError, UnknownResourceError, UsageError
from kinform.meta import ObjectName
from kinform.objects.object import Object
from kinform.objects.storage import StorageForm
from kinform.sansio import versions
from kinform.sansio.queue.interface import Batch, QueueFactory
from kinform.sansio.queue.real_fifo import RealFIFO
from kinform.tasks import background

__all__ = ["InformerOptions", "SharedInformer"]

T = TypeVar("T")
R = TypeVar("R")

log: Final = logging.getLogger(__name__)


class InformerOptions(TypedDict, Generic[T], total=False):
    """The keywords that `Client.informer` and the factory pass on to `SharedInformer`."""

    name: str
    label: str | None
    indexers: Mapping[str, IndexFunc[T]] | None
    transform: TransformFunc[T] | None
    resync_period: float | None
    queue: QueueFactory
    watch_error_handler: WatchErrorHandler | None
    options: ReflectorOptions | None
    storage: StorageForm


@final
class SharedInformer(Generic[T]):
    """A cache of one kind of object, kept equal to the server, with event handlers.

    .. code-block:: python

        informer = client.informer("v1/pods")
        informer.add_event_handler(on_add=lambda event: print("new:", event.key))
        async with informer:
            await informer.wait_synced(30)
            print(len(informer.lister.list()))

    Guaranteed:

    * The cache becomes equal to the server after any failure of the connection, and every state
      it shows existed on the server at one moment.
    * Every handler receives the changes of each object in order, after the cache has them. A
      delete that was missed is delivered as a tombstone (`Deleted` with ``final_state_unknown``),
      and an object that was deleted and recreated under its name as a delete and an add.
    * A handler that is slow, fails or never returns does not affect any other. When many of its
      events are pending, they are merged per object: it receives the last state of an object, not
      each intermediate one.

    Not guaranteed: an order between different objects for slow handlers; that every intermediate
    state is delivered.

    An informer is started once. All methods must be called on the event loop's thread, except for
    reading: ``indexer`` and ``lister`` may be read from any thread.

    Args:
        lw: the source of the objects.
        name: appears in every log line of the informer.
        label: the name in health checks and metrics, which unauthenticated clients may read; by
            default ``name``. For informers that a client makes it is the resource alone.
        indexers: index functions by name; see `Indexer`. An object on which one fails is cached
            all the same, and not found by that index.
        transform: runs once for each object, before it is cached.
        resync_period: the resync period of handlers without one of their own.
        queue: `RealFIFO`, or `DeltaFIFO` to collect the changes of each object.
        expected_kind: objects of another kind are dropped.
        watch_error_handler: called with every error in listing and watching.
        options: timeouts and sizes of listing and watching.
        storage: ``"zstd"`` compresses objects soon after they arrive: a quarter of the memory,
            and some microseconds for each access to their content. It needs ``kinform[zstd]``.
        model: the class of the objects; only a cache of `Object` can be compressed.

    Raises:
        UsageError: an index name is taken, ``resync_period`` is less than a second, the storage
            is not available, a function is not callable or async, or ``lw`` is not a
            `ListerWatcher`.
    """

    def __init__(
        self,
        lw: ListerWatcher[T],
        *,
        name: str = "informer",
        label: str | None = None,
        indexers: Mapping[str, IndexFunc[T]] | None = None,
        transform: TransformFunc[T] | None = None,
        resync_period: float | None = None,
        queue: QueueFactory = RealFIFO,
        expected_kind: str | None = None,
        watch_error_handler: WatchErrorHandler | None = None,
        options: ReflectorOptions | None = None,
        storage: StorageForm = "raw",
        model: type[object] = Object,
    ) -> None:
        _check_source(lw)
        check_values(
            {
                "name": name,
                "transform": transform,
                "resync_period": resync_period,
                "queue": queue,
                "watch_error_handler": watch_error_handler,
                "options": options,
            }
        )
        self._lw = lw
        self.name: Final = name
        self._label = label or name
        self._parts = Parts(name, label=self._label)
        self._model = model
        self._options = options or ReflectorOptions()
        self._resync_period = resync_period
        self._index_errors = IndexErrors(name)
        self._indexer: Indexer[T] = Indexer(indexers=indexers, on_index_error=self._index_errors)
        _check_indexers(indexers, model)
        self._entries = self._indexer.entries  # for reading at any time, without the guard below
        self._lister = Lister(self._indexer)
        self._compactor = Compactor(self._entries, storage=storage, model=model)
        self._controller: Controller[T] = Controller(
            lw,
            process=self._process,
            queue=queue,
            known=self._entries,
            on_done=self._batch_done,
            name=name,
            expected_kind=expected_kind,
            transform=transform,
            settle=self._compactor.settle,
            watch_error_handler=watch_error_handler,
            options=self._options,
            parts=self._parts,
        )
        upstream = Upstream(
            refuse_if_idle=self._refuse_if_idle,
            trouble=self._trouble,
            failure=lambda: self._life.failure,
        )
        self._processor: Processor[T] = Processor(
            name=name, resync=self._resync, upstream=upstream, parts=self._parts
        )
        self._waiters = StateWaiters()
        self._has_synced = False
        # Only if the queue keeps the order of changes, a newer version implies all older ones.
        self._is_in_order = isinstance(self._controller.queue, RealFIFO)
        self._version = ""
        self._replayed = 0
        self._life = Lifetime(
            name,
            self._read,
            self._processor,
            on_reading_over=self._controller.queue.close,
            on_end=self._ended,
        )
        self._guard = ReadGuard(
            name,
            self._life,
            has_synced=lambda: self._has_synced,
            namespaced=source_options(lw).namespaced,
            known=self._entries,
        )
        # After `_entries` was taken: the informer's own reads are not guarded.
        self._indexer.guard(self._guard)

    def __repr__(self) -> str:
        running = "running" if self._life.is_started else "not started"
        state = "stopped" if self._life.is_over else running
        return f"<SharedInformer {self.name} {state}, {len(self._entries)} objects>"

    # --- reading, from any thread

    @property
    def indexer(self) -> Indexer[T]:
        """The cache, read-only.

        Reading it before the start raises `UsageError`: it would look as if no object existed.
        The first read before the first sync logs a warning, and so does one after a stop before
        the first sync. In a reconcile, a cache of the `Manager` that has not synced cannot be
        read. A key that no object can have (without a namespace where the resource is namespaced,
        or not a key at all) raises `UsageError` as well.
        """
        return self._indexer

    @property
    def lister(self) -> Lister[T]:
        """The cache with label selectors, read-only; `indexer` says when it can be read."""
        return self._lister

    @property
    def has_synced(self) -> bool:
        """True if the first list is in the cache; never becomes false again."""
        return self._has_synced

    @property
    def last_sync_resource_version(self) -> str:
        """The version up to which the cache has all changes; ``""`` before the first list."""
        return self._version

    @property
    def unreadable(self) -> Mapping[ObjectName, DecodeError]:
        """The objects that exist on the server and cannot be decoded, with the error of each.

        They are not in the cache, so that an old state is not taken for the current one. Handlers
        that knew such an object received `Deleted` with ``final_state_unknown``. If an object was
        corrupted in transit (`DecodeError.is_damaged`), the reflector relists, with backoff.
        """
        return self._controller.reflector.unreadable

    @property
    def is_started(self) -> bool:
        """True if it was started; stays true."""
        return self._life.is_started

    @property
    def is_stopped(self) -> bool:
        """True if `stop` was called, or it has failed; stays true."""
        return self._life.is_ending

    def statistics(self) -> InformerStatistics:
        """Return the current statistics."""
        return InformerStatistics(
            name=self.name,
            label=self._label,
            objects=len(self._entries),
            resource_version=self._version,
            has_synced=self._has_synced,
            unreadable=len(self.unreadable),
            replayed=self._replayed,
            unexpected_ends=self._parts.unexpected_ends,
            index_errors=dict(self._index_errors.counts),
            reflector=self._controller.reflector.statistics(),
            queue=self._controller.queue.statistics(),
            storage=self._compactor.statistics(),
            handlers=self._processor.statistics(),
        )

    def healthy(self, max_silence: float | None = None) -> bool:
        """Return whether the cache is up to date: running, synced, and in contact with the server.

        In contact: the server has sent something in the last ``max_silence`` seconds. By default
        that is as long as a watch of a resource without bookmarks may be silent. Most resources
        have bookmarks, about once a minute; for them 180 is a good choice.

        Regardless of ``max_silence``, a cache is stale if the server no longer serves its API
        version but serves another one.
        """
        loop = self._life.loop
        if loop is None or self._life.is_over or not self._has_synced:
            return False
        trouble = self._trouble()
        if isinstance(trouble, UnknownResourceError) and trouble.served_in:
            return False
        heard = self._controller.reflector.statistics().last_contact
        if max_silence is None:
            # A watch lasts up to twice its timeout, and a resource without bookmarks may be silent
            # for all of it.
            max_silence = 2 * self._options.watch_timeout + 60
        return heard is not None and loop.time() - heard <= max_silence

    # --- handlers

    def add_event_handler(
        self,
        handlers: EventHandler[T] | None = None,
        *,
        on_add: Callable[[Added[T]], object] | None = None,
        on_update: Callable[[Updated[T]], object] | None = None,
        on_delete: Callable[[Deleted[T]], object] | None = None,
        filter: Callable[[T], bool] | None = None,  # noqa: A002 - the word every informer uses
        resync_period: float | None = None,
        name: str | None = None,
    ) -> Registration[T]:
        """Add a handler: its callbacks are called for every change from now on.

        First it receives every object in the cache, as `Added` with ``initial``. Callbacks may be
        ``def`` or ``async def``; a ``def`` runs on the event loop and must be fast. Give an
        `EventHandler` (made by `handler`), or its fields. A handler without a ``resync_period``
        has that of the informer.

        Raises:
            UsageError: the informer has stopped, or the callbacks cannot be used.
        """
        parts = (on_add, on_update, on_delete, filter, resync_period, name)
        if handlers is None:
            handlers = handler(
                on_add=on_add,
                on_update=on_update,
                on_delete=on_delete,
                filter=filter,
                resync_period=resync_period,
                name=name,
            )
        elif any(part is not None for part in parts):
            raise UsageError("give an EventHandler, or its fields as keywords, not both")
        elif not isinstance(handlers, EventHandler):  # pyright: ignore[reportUnnecessaryIsInstance] - untyped callers
            raise UsageError(
                f"{type(handlers).__name__} is not a handler; give on_add=, on_update=, "
                "on_delete=, or an EventHandler made by handler()"
            )
        if handlers.resync_period is None and self._resync_period is not None:
            handlers = dataclasses.replace(handlers, resync_period=self._resync_period)
        self._life.refuse_unless_usable("a handler cannot be added")
        # No await between reading the cache and adding: no change is lost or delivered twice.
        return self._life.own_context().run(
            self._processor.add,
            handlers,
            present=self._entries.list(),
            synced=self._has_synced,
        )

    def remove_event_handler(self, registration: Registration[T]) -> None:
        """Remove a handler: see `Registration.remove`. Those of other informers are ignored."""
        self._processor.remove(registration)

    def events(self) -> EventStream[T]:
        """Return a stream of `Added`, `Updated` and `Deleted`, first for every cached object.

        .. code-block:: python

            async for event in informer.events():
                match event: ...

        It ends when the informer stops. Leaving the loop ends it too.

        Raises:
            UsageError: the informer has stopped.
        """
        self._life.refuse_unless_usable("events() is not available")
        return self._processor.subscribe(present=self._entries.list(), synced=self._has_synced)

    def add_indexers(self, indexers: Mapping[str, IndexFunc[T]]) -> None:
        """Index the cache by more functions, before or after the start.

        Raises:
            UsageError: the informer has stopped, or there is an index of such a name.
        """
        self._life.refuse_unless_usable("an index cannot be added")
        _check_indexers(indexers, self._model)
        self._indexer.add_indexers(indexers)

    # --- life

    async def start(self) -> None:
        """Start to fill the cache; `stop` must follow. ``async with`` does both.

        Raises:
            UsageError: it was started before, or stopped.
        """
        self._parts.join()
        self._life.start()
        filled(self._entries)
        self._guard.started()

    async def stop(self, grace: float = GRACE) -> None:
        """Stop: no callback starts any more, and current ones have ``grace`` seconds to finish.

        The cache stays readable in its last state. A second call waits for the same end. When it
        is cancelled, the rest of the grace is dropped: once it has returned or raised, nothing
        runs any more except callbacks that ignore their cancellation.

        In a callback of the informer, and in tasks that a callback has started, it only requests
        the stop and does not wait, because it would wait for itself.

        Raises:
            UsageError: it runs in another event loop.
        """
        await self._life.stop(grace)

    async def wait_stopped(self) -> None:
        """Wait until the informer has stopped. Cancellation ends only the wait.

        Raises:
            UsageError: it was not started; or a callback of it would wait for itself.
            Exception: the failure that has ended it.
        """
        if not self._life.is_over:
            self._life.refuse_if_idle()
            self._life.refuse_foreign_loop()
            self._life.refuse_own_callbacks()
            await self._life.wait()
        if self._life.failure is not None:
            raise self._life.failure

    async def run(self) -> None:
        """Start it, and stop it when cancelled: see `stop`.

        Raises:
            UsageError: it was started before, or its source cannot be used this way.
        """
        await self.start()
        try:
            await self._life.wait()
        finally:
            await self.stop(self._life.grace)
        if self._life.failure is not None:
            raise self._life.failure

    async def __aenter__(self) -> SharedInformer[T]:
        await self.start()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop(self._life.grace)
        if exc is None and self._life.failure is not None:
            raise self._life.failure

    # --- waiting

    async def wait_synced(self, timeout: float | None = None) -> None:
        """Wait until the first list is in the cache.

        Raises:
            TimeoutError: it takes longer; ``__cause__`` is the last error, if any: for a
                `ForbiddenError` the text names the missing RBAC rule.
            UsageError: the informer was not started, or stops meanwhile.
        """
        await self._wait(lambda: self._has_synced, timeout, "has not synced")

    async def wait_until(self, resource_version: str, timeout: float | None = None) -> None:
        """Wait until the cache has ``resource_version`` or a later one: read your own writes.

        Give the version of an object of this kind that you have written: the cache has it as soon
        as the event arrives. Any other version is known to have passed only at the next event or
        bookmark.

        Raises:
            TimeoutError: it takes longer; ``__cause__`` is the last error, if any.
            UsageError: the informer was not started, or stops meanwhile, or the version is empty
                or not a string.
        """
        if not isinstance(resource_version, str):  # pyright: ignore[reportUnnecessaryIsInstance] - untyped callers
            raise UsageError(
                f"resource_version is of type {type(resource_version).__name__}; expected the "
                "text obj.resource_version"
            )
        if not resource_version:
            raise UsageError("there is no version to wait for: the object given has none")

        def is_there() -> bool:
            shown = self._version
            # Equality first: versions that are no integers have no order.
            return shown == resource_version or versions.is_older(resource_version, shown)

        await self._wait(is_there, timeout, f"has not seen version {resource_version}")

    async def wait_for(
        self, predicate: Callable[[Lister[T]], R | None], timeout: float | None = None
    ) -> R:
        """Wait until ``predicate`` is true of the cache; return what it returned.

        .. code-block:: python

            pod = await informer.wait_for(lambda pods: pods.get("default/web-0"), 30)

        It is called once the first list is in the cache, so that an object it does not find does
        not exist, and after every change: it should be fast. Its exceptions end the wait.

        Raises:
            TimeoutError: it takes longer; ``__cause__`` is the last error, if any.
            UsageError: the informer was not started, or stops meanwhile.
        """
        if inspect.iscoroutinefunction(predicate):
            raise UsageError("the predicate is an async function; expected one that cannot wait")

        def condition() -> R | None:
            return predicate(self._lister) if self._has_synced else None

        found = await self._wait(condition, timeout, "does not show it")
        return cast("R", found)  # true, so not None

    async def _wait(self, condition: Callable[[], R], timeout: float | None, what: str) -> R:
        if self._life.is_over:
            if result := condition():
                return result
            raise self._life.stopped_error()
        self._life.refuse_if_idle()
        self._life.refuse_foreign_loop()
        limit = asyncio.timeout(timeout)
        try:
            async with limit:
                return await self._waiters.wait(condition)
        except TimeoutError:
            if not limit.expired():
                raise  # one of the condition's
            cause = self._trouble()
            hint = f"; last error: {explained(cause)}" if cause else ""
            what = what if self._has_synced else "has not synced"
            text = f"{self.name} {what} within {timeout} s{hint}"
            raise TimeoutError(text) from cause

    # --- verification

    async def verify(self) -> Verification:
        """List the server's state at the version of the cache, and compare both.

        It costs the server one list, in pages, and does not change the cache. Uids and versions
        are compared: two states of an object always differ in one of them. Meant to be called now
        and then in production. Any difference is a bug, in kinform or in the server.

        If that version has expired on the server, it waits for the next one: a bookmark comes
        about once a minute.

        Raises:
            ResourceExpiredError: every version expires before it is listed.
            KinformError: the list failed.
            UsageError: the informer was not started, or stops meanwhile, or its server has no
                versions.
        """
        return await verified(self._next_picture, self._lw, name=self.name)

    async def _next_picture(self, past: str | None) -> Picture:
        found = await self._wait(lambda: self._picture(past), None, "shows no later version")
        return cast("Picture", found)  # true, so not None

    def _picture(self, past: str | None) -> Picture | None:
        """Return the content of the cache; ``None`` between two versions, or at ``past``."""
        version = self._version
        # With a `DeltaFIFO` the store may be between two versions: its own version is then ahead of
        # the one up to which everything is applied.
        if not self._has_synced or version == past or version != self._entries.resource_version:
            return None
        entries = self._entries.list()
        return Picture(version, identities(entries), frozenset(self.unreadable))

    # --- implementation

    async def _read(self) -> None:
        async with background(self._compact()):
            await self._controller.run()

    async def _compact(self) -> None:
        try:
            await self._compactor.run()
        except Exception:  # all objects stay readable, compressed or not
            log.exception(
                "%s: objects are not compressed any more",
                self.name,
                extra={"informer": self.name},
            )

    def _refuse_if_idle(self) -> None:
        self._life.refuse_if_idle()  # made after the processor, which holds this

    def _trouble(self) -> KinformError | None:
        """Return the error that the informer currently suffers from, or ``None``."""
        statistics = self._controller.reflector.statistics()
        # Before the first sync the last error is the reason, even if the server answered since.
        is_going_on = statistics.failures_in_a_row or not self._has_synced
        return statistics.last_error if is_going_on else None

    def _ended(self) -> None:
        no_longer_filled(self._entries)
        self._waiters.fail(self._life.stopped_error)

    def _process(self, batch: Batch[T]) -> Awaitable[None] | None:
        """Write a batch and deliver its changes: at once, or in several turns if it is large."""
        if is_large(batch):
            return self._process_in_turns(batch)
        self._deliver(apply(batch, self._entries))
        return None

    async def _process_in_turns(self, batch: Batch[T]) -> None:
        self._deliver(await apply_in_turns(batch, self._entries))

    def _deliver(self, applied: Applied[T]) -> None:
        self._replayed += applied.replayed
        if applied.notifications:
            # After the store has the whole batch: a handler that reads the cache finds its change.
            self._processor.distribute(applied.notifications)

    def _batch_done(self) -> None:
        queue = self._controller.queue
        if self._is_in_order or queue.is_empty:
            self._version = self._entries.resource_version
        if not self._has_synced and queue.has_synced:
            self._has_synced = True
            self._indexer.release()
            self._compactor.begin()
            self._processor.upstream_synced()
        # The test spares a call per batch, which is one per event for a quiet informer.
        if self._waiters.pending:
            self._waiters.check()

    def _resync(self) -> None:
        # Not through the queue: a DeltaFIFO splits a resync into batches, and only the first would
        # find a handler whose resync is due.
        self._processor.distribute_resync(self._entries.list())


def _check_indexers(indexers: Mapping[str, IndexFunc[T]] | None, model: type[object]) -> None:
    if model is Object or not isinstance(indexers, Mapping):  # the indexer refuses others
        return
    wrong = [name for name, each in indexers.items() if isinstance(each, FieldIndex)]
    if wrong:
        raise UsageError(
            f"the index {wrong[0]!r} is one of index_by(), which reads whole objects; for "
            f"{model.__qualname__} write a function, for example lambda obj: obj.spec.nodeName"
        )


def _check_source(lw: object) -> None:
    # A ResourceClient has `list` and `watch` too, with other signatures.
    is_source = callable(getattr(lw, "list", None)) and callable(getattr(lw, "watch", None))
    if not is_source or hasattr(lw, "list_watch"):
        raise UsageError(
            f"{type(lw).__name__} is not a ListerWatcher; client.informer('v1/pods') makes an "
            "informer, and client.resource('v1/pods').list_watch() the source of one"
        )
