"""The configuration of a leader election: the lease and its timing, checked when it is made."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, final

from kinform.errors import UsageError
from kinform.sansio.election.leases import MAX_INT32

__all__ = ["JITTER", "LeaderElection"]

JITTER: Final = 1.2
"""Candidates wait one retry period, plus up to this factor of it at random (as client-go)."""

_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAMESPACE: Final = re.compile(_LABEL)
_NAME: Final = re.compile(rf"{_LABEL}(\.{_LABEL})*")


def _no_labels() -> dict[str, str]:
    return {}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElection:
    """Configures the leader election among the replicas of one program.

    ``LeaderElection(lease="widgets", namespace="ops")`` is enough. All replicas name the same
    lease; other times than the defaults should be the same in all of them, but need not.

    Raises:
        UsageError: a name cannot be one, or the times do not fit together: it takes
            ``lease_duration > renew_deadline > 1.2 * retry_period > 0``.
    """

    lease: str
    """The name of the Lease. It is created if there is none."""
    namespace: str | None = None
    """The namespace of the lease; None: the client's own namespace."""
    identity: str = ""
    """The identity of this replica; ``""``: the host name with random letters, new at each start.

    A lease with this identity that this process has not written belongs to another process:
    replicas that share an identity by mistake do not lead at once, and after a crash the old lease
    must expire first even if the identity is the same.
    """
    lease_duration: float = 15.0
    """Seconds that others wait after the last renewal they saw, before they take over."""
    renew_deadline: float = 10.0
    """Seconds after the request of its last successful renewal at which a leader stops."""
    retry_period: float = 2.0
    """Seconds between two tries: of a leader exactly, of a challenger up to 2.2 times that."""
    release_on_exit: bool = True
    """True: a leader that stops releases the lease, so that the next one need not wait."""
    labels: Mapping[str, str] = field(default_factory=_no_labels)
    """Labels to add to the Lease."""

    def __post_init__(self) -> None:
        _check_name("lease", self.lease, _NAME, longest=253)
        if self.namespace is not None:
            _check_name("namespace", self.namespace, _NAMESPACE, longest=63)
        # It appears in the Lease, in logs and in ``kubectl get lease``: control characters could
        # forge a line there.
        if self.identity != self.identity.strip() or not self.identity.isprintable():
            raise UsageError(
                f"identity is {self.identity!r}; expected printable text without spaces around it"
            )
        self._check_times()

    @property
    def rate_tolerance(self) -> float:
        """The factor by which one replica's clock may run faster than another's: 1.5 by default.

        Up to that factor, no two replicas believe at once that they lead. It is the lease duration
        divided by the renew deadline.
        """
        return self.lease_duration / self.renew_deadline

    def _check_times(self) -> None:
        times = {
            "lease_duration": self.lease_duration,
            "renew_deadline": self.renew_deadline,
            "retry_period": self.retry_period,
        }
        for name, seconds in times.items():
            if not (math.isfinite(seconds) and seconds > 0):
                raise UsageError(f"{name} is {seconds!r}; expected a positive number of seconds")
        # Rounding would make others wait for another time than the one that this replica counts
        # with.
        if self.lease_duration % 1 or self.lease_duration > MAX_INT32:
            raise UsageError(
                f"lease_duration is {self.lease_duration!r}; a Lease has whole seconds only"
            )
        if self.lease_duration <= self.renew_deadline:
            raise UsageError(
                f"lease_duration ({self.lease_duration:g}) must be longer than renew_deadline "
                f"({self.renew_deadline:g}): a leader must stop before others take over"
            )
        if self.renew_deadline <= JITTER * self.retry_period:
            raise UsageError(
                f"renew_deadline ({self.renew_deadline:g}) must be longer than {JITTER} times "
                f"retry_period ({self.retry_period:g}): a leader needs time for a second try"
            )


def _check_name(what: str, name: str, pattern: re.Pattern[str], *, longest: int) -> None:
    if len(name) > longest or not pattern.fullmatch(name):
        raise UsageError(
            f"{what} {name!r} cannot be a name in Kubernetes; expected small letters, digits and "
            f"dashes, at most {longest} of them"
        )
