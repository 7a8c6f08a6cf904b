"""Applying what a controller wants, on the embedded server."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from kinform import Client, Object, ObjectMeta
from kinform.apiserver import APIServer, faults
from kinform.clientset import apps_v1, core_v1, meta_v1
from kinform.errors import (
    ConflictError,
    InvalidError,
    NotFoundError,
    UnknownResourceError,
    UsageError,
)
from kinform.runtime.owner_references import AlreadyOwnedError, is_controlled_by
from kinform.runtime.server_side_apply import apply, apply_status
from kinform.testing import in_virtual_time, virtual_clock

MANAGER = "sites"


@asynccontextmanager
async def cluster() -> AsyncIterator[Client]:
    async with APIServer(port=None, seed=1) as server, server.connect() as client:
        await client.resource("v1/namespaces").create({"metadata": {"name": "shop"}})
        yield client


def config_map(name: str = "a", *, namespace: str = "", **data: str) -> dict[str, object]:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def deployment(name: str = "web") -> dict[str, Any]:
    labels = {"app": name}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "c", "image": "nginx"}]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }


async def owner_in(client: Client, namespace: str, name: str = "owner") -> Object:
    maps = client.resource("v1/configmaps", namespace=namespace)
    return await maps.create({"metadata": {"name": name}})


@in_virtual_time
async def test_applying_twice_writes_once() -> None:
    async with cluster() as client:
        first = await apply(client, deployment(), field_manager=MANAGER)
        assert (first.kind, str(first.key)) == ("Deployment", "default/web")
        again = await apply(client, deployment(), field_manager=MANAGER)
        assert again.resource_version == first.resource_version
        changed = deployment()
        changed["spec"]["replicas"] = 3
        assert (await apply(client, changed, field_manager=MANAGER)).at("spec", "replicas") == 3


@in_virtual_time
async def test_with_an_owner_it_is_controlled_in_the_owners_namespace_and_the_body_stays() -> None:
    async with cluster() as client:
        owner = await owner_in(client, "shop")
        body = config_map(x="1")
        before = copy.deepcopy(body)
        made = await apply(client, body, owner=owner, field_manager=MANAGER)
        assert (str(made.key), is_controlled_by(made, owner)) == ("shop/a", True)
        assert body == before
        again = await apply(client, body, owner=owner, field_manager=MANAGER)
        assert again.resource_version == made.resource_version


@in_virtual_time
async def test_two_owners_do_not_take_an_object_from_each_other() -> None:
    """With one field manager, the server would let them."""
    async with cluster() as client:
        one, two = await owner_in(client, "shop", "one"), await owner_in(client, "shop", "two")
        made = await apply(client, config_map(), owner=one, field_manager=MANAGER)
        words = r"ConfigMap shop/a is controlled by ConfigMap 'one'"
        with pytest.raises(AlreadyOwnedError, match=words):
            await apply(client, config_map(), owner=two, field_manager=MANAGER)
        found = await client.resource("v1/configmaps", namespace="shop").get("a")
        assert found.resource_version == made.resource_version


@in_virtual_time
async def test_the_namespace_is_what_the_body_says_or_the_argument_or_the_clients() -> None:
    async with cluster() as client:
        for body, argument, expected in (
            (config_map(), None, "default/a"),
            (config_map(), "shop", "shop/a"),
            (config_map(namespace="shop"), None, "shop/a"),
            (config_map(namespace="shop"), "shop", "shop/a"),
        ):
            made = await apply(client, body, namespace=argument, field_manager=MANAGER)
            assert str(made.key) == expected
        with pytest.raises(
            UsageError, match="ConfigMap a says namespace 'shop', and namespace='x'"
        ):
            await apply(client, config_map(namespace="shop"), namespace="x", field_manager=MANAGER)


@in_virtual_time
async def test_kinds_without_namespaces_have_none() -> None:
    async with cluster() as client:
        body: dict[str, Any] = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}
        made = await apply(client, body, namespace="shop", field_manager=MANAGER)
        assert str(made.key) == "n"
        owner = await owner_in(client, "shop")
        with pytest.raises(UsageError, match="cannot own Namespace n, which is in none"):
            await apply(client, body, owner=owner, field_manager=MANAGER)
        body["metadata"]["namespace"] = "shop"
        with pytest.raises(UsageError, match="says namespace 'shop', and a Namespace has none"):
            await apply(client, body, field_manager=MANAGER)


@in_virtual_time
async def test_an_owner_of_another_namespace_is_refused() -> None:
    async with cluster() as client:
        owner = await owner_in(client, "shop")
        with pytest.raises(UsageError, match="must be in one namespace"):
            await apply(client, config_map(namespace="default"), owner=owner, field_manager=MANAGER)


@in_virtual_time
async def test_fields_of_others_are_taken_unless_force_is_off() -> None:
    async with cluster() as client:
        await apply(client, config_map(x="1"), field_manager="others")
        with pytest.raises(ConflictError, match="conflict"):
            await apply(client, config_map(x="2"), field_manager=MANAGER, force=False)
        assert (await apply(client, config_map(x="2"), field_manager=MANAGER)).at(
            "data", "x"
        ) == "2"


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ({"apiVersion": None}, "apiVersion must be set to apply ConfigMap a"),
        ({"kind": ""}, "kind must be set to apply an object a"),
        ({"metadata": {}}, r"metadata\.name must be set to apply ConfigMap without a name"),
        ({"metadata": None}, r"metadata\.name must be set"),
        ({"apiVersion": "a/b/c"}, "apiVersion of ConfigMap a: 'a/b/c' is not an API version"),
        ({"kind": "PartialObjectMetadata"}, "was read with metadata_only"),
    ],
)
@in_virtual_time
async def test_what_does_not_say_what_it_is_is_refused(
    missing: dict[str, object], words: str
) -> None:
    async with cluster() as client:
        with pytest.raises(UsageError, match=words):
            await apply(client, {**config_map(), **missing}, field_manager=MANAGER)


@in_virtual_time
async def test_a_kind_that_is_not_installed_is_named() -> None:
    async with cluster() as client:
        body = {**config_map(), "apiVersion": "example.com/v1", "kind": "Website"}
        with pytest.raises(UnknownResourceError, match=r"'example\.com/v1/Website'"):
            await apply(client, body, field_manager=MANAGER)


@in_virtual_time
async def test_a_status_is_applied_apart_and_writes_once() -> None:
    async with cluster() as client:
        made = await apply(client, deployment(), field_manager=MANAGER)
        status = {"replicas": 2, "observedGeneration": made.metadata.generation}
        first = await apply_status(client, made, status=status, field_manager=MANAGER)
        assert first.at("status") == status
        assert first.metadata.generation == made.metadata.generation
        again = await apply_status(client, made, status=status, field_manager=MANAGER)
        assert again.resource_version == first.resource_version
        spec = await apply(client, deployment(), field_manager=MANAGER)
        assert spec.at("status") == status


@in_virtual_time
async def test_kinds_without_namespaces_have_a_status_too() -> None:
    async with cluster() as client:
        body: dict[str, Any] = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
        node = await apply(client, body, field_manager=MANAGER)
        status = {"capacity": {"cpu": "4"}}
        applied = await apply_status(client, node, status=status, field_manager=MANAGER)
        assert (str(applied.key), applied.at("status", "capacity", "cpu")) == ("n1", "4")


@in_virtual_time
async def test_a_status_that_the_server_refuses_says_what_is_wrong() -> None:
    async with cluster() as client:
        made = await apply(client, deployment(), field_manager=MANAGER)
        with pytest.raises(InvalidError) as caught:
            await apply_status(client, made, status={"replicas": -1}, field_manager=MANAGER)
        assert "status.replicas" in [cause.field for cause in caught.value.causes]


@in_virtual_time
async def test_only_the_object_that_is_meant_gets_a_status() -> None:
    async with cluster() as client:
        old = await apply(client, deployment(), field_manager=MANAGER)
        deployments = client.resource("apps/v1/deployments", namespace="default")
        await deployments.delete("web")
        with pytest.raises(NotFoundError):
            await apply_status(client, old, status={"replicas": 1}, field_manager=MANAGER)
        await apply(client, deployment(), field_manager=MANAGER)
        with pytest.raises(ConflictError, match=f"uid {old.uid} is gone; another object has"):
            await apply_status(client, old, status={"replicas": 1}, field_manager=MANAGER)
        assert (await deployments.get("web")).at("status", "replicas") is None


@in_virtual_time
async def test_a_status_reaches_an_object_that_has_changed_meanwhile() -> None:
    async with cluster() as client:
        old = await apply(client, deployment(), field_manager=MANAGER)
        deployments = client.resource("apps/v1/deployments", namespace="default")
        await deployments.patch("web", {"spec": {"replicas": 7}})
        new = await apply_status(client, old, status={"replicas": 1}, field_manager=MANAGER)
        assert (new.at("spec", "replicas"), new.at("status", "replicas")) == (7, 1)


@in_virtual_time
async def test_a_status_that_others_manage_is_refused_without_force() -> None:
    async with cluster() as client:
        made = await apply(client, deployment(), field_manager=MANAGER)
        made = await apply_status(client, made, status={"replicas": 1}, field_manager="others")
        before = virtual_clock().boot()
        with pytest.raises(ConflictError, match="conflict with"):
            await apply_status(
                client, made, status={"replicas": 2}, field_manager=MANAGER, force=False
            )
        assert virtual_clock().boot() == before  # at once: trying again would not help


@in_virtual_time
async def test_an_object_that_keeps_changing_is_given_up_after_a_few_tries() -> None:
    async with APIServer(port=None) as server, server.connect() as client:
        made = await apply(client, deployment(), field_manager=MANAGER)
        server.faults.add(faults.status(409, verb="patch"))
        with pytest.raises(ConflictError):
            await apply_status(client, made, status={"replicas": 2}, field_manager=MANAGER)


@in_virtual_time
async def test_a_status_needs_an_object_that_was_created() -> None:
    async with cluster() as client:
        with pytest.raises(UsageError, match="has no uid: create it first"):
            await apply_status(
                client, Object.from_dict(deployment()), status={}, field_manager=MANAGER
            )


# --- models


class Site(msgspec.Struct):
    """A model that does not say its kind."""

    metadata: ObjectMeta


@in_virtual_time
async def test_a_model_is_applied_as_what_its_class_says_and_owned_by_a_model() -> None:
    async with cluster() as client:
        owner = await client.core_v1.config_maps("shop").create(
            core_v1.ConfigMap(metadata=meta_v1.ObjectMeta(name="owner"))
        )
        body = core_v1.ConfigMap(metadata=meta_v1.ObjectMeta(name="a"), data={"x": ""})
        made = await apply(client, body, owner=owner, field_manager=MANAGER)
        assert (made.kind, str(made.key), made.at("data", "x")) == ("ConfigMap", "shop/a", "")
        assert is_controlled_by(made, owner)
        again = await apply(client, body, owner=owner, field_manager=MANAGER)
        assert again.resource_version == made.resource_version
        with pytest.raises(AlreadyOwnedError):
            await apply(client, body, owner=made.to_dict(), namespace="shop", field_manager=MANAGER)


@in_virtual_time
async def test_a_model_that_does_not_say_its_kind_is_not_applied() -> None:
    async with cluster() as client:
        site = Site(ObjectMeta(name="a", namespace="shop", uid="u", resource_version="1"))
        with pytest.raises(UsageError, match=r"apiVersion must be set .* generated models"):
            await apply(client, site, field_manager=MANAGER)
        with pytest.raises(UsageError, match=r"apiVersion must be set .* generated models"):
            await apply_status(client, site, status={}, field_manager=MANAGER)


@in_virtual_time
async def test_the_status_of_a_model_is_applied_from_a_model() -> None:
    async with cluster() as client:
        deployments = client.apps_v1.deployments("shop")
        made = await deployments.create(deployment())
        await deployments.patch("web", {"metadata": {"labels": {"now": "older"}}})
        status = apps_v1.DeploymentStatus(observed_generation=1, replicas=0)
        after = await apply_status(client, made, status=status, field_manager=MANAGER)
        assert after.at("status", "observedGeneration") == 1
        with pytest.raises(UsageError, match="expected an object with fields"):
            await apply_status(client, made, status=[1], field_manager=MANAGER)
        never = apps_v1.Deployment(metadata=meta_v1.ObjectMeta(name="web"))
        with pytest.raises(UsageError, match=r"^apps/v1/Deployment web has no uid"):
            await apply_status(client, never, status=status, field_manager=MANAGER)
