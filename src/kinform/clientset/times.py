"""Reads and writes moments: Time, to the second, and MicroTime, which keeps six digits more.

Models keep them as the server wrote them; these functions are for who must calculate.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from kinform.clientset.wire import Time
from kinform.errors import UsageError

__all__ = ["parse", "to_micro_text", "to_text"]

_FORM: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)


def parse(time: Time) -> datetime:
    """Return the moment, in UTC. What is finer than a microsecond is cut off.

    >>> parse("2026-01-02T03:04:05.000006Z")
    datetime.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=datetime.timezone.utc)

    Raises:
        UsageError: it is not a moment as Kubernetes writes them.
    """
    try:
        if _FORM.fullmatch(time):
            return datetime.fromisoformat(time).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise UsageError(f"{time!r} is not a time like '2026-01-02T03:04:05Z'")


def to_text(moment: datetime) -> Time:
    """Return a Time: whole seconds, as in ``creationTimestamp``.

    >>> to_text(datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC))
    '2026-01-02T03:04:05Z'

    Raises:
        UsageError: the moment has no time zone.
    """
    return f"{_in_utc(moment).isoformat(timespec='seconds')}Z"


def to_micro_text(moment: datetime) -> Time:
    """Return a MicroTime: always six digits, as in a Lease's ``renewTime``.

    >>> to_micro_text(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    '2026-01-02T03:04:05.000000Z'

    Raises:
        UsageError: the moment has no time zone.
    """
    return f"{_in_utc(moment).isoformat(timespec='microseconds')}Z"


def _in_utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise UsageError(f"{moment} has no time zone; say which moment it is: tzinfo=UTC")
    return moment.astimezone(UTC).replace(tzinfo=None)
