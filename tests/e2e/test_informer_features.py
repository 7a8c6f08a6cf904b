"""Features of an informer, on a real server."""

from __future__ import annotations

import secrets
import threading
from collections import Counter
from collections.abc import AsyncIterator
from typing import Literal

import msgspec
import pytest

import kinform
from kinform import (
    Client,
    Deleted,
    KinformError,
    Object,
    ReflectorOptions,
    ResourceClient,
    SharedInformer,
    SharedInformerFactory,
    UnknownResourceError,
)
from kinform.cache import DeltaFIFO, RealFIFO
from kinform.clock import offload
from kinform.sansio.queue.interface import QueueFactory
from kinform.tasks import background, gather
from kinform.testing import ControlPlane
from kinform.transforms import strip_managed_fields
from tests.e2e.support_informer import Heard, State, Writer, shown
from tests.e2e.support_informer_kinds import define
from tests.e2e.support_informer_scene import scene
from tests.e2e.support_informer_ways import connect

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture
async def client(kinform_control_plane: ControlPlane) -> AsyncIterator[Client]:
    async with connect(kinform_control_plane) as client:
        yield client


@pytest.fixture
def maps(client: Client, kinform_namespace: str) -> ResourceClient[Object]:
    return client.resource("v1/configmaps", namespace=kinform_namespace)


def labelled(name: str, label: str) -> dict[str, object]:
    return {"metadata": {"name": name, "labels": {"app": label}}, "data": {"n": "1"}}


# What is watched.


async def test_metadata_alone(
    client: Client, maps: ResourceClient[Object], kinform_namespace: str
) -> None:
    await maps.create(labelled("a", "web"))
    informer = client.informer("v1/configmaps", namespace=kinform_namespace, metadata_only=True)
    async with informer:
        await informer.wait_synced(30)
        patched = await maps.patch("a", {"metadata": {"labels": {"app": "db"}}, "data": {"n": "2"}})
        await informer.wait_until(patched.resource_version, 30)
        (found,) = informer.lister.list(label_selector="app=db")
    assert (found.kind, found.uid) == ("PartialObjectMetadata", patched.uid)
    assert found.at("data", default=None) is None


class Data(msgspec.Struct):
    n: Literal["1", "2"]


class Settings(msgspec.Struct):
    __resource__ = "v1/configmaps"
    data: Data


async def test_a_model_and_an_object_that_does_not_fit_it(
    client: Client, maps: ResourceClient[Object], kinform_namespace: str
) -> None:
    for name in ("a", "b"):
        await maps.create(labelled(name, "web"))
    gone: list[Deleted[Settings]] = []
    informer = client.informer(Settings, namespace=kinform_namespace)
    informer.add_event_handler(on_delete=gone.append)
    async with informer:
        await informer.wait_synced(30)
        found = informer.lister.namespace(kinform_namespace).get("a")
        assert found == Settings(Data("1"))

        bad = await maps.patch("a", {"data": {"n": "no"}})
        await informer.wait_until(bad.resource_version, 30)
        assert informer.lister.list() == [Settings(Data("1"))]
        assert [str(key) for key in informer.unreadable] == [f"{kinform_namespace}/a"]

        good = await maps.patch("a", {"data": {"n": "2"}})
        await informer.wait_until(good.resource_version, 30)
        assert informer.lister.get(f"{kinform_namespace}/a") == Settings(Data("2"))
        assert not informer.unreadable
    assert [(one.obj, one.final_state_unknown) for one in gone] == [(Settings(Data("1")), True)]


async def test_an_object_that_leaves_the_label_selector_is_gone(
    client: Client, maps: ResourceClient[Object], kinform_namespace: str
) -> None:
    await maps.create(labelled("a", "web"))
    await maps.create(labelled("b", "db"))
    heard = Heard()
    informer = client.informer(
        "v1/configmaps", namespace=kinform_namespace, label_selector="app=web"
    )
    heard.listen(informer)
    async with informer:
        await informer.wait_synced(30)
        assert [one.name for one in informer.lister.list()] == ["a"]
        joined = await maps.patch("b", {"metadata": {"labels": {"app": "web"}}})
        left = await maps.patch("a", {"metadata": {"labels": {"app": "db"}}})
        await informer.wait_until(left.resource_version, 30)
        expected = {str(joined.key): State.of(joined)}
        assert shown(informer) == expected
        await heard.wait_believes(expected)
    assert heard.complaints == []
    assert heard.events == 3


async def test_a_field_selector(
    client: Client, maps: ResourceClient[Object], kinform_namespace: str
) -> None:
    informer = client.informer(
        "v1/configmaps", namespace=kinform_namespace, field_selector="metadata.name=a"
    )
    async with informer:
        await informer.wait_synced(30)
        for name in ("b", "a"):
            made = await maps.create(labelled(name, "web"))
        await informer.wait_until(made.resource_version, 30)
        assert [one.name for one in informer.lister.list()] == ["a"]


async def test_all_namespaces_and_a_kind_that_lives_in_none(
    client: Client, maps: ResourceClient[Object], kinform_namespace: str
) -> None:
    await maps.create(labelled("a", "web"))
    async with (
        client.informer("v1/configmaps") as config_maps,
        client.informer("v1/namespaces") as namespaces,
    ):
        await kinform.wait_for_cache_sync(config_maps, namespaces, timeout=30)
        there = config_maps.lister.namespace(kinform_namespace)
        assert [one.name for one in there.list()] == ["a"]
        assert len(config_maps.lister.list()) > 1  # kube-system has some
        assert namespaces.lister.get(kinform_namespace) is not None
        assert namespaces.lister.namespace("").get(kinform_namespace) is not None


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed list", "plain list"])
async def test_a_kind_that_the_server_does_not_cache(
    client: Client, kinform_namespace: str, streamed: bool
) -> None:
    """Events come straight from etcd, on every cluster."""
    events = client.resource("v1/events", namespace=kinform_namespace)

    def event(name: str) -> dict[str, object]:
        subject = {"kind": "Pod", "name": "p", "namespace": kinform_namespace}
        return {"metadata": {"name": name}, "involvedObject": subject, "reason": "Tested"}

    await events.create(event("a"))
    options = ReflectorOptions(stream_lists=streamed)
    informer = client.informer("v1/events", namespace=kinform_namespace, options=options)
    async with informer:
        await informer.wait_synced(30)
        made = await events.create(event("b"))
        await informer.wait_until(made.resource_version, 30)
        assert {one.name for one in informer.lister.list()} == {"a", "b"}
        await events.delete("a")
        await informer.wait_for(lambda lister: len(lister.list()) == 1, 30)
        assert informer.statistics().reflector.failures == 0


async def test_an_object_of_nearly_a_megabyte(
    client: Client, maps: ResourceClient[Object], kinform_namespace: str
) -> None:
    large = {"large": "x" * 900_000}
    await maps.create({"metadata": {"name": "a"}, "data": large})
    async with client.informer("v1/configmaps", namespace=kinform_namespace) as informer:
        await informer.wait_synced(30)
        made = await maps.create({"metadata": {"name": "b"}, "data": large})
        await informer.wait_until(made.resource_version, 30)
        assert [one.at("data") for one in informer.lister.list()] == [large, large]


# How objects are kept and delivered.


@pytest.mark.parametrize("queue", [RealFIFO, DeltaFIFO])
async def test_both_queues_tell_the_truth(
    client: Client, maps: ResourceClient[Object], kinform_namespace: str, queue: QueueFactory
) -> None:
    writer = Writer(maps)
    async with scene(client, writer, namespace=kinform_namespace, queue=queue) as made:
        await writer.write(100)
        await made.catch_up(30)
        assert made.errors == []


async def test_a_stream_of_events_and_a_late_one(
    client: Client, maps: ResourceClient[Object], kinform_namespace: str
) -> None:
    writer = Writer(maps)
    async with scene(client, writer, namespace=kinform_namespace) as made:
        early, late = Heard(), Heard()

        async def read(heard: Heard) -> None:
            async for event in made.informer.events():
                heard.hear(event)

        async with background(read(early)):
            await writer.write(50)
            async with background(read(late)):
                await writer.write(50)
                await made.catch_up(30)
                for heard in (early, late):
                    await heard.wait_believes(writer.present)
        assert early.complaints == late.complaints == []
        assert late.events < early.events


async def test_a_cache_is_compared_with_the_server_at_the_version_it_shows(
    client: Client, maps: ResourceClient[Object], kinform_namespace: str
) -> None:
    """F-P22: while it is written, and when all is quiet."""
    writer = Writer(maps)
    async with scene(client, writer, namespace=kinform_namespace) as made:
        async with background(writer.write(60)) as writing:
            while not writing.done():
                assert (await made.informer.verify()).is_equal
        await made.catch_up(30)
        found = await made.informer.verify()
        assert found.is_equal
        assert found.objects == len(shown(made.informer))


async def test_a_transform_runs_once_for_each_state(
    client: Client, maps: ResourceClient[Object], kinform_namespace: str
) -> None:
    seen: Counter[State] = Counter()

    def transform(obj: Object) -> Object:
        seen[State.of(obj)] += 1
        return strip_managed_fields(obj)

    writer = Writer(maps)
    async with scene(client, writer, namespace=kinform_namespace, transform=transform) as made:
        await writer.write(50)
        await made.catch_up(30)
        assert seen.keys() >= set(writer.present.values())
        held = made.informer.lister.list()
    assert held
    assert all(b"managedFields" not in one.raw for one in held)
    assert set(seen.values()) == {1}


async def test_threads_read_while_the_cache_is_written(
    client: Client, maps: ResourceClient[Object], kinform_namespace: str
) -> None:
    writer = Writer(maps)
    is_over = threading.Event()
    async with scene(client, writer, namespace=kinform_namespace) as made:
        made.informer.add_indexers({"n": lambda obj: str(obj.at("data", "n"))})

        async def write() -> None:
            try:
                await writer.write(100)
                await made.catch_up(30)
            finally:
                is_over.set()

        readers = [offload(read_on, made.informer, is_over) for _ in range(2)]
        _, *complaints = await gather(write(), *readers)
    assert complaints == [[], []]


def read_on(informer: SharedInformer[Object], is_over: threading.Event) -> list[str]:
    """Read in every way until it is over; return what was wrong."""
    complaints: list[str] = []
    newest: dict[str, int] = {}
    while not is_over.is_set():
        shown_at = int(informer.indexer.resource_version)
        for obj in informer.lister.list():
            version = int(obj.resource_version)
            if version < newest.get(obj.name, 0):
                complaints.append(f"{obj.name} went back to {version}")
            newest[obj.name] = version
            found = informer.lister.get(obj.key)
            if found is not None and int(found.resource_version) < version:
                complaints.append(f"{obj.name} is older when asked for by key")
        for value in informer.indexer.list_index_values("n"):
            complaints.extend(
                f"{obj.name} was found under {value}"
                for obj in informer.indexer.by_index("n", value)
                if obj.at("data", "n") != value
            )
        if int(informer.indexer.resource_version) < shown_at:
            complaints.append("the version of the cache went back")
    return complaints


# Several.


async def test_a_factory_shares_informers_and_waits_for_a_kind_to_come(
    client: Client, maps: ResourceClient[Object], kinform_namespace: str
) -> None:
    group = f"{secrets.token_hex(4)}.example.com"
    failures: list[KinformError] = []
    factory = SharedInformerFactory(
        client, namespaces=kinform_namespace, watch_error_handler=failures.append
    )
    config_maps = factory.informer("v1/configmaps")
    secret_things = factory.informer("v1/secrets", model=dict)
    widgets = factory.informer(f"{group}/v1/widgets")
    assert factory.informer("v1/configmaps") is config_maps
    async with factory:
        made = await maps.create(labelled("a", "web"))
        await kinform.wait_for_cache_sync(config_maps, secret_things, timeout=30)
        await config_maps.wait_until(made.resource_version, 30)
        assert not widgets.has_synced
        with pytest.raises(TimeoutError, match="widgets"):
            await factory.wait_for_cache_sync(0.1)

        await define(client, group, scope="Namespaced")
        thing = await client.resource(f"{group}/v1/widgets", namespace=kinform_namespace).create(
            {"metadata": {"name": "w"}, "data": {"n": "1"}}
        )
        await factory.wait_for_cache_sync(30)
        await widgets.wait_until(thing.resource_version, 30)
        assert shown(widgets) == {str(thing.key): State.of(thing)}
        assert secret_things.lister.list() == []
    assert {type(failure) for failure in failures} == {UnknownResourceError}
    assert config_maps.is_stopped
    assert widgets.is_stopped
