"""Comparison of the outcomes of one script on two clients. Pure.

The notifications of a key are reduced to the sequence of its states, without repetitions. An empty
state means that the object is absent. A delete and an add at the same time are one change of state.
A client may skip states only by a relist. A state, or an order of states, that is not in the
server's history is an *invented* one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, TypeAlias

from msgspec import Struct

from tools.differential.outcome import Note, Outcome
from tools.differential.script import FOREVER, Script, held, history
from tools.differential.server import Asked

__all__ = ["LATER", "Difference", "compared", "lag", "normal_form", "staleness", "truth"]

Seen: TypeAlias = list[tuple[float, str]]
"""When, and which state."""

SHOWN_AFTER: Final = 2.0
"""Seconds after which what a list brought has been notified."""
PAUSE: Final = 0.7
"""Seconds before a request that failed is repeated: the shortest back-off of client-go is 0.8."""
BUDGET: Final = 8
"""Lists in any rolling minute, and watches as well."""
LATER: Final = 75.0
"""Seconds by which we may be later than client-go, once more per fault that ends: a back-off."""
MORE: Final = 8
"""Requests that we may make beyond client-go's, per fault: a minute's budget. A quarter of
client-go's comes on top: the lifetime of a watch is drawn between 5 and 10 minutes."""


class Difference(Struct, frozen=True):
    """One way in which our outcome is not client-go's, or not the truth."""

    kind: str
    key: str = ""
    text: str = ""
    at: float = 0.0


def truth(script: Script) -> dict[str, Seen]:
    """Return the states of each key over time."""
    seen: dict[str, Seen] = {change.key: [(-2.0, "")] for change in script.changes if change.key}
    for change in script.changes:
        states = {change.key: change.state}
        if change.op == "restore":
            objects = held(history(script, change.at))
            states = {key: objects[key].state if key in objects else "" for key in seen}
        for key, state in states.items():
            if seen[key][-1][1] != state:
                seen[key].append((change.at, state))
    return seen


def normal_form(notes: Sequence[Note]) -> dict[str, Seen]:
    """Return the states of each key as they were notified."""
    seen: dict[str, Seen] = {}
    for note in notes:
        states = seen.setdefault(note.key, [(-1.0, "")])
        state = "" if note.what == "delete" else note.state
        if states[-1] == (note.at, "") and len(states) > 1 and state:
            states.pop()  # replaced in one instant: client-go has one update for it
        if states[-1][1] != state:
            states.append((note.at, state))
    return seen


def compared(script: Script, ours: Outcome, theirs: Outcome) -> list[Difference]:
    """Return all differences."""
    if ours.error:
        return [Difference("ended", text=ours.error)]
    found = [*_grammar(ours)]
    if ours.unlike_plain:
        found.append(Difference("user code", text=ours.unlike_plain))
    if ours.broken:
        found.append(Difference("broken", text=ours.broken))
    found += _sequences(script, ours, theirs)
    found += _caches(script, ours, theirs)
    found += _times(script, ours, theirs)
    found += _listed(script, ours)
    found += _requests(script, ours, theirs)
    found += _manners(script, ours)
    return found


def _grammar(ours: Outcome) -> Iterator[Difference]:
    """Notifications of one key follow each other: an add, updates from the last state, a delete."""
    held: dict[str, str] = {}
    for note in ours.notes or ():
        before = held.get(note.key, "")
        if note.what == "add" and before:
            yield Difference("grammar", note.key, f"add of {note.state}, held {before}", note.at)
        elif note.what == "update" and (not before or note.old != before):
            text = f"update {note.old} -> {note.state}, held {before or 'nothing'}"
            yield Difference("grammar", note.key, text, note.at)
        elif note.what == "update" and note.old.split("/")[0] != note.state.split("/")[0]:
            text = f"update {note.old} -> {note.state} is of another object"
            yield Difference("grammar", note.key, text, note.at)
        elif note.what == "update" and note.old == note.state:
            yield Difference("grammar", note.key, f"update to {note.state}, as before", note.at)
        elif note.what == "delete" and not before:
            yield Difference("grammar", note.key, f"delete of {note.state}, held nothing", note.at)
        elif note.what == "delete" and note.unknown != (note.state == before):
            text = f"delete of {note.state}, final state {'un' * note.unknown}known, held {before}"
            yield Difference("grammar", note.key, text, note.at)
        held[note.key] = "" if note.what == "delete" else note.state


# --- sequences --------------------------------------------------------------------------------


def _sequences(script: Script, ours: Outcome, theirs: Outcome) -> Iterator[Difference]:
    true = truth(script)
    ours_seen, theirs_seen = normal_form(ours.notes or ()), normal_form(theirs.notes or ())
    for key in sorted(true.keys() | ours_seen.keys() | theirs_seen.keys()):
        mine, its = ours_seen.get(key, [(-1.0, "")]), theirs_seen.get(key, [(-1.0, "")])
        if [state for _, state in mine] == [state for _, state in its]:
            continue
        by_us = list(_invented("invented", key, seen=mine, true=true.get(key, [])))
        by_them = list(_invented("client-go invented", key, seen=its, true=true.get(key, [])))
        both = {one.text for one in by_us} & {one.text for one in by_them}
        yield from (one for one in (*by_us, *by_them) if one.text not in both)
        since = {state: at for at, state in true.get(key, [])}
        for state, at in _jumped(mine, its, since=since, outcome=ours):
            yield Difference("lost", key, f"{state} is missing", at)
        for state, at in _jumped(its, mine, since=since, outcome=theirs):
            yield Difference("client-go lost", key, f"{state} is missing", at)


def _invented(kind: str, key: str, *, seen: Seen, true: Seen) -> Iterator[Difference]:
    """Find states that the server had not, or not then, or not after the one before."""
    place = 0
    states = [state for _, state in true]
    for at, state in seen:
        if state and state not in states:
            yield Difference(kind, key, f"{state} never existed", at)
        elif state in states[place:] and true[states.index(state, place)][0] <= at:
            place = states.index(state, place)
        elif state or at >= 0:
            after = states[place] or "absence"
            yield Difference(kind, key, f"{state or 'absence'} after {after}", at)


def _jumped(
    mine: Seen, other: Seen, *, since: Mapping[str, float], outcome: Outcome
) -> Iterator[tuple[str, float]]:
    """Find states that the other client saw and this one jumped over without a relist."""
    shown = {state: at for at, state in mine if state in since and state}
    lists = [asked.at for asked in outcome.asked if asked.kind in {"list", "stream", "page"}]
    for _, state in other:
        if state and state in since and state not in shown:  # no relist around it?
            before = max((shown[one] for one in shown if since[one] < since[state]), default=0.0)
            after = min((shown[one] for one in shown if since[one] > since[state]), default=FOREVER)
            if not any(before <= at <= after for at in lists):
                yield state, since[state]


# --- the end ----------------------------------------------------------------------------------


def _caches(script: Script, ours: Outcome, theirs: Outcome) -> Iterator[Difference]:
    notified = {key: seen[-1][1] for key, seen in normal_form(ours.notes or ()).items()}
    if {key: state for key, state in notified.items() if state} != ours.cache:
        yield Difference("cache is not what was notified", text=f"{notified}, {ours.cache}")
    if "v1" in script.versions(script.duration):
        expected = {key: one.state for key, one in held(history(script, script.duration)).items()}
        if ours.cache != expected:
            right = "client-go is right" if theirs.cache == expected else "client-go is wrong too"
            yield Difference("cache", text=_unlike(ours.cache, expected) + f"; {right}")
        elif theirs.cache != expected:
            yield Difference("client-go cache", text=_unlike(theirs.cache, expected))
    elif ours.cache != theirs.cache:
        yield Difference("cache of an unserved version", text=_unlike(ours.cache, theirs.cache))


def _unlike(cache: object, expected: object) -> str:
    return f"{cache or 'empty'}, expected {expected or 'empty'}"


# --- times ------------------------------------------------------------------------------------


def lag(script: Script, outcome: Outcome) -> float:
    """Return for how long, at most, the cache showed a state that the server no longer had."""
    seen = normal_form(outcome.notes or ())
    longest = 0.0
    for key, true in truth(script).items():
        ends = [*(at for at, _ in true[1:]), FOREVER]
        shown = seen.get(key, [(-1.0, "")])
        for (_, state), until in zip(
            shown, [*(at for at, _ in shown[1:]), script.duration], strict=True
        ):
            spans = zip(true, ends, strict=True)
            left = [end for (at, one), end in spans if one == state and at < until]
            longest = max(longest, until - max(0.0, left[-1])) if left else longest
    return longest


def staleness(script: Script, outcome: Outcome) -> float:
    """Return for how many seconds the cache was not what the server had, where it served it."""
    seen = normal_form(outcome.notes or ())
    total = 0.0
    for key, states in truth(script).items():
        total = max(total, _apart(script, states, seen.get(key, [(-1.0, "")])))
    return total


def _apart(script: Script, true: Seen, seen: Seen) -> float:
    times = sorted({0.0, *(at for at, _ in (*true, *seen) if at > 0), script.duration})
    total, t, s = 0.0, 0, 0
    for start, end in pairwise(times):
        while t + 1 < len(true) and true[t + 1][0] <= start:
            t += 1
        while s + 1 < len(seen) and seen[s + 1][0] <= start:
            s += 1
        if true[t][1] != seen[s][1] and "v1" in script.versions(start):
            total += end - start
    return total


def _times(script: Script, ours: Outcome, theirs: Outcome) -> Iterator[Difference]:
    allowed = LATER * (1 + sum(fault.until < FOREVER for fault in script.faults))
    if ours.synced is None:
        text = "never" if theirs.synced is None else f"never, client-go after {theirs.synced:.0f} s"
        yield Difference("synced", text=text)
    elif theirs.synced is not None and ours.synced > theirs.synced + allowed:
        text = f"after {ours.synced:.0f} s, client-go after {theirs.synced:.0f} s"
        yield Difference("synced", text=text)
    else:
        wholes = [one.whole for one in ours.asked if one.whole]
        if ours.synced + 0.001 < min(wholes, default=FOREVER):
            yield Difference("synced", text="before any list had arrived whole")
    mine, its = staleness(script, ours), staleness(script, theirs)
    if mine > its + allowed:
        yield Difference("stale", text=f"for {mine:.0f} s, client-go for {its:.0f} s")


def _listed(script: Script, ours: Outcome) -> Iterator[Difference]:
    """Find lists that arrived whole, and whose objects are not what was shown then.

    A list that is followed by another one may have been refused, so it does not count.
    """
    lists = [one for one in ours.asked if one.kind in {"list", "page", "stream"}]
    seen, true = normal_form(ours.notes or ()), truth(script)
    for place, one in enumerate(lists):
        after = lists[place + 1].at if place + 1 < len(lists) else FOREVER
        then = one.whole + SHOWN_AFTER
        if not one.whole or after < one.whole + LATER or then > script.duration:
            continue
        if one.whole - one.at > SHOWN_AFTER or "v1" not in script.versions(then):
            continue
        for key, states in true.items():
            shown = [state for at, state in seen.get(key, [(-1.0, "")]) if at <= then][-1]
            had = [state for at, state in states if at <= one.at][-1:]
            had += [state for at, state in states if one.at < at <= then]
            if shown not in had:
                text = f"{shown or 'absence'} is shown, the server had {' '.join(had) or 'none'}"
                yield Difference("listed", key, text, one.at)


# --- requests ---------------------------------------------------------------------------------


def _requests(script: Script, ours: Outcome, theirs: Outcome) -> Iterator[Difference]:
    for name, kinds in (("lists", {"list"}), ("watches", {"watch", "stream"})):
        times = [asked.at for asked in ours.asked if asked.kind in kinds]
        most, at = _busiest(times)
        if most > BUDGET:
            yield Difference(f"budget of {name}", text=f"{most} in a minute", at=at)
    mine, its = _count(ours.asked), _count(theirs.asked)
    allowed = its * 1.25 + MORE * (1 + len(script.faults))
    if mine > allowed:
        yield Difference("requests", text=f"{mine} lists and watches, client-go {its}")


def _manners(script: Script, ours: Outcome) -> Iterator[Difference]:
    """Find requests that no client should make: invalid, backwards, or too early."""
    for one in ours.asked:
        if one.invalid:
            yield Difference("invalid request", text=f"{one.kind}: {one.invalid}", at=one.at)
    yield from _backwards(script, ours)
    asked = [one for one in ours.asked if one.kind != "discovery"]
    asked.sort(key=lambda one: one.at)
    for one, after in pairwise(asked):
        if after.at < one.at + one.retry_after:
            text = f"{after.kind} {after.at - one.at:.1f} s after Retry-After: {one.retry_after}"
            yield Difference("too early", text=text, at=after.at)
    yield from _refused(asked)
    for kind in ("list", "stream", "watch"):
        for one, after in pairwise(one for one in asked if one.kind == kind):
            if one.failed and after.at < one.at + PAUSE:
                text = f"{kind} again {after.at - one.at:.2f} s after it failed"
                yield Difference("too early", text=text, at=after.at)


def _refused(asked: Sequence[Asked]) -> Iterator[Difference]:
    """Find requests that repeat the version which the server has just refused."""
    for one, after in pairwise(one for one in asked if one.kind != "probe"):
        same = (one.kind == "watch") == (after.kind == "watch") and one.version == after.version
        if one.refused and after.at >= one.refused and same and one.version not in {"", "0"}:
            text = f"{after.kind} from {one.version} again"
            yield Difference("refused version", text=text, at=after.at)


def _backwards(script: Script, outcome: Outcome) -> Iterator[Difference]:
    """Find requests for a version older than one of an object that was shown before."""
    if any(change.op == "restore" for change in script.changes):
        return
    notes = [(note.at, int(note.state.split("/")[1])) for note in outcome.notes or ()]
    for one in outcome.asked:
        newest = max((rv for at, rv in notes if at < one.at), default=0)
        if one.version and int(one.version) < newest and one.kind != "probe":
            text = f"{one.kind} from {one.version}, {newest} was shown"
            yield Difference("older version", text=text, at=one.at)


def _count(asked: Sequence[Asked]) -> int:
    return sum(one.kind in {"list", "watch", "stream"} for one in asked)


def _busiest(times: Sequence[float]) -> tuple[int, float]:
    counts = [(sum(start <= at < start + 60 for at in times), start) for start in times]
    return max(counts, default=(0, 0.0))
