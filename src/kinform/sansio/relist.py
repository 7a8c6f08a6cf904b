"""The reflector's decisions: after this signal, in this state, do that. No I/O, no clock.

The reflector performs one `Action`, tells what came of it as a `Signal`, and gets the next. Read
`step` as a table; these rules are behind it:

Rule 1: every failure waits, and every wait buys at most one list and one watch. So no answer of a
server can cause a hot loop: in the first minute of any failure there are at most 8 of each.
Rule 2: the first list asks for the newest state (version unset), later ones for a state not older
than the last applied version, and after "expired" or "too large" again for the newest.
Rule 3: a version advances only by what has been applied, and never goes back unannounced.
Rule 4: an error that says nothing about our version (refused, 5xx, 429, 403, a cut connection)
keeps it: watch again, do not list.
Rule 5: lists are streamed where the server can (watch-list); a server that cannot is asked for
plain lists, and asked again after an hour.
Rule 6: a kind that is gone (not found twice, and discovery does not know it) has no objects.

client-go: reflector.go, where the same decisions are spread over ListAndWatch, list, watchList,
watch and handleAnyWatch.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias, final

from kinform.errors import (
    ApiError,
    DecodeError,
    InvalidError,
    KinformError,
    NotFoundError,
    ResourceExpiredError,
    TransportError,
    UnknownResourceError,
)
from kinform.sansio.backoff import Backoff
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
    "Policy",
    "Probe",
    "ProbeDue",
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
    "step",
]

HEALTHY_AFTER: Final = 60.0
"""A watch that lived this long, or to its own time-out, was a healthy one."""
SHORT_WATCH: Final = 1.0
"""A watch that ended sooner without an event was none."""
STREAM_AGAIN_AFTER: Final = 3600.0
"""How long a server that cannot stream lists is not asked to."""
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


# --- Actions: what the reflector does next ----------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class StreamList:
    """Open a watch with ``sendInitialEvents`` into a temporary store, until its end bookmark."""

    resource_version: str


@final
@dataclass(frozen=True, slots=True)
class Relist:
    """List, page by page if ``page_size`` is set, and replace the store's content."""

    resource_version: str
    page_size: int | None


@final
@dataclass(frozen=True, slots=True)
class Rewatch:
    """Open a watch and apply its events."""

    resource_version: str


@final
@dataclass(frozen=True, slots=True)
class Probe:
    """List one item with the version unset: is the server where we think it is?"""


@final
@dataclass(frozen=True, slots=True)
class Clear:
    """Replace the store's content with nothing: the kind itself is gone."""


@final
@dataclass(frozen=True, slots=True)
class Wait:
    """Wait, then signal `Waited`."""

    seconds: float


Action: TypeAlias = StreamList | Relist | Rewatch | Probe | Clear | Wait | None
"""``None``: go on with what you are doing. Anything else ends a watch that is open."""


# --- Signals: what came of it -----------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class Started:
    """The reflector begins."""


@final
@dataclass(frozen=True, slots=True)
class Listed:
    """A list is in the store.

    ``paginated`` tells that a list of any version (``"0"``) came in pages.
    """

    resource_version: str
    paginated: bool = False


@final
@dataclass(frozen=True, slots=True)
class Cleared:
    """The store is empty."""


@final
@dataclass(frozen=True, slots=True)
class Streamed:
    """The end bookmark came and the temporary store is in the real one; the watch goes on."""

    resource_version: str


@final
@dataclass(frozen=True, slots=True)
class Failed:
    """The request could not be made or was refused: list, watch, streamed list or probe."""

    error: KinformError


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """An open watch (or streamed list) is over."""

    resource_version: str
    """The last version applied from it; ``""``: none."""
    lived: float
    events: int
    error: KinformError | None = None
    """``None``: the server ended it in good order."""
    reached_timeout: bool = False
    """Whether it ended because the time it asked for was over."""


@final
@dataclass(frozen=True, slots=True)
class Waited:
    """The wait is over."""


@final
@dataclass(frozen=True, slots=True)
class ProbeDue:
    """Five minutes have passed; comes while a watch is open, which goes on meanwhile."""


@final
@dataclass(frozen=True, slots=True)
class Probed:
    """The server's version, from a probe; ``applied`` is ours when it was asked."""

    resource_version: str
    applied: str


Signal: TypeAlias = (
    Started | Listed | Streamed | Cleared | Failed | Ended | Waited | ProbeDue | Probed
)


# --- Notices: what somebody should hear about --------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class Regressed:
    """The server's version went back (etcd restored from a backup): everything is listed anew."""

    before: str
    now: str


@final
@dataclass(frozen=True, slots=True)
class Expired:
    """Our version is of no use to the server any more: everything is listed anew."""

    resource_version: str


@final
@dataclass(frozen=True, slots=True)
class Unstreamed:
    """The server cannot stream lists of this kind; plain lists for the next hour."""


@final
@dataclass(frozen=True, slots=True)
class Gone:
    """The server has no such kind any more (a CRD was deleted); it is asked for again and again."""


Notice: TypeAlias = Regressed | Expired | Unstreamed | Gone


# --- State ------------------------------------------------------------------------------------

Phase: TypeAlias = Literal["list", "stream", "clear", "watch", "probe", "wait"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Everything that decisions rest on."""

    phase: Phase = "wait"
    after_wait: Literal["list", "watch", "probe"] = "list"
    """What a wait, or a probe that finds nothing, leads to."""
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
    unreadable_streams: int = 0
    """Watches in a row that ended in something we cannot read."""
    unfinished_streams: int = 0
    """Streamed lists in a row that ended before their end bookmark."""
    list_plainly_until: float = float("-inf")
    """Until then lists are not streamed."""
    has_paginated: bool = False
    """A list of any version came in pages: the server has no watch cache for this kind."""
    internal_errors_since: float | None = None


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


@final
class _Step:
    """The decisions, with what they all need at hand."""

    def __init__(self, state: State, *, now: float, rand: float, policy: Policy) -> None:
        self.state = state
        self.now = now
        self.rand = rand
        self.policy = policy

    def decide(self, signal: Signal) -> Decision:  # noqa: C901, PLR0911, PLR0912 - one table
        match self.state.phase, signal:
            case "wait", Started():
                return self.list()
            case "wait", Waited():
                return self.resume()
            case "list" | "stream", Listed(version, paginated):
                return self.listed(version, paginated=paginated)
            case "stream", Streamed(version):
                return self.streamed(version)
            case "clear", Cleared():
                return self.wait("list")
            case "list", Failed(error):
                return self.list_failed(error)
            case "stream", Failed(error):
                return self.stream_failed(error)
            case "stream", Ended():
                return self.stream_unfinished(signal)
            case "watch", Failed(error):
                return self.watch_failed(error)
            case "watch", Ended():
                return self.watch_ended(signal)
            case "watch", ProbeDue():
                return Decision(self.state, Probe())
            case "watch" | "probe", Probed(version, applied):
                return self.probed(version, applied)
            case "probe", Failed():
                return self.wait("probe")
            case phase, _:
                raise AssertionError(f"{signal} cannot happen while in {phase!r}")

    # Lists.

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
        return Decision(self.synced(state, version), Rewatch(version), notices)

    def streamed(self, version: str) -> Decision:
        """The stream is now an ordinary watch: nothing new to do."""
        notices = self.regression(version)
        return Decision(self.synced(self.state, version), None, notices)

    def regression(self, version: str) -> tuple[Notice, ...]:
        """A list may be older than what we had: it is the truth now, but nobody expects it."""
        before = self.state.version
        return (Regressed(before, version),) if is_older(version, before) else ()

    def synced(self, state: State, version: str) -> State:
        return replace(
            state,
            phase="watch",
            version=version,
            is_suspect=False,
            has_listed=True,
            not_found=0,
            short_watches=0,
            unreadable_streams=0,
            unfinished_streams=0,
        )

    def list_failed(self, error: KinformError) -> Decision:
        if _is_version_unusable(error) and not self.state.is_suspect:
            return self.distrust(Expired(self.state.version), error=error)
        if isinstance(error, NotFoundError | UnknownResourceError):
            return self.not_found(error)
        self.state = replace(self.state, not_found=0)
        return self.wait("list", error=error)

    def stream_failed(self, error: KinformError) -> Decision:
        if _is_refusal(error) and not _is_version_unusable(error):
            return self.unstream()
        return self.list_failed(error)

    def not_found(self, error: KinformError) -> Decision:
        """There is no such kind, or something in between says so."""
        times = self.state.not_found + 1
        self.state = replace(self.state, not_found=times)
        # A 404 alone may come from a proxy; that discovery does not know the kind settles it.
        if times < 2 or not self.state.has_listed or not isinstance(error, UnknownResourceError):
            return self.wait("list", error=error)
        gone = replace(self.state, phase="clear", has_listed=False, version="", is_suspect=True)
        return Decision(gone, Clear(), (Gone(),))

    def stream_unfinished(self, ended: Ended) -> Decision:
        """The stream was cut before its end bookmark; what it brought counts for nothing."""
        if ended.error is not None and not isinstance(ended.error, TransportError):
            return self.stream_failed(ended.error)
        unfinished = self.state.unfinished_streams + 1
        self.state = replace(self.state, unfinished_streams=unfinished)
        return self.unstream() if unfinished >= 2 else self.wait("list")

    def unstream(self) -> Decision:
        """Give up on streamed lists for an hour. At once: it happens once an hour at most."""
        until = self.now + STREAM_AGAIN_AFTER
        self.state = replace(self.state, list_plainly_until=until, unfinished_streams=0)
        return self.list_plainly(Unstreamed())

    # Watches.

    def watch_failed(self, error: KinformError) -> Decision:
        """The watch could not be opened."""
        if _is_version_unusable(error):
            return self.distrust_unless_expired(error)
        if isinstance(error, InvalidError | NotFoundError | UnknownResourceError) or (
            isinstance(error, ApiError) and error.code == 405
        ):
            # A request we may not repeat as it was. For a kind that cannot be watched this is
            # the way to follow it: list after list, as far apart as the back-off gets.
            return self.wait("list", error=error)
        return self.wait(self.after_loss(error), error=error)

    def watch_ended(self, ended: Ended) -> Decision:
        self.state = replace(self.state, version=ended.resource_version or self.state.version)
        if ended.lived >= HEALTHY_AFTER or ended.reached_timeout:
            healthy = self.state.backoff.healthy()
            self.state = replace(self.state, backoff=healthy, internal_errors_since=None)
        if ended.error is None:
            return self.watch_closed(ended)
        self.state = replace(self.state, short_watches=0)
        return self.watch_broke(ended.error)

    def watch_closed(self, ended: Ended) -> Decision:
        """The server ended it in good order: routine, unless it does so at once."""
        is_short = ended.lived < SHORT_WATCH and not ended.events and not ended.reached_timeout
        short = self.state.short_watches + 1 if is_short else 0
        self.state = replace(self.state, short_watches=short, unreadable_streams=0)
        if short >= 2:  # seen with versions the server has forgotten without saying so
            return self.distrust(Expired(self.state.version))
        if ended.reached_timeout or ended.lived >= HEALTHY_AFTER:
            return self.watch()
        return self.wait("watch")

    def watch_broke(self, error: KinformError) -> Decision:
        if _is_version_unusable(error):
            return self.distrust_unless_expired(error)
        if isinstance(error, DecodeError):
            unreadable = self.state.unreadable_streams + 1
            self.state = replace(self.state, unreadable_streams=unreadable)
            return self.wait("watch" if unreadable < 2 else "list")
        if isinstance(error, ApiError) and error.code == 500:
            return self.internal_error(error)
        if isinstance(error, ApiError) and error.code != 429:
            return self.wait("list", error=error)
        return self.wait(self.after_loss(error), error=error)

    def internal_error(self, error: ApiError) -> Decision:
        """Keep to the watch for a while: internal errors pass (client-go: RetryWithDeadline)."""
        since = self.state.internal_errors_since
        since = self.now if since is None else since
        keep = self.now - since < self.policy.internal_error_window
        self.state = replace(self.state, internal_errors_since=since if keep else None)
        return self.wait("watch" if keep else "list", error=error)

    def watch(self) -> Decision:
        if not self.state.version:  # a server without versions: what happened since, nobody knows
            return self.list()
        return Decision(replace(self.state, phase="watch"), Rewatch(self.state.version))

    def after_loss(self, error: KinformError) -> Literal["watch", "probe"]:
        """After a lost connection the server may be another one, with an older state."""
        lost = isinstance(error, TransportError) and self.state.version
        return "probe" if lost else "watch"

    # Versions.

    def probed(self, version: str, applied: str) -> Decision:
        if is_older(version, applied):
            self.state = replace(self.state, is_suspect=True, version="")
            return self.wait("list", notices=(Regressed(applied, version),))
        return self.watch() if self.state.phase == "probe" else Decision(self.state, None)

    def distrust(self, notice: Notice, *, error: KinformError | None = None) -> Decision:
        """List next, with the version unset."""
        self.state = replace(self.state, is_suspect=True, short_watches=0)
        return self.wait("list", error=error, notices=(notice,))

    def distrust_unless_expired(self, error: KinformError) -> Decision:
        """A watch's version has expired: a list not older than it will still do."""
        if isinstance(error, ResourceExpiredError):
            notice = Expired(self.state.version)
            return self.wait("list", error=error, notices=(notice,))
        return self.distrust(Expired(self.state.version), error=error)

    # Waits.

    def wait(
        self,
        then: Literal["list", "watch", "probe"],
        *,
        error: KinformError | None = None,
        notices: tuple[Notice, ...] = (),
    ) -> Decision:
        """Wait as the back-off says, and not less than the server asked for."""
        backoff = self.state.backoff
        asked = (error.retry_after or 0.0) if isinstance(error, ApiError) else 0.0
        told = min(asked, MAX_RETRY_AFTER) * (1 + self.rand / 4)
        seconds = max(backoff.delay(rand=self.rand), told)
        state = replace(self.state, phase="wait", after_wait=then, backoff=backoff.failed())
        return Decision(state, Wait(seconds), notices)

    def resume(self) -> Decision:
        match self.state.after_wait:
            case "list":
                return self.list()
            case "watch":
                return self.watch()
            case "probe":
                state = replace(self.state, phase="probe")
                return Decision(state, Probe())


def _is_version_unusable(error: KinformError) -> bool:
    if isinstance(error, ResourceExpiredError):
        return True
    return isinstance(error, ApiError) and error.is_resource_version_too_large


def _is_refusal(error: KinformError) -> bool:
    """Whether the server does not know streamed lists, rather than being in trouble."""
    return isinstance(error, InvalidError) or (
        isinstance(error, ApiError) and error.code in {405, 406, 415}
    )
