"""Unified diffs: applied to the old text they give the new one, however long the texts are."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from kinform.apiserver.scheme.line_diff import unified

HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
LINES = st.lists(st.sampled_from(["a", "b", "c"]), max_size=8)


def patched(before: Sequence[str], diff: Sequence[str]) -> list[str]:
    """Return the new text, after a check of all that the diff says of the old one."""
    after: list[str] = []
    at = 0
    for line in diff:
        if match := HUNK.fullmatch(line):
            begin, count = int(match[1]), int(match[2] or 1)
            begin = begin - 1 if count else begin
            after += before[at:begin]
            at = begin
            continue
        if line[0] in " -":
            assert before[at] == line[1:]
            at += 1
        if line[0] in " +":
            after.append(line[1:])
    return after + list(before[at:])


@given(LINES, LINES, LINES, LINES, st.sampled_from([0, 1500]))
def test_a_diff_turns_the_old_text_into_the_new_one(
    head: list[str], old: list[str], new: list[str], tail: list[str], repeated: int
) -> None:
    before = head + ["x"] * repeated + old + tail
    after = head + ["x"] * repeated + new + tail
    diff = list(unified(before, after, end=""))

    assert patched(before, diff) == after
    assert (diff == []) == (before == after)
    assert sum(1 for line in diff if line[0] == "-") <= len(old) or repeated == 0
