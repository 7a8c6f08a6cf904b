"""Memory per cached pod: the whole cache, with its indexes, against the pods' own bytes.

Each figure comes from a process of its own, which reads pods from a pipe, keeps them in an
`Indexer` (by namespace, owner and node) and nothing else. It is the growth of that process since
before the first pod, measured in two ways:

* *resident*: what the system counts for the process (``/proc/self/statm``). The bars are here.
* *in use*: what Python's and the C library's allocators have handed out and not got back
  (``sys._debugmallocstats`` and ``mallinfo2``). The difference to resident is holes.

Nothing is traced, so nothing but the cache is measured. Two sets of pods:

* *cluster*: ReplicaSets of 1 to 12 pods, 4 on average, whose pods have the same labels and
  owner, and 30 pods to a node.
* *loners*: as `bench.pods` makes them, each the only one of its ReplicaSet and the only one on
  its node. Nothing can be shared, and two indexes have as many values as there are pods.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import gc
import itertools
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from bench import pods
from kinform.cache.store.compaction import Compactor
from kinform.cache.store.store import Indexer
from kinform.meta import Entry
from kinform.objects.object import Object
from kinform.tasks import background
from kinform.transforms import strip_managed_fields

__all__ = ["main"]

BARS: Final = {"raw": 1.35, "zstd": 0.25}
"""The allowed memory of a cached pod, as a multiple of its bytes."""

_FORMS: Final = {
    "unshared": "raw, nothing shared",
    "raw": "raw",
    "stripped": "raw, no managedFields",
    "zstd": "zstd",
}
_REPLICAS: Final = (1, 2, 2, 3, 3, 4, 6, 12)
_PODS_PER_NODE: Final = 30
_WARM_UP: Final = 50
_STATM: Final = Path("/proc/self/statm")

Shape: TypeAlias = Callable[[int], Iterator[bytes]]


# --- the pods ---------------------------------------------------------------------------------

_HASH: Final = re.compile(rb'"pod-template-hash":"([^"]+)"')
_OWNER: Final = re.compile(rb'"ownerReferences":\[\{[^}]*"uid":"([^"]+)"')
_LABELS: Final = re.compile(rb'"labels":\{[^}]*\}')
_NODE: Final = re.compile(rb'"nodeName":"[^"]+"')
_APP: Final = re.compile(rb'"namespace":"[^"]+"|"app.kubernetes.io/name":"[^"]+"')


def _text(pattern: re.Pattern[bytes], pod: bytes, group: int = 0) -> bytes:
    found = pattern.search(pod)
    assert found, f"bench.pods makes other pods than those known here: {pattern}"
    return found[group]


def _cluster(count: int) -> Iterator[bytes]:
    """Yield the pods of `bench.pods`, put into ReplicaSets and on nodes."""
    sets: dict[
        tuple[bytes, ...], list[bytes]
    ] = {}  # per application: pods that its ReplicaSet still wants
    for number, pod in enumerate(pods.pods(count)):
        waiting = sets.setdefault(tuple(_APP.findall(pod)), [])
        if not waiting:
            waiting.extend([pod] * _REPLICAS[number % len(_REPLICAS)])
        first = waiting.pop()
        pod = pod.replace(_text(_HASH, pod, 1), _text(_HASH, first, 1))  # noqa: PLW2901
        pod = pod.replace(_text(_OWNER, pod, 1), _text(_OWNER, first, 1))  # noqa: PLW2901
        pod = pod.replace(_text(_LABELS, pod), _text(_LABELS, first))  # noqa: PLW2901
        node = number * 7919 % max(1, count // _PODS_PER_NODE)
        name = b'"nodeName":"ip-10-0-%d-%d.eu-central-1.compute.internal"' % divmod(node, 256)
        yield pod.replace(_text(_NODE, pod), name)


_SHAPES: Final[dict[str, Shape]] = {"cluster": _cluster, "loners": pods.pods}


# --- the process that is measured -------------------------------------------------------------


def _resident() -> int:
    return int(_STATM.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGESIZE")


class _MallInfo(ctypes.Structure):
    _fields_ = tuple((f"field_{number}", ctypes.c_size_t) for number in range(10))


def _in_use() -> int:
    """Return how many bytes both allocators have handed out."""
    with tempfile.TemporaryFile() as report:
        stderr = os.dup(2)
        os.dup2(report.fileno(), 2)
        sys._debugmallocstats()  # noqa: SLF001 - a report, in this form or none
        os.dup2(stderr, 2)
        os.close(stderr)
        report.seek(0)
        found = re.search(rb"# bytes in allocated blocks\s*=\s*([\d,]+)", report.read())
    assert found
    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = _MallInfo
    figures = mallinfo()
    in_heap, in_maps = int(figures.field_7), int(figures.field_4)  # uordblks and hblkhd
    return int(found[1].replace(b",", b"")) + in_heap + in_maps


def _received() -> Iterator[bytes]:
    """Yield the pods that the parent sends, each in bytes of its own."""
    with open(0, "rb", closefd=False) as source:
        while size := int.from_bytes(source.read(4), "big"):
            yield source.read(size)


def _cache() -> Indexer[Object]:
    return Indexer(indexers={"node": lambda pod: pod.at("spec", "nodeName")})


async def _pack(compactor: Compactor, count: int) -> None:
    compactor.begin()
    async with asyncio.timeout(600), background(compactor.run()):
        while compactor.statistics().objects < count:  # noqa: ASYNC110 - a program's last minutes
            await asyncio.sleep(0.1)
        await asyncio.sleep(0.5)


def _measure(form: str) -> None:
    """Fill a cache and print what it took, as JSON."""
    arriving = _received()
    for text in itertools.islice(arriving, _WARM_UP):  # compiles what is compiled once
        pod = Object.from_bytes(text)
        _cache().add(Entry(pod.metadata, pod))
    indexer = _cache()
    compactor = Compactor(indexer.entries, storage="zstd" if form == "zstd" else "raw")
    gc.collect()
    resident, in_use, raw = _resident(), _in_use(), 0
    for text in arriving:
        pod = Object.from_bytes(text)
        if form == "stripped":
            pod = strip_managed_fields(pod)
        entry = Entry(pod.metadata, pod)
        if form != "unshared":
            compactor.settle(entry)
        indexer.add(entry)
        raw += len(text)
    if form == "zstd":
        asyncio.run(_pack(compactor, len(indexer)))
    gc.collect()
    figures = {
        "pods": len(indexer),
        "raw": raw,
        "resident": _resident() - resident,
        "in use": _in_use() - in_use,
        "packed": compactor.statistics().packed_bytes,
    }
    print(json.dumps(figures))


# --- the process that compares ----------------------------------------------------------------


def _measured(shape: str, form: str, *, count: int) -> dict[str, int]:
    command = [sys.executable, "-m", "bench.memory", "--child", form]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        for pod in (*pods.pods(_WARM_UP, seed=2), *_SHAPES[shape](count)):
            child.stdin.write(len(pod).to_bytes(4, "big") + pod)
        output, _ = child.communicate()
    if child.returncode:
        raise SystemExit(f"the process that was to be measured failed: {child.returncode}")
    figures: dict[str, int] = json.loads(output)
    if figures["pods"] != count:
        raise SystemExit(f"{figures['pods']} pods of {count} were kept: nothing to measure")
    return figures


def main(arguments: Sequence[str] = ()) -> bool:
    """Run and print the benchmark; return whether the bars were reached."""
    parser = argparse.ArgumentParser(prog="python -m bench memory")
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--child", choices=tuple(_FORMS), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        _measure(options.child)
        return True
    if not _STATM.exists():
        print("memory: skipped, needs Linux")
        return True
    if options.pods < 1000:
        parser.error("so few pods are not packed; take 1000 or more")

    count, reached = options.pods, True
    print(f"{count} pods in an Indexer, Python {platform.python_version()}; bytes per pod, and")
    print("resident memory as a multiple of the pods' own bytes")
    print(f"\n{'':32}{'bytes':>8}{'packed':>8}{'in use':>8}{'resident':>10}{'':>9}  bar")
    for shape in _SHAPES:
        for form, name in _FORMS.items():
            figures = _measured(shape, form, count=count)
            cells = [figures[what] / count for what in ("raw", "packed", "in use", "resident")]
            ratio = figures["resident"] / figures["raw"]
            bar = BARS.get(form) if shape == "cluster" else None
            verdict = ""
            if bar is not None:
                verdict = f"  {bar:g}x: {'reached' if ratio <= bar else 'MISSED'}"
                reached = reached and ratio <= bar
            print(
                f"{shape + ', ' + name:32}{cells[0]:8,.0f}{cells[1]:8,.0f}{cells[2]:8,.0f}"
                f"{cells[3]:10,.0f}{ratio:8.2f}x{verdict}"
            )
    return reached


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1:]))
