"""Scenes: combinations of faults that would hardly ever meet at random.

A list from a stale server does no harm, unless a watch has just expired; a restore finds clients
that are about to list only if something has kept them from it. Each rare theme has a scene, which
is played once in its schedules.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import msgspec

from kinform.apiserver import faults
from kinform.apiserver.faults.files import dump
from kinform.apiserver.faults.kinds import Fault, Verb
from kinform.testing.simulation.actions import (
    Action,
    Happen,
    Partition,
    Remain,
    Restore,
    Unserve,
)

__all__ = [
    "Scene",
    "failover",
    "no_watches",
    "outage",
    "packed",
    "restore",
    "short_watches",
    "strays",
    "unserved",
]

Scene: TypeAlias = Callable[[random.Random], Sequence[Action]]
"""Draws what happens, in seconds after the begin of the scene."""

_MOST_PROCESSES: Final = 3
_BEHIND: Final[Sequence[Verb]] = ("list", "list", "watch")


def strays(dice: random.Random) -> Sequence[Action]:
    """Watches end after a stale bookmark: a client that trusts it watches from there again."""
    lasts = round(dice.uniform(30, 90), 1)
    bookmarks = faults.stray_bookmarks(revisions=dice.choice((500, 2000)), times=None)
    return [
        *_reset(),
        _happen(bookmarks, lasts=lasts),
        _happen(faults.close_watch(after_events=dice.randint(4, 12), times=None), lasts=lasts),
    ]


def failover(dice: random.Random) -> Sequence[Action]:
    """All clients reconnect to a server with a stale cache, and have to list there."""
    lasts = round(dice.uniform(30, 90), 1)
    verb, revisions = dice.choice(_BEHIND), dice.randint(200, 1500)
    expired = faults.error_event(410, after_events=dice.randint(1, 4), times=None)
    return [
        *_reset(),
        _happen(faults.stale_cache(revisions=revisions, verb=verb, times=None), lasts=lasts),
        _happen(expired, lasts=lasts),
    ]


def restore(dice: random.Random) -> Sequence[Action]:
    """Watches have expired and lists fail; then the server is one from a backup."""
    at = round(dice.uniform(5, 25), 1)
    return [
        *_reset(),
        _happen(faults.error_event(410, after_events=1, times=None), lasts=60.0),
        _happen(faults.status(503, verb="list", times=None), at=2.5, lasts=60.0),
        _happen(faults.status(503, verb="watch", times=None), at=4.0, lasts=60.0),
        Restore(at=at, by=dice.randint(20, 80), redo=dice.randint(1, 3)),
    ]


def packed(dice: random.Random) -> Sequence[Action]:
    """All clients reconnect, and the events of the meantime arrive at once, packed."""
    lasts = round(dice.uniform(30, 90), 1)
    cut = [Partition(at=0.0, process=n, lasts=lasts / 6) for n in range(_MOST_PROCESSES)]
    return [*cut, _happen(faults.gzip(together=True, times=None), lasts=lasts)]


def no_watches(dice: random.Random) -> Sequence[Action]:
    """From some moment on no watch can be opened any more, and all that are open break."""
    code = dice.choice((None, 401, 403, 502, 503, 504))
    fault = faults.reset(verb="watch") if code is None else faults.status(code, verb="watch")
    return [*_reset(), Remain(at=0.0, fault=dump([fault]))]


def outage(dice: random.Random) -> Sequence[Action]:
    """For some minutes neither lists nor watches are answered, and all connections break."""
    lasts = round(dice.uniform(200, 320), 1)
    fault = faults.status(dice.choice((502, 503, 504)), times=None)
    return [*_reset(), _happen(fault, lasts=lasts)]


def short_watches(dice: random.Random) -> Sequence[Action]:
    """From some moment on each watch ends cleanly: first after one event, then after more."""
    # So many that 8 watches a minute bring all that is written.
    remains = faults.end_watch(after_events=dice.randint(15, 40))
    return [
        *_reset(),
        _happen(faults.end_watch(after_events=1, times=None), lasts=60.0),
        Remain(at=0.0, fault=dump([remains])),
    ]


def unserved(dice: random.Random) -> Sequence[Action]:
    """The API version is not served for some minutes, and watches of before break."""
    lasts = round(dice.uniform(90, 240), 1)
    return [Unserve(at=0.0, lasts=lasts), *(_late(action) for action in _reset())]


def _late(action: Action) -> Action:
    return msgspec.structs.replace(action, at=action.at + 0.1)


def _reset() -> Sequence[Action]:
    """Break all connections."""
    return [Partition(at=0.0, process=n, lasts=0.1) for n in range(_MOST_PROCESSES)]


def _happen(fault: Fault, *, at: float = 0.0, lasts: float) -> Happen:
    return Happen(at=at, fault=dump([fault]), lasts=lasts)
