"""Soak kinform: churn and random faults for as long as you like.

    python -m tools.soak                             20 minutes on a control plane
    python -m tools.soak --hours 24
    python -m tools.soak --minutes 2 --server embedded --seed 7

Every half minute the writers pause, and what the process under test believes must equal what the
server has. At the end, its memory, tasks and descriptors must not have grown. The record and a
picture of it are in build/soak. Exits with 1 if anything was wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Final

from tools.soak.driver import SubjectLost, soak
from tools.soak.plot import draw
from tools.soak.record import Record, problems, trends, write
from tools.soak.targets import TARGETS

FOLDER: Final = Path("build/soak")


def main() -> int:
    """Run, write down, and judge."""
    parser = argparse.ArgumentParser(prog="python -m tools.soak", description="Soak kinform.")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--minutes", type=float, default=20.0, help="how long; 20")
    length.add_argument("--hours", type=float, help="how long, in hours")
    parser.add_argument("--server", choices=TARGETS, default="control-plane")
    parser.add_argument("--seed", type=int, default=1, help="of writes and faults; 1")
    parser.add_argument("--period", type=float, default=30.0, help="seconds between checkpoints")
    parser.add_argument("--out", type=Path, default=FOLDER, help="where the record goes")
    options = parser.parse_args()
    minutes: float = options.minutes if options.hours is None else options.hours * 60
    record = Record(
        server=options.server, seed=options.seed, minutes=minutes, period=options.period
    )
    try:
        asyncio.run(soak(record, tell=lambda line: print(line, flush=True)))
    except KeyboardInterrupt:
        record.broken.append("interrupted")
    except SubjectLost as exc:
        record.broken.append(f"the process under test: {exc}")
    return report(record, options.out)


def report(record: Record, folder: Path) -> int:
    """Write the record and its picture, say what it means, and return the exit code."""
    found = trends(record)
    path = folder / f"{record.server}.json"
    write(record, path)
    print(path)
    try:
        draw(record, found["rss"], path.with_suffix(".svg"))
        print(path.with_suffix(".svg"))
    except ImportError:
        print("no picture: matplotlib is not installed")
    for name, trend in found.items():
        if trend is None:
            print(f"{name}: too short a run to tell")
        else:
            interval = f"{trend.low:+,.1f} to {trend.high:+,.1f}"
            print(f"{name}: {trend.slope:+,.1f} an hour ({interval}; {60 * trend.hours:.0f} min)")
    wrong = list(problems(record, found))
    for problem in wrong:
        print(f"WRONG: {problem}", file=sys.stderr)
    if record.broken == ["interrupted"]:
        return 130
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
