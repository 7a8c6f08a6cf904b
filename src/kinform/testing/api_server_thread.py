"""The embedded API server in a thread of its own, for tests on any event loop or on none."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final, Self, TypeVar, final

from kinform.apiserver.server import APIServer
from kinform.errors import UsageError

if TYPE_CHECKING:
    from kinform.apiserver.faults.plan import FaultPlan
    from kinform.client import Client

__all__ = ["APIServerThread"]

R = TypeVar("R")

_LIMIT: Final = 30.0
"""Seconds that starting, stopping or a call may take: much more than any of them needs."""


@final
class APIServerThread:
    """A `kinform.apiserver.APIServer` that runs beside the test and not in its event loop.

    Clients of every kind can talk to it, blocking ones included. What is done to the server
    itself goes through here, or through `call`: it belongs to its own thread.

    >>> with APIServerThread() as server:
    ...     server.url.startswith("http://127.0.0.1:")
    True
    """

    def __init__(self, server: APIServer | None = None) -> None:
        self._server: Final = APIServer() if server is None else server
        self._loop: asyncio.AbstractEventLoop | None = None
        self._started: Final[Future[None]] = Future()
        self._stop: asyncio.Event | None = None
        self._thread: Final = threading.Thread(target=self._run, name="kinform-apiserver")

    def __repr__(self) -> str:
        return f"<APIServerThread of {self._server!r}>"

    def __enter__(self) -> Self:
        if self._thread.ident is not None:
            raise UsageError("an APIServerThread can be started once; make another one")
        self._thread.start()
        try:
            self._started.result(_LIMIT)
        except BaseException:
            self._thread.join(_LIMIT)
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        loop, stop = self._loop, self._stop
        if loop is not None and stop is not None:
            loop.call_soon_threadsafe(stop.set)
        self._thread.join(_LIMIT)

    @property
    def url(self) -> str:
        """The URL of the server.

        Raises:
            UsageError: it was not started, or has no port.
        """
        return self._begun.url

    @property
    def token(self) -> str:
        """The bearer token that clients send."""
        return self._server.token

    @property
    def faults(self) -> FaultPlan:
        """The faults to inject: see `kinform.apiserver.faults`. Can be changed from any thread."""
        return self._server.faults

    def kubeconfig(self) -> str:
        """Return a kubeconfig that any client of Kubernetes can use, with the token in it.

        Raises:
            UsageError: the server was not started, or has no port.
        """
        return self._begun.kubeconfig()

    def connect(self) -> Client:
        """Return a client for the caller's event loop, to be used with ``async with``.

        Raises:
            UsageError: the server was not started.
        """
        return self._begun.connect()

    def compact(self, revision: int | None = None) -> None:
        """Compact the history up to ``revision``, or up to now: reads of older versions get a 410.

        Raises:
            UsageError: the revision does not exist, or the server does not run.
        """
        self.call(lambda server: server.compact(revision))

    def restore(self, revision: int) -> None:
        """Restore the state at ``revision``, as etcd is restored from a backup; watches end.

        Raises:
            UsageError: the revision never existed or was compacted, or the server does not run.
        """
        self.call(lambda server: server.restore(revision))

    def call(self, function: Callable[[APIServer], R]) -> R:
        """Call ``function`` with the server, in its thread, and return what it returns.

        Blocks for as long as that takes, also the caller's event loop.

        Raises:
            UsageError: the server does not run.
        """
        server, loop = self._begun, self._loop
        if loop is None or not self._thread.is_alive():
            raise UsageError("the server has ended; make another one")
        result: Future[R] = Future()

        def run() -> None:
            try:
                result.set_result(function(server))
            except BaseException as exc:  # noqa: BLE001 - it is the caller's, in its own thread
                result.set_exception(exc)

        loop.call_soon_threadsafe(run)
        return result.result(_LIMIT)

    @property
    def _begun(self) -> APIServer:
        if self._thread.ident is None:
            raise UsageError("the server is not started: use `with APIServerThread() as server`")
        return self._server

    def _run(self) -> None:
        asyncio.run(self._main())

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        try:
            async with self._server:
                self._started.set_result(None)
                await self._stop.wait()
        except BaseException as exc:
            if self._started.done():
                raise
            self._started.set_exception(exc)
