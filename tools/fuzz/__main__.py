"""The command: ``python -m tools.fuzz [TARGET...] [--seconds N] [--seed N] [--jobs N]``."""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final

from tests.fuzz import targets
from tools.fuzz.engine import Finding, finding
from tools.fuzz.jobs import Job, Outcome, fuzz

_FOUND: Final = Path("tests/fuzz/found")


def replay(target: str, files: Sequence[Path]) -> int:
    """Run inputs from files; return how many fail."""
    failed = 0
    for file in files:
        found = finding(targets.TARGETS[target], file.read_bytes())
        print(f"{file}: {'fails' if found else 'holds'}")
        if found is not None:
            failed += 1
            print(found.text)
    return failed


def save(target: str, found: Finding) -> Path:
    """Keep an input for ever: the tests replay it."""
    path = _FOUND / target / hashlib.sha256(found.data).hexdigest()[:12]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(found.data)
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code: 1 if something was found."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(targets.TARGETS))
    parser.add_argument("--seconds", type=float, default=600, help="for all targets together")
    parser.add_argument("--executions", type=int, help="per target, instead of --seconds")
    parser.add_argument("--seed", type=int, default=1, help="another seed, another run")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--replay", type=Path, nargs="+", metavar="FILE", help="inputs of TARGET")
    options = parser.parse_args(arguments)
    names: list[str] = options.targets or [*targets.TARGETS]
    if unknown := [name for name in names if name not in targets.TARGETS]:
        parser.error(f"unknown target {unknown[0]!r}; choose from {', '.join(targets.TARGETS)}")
    if options.replay:
        if len(names) != 1:
            parser.error("--replay needs one TARGET")
        return 1 if replay(names[0], options.replay) else 0
    share = options.seconds * min(options.jobs, len(names)) / len(names)
    jobs = [Job(name, options.seed, share, options.executions) for name in names]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, mp_context=context) as pool:
        failed = sum(_told(outcome, options.seed) for outcome in pool.map(fuzz, jobs))
    return 1 if failed else 0


def _told(outcome: Outcome, seed: int) -> int:
    """Print what came of a job, save what was found, and return how much that is."""
    rate = outcome.executions / max(outcome.seconds, 1e-9)
    print(
        f"{outcome.target:18} {outcome.executions:9,} executions {rate:7,.0f}/s"
        f"  {outcome.inputs:5,} inputs  reached {outcome.reached:6,} (+{outcome.grown:,})"
        f"  seed {seed}  {len(outcome.findings)} findings",
        flush=True,
    )
    for found in outcome.findings:
        path = save(outcome.target, found)
        print(f"\n{outcome.target}: {' '.join(found.place)}\n{found.text}")
        print(f"again with: python -m tools.fuzz {outcome.target} --replay {path}\n", flush=True)
    return len(outcome.findings)


if __name__ == "__main__":
    sys.exit(main())
