"""The servers that can be soaked: the embedded one, and a real control plane."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol, TypeAlias
from urllib.parse import urlsplit

from kinform import Client
from kinform.apiserver import APIServer, faults
from kinform.clock import offload
from kinform.testing import APIServerThread, ControlPlane
from tools.soak.messages import Address

__all__ = ["TARGETS", "Target", "Trouble"]

Trouble: TypeAlias = Callable[[random.Random], Coroutine[object, object, None]]
"""Something that goes wrong for a while; it is over when that returns."""

HURT, HEALTHY = 0, 1
NAMESPACE: Final = "default"
WATCHES: Final[faults.MatchOptions] = {"verb": "watch", "resource": "configmaps"}


class Target(Protocol):
    """A server with two addresses: one for the writers, one for the process under test."""

    port: int
    """The port to which the relay of the process under test connects."""

    def connect(self) -> Client:
        """Return a client that goes round all trouble."""
        ...

    def address(self, port: int) -> Address:
        """Return how to come in by another port."""
        ...

    def troubles(self) -> Mapping[str, Trouble]:
        """Return what can go wrong with this server."""
        ...


class EmbeddedTarget:
    """The embedded server in a thread, with its fault plan."""

    def __init__(self, server: APIServerThread) -> None:
        self._server = server
        self.port: int = _port(server.url)

    def connect(self) -> Client:
        """Return a client that goes round all trouble: faults hit reads of config maps only."""
        return self._server.connect()

    def address(self, port: int) -> Address:
        """Return how to come in by another port."""
        return Address(
            url=f"http://127.0.0.1:{port}", namespace=NAMESPACE, token=self._server.token
        )

    def troubles(self) -> Mapping[str, Trouble]:
        """Return faults of the plan, each for some seconds, and compaction."""
        makers: dict[str, Callable[[random.Random], faults.Fault]] = {
            "500": lambda _: faults.status(500, **WATCHES),
            "429": lambda _: faults.status(429, retry_after=1, **WATCHES),
            "410": lambda _: faults.error_event(
                410, after_events=2, verb="watch", resource="configmaps", times=2
            ),
            "closed": lambda rng: faults.close_watch(
                after_events=rng.randint(1, 9), resource="configmaps"
            ),
            "reset": lambda rng: faults.reset(after_bytes=rng.randint(1, 4000), **WATCHES),
            "truncated": lambda rng: faults.truncate_frame(event=rng.randint(1, 5), **WATCHES),
            "dripping": lambda _: faults.drip(size=256, every=0.01, **WATCHES),
            "repeating": lambda _: faults.duplicate_events(**WATCHES),
            "stale": lambda rng: faults.stale(revisions=rng.randint(1, 50), **WATCHES),
            "half open": lambda rng: faults.half_open(
                after_events=rng.randint(0, 5), verb="watch", resource="configmaps", times=1
            ),
        }
        planned = {name: self._planned(make) for name, make in makers.items()}
        return planned | {"compacted": self._compact, "paused": self._pause}

    def _planned(self, make: Callable[[random.Random], faults.Fault]) -> Trouble:
        async def trouble(rng: random.Random) -> None:
            fault = await offload(self._server.faults.add, make(rng))
            try:
                # A watch that is open is not touched by most of them.
                await offload(self._server.call, _disconnect)
                await asyncio.sleep(rng.uniform(2, 8))
            finally:
                await offload(self._server.faults.remove, fault)

        return trouble

    async def _compact(self, _: random.Random) -> None:
        await offload(self._server.call, _disconnect)
        await offload(self._server.compact)

    async def _pause(self, rng: random.Random) -> None:
        await offload(self._server.call, APIServer.pause)
        try:
            await asyncio.sleep(rng.uniform(1, 5))
        finally:
            await offload(self._server.call, APIServer.resume)


def _disconnect(server: APIServer) -> None:
    server.cluster.storage.disconnect()


class ControlPlaneTarget:
    """Two apiservers and an etcd: one is hurt, the writers use the other."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self.port: int = _port(plane.urls[HURT])

    def connect(self) -> Client:
        """Return a client of the apiserver that is well."""
        return self._plane.connect(apiserver=HEALTHY)

    def address(self, port: int) -> Address:
        """Return how to come in by another port, as the administrator."""
        tls = self._plane.config.tls
        return Address(
            url=f"https://127.0.0.1:{port}",
            namespace=NAMESPACE,
            ca=tls.ca_data,
            cert=tls.cert_data,
            key=tls.key_data,
        )

    def troubles(self) -> Mapping[str, Trouble]:
        """Return what happens to apiservers and their etcd."""
        return {
            "restarted": self._restart,
            "killed": self._kill,
            "paused": self._pause,
            "compacted": self._compact,
            "lagging": self._lag,
        }

    async def _restart(self, _: random.Random) -> None:
        await self._plane.restart_apiserver(HURT)

    async def _kill(self, rng: random.Random) -> None:
        await self._plane.kill_apiserver(HURT)
        try:
            await asyncio.sleep(rng.uniform(0, 5))
        finally:
            await self._plane.start_apiserver(HURT)

    async def _pause(self, rng: random.Random) -> None:
        self._plane.pause(HURT)
        try:
            await asyncio.sleep(rng.uniform(1, 12))
        finally:
            self._plane.resume(HURT)

    async def _compact(self, _: random.Random) -> None:
        await self._plane.compact(restart=False)
        await self._plane.restart_apiserver(HURT)

    async def _lag(self, rng: random.Random) -> None:
        self._plane.lag(HURT, rng.uniform(0.5, 5))
        try:
            await asyncio.sleep(rng.uniform(2, 10))
        finally:
            self._plane.lag(HURT, 0)


@contextlib.asynccontextmanager
async def _embedded() -> AsyncGenerator[Target]:
    with APIServerThread(APIServer(history=2000)) as server:
        yield EmbeddedTarget(server)


@contextlib.asynccontextmanager
async def _control_plane() -> AsyncGenerator[Target]:
    async with ControlPlane(apiservers=2) as plane:
        yield ControlPlaneTarget(plane)


TARGETS: Final[Mapping[str, Callable[[], AbstractAsyncContextManager[Target]]]] = {
    "embedded": _embedded,
    "control-plane": _control_plane,
}


def _port(url: str) -> int:
    port = urlsplit(url).port
    assert port is not None
    return port
