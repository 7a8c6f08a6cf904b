"""The reflector's decisions: after this signal, in this state, perform that action.

No I/O, no clock. The reflector performs one `Action`, reports the outcome as a `Signal`, and gets
the next action. Read `step` as a table; these are the rules behind it:

Rule 1: Every failure is followed by a wait that grows (`Backoff`). The time that a watch lived
counts as waited. Besides, at most 8 lists and 8 watch openings begin in any 60 s, whatever happened
and however healthy the server was. The first five of a burst begin at once, the others are spread
over the rest of the 60 s (`OpeningBudget`). A list counts once with all its pages. A streamed list
counts as a list and as a watch opening. A probe counts as a list, but probes use at most 6 of the 8
slots, so that a list never waits for probes.
Rule 2: The first list asks for the newest state (version unset), later lists for a state not older
than the last applied version, and after "expired" or "too large" again for the newest state.
Rule 3: The version advances only by what has been applied, and never goes back without a notice.
Rule 4: An error that says nothing about our version (refused, 5xx, 429, 403, a cut connection)
keeps it: watch again, do not list. A probe precedes that watch: the server may have been restored
meanwhile, and would accept a watch from its future silently. If two probes fail, or rule 1
allows no probe now, watch without one and probe beside the watch.
Rule 5: Lists are streamed where the server can (watch-list). A server that refuses (400, 405, 406,
415, 422, 501) is asked for plain lists for an hour. After two streams that failed in another way
one plain list is tried, and the list after that is streamed again. After 429 that plain list waits
for at least 30 s. Streams that failed because there was no connection do not count.
Rule 6: An object that arrived corrupted twice is quarantined, and all others go on. It is listed
again after growing intervals, up to hours. If that list fails, the watch goes on without it.
Rule 7: A 404 never empties the cache. A resource is gone only if the list answers 404 and fresh,
complete discovery lists it in no version of its group (`UnknownResourceError.is_gone`), twice and
at least 30 s apart. If another version serves it, the cache is kept and goes stale.
Rule 8: A watch that ended cleanly was healthy if the applied version advanced, or if it lived for
8 s. The back-off starts anew, and the next watch opens at once, within the budget of rule 1.
Rule 9: After five watches in a row (streams included) that could not be opened, or broke within 8 s
without an event, lists keep the cache up to date, until a watch brings an event or
ends cleanly. Each probe that shows another version than ours leads to one plain list, so there is
at most one in each wait (30 to 60 s; twice that if the last list took longer than 10 s). A probe
that shows our version leads to no list.

client-go: reflector.go, where the same decisions are spread over ListAndWatch, list, watchList,
watch and handleAnyWatch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, Literal, final

from kinform.errors import (
    ApiError,
    InvalidError,
    KinformError,
    NotFoundError,
    ResourceExpiredError,
    TransportError,
    TransportFailure,
    UnknownResourceError,
)
from kinform.sansio.relist_signals import (
    Action,
    Clear,
    Cleared,
    Ended,
    Expired,
    Failed,
    Gone,
    Listed,
    Notice,
    Probe,
    Probed,
    Regressed,
    Relist,
    Rewatch,
    Signal,
    Started,
    Streamed,
    StreamList,
    Unstreamed,
    Wait,
    Waited,
)
from kinform.sansio.relist_states import (
    Clearing,
    CorruptedObjects,
    Listing,
    ListMode,
    Phase,
    Probing,
    ServerHealth,
    State,
    Streaming,
    Waiting,
    Watching,
)
from kinform.sansio.retry import MAX_RETRY_AFTER
from kinform.sansio.versions import is_older

__all__ = [
    "Action",
    "Clear",
    "Cleared",
    "Clearing",
    "CorruptedObjects",
    "Decision",
    "Ended",
    "Expired",
    "Failed",
    "Gone",
    "ListMode",
    "Listed",
    "Listing",
    "Notice",
    "Phase",
    "Policy",
    "Probe",
    "Probed",
    "Probing",
    "Regressed",
    "Relist",
    "Rewatch",
    "ServerHealth",
    "Signal",
    "Started",
    "State",
    "StreamList",
    "Streamed",
    "Streaming",
    "Unstreamed",
    "Wait",
    "Waited",
    "Waiting",
    "Watching",
    "counted",
    "pages_expired",
    "probe_wait",
    "step",
]

HEALTHY_AFTER: Final = 60.0
"""A watch that lived this long, or to its own time-out, was healthy however it ended."""
CLEAN_AFTER: Final = 8.0
"""A watch that lived this long and ended cleanly was healthy though no event came."""
SHORT_WATCH: Final = 1.0
"""A watch that ended sooner without an event was none."""
QUIET_AFTER: Final = 60.0
"""An internal error that comes so long after the one before begins a new series."""
STREAM_AGAIN_AFTER: Final = 3600.0
"""How long a server that cannot stream lists is not asked to."""
BLIND_AFTER: Final = 2
"""Probes in a row that fail; then a watch is opened without one."""
STREAMS_BEFORE_LIST: Final = 2
"""Streamed lists in a row that fail; then one plain list is tried."""
OPENINGS_BEFORE_LIST: Final = 5
"""Watches in a row that cannot be opened; then lists keep the cache up to date."""
SLOW_LIST: Final = 10.0
"""A list that takes longer doubles the pause before the next, while watches cannot be opened."""
OVERLOAD_PAUSE: Final = 30.0
"""The shortest wait between a 429 to a watch and a list that takes the place of that watch."""
ABSENT_FOR: Final = 30.0
"""The shortest time between the two proofs that a resource is gone."""
PAGE_SIZE: Final = 500
_NO_CONNECTION: Final = frozenset(
    {
        TransportFailure.DNS,
        TransportFailure.REFUSED,
        TransportFailure.CONNECT,
        TransportFailure.TLS,
        TransportFailure.PROXY,
        TransportFailure.CONNECT_TIMEOUT,
        TransportFailure.CLOSED,
    }
)
"""Failures before anything was sent: they say nothing about what was asked for."""


# --- Settings ---------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What the caller wants; does not change while a reflector runs."""

    first_version: Literal["", "0"] = ""
    """``""``: the newest state; ``"0"``: whatever the server has at hand, which may be old."""
    page_size: int | None = None
    """Objects per page; ``None``: 500 where pages are possible, else everything at once."""
    stream_lists: bool = True
    """Use watch-list where the server can."""
    internal_error_window: float = 0.0
    """For how long after the first internal error of a series the watch is kept to."""


# --- Decisions --------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class Decision:
    """The new state, what to do, and what to tell."""

    state: State
    action: Action
    notices: tuple[Notice, ...] = ()


def step(
    state: State, signal: Signal, *, now: float, rand: float, policy: Policy | None = None
) -> Decision:
    """Decide what follows ``signal``. ``now`` is monotonic; ``rand`` in [0, 1) spreads waits.

    Raises:
        AssertionError: the signal cannot come in this state: a bug in the caller.
    """
    step = _Step(state, now=now, rand=rand, policy=policy or Policy())
    return step.within_budget(step.decide(signal))


def counted(state: State, action: Action, *, now: float) -> State:
    """Return the state if the request of ``action`` was sent as late as ``now``.

    Limiters and discovery may delay a request. So it counts from its answer or failure on.
    """
    if isinstance(action, Probe):
        return replace(state, lists=state.lists.probe_delayed(now))
    if isinstance(action, Relist | StreamList):
        state = replace(state, lists=state.lists.delayed(now))
    if isinstance(action, Rewatch | StreamList):
        state = replace(state, watches=state.watches.delayed(now))
    return state


def pages_expired(state: State) -> State:
    """Return the state after the continue token of a list has expired: list in one piece."""
    return replace(state, list_mode=replace(state.list_mode, is_whole=True))


def probe_wait(state: State, *, now: float) -> tuple[State, float]:
    """Return how long a probe beside an open watch has to wait; at 0 it is accounted for."""
    wait = state.lists.probe_wait(now=now)
    return (state, wait) if wait else (replace(state, lists=state.lists.probed(now)), 0.0)


@final
class _Step:
    """The decisions, with what they all need at hand."""

    def __init__(self, state: State, *, now: float, rand: float, policy: Policy) -> None:
        self.state = state
        self.now = now
        self.rand = rand
        self.policy = policy
        self.lived = 0.0  # for how long the watch was there that has just ended

    def decide(self, signal: Signal) -> Decision:  # noqa: C901, PLR0911, PLR0912 - one table
        self.lived = signal.lived if isinstance(signal, Ended) else 0.0
        match self.state.phase, signal:
            case _, Started(version):
                return self.started(version)
            case Waiting(then="list", repairs=repairs), Waited():
                return self.list(repairs=repairs)
            case Waiting(), Waited():
                return self.probe_and_watch()
            case Listing(), Listed(version, paginated, took):
                return self.listed(version, paginated=paginated, took=took)
            case Streaming(), Streamed(version):
                return self.streamed(version)
            case Clearing(), Cleared():
                return self.wait("list")
            case Clearing(), Failed(error):
                return self.wait("list", error=error)
            case Listing(), Failed(error):
                self.mode(is_plain_next=False)
                return self.list_failed(error)
            case Streaming(repairs), Failed(error) | Ended(error=error):
                return self.stream_failed(error, repairs=repairs)
            case Watching(), Failed(error):
                return self.watch_failed(error)
            case Watching(), Ended():
                return self.watch_ended(signal)
            case Watching() | Probing(), Probed(version, applied, is_stale):
                self.health(failed_probes=0, is_unprobed=is_stale)
                return self.probed(version, applied)
            case Probing(), Failed(error):
                return self.probe_failed(error)
            case _:
                raise AssertionError(f"{signal} cannot happen while in {self.state.phase}")

    def within_budget(self, decision: Decision) -> Decision:
        """Return ``decision``, accounted for; or a wait, if it would exceed a budget."""
        action, state = decision.action, decision.state
        is_list = isinstance(action, Relist | StreamList)
        is_watch = isinstance(action, Rewatch | StreamList)
        # A watch follows a probe: if there may be no watch, the probe waits too.
        waits_for_watch = is_watch or isinstance(action, Probe)
        wait = max(
            state.lists.wait(now=self.now) if is_list else 0.0,
            state.watches.wait(now=self.now) if waits_for_watch else 0.0,
        )
        if wait:
            repairs = isinstance(state.phase, Listing | Streaming) and state.phase.repairs
            phase = Waiting("list", repairs) if is_list else Waiting("watch")
            return replace(decision, state=replace(state, phase=phase), action=Wait(wait))
        if isinstance(action, Probe):
            state = replace(state, lists=state.lists.probed(self.now))
        if is_list:
            state = replace(state, lists=state.lists.used(self.now))
        if is_watch:
            state = replace(state, watches=state.watches.used(self.now))
        return replace(decision, state=state)

    def mode(self, **changes: Any) -> None:
        """Change the form of the next lists."""
        self.state = replace(self.state, list_mode=replace(self.state.list_mode, **changes))

    def health(self, **changes: Any) -> None:
        """Change the counters of failures."""
        self.state = replace(self.state, health=replace(self.state.health, **changes))

    # Lists.

    def started(self, version: str) -> Decision:
        if not self.state.is_suspect:
            self.state = replace(self.state, version=_usable(version))
        return self.list()

    def list(self, *, repairs: bool = False) -> Decision:
        """List everything: streamed if the server can, else plainly."""
        mode = self.state.list_mode
        is_plain = mode.is_plain_next or self.now < mode.plain_until
        if self.policy.stream_lists and not is_plain:
            version = "" if self.state.is_suspect else self.state.version
            return Decision(replace(self.state, phase=Streaming(repairs)), StreamList(version))
        return self.list_plainly(repairs=repairs)

    def list_plainly(self, *notices: Notice, repairs: bool) -> Decision:
        state = self.state
        version = "" if state.is_suspect else state.version or self.policy.first_version
        # A limit beside a version means pages of a list that is not from the watch cache:
        # worth it only if there is no watch cache (has_paginated).
        pages = version in {"", "0"} or state.list_mode.has_paginated
        size = self.policy.page_size or (PAGE_SIZE if pages else None)
        size = None if state.list_mode.is_whole else size
        return Decision(replace(state, phase=Listing(repairs)), Relist(version, size), notices)

    def listed(self, version: str, *, paginated: bool, took: float) -> Decision:
        notices = self.regression(version)
        self.health(was_slow=took > SLOW_LIST)
        has_paginated = self.state.list_mode.has_paginated or paginated
        self.mode(has_paginated=has_paginated, is_whole=False)
        self.synced(version)
        return Decision(self.state, Rewatch(self.state.version), notices)

    def streamed(self, version: str) -> Decision:
        """The stream is an ordinary watch from here on: there is no new action."""
        notices = self.regression(version)
        self.health(failed_openings=0)
        self.synced(version)
        return Decision(self.state, None, notices)

    def regression(self, version: str) -> tuple[Notice, ...]:
        """A list may be older than what we had: it is the truth now, but nobody expects it."""
        before = self.state.version
        return (Regressed(before, version),) if _went_back(before, version) else ()

    def synced(self, version: str) -> None:
        self.mode(is_plain_next=False)
        self.state = replace(
            self.state,
            phase=Watching(),
            version=_usable(version),
            is_suspect=False,
            has_listed=True,
            health=self.state.health.listed(),
        )

    def list_failed(self, error: KinformError | None, *, least: float = 0.0) -> Decision:
        if _is_version_unusable(error) and not self.state.is_suspect:
            return self.distrust(error)
        phase = self.state.phase
        if isinstance(phase, Listing | Streaming) and phase.repairs:
            return self.wait("watch", error=error)  # nothing was wrong with the watch
        if isinstance(error, UnknownResourceError) and error.is_gone:
            return self.absent(error)
        self.health(absent_since=None)
        return self.wait("list", error=error, least=least)

    def stream_failed(self, error: KinformError | None, *, repairs: bool) -> Decision:
        """It was refused, or ended before its end bookmark: its content is not used."""
        if error is not None and _is_refusal(error):
            return self.unstream(repairs=repairs)
        if error is not None and _would_fail_lists(error):
            return self.list_failed(error)
        if _is_version_unusable(error) and not self.state.is_suspect:
            return self.list_failed(error)
        # Streams alone may fail: a gateway, or a role that allows lists only. They are watches, so
        # they count as openings that failed, too.
        self.health(failed_openings=self.state.health.failed_openings + 1)
        failed = self.state.health.failed_streams + 1
        if failed < STREAMS_BEFORE_LIST:
            self.health(failed_streams=failed)
            return self.list_failed(error)
        self.health(failed_streams=0)
        self.mode(is_plain_next=True)
        decision = self.list_failed(error, least=_pause_after(error))
        return replace(decision, notices=(*decision.notices, Unstreamed(for_an_hour=False)))

    def unstream(self, *, repairs: bool) -> Decision:
        """List plainly, and at once: this happens once an hour at most."""
        self.health(failed_streams=0)
        self.mode(plain_until=self.now + STREAM_AGAIN_AFTER)
        return self.list_plainly(Unstreamed(for_an_hour=True), repairs=repairs)

    def absent(self, error: KinformError) -> Decision:
        """The list answers 404, and fresh discovery lists the resource in no version."""
        since = self.state.health.absent_since
        since = self.now if since is None else since
        self.health(absent_since=since)
        if not self.state.has_listed or self.now - since < ABSENT_FOR:
            return self.wait("list", error=error)
        gone = replace(self.state, phase=Clearing(), has_listed=False, version="", is_suspect=True)
        return Decision(gone, Clear(), (Gone(),))

    # Watches.

    def watch_failed(self, error: KinformError) -> Decision:
        """The watch could not be opened."""
        if _is_version_unusable(error):
            return self.expired(error)
        failed = self.state.health.failed_openings + 1
        # A watch that was opened without a probe has not opened: probe again before the next.
        probes = min(self.state.health.failed_probes, BLIND_AFTER - 1)
        self.health(failed_openings=failed, failed_probes=probes)
        # For a kind that cannot be watched, list after list is the way to follow it, as far apart
        # as the back-off gets. All others are probed first: see `probed`.
        if _is_refusal(error) or isinstance(error, NotFoundError | UnknownResourceError):
            return self.wait("list", error=error)
        least = _pause_after(error) if failed >= OPENINGS_BEFORE_LIST else 0.0
        return self.wait("watch", error=error, least=least)

    def watch_ended(self, ended: Ended) -> Decision:
        version = _usable(ended.resource_version) or self.state.version
        advanced = version != self.state.version
        is_clean = ended.error is None and not ended.repairs
        is_healthy = (
            ended.reached_timeout
            or ended.lived >= HEALTHY_AFTER
            or (is_clean and (advanced or ended.lived >= CLEAN_AFTER))
        )
        # A gateway may accept every watch and break it at the first byte, which is no better than
        # refusing it. (A quiet watch that breaks later may have met the idle timeout of a proxy.)
        # Such a watch proves nothing: only one that brought something, or ended cleanly, does.
        works = advanced or ended.events > 0 or ended.error is None
        broke_at_once = not works and ended.lived < CLEAN_AFTER
        failed = 0 if works else self.state.health.failed_openings + broke_at_once
        self.state = replace(self.state, version=version)
        self.health(failed_openings=failed)
        if is_healthy:
            self.state = replace(self.state, backoff=self.state.backoff.healthy())
        if ended.repairs:
            return self.repair()
        if ended.error is None:
            return self.watch_closed(ended, is_healthy=is_healthy)
        self.health(short_watches=0)
        return self.watch_broke(ended.error)

    def repair(self) -> Decision:
        """The watch was ended by us, to list corrupted objects again."""
        self.health(short_watches=0)
        self.state = replace(self.state, corrupted=self.state.corrupted.begun(self.now))
        return self.wait("list", repairs=True)

    def watch_closed(self, ended: Ended, *, is_healthy: bool) -> Decision:
        """The server ended it cleanly: routine, unless it does so at once."""
        is_short = ended.lived < SHORT_WATCH and not ended.events and not is_healthy
        short = self.state.health.short_watches + 1 if is_short else 0
        self.health(short_watches=short, unreadable_watches=0)
        if short >= 2:  # seen with versions the server has forgotten without saying so
            return self.distrust()
        if ended.reached_timeout:
            return self.watch()
        # Before its time: the next server to answer may be another one, with an older state.
        return self.probe_and_watch() if is_healthy else self.wait("watch")

    def watch_broke(self, error: KinformError) -> Decision:
        if _is_version_unusable(error):
            return self.expired(error)
        if not isinstance(error, ApiError | TransportError):
            # Something in it cannot be read, or not be stored. A list passes it by.
            unreadable = self.state.health.unreadable_watches + 1
            self.health(unreadable_watches=unreadable)
            return self.wait("watch" if unreadable < 2 else "list")
        if isinstance(error, ApiError) and _is_internal(error):
            return self.internal_error(error)
        if isinstance(error, ApiError) and error.code != 429:
            return self.wait("list", error=error)
        return self.wait("watch", error=error)

    def internal_error(self, error: ApiError) -> Decision:
        """Keep to the watch for a while: internal errors pass (client-go: RetryWithDeadline)."""
        first, last = self.state.health.internal_errors or (self.now, self.now)
        first = self.now if self.now - last >= QUIET_AFTER else first
        self.health(internal_errors=(first, self.now))
        keep = self.now - first < self.policy.internal_error_window
        return self.wait("watch" if keep else "list", error=error)

    def watch(self) -> Decision:
        if not self.state.version:  # a server without versions: what happened since, nobody knows
            return self.list()
        return Decision(replace(self.state, phase=Watching()), Rewatch(self.state.version))

    # Versions.

    def probe_and_watch(self) -> Decision:
        if not self.state.version:
            return self.list()
        failed = self.state.health.failed_probes
        if failed >= BLIND_AFTER:
            return self.watch()
        if self.state.lists.probe_wait(now=self.now):
            # The other slots are for lists. The probe is made up for beside the watch.
            self.health(is_unprobed=True)
            return self.watch()
        return Decision(replace(self.state, phase=Probing()), Probe())

    def probed(self, version: str, applied: str) -> Decision:
        if _went_back(applied, version):
            self.state = replace(self.state, is_suspect=True, version="")
            return self.wait("list", notices=(Regressed(applied, version),))
        if not isinstance(self.state.phase, Probing):
            return Decision(self.state, None)
        is_frozen = self.state.health.failed_openings >= OPENINGS_BEFORE_LIST
        if not is_frozen or _usable(version) == applied:
            return self.watch()
        # Watches cannot be opened and the cache is behind. A streamed list is a watch, too.
        self.mode(is_plain_next=True)
        return self.list()

    def probe_failed(self, error: KinformError) -> Decision:
        """Ask again where nobody could answer; any other answer says no more than a watch will."""
        if not _is_outage(error):
            self.health(failed_probes=0)
            return self.watch()
        self.health(failed_probes=self.state.health.failed_probes + 1)
        return self.wait("watch", error=error)

    def expired(self, error: KinformError) -> Decision:
        """The version of a watch is of no use: a list not older than it will do, but only once."""
        version = self.state.version
        if not isinstance(error, ResourceExpiredError) or version == self.state.expired:
            return self.distrust(error)
        self.state = replace(self.state, expired=version)
        return self.wait("list", error=error, notices=(Expired(version),))

    def distrust(self, error: KinformError | None = None) -> Decision:
        """List next, with the version unset."""
        self.health(short_watches=0)
        self.state = replace(self.state, is_suspect=True)
        return self.wait("list", error=error, notices=(Expired(self.state.version),))

    # Waits.

    def wait(
        self,
        then: Literal["list", "watch"],
        *,
        error: KinformError | None = None,
        notices: tuple[Notice, ...] = (),
        least: float = 0.0,
        repairs: bool = False,
    ) -> Decision:
        """Wait as the back-off says, and not less than ``least`` or than the server asked for."""
        backoff = self.state.backoff
        asked = (error.retry_after or 0.0) if isinstance(error, ApiError) else 0.0
        told = max(min(asked, MAX_RETRY_AFTER), least) * (1 + self.rand / 4)
        # From one attempt to the next it takes as long as the back-off says, whichever part of
        # that was waiting.
        first = backoff.healthy().delay(rand=self.rand)
        seconds = max(backoff.delay(rand=self.rand) - self.lived * (1 + self.rand), first)
        health = self.state.health
        if health.failed_openings and health.was_slow:  # lists take the place of watches
            seconds *= 2
        phase = Waiting(then, repairs)
        state = replace(self.state, phase=phase, backoff=backoff.failed())
        return Decision(state, Wait(max(seconds, told)), notices)


def _usable(version: str) -> str:
    """Return ``version`` unless it is none: ``"0"``, from a server without versions, means any."""
    return "" if version == "0" else version


def _went_back(before: str, now: str) -> bool:
    return is_older(_usable(now), before)


def _is_internal(error: ApiError) -> bool:
    """Whether it may pass by itself: not so, for one, an object that the server cannot read."""
    return error.code == 500 and error.reason in {"", "InternalError"}


def _is_outage(error: KinformError) -> bool:
    """Whether nobody could answer just now, whatever had been asked for."""
    if isinstance(error, ApiError):
        return error.code in {401, 429, 502, 503, 504}
    return isinstance(error, TransportError)


def _is_version_unusable(error: KinformError | None) -> bool:
    if isinstance(error, ResourceExpiredError):
        return True
    return isinstance(error, ApiError) and error.is_resource_version_too_large


def _would_fail_lists(error: KinformError) -> bool:
    """Whether a plain list would fail in the same way as a streamed one."""
    if isinstance(error, TransportError):
        return error.failure in _NO_CONNECTION
    return isinstance(error, UnknownResourceError)


def _pause_after(error: KinformError | None) -> float:
    """Return how long a server is left alone before a list takes the place of a watch."""
    return OVERLOAD_PAUSE if isinstance(error, ApiError) and error.code == 429 else 0.0


def _is_refusal(error: KinformError) -> bool:
    """Whether the server does not know how to do that at all, rather than being in trouble."""
    if not isinstance(error, ApiError) or error.is_resource_version_too_large:
        return False
    return isinstance(error, InvalidError) or error.code in {405, 406, 415, 501}
