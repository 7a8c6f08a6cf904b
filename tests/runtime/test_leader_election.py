"""Electors on the embedded server, in virtual time: how they come to lead, and how it ends."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from kinform.errors import LeadershipLost, UsageError
from kinform.rest.rate_limits import TokenBucketLimiter
from kinform.runtime.leader_election import LeaderElection, LeaderElector
from kinform.tasks import background
from kinform.testing import in_virtual_time, virtual_clock
from tests.runtime.support_election import cluster, now, until

# --- to come to lead, and to hand over


@in_virtual_time
async def test_the_first_one_leads_and_the_others_wait() -> None:
    """CG-L01, CG-L07, CG-L16: get, create, update, update."""
    async with cluster() as there:
        a, b = await there.replica("a"), await there.replica("b")
        async with background(a.elector.run(a.lead)):
            await until(lambda: a.began)
            async with background(b.elector.run(b.lead)):
                await asyncio.sleep(60)
                assert (a.leads(), b.leads()) == (True, False)
                assert b.began is None
                assert (a.elector.holder, b.elector.holder) == ("a", "a")
                assert (a.leaders, b.leaders) == (["a"], ["a"])
                assert a.wire.methods[:4] == ["GET", "POST", "PUT", "PUT"]
                assert a.wire.methods.count("GET") == 1
                assert set(b.wire.methods) == {"GET"}
                assert 60 / 4.4 <= len(b.wire.methods) <= 60 / 2 + 1


@in_virtual_time
async def test_one_that_is_cancelled_ends_its_work_then_gives_the_lease_back() -> None:
    """CG-L11, CG-L12, CG-L14: and the next one leads soon."""
    async with cluster() as there:
        a, b = await there.replica("a"), await there.replica("b")
        async with background(a.elector.run(a.lead)) as running:
            await until(lambda: a.began)
            async with background(b.elector.run(b.lead)):
                await asyncio.sleep(30)
                running.cancel()
                await asyncio.wait([running])
                released = now()
                assert (a.ended, a.leads()) == (released, False)
                assert a.wire.methods[-2:] == ["GET", "PUT"]
                spec = await there.lease()
                assert spec.get("holderIdentity") is None
                assert (spec["leaseDurationSeconds"], spec["leaseTransitions"]) == (1, 0)
                await until(lambda: b.began)
                assert now() - released <= 4.5
                assert (await there.lease())["leaseTransitions"] == 1
                assert b.leaders == ["a", "b"]


@in_virtual_time
async def test_what_leads_may_return_and_its_result_is_returned() -> None:
    async with cluster() as there:
        a = await there.replica("a")

        async def lead() -> str:
            await asyncio.sleep(25)
            return a.elector.fencing_number

        number = await a.elector.run(lead)
        assert number
        assert not a.leads()
        assert a.elector.fencing_number == ""
        assert (await there.lease()).get("holderIdentity") is None
        assert int(await a.elector.run(lead)) > int(number)  # it may lead again


@in_virtual_time
async def test_what_leads_may_fail_and_its_error_is_raised_as_it_is() -> None:
    async with cluster() as there:
        a = await there.replica("a")

        async def lead() -> None:
            await asyncio.sleep(5)
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await a.elector.run(lead)
        assert (await there.lease()).get("holderIdentity") is None


@in_virtual_time
async def test_a_lease_that_is_not_to_be_given_back_runs_out() -> None:
    async with cluster() as there:
        a = await there.replica("a", release_on_exit=False)
        b = await there.replica("b")
        async with background(a.elector.run(a.lead)):
            await until(lambda: a.began)
        assert (await there.lease())["holderIdentity"] == "a"
        assert not a.leads()
        left = now()
        async with background(b.elector.run(b.lead)):
            await until(lambda: b.began)
            assert 15 <= now() - left <= 15 + 4.5


@in_virtual_time
async def test_work_that_takes_its_time_to_end_is_still_done_by_the_leader() -> None:
    async with cluster() as there:
        a = await there.replica("a")
        seen: list[bool] = []

        async def lead() -> None:
            try:
                await asyncio.sleep(1000)
            finally:
                await asyncio.sleep(40)
                seen.append(a.leads())
                seen.append((await there.lease())["holderIdentity"] == "a")

        async with background(a.elector.run(lead)):
            await asyncio.sleep(5)
        assert seen == [True, True]
        assert (await there.lease()).get("holderIdentity") is None


@in_virtual_time
async def test_cancelled_twice_it_waits_no_more_and_gives_nothing_back() -> None:
    """Work that goes on is not to be joined by another leader's."""
    async with cluster() as there:
        a = await there.replica("a")
        goes_on = asyncio.Event()

        async def lead() -> None:
            try:
                await asyncio.sleep(1000)
            finally:
                await goes_on.wait()

        running = asyncio.get_running_loop().create_task(a.elector.run(lead))
        await asyncio.sleep(5)
        running.cancel()
        await asyncio.sleep(1)
        assert not running.done()
        assert a.leads()
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled()
        assert not a.leads()
        assert (await there.lease())["holderIdentity"] == "a"
        with pytest.raises(UsageError, match="runs already"):
            await a.elector.run(a.lead)
        assert a.elector.healthy(5)
        await asyncio.sleep(30)
        assert not a.elector.healthy(5)
        goes_on.set()
        await asyncio.sleep(1)
        assert a.elector.healthy(5)


@in_virtual_time
async def test_one_that_is_cancelled_while_its_first_write_is_under_way_undoes_it() -> None:
    """CG-L14: the write was done, but its response was lost."""
    async with cluster() as there:
        a = await there.replica("a")
        a.wire.loses_answers = True
        async with background(a.elector.run(a.lead)):
            await asyncio.sleep(1)
            assert (await there.lease())["holderIdentity"] == "a"
            assert not a.leads()
            a.wire.loses_answers = False
        assert (await there.lease()).get("holderIdentity") is None
        assert a.began is None


@in_virtual_time
async def test_an_elector_runs_once_at_a_time() -> None:
    async with cluster() as there:
        a = await there.replica("a")
        async with background(a.elector.run(a.lead)):
            await until(lambda: a.began)
            with pytest.raises(UsageError, match="runs already"):
                await a.elector.run(a.lead)
            assert a.leads()


# --- what it tells


@in_virtual_time
async def test_the_check_refuses_whoever_does_not_lead() -> None:
    async with cluster() as there:
        a = await there.replica("a")
        maps = a.client.guarded(a.elector.check).resource("v1/configmaps")
        with pytest.raises(LeadershipLost, match=r"lease default/widgets: this replica does not"):
            await maps.create({"metadata": {"name": "early"}})
        async with background(a.elector.run(a.lead)):
            await until(lambda: a.began)
            await maps.create({"metadata": {"name": "in-time"}})
        with pytest.raises(LeadershipLost):
            await maps.create({"metadata": {"name": "late"}})
        found = await there.admin.resource("v1/configmaps").list()
        assert [one.name for one in found if "time" in one.name or "ly" in one.name] == ["in-time"]


@pytest.mark.slow
async def test_the_check_may_be_asked_from_other_threads_while_it_renews() -> None:
    """CG-L17."""
    asked: list[BaseException | None] = []
    ended = threading.Event()

    def ask(elector: LeaderElector) -> None:
        while not ended.wait(0.0005):
            try:
                elector.check()
                asked.append(None)
            except BaseException as exc:  # noqa: BLE001 - it belongs to the test
                asked.append(exc)

    async with cluster() as there:
        elector = LeaderElector(there.admin, LeaderElection(lease="widgets", retry_period=0.001))
        async with background(elector.run(asyncio.Event().wait)):
            while not elector.is_leader:  # noqa: ASYNC110 - no event tells
                await asyncio.sleep(0)
            thread = threading.Thread(target=ask, args=[elector])
            thread.start()
            while elector.statistics().renewals < 100:  # noqa: ASYNC110
                await asyncio.sleep(0)
            ended.set()
            thread.join()
    assert asked
    assert set(asked) == {None}


@in_virtual_time
async def test_health_is_about_what_goes_on_though_the_lease_ran_out() -> None:
    """CG-L18."""
    async with cluster() as there:
        a, b = await there.replica("a"), await there.replica("b")
        assert a.elector.healthy(0)  # it has not begun
        refuses = asyncio.Event()

        async def lead() -> None:
            try:
                await asyncio.sleep(1000)
            finally:
                await refuses.wait()

        async with background(a.elector.run(lead)):
            await until(a.leads)
            async with background(b.elector.run(b.lead)):
                await asyncio.sleep(10)
                assert a.elector.healthy(0)  # renewed just now
                assert b.elector.healthy(0)  # another candidate leads
                a.wire.is_cut = True
                await asyncio.sleep(14)
                assert not a.leads()
                assert a.elector.healthy(3)
                await asyncio.sleep(5)
                assert not a.elector.healthy(3)
                assert a.elector.healthy(3600)
                refuses.set()
                await asyncio.sleep(1)
                assert a.elector.healthy(0)


@in_virtual_time
async def test_statistics_tell_what_has_happened() -> None:
    """CG-L16: after a conflict it reads the lease, and does not afterwards."""
    async with cluster() as there:
        a = await there.replica("a", labels={"app": "widgets"})
        async with background(a.elector.run(a.lead)):
            await until(lambda: a.began)
            await asyncio.sleep(5)
            await there.edit(leaseTransitions=5)
            await asyncio.sleep(5)
            figures = a.elector.statistics()
            assert a.wire.methods == [
                "GET",
                "POST",
                "PUT",
                "PUT",
                "PUT",
                "GET",
                "PUT",
                "PUT",
                "PUT",
            ]
        assert (figures.lease, figures.identity, figures.holder) == ("default/widgets", "a", "a")
        assert (figures.is_leader, figures.acquisitions, figures.transitions) == (True, 1, 5)
        assert figures.renewals == 5
        assert (figures.failures, figures.slow_paths, figures.last_error) == (1, 1, "")
        lease = await there.admin.resource("leases.coordination.k8s.io").get("widgets")
        assert lease.metadata.labels == {"app": "widgets"}


@in_virtual_time
async def test_identities_are_new_each_time_and_namespaces_the_clients() -> None:
    """CG-L15: it is never empty."""
    async with cluster() as there:
        election = LeaderElection(lease="widgets")
        one, two = LeaderElector(there.admin, election), LeaderElector(there.admin, election)
        assert one.identity
        assert one.identity != two.identity
        assert one.lease == "default/widgets"
        assert (
            LeaderElector(there.admin, LeaderElection(lease="w", namespace="ops")).lease == "ops/w"
        )
        assert repr(one) == f"<LeaderElector default/widgets {one.identity} not leading>"
        assert one.deadline is None


@in_virtual_time
async def test_a_callback_that_fails_is_logged_and_changes_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with cluster() as there:

        def fail(leader: str) -> None:
            raise ZeroDivisionError(leader)

        async def lead() -> str:
            return "led"

        election = LeaderElection(lease="widgets", identity="a")
        elector = LeaderElector(there.admin, election, on_new_leader=fail)
        assert await elector.run(lead) == "led"
        assert [one.message for one in caplog.records if one.levelno == logging.ERROR] == [
            "on_new_leader failed"
        ]


@in_virtual_time
async def test_a_callback_that_would_have_to_be_awaited_is_refused() -> None:
    async with cluster() as there:

        async def tell(leader: str) -> None: ...

        with pytest.raises(UsageError, match="on_new_leader is an async function"):
            LeaderElector(there.admin, LeaderElection(lease="w"), on_new_leader=tell)


@in_virtual_time
async def test_the_rate_limiter_of_the_client_does_not_cost_the_lease() -> None:
    async with cluster() as there:
        a = await there.replica("a", rate_limiter=TokenBucketLimiter(qps=0.01, burst=1))
        nodes = a.client.resource("v1/nodes")
        async with background(a.elector.run(a.lead)):
            await until(lambda: a.began)
            busy = [asyncio.get_running_loop().create_task(nodes.list()) for _ in range(20)]
            await asyncio.sleep(100)
            assert a.leads()
            for task in busy:
                task.cancel()
            await asyncio.wait(busy)


@in_virtual_time
async def test_a_closed_client_is_an_error_at_once() -> None:
    async with cluster() as there:
        a = await there.replica("a")
        async with background(a.elector.run(a.lead)) as running:
            await until(lambda: a.began)
            await a.client.aclose()
            began = now()
            await asyncio.wait([running])
            assert now() - began <= 2.01
            assert isinstance(running.exception(), UsageError)
        assert a.ended is not None
        assert not a.leads()
        with pytest.raises(UsageError, match="closed"):
            await a.elector.run(a.lead)


@in_virtual_time
async def test_times_in_the_lease_are_wall_times_and_nothing_is_decided_by_them() -> None:
    async with cluster() as there:
        a, b = await there.replica("a"), await there.replica("b")
        async with background(a.elector.run(a.lead)):
            await until(lambda: a.began)
            async with background(b.elector.run(b.lead)):
                for jump in (3600.0, -7200.0, 10 * 365 * 86400.0, -2.0, -2.0, -2.0):
                    virtual_clock().jump_wall(jump)
                    await asyncio.sleep(2)
                    assert a.leads()
                await asyncio.sleep(60)
                assert a.leads()
                assert b.began is None
                assert str((await there.lease())["renewTime"]).startswith("2035-12-2")
