"""Compare kinform with client-go and other clients.

``python -m bench.compare --quick`` takes minutes, ``--full`` about an hour. Ctrl-C ends it
early: what there is by then is written, marked as partial. ``--build`` only builds the peers that
are programs, which a run does by itself.
"""

from __future__ import annotations

import argparse
import dataclasses
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench import console, corpus
from bench.compare import (
    bars,
    build,
    machine,
    packing,
    peers,
    plan,
    quotes,
    real,
    report,
    results,
    runner,
)
from bench.compare.extras import extra_jobs
from bench.compare.peers import BUILD, CLIENT_GO, NULL, ROOT, Peer
from bench.compare.plan import FULL, PARTS, QUICK, Job, Scale
from bench.compare.results import Record

__all__ = ["main"]

_SEED: Final = 1
_RESULTS: Final = ROOT / "bench" / "results"
_README: Final = ROOT / "README.md"
_INTERRUPTED: Final = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, build, or report a run; return 0 if no bar was missed and nothing failed."""
    options = _options(arguments)
    if options.build is not None:
        return _build(options.build)
    if options.report is not None:
        record = results.load(options.report)
        _finish(record, options.out or options.report.parent, with_record=False)
        return _exit_code(record)
    scale = _scale(options)
    record = Record(scale=scale.name, machine=machine.described(), began=console.now())
    began = time.monotonic()
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell's background jobs ignore the first
        signal.signal(number, signal.default_int_handler)
    try:
        wanted = peers.chosen(options.only.split(","))
        able, record.left_out = build.built(wanted, tell=console.say)
        _run(scale, able, record, parts=options.parts)
        record.partial = False
    except KeyboardInterrupt:
        console.say("interrupted; writing what there is")
    record.seconds = time.monotonic() - began
    _finish(record, options.out or _folder(record, options), with_record=True)
    return _INTERRUPTED if record.partial else _exit_code(record)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.compare", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--quick", action="store_true", help="10,000 objects; minutes")
    what.add_argument("--full", action="store_true", help="100,000 objects; an hour")
    what.add_argument("--report", type=Path, metavar="FILE", help="tables and plots of a record")
    names = ", ".join(build.PROGRAMS)
    what.add_argument("--build", nargs="*", metavar="NAME", help=f"build some of {names}, or all")
    parser.add_argument("--only", default="", metavar="PEER,...", help="these peers alone")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"some of {','.join(PARTS)}")
    parser.add_argument("--rounds", type=int, help="how often each peer lives")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where the results go")
    options = parser.parse_args(arguments)
    if strange := set(options.build or ()) - set(build.PROGRAMS):
        parser.error(f"no program {min(strange)!r}; there is {names}")
    options.parts = [part for part in options.parts.split(",") if part]
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no part {min(unknown)!r}; there is {', '.join(PARTS)}")
    try:
        peers.chosen(options.only.split(","))
    except ValueError as exc:
        parser.error(str(exc))
    return options


def _build(names: Sequence[str]) -> int:
    try:
        build.build(names, tell=console.say)
    except build.BuildError as exc:
        console.say(str(exc))
        return 1
    return 0


def _scale(options: argparse.Namespace) -> Scale:
    scale = FULL if options.full else QUICK
    if options.rounds:
        return dataclasses.replace(scale, rounds=options.rounds, latency_rounds=options.rounds)
    return scale


def _folder(record: Record, options: argparse.Namespace) -> Path:
    """Return where the results go: only those of a whole run may replace the last ones."""
    if record.partial or options.only or set(options.parts) != set(PARTS) or options.rounds:
        return BUILD / "partial"
    return _RESULTS if record.scale == FULL.name else BUILD / "quick"


def _run(scale: Scale, able: Sequence[Peer], record: Record, *, parts: Sequence[str]) -> None:
    jobs = [*plan.main_jobs(scale, able, parts), *extra_jobs(scale, able, parts)]
    total = sum(job.estimate() for job in jobs)
    _tell_plan(jobs, total, record)
    source, command = _corpus(scale, able, record)
    progress = runner.Progress(total, len(jobs))
    runner.run(
        jobs,
        record,
        server=command,
        folder=ROOT,
        progress=progress,
        real=lambda objects: real.filled_control_plane(objects, source, tell=progress.tell),
    )


def _tell_plan(jobs: Sequence[Job], total: float, record: Record) -> None:
    console.say(f"{len(jobs)} lives, about {total / 60:.0f} minutes:")
    for part in dict.fromkeys(job.part for job in jobs):
        those = [job for job in jobs if job.part == part]
        labels = ", ".join(dict.fromkeys(job.peer.label for job in those))
        minutes = sum(job.estimate() for job in those) / 60
        console.say(f"  {part}: {len(those)} lives, {minutes:.1f} minutes: {labels}")
    for label, reason in record.left_out.items():
        console.say(f"  left out: {label}: {reason}")


def _corpus(scale: Scale, able: Sequence[Peer], record: Record) -> tuple[Path, list[str]]:
    """Return the pods' file and the command that serves it."""
    source = corpus.json_file(scale.objects, seed=_SEED)
    size = source.stat().st_size - 4 * scale.objects
    record.corpus = {"count": scale.objects, "bytes each": size / scale.objects}
    command = [sys.executable, "-m", "bench.replay", "--json", str(source)]
    if any(peer.name == CLIENT_GO for peer in able):
        twin = build.protobuf_corpus(source, tell=console.say)
        proto = (twin.stat().st_size - 4 * scale.objects) / scale.objects
        record.corpus = {**record.corpus, "bytes each as protobuf": proto}
        command += ["--proto", str(twin)]
    console.say("compressing the pods with zstd -19, to tell how regular they are")
    zstd = corpus.zstd_size(source) / scale.objects
    sizes = packing.packed_sizes(source)
    record.corpus = {**record.corpus, "bytes each under zstd -19": zstd, **sizes}
    return source, command


def _finish(record: Record, folder: Path, *, with_record: bool) -> None:
    written = report.write(record, folder, with_record=with_record)
    if folder.resolve() == _RESULTS:
        quotes.write(record, _README)
        written.append(_README)
    print((folder / "latest.md").read_text(encoding="utf-8"))
    for path in written:
        console.say(f"wrote {path}")


def _exit_code(record: Record) -> int:
    missed = any(verdict.outcome is bars.Outcome.MISSED for verdict in bars.judged(record))
    failed = any(life.failure for life in record.lives if life.label != NULL)
    return int(missed or failed)


if __name__ == "__main__":
    sys.exit(main())
