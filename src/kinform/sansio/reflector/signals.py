"""Messages between a reflector and its decisions (`kinform.sansio.reflector.step`).

An `Action` is the next thing to do, a `Signal` its outcome, a `Notice` something to report.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, final

from kinform.errors import KinformError

__all__ = [
    "Action",
    "Clear",
    "Cleared",
    "Ended",
    "Expired",
    "Failed",
    "Gone",
    "Listed",
    "Notice",
    "Probe",
    "Probed",
    "Regressed",
    "Relist",
    "Rewatch",
    "Signal",
    "Started",
    "StreamList",
    "Streamed",
    "Unstreamed",
    "Wait",
    "Waited",
]

# --- Actions ----------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class StreamList:
    """Open a watch with ``sendInitialEvents`` into a temporary store, until its end bookmark."""

    resource_version: str


@final
@dataclass(frozen=True, slots=True)
class Relist:
    """List, page by page if ``page_size`` is set, and replace the contents of the store."""

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
    """List one object with the version unset, to learn the server's current version."""


@final
@dataclass(frozen=True, slots=True)
class Clear:
    """Empty the store: the resource is no longer served."""


@final
@dataclass(frozen=True, slots=True)
class Wait:
    """Wait, then signal `Waited`."""

    seconds: float


Action: TypeAlias = StreamList | Relist | Rewatch | Probe | Clear | Wait | None
"""``None``: continue the open watch. Any other action ends it."""


# --- Signals ----------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class Started:
    """The reflector starts, or starts again after it was cancelled in any phase."""

    resource_version: str = ""
    """The last version applied; ``""``: none."""


@final
@dataclass(frozen=True, slots=True)
class Listed:
    """A list is in the store.

    ``paginated``: a list of any version (``"0"``) came in pages; ``took``: its duration in seconds.
    """

    resource_version: str
    paginated: bool = False
    took: float = 0.0


@final
@dataclass(frozen=True, slots=True)
class Cleared:
    """The store is empty."""


@final
@dataclass(frozen=True, slots=True)
class Streamed:
    """The end bookmark arrived, and the streamed list is in the store; the watch goes on."""

    resource_version: str


@final
@dataclass(frozen=True, slots=True)
class Failed:
    """A request failed or was refused: list, watch, streamed list or probe."""

    error: KinformError


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """An open watch, or streamed list, has ended."""

    resource_version: str
    """The last version applied, from it or before it; ``""``: none."""
    lived: float
    events: int
    error: KinformError | None = None
    """``None``: the server ended it cleanly."""
    reached_timeout: bool = False
    """It lasted until the timeout that the reflector requested."""
    repairs: bool = False
    """The reflector ended it, to list corrupted objects again."""


@final
@dataclass(frozen=True, slots=True)
class Waited:
    """The wait is over."""


@final
@dataclass(frozen=True, slots=True)
class Probed:
    """The server's version, from a probe; ``applied`` was the reflector's when it was sent.

    Probes are also sent every five minutes while a watch is open; the watch goes on meanwhile.
    """

    resource_version: str
    # Of the moment at which the probe was sent. Compared with the version at its answer, every slow
    # probe beside a busy watch would look like a regression.
    applied: str
    is_stale: bool = False
    """The answer took so long that the server has to be probed again beside the watch."""


Signal: TypeAlias = Started | Listed | Streamed | Cleared | Failed | Ended | Waited | Probed


# --- Notices ----------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class Regressed:
    """The server's version went back (etcd was restored from a backup): a relist follows."""

    before: str
    now: str


@final
@dataclass(frozen=True, slots=True)
class Expired:
    """The server no longer has the applied version, or never had it: a relist follows."""

    resource_version: str


@final
@dataclass(frozen=True, slots=True)
class Unstreamed:
    """Lists could not be streamed: plain lists follow, for an hour or only once."""

    for_an_hour: bool
    """The server refused streamed lists, which is remembered."""


@final
@dataclass(frozen=True, slots=True)
class Gone:
    """The resource is no longer served (a CRD was deleted). Lists go on, in case it returns."""


Notice: TypeAlias = Regressed | Expired | Unstreamed | Gone
