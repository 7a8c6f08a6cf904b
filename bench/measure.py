"""Measure several ways of doing one job side by side."""

from __future__ import annotations

import gc
import statistics
import time
import tracemalloc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Measured", "interleaved", "kept_bytes"]

Job: TypeAlias = Callable[[], object]
"""One repetition. What it returns stays alive until the clock is read."""


@dataclass(frozen=True)
class Measured:
    """CPU seconds per repetition of each job, round by round."""

    rounds: Mapping[str, list[float]]

    def median(self, name: str) -> float:
        """Return the median CPU time of one repetition, in seconds."""
        return statistics.median(self.rounds[name])

    def ratio(self, slow: str, fast: str) -> float:
        """Return how many times longer ``slow`` takes: the median over rounds.

        A round holds one repetition of each job, run one after the other, so that a neighbour
        who slows the machine down for a while slows both sides of a ratio.
        """
        pairs = zip(self.rounds[slow], self.rounds[fast], strict=True)
        return statistics.median(one / other for one, other in pairs)


def interleaved(jobs: Mapping[str, Job], *, rounds: int, collect: bool) -> Measured:
    """Run all jobs ``rounds`` times, taking turns, after one round that does not count.

    ``collect`` says whether Python's garbage collector may run meanwhile, as it does in every
    program that does not turn it off.
    """
    times: dict[str, list[float]] = {name: [] for name in jobs}
    was_enabled = gc.isenabled()
    try:
        for number in range(rounds + 1):
            for name, job in jobs.items():
                gc.collect()
                (gc.enable if collect else gc.disable)()
                start = time.process_time()
                kept = job()
                elapsed = time.process_time() - start
                del kept
                if number:
                    times[name].append(elapsed)
    finally:
        (gc.enable if was_enabled else gc.disable)()
    return Measured(times)


def kept_bytes(job: Job) -> int:
    """Return how much memory the result of ``job`` holds, as Python's allocators count it."""
    gc.collect()
    tracemalloc.start()
    try:
        kept = job()
        gc.collect()
        size, _ = tracemalloc.get_traced_memory()
        del kept
    finally:
        tracemalloc.stop()
    return size
