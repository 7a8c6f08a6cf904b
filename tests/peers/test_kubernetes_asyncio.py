"""The asynchronous twin of the official client (``kubernetes_asyncio``)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from kubernetes_asyncio import client, config, watch
from kubernetes_asyncio.client.exceptions import ApiException

from tests.peers.support_server import GROUP, Served

pytestmark = pytest.mark.slow


@pytest.fixture
async def api(peers_server: Served) -> AsyncGenerator[Any]:
    async with await config.new_client_from_config(str(peers_server.kubeconfig)) as made:
        yield made


@pytest.fixture
async def core(api: Any) -> Any:
    return client.CoreV1Api(api)


def config_map(name: str, **data: str) -> Any:
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name), data=data)


async def test_objects_are_created_listed_patched_and_deleted(core: Any, namespace: str) -> None:
    for number in range(3):
        await core.create_namespaced_config_map(namespace, config_map(f"map-{number}", a="1"))
    page = await core.list_namespaced_config_map(namespace, limit=2)
    assert [item.metadata.name for item in page.items] == ["map-0", "map-1"]
    token = page.metadata._continue
    rest = await core.list_namespaced_config_map(namespace, limit=2, _continue=token)
    assert [item.metadata.name for item in rest.items] == ["map-2"]
    patched = await core.patch_namespaced_config_map("map-0", namespace, {"data": {"b": "2"}})
    assert patched.data == {"a": "1", "b": "2"}
    await core.delete_namespaced_config_map("map-0", namespace)
    with pytest.raises(ApiException) as missing:
        await core.read_namespaced_config_map("map-0", namespace)
    assert missing.value.status == 404
    with pytest.raises(ApiException) as twice:
        await core.create_namespaced_config_map(namespace, config_map("map-1"))
    assert twice.value.status == 409


async def test_a_watch_sees_what_comes_changes_and_goes(core: Any, namespace: str) -> None:
    await core.create_namespaced_config_map(namespace, config_map("red"))
    seen: list[str] = []
    async with watch.Watch().stream(
        core.list_namespaced_config_map, namespace, timeout_seconds=20
    ) as stream:
        async for event in stream:
            seen.append(event["type"])
            if event["type"] == "ADDED":
                await core.patch_namespaced_config_map("red", namespace, {"data": {"a": "1"}})
            elif event["type"] == "MODIFIED":
                await core.delete_namespaced_config_map("red", namespace)
            else:
                break
    assert seen == ["ADDED", "MODIFIED", "DELETED"]


async def test_custom_objects_are_plain_dicts(api: Any, namespace: str) -> None:
    custom = client.CustomObjectsApi(api)
    where = (GROUP, "v1", namespace, "widgets")
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "one"}}
    made = await custom.create_namespaced_custom_object(*where, body | {"spec": {"size": 3}})
    assert made["spec"] == {"size": 3, "colour": "red"}
    found = await custom.list_namespaced_custom_object(*where)
    assert [item["metadata"]["name"] for item in found["items"]] == ["one"]
