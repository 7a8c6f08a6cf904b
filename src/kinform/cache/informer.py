"""SharedInformer: a cache of one kind of object that everybody in a program can share.

What is on the server comes in at the left (``Controller``: reflector, queue, pump), is written to
the `Indexer`, and what that changed goes out at the right (`Processor`: handlers and streams).

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

from kinform.cache.applying import Applied, apply, apply_in_turns, is_large
from kinform.cache.compaction import Compactor
from kinform.cache.controller import Controller
from kinform.cache.event_stream import EventStream
from kinform.cache.events import Added, Deleted, Updated
from kinform.cache.forking import filled, no_longer_filled
from kinform.cache.guard import ReadGuard
from kinform.cache.handlers import EventHandler, handler
from kinform.cache.index_errors import IndexErrors
from kinform.cache.indexer import Indexer
from kinform.cache.indexes import FieldIndex, IndexFunc
from kinform.cache.intake import TransformFunc
from kinform.cache.keywords import check_values
from kinform.cache.lifetime import GRACE, Lifetime
from kinform.cache.lister import Lister
from kinform.cache.listwatch import ListerWatcher
from kinform.cache.options import ReflectorOptions
from kinform.cache.permissions import explained
from kinform.cache.processor import Processor, Registration
from kinform.cache.reports import WatchErrorHandler
from kinform.cache.statistics import InformerStatistics
from kinform.cache.upstream import Upstream
from kinform.cache.verification import Picture, Verification, identities, verified
from kinform.cache.waiting import Waiters
from kinform.errors import DecodeError, KinformError, UnknownResourceError, UsageError
from kinform.meta import ObjectName
from kinform.objects import Object
from kinform.parts import Parts
from kinform.sansio import versions
from kinform.sansio.queue import Batch, QueueFactory
from kinform.sansio.real_fifo import RealFIFO
from kinform.storage import StorageForm
from kinform.tasks import background

__all__ = ["InformerOptions", "SharedInformer"]

T = TypeVar("T")
R = TypeVar("R")

log: Final = logging.getLogger(__name__)


class InformerOptions(TypedDict, Generic[T], total=False):
    """The keywords of `SharedInformer` that whoever makes one for you passes on."""

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
    """A cache of one kind of object, kept equal to the server, with handlers that are told.

    .. code-block:: python

        informer = client.informer("v1/pods")
        informer.add_event_handler(on_add=lambda event: print("new:", event.key))
        async with informer:
            await informer.wait_synced(30)
            print(len(informer.lister.list()))

    Promised:

    * The cache becomes equal to the server, whatever happened to the connection, and every state
      it shows was true on the server at one moment.
    * Every handler hears of each object's changes in order, after the cache has them. A delete
      that was missed is told all the same (`Deleted`), and an object that was deleted and made
      anew under its name is told as that, a delete and an add.
    * A handler that is slow, fails or never returns harms no other. What it has not been told
      yet is merged, object by object, once much of it waits: it hears of the last state, not of
      each one between.

    Not promised: an order between different objects for slow handlers; that every state in
    between is seen.

    It is started once. All methods belong to the event loop's thread, except for reading:
    ``indexer`` and ``lister`` may be read from any thread.

    Args:
        lw: where the objects come from.
        name: stands in every line it logs.
        label: what health checks and metrics call it, for anyone who reaches their port; by
            default ``name``. Informers that a client makes have the kind alone.
        indexers: index functions by name; see `Indexer`. Where one fails on an object, the
            object is cached all the same, and is not found by that index.
        transform: runs once for each object, before it is cached.
        resync_period: how often handlers that do not say otherwise are told of everything again.
        queue: `RealFIFO`, or `DeltaFIFO` to have changes gathered per object.
        expected_kind: objects of another kind are left out.
        watch_error_handler: told of everything that goes wrong in listing and watching.
        options: times and sizes of listing and watching.
        storage: ``"zstd"`` keeps objects compressed, soon after they came: a quarter of the
            memory, and some microseconds for each look inside. It needs ``kinform[zstd]``.
        model: what the objects are; only a cache of `Object` can be compressed.

    Raises:
        UsageError: an index name is taken, ``resync_period`` is less than a second, the storage
            is not to be had, a function is none or async, or ``lw`` is no `ListerWatcher`.
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
        self._entries = self._indexer.entries  # ours to read at any time; see the guard below
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
        self._waiters = Waiters()
        self._has_told_synced = False
        # Only where changes keep their order has a version passed when a later one is there.
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
            has_synced=lambda: self.has_synced,
            namespaced=getattr(lw, "namespaced", _unknown),
            known=self._entries,
        )
        self._indexer.guard(self._guard)

    def __repr__(self) -> str:
        running = "running" if self._life.is_started else "not started"
        state = "stopped" if self._life.is_over else running
        return f"<SharedInformer {self.name} {state}, {len(self._entries)} objects>"

    # --- reading, from any thread

    @property
    def indexer(self) -> Indexer[T]:
        """The cache; to be read only.

        To read it before the start is a `UsageError`: it would look as if nothing existed. The
        first read before the first sync logs a warning, and so does one after a stop that came
        before the first sync. In a reconcile, a cache of the `Manager` that has not synced cannot
        be read. A key that no object can have (without a namespace where the kind has
        namespaces, or no key at all) is a `UsageError` as well.
        """
        return self._indexer

    @property
    def lister(self) -> Lister[T]:
        """The cache, as most want to read it; for when it can be read, see `indexer`."""
        return self._lister

    @property
    def has_synced(self) -> bool:
        """Whether the first list is in the cache; never becomes false again."""
        return self._controller.has_synced

    @property
    def last_sync_resource_version(self) -> str:
        """The version the cache shows: all that happened up to it; ``""`` before the first list."""
        return self._version

    @property
    def unreadable(self) -> Mapping[ObjectName, DecodeError]:
        """The objects that exist on the server and cannot be read, with what is wrong.

        They are not in the cache: no older state of them passes for the current one. Handlers
        that knew such an object were told it is gone, with ``final_state_unknown``. Those that
        came damaged (`DecodeError.is_damaged`) are listed again, at growing intervals.
        """
        return self._controller.reflector.unreadable

    @property
    def is_started(self) -> bool:
        """Whether it was started; stays true."""
        return self._life.is_started

    @property
    def is_stopped(self) -> bool:
        """Whether it was asked to stop, or has failed; stays true."""
        return self._life.is_ending

    def statistics(self) -> InformerStatistics:
        """Return the figures of this moment."""
        return InformerStatistics(
            name=self.name,
            label=self._label,
            objects=len(self._entries),
            resource_version=self._version,
            has_synced=self.has_synced,
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
        """Tell whether the cache can be believed: running, synced, and in touch with the server.

        In touch is who heard from the server in the last ``max_silence`` seconds. By default
        that is as long as a watch of a kind without bookmarks may be quiet; most kinds have
        bookmarks, about once a minute, so that 180 is a good choice for them.

        A cache is stale at once, whatever ``max_silence`` allows, if the server no longer serves
        its API version but serves another one.
        """
        loop = self._life.loop
        if loop is None or self._life.is_over or not self.has_synced:
            return False
        trouble = self._trouble()
        if isinstance(trouble, UnknownResourceError) and trouble.served_in:
            return False
        heard = self._controller.reflector.statistics().last_contact
        if max_silence is None:
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
        """Have these callbacks told of every change, from now on.

        What is in the cache already is told first, as `Added` with ``initial``. Callbacks may be
        ``def`` or ``async def``; a ``def`` runs on the event loop and must be quick. Give an
        `EventHandler` (made by `handler`), or what one is made of. One that does not say how
        often it wants to be told of everything again has the informer's ``resync_period``.

        Raises:
            UsageError: the informer has stopped, or the callbacks are of no use.
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
            raise UsageError("give an EventHandler, or what one is made of, not both")
        elif not isinstance(handlers, EventHandler):  # pyright: ignore[reportUnnecessaryIsInstance] - users err
            raise UsageError(
                f"{type(handlers).__name__} is no handler; give on_add=, on_update=, on_delete=, "
                "or an EventHandler made by handler()"
            )
        if handlers.resync_period is None and self._resync_period is not None:
            handlers = dataclasses.replace(handlers, resync_period=self._resync_period)
        self._life.refuse_unless_usable("a handler cannot be added")
        # Nothing is awaited here, so no change can fall between what is there and what comes.
        return self._life.own_context().run(
            self._processor.add,
            handlers,
            present=self._entries.list(),
            synced=self._has_told_synced,
        )

    def remove_event_handler(self, registration: Registration[T]) -> None:
        """Tell it nothing any more: see `Registration.remove`. Foreign ones are ignored."""
        self._processor.remove(registration)

    def events(self) -> EventStream[T]:
        """Return a stream of `Added`, `Updated` and `Deleted`, beginning with what is there.

        .. code-block:: python

            async for event in informer.events():
                match event: ...

        It ends when the informer stops. Leaving the loop ends it too.

        Raises:
            UsageError: the informer has stopped.
        """
        self._life.refuse_unless_usable("events cannot be had")
        return self._processor.subscribe(present=self._entries.list(), synced=self._has_told_synced)

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
        """Begin to fill the cache; `stop` must follow. ``async with`` does both.

        Raises:
            UsageError: it was started before, or stopped.
        """
        self._parts.join()
        self._life.start()
        filled(self._entries)
        self._guard.started()

    async def stop(self, grace: float = GRACE) -> None:
        """End it: no callback begins any more, and those that run have ``grace`` seconds left.

        The cache stays readable as it was last. A second call waits for the same end. Cancelled,
        it waives what is left of the grace: when it has returned or raised, nothing runs any more
        but what ignores its cancellation.

        A callback of the informer, and whatever it has started, only asks for the end and does
        not wait: that would be for itself.

        Raises:
            UsageError: it runs in another event loop.
        """
        await self._life.stop(grace)

    async def wait_stopped(self) -> None:
        """Wait until it was stopped, by whomever. Cancelled, it does not wait any longer.

        Raises:
            UsageError: it was not started; or a callback of it would wait for itself.
            Exception: what it has died of.
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
            TimeoutError: it takes longer; ``__cause__`` is what went wrong last, if anything: a
                `ForbiddenError`, for example, and the text then names the missing RBAC rule.
            UsageError: the informer was not started, or stops meanwhile.
        """
        await self._wait(lambda: self.has_synced, timeout, "has not synced")

    async def wait_until(self, resource_version: str, timeout: float | None = None) -> None:
        """Wait until the cache shows ``resource_version`` or a later one: read your own writes.

        Give the version of an object of this kind that you have written: the cache has it as soon
        as the event arrives. That any other version has passed is known only at the next event
        or bookmark.

        Raises:
            TimeoutError: it takes longer; ``__cause__`` is what went wrong last, if anything.
            UsageError: the informer was not started, or stops meanwhile, or the version is none.
        """
        if not isinstance(resource_version, str):  # pyright: ignore[reportUnnecessaryIsInstance] - users err
            raise UsageError(
                f"resource_version is of type {type(resource_version).__name__}; expected the "
                "text obj.resource_version"
            )
        if not resource_version:
            raise UsageError("there is no version to wait for: the object given has none")

        def is_there() -> bool:
            shown = self._version
            return shown == resource_version or versions.is_older(resource_version, shown)

        await self._wait(is_there, timeout, f"has not seen version {resource_version}")

    async def wait_for(
        self, predicate: Callable[[Lister[T]], R | None], timeout: float | None = None
    ) -> R:
        """Wait until ``predicate`` is true of the cache; return what it returned.

        .. code-block:: python

            pod = await informer.wait_for(lambda pods: pods.get("default/web-0"), 30)

        It is called once the first list is in the cache, so that what it does not find does not
        exist, and after every change: it should be quick. What it raises ends the wait.

        Raises:
            TimeoutError: it takes longer; ``__cause__`` is what went wrong last, if anything.
            UsageError: the informer was not started, or stops meanwhile.
        """
        if inspect.iscoroutinefunction(predicate):
            raise UsageError("the predicate is an async function; expected one that cannot wait")

        def question() -> R | None:
            return predicate(self._lister) if self.has_synced else None

        found = await self._wait(question, timeout, "does not show it")
        return cast("R", found)  # true, so not None

    async def _wait(self, question: Callable[[], R], timeout: float | None, what: str) -> R:
        if self._life.is_over:
            if answer := question():
                return answer
            raise self._life.why_not()
        self._life.refuse_if_idle()
        self._life.refuse_foreign_loop()
        limit = asyncio.timeout(timeout)
        try:
            async with limit:
                return await self._waiters.wait(question)
        except TimeoutError:
            if not limit.expired():
                raise  # the question's own
            cause = self._trouble()
            hint = f"; last error: {explained(cause)}" if cause else ""
            what = what if self.has_synced else "has not synced"
            text = f"{self.name} {what} within {timeout} s{hint}"
            raise TimeoutError(text) from cause

    # --- looking at itself

    async def verify(self) -> Verification:
        """Ask the server what it had at the version that the cache shows, and compare.

        It costs the server one list, in pages, and changes nothing here. Uids and versions are
        compared: two states of an object always differ in one of them. Meant to be called now
        and then in production. What is not equal is a mistake, ours or the server's.

        If the server has forgotten that version by then, the next one is taken, for which it
        waits: a bookmark comes about once a minute.

        Raises:
            ResourceExpiredError: the server forgets every version before it is listed.
            KinformError: the server cannot be asked.
            UsageError: the informer was not started, or stops meanwhile, or its server has no
                versions.
        """
        return await verified(self._next_picture, self._lw, name=self.name)

    async def _next_picture(self, past: str | None) -> Picture:
        found = await self._wait(lambda: self._picture(past), None, "shows no later version")
        return cast("Picture", found)  # true, so not None

    def _picture(self, past: str | None) -> Picture | None:
        """Return what the cache shows of a version; None while it is between two, or at this."""
        version = self._version
        if not self.has_synced or version == past or version != self._indexer.resource_version:
            return None
        entries = self._entries.list()
        return Picture(version, identities(entries), frozenset(self.unreadable))

    # --- how it works

    async def _read(self) -> None:
        async with background(self._compact()):
            await self._controller.run()

    async def _compact(self) -> None:
        try:
            await self._compactor.run()
        except Exception:  # what was packed stays readable, and so does the rest
            log.exception("%s: objects are not compressed any more", self.name)

    def _refuse_if_idle(self) -> None:
        self._life.refuse_if_idle()

    def _trouble(self) -> KinformError | None:
        """Return what goes wrong at the moment, if anything."""
        statistics = self._controller.reflector.statistics()
        # Before the first sync the last error is the reason, though the server was heard since.
        is_going_on = statistics.failures_in_a_row or not self.has_synced
        return statistics.last_error if is_going_on else None

    def _ended(self) -> None:
        no_longer_filled(self._entries)
        self._waiters.fail(self._life.why_not)

    def _process(self, batch: Batch[T]) -> Awaitable[None] | None:
        """Write a batch and tell what it did: at once, or if it is large in several turns."""
        if is_large(batch):
            return self._process_in_turns(batch)
        self._tell(apply(batch, self._entries))
        return None

    async def _process_in_turns(self, batch: Batch[T]) -> None:
        self._tell(await apply_in_turns(batch, self._entries))

    def _tell(self, applied: Applied[T]) -> None:
        self._replayed += applied.replayed
        if applied.notifications:
            self._processor.distribute(applied.notifications)

    def _batch_done(self) -> None:
        queue = self._controller.queue
        if self._is_in_order or queue.is_empty:
            self._version = self._indexer.resource_version
        if not self._has_told_synced and queue.has_synced:
            self._has_told_synced = True
            self._indexer.release()
            self._compactor.begin()
            self._processor.upstream_synced()
        self._waiters.ask()

    def _resync(self) -> None:
        # Past the queue: a resync that comes out of it in several batches would be told to
        # nobody but by its first.
        self._processor.distribute_resync(self._entries.list())


def _unknown() -> None:
    return None


def _check_indexers(indexers: Mapping[str, IndexFunc[T]] | None, model: type[object]) -> None:
    if model is Object or not isinstance(indexers, Mapping):  # the indexer says what is wrong
        return
    wrong = [name for name, each in indexers.items() if isinstance(each, FieldIndex)]
    if wrong:
        raise UsageError(
            f"the index {wrong[0]!r} is one of index_by(), which reads whole objects; for "
            f"{model.__qualname__} write a function, for example lambda obj: obj.spec.nodeName"
        )


def _check_source(lw: object) -> None:
    # A ResourceClient has `list` and `watch` too, but of another shape.
    is_source = callable(getattr(lw, "list", None)) and callable(getattr(lw, "watch", None))
    if not is_source or hasattr(lw, "list_watch"):
        raise UsageError(
            f"{type(lw).__name__} is no ListerWatcher; client.informer('v1/pods') makes an "
            "informer, and client.resource('v1/pods').list_watch() the source of one"
        )
