"""Leases as the election reads and writes them: the holder, its duration and its times.

Reading is lenient, because anyone may edit a Lease: a malformed field counts as missing. Writing
changes only the fields of a leader; everything else in the object stays as the server sent it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, cast, final

from kinform.errors import DecodeError

__all__ = ["MAX_INT32", "Lease", "LeaseRecord", "lease_body", "micro_time", "read_lease"]

MAX_INT32: Final = 2**31 - 1
"""The largest number of seconds or transitions that a Lease can hold."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST: Final = datetime(1, 1, 1, tzinfo=UTC)
_LAST: Final = datetime(9999, 12, 31, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRecord:
    """The leader's fields in a Lease (client-go: LeaderElectionRecord)."""

    holder: str = ""
    """The leader's identity; ``""``: no leader."""
    duration: int | None = None
    """Seconds that other candidates must wait after each change; None: not set."""
    acquire_time: str = ""
    """When it was acquired, by the leader's wall clock; nothing is decided by it."""
    renew_time: str = ""
    """When it was renewed, likewise."""
    transitions: int = 0
    """The number of leader changes."""

    def spec(self) -> dict[str, object]:
        """Return the fields of ``spec`` that say this."""
        return {
            "holderIdentity": self.holder or None,
            "leaseDurationSeconds": self.duration,
            "acquireTime": self.acquire_time or None,
            "renewTime": self.renew_time or None,
            "leaseTransitions": self.transitions,
        }


@final
@dataclass(frozen=True, slots=True)
class Lease:
    """A Lease that a server has sent: one version of it."""

    resource_version: str
    record: LeaseRecord
    content: Mapping[str, object] = field(repr=False)
    """The whole object, not to be changed."""


def read_lease(content: Mapping[str, object]) -> Lease:
    """Return the Lease in a server's answer.

    Raises:
        DecodeError: it has no resourceVersion, so it cannot be written back safely.
    """
    version = _mapping(content.get("metadata")).get("resourceVersion")
    if not isinstance(version, str) or not version:
        raise DecodeError("the lease has no version", path="$.metadata.resourceVersion")
    spec = _mapping(content.get("spec"))
    holder = spec.get("holderIdentity")
    record = LeaseRecord(
        # A holder that is not a string still holds the lease.
        holder="" if holder is None else str(holder),
        # Not our own duration by default: the one in the record counts, if it has one (kubernetes
        # PR#114872).
        duration=_number(spec.get("leaseDurationSeconds")) or None,
        acquire_time=_text(spec.get("acquireTime")),
        renew_time=_text(spec.get("renewTime")),
        transitions=_number(spec.get("leaseTransitions")),
    )
    return Lease(version, record, content)


def lease_body(
    record: LeaseRecord,
    *,
    name: str,
    namespace: str,
    labels: Mapping[str, str],
    replacing: Lease | None = None,
) -> dict[str, object]:
    """Return the object to send: ``replacing`` with another record, or a new one.

    Labels are added to the existing ones. All other fields stay, above all the resourceVersion: the
    server refuses the write if another candidate was faster.
    """
    body: dict[str, object] = {} if replacing is None else dict(replacing.content)
    body |= {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    metadata = _mapping(body.get("metadata")) | {"name": name, "namespace": namespace}
    if merged := _mapping(metadata.get("labels")) | dict(labels):
        metadata["labels"] = merged
    body["metadata"] = metadata
    body["spec"] = _mapping(body.get("spec")) | record.spec()
    return body


def micro_time(wall: float, *, unlike: str = "") -> str:
    """Return a wall-clock time as Kubernetes' MicroTime, but never the one in ``unlike``.

    For the server a write without a change is not a write: the version stays, and no candidate
    sees the renewal. So a clock that stands still, or was set back, is advanced.
    """
    try:
        moment = min(_EPOCH + timedelta(seconds=wall), _LAST)
    except OverflowError:  # a clock beyond what people call a date
        moment = _LAST if wall > 0 else _FIRST
    text = _micro(moment)
    return text if text != unlike else _micro(moment + _MICROSECOND)


def _micro(moment: datetime) -> str:
    return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _mapping(value: object) -> dict[str, object]:
    """Return a copy of ``value``; of anything but an object, an empty one."""
    return dict(cast("Mapping[str, object]", value)) if isinstance(value, Mapping) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> int:
    """Return a number that a Lease can hold; 0 for anything else."""
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    # A negative duration would let every candidate take over at once.
    return value if 0 <= value <= MAX_INT32 else 0
