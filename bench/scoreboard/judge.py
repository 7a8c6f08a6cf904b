"""The verdict on a cell, from its record. Pure: a record can be judged again, by other rules.

The rules, of which the first that applies decides:

1. *died*: its process ended, or answered no more.
2. *fail: no sync*: it did not even get the first list.
3. *leak*: another host was sent its credentials.
4. *hot loop*: more than `HOT` requests a second, on average over the fault or over the time it had
   to recover.
5. Where it was stopped: *slow stop*, if that took longer than `GRACE`; else *pass*.
6. *pass*: within its deadline its cache was equal to the server's objects: the same names, and of
   each the same uid, resourceVersion and content.
7. *corrupted*: an object has the right version and other content than the server's.
8. *ghosts*: it keeps objects that are gone, and is right otherwise.
9. *stall*: since the fault was over it asked the server for nothing, and learned nothing.
10. *fail*: it is wrong in another way, which is said.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from bench.peers.journal import Entry

__all__ = [
    "GRACE",
    "HOT",
    "Kept",
    "Observation",
    "Outcome",
    "Verdict",
    "delivered_as_update",
    "delivered_twice",
    "judged",
    "notes",
]

HOT: Final = 10.0
"""Requests a second. A loop that lists and watches once a second makes two."""
GRACE: Final = 5.0
"""Seconds that a stop may take."""
_SHORT: Final = 3.0
"""Seconds below which no rate is reported: a few requests at once are not a loop."""

Kept: TypeAlias = tuple[str | None, str | None, str | None]
"""Of an object: resourceVersion, uid and content."""


class Outcome(enum.StrEnum):
    """A verdict in one word."""

    PASSED = "pass"
    FAIL = "fail"
    HOT = "hot loop"
    STALL = "silent stall"
    GHOSTS = "ghost objects"
    CORRUPTED = "corrupted"
    DIED = "died"
    LEAK = "leak"
    SLOW = "slow stop"
    UNKNOWN = "not judged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """All that was seen of one client in one scenario."""

    has_synced: bool = False
    died: str | None = None
    """The reason why its process ended, or the command that it did not answer."""
    fault: float = 0.0
    """Seconds that the fault lasted."""
    fault_requests: int = 0
    """Lists, watches and refused connections during it."""
    recovery: float = 0.0
    """Seconds from the healing until its cache was right, or until it was given up."""
    recovery_requests: int = 0
    is_awake: bool = False
    """It knows of what was written after the healing."""
    is_right: bool = False
    was_right: bool = False
    """Its cache was right before the fault ended."""
    cache: Mapping[str, Kept] = field(default_factory=dict[str, Kept])
    """Objects of the client that differ from the server's, at the end."""
    server: Mapping[str, Kept] = field(default_factory=dict[str, Kept])
    """Objects of the server that differ from the client's, at the end."""
    delivered_twice: int = 0
    """The number of states that its handler received twice in a row."""
    delivered_as_update: int = 0
    """The number of updates with another uid than the object had before."""
    restarts: int = 0
    """The number of times that the loop around it had to restart."""
    stop: float | None = None
    """Seconds that its stop took; None: it has none."""
    redirected: int = 0
    followed: int = 0
    leaked: int = 0
    said: str = ""
    """The last line that it wrote to stderr."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """An outcome, and what there is to say of it."""

    outcome: Outcome
    detail: str = ""


def judged(seen: Observation, *, is_stop: bool = False) -> Verdict:
    """Judge one cell by the rules above."""
    if seen.died is not None:
        return Verdict(Outcome.DIED, seen.died)
    if not seen.has_synced:
        return Verdict(Outcome.FAIL, "no sync")
    if seen.leaked:
        return Verdict(Outcome.LEAK, f"credentials sent to another host {seen.leaked} times")
    if (rate := _rate(seen)) > HOT:
        end = "" if seen.is_right or is_stop else ", and did not recover"
        return Verdict(Outcome.HOT, f"{rate:,.0f}/s{end}")
    if is_stop:
        return _stopped(seen.stop)
    if seen.is_right:
        return Verdict(Outcome.PASSED)
    return _wrong(seen)


def _rate(seen: Observation) -> float:
    rates = [
        requests / seconds
        for requests, seconds in (
            (seen.fault_requests, seen.fault),
            (seen.recovery_requests, seen.recovery),
        )
        if seconds >= _SHORT
    ]
    return max(rates, default=0.0)


def _stopped(took: float | None) -> Verdict:
    if took is None:
        return Verdict(Outcome.UNKNOWN, "nothing to stop")
    if took > GRACE:
        return Verdict(Outcome.SLOW, f"not within {GRACE:g} s")
    return Verdict(Outcome.PASSED)


def _wrong(seen: Observation) -> Verdict:
    cache, server = seen.cache, seen.server
    ghosts = [key for key in cache if key not in server]
    lost = [key for key in server if key not in cache]
    both = [key for key in cache if key in server]
    old = [key for key in both if cache[key][:2] != server[key][:2]]
    damaged = [key for key in both if key not in old]
    if damaged:
        return Verdict(Outcome.CORRUPTED, f"{len(damaged)} objects are not what the server has")
    if ghosts and not lost and not old:
        return Verdict(Outcome.GHOSTS, f"{len(ghosts)}")
    counts = {"lost": lost, "old": old, "ghosts": ghosts}
    text = ", ".join(f"{len(keys)} {name}" for name, keys in counts.items() if keys)
    if not seen.recovery_requests and not seen.is_awake:
        return Verdict(Outcome.STALL, text)
    return Verdict(Outcome.FAIL, text)


# --- notes: observations that are not failures --------------------------------------------------


def notes(seen: Observation) -> list[str]:
    """Return what stands beside a verdict: see the page for what each word means."""
    found: list[str] = []
    if seen.restarts:
        found.append("restarted")
    if seen.delivered_twice:
        found.append("duplicate")
    if seen.delivered_as_update:
        found.append("recreated as update")
    if seen.followed and not seen.leaked:
        found.append("followed")
    return found


def delivered_twice(delivered: Sequence[Entry]) -> int:
    """Count how often the same state of an object was delivered twice in a row.

    >>> delivered_twice([("add", "a", "u1", "1"), ("update", "a", "u1", "1")])
    1
    """
    last: dict[str, tuple[bool, str, str]] = {}
    count = 0
    for what, key, uid, version in delivered:
        state = (what == "delete", uid, version)
        count += last.get(key) == state
        last[key] = state
    return count


def delivered_as_update(delivered: Sequence[Entry]) -> int:
    """Count the updates that brought another uid, without a delete in between.

    >>> delivered_as_update([("add", "a", "u1", "1"), ("update", "a", "u2", "5")])
    1
    """
    uids: dict[str, str] = {}
    count = 0
    for what, key, uid, _ in delivered:
        count += what == "update" and uids.get(key, uid) != uid
        uids[key] = uid
        if what == "delete":
            del uids[key]
    return count
