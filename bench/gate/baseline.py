"""The baseline of the gate and the comparison with it. Pure, except for the file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

__all__ = ["CPU", "TOLERANCES", "Baseline", "Figures", "Row", "compare"]

Figures: TypeAlias = Mapping[str, Mapping[str, float]]
"""By path and measure."""
Verdict: TypeAlias = Literal["same", "better", "WORSE", "UNKNOWN", "GONE"]

CPU: Final = "cpu"
"""The only measure that is not a count."""
TOLERANCES: Final = {
    "instructions": 0.02,
    "calls": 0.02,
    "passes": 0.02,
    "bytes": 0.02,
    "tracked": 0.02,
    CPU: 0.35,
}
"""The tolerance of each measure, as a fraction of the baseline."""
SLACK: Final = 0.05
"""Differences below this are ignored: 0.05 calls per event are one call in 20 events."""

_FAILURES: Final = {"WORSE", "UNKNOWN", "GONE"}


class Row(NamedTuple):
    """One measure of one path."""

    path: str
    measure: str
    baseline: float | None
    now: float | None

    @property
    def change(self) -> float:
        """The relative change from the baseline; negative if it improved."""
        if self.baseline is None or self.now is None or self.now == self.baseline:
            return 0.0
        return self.now / self.baseline - 1 if self.baseline else math.inf

    @property
    def verdict(self) -> Verdict:
        """Return the verdict on this difference.

        What has no baseline, or is not measured any more, fails as well: else a path could leave
        the gate by changing its name.
        """
        if self.baseline is None:
            return "UNKNOWN"
        if self.now is None:
            return "GONE"
        if abs(self.now - self.baseline) <= max(SLACK, TOLERANCES[self.measure] * self.baseline):
            return "same"
        return "WORSE" if self.now > self.baseline else "better"

    @property
    def is_failure(self) -> bool:
        """True if the gate fails."""
        return self.verdict in _FAILURES

    def __str__(self) -> str:
        then, now = (f"{'-':>10}" if each is None else f"{each:10,.2f}" for each in self[2:])
        return f"{self.path:18}{self.measure:14}{then}{now}{self.change:+9.1%}  {self.verdict}"


def compare(baseline: Figures, now: Figures) -> Iterator[Row]:
    """Yield a row for everything that is in one of the two, path by path."""
    for path in dict.fromkeys([*now, *baseline]):
        then, measured = baseline.get(path, {}), now.get(path, {})
        for name in dict.fromkeys([*measured, *then]):
            yield Row(path, name, then.get(name), measured.get(name))


class Baseline(msgspec.Struct, frozen=True):
    """The accepted measurements."""

    versions: dict[str, dict[str, dict[str, float]]]
    """By minor version of Python, path and measure."""

    @staticmethod
    def load(file: Path) -> Baseline:
        """Read the baseline; it is empty if the file does not exist."""
        if not file.exists():
            return Baseline(versions={})
        return msgspec.json.decode(file.read_bytes(), type=Baseline)

    def save(self, file: Path) -> None:
        """Write it, so that a diff can be read."""
        file.write_bytes(msgspec.json.format(msgspec.json.encode(self)) + b"\n")

    def expected(self, version: str) -> Figures:
        """Return what should be measured on ``version``.

        Of a version that is not known that is CPU ratios alone, the greatest of all versions.
        """
        if version in self.versions:
            return self.versions[version]
        ratios: dict[str, float] = {}
        for paths in self.versions.values():
            for path, figures in paths.items():
                ratios[path] = max(figures[CPU], ratios.get(path, 0.0))
        return {path: {CPU: ratio} for path, ratio in ratios.items()}

    def updated(self, version: str, now: Figures) -> Baseline:
        """Return the baseline that ``now`` makes.

        Counts are replaced. Ratios are so only where they are not the same any more: else they
        would follow the noise, and a path could become slower little by little.
        """
        new = {path: dict(figures) for path, figures in now.items()}
        for row in compare(self.versions.get(version, {}), now):
            if row.measure == CPU and row.verdict == "same" and row.baseline is not None:
                new[row.path][CPU] = row.baseline
        rounded = {
            path: {name: round(value, 3) for name, value in figures.items()}
            for path, figures in new.items()
        }
        return Baseline(versions=dict(sorted((self.versions | {version: rounded}).items())))
