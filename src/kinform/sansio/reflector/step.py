"""The reflector's decisions: a state machine without I/O and without a clock.

The reflector performs one `Action`, reports its outcome as a `Signal`, and `step` returns the next
action. `step` is a table; these are the rules behind it:

Rule 1 (limits): Every failure is followed by a wait that grows (`Backoff`). The lifetime of a watch
counts as part of the wait. In addition, at most 8 lists and 8 watch openings begin in any 60 s,
even if all of them succeed. The first five of a burst begin at once, the others are spread over the
rest of the 60 s (``OpeningBudget``). A list counts once with all its pages. A streamed list counts
as a list and as a watch opening. A probe counts as a list, but probes use at most 6 of the 8 slots,
so that two lists in any 60 s never wait for probes.

Rule 2 (versions of lists): The first list requests the newest state (resourceVersion unset). Later
lists request a state that is not older than the last applied version. After "expired" (410) or "too
large resource version" a list requests the newest state again.

Rule 3 (progress): The version advances only to versions that were applied. It goes back only with a
notice (`Regressed`).

Rule 4 (failures that do not concern the version): After a refused connection, a 5xx, 429 or 403, or
a connection that broke, the version is kept, and a watch follows instead of a list. A probe (a list
of one object) precedes that watch, because etcd may have been restored from a backup: the server
would accept a watch from a version in its future, and send nothing. If two probes fail, or if rule
1 allows no probe now, the watch is opened without one and the probe is sent beside the watch.

Rule 5 (streamed lists): Lists are streamed (watch-list). If the server refuses (400, 405, 406, 415,
422, 501), lists are plain for an hour. After two streams that failed otherwise, one plain list is
tried, and the list after it is streamed again. After a 429 that plain list waits for at least 30 s.
Streams that failed because there was no connection do not count.

Rule 6 (corrupted objects): An object that arrived corrupted twice is quarantined; the watch goes
on. Everything is listed again after intervals that grow from 10 s to an hour. If that list fails,
the watch continues without the object.

Rule 7 (resources that are no longer served): A 404 never empties the cache. The cache is emptied
only if the list answers 404 and fresh, complete discovery contains the resource in no version of
its group (`UnknownResourceError.is_gone`), twice and at least 30 s apart. If another version serves
the resource, the cache is kept and becomes stale.

Rule 8 (clean ends): A watch that ended cleanly was healthy if the applied version advanced, or if
it lived for 8 s. The backoff is reset, and the next watch opens at once, within the limits of rule
1.

Rule 9 (no watch works): After five watches in a row (streamed lists included) that could not be
opened, or that broke within 8 s without an event, lists keep the cache up to date, until a watch
brings an event or ends cleanly. Each probe that shows another version than the applied one leads to
one plain list, so there is at most one in each wait (30 to 60 s; twice that if the last list took
longer than 10 s). A probe that shows the applied version leads to no list.

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
from kinform.sansio.reflector.signals import (
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
from kinform.sansio.reflector.states import (
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
"""A watch that lived this long, or to its own timeout, was healthy even if it broke."""
CLEAN_AFTER: Final = 8.0
"""A watch that lived this long and ended cleanly was healthy even without an event."""
SHORT_WATCH: Final = 1.0
"""A watch that ended cleanly within this time and without an event makes the version suspect."""
QUIET_AFTER: Final = 60.0
"""An internal error this long after the last one begins a new series."""
STREAM_AGAIN_AFTER: Final = 3600.0
"""For how long lists are plain after the server refused to stream one."""
BLIND_AFTER: Final = 2
"""After this many failed probes in a row a watch is opened without a probe."""
STREAMS_BEFORE_LIST: Final = 2
"""After this many failed streamed lists in a row one plain list is tried."""
# A rolling restart of the API servers refuses some openings, and must cost no list.
OPENINGS_BEFORE_LIST: Final = 5
"""After this many watches in a row that could not be opened, lists keep the cache up to date."""
SLOW_LIST: Final = 10.0
"""A list that takes longer doubles the wait before the next one, while no watch can be opened."""
OVERLOAD_PAUSE: Final = 30.0
"""The shortest wait between a 429 to a watch and the list that replaces that watch."""
ABSENT_FOR: Final = 30.0
"""The shortest time between the two proofs that a resource is no longer served."""
# client-go: pager.go ``defaultPageSize``.
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
"""Failures before the request was sent: another request would fail in the same way."""


# --- Settings ---------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The caller's settings; they do not change while a reflector runs."""

    first_version: Literal["", "0"] = ""
    """``""``: the newest state; ``"0"``: any state in the watch cache, which may be old."""
    page_size: int | None = None
    """Objects per page; ``None``: 500 where pages are possible, else everything at once."""
    stream_lists: bool = True
    """Use watch-list if the server supports it."""
    internal_error_window: float = 0.0
    """For how long after the first internal error of a series the watch is repeated."""


# --- Decisions --------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class Decision:
    """The next state, the next action, and what to report."""

    state: State
    action: Action
    notices: tuple[Notice, ...] = ()


def step(
    state: State, signal: Signal, *, now: float, rand: float, policy: Policy | None = None
) -> Decision:
    """Decide the next action. ``now`` is monotonic; ``rand`` in [0, 1) spreads waits.

    Raises:
        AssertionError: the signal is impossible in this state: a bug in the caller.
    """
    step = _Step(state, now=now, rand=rand, policy=policy or Policy())
    return step.within_budget(step.decide(signal))


def counted(state: State, action: Action, *, now: float) -> State:
    """Return the state with the request of ``action`` counted at ``now`` instead of earlier.

    Rate limiters and discovery may delay a request after the decision to send it. So the budget
    counts it at the time of its answer or failure.
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
    """Return how long a probe beside an open watch must wait. If that is 0, count the probe."""
    wait = state.lists.probe_wait(now=now)
    return (state, wait) if wait else (replace(state, lists=state.lists.probed(now)), 0.0)


@final
class _Step:
    """One call of `step`: the state, which its methods change, and the arguments."""

    def __init__(self, state: State, *, now: float, rand: float, policy: Policy) -> None:
        self.state = state
        self.now = now
        self.rand = rand
        self.policy = policy
        # A field and not an argument of `wait`: nearly every method ends in a wait, and only
        # `Ended` has it.
        self.lived = 0.0  # seconds, of the watch that has just ended

    def decide(self, signal: Signal) -> Decision:  # noqa: C901, PLR0911, PLR0912 - one table
        self.lived = signal.lived if isinstance(signal, Ended) else 0.0
        match self.state.phase, signal:
            # In every phase: the task that runs the reflector may be cancelled at any await, and a
            # second run begins with the state that the first one left behind.
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
        """Return ``decision`` with its request counted; or a wait, if it would exceed a budget."""
        action, state = decision.action, decision.state
        is_list = isinstance(action, Relist | StreamList)
        is_watch = isinstance(action, Rewatch | StreamList)
        # A watch follows the probe: if no watch may be opened now, the probe would be too old then.
        waits_for_watch = is_watch or isinstance(action, Probe)
        wait = max(
            state.lists.wait(now=self.now) if is_list else 0.0,
            state.watches.wait(now=self.now) if waits_for_watch else 0.0,
        )
        # The decision is not kept for later: after the wait it is made again. So everything that it
        # depends on must be in the state, for example ``is_plain_next``.
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
        # A version that a server has refused or lost must not come back with a restart of the
        # reflector.
        if not self.state.is_suspect:
            self.state = replace(self.state, version=_usable(version))
        return self.list()

    def list(self, *, repairs: bool = False) -> Decision:
        """List everything: streamed if the server supports it, else plainly."""
        # The version of a stream may be empty too: that asks for a consistent read, which no
        # lagging server can answer from an old state (kubernetes#59848).
        mode = self.state.list_mode
        is_plain = mode.is_plain_next or self.now < mode.plain_until
        if self.policy.stream_lists and not is_plain:
            version = "" if self.state.is_suspect else self.state.version
            return Decision(replace(self.state, phase=Streaming(repairs)), StreamList(version))
        return self.list_plainly(repairs=repairs)

    def list_plainly(self, *notices: Notice, repairs: bool) -> Decision:
        state = self.state
        version = "" if state.is_suspect else state.version or self.policy.first_version
        # With a limit and a version kube-apiserver reads from etcd instead of its watch cache:
        # worth it only if the resource has no watch cache (has_paginated).
        pages = version in {"", "0"} or state.list_mode.has_paginated
        size = self.policy.page_size or (PAGE_SIZE if pages else None)
        # Last, so that it also overrides the caller's page size: with pages the same token would
        # expire again.
        size = None if state.list_mode.is_whole else size
        return Decision(replace(state, phase=Listing(repairs)), Relist(version, size), notices)

    def listed(self, version: str, *, paginated: bool, took: float) -> Decision:
        notices = self.regression(version)
        # Of plain lists only: it slows down the lists that replace watches, and those are plain.
        self.health(was_slow=took > SLOW_LIST)
        has_paginated = self.state.list_mode.has_paginated or paginated
        self.mode(has_paginated=has_paginated, is_whole=False)
        self.synced(version)
        # Without a probe: the list itself has just shown the server's version. Even without a
        # version, which some aggregated servers do not have: such a watch begins with the existing
        # objects.
        return Decision(self.state, Rewatch(self.state.version), notices)

    def streamed(self, version: str) -> Decision:
        """Continue: the stream is an ordinary watch from here on."""
        notices = self.regression(version)
        self.health(failed_openings=0)
        self.synced(version)
        return Decision(self.state, None, notices)

    def regression(self, version: str) -> tuple[Notice, ...]:
        """Return a notice if a list, which is applied anyway, is older than the applied version."""
        before = self.state.version
        # The list is the truth even if it is older: refusing it would leave the cache in a state
        # that no server has any more. client-go moves its version back in silence.
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
        """A streamed list was refused, or ended before its end bookmark: drop its objects."""
        if error is not None and _is_refusal(error):
            return self.unstream(repairs=repairs)
        # Must precede the count: a fallback that an outage caused would be remembered as a property
        # of the server.
        if error is not None and _would_fail_lists(error):
            return self.list_failed(error)
        if _is_version_unusable(error) and not self.state.is_suspect:
            return self.list_failed(error)
        # Streams alone may fail: at a gateway that breaks watches, or with a role that allows only
        # lists. They are watches, so they also count as failed openings.
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
        # client-go does not remember the refusal: each of its relists tries to stream first. An
        # hour and not for ever, because a server may be upgraded under a running process.
        self.mode(plain_until=self.now + STREAM_AGAIN_AFTER)
        return self.list_plainly(Unstreamed(for_an_hour=True), repairs=repairs)

    def absent(self, error: KinformError) -> Decision:
        """The list answered 404, and fresh discovery contains the resource in no version."""
        # The two proofs must be consecutive: any other failure of a list resets ``absent_since``.
        since = self.state.health.absent_since
        since = self.now if since is None else since
        self.health(absent_since=since)
        # A store that was never filled has nothing to delete, and `Gone` would be reported for a
        # CRD that is only installed later.
        if not self.state.has_listed or self.now - since < ABSENT_FOR:
            return self.wait("list", error=error)
        # Suspect: a CRD that is installed again has other objects, and no version of before is of
        # use.
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
        # A resource that cannot be watched is followed by lists, as far apart as the backoff gets.
        # For all other errors a probe decides first: see `probed`.
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
            # Not clean if it ``repairs``: we ended it, which says nothing about the server. If it
            # counted, a proxy that corrupts objects would reset the backoff with each repair.
            or (is_clean and (advanced or ended.lived >= CLEAN_AFTER))
        )
        # A gateway may accept every watch and break it at the first byte, which is as bad as
        # refusing it. (A quiet watch that breaks later may have met the idle timeout of a proxy.)
        # So only a watch that brought an event, or ended cleanly, ends the count of failures.
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
        """The server ended the watch cleanly: routine, unless it does so at once."""
        is_short = ended.lived < SHORT_WATCH and not ended.events and not is_healthy
        short = self.state.health.short_watches + 1 if is_short else 0
        # A clean end means that every event of the watch could be decoded.
        self.health(short_watches=short, unreadable_watches=0)
        if short >= 2:  # F-R03: some servers close a watch from a forgotten version silently
            return self.distrust()
        # No probe: nothing was lost, and a thousand quiet informers would double their requests.
        # The open watch is probed every five minutes anyway.
        if ended.reached_timeout:
            return self.watch()
        # Before its timeout: another server may answer the next request, with an older state.
        return self.probe_and_watch() if is_healthy else self.wait("watch")

    def watch_broke(self, error: KinformError) -> Decision:
        if _is_version_unusable(error):
            return self.expired(error)
        if not isinstance(error, ApiError | TransportError):
            # Some event cannot be decoded or stored. A list does not contain that event.
            unreadable = self.state.health.unreadable_watches + 1
            self.health(unreadable_watches=unreadable)
            return self.wait("watch" if unreadable < 2 else "list")
        if isinstance(error, ApiError) and _is_internal(error):
            return self.internal_error(error)
        # 429 keeps the watch (kubernetes PR#100878): a relist is the most expensive answer to an
        # overloaded server. Every other error in a stream leads to a list, as in client-go.
        if isinstance(error, ApiError) and error.code != 429:
            return self.wait("list", error=error)
        return self.wait("watch", error=error)

    def internal_error(self, error: ApiError) -> Decision:
        """Repeat the watch for a while: internal errors pass (client-go: RetryWithDeadline)."""
        first, last = self.state.health.internal_errors or (self.now, self.now)
        # Measured from the last error, not the first: a series of slow failures is one series.
        first = self.now if self.now - last >= QUIET_AFTER else first
        self.health(internal_errors=(first, self.now))
        keep = self.now - first < self.policy.internal_error_window
        return self.wait("watch" if keep else "list", error=error)

    def watch(self) -> Decision:
        if not self.state.version:  # without a version, events since the list would be lost
            return self.list()
        return Decision(replace(self.state, phase=Watching()), Rewatch(self.state.version))

    # Versions.

    def probe_and_watch(self) -> Decision:
        if not self.state.version:
            return self.list()
        # Two probes in vain must not keep the cache stale: a server may answer watches while its
        # lists time out.
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
        # No watch can be opened and the cache is behind. A streamed list would be a watch, too.
        self.mode(is_plain_next=True)
        return self.list()

    def probe_failed(self, error: KinformError) -> Decision:
        """Probe again after an outage; after any other error watch, which will report it too."""
        # For example 403 for lists with a role that allows watches: an answer, so waiting would not
        # help.
        if not _is_outage(error):
            self.health(failed_probes=0)
            return self.watch()
        self.health(failed_probes=self.state.health.failed_probes + 1)
        return self.wait("watch", error=error)

    def expired(self, error: KinformError) -> Decision:
        """The version of a watch has expired: list what is not older, and the second time anew."""
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
        """Wait for the backoff, and at least for ``least`` and for the server's ``Retry-After``."""
        backoff = self.state.backoff
        asked = (error.retry_after or 0.0) if isinstance(error, ApiError) else 0.0
        shortest = max(min(asked, MAX_RETRY_AFTER), least) * (1 + self.rand / 4)
        # The backoff is the time between two attempts. A proxy that cuts every watch after 50 s
        # must not cost another 30 s without a watch each time.
        first = backoff.healthy().delay(rand=self.rand)
        seconds = max(backoff.delay(rand=self.rand) - self.lived * (1 + self.rand), first)
        # ``shortest`` is never less than the server asked for, and spread above it: informers that
        # all received "1 s" must not return together.
        health = self.state.health
        if health.failed_openings and health.was_slow:  # lists take the place of watches
            seconds *= 2
        phase = Waiting(then, repairs)
        state = replace(self.state, phase=phase, backoff=backoff.failed())
        return Decision(state, Wait(max(seconds, shortest)), notices)


def _usable(version: str) -> str:
    """Return ``version``, but ``""`` for ``"0"``, which servers without versions send."""
    # "0" in a request means "any state": a watch from it would begin with all existing objects
    # again.
    return "" if version == "0" else version


def _went_back(before: str, now: str) -> bool:
    return is_older(_usable(now), before)


def _is_internal(error: ApiError) -> bool:
    """Return whether an error is transient: an object that the server cannot read is not."""
    # A stored object that the server cannot decode is a 500 too, with another reason. It does not
    # pass by waiting, but a list may leave the object out.
    return error.code == 500 and error.reason in {"", "InternalError"}


def _is_outage(error: KinformError) -> bool:
    """Return whether the server could not answer any request just now."""
    if isinstance(error, ApiError):
        # 401 is among them because a token may be rotating: the credentials are read again
        # meanwhile. 500 is not: it is an answer, and the watch that follows shows whether the
        # server works.
        return error.code in {401, 429, 502, 503, 504}
    return isinstance(error, TransportError)


def _is_version_unusable(error: KinformError | None) -> bool:
    if isinstance(error, ResourceExpiredError):
        return True
    return isinstance(error, ApiError) and error.is_resource_version_too_large


def _would_fail_lists(error: KinformError) -> bool:
    """Return whether a plain list would fail in the same way as a streamed one."""
    if isinstance(error, TransportError):
        return error.failure in _NO_CONNECTION
    return isinstance(error, UnknownResourceError)


def _pause_after(error: KinformError | None) -> float:
    """Return the shortest wait before a list that replaces a watch."""
    return OVERLOAD_PAUSE if isinstance(error, ApiError) and error.code == 429 else 0.0


def _is_refusal(error: KinformError) -> bool:
    """Return whether the server does not support the request: another try would not help."""
    if not isinstance(error, ApiError) or error.is_resource_version_too_large:
        return False
    return isinstance(error, InvalidError) or error.code in {405, 406, 415, 501}
