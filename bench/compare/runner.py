"""The runner: runs the jobs of a plan and fills a record.

A life that fails is recorded as failed, with what its process said last, and the run goes on.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO, final

from bench.compare import machine
from bench.compare.plan import Job
from bench.compare.processes import ChildError
from bench.compare.results import Lived, Record
from bench.compare.scenario import Life, Server, Target

__all__ = ["Progress", "run"]

_BYTES_PER_OBJECT = 12_000
"""Memory per object that a run needs while it lists."""

RealServer = Callable[[int], contextlib.AbstractContextManager[Path]]


@final
@dataclass(slots=True)
class Progress:
    """Tells on a stream what runs now, how far it is, and how long it may take."""

    total: float
    """About how many seconds all takes."""
    jobs: int
    stream: TextIO = field(default_factory=lambda: sys.stderr)
    began: float = field(default_factory=time.monotonic)
    done: float = 0.0
    number: int = 0

    def begin(self, job: Job) -> None:
        """A job begins."""
        self.number += 1
        options = "".join(
            f", {text}"
            for text in (
                f"{job.objects:,} objects",
                job.lists if job.part == "lists" else "",
                f"round {job.round + 1}",
            )
            if text
        )
        self.tell(f"{self.number} of {self.jobs}: {job.part}: {job.peer.label}{options}")

    def end(self, job: Job) -> None:
        """A job has ended."""
        self.done += job.estimate()

    def step(self, name: str) -> None:
        """Show the current step of a job, only where lines can be overwritten."""
        if self.stream.isatty():
            self.stream.write(f"\r\033[K{self._clock()}   {name} ...\r")
            self.stream.flush()

    def tell(self, text: str) -> None:
        """Print a line."""
        start = "\r\033[K" if self.stream.isatty() else ""
        self.stream.write(f"{start}{self._clock()} {text}\n")
        self.stream.flush()

    def _clock(self) -> str:
        elapsed = time.monotonic() - self.began
        share = f"{min(99.0, 100 * self.done / self.total):2.0f} %" if self.total else ""
        return f"[{elapsed // 60:02.0f}:{elapsed % 60:02.0f} {share}]"


def run(
    jobs: Sequence[Job],
    record: Record,
    *,
    server: Sequence[str],
    folder: Path,
    progress: Progress,
    real: RealServer,
) -> None:
    """Do all jobs, in their order, and record each.

    ``server`` is the command of the replay server; each life has one of its own. ``real`` starts
    another server with so many pods, once for all jobs that want it.
    """
    replayed = [job for job in jobs if job.part != "real"]
    for job in replayed:
        progress.begin(job)
        _do(job, record, folder=folder, progress=progress, target=_replay(server, folder))
    wanted = [job for job in jobs if job.part == "real"]
    if wanted:
        _run_real(wanted, record, folder=folder, progress=progress, real=real)


def _at(kubeconfig: Path) -> Callable[[], contextlib.AbstractContextManager[Target]]:
    return lambda: contextlib.nullcontext(kubeconfig)


def _replay(
    server: Sequence[str], folder: Path
) -> Callable[[], contextlib.AbstractContextManager[Target]]:
    @contextlib.contextmanager
    def target() -> Generator[Target]:
        with Server(server, folder=folder) as running:
            yield running

    return target


def _run_real(
    jobs: Sequence[Job], record: Record, *, folder: Path, progress: Progress, real: RealServer
) -> None:
    try:
        with real(jobs[0].objects) as kubeconfig:
            for job in jobs:
                progress.begin(job)
                _do(job, record, folder=folder, progress=progress, target=_at(kubeconfig))
    except Exception as exc:  # noqa: BLE001 - an error here must not lose the rest of the record
        record.left_out["a real kube-apiserver"] = f"{type(exc).__name__}: {exc}"
        progress.tell(f"left out: a real kube-apiserver: {exc}")


def _do(
    job: Job,
    record: Record,
    *,
    folder: Path,
    progress: Progress,
    target: Callable[[], contextlib.AbstractContextManager[Target]],
) -> None:
    if reason := _too_large(job):
        record.left_out[f"{job.peer.label}, {job.part} with {job.objects:,} objects"] = reason
        progress.tell(f"left out: {reason}")
        return
    failure: str | None = None
    life: Life | None = None
    try:
        with target() as place:
            life = Life(job, place, folder=folder, tell=progress.step)
            life.live()
    except (ChildError, OSError) as exc:
        step = life.step if life is not None else "start"
        failure = f"{step}: {exc}"
        progress.tell(f"FAILED in {failure}")
    record.lives.append(_lived(job, life, failure))
    if life is not None and life.versions:
        record.versions.setdefault(job.peer.label, dict(life.versions))
    progress.end(job)


def _lived(job: Job, life: Life | None, failure: str | None) -> Lived:
    return Lived(
        part=job.part,
        label=job.peer.label,
        round=job.round,
        objects=job.objects,
        lists=job.lists,
        fields=job.fields,
        figures=dict(life.figures) if life is not None else {},
        failure=failure,
    )


def _too_large(job: Job) -> str:
    needed, available = job.objects * _BYTES_PER_OBJECT, machine.available_memory()
    if job.objects <= 100_000 or not available or needed <= available:
        return ""
    return f"needs {needed / 1e9:.0f} GB of memory, {available / 1e9:.0f} GB are available"
