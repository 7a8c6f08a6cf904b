"""A mutant as a file: lines that say what it is, and a unified diff against ``src/kinform``.

A hunk is looked for by its lines, nearest to where it says: what moves in a file spoils no patch,
what changes in its lines does. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["FOLDER", "ROOT", "Hunk", "Patch", "PatchError", "load", "parse"]

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = ROOT / "tests" / "mutants"

_HEADER: Final = re.compile(r"# (rule|what|oracle|survives): (\S.*)")
_TARGET: Final = re.compile(r"\+\+\+ b/(src/kinform/\S+\.py)")
_HUNK: Final = re.compile(r"@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@.*")


class PatchError(ValueError):
    """A patch cannot be read, or does not fit the source any more."""


@dataclass(frozen=True, slots=True)
class Hunk:
    """One place of one file: the lines there, and those in their stead."""

    line: int
    """Where it was when the patch was made, from 0."""
    before: tuple[str, ...]
    after: tuple[str, ...]

    def place(self, lines: Sequence[str]) -> int | None:
        """Return where in ``lines`` it fits, nearest to where it was; None: nowhere."""
        size = len(self.before)
        fits = [
            start
            for start in range(len(lines) - size + 1)
            if tuple(lines[start : start + size]) == self.before
        ]
        return min(fits, key=lambda start: abs(start - self.line), default=None)


@dataclass(frozen=True, slots=True)
class Patch:
    """A mutant."""

    name: str
    rule: str
    """The rule that it breaks: ``F-R20``; an invariant where there is no such rule: ``F-I7``."""
    what: str
    """The mistake, in one sentence."""
    oracle: str
    """The promise that is expected to show it, in the simulator's word."""
    files: Mapping[str, Sequence[Hunk]]
    """What it changes, by the path from the root of the repository."""
    survives: str = ""
    """Why the simulator does not find it; ``""``: it has to."""

    def applied(self, source: Callable[[str], str]) -> dict[str, str]:
        """Return the text of each file that it changes; ``source`` gives what it is now.

        Raises:
            PatchError: it does not fit.
        """
        return {path: self._mutated(path, source(path)) for path in self.files}

    def _mutated(self, path: str, text: str) -> str:
        lines = text.splitlines(keepends=True)
        for hunk in self.files[path]:
            start = hunk.place(lines)
            if start is None:
                raise PatchError(
                    f"{self.name} does not fit {path}, near line {hunk.line + 1}: make it anew"
                )
            lines[start : start + len(hunk.before)] = hunk.after
        mutated = "".join(lines)
        if mutated == text:
            raise PatchError(f"{self.name} changes nothing in {path}")
        return mutated


def parse(text: str, *, name: str) -> Patch:
    """Read a patch.

    Raises:
        PatchError: it is none; says why.
    """
    said: dict[str, str] = {}
    files: dict[str, list[Hunk]] = {}
    path, rest = "", text.splitlines(keepends=True)
    while rest:
        line = rest.pop(0)
        if match := _HEADER.fullmatch(line.rstrip("\n")):
            said[match[1]] = match[2]
        elif match := _TARGET.match(line):
            path = match[1]
        elif match := _HUNK.match(line):
            files.setdefault(path, []).append(_hunk(int(match[1]) - 1, rest))
        elif not line.startswith(("--- a/src/", "diff --git ", "index ")):
            raise PatchError(f"{name}: this belongs to no patch: {line.rstrip()!r}")
    missing = {"rule", "what", "oracle"} - said.keys()
    if missing or not files or "" in files:
        wanted = ", ".join(sorted(missing)) or "a diff against src/kinform"
        raise PatchError(f"{name} lacks {wanted}")
    return Patch(name, said["rule"], said["what"], said["oracle"], files, said.get("survives", ""))


def _hunk(line: int, rest: list[str]) -> Hunk:
    """Take the lines of a hunk out of ``rest``."""
    before: list[str] = []
    after: list[str] = []
    while rest and rest[0][0] in " +-\n" and not rest[0].startswith("--- a/src/"):
        found = rest.pop(0)
        mark, content = found[0], found[1:] or "\n"  # editors take the blank of an empty line
        if mark != "+":
            before.append(content)
        if mark != "-":
            after.append(content)
    return Hunk(line, tuple(before), tuple(after))


def load(folder: Path = FOLDER) -> list[Patch]:
    """Return all mutants, by rule and name.

    Raises:
        PatchError: a file is no patch.
    """
    found = [parse(file.read_text("utf-8"), name=file.stem) for file in folder.glob("*.patch")]
    return sorted(found, key=lambda patch: (patch.rule, patch.name))
