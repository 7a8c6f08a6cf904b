"""Schedules of CronJobs: five fields, or a word for them."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from kinform.apiserver import _recorded

__all__ = ["ScheduleError", "check_schedule", "is_zone"]

_WORDS: Final = frozenset(
    {"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}
)
_DURATION: Final = re.compile(
    r"[+-]?(0|((\d+(\.\d*)?|\.\d+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h))+)", re.ASCII
)
_NUMBER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)


class ScheduleError(ValueError):
    """The schedule cannot be read."""


class _Field(NamedTuple):
    smallest: int
    largest: int
    names: Mapping[str, int] = {}


_MONTHS: Final = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_DAYS: Final = "sun mon tue wed thu fri sat".split()
_FIELDS: Final = (
    _Field(0, 59),
    _Field(0, 23),
    _Field(1, 31),
    _Field(1, 12, {name: number for number, name in enumerate(_MONTHS, start=1)}),
    _Field(0, 6, {name: number for number, name in enumerate(_DAYS)}),
)


def check_schedule(schedule: str) -> None:
    """Read a schedule such as ``*/5 * * * *`` or ``@hourly``.

    Raises:
        ScheduleError: It cannot be read; the text says why, in the server's words.
    """
    if schedule.startswith(("TZ=", "CRON_TZ=")):
        zone, space, schedule = schedule.partition(" ")
        if not space:
            # The real server runs into a fault of its own here, and says so.
            fault = "runtime error: slice bounds out of range [:-1]"
            raise ScheduleError(f"invalid schedule format: {fault}")
        name = zone.partition("=")[2]
        if not is_zone(name):
            raise ScheduleError(f"provided bad location {name}: unknown time zone {name}")
        schedule = schedule.strip()
    if schedule.startswith("@"):
        _check_word(schedule)
        return
    fields = schedule.split()
    if len(fields) != 5:
        found = f"found {len(fields)}: [{' '.join(fields)}]"
        raise ScheduleError(f"expected exactly 5 fields, {found}")
    for text, field in zip(fields, _FIELDS, strict=True):
        for part in text.split(","):
            if part:
                _check_range(part, field)


@functools.lru_cache(maxsize=256)
def is_zone(name: str) -> bool:
    """Return whether there is such a time zone, spelled exactly so."""
    return name in _recorded.zones()


def _check_word(word: str) -> None:
    if word in _WORDS:
        return
    if not word.startswith("@every "):
        raise ScheduleError(f"unrecognized descriptor: {word}")
    duration = word.removeprefix("@every ")
    if _DURATION.fullmatch(duration) is None:
        raise ScheduleError(f'failed to parse duration {word}: time: invalid duration "{duration}"')


def _check_range(text: str, field: _Field) -> None:
    """Read one range of a field: ``*``, ``5``, ``1-5`` or ``1-5/2``."""
    span, *steps = text.split("/")
    first, *lasts = span.split("-")
    if first in {"*", "?"}:
        start, end = field.smallest, field.largest
    else:
        start = _number(first, field)
        end = start
        if len(lasts) == 1:
            end = _number(lasts[0], field)
        elif lasts:
            raise ScheduleError(f"too many hyphens: {text}")
    if len(steps) > 1:
        raise ScheduleError(f"too many slashes: {text}")
    step = _positive(steps[0]) if steps else 1
    if steps and "-" not in span and first not in {"*", "?"}:
        end = field.largest
    _check_bounds((start, end, step), field, text)


def _check_bounds(bounds: tuple[int, int, int], field: _Field, text: str) -> None:
    start, end, step = bounds
    if start < field.smallest:
        limit = f"below minimum ({field.smallest})"
        raise ScheduleError(f"beginning of range ({start}) {limit}: {text}")
    if end > field.largest:
        raise ScheduleError(f"end of range ({end}) above maximum ({field.largest}): {text}")
    if start > end:
        beyond = f"beyond end of range ({end})"
        raise ScheduleError(f"beginning of range ({start}) {beyond}: {text}")
    if step == 0:
        raise ScheduleError(f"step of range should be a positive number: {text}")


def _number(text: str, field: _Field) -> int:
    named = field.names.get(text.lower())
    return named if named is not None else _positive(text)


def _positive(text: str) -> int:
    if _NUMBER.fullmatch(text) is None:
        cause = f'strconv.Atoi: parsing "{text}": invalid syntax'
        raise ScheduleError(f"failed to parse int from {text}: {cause}")
    number = int(text) if len(text) < 25 else 2**63
    if abs(number) >= 2**63:
        cause = f'strconv.Atoi: parsing "{text}": value out of range'
        raise ScheduleError(f"failed to parse int from {text}: {cause}")
    if number < 0:
        raise ScheduleError(f"negative number ({number}) not allowed: {text}")
    return number
