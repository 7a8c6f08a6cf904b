"""A key lookup in blocking code against the same lookup on the event loop, and what a call costs.

The cache is filled through an informer on kinform's thread. Then the same keys are looked up

* *on the loop*: by a coroutine there, from the asyncio informer;
* *blocking*: in the main thread, from the informer of `kinform.sync`, whose thread idles;

each time from ``informer.lister``, and by text as well as by `ObjectName`. The last figure is the
way there and back of a blocking call that does nothing: what each request to a cluster costs more
than with asyncio.
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Sequence
from functools import partial
from typing import Final, Protocol, TypeVar

from bench import measure
from kinform.cache import shared_informer as aio
from kinform.cache.lister import Lister
from kinform.meta import ObjectName
from kinform.objects.object import Object
from kinform.sync import SharedInformer, _loop_thread
from kinform.testing import FakeListWatch

__all__ = ["main"]

BAR: Final = 2.0
"""The allowed ratio of a lookup in blocking code to one on the loop."""

T_co = TypeVar("T_co", covariant=True)


class _HasLister(Protocol[T_co]):
    @property
    def lister(self) -> Lister[T_co]: ...


def _look_up(informer: _HasLister[Object], keys: Sequence[ObjectName | str]) -> None:
    for key in keys:
        if informer.lister.get(key) is None:
            raise AssertionError(f"{key} is missing")


async def _look_up_here(informer: _HasLister[Object], keys: Sequence[ObjectName | str]) -> None:
    _look_up(informer, keys)


def _look_up_there(informer: _HasLister[Object], keys: Sequence[ObjectName | str]) -> None:
    _loop_thread.current().run(_look_up_here, informer, keys)


async def _nothing() -> None: ...


def _hop(times: int) -> None:
    loop = _loop_thread.current()
    for _ in range(times):
        loop.run(_nothing)


def main(arguments: Sequence[str] = ()) -> bool:
    """Run and print the benchmark; return whether the bar was reached."""
    parser = argparse.ArgumentParser(prog="python -m bench blocking")
    parser.add_argument("--objects", type=int, default=20_000)
    parser.add_argument("--hops", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args(arguments)

    source = FakeListWatch()
    for n in range(options.objects):
        source.add({"metadata": {"namespace": f"ns-{n % 20}", "name": f"map-{n}"}})
    keys = [ObjectName(f"ns-{n % 20}", f"map-{n}") for n in range(options.objects)]
    print(f"{options.objects} objects; Python {platform.python_version()};")
    print(f"CPU time, medians of {options.rounds} interleaved rounds\n")
    inner = aio.SharedInformer(source)
    reached = True
    with SharedInformer(_loop_thread.current(), inner) as informer:
        informer.wait_synced(60)
        ways: dict[str, Sequence[ObjectName | str]] = {
            "by ObjectName": keys,
            "by text": [str(key) for key in keys],
        }
        for title, wanted in ways.items():
            jobs: dict[str, measure.Job] = {
                "on the loop": partial(_look_up_there, inner, wanted),
                "blocking": partial(_look_up, informer, wanted),
            }
            run = measure.interleaved(jobs, rounds=options.rounds, collect=True)
            for name in jobs:
                print(f"{title:16}{name:14}{run.median(name) / len(keys) * 1e9:8.0f} ns per lookup")
            ratio = run.ratio("blocking", "on the loop")
            word = "reached" if ratio <= BAR else "MISSED"
            print(f"{'':16}{'ratio':14}{ratio:8.2f}x (at most {BAR:g}x: {word})")
            reached &= ratio <= BAR
        hops = measure.interleaved(
            {"hop": partial(_hop, options.hops)}, rounds=options.rounds, collect=True
        )
    print(f"a blocking call that does nothing: {hops.median('hop') / options.hops * 1e6:.0f} µs")
    return reached


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1:]))
