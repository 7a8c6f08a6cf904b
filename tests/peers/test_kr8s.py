"""kr8s, asynchronous and blocking: objects that know their API, selectors, watches."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import kr8s
import pytest
from kr8s.asyncio.objects import ConfigMap, Deployment, Pod, new_class
from kr8s.objects import ConfigMap as BlockingConfigMap

from tests.peers.support_server import GROUP, Served

pytestmark = [
    pytest.mark.slow,
    # kr8s knows versions up to 1.35, and says so on connecting to any newer server.
    pytest.mark.filterwarnings("ignore:Kubernetes version .* is not supported:UserWarning"),
]


@pytest.fixture
async def api(peers_server: Served, namespace: str) -> AsyncGenerator[Any]:
    made: Any = await kr8s.asyncio.api(kubeconfig=str(peers_server.kubeconfig), namespace=namespace)
    yield made
    await made._session.aclose()  # kr8s leaves it to the garbage collector


def config_map(name: str, labels: dict[str, str] | None = None, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels or {}}, "data": data}


async def make(api: Any, name: str, labels: dict[str, str] | None = None, **data: str) -> Any:
    made = await ConfigMap(config_map(name, labels, **data), api=api)
    await made.create()
    return made


async def test_objects_are_created_read_patched_and_deleted(api: Any) -> None:
    made = await make(api, "red", a="1")
    assert made.metadata.uid
    found = await ConfigMap.get("red", api=api)
    assert found.raw["data"] == {"a": "1"}
    await found.patch({"data": {"b": "2"}})
    await found.patch([{"op": "remove", "path": "/data/a"}], type="json")
    await found.label(app="web")
    await found.annotate(why="because")
    await made.refresh()
    assert made.raw["data"] == {"b": "2"}
    assert (dict(made.labels), dict(made.annotations)) == ({"app": "web"}, {"why": "because"})
    await made.delete()
    assert not await made.exists()


async def test_lists_are_selected_and_paged(api: Any) -> None:
    for number in range(5):
        await make(api, f"map-{number}", {"parity": "even" if number % 2 == 0 else "odd"})

    async def names(**options: Any) -> list[str]:
        return [one.name async for one in api.get("configmaps", **options)]

    assert await names() == [f"map-{number}" for number in range(5)]
    assert await names(label_selector={"parity": "even"}) == ["map-0", "map-2", "map-4"]
    assert await names(field_selector="metadata.name=map-3") == ["map-3"]


async def test_a_list_longer_than_a_page_is_read_to_its_end(peers_server: Served, api: Any) -> None:
    for number in range(120):  # kr8s asks for a hundred at a time
        peers_server.create("v1/configmaps", config_map(f"map-{number}"), api.namespace)
    names = [one.name async for one in api.get("configmaps")]
    assert names == sorted(f"map-{number}" for number in range(120))


async def test_a_deployment_is_scaled(api: Any) -> None:
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "nginx"}]},
    }
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    web = await Deployment({"metadata": {"name": "web"}, "spec": spec}, api=api)
    await web.create()
    status = {"status": {"replicas": 5, "readyReplicas": 5, "observedGeneration": 2}}
    await web.patch(status, subresource="status")
    await web.scale(5)
    assert web.replicas == 5


async def test_refusals_are_kr8s_own_errors(api: Any) -> None:
    with pytest.raises(kr8s.NotFoundError):
        await ConfigMap.get("nobody", api=api, timeout=0)
    await make(api, "red")
    with pytest.raises(kr8s.ServerError) as twice:
        await make(api, "red")
    assert twice.value.response is not None
    assert twice.value.response.status_code == 409
    assert twice.value.response.json()["reason"] == "AlreadyExists"


async def test_a_watch_sees_what_comes_changes_and_goes_and_resumes(api: Any) -> None:
    made = await make(api, "red")
    seen: list[str] = []
    watch = api.watch("configmaps", namespace=api.namespace)
    last = ""
    async for kind, one in watch:
        seen.append(kind)
        last = one.metadata.resourceVersion
        if kind == "ADDED":
            await made.patch({"data": {"a": "1"}})
        elif kind == "MODIFIED":
            await made.delete()
        else:
            break
    await watch.aclose()
    assert seen == ["ADDED", "MODIFIED", "DELETED"]
    await make(api, "late")
    again = api.watch("configmaps", namespace=api.namespace, since=last)
    async for kind, one in again:
        assert (kind, one.name) == ("ADDED", "late")
        break
    await again.aclose()


async def test_a_watch_from_a_forgotten_past_is_told_so(peers_server: Served, api: Any) -> None:
    made = await make(api, "red")
    await made.patch({"data": {"a": "1"}})
    peers_server.compact()
    params = {"resourceVersion": "1"}
    async with api.async_get_kind(
        "configmaps", namespace=api.namespace, params=params, watch=True, timeout=None
    ) as (_, response):
        async for line in response.aiter_lines():
            assert '"type":"ERROR"' in line
            assert '"code":410' in line
            break


async def test_a_pod_is_waited_for(api: Any) -> None:
    spec = {"containers": [{"name": "main", "image": "nginx"}]}
    pod = await Pod({"metadata": {"name": "one"}, "spec": spec}, api=api)
    await pod.create()
    conditions = [{"type": kind, "status": "True"} for kind in ("Ready", "ContainersReady")]
    status = {"conditions": conditions, "phase": "Running"}
    await pod.patch({"status": status}, subresource="status")
    await pod.wait("condition=Ready", timeout=20)
    await pod.wait("jsonpath='{.status.phase}'=Running", timeout=20)
    assert await pod.ready()


async def test_custom_resources_are_classes_of_ones_own(api: Any) -> None:
    widget: Any = new_class(kind="Widget", version=f"{GROUP}/v1", namespaced=True)
    one = await widget({"metadata": {"name": "one"}, "spec": {"size": 3}}, api=api)
    await one.create()
    assert dict(one.spec) == {"size": 3, "colour": "red"}
    await one.patch({"status": {"phase": "Ready"}}, subresource="status")
    (found,) = [it async for it in api.get(f"widgets.{GROUP}")]
    assert found.status.phase == "Ready"
    with pytest.raises(kr8s.ServerError) as invalid:
        await one.patch({"spec": {"size": 0}})
    assert invalid.value.response is not None
    assert invalid.value.response.status_code == 422
    await one.delete()
    assert not await one.exists()


async def test_the_server_tells_its_version_its_kinds_and_who_one_is(api: Any) -> None:
    assert (await api.version())["minor"] == "36"
    kinds = {(one["version"], one["name"]) for one in await api.api_resources()}
    assert {("v1", "pods"), ("apps/v1", "deployments"), (f"{GROUP}/v1", "widgets")} <= kinds
    assert await api.lookup_kind("deploy") == ("deployment.apps/v1", "deployments", True)
    assert await api.whoami()


def test_the_blocking_objects_do_the_same(peers_server: Served, namespace: str) -> None:
    api: Any = kr8s.api(kubeconfig=str(peers_server.kubeconfig), namespace=namespace)
    made: Any = BlockingConfigMap(config_map("red", a="1"), api=api)
    made.create()
    made.patch({"data": {"b": "2"}})
    (found,) = api.get("configmaps")
    assert found.raw["data"] == {"a": "1", "b": "2"}
    for kind, one in api.watch("configmaps", namespace=namespace):
        assert (kind, one.name) == ("ADDED", "red")
        break
    made.delete()
    assert not made.exists()
