"""The record of a run: every repetition, and where it was made.

Nothing is condensed in it. Medians, spreads and ratios are worked out from the repetitions each
time they are wanted, so a table can be made anew from a record, and judged by other bars.

A ratio is taken within a round, where both sides lived one after the other, and is then the median
over rounds. Where one side lived once and the other in several rounds, it is the ratio of medians.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

__all__ = ["Lived", "Measure", "Record", "Select", "Spread", "load", "ratio", "save", "spread"]

FORMAT: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Lived:
    """One repetition: what a process was asked for, and all that was seen of it."""

    part: str
    label: str
    round: int
    objects: int
    lists: str
    fields: bool
    figures: Mapping[str, float]
    failure: str | None = None
    """The error, with the last lines of the process; there are no further numbers."""


@dataclass(slots=True, kw_only=True)
class Record:
    """A whole run."""

    scale: str
    machine: Mapping[str, str]
    corpus: Mapping[str, float] = field(default_factory=dict)
    versions: dict[str, dict[str, str]] = field(default_factory=dict)
    """By peer, what it says of itself."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Skipped measurements and the reasons."""
    lives: list[Lived] = field(default_factory=list)
    began: str = ""
    seconds: float = 0.0
    partial: bool = True
    """True if the run ended early."""

    def labels(self) -> list[str]:
        """Return the peers in the record, in order of appearance."""
        return list(dict.fromkeys(life.label for life in self.lives))


def save(record: Record, path: Path) -> None:
    """Write a record as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"format": FORMAT, **asdict(record)}, indent=1)
    path.write_text(text + "\n", encoding="utf-8")


def load(path: Path) -> Record:
    """Read what `save` wrote.

    Raises:
        ValueError: It is not a record, or one of another format.
    """
    content = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
        raise ValueError(f"{path}: not a record of format {FORMAT}")
    content["lives"] = [Lived(**life) for life in content["lives"]]
    return Record(**content)


# --- figures ----------------------------------------------------------------------------------

Measure: TypeAlias = Callable[[Lived], float | None]
"""A quantity of one repetition; None if it has no such number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Select:
    """The selected repetitions; None means any."""

    label: str
    part: str = "life"
    objects: int | None = None
    lists: str | None = None

    def of(self, record: Record) -> list[Lived]:
        """Return them."""
        return [life for life in record.lives if self._fits(life)]

    def _fits(self, life: Lived) -> bool:
        parts = {self.part, "latency"} if self.part == "life" else {self.part}
        return (
            life.label == self.label
            and life.part in parts
            and self.objects in (None, life.objects)
            and self.lists in (None, life.lists)
        )


@dataclass(frozen=True, slots=True)
class Spread:
    """A median with what lies around it."""

    median: float
    least: float
    most: float
    count: int


def _by_round(record: Record, select: Select, measure: Measure) -> dict[int, float]:
    values: dict[int, float] = {}
    for life in select.of(record):
        value = measure(life)
        if value is not None and math.isfinite(value):
            values[life.round] = value
    return values


def _spread(values: Iterable[float]) -> Spread | None:
    known = list(values)
    if not known:
        return None
    return Spread(statistics.median(known), min(known), max(known), len(known))


def spread(record: Record, select: Select, measure: Measure) -> Spread | None:
    """Return the median over the repetitions; None if none of them tells."""
    return _spread(_by_round(record, select, measure).values())


def ratio(
    record: Record,
    select: Select,
    measure: Measure,
    *,
    to: Select,
    by: Measure | None = None,
) -> Spread | None:
    """Return how many times the figure of ``to`` the figure is; see the rules of this file.

    ``by`` is what is measured of the other side, if it is something else.
    """
    ours = _by_round(record, select, measure)
    theirs = _by_round(record, to, by or measure)
    shared = [number for number in ours if theirs.get(number)]
    if len(shared) > 1 or (shared and len(ours) == len(theirs)):
        return _spread(ours[number] / theirs[number] for number in shared)
    if not ours or not any(theirs.values()):
        return None
    return _spread([statistics.median(ours.values()) / statistics.median(theirs.values())])
