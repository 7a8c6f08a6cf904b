"""Handlers that may block: each has a thread of its own, and its events come in order.

To the informer such a handler is a coroutine function like any other: buffers, merging, errors and
figures are the informer's. The coroutine waits for the thread.
"""

from __future__ import annotations

import contextvars
import dataclasses
import inspect
from collections.abc import Callable
from typing import Final, Generic, TypeVar, final

from kinform.cache.processor import processor
from kinform.cache.processor.events import Added, Deleted, Updated
from kinform.cache.processor.handlers import EventHandler, handler
from kinform.errors import UsageError
from kinform.runtime.controller._threads import Threads
from kinform.sync._blocking import blocking
from kinform.sync._calls import SCOPE, Scope
from kinform.sync._loop_thread import LoopThread

__all__ = ["Registration", "Worker", "handler_of", "in_thread"]

T = TypeVar("T")
E = TypeVar("E")

_telling: Final = contextvars.ContextVar[object]("kinform_sync_telling", default=None)
"""The worker whose callback this is."""


@final
class Worker:
    """The thread of one handler; started with its first event."""

    def __init__(self, name: str) -> None:
        self._threads = Threads(f"kinform-{name}")

    def wraps(self, callback: Callable[[E], object] | None) -> Callable[[E], object] | None:
        """Return a coroutine function that has ``callback`` called in the thread."""
        if callback is None:
            return None

        async def call(event: E) -> None:
            scope = Scope()

            def tell() -> None:
                _telling.set(self)
                SCOPE.set(scope)
                callback(event)

            await self._threads.call(tell, on_cancel=scope.cancel)

        return call

    @property
    def is_calling_us(self) -> bool:
        """True if the current code is called by a callback of the handler."""
        return _telling.get() is self

    def close(self) -> None:
        """Let the thread end once it is idle."""
        self._threads.close()


@final
class Registration(Generic[T]):
    """One handler's place at an informer: how far it is, and how to take it away again."""

    __slots__ = ("_inner", "_loop", "_worker")

    def __init__(self, loop: LoopThread, inner: processor.Registration[T], worker: Worker) -> None:
        self._loop = loop
        self._inner = inner
        self._worker = worker

    def __repr__(self) -> str:
        return repr(self._inner)

    @property
    def asynchronous(self) -> processor.Registration[T]:
        """The registration itself, for functions that `kinform.sync.run` runs."""
        return self._inner

    @property
    def name(self) -> str:
        """The handler's name."""
        return self._inner.name

    @property
    def has_synced(self) -> bool:
        """True after the handler has processed the initial list; never false again."""
        return self._inner.has_synced

    @property
    def is_removed(self) -> bool:
        """True after `remove`."""
        return self._inner.is_removed

    wait_synced: Final = blocking(processor.Registration[T].wait_synced)

    def remove(self) -> None:
        """Take the handler away: no callback of it begins any more, the one that runs goes on.

        May be called from anywhere, from the handler's own callback as well.
        """
        self._loop.call(self._inner.remove)
        self._worker.close()

    def shut_down(self) -> None:
        """Take the handler away, and wait for the callback that runs.

        Raises:
            UsageError: called from the handler's own callback, which would wait for itself.
                Nothing was done; use `remove` there.
        """
        if self._worker.is_calling_us:
            raise UsageError(
                f"handler {self.name!r} cannot wait for its own callback; use remove() there"
            )
        self._loop.run(self._inner.shut_down)
        self._worker.close()


def handler_of(
    handlers: EventHandler[T] | None,
    *,
    on_add: Callable[[Added[T]], object] | None,
    on_update: Callable[[Updated[T]], object] | None,
    on_delete: Callable[[Deleted[T]], object] | None,
    filter: Callable[[T], bool] | None,  # noqa: A002 - the word every informer uses
    resync_period: float | None,
    name: str | None,
) -> EventHandler[T]:
    """Return ``handlers``, or an `EventHandler` of the others; its callbacks are plain functions.

    Raises:
        UsageError: both are given, or they are of no use, or a callback is an async function.
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
            f"{type(handlers).__name__} is not a handler; give on_add=, on_update=, on_delete=, or "
            "an EventHandler made by handler()"
        )
    callbacks = (handlers.on_add, handlers.on_update, handlers.on_delete)
    if any(inspect.iscoroutinefunction(callback) for callback in callbacks):
        raise UsageError(
            f"handler {handlers.name!r} has an async function; a blocking informer calls plain "
            "ones, in a thread of their own. Those of `async def` belong to kinform.Client"
        )
    return handlers


def in_thread(handlers: EventHandler[T], worker: Worker) -> EventHandler[T]:
    """Return the same handler, with its callbacks called in the worker's thread."""
    return dataclasses.replace(
        handlers,
        on_add=worker.wraps(handlers.on_add),
        on_update=worker.wraps(handlers.on_update),
        on_delete=worker.wraps(handlers.on_delete),
    )
