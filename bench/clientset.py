"""Benchmark of typed models: the cost of reading a whole Pod, and of importing an API group.

* *reading*: the same pods (6.5 KB, with managedFields) are decoded and dropped: as a partial model
  of nine fields, as the full `core_v1.Pod`, and as dicts.
* *importing*: each module in a new interpreter, with bytecode that was written before, against
  ``import msgspec``, which is a part of it.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec

from bench import measure
from bench.pods import pods
from kinform import clientset

__all__ = ["main"]

READING_BAR: Final = 3.0
"""The allowed ratio of the full model to the partial one."""
IMPORT_BAR: Final = 2.0
"""The allowed ratio of the import of any module to ``import msgspec``."""

_PARTIAL, _FULL, _DICT = "nine fields", "core_v1.Pod", "dicts"
_TIMED: Final = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"


class _Metadata(msgspec.Struct, frozen=True, gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = msgspec.field(name="resourceVersion", default="")
    labels: dict[str, str] | None = None


class _Spec(msgspec.Struct, frozen=True, gc=False):
    node_name: str = msgspec.field(name="nodeName", default="")
    service_account_name: str = msgspec.field(name="serviceAccountName", default="")


class _Status(msgspec.Struct, frozen=True, gc=False):
    phase: str = ""
    pod_ip: str = msgspec.field(name="podIP", default="")


class _Pod(msgspec.Struct, frozen=True, gc=False):
    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()
    status: _Status = _Status()


def _read(decode: Callable[[bytes], object], bodies: Sequence[bytes]) -> None:
    for body in bodies:
        decode(body)


def _reading(count: int, *, rounds: int) -> bool:
    bodies = list(pods(count))
    decoders: Mapping[str, Callable[[bytes], object]] = {
        _PARTIAL: msgspec.json.Decoder(_Pod).decode,
        _FULL: msgspec.json.Decoder(clientset.core_v1.Pod).decode,
        _DICT: msgspec.json.Decoder().decode,
    }
    jobs: dict[str, measure.Job] = {
        name: partial(_read, decode, bodies) for name, decode in decoders.items()
    }
    run = measure.interleaved(jobs, rounds=rounds, collect=True)
    for name in decoders:
        print(f"{name:16}{run.median(name) / count * 1e6:6.1f} µs per pod")
    for name in (_PARTIAL, _FULL, _DICT):
        kept = measure.kept_bytes(partial(_kept, decoders[name], bodies))
        print(f"{name:16}{kept / count / 1000:6.1f} KB per pod that is kept")
    ratio = run.ratio(_FULL, _PARTIAL)
    print(f"full / partial: {ratio:.2f}x (at most {READING_BAR:g}x: {_word(ratio, READING_BAR)})\n")
    return ratio <= READING_BAR


def _kept(decode: Callable[[bytes], object], bodies: Sequence[bytes]) -> object:
    return [decode(bytes(bytearray(body))) for body in bodies]


def _importing(modules: Sequence[str], *, rounds: int) -> bool:
    times: dict[str, list[float]] = {name: [] for name in ("msgspec", *modules)}
    with tempfile.TemporaryDirectory() as bytecode:
        env = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        for number in range(rounds + 1):
            for name, taken in times.items():
                seconds = _import(name, env)
                if number:
                    taken.append(seconds)
    base = min(times["msgspec"])
    print(f"{'msgspec':42}{base * 1e3:6.1f} ms")
    slowest = 0.0
    for name in modules:
        ratio = min(times[name]) / base
        slowest = max(slowest, ratio)
        print(f"{name:42}{min(times[name]) * 1e3:6.1f} ms, {ratio:.2f}x")
    print(f"slowest: {slowest:.2f}x (at most {IMPORT_BAR:g}x: {_word(slowest, IMPORT_BAR)})")
    return slowest <= IMPORT_BAR


def _import(name: str, env: Mapping[str, str]) -> float:
    command = [sys.executable, "-c", _TIMED.format(name)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
    return float(done.stdout)


def _word(ratio: float, bar: float) -> str:
    return "reached" if ratio <= bar else "MISSED"


def main(arguments: Sequence[str] = ()) -> bool:
    """Run and print the benchmark; return whether all bars were reached."""
    parser = argparse.ArgumentParser(prog="python -m bench clientset")
    parser.add_argument("--pods", type=int, default=3_000)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args(arguments)

    print(f"{options.pods} pods; Python {platform.python_version()}; CPU time,")
    print(f"medians of {options.rounds} interleaved rounds\n")
    reached = _reading(options.pods, rounds=options.rounds)
    names = [name for name in clientset.__all__ if name.rpartition("_v")[1]]
    print(f"imports, the best of {options.rounds} interleaved runs\n")
    modules = [f"kinform.clientset.{name}" for name in names]
    return _importing(modules, rounds=options.rounds) and reached


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1:]))
