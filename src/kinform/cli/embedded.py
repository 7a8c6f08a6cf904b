"""The embedded API server and its demo cluster, as the command uses them: the one seam."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from importlib import import_module
from typing import Protocol, cast, final

from kinform.cli.problems import Problem
from kinform.client import Client

__all__ = ["Embedded", "embedded", "start_server"]


class _Server(Protocol):
    @property
    def url(self) -> str: ...

    def kubeconfig(self) -> str: ...

    def connect(self) -> Client: ...


@final
class Embedded:
    """A running server; with ``live`` it has a demo cluster whose objects come, change and go."""

    def __init__(self, server: _Server, demo: AsyncExitStack) -> None:
        self._server = server
        self._demo = demo

    @property
    def url(self) -> str:
        """Where it listens."""
        return self._server.url

    def kubeconfig(self) -> str:
        """Return a kubeconfig for it, as YAML."""
        return self._server.kubeconfig()

    def connect(self) -> Client:
        """Return a client of it that is not open yet."""
        return self._server.connect()

    async def settle(self) -> None:
        """End the demo's life; what it has made stays as it is."""
        await self._demo.aclose()


@asynccontextmanager
async def embedded(
    *, live: bool, seed: int | None = None, **options: object
) -> AsyncGenerator[Embedded]:
    """Run a server within the block; ``options`` are those of ``APIServer``."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(start_server({**options, "seed": seed}))
        demo = await stack.enter_async_context(AsyncExitStack())
        if live:
            await demo.enter_async_context(_live(server, seed))
        yield Embedded(server, demo)


def start_server(options: Mapping[str, object]) -> AbstractAsyncContextManager[_Server]:
    """Return a server that starts on entering.

    Raises:
        Problem: this kinform has none, or none with such an option.
    """
    make = _part("kinform.apiserver", "APIServer")
    given = {name: value for name, value in options.items() if value is not None}
    known = inspect.signature(make).parameters
    if unknown := [name for name in given if name not in known]:
        raise Problem(f"the embedded API server has no such option: {', '.join(unknown)}")
    return cast("AbstractAsyncContextManager[_Server]", make(**given))


def _live(server: _Server, seed: int | None) -> AbstractAsyncContextManager[object]:
    make = _part("kinform.apiserver.demo", "Demo")
    given = {} if seed is None else {"seed": seed}
    return cast("AbstractAsyncContextManager[object]", make(server, **given))


def _part(module: str, name: str) -> Callable[..., object]:
    # By name: the server is not loaded, not even by type checkers, before somebody wants it.
    try:
        return cast("Callable[..., object]", getattr(import_module(module), name))
    except ModuleNotFoundError as exc:
        if exc.name != module:
            raise
        raise Problem(f"this version of kinform has no {module}") from exc
