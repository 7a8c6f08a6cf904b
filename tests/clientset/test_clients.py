"""Typed clients on the embedded server: what they can do, and what they write."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

import kinform.clientset
from kinform import Client, Object, ObjectName
from kinform.apiserver import APIServer
from kinform.clientset import apps_v1, authentication_v1, core_v1, meta_v1, ownership
from kinform.clientset.codegen.clients import plural_name
from kinform.clientset.typed import Part, resource_for
from kinform.errors import ConflictError, TooManyRequestsError, UsageError
from tests.clientset.support_schema import api
from tools.clientset.recorded import Served

LABELS = {"app": "web"}
POD_SPEC = core_v1.PodSpec(containers=[core_v1.Container(name="main", image="nginx")])
SERVED = {str(served.kind.gvr): served for served in api().resources}
VERBS = {
    "get": {"get"},
    "list": {"list"},
    "iterate": {"list"},
    "watch": {"watch"},
    "informer": {"watch"},
    "list_watch": {"watch"},
    "create": {"create"},
    "update": {"update"},
    "replace": {"update"},
    "patch": {"patch"},
    "apply": {"patch"},
    "delete": {"delete"},
    "delete_collection": {"deletecollection"},
}
PARTS = {
    "status": "status",
    "scale": "scale",
    "resize": "resize",
    "approval": "approval",
    "ephemeral_containers": "ephemeralcontainers",
    "evict": "eviction",
    "bind": "binding",
    "logs": "log",
    "create_token": "token",
}


def deployment(name: str = "web", **spec: Any) -> apps_v1.Deployment:
    return apps_v1.Deployment(
        metadata=meta_v1.ObjectMeta(name=name),
        spec=apps_v1.DeploymentSpec(
            selector=meta_v1.LabelSelector(match_labels=LABELS),
            template=core_v1.PodTemplateSpec(
                metadata=meta_v1.ObjectMeta(labels=LABELS), spec=POD_SPEC
            ),
            **spec,
        ),
    )


def pod(name: str) -> core_v1.Pod:
    return core_v1.Pod(metadata=meta_v1.ObjectMeta(name=name, labels=LABELS), spec=POD_SPEC)


def scaled(found: apps_v1.Deployment, replicas: int) -> apps_v1.Deployment:
    return replace(found, spec=replace(found.spec, replicas=replicas))


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with APIServer(port=None) as server, server.connect() as client:
        yield client


def typed(client: Client, served: Served) -> Any:
    return getattr(getattr(client, served.module), plural_name(served.kind))()


@pytest.mark.parametrize("name", SERVED)
async def test_a_client_has_the_verbs_that_its_kind_has_and_no_others(
    client: Client, name: str
) -> None:
    served, methods = SERVED[name], dir(typed(client, SERVED[name]))
    assert {it for it, verbs in VERBS.items() if verbs <= served.verbs} == VERBS.keys() & methods
    parts = {it for it, part in PARTS.items() if part in served.parts}
    assert parts == PARTS.keys() & methods
    assert ("in_namespace" in methods) == served.kind.namespaced


@pytest.mark.parametrize("name", SERVED)
async def test_a_kind_says_its_names_and_its_scope(client: Client, name: str) -> None:
    kind = SERVED[name].kind
    model = getattr(getattr(kinform.clientset, SERVED[name].module), kind.kind)
    assert model.__resource__ == str(kind.gvr)
    assert model.__gvr__ == kind.gvr
    assert model.__gvk__ == (*kind.gvr[:2], kind.kind)
    assert model.__namespaced__ == kind.namespaced
    resource = resource_for(model)
    assert (resource.gvr, resource.kind, resource.model) == (kind.gvr, kind.kind, model)


async def test_only_kinds_in_namespaces_take_one(client: Client) -> None:
    assert "in 'there'" in repr(client.core_v1.pods("there"))
    assert "in 'default'" in repr(client.core_v1.pods())
    assert "in 'there'" in repr(client.core_v1.pods().in_namespace("there"))
    assert "in all namespaces" in repr(client.core_v1.pods(kinform.ALL_NAMESPACES))
    assert not inspect.signature(client.core_v1.nodes).parameters


async def test_what_was_created_is_read_listed_and_deleted(client: Client) -> None:
    deployments = client.apps_v1.deployments("default")
    made = await deployments.create(deployment(replicas=2))
    assert isinstance(made, apps_v1.Deployment)
    assert (made.metadata.name, made.spec.replicas) == ("web", 2)
    assert await deployments.get("web") == made
    assert [one.metadata.uid for one in await deployments.list()] == [made.metadata.uid]
    assert [one.metadata.name async for one in deployments.iterate()] == ["web"]
    assert await client.resource(apps_v1.Deployment, namespace="default").get("web") == made
    await deployments.delete("web")
    assert not await deployments.list()


async def test_a_cluster_scoped_kind_needs_no_namespace(client: Client) -> None:
    nodes = client.core_v1.nodes()
    await nodes.create(core_v1.Node(metadata=meta_v1.ObjectMeta(name="n1")))
    assert [node.metadata.name for node in await nodes.list()] == ["n1"]


async def test_rest_is_the_client_of_the_api_version(client: Client) -> None:
    assert str(client.core_v1.rest.api_version) == "v1"
    assert str(client.apps_v1.rest.api_version) == "apps/v1"
    assert str(client.rbac_v1.rest.api_version) == "rbac.authorization.k8s.io/v1"


async def test_watches_and_informers_give_models(client: Client) -> None:
    pods = client.core_v1.pods()
    await pods.create(pod("a"))
    async with pods.watch() as events:
        async for event in events:
            assert isinstance(event.object, core_v1.Pod)
            break
    async with pods.informer() as informer:
        await informer.wait_synced(10)
        found = informer.lister.namespace("default").get("a")
        assert found is not None
        assert (found.spec.containers or [])[0].image == "nginx"


async def test_metadata_only_is_read_as_objects(client: Client) -> None:
    await client.core_v1.pods().create(pod("a"))
    (found,) = await client.core_v1.pods().metadata_only.list()
    assert isinstance(found, Object)
    assert "spec" not in found


async def test_a_field_the_model_does_not_know_survives_an_update(client: Client) -> None:
    """A server newer than the models has more fields; here a custom kind has them."""
    definition = {
        "metadata": {"name": "deployments.apps.example.com"},
        "spec": {
            "group": "apps.example.com",
            "scope": "Namespaced",
            "names": {"kind": "Deployment", "plural": "deployments"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "x-kubernetes-preserve-unknown-fields": True,
                        }
                    },
                }
            ],
        },
    }
    await client.apiextensions_v1.custom_resource_definitions().create(definition)
    name = "apps.example.com/v1/deployments"
    plain = client.resource(name, namespace="default")
    await plain.create(
        {"metadata": {"name": "web"}, "spec": {"replicas": 1, "new": {"a": [None]}}, "more": True}
    )
    models = client.resource(name, model=apps_v1.Deployment, namespace="default")
    after = await models.update("web", lambda found: scaled(found, 3))
    assert after.spec.replicas == 3
    content = (await plain.get("web")).to_dict()
    assert content["spec"] == {"replicas": 3, "new": {"a": [None]}}
    assert content["more"] is True


async def test_an_update_writes_the_difference_alone_and_nothing_if_there_is_none(
    client: Client,
) -> None:
    deployments = client.apps_v1.deployments("default")
    made = await deployments.create(deployment(replicas=1))
    assert await deployments.update("web", lambda _: None) == made
    assert (await deployments.update("web", lambda it: scaled(it, 0))).spec.replicas == 0


async def test_updates_at_once_are_all_done(client: Client) -> None:
    deployments = client.apps_v1.deployments("default")
    await deployments.create(deployment(replicas=1))
    seen: list[int | None] = []

    def one_more(found: apps_v1.Deployment) -> apps_v1.Deployment:
        seen.append(found.spec.replicas)
        return scaled(found, (found.spec.replicas or 0) + 1)

    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(deployments.update("web", one_more))
    assert (await deployments.get("web")).spec.replicas == 4
    assert len(seen) > 3, "nobody was refused, so nothing was shown"


async def test_replace_refuses_models(client: Client) -> None:
    deployments = client.apps_v1.deployments("default")
    made = await deployments.create(deployment())
    with pytest.raises(UsageError, match="does not declare"):
        await deployments.replace(made)  # type: ignore[arg-type]


async def test_apply_sends_what_is_set_even_if_it_is_empty(client: Client) -> None:
    maps = client.core_v1.config_maps("default")
    mine = core_v1.apply.ConfigMap(
        metadata=meta_v1.apply.ObjectMeta(name="a"),
        data={"empty": ""},
        immutable=False,
    )
    applied = await maps.apply(mine, field_manager="me")
    assert (applied.data, applied.immutable) == ({"empty": ""}, False)
    (entry,) = ownership.managed_fields(applied.metadata)
    assert (entry.manager, entry.operation) == ("me", "Apply")
    assert entry.fields_v1 == {"f:data": {"f:empty": {}}, "f:immutable": {}}


async def test_what_was_read_cannot_be_applied(client: Client) -> None:
    maps = client.core_v1.config_maps("default")
    made = await maps.create(
        core_v1.ConfigMap(metadata=meta_v1.ObjectMeta(name="a"), data={"a": "b"})
    )
    with pytest.raises(UsageError, match="managedFields"):
        await maps.apply(made, field_manager="me")


async def test_status_and_scale_are_written_by_themselves(client: Client) -> None:
    deployments = client.apps_v1.deployments("default")
    await deployments.create(deployment(replicas=1))
    assert isinstance(deployments.status, Part)
    status = apps_v1.DeploymentStatus(observed_generation=7, replicas=1)
    written = await deployments.status.update("web", lambda it: replace(it, status=status))
    assert written.status.observed_generation == 7
    mine = apps_v1.apply.Deployment(
        metadata=meta_v1.ObjectMeta(name="web"),
        status=apps_v1.apply.DeploymentStatus(observed_generation=8),
    )
    applied = await deployments.status.apply(mine, field_manager="me", force=True)
    assert applied.status.observed_generation == 8
    scale = await deployments.scale.get("web")
    assert scale.spec.replicas == 1
    await deployments.scale.update("web", lambda it: replace(it, spec=replace(it.spec, replicas=4)))
    assert (await deployments.get("web")).spec.replicas == 4


async def test_a_disruption_budget_keeps_a_pod_from_being_evicted(client: Client) -> None:
    pods = client.core_v1.pods()
    await pods.create(pod("a"))
    budgets = client.policy_v1.pod_disruption_budgets()
    await budgets.create(
        {
            "metadata": {"name": "all"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": LABELS}},
        }
    )
    await pods.status.patch("a", {"status": {"phase": "Running"}})
    with pytest.raises(TooManyRequestsError):
        await pods.evict("a")
    await budgets.delete("all")
    await pods.evict(ObjectName("default", "a"))
    assert not [one for one in await pods.list() if one.metadata.deletion_timestamp is None]


async def test_a_pod_is_bound_once(client: Client) -> None:
    pods = client.core_v1.pods()
    await pods.create(pod("a"))
    await pods.bind("a", "n1")
    assert (await pods.get("a")).spec.node_name == "n1"
    with pytest.raises(ConflictError):
        await pods.bind("a", "n2")


async def test_service_accounts_issue_tokens(client: Client) -> None:
    accounts = client.core_v1.service_accounts()
    await accounts.create(core_v1.ServiceAccount(metadata=meta_v1.ObjectMeta(name="robot")))
    spec = authentication_v1.TokenRequestSpec(audiences=["a"], expiration_seconds=600)
    issued = await accounts.create_token("robot", authentication_v1.TokenRequest(spec=spec))
    assert issued.status.token
    assert (await accounts.create_token("robot")).status.token != issued.status.token


async def test_a_kind_that_can_only_be_created_answers(client: Client) -> None:
    reviews = client.authentication_v1.self_subject_reviews()
    review = await reviews.create(authentication_v1.SelfSubjectReview())
    assert review.status.user_info is not None


async def test_a_guarded_client_guards_its_typed_clients(client: Client) -> None:
    def refuse() -> None:
        raise RuntimeError("not now")

    guarded = client.guarded(refuse)
    with pytest.raises(RuntimeError, match="not now"):
        await guarded.core_v1.pods().create(pod("a"))
    assert not await guarded.core_v1.pods().list()


def test_a_client_that_is_not_open_says_so() -> None:
    with pytest.raises(UsageError, match="not open yet"):
        kinform.connect("http://127.0.0.1:1").apps_v1.deployments()


def test_a_class_that_is_no_kind_has_no_resource() -> None:
    with pytest.raises(UsageError, match="does not say which kind"):
        resource_for(apps_v1.DeploymentSpec)


def test_models_are_frozen_and_name_their_fields() -> None:
    made = deployment()
    with pytest.raises(AttributeError, match="immutable"):
        made.kind = "Other"  # type: ignore[misc]
    with pytest.raises(TypeError, match="replica"):
        apps_v1.DeploymentSpec(replica=1)  # type: ignore[call-arg]
    assert msgspec.json.encode(core_v1.PodStatus(pod_ip="1.2.3.4")) == b'{"podIP":"1.2.3.4"}'
