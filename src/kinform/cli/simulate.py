"""``kinform simulate``."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import time
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kinform.cli import problems
from kinform.cli.options import debug_option
from kinform.cli.running import emit, warn
from kinform.errors import UsageError

if TYPE_CHECKING:
    from kinform.testing.simulation.actions import Schedule
    from kinform.testing.simulation.running import Result, Subject

__all__ = ["command"]

_EVERY: Final = 5.0
"""Seconds between two lines of progress, on a terminal."""
_RARELY: Final = 60.0
"""And in a log."""


@click.command("simulate", short_help="Hunt for bugs by simulated faults, seed by seed.")
@click.option(
    "--seeds", type=click.IntRange(1), default=100, metavar="N", help="How many.", show_default=True
)
@click.option(
    "--first-seed", type=int, default=0, metavar="N", help="Where to begin.", show_default=True
)
@click.option(
    "--schedule",
    "files",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    metavar="FILE",
    help="Run this schedule instead of those of seeds; repeatable.",
)
@click.option(
    "--every-write",
    is_flag=True,
    help="Instead of seeds: end a process at each write that it makes, with no other fault.",
)
@click.option("--show", is_flag=True, help="Write the schedules to stdout, and run nothing.")
@click.option("--program", metavar="MODULE:FUNCTION", help="What to run in each process.")
@click.option("--check", metavar="MODULE:FUNCTION", help="What must hold of it at the end.")
@click.option("--workload", metavar="MODULE:NAME", help="What is written, if not ConfigMaps.")
@click.option(
    "--jobs", type=click.IntRange(1), metavar="N", help="Processes; by default one for each core."
)
@click.option("--no-shrink", is_flag=True, help="Leave what fails as long as it is.")
@click.option("--fail-fast", is_flag=True, help="Stop at the first seed that fails.")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where schedules that fail are written.  [default: build/simulation]",
)
@debug_option
def command(
    *,
    seeds: int,
    first_seed: int,
    files: tuple[Path, ...],
    every_write: bool,
    show: bool,
    program: str | None,
    check: str | None,
    workload: str | None,
    jobs: int | None,
    no_shrink: bool,
    fail_fast: bool,
    output: Path | None,
) -> int:
    """Run informers, controllers and elections under simulated faults; look for broken promises.

    Each seed is a schedule of writes, faults and restarts, run against a server in memory, under
    virtual time. The same seed gives the same result. What fails is made as short as possible and
    written to a file.

    \b
    Examples:
      kinform simulate --seeds 1000
      kinform simulate --first-seed 4711 --seeds 1             that one alone
      kinform simulate --schedule build/simulation/4711.json   what was left of it
      kinform simulate --program shop.operator:main --check shop.tests:is_settled
      kinform simulate --program shop.operator:main --every-write
      kinform simulate --program shop.operator:main --workload shop.tests:WIDGETS

    Exit codes: 0 nothing found, 1 a promise was broken, 2 wrong command line.
    """  # noqa: D301 - click wants the character itself
    from kinform.testing.simulation import running

    if (check or workload) and not program:
        word = "--check" if check else "--workload"
        raise click.UsageError(f"{word} is about what --program does")
    if files and every_write:
        raise click.UsageError("--every-write makes its own schedules: leave out --schedule")
    subject = running.Subject(
        program=program or running.DEFAULT, check=check or "", workload=workload or ""
    )
    with _blaming_the_command_line():
        subject.load()
        given = [_loaded(file) for file in files]
        count, schedules = seeds, running.drawn(first_seed, seeds)
        if files:
            count, schedules = len(given), iter(given)
        elif every_write:
            made = running.crashed_at_every_write(first_seed, subject)
            count, schedules = len(made), iter(made)
        if show:
            for schedule in schedules:
                emit(schedule.dump())
            return problems.OK
        results = running.run_schedules(
            schedules, subject, jobs=jobs or os.cpu_count() or 1, shrinks=not no_shrink
        )
        folder = output or Path("build/simulation")
        failed = _follow(results, count=count, subject=subject, folder=folder, fail_fast=fail_fast)
    return problems.FAILED if failed else problems.OK


@contextlib.contextmanager
def _blaming_the_command_line() -> Generator[None]:
    """Let what cannot be run end with 2: to end with 1 would say that a promise was broken."""
    try:
        yield
    except UsageError as exc:
        raise click.UsageError(str(exc)) from exc


def _loaded(file: Path) -> Schedule:
    """Return what a file holds, by the file's name: whatever its seed, it may have been edited."""
    import msgspec

    from kinform.testing.simulation.actions import Schedule

    schedule = Schedule.load(file.read_bytes(), source=str(file))
    return msgspec.structs.replace(schedule, name=file.stem)


def _follow(
    results: Iterable[Result], *, count: int, subject: Subject, folder: Path, fail_fast: bool
) -> int:
    began = said = time.monotonic()
    every = _EVERY if sys.stderr.isatty() else _RARELY
    done = failed = 0
    virtual = 0.0
    for result in results:
        done += 1
        virtual += result.seconds
        if result.oracle:
            failed += 1
            _tell(result, subject, folder)
            if fail_fast:
                break
        now = time.monotonic()
        if now - said > every:
            said = now
            left = (now - began) / done * (count - done)
            warn(f"{done} of {count}, {failed} failed, about {left:.0f} s left")
    took = time.monotonic() - began
    counted = f"{done} schedule" if done == 1 else f"{done} schedules"
    emit(
        f"{counted}, {virtual / 3600:,.1f} simulated hours, in {took:.1f} s: "
        f"{failed or 'none'} failed\n"
    )
    return failed


def _tell(result: Result, subject: Subject, folder: Path) -> None:
    file = _kept(result.shrunk, folder, name=result.name or str(result.seed))
    again = f"  again: {_command(subject, '--first-seed', str(result.seed), '--seeds', '1')}\n"
    emit(
        f"{result.name or f'seed {result.seed}'}: {result.message}\n"
        f"  {result.summary}\n"
        f"{'' if result.name else again}"
        f"  short: {_command(subject, '--schedule', file.as_posix())}\n"
    )


def _kept(text: str, folder: Path, *, name: str) -> Path:
    """Return a file with this text, a new one unless it is there: no other is written over."""
    folder.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        file = folder / f"{name}{f'-{number}' if number > 1 else ''}.json"
        with contextlib.suppress(FileExistsError), file.open("xb") as stream:
            stream.write(text.encode())
        if file.read_bytes() == text.encode():
            return file
        number += 1


def _command(subject: Subject, *words: str) -> str:
    """Return what runs one schedule, as a shell reads it."""
    from kinform.testing.simulation.running import DEFAULT

    about = [] if subject.program == DEFAULT else ["--program", subject.program]
    if subject.check:
        about += ["--check", subject.check]
    if subject.workload:
        about += ["--workload", subject.workload]
    return shlex.join(["kinform", "simulate", *words, *about])
