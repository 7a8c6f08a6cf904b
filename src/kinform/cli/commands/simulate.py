"""``kinform simulate``: runs schedules of faults in virtual time and reports broken guarantees.

The simulator itself is ``kinform.testing.simulation``; this module chooses schedules, shows
progress, and writes a failing schedule to a file.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import time
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kinform.cli import problems
from kinform.cli.execution import emit, warn
from kinform.cli.options import debug_option
from kinform.errors import UsageError

if TYPE_CHECKING:
    from kinform.testing.simulation.actions import Schedule
    from kinform.testing.simulation.seeds import SeedResult, SimulatedProgram

__all__ = ["command"]

_EVERY: Final = 5.0
"""Seconds between two lines of progress, on a terminal."""
_RARELY: Final = 60.0
"""And in a log."""


class _Taught(click.Command):
    """A command whose help lists the faults: they are imported only for that."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the description of each fault."""
        from kinform.testing.simulation._schedule.fault_names import ALL, NOT_BY_DEFAULT

        del ctx
        with formatter.section(
            "Faults (a * marks those that do not happen to --program unless chosen)"
        ):
            formatter.write_dl(
                [(f"{name}{'*' * (name in NOT_BY_DEFAULT)}", ALL[name]) for name in sorted(ALL)]
            )


@click.command(
    "simulate", cls=_Taught, short_help="Test controllers under simulated faults, seed by seed."
)
@click.option(
    "--seeds",
    type=click.IntRange(1),
    default=100,
    metavar="N",
    help="The number of seeds.",
    show_default=True,
)
@click.option(
    "--first-seed", type=int, default=0, metavar="N", help="The first seed.", show_default=True
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
    help="End a process at each write that it makes: of --schedule, else of the first seed's "
    "writes without any other fault. Writes of leases and events do not count.",
)
@click.option(
    "--faults",
    metavar="NAMES",
    help="The faults to simulate: a,b,c, `all`, `default` or `none`; `-a` leaves out a.",
)
@click.option("--show", is_flag=True, help="Write the schedules to stdout, and run nothing.")
@click.option("--program", metavar="MODULE:FUNCTION", help="The program to run in each process.")
@click.option("--check", metavar="MODULE:FUNCTION", help="The check that must pass at the end.")
@click.option(
    "--workload", metavar="MODULE:NAME", help="The objects to write, instead of ConfigMaps."
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    help="The number of processes; by default one per core.",
)
@click.option(
    "--quiet-for",
    type=click.FloatRange(0),
    metavar="SECONDS",
    help="Time without changes at the end, in virtual time; 0: no limit.  [default: 120]",
)
@click.option(
    "--writes-per-key",
    type=click.IntRange(0),
    metavar="N",
    help="Writes of one object by a process per virtual minute; 0: no limit.  [default: 60]",
)
@click.option(
    "--time-limit",
    type=click.FloatRange(0),
    metavar="SECONDS",
    help="CPU time of one schedule; 0: no limit.  [default: 60]",
)
@click.option("--no-shrink", is_flag=True, help="Do not shrink failing schedules.")
@click.option("--fail-fast", is_flag=True, help="Stop at the first seed that fails.")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="The folder for failing schedules.  [default: build/simulation]",
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
    faults: str | None,
    quiet_for: float | None,
    writes_per_key: int | None,
    time_limit: float | None,
    jobs: int | None,
    no_shrink: bool,
    fail_fast: bool,
    output: Path | None,
) -> int:
    """Run controllers, informers and elections under simulated faults, and check the guarantees.

    Each seed is a schedule of writes, faults and restarts, run against a server in memory, under
    virtual time. The same seed gives the same result. A failing schedule is shrunk and written to a
    file, and the commands to run it again are printed.

    Without --program, kinform itself is tested. With --program, your program is tested: an async
    function that is called with a `Process` in each simulated process, and is cancelled at the
    end. When all faults have ended, --check must pass, no object may be stuck in its deletion, no
    key may fail forever, and the program must stop writing.

    \b
    Examples:
      kinform simulate --seeds 1000
      kinform simulate --first-seed 4711 --seeds 1             that seed only
      kinform simulate --schedule build/simulation/4711.json   the shrunk schedule
      kinform simulate --program shop.operator:main --check shop.tests:is_settled
      kinform simulate --program shop.operator:main --workload shop.tests:WIDGETS
      kinform simulate --program shop.operator:main --every-write
      kinform simulate --program shop.operator:main --every-write --schedule small.json
      kinform simulate --program shop.operator:main --faults lag,crash_at_write
      kinform simulate --program shop.operator:main --faults=-suspend,-jump_wall

    Exit codes: 0 no failures, 1 a guarantee was broken, 2 wrong command line.
    """  # noqa: D301 - click wants the character itself
    from kinform.testing.simulation import seeds as running
    from kinform.testing.simulation.limits import Limits

    if (check or workload) and not program:
        word = "--check" if check else "--workload"
        raise click.UsageError(f"{word} is about what --program does")
    usual = Limits()
    limits = Limits(
        quiet=usual.quiet if quiet_for is None else quiet_for,
        writes=usual.writes if writes_per_key is None else writes_per_key,
        seconds=usual.seconds if time_limit is None else time_limit,
    )
    subject = running.SimulatedProgram(
        program=program or running.DEFAULT,
        check=check or "",
        workload=workload or "",
        faults=faults or "",
        limits=limits,
    )
    with _blaming_the_command_line():
        subject.load()
        schedules = _schedules(subject, files, range(first_seed, first_seed + seeds))
        if every_write:
            schedules = _every_write(subject, schedules, has_files=bool(files))
        if show:
            for schedule in schedules:
                emit(schedule.dump())
            return problems.OK
        count = len(files) or seeds
        if every_write:
            schedules = list(schedules)
            count = len(schedules)
        results = running.run_schedules(
            schedules, subject, jobs=jobs or os.cpu_count() or 1, shrinks=not no_shrink
        )
        folder = output or Path("build/simulation")
        failed = _follow(results, count=count, subject=subject, folder=folder, fail_fast=fail_fast)
    return problems.FAILED if failed else problems.OK


def _schedules(
    subject: SimulatedProgram, files: Sequence[Path], seeds: range
) -> Iterable[Schedule]:
    from kinform.testing.simulation import seeds as running

    if files:
        return [_loaded(file) for file in files]
    return running.drawn(seeds.start, len(seeds), faults=subject.chosen)


def _every_write(
    subject: SimulatedProgram, schedules: Iterable[Schedule], *, has_files: bool
) -> Iterable[Schedule]:
    """Yield schedules with a crash at each write: of the files, else of the first seed, calmed."""
    from kinform.testing.simulation import seeds as running
    from kinform.testing.simulation.drawing import calmed

    for schedule in schedules:
        yield from running.crashed_at_every_write(
            schedule if has_files else calmed(schedule), subject
        )
        if not has_files:
            return


@contextlib.contextmanager
def _blaming_the_command_line() -> Generator[None]:
    """Exit with 2 for a program that cannot run: 1 means that a guarantee was broken."""
    try:
        yield
    except UsageError as exc:
        raise click.UsageError(str(exc)) from exc


def _loaded(file: Path) -> Schedule:
    """Return the schedule in a file, named after the file: it may have been edited."""
    import msgspec

    from kinform.testing.simulation.actions import Schedule

    schedule = Schedule.load(file.read_bytes(), source=str(file))
    return msgspec.structs.replace(schedule, name=file.stem)


def _follow(
    results: Iterable[SeedResult],
    *,
    count: int,
    subject: SimulatedProgram,
    folder: Path,
    fail_fast: bool,
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


def _tell(result: SeedResult, subject: SimulatedProgram, folder: Path) -> None:
    file = _kept(result.shrunk, folder, name=result.name or str(result.seed))
    again = f"  again: {_command(subject, '--first-seed', str(result.seed), '--seeds', '1')}\n"
    emit(
        f"{result.name or f'seed {result.seed}'}: {result.message}\n"
        f"  {result.summary}\n"
        f"{'' if result.name else again}"
        f"  short: {_command(subject, '--schedule', file.as_posix())}\n"
    )


def _kept(text: str, folder: Path, *, name: str) -> Path:
    """Return a file with this text; an existing file with another text is not overwritten."""
    folder.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        file = folder / f"{name}{f'-{number}' if number > 1 else ''}.json"
        with contextlib.suppress(FileExistsError), file.open("xb") as stream:
            stream.write(text.encode())
        if file.read_bytes() == text.encode():
            return file
        number += 1


def _command(subject: SimulatedProgram, *words: str) -> str:
    """Return the shell command that runs one schedule."""
    from kinform.testing.simulation.limits import Limits
    from kinform.testing.simulation.seeds import DEFAULT

    about = [] if subject.program == DEFAULT else ["--program", subject.program]
    if subject.check:
        about += ["--check", subject.check]
    if subject.workload:
        about += ["--workload", subject.workload]
    if subject.faults and "--schedule" not in words:
        about += [f"--faults={subject.faults}"]
    for option, limit, usual in (
        ("--quiet-for", subject.limits.quiet, Limits().quiet),
        ("--writes-per-key", subject.limits.writes, Limits().writes),
        ("--time-limit", subject.limits.seconds, Limits().seconds),
    ):
        if limit != usual:
            about += [option, f"{limit:g}"]
    return shlex.join(["kinform", "simulate", *words, *about])
