"""Every verb of the client on a real kube-apiserver: built-in kinds and a CRD."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
import pytest

import kinform
from kinform import Client, Object, ObjectName
from kinform.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    UnknownResourceError,
    UsageError,
)
from kinform.rest.config import Config
from kinform.rest.transport import HttpRequest, HttpResponse
from kinform.rest.transport.aiohttp_transport import AiohttpTransport
from kinform.rest.transport.tls import TlsSource
from kinform.rest.warnings import ApiWarning
from kinform.testing import ControlPlane
from tests.support.eventually import eventually

pytestmark = pytest.mark.e2e


@pytest.fixture
async def client(kinform_control_plane: ControlPlane) -> AsyncIterator[Client]:
    async with kinform_control_plane.connect() as client:
        yield client


def config_map(name: str, **data: str) -> dict[str, object]:
    return {"metadata": {"name": name, "labels": {"app": "test"}}, "data": data}


async def test_the_version_is_the_one_that_was_built(client: Client) -> None:
    version = await client.version()
    assert version.git_version == "v1.36.4"
    assert (version.major, version.minor) == ("1", "36")


async def test_a_config_map_from_birth_to_death(client: Client, kinform_namespace: str) -> None:
    maps = client.resource("v1/configmaps", namespace=kinform_namespace)
    made = await maps.create(config_map("a", x="1"), field_manager="tests")
    assert (made.kind, made.name, made.namespace) == ("ConfigMap", "a", kinform_namespace)
    assert (await maps.get("a")).uid == made.uid
    with pytest.raises(AlreadyExistsError):
        await maps.create(config_map("a"))

    whole = made.to_dict()
    whole["data"] = {"x": "2"}
    replaced = await maps.replace(whole)
    assert replaced.at("data", "x") == "2"
    with pytest.raises(ConflictError):  # the version in it is the old one
        await maps.replace(whole)

    assert (await maps.patch("a", {"data": {"y": "3"}})).at("data") == {"x": "2", "y": "3"}
    operations = [{"op": "remove", "path": "/data/y"}]
    assert (await maps.patch("a", operations)).at("data") == {"x": "2"}
    strategic = await maps.patch("a", {"data": {"z": "4"}}, patch_type="strategic")
    assert strategic.at("data", "z") == "4"

    assert [one.name for one in await maps.list(label_selector="app=test")] == ["a"]
    assert [one.name for one in await maps.list(label_selector={"app": "no"})] == []
    assert [one.name async for one in maps.iterate(field_selector="metadata.name=a")] == ["a"]

    with pytest.raises(ConflictError):
        await maps.delete("a", uid="not-this-one")
    assert await maps.delete("a", uid=made.uid) is None
    with pytest.raises(NotFoundError) as caught:
        await maps.get("a")
    assert "configmaps" in str(caught.value)


async def test_update_changes_what_the_function_changes_and_wins_against_others(
    client: Client, kinform_namespace: str
) -> None:
    maps = client.resource("configmaps", namespace=kinform_namespace)
    await maps.create(config_map("counter", n="0"))

    def increment(content: dict[str, Any]) -> None:
        content["data"]["n"] = str(int(content["data"]["n"]) + 1)

    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(maps.update("counter", increment))
    assert (await maps.get("counter")).at("data", "n") == "3"
    before = await maps.get("counter")
    unchanged = await maps.update("counter", lambda content: None)
    assert unchanged.resource_version == before.resource_version


@pytest.mark.parametrize(
    ("rival", "expected"),
    [
        ({"data": {"x": None}}, {"y": "1", "mine": "yes"}),  # the patch no longer fits: 422
        ({"data": {"y": "2"}}, {"y": "2", "mine": "yes"}),  # it would fit: 409
    ],
    ids=["removes the same key", "changes another key"],
)
async def test_update_begins_again_when_a_rival_writes_in_between(
    client: Client, kinform_namespace: str, rival: dict[str, object], expected: dict[str, str]
) -> None:
    theirs = client.resource("configmaps", namespace=kinform_namespace)
    await theirs.create(config_map("race", x="1", y="1"))
    attempts = 0

    def change(content: dict[str, Any]) -> None:
        nonlocal attempts
        attempts += 1
        content["data"].pop("x", None)
        content["data"]["mine"] = "yes"

    transport = Meddling(client.config, lambda: theirs.patch("race", rival))
    async with kinform.connect(client.config, transport=transport) as ours:
        await ours.resource("configmaps", namespace=kinform_namespace).update("race", change)
    assert attempts == 2
    assert (await theirs.get("race")).at("data") == expected


class Meddling:
    """The real transport, but something happens before the first PATCH goes out."""

    def __init__(self, config: Config, meddle: Callable[[], Awaitable[object]]) -> None:
        self.inner = AiohttpTransport(tls=TlsSource(config).context)
        self.meddle = [meddle]

    @contextlib.asynccontextmanager
    async def send(self, request: HttpRequest) -> AsyncGenerator[HttpResponse]:
        if request.method == "PATCH" and self.meddle:
            await self.meddle.pop()()
        async with self.inner.send(request) as response:
            yield response

    async def aclose(self) -> None:
        await self.inner.aclose()


class Replicas(msgspec.Struct):
    replicas: int = 1


class Deployment(msgspec.Struct):
    __resource__ = "apps/v1/deployments"
    spec: Replicas


def deployment(name: str) -> dict[str, object]:
    labels = {"app": name}
    container = {"name": "web", "image": "nginx:1"}
    return {
        "metadata": {"name": name},
        "spec": {
            "paused": True,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


async def test_a_model_that_declares_little_loses_nothing_on_update(
    client: Client, kinform_namespace: str
) -> None:
    raw = client.resource("deployments.apps", namespace=kinform_namespace)
    await raw.create(deployment("web"))
    typed = client.resource(Deployment, namespace=kinform_namespace)
    assert await typed.get("web") == Deployment(Replicas(1))
    updated = await typed.update("web", lambda seen: Deployment(Replicas(seen.spec.replicas + 4)))
    assert updated.spec.replicas == 5
    after = await raw.get("web")
    assert after.at("spec", "paused") is True
    assert after.at("spec", "template", "spec", "containers", 0, "image") == "nginx:1"
    with pytest.raises(UsageError, match="would drop every field"):
        await typed.replace(Deployment(Replicas(1)))  # type: ignore[arg-type]


async def test_status_and_scale_are_parts_of_their_own(
    client: Client, kinform_namespace: str
) -> None:
    deployments = client.resource("Deployment", namespace=kinform_namespace)
    await deployments.create(deployment("web"))
    patched = await deployments.status.patch("web", {"status": {"observedGeneration": 7}})
    assert patched.at("status", "observedGeneration") == 7
    assert (await deployments.scale.get("web")).kind == "Scale"
    scaled = await deployments.scale.patch("web", {"spec": {"replicas": 3}})
    assert scaled.at("spec", "replicas") == 3
    assert (await deployments.get("web")).at("spec", "replicas") == 3


async def test_eviction_is_a_subresource_one_creates(
    client: Client, kinform_namespace: str
) -> None:
    pods = client.resource("pods", namespace=kinform_namespace)
    await pods.create(pod("web"))
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web"}}
    await pods.subresource("eviction").create(body, name="web")
    with pytest.raises(NotFoundError):
        await pods.get("web")


def pod(name: str, **spec: object) -> dict[str, object]:
    containers = [{"name": "c", "image": "nginx"}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


async def test_server_side_apply_owns_fields_and_tells_of_conflicts(
    client: Client, kinform_namespace: str
) -> None:
    maps = client.resource("cm", namespace=kinform_namespace)
    wanted = {"metadata": {"name": "a"}, "data": {"x": "1"}}
    made = await maps.apply(wanted, field_manager="one")
    assert made.at("metadata", "managedFields", 0, "manager") == "one"
    changed = {**wanted, "data": {"x": "2"}}
    with pytest.raises(ConflictError) as caught:
        await maps.apply(changed, field_manager="two")
    assert [cause.field for cause in caught.value.causes] == [".data.x"]
    assert (await maps.apply(changed, field_manager="two", force=True)).at("data", "x") == "2"
    with pytest.raises(UsageError, match="managedFields"):
        await maps.apply(await maps.get("a"), field_manager="one")


async def test_an_apply_says_what_it_was_given_though_the_server_reads_it_as_yaml(
    client: Client, kinform_namespace: str
) -> None:
    maps = client.resource("cm", namespace=kinform_namespace)
    odd = "".join(map(chr, [0x7F, *range(0x80, 0xA1), 0x2028, 0x2029, 0xFEFF, 0xFFFE, 0x1F600]))
    wanted = {"metadata": {"name": "odd"}, "data": {f"x{i}": f"a{c}b" for i, c in enumerate(odd)}}
    assert (await maps.apply(wanted, field_manager="one")).to_dict("data") == wanted["data"]


async def test_dry_run_changes_nothing_and_strict_validation_refuses(
    client: Client, kinform_namespace: str
) -> None:
    maps = client.resource("configmaps", namespace=kinform_namespace)
    assert (await maps.create(config_map("dry"), dry_run=True)).name == "dry"
    with pytest.raises(NotFoundError):
        await maps.get("dry")
    wrong = {**config_map("wrong"), "dta": {}}
    with pytest.raises(InvalidError, match="dta"):
        await maps.create(wrong, field_validation="Strict")


async def test_warnings_of_the_server_reach_the_handler(
    kinform_control_plane: ControlPlane, kinform_namespace: str
) -> None:
    heard: list[ApiWarning] = []
    config = kinform_control_plane.config
    async with kinform.connect(config, warning_handler=heard.append) as client:
        maps = client.resource("configmaps", namespace=kinform_namespace)
        await maps.create({**config_map("warned"), "dta": {}}, field_validation="Warn")
    assert [(warning.code, "dta" in warning.text) for warning in heard] == [(299, True)]


async def test_an_invalid_object_is_refused_field_by_field(
    client: Client, kinform_namespace: str
) -> None:
    pods = client.resource("pods", namespace=kinform_namespace)
    with pytest.raises(InvalidError) as caught:
        await pods.create({"metadata": {"name": "UPPER"}, "spec": {"containers": []}})
    fields = {cause.field for cause in caught.value.causes}
    assert fields >= {"metadata.name", "spec.containers"}


async def test_finalizers_let_an_object_linger(client: Client, kinform_namespace: str) -> None:
    maps = client.resource("configmaps", namespace=kinform_namespace)
    body = config_map("held")
    body["metadata"] = {"name": "held", "finalizers": ["example.com/hold"]}
    await maps.create(body)
    lingering = await maps.delete("held", propagation="Background")
    assert lingering is not None
    assert lingering.metadata.deletion_timestamp
    assert lingering.metadata.finalizers == ("example.com/hold",)
    await maps.patch("held", {"metadata": {"finalizers": None}})
    with pytest.raises(NotFoundError):
        await maps.get("held")


async def test_a_collection_is_deleted_by_selector(client: Client, kinform_namespace: str) -> None:
    maps = client.resource("configmaps", namespace=kinform_namespace)
    for name in ("a", "b"):
        await maps.create(config_map(name))
    await maps.create({"metadata": {"name": "kept"}})
    await maps.delete_collection(label_selector="app in (test)")
    assert [one.name for one in await maps.list()] == ["kept"]
    with pytest.raises(UsageError, match="one namespace"):
        await maps.in_namespace(kinform.ALL_NAMESPACES).delete_collection()


async def test_names_may_carry_their_namespace(client: Client, kinform_namespace: str) -> None:
    everywhere = client.resource("configmaps", namespace=kinform.ALL_NAMESPACES)
    body = config_map("a")
    body["metadata"] = {"name": "a", "namespace": kinform_namespace}
    made = await everywhere.create(body)
    assert (await everywhere.get(made.key)).uid == made.uid
    assert made.key in {one.key for one in await everywhere.list()}
    with pytest.raises(UsageError, match="namespace must be set"):
        await everywhere.get("a")
    with pytest.raises(UsageError, match="in_namespace"):
        await client.resource("configmaps", namespace="other").create(body)
    await everywhere.delete(ObjectName(kinform_namespace, "a"))


async def test_metadata_alone_is_read_on_request(client: Client, kinform_namespace: str) -> None:
    maps = client.resource("configmaps", namespace=kinform_namespace)
    await maps.create(config_map("a", big="x" * 10_000))
    partial = await maps.metadata_only.get("a")
    assert partial.kind == "PartialObjectMetadata"
    assert partial.metadata.labels == {"app": "test"}
    assert len(partial.raw) < 2_000
    listed = await maps.metadata_only.list()
    assert [(one.kind, one.name) for one in listed] == [("PartialObjectMetadata", "a")]
    async with maps.metadata_only.watch() as events:
        async for event in events:
            assert event.object.kind == "PartialObjectMetadata"
            break


async def test_cluster_scoped_kinds_take_no_namespace(client: Client) -> None:
    nodes = client.resource("nodes")
    await nodes.create({"metadata": {"name": "node-1"}})
    assert (await nodes.get("node-1")).namespace == ""
    await nodes.delete("node-1")


@pytest.mark.slow
async def test_1201_config_maps_are_listed_in_pages(client: Client, kinform_namespace: str) -> None:
    maps = client.resource("configmaps", namespace=kinform_namespace)

    async def create(numbers: range) -> None:
        for number in numbers:
            await maps.create({"metadata": {"name": f"n{number:04}"}})

    async with asyncio.TaskGroup() as group:
        for start in range(8):
            group.create_task(create(range(start, 1201, 8)))
    expected = [f"n{number:04}" for number in range(1201)]
    listed = await maps.list()
    assert [one.name for one in listed] == expected
    assert [one.name async for one in maps.iterate(page_size=100)] == expected
    assert [one.name for one in await maps.list(page_size=None)] == expected
    first = await maps.list(limit=10)
    assert (len(first), first.metadata.remaining_item_count) == (10, 1191)
    second = await maps.list(limit=10, continue_token=first.continue_token)
    assert [one.name for one in second] == expected[10:20]
    exact = await maps.list(
        resource_version=listed.resource_version, resource_version_match="Exact"
    )
    assert exact.resource_version == listed.resource_version
    assert len(await maps.list(resource_version="0")) == 1201


CRD: dict[str, object] = {
    "metadata": {"name": "widgets.kinform.test"},
    "spec": {
        "group": "kinform.test",
        "scope": "Namespaced",
        "names": {
            "plural": "widgets",
            "singular": "widget",
            "kind": "Widget",
            "shortNames": ["wdg"],
        },
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                    },
                },
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "replicas": {"type": "integer", "default": 1, "maximum": 9}
                                },
                            },
                            "status": {
                                "type": "object",
                                "x-kubernetes-preserve-unknown-fields": True,
                            },
                        },
                    }
                },
            }
        ],
    },
}


async def test_a_custom_resource_that_has_just_appeared_works_with_every_verb(
    client: Client, kinform_namespace: str
) -> None:
    with pytest.raises(UnknownResourceError):
        await client.find("widgets.kinform.test")  # others may leave widgets of their own
    crds = client.resource("crd")
    await crds.create(CRD)
    async with asyncio.timeout(30), crds.watch(name="widgets.kinform.test") as events:
        async for event in events:
            conditions = event.object.at("status", "conditions", default=[])
            if any(one["type"] == "Established" and one["status"] == "True" for one in conditions):
                break
    widgets = client.resource("wdg", namespace=kinform_namespace)
    # Established is reported a moment before the endpoint answers.
    await eventually(widgets.list, NotFoundError, UnknownResourceError)
    await widgets.create({"metadata": {"name": "w"}, "spec": {}})
    assert (await widgets.get("w")).at("spec", "replicas") == 1
    assert [(one.kind, one.name) for one in await widgets.list()] == [("Widget", "w")]
    with pytest.raises(InvalidError, match="replicas"):
        await widgets.patch("w", {"spec": {"replicas": 10}})
    more = [{"op": "replace", "path": "/spec/replicas", "value": 9}]
    dry = await widgets.patch("w", more, dry_run=True)
    assert dry.at("spec", "replicas") == 9
    with pytest.raises(InvalidError, match="unknown"):
        await widgets.patch("w", {"spec": {"nope": 1}}, field_validation="Strict")
    assert [one.name async for one in widgets.iterate()] == ["w"]
    assert (await widgets.metadata_only.get("w")).kind == "PartialObjectMetadata"
    async with asyncio.timeout(30), widgets.watch(name="w") as events:
        assert (await anext(events)).object.kind == "Widget"
    await widgets.status.patch("w", {"status": {"replicas": 2, "seen": True}})
    assert (await widgets.scale.get("w")).at("status", "replicas") == 2
    await widgets.scale.patch("w", {"spec": {"replicas": 4}})
    await widgets.update("w", lambda content: {**content, "metadata": labelled(content)})
    applied = {
        "apiVersion": "kinform.test/v1",
        "kind": "Widget",
        "metadata": {"name": "w"},
        "spec": {"replicas": 5},
    }
    assert (await widgets.apply(applied, field_manager="t", force=True)).at("spec", "replicas") == 5
    whole = await widgets.get("w")
    assert whole.labels == {"a": "b"}
    assert whole.at("status", "seen") is True
    replaced = await widgets.replace({**whole.to_dict(), "spec": {"replicas": 6}})
    assert replaced.metadata.generation > whole.metadata.generation
    assert await widgets.delete("w") is None
    await widgets.delete_collection()
    await crds.delete("widgets.kinform.test")


@pytest.mark.parametrize("scopes", [("Namespaced", "Cluster"), ("Cluster", "Namespaced")])
async def test_a_custom_resource_made_again_with_another_scope_is_found_by_the_same_client(
    client: Client, kinform_namespace: str, scopes: tuple[str, str]
) -> None:
    """Its path is another one then, and the server answers 404 or 405 for the old one."""
    crds = client.resource("crd")
    plural = f"gadgets{scopes[0].lower()}"
    name, resource = f"{plural}.kinform.test", f"kinform.test/v1/{plural}"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {
        "group": "kinform.test",
        "names": {"plural": plural, "kind": f"Gadget{scopes[0]}"},
        "versions": [version],
    }
    body = {"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1"}
    for number, scope in enumerate(scopes):
        await crds.create({**body, "metadata": {"name": name}, "spec": {**spec, "scope": scope}})
        gadgets = client.resource(resource, namespace=kinform_namespace)

        async def make(number: int = number, gadgets: Any = gadgets) -> Any:
            return await gadgets.create({"metadata": {"name": f"g{number}"}})

        made = await eventually(make, ApiError, UnknownResourceError)
        assert bool(made.metadata.namespace) is (scope == "Namespaced")
        assert (await gadgets.get(f"g{number}")).uid == made.uid
        await crds.delete(name)
        await eventually(lambda: is_gone(crds, name), AssertionError)


async def is_gone(crds: Any, name: str) -> None:
    with contextlib.suppress(NotFoundError):
        await crds.get(name)
        raise AssertionError("it is still there")


def labelled(content: dict[str, Any]) -> dict[str, Any]:
    return {**content["metadata"], "labels": {"a": "b"}}


async def test_a_version_from_the_future_is_told_at_once(
    client: Client, kinform_namespace: str
) -> None:
    maps = client.resource("configmaps", namespace=kinform_namespace)
    async with asyncio.timeout(10):  # the server waits three seconds for it, once
        with pytest.raises(kinform.ServerTimeoutError) as caught:
            await maps.list(resource_version="999999999999")
    assert caught.value.is_resource_version_too_large


async def test_a_user_with_few_rights_gets_a_clear_403(
    kinform_control_plane: ControlPlane, kinform_namespace: str
) -> None:
    reader = kinform_control_plane.user("reader", groups=["readers"])
    async with kinform_control_plane.connect(reader) as client:
        with pytest.raises(ForbiddenError, match='User "reader" cannot list resource "configmaps"'):
            await client.resource("v1/configmaps", namespace=kinform_namespace).list()


async def test_typed_objects_and_raw_requests_agree(client: Client, kinform_namespace: str) -> None:
    maps = client.resource("configmaps", namespace=kinform_namespace)
    await maps.create(config_map("a", x="1"))
    rest = client.rest("v1").get().namespace(kinform_namespace).resource("configmaps")
    listed = await rest.list()
    got = (
        await client.rest()
        .get()
        .abs_path(f"/api/v1/namespaces/{kinform_namespace}/configmaps/a")
        .into(Object)
    )
    assert listed[0].raw == got.raw  # list items carry kind and apiVersion as everything else
