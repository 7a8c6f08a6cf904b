"""The record of a run: what was seen in each cell, of which versions, on which machine."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.scoreboard import scenarios
from bench.scoreboard.judge import Observation, Outcome, Verdict, judged

__all__ = ["Cell", "Record", "load", "save"]

FORMAT: Final = 1
_STOPS: Final = {each.name for each in scenarios.SCENARIOS if each.is_stop}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One scenario with one client."""

    scenario: str
    client: str
    seen: Observation = field(default_factory=Observation)
    error: str | None = None
    """Errors of the board itself, not of the client."""

    @property
    def verdict(self) -> Verdict:
        """The verdict."""
        if self.error is not None:
            return Verdict(Outcome.UNKNOWN, self.error)
        return judged(self.seen, is_stop=self.scenario in _STOPS)


@dataclass(slots=True, kw_only=True)
class Record:
    """A whole run."""

    machine: Mapping[str, str]
    versions: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """By client, what its program says of itself."""
    left_out: dict[str, str] = field(default_factory=dict)
    cells: list[Cell] = field(default_factory=list)
    began: str = ""
    seconds: float = 0.0
    partial: bool = True
    """True if the run ended early, or covered only some cells."""
    resumed: list[str] = field(default_factory=list)
    """When it was gone on with: its cells are of as many runs, and one more."""

    def find(self, scenario: str, client: str) -> Cell | None:
        """Return a cell, if there is one."""
        return next(
            (it for it in self.cells if (it.scenario, it.client) == (scenario, client)), None
        )


def save(record: Record, path: Path) -> None:
    """Write a record as JSON, with its verdicts."""
    content = dataclasses.asdict(record)
    for entry, cell in zip(content["cells"], record.cells, strict=True):
        entry["verdict"] = dataclasses.asdict(cell.verdict)
    path.write_text(json.dumps({"format": FORMAT, **content}, indent=1) + "\n", encoding="utf-8")


def load(path: Path) -> Record:
    """Read what `save` wrote; verdicts are made anew.

    Raises:
        ValueError: The file is not a record, or has another format.
    """
    content = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
        raise ValueError(f"{path}: not a record of format {FORMAT}")
    cells = [
        Cell(
            scenario=entry["scenario"],
            client=entry["client"],
            seen=observation(entry["seen"]),
            error=entry["error"],
        )
        for entry in content.pop("cells")
    ]
    return Record(cells=cells, **content)


def observation(values: Mapping[str, object]) -> Observation:
    """Make an observation of JSON."""
    found = dict(values)
    for side in ("cache", "server"):
        kept = found[side]
        assert isinstance(kept, dict)
        found[side] = {key: tuple(value) for key, value in kept.items()}
    return Observation(**found)  # type: ignore[arg-type]  # as it was written
