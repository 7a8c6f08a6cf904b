"""java-operator-sdk's tests of its informers, run against kinform's controllers and informers.

java-operator-sdk: ``InformerEventSourceTest``, ``ControllerEventSourceTest``,
``InternalEventFiltersTest``, ``MappersTest``, ``PrimaryToSecondaryIndexTest``,
``TransformingItemStoreTest``, ``InformerConfigurationTest``, ``InformerRelatedBehaviorITS``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import pytest

import kinform
from kinform.apiserver import APIServer
from kinform.cache.processor.events import Added, Deleted, Event, Updated
from kinform.cache.shared_informer import SharedInformer
from kinform.errors import ForbiddenError
from kinform.meta import ObjectName
from kinform.objects.object import Object
from kinform.runtime.controller.context import Context
from kinform.runtime.map_functions import to_owner
from kinform.runtime.predicate import (
    Predicate,
    any_of,
    finalizers_changed,
    generation_changed,
)
from kinform.runtime.source.kind import KindSource
from kinform.testing import FakeListWatch, in_virtual_time
from tests.cache.support_informer import quiet, source_of, thing, value_of
from tests.runtime.support_controllers import MAPS, SECRETS, Log, controller, named, running, served

DEVIATIONS: Final = {
    "JO-C02": "the result of a transform is cached; key and version are kept beside it",
    "JO-C04": "instead of a stop handler, `events` ends, and leaving the block waits for it",
    "JO-P01": "the operator decides: wait_synced raises within its timeout, with the 403 as cause",
}
NOT_APPLICABLE: Final = {
    "JO-C05": "the cache contains what the watch delivered; wait_until(version) waits for a write",
    "JO-C06": "every change causes a reconcile, also local writes; predicates can filter them",
    "JO-C07": "the cache never drops objects; storage='zstd' and models make it smaller",
}


# --- filters


def adds(event: Event[Object]) -> bool:
    return isinstance(event, Added)


def updates(event: Event[Object]) -> bool:
    return isinstance(event, Updated)


def deletes(event: Event[Object]) -> bool:
    return isinstance(event, Deleted)


def refusing(*kinds: Callable[[Event[Object]], bool]) -> Predicate[Object]:
    return lambda event: not any(kind(event) for kind in kinds)


@pytest.mark.parametrize(
    ("when", "seen"),
    [
        pytest.param(refusing(adds, updates, deletes), [], id="JO-F01"),
        pytest.param(refusing(adds), ["UPDATED", "DELETED"], id="JO-F02"),
        pytest.param(refusing(updates), ["ADDED", "DELETED"], id="JO-F03"),
        pytest.param(refusing(deletes), ["ADDED", "UPDATED"], id="JO-F04"),
    ],
)
def test_a_filter_keeps_events_from_the_reconciler(
    when: Predicate[Object], seen: list[str]
) -> None:
    async def run() -> None:
        log = Log()
        async with served() as (_, client):
            maps = client.resource(MAPS, namespace="default")
            source = KindSource(MAPS, namespace="default", when=when)
            async with running(client, controller(log, for_=source)) as manager:
                await manager.wait_warm(30)
                await maps.create(named("a"))
                await quiet(5)
                await maps.patch("a", {"data": {"k": "1"}})
                await quiet(5)
                await maps.delete("a")
                await quiet(5)
        assert [cause.kind.name for ctx in log.contexts for cause in ctx.causes] == seen

    in_virtual_time(run)()


def state(
    generation: int | None, *, finalizers: tuple[str, ...] = (), deleted: bool = False
) -> Object:
    metadata: dict[str, object] = {"name": "a", "uid": "1", "finalizers": list(finalizers)}
    if generation is not None:
        metadata["generation"] = generation
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return Object.from_dict({"metadata": metadata})


aware: Predicate[Object] = any_of(generation_changed, finalizers_changed)


@pytest.mark.parametrize(
    ("when", "old", "new", "passes"),
    [
        pytest.param(generation_changed, state(1), state(1), False, id="JO-F05"),
        pytest.param(generation_changed, state(1), state(1, deleted=True), True, id="JO-F06"),
        pytest.param(generation_changed, state(1), state(2), True, id="JO-F07"),
        pytest.param(refusing(), state(1), state(1), True, id="JO-F08"),
        pytest.param(generation_changed, state(None), state(None), True, id="JO-F09"),
        pytest.param(aware, state(1), state(1, finalizers=("x/y",)), True, id="JO-F10"),
        pytest.param(aware, state(1), state(1), False, id="JO-F10 neither"),
    ],
)
def test_a_generation_aware_controller_sees_changes_of_the_spec(
    when: Predicate[Object], old: Object, new: Object, passes: bool
) -> None:
    assert when(Updated(ObjectName("", "a"), old, new)) is passes


# --- from secondary to primary


def owned(*owners: tuple[str, str, str], name: str = "s") -> dict[str, object]:
    references = [
        {"apiVersion": version, "kind": kind, "name": owner, "uid": owner, "controller": True}
        for version, kind, owner in owners
    ]
    metadata = {"name": name, "namespace": "default", "ownerReferences": references}
    return {"metadata": metadata}


@pytest.mark.parametrize(
    ("kind", "reference", "found"),
    [
        pytest.param("apps/v1/Deployment", ("apps/v1", "Deployment", "p"), ["p"], id="JO-M01"),
        pytest.param("v1/ConfigMap", ("v1", "ConfigMap", "p"), ["p"], id="JO-M02"),
        pytest.param("v1/ConfigMap", ("v1", "Secret", "p"), [], id="JO-M03 kind"),
        pytest.param("v1/ConfigMap", ("x.io/v1", "ConfigMap", "p"), [], id="JO-M03 group"),
        pytest.param("apps/v1/Deployment", ("apps/v1beta1", "Deployment", "p"), ["p"], id="JO-M04"),
    ],
)
def test_an_owner_reference_leads_to_the_primary(
    kind: str, reference: tuple[str, str, str], found: list[str]
) -> None:
    names = to_owner(kind)(owned(reference))
    assert [ObjectName("default", name) for name in found] == list(names or ())


def by_owner(obj: Object) -> list[str]:
    return [one.name for one in obj.metadata.owner_references]


@in_virtual_time
async def test_an_index_of_owners_follows_its_secondary_objects() -> None:
    """JO-X01, JO-X02, JO-X03 and JO-X04."""
    source = FakeListWatch()
    async with SharedInformer(source, indexers={"primary": by_owner}) as informer:
        await informer.wait_synced(5)
        assert found(informer, "p1") == []
        source.add(owned(("v1", "A", "p1"), ("v1", "A", "p2"), name="s1"))
        await quiet()
        assert (found(informer, "p1"), found(informer, "p2")) == (["s1"], ["s1"])
        source.add(owned(("v1", "A", "p1"), name="s2"))
        await quiet()
        assert (found(informer, "p1"), found(informer, "p2")) == (["s1", "s2"], ["s1"])
        source.delete("s1")
        await quiet()
        assert (found(informer, "p1"), found(informer, "p2")) == (["s2"], [])


@in_virtual_time
async def test_an_index_of_owners_follows_changed_references() -> None:
    """JO-X05, JO-X06, JO-X07 and JO-X08."""
    source = FakeListWatch()
    source.add(owned(("v1", "A", "p1"), ("v1", "A", "p2"), name="s1"))
    source.add(owned(("v1", "A", "p1"), name="s2"))
    async with SharedInformer(source, indexers={"primary": by_owner}) as informer:
        await informer.wait_synced(5)
        source.modify(owned(("v1", "A", "p1"), name="s1"))
        await quiet()
        assert (found(informer, "p1"), found(informer, "p2")) == (["s1", "s2"], [])
        source.modify(owned(("v1", "A", "p2"), name="s1"))
        await quiet()
        assert (found(informer, "p1"), found(informer, "p2")) == (["s2"], ["s1"])
        source.modify(owned(("v1", "A", "p2"), name="s1") | {"data": {"value": "new"}})
        await quiet()
        assert (found(informer, "p1"), found(informer, "p2")) == (["s2"], ["s1"])


def found(informer: SharedInformer[Object], primary: str) -> list[str]:
    return sorted(one.name for one in informer.indexer.by_index("primary", primary))


# --- caches


@in_virtual_time
async def test_the_cache_holds_what_the_transform_returned() -> None:
    """JO-C01 and JO-C02."""
    source = source_of("a")

    def shrink(obj: Object) -> Object:
        return Object.from_dict({"metadata": {}, "data": {"value": obj.name.upper()}})

    async with SharedInformer(source, transform=shrink) as informer:
        await informer.wait_synced(5)
        held = informer.lister.get("default/a")
        assert held is not None
        assert value_of(held) == "A"
        source.modify(thing("a", "new"))
        await quiet()
        (entry,) = informer.indexer.entries.list()
        assert (str(entry.metadata.key), entry.metadata.resource_version) == ("default/a", "3")


@in_virtual_time
async def test_lists_and_keys_name_each_object_once_and_the_end_is_seen() -> None:
    """JO-C03 and JO-C04."""
    source = source_of("a", "b")
    ended = asyncio.Event()

    async def follow(informer: SharedInformer[Object]) -> None:
        async for _ in informer.events():
            pass
        ended.set()

    async with asyncio.TaskGroup() as group, SharedInformer(source) as informer:
        group.create_task(follow(informer))
        await informer.wait_synced(5)
        source.close_watches()
        source.modify(thing("a", "new"))
        await quiet(60)
        assert sorted(one.name for one in informer.lister.list()) == ["a", "b"]
        assert sorted(key.name for key in informer.indexer.list_keys()) == ["a", "b"]
        await informer.stop()
        async with asyncio.timeout(1):
            await ended.wait()


@pytest.mark.parametrize(
    ("namespace", "seen"),
    [
        pytest.param(None, {"default", "other"}, id="JO-N01"),
        pytest.param("other", {"other"}, id="JO-N02"),
    ],
)
def test_all_namespaces_are_watched_or_the_one_that_is_given(
    namespace: str | None, seen: set[str]
) -> None:
    async def run() -> None:
        async with served() as (_, client):
            await client.resource("v1/namespaces").create({"metadata": {"name": "other"}})
            for place in ("default", "other"):
                maps = client.resource(MAPS, namespace=place)
                await maps.create({"metadata": {"name": "mine", "namespace": place}})
            async with client.informer(MAPS, namespace=namespace) as informer:
                await informer.wait_synced(30)
                mine = [one for one in informer.lister.list() if one.name == "mine"]
        assert {one.namespace for one in mine} == seen

    in_virtual_time(run)()


async def test_a_namespace_that_cannot_be_is_refused() -> None:
    """JO-N03."""
    async with served() as (_, client):
        with pytest.raises((kinform.UsageError, ValueError)):
            client.informer(MAPS, namespace="no/such")


# --- permissions


def role(*resources: str) -> dict[str, object]:
    rule = {"apiGroups": [""], "resources": list(resources), "verbs": ["list", "watch"]}
    return {"metadata": {"name": "operator"}, "rules": [rule]}


async def grant(admin: kinform.Client, *resources: str, namespace: str = "default") -> None:
    """Let the user ``operator`` list and watch ``resources``, and nothing else."""
    roles = admin.resource("rbac.authorization.k8s.io/v1/roles", namespace=namespace)
    await roles.apply(role(*resources or ["none"]), field_manager="test")
    bindings = admin.resource("rbac.authorization.k8s.io/v1/rolebindings", namespace=namespace)
    group = "rbac.authorization.k8s.io"
    binding = {
        "metadata": {"name": "operator"},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "operator"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "operator"}],
    }
    await bindings.apply(binding, field_manager="test")


def with_secrets(log: Log) -> kinform.Controller:
    async def reconcile(ctx: Context, name: ObjectName) -> None:
        ctx.lister(SECRETS)
        await log(ctx, name)

    secrets = KindSource(SECRETS, namespace="default", map=lambda obj: obj.metadata.key)
    return controller(reconcile, watches=[secrets])


@in_virtual_time
async def test_without_permission_the_first_sync_fails_with_the_answer_as_its_cause() -> None:
    """JO-P01."""
    async with APIServer(port=None, rbac=True, seed=1) as server:
        async with server.connect(server.user("operator")) as client:
            informer = client.informer(MAPS, namespace="default")
            async with informer:
                with pytest.raises(TimeoutError) as raised:
                    await informer.wait_synced(60)
                assert isinstance(raised.value.__cause__, ForbiddenError)


@pytest.mark.parametrize(
    ("granted", "missing"),
    [
        pytest.param([SECRETS], MAPS, id="JO-P02"),
        pytest.param([MAPS], SECRETS, id="JO-P03"),
    ],
)
def test_it_waits_for_the_permission_that_it_lacks(granted: list[str], missing: str) -> None:
    async def run() -> None:
        log = Log()
        async with APIServer(port=None, rbac=True, seed=1) as server, server.connect() as admin:
            await admin.resource(MAPS, namespace="default").create(named("a"))
            kinds = [kind.removeprefix("v1/") for kind in granted]
            await grant(admin, *kinds)
            async with (
                server.connect(server.user("operator")) as client,
                running(client, with_secrets(log)) as manager,
            ):
                await quiet(60)
                assert log.names == []
                report = manager.reporting.ready.report()
                assert not report.ok
                assert any("orbidden" in line for line in report.lines)
                await grant(admin, *kinds, missing.removeprefix("v1/"))
                await quiet(120)
                assert log.names == ["a"]
                assert manager.reporting.ready.report().ok

    in_virtual_time(run)()


@in_virtual_time
async def test_it_works_in_the_one_of_two_namespaces_that_it_may_read() -> None:
    """JO-P04."""
    async with APIServer(port=None, rbac=True, seed=1) as server, server.connect() as admin:
        await admin.resource("v1/namespaces").create({"metadata": {"name": "closed"}})
        await grant(admin, "configmaps")
        async with server.connect(server.user("operator")) as client:
            open_, closed = (client.informer(MAPS, namespace=n) for n in ("default", "closed"))
            async with open_, closed:
                await open_.wait_synced(30)
                made = await admin.resource(MAPS, namespace="default").create(named("a"))
                await open_.wait_until(made.resource_version, 30)
                assert open_.lister.get("default/a") is not None
                assert not closed.has_synced


@pytest.mark.parametrize(
    "lost", [pytest.param("configmaps", id="JO-P05"), pytest.param("secrets", id="JO-P06")]
)
def test_it_survives_the_loss_of_a_permission(lost: str) -> None:
    async def run() -> None:
        log = Log()
        async with APIServer(port=None, rbac=True, seed=1) as server, server.connect() as admin:
            await grant(admin, "configmaps", "secrets")
            async with (
                server.connect(server.user("operator")) as client,
                running(client, with_secrets(log)) as manager,
            ):
                await manager.wait_warm(30)
                await grant(admin, *({"configmaps", "secrets"} - {lost}))
                await quiet(3600)  # every watch has ended at its timeout meanwhile
                made = admin.resource(f"v1/{lost}", namespace="default")
                await made.create(named("a"))
                await quiet(60)
                assert log.names == []
                await grant(admin, "configmaps", "secrets")
                await quiet(120)
                assert log.names == ["a"]

    in_virtual_time(run)()
