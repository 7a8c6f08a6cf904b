"""The election's table, decision by decision. Its promise is in `test_leases_simulation`."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from kinform.errors import TransportError, TransportFailure, UsageError, api_error
from kinform.meta import Status
from kinform.sansio.election.config import LeaderElection
from kinform.sansio.election.leases import Lease, LeaseRecord, lease_body, read_lease
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
from kinform.sansio.election.step import Election, Phase

CONFIG = LeaderElection(lease="widgets", namespace="ops", identity="me")
SILENCE = RequestFailed(TransportError("no answer", failure=TransportFailure.TIMEOUT))

NOT_APPLICABLE = {
    "CG-L09": "coordinated election, where the server chooses, is off by default and in beta",
    "CG-L19": "a LeaseCandidate is part of coordinated election",
}


def refused(code: int, reason: str = "") -> RequestFailed:
    return RequestFailed(api_error(Status(code=code, reason=reason)))


CONFLICT = refused(409, "Conflict")


def lease(version: str = "7", **record: object) -> Lease:
    found = LeaseRecord(**record)  # type: ignore[arg-type]  # the fields of a record
    body = lease_body(found, name="widgets", namespace="ops", labels={})
    body["metadata"] = {"name": "widgets", "namespace": "ops", "resourceVersion": version}
    return read_lease(body)


def held(version: str = "7", holder: str = "you", **record: object) -> Lease:
    return lease(version, **{"holder": holder, "duration": 15, "transitions": 3} | record)


class Bench:
    """A candidate, its clocks, and what it asked for last."""

    def __init__(self, config: LeaderElection = CONFIG) -> None:
        self.boot = 1000.0
        self.wall = 1_767_225_600.0
        self.versions = 100
        self.election = Election(config)
        self.action: Action = self.election.begin(self.moment)

    @property
    def moment(self) -> Moment:
        return Moment(self.boot, self.wall, 0.5)

    def tell(self, signal: Signal, *, after: float = 0.0) -> Action:
        self.boot += after
        self.wall += after
        self.action = self.election.step(signal, self.moment)
        return self.action

    def got(self, found: Lease | None, *, after: float = 0.0) -> Action:
        assert isinstance(self.action, Get)
        return self.tell(Got(found), after=after)

    def wrote(self, *, after: float = 0.0) -> Action:
        self.versions += 1
        return self.tell(Wrote(self.written(str(self.versions))), after=after)

    def written(self, version: str) -> Lease:
        assert isinstance(self.action, Create | Update)
        body = dict(self.action.body)
        metadata = cast("dict[str, object]", body["metadata"])
        return read_lease(body | {"metadata": metadata | {"resourceVersion": version}})

    @property
    def spec(self) -> dict[str, object]:
        assert isinstance(self.action, Create | Update)
        return cast("dict[str, object]", self.action.body["spec"])

    @property
    def replaces(self) -> object:
        assert isinstance(self.action, Create | Update)
        return cast("dict[str, object]", self.action.body["metadata"]).get("resourceVersion")

    @property
    def leads(self) -> bool:
        deadline = self.election.deadline
        return deadline is not None and self.boot < deadline


def leader() -> Bench:
    """One that has just created the lease, and waits to renew it."""
    bench = Bench()
    bench.got(None)
    bench.wrote()
    return bench


# --- to come to lead


def test_where_there_is_no_lease_it_is_created() -> None:
    """CG-L01."""
    bench = Bench()
    assert isinstance(bench.action, Get)
    assert isinstance(bench.got(None), Create)
    assert bench.spec == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-01-01T00:00:00.000000Z",
        "renewTime": "2026-01-01T00:00:00.000000Z",
        "leaseTransitions": 0,
    }
    assert bench.replaces is None
    assert not bench.leads
    assert bench.wrote() == Delay(2.0)
    assert (bench.leads, bench.election.fencing_number, bench.election.holder) == (
        True,
        "101",
        "me",
    )
    assert bench.election.counts.acquisitions == 1


def test_a_lease_that_says_nothing_is_taken() -> None:
    """CG-L02, CG-L04."""
    bench = Bench()
    empty = read_lease({"metadata": {"resourceVersion": "7"}})
    assert isinstance(bench.got(empty), Update)
    assert (bench.spec["leaseTransitions"], bench.replaces) == (1, "7")
    bench.wrote()
    assert bench.leads


def test_a_lease_is_left_alone_for_as_long_as_it_says() -> None:
    """CG-L03: three seconds here, whatever the candidate's own lease duration is."""
    bench = Bench()
    found = held(duration=3)
    bench.got(found)
    assert bench.action == Delay(2.0 * (1 + 1.2 * 0.5))
    bench.tell(DelayEnded(), after=2.99)
    assert isinstance(bench.got(found), Delay)
    bench.tell(DelayEnded(), after=0.01)
    assert isinstance(bench.got(found), Update)
    assert (bench.spec["holderIdentity"], bench.spec["leaseTransitions"]) == ("me", 4)
    assert bench.replaces == "7"


def test_a_lease_that_was_seen_long_ago_is_taken_after_another_look() -> None:
    """CG-L05."""
    bench = Bench()
    bench.got(held())
    assert isinstance(bench.tell(DelayEnded(), after=1000.0), Get)
    assert isinstance(bench.got(held()), Update)


def test_the_wait_begins_anew_whenever_the_lease_has_changed() -> None:
    """Even if it says the same as before: clocks can be set back."""
    bench = Bench()
    bench.got(held("7"))
    bench.tell(DelayEnded(), after=14.9)
    bench.got(held("8"))
    bench.tell(DelayEnded(), after=14.9)
    assert isinstance(bench.got(held("8")), Delay)
    bench.tell(DelayEnded(), after=0.2)
    assert isinstance(bench.got(held("8")), Update)


def test_the_wait_is_counted_from_when_the_answer_was_there() -> None:
    bench = Bench()
    bench.got(held(), after=4.0)
    bench.tell(DelayEnded(), after=14.0)
    assert isinstance(bench.got(held()), Delay)


def test_a_lease_without_a_holder_is_taken_however_fresh_it_is() -> None:
    """CG-L06."""
    bench = Bench()
    assert isinstance(bench.got(held(holder="")), Update)


def test_a_lease_that_is_held_is_not_touched() -> None:
    """CG-L07."""
    bench = Bench()
    assert isinstance(bench.got(held()), Delay)
    assert (bench.leads, bench.election.holder) == (False, "you")


def test_ones_own_lease_is_renewed_and_has_not_changed_hands() -> None:
    """CG-L08."""
    bench = leader()
    bench.election.abandon()
    mine = held("101", "me", transitions=0, acquire_time=ACQUIRED, renew_time=ACQUIRED)
    bench.boot += 60
    bench.wall += 60
    bench.action = bench.election.begin(bench.moment)
    assert isinstance(bench.got(mine), Update)
    assert bench.spec["leaseTransitions"] == 0
    assert bench.spec["acquireTime"] == ACQUIRED
    assert bench.spec["renewTime"] == "2026-01-01T00:01:00.000000Z"
    bench.wrote()
    assert bench.leads


ACQUIRED = "2026-01-01T00:00:00.000000Z"


def test_a_lease_with_ones_own_name_that_one_has_not_written_is_anothers() -> None:
    bench = Bench()
    assert isinstance(bench.got(held(holder="me")), Delay)


def test_the_first_thing_is_always_a_read() -> None:
    """CG-L20: there is no write without a lease that was read, or found missing."""
    assert isinstance(Bench().action, Get)


def test_an_empty_identity_is_refused() -> None:
    """CG-L15."""
    with pytest.raises(UsageError, match="identity"):
        Election(replace(CONFIG, identity=""))
    with pytest.raises(UsageError, match="namespace"):
        Election(replace(CONFIG, namespace=None))


def test_a_lease_that_does_not_say_how_long_is_left_alone_for_ones_own_time() -> None:
    bench = Bench()
    bench.got(held(duration=None))
    bench.tell(DelayEnded(), after=14.9)
    assert isinstance(bench.got(held(duration=None)), Delay)
    bench.tell(DelayEnded(), after=0.1)
    assert isinstance(bench.got(held(duration=None)), Update)


def test_transitions_stay_a_number_that_a_lease_can_hold() -> None:
    bench = Bench()
    bench.got(held(holder="", transitions=2**31 - 1))
    assert bench.spec["leaseTransitions"] == 2**31 - 1


def test_whoever_saw_a_leader_waits_for_it_even_if_its_lease_was_deleted() -> None:
    """It may lead for a while yet, and will create it again."""
    bench = Bench()
    bench.got(held())
    bench.tell(DelayEnded(), after=10.0)
    assert isinstance(bench.got(None), Delay)
    bench.tell(DelayEnded(), after=14.9)
    assert isinstance(bench.got(None), Delay)
    bench.tell(DelayEnded(), after=0.1)
    assert isinstance(bench.got(None), Create)
    assert bench.spec["leaseTransitions"] == 4


def test_an_acquisition_whose_answer_was_lost_is_seen_and_renewed() -> None:
    bench = Bench()
    bench.got(None)
    mine = bench.written("55")
    assert isinstance(bench.tell(SILENCE, after=5.0), Delay)
    assert not bench.leads
    bench.tell(DelayEnded(), after=2.0)
    assert isinstance(bench.got(mine), Update)
    assert bench.replaces == "55"
    bench.wrote()
    assert bench.leads


def test_an_acquisition_that_was_confirmed_too_late_is_none() -> None:
    """The process was stopped for eleven seconds while it waited for the answer."""
    bench = Bench()
    bench.got(None)
    assert isinstance(bench.wrote(after=11.0), Delay)
    assert (bench.leads, bench.election.phase) == (False, Phase.FOLLOWING)
    mine = held("101", "me", transitions=0, acquire_time=ACQUIRED, renew_time=ACQUIRED)
    bench.tell(DelayEnded())
    assert isinstance(bench.got(mine), Update)


@pytest.mark.parametrize("code", [400, 401, 403, 404, 408, 409, 422, 429, 500, 503, 504])
def test_after_any_refusal_it_waits(code: int) -> None:
    bench = Bench()
    assert bench.tell(refused(code)) == Delay(3.2)
    bench.tell(DelayEnded())
    bench.got(None)
    assert bench.tell(refused(code)) == Delay(3.2)
    assert bench.election.counts.failures == 2
    assert bench.election.failure is not None
    bench.tell(DelayEnded())
    bench.got(held())
    assert bench.election.failure is None


# --- to lead


def test_belief_lasts_for_the_renew_deadline_after_the_request_was_sent() -> None:
    bench = Bench()
    bench.got(None)
    sent = bench.boot
    bench.wrote(after=3.0)
    assert bench.election.deadline == sent + 10.0


def test_a_leader_renews_without_reading_and_reads_when_that_failed() -> None:
    """CG-L16: get, create, update, update; with a conflict: update, get, update, update."""
    bench = leader()
    for version in ("101", "102"):
        assert isinstance(bench.tell(DelayEnded(), after=2.0), Update)
        assert bench.replaces == version
        bench.wrote()
    bench.tell(DelayEnded(), after=2.0)
    assert isinstance(bench.tell(CONFLICT), Get)
    assert isinstance(bench.got(held("200", "me")), Update)
    assert bench.replaces == "200"
    assert bench.wrote() == Delay(2.0)
    assert isinstance(bench.tell(DelayEnded(), after=2.0), Update)
    assert bench.election.counts.slow_paths == 1
    assert bench.election.counts.renewals == 3
    assert bench.election.fencing_number == "101"


def test_a_renewal_that_fails_twice_waits_and_reads_the_next_time() -> None:
    bench = leader()
    bench.tell(DelayEnded(), after=2.0)
    bench.tell(SILENCE)
    bench.got(held("101", "me"))
    assert bench.tell(SILENCE) == Delay(2.0)
    assert isinstance(bench.tell(DelayEnded(), after=2.0), Get)
    assert bench.leads


def test_a_request_has_half_the_renew_deadline_or_what_is_left() -> None:
    bench = leader()
    renewal = bench.tell(DelayEnded(), after=2.0)
    assert isinstance(renewal, Update)
    assert renewal.timeout == 5.0
    assert bench.tell(SILENCE, after=5.0) == Get(3.0)
    assert bench.tell(SILENCE, after=2.5) == Delay(0.5)
    ended = bench.tell(DelayEnded(), after=0.5)
    assert isinstance(ended, End)
    assert ended.reason == "not renewed for 10 s: no answer"
    assert (bench.election.deadline, bench.election.fencing_number) == (None, "")


def test_there_is_no_request_when_there_is_no_time_for_one() -> None:
    bench = leader()
    bench.tell(DelayEnded(), after=9.99)
    assert bench.action == Delay(0.02)
    assert isinstance(bench.tell(DelayEnded(), after=0.02), End)


def test_a_renewal_that_is_confirmed_after_the_deadline_does_not_count() -> None:
    """Belief that is over does not come back: what was refused meanwhile stays refused."""
    bench = leader()
    bench.tell(DelayEnded(), after=2.0)
    assert isinstance(bench.wrote(after=8.0), End)
    assert not bench.leads


@pytest.mark.parametrize(
    ("holder", "reason"), [("you", "it is held by 'you' now"), ("", "it has no holder now")]
)
def test_a_leader_that_sees_another_holder_ends_at_once(holder: str, reason: str) -> None:
    bench = leader()
    bench.tell(DelayEnded(), after=2.0)
    bench.tell(CONFLICT)
    assert bench.got(held("300", holder)) == End(reason)
    assert (bench.leads, bench.election.phase) == (False, Phase.ENDED)
    assert isinstance(bench.tell(DelayEnded()), End)


def test_a_leader_creates_its_lease_again_if_it_was_deleted() -> None:
    bench = leader()
    bench.tell(DelayEnded(), after=2.0)
    bench.tell(refused(404, "NotFound"))
    assert isinstance(bench.got(None), Create)
    assert (bench.spec["acquireTime"], bench.spec["leaseTransitions"]) == (ACQUIRED, 0)
    bench.wrote()
    assert bench.leads
    assert bench.election.fencing_number == "101"


def test_every_renewal_changes_the_lease_even_if_the_wall_clock_stands_still() -> None:
    """What changes nothing keeps its version, and challengers would not see that it was renewed."""
    bench = leader()
    times = []
    for _ in range(4):
        bench.boot += 2.0
        bench.tell(DelayEnded())
        times.append(bench.spec["renewTime"])
        bench.wrote()
    assert all(one != next_ for one, next_ in zip([ACQUIRED, *times], times, strict=False))


def test_a_renewal_after_which_the_version_is_the_old_one_is_none() -> None:
    bench = leader()
    deadline = bench.election.deadline
    bench.tell(DelayEnded(), after=2.0)
    assert isinstance(bench.tell(Wrote(bench.written("101"))), Get)
    assert bench.election.deadline == deadline
    assert "has not changed" in str(bench.election.failure)


def test_an_answer_that_names_another_holder_is_no_confirmation() -> None:
    bench = Bench()
    bench.got(None)
    assert isinstance(bench.tell(Wrote(held("9"))), Delay)
    assert not bench.leads
    assert "another lease" in str(bench.election.failure)


# --- to give it back


def test_to_release_is_to_read_and_to_write_a_lease_without_a_holder() -> None:
    """CG-L11, CG-L12: belief is over before anything is sent."""
    bench = leader()
    bench.boot += 1.0
    bench.action = bench.election.release(bench.moment)
    assert (bench.leads, bench.election.fencing_number) == (False, "")
    mine = held("101", "me", transitions=0, acquire_time=ACQUIRED, renew_time=ACQUIRED)
    assert isinstance(bench.got(mine), Update)
    assert bench.replaces == "101"
    assert (bench.spec["holderIdentity"], bench.spec["leaseDurationSeconds"]) == (None, 1)
    assert bench.spec["leaseTransitions"] == 0
    assert bench.wrote() == End("released")
    assert bench.election.holder == ""
    assert not bench.election.may_hold


def test_a_conflict_on_release_is_tried_again_and_not_for_ever() -> None:
    """CG-L13."""
    bench = leader()
    mine = held("101", "me", transitions=0, acquire_time=ACQUIRED, renew_time=ACQUIRED)
    bench.action = bench.election.release(bench.moment)
    began, tries = bench.boot, 0
    while not isinstance(bench.action, End):
        bench.got(mine)
        tries += 1
        if isinstance(bench.tell(CONFLICT), Delay):
            bench.tell(DelayEnded(), after=2.0)
    assert tries == 5
    assert bench.boot - began <= 10.0
    assert "409" in bench.action.reason


def test_what_is_not_ours_is_not_released() -> None:
    bench = leader()
    bench.action = bench.election.release(bench.moment)
    assert isinstance(bench.got(held("300", "me")), End)  # the same name, but not our record
    bench = leader()
    bench.action = bench.election.release(bench.moment)
    assert isinstance(bench.got(None), End)


def test_an_acquisition_in_doubt_is_released() -> None:
    """CG-L14: given up while the write was under way, which may have been done."""
    bench = Bench()
    bench.got(None)
    mine = bench.written("55")
    assert bench.election.may_hold
    bench.action = bench.election.release(bench.moment)
    assert isinstance(bench.got(mine), Update)
    assert bench.replaces == "55"
    assert bench.wrote() == End("released")


def test_a_renewal_in_doubt_is_released_even_after_a_conflict() -> None:
    bench = leader()
    bench.tell(DelayEnded(), after=2.0)
    mine = bench.written("155")
    bench.action = bench.election.release(bench.moment)
    bench.got(mine)
    bench.tell(CONFLICT)
    bench.tell(DelayEnded(), after=2.0)
    assert isinstance(bench.got(mine), Update)
    assert bench.replaces == "155"


@pytest.mark.parametrize(("failure", "may_hold"), [(CONFLICT, False), (SILENCE, True)])
def test_only_what_may_have_been_done_is_to_be_released(
    failure: RequestFailed, may_hold: bool
) -> None:
    bench = Bench()
    bench.got(None)
    bench.tell(failure)
    bench.tell(DelayEnded())
    bench.tell(refused(403))  # of a read: it says nothing about the write
    assert bench.election.may_hold is may_hold


def test_there_is_nothing_to_release_for_one_who_never_led() -> None:
    bench = Bench()
    bench.got(held())
    assert isinstance(bench.election.release(bench.moment), End)
