"""The helpers of controllers on a real kube-apiserver: finalizers, applying, conditions, owners."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from kinform import Client, Object, ResourceClient
from kinform.errors import ConflictError, InvalidError, NotFoundError, UnknownResourceError
from kinform.runtime.finalizer import Finalizer
from kinform.runtime.owner_references import AlreadyOwnedError, is_controlled_by
from kinform.runtime.server_side_apply import apply, apply_status
from kinform.runtime.status_conditions import with_condition
from kinform.testing import ControlPlane
from tests.support.eventually import eventually

pytestmark = pytest.mark.e2e

OURS = Finalizer("example.com/ours")
THEIRS = Finalizer("example.com/theirs")
MANAGER = "kinform-tests"


@pytest.fixture
async def client(kinform_control_plane: ControlPlane) -> AsyncIterator[Client]:
    async with kinform_control_plane.connect() as client:
        yield client


@pytest.fixture
def maps(client: Client, kinform_namespace: str) -> ResourceClient[Object]:
    return client.resource("v1/configmaps", namespace=kinform_namespace)


async def never() -> None:
    raise AssertionError("there was nothing to clean up")


async def test_writers_that_add_finalizers_at_once_lose_none(
    maps: ResourceClient[Object],
) -> None:
    finalizers = [Finalizer(f"example.com/f{number}") for number in range(4)]
    for name in "abc":
        first = await maps.create({"metadata": {"name": name}})
        async with asyncio.TaskGroup() as group:
            for finalizer in finalizers:
                group.create_task(finalizer.ensure(maps, first))
        both = await maps.get(name)
        assert sorted(both.metadata.finalizers) == [each.name for each in finalizers]

        async def remove(finalizer: Finalizer, obj: Object = both) -> None:
            await finalizer.remove(maps, obj)

        async with asyncio.TaskGroup() as group:
            group.create_task(remove(finalizers[0]))
            group.create_task(remove(finalizers[1]))
            group.create_task(OURS.ensure(maps, both))
        left = [*(each.name for each in finalizers[2:]), OURS.name]
        assert sorted((await maps.get(name)).metadata.finalizers) == left


async def test_a_deletion_waits_for_the_cleanup_and_the_next_of_that_name_is_left_alone(
    maps: ResourceClient[Object],
) -> None:
    made = await OURS.ensure(maps, await maps.create({"metadata": {"name": "a"}}))
    assert not await OURS.handle(maps, made, never)
    deleted = await maps.delete("a")
    assert deleted is not None
    refused = await THEIRS.ensure(maps, made)  # from an old cache; the server takes no new ones
    assert refused.metadata.deletion_timestamp
    assert refused.metadata.finalizers == (OURS.name,)

    cleaned: list[str] = []

    async def cleanup() -> None:
        cleaned.append((await maps.get("a")).uid)

    assert await OURS.handle(maps, deleted, cleanup)
    assert cleaned == [made.uid]
    assert await OURS.handle(maps, deleted, never)
    assert await OURS.remove(maps, deleted) is None
    with pytest.raises(NotFoundError):
        await THEIRS.ensure(maps, made)

    new = await OURS.ensure(maps, await maps.create({"metadata": {"name": "a"}}))
    assert await OURS.remove(maps, deleted) is None
    assert await OURS.handle(maps, deleted, never)
    with pytest.raises(ConflictError, match="another object has its name"):
        await THEIRS.ensure(maps, made)
    assert (await maps.get("a")).resource_version == new.resource_version


async def test_applying_twice_writes_once_and_takes_nothing_from_another_owner(
    client: Client, maps: ResourceClient[Object], kinform_namespace: str
) -> None:
    one = await maps.create({"metadata": {"name": "one"}})
    two = await maps.create({"metadata": {"name": "two"}})
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}}
    made = await apply(client, body, owner=one, field_manager=MANAGER)
    assert (made.namespace, is_controlled_by(made, one)) == (kinform_namespace, True)
    again = await apply(client, body, owner=one, field_manager=MANAGER)
    assert again.resource_version == made.resource_version
    with pytest.raises(AlreadyOwnedError, match="ConfigMap 'one'"):
        await apply(client, body, owner=two, field_manager=MANAGER)


WEBSITES = "helpers.kinform.test"


async def a_kind_with_conditions(client: Client) -> None:
    """Install a CRD whose conditions are validated as ``metav1.Condition`` is."""
    condition = {
        "type": "object",
        "required": ["type", "status", "lastTransitionTime", "reason", "message"],
        "properties": {
            "type": {"type": "string"},
            "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
            "observedGeneration": {"type": "integer", "minimum": 0},
            "lastTransitionTime": {"type": "string", "format": "date-time"},
            "reason": {"type": "string", "minLength": 1},
            "message": {"type": "string", "maxLength": 32768},
        },
    }
    conditions = {
        "type": "array",
        "items": condition,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    }
    replicas = {"type": "integer", "minimum": 0}
    status = {"type": "object", "properties": {"conditions": conditions, "replicas": replicas}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"status": status}}},
    }
    names = {"plural": "websites", "singular": "website", "kind": "Website"}
    spec = {"group": WEBSITES, "scope": "Namespaced", "names": names, "versions": [version]}
    await apply(
        client,
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"websites.{WEBSITES}"},
            "spec": spec,
        },
        field_manager=MANAGER,
    )


async def test_a_status_is_applied_checked_and_never_given_to_another_object(
    client: Client, kinform_namespace: str
) -> None:
    await a_kind_with_conditions(client)
    body = {"apiVersion": f"{WEBSITES}/v1", "kind": "Website", "metadata": {"name": "site"}}

    async def create() -> Object:
        return await apply(client, body, namespace=kinform_namespace, field_manager=MANAGER)

    # The kind is served a moment after it was made.
    site = await eventually(create, NotFoundError, UnknownResourceError)

    sites = client.resource(f"{WEBSITES}/v1/websites", namespace=kinform_namespace)
    await sites.patch("site", {"metadata": {"labels": {"a": "b"}}})  # so that ours is old
    conditions = with_condition(site, "Ready", status=False, reason="Starting", message="…")
    status: dict[str, object] = {"conditions": conditions, "replicas": 1}
    first = await apply_status(client, site, status=status, field_manager=MANAGER)
    assert first.at("status", "conditions") == conditions
    again = await apply_status(client, first, status=status, field_manager=MANAGER)
    assert again.resource_version == first.resource_version

    with pytest.raises(InvalidError) as caught:
        await apply_status(client, site, status={"replicas": -1}, field_manager=MANAGER)
    assert [cause.field for cause in caught.value.causes] == ["status.replicas"]

    await sites.delete("site")
    new = await create()
    with pytest.raises(ConflictError, match="another object has its name"):
        await apply_status(client, site, status=status, field_manager=MANAGER)
    assert (await sites.get("site")).resource_version == new.resource_version
