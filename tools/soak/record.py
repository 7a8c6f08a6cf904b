"""The record of a run, and the checks of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from tools.soak.messages import Sample, State, Views
from tools.soak.trends import Trend, trend_of

__all__ = ["Checkpoint", "Fault", "Record", "differences", "problems", "trends", "write"]

_MOST: Final = 5

_WARM_UP: Final[Mapping[str, float]] = {"rss": 180.0}
"""Seconds until memory has settled; it is then checked for at least as long."""

GROWTH: Final[Mapping[str, tuple[float, float]]] = {
    "rss": (50e3, 1024 * 1024.0),
    "tasks": (0.0, 1.0),
    "descriptors": (0.0, 1.0),
}
"""The allowed growth per hour, and the allowed difference at the end of any run."""


class Checkpoint(msgspec.Struct, kw_only=True):
    """A pause in which no client wrote and no fault was active."""

    at: float
    took: float
    """Seconds until all caches equalled the server."""
    objects: int
    tasks: int
    wrong: list[str]


class Fault(msgspec.Struct, kw_only=True):
    """A fault of the network or of the server."""

    at: float
    took: float
    kind: str


class Record(msgspec.Struct, kw_only=True):
    """One run."""

    server: str
    seed: int
    minutes: float
    period: float = 30.0
    """Seconds between two checkpoints."""
    samples: list[Sample] = msgspec.field(default_factory=list[Sample])
    checkpoints: list[Checkpoint] = msgspec.field(default_factory=list[Checkpoint])
    faults: list[Fault] = msgspec.field(default_factory=list[Fault])
    writes: int = 0
    refused: int = 0
    broken: list[str] = msgspec.field(default_factory=list[str])
    """Errors that ended the run early."""


def differences(state: State, truth: Views) -> list[str]:
    """Return what the process under test believes and is not so; a few of each kind."""
    wrong = list(state.complaints[:_MOST])
    for view, expected in truth.items():
        believed = state.views.get(view, {})
        names = believed.keys() | expected.keys()
        for name in sorted(name for name in names if believed.get(name) != expected.get(name))[
            :_MOST
        ]:
            is_, should = believed.get(name, "nothing"), expected.get(name, "nothing")
            wrong.append(f"{view}: {name} is {is_}, and should be {should}")
    return wrong


def trends(record: Record) -> dict[str, Trend | None]:
    """Return how memory, tasks and descriptors changed."""
    return {
        name: trend_of(
            [(one.at, float(getattr(one, name))) for one in record.samples],
            warm_up=_WARM_UP.get(name, 0.0),
            shortest=_WARM_UP.get(name, 0.0),
        )
        for name in GROWTH
    }


def problems(record: Record, found: Mapping[str, Trend | None]) -> Iterator[str]:
    """Yield every reason for which the run has failed."""
    yield from record.broken
    for checkpoint in record.checkpoints:
        for wrong in checkpoint.wrong:
            yield f"at {checkpoint.at:.0f} s: {wrong}"
    if not record.checkpoints:
        yield "there was no checkpoint"
    for name, (per_hour, resolution) in GROWTH.items():
        trend = found[name]
        if trend is not None and trend.grows(per_hour=per_hour, resolution=resolution):
            yield f"{name} grows by {trend.slope:,.0f} an hour, {trend.low:,.0f} at least"


def write(record: Record, path: Path) -> None:
    """Write a record as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")
