"""The state of a reflector's decisions: its phase, and values for all that decisions depend on.

`kinform.sansio.reflector.step.step` maps a state and a signal to the next state. Everything here is
an immutable value.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, Literal, TypeAlias, final

from kinform.sansio.backoff import Backoff
from kinform.sansio.reflector.opening_budget import OpeningBudget
from kinform.sansio.retry import MAX_RETRY_AFTER

__all__ = [
    "Clearing",
    "CorruptedObjects",
    "ListMode",
    "Listing",
    "Phase",
    "ProbeTimer",
    "Probing",
    "ServerHealth",
    "State",
    "Streaming",
    "Waiting",
    "Watching",
]

REPAIR_AFTER: Final = 10.0
"""The first interval after which a corrupted object is listed again; the watch goes on meanwhile.
"""
REPAIR_AT_MOST: Final = 3600.0
"""The longest such interval: a proxy may corrupt objects for ever."""
REPAIR_ANEW: Final = 3 * REPAIR_AT_MOST
"""A corrupted object that arrives so long after the last repair begins with the first interval."""

PROBE_AGAIN: Final = 30.0
"""The wait after which an overdue probe that failed is repeated; up to twice as long."""


# --- Phases -----------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class Listing:
    """A plain list is under way."""

    name: ClassVar[str] = "list"
    repairs: bool = False
    """The only reason for the list is a corrupted object."""


@final
@dataclass(frozen=True, slots=True)
class Streaming:
    """A streamed list (watch-list) is under way, up to its end bookmark."""

    name: ClassVar[str] = "stream"
    repairs: bool = False
    """The only reason for the list is a corrupted object."""


@final
@dataclass(frozen=True, slots=True)
class Clearing:
    """The store is being emptied: the resource is no longer served."""

    name: ClassVar[str] = "clear"


@final
@dataclass(frozen=True, slots=True)
class Watching:
    """A watch is being opened, or is open."""

    name: ClassVar[str] = "watch"


@final
@dataclass(frozen=True, slots=True)
class Probing:
    """A probe is under way; a watch follows unless the probe shows a regression."""

    name: ClassVar[str] = "probe"


@final
@dataclass(frozen=True, slots=True)
class Waiting:
    """Nothing is under way until a backoff, a budget or a ``Retry-After`` has passed."""

    name: ClassVar[str] = "wait"
    then: Literal["list", "watch"] = "list"
    """The request that follows the wait. A probe comes before a watch."""
    repairs: bool = False
    """The only reason for that list is a corrupted object."""


Phase: TypeAlias = Listing | Streaming | Clearing | Watching | Probing | Waiting


# --- Values -----------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ServerHealth:
    """Failures in a row, by what failed. A counter is 0 after the first success."""

    failed_openings: int = 0
    """Watches that could not be opened, or broke at once without an event."""
    short_watches: int = 0
    """Watches that ended cleanly within a second and without an event."""
    unreadable_watches: int = 0
    """Watches that ended with data that cannot be decoded or stored."""
    failed_streams: int = 0
    """Streamed lists that did not reach their end bookmark."""
    failed_probes: int = 0
    """Probes without an answer."""
    is_unprobed: bool = False
    """A watch is opened without a probe, or long after it; the next answer ends that."""
    # Two times instead of a counter: as in client-go (RetryWithDeadline) a series is bounded by its
    # duration.
    internal_errors: tuple[float, float] | None = None
    """The times of the first and the last internal error of the current series."""
    absent_since: float | None = None
    """When discovery first proved that no version serves the resource; ``None``: it did not."""
    was_slow: bool = False
    """The last plain list took longer than ten seconds."""

    @property
    def needs_probe(self) -> bool:
        """True if the version has to be probed as soon as a watch is open."""
        return self.is_unprobed or self.failed_probes > 0

    def listed(self) -> ServerHealth:
        """Return the health after a list, plain or streamed, that was complete."""
        # ``failed_openings`` stays: a plain list says nothing about watches. If a list reset it, a
        # server that breaks every watch would never be followed by lists (rule 9).
        return replace(
            self, absent_since=None, short_watches=0, unreadable_watches=0, failed_streams=0
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ListMode:
    """The form of the next list: streamed or plain, whole or in pages."""

    is_plain_next: bool = False
    """The next list is a plain one although the server can stream lists."""
    plain_until: float = float("-inf")
    """Until when lists are not streamed: the server has refused."""
    has_paginated: bool = False
    """A list of any version came in pages: this resource has no watch cache."""
    is_whole: bool = False
    """Plain lists are requested without pages: a continue token has expired, and no plain
    list was complete since (client-go: FullListIfExpired)."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeTimer:
    """The schedule of probes beside an open watch."""

    due: float = 0.0
    not_before: float = 0.0
    """The end of the wait that the server asked for with its last error."""

    def put_off(self, *, now: float, rand: float, period: float) -> ProbeTimer:
        """Return the schedule after a list or a probe at ``now``: both show the version."""
        # Spread by a tenth: informers that were started together would otherwise probe together for
        # ever.
        return replace(self, due=now + period * (0.9 + rand / 5))

    def overdue(self, now: float) -> ProbeTimer:
        """Return the schedule of a watch that was opened without a probe: probe at once."""
        return replace(self, due=now)

    def failed(self, *, now: float, rand: float) -> ProbeTimer:
        """Return the schedule after a probe that was overdue has failed."""
        return replace(self, due=now + PROBE_AGAIN * (1 + rand))

    def refused(self, *, now: float, retry_after: float) -> ProbeTimer:
        """Return the schedule after the server asked for a wait of ``retry_after`` seconds."""
        # Kept apart from ``due``, which every list and probe moves: a wait that the server asked
        # for must survive those.
        return replace(self, not_before=now + min(retry_after, MAX_RETRY_AFTER))

    def shared(self, age: float) -> ProbeTimer:
        """Return the schedule after the answer of a probe that was sent ``age`` seconds ago."""
        # Without this, informers that share probes would each add the age of the shared one to
        # their period, and a restored server would be noticed later than the guaranteed six
        # minutes.
        return replace(self, due=self.due - max(0.0, age))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CorruptedObjects:
    """The schedule of lists for objects that arrived corrupted: no watch brings them again."""

    backoff: Backoff = field(
        default_factory=lambda: Backoff(first=REPAIR_AFTER, cap=REPAIR_AT_MOST)
    )
    repaired: float = float("-inf")
    """When the last list for them began."""
    due: float | None = None
    """When the next list for them begins; ``None``: there are no such objects."""

    def seen(self, *, now: float, rand: float) -> CorruptedObjects:
        """Return the schedule after a corrupted object arrived."""
        return replace(self, due=now + self._at(now).delay(rand=rand))

    def cleared(self) -> CorruptedObjects:
        """Return the schedule when there are no such objects, or the list for them begins."""
        return replace(self, due=None)

    def begun(self, now: float) -> CorruptedObjects:
        """Return the schedule after a list for them began at ``now``."""
        # The backoff grows when the list begins, not when it fails: a proxy that corrupts one
        # object for ever lets every list succeed.
        return CorruptedObjects(backoff=self._at(now).failed(), repaired=now)

    def _at(self, now: float) -> Backoff:
        return self.backoff if now - self.repaired <= REPAIR_ANEW else self.backoff.healthy()


# --- State ------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Everything that the reflector's decisions depend on."""

    phase: Phase = field(default_factory=Waiting)
    version: str = ""
    """The last version applied; ``""`` before the first list."""
    # Not the same as an empty version: a suspect version is kept, so that the next list can report
    # whether the server went back.
    is_suspect: bool = False
    """The version must not be used for the next list."""
    # Remembered for the second 410 of one version: then the list in between, which asked for
    # nothing older, did not get past it, and only the newest state helps.
    expired: str = ""
    """The last version that had expired when a watch began from it."""
    has_listed: bool = False
    """A list is in the store, and the resource has been served since."""
    backoff: Backoff = field(default_factory=Backoff)
    lists: OpeningBudget = field(default_factory=OpeningBudget)
    """When lists and probes began."""
    watches: OpeningBudget = field(default_factory=OpeningBudget)
    """When watches and streamed lists began."""
    health: ServerHealth = field(default_factory=ServerHealth)
    list_mode: ListMode = field(default_factory=ListMode)
    corrupted: CorruptedObjects = field(default_factory=CorruptedObjects)
    probe_timer: ProbeTimer = field(default_factory=ProbeTimer)
