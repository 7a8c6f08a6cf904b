"""The performance table of the README, generated from a record.

It stands between two marks in the README; a test holds it against ``bench/results/latest.json``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from bench.compare import results
from bench.compare.measures import MEASURES
from bench.compare.peers import JSON, LIGHTKUBE, PROTOBUF, RAW, TYPED, ZSTD
from bench.compare.results import Record, Select
from bench.compare.table import amount

__all__ = ["BEGIN", "END", "quoted", "write"]

BEGIN: Final = "<!-- figures of bench/results/latest.json: written by make bench-report -->"
END: Final = "<!-- end of the figures -->"

_COLUMNS: Final = (RAW.label, PROTOBUF.label, JSON.label, "kube-rs", LIGHTKUBE.label)
_ROWS: Final = (
    ("first sync, CPU for each pod", "sync_cpu", "µs"),
    ("events a second", "events_rate", ""),
    ("events a second, CPU for each", "events_cpu", "µs"),
    ("memory for each pod, after the sync", "memory", "bytes"),
    ("memory for each pod, after every pod was updated", "memory_events", "bytes"),
    ("latency at 1,000 events a second, p99", "p99", "ms"),
)
_FORMS: Final = (('`storage="zstd"`', ZSTD.label), ("a model of five fields", TYPED.label))


def quoted(record: Record) -> str:
    """Return the lines, without the marks."""
    return "\n".join(_lines(record)) + "\n"


def write(record: Record, readme: Path) -> None:
    """Put the lines between the marks of ``readme``.

    Raises:
        ValueError: the marks are not there.
    """
    text = readme.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN + "\n")
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{readme}: no {BEGIN}")
    readme.write_text(before + begin + quoted(record) + end + after, encoding="utf-8")


def _lines(record: Record) -> Iterator[str]:
    yield f"| {' | '.join(('', *_COLUMNS))} |"
    yield f"|{'---|' * (len(_COLUMNS) + 1)}"
    for title, measure, unit in _ROWS:
        yield f"| {' | '.join((title, *_cells(record, measure, unit=unit)))} |"
    yield ""
    needs = [
        f"{name} {_cell(record, label, measure='memory', unit='bytes')}" for name, label in _FORMS
    ]
    yield f"Memory for each pod in other forms, after the sync: {', '.join(needs)}."


def _cells(record: Record, measure: str, *, unit: str) -> Sequence[str]:
    return [_cell(record, label, measure=measure, unit=unit) for label in _COLUMNS]


def _cell(record: Record, label: str, *, measure: str, unit: str) -> str:
    found = results.spread(record, Select(label=label), MEASURES[measure].of)
    return "–" if found is None else f"{amount(found.median)} {unit}".strip()
