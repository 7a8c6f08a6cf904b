"""Measurement of one path: run it, and return its cost."""

from __future__ import annotations

import asyncio
import gc
import statistics
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

from bench import measure
from bench.gate import counting
from bench.gate.paths import Path
from kinform.testing import VirtualTimeLoop

__all__ = ["counts", "cpu_ratio"]

ROUNDS: Final = 7
"""The number of times that a path and its reference alternate."""


def counts(path: Path) -> dict[str, float]:
    """Return everything about ``path`` that can be counted, for each of its units."""
    with _opened(path) as job:  # what is done once and kept: imports, compiled decoders
        job()
    figures: dict[str, float] = {}
    with _opened(path) as job:
        figures["instructions"] = counting.instructions(job)
    with _opened(path) as job:
        figures["calls"], figures["passes"] = counting.calls(job)
    if path.keeps:
        with _opened(path) as job:
            figures["bytes"] = measure.kept_bytes(job)
        with _opened(path) as job:
            figures["tracked"] = counting.tracked(job)
    return {name: figure / path.units for name, figure in figures.items()}


def cpu_ratio(path: Path, *, rounds: int = ROUNDS) -> float:
    """Return how many times the CPU time of its reference ``path`` takes: the median of rounds.

    The reference runs before and after, so that a neighbour who comes or goes slows both down.
    """
    ratios = []
    for number in range(rounds + 1):
        with _opened(path) as job:
            before, took, after = _cpu(path.reference), _cpu(job), _cpu(path.reference)
        if number:  # the first round does not count
            ratios.append(took / ((before + after) / 2))
    return statistics.median(ratios)


def _cpu(job: Callable[[], object]) -> float:
    gc.collect()
    gc.disable()  # what it would have to do is counted: see `counting.tracked`
    began = time.process_time()
    kept = job()
    took = time.process_time() - began
    del kept
    gc.enable()
    return took


@contextmanager
def _opened(path: Path) -> Generator[Callable[[], object]]:
    """Yield the job of ``path``, ready to be called, in a loop that stands still otherwise."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        context = path.opened()
        job = runner.run(context.__aenter__())
        try:
            yield lambda: runner.run(job())
        finally:
            runner.run(context.__aexit__(None, None, None))
