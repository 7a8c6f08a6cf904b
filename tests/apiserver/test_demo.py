"""The demo cluster: it lives, it does what clients ask of it, and it does not grow."""

from __future__ import annotations

import asyncio
import logging
import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.apiserver import APIServer
from kinform.apiserver.demo import Demo
from kinform.apiserver.demo.chance import next_image, next_replicas
from kinform.apiserver.demo.controllers import Controllers, rollout, template_hash
from kinform.apiserver.demo.demo_cluster import PERIOD
from kinform.apiserver.demo.manifests import NODES
from kinform.apiserver.demo.pods import Kubelets, choose_node, is_ready
from kinform.apiserver.demo.world import EVENTS, DemoWorld, is_going, is_owned
from kinform.apiserver.endpoints.messages import ServerRequest
from kinform.apiserver.serializer.json_values import Json, text
from kinform.apiserver.storage.versioned_store import Change
from kinform.errors import UsageError
from kinform.testing import in_virtual_time
from kinform.testing.virtual_time import run

DEPLOYMENTS = "/apis/apps/v1/namespaces/shop/deployments"


def server(seed: int = 1) -> APIServer:
    return APIServer(port=None, token="x", seed=seed)


def world_of(api: APIServer) -> DemoWorld:
    return DemoWorld(api.application, random.Random(0))


async def send(api: APIServer, method: str, target: str, body: Json | None = None) -> Json:
    content_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
    headers = {"authorization": "Bearer x", "content-type": content_type}
    content = b"" if body is None else msgspec.json.encode(body)
    response = await api.application.handle(
        ServerRequest.of(method, target, headers=headers, body=content)
    )
    assert isinstance(response.body, bytes)
    answer: Json = msgspec.json.decode(response.body)
    assert response.status < 300, answer
    return answer


def pods_of(world: DemoWorld, deployment: str) -> list[Json]:
    """Return the pods of a deployment that are not on their way out."""
    pods = (it for it in world.all("pods") if not is_going(it))
    return [it for it in pods if text(it, "metadata", "labels", "app") == deployment]


def settle(world: DemoWorld) -> None:
    """Let controllers and kubelets finish what they have to do, while nothing else happens."""
    for step in range(200):
        Controllers(world).step()
        Kubelets(world).step(step)


# --- life


@pytest.mark.slow
@in_virtual_time
async def test_after_five_minutes_everything_is_as_it_was_asked_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with server() as api:
        world = world_of(api)
        async with Demo(api, seed=1):
            for _ in range(30):
                await asyncio.sleep(10)
                check_bounds(world)
        settle(world)
        check_replicas(world)
        check_owners(world)
    assert [it for it in caplog.records if it.levelno >= logging.WARNING] == []


def check_bounds(world: DemoWorld) -> None:
    assert len(world.all("pods")) <= 40
    assert len(world.all("events")) <= EVENTS
    assert len(world.all("replicasets.apps")) <= 3 * 4
    assert len(world.all("jobs.batch")) <= 5


def check_replicas(world: DemoWorld) -> None:
    pods = world.all("pods")
    for deployment in world.all("deployments.apps"):
        wanted, state = deployment["spec"]["replicas"], deployment["status"]
        sets = [it for it in world.all("replicasets.apps") if is_owned(it, deployment)]
        counts = [sum(is_owned(pod, it) for pod in pods) for it in sets]
        assert max(counts) == sum(counts) == wanted
        assert [it["spec"]["replicas"] for it in sets] == counts
        assert [it["status"]["replicas"] for it in sets] == counts
        assert state["readyReplicas"] == state["updatedReplicas"] == state["replicas"] == wanted
        assert state["observedGeneration"] == deployment["metadata"]["generation"]
    assert {text(it, "spec", "nodeName") for it in pods} <= set(NODES)
    assert {text(it, "status", "phase") for it in pods} <= {"Running", "Succeeded"}


def check_owners(world: DemoWorld) -> None:
    owners = [*world.all("replicasets.apps"), *world.all("jobs.batch")]
    for pod in world.all("pods"):
        assert sum(is_owned(pod, owner) for owner in owners) == 1


@in_virtual_time
async def test_something_is_to_be_seen_in_every_step() -> None:
    async with server() as api, Demo(api, seed=2):
        for _ in range(240):
            before = api.cluster.storage.revision
            await asyncio.sleep(PERIOD)
            assert api.cluster.storage.revision > before


@pytest.mark.slow
@in_virtual_time
async def test_all_that_is_promised_happens_within_five_minutes() -> None:
    seen = set[str]()

    def note(resource: str, change: Change) -> None:
        raw = change.new.raw
        words = (b"CrashLoopBackOff", b"ContainerCreating", b"Succeeded", b":1.1", b'"Complete"')
        seen.update(f"{resource} {it.decode()}" for it in words if it in raw)
        if change.is_delete:
            seen.add(f"{resource} gone")
        elif change.old is not None:
            seen.add(f"{resource} changed")

    async with server() as api:
        api.cluster.storage.observe(note)
        async with Demo(api, seed=3):
            await asyncio.sleep(300)
    for what in (
        "pods CrashLoopBackOff",
        "pods ContainerCreating",
        "pods Succeeded",
        "pods gone",
        "jobs.batch gone",
        'jobs.batch "Complete"',
        "deployments.apps :1.1",
        "leases.coordination.k8s.io changed",
        "nodes changed",
        "shops.demo.kinform.dev changed",
        "events gone",
    ):
        assert what in seen


def history(server_seed: int, seed: int) -> list[bytes]:
    async def live() -> list[bytes]:
        written = list[bytes]()
        async with server(server_seed) as api:
            api.cluster.storage.observe(lambda _, change: written.append(change.new.raw))
            async with Demo(api, seed=seed):
                await asyncio.sleep(60)
        return written

    return run(live())


@pytest.mark.slow
def test_the_same_seed_gives_the_same_history_and_another_one_another() -> None:
    first = history(1, 5)
    assert history(1, 5) == first
    assert history(1, 6) != first


@in_virtual_time
async def test_nothing_happens_after_leaving() -> None:
    async with server() as api:
        async with Demo(api, seed=1) as demo:
            await asyncio.sleep(10)
        before = api.cluster.storage.revision
        await asyncio.sleep(60)
        assert api.cluster.storage.revision == before
        with pytest.raises(UsageError, match="once"):
            await demo.__aenter__()


@in_virtual_time
async def test_another_demo_on_the_same_server_goes_on_where_the_first_one_was() -> None:
    async with server() as api:
        async with Demo(api, seed=1):
            await asyncio.sleep(30)
        names = {it["metadata"]["uid"] for it in world_of(api).all("pods")}
        async with Demo(api, seed=2):
            await asyncio.sleep(1)
        assert len(names & {it["metadata"]["uid"] for it in world_of(api).all("pods")}) > 4


# --- clients


@pytest.mark.slow
@in_virtual_time
async def test_a_deployment_that_a_client_scales_gets_its_pods_and_keeps_its_size() -> None:
    async with server() as api:
        world = world_of(api)
        async with Demo(api, seed=4):
            await asyncio.sleep(20)
            await send(api, "PATCH", f"{DEPLOYMENTS}/web/scale", {"spec": {"replicas": 5}})
            await asyncio.sleep(2)
            assert len(pods_of(world, "web")) >= 5
            await asyncio.sleep(180)
            assert (await send(api, "GET", f"{DEPLOYMENTS}/web"))["spec"]["replicas"] == 5
        settle(world)
        check_replicas(world)
        assert len(pods_of(world, "web")) == 5


@in_virtual_time
async def test_a_deployment_can_be_scaled_to_nothing() -> None:
    async with server() as api:
        world = world_of(api)
        async with Demo(api, seed=4):
            await send(api, "PATCH", f"{DEPLOYMENTS}/web/scale", {"spec": {"replicas": 0}})
            await asyncio.sleep(30)
        assert pods_of(world, "web") == []


@pytest.mark.slow
@in_virtual_time
async def test_an_image_that_a_client_sets_is_rolled_out_and_stays() -> None:
    container = {"name": "web", "image": "mine:7"}
    template = {"spec": {"template": {"spec": {"containers": [container]}}}}
    async with server() as api:
        world = world_of(api)
        async with Demo(api, seed=4):
            await asyncio.sleep(20)
            await send(api, "PATCH", f"{DEPLOYMENTS}/web", template)
            await asyncio.sleep(200)
        settle(world)
        check_replicas(world)
        assert {it["spec"]["containers"][0]["image"] for it in pods_of(world, "web")} == {"mine:7"}


@in_virtual_time
async def test_a_pod_that_a_client_deletes_is_replaced() -> None:
    async with server() as api:
        world = world_of(api)
        async with Demo(api, seed=4):
            await asyncio.sleep(20)
            victim = pods_of(world, "web")[0]["metadata"]["name"]
            await send(api, "DELETE", f"/api/v1/namespaces/shop/pods/{victim}")
            await asyncio.sleep(20)
            assert victim not in {it["metadata"]["name"] for it in world.all("pods")}
        settle(world)
        check_replicas(world)


@in_virtual_time
async def test_a_deployment_that_a_client_deletes_takes_its_pods_along() -> None:
    async with server() as api:
        async with Demo(api, seed=4):
            await asyncio.sleep(20)
            await send(api, "DELETE", f"{DEPLOYMENTS}/web")
            await asyncio.sleep(30)
        pods = [text(it, "metadata", "labels", "app") for it in world_of(api).all("pods")]
        assert "web" not in pods
        assert "cart" in pods


@in_virtual_time
async def test_a_deployment_of_a_client_gets_pods_as_well() -> None:
    labels = {"app": "mine"}
    body: Json = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "mine"}}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
    body["spec"] = {"replicas": 2, "selector": {"matchLabels": labels}, "template": pod}
    async with server() as api:
        world = world_of(api)
        async with Demo(api, seed=4):
            await send(api, "POST", "/apis/apps/v1/namespaces/default/deployments", body)
            await asyncio.sleep(30)
        assert [is_ready(it) for it in pods_of(world, "mine")] == [True, True]


@in_virtual_time
async def test_a_namespace_can_be_deleted_and_the_rest_lives_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with server() as api:
        async with Demo(api, seed=4):
            await asyncio.sleep(20)
            await send(api, "DELETE", "/api/v1/namespaces/shop")
            await asyncio.sleep(30)
            world = world_of(api)
            assert "shop" not in {it["metadata"]["name"] for it in world.all("namespaces")}
            assert world.all("pods")
            before = world.revision
            await asyncio.sleep(60)
            assert world.revision > before
    assert [it for it in caplog.records if it.levelno >= logging.WARNING] == []


@pytest.mark.slow
@in_virtual_time
async def test_pods_wait_while_no_node_takes_them() -> None:
    async with server() as api:
        async with Demo(api, seed=4):
            for node in NODES:
                await send(api, "PATCH", f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}})
            await asyncio.sleep(20)
            await send(api, "PATCH", f"{DEPLOYMENTS}/cart/scale", {"spec": {"replicas": 6}})
            await asyncio.sleep(20)
        world = world_of(api)
        assert any(not text(it, "spec", "nodeName") for it in pods_of(world, "cart"))
        assert "FailedScheduling" in {it["reason"] for it in world.all("events")}


# --- decisions


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_a_rollout_ends_and_never_has_too_many_or_too_few(desired: int, new: int, old: int) -> None:
    """Every pod is ready by the next step."""
    for _ in range(40):
        ready = new + old
        step = rollout(desired, new=new, old=old, ready=ready)
        assert 0 <= step.new <= desired
        assert step.new + step.old <= max(desired + 1, ready)
        assert step.new + step.old >= min(desired, ready)
        new, old = step
    assert (new, old) == (desired, 0)


def test_an_old_pod_waits_for_a_new_one_that_is_ready() -> None:
    assert rollout(3, new=0, old=3, ready=3) == (1, 3)
    assert rollout(3, new=1, old=3, ready=3) == (1, 3)
    assert rollout(3, new=1, old=3, ready=4) == (1, 2)


def test_the_hash_of_a_template_is_that_of_its_content() -> None:
    assert template_hash({"a": 1, "b": 2}) == template_hash({"b": 2, "a": 1})
    assert template_hash({"a": 1}) != template_hash({"a": 2})
    assert len(template_hash({})) == 10


def test_a_pod_goes_to_the_emptiest_node_that_fits() -> None:
    nodes: list[Json] = [
        {"metadata": {"name": "a", "labels": {"disk": "ssd"}}},
        {"metadata": {"name": "b"}},
        {"metadata": {"name": "c"}, "spec": {"unschedulable": True}},
    ]
    pod: Json = {"spec": {}}
    assert choose_node(pod, {}, nodes) == "a"
    assert choose_node(pod, {"a": 1}, nodes) == "b"
    assert choose_node({"spec": {"nodeSelector": {"disk": "ssd"}}}, {"a": 9}, nodes) == "a"
    assert choose_node({"spec": {"nodeSelector": {"disk": "tape"}}}, {}, nodes) == ""


@given(st.integers(1, 6), st.booleans())
def test_replicas_change_by_one_within_bounds(held: int, is_growing: bool) -> None:
    wanted = next_replicas(held, is_growing=is_growing)
    assert abs(wanted - held) == 1
    assert 1 <= wanted <= 6


def test_releases_are_counted() -> None:
    assert next_image("registry.example:5000/web:1.9") == "registry.example:5000/web:1.10"
    assert next_image("web:latest") == "web:1.1"
