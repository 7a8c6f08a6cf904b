"""Scripts from seeds: a history of objects, and a theme of faults.

Faults with a time window end by `HEALED`, so that both clients have time to recover before the
end. Faults without a window are ones with which a client can live for ever.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from tools.differential.script import (
    FOREVER,
    Change,
    Fault,
    Handler,
    Script,
    Style,
    Verb,
    held,
    history,
)

__all__ = ["DURATION", "HEALED", "THEMES", "draw"]

DURATION: Final = 1500.0
CROWD: Final = 300
HEALED: Final = 500.0
"""When the last fault that has an end is over."""

Dice: TypeAlias = random.Random
Parts: TypeAlias = dict[str, Any]

_CODES: Final = {
    400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound",
    405: "MethodNotAllowed", 406: "NotAcceptable", 410: "Expired", 415: "UnsupportedMediaType",
    422: "Invalid", 429: "TooManyRequests", 500: "InternalError", 501: "", 502: "",
    503: "ServiceUnavailable", 504: "Timeout",
}  # fmt: skip
_OLD_SERVER: Final = Fault("status", ("stream",), code=422, reason="Invalid")
_EVERYTHING: Final[tuple[Verb, ...]] = ("list", "stream", "watch", "discovery")
_WATCHES: Final[tuple[Verb, ...]] = ("stream", "watch")
_ALL: Final[tuple[Verb, ...]] = ("list", "stream", "watch")


def draw(seed: int) -> Script:
    """Return the script of a seed."""
    dice = random.Random(f"differential {seed}")
    theme = dice.choice(
        [*THEMES, "opening", "short", "versions", "restored"]
    )  # where most was found
    parts = THEMES[theme](dice)
    changes = parts.pop("changes", None) or _changes(dice)
    if theme in _RELISTED and dice.random() < 0.4:
        forced = _relists(dice, changes)
        parts |= forced | {"faults": [*forced["faults"], *parts.get("faults", ())]}
    style = Style(
        nulls=dice.random() < 0.25,
        pretty=dice.random() < 0.2,
        reordered=dice.random() < 0.2,
        unknown_fields=dice.random() < 0.2,
        pieces=dice.choice((0, 0, 0, 0, 11, 40, 150)) if len(changes) < CROWD else 0,
        gzip=dice.choice((0, 0, 0, 1, 3)),
    )
    handlers: tuple[Handler, ...] = ("plain", "taskgroup", "timeout", "thread")
    drawn = Script(
        seed=seed,
        theme=theme,
        duration=DURATION,
        changes=changes,
        style=style,
        aggregated=dice.random() < 0.7,
        handler=dice.choices(handlers, (85, 5, 5, 5))[0],
        spread=dice.choice((0.0, 0.0, 0.5, 5.0)),
        name=dice.choices(("example.dev/v1/widgets", "widgets"), (8, 2))[0],
    )
    return msgspec.structs.replace(drawn, **parts)


# --- objects ----------------------------------------------------------------------------------


def _changes(
    dice: Dice, *, pace: float | None = None, restores: int = 0, size: int = 0
) -> list[Change]:
    """Draw a history: some objects at first, changes until after the last fault, one at the end."""
    size = size or dice.choice((1, 2, 3, 4, 10))
    keys = [f"{dice.choice('ab')}/{name}" for name in range(size)]
    pace = pace or dice.choice((3.0, 15.0, 60.0, 200.0))
    times = [-1.0] * (dice.randint(0, 5) if size < 10 else 2 * size)
    steps = dice.choice(
        (1, 1, 1, 3) if restores else (1, 3)
    )  # versions after a restore are those before, or others
    now = 0.0
    while (now := now + dice.expovariate(1 / pace)) < HEALED + 200:
        times.append(round(now, 3))
    times.append(DURATION - 300 + round(dice.random() * 50, 3))  # no client may miss this one
    marks = sorted(round(dice.uniform(20, HEALED), 3) for _ in range(restores))
    changes: list[Change] = []
    objects: dict[str, Change] = {}
    rv = dice.choice((5, 95, 990, 123_456))
    for n, at in enumerate(times):
        while marks and marks[0] < at:
            rv = _restore(dice, changes, marks.pop(0))
            objects = held(history(_bare(changes), at))
        rv += dice.randint(1, steps)
        changes.append(_change(dice, objects, dice.choice(keys), at=at, rv=rv, n=n))
        objects.pop(changes[-1].key, None)
        objects |= held(changes[-1:])
    return changes


def _restore(dice: Dice, changes: list[Change], at: float) -> int:
    before = history(_bare(changes), at)
    kept = before[: max(1, len(before) - dice.randint(0, 8))]
    rv = kept[-1].rv if kept else 1
    changes.append(Change(at, rv, "restore"))
    return rv


def _change(
    dice: Dice, objects: Mapping[str, Change], key: str, *, at: float, rv: int, n: int
) -> Change:
    old = objects.get(key)
    if old is None:
        return Change(at, rv, "ADDED", key, f"u{n}", n)
    if dice.random() < 0.3 and at >= 0:
        return Change(at, rv, "DELETED", key, old.uid, old.n)
    return Change(at, rv, "MODIFIED", key, old.uid, n)


def _bare(changes: list[Change]) -> Script:
    return Script(seed=0, theme="", duration=DURATION, changes=changes)


# --- faults -----------------------------------------------------------------------------------


def _window(dice: Dice) -> Parts:
    since = dice.choice((0.0, 0.0, round(dice.uniform(0, 200), 3)))
    until = min(HEALED, since + dice.choice((2.0, 20.0, 90.0, 300.0)))
    return {"since": since, "until": until}


def _some(dice: Dice) -> Parts:
    """Draw when a fault acts: within a window, or a few times from some request on."""
    if dice.random() < 0.6:
        return _window(dice)
    return {"skip": dice.randint(0, 2), "times": dice.randint(1, 4), "until": HEALED}


def _failure(dice: Dice, verbs: tuple[Verb, ...], when: Parts) -> Fault:
    """Draw a way in which a request is not answered as it should be."""
    ways = ["status", "status", "status", "page", "reset", "eof", "silence"]
    if verbs == _EVERYTHING:  # a refused connection fails requests of every verb
        ways.append("refused")
    what = dice.choice(ways)
    if what not in {"status", "page"}:
        return Fault(what, verbs, **when)
    code = dice.choice((*_CODES, 403, 429, 503))
    if code == 429 or (code == 503 and dice.random() < 0.3):
        when = {**when, "retry_after": dice.choice((0, 1, 10, 30, 60))}
    return Fault(what, verbs, code=code, reason=_CODES[code], **when)


def _calm(_: Dice) -> Parts:
    return {}


def _opening(dice: Dice) -> Parts:
    """Watches fail at opening, and plain lists work: for a while, or for ever."""
    verbs: tuple[Verb, ...] = dice.choice((("stream",), _WATCHES, _WATCHES, ("watch",)))
    when: Parts = {"until": FOREVER} if dice.random() < 0.5 else _some(dice)
    if dice.random() < 0.2:  # opened, and broken before the first event
        return {"faults": [Fault(dice.choice(("broken", "cut")), verbs, size=1, **when)]}
    return {"faults": [_failure(dice, verbs, when)]}


def _short(dice: Dice) -> Parts:
    """Watches end cleanly before their time, for ever."""
    after = dice.choice((0.3, 3.0, 8.0, 10.0, 10.0, 15.0, 30.0, 45.0, 100.0))
    end = Fault("closed", ("watch",) if dice.random() < 0.5 else _WATCHES, after=after)
    faults = [_OLD_SERVER, end] if dice.random() < 0.5 else [end]
    return {"faults": faults, "changes": _changes(dice, pace=dice.choice((2.0, 5.0, 20.0)))}


def _errors(dice: Dice) -> Parts:
    """ERROR events, and event types that do not exist."""
    code = dice.choice((400, 403, 404, 410, 410, 410, 429, 500, 500, 503, 504))
    after = dice.choice((0.0, 0.0, 0.5, 5.0, 30.0))
    what = "unknown type" if dice.random() < 0.1 else "error"
    verbs: tuple[Verb, ...] = dice.choice((("watch",), _WATCHES))
    fault = Fault(what, verbs, code=code, reason=_CODES[code], after=after, **_some(dice))
    return {"faults": [fault, *_closed(dice)]}


def _cuts(dice: Dice) -> Parts:
    """Bodies break, stall, crawl, or have wrong bytes in them, at any byte."""
    what = dice.choice(("cut", "broken", "broken", "stalled", "garbage", "slow"))
    verbs: tuple[Verb, ...] = dice.choice((_WATCHES, _WATCHES, _ALL))
    size = dice.choice((1, dice.randint(1, 400), dice.randint(1, 3000)))
    after = dice.choice((0.05, 1.0, 7.0))
    fault = Fault(what, verbs, size=size, after=after, **_some(dice))
    return {"faults": [fault, *([_OLD_SERVER] if dice.random() < 0.4 else [])]}


def _lost(dice: Dice) -> Parts:
    """Connections break after a time, or fall silent for good."""
    after = dice.choice((0.2, 5.0, 20.0, 70.0))
    what = dice.choice(("lost", "lost", "mute"))
    return {"faults": [Fault(what, _WATCHES, after=after, **_some(dice))]}


def _lists(dice: Dice) -> Parts:
    """A server that cannot stream lists, and whose lists fail; watches end now and then."""
    return {"faults": [_OLD_SERVER, _failure(dice, ("list",), _some(dice)), *_closed(dice)]}


def _forbidden(dice: Dice) -> Parts:
    """A role is taken away and given back, for some verbs or all; watches end then."""
    verbs: tuple[Verb, ...] = dice.choice((("list",), ("list", "stream"), _ALL, _ALL))
    when = _window(dice)
    fault = Fault("status", verbs, code=403, reason="Forbidden", **when)
    drops = [when["since"]] if when["since"] else []
    return {"faults": [fault, *([_OLD_SERVER] if dice.random() < 0.5 else [])], "drops": drops}


def _outage(dice: Dice) -> Parts:
    """Everything fails, as when a server is away, or something in between is."""
    faults = [_failure(dice, _EVERYTHING, _window(dice)) for _ in range(dice.randint(1, 2))]
    lost = [Fault("lost", _WATCHES, until=fault.since, after=fault.since) for fault in faults]
    return {"faults": [*faults, *(one for one in lost if one.until)]}


def _closed(dice: Dice) -> list[Fault]:
    after = dice.choice((1.5, 20.0, 61.0))
    return [Fault("closed", _WATCHES, after=after, until=HEALED)] if dice.random() < 0.6 else []


def _versions(dice: Dice) -> Parts:
    """The version that is watched is no longer served, for a while or for good; or no version."""
    gone = round(dice.uniform(5, 300), 3)
    back = round(gone + dice.choice((3.0, 40.0, 190.0)), 3)
    left = dice.choice((("v2",), ("v2",), ()))
    served = [(0.0, ("v1", "v2")), (gone, left)]
    if dice.random() < 0.5:
        served.append((back, ("v1", "v2")))
    faults = [_failure(dice, ("discovery",), _some(dice))] if dice.random() < 0.3 else []
    return {"served": served, "faults": faults, "name": "example.dev/v1/widgets"}


def _discovery(dice: Dice) -> Parts:
    """Discovery fails, at first or later."""
    faults = [_failure(dice, ("discovery",), _some(dice))]
    name = dice.choice(("widgets", "example.dev/v1/widgets"))
    return {"faults": [*faults, *_closed(dice)], "name": name}


def _restored(dice: Dice) -> Parts:
    """The storage is restored from a backup: versions go back."""
    pace, size = dice.choice((3.0, 15.0, 60.0)), dice.choice((1, 2, 4))
    changes = _changes(dice, restores=dice.randint(1, 2), pace=pace, size=size)
    faults = [_OLD_SERVER] if dice.random() < 0.3 else []
    if dice.random() < 0.6:  # the server is away for a while, and then as new as before, or newer
        times = [one.at for one in changes if one.op == "restore"]
        away = [
            Fault("refused", _EVERYTHING, at, at + dice.choice((1, 2, 4)) * pace) for at in times
        ]
        faults = [*away, *faults]
    return {"changes": changes, "faults": faults}


def _bookmarks(dice: Dice) -> Parts:
    """Bookmarks are missing or odd; streamed lists have no end."""
    what = dice.choice(("no bookmarks", "odd bookmarks", "odd bookmarks", "no end bookmark"))
    fault = Fault(what, _WATCHES, code=dice.randint(0, 3))
    lost = Fault("lost", _WATCHES, after=dice.uniform(20, 200), times=3, until=HEALED)
    return {"faults": [lost, fault]}


def _damaged(dice: Dice) -> Parts:
    """Events of one object arrive damaged: once, twice, or for a while."""
    when: Parts = dice.choice(({"times": 1}, {"times": 2}, {"since": 0.0}))
    verbs: tuple[Verb, ...] = dice.choice((("watch",), ("watch",), _WATCHES))
    since: Parts = {"since": dice.uniform(0, 100), "until": HEALED}
    code, key = dice.randint(0, 1), dice.randint(0, 9)
    fault = Fault("damaged", verbs, code=code, size=key, **(since | when))
    end = Fault("closed", ("stream",), after=dice.uniform(5, 60), until=HEALED)
    return {"faults": [fault, end], "changes": _changes(dice, pace=dice.choice((15.0, 60.0)))}


def _behind(dice: Dice) -> Parts:
    """The watch cache of the server is behind its storage, and watches end meanwhile."""
    since = round(dice.uniform(0, 200), 3)
    until = round(since + dice.choice((5.0, 40.0, 200.0)), 3)
    drops = [round(since + dice.uniform(0, until - since), 3) for _ in range(dice.randint(1, 3))]
    faults = [_OLD_SERVER] if dice.random() < 0.5 else []
    if dice.random() < 0.5:
        faults.append(
            Fault("status", ("watch",), since=since, until=until, code=410, reason="Expired")
        )
    return {"lags": [(since, until)], "drops": sorted(drops), "faults": faults}


def _crowd(dice: Dice) -> Parts:
    """So many objects that a list is written in several steps."""
    changes = _changes(dice, pace=dice.choice((5.0, 20.0)), size=CROWD)
    faults = [_OLD_SERVER] if dice.random() < 0.5 else []
    return {"changes": changes, "faults": faults, "page": dice.choice((0, 0, 100))}


def _replayed(dice: Dice) -> Parts:
    """Events come twice, or from before the version that was asked for."""
    what = dice.choice(("doubled", "replayed"))
    end = Fault("lost", ("stream",), after=dice.uniform(5, 60), until=HEALED)
    return {"faults": [Fault(what, ("watch",), size=dice.randint(1, 9)), end]}


def _pages(dice: Dice) -> Parts:
    """Lists in pages, whose tokens expire."""
    fault = Fault("expired pages", ("list",), **_some(dice))
    faults = [_OLD_SERVER, *([fault] if dice.random() < 0.7 else []), *_closed(dice)]
    return {"faults": faults, "page": dice.randint(1, 4), "changes": _changes(dice, size=10)}


def _compacted(dice: Dice) -> Parts:
    """Watches break, and by the time that they are opened again their version has expired."""
    changes = _changes(dice, pace=dice.choice((3.0, 15.0)))
    return {"changes": changes, **_relists(dice, changes)}


def _relists(dice: Dice, changes: list[Change]) -> Parts:
    """Draw when watches end, fail for a while, and have expired by the time that they work."""
    times = sorted(round(dice.uniform(10, HEALED - 50), 3) for _ in range(dice.randint(1, 3)))
    faults: list[Fault] = []
    compactions: list[tuple[float, int]] = []
    for at in times:
        until = round(at + dice.choice((5.0, 20.0, 40.0)), 3)
        faults.append(_failure(dice, ("watch",), {"since": at, "until": until}))
        newest = max((one.rv for one in changes if one.at <= until), default=1)
        compactions.append((until, newest))
    return {"drops": times, "compactions": compactions, "faults": faults}


THEMES: Final[Mapping[str, Callable[[Dice], Parts]]] = {
    "calm": _calm,
    "opening": _opening,
    "short": _short,
    "errors": _errors,
    "cuts": _cuts,
    "lost": _lost,
    "lists": _lists,
    "outage": _outage,
    "versions": _versions,
    "discovery": _discovery,
    "restored": _restored,
    "bookmarks": _bookmarks,
    "replayed": _replayed,
    "pages": _pages,
    "compacted": _compacted,
    "damaged": _damaged,
    "behind": _behind,
    "crowd": _crowd,
    "forbidden": _forbidden,
}
_RELISTED: Final = frozenset(
    {"calm", "cuts", "lists", "bookmarks", "replayed", "pages", "damaged", "crowd"}
)
"""Themes to which relists are added: by themselves they list once."""
