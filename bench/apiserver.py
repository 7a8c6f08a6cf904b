"""The embedded API server beside the real kube-apiserver, in one run.

Each serves from a process of its own, in memory and with everything on that the contract suite
checks: validation, defaults, managedFields. The clients are the same, in this process. The real
server speaks TLS, because it speaks nothing else; etcd keeps its data in a folder for tests, with
fsync on. Rounds take turns; what counts is the median over rounds of the ratio within a round.

* *one client*: creates pods one after the other.
* *16 clients*: create pods at the same time.
* *list*: all pods in one answer, read and not decoded.
* *watch*: all pods as events of a watch that begins with the present state.
* *deliveries*: 16 clients create pods while 16 watches look on; events per second.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import os
import re
import secrets
import statistics
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Final

import kinform
from kinform.rest.results import WatchEvent
from kinform.testing import ControlPlane

__all__ = ["Server", "embedded", "main"]

BARS: Final = {"one client": 2.0, "16 clients": 0.5, "list": 1.0, "watch": 1.0, "deliveries": 1.0}
"""The required multiple of the real server's rate."""
_CLIENTS: Final = 16
_NAMESPACE: Final = "bench"
_FULL_NAMESPACE: Final = "bench-full"


def _pod(name: str) -> dict[str, object]:
    container = {
        "name": "app",
        "image": "registry.example.com/shop/web:1.27.3",
        "ports": [{"name": "http", "containerPort": 8080}],
        "env": [{"name": f"SETTING_{n}", "value": "x" * 24} for n in range(6)],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}},
        "volumeMounts": [{"name": "settings", "mountPath": "/etc/settings"}],
    }
    labels = {"app": "web", "team": "fjord", "tier": "frontend"}
    spec = {
        "containers": [container],
        "nodeName": "node-1",
        "volumes": [{"name": "settings", "configMap": {"name": "web"}}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
    }


class Server:
    """One of the two, seen through one client."""

    def __init__(self, client: kinform.Client) -> None:
        self._rest = client.rest("v1")
        self._names = itertools.count()

    async def prepare(self, count: int) -> None:
        """Fill a namespace with ``count`` pods."""
        for name in (_NAMESPACE, _FULL_NAMESPACE):
            await self._rest.post().resource("namespaces").body({"metadata": {"name": name}}).do()
        await self._create(count, clients=_CLIENTS, namespace=_FULL_NAMESPACE)

    async def one_client(self, count: int) -> float:
        """Create pods one after the other; return how many there were in a second."""
        return await self._create(count, clients=1)

    async def many_clients(self, count: int) -> float:
        """Create pods from many clients; return how many there were in a second."""
        return await self._create(count, clients=_CLIENTS)

    async def _create(self, count: int, *, clients: int, namespace: str = _NAMESPACE) -> float:
        """Create pods; return how many there were in a second."""
        bodies = iter([_pod(f"pod-{next(self._names)}") for _ in range(count)])

        async def work() -> None:
            for body in bodies:
                await self._rest.post().namespace(namespace).resource("pods").body(body).do()

        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for _ in range(clients):
                group.create_task(work())
        return count / (time.perf_counter() - began)

    async def list(self, count: int) -> float:
        """List all pods of the full namespace; return how many there were in a second."""
        began = time.perf_counter()
        request = self._rest.get().namespace(_FULL_NAMESPACE).resource("pods")
        body = await request.params({"resourceVersion": "0"}).header("Accept-Encoding", "").raw()
        elapsed = time.perf_counter() - began
        assert body.count(b'"creationTimestamp"') >= count
        return count / elapsed

    async def watch(self, count: int) -> float:
        """Watch the full namespace from its present state; return events per second."""
        began = time.perf_counter()
        await self._events(_FULL_NAMESPACE, count, "0")
        return count / (time.perf_counter() - began)

    async def deliveries(self, count: int) -> float:
        """Create pods while watches are open; return the events per second."""
        listed = await self._rest.get().namespace(_NAMESPACE).resource("pods").list()
        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for _ in range(_CLIENTS):
                group.create_task(self._events(_NAMESPACE, count, listed.resource_version))
            group.create_task(self._create(count, clients=_CLIENTS))
        return count * _CLIENTS / (time.perf_counter() - began)

    async def _events(self, namespace: str, count: int, version: str) -> None:
        seen = 0
        request = self._rest.get().namespace(namespace).resource("pods")
        async with request.params({"watch": "true", "resourceVersion": version}).watch() as events:
            async for event in events:
                seen += isinstance(event, WatchEvent)
                if seen == count:
                    return


@contextlib.asynccontextmanager
async def embedded() -> AsyncGenerator[tuple[Server, kinform.Client]]:
    """Start ``kinform serve`` in a process of its own, and connect to it."""
    command = (sys.executable, "-m", "kinform", "serve", "--port", "0")
    token = secrets.token_urlsafe()
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, env={**os.environ, "KINFORM_TOKEN": token}
    )
    assert process.stdout is not None
    try:
        url = ""
        while not url:
            line = (await process.stdout.readline()).decode()
            if not line:
                raise SystemExit("kinform serve did not start")
            found = re.search(r"http://127\.0\.0\.1:\d+", line)
            url = found.group() if found else ""
        async with kinform.connect(kinform.Config(server=url, token=token)) as client:
            yield Server(client), client
    finally:
        process.terminate()
        await process.wait()


@contextlib.asynccontextmanager
async def _real() -> AsyncGenerator[Server]:
    async with ControlPlane() as plane, plane.connect() as client:
        yield Server(client)


async def _measure(options: argparse.Namespace) -> bool:
    jobs: dict[str, tuple[Callable[[Server, int], Awaitable[float]], int]] = {
        "one client": (Server.one_client, options.creates),
        "16 clients": (Server.many_clients, 2 * options.creates),
        "list": (Server.list, options.pods),
        "watch": (Server.watch, options.pods),
        "deliveries": (Server.deliveries, options.creates),
    }
    reached = True
    async with _real() as real, embedded() as (ours, _):
        for server in (real, ours):
            await server.prepare(options.pods)
        print(f"{'':14}{'real':>12}{'embedded':>12}{'ratio':>9}{'bar':>7}")
        for name, (job, count) in jobs.items():
            rounds = [(await job(real, count), await job(ours, count)) for _ in range(5)]
            ratio = statistics.median(mine / theirs for theirs, mine in rounds)
            theirs, mine = (statistics.median(side) for side in zip(*rounds, strict=True))
            is_reached = ratio >= BARS[name]
            reached = reached and is_reached
            mark = "" if is_reached else "  missed"
            print(
                f"{name:14}{theirs:10,.0f}/s{mine:10,.0f}/s{ratio:8.2f}x{BARS[name]:6.1f}x{mark}",
                flush=True,
            )
    return reached


def main(arguments: Sequence[str] = ()) -> bool:
    """Print the rates; tell whether all bars were reached."""
    parser = argparse.ArgumentParser(prog="bench apiserver", description=__doc__)
    parser.add_argument("--pods", type=int, default=10_000, help="pods that are listed")
    parser.add_argument("--creates", type=int, default=300, help="pods that one client creates")
    return asyncio.run(_measure(parser.parse_args(arguments)))
