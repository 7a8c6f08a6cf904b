"""Derives a method of the blocking API from one of the asyncio API, in one line.

.. code-block:: python

    class ResourceClient(Generic[T]):
        get: Final = blocking(aio.ResourceClient[T].get)

There is only one implementation. Parameters and result are those of the original, for type
checkers as well; only overloads cannot be carried over, and are written out.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Concatenate, ParamSpec, Protocol, TypeVar, cast

from kinform.sync._loop_thread import LoopThread

__all__ = ["Facade", "blocking", "on_loop", "parts_of", "wrapped"]

A = TypeVar("A")
A_co = TypeVar("A_co", covariant=True)
P = ParamSpec("P")
R = TypeVar("R")
X = TypeVar("X")


class Facade(Protocol[A_co]):
    """An object of the blocking API: its asyncio object, and the thread of the loop."""

    @property
    def _loop(self) -> LoopThread: ...
    @property
    def _inner(self) -> A_co: ...


def parts_of(facade: Facade[A]) -> tuple[LoopThread, A]:
    """Return the thread of the loop, and the asyncio object."""
    return facade._loop, facade._inner  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - ours


def blocking(
    method: Callable[Concatenate[A, P], Coroutine[object, object, R]],
) -> Callable[Concatenate[Facade[A], P], R]:
    """Return a method that runs ``method`` on the loop and waits for it: see `LoopThread.run`."""

    def call(self: Facade[A], /, *args: P.args, **kwargs: P.kwargs) -> R:
        loop, inner = parts_of(self)
        return loop.run(method, inner, *args, **kwargs)

    return _named(call, method)


def on_loop(method: Callable[Concatenate[A, P], R]) -> Callable[Concatenate[Facade[A], P], R]:
    """Return a method that calls ``method``, which never waits, on the loop."""

    def call(self: Facade[A], /, *args: P.args, **kwargs: P.kwargs) -> R:
        loop, inner = parts_of(self)
        return loop.call(method, inner, *args, **kwargs)

    return _named(call, method)


def wrapped(
    method: Callable[Concatenate[A, P], X], wrap: Callable[[LoopThread, X], R]
) -> Callable[Concatenate[Facade[A], P], R]:
    """Return a method that calls ``method``, which does no I/O, and wraps its result."""

    def call(self: Facade[A], /, *args: P.args, **kwargs: P.kwargs) -> R:
        loop, inner = parts_of(self)
        loop.refuse_children()
        return wrap(loop, method(inner, *args, **kwargs))

    return _named(call, method)


def _named(
    call: Callable[Concatenate[Facade[A], P], R], method: Callable[..., object]
) -> Callable[Concatenate[Facade[A], P], R]:
    """Give ``call`` the name, the signature and the docstring of ``method``."""
    functools.update_wrapper(call, method)
    named = cast("_Function", call)
    named.__signature__ = inspect.signature(method)
    del named.__wrapped__  # `inspect.unwrap` must not find a coroutine function
    return call


class _Function(Protocol):
    __signature__: inspect.Signature
    __wrapped__: Callable[..., object]
