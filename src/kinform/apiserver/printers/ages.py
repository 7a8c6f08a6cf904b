"""Ages in tables: the time since a moment, in two units at most."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from kinform.apiserver.serializer.json_values import Json

__all__ = ["UNKNOWN", "age_of", "duration", "parsed", "since"]

UNKNOWN: Final = "<unknown>"
_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_YEAR: Final = 365 * _DAY

# Below the first number of seconds: the unit that is shown, and the smaller one beside it.
_STEPS: Final[tuple[tuple[int, tuple[int, str], tuple[int, str] | None], ...]] = (
    (10 * _MINUTE, (_MINUTE, "m"), (1, "s")),
    (3 * _HOUR, (_MINUTE, "m"), None),
    (8 * _HOUR, (_HOUR, "h"), (_MINUTE, "m")),
    (2 * _DAY, (_HOUR, "h"), None),
    (8 * _DAY, (_DAY, "d"), (_HOUR, "h")),
    (2 * _YEAR, (_DAY, "d"), None),
    (8 * _YEAR, (_YEAR, "y"), (_DAY, "d")),
)


def duration(seconds: float) -> str:
    """Return a length of time in words: the longer, the coarser.

    >>> duration(119), duration(182), duration(3 * 86400), duration(-5)
    ('119s', '3m2s', '3d', '<invalid>')
    """
    whole = int(seconds)
    if whole < 2 * _MINUTE:
        # A clock may be a second ahead; a larger negative age is invalid.
        return f"{max(whole, 0)}s" if whole >= -1 else "<invalid>"
    for limit, (size, unit), finer in _STEPS:
        if whole < limit:
            count, rest = divmod(whole, size)
            small = rest // finer[0] if finer is not None else 0
            return f"{count}{unit}{small}{finer[1]}" if finer and small else f"{count}{unit}"
    return f"{whole // _YEAR}y"


def parsed(stamp: object) -> datetime | None:
    """Read a time as objects carry it; None if it is none."""
    if not isinstance(stamp, str) or not stamp:
        return None
    try:
        moment = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None


def since(stamp: object, now: datetime) -> str:
    """Return how long ago a time of an object was, ``<unknown>`` if there is none."""
    moment = parsed(stamp)
    return UNKNOWN if moment is None else duration((now - moment).total_seconds())


def age_of(obj: Json, now: datetime) -> str:
    """Return how long ago an object was created."""
    return since(obj["metadata"].get("creationTimestamp"), now)
