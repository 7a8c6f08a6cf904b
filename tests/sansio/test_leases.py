"""Leases and their election's configuration: read, written, checked."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.errors import DecodeError, UsageError
from kinform.sansio.election.config import LeaderElection
from kinform.sansio.election.leases import (
    MAX_INT32,
    Lease,
    LeaseRecord,
    lease_body,
    micro_time,
    read_lease,
)

texts = st.text(min_size=1, max_size=20)
records = st.builds(
    LeaseRecord,
    holder=texts | st.just(""),
    duration=st.none() | st.integers(1, MAX_INT32),
    acquire_time=texts | st.just(""),
    renew_time=texts | st.just(""),
    transitions=st.integers(0, MAX_INT32),
)


def body(
    record: LeaseRecord, labels: dict[str, str] | None = None, replacing: Lease | None = None
) -> dict[str, object]:
    return lease_body(
        record, name="widgets", namespace="ops", labels=labels or {}, replacing=replacing
    )


def lease(version: str = "7", **parts: object) -> Lease:
    return read_lease({"metadata": {"name": "widgets", "resourceVersion": version}, **parts})


@given(records)
def test_a_record_is_read_as_it_was_written(record: LeaseRecord) -> None:
    """CG-L10."""
    written = body(record, replacing=lease())
    assert read_lease(written).record == record


def test_what_a_leader_does_not_own_stays_as_it_was() -> None:
    found = read_lease(
        {
            "metadata": {
                "name": "widgets",
                "resourceVersion": "7",
                "uid": "u",
                "annotations": {"note": "mine"},
                "labels": {"team": "a", "app": "old"},
            },
            "spec": {"holderIdentity": "x", "strategy": "OldestEmulationVersion", "new": 1},
            "status": {"later": True},
        }
    )
    written = body(LeaseRecord(holder="y", duration=15), {"app": "widgets"}, replacing=found)
    assert written["metadata"] == {
        "name": "widgets",
        "namespace": "ops",
        "resourceVersion": "7",
        "uid": "u",
        "annotations": {"note": "mine"},
        "labels": {"team": "a", "app": "widgets"},
    }
    assert written["status"] == {"later": True}
    assert written["spec"] == {
        "holderIdentity": "y",
        "leaseDurationSeconds": 15,
        "acquireTime": None,
        "renewTime": None,
        "leaseTransitions": 0,
        "strategy": "OldestEmulationVersion",
        "new": 1,
    }
    assert found.record.holder == "x"  # nothing was changed in place
    assert found.content["metadata"] != written["metadata"]


@pytest.mark.parametrize("labels", [None, {}, {"team": "a"}], ids=str)
def test_labels_are_merged_whether_or_not_there_are_any(labels: dict[str, str] | None) -> None:
    """CG-L20."""
    found = read_lease({"metadata": {"resourceVersion": "7", "labels": labels}})
    metadata = body(LeaseRecord(), {"app": "w"}, replacing=found)["metadata"]
    assert isinstance(metadata, dict)
    assert metadata["labels"] == {"app": "w", **(labels or {})}
    unlabelled = body(LeaseRecord())["metadata"]
    assert unlabelled == {"name": "widgets", "namespace": "ops"}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (None, LeaseRecord()),
        ("nonsense", LeaseRecord()),
        ({}, LeaseRecord()),
        ({"holderIdentity": None, "leaseDurationSeconds": None}, LeaseRecord()),
        ({"leaseDurationSeconds": -3, "leaseTransitions": -1}, LeaseRecord()),
        ({"leaseDurationSeconds": 0, "leaseTransitions": "many"}, LeaseRecord()),
        ({"leaseDurationSeconds": True, "leaseTransitions": 2**40}, LeaseRecord()),
        ({"acquireTime": 7, "renewTime": ["x"]}, LeaseRecord()),
        ({"holderIdentity": 7, "renewTime": "soon"}, LeaseRecord(holder="7", renew_time="soon")),
    ],
    ids=str,
)
def test_what_makes_no_sense_counts_as_not_there(spec: object, expected: LeaseRecord) -> None:
    assert lease(spec=spec).record == expected


@pytest.mark.parametrize(
    "metadata", [None, [], {}, {"resourceVersion": 7}, {"resourceVersion": ""}]
)
def test_a_lease_without_a_version_is_not_one(metadata: object) -> None:
    with pytest.raises(DecodeError, match="resourceVersion"):
        read_lease({"metadata": metadata, "spec": {"holderIdentity": "x"}})


def test_times_are_micro_times() -> None:
    assert micro_time(0.0) == "1970-01-01T00:00:00.000000Z"
    assert micro_time(1_767_225_600.25) == "2026-01-01T00:00:00.250000Z"
    assert micro_time(-1.0) == "1969-12-31T23:59:59.000000Z"


@given(st.floats(allow_nan=False))
def test_a_time_is_never_the_one_before_and_always_a_date(wall: float) -> None:
    before = micro_time(wall)
    after = micro_time(wall, unlike=before)
    assert after != before
    assert datetime.fromisoformat(after).tzinfo == UTC
    assert len(after) == len(before) == len("2026-01-01T00:00:00.250000Z")


# --- configuration


def test_the_times_are_client_gos_and_tolerate_half_as_much_again() -> None:
    election = LeaderElection(lease="widgets")
    assert (election.lease_duration, election.renew_deadline, election.retry_period) == (15, 10, 2)
    assert election.rate_tolerance == 1.5
    assert LeaderElection(lease="w", lease_duration=12, renew_deadline=10).rate_tolerance == 1.2


@pytest.mark.parametrize(
    ("times", "complaint"),
    [
        ((10, 10, 2), "must be longer than renew_deadline"),
        ((5, 10, 2), "must be longer than renew_deadline"),
        ((15, 2.4, 2), "must be longer than 1.2 times retry_period"),
        ((15, 2, 2), "must be longer than 1.2 times retry_period"),
        ((15.5, 10, 2), "whole seconds"),
        ((2**31, 10, 2), "whole seconds"),
        ((15, 10, 0), "retry_period is 0"),
        ((15, -1, 2), "renew_deadline is -1"),
        ((math.inf, 10, 2), "lease_duration is inf"),
        ((15, math.nan, 2), "renew_deadline is nan"),
    ],
    ids=str,
)
def test_times_that_do_not_fit_together_are_refused(
    times: tuple[float, float, float], complaint: str
) -> None:
    lease_duration, renew_deadline, retry_period = times
    with pytest.raises(UsageError, match=complaint):
        LeaderElection(
            lease="w",
            lease_duration=lease_duration,
            renew_deadline=renew_deadline,
            retry_period=retry_period,
        )


@pytest.mark.parametrize("name", ["", "Widgets", "a b", "-a", "a/b", "a..b", "a" * 254, "x\n"])
def test_a_name_that_kubernetes_would_refuse_is_refused_before(name: str) -> None:
    with pytest.raises(UsageError, match=r"lease .* cannot be a name"):
        LeaderElection(lease=name)


@pytest.mark.parametrize("namespace", ["", "a.b", "a" * 64, "Ops"])
def test_so_is_a_namespace(namespace: str) -> None:
    with pytest.raises(UsageError, match=r"namespace .* cannot be a name"):
        LeaderElection(lease="w", namespace=namespace)


@pytest.mark.parametrize("identity", [" ", "a ", "a\nb", "\x00"])
def test_an_identity_that_nobody_could_read_is_refused(identity: str) -> None:
    """CG-L15: one that is blank; `test_leases_election` has the empty one."""
    with pytest.raises(UsageError, match="identity"):
        LeaderElection(lease="w", identity=identity)


def test_a_name_may_have_dots() -> None:
    assert LeaderElection(lease="widgets.example.com", namespace="ops").lease
