"""The whole way of an event, from the wire to a handler, against decoding alone.

kinform reads the body of a watch, cuts it, queues, caches and indexes it (two indexes of its own
and one by ``spec.nodeName``), and calls one handler that reads ``status.phase``: a
`SharedInformer` on a real watch, on a server in memory. A read brings 256 KB, which is what
asyncio takes at a time from a socket that has more, and gives all others a turn. The others are
handed lines that are already cut, and keep their results: there is no lookup and no
notification.

* *first list*: a streamed list fills an empty cache.
* *new objects*: ADDED events fill an empty cache.
* *updates*: every object of a full cache changes once. What is replaced is freed at once.

The garbage collector runs as in production, and the bars are there; the same with the collector
off shows its share. For updates there is no bar against ``json.loads``: dicts that
replace dicts give the collector nothing to do, and to pass over a pod's bytes three times (its
metadata, its node, its phase) costs a quarter of it already.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

import msgspec

from bench import measure, pods, transport
from kinform import Added, Object, SharedInformer, Updated
from kinform.meta import ObjectMeta

__all__ = ["main"]

BARE_BAR: Final = 4.0
"""The allowed ratio of an event to a bare decode of its metadata."""
JSON_BAR: Final = 4.0
"""The required ratio of ``json.loads`` to kinform, with all dicts kept."""

_KINFORM: Final = "kinform pipeline"
_BARE: Final = "msgspec metadata"
_JSON: Final = "json.loads"
_LIST_END: Final = (
    b'{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":'
    b'"1000000","annotations":{"k8s.io/initial-events-end":"true"}}}}\n'
)


class _Metadata(msgspec.Struct, gc=False):
    """The fields that kinform reads of every object."""

    api_version: str = msgspec.field(name="apiVersion", default="")
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()


class _Line(msgspec.Struct, gc=False):
    type: str
    object: _Metadata


@dataclass(frozen=True, slots=True)
class _Contest:
    name: str
    events: Sequence[bytes]
    """The timed events, one line each."""
    known: Sequence[bytes] = ()
    """The contents of the cache before."""
    is_list: bool = False
    """True if ``events`` are the first list."""
    piles_up: bool = True
    """True if the results are added to earlier ones instead of replacing them."""


@final
class _Pipeline:
    """An informer that runs when it is asked to, and stands still in between."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._runner.run(self._start())

    async def _start(self) -> None:
        self._answer = transport.Answer()
        self._missing = 0
        self._delivered = asyncio.Event()
        self.informer: SharedInformer[Object] = SharedInformer(
            transport.source(self._answer),
            indexers={"node": lambda pod: pod.at("spec", "nodeName")},
        )
        self.informer.add_event_handler(on_add=self._on_add, on_update=self._on_update)
        await self.informer.start()

    def _on_add(self, event: Added[Object]) -> None:
        self._read(event.obj)

    def _on_update(self, event: Updated[Object]) -> None:
        self._read(event.new)

    def _read(self, pod: Object) -> None:
        self._missing -= pod.at("status", "phase") == "Running"
        if not self._missing:
            self._delivered.set()

    def take(self, reads: Sequence[bytes], *, events: int) -> None:
        """Feed ``reads``; return when the handler has received all their events."""
        self._runner.run(self._take(reads, events))

    async def _take(self, reads: Sequence[bytes], events: int) -> None:
        self._missing = events
        self._delivered.clear()
        self._answer.put(reads)
        async with asyncio.timeout(60):
            await self.informer.wait_synced()
            if events:
                await self._delivered.wait()

    def close(self) -> None:
        """Stop the informer."""
        with self._runner:
            self._runner.run(self.informer.stop())


@final
class _Informing:
    """The one rival that does all of it."""

    def __init__(self, contest: _Contest, *, read_size: int) -> None:
        self._events = len(contest.events)
        self._known = len(contest.known)
        end = (_LIST_END,)
        timed = (*contest.events, *end) if contest.is_list else contest.events
        before = () if contest.is_list else (*contest.known, *end)
        self._reads = list(transport.pieces(timed, read_size))
        self._before = list(transport.pieces(before, read_size))
        self._pipeline: _Pipeline | None = None

    def prepare(self) -> None:
        """Start an informer, and have it learn what is known before."""
        self._pipeline = _Pipeline()
        if self._before:
            self._pipeline.take(self._before, events=self._known)

    def run(self) -> object:
        """Take all events; return what keeps their objects."""
        assert self._pipeline is not None
        self._pipeline.take(self._reads, events=self._events)
        return self._pipeline

    def close(self) -> None:
        """Stop the informer, and see that nothing was left out."""
        assert self._pipeline is not None
        figures = self._pipeline.informer.statistics()
        self._pipeline.close()
        self._pipeline = None
        (handler,) = figures.handlers
        done = (figures.objects, handler.delivered, handler.coalesced)
        if done != (self._events, self._known + self._events, 0):
            raise SystemExit(f"cached, delivered, merged: {done}; nothing to measure")


@final
class _Decoding:
    """A rival that decodes each line, and keeps what that gives in the place of what was there."""

    def __init__(self, contest: _Contest, decode: Callable[[bytes], object]) -> None:
        self._contest = contest
        self._decode = decode
        self._kept: list[object] = []

    def prepare(self) -> None:
        """Keep what is known before."""
        known = [self._decode(line) for line in self._contest.known]
        self._kept = known or [None] * len(self._contest.events)

    def run(self) -> object:
        """Decode all events; return what keeps them."""
        kept, decode = self._kept, self._decode
        for place, line in enumerate(self._contest.events):
            kept[place] = decode(line)
        # Given away, or the collector would walk through it in the others' time.
        self._kept = []
        return kept


def _jobs(contest: _Contest, *, read_size: int) -> dict[str, measure.Job]:
    """Return the alternating candidates; names in brackets have no bar."""
    kinform = _Informing(contest, read_size=read_size)
    bare = _Decoding(contest, msgspec.json.Decoder(_Line).decode)
    loads = _Decoding(contest, json.loads)
    return {
        "(start)": kinform.prepare,
        _KINFORM: kinform.run,
        "(stop)": kinform.close,
        "(metadata)": bare.prepare,
        _BARE: bare.run,
        "(dicts)": loads.prepare,
        _JSON: loads.run,
    }


def _contests(count: int) -> list[_Contest]:
    lines = pods.watch_lines(count)
    added = [line.replace(b"MODIFIED", b"ADDED", 1) for line in lines]
    version, newer = b'"resourceVersion":"1', b'"resourceVersion":"2'
    changed = [line.replace(version, newer, 1) for line in lines]
    return [
        _Contest("first list", added, is_list=True),
        _Contest("new objects", added),
        _Contest("updates", changed, added, piles_up=False),
    ]


def _verdicts(contest: _Contest, run: measure.Measured) -> list[bool]:
    """Print how far ``run`` is from the bars; return for each whether it was reached."""
    slower, faster = run.ratio(_KINFORM, _BARE), run.ratio(_JSON, _KINFORM)
    reached = [slower <= BARE_BAR]
    print(f"{contest.name:12} at most {BARE_BAR:g}x {_BARE}: {slower:.1f}x, {_word(reached[-1])}")
    if contest.piles_up:
        reached.append(faster >= JSON_BAR)
        word = _word(reached[-1])
        print(f"{'':12} at least {JSON_BAR:g}x less than {_JSON}: {faster:.1f}x, {word}")
    else:
        print(f"{'':12} {_JSON} takes {faster:.1f}x as long")
    return reached


def _word(reached: bool) -> str:  # noqa: FBT001 - what the word is about
    return "reached" if reached else "MISSED"


def _print_table(runs: Mapping[str, Sequence[measure.Measured]], *, events: int) -> None:
    print(f"\n{'µs per event':18}" + "".join(f"{name:>14}{'gc off':>9}" for name in runs))
    for rival in (_KINFORM, _BARE, _JSON):
        line = f"{rival:18}"
        for collected, uncollected in runs.values():
            line += f"{collected.median(rival) / events * 1e6:14.1f}"
            line += f"{uncollected.median(rival) / events * 1e6:9.1f}"
        print(line)
    print()


def main(arguments: Sequence[str] = ()) -> bool:
    """Run and print the benchmark; return whether all bars were reached."""
    parser = argparse.ArgumentParser(prog="python -m bench pipeline")
    parser.add_argument("--pods", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--read-size", type=int, default=256, help="KB per read of the connection")
    options = parser.parse_args(arguments)

    contests = _contests(options.pods)
    runs: dict[str, list[measure.Measured]] = {}
    for contest in contests:
        jobs = _jobs(contest, read_size=options.read_size * 1024)
        runs[contest.name] = [
            measure.interleaved(jobs, rounds=options.rounds, collect=collect)
            for collect in (True, False)
        ]
    size = sum(map(len, contests[0].events)) / options.pods
    print(f"{options.pods} events of {size:,.0f} bytes in reads of {options.read_size} KB,")
    print(f"Python {platform.python_version()}, msgspec {msgspec.__version__};")
    print(f"CPU time, medians of {options.rounds} interleaved rounds")
    _print_table(runs, events=options.pods)
    reached = [_verdicts(contest, runs[contest.name][0]) for contest in contests]
    return all(map(all, reached))


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1:]))
