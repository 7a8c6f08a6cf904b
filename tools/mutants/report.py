"""The record of a hunt, ``tests/mutants/caught.json``, and the page made from it. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tools.mutants.hunting import Caught
from tools.mutants.patches import FOLDER, ROOT, Patch
from tools.mutants.rules import ELSEWHERE, INVARIANTS, RULES

__all__ = ["PAGE", "RECORD", "dump", "load", "mistakes", "page"]

RECORD: Final = FOLDER / "caught.json"
PAGE: Final = ROOT / "docs" / "mutants.md"

_INTRODUCTION: Final = """\
# Mutants

A simulation that finds nothing proves nothing, unless it would have found something. So mistakes
are put into kinform on purpose, one at a time, each of which a good engineer could have made:
`tests/mutants` has them as patches. `kinform simulate` has to find every one within 500 seeds, by a
promise that is broken; it does not know what to look for.

```console
$ make mutants                                   # all of them, from seed 0 on
$ make mutants ARGS=recreated-is-updated         # one
$ make mutants ARGS=--check                      # each with the seed that found it: part of CI
```

To add one: change a file under `src/kinform`, `git diff > tests/mutants/NAME.patch`, put the lines
`# rule:`, `# what:` and `# oracle:` before the diff, undo the change, and run it.

{count} mutants of {rules} rules were caught; the highest seed that it took is {last}. {survivors}
more are known to survive: they stand below, with the reason. This page is written by
`make mutants`.

"""


def load() -> dict[str, Caught]:
    """Return what is known of each mutant."""
    if not RECORD.exists():
        return {}
    return {name: Caught(**said) for name, said in json.loads(RECORD.read_text("utf-8")).items()}


def dump(caught: Mapping[str, Caught]) -> str:
    """Return the record: by name, without the messages."""
    found = {
        name: {"seed": one.seed, "oracle": one.oracle, "seconds": round(one.seconds, 1)}
        for name, one in sorted(caught.items())
    }
    return json.dumps(found, indent=2) + "\n"


def mistakes(patches: Iterable[Patch], caught: Mapping[str, Caught]) -> list[str]:
    """Return what does not go together: rules that do not exist, mutants nobody has caught."""
    patches = list(patches)
    hunted = _hunted(patches)
    names, known = {patch.name for patch in hunted}, RULES.keys() | INVARIANTS.keys()
    claimed = {patch.rule for patch in hunted}
    covered = ELSEWHERE.keys() | {patch.rule for patch in patches}
    return [
        *(f"{one.name}: there is no rule {one.rule}" for one in patches if one.rule not in known),
        *(f"{name} was never caught: make mutants ARGS={name}" for name in names - caught.keys()),
        *(f"{name} is no mutant that is hunted" for name in caught.keys() - names),
        *(f"{rule} has a mutant, and a reason not to" for rule in claimed & ELSEWHERE.keys()),
        *(f"{rule} has neither a mutant nor a reason" for rule in RULES.keys() - covered),
    ]


def page(patches: Sequence[Patch], caught: Mapping[str, Caught]) -> str:
    """Return the page of the documentation."""
    hunted = _hunted(patches)
    rules = {patch.rule for patch in hunted}
    text = _INTRODUCTION.format(
        count=len(hunted),
        rules=len(rules & RULES.keys()),
        last=max((caught[patch.name].seed for patch in hunted), default=0),
        survivors=len(patches) - len(hunted),
    )
    rows = [_row(patch, caught[patch.name]) for patch in hunted]
    text += _table(["mutant", "rule", "the mistake", "seed", "broken promise", "seconds"], rows)
    text += "\n## Survivors\n\n"
    rows = [_survivor(patch) for patch in patches if patch.survives]
    text += _table(["mutant", "rule", "the mistake", "why no seed finds it"], rows)
    text += "\n## Rules\n\n"
    counts = [[rule, title, _claim(rule, hunted)] for rule, title in RULES.items()]
    return text + _table(["rule", "about", "mutants"], counts)


def _hunted(patches: Iterable[Patch]) -> list[Patch]:
    return [patch for patch in patches if not patch.survives]


def _survivor(patch: Patch) -> list[str]:
    return [f"`{patch.name}`", patch.rule, patch.what, patch.survives]


def _row(patch: Patch, caught: Caught) -> list[str]:
    return [
        f"`{patch.name}`",
        patch.rule,
        patch.what,
        str(caught.seed),
        caught.oracle,
        f"{caught.seconds:.1f}",
    ]


def _claim(rule: str, patches: Sequence[Patch]) -> str:
    if count := sum(patch.rule == rule for patch in patches):
        return str(count)
    return f"none: {ELSEWHERE[rule]}" if rule in ELSEWHERE else "none yet"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
