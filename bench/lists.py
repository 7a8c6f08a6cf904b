"""The memory that one large list body takes on its way into a cache.

A process of its own lists all pods in one answer, as a server with a watch cache sends them
whatever limit it was asked for, into a `SharedInformer` with an index by ``spec.nodeName`` and a
handler. The body comes through a pipe, made up as it is read: nobody ever holds it.

* *settled*: resident memory when the handler was told of all, after a full collection and after
  the C library (glibc) was told to give back what is free.
* *peak*: the most resident memory there ever was, as the kernel counts it.

Both without what the process had before: a small list has the same bar as a large one.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import gc
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from bench import pods, transport
from kinform import Object, SharedInformer
from kinform.cache import ReflectorOptions

__all__ = ["main"]

BAR: Final = 1.5
"""How many times the settled memory the peak may be."""
FULL: Final = 100_000
"""How many pods make a body of 640 MB."""

_STATUS: Final = Path("/proc/self/status")
_MB: Final = 1_000_000


# --- the process that is measured -------------------------------------------------------------


def _memory(what: str) -> int:
    """Return a figure of the kernel's: ``VmRSS``, what is resident, or ``VmHWM``, its peak."""
    for line in _STATUS.read_text(encoding="ascii").splitlines():
        name, _, value = line.partition(":")
        if name == what:
            return int(value.split()[0]) * 1024
    raise SystemExit(f"{_STATUS} does not tell {what}")


def _body() -> Iterator[bytes]:
    """Yield what the parent sends, and the end."""
    while piece := os.read(0, transport.READ_SIZE):
        yield piece
    yield b""


def _give_back() -> None:
    gc.collect()
    if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)


async def _measure() -> dict[str, float]:
    body, nothing_new = transport.Answer(), transport.Answer()
    informer: SharedInformer[Object] = SharedInformer(
        transport.source(body, nothing_new),
        indexers={"node": lambda pod: pod.at("spec", "nodeName")},
        options=ReflectorOptions(stream_lists=False, first_version="0"),
    )
    told = informer.add_event_handler(on_add=lambda event: event.obj.at("status", "phase"))
    _give_back()
    before, cpu = _memory("VmRSS"), time.process_time()
    body.put(_body())
    async with informer:
        await told.wait_synced()
        cpu = time.process_time() - cpu
        _give_back()
        return {
            "pods": len(informer.indexer),
            "settled": _memory("VmRSS") - before,
            "peak": _memory("VmHWM") - before,
            "cpu": cpu,
        }


# --- the process that compares ----------------------------------------------------------------


def _measured(count: int) -> tuple[int, dict[str, float]]:
    """Return the size of the body, and what it took."""
    command = [sys.executable, "-m", "bench.lists", "--child"]
    size = 0
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        for piece in transport.pieces(pods.list_body(count)):
            size += child.stdin.write(piece)
        output, _ = child.communicate()
    if child.returncode:
        raise SystemExit(f"the process that was to be measured failed: {child.returncode}")
    figures: dict[str, float] = json.loads(output)
    if figures["pods"] != count:
        raise SystemExit(f"{figures['pods']} pods of {count} were cached: nothing to measure")
    return size, figures


def main(arguments: Sequence[str] = ()) -> bool:
    """Run and print the benchmark; return whether the bar was reached."""
    parser = argparse.ArgumentParser(prog="python -m bench lists")
    parser.add_argument("--pods", type=int, default=FULL // 10)
    parser.add_argument("--full", action="store_true", help=f"{FULL:,} pods; takes minutes")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        print(json.dumps(asyncio.run(_measure())))
        return True
    if not _STATUS.exists():
        print("lists: skipped, needs Linux")
        return True

    count = FULL if options.full else options.pods
    size, figures = _measured(count)
    settled, peak = figures["settled"], figures["peak"]
    print(f"{count:,} pods in one list body of {size / _MB:,.0f} MB into an informer,")
    print(f"Python {platform.python_version()}; resident memory above that of an empty process")
    print(f"\nsettled {settled / _MB:8,.0f} MB, {settled / size:.2f}x the body")
    print(f"peak    {peak / _MB:8,.0f} MB, {peak / size:.2f}x the body")
    print(f"CPU     {figures['cpu'] / count * 1e6:8,.0f} µs per pod, reading the pipe included")
    ratio = peak / settled
    verdict = "reached" if ratio < BAR else "MISSED"
    print(f"\nbar: the peak below {BAR:g}x the settled memory; {ratio:.2f}x: {verdict}")
    return ratio < BAR


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1:]))
