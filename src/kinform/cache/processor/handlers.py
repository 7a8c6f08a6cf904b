"""Event handlers: the callbacks, filter and resync period that a user registers on an informer.

Values and their checks; `kinform.cache.processor._listener` calls them.

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

from kinform.cache.processor.events import Added, Deleted, Updated
from kinform.errors import UsageError

__all__ = [
    "EventHandler",
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
    """The callbacks of a handler, its filter and its resync period; made by `handler`.

    A value: it may be added many times and to many informers, and each registration receives its
    events independently. A callback is a plain ``def``, which must be fast because it runs on the
    event loop, or an ``async def``. The callbacks of one handler never run concurrently: while one
    is awaited, the next events wait. The return value of a callback is ignored, its exceptions
    are logged and counted; an event is delivered once, and not again after an exception.

    Raises:
        UsageError: no callback is given, something is not callable or not with one argument, or
            the period is too short.
    """

    name: str
    """The name in logs and statistics."""
    on_add: Callable[[Added[T]], object] | None = None
    """Called for each new object."""
    on_update: Callable[[Updated[T]], object] | None = None
    """Called for each update, and on a resync for each object."""
    on_delete: Callable[[Deleted[T]], object] | None = None
    """Called for each deleted object."""
    filter: Callable[[T], bool] | None = None
    """Selects the objects whose events the handler receives: an object that begins to pass is
    delivered as added, one that no longer passes as deleted."""
    resync_period: float | None = None
    """Seconds between two resyncs, which deliver every object again; ``None``: no resyncs."""

    def __post_init__(self) -> None:
        callbacks = {
            "on_add": self.on_add,
            "on_update": self.on_update,
            "on_delete": self.on_delete,
        }
        if all(callback is None for callback in callbacks.values()):
            raise UsageError(
                "a handler without callbacks receives nothing; give on_add, on_update or on_delete"
            )
        for role, function in {**callbacks, "filter": self.filter}.items():
            if function is not None and not callable(function):
                raise UsageError(
                    f"{role} is of type {type(function).__name__}; expected a function"
                )
            if function is not None:
                refuse_generators(role, function)
                _check_signature(role, function)
        # A coroutine is true, so an async filter would pass every object.
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
        UsageError: no callback is given, something is not callable or not with one argument, or
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
    """Return a name for a handler made of ``callbacks``; ``None`` among them is skipped.

    The class, if they are methods of one; otherwise their names, joined by ``+``. The name of a
    lambda is its place in the source, that of a callable without a name its type.
    """
    # client-go: event_handler_name.go nameForFunctions
    named = [_home_and_name(callback) for callback in callbacks if callback is not None]
    homes = {home for home, _ in named}
    return homes.pop() if len(homes) == 1 else "+".join(name for _, name in named)


def check_period(period: object) -> None:
    """Refuse a value that cannot be a ``resync_period``.

    Raises:
        UsageError: it is not a number of seconds, or less than one.
    """
    # client-go raises a period below one second to one second. A caller that passes less has
    # mistaken the unit, or expects a resync to poll the server: an error is more helpful.
    if not isinstance(period, (int, float)) or not 1 <= period < math.inf:
        raise UsageError(f"resync_period is {period!r}; expected seconds, at least 1, or None")


def refuse_generators(role: str, function: Callable[..., object]) -> None:
    """Refuse a function with ``yield`` in it: a call would not run its body.

    Raises:
        UsageError: it is a generator function, plain or async.
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


def _home_and_name(callback: object) -> tuple[str, str]:
    """Return the class of a callback, or its own name if it has none, and its name."""
    while isinstance(callback, functools.partial):
        callback = callback.func
    name: object = getattr(callback, "__qualname__", None)
    if not isinstance(name, str):
        name = type(callback).__qualname__
    name = name.rpartition("<locals>.")[2]  # without the function it was defined in
    code: object = getattr(callback, "__code__", None)
    if name.endswith("<lambda>") and isinstance(code, CodeType):
        name = f"<lambda> at {PurePath(code.co_filename).name}:{code.co_firstlineno}"
        return name, name
    return name.rpartition(".")[0] or name, name


def _check_signature(role: str, function: Callable[..., object]) -> None:
    try:
        # Of a decorated function the outer one is called.
        signature = inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):  # some built-in functions have none
        return
    try:
        # Checked when the handler is made: a wrong number of parameters would otherwise fail with
        # every event, and only in the log.
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
