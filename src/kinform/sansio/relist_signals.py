"""What a reflector and its table of decisions say to each other.

`Action`: do this. `Signal`: this came of it. `Notice`: somebody should hear about that.
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
    """The reflector begins, perhaps not for the first time: it may have been cancelled anywhere."""

    resource_version: str = ""
    """The last version applied; ``""``: none."""


@final
@dataclass(frozen=True, slots=True)
class Listed:
    """A list is in the store.

    ``paginated`` tells that a list of any version (``"0"``) came in pages; ``took`` is how long it
    took in seconds.
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
    """The last version applied, from it or before it; ``""``: none."""
    lived: float
    events: int
    error: KinformError | None = None
    """``None``: the server ended it in good order."""
    reached_timeout: bool = False
    """Whether it ended because the time it asked for was over."""
    repairs: bool = False
    """Whether it was ended by us, to list what came damaged once more."""


@final
@dataclass(frozen=True, slots=True)
class Waited:
    """The wait is over."""


@final
@dataclass(frozen=True, slots=True)
class Probed:
    """The server's version, from a probe; ``applied`` is ours when it was asked.

    Also comes every five minutes while a watch is open, which goes on meanwhile.
    """

    resource_version: str
    applied: str
    is_stale: bool = False
    """Whether the answer took so long that the server has to be probed again beside the watch."""


Signal: TypeAlias = Started | Listed | Streamed | Cleared | Failed | Ended | Waited | Probed


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
    """Lists of this kind could not be streamed: plain ones for an hour, or only the next one."""

    for_an_hour: bool
    """Whether the server refused, so that this is remembered."""


@final
@dataclass(frozen=True, slots=True)
class Gone:
    """The server has no such kind any more (a CRD was deleted); it is asked for again and again."""


Notice: TypeAlias = Regressed | Expired | Unstreamed | Gone
