"""One target, fuzzed in a process of its own."""

from __future__ import annotations

import time
from typing import Final, NamedTuple

from tests.fuzz import targets
from tools.fuzz.engine import Finding, Fuzzer

__all__ = ["Job", "Outcome", "fuzz"]

_INTERVAL: Final = 20.0


class Job(NamedTuple):
    """The work of one process: fuzz one target for a time or a number of executions."""

    target: str
    seed: int
    seconds: float
    executions: int | None


class Outcome(NamedTuple):
    """The result of a job."""

    target: str
    executions: int
    seconds: float
    inputs: int
    """The number of inputs that reached new code, seeds included."""
    grown: int
    """The number of new steps compared with the seeds."""
    reached: int
    findings: tuple[Finding, ...]


def fuzz(job: Job) -> Outcome:
    """Run one job and print its progress."""
    fuzzer = Fuzzer(targets.TARGETS[job.target], targets.seeds(job.target), seed=job.seed)
    began = reported = time.monotonic()
    fuzzer.start()
    first = len(fuzzer.coverage.seen)
    while _goes_on(job, fuzzer.executions, time.monotonic() - began):
        fuzzer.step()
        if time.monotonic() - reported > _INTERVAL:
            reported = time.monotonic()
            rate = fuzzer.executions / (reported - began)
            reached = len(fuzzer.coverage.seen)
            line = f"{job.target}: {fuzzer.executions} executions ({rate:.0f}/s), reached {reached}"
            print(f"{line}, {len(fuzzer.findings)} findings", flush=True)
    reached = len(fuzzer.coverage.seen)
    spent = time.monotonic() - began
    counts = (fuzzer.executions, spent, len(fuzzer.corpus), reached - first, reached)
    return Outcome(job.target, *counts, tuple(fuzzer.findings.values()))


def _goes_on(job: Job, executions: int, seconds: float) -> bool:
    return seconds < job.seconds if job.executions is None else executions < job.executions
