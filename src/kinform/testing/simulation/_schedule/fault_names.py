"""The faults of schedules by their names: what each does, and how to choose among them.

A fault of the server's plan has the name of its effect (`kinform.apiserver.faults.kinds`), so a new
effect is listed and can be chosen as soon as a theme draws it. Faults of another sort are named
here.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterable, Mapping
from typing import Final

from kinform.apiserver import faults
from kinform.apiserver.faults.kinds import EFFECTS, Fault, Status
from kinform.errors import UsageError
from kinform.testing.simulation.actions import Action, Happen, Write, kind_of

__all__ = ["ALL", "DEFAULT", "NOT_BY_DEFAULT", "chosen", "name_of", "name_of_fault"]

_NOT_FOUND: Final = "not_found"


def _described() -> Mapping[str, str]:
    found: dict[str, str] = {}
    for name in EFFECTS:
        first = (getattr(faults, name).__doc__ or name).strip().partition("\n")[0]
        found[name] = first.rstrip(".").replace("`", "")
    return found


ALL: Final[Mapping[str, str]] = {
    **_described(),
    "compact": "the server forgets its past: old versions are 410",
    "restore": "etcd is restored from a backup: the last writes are lost",
    "lag": "the watch cache is stale: watches and reads of any version show an old state",
    "pause": "the server does not respond for a while",
    "partition": "one process is cut off from the server",
    "suspend": "the machine sleeps: clocks go on, timers do not",
    "jump_wall": "the wall clock is set forward or back",
    "restart": "one process is stopped cleanly and started again",
    "crash": "one process is killed and started again",
    "crash_at_write": "one process is killed right after one of its writes",
    "meddle": "another writer changes or deletes a Secret that has the name of an object",
    "status": "a refusal instead of the answer: 401, 403, 409, 410, 422, 429, 500, 502, 503, ...",
    _NOT_FOUND: "a proxy answers 404 for existing objects: no API server does that",
}
"""The effect of each fault, by name."""

NOT_BY_DEFAULT: Final = frozenset({"restore", _NOT_FOUND})
"""Not injected into a user's program, unless chosen.

Few controllers can be correct when acknowledged writes are lost, or when a 404 is wrong.
"""

DEFAULT: Final = frozenset(ALL) - NOT_BY_DEFAULT
"""The faults that are injected into a user's program, unless others are chosen."""


def name_of(action: Action) -> str:
    """Return the name of a fault or restart; ``""`` for a write of the schedule."""
    if isinstance(action, Write):
        return ""
    return _of_plan(action.fault) if isinstance(action, Happen) else kind_of(action)


def name_of_fault(fault: Fault) -> str:
    """Return the name of a fault of the server's plan."""
    effect = fault.effect
    return _NOT_FOUND if isinstance(effect, Status) and effect.code == 404 else fault.name


@functools.lru_cache(maxsize=1024)
def _of_plan(text: str) -> str:
    return name_of_fault(Happen(at=0.0, fault=text).made())


def chosen(faults: str | Iterable[str]) -> frozenset[str]:
    """Return the names that a choice means.

    A choice is a text such as ``"lag,compact"`` or a collection of names. ``all``, ``default`` and
    ``none`` stand for sets of them. ``-name`` takes one away; a choice that begins with it starts
    from the default.

    Raises:
        UsageError: a fault does not exist.

    Example:
        >>> sorted(chosen("lag, compact"))
        ['compact', 'lag']
        >>> "lag" in chosen("-lag"), "crash" in chosen("-lag")
        (False, True)
    """
    words = faults.split(",") if isinstance(faults, str) else list(faults)
    words = [word.strip() for word in words if word.strip()]
    sets = {"all": frozenset(ALL), "default": DEFAULT, "none": frozenset[str]()}
    found: set[str] = set(DEFAULT) if words and words[0].startswith("-") else set()
    for word in words:
        name = word.removeprefix("-")
        meant = sets[name] if name in sets else frozenset({name})
        if not meant <= ALL.keys():
            near = difflib.get_close_matches(name, [*ALL, *sets], n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise UsageError(f"unknown fault {name!r}{hint}")
        if word.startswith("-"):
            found -= meant
        else:
            found |= meant
    return frozenset(found)
