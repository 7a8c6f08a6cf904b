"""The rules: where kinform means to differ from client-go, each a predicate over one difference.

A difference that no rule explains is a defect. docs/differences.md shows these texts, with how
many scripts each rule explained.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from tools.differential.compare import LATER, Difference, lag
from tools.differential.outcome import Outcome
from tools.differential.script import FOREVER, Change, Fault, Script, damaged_key, history

__all__ = ["RULES", "Case", "Rule", "explained"]


@dataclass(frozen=True, slots=True)
class Case:
    """A script and both outcomes."""

    script: Script
    ours: Outcome
    theirs: Outcome

    def faults(self, *names: str) -> list[Fault]:
        """Return the faults of these names."""
        return [fault for fault in self.script.faults if fault.what in names]


Predicate: TypeAlias = Callable[[Case, Difference], bool]


@dataclass(frozen=True, slots=True)
class Rule:
    """A reason to differ."""

    name: str
    text: str
    explains: Predicate
    review: str = ""
    """Needed for a rule that explains more than 5 % of the scripts: why that is right."""


_THEIRS: Final = frozenset({"client-go cache", "client-go lost", "client-go invented"})
_AT_OPENING: Final = ("reset", "eof", "silence", "empty")
_BREAKS: Final = ("lost", "broken", "cut", "garbage", "error", "unknown type", "closed", "slow")


def _gone(case: Case, difference: Difference) -> bool:
    if difference.kind == "cache of an unserved version":
        return not case.script.versions(case.script.duration) and not case.ours.cache
    is_absence = difference.kind == "invented" and difference.text.startswith("absence")
    return is_absence and not case.script.versions(difference.at)


def _restored(case: Case, difference: Difference) -> bool:
    told_again = difference.kind == "grammar" and difference.text.endswith("as before")
    restores = [change for change in case.script.changes if change.op == "restore"]
    return bool(restores) and (told_again or difference.kind in _THEIRS)


def _caught_up(case: Case, difference: Difference) -> bool:
    """Whether versions were as high as before a restore by our first request that was answered."""
    script = case.script
    if difference.kind not in {"cache", "stale", "lost", "invented", "listed"}:
        return False
    for change in script.changes:
        if change.op == "restore":
            later = [one.at for one in case.ours.asked if one.at > change.at and not one.failed]
            after = history(script, min(later, default=change.at))
            if _newest(after) >= _newest(history(script, change.at - 0.001)):
                return True
    return False


def _newest(changes: Sequence[Change]) -> int:
    return max((change.rv for change in changes), default=0)


def _silent(case: Case, difference: Difference) -> bool:
    silent = case.faults("silence", "mute", "stalled")
    if difference.kind == "stale":  # a watch is ended 10 s after its time-out at the latest
        return bool(silent) and lag(case.script, case.ours) <= 610 + LATER
    if difference.kind == "requests":  # it waits: no watch of client-go lives longer
        waits = case.theirs.asked[-1].at < case.script.duration - 610
        return bool(silent) and waits
    return difference.kind in _THEIRS and bool(silent)


def _replayed(case: Case, difference: Difference) -> bool:
    comes_back = difference.kind == "invented" and difference.text.endswith("after absence")
    is_theirs = difference.kind == "client-go invented"
    return (is_theirs or comes_back) and bool(case.faults("replayed"))


def _bookmarks(case: Case, difference: Difference) -> bool:
    return difference.kind == "client-go invented" and bool(case.faults("odd bookmarks"))


def _endless(case: Case, difference: Difference) -> bool:
    early = [
        one
        for one in case.faults("closed", "lost", "error")
        if "stream" in one.verbs and one.after <= case.script.spread
    ]
    return difference.kind in _THEIRS and bool(early or case.faults("no end bookmark"))


def _quarantined(case: Case, difference: Difference) -> bool:
    for fault in case.faults("damaged"):
        if difference.kind == "stale":
            window = (fault.until - fault.since) if fault.times > 2 else 0.0
            return lag(case.script, case.ours) <= 3 * window + LATER  # intervals double
        if difference.kind == "requests":  # two openings and a list for each damaged event
            return fault.times > 2 and len(case.ours.asked) <= case.script.duration / 15
        key = damaged_key(case.script, fault)
        if difference.kind == "client-go cache":
            return case.theirs.cache.get(key, "").endswith("wrong text")
        if difference.key == key:
            is_absence = difference.kind == "invented" and difference.text.startswith("absence")
            return is_absence or difference.kind in {"lost", "listed", *_THEIRS}
    return False


def _hot(case: Case, difference: Difference) -> bool:
    if case.theirs.error != "hot":
        return False
    late = difference.kind == "stale" and lag(case.script, case.ours) <= 2 * LATER
    return late or difference.kind in _THEIRS


def _discovery(case: Case, difference: Difference) -> bool:
    ends = [fault.until for fault in case.script.faults if "discovery" in fault.verbs]
    if difference.kind not in {"synced", "stale", "lost", "cache of an unserved version"}:
        return False
    if not ends:
        return False
    if case.ours.synced is None:  # the version was gone before discovery answered
        return "v1" not in case.script.versions(case.script.duration)
    served = [at for at, names in case.script.served if "v1" in names]
    return 1 < case.ours.synced <= max(*ends, *served) + 2 * LATER


def _budget(case: Case, difference: Difference) -> bool:
    short = [one for one in case.faults("closed") if one.after < 7.5]
    if difference.kind == "requests":  # client-go lists again, and the streamed list stays open
        return any("stream" not in one.verbs for one in short)
    return difference.kind == "stale" and bool(short) and lag(case.script, case.ours) <= 2 * LATER


def _polls(case: Case, difference: Difference) -> bool:
    opening = [
        one
        for one in case.faults(*_AT_OPENING, "status", "page", "broken", "cut")
        if "watch" in one.verbs and one.until == FOREVER
    ]
    slow = lag(case.script, case.ours) <= 2 * LATER
    return difference.kind in {"stale", "lost"} and bool(opening) and slow


def _tries_again(case: Case, difference: Difference) -> bool:
    fails = [
        one
        for one in case.faults(*_AT_OPENING, "status", "page", "broken", "cut")
        if one.verbs == ("watch",)
    ]
    made = sum(one.kind in {"list", "watch", "stream"} for one in case.ours.asked)
    return difference.kind == "requests" and bool(fails) and made <= case.script.duration / 15


def _helpless(case: Case, difference: Difference) -> bool:
    opening = [
        one
        for one in case.script.faults
        if one.what in _AT_OPENING or one.code == 429
        if "watch" in one.verbs or "stream" in one.verbs
    ]
    return difference.kind in _THEIRS and bool(opening)


RULES: Final[Sequence[Rule]] = (
    Rule(
        "gone",
        "A kind that discovery lists in no version has no objects: kinform reports them as "
        "deleted. client-go keeps its last state for ever. A kind that another version serves is "
        "kept by both.",
        _gone,
    ),
    Rule(
        "restored",
        "After a restore of etcd the server's versions go back. kinform finds that out by a look "
        "at the server's version and lists again; client-go watches from a version of the "
        "server's future and misses what happens until the versions have caught up. kinform does "
        "not take an equal version of the restored server for the same state, and notifies again.",
        _restored,
        review="One theme of fifteen restores etcd, and nearly every restore shows the difference. "
        "Each hit is a state that client-go missed, or an update that repeats a state because the "
        "versions before and after a restore cannot be compared (`Intake.distrust`).",
    ),
    Rule(
        "restored and caught up",
        "A server that was restored, and whose versions are as high as before when kinform reaches "
        "it again. Nothing in its answers shows that its history is another "
        "one: both clients go on from there. An object with the uid and the version that kinform "
        "holds is the same object for it, also in a list.",
        _caught_up,
    ),
    Rule(
        "silent",
        "An answer or a watch that never comes to an end and is never closed. client-go waits for "
        "it for ever (HTTP/2 pings, which the harness does not have, would only find a dead "
        "peer); kinform has a deadline for each answer, and for each watch its time-out plus "
        "10 s. Where only kinform met the silence, it may be late by that much.",
        _silent,
        review="Silence is drawn often, for it is where informers hang. Each hit is an old state "
        "that client-go shows for ever, or a delay of ours within the bound above; what kinform "
        "shows at the end is still compared with the server.",
    ),
    Rule(
        "replayed",
        "A server that repeats events from before the version it was asked for. client-go applies "
        "them again: an object goes back and comes forward. kinform drops what is older than the "
        "object it holds. Both show an object that was deleted once more if its old events come "
        "again, each for the replays that it met.",
        _replayed,
    ),
    Rule(
        "bookmarks that go back",
        "A bookmark with an older version. client-go takes that version and applies old events "
        "again after the next opening; kinform keeps its own version.",
        _bookmarks,
    ),
    Rule(
        "no end bookmark",
        "A streamed list that never comes to its end bookmark, or ends before it each time. "
        "client-go waits for it or streams again; kinform lists plainly after two.",
        _endless,
    ),
    Rule(
        "damaged",
        "Events of one object are damaged on their way, so that they are not JSON or not UTF-8. "
        "client-go reads wrong UTF-8 as replacement characters, and lists everything after what "
        "is not JSON. kinform asks for the event again; if it is damaged again, the object counts "
        "as unreadable: it is reported as deleted, and listed again after 10 s or more.",
        _quarantined,
    ),
    Rule(
        "no pause",
        "client-go repeats some requests without a pause (a streamed list that ends before its "
        "end bookmark; 410 as the answer to every list). The harness stops it after 3,000 "
        "requests; kinform is compared with the truth alone.",
        _hot,
    ),
    Rule(
        "discovery first",
        "kinform asks discovery for the scope of a kind that it is given by name, and waits for "
        "it; the dynamic informer of client-go is told the path and never asks.",
        _discovery,
    ),
    Rule(
        "eight openings a minute",
        "Watches that end cleanly in less than 7.5 s. client-go opens the next one at once, "
        "without a limit, or lists again if no event came; kinform opens at most 8 in any minute "
        "and is stale in between, for 15 s at most.",
        _budget,
    ),
    Rule(
        "follows by lists",
        "No watch can be opened, or none brings an event, for as long as the script lasts. Both "
        "follow the server by lists at the pace of their back-off; kinform's is slower (30 to "
        "60 s, client-go's starts again every 2 minutes), so it jumps over more states.",
        _polls,
    ),
    Rule(
        "tries the watch again",
        "Watches fail, and streamed lists work. client-go streams everything again, and the stream "
        "is its watch for minutes; kinform tries the watch again, and after five failures lists "
        "plainly, for a stream would be a watch too: at most one list and one watch in 30 s.",
        _tries_again,
    ),
    Rule(
        "client-go without watches",
        "Requests for watches are reset, closed without an answer, never answered, or always "
        "answered by 429. client-go tries again or waits for ever, and shows an old state; kinform "
        "lists.",
        _helpless,
    ),
)


def explained(case: Case, difference: Difference) -> Rule | None:
    """Return the first rule that explains a difference; None: it is a defect."""
    return next((rule for rule in RULES if rule.explains(case, difference)), None)
