"""The reconnect storm: how long many informers of a client need after a server restart.

    python -m bench.reconnect                                 1,000 informers, `kinform serve`
    python -m bench.reconnect --server control-plane --informers 200
    python -m bench.reconnect --out bench/results/reconnect.json

Each informer follows the one ConfigMap of a namespace of its own, all through one client. The
server is a process of its own on loopback. It is stopped gracefully (SIGTERM) and started again. It
has forgotten the informers' versions then, so each must list again. Then every ConfigMap is
changed. Printed are the seconds from the moment the server answers again
until a cache has its change, and how many watches, lists and probes began in the busiest second.
Exits with 1 if one cache needed more than 30 seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import platform
import resource
import secrets
import signal
import socket
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Protocol, final

import kinform
from kinform.cache.shared_informer import SharedInformer
from kinform.objects.object import Object
from kinform.tasks import background
from kinform.testing import ControlPlane

__all__ = ["main"]

BAR: Final = 30.0
"""Within how many seconds every cache follows again."""
AT_ONCE: Final = 20
"""The number of concurrent writes."""
TICK: Final = 0.1
"""Seconds between two samples of the informers' statistics."""


class Target(Protocol):
    """A server that can be restarted."""

    def connect(self) -> kinform.Client:
        """Return a new client."""
        ...

    async def restart(self) -> float:
        """Stop it gracefully, start it again; return for how many seconds it was away."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The measurements. Times are in seconds."""

    server: str
    informers: int
    rate: float
    """Reconnects per second that the client allowed."""
    away: float
    """The duration of the outage."""
    median: float
    """Until a cache had its change, counted from the server's first answer."""
    p90: float
    longest: float
    connected: float
    """Until every informer had an open watch, counted likewise."""
    watches: int
    """Watches that were begun since the server went away, streamed lists included."""
    lists: int
    probes: int
    peak_watches: int
    """Of these, in the busiest second."""
    peak_lists: int
    peak_probes: int
    longest_pause: float
    """Between two turns of the sampler: turns that fell due meanwhile are taken together."""
    python: str = platform.python_version()
    cpus: int = os.cpu_count() or 0


# --- servers


@final
class Embedded:
    """``kinform serve`` with a data file: after a restart all older versions have expired."""

    def __init__(self, folder: Path) -> None:
        self._data = folder / "cluster.db"
        self._token = secrets.token_urlsafe(24)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port: int = free.getsockname()[1]
        self._process: asyncio.subprocess.Process | None = None

    def connect(self) -> kinform.Client:
        url = f"http://127.0.0.1:{self._port}"
        return kinform.connect(kinform.Config(server=url, token=self._token))

    async def start(self) -> None:
        command = [sys.executable, "-m", "kinform", "serve", "--port", str(self._port)]
        self._process = await asyncio.create_subprocess_exec(
            *command,
            "--data",
            str(self._data),
            env={**os.environ, "KINFORM_TOKEN": self._token},
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        async with self.connect() as client, asyncio.timeout(60):
            while True:
                with contextlib.suppress(kinform.TransportError):
                    await client.version()
                    return
                await asyncio.sleep(0.05)

    async def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            await self._process.wait()

    async def restart(self) -> float:
        began = time.monotonic()
        await self.stop()
        await self.start()
        return time.monotonic() - began


@final
class Real:
    """A kube-apiserver with its etcd."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    def connect(self) -> kinform.Client:
        return self._plane.connect()

    async def restart(self) -> float:
        began = time.monotonic()
        await self._plane.restart_apiserver()
        return time.monotonic() - began


@contextlib.asynccontextmanager
async def serving(name: str) -> AsyncGenerator[Target]:
    """Run the server of that name."""
    if name == "control-plane":
        async with ControlPlane() as plane:
            yield Real(plane)
        return
    with tempfile.TemporaryDirectory(prefix="kinform-reconnect-") as folder:
        server = Embedded(Path(folder))
        try:
            await server.start()
            yield server
        finally:
            await server.stop()


# --- the run


async def each(count: int, work: Callable[[int], Awaitable[str]]) -> Sequence[str]:
    """Do something for each number, some of them at a time; return the results in order."""
    places = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> str:
        async with places:
            return await work(number)

    return await asyncio.gather(*(one(number) for number in range(count)))


def requests(informers: Sequence[SharedInformer[Object]]) -> tuple[int, int, int]:
    """Return how many watches, lists and probes were begun until now."""
    found = [informer.statistics().reflector for informer in informers]
    return (
        sum(one.watches for one in found),
        sum(one.lists for one in found),
        sum(one.probes for one in found),
    )


async def sample(
    informers: Sequence[SharedInformer[Object]], samples: list[tuple[float, tuple[int, int, int]]]
) -> None:
    """Note again and again what was requested until then."""
    while True:
        samples.append((time.monotonic(), requests(informers)))
        await asyncio.sleep(TICK)


def peak(samples: Sequence[tuple[float, tuple[int, int, int]]], which: int) -> int:
    """Return how many requests of one kind began in the busiest second."""
    most = start = 0
    for at, counts in samples:
        while at - samples[start][0] > 1.0 + TICK / 2:
            start += 1
        most = max(most, counts[which] - samples[start][1][which])
    return most


async def until_connected(informers: Sequence[SharedInformer[Object]]) -> float:
    while not all(one.statistics().reflector.is_connected for one in informers):  # noqa: ASYNC110
        await asyncio.sleep(TICK)
    return time.monotonic()


async def measure(name: str, count: int, patience: float) -> Result:
    """Run the whole thing once."""
    async with serving(name) as server, server.connect() as client, server.connect() as writer:
        await each(count, lambda number: prepare(writer, number))
        say(f"{count} namespaces with a ConfigMap each")
        informers = [
            client.informer("v1/configmaps", namespace=f"n{number}", watch_error_handler=ignore)
            for number in range(count)
        ]
        async with contextlib.AsyncExitStack() as stack:
            for informer in informers:
                await stack.enter_async_context(informer)
            await asyncio.gather(*(informer.wait_synced(300) for informer in informers))
            await until_connected(informers)
            say("all informers follow; the server restarts")
            await asyncio.sleep(2)
            # A version newer than that of any informer: a restarted server has forgotten theirs.
            await prepare(writer, count)
            return await restart(name, server, client, writer, informers, patience)


async def restart(  # noqa: PLR0917 - one step of `measure`
    name: str,
    server: Target,
    client: kinform.Client,
    writer: kinform.Client,
    informers: Sequence[SharedInformer[Object]],
    patience: float,
) -> Result:
    before, samples, waits = requests(informers), list[Any](), list[float]()
    async with background(sample(informers, samples)):
        away = await server.restart()
        back = time.monotonic()
        say(f"the server is back after {away:.1f} s")
        versions = await each(len(informers), lambda number: change(writer, number))

        async def follow(number: int) -> None:
            await informers[number].wait_until(versions[number], patience)
            waits.append(time.monotonic() - back)

        await asyncio.gather(*(follow(number) for number in range(len(informers))))
        connected = await until_connected(informers) - back
    after = requests(informers)
    waits.sort()
    return Result(
        server=name,
        informers=len(informers),
        rate=client.rest().reconnects.rate,
        away=round(away, 1),
        median=round(waits[len(waits) // 2], 1),
        p90=round(waits[len(waits) * 9 // 10], 1),
        longest=round(waits[-1], 1),
        connected=round(connected, 1),
        watches=after[0] - before[0],
        lists=after[1] - before[1],
        probes=after[2] - before[2],
        peak_watches=peak(samples, 0),
        peak_lists=peak(samples, 1),
        peak_probes=peak(samples, 2),
        longest_pause=round(max(b[0] - a[0] for a, b in pairwise(samples)), 2),
    )


async def prepare(client: kinform.Client, number: int) -> str:
    name = f"n{number}"
    await client.resource("v1/namespaces").create({"metadata": {"name": name}})
    maps = client.resource("v1/configmaps", namespace=name)
    return (await maps.create({"metadata": {"name": "a"}})).resource_version


async def change(client: kinform.Client, number: int) -> str:
    maps = client.resource("v1/configmaps", namespace=f"n{number}")
    return (await maps.patch("a", {"data": {"changed": "yes"}})).resource_version


def ignore(_: kinform.KinformError) -> None:
    """Failures are expected here; they are counted in the statistics."""


def say(text: str) -> None:
    print(text, flush=True)


def show(result: Result) -> None:
    """Print what was measured."""
    say(
        f"{result.informers} informers, {result.rate:g} reconnects per second allowed, "
        f"server away for {result.away} s\n"
        f"caches have the change after: median {result.median} s, p90 {result.p90} s, "
        f"longest {result.longest} s; all watches open after {result.connected} s\n"
        f"openings, streamed lists included: {result.watches}, "
        f"at most {result.peak_watches} per second\n"
        f"lists: {result.lists}, at most {result.peak_lists} per second\n"
        f"probes: {result.probes}, at most {result.peak_probes} per second\n"
        f"the event loop paused for {result.longest_pause} s at most"
    )


def main() -> int:
    """Run, print, write down, judge."""
    parser = argparse.ArgumentParser(prog="python -m bench.reconnect", description=__doc__)
    parser.add_argument("--informers", type=int, default=1000)
    parser.add_argument("--server", choices=["embedded", "control-plane"], default="embedded")
    parser.add_argument("--patience", type=float, default=300.0, help="give up after so long; 300")
    parser.add_argument("--out", type=Path, help="add the result to this JSON file")
    options = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * options.informers + 500
    if soft < wanted:  # a watch is a connection, and the server's end of it is one too
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))
    result = asyncio.run(measure(options.server, options.informers, options.patience))
    show(result)
    if options.out is not None:
        kept = json.loads(options.out.read_text("utf-8")) if options.out.exists() else {}
        kept[f"{result.server}, {result.informers} informers"] = asdict(result)
        options.out.write_text(json.dumps(kept, indent=2) + "\n", "utf-8")
    return 0 if max(result.longest, result.connected) <= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
