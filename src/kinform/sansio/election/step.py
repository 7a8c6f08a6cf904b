"""The decisions of an elector: a table from what happened to what to do next. Pure.

**Promise.** No two candidates believe that they lead at one true instant, as long as their clocks'
rates differ by less than ``lease_duration / renew_deadline`` and no other program edits the Lease.

Why it holds:

1. A leader believes until ``sent + renew_deadline``, by its own clock, where ``sent`` was read
   *before* the last write that the server has confirmed was sent. So it began before the server's
   version of the Lease did. Belief is a deadline, never a flag: no process has to be awake for it
   to end.
2. A challenger leaves the Lease alone until ``seen + duration``, by its own clock, where ``seen``
   was read *after* the answer with that version arrived, and ``duration`` is what that version
   says. So it began after the server's version did.
3. Each write names the version that it replaces, and the server takes it only if that is still
   the one it has. Who takes over replaces the very version that it has watched for so long. A
   renewal, even one whose answer was lost or that was under way for an hour, either made another
   version, or comes too late and is refused.
4. Each write changes something, else the server would keep the version, and a renewal could not
   be seen. So a renewal whose answer shows the old version is none.

Wall clocks play no part in it. What was sent and not answered counts against the sender: belief
is not extended by it, and others see it.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, final

from kinform.errors import ApiError, DecodeError, KinformError, UsageError
from kinform.sansio.election import leases
from kinform.sansio.election.config import JITTER, LeaderElection
from kinform.sansio.election.leases import Lease, LeaseRecord
from kinform.sansio.election.signals import (
    Action,
    Create,
    Delay,
    DelayEnded,
    End,
    Get,
    Got,
    Moment,
    RequestFailed,
    Signal,
    Update,
    Wrote,
)

__all__ = ["Election", "ElectionCounts", "Phase"]

# A request with less time could only fail.
_LEAST: Final = 0.02  # seconds that must be left for a request to make sense


class Phase(enum.Enum):
    """The phase of a candidate."""

    FOLLOWING = "following"
    """Another candidate leads, or none: it tries to acquire the lease."""
    LEADING = "leading"
    """It leads as long as the deadline has not passed."""
    RELEASING = "releasing"
    """It leads no more, and gives the Lease back."""
    ENDED = "ended"
    """It has nothing to do."""


@final
@dataclass(slots=True)
class ElectionCounts:
    """Counters of an election."""

    acquisitions: int = 0
    renewals: int = 0
    failures: int = 0
    """Requests that failed."""
    slow_paths: int = 0
    """Renewals that had to read the Lease first."""


class _Request(enum.Enum):
    """The request that is under way."""

    READ = enum.auto()
    WRITE = enum.auto()
    FAST_RENEWAL = enum.auto()  # a write without a read before it (client-go: the fast path)


class _Seen(NamedTuple):
    """A version of the Lease, and when it was first seen."""

    resource_version: str  # "" if the Lease is gone; the record is then the last there was
    record: LeaseRecord
    at: float


@final
class Election:
    """One candidate for one Lease. `begin`, then `step` with the result of each action.

    Args:
        config: the settings; with an identity and a namespace.

    Raises:
        UsageError: the identity or the namespace is missing.
    """

    def __init__(self, config: LeaderElection) -> None:
        if not config.identity:
            raise UsageError("a candidate needs an identity")
        if not config.namespace:
            raise UsageError("a candidate needs the namespace of its lease")
        self._config: Final = config
        self._namespace: Final = config.namespace
        self.phase: Phase = Phase.ENDED
        self.deadline: float | None = None
        """Until when, by the boot clock, it may believe that it leads; None: it does not."""
        self.fencing_number: str = ""
        """The resourceVersion of the write by which it came to lead; ``""``: it does not."""
        self.failure: KinformError | None = None
        """Why the last request failed; None after one that did not."""
        self.counts: Final = ElectionCounts()
        self._seen: _Seen | None = None
        self._lease: Lease | None = None  # to replace without reading it again, if it is ours
        self._confirmed: LeaseRecord | None = None  # what we have written, as the server says
        self._tried: LeaseRecord | None = None  # what we may have written, if the answer got lost
        self._sent = 0.0  # when that was sent
        self._replaced = ""  # the version it replaces
        self._request = _Request.READ
        self._release_until = 0.0

    @property
    def record(self) -> LeaseRecord | None:
        """The content of the Lease when it was last read; None: never read, or deleted."""
        return self._seen.record if self._seen is not None and self._seen.resource_version else None

    @property
    def holder(self) -> str:
        """The holder of the Lease when it was last read; ``""``: none, or not known."""
        return self.record.holder if self.record is not None else ""

    @property
    def may_hold(self) -> bool:
        """True if the Lease may be ours, so that it should be released."""
        return self.phase is Phase.LEADING or self._tried is not None

    # --- what starts and ends it --------------------------------------------------------------

    def begin(self, at: Moment) -> Action:
        """Become a candidate. It may have been one before."""
        self.phase = Phase.FOLLOWING
        return self._try(at)

    def release(self, at: Moment, within: float | None = None) -> Action:
        """Lead no more, from this instant, and give the Lease back if it may be ours.

        It is tried for ``within`` seconds, the renew deadline at most. The caller must have
        cancelled the request that was under way.
        """
        # Before `abandon`, which resets the phase that it depends on.
        may_hold = self.may_hold
        self.abandon()
        if not may_hold:
            return End("there is nothing to release")
        self.phase = Phase.RELEASING
        longest = self._config.renew_deadline
        self._release_until = at.boot + (longest if within is None else min(within, longest))
        return self._try(at)

    def abandon(self) -> None:
        """Lead no more, from this instant, and leave the Lease as it is."""
        self.phase = Phase.ENDED
        self.deadline = None
        self.fencing_number = ""

    # --- the table ----------------------------------------------------------------------------

    def step(self, signal: Signal, at: Moment) -> Action:
        """Process a signal, and return the next action."""
        if not isinstance(signal, DelayEnded):
            self.failure = signal.error if isinstance(signal, RequestFailed) else None
        if self.phase is Phase.ENDED:
            return End("it is over")
        # Before the signal itself: a renewal that was answered after the deadline must not revive a
        # belief that others may already have acted against.
        if self.phase is Phase.LEADING and self._left(at) <= 0:
            return self._lose(f"not renewed for {self._config.renew_deadline:g} s{self._why()}")
        match signal:
            case DelayEnded():
                return self._try(at)
            case Got(lease):
                return self._got(lease, at)
            case Wrote(lease):
                return self._wrote(lease, at)
            case RequestFailed(error):
                return self._failed(error, at)

    def _try(self, at: Moment) -> Action:
        # client-go: tryAcquireOrRenew, the fast path. It saves a read with each renewal; the server
        # refuses the write if the version has changed.
        if self.phase is Phase.LEADING and self._lease is not None:
            return self._renew(self._lease, at, kind=_Request.FAST_RENEWAL)
        if self.phase is Phase.LEADING:
            self.counts.slow_paths += 1
        return self._get(at)

    def _got(self, lease: Lease | None, at: Moment) -> Action:
        self._observe(lease, at)
        match self.phase:
            case Phase.LEADING:
                return self._got_as_leader(lease, at)
            case Phase.RELEASING:
                return self._got_to_release(lease, at)
            case _:
                return self._got_as_follower(lease, at)

    def _got_as_leader(self, lease: Lease | None, at: Moment) -> Action:
        # By name here, not by `_is_ours`: a leader whose answer got lost must go on, and what it
        # reads may be its own renewal.
        if lease is not None and lease.record.holder != self._config.identity:
            holder = lease.record.holder
            return self._lose(f"it is held by {holder!r} now" if holder else "it has no holder now")
        if lease is not None:
            self._confirmed = lease.record  # perhaps by a write whose answer was lost
        return self._renew(lease, at)  # even if the Lease was deleted: a leader creates it again

    def _got_as_follower(self, lease: Lease | None, at: Moment) -> Action:
        seen = self._seen
        if seen is None:
            return self._write(None, self._new_record(0, at), at)
        record = seen.record
        if self._is_ours(record):
            self._confirmed = record
            return self._renew(lease, at)
        duration = record.duration or self._config.lease_duration
        if record.holder and at.boot < seen.at + duration:
            return self._pause(at)
        return self._write(lease, self._new_record(record.transitions + 1, at), at)

    def _got_to_release(self, lease: Lease | None, at: Moment) -> Action:
        # By record and not by name: a lease that another process holds under the same name must not
        # be released.
        if lease is None or not self._is_ours(lease.record):
            return self._finish("it is not ours any more")
        self._confirmed = lease.record
        time = leases.micro_time(at.wall, unlike=lease.record.renew_time)
        released = LeaseRecord(
            # One second, as in client-go (``release``).
            duration=1,
            acquire_time=time,
            renew_time=time,
            transitions=lease.record.transitions,
        )
        return self._write(lease, released, at)

    def _wrote(self, lease: Lease, at: Moment) -> Action:
        tried = self._tried
        if tried is None or lease.record.holder != tried.holder:
            return self._failed(DecodeError("the server answered a write with another lease"), at)
        # Reason 4 above: the server keeps the version of a write that changes nothing, and then no
        # challenger has seen it.
        if lease.resource_version == self._replaced:
            return self._failed(DecodeError("the server has not changed the lease"), at)
        self._observe(lease, at)
        if self.phase is Phase.RELEASING:
            return self._finish("released")
        self._lease, self._confirmed = lease, lease.record
        return self._confirm(lease, at)

    def _confirm(self, lease: Lease, at: Moment) -> Action:
        # From when it was sent, not answered (reason 1): an answer may be under way for longer than
        # the deadline, for example while this process was suspended.
        deadline = self._sent + self._config.renew_deadline
        if self.phase is Phase.LEADING:
            self.counts.renewals += 1
        elif at.boot >= deadline:
            return self._pause(at)  # we were stopped meanwhile; it is ours, but we cannot use it
        else:
            self.phase = Phase.LEADING
            self.counts.acquisitions += 1
            self.fencing_number = lease.resource_version
        self._tried = None
        self.deadline = deadline
        return self._pause(at)

    def _failed(self, error: KinformError, at: Moment) -> Action:
        self.counts.failures += 1
        self.failure = error
        self._lease = None  # whether it is still the newest one is not known
        if self._request is not _Request.READ and _is_refusal(error):
            self._tried = None  # it has changed nothing
        if self._request is _Request.FAST_RENEWAL:
            return self._try(at)  # at once, but with a read
        return self._pause(at)

    # --- actions ------------------------------------------------------------------------------

    def _get(self, at: Moment) -> Action:
        self._request = _Request.READ
        timeout = self._timeout(at)
        return Get(timeout) if timeout >= _LEAST else self._pause(at)

    def _renew(self, lease: Lease | None, at: Moment, *, kind: _Request = _Request.WRITE) -> Action:
        """Write the same record with a new time; create the Lease if it was deleted."""
        before = self._seen.record if self._seen is not None else None
        record = self._new_record(before.transitions if before else 0, at)
        # A renewal does not change the leader: the time of acquisition stays, as in client-go.
        if before is not None and before.acquire_time:
            record = replace(record, acquire_time=before.acquire_time)
        return self._write(lease, record, at, kind=kind)

    def _write(
        self,
        lease: Lease | None,
        record: LeaseRecord,
        at: Moment,
        *,
        kind: _Request = _Request.WRITE,
    ) -> Action:
        self._request = kind
        timeout = self._timeout(at)
        if timeout < _LEAST:
            return self._pause(at)
        # ``_tried`` before the request: if its answer gets lost, the record is found in the Lease
        # and recognised as ours.
        self._tried, self._sent = record, at.boot
        self._replaced = lease.resource_version if lease is not None else ""
        body = leases.lease_body(
            record,
            name=self._config.lease,
            namespace=self._namespace,
            labels=self._config.labels,
            replacing=lease,
        )
        return Create(body, timeout) if lease is None else Update(body, timeout)

    def _pause(self, at: Moment) -> Action:
        """Wait before the next try, after any answer, so that there is never a busy loop."""
        period = self._config.retry_period
        match self.phase:
            case Phase.LEADING:
                # Not beyond the deadline, so that its end is noticed on time and not at the next
                # renewal.
                return Delay(min(period, max(_LEAST, self._left(at))))
            case Phase.RELEASING if at.boot + period >= self._release_until:
                return self._finish(f"not released{self._why()}")
            case Phase.RELEASING:
                return Delay(period)
            case _:
                # Spread, so that challengers that saw the same Lease expire do not all write at
                # once.
                return Delay(period * (1 + JITTER * at.rand))

    def _lose(self, reason: str) -> Action:
        self.abandon()
        return End(reason)

    def _finish(self, reason: str) -> Action:
        self._tried = None
        self.abandon()
        return End(reason)

    # --- state --------------------------------------------------------------------------------

    def _observe(self, lease: Lease | None, at: Moment) -> None:
        """Remember when this version was first seen. A deleted Lease counts as a version, too.

        A candidate that saw the holder waits even then: the holder may lead, and create the Lease
        again. The version counts, not the record: a wall clock that was set back may write the same
        times twice.
        """
        seen = self._seen
        version = lease.resource_version if lease is not None else ""
        if seen is not None and seen.resource_version == version:
            return
        if lease is not None:
            self._seen = _Seen(version, lease.record, at.boot)
        elif seen is not None:
            self._seen = seen._replace(resource_version="", at=at.boot)

    def _is_ours(self, record: LeaseRecord) -> bool:
        """Return whether we wrote this very record, to the microsecond.

        The same identity alone does not prove it: others may use it by mistake.
        """
        return bool(record.holder) and record in {self._confirmed, self._tried}

    def _new_record(self, transitions: int, at: Moment) -> LeaseRecord:
        before = self._seen.record.renew_time if self._seen is not None else ""
        time = leases.micro_time(at.wall, unlike=before)
        return LeaseRecord(
            holder=self._config.identity,
            duration=int(self._config.lease_duration),
            acquire_time=time,
            renew_time=time,
            # The API server refuses a number that does not fit, and then no candidate could ever
            # lead again.
            transitions=min(transitions, leases.MAX_INT32),
        )

    def _why(self) -> str:
        return f": {self.failure}" if self.failure is not None else ""

    def _left(self, at: Moment) -> float:
        return self.deadline - at.boot if self.deadline is not None else 0.0

    def _timeout(self, at: Moment) -> float:
        """Return the timeout of a request: half the renew deadline, or the rest of it."""
        # Half of it, so that a request that hangs leaves time for a second try.
        most = self._config.renew_deadline / 2
        match self.phase:
            case Phase.LEADING:
                return min(most, self._left(at))
            case Phase.RELEASING:
                return min(most, self._release_until - at.boot)
            case _:
                return most


def _is_refusal(error: KinformError) -> bool:
    """Return whether the server has certainly not executed the request."""
    # A 5xx or a timeout may have been executed: its record may still appear in the Lease. 408 is a
    # timeout.
    return isinstance(error, ApiError) and 400 <= error.code < 500 and error.code != 408
