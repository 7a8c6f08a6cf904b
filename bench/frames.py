"""Watch frames against ``json.loads``: the price of reading one pod off a watch.

kinform is fed the stream in pieces of 64 KB and gives, for each event, the full metadata and
the object's own bytes. The others are handed lines that are already cut, and give a dict.

* *kept*: every result stays alive, as in a cache. The garbage collector runs as in production;
  it walks the dicts again and again, which is part of what keeping them costs. The bar is here.
  The same with the collector off shows how much of it that is.
* *dropped*: each result is thrown away at once, so memory is always warm.
"""

from __future__ import annotations

import argparse
import collections
import functools
import json
import platform
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from bench import measure, pods
from kinform.sansio.wire.watch import WatchDecoder

__all__ = ["main"]

BAR: Final = 8.0
"""The required speed-up over ``json.loads``, with both results kept."""

_READ_SIZE: Final = 64 * 1024
_KINFORM: Final = "kinform frames"
_JSON: Final = "json.loads"
_MSGSPEC: Final = "msgspec to dict"


def _frames(reads: Sequence[bytes]) -> Iterable[object]:
    decoder = WatchDecoder()
    for data in reads:
        yield from decoder.feed(data)
    yield from decoder.finish()
    if decoder.failure is not None:
        raise decoder.failure


def _jobs(
    lines: Sequence[bytes], into: Callable[[Iterable[object]], object]
) -> dict[str, measure.Job]:
    """Return the competitors; ``into`` takes all that each gives: a list, or nothing."""
    body = b"".join(lines)
    reads = [body[start : start + _READ_SIZE] for start in range(0, len(body), _READ_SIZE)]
    decode = msgspec.json.Decoder().decode
    return {
        _KINFORM: lambda: into(_frames(reads)),
        _JSON: lambda: into(map(json.loads, lines)),
        _MSGSPEC: lambda: into(map(decode, lines)),
    }


def main(arguments: Sequence[str] = ()) -> bool:
    """Run and print the benchmark; return whether the bar was reached."""
    parser = argparse.ArgumentParser(prog="python -m bench frames")
    parser.add_argument("--pods", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args(arguments)

    lines = pods.watch_lines(options.pods)
    drop = functools.partial(collections.deque[object], maxlen=0)
    keeping, dropping = _jobs(lines, list), _jobs(lines, drop)
    count = len([*_frames([b"".join(lines)])])
    if count != len(lines):
        raise SystemExit(f"{count} frames of {len(lines)} events: nothing to measure")

    kept = measure.interleaved(keeping, rounds=options.rounds, collect=True)
    uncollected = measure.interleaved(keeping, rounds=options.rounds, collect=False)
    dropped = measure.interleaved(dropping, rounds=options.rounds, collect=True)
    sample = _jobs(lines[:500], list)

    size = sum(map(len, lines)) / len(lines)
    print(f"{len(lines)} MODIFIED events of {size:,.0f} bytes, Python {platform.python_version()},")
    print(
        f"msgspec {msgspec.__version__}; CPU time, medians of {options.rounds} interleaved rounds"
    )
    print(
        f"\n{'µs per object':18}{'kept':>10}{'kept, gc off':>16}{'dropped':>12}{'bytes kept':>14}"
    )
    for name in keeping:
        cells = [run.median(name) / len(lines) * 1e6 for run in (kept, uncollected, dropped)]
        memory = measure.kept_bytes(sample[name]) / 500
        print(f"{name:18}{cells[0]:10.1f}{cells[1]:16.1f}{cells[2]:12.1f}{memory:14,.0f}")
    print()
    for name in (_JSON, _MSGSPEC):
        ratios = [run.ratio(name, _KINFORM) for run in (kept, uncollected, dropped)]
        print(f"times {name:16}{ratios[0]:6.1f}x{ratios[1]:15.1f}x{ratios[2]:11.1f}x")
    reached = kept.ratio(_JSON, _KINFORM)
    verdict = "reached" if reached >= BAR else "MISSED"
    print(f"\nbar, kept: at least {BAR:g}x {_JSON}; {reached:.1f}x: {verdict}")
    return reached >= BAR


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1:]))
