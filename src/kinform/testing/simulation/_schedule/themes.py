"""Themes: faults of one subject, many of them in one schedule.

A fault at random is rarely the one that a certain mistake needs, and hardly ever two that go
together: pages, and a compaction between two of them. So every eighth schedule takes what its
server does wrong from one theme; every sixteenth, between those, from a rare one, and plays its
scene; every thirty-second has proxies that answer 404. Four more have a server that is limited in
one way for long: no watch can be opened, each watch ends cleanly after some events, nothing is
answered, or the API version is not served. One more has a rough program (`is_rough`), with any
server. A new theme takes seeds that had none: all others keep their meaning.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from kinform.apiserver import faults
from kinform.apiserver.faults.kinds import Fault, Verb
from kinform.testing.simulation._schedule import scenes
from kinform.testing.simulation._schedule.scenes import Scene
from kinform.testing.simulation.actions import Restore

__all__ = [
    "LIMITED_THEMES",
    "RARE_THEMES",
    "THEMES",
    "Theme",
    "every_theme",
    "is_rough",
    "scene_of",
    "theme_of",
]

Theme: TypeAlias = Callable[[random.Random], Fault | Restore]
"""Draws one fault of its subject."""

_EVERY: Final = 8
_RARE: Final = 16
_STRANGE: Final = 32
_LIMITED: Final = 32
_ROUGH: Final = 24
_READS: Final[Sequence[Verb]] = ("list", "watch")


def theme_of(seed: int) -> Theme | None:
    """Return what the schedule of ``seed`` is about; None: everything."""
    turn, place = divmod(seed, _EVERY)
    if place == _EVERY - 1:
        return THEMES[turn % len(THEMES)]
    if seed % _STRANGE == _STRANGE - 6:
        return _strangers
    rare = _rare(seed) or LIMITED_THEMES.get(seed % _LIMITED)
    return None if rare is None else rare[0]


def scene_of(seed: int) -> Scene | None:
    """Return the scene of the schedule of ``seed``; None: it has none."""
    rare = _rare(seed) or LIMITED_THEMES.get(seed % _LIMITED)
    return None if rare is None else rare[1]


def is_rough(seed: int) -> bool:
    """Return whether kinform's own program is a rough one: see `simulation.rough`."""
    return seed % _LIMITED == _ROUGH


def every_theme() -> Sequence[Theme]:
    """Return all of them."""
    rare = (theme for theme, _ in (*RARE_THEMES, *LIMITED_THEMES.values()))
    return tuple(dict.fromkeys((*THEMES, *rare, _strangers)))


def _rare(seed: int) -> tuple[Theme, Scene] | None:
    turn, place = divmod(seed, _RARE)
    return RARE_THEMES[turn % len(RARE_THEMES)] if place == _RARE - 2 else None


def _overload(dice: random.Random) -> Fault:
    """The server wants to be left alone."""
    return faults.status(
        dice.choice((429, 429, 503)),
        retry_after=dice.choice((2, 5, 30)),
        verb=dice.choice(_READS),
        times=_times(dice),
    )


def _permissions(dice: random.Random) -> Fault:
    """Permissions are revoked, and granted again."""
    code, times = dice.choice((401, 403, 403)), _times(dice)
    if dice.random() < 0.3:
        return faults.error_event(code, after_events=dice.randint(0, 3), times=times)
    return faults.status(code, verb=dice.choice(_READS), times=times)


def _pages(dice: random.Random) -> Fault:
    """Lists come in pages, and their version expires meanwhile."""
    match dice.randrange(6):
        case 0:
            return faults.no_watch_list(times=None)
        case 1:
            return faults.status(410, verb="list", nth=dice.randint(1, 4))
        case 2 | 3:
            return faults.error_event(410, times=None)
        case _:
            return faults.compact(verb="list", times=None)  # so that each page is the last


def _pieces(dice: random.Random) -> Fault:
    """Bodies come in pieces, packed, damaged or cut."""
    times = _times(dice)
    match dice.randrange(5):
        case 0:
            return faults.drip(size=dice.randint(1, 200), every=0.05, times=times)
        case 1:
            return faults.gzip(times=None)
        case 2:
            return faults.corrupt(event=dice.randint(1, 3), times=times)
        case 3:
            return faults.truncate_frame(event=dice.randint(1, 3), times=times)
        case _:
            return faults.close(after_bytes=dice.randint(0, 3000), verb=dice.choice(_READS))


def _bookmarks(dice: random.Random) -> Fault:
    """They do not come, and watches end before or after them."""
    times = _times(dice)
    match dice.randrange(4):
        case 0:
            return faults.no_bookmarks(initial_end=dice.random() < 0.5, times=times)
        case 1:
            return faults.close_watch(after_events=dice.randint(0, 9), times=times)
        case 2:
            return faults.half_open(after_events=dice.randint(0, 9), verb="watch", times=times)
        case _:
            return faults.duplicate_events(times=None)


def _replicas(dice: random.Random) -> Fault:
    """Reads go to one that is behind, and watches end or expire, so that there are reads."""
    verb = dice.choice(_READS)
    match dice.randrange(4):
        case 0:
            return faults.stale(revisions=dice.randint(1, 20), verb=verb, times=_times(dice))
        case 1:
            return faults.stale(seconds=round(dice.uniform(0.5, 20), 1), verb=verb, times=None)
        case 2:
            return faults.error_event(410, times=_times(dice))
        case _:
            return faults.close_watch(after_events=dice.randint(0, 4), times=_times(dice))


def _strays(dice: random.Random) -> Fault:
    """Watches deliver unexpected events: old bookmarks, and old states once more."""
    match dice.randrange(6):
        case 0 | 1:
            return faults.stray_bookmarks(revisions=dice.choice((1, 50, 500)), times=None)
        case 2 | 3:
            return faults.older_events(times=None)
        case 4:
            return faults.error_event(410, after_events=dice.randint(0, 3), times=_times(dice))
        case _:
            return faults.close_watch(after_events=dice.randint(0, 9), times=_times(dice))


def _failovers(dice: random.Random) -> Fault:
    """Lists go to a server with a stale cache, while watches expire and end."""
    match dice.randrange(5):
        case 0 | 1:
            return faults.stale_cache(
                revisions=dice.randint(50, 1500), verb="list", times=_times(dice)
            )
        case 2:
            return faults.no_watch_list(times=None)
        case 3:
            return faults.error_event(410, after_events=dice.randint(0, 3), times=None)
        case _:
            return faults.close_watch(after_events=dice.randint(0, 4), times=_times(dice))


def _members(dice: random.Random) -> Fault:
    """Bodies are packed, many events in one read, and watches end or expire."""
    match dice.randrange(4):
        case 0 | 1:
            return faults.gzip(together=True, times=None)
        case 2:
            return faults.error_event(410, after_events=dice.randint(0, 3), times=_times(dice))
        case _:
            return faults.close_watch(after_events=dice.randint(0, 9), times=_times(dice))


def _restores(dice: random.Random) -> Fault | Restore:
    """The server is restored while clients are about to list, and lost writes are repeated."""
    match dice.randrange(5):
        case 0 | 1:
            return Restore(at=0.0, by=dice.randint(5, 60), redo=dice.randint(1, 3))
        case 2 | 3:
            return faults.error_event(410, after_events=dice.randint(0, 3), times=None)
        case _:
            return faults.status(503, verb="list", times=None)


def _strangers(dice: random.Random) -> Fault:
    """A proxy answers in place of the server, without knowing its objects."""
    match dice.randrange(4):
        case 0 | 1:
            return faults.status(404, text=dice.choice((None, "default backend")), times=None)
        case 2:
            return faults.status(dice.choice((502, 503)), text="<html>", times=None)
        case _:
            return faults.status(404, verb=dice.choice(_READS), times=_times(dice))


def _gateways(dice: random.Random) -> Fault:
    """Watches alone fail, at their opening, while lists work."""
    if dice.random() < 0.3:
        return faults.reset(verb="watch", times=None)
    return faults.status(dice.choice((401, 403, 502, 503, 504)), verb="watch", times=None)


def _short_watches(dice: random.Random) -> Fault:
    """Watches end cleanly after a few events, and lists or watches sometimes fail."""
    if dice.random() < 0.6:
        return faults.end_watch(after_events=dice.randint(1, 4), times=None)
    return faults.status(dice.choice((500, 503)), verb=dice.choice(_READS), times=_times(dice))


def _times(dice: random.Random) -> int | None:
    """Return how many requests are hit; None: all while it lasts."""
    return dice.choice((1, 2, None))


THEMES: Final[Sequence[Theme]] = (
    _overload,
    _permissions,
    _pages,
    _pieces,
    _bookmarks,
    _replicas,
)

RARE_THEMES: Final[Sequence[tuple[Theme, Scene]]] = (
    (_strays, scenes.strays),
    (_restores, scenes.restore),
    (_failovers, scenes.failover),
    (_restores, scenes.restore),
    (_members, scenes.packed),
)
"""Of every sixteenth schedule, each with its scene."""

LIMITED_THEMES: Final[Mapping[int, tuple[Theme, Scene]]] = {
    12: (_strangers, scenes.unserved),
    16: (_overload, scenes.outage),
    20: (_gateways, scenes.no_watches),
    28: (_short_watches, scenes.short_watches),
}
"""By the place of a schedule among thirty-two, each with its scene."""
