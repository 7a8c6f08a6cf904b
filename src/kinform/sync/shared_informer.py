"""`SharedInformer` for blocking code: the cache is read where you are, handlers have threads."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Generator, Mapping
from types import TracebackType
from typing import Final, Generic, TypeVar, final

from kinform.cache import shared_informer as aio
from kinform.cache._informer.lifetime import GRACE
from kinform.cache.lister import Lister
from kinform.cache.processor.events import Added, Deleted, Updated
from kinform.cache.processor.handlers import EventHandler
from kinform.cache.store.store import Indexer
from kinform.errors import DecodeError, UsageError
from kinform.meta import ObjectName
from kinform.sync._blocking import blocking, on_loop
from kinform.sync._loop_thread import LoopThread
from kinform.sync.handlers import Registration, Worker, handler_of, in_thread
from kinform.sync.streams import EventStream

__all__ = ["SharedInformer"]

T = TypeVar("T")
R = TypeVar("R")

_EXIT_GRACE: Final = 0.25
"""Seconds that callbacks have left when the interpreter exits."""


@final
class SharedInformer(Generic[T]):
    """A cache of one kind of object, kept equal to the server, with event handlers.

    .. code-block:: python

        with connect() as client, client.informer("v1/pods") as pods:
            pods.wait_synced(30)
            print(len(pods.lister.list()))

    It is a `kinform.SharedInformer` that lives on kinform's thread, with all it promises. What
    is different:

    * ``lister`` and ``indexer`` are read in the thread that reads them, without a detour.
    * Each handler's callbacks run on a thread of the handler's own, one at a time and in order.
      They may take their time, and call anything of the blocking API.
    * Index functions, filters, transforms and the predicate of `wait_for` run on kinform's
      thread: they must be quick, and calls to the cluster are refused there.

    Any thread may use it, a signal handler as well.
    """

    def __init__(self, loop: LoopThread, inner: aio.SharedInformer[T]) -> None:
        self._loop = loop
        self._inner = inner
        self._indexer = inner.indexer
        self._lister = inner.lister
        self._workers: list[Worker] = []

    def __repr__(self) -> str:
        return repr(self._inner)

    @property
    def asynchronous(self) -> aio.SharedInformer[T]:
        """The informer itself, for functions that `kinform.sync.run` runs."""
        return self._inner

    # --- reading, in the caller's thread

    @property
    def name(self) -> str:
        """Stands in every line it logs."""
        return self._inner.name

    @property
    def indexer(self) -> Indexer[T]:
        """The cache; to be read only.

        Raises:
            UsageError: in a forked child, where nothing fills it any more.
        """
        if self._loop.is_left_behind:
            self._loop.refuse_children()
        return self._indexer

    @property
    def lister(self) -> Lister[T]:
        """The cache, as most want to read it.

        Raises:
            UsageError: in a forked child, where nothing fills it any more.
        """
        if self._loop.is_left_behind:
            self._loop.refuse_children()
        return self._lister

    @property
    def has_synced(self) -> bool:
        """True after the first list is in the cache; never false again."""
        return self._inner.has_synced

    @property
    def last_sync_resource_version(self) -> str:
        """The version the cache shows: all that happened up to it; ``""`` before the first list."""
        return self._inner.last_sync_resource_version

    @property
    def unreadable(self) -> Mapping[ObjectName, DecodeError]:
        """The objects that exist on the server and cannot be read, with the errors."""
        return self._inner.unreadable

    @property
    def is_started(self) -> bool:
        """True after the start."""
        return self._inner.is_started

    @property
    def is_stopped(self) -> bool:
        """True after a stop was requested, or the informer failed."""
        return self._inner.is_stopped

    statistics: Final = on_loop(aio.SharedInformer[T].statistics)
    healthy: Final = on_loop(aio.SharedInformer[T].healthy)

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
        """Call these callbacks for every change, from now on, in a thread of their own.

        Existing objects are delivered first, as `Added` with ``initial``. Callbacks are plain
        functions. They run one at a time and in order; while one waits, no other handler does. When
        the informer stops, a callback that waits for a blocking call of kinform's beyond the grace
        has that call cancelled (``concurrent.futures.CancelledError``).

        Raises:
            UsageError: the informer has stopped, or the callbacks are invalid.
        """
        registered = handler_of(
            handlers,
            on_add=on_add,
            on_update=on_update,
            on_delete=on_delete,
            filter=filter,
            resync_period=resync_period,
            name=name,
        )
        worker = Worker(registered.name)
        inner = self._loop.call(self._inner.add_event_handler, in_thread(registered, worker))
        self._workers.append(worker)
        return Registration(self._loop, inner, worker)

    def remove_event_handler(self, registration: Registration[T]) -> None:
        """Deliver no more events to it: see `Registration.remove`."""
        registration.remove()

    def events(self) -> EventStream[T]:
        """Return a stream of `Added`, `Updated` and `Deleted`, beginning with existing objects.

        .. code-block:: python

            for event in informer.events():
                match event: ...

        It ends when the informer stops. Leaving the loop ends it too.

        Raises:
            UsageError: the informer has stopped.
        """
        return EventStream(self._loop, self._loop.call(self._inner.events))

    add_indexers: Final = on_loop(aio.SharedInformer[T].add_indexers)

    # --- life

    def start(self) -> None:
        """Begin to fill the cache; `stop` must follow. ``with`` does both.

        Raises:
            UsageError: it was started before, or stopped.
        """
        self.stop_at_exit()
        try:
            self._loop.run(self._inner.start)
        except UsageError:
            if self._inner.is_stopped:
                self._loop.forget(self._inner)
            raise
        except BaseException:  # interrupted: it may have started, and must not run unowned
            self._loop.spawn(functools.partial(self._inner.stop, 0))
            raise

    def stop(self, grace: float = GRACE) -> None:
        """End it: no callback begins any more, and those that run have ``grace`` seconds left.

        From any thread, and from a signal handler. The cache stays readable as it was last. A
        second call waits for the same end. Interrupted, as by Ctrl-C, it waives what is left of
        the grace.

        A callback of the informer only asks for the end and does not wait: that would be for
        itself.
        """
        with self._ending():
            self._loop.run(self._inner.stop, grace)

    def run(self) -> None:
        """Start it, and return when it was stopped, by any caller. Ctrl-C stops it, and raises.

        Raises:
            UsageError: it was started before.
        """
        with self:
            self.wait_stopped()

    wait_stopped: Final = blocking(aio.SharedInformer[T].wait_stopped)

    def __enter__(self) -> SharedInformer[T]:
        self.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._ending():
            self._loop.run(self._inner.__aexit__, exc_type, exc, traceback)

    @contextlib.contextmanager
    def _ending(self) -> Generator[None]:
        self._loop.refuse_children()
        try:
            yield
        finally:
            self._loop.forget(self._inner)
            for worker in self._workers:
                worker.close()

    def stop_at_exit(self) -> None:
        """Stop it when the interpreter exits, if it still runs then."""
        stop = functools.partial(self._inner.stop, _EXIT_GRACE)
        self._loop.note_running(self._inner, stop)

    # --- waiting

    wait_synced: Final = blocking(aio.SharedInformer[T].wait_synced)
    wait_until: Final = blocking(aio.SharedInformer[T].wait_until)
    verify: Final = blocking(aio.SharedInformer[T].verify)

    def wait_for(
        self, predicate: Callable[[Lister[T]], R | None], timeout: float | None = None
    ) -> R:
        """Wait until ``predicate`` is true of the cache; return its result.

        .. code-block:: python

            pod = informer.wait_for(lambda pods: pods.get("default/web-0"), 30)

        It is asked now and after every change, on kinform's thread: it should be quick, and may
        not call the cluster. What it raises ends the wait.

        Raises:
            TimeoutError: it takes longer; ``__cause__`` is what went wrong last, if anything.
            UsageError: the informer was not started, or stops meanwhile.
        """

        async def wait() -> R:
            return await self._inner.wait_for(predicate, timeout)

        return self._loop.run(wait)
