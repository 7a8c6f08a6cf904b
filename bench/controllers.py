"""A controller that does nothing, against the bare informer that it stands on.

Both sync the same pods from an embedded API server in a process of its own, over loopback. The
bare informer is started and waited for until it has synced; the controller, run by a `Manager`, is
started and waited for until every pod was reconciled. What counts is the CPU time of this process:
everything between the two is what sources, queue, workers and contexts cost.
"""

from __future__ import annotations

import argparse
import asyncio
import platform
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import kinform
from bench.apiserver import embedded
from kinform.runtime.controller.context import Context
from kinform.runtime.controller.controller import Controller
from kinform.runtime.manager import Manager

__all__ = ["main"]

BAR: Final = 3.0
"""The allowed ratio of the controller's CPU time to that of the bare informer."""
_PODS: Final = "v1/pods"


async def _bare(client: kinform.Client, count: int) -> None:
    async with client.informer(_PODS) as informer:
        await informer.wait_synced(120)
        assert len(informer.indexer) == count


async def _controller(client: kinform.Client, count: int, *, workers: int) -> None:
    done = asyncio.Event()
    left = count

    async def reconcile(_ctx: Context, _name: kinform.ObjectName) -> None:
        nonlocal left
        left -= 1
        if not left:
            done.set()

    async with Manager(client, signals=False) as manager:
        manager.add(Controller("nothing", reconcile, for_=_PODS, workers=workers))
        await manager.start()
        async with asyncio.timeout(120):
            await done.wait()


async def _cpu(job: Callable[[], Awaitable[None]]) -> float:
    began = time.process_time()
    await job()
    return time.process_time() - began


async def _measure(options: argparse.Namespace) -> bool:
    async with embedded() as (server, client):
        await server.prepare(options.pods)
        ways: dict[str, Callable[[], Awaitable[None]]] = {
            "bare informer": lambda: _bare(client, options.pods),
            "1 worker": lambda: _controller(client, options.pods, workers=1),
            "8 workers": lambda: _controller(client, options.pods, workers=8),
        }
        rounds: dict[str, list[float]] = {name: [] for name in ways}
        for number in range(options.rounds + 1):  # the first does not count
            for name, way in ways.items():
                took = await _cpu(way)
                if number:
                    rounds[name].append(took)
    base = rounds["bare informer"]
    reached = True
    for name, times in rounds.items():
        ratio = statistics.median(ours / bare for ours, bare in zip(times, base, strict=True))
        cost = f"{name:16}{statistics.median(times) / options.pods * 1e6:7.1f} µs per pod"
        if times is base:
            print(cost)
            continue
        reached &= ratio <= BAR
        word = "reached" if ratio <= BAR else "MISSED"
        print(f"{cost}, {ratio:.2f}x (at most {BAR:g}x: {word})")
    return reached


def main(arguments: Sequence[str] = ()) -> bool:
    """Run and print the benchmark; return whether the bar was reached."""
    parser = argparse.ArgumentParser(prog="python -m bench controllers")
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args(arguments)
    print(f"{options.pods} pods, from the start to all reconciled;", end=" ")
    print(f"Python {platform.python_version()};")
    print(f"CPU time, medians of {options.rounds} interleaved rounds\n")
    return asyncio.run(_measure(options))


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1:]))
