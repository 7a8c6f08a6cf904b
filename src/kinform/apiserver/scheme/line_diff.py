"""Unified diffs in bounded time, for refusals that show a forbidden change."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable, Sequence
from typing import Final

__all__ = ["unified"]

_MOST_LINES: Final = 3000
"""Longer texts are not compared line by line: that takes quadratic time, at best."""
_CONTEXT: Final = 3


def unified(before: Sequence[str], after: Sequence[str], *, end: str) -> Iterable[str]:
    """Return the lines of a unified diff, without names of files.

    The diff of long texts is correct, but not minimal: it has one hunk, from the first line that
    differs to the last.

    Args:
        end: What ends a line that is not one of the texts.
    """
    if len(before) + len(after) <= _MOST_LINES:
        return itertools.islice(difflib.unified_diff(before, after, lineterm=end), 2, None)
    return _one_hunk(before, after, end)


def _one_hunk(before: Sequence[str], after: Sequence[str], end: str) -> list[str]:
    shortest = min(len(before), len(after))
    same = (old == new for old, new in zip(before, after, strict=False))
    head = sum(1 for _ in itertools.takewhile(bool, same))
    if head == len(before) == len(after):
        return []
    pairs = zip(reversed(before), reversed(after), strict=False)
    backwards = itertools.islice((old == new for old, new in pairs), shortest - head)
    tail = sum(1 for _ in itertools.takewhile(bool, backwards))
    first = max(head - _CONTEXT, 0)
    last = max(len(before) - tail, 0)
    following = before[last : last + _CONTEXT]
    old, new = before[head:last], after[head : len(after) - tail]
    around = head - first + len(following)
    start = first + 1
    return [
        f"@@ -{start},{len(old) + around} +{start},{len(new) + around} @@{end}",
        *(f" {line}" for line in before[first:head]),
        *(f"-{line}" for line in old),
        *(f"+{line}" for line in new),
        *(f" {line}" for line in following),
    ]
