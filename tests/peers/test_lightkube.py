"""lightkube, blocking and asynchronous: models, generic resources, apply, watches."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from typing import Any

import pytest
from lightkube import AsyncClient, Client, KubeConfig
from lightkube.core.exceptions import ApiError
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.apps_v1 import DeploymentSpec
from lightkube.models.core_v1 import Container, PodSpec, PodTemplateSpec
from lightkube.models.meta_v1 import LabelSelector, ObjectMeta
from lightkube.operators import in_
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import ConfigMap, Pod
from lightkube.types import PatchType

from tests.peers.support_server import GROUP, Served

pytestmark = pytest.mark.slow

Widget: Any = create_namespaced_resource(GROUP, "v1", "Widget", "widgets")


@pytest.fixture
def client(peers_server: Served, namespace: str) -> Iterator[Client]:
    config = KubeConfig.from_file(peers_server.kubeconfig)
    with Client(config=config, namespace=namespace, field_manager="ann", trust_env=False) as made:
        yield made


@pytest.fixture
async def async_client(peers_server: Served, namespace: str) -> AsyncGenerator[AsyncClient]:
    config = KubeConfig.from_file(peers_server.kubeconfig)
    async with AsyncClient(
        config=config, namespace=namespace, field_manager="ann", trust_env=False
    ) as made:
        yield made


def config_map(name: str, labels: dict[str, str] | None = None, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, labels=labels), data=data)


def test_objects_are_created_read_replaced_and_deleted(client: Client) -> None:
    made = client.create(config_map("red", a="1"))
    assert made.metadata is not None
    assert made.metadata.uid
    found = client.get(ConfigMap, "red")
    assert found.data == {"a": "1"}
    found.data = {"b": "2"}
    assert client.replace(found).data == {"b": "2"}
    client.delete(ConfigMap, "red")
    assert list(client.list(ConfigMap)) == []


def test_lists_are_selected_and_paged(client: Client) -> None:
    for number in range(5):
        labels = {"parity": "even" if number % 2 == 0 else "odd"}
        client.create(config_map(f"map-{number}", labels))

    def names(**options: Any) -> list[str]:
        found: Any = client.list(ConfigMap, **options)
        return [one.metadata.name for one in found]

    everything = [f"map-{number}" for number in range(5)]
    assert names() == everything
    assert names(chunk_size=2) == everything
    assert names(labels={"parity": in_(["even", "prime"])}) == ["map-0", "map-2", "map-4"]
    assert names(fields={"metadata.name": "map-3"}) == ["map-3"]
    client.deletecollection(ConfigMap)
    assert names() == []


def test_every_kind_of_patch_is_taken(client: Client) -> None:
    client.create(config_map("red", a="1"))
    merged = client.patch(ConfigMap, "red", {"data": {"b": "2"}}, patch_type=PatchType.MERGE)
    assert merged.data == {"a": "1", "b": "2"}
    assert client.patch(ConfigMap, "red", {"data": {"a": None}}).data == {"b": "2"}
    steps = [{"op": "add", "path": "/data/c", "value": "3"}]
    found = client.patch(ConfigMap, "red", steps, patch_type=PatchType.JSON)
    assert found.data == {"b": "2", "c": "3"}
    assert client.apply(config_map("red", d="4")).data == {"b": "2", "c": "3", "d": "4"}
    with pytest.raises(ApiError) as refused:
        client.apply(config_map("red", d="5"), field_manager="bob")
    assert (refused.value.status.code, refused.value.status.reason) == (409, "Conflict")
    forced = client.apply(config_map("red", d="5"), field_manager="bob", force=True)
    assert forced.data == {"b": "2", "c": "3", "d": "5"}
    labelled: Any = client.set(ConfigMap, "red", labels={"app": "web"})
    assert labelled.metadata.labels == {"app": "web"}


def test_subresources_are_resources_of_their_own(client: Client) -> None:
    labels = {"app": "web"}
    pod = PodTemplateSpec(
        metadata=ObjectMeta(labels=labels),
        spec=PodSpec(containers=[Container(name="main", image="nginx")]),
    )
    spec = DeploymentSpec(selector=LabelSelector(matchLabels=labels), template=pod, replicas=2)
    client.create(Deployment(metadata=ObjectMeta(name="web"), spec=spec))
    scale = client.get(Deployment.Scale, "web")
    assert scale.spec is not None
    scale.spec.replicas = 5
    client.replace(scale, "web")
    status = {"status": {"replicas": 5, "readyReplicas": 4}}
    found = client.patch(Deployment.Status, "web", status)
    assert found.spec is not None
    assert found.status is not None
    assert (found.spec.replicas, found.status.readyReplicas) == (5, 4)


def test_refusals_are_api_errors_with_the_servers_status(client: Client) -> None:
    with pytest.raises(ApiError) as missing:
        client.get(ConfigMap, "nobody")
    assert (missing.value.status.code, missing.value.status.reason) == (404, "NotFound")
    made = client.create(config_map("red"))
    with pytest.raises(ApiError) as twice:
        client.create(config_map("red"))
    assert (twice.value.status.code, twice.value.status.reason) == (409, "AlreadyExists")
    client.patch(ConfigMap, "red", {"data": {"a": "1"}})
    with pytest.raises(ApiError) as conflict:
        client.replace(made)
    assert (conflict.value.status.code, conflict.value.status.reason) == (409, "Conflict")


def test_a_watch_sees_what_comes_changes_and_goes_and_resumes(client: Client) -> None:
    first = client.create(config_map("first"))
    assert first.metadata is not None
    client.create(config_map("red"))
    client.patch(ConfigMap, "red", {"data": {"a": "1"}})
    client.delete(ConfigMap, "red")
    seen: list[tuple[str, str]] = []
    begin = first.metadata.resourceVersion
    for kind, one in client.watch(ConfigMap, resource_version=begin, server_timeout=1):
        assert one.metadata is not None
        seen.append((kind, one.metadata.name or ""))
        if len(seen) == 3:  # the next event comes through another request
            client.create(config_map("late"))
        if len(seen) == 4:
            break
    assert seen == [("ADDED", "red"), ("MODIFIED", "red"), ("DELETED", "red"), ("ADDED", "late")]


def test_custom_resources_are_generic(client: Client) -> None:
    made = client.create(Widget(metadata=ObjectMeta(name="one"), spec={"size": 3}))
    assert made.spec == {"size": 3, "colour": "red"}
    client.patch(Widget.Status, "one", {"status": {"phase": "Ready"}}, patch_type=PatchType.MERGE)
    (only,) = client.list(Widget)
    assert only.status == {"phase": "Ready"}
    for kind, one in client.watch(Widget):
        assert (kind, one.metadata.name) == ("ADDED", "one")
        break
    with pytest.raises(ApiError) as invalid:
        client.create(Widget(metadata=ObjectMeta(name="two"), spec={"size": 0}))
    assert invalid.value.status.code == 422
    client.delete(Widget, "one")
    with pytest.raises(ApiError):
        client.get(Widget, "one")


async def test_the_asynchronous_client_does_the_same(async_client: AsyncClient) -> None:
    for number in range(3):
        await async_client.create(config_map(f"map-{number}"))
    names = [one.metadata.name async for one in async_client.list(ConfigMap, chunk_size=1)]  # type: ignore[union-attr] # optional in lightkube's models
    assert names == ["map-0", "map-1", "map-2"]
    applied = await async_client.apply(config_map("map-0", a="1"))
    assert applied.data == {"a": "1"}
    applied.data = {"b": "2"}
    assert applied.metadata is not None
    applied.metadata.managedFields = None
    assert (await async_client.replace(applied)).data == {"b": "2"}
    await async_client.delete(ConfigMap, "map-1")
    with pytest.raises(ApiError) as missing:
        await async_client.get(ConfigMap, "map-1")
    assert missing.value.status.code == 404


async def test_the_asynchronous_watch_sees_changes_as_they_happen(
    async_client: AsyncClient,
) -> None:
    await async_client.create(config_map("red"))
    seen: list[tuple[str, object]] = []
    watch = async_client.watch(ConfigMap, fields={"metadata.name": "red"})
    async for kind, one in watch:
        seen.append((kind, one.data))
        if kind == "ADDED":
            await async_client.patch(ConfigMap, "red", {"data": {"a": "1"}})
        elif kind == "MODIFIED":
            await async_client.delete(ConfigMap, "red")
        else:
            break
    await watch.aclose()  # type: ignore[attr-defined] # a generator, called an iterator
    assert seen == [("ADDED", None), ("MODIFIED", {"a": "1"}), ("DELETED", {"a": "1"})]


async def test_the_asynchronous_client_waits_for_conditions(async_client: AsyncClient) -> None:
    spec = PodSpec(containers=[Container(name="main", image="nginx")])
    await async_client.create(Pod(metadata=ObjectMeta(name="one"), spec=spec))
    status = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    await async_client.patch(Pod.Status, "one", status)
    found = await async_client.wait(Pod, "one", for_conditions=["Ready"])
    assert found.metadata is not None
    assert found.metadata.name == "one"
