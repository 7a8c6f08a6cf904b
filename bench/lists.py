"""The memory that one large list body takes on its way into a cache.

A separate process lists all pods in one response, as a server with a watch cache sends them
for any limit, into a `SharedInformer` with an index by ``spec.nodeName`` and a
handler. The body comes through a pipe and is generated while it is read, so it is never in memory.

* *settled*: resident memory after the handler received all pods, after a full collection and after
  the C library (glibc) has released free memory.
* *peak*: the most resident memory there was up to then, as the kernel counts it. The bar is here.
* *relist*: the peak of a second list that shows what the cache holds already.

All without what the process had before: a small list has the same bar as a large one.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import gc
import json
import platform
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, BinaryIO, Final

from bench import pods, transport
from kinform import KinformError, Object, SharedInformer
from kinform.cache import ReflectorOptions

__all__ = ["main"]

BAR: Final = 1.5
"""The allowed ratio of the peak to the settled memory."""
FULL: Final = 100_000
"""The number of pods in a body of 650 MB."""

_STATUS: Final = Path("/proc/self/status")
_CLEAR: Final = Path("/proc/self/clear_refs")
_MB: Final = 1_000_000
_VERSIONS: Final = (b'"resourceVersion":"2000000"', b'"resourceVersion":"2000001"')
_EXPIRED: Final = (
    b'{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},'
    b'"status":"Failure","reason":"Expired","code":410}}\n'
)


# --- the process that is measured -------------------------------------------------------------


def _memory(what: str) -> int:
    """Return a figure of the kernel's: ``VmRSS``, what is resident, or ``VmHWM``, its peak."""
    for line in _STATUS.read_text(encoding="ascii").splitlines():
        name, _, value = line.partition(":")
        if name == what:
            return int(value.split()[0]) * 1024
    raise SystemExit(f"{_STATUS} does not tell {what}")


def _give_back() -> None:
    gc.collect()
    if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)


def _body(pipe: BinaryIO) -> Iterator[bytes]:
    """Yield the next body that the parent sends, piece by piece, and its end."""
    while size := int.from_bytes(pipe.read(4), "big"):
        yield pipe.read(size)
    yield b""


async def _measure(pipe: BinaryIO) -> dict[str, float]:
    first, watch, second, quiet = (transport.Answer() for _ in range(4))
    expected: list[KinformError] = []
    informer: SharedInformer[Object] = SharedInformer(
        transport.source(first, watch, second, quiet),
        indexers={"node": lambda pod: pod.at("spec", "nodeName")},
        options=ReflectorOptions(stream_lists=False, first_version="0"),
        watch_error_handler=expected.append,
    )
    handler = informer.add_event_handler(on_add=lambda event: event.obj.at("status", "phase"))
    _give_back()
    before, cpu = _memory("VmRSS"), time.process_time()
    figures: dict[str, float] = {}
    async with informer:
        first.put(_body(pipe))
        await handler.wait_synced()
        figures["cpu"] = time.process_time() - cpu
        figures["pods"] = len(informer.indexer)
        _give_back()
        figures["settled"] = _memory("VmRSS") - before
        figures["peak"] = _memory("VmHWM") - before
        _CLEAR.write_text("5", encoding="ascii")  # the peak begins anew
        second.put(_body(pipe))
        watch.put([_EXPIRED, b""])
        await informer.wait_until("2000001")
        figures["relist"] = _memory("VmHWM") - before
    return figures


# --- the process that compares ----------------------------------------------------------------


def _send(pipe: IO[bytes], body: Iterable[bytes]) -> int:
    """Send one body, and its end; return its size."""
    size = 0
    for piece in transport.pieces(body, transport.READ_SIZE):
        size += len(piece)
        pipe.write(len(piece).to_bytes(4, "big") + piece)
    pipe.write(bytes(4))
    return size


def _measured(count: int) -> tuple[int, dict[str, float]]:
    """Return the size of the body, and what it took."""
    command = [sys.executable, "-m", "bench.lists", "--child"]
    old, new = _VERSIONS
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        size = _send(child.stdin, pods.list_body(count))
        _send(child.stdin, (part.replace(old, new) for part in pods.list_body(count)))
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
        print(json.dumps(asyncio.run(_measure(sys.stdin.buffer))))
        return True
    if not _CLEAR.exists():
        print("lists: skipped, needs Linux")
        return True

    count = FULL if options.full else options.pods
    size, figures = _measured(count)
    settled = figures["settled"]
    print(f"{count:,} pods in one list body of {size / _MB:,.0f} MB into an informer,")
    print(f"Python {platform.python_version()}; resident memory above that of an empty process\n")
    for what in ("settled", "peak", "relist"):
        memory = figures[what]
        times = f"{memory / size:.2f}x the body, {memory / settled:.2f}x settled"
        print(f"{what:8}{memory / _MB:8,.0f} MB, {times}")
    print(f"{'CPU':8}{figures['cpu'] / count * 1e6:8,.0f} µs per pod, reading the pipe included")
    ratio = figures["peak"] / settled
    verdict = "reached" if ratio < BAR else "MISSED"
    print(f"\nbar: a peak below {BAR:g}x the settled memory; {ratio:.2f}x: {verdict}")
    return ratio < BAR


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1:]))
