"""Electors when things go wrong: cut off, suspended, refused, and leases edited by hand."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinform.apiserver import faults
from kinform.apiserver.faults import Fault
from kinform.errors import LeadershipLost, NotFoundError
from kinform.runtime.leader_election import LeaderElection, LeaderElector
from kinform.tasks import background
from kinform.testing import in_virtual_time, virtual_clock
from tests.runtime.support_election import Cluster, Replica, cluster, now, until

# --- no answer


@in_virtual_time
async def test_one_that_is_cut_off_stops_before_another_leads() -> None:
    async with cluster() as there:
        a, b = await there.replica("a"), await there.replica("b")
        async with background(a.elector.run(a.lead)) as running:
            await until(lambda: a.began)
            async with background(b.elector.run(b.lead)):
                await asyncio.sleep(21)
                a.wire.is_cut = True
                cut = now()
                with pytest.raises(LeadershipLost, match=r"not renewed for 10 s: .*no answer"):
                    await running
                assert a.ended is not None
                assert 8 <= a.ended - cut <= 10.01
                await until(lambda: b.began)
                assert b.began is not None
                assert b.began > a.ended
                assert b.began - cut >= 15 - 2
                # It looks each 2 to 4.4 s, both for the last renewal and for its end.
                assert b.began - cut <= 4.4 + 15 + 4.5
                assert (await there.lease())["holderIdentity"] == "b"
                assert a.wire.methods[-1] != "DELETE"


@in_virtual_time
async def test_answers_that_get_lost_for_a_while_cost_nothing() -> None:
    async with cluster() as there:
        a = await there.replica("a")
        async with background(a.elector.run(a.lead)):
            await until(lambda: a.began)
            a.wire.loses_answers = True
            await asyncio.sleep(5)
            a.wire.loses_answers = False
            await asyncio.sleep(30)
            assert a.leads()
            assert a.ended is None
            assert a.elector.statistics().slow_paths >= 1


@in_virtual_time
async def test_work_that_fails_while_it_is_stopped_is_the_cause_of_the_loss() -> None:
    async with cluster() as there:
        a = await there.replica("a")

        async def lead() -> None:
            try:
                await asyncio.sleep(1000)
            finally:
                raise ZeroDivisionError

        async with background(a.elector.run(lead)) as running:
            await until(a.leads)
            a.wire.is_cut = True
            with pytest.raises(LeadershipLost) as lost:
                await running
        assert isinstance(lost.value.__cause__, ZeroDivisionError)
        assert lost.value.lease == "default/widgets"


@in_virtual_time
async def test_work_that_noticed_the_loss_itself_is_no_cause_of_it() -> None:
    async with cluster() as there:
        a = await there.replica("a")

        async def lead() -> None:
            try:
                await asyncio.sleep(1000)
            finally:
                a.elector.check()

        async with background(a.elector.run(lead)) as running:
            await until(a.leads)
            a.wire.is_cut = True
            with pytest.raises(LeadershipLost, match="not renewed for 10 s") as lost:
                await running
        assert lost.value.__cause__ is None


# --- stopped, and clocks


@in_virtual_time
async def test_after_a_suspend_the_first_write_is_refused() -> None:
    """Long before anything here runs that could have noticed."""
    async with cluster() as there:
        a = await there.replica("a")
        client = a.client.guarded(a.elector.check)

        async def lead() -> None:
            await asyncio.sleep(5)
            virtual_clock().suspend(60)
            assert not a.leads()
            await client.resource("v1/configmaps").create({"metadata": {"name": "late"}})

        with pytest.raises(LeadershipLost, match="nothing was sent"):
            await a.elector.run(lead)
        with pytest.raises(NotFoundError):
            await there.admin.resource("v1/configmaps").get("late")


@in_virtual_time
async def test_after_a_suspend_the_work_is_ended_soon() -> None:
    async with cluster() as there:
        a = await there.replica("a")
        async with background(a.elector.run(a.lead)) as running:
            await until(lambda: a.began)
            await asyncio.sleep(5)
            virtual_clock().suspend(11)
            woken = now()
            with pytest.raises(LeadershipLost, match="not renewed for 10 s"):
                await running
            assert a.ended is not None
            assert a.ended - woken <= 2.01
            assert not a.elector.fencing_number
        assert "PUT" in a.wire.methods[-3:]


@in_virtual_time
async def test_a_short_suspend_is_survived() -> None:
    async with cluster() as there:
        a = await there.replica("a")
        async with background(a.elector.run(a.lead)):
            await until(lambda: a.began)
            for _ in range(10):
                await asyncio.sleep(5)
                virtual_clock().suspend(7)
                assert a.leads()
            await asyncio.sleep(5)
            assert a.ended is None


# --- refusals


def inject(there: Cluster, fault: Fault) -> Callable[[], None]:
    there.server.faults.add(fault)
    return lambda: there.server.faults.remove(fault)


@pytest.mark.parametrize(
    "fault",
    [
        faults.status(409, resource="leases"),
        faults.status(403, resource="leases"),
        faults.status(404, resource="leases"),
        faults.status(500, resource="leases"),
        faults.status(429, retry_after=1, resource="leases"),
        faults.status(503, text="<html>", resource="leases"),
        faults.corrupt(resource="leases"),
        faults.reset(resource="leases"),
        faults.close(after_bytes=10, resource="leases"),
    ],
    ids=str,
)
@in_virtual_time
async def test_whatever_is_answered_nothing_is_asked_hot_and_it_ends_well(fault: Fault) -> None:
    async with cluster() as there:
        a, b = await there.replica("a"), await there.replica("b")
        undo = inject(there, fault)
        async with background(a.elector.run(a.lead)) as running:
            await asyncio.sleep(60)
            assert a.began is None
            assert len(a.wire.methods) <= 2 * (60 / 2 + 1)
            undo()
            await until(lambda: a.began, within=5)
            await asyncio.sleep(20)
            undo = inject(there, fault)
            await asyncio.sleep(5)  # half the deadline
            undo()
            await asyncio.sleep(20)
            assert a.leads()
            async with background(b.elector.run(b.lead)):
                await asyncio.sleep(5)
                before = len(a.wire.methods)
                undo = inject(there, fault)
                with pytest.raises(LeadershipLost, match="not renewed for 10 s"):
                    await running
                assert len(a.wire.methods) - before <= 16
                assert b.began is None
                undo()
                await until(lambda: b.began, within=4.5 + 15 + 4.5)


@pytest.mark.parametrize(
    "fault",
    [faults.status(429, retry_after=1, resource="leases"), faults.reset(resource="leases")],
    ids=str,
)
@in_virtual_time
async def test_a_request_is_sent_once_whatever_the_server_asks_for(fault: Fault) -> None:
    """The election decides about retries, not the client."""
    async with cluster() as there:
        a = await there.replica("a")
        inject(there, fault)
        async with background(a.elector.run(a.lead)):
            await asyncio.sleep(60)
            assert len(a.wire.methods) <= 60 / 2 + 1
            assert len(a.wire.methods) == a.elector.statistics().failures


@pytest.mark.parametrize("verb", ["get", "create"])
@in_virtual_time
async def test_the_same_failure_is_one_line(
    verb: faults.Verb, caplog: pytest.LogCaptureFixture
) -> None:
    """Also of a candidate that may read the lease and not write it."""
    caplog.set_level(logging.INFO, "kinform")
    async with cluster() as there:
        a = await there.replica("a")
        undo = inject(there, faults.status(403, verb=verb, resource="leases"))
        async with background(a.elector.run(a.lead)):
            await asyncio.sleep(600)
            undo()
            await until(lambda: a.began)
            a.wire.is_cut = True
            await until(lambda: a.ended)
        said = [
            (one.levelname, one.getMessage()[:39])
            for one in caplog.records
            if one.name == "kinform.runtime.leader_election"
        ]
        assert said == [
            ("WARNING", "lease default/widgets: request failed: "),
            ("INFO", "lease default/widgets: this replica lea"),
            ("WARNING", "lease default/widgets: request failed: "),
            ("WARNING", "lease default/widgets: leadership lost:"),
        ]


# --- edited by hand


@in_virtual_time
async def test_a_leader_ends_when_it_sees_that_somebody_wrote_another_holder() -> None:
    async with cluster() as there:
        a = await there.replica("a")
        async with background(a.elector.run(a.lead)) as running:
            await until(lambda: a.began)
            await there.edit(holderIdentity="another")
            edited = now()
            with pytest.raises(LeadershipLost, match="it is held by 'another' now"):
                await running
            assert a.ended is not None
            assert a.ended - edited <= 2.01
            assert (await there.lease())["holderIdentity"] == "another"
            assert a.leaders == ["a", "another"]
        # No candidate has that identity: the lease expires like any other.
        async with background(a.elector.run(a.lead)):
            await until(a.leads, within=20)
            assert (await there.lease())["leaseTransitions"] == 1


@in_virtual_time
async def test_a_lease_that_lost_its_holder_is_anybodys() -> None:
    async with cluster() as there:
        a = await there.replica("a")
        async with background(a.elector.run(a.lead)) as running:
            await until(lambda: a.began)
            await there.edit(holderIdentity=None)
            with pytest.raises(LeadershipLost, match="it has no holder now"):
                await running
        async with background(a.elector.run(a.lead)):
            await until(a.leads, within=5)


@in_virtual_time
async def test_a_lease_that_was_deleted_is_created_again_by_its_leader() -> None:
    async with cluster() as there:
        a, b = await there.replica("a", labels={"app": "w"}), await there.replica("b")
        async with background(a.elector.run(a.lead)):
            await until(lambda: a.began)
            async with background(b.elector.run(b.lead)):
                number = a.elector.fencing_number
                for _ in range(5):
                    await asyncio.sleep(7.3)
                    await there.admin.resource("leases.coordination.k8s.io").delete("widgets")
                await asyncio.sleep(5)
                assert (a.leads(), a.ended, b.began) == (True, None, None)
                assert (await there.lease())["holderIdentity"] == "a"
                assert a.elector.fencing_number == number


@in_virtual_time
async def test_without_its_namespace_a_leader_ends_and_leads_again_when_it_is_back() -> None:
    async with cluster() as there:
        spaces = there.admin.resource("v1/namespaces")
        await spaces.create({"metadata": {"name": "ops"}})
        election = LeaderElection(lease="widgets", namespace="ops", identity="a")
        elector = LeaderElector(there.admin, election)
        lost: list[LeadershipLost] = []

        async def lead() -> None:
            await asyncio.sleep(1_000_000)

        async def try_for_ever() -> None:
            while True:
                try:
                    await elector.run(lead)
                except LeadershipLost as exc:
                    lost.append(exc)

        async with background(try_for_ever()):
            await until(lambda: elector.is_leader)
            await spaces.delete("ops")
            await until(lambda: lost)
            assert "not renewed for 10 s" in str(lost[0])
            assert "ops" in str(lost[0])
            await asyncio.sleep(60)
            assert not elector.is_leader
            assert len(lost) == 1
            await spaces.create({"metadata": {"name": "ops"}})
            await until(lambda: elector.is_leader, within=5)


@pytest.mark.parametrize(
    ("spec", "wait"),
    [
        ({}, 0),
        ({"leaseDurationSeconds": 3600}, 0),
        ({"holderIdentity": "x"}, 15),
        ({"holderIdentity": "x", "leaseDurationSeconds": 3}, 3),
        ({"holderIdentity": "x", "leaseDurationSeconds": 40, "leaseTransitions": 7}, 40),
        ({"holderIdentity": "x", "renewTime": "1999-01-01T00:00:00.000000Z"}, 15),
        ({"holderIdentity": "a"}, 15),
    ],
    ids=str,
)
@in_virtual_time
async def test_a_lease_that_somebody_else_made_is_waited_for_and_taken(
    spec: dict[str, object], wait: float
) -> None:
    """Empty, odd and foreign ones, on a server."""
    async with cluster() as there:
        a = await there.replica("a")
        metadata = {"name": "widgets", "annotations": {"note": "kept"}}
        leases = there.admin.resource("leases.coordination.k8s.io")
        await leases.create({"metadata": metadata, "spec": spec})
        began = now()
        async with background(a.elector.run(a.lead)):
            await until(lambda: a.began)
            assert wait <= now() - began <= (wait + 4.5 if wait else 0.1)
            found = await leases.get("widgets")
            assert found.metadata.annotations == {"note": "kept"}
            transitions = spec.get("leaseTransitions", 0)
            assert isinstance(transitions, int)
            assert (await there.lease())["leaseTransitions"] == transitions + 1


# --- everything at once


@pytest.mark.slow
@settings(max_examples=25)
@given(seed=st.integers(0, 2**32))
def test_no_two_lead_whatever_happens_to_them(seed: int) -> None:
    """The edge, too; the table alone is tested far harder in `test_leases_simulation`."""
    run_history(seed)


@in_virtual_time
async def run_history(seed: int) -> None:
    draw = random.Random(seed)
    sleeps = seed % 2  # after a suspend, work ends a moment later than belief
    async with cluster() as there:
        replicas = [await there.replica(name) for name in "abc"]
        ends: list[float] = []

        async def live(replica: Replica) -> None:
            while True:
                try:
                    async with asyncio.timeout(draw.uniform(1, 60)):
                        await replica.elector.run(replica.lead)
                except (LeadershipLost, TimeoutError):
                    ends.append(now())
                    await asyncio.sleep(draw.random())

        async with (
            background(live(replicas[0])),
            background(live(replicas[1])),
            background(live(replicas[2])),
        ):
            for _ in range(200):
                await asyncio.sleep(draw.random())
                leaders = [one for one in replicas if one.leads()]
                assert len(leaders) <= 1
                at_work = [one for one in replicas if one.began and one.ended is None]
                assert len(at_work) <= 1 or sleeps
                victim = draw.choice(replicas)
                match draw.randrange(20):
                    case 0 | 1:
                        victim.wire.is_cut = draw.random() < 0.7
                    case 2:
                        victim.wire.loses_answers = draw.random() < 0.5
                    case 3:
                        virtual_clock().jump_wall(draw.choice([-2.0, -3600.0, 3600.0]))
                    case 4 if sleeps:
                        virtual_clock().suspend(draw.choice([1.0, 5.0, 20.0]))
                    case _:
                        pass
            for one in replicas:
                one.wire.is_cut = one.wire.loses_answers = False
            await until(lambda: any(one.leads() for one in replicas), within=40)
        assert ends
