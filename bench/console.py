"""Progress output for long runs."""

from __future__ import annotations

import datetime
import sys
import time

__all__ = ["now", "say"]


def now() -> str:
    """Return the time of day, to the second."""
    seconds = time.time_ns() // 10**9
    return datetime.datetime.fromtimestamp(seconds, tz=datetime.UTC).isoformat()


def say(text: str) -> None:
    """Tell the user; results go to standard output, and this does not."""
    print(text, file=sys.stderr, flush=True)
