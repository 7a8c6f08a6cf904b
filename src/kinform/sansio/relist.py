"""The reflector's decisions: after this signal, in this state, do that. No I/O, no clock.

The reflector performs one `Action`, tells what came of it as a `Signal`, and gets the next. Read
`step` as a table; these rules are behind it:

Rule 1: every failure waits, and every wait buys at most one list and one watch. So no answer of a
server can cause a hot loop: in the first minute of any failure there are at most 8 of each. The
time that a watch lived counts as waited: what is cut every 50 s is opened again at once.
Rule 2: the first list asks for the newest state (version unset), later ones for a state not older
than the last applied version, and after "expired" or "too large" again for the newest.
Rule 3: a version advances only by what has been applied, and never goes back unannounced.
Rule 4: an error that says nothing about our version (refused, 5xx, 429, 403, a cut connection)
keeps it: watch again, do not list. Unless a server that answers refuses five watches in a row:
some may list and not watch. Before that watch, look at the server's version: while we waited it
may have been restored, and it would accept a watch from its future without a word. If nobody can
tell its version, watch all the same, and look again beside the watch.
Rule 5: lists are streamed where the server can (watch-list). One that refuses, or twice fails to
come to the end of a stream, is asked for plain lists, and asked again after an hour.
Rule 6: what came damaged, and damaged again, is set apart, and all others go on. It is what the
network made of an object, so it is listed again: later and later, up to hours apart. If that list
fails, the watch goes on without it.
Rule 7: a kind that is gone (not found twice, and discovery does not know it) has no objects.

client-go: reflector.go, where the same decisions are spread over ListAndWatch, list, watchList,
watch and handleAnyWatch.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias, final

from kinform.errors import (
    ApiError,
    InvalidError,
    KinformError,
    NotFoundError,
    ResourceExpiredError,
    TransportError,
    UnknownResourceError,
)
from kinform.sansio.backoff import Backoff
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
from kinform.sansio.versions import is_older

__all__ = [
    "Action",
    "Clear",
    "Cleared",
    "Decision",
    "Ended",
    "Expired",
    "Failed",
    "Gone",
    "Listed",
    "Notice",
    "Phase",
    "Policy",
    "Probe",
    "Probed",
    "Regressed",
    "Relist",
    "Rewatch",
    "Signal",
    "Started",
    "State",
    "StreamList",
    "Streamed",
    "Unstreamed",
    "Wait",
    "Waited",
    "mend_after",
    "step",
]

HEALTHY_AFTER: Final = 60.0
"""A watch that lived this long, or to its own time-out, was a healthy one."""
SHORT_WATCH: Final = 1.0
"""A watch that ended sooner without an event was none."""
QUIET_AFTER: Final = 60.0
"""An internal error that comes so long after the one before begins a new series."""
STREAM_AGAIN_AFTER: Final = 3600.0
"""How long a server that cannot stream lists is not asked to."""
MEND_AFTER: Final = 10.0
"""How long a watch goes on, at first, while an object is missing that came damaged."""
MEND_AT_MOST: Final = 3600.0
"""And how long at most: somebody between us and the server may damage them for ever."""
MEND_ANEW: Final = 3 * MEND_AT_MOST
"""Damage that comes so long after the last was mended is another matter."""
BLIND_AFTER: Final = 2
"""Looks at the version that nobody answers; then a watch is tried without."""
MAX_RETRY_AFTER: Final = 120.0
"""The longest wait a server can ask for."""
PAGE_SIZE: Final = 500


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


# --- State ------------------------------------------------------------------------------------

Phase: TypeAlias = Literal["list", "stream", "clear", "watch", "probe", "wait"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Everything that decisions rest on."""

    phase: Phase = "wait"
    after_wait: Literal["list", "watch"] = "list"
    """What a wait leads to."""
    version: str = ""
    """The last version applied; ``""`` before the first list."""
    is_suspect: bool = False
    """The version must not be used for the next list."""
    backoff: Backoff = field(default_factory=Backoff)
    has_listed: bool = False
    """A list is in the store, and the kind was not gone since."""
    not_found: int = 0
    """Lists in a row for which the server had no such kind."""
    short_watches: int = 0
    """Watches in a row that ended at once and empty."""
    refused_watches: int = 0
    """Watches in a row that could not be opened, though somebody was there to answer."""
    expired: str = ""
    """The last version that had expired when a watch began from it."""
    unreadable_streams: int = 0
    """Watches in a row that ended in something we cannot read."""
    unfinished_streams: int = 0
    """Streamed lists in a row that did not come to their end bookmark."""
    list_plainly_until: float = float("-inf")
    """Until then lists are not streamed."""
    has_paginated: bool = False
    """A list of any version came in pages: the server has no watch cache for this kind."""
    looks: int = 0
    """Looks at the server's version in a row that nobody could answer."""
    has_looked: bool = False
    """Somebody could, since the last wait."""
    mending: Backoff = field(default_factory=lambda: Backoff(first=MEND_AFTER, cap=MEND_AT_MOST))
    """How long objects that came damaged are left alone before everything is listed again."""
    mended: float = float("-inf")
    """When that was last begun."""
    is_mending: bool = False
    """The list under way is made for what came damaged; there is no other need of it."""
    internal_errors: tuple[float, float] | None = None
    """When the first and the last one came, of the series at hand."""


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
    return _Step(state, now=now, rand=rand, policy=policy or Policy()).decide(signal)


def mend_after(state: State, *, now: float, rand: float) -> float:
    """Return how long what came damaged is left alone before everything is listed again."""
    return _mending(state, now).delay(rand=rand)


def _mending(state: State, now: float) -> Backoff:
    return state.mending if now - state.mended <= MEND_ANEW else state.mending.healthy()


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
            case "wait", Waited():
                return self.resume()
            case "list", Listed(version, paginated):
                return self.listed(version, paginated=paginated)
            case "stream", Streamed(version):
                return self.streamed(version)
            case "clear", Cleared():
                return self.wait("list")
            case "clear", Failed(error):
                return self.wait("list", error=error)
            case "list", Failed(error):
                return self.list_failed(error)
            case "stream", Failed(error):
                return self.list_failed(error) if _is_outage(error) else self.stream_failed(error)
            case "stream", Ended(error=error):
                return self.stream_failed(error)
            case "watch", Failed(error):
                return self.watch_failed(error)
            case "watch", Ended():
                return self.watch_ended(signal)
            case "watch" | "probe", Probed(version, applied):
                return self.probed(version, applied)
            case "probe", Failed(error):
                return self.probe_failed(error)
            case _:
                raise AssertionError(f"{signal} cannot happen while in {self.state.phase!r}")

    # Lists.

    def started(self, version: str) -> Decision:
        if not self.state.is_suspect:
            self.state = replace(self.state, version=_usable(version))
        self.state = replace(self.state, is_mending=False)
        return self.list()

    def list(self) -> Decision:
        """List everything: streamed if the server can, else plainly."""
        if self.policy.stream_lists and self.now >= self.state.list_plainly_until:
            version = "" if self.state.is_suspect else self.state.version
            return Decision(replace(self.state, phase="stream"), StreamList(version))
        return self.list_plainly()

    def list_plainly(self, *notices: Notice) -> Decision:
        state = self.state
        version = "" if state.is_suspect else state.version or self.policy.first_version
        # A limit beside a version means pages of a list that is not from the watch cache:
        # worth it only if there is no watch cache (has_paginated).
        pages = version in {"", "0"} or state.has_paginated
        size = self.policy.page_size or (PAGE_SIZE if pages else None)
        return Decision(replace(state, phase="list"), Relist(version, size), notices)

    def listed(self, version: str, *, paginated: bool) -> Decision:
        notices = self.regression(version)
        state = replace(self.state, has_paginated=self.state.has_paginated or paginated)
        state = self.synced(state, version)
        return Decision(state, Rewatch(state.version), notices)

    def streamed(self, version: str) -> Decision:
        """The stream is now an ordinary watch: nothing new to do."""
        notices = self.regression(version)
        return Decision(self.synced(self.state, version), None, notices)

    def regression(self, version: str) -> tuple[Notice, ...]:
        """A list may be older than what we had: it is the truth now, but nobody expects it."""
        before = self.state.version
        return (Regressed(before, version),) if _went_back(before, version) else ()

    def synced(self, state: State, version: str) -> State:
        return replace(
            state,
            phase="watch",
            version=_usable(version),
            is_suspect=False,
            has_listed=True,
            not_found=0,
            short_watches=0,
            unreadable_streams=0,
            unfinished_streams=0,
            is_mending=False,
        )

    def list_failed(self, error: KinformError | None) -> Decision:
        if _is_version_unusable(error) and not self.state.is_suspect:
            return self.distrust(error)
        if self.state.is_mending:  # nothing was wrong with the watch
            self.state = replace(self.state, is_mending=False)
            return self.wait("watch", error=error)
        if isinstance(error, NotFoundError | UnknownResourceError):
            return self.not_found(error)
        self.state = replace(self.state, not_found=0)
        return self.wait("list", error=error)

    def stream_failed(self, error: KinformError | None) -> Decision:
        """It was refused, or over before its end bookmark: what it brought counts for nothing."""
        if error is not None and _is_refusal(error):
            return self.unstream()
        # Perhaps it is streams alone that fail: who may list need not be allowed to watch.
        unfinished = self.state.unfinished_streams
        if error is None or not _is_about_lists(error):
            unfinished += 1
        self.state = replace(self.state, unfinished_streams=unfinished)
        if unfinished < 2:
            return self.list_failed(error)
        self.plain_for_an_hour()
        return self.wait("list", error=error, notices=(Unstreamed(),))

    def unstream(self) -> Decision:
        """List plainly, and at once: this happens once an hour at most."""
        self.plain_for_an_hour()
        return self.list_plainly(Unstreamed())

    def plain_for_an_hour(self) -> None:
        until = self.now + STREAM_AGAIN_AFTER
        self.state = replace(self.state, list_plainly_until=until, unfinished_streams=0)

    def not_found(self, error: KinformError) -> Decision:
        """There is no such kind, or something in between says so."""
        times = self.state.not_found + 1
        self.state = replace(self.state, not_found=times)
        # A 404 alone may come from a proxy; that discovery does not know the kind settles it.
        if times < 2 or not self.state.has_listed or not isinstance(error, UnknownResourceError):
            return self.wait("list", error=error)
        gone = replace(self.state, phase="clear", has_listed=False, version="", is_suspect=True)
        return Decision(gone, Clear(), (Gone(),))

    # Watches.

    def watch_failed(self, error: KinformError) -> Decision:
        """The watch could not be opened."""
        if _is_version_unusable(error):
            return self.expired(error)
        # Who tells us its version and opens no watch is no server that is away. One that has too
        # much to do is: to have everything listed would make it worse.
        answers = self.state.has_looked and isinstance(error, ApiError) and error.code != 429
        if _is_outage(error) and not answers:
            return self.wait("watch", error=error)
        refused = self.state.refused_watches + 1
        self.state = replace(self.state, refused_watches=refused)
        # Some requests must not be repeated as they were, others not for ever. For a kind that
        # cannot be watched this is the way to follow it: list after list, as far apart as the
        # back-off gets.
        hopeless = _is_refusal(error) or isinstance(error, NotFoundError | UnknownResourceError)
        if not hopeless and refused < 5:
            return self.wait("watch", error=error)
        if _is_outage(error):  # as a stream it would be a watch again
            self.plain_for_an_hour()
        return self.wait("list", error=error)

    def watch_ended(self, ended: Ended) -> Decision:
        version = _usable(ended.resource_version) or self.state.version
        self.state = replace(self.state, version=version, refused_watches=0)
        if ended.lived >= HEALTHY_AFTER or ended.reached_timeout:
            self.state = replace(self.state, backoff=self.state.backoff.healthy())
        if ended.mends:
            return self.mend()
        if ended.error is None:
            return self.watch_closed(ended)
        self.state = replace(self.state, short_watches=0)
        return self.watch_broke(ended.error)

    def mend(self) -> Decision:
        mending = _mending(self.state, self.now).failed()
        self.state = replace(
            self.state, mending=mending, mended=self.now, is_mending=True, short_watches=0
        )
        return self.wait("list")

    def watch_closed(self, ended: Ended) -> Decision:
        """The server ended it in good order: routine, unless it does so at once."""
        is_short = ended.lived < SHORT_WATCH and not ended.events and not ended.reached_timeout
        short = self.state.short_watches + 1 if is_short else 0
        self.state = replace(self.state, short_watches=short, unreadable_streams=0)
        if short >= 2:  # seen with versions the server has forgotten without saying so
            return self.distrust()
        if ended.reached_timeout:
            return self.watch()
        # Before its time: whoever answers next may be another server, with an older state.
        return self.look_and_watch() if ended.lived >= HEALTHY_AFTER else self.wait("watch")

    def watch_broke(self, error: KinformError) -> Decision:
        if _is_version_unusable(error):
            return self.expired(error)
        if not isinstance(error, ApiError | TransportError):
            # Something in it cannot be read, or not be stored. A list passes it by.
            unreadable = self.state.unreadable_streams + 1
            self.state = replace(self.state, unreadable_streams=unreadable)
            return self.wait("watch" if unreadable < 2 else "list")
        if isinstance(error, ApiError) and _is_internal(error):
            return self.internal_error(error)
        if isinstance(error, ApiError) and error.code != 429:
            return self.wait("list", error=error)
        return self.wait("watch", error=error)

    def internal_error(self, error: ApiError) -> Decision:
        """Keep to the watch for a while: internal errors pass (client-go: RetryWithDeadline)."""
        first, last = self.state.internal_errors or (self.now, self.now)
        first = self.now if self.now - last >= QUIET_AFTER else first
        self.state = replace(self.state, internal_errors=(first, self.now))
        keep = self.now - first < self.policy.internal_error_window
        return self.wait("watch" if keep else "list", error=error)

    def watch(self) -> Decision:
        if not self.state.version:  # a server without versions: what happened since, nobody knows
            return self.list()
        return Decision(replace(self.state, phase="watch"), Rewatch(self.state.version))

    # Versions.

    def look_and_watch(self) -> Decision:
        if not self.state.version:
            return self.list()
        if self.state.looks >= BLIND_AFTER:
            return self.watch()
        return Decision(replace(self.state, phase="probe"), Probe())

    def probed(self, version: str, applied: str) -> Decision:
        self.state = replace(self.state, looks=0, has_looked=True)
        if _went_back(applied, version):
            self.state = replace(self.state, is_suspect=True, version="")
            return self.wait("list", notices=(Regressed(applied, version),))
        return self.watch() if self.state.phase == "probe" else Decision(self.state, None)

    def probe_failed(self, error: KinformError) -> Decision:
        """Ask again where nobody could answer; any other answer says no more than a watch will."""
        if not _is_outage(error):
            self.state = replace(self.state, looks=0)
            return self.watch()
        self.state = replace(self.state, looks=self.state.looks + 1)
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
        # Whatever this list was for before, there is no watch to go back to.
        self.state = replace(self.state, is_suspect=True, is_mending=False, short_watches=0)
        return self.wait("list", error=error, notices=(Expired(self.state.version),))

    # Waits.

    def wait(
        self,
        then: Literal["list", "watch"],
        *,
        error: KinformError | None = None,
        notices: tuple[Notice, ...] = (),
    ) -> Decision:
        """Wait as the back-off says, and not less than the server asked for."""
        backoff = self.state.backoff
        asked = (error.retry_after or 0.0) if isinstance(error, ApiError) else 0.0
        told = min(asked, MAX_RETRY_AFTER) * (1 + self.rand / 4)
        # From one attempt to the next it takes as long as the back-off says, whichever part of
        # that was waiting.
        least = backoff.healthy().delay(rand=self.rand)
        seconds = max(backoff.delay(rand=self.rand) - self.lived * (1 + self.rand), least, told)
        state = replace(
            self.state,
            phase="wait",
            after_wait=then,
            backoff=backoff.failed(),
            has_looked=False,
        )
        return Decision(state, Wait(seconds), notices)

    def resume(self) -> Decision:
        return self.list() if self.state.after_wait == "list" else self.look_and_watch()


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


def _is_about_lists(error: KinformError) -> bool:
    """Whether a plain list would fail in the same way as a streamed one."""
    return _is_version_unusable(error) or isinstance(error, UnknownResourceError)


def _is_refusal(error: KinformError) -> bool:
    """Whether the server does not know how to do that at all, rather than being in trouble."""
    if not isinstance(error, ApiError) or error.is_resource_version_too_large:
        return False
    return isinstance(error, InvalidError) or error.code in {405, 406, 415, 501}
