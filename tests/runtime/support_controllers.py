"""Controllers at work on an embedded server without sockets."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable

import kinform
from kinform.apiserver import APIServer
from kinform.runtime.controller.context import Context
from kinform.runtime.controller.controller import Controller
from kinform.runtime.controller.reconciler import Result
from kinform.runtime.manager import Manager
from kinform.runtime.source.kind import AnyKind, KindSource

MAPS = "v1/configmaps"
SECRETS = "v1/secrets"


def named(name: str, **more: object) -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": "default", **more}}


def key(name: str) -> kinform.ObjectName:
    return kinform.ObjectName("default", name)


class Log:
    """A reconcile that takes note of its calls, and does what ``then`` does."""

    def __init__(
        self, then: Callable[[Context, kinform.ObjectName], Awaitable[Result | None]] | None = None
    ) -> None:
        self.names: list[str] = []
        self.contexts: list[Context] = []
        self.running: Counter[str] = Counter()
        self._then = then
        self._called = asyncio.Condition()

    async def __call__(self, ctx: Context, name: kinform.ObjectName) -> Result | None:
        self.running[name.name] += 1
        assert self.running[name.name] == 1, "twice at once"
        self.names.append(name.name)
        self.contexts.append(ctx)
        async with self._called:
            self._called.notify_all()
        try:
            return await self._then(ctx, name) if self._then else None
        finally:
            self.running[name.name] -= 1

    async def called(self, times: int) -> None:
        """Wait until it was called so often."""
        async with asyncio.timeout(3600), self._called:
            await self._called.wait_for(lambda: len(self.names) >= times)


def controller(
    reconcile: Callable[..., object],
    *,
    for_: AnyKind = MAPS,
    **options: object,
) -> Controller:
    """Return a controller of the ConfigMaps of the default namespace."""
    if for_ == MAPS:
        for_ = KindSource(MAPS, namespace="default")
    return Controller("test", reconcile, for_=for_, **options)  # type: ignore[arg-type]


@contextlib.asynccontextmanager
async def running(client: kinform.Client, *controllers: Controller) -> AsyncGenerator[Manager]:
    """Run controllers beside the block."""
    async with Manager(client, signals=False) as manager:
        manager.add(*controllers)
        await manager.start()
        yield manager


@contextlib.asynccontextmanager
async def served() -> AsyncGenerator[tuple[APIServer, kinform.Client]]:
    """Give a server and a client of it; no ConfigMap is there yet but those of the system."""
    async with APIServer(port=None, seed=1) as server, server.connect() as client:
        yield server, client
