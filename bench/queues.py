"""A key's way through a work queue, against a bare ``asyncio.Queue`` with a set beside it.

The bare one is the minimum that a hand-written loop needs: a queued key
is not queued twice, and leaves the set when it is taken. It may be processed twice at once, and
an add during processing is lost.

* *burst*: all keys are added, then all are taken and done, as after a first list.
* *one by one*: each key is added, taken and done before the next one.
* *worker*: one task adds, another waits, takes and is done.

Keys are `ObjectName`s of 20 namespaces, made beforehand.
"""

from __future__ import annotations

import argparse
import asyncio
import platform
import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Final, final

from bench import measure
from kinform.meta import ObjectName
from kinform.workqueue import FairOrder, WorkQueue

__all__ = ["main"]

PLAIN_BAR: Final = 2.0
"""The allowed ratio of the work queue to the bare queue."""
FAIR_BAR: Final = 3.0
"""The same for the fair one."""

_BARE, _PLAIN, _FAIR = "asyncio.Queue + set", "WorkQueue", "WorkQueue, fair"
_BARS: Final = {_PLAIN: PLAIN_BAR, _FAIR: FAIR_BAR}


_Queue = WorkQueue[ObjectName]
_Way = Callable[[_Queue, Sequence[ObjectName]], Awaitable[None]]


@final
class _Bare:
    """The hand-written queue, without even a function around it."""

    @staticmethod
    async def burst(keys: Sequence[ObjectName]) -> None:
        queue: asyncio.Queue[ObjectName] = asyncio.Queue()
        waiting: set[ObjectName] = set()
        for key in keys:
            if key not in waiting:
                waiting.add(key)
                queue.put_nowait(key)
        for _ in keys:
            key = await queue.get()
            waiting.discard(key)
            queue.task_done()

    @staticmethod
    async def one_by_one(keys: Sequence[ObjectName]) -> None:
        queue: asyncio.Queue[ObjectName] = asyncio.Queue()
        waiting: set[ObjectName] = set()
        for key in keys:
            if key not in waiting:
                waiting.add(key)
                queue.put_nowait(key)
            taken = await queue.get()
            waiting.discard(taken)
            queue.task_done()

    @staticmethod
    async def worker(keys: Sequence[ObjectName]) -> None:
        queue: asyncio.Queue[ObjectName] = asyncio.Queue()
        waiting: set[ObjectName] = set()

        async def add() -> None:
            for key in keys:
                if key not in waiting:
                    waiting.add(key)
                    queue.put_nowait(key)
                await asyncio.sleep(0)

        async with asyncio.TaskGroup() as group:
            group.create_task(add())
            for _ in keys:
                key = await queue.get()
                waiting.discard(key)
                queue.task_done()


async def _burst(queue: _Queue, keys: Sequence[ObjectName]) -> None:
    for key in keys:
        queue.add(key)
    for _ in keys:
        queue.done(await queue.get())


async def _one_by_one(queue: _Queue, keys: Sequence[ObjectName]) -> None:
    for key in keys:
        queue.add(key)
        queue.done(await queue.get())


async def _worker(queue: _Queue, keys: Sequence[ObjectName]) -> None:
    async def add() -> None:
        for key in keys:
            queue.add(key)
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        group.create_task(add())
        for _ in keys:
            queue.done(await queue.get())


_WAYS: Final = {
    "burst": (_Bare.burst, _burst),
    "one by one": (_Bare.one_by_one, _one_by_one),
    "worker": (_Bare.worker, _worker),
}


def _run(way: _Way, order: type[FairOrder[ObjectName]] | None, keys: Sequence[ObjectName]) -> None:
    async def run() -> None:
        await way(WorkQueue(order=None if order is None else order()), keys)

    asyncio.run(run())


def _run_bare(
    way: Callable[[Sequence[ObjectName]], Coroutine[object, object, None]],
    keys: Sequence[ObjectName],
) -> None:
    asyncio.run(way(keys))


def main(arguments: Sequence[str] = ()) -> bool:
    """Run and print the benchmark; return whether all bars were reached."""
    parser = argparse.ArgumentParser(prog="python -m bench queues")
    parser.add_argument("--keys", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args(arguments)

    keys = [ObjectName(f"ns-{n % 20}", f"pod-{n}") for n in range(options.keys)]
    print(f"{options.keys} keys, add + get + done; Python {platform.python_version()};")
    print(f"CPU time, medians of {options.rounds} interleaved rounds\n")
    reached = True
    for title, (bare, way) in _WAYS.items():
        jobs: dict[str, measure.Job] = {
            _BARE: partial(_run_bare, bare, keys),
            _PLAIN: partial(_run, way, None, keys),
            _FAIR: partial(_run, way, FairOrder, keys),
        }
        run = measure.interleaved(jobs, rounds=options.rounds, collect=True)
        print(f"{title:12}{_BARE:20}{run.median(_BARE) / len(keys) * 1e6:6.2f} µs per key")
        for name, bar in _BARS.items():
            ratio = run.ratio(name, _BARE)
            word = "reached" if ratio <= bar else "MISSED"
            cost = f"{name:20}{run.median(name) / len(keys) * 1e6:6.2f} µs"
            print(f"{'':12}{cost}, {ratio:.2f}x (at most {bar:g}x: {word})")
            reached &= ratio <= bar
    return reached


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1:]))
