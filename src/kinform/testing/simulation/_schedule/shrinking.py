"""Shrinking: from a schedule that fails to a short one that fails in the same way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kinform.testing.simulation.actions import Schedule

__all__ = ["shrunk"]

TRIES: Final = 150
"""The limit of runs to shrink one schedule."""


def shrunk(
    schedule: Schedule, fails: Callable[[Schedule], bool], *, tries: int = TRIES
) -> Schedule:
    """Return a shorter schedule for which ``fails`` holds as well.

    Delta debugging: pieces are left out, first large ones, then smaller and smaller ones, for as
    long as it fails without them. What is left cannot lose a single action, unless there were not
    enough tries to find out.
    """
    size = max(1, len(schedule.actions) // 2)
    while tries > 0:
        shorter = False
        start = 0
        while start < len(schedule.actions) and tries > 0:
            piece = frozenset(range(start, min(start + size, len(schedule.actions))))
            candidate = schedule.without(piece)
            tries -= 1
            if fails(candidate):
                schedule, shorter = candidate, True
            else:
                start += size
        if size == 1 and not shorter:
            break
        size = max(1, size // 2)
    return schedule
