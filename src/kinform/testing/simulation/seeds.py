"""Running: executes many seeds in several processes, and shrinks schedules that fail."""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, final

import msgspec

from kinform.errors import UsageError
from kinform.testing.simulation._oracles.mirror import mirrored
from kinform.testing.simulation._schedule.fault_names import chosen
from kinform.testing.simulation._schedule.shrinking import shrunk
from kinform.testing.simulation._schedule.workload import Workload
from kinform.testing.simulation.actions import Schedule
from kinform.testing.simulation.drawing import crashes, draw
from kinform.testing.simulation.limits import Limits
from kinform.testing.simulation.programs import everything_at_once
from kinform.testing.simulation.world import Outcome, simulate

__all__ = ["SeedResult", "SimulatedProgram", "crashed_at_every_write", "drawn", "run_schedules"]

DEFAULT: Final = "kinform.testing.simulation.programs:everything_at_once"
_AHEAD: Final = 4


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedProgram:
    """The subject of a simulation: a program ``module:function``, and a check of the same form.

    ``workload`` names the objects that are written, as ``module:NAME``; the default is ConfigMaps.
    ``faults`` are the names to inject, as `fault_names.chosen` reads them; the default is all for
    kinform's own program, and the default set for others.
    """

    program: str = DEFAULT
    check: str = ""
    workload: str = ""
    faults: str = ""
    limits: Limits = field(default_factory=Limits)

    @property
    def chosen(self) -> str:
        """The faults to inject."""
        return self.faults or ("all" if self.program == DEFAULT else "default")

    def load(self) -> Callable[[Schedule], Outcome]:
        """Return the function that runs a schedule.

        Raises:
            UsageError: a name cannot be loaded; or, when it is run, the workload cannot be written.
        """
        chosen(self.chosen)
        if self.program == DEFAULT:
            return functools.partial(
                simulate, program=everything_at_once, check=mirrored, limits=self.limits
            )
        return functools.partial(
            simulate,
            limits=self.limits,
            program=_named(self.program),
            check=_named(self.check) if self.check else None,
            workload=_workload(self.workload) if self.workload else None,
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SeedResult:
    """The result of one schedule. Without an oracle the schedule passed."""

    seed: int
    name: str = ""
    """The schedule's, if it was not drawn from the seed."""
    oracle: str = ""
    message: str = ""
    shrunk: str = ""
    """The short schedule that fails in the same way, as `Schedule.load` reads it."""
    summary: str = ""
    seconds: float = 0.0
    """Virtual ones."""
    took: float = 0.0
    """Real ones."""
    requests: int = 0


def run_schedules(
    schedules: Iterable[Schedule], subject: SimulatedProgram, *, jobs: int, shrinks: bool = True
) -> Generator[SeedResult]:
    """Run many schedules, ``jobs`` at a time; yield each one's result as it is there.

    In processes of their own, in which sets have a fixed order: the same schedule gives the same
    result on every machine. What fails is shrunk, unless ``shrinks`` is false. To close the
    generator ends these processes.

    Raises:
        UsageError: the subject cannot be loaded, or its workload not written.
    """
    subject.load()
    spawn = multiprocessing.get_context("spawn")
    tied, tie = spawn.Pipe(duplex=False)
    with (
        tied,
        tie,
        ProcessPoolExecutor(jobs, mp_context=spawn, initializer=_prepare, initargs=(tied,)) as pool,
    ):
        waiting: set[Future[SeedResult]] = set()
        try:
            for schedule in schedules:
                with _uninterrupted(), _fixed_hash_seed():  # the first ones start the workers
                    waiting.add(pool.submit(_run, schedule.dump(), subject, shrinks=shrinks))
                if len(waiting) >= _AHEAD * jobs:
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in done)
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        except BaseException:  # the caller does not want the other results
            tie.send_bytes(b"end")
            raise


def crashed_at_every_write(schedule: Schedule, subject: SimulatedProgram) -> Sequence[Schedule]:
    """Return ``schedule``, and schedules that end a process at each write that it makes there.

    Raises:
        UsageError: the subject cannot be loaded, or its workload not written.
    """
    return [schedule, *crashes(schedule, subject.load()(schedule).writes)]


def drawn(first: int, count: int, *, faults: str | Iterable[str] = "all") -> Iterator[Schedule]:
    """Yield the schedules of consecutive seeds."""
    return (draw(seed, faults=faults) for seed in range(first, first + count))


@contextlib.contextmanager
def _fixed_hash_seed() -> Generator[None]:
    """Make processes started in this block iterate over sets in the same order."""
    before = os.environ.get("PYTHONHASHSEED")
    os.environ["PYTHONHASHSEED"] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONHASHSEED"]
        else:
            os.environ["PYTHONHASHSEED"] = before


@contextlib.contextmanager
def _uninterrupted() -> Generator[None]:
    """Put off a Ctrl-C: a worker that is only half started would complain at length."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _prepare(tied: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process ends us
    logging.getLogger("kinform").setLevel(logging.CRITICAL)
    threading.Thread(target=_end_with, args=(tied,), daemon=True).start()


def _end_with(tied: Connection) -> None:
    """End this process when its parent requests that, or has died, perhaps by SIGKILL.

    The request is not read from the pipe, so that all workers see it.
    """
    with contextlib.suppress(OSError):
        tied.poll(None)
    os._exit(1)


def _run(text: str, subject: SimulatedProgram, *, shrinks: bool) -> SeedResult:
    schedule = Schedule.load(text)
    run = subject.load()
    began = time.perf_counter()
    outcome = run(schedule)
    took = time.perf_counter() - began
    divergence = outcome.divergence
    if divergence is None:
        return SeedResult(
            seed=schedule.seed,
            name=schedule.name,
            seconds=outcome.seconds,
            took=took,
            requests=outcome.requests,
        )
    oracle = divergence.oracle

    def fails(shorter: Schedule) -> bool:
        found = run(shorter).divergence
        return found is not None and found.oracle == oracle

    shrinks = shrinks and oracle != "time"  # each try would take as long
    short = shrunk(schedule, fails) if shrinks else schedule
    again = run(short).divergence if shrinks else divergence
    name = schedule.name or str(schedule.seed)
    return SeedResult(
        seed=schedule.seed,
        name=schedule.name,
        oracle=oracle,
        message=str(again or divergence),
        shrunk=msgspec.structs.replace(short, name=name).dump(),
        summary=f"{len(schedule.actions)} actions, shrunk to {len(short.actions)}",
        seconds=outcome.seconds,
        took=took,
        requests=outcome.requests,
    )


def _workload(name: str) -> Workload:
    found = _named(name)
    if not isinstance(found, Workload):
        raise UsageError(f"{name!r} is not a Workload, but of type {type(found).__name__}")
    return found


def _named(name: str) -> Any:
    module, colon, function = name.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return getattr(importlib.import_module(module), function)
    except Exception as exc:  # the user's module may raise anything
        hint = "" if colon else "; write module:function"
        raise UsageError(f"cannot load {name!r}: {type(exc).__name__}: {exc}{hint}") from exc
