"""One target, fuzzed in a process of its own."""

from __future__ import annotations

import time
from typing import Final, NamedTuple

from tests.fuzz import targets
from tools.fuzz.engine import Finding, Fuzzer

__all__ = ["Job", "Outcome", "fuzz"]

_INTERVAL: Final = 20.0


class Job(NamedTuple):
    """What one process is to do: fuzz one target until it has had its time or its number."""

    target: str
    seed: int
    seconds: float
    executions: int | None


class Outcome(NamedTuple):
    """What came of it."""

    target: str
    executions: int
    seconds: float
    inputs: int
    """How many inputs reached something new, seeds included."""
    grown: int
    """How much more was reached than by the seeds, as a number of steps."""
    reached: int
    findings: tuple[Finding, ...]


def fuzz(job: Job) -> Outcome:
    """Do one job; says now and then how far it is."""
    fuzzer = Fuzzer(targets.TARGETS[job.target], targets.seeds(job.target), seed=job.seed)
    began = told = time.monotonic()
    fuzzer.start()
    first = len(fuzzer.coverage.seen)
    while _goes_on(job, fuzzer.executions, time.monotonic() - began):
        fuzzer.step()
        if time.monotonic() - told > _INTERVAL:
            told = time.monotonic()
            rate = fuzzer.executions / (told - began)
            reached = len(fuzzer.coverage.seen)
            line = f"{job.target}: {fuzzer.executions} executions ({rate:.0f}/s), reached {reached}"
            print(f"{line}, {len(fuzzer.findings)} findings", flush=True)
    reached = len(fuzzer.coverage.seen)
    spent = time.monotonic() - began
    counts = (fuzzer.executions, spent, len(fuzzer.corpus), reached - first, reached)
    return Outcome(job.target, *counts, tuple(fuzzer.findings.values()))


def _goes_on(job: Job, executions: int, seconds: float) -> bool:
    return seconds < job.seconds if job.executions is None else executions < job.executions
