"""A controller that works with the models of kinform.clientset throughout."""

from __future__ import annotations

import asyncio

import kinform
from kinform.clientset import apps_v1, core_v1, meta_v1
from kinform.runtime.controller.context import Context
from kinform.runtime.controller.controller import Controller
from kinform.runtime.finalizer import Finalizer
from kinform.runtime.map_functions import to_label, to_owner
from kinform.runtime.owner_references import is_controlled_by, owner_reference
from kinform.runtime.predicate import generation_changed, labels_changed
from kinform.runtime.server_side_apply import apply_status
from kinform.runtime.source.kind import KindSource
from kinform.runtime.status_conditions import is_condition_true, with_condition
from kinform.testing import in_virtual_time
from tests.runtime.support_controllers import Log, running, served

FINALIZER = Finalizer("example.com/web")


def deployment(name: str, **labels: str) -> apps_v1.Deployment:
    pods = {"app": name}
    container = core_v1.Container(name="web", image="nginx")
    template = core_v1.PodTemplateSpec(
        metadata=meta_v1.ObjectMeta(labels=pods), spec=core_v1.PodSpec(containers=[container])
    )
    spec = apps_v1.DeploymentSpec(
        replicas=1, selector=meta_v1.LabelSelector(match_labels=pods), template=template
    )
    return apps_v1.Deployment(
        metadata=meta_v1.ObjectMeta(name=name, labels=labels or None), spec=spec
    )


def service(name: str) -> core_v1.Service:
    spec = core_v1.ServiceSpec(ports=[core_v1.ServicePort(port=80)])
    return core_v1.Service(metadata=meta_v1.ObjectMeta(name=name), spec=spec)


class Web:
    """Gives each Service a Deployment, and tells when that is up."""

    def __init__(self) -> None:
        self.cleaned: list[str] = []

    async def reconcile(self, ctx: Context, name: kinform.ObjectName) -> None:
        found = ctx.lister(core_v1.Service).get(name)
        if found is None:
            return
        services = ctx.client.resource(core_v1.Service, namespace=name.namespace)

        async def clean() -> None:
            self.cleaned.append(name.name)

        if await FINALIZER.handle(services, found, clean):
            return
        found = await FINALIZER.ensure(services, found)
        await ctx.apply(deployment(name.name), owner=found)
        there = ctx.lister(apps_v1.Deployment).get(name)
        is_up = there is not None and is_condition_true(there, "Available")
        if is_up != is_condition_true(found, "Ready"):
            await self.tell(ctx, found, is_up=is_up)

    async def tell(self, ctx: Context, found: core_v1.Service, *, is_up: bool) -> None:
        conditions = with_condition(found, "Ready", status=is_up, reason="Up" if is_up else "Down")
        status = {"conditions": conditions}
        await apply_status(ctx.client, found, status=status, field_manager=ctx.controller)
        ctx.event(found, "Normal", "Up" if is_up else "Down", "as its deployment is")


@in_virtual_time
async def test_a_controller_needs_nothing_but_models() -> None:
    web = Web()
    one = Controller(
        "web",
        web.reconcile,
        for_=KindSource(core_v1.Service, namespace="default"),
        owns=[KindSource(apps_v1.Deployment, namespace="default")],
    )
    async with served() as (_, client), running(client, one):
        services, deployments = client.core_v1.services(), client.apps_v1.deployments()
        made = await services.create(service("a"))
        await asyncio.sleep(5)
        child = await deployments.get("a")
        assert is_controlled_by(child, made)
        assert FINALIZER.is_on(await services.get("a"))
        assert not is_condition_true(await services.get("a"), "Ready")

        available = apps_v1.DeploymentCondition(type="Available", status="True", reason="Minimum")
        status = apps_v1.DeploymentStatus(conditions=[available])
        await apply_status(client, child, status=status, field_manager="kubelet")
        await asyncio.sleep(5)
        assert is_condition_true(await services.get("a"), "Ready")
        events = await client.core_v1.events().list()
        regarding = [event.involved_object for event in events if event.reason == "Up"]
        assert [(it.api_version, it.kind, it.uid) for it in regarding] == [
            ("v1", "Service", made.metadata.uid)
        ]

        await services.delete("a")
        await asyncio.sleep(5)
        assert web.cleaned == ["a"]
        assert not [it for it in await services.list() if it.metadata.name == "a"]


@in_virtual_time
async def test_a_finalizer_is_put_on_a_generated_model_and_taken_off() -> None:
    async with served() as (_, client):
        deployments = client.resource(apps_v1.Deployment, namespace="default")
        made = await deployments.create(deployment("a"))
        held = await FINALIZER.ensure(deployments, made)
        assert held.metadata.finalizers == [FINALIZER.name]
        free = await FINALIZER.remove(deployments, made)  # as it was: without
        assert free is not None
        assert free.metadata.finalizers is None
        await FINALIZER.remove(deployments, held)
        assert not FINALIZER.is_on(await deployments.get("a"))


@in_virtual_time
async def test_predicates_and_mappings_see_generated_models() -> None:
    generations, labelled, owners = Log(), Log(), Log()
    source = KindSource(apps_v1.Deployment, namespace="default", when=generation_changed)
    by_label = KindSource(
        apps_v1.Deployment, namespace="default", map=to_label("web"), when=labels_changed
    )
    by_owner = KindSource(apps_v1.Deployment, namespace="default", map=to_owner(core_v1.Service))
    maps = KindSource("v1/configmaps", namespace="default", label_selector="never=here")
    controllers = [
        Controller("generations", generations, for_=source),
        Controller("labelled", labelled, for_=maps, watches=[by_label]),
        Controller("owners", owners, for_=maps, watches=[by_owner]),
    ]
    async with served() as (_, client), running(client, *controllers):
        deployments = client.apps_v1.deployments()
        await deployments.create(deployment("a", web="site"))
        await asyncio.sleep(5)
        assert (generations.names, labelled.names, owners.names) == (["a"], ["site"], [])
        owner = await client.core_v1.services().create(service("s"))  # the collector looks for it
        body = {"metadata": {"ownerReferences": [owner_reference(owner)]}}
        await deployments.patch("a", body)
        await asyncio.sleep(5)
        assert (generations.names, labelled.names, owners.names) == (["a"], ["site"], ["s"])
        await deployments.patch("a", {"spec": {"replicas": 2}})
        await asyncio.sleep(5)
        assert (generations.names, labelled.names) == (["a", "a"], ["site"])
