"""Typed clients and models: what is read is typed to the last field, and verbs that a kind lacks
are errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_type

from msgspec.structs import replace

import kinform
from kinform.clientset import apps_v1, autoscaling_v1, core_v1, meta_v1, ownership
from kinform.clientset.clients.apps_v1 import DeploymentClient
from kinform.clientset.typed import Part
from tests.typing.generated_shop_v1 import ShopV1, Widget


async def reading(client: kinform.Client) -> None:
    deployments = client.apps_v1.deployments("default")
    assert_type(deployments, DeploymentClient)
    web = await deployments.get("web")
    assert_type(web, apps_v1.Deployment)
    assert_type(web.metadata.name, str)
    assert_type(web.metadata.labels, Mapping[str, str] | None)
    assert_type(web.spec.replicas, int | None)
    assert_type(web.spec.template.spec.containers, Sequence[core_v1.Container] | None)
    assert_type(web.status.conditions, Sequence[apps_v1.DeploymentCondition] | None)
    assert_type(await deployments.list(), kinform.ListResult[apps_v1.Deployment])
    assert_type(deployments.in_namespace("other"), DeploymentClient)
    assert_type(deployments.status, Part[apps_v1.Deployment])
    assert_type(deployments.scale, Part[autoscaling_v1.Scale])
    assert_type(client.core_v1.rest, kinform.RESTClient)
    entries = ownership.managed_fields(web.metadata)
    assert_type(entries, Sequence[meta_v1.ManagedFieldsEntry])
    by_model = client.resource(apps_v1.Deployment)
    assert_type(by_model, kinform.ResourceClient[apps_v1.Deployment])


async def following(client: kinform.Client) -> None:
    pods = client.core_v1.pods()
    async with pods.watch() as events:
        async for event in events:
            assert_type(event.object, core_v1.Pod)
    async with pods.informer() as informer:
        assert_type(informer, kinform.SharedInformer[core_v1.Pod])
        assert_type(informer.lister.get("default/web-0"), core_v1.Pod | None)


async def writing(client: kinform.Client) -> None:
    labels = {"app": "web"}
    deployment = apps_v1.apply.Deployment(
        metadata=meta_v1.ObjectMeta(name="web"),
        spec=apps_v1.apply.DeploymentSpec(
            replicas=0,
            selector=meta_v1.LabelSelector(match_labels=labels),
            template=core_v1.apply.PodTemplateSpec(
                metadata=meta_v1.ObjectMeta(labels=labels),
                spec=core_v1.PodSpec(containers=[core_v1.Container(name="c", image="i")]),
            ),
        ),
    )
    assert_type(deployment, apps_v1.Deployment)
    deployments = client.apps_v1.deployments()
    assert_type(await deployments.apply(deployment, field_manager="me"), apps_v1.Deployment)
    assert_type(
        await deployments.update("web", lambda it: replace(it, spec=replace(it.spec, replicas=1))),
        apps_v1.Deployment,
    )
    await client.core_v1.pods().evict("web-0")


async def custom(client: kinform.Client) -> None:
    widget = await ShopV1(client).widgets("default").get("w")
    assert_type(widget, Widget)
    assert_type(widget.spec.pod_ip, str | None)
    assert_type(widget.spec.secret, bytes | None)
    assert_type(widget.spec.template.name, str | None)


async def refused(client: kinform.Client, pod: core_v1.Pod) -> None:
    await client.core_v1.bindings().get("a")  # type: ignore[attr-defined]
    await client.core_v1.namespaces().delete_collection()  # type: ignore[attr-defined]
    _ = client.core_v1.config_maps().status  # type: ignore[attr-defined]
    client.core_v1.nodes("default")  # type: ignore[call-arg]
    client.core_v1.nodes().in_namespace("default")  # type: ignore[attr-defined]
    _ = client.apps_v2  # type: ignore[attr-defined]
    apps_v1.DeploymentSpec(replicas="3")  # type: ignore[arg-type]
    apps_v1.DeploymentSpec(replica=3)  # type: ignore[call-arg]
    _ = pod.spec.nodeName  # type: ignore[attr-defined]
    pod.spec = core_v1.PodSpec()  # type: ignore[misc]
    _ = pod.spec.containers.append  # type: ignore[union-attr]
