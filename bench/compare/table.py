"""The tables: Markdown that reads well on a terminal, too.

Each cell is the median over the rounds, with its spread where there were several. A cell that
has a counterpart of client-go's tells how many times that it is, protobuf first, then JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from bench.compare import results
from bench.compare.bars import Outcome, Verdict, judged
from bench.compare.measures import MEASURES, SECTIONS, Quantity
from bench.compare.peers import JSON, PROTOBUF
from bench.compare.results import Record, Select, Spread

__all__ = ["amount", "markdown", "verdict_lines"]

_REFERENCES: Final = (PROTOBUF.label, JSON.label)
_NOTHING: Final = "–"


def amount(value: float) -> str:
    """Return a figure with three digits that count."""
    if value == 0:
        return "0"
    size = abs(value)
    for limit, digits in ((100, 0), (10, 1), (1, 2), (0.1, 3)):
        if size >= limit:
            return f"{value:,.{digits}f}"
    return f"{value:.2g}"


def markdown(record: Record) -> str:
    """Return everything as Markdown."""
    lines = [
        f"# Comparison, {record.scale} run",
        "",
        *_head(record),
        "",
        "## Bars",
        "",
        *verdict_lines(judged(record)),
    ]
    for title, part, names in SECTIONS:
        lines += _section(record, title, part=part, names=names)
    lines += _lists(record)
    lines += _growth(record)
    lines += _missing(record)
    return "\n".join(lines) + "\n"


def _head(record: Record) -> Iterator[str]:
    if record.partial:
        yield "**Partial: the run ended before its time.**"
        yield ""
    yield "Cells: median over the rounds [least … most]; in parentheses, how many times"
    yield f"{_REFERENCES[0]} and {_REFERENCES[1]} it is, as far as they were measured."
    yield ""
    machine = ", ".join(f"{name} {value}" for name, value in record.machine.items())
    yield f"- Machine: {machine}"
    corpus = ", ".join(f"{name} {amount(value)}" for name, value in record.corpus.items())
    yield f"- Pods: {corpus}"
    for label, versions in record.versions.items():
        known = ", ".join(f"{name} {version}" for name, version in versions.items())
        yield f"- {label}: {known}"
    yield f"- Began {record.began}, took {record.seconds / 60:.1f} minutes"


def verdict_lines(verdicts: Sequence[Verdict]) -> list[str]:
    """Return the table of the bars."""
    rows = [
        [
            verdict.bar.name,
            verdict.bar.wanted(),
            _times(verdict.figure),
            _also(verdict),
            _word(verdict),
        ]
        for verdict in verdicts
    ]
    return _table(["bar", "wanted", "figure", "otherwise", "verdict"], rows)


def _word(verdict: Verdict) -> str:
    if verdict.outcome is Outcome.ELSEWHERE:
        return f"see {verdict.bar.elsewhere}"
    word = verdict.outcome.value
    return f"**{word}**" if verdict.outcome is Outcome.MISSED else word


def _also(verdict: Verdict) -> str:
    if verdict.also is None:
        return ""
    return f"{verdict.bar.also}: {_times(verdict.also)}"


def _times(figure: Spread | None) -> str:
    return _NOTHING if figure is None else f"{_around(figure)}x".replace("]x", "]")


def _around(figure: Spread) -> str:
    if figure.count == 1:
        return amount(figure.median)
    return f"{amount(figure.median)} [{amount(figure.least)} … {amount(figure.most)}]"


def _section(record: Record, title: str, *, part: str, names: Sequence[str]) -> list[str]:
    quantities = [MEASURES[name] for name in names]
    rows: list[list[str]] = []
    for label in record.labels():
        select = Select(label=label, part=part)
        cells = [_cell(record, select, quantity) for quantity in quantities]
        if any(cell != _NOTHING for cell in cells):
            rows.append([label, _sizes(record, select), *cells])
    if not rows:
        return []
    return ["", f"## {title}", "", *_table(["", "objects", *map(_heading, quantities)], rows)]


def _heading(quantity: Quantity) -> str:
    unit = f" ({quantity.unit})" if quantity.unit else ""
    return quantity.title + unit


def _sizes(record: Record, select: Select) -> str:
    return " / ".join(f"{size:,}" for size in sorted({life.objects for life in select.of(record)}))


def _cell(record: Record, select: Select, quantity: Quantity) -> str:
    figure = results.spread(record, select, quantity.of)
    if figure is None:
        return _NOTHING
    text = _around(figure)
    if quantity.unit == "x" or (quantity.unit == "%" and select.part == "null"):
        return text
    times = [
        results.ratio(record, select, quantity.of, to=Select(label=label, part=select.part))
        for label in _REFERENCES
        if label != select.label
    ]
    known = [f"{amount(ratio.median)}x" for ratio in times if ratio is not None]
    return f"{text} ({', '.join(known)})" if known else text


def _lists(record: Record) -> list[str]:
    measures = [MEASURES[name] for name in ("sync_wall", "sync_cpu", "memory_peak")]
    lives = [life for life in record.lives if life.part == "lists"]
    pairs = dict.fromkeys((life.label, life.lists) for life in lives)
    rows = [
        [label, mode, *(_plain(record, Select(label=label, part="lists", lists=mode), measures))]
        for label, mode in pairs
    ]
    if not rows:
        return []
    heads = ["", "way", *map(_heading, measures)]
    return ["", "## First sync, by way of listing", "", *_table(heads, rows)]


def _growth(record: Record) -> list[str]:
    names = ("sync_wall", "sync_cpu", "sync_all_cpu", "memory", "memory_peak", "events_rate")
    measures = [MEASURES[name] for name in names]
    lives = [life for life in record.lives if life.part == "growth"]
    pairs = sorted({(life.label, life.objects) for life in lives})
    rows = [
        [label, f"{size:,}", *_plain(record, _grown(label, size), measures)]
        for label, size in pairs
    ]
    if not rows:
        return []
    return ["", "## Growth", "", *_table(["", "objects", *map(_heading, measures)], rows)]


def _grown(label: str, objects: int) -> Select:
    return Select(label=label, part="growth", objects=objects)


def _plain(record: Record, select: Select, measures: Sequence[Quantity]) -> list[str]:
    figures = (results.spread(record, select, quantity.of) for quantity in measures)
    return [_NOTHING if figure is None else _around(figure) for figure in figures]


def _missing(record: Record) -> list[str]:
    failed = [
        f"- {life.label}, {life.part}, round {life.round + 1}, {life.objects:,} objects: "
        + life.failure.replace("\n", "\n  ")
        for life in record.lives
        if life.failure
    ]
    lines: list[str] = []
    if record.left_out:
        reasons = (f"- {name}: {reason}" for name, reason in record.left_out.items())
        lines += ["", "## Left out", "", *reasons]
    if failed:
        lines += ["", "## Failed", "", *failed]
    return lines


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a Markdown table whose columns stand under each other."""
    widths = [max(len(row[i]) for row in (heads, *rows)) for i in range(len(heads))]
    rule = ["-" * max(3, width) for width in widths]
    padded = (
        " | ".join(cell.ljust(max(3, width)) for cell, width in zip(row, widths, strict=True))
        for row in (heads, rule, *rows)
    )
    return [f"| {line} |" for line in padded]
