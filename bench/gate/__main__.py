"""The command: measure the paths, compare them with the baseline, print. See `bench.gate`."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.gate import baseline, measuring, paths

__all__ = ["main"]

FILE: Final = Path(__file__).with_name("baseline.json")
"""The file of the baseline."""
ATTEMPTS: Final = 3
"""The number of measurements before CPU time counts as worse."""

_VERSION: Final = f"{sys.version_info.major}.{sys.version_info.minor}"
_UPDATE: Final = "python -m bench.gate --update"


def _ratio(path: paths.Path, then: float | None) -> float:
    """Return the CPU ratio of ``path``; what seems worse is measured again, and the least counts.

    Noise is not bad three times in a row; a path that has become slower is.
    """
    if then is None:  # it will be the baseline: better be sure
        return measuring.cpu_ratio(path, rounds=ATTEMPTS * measuring.ROUNDS)
    ratio = measuring.cpu_ratio(path)
    for _ in range(ATTEMPTS - 1):
        if baseline.Row(path.name, baseline.CPU, then, ratio).verdict != "WORSE":
            break
        ratio = min(ratio, measuring.cpu_ratio(path))
    return ratio


def _measure(known: baseline.Baseline, *, counting: bool) -> dict[str, dict[str, float]]:
    """Take all paths, and print how each compares."""
    expected = known.versions.get(_VERSION, {}) if counting else known.expected(_VERSION)
    now: dict[str, dict[str, float]] = {}
    for path in paths.PATHS:
        then = expected.get(path.name, {})
        figures = measuring.counts(path) if counting else {}
        figures[baseline.CPU] = _ratio(path, then.get(baseline.CPU))
        now[path.name] = figures
        print(*baseline.compare({path.name: then}, {path.name: figures}), sep="\n", flush=True)
    return now


def _conclude(rows: Sequence[baseline.Row]) -> bool:
    """Print what to do; return whether the gate is open."""
    failures = [row for row in rows if row.is_failure]
    better = [row for row in rows if row.verdict == "better"]
    for title, some in (("better", better), ("NOT AS THE BASELINE SAYS", failures)):
        if some:
            print(f"\n{title}:", *some, sep="\n  ")
    if better and not failures:
        print(f"\nLet the baseline follow: {_UPDATE}")
    if failures:
        print(
            "\nMend it. If the change is worth that price, write the baseline anew, on each of its"
        )
        print(f"versions of Python, and give the reason in the commit: {_UPDATE}")
    return not failures


def main(arguments: Sequence[str] = ()) -> bool:
    """Measure all paths and print the table; return whether none has become worse."""
    parser = argparse.ArgumentParser(prog="python -m bench.gate")
    parser.add_argument("--update", action="store_true", help="write the baseline anew")
    options = parser.parse_args(arguments)
    logging.disable()  # ends of watches are what is measured here
    began = time.monotonic()
    known = baseline.Baseline.load(FILE)
    counting = options.update or _VERSION in known.versions
    print(f"Python {_VERSION}; figures per event, object or lookup\n")
    print(f"{'path':18}{'measure':14}{'baseline':>10}{'now':>10}{'change':>9}  verdict")
    now = _measure(known, counting=counting)
    print(f"\n{time.monotonic() - began:.0f} s")
    if options.update:
        known.updated(_VERSION, now).save(FILE)
        print(f"{FILE.name} is written; the commit says why")
        return True
    if not counting:
        print(
            f"\nSKIPPED: ALL COUNTS, for the baseline knows {', '.join(known.versions) or 'none'}"
        )
        print(f"and not Python {_VERSION}; only CPU ratios were compared. To add it: {_UPDATE}")
    return _conclude([*baseline.compare(known.expected(_VERSION), now)])


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1:]))
