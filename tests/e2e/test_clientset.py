"""Typed clients on a real kube-apiserver."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from kinform import Client, connect
from kinform.clientset import apps_v1, authentication_v1, core_v1, meta_v1, ownership
from kinform.errors import ConflictError
from kinform.testing import ControlPlane

pytestmark = pytest.mark.e2e

LABELS = {"app": "web"}
TEMPLATE = core_v1.PodTemplateSpec(
    metadata=meta_v1.ObjectMeta(labels=LABELS),
    spec=core_v1.PodSpec(containers=[core_v1.Container(name="main", image="nginx")]),
)


@pytest.fixture
async def client(
    kinform_control_plane: ControlPlane, kinform_namespace: str
) -> AsyncIterator[Client]:
    config = dataclasses.replace(kinform_control_plane.config, namespace=kinform_namespace)
    async with connect(config) as client:
        yield client


def deployment(replicas: int) -> apps_v1.Deployment:
    return apps_v1.apply.Deployment(
        metadata=meta_v1.apply.ObjectMeta(name="web"),
        spec=apps_v1.apply.DeploymentSpec(
            replicas=replicas,
            selector=meta_v1.LabelSelector(match_labels=LABELS),
            template=TEMPLATE,
        ),
    )


async def test_an_apply_configuration_owns_what_it_sets_zeros_included(client: Client) -> None:
    deployments = client.apps_v1.deployments()
    made = await deployments.apply(deployment(0), field_manager="me")
    assert made.spec.replicas == 0
    (entry,) = ownership.managed_fields(made.metadata)
    fields = entry.fields_v1
    assert isinstance(fields, dict)
    assert sorted(fields) == ["f:spec"]
    assert sorted(fields["f:spec"]) == ["f:replicas", "f:selector", "f:template"]


async def test_two_appliers_conflict_over_a_field_and_share_the_rest(client: Client) -> None:
    deployments = client.apps_v1.deployments()
    await deployments.apply(deployment(1), field_manager="me")
    with pytest.raises(ConflictError):
        await deployments.apply(deployment(2), field_manager="you")
    mine = apps_v1.apply.Deployment(
        metadata=meta_v1.apply.ObjectMeta(name="web"),
        spec=apps_v1.apply.DeploymentSpec(paused=True),
    )
    shared = await deployments.apply(mine, field_manager="you")
    assert (shared.spec.replicas, shared.spec.paused) == (1, True)


async def test_objects_are_created_changed_and_read_back(client: Client) -> None:
    deployments = client.apps_v1.deployments()
    await deployments.create(deployment(1))
    after = await deployments.update(
        "web", lambda found: replace(found, spec=replace(found.spec, replicas=0))
    )
    assert after.spec.replicas == 0
    assert after == await deployments.get("web")
    status = apps_v1.DeploymentStatus(observed_generation=7)
    mine = apps_v1.apply.Deployment(metadata=meta_v1.ObjectMeta(name="web"), status=status)
    applied = await deployments.status.apply(mine, field_manager="me", force=True)
    assert applied.status.observed_generation == 7
    await deployments.scale.update("web", lambda it: replace(it, spec=replace(it.spec, replicas=3)))
    async with deployments.informer() as informer:
        await informer.wait_synced(30)
        (cached,) = informer.lister.list()
        assert cached.spec.replicas == 3


async def test_pods_are_bound_and_evicted_and_accounts_issue_tokens(client: Client) -> None:
    pods, accounts = client.core_v1.pods(), client.core_v1.service_accounts()
    await accounts.create(core_v1.ServiceAccount(metadata=meta_v1.ObjectMeta(name="default")))
    await pods.create(core_v1.Pod(metadata=meta_v1.ObjectMeta(name="a"), spec=TEMPLATE.spec))
    await pods.bind("a", "nowhere")
    assert (await pods.get("a")).spec.node_name == "nowhere"
    await pods.evict("a", grace_period=0)
    spec = authentication_v1.TokenRequestSpec(expiration_seconds=600)
    issued = await accounts.create_token("default", authentication_v1.TokenRequest(spec=spec))
    assert issued.status.token
    assert (await accounts.create_token("default")).status.token
    await client.core_v1.secrets().create(
        core_v1.Secret(metadata=meta_v1.ObjectMeta(name="s"), data={"k": b"\x00\xff"})
    )
    assert (await client.core_v1.secrets().get("s")).data == {"k": b"\x00\xff"}
