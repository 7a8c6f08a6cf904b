"""Leader election on a real kube-apiserver: hand-over by release and by expiry, and a hand's edit.

Times are short and real here; what they mean is tested in virtual time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import pytest

from kinform import Client, Object
from kinform.errors import LeadershipLost
from kinform.resource_client import ResourceClient
from kinform.runtime.leader_election import LeaderElection, LeaderElector
from kinform.tasks import background
from kinform.testing import ControlPlane

pytestmark = pytest.mark.e2e


@pytest.fixture
async def client(kinform_control_plane: ControlPlane) -> AsyncIterator[Client]:
    async with kinform_control_plane.connect() as client:
        yield client


@pytest.fixture
def leases(client: Client, kinform_namespace: str) -> ResourceClient[Object]:
    return client.resource("coordination.k8s.io/v1/leases", namespace=kinform_namespace)


def candidate(client: Client, namespace: str, identity: str, **options: Any) -> LeaderElector:
    election = LeaderElection(
        lease="widgets",
        namespace=namespace,
        identity=identity,
        lease_duration=3,
        renew_deadline=2,
        retry_period=0.2,
        **options,
    )
    return LeaderElector(client, election)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - electors tell by their state alone
            await asyncio.sleep(0.02)


async def for_ever() -> None:
    await asyncio.get_running_loop().create_future()


async def spec(leases: ResourceClient[Object]) -> dict[str, Any]:
    found = cast("dict[str, Any]", (await leases.get("widgets")).to_dict())
    return cast("dict[str, Any]", found["spec"])


async def test_a_lease_goes_from_one_to_the_next_when_it_is_given_back(
    client: Client, leases: ResourceClient[Object], kinform_namespace: str
) -> None:
    a = candidate(client, kinform_namespace, "a", labels={"app": "widgets"})
    b = candidate(client, kinform_namespace, "b")
    async with background(a.run(for_ever)) as first:
        await until(lambda: a.is_leader)
        number = a.fencing_number
        async with background(b.run(for_ever)):
            await until(lambda: a.statistics().renewals >= 3)
            lease = await leases.get("widgets")
            assert lease.metadata.labels == {"app": "widgets"}
            held = await spec(leases)
            assert (held["holderIdentity"], held["leaseTransitions"]) == ("a", 0)
            assert not b.is_leader
            first.cancel()
            await asyncio.wait([first])
            assert not a.is_leader
            await until(lambda: b.is_leader)
            held = await spec(leases)
            assert (held["holderIdentity"], held["leaseTransitions"]) == ("b", 1)
            assert int(b.fencing_number) > int(number)
            assert (a.statistics().failures, b.holder) == (0, "b")
    released = await spec(leases)
    assert released.get("holderIdentity") is None
    assert released["leaseDurationSeconds"] == 1


async def test_a_lease_that_is_not_given_back_goes_to_the_next_when_it_has_run_out(
    client: Client, leases: ResourceClient[Object], kinform_namespace: str
) -> None:
    a = candidate(client, kinform_namespace, "a", release_on_exit=False)
    b = candidate(client, kinform_namespace, "b")
    loop = asyncio.get_running_loop()
    async with background(a.run(for_ever)):
        await until(lambda: a.is_leader)
    ended = loop.time()
    assert (await spec(leases))["holderIdentity"] == "a"

    async def lead() -> float:
        return loop.time()

    assert await b.run(lead) - ended >= 3.0
    assert b.statistics().transitions == 1


async def test_a_leader_ends_when_somebody_else_is_written_into_its_lease(
    client: Client, leases: ResourceClient[Object], kinform_namespace: str
) -> None:
    a = candidate(client, kinform_namespace, "a")
    maps = client.guarded(a.check).resource("v1/configmaps", namespace=kinform_namespace)
    async with background(a.run(for_ever)) as running:
        await until(lambda: a.is_leader)
        await maps.create({"metadata": {"name": "in-time"}})
        patch = {"metadata": {"annotations": {"by": "hand"}}, "spec": {"holderIdentity": "you"}}
        await leases.patch("widgets", patch)
        with pytest.raises(LeadershipLost, match="it is held by 'you' now"):
            await running
    with pytest.raises(LeadershipLost):
        await maps.create({"metadata": {"name": "late"}})
    # "you" does not exist, and its lease expires; other fields of the edit stay.
    async with background(a.run(for_ever)):
        await until(lambda: a.is_leader)
        assert (await leases.get("widgets")).metadata.annotations == {"by": "hand"}
        await leases.delete("widgets")
        await until(lambda: a.statistics().slow_paths >= 2)
        await until(lambda: a.statistics().last_error == "")
        assert a.is_leader
        assert (await spec(leases))["holderIdentity"] == "a"


async def test_a_lease_without_a_spec_is_taken_and_one_without_a_namespace_waited_for(
    client: Client, leases: ResourceClient[Object], kinform_namespace: str
) -> None:
    await leases.create({"metadata": {"name": "widgets"}, "spec": {}})

    async def lead() -> str:
        return "led"

    assert await candidate(client, kinform_namespace, "a").run(lead) == "led"
    nowhere = candidate(client, f"{kinform_namespace}-not", "a")
    async with background(nowhere.run(lead)) as running:
        await until(lambda: nowhere.statistics().failures >= 3)
        assert "not found" in nowhere.statistics().last_error
        assert not running.done()
