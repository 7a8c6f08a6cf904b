"""The bars, as data, and whether a run reached them.

A figure is a ratio of two things in the same run, the median over its rounds. A bar is judged by
``subject`` alone; ``also`` tells how another configuration does.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bench.compare import results
from bench.compare.measures import MEASURES
from bench.compare.peers import FROZEN, JSON, LIGHTKUBE, PROTOBUF, RAW, TYPED, UVLOOP, ZSTD
from bench.compare.results import Record, Select, Spread

__all__ = ["BARS", "Bar", "Outcome", "Verdict", "judged"]


class Outcome(enum.Enum):
    """The result of a bar."""

    REACHED = "reached"
    MISSED = "MISSED"
    UNMEASURED = "not measured"
    ELSEWHERE = "elsewhere"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A limit for one figure.

    Without ``against`` the figure is a ratio in itself. ``objects`` are those of the subject and
    of the other side, for bars on growth: by their place in the run, -1 is the largest.
    """

    name: str
    measure: str
    limit: float
    subject: str = RAW.label
    against: str | None = None
    at_least: bool = False
    part: str = "life"
    also: str | None = None
    growth: tuple[int, int] | None = None
    elsewhere: str = ""
    """The proof, if it is not this benchmark."""

    def fits(self, figure: float) -> bool:
        """Return whether a figure reaches the bar."""
        return figure >= self.limit if self.at_least else figure <= self.limit

    def wanted(self) -> str:
        """Return the limit in words."""
        if self.elsewhere:
            return ""
        limit = f"1/{1 / self.limit:g}" if self.limit < 0.1 else f"{self.limit:g}x"
        return f"{'at least' if self.at_least else 'at most'} {limit}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A bar with what the run says of it."""

    bar: Bar
    outcome: Outcome
    figure: Spread | None = None
    also: Spread | None = None


_UVLOOP: Final = UVLOOP.label

BARS: Final[Sequence[Bar]] = (
    Bar(name="first sync, replayed: CPU, of client-go's JSON", measure="sync_cpu", limit=1 / 12,
        against=JSON.label, also=_UVLOOP),
    Bar(name="first sync, replayed: wall, of client-go's JSON", measure="sync_wall_each",
        limit=1 / 10, against=JSON.label, also=_UVLOOP),
    Bar(name="first sync, real server over TLS: CPU, of client-go's protobuf", measure="sync_cpu",
        limit=0.85, against=PROTOBUF.label, part="real", also=_UVLOOP),
    Bar(name="first sync, real server over TLS: wall, of client-go's protobuf",
        measure="sync_wall_each", limit=1.0, against=PROTOBUF.label, part="real", also=_UVLOOP),
    Bar(name="events/s, of client-go's JSON", measure="events_rate", limit=12, at_least=True,
        against=JSON.label, also=_UVLOOP),
    Bar(name="events/s, of lightkube's", measure="events_rate", limit=2.5, at_least=True,
        against=LIGHTKUBE.label, also=_UVLOOP),
    Bar(name="events/s with a handler that reads fields, of client-go's JSON",
        measure="events_rate", limit=5, at_least=True, against=JSON.label, part="fields",
        also=_UVLOOP),
    *[
        Bar(name=f"memory per pod {when}, {form}, of client-go's", measure=measure, limit=limit,
            subject=peer.label, against=PROTOBUF.label)
        for when, measure in (("after the sync", "memory"), ("after the events", "memory_events"))
        for form, peer, limit in (
            ("raw", RAW, 0.5), ("zstd", ZSTD, 0.1), ("typed projection", TYPED, 0.2)
        )
    ],
    Bar(name="growth, raw: CPU per pod, largest over smallest", measure="sync_cpu", limit=1.25,
        part="growth", growth=(-1, 0), also=FROZEN.label),
    Bar(name="growth, raw: memory per pod, largest over smallest", measure="memory", limit=1.25,
        part="growth", growth=(-1, 0)),
    Bar(name="growth, zstd: CPU per pod until idle, largest over smallest",
        measure="sync_all_cpu", limit=1.25, subject=ZSTD.label, part="growth", growth=(-1, 0)),
    Bar(name="growth, zstd: memory per pod, largest over smallest", measure="memory", limit=1.25,
        subject=ZSTD.label, part="growth", growth=(-1, 0)),
    Bar(name="latency at 1,000 events/s, p99, of client-go's", measure="p99", limit=1.25,
        against=PROTOBUF.label, also=_UVLOOP),
    Bar(name="lookup by key, of a dict.get", measure="key_over_dict", limit=10),
    Bar(name="lookup by index, 20 objects, of client-go's", measure="index", limit=3,
        against=PROTOBUF.label),
    Bar(name="relist, nothing changed: CPU, of the first sync's", measure="relist_over_sync",
        limit=0.8, also=_UVLOOP),
    Bar(name="relist, nothing changed: peak, of the settled memory",
        measure="relist_peak_over_settled", limit=1.5, also=_UVLOOP),
    Bar(name="50 idle informers: CPU, of client-go's", measure="idle", limit=2,
        against=PROTOBUF.label, part="informers", also=_UVLOOP),
    Bar(name="10,000 seeded fault schedules without one divergence", measure="", limit=0,
        elsewhere="make simulate"),
    Bar(name="at most 8 list and 8 watch attempts in the first minute of any failure", measure="",
        limit=0, elsewhere="make test"),
    Bar(name="stop returns within its grace period + 0.5 s", measure="", limit=0,
        elsewhere="make test"),
    Bar(name="types: pyright and mypy strict, complete", measure="", limit=0,
        elsewhere="make types"),
)  # fmt: skip


def judged(record: Record, bars: Sequence[Bar] = BARS) -> list[Verdict]:
    """Return the verdict on each bar."""
    return [_judge(record, bar) for bar in bars]


def _judge(record: Record, bar: Bar) -> Verdict:
    if bar.elsewhere:
        return Verdict(bar, Outcome.ELSEWHERE)
    figure = _figure(record, bar, bar.subject)
    also = _figure(record, bar, bar.also) if bar.also else None
    if figure is None:
        return Verdict(bar, Outcome.UNMEASURED, None, also)
    outcome = Outcome.REACHED if bar.fits(figure.median) else Outcome.MISSED
    return Verdict(bar, outcome, figure, also)


def _figure(record: Record, bar: Bar, label: str) -> Spread | None:
    measure = MEASURES[bar.measure].of
    select = Select(label=label, part=bar.part)
    if bar.growth is not None:
        sizes = sorted({life.objects for life in select.of(record) if measure(life) is not None})
        if len(sizes) < 2:
            return None
        ours, theirs = (
            Select(label=label, part=bar.part, objects=sizes[place]) for place in bar.growth
        )
        return results.ratio(record, ours, measure, to=theirs)
    if bar.against is None:
        return results.spread(record, select, measure)
    return results.ratio(record, select, measure, to=Select(label=bar.against, part=bar.part))
