"""The messages between an elector and its decision table.

`Action`: a request to send. `Signal`: its result. `Moment`: the time, as three numbers, because
the table knows neither clocks nor chance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias, final

from kinform.errors import KinformError
from kinform.sansio.election.leases import Lease

__all__ = [
    "Action",
    "Create",
    "Delay",
    "DelayEnded",
    "End",
    "Get",
    "Got",
    "Moment",
    "RequestFailed",
    "Signal",
    "Update",
    "Wrote",
]


class Moment(NamedTuple):
    """When something happens.

    For a signal, all of it is read after what the signal tells has happened. The request that the
    signal leads to is sent after that: so ``boot`` is never later than the sending.
    """

    boot: float
    """Seconds of a clock that counts suspend and never jumps. All is decided by it."""
    wall: float
    """Seconds since 1970, for the times that people read in a Lease."""
    rand: float
    """A number in [0, 1) by which challengers come at different times."""


# --- Actions: what the elector does next ------------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class Get:
    """Read the Lease, the newest one there is."""

    timeout: float


@final
@dataclass(frozen=True, slots=True)
class Create:
    """Create the Lease."""

    body: Mapping[str, object] = field(repr=False)
    timeout: float


@final
@dataclass(frozen=True, slots=True)
class Update:
    """Replace the Lease; the version in ``body`` must be the server's."""

    body: Mapping[str, object] = field(repr=False)
    timeout: float


@final
@dataclass(frozen=True, slots=True)
class Delay:
    """Wait, then signal `DelayEnded`."""

    seconds: float


@final
@dataclass(frozen=True, slots=True)
class End:
    """The end: leadership is lost, or released."""

    reason: str


Action: TypeAlias = Get | Create | Update | Delay | End


# --- Signals: the results of actions ----------------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class Got:
    """The Lease was read; None: there is none."""

    lease: Lease | None


@final
@dataclass(frozen=True, slots=True)
class Wrote:
    """The Lease was created or replaced, and the server answered with this."""

    lease: Lease


@final
@dataclass(frozen=True, slots=True)
class RequestFailed:
    """The request could not be sent, was refused, or the answer is malformed."""

    error: KinformError


@final
@dataclass(frozen=True, slots=True)
class DelayEnded:
    """The wait has ended."""


Signal: TypeAlias = Got | Wrote | RequestFailed | DelayEnded
