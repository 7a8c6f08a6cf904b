"""A server in memory, and replicas of a program that each have a wire of their own to it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Any, TypedDict, Unpack, cast

from kinform import Client, connect
from kinform.apiserver import APIServer
from kinform.apiserver.memory import MemoryTransport
from kinform.rest.config import Config
from kinform.rest.rate_limits import RateLimiter
from kinform.rest.transport import HttpRequest, HttpResponse
from kinform.runtime.leader_election import LeaderElection, LeaderElector
from kinform.testing import virtual_clock


class Wire:
    """A transport that notes what is sent, and can be cut: nothing is answered any more."""

    def __init__(self, server: APIServer) -> None:
        self._inner = MemoryTransport(server.application)
        self.methods: list[str] = []
        self.is_cut = False
        self.loses_answers = False

    @contextlib.asynccontextmanager
    async def send(self, request: HttpRequest) -> AsyncGenerator[HttpResponse]:
        self.methods.append(request.method)
        if self.is_cut:
            await asyncio.get_running_loop().create_future()
        async with self._inner.send(request) as response:
            if self.loses_answers and request.method != "GET":
                await asyncio.get_running_loop().create_future()
            yield response

    async def aclose(self) -> None:
        await self._inner.aclose()


class Replica:
    """One candidate, and what became of it."""

    def __init__(self, client: Client, wire: Wire, election: LeaderElection) -> None:
        self.client = client
        self.wire = wire
        self.leaders: list[str] = []
        self.elector = LeaderElector(client, election, on_new_leader=self.leaders.append)
        self.began: float | None = None
        self.ended: float | None = None

    def leads(self) -> bool:
        return self.elector.is_leader

    async def lead(self) -> None:
        """Lead until cancelled, and record when."""
        self.began, self.ended = now(), None
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self.ended = now()


def now() -> float:
    return virtual_clock().boot()


class Options(TypedDict, total=False):
    """Some keywords of `LeaderElection`."""

    release_on_exit: bool
    labels: dict[str, str]


class Cluster:
    """Makes replicas of one server."""

    def __init__(self, server: APIServer, stack: contextlib.AsyncExitStack) -> None:
        self.server = server
        self._stack = stack
        self.admin: Client

    async def replica(
        self, name: str, *, rate_limiter: RateLimiter | None = None, **options: Unpack[Options]
    ) -> Replica:
        wire = Wire(self.server)
        config = Config(server="http://localhost", token=self.server.token)
        client = connect(config, transport=wire, rate_limiter=rate_limiter)
        await self._stack.enter_async_context(client)
        return Replica(client, wire, LeaderElection(lease="widgets", identity=name, **options))

    async def lease(self) -> dict[str, Any]:
        """Return the spec of the lease."""
        found = await self.admin.resource("leases.coordination.k8s.io").get("widgets")
        spec: dict[str, Any] = cast("dict[str, Any]", found.to_dict())["spec"]
        return spec

    async def edit(self, **spec: object) -> None:
        """Change the lease by hand."""
        leases = self.admin.resource("leases.coordination.k8s.io")
        whole = cast("dict[str, Any]", (await leases.get("widgets")).to_dict())
        whole["spec"] |= spec
        await leases.replace(whole)


@contextlib.asynccontextmanager
async def cluster() -> AsyncGenerator[Cluster]:
    async with contextlib.AsyncExitStack() as stack:
        server = await stack.enter_async_context(APIServer(port=None))
        made = Cluster(server, stack)
        made.admin = await stack.enter_async_context(server.connect())
        yield made


async def until(condition: Callable[[], object], *, within: float = 60.0) -> None:
    """Wait, in virtual time, until ``condition`` holds."""
    async with asyncio.timeout(within):
        while not condition():  # noqa: ASYNC110 - time is virtual, and a condition anything
            await asyncio.sleep(0.01)
