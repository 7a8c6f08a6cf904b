"""Informers and controllers on a server in memory, in virtual time: nothing depends on the machine.

All is what runs in production, down to the `Transport`. A read brings `READ_SIZE` bytes. Waits
cannot hang: in virtual time that is a `Deadlock`, which names each waiting task.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import Any, Final, Generic, TypeVar, final

import kinform
from bench import transport
from kinform.rest.transport import HttpRequest, HttpResponse

__all__ = ["Following", "controlling", "following", "list_end", "reads"]

T = TypeVar("T")

READ_SIZE: Final = 256 * 1024
"""The size of one read of asyncio from a socket with more data."""

_DEADLINE: Final = 60.0  # of virtual time
_PODS: Final = "v1/pods"
_EXPIRED: Final = (
    b'{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},'
    b'"status":"Failure","reason":"Expired","code":410}}\n'
)
_DISCOVERY: Final = json.dumps({
    "kind": "APIResourceList",
    "groupVersion": "v1",
    "resources": [{"name": "pods", "kind": "Pod", "namespaced": True, "verbs": ["list", "watch"]}],
}).encode()  # fmt: skip


def reads(*lines: bytes) -> list[bytes]:
    """Return what reading a body of these lines brings, read by read."""
    return [*transport.pieces(lines, READ_SIZE)]


def list_end(version: int) -> bytes:
    """Return the bookmark that ends a streamed list."""
    return (
        b'{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{'
        b'"resourceVersion":"%d","annotations":{"k8s.io/initial-events-end":"true"}}}}\n' % version
    )


@final
class _Server:
    """Knows of pods, and gives each request for them the next of ``answers``."""

    def __init__(self, answers: Iterable[transport.Answer]) -> None:
        self._answers = iter(answers)

    @contextlib.asynccontextmanager
    async def send(self, request: HttpRequest) -> AsyncGenerator[HttpResponse]:
        if "/pods" in request.url:
            yield next(self._answers)
            return
        answer = transport.Answer()
        answer.put([_DISCOVERY, b""])
        yield answer

    async def aclose(self) -> None:
        pass


@final
class Following(Generic[T]):
    """An informer on a watch whose bytes the benchmark supplies, with an event counter."""

    def __init__(self, client: kinform.Client, answers: list[transport.Answer]) -> None:
        self.client: Final = client
        self._answers = answers
        self._missing = 0
        self._delivered = asyncio.Event()
        self.informer: kinform.SharedInformer[T]

    def tell(self, _: object = None) -> None:
        """Count one event."""
        self._missing -= 1
        if not self._missing:
            self._delivered.set()

    async def take(self, reads: Iterable[bytes], *, delivered: int) -> None:
        """Feed ``reads``; return after ``delivered`` events, or after the sync if it is 0."""
        self._missing = delivered
        self._delivered.clear()
        self._answers[0].put(reads)
        async with asyncio.timeout(_DEADLINE):
            await (self._delivered.wait() if delivered else self.informer.wait_synced())

    async def relist(self, reads: Iterable[bytes], *, version: int) -> None:
        """End the watch, and have ``reads`` be the new list; return when the cache shows it."""
        ended = self._answers.pop(0)
        self._answers[0].put(reads)
        ended.put([_EXPIRED, b""])
        await self.informer.wait_until(str(version), timeout=_DEADLINE)

    async def pack(self, objects: int) -> None:
        """Wait until so many objects were compressed."""
        async with asyncio.timeout(_DEADLINE):
            while self.informer.statistics().storage.objects < objects:  # noqa: ASYNC110 - virtual
                await asyncio.sleep(1)


@contextlib.asynccontextmanager
async def _client() -> AsyncGenerator[Following[Any]]:
    answers = [transport.Answer(), transport.Answer()]
    connect = kinform.connect("https://bench.invalid", transport=_Server([*answers]))
    async with connect as client:
        yield Following(client, answers)


@contextlib.asynccontextmanager
async def following(
    read: Callable[[T], object],
    *,
    node: Callable[[T], str],
    awaits: bool = False,
    **options: Any,
) -> AsyncGenerator[Following[T]]:
    """Yield an informer with an index by node, and a handler that calls ``read``.

    With ``awaits`` the handler is an ``async def``: each call has a task of its own.
    """
    async with _client() as following:
        informer = following.client.informer(_PODS, indexers={"node": node}, **options)
        following.informer = informer

        def on_add(event: kinform.Added[T]) -> None:
            read(event.obj)
            following.tell()

        def on_update(event: kinform.Updated[T]) -> None:
            read(event.new)
            following.tell()

        async def on_update_awaited(event: kinform.Updated[T]) -> None:
            on_update(event)

        informer.add_event_handler(
            on_add=on_add, on_update=on_update_awaited if awaits else on_update
        )
        async with informer:
            yield following


@contextlib.asynccontextmanager
async def controlling() -> AsyncGenerator[Following[kinform.Object]]:
    """Yield a controller that does nothing but count."""
    async with _client() as following:

        async def reconcile(_ctx: kinform.Context, _name: kinform.ObjectName) -> None:
            following.tell()

        async with kinform.Manager(following.client, signals=False) as manager:
            manager.add(kinform.Controller("nothing", reconcile, for_=_PODS))
            await manager.start()
            yield following
