"""The harness proves itself: it finds known defects in an old source, and mutants of ours."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tools.differential.compare import Difference
from tools.differential.running import Result, Runner
from tools.differential.script import FOREVER, Script
from tools.mutants.patches import ROOT, Patch, PatchError, load

__all__ = [
    "BEFORE",
    "DEFECTS",
    "OUT_OF_SCOPE",
    "defects",
    "hunted",
    "mutants",
    "mutated",
    "out_of_scope",
]

BEFORE: Final = "04ddca8"
"""The commit in which all of `DEFECTS` are."""

_TIME: Final = "only what happens before the informer is stopped is compared"
_OTHER: Final = "the scripts have no controllers, work queues, leases or writes"

OUT_OF_SCOPE: Final[Mapping[str, str]] = {
    "cache/_informer/lifetime": _TIME,
    "cache/processor/processor": "handlers are added before the start; stops are not compared",
    "cache/reflector_reports": "log lines and notices are not compared",
    "cache/_reflector/reconnect_turns": "one informer never waits for others",
    "rest/connection": "deadlines of connections are below the harness's transport; no writes",
    "rest/reconnects": "one informer never waits for others",
    "runtime/": _OTHER,
    "sansio/queue/coalesce": "no handler is so slow that its buffer fills",
    "sansio/queue/delta_fifo": "the informer has another queue by default",
    "sansio/election": _OTHER,
    "sansio/workqueue": _OTHER,
    "tasks.py": _TIME,
    "verbs/reading": "the scripts have no selectors",
}
"""By the file that a mutant changes, why it cannot show here; all others are hunted."""


def _opening(script: Script, difference: Difference) -> bool:
    return difference.kind == "synced" and any(
        "stream" in one.verbs and one.until == FOREVER for one in script.faults
    )


def _unserved(script: Script, difference: Difference) -> bool:
    is_absence = difference.kind == "invented" and difference.text.startswith("absence")
    return is_absence and list(script.versions(difference.at)) == ["v2"]


def _short(script: Script, difference: Difference) -> bool:
    ends = [one.after for one in script.faults if one.what == "closed" and one.until == FOREVER]
    return difference.kind == "stale" and bool(ends) and min(ends) >= 8


def _nulls(script: Script, difference: Difference) -> bool:
    return difference.kind in {"cache", "synced"} and script.style.nulls


DEFECTS: Final[Mapping[str, tuple[str, Callable[[Script, Difference], bool]]]] = {
    "A3": ("never synced when streamed lists fail at opening and plain lists work", _opening),
    "A4": ("a version that is no longer served is reported as deletion of everything", _unserved),
    "A5": ("watches that end cleanly after 8 s or more leave the cache stale", _short),
    "A8": ("JSON nulls in metadata make objects or lists unreadable", _nulls),
}
"""What the harness has to find unaided; the predicates only sort what it found."""


def defects(found: Sequence[Result]) -> dict[str, dict[str, int]]:
    """Return for each known defect in how many scripts it was found, and the first seed."""
    sorted_in: dict[str, dict[str, int]] = {}
    for name, (_, matches) in DEFECTS.items():
        seeds = [
            one.script.seed
            for one in found
            if not (name != "A8" and (one.script.style.nulls or one.script.style.pretty))
            and not (name == "A8" and one.script.style.pretty)
            and any(matches(one.script, difference) for difference in one.defects)
        ]
        sorted_in[name] = {"scripts": len(seeds), "seed": min(seeds, default=-1)}
    return sorted_in


def hunted() -> list[Patch]:
    """Return the mutants that the harness has to find: all that can show in it."""
    return [patch for patch in load() if not patch.survives and not out_of_scope(patch)]


def out_of_scope(patch: Patch) -> str:
    """Return why a mutant cannot show here; ``""``: it can."""
    reasons = [
        next((reason for part, reason in OUT_OF_SCOPE.items() if part in path), "")
        for path in patch.files
    ]
    return reasons[0] if all(reasons) else ""


@contextmanager
def mutated(patch: Patch) -> Generator[Path]:
    """Have a copy of our source in which the mistake is made."""
    with tempfile.TemporaryDirectory(prefix=f"kinform-{patch.name}-") as folder:
        shutil.copytree(ROOT / "src" / "kinform", Path(folder) / "src" / "kinform")
        for path, text in patch.applied(lambda path: (ROOT / path).read_text("utf-8")).items():
            (Path(folder) / path).write_text(text, "utf-8")
        yield Path(folder) / "src"


def mutants(
    runner: Runner, patches: Sequence[Patch], seeds: Sequence[int]
) -> Iterator[tuple[str, int, str]]:
    """Yield for each mutant the first seed that finds it and what it found; -1: none does.

    A seed counts only if our source without the mutant has no defect there.
    """
    ours: dict[int, bool] = {}

    def is_sound(seed: int) -> bool:
        if seed not in ours:
            ours[seed] = not runner.one(seed, ROOT / "src").defects
        return ours[seed]

    for patch in patches:
        try:
            with mutated(patch) as source:
                found = next(
                    one
                    for one in _until(runner, seeds, source)
                    if one.defects and is_sound(one.script.seed)
                )
        except StopIteration:
            yield patch.name, -1, ""
        except PatchError as exc:
            yield patch.name, -1, str(exc)
        else:
            first = found.defects[0]
            yield patch.name, found.script.seed, f"{first.kind}: {first.text}"


def _until(runner: Runner, seeds: Sequence[int], source: Path) -> Iterator[Result]:
    """Yield results a few at a time, so that little is played in vain after the first defect."""
    for start in range(0, len(seeds), 8):
        yield from list(runner.run(seeds[start : start + 8], source))  # none runs when we stop
