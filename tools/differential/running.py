"""Many scripts: each played to both clients, compared, and what differs explained."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, final

from tools.differential.compare import Difference, compared
from tools.differential.drawing import draw
from tools.differential.outcome import Outcome
from tools.differential.players import ClientGo, Kinform
from tools.differential.rules import Case, explained
from tools.differential.script import Script

__all__ = ["Result", "Runner", "Tally", "judge"]


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one script."""

    script: Script
    found: Sequence[tuple[Difference, str]]
    """The differences, each with the name of the rule that explains it; ``""``: a defect."""

    @property
    def defects(self) -> list[Difference]:
        """The differences that no rule explains."""
        return [difference for difference, rule in self.found if not rule]

    @property
    def rules(self) -> set[str]:
        """The names of the rules that explain its differences."""
        return {rule for _, rule in self.found if rule}


def judge(script: Script, ours: Outcome, theirs: Outcome) -> Result:
    """Compare two outcomes, and explain what differs."""
    case = Case(script, ours, theirs)
    found: list[tuple[Difference, str]] = []
    for difference in compared(script, ours, theirs):
        rule = explained(case, difference)
        found.append((difference, rule.name if rule else ""))
    return Result(script, found)


@final
class Runner:
    """Plays scripts on several threads, each with players of its own.

    What client-go makes of a script does not depend on our source, so it is kept.
    """

    def __init__(self, *, jobs: int) -> None:
        self._pool: Final = ThreadPoolExecutor(jobs)
        self._theirs: dict[int, Outcome] = {}
        self._local = threading.local()
        self._players: list[ClientGo | Kinform] = []

    def run(self, seeds: Iterable[int], source: Path) -> Iterator[Result]:
        """Yield the result of each seed, in order."""
        yield from self._pool.map(self.one, seeds, itertools.repeat(source))

    def one(self, seed: int, source: Path) -> Result:
        """Return the result of one seed."""
        script = draw(seed)
        if seed not in self._theirs:
            self._theirs[seed] = self._client_go().play(script)
        return judge(script, self._kinform(source).play(script), self._theirs[seed])

    def _client_go(self) -> ClientGo:
        client_go: ClientGo | None = getattr(self._local, "client_go", None)
        if client_go is None:
            client_go = self._local.client_go = ClientGo()
            self._players.append(client_go)
        return client_go

    def _kinform(self, source: Path) -> Kinform:
        kinform: Kinform | None = getattr(self._local, "kinform", None)
        if kinform is None or self._local.source != source:
            if kinform is not None:
                kinform.close()
            kinform = self._local.kinform = Kinform(source)
            self._local.source = source
            self._players.append(kinform)
        return kinform

    def close(self) -> None:
        """End all players."""
        self._pool.shutdown(cancel_futures=True)
        for player in self._players:
            player.close()


@dataclass(slots=True)
class Tally:
    """Figures of a run."""

    scripts: int = 0
    themes: Counter[str] = field(default_factory=Counter[str])
    hits: Counter[str] = field(default_factory=Counter[str])
    """By rule, the scripts in which it explained something."""
    defects: list[Result] = field(default_factory=list[Result])

    def add(self, result: Result) -> None:
        """Count one script."""
        self.scripts += 1
        self.themes[result.script.theme] += 1
        self.hits.update(result.rules)
        if result.defects:
            self.defects.append(result)
