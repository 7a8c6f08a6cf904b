"""What a user gives to be told: callbacks, a filter, a wish for resyncs. Values and pure code.

client-go: ``ResourceEventHandlerFuncs``, ``FilteringResourceEventHandler``, ``nameForHandler``.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from types import CodeType
from typing import Final, Generic, TypeVar, final

from kinform.cache.events import Added, Deleted, Updated
from kinform.errors import UsageError
from kinform.meta import ObjectName
from kinform.sansio.notifications import Notification

__all__ = [
    "Caller",
    "EventHandler",
    "Filtering",
    "check_period",
    "handler",
    "name_for",
    "refuse_generators",
]

T = TypeVar("T")

_CALLED_WITH: Final = {
    "on_add": "an Added, which has .obj",
    "on_update": "an Updated, which has .old and .new",
    "on_delete": "a Deleted, which has .obj",
    "filter": "the object",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EventHandler(Generic[T]):
    """Who wants to be told of what; made by `handler`.

    A value: it may be added many times and to many informers, and each time is told on its own.
    A callback is a plain ``def``, which must be quick because it runs on the event loop, or an
    ``async def``. One handler's callbacks never run at the same time: while one is awaited, the
    handler's further events wait. What a callback returns is dropped, what it raises is logged
    and counted; the event counts as told and is not told again.

    Raises:
        UsageError: there is no callback, something is not callable or not with one argument, or
            the period is too short.
    """

    name: str
    """What logs and statistics call it."""
    on_add: Callable[[Added[T]], object] | None = None
    """Told of each object that is new."""
    on_update: Callable[[Updated[T]], object] | None = None
    """Told of each change, and on a resync of each object."""
    on_delete: Callable[[Deleted[T]], object] | None = None
    """Told of each object that is gone."""
    filter: Callable[[T], bool] | None = None
    """Which objects the handler is told of; see `Filtering`."""
    resync_period: float | None = None
    """How often, in seconds, it is told of everything again; ``None`` is never."""

    def __post_init__(self) -> None:
        callbacks = {
            "on_add": self.on_add,
            "on_update": self.on_update,
            "on_delete": self.on_delete,
        }
        if all(callback is None for callback in callbacks.values()):
            raise UsageError(
                "a handler without callbacks hears nothing; give on_add, on_update or on_delete"
            )
        for role, function in {**callbacks, "filter": self.filter}.items():
            if function is not None and not callable(function):
                raise UsageError(
                    f"{role} is of type {type(function).__name__}; expected a function"
                )
            if function is not None:
                refuse_generators(role, function)
                _check_signature(role, function)
        if inspect.iscoroutinefunction(self.filter):
            raise UsageError("filter is an async function; expected a plain one, it cannot wait")
        if self.resync_period is not None:
            check_period(self.resync_period)


def handler(
    *,
    on_add: Callable[[Added[T]], object] | None = None,
    on_update: Callable[[Updated[T]], object] | None = None,
    on_delete: Callable[[Deleted[T]], object] | None = None,
    filter: Callable[[T], bool] | None = None,  # noqa: A002 (the word every informer uses)
    resync_period: float | None = None,
    name: str | None = None,
) -> EventHandler[T]:
    """Return an `EventHandler` of these callbacks, named after them unless ``name`` is given.

    >>> def on_add(added: Added[str]) -> None: ...
    >>> handler(on_add=on_add).name
    'on_add'

    Raises:
        UsageError: there is no callback, something is not callable or not with one argument, or
            ``resync_period`` is less than one second.
    """
    return EventHandler(
        name=name or name_for(on_add, on_update, on_delete),
        on_add=on_add,
        on_update=on_update,
        on_delete=on_delete,
        filter=filter,
        resync_period=resync_period,
    )


def name_for(*callbacks: object) -> str:
    """Return a name for a handler made of ``callbacks``; ``None`` among them is left out.

    The class, if they are methods of one; otherwise their names, joined by ``+``. A lambda goes
    by the place it stands at, and a callable without a name by its type.
    """
    # client-go: event_handler_name.go nameForFunctions
    named = [_home_and_name(callback) for callback in callbacks if callback is not None]
    homes = {home for home, _ in named}
    return homes.pop() if len(homes) == 1 else "+".join(name for _, name in named)


def check_period(period: object) -> None:
    """Refuse what is no ``resync_period``.

    Raises:
        UsageError: it is not a number of seconds, or less than one.
    """
    # client-go raises a period below one second to one second. Whoever asks for less has
    # mistaken the unit, or takes resyncs for a way to poll the server: better to be told.
    if not isinstance(period, (int, float)) or not 1 <= period < math.inf:
        raise UsageError(f"resync_period is {period!r}; expected seconds, at least 1, or None")


def refuse_generators(role: str, function: Callable[..., object]) -> None:
    """Refuse a function with ``yield`` in it: calling it would run nothing of it.

    Raises:
        UsageError: it is a generator function, or an async one.
    """
    inner: object = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    for each in (inner, getattr(inner, "__call__", None)):  # noqa: B004 - of an object
        if inspect.isasyncgenfunction(each):
            raise UsageError(
                f"{role} is an async generator function, which would never run: it has a yield; "
                "expected def or async def without one"
            )
        if inspect.isgeneratorfunction(each):
            raise UsageError(
                f"{role} is a generator function, which would never run: it has a yield; expected "
                "def or async def without one"
            )


@final
class Filtering(Generic[T]):
    """Translates what happened to all objects into what happened to those that pass a filter.

    An object that begins to pass is new, one that no longer passes is gone:

    ===============  ====================  =================
    the object       passes now            does not, or gone
    ===============  ====================  =================
    was told of      as it is              gone
    was not          new                   nothing
    ===============  ====================  =================

    The filter is asked about each state once. "Was told of" is remembered (a set of keys) and
    not asked of the filter a second time, as client-go does: so a delete is told whatever the
    final state looks like, and a filter may raise or change its mind without leaving an object
    behind that the handler believes in.
    """

    __slots__ = ("_passes", "_told", "_was_told")

    def __init__(self, passes: Callable[[T], bool]) -> None:
        self._passes = passes
        self._told: set[ObjectName] = set()
        self._was_told = False  # before the last translation

    def translate(self, notification: Notification[T]) -> Notification[T] | None:
        """Return what is to be told of it, if anything. Whatever the filter raises passes."""
        key, new = notification.key, notification.new
        told = self._was_told = key in self._told
        if new is None:
            self._told.discard(key)
            return notification if told else None
        if self._passes(new.object):
            self._told.add(key)
            is_itself = told or notification.old is None
            return notification if is_itself else Notification(key, None, new)
        if not told:
            return None
        self._told.discard(key)
        return Notification(key, notification.old, None)

    def take_back(self, notification: Notification[T]) -> None:
        """Undo the last translation: its notification will be translated again."""
        if self._was_told:
            self._told.add(notification.key)
        else:
            self._told.discard(notification.key)


@final
class Caller(Generic[T]):
    """Calls the callback of a handler that a notification is for, if its filter passes it."""

    __slots__ = ("_filtering", "_handler")

    def __init__(self, handler: EventHandler[T]) -> None:
        self._handler = handler
        self._filtering = None if handler.filter is None else Filtering(handler.filter)

    def __call__(self, notification: Notification[T]) -> object:
        """Return what the callback returned, perhaps an awaitable; whatever it raises passes."""
        if self._filtering is not None:
            passed = self._filtering.translate(notification)
            if passed is None:
                return None
            notification = passed
        handler, old, new = self._handler, notification.old, notification.new
        if new is None:
            if handler.on_delete is None or old is None:
                return None
            gone = Deleted(notification.key, old.object, notification.final_state_unknown)
            return handler.on_delete(gone)
        if old is None:
            if handler.on_add is None:
                return None
            return handler.on_add(Added(notification.key, new.object, notification.initial))
        if handler.on_update is None:
            return None
        return handler.on_update(Updated(notification.key, old.object, new.object))

    def take_back(self, notification: Notification[T]) -> None:
        """Prepare for another call with ``notification``, the last one."""
        if self._filtering is not None:
            self._filtering.take_back(notification)


def _home_and_name(callback: object) -> tuple[str, str]:
    """Return what a callback is called, and the class it is of, or again its own name."""
    while isinstance(callback, functools.partial):
        callback = callback.func
    name: object = getattr(callback, "__qualname__", None)
    if not isinstance(name, str):
        name = type(callback).__qualname__
    name = name.rpartition("<locals>.")[2]  # not where it was defined, which is often "main"
    code: object = getattr(callback, "__code__", None)
    if name.endswith("<lambda>") and isinstance(code, CodeType):
        name = f"<lambda> at {PurePath(code.co_filename).name}:{code.co_firstlineno}"
        return name, name
    return name.rpartition(".")[0] or name, name


def _check_signature(role: str, function: Callable[..., object]) -> None:
    try:
        # Of a decorated function it is the outer one that is called, whatever is inside.
        signature = inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):  # there is none to be had, as of some that are built in
        return
    try:
        signature.bind(object())
    except TypeError:
        required = [
            one
            for one in signature.parameters.values()
            if one.default is one.empty and one.kind not in {one.VAR_POSITIONAL, one.VAR_KEYWORD}
        ]
        count = f"{len(required)} arguments" if len(required) > 1 else "no positional argument"
        raise UsageError(
            f"{role} takes {count}; it is called with one, {_CALLED_WITH[role]}"
        ) from None
