"""SharedInformerFactory and InformerGroup: one informer for each thing that is watched."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import ClassVar, TypeVar, Unpack, cast

import msgspec
import pytest

from kinform.cache.factory import SharedInformerFactory
from kinform.cache.listwatch import ListWatch
from kinform.cache.processor.events import Added
from kinform.cache.selection import Selection
from kinform.cache.shared_informer import InformerOptions, SharedInformer
from kinform.errors import UnknownResourceError, UsageError
from kinform.meta import GroupVersionResource
from kinform.objects.object import Object
from kinform.resource import Resource
from kinform.rest.options import ListOptions
from kinform.sansio.queue.delta_fifo import DeltaFIFO
from kinform.selectors import SelectorError
from kinform.testing import FakeListWatch, in_virtual_time
from kinform.testing.fakes._watch import FakeWatch
from tests.cache.support_informer import REFUSED, Recorder, names, quiet, recorded, thing, value_of

T = TypeVar("T")


class Pod(msgspec.Struct):
    __resource__: ClassVar[str] = "v1/pods"


class Servers:
    """Stands in for a client: a source for each kind and namespace, made when first asked for."""

    def __init__(self) -> None:
        self._sources: dict[tuple[str, str], FakeListWatch[Object]] = {}
        self.made: list[tuple[str, InformerOptions[Object]]] = []

    def __call__(self, kind: str, namespace: str = "") -> FakeListWatch[Object]:
        source = self._sources.get((kind, namespace))
        if source is None:
            source = self._sources[kind, namespace] = FakeListWatch()
        return source

    def informer_of(
        self, selection: Selection[T], **options: Unpack[InformerOptions[T]]
    ) -> SharedInformer[T]:
        source = self(selection.name, selection.namespace)

        def chosen(asked: ListOptions) -> ListOptions:
            return dataclasses.replace(
                asked,
                label_selector=selection.label_selector,
                field_selector=selection.field_selector,
            )

        def watch(asked: ListOptions) -> AbstractAsyncContextManager[FakeWatch[Object]]:
            return source.watch(chosen(asked))

        lw = ListWatch(
            list=lambda asked: source.list(chosen(asked)),
            watch=watch,
            supports_watch_list=source.supports_watch_list,
        )
        options.setdefault("name", str(selection))
        self.made.append((str(selection), cast("InformerOptions[Object]", options)))
        return SharedInformer(cast("ListWatch[T]", lw), **options)


# --- sharing


def test_who_asks_for_the_same_gets_the_same() -> None:
    factory = SharedInformerFactory(Servers())
    pods = factory.informer("v1/pods")
    assert factory.informer(GroupVersionResource("", "v1", "pods")) is pods
    assert factory.informer("v1/pods", namespace="") is pods
    assert factory.informer(Resource.of("v1/pods", kind="Pod", namespaced=True)) is pods
    typed = factory.informer(Pod)
    assert factory.informer("v1/pods", model=Pod) is typed
    web = factory.informer("v1/pods", label_selector={"app": "web"})
    assert factory.informer("v1/pods", label_selector="app=web") is web
    others = [
        factory.informer("v1/nodes"),
        factory.informer("v1/pods", namespace="default"),
        factory.informer("v1/pods", field_selector="spec.nodeName=a"),
        factory.informer("v1/pods", metadata_only=True),
    ]
    assert len({id(one) for one in (pods, typed, web, *others)}) == 7


def test_a_factory_of_one_namespace_looks_there() -> None:
    servers = Servers()
    factory = SharedInformerFactory(servers, namespaces="team")
    assert factory.informer("v1/pods") is factory.informer("v1/pods", namespace="team")
    factory.informer("v1/pods", namespace="other")
    factory.informer("v1/pods", namespace="")
    assert [name for name, _ in servers.made] == ["v1/pods in team", "v1/pods in other", "v1/pods"]


def test_a_selector_that_cannot_be_read_makes_no_informer() -> None:
    servers = Servers()
    with pytest.raises(SelectorError):
        SharedInformerFactory(servers).informer("v1/pods", label_selector="a in (")
    assert servers.made == []


# --- options


def test_options_of_the_first_request_win_over_those_of_the_kind_and_the_defaults() -> None:
    servers = Servers()
    factory = SharedInformerFactory(servers, resync_period=600, name="default", queue=DeltaFIFO)
    factory.configure("v1/pods", resync_period=60, name="of the kind")
    factory.informer("v1/pods", resync_period=10)
    factory.informer(Pod)
    factory.informer("v1/nodes")
    assert [options for _, options in servers.made] == [
        {"resync_period": 10, "name": "of the kind", "queue": DeltaFIFO},
        {"resync_period": 60, "name": "of the kind", "queue": DeltaFIFO},
        {"resync_period": 600, "name": "default", "queue": DeltaFIFO},
    ]


def test_indexers_add_up() -> None:
    def one(_: object) -> str:
        return "1"

    factory = SharedInformerFactory(Servers(), indexers={"default": one})
    factory.configure("v1/pods", indexers={"of kind": one})
    pods = factory.informer("v1/pods", indexers={"own": one})
    assert factory.informer("v1/pods", indexers={"late": one, "own": one}) is pods
    assert pods.indexer.index_names()[2:] == ["default", "of kind", "own", "late"]
    with pytest.raises(UsageError, match="v1/pods exists already, with another function for the"):
        factory.informer("v1/pods", indexers={"later": one, "late": value_of})
    assert pods.indexer.index_names()[2:] == ["default", "of kind", "own", "late"]


def test_options_that_come_too_late_are_refused() -> None:
    factory = SharedInformerFactory(Servers())
    factory.informer("v1/pods", resync_period=10)
    expected = "v1/pods exists already, so queue, resync_period would have no effect"
    with pytest.raises(UsageError, match=expected):
        factory.informer("v1/pods", resync_period=10, queue=DeltaFIFO)
    with pytest.raises(UsageError, match="there is an informer of v1/pods already"):
        factory.configure(Pod, resync_period=10)


def test_options_that_make_no_sense_leave_nothing_behind() -> None:
    factory = SharedInformerFactory(Servers())
    with pytest.raises(UsageError, match="resync_period"):
        factory.informer("v1/pods", resync_period=0)
    factory.configure("v1/pods", resync_period=5)
    factory.informer("v1/pods", indexers={"value": value_of})


def untouched(obj: Object) -> Object:
    return obj


def untouched_pod(pod: Pod) -> Pod:
    return pod


def test_what_is_for_objects_by_default_is_not_for_models() -> None:
    servers = Servers()
    factory = SharedInformerFactory(
        servers, transform=untouched, storage="raw", resync_period=60, name="n"
    )
    factory.informer("v1/pods")
    factory.informer("v1/pods", metadata_only=True)
    factory.informer(Pod)
    factory.informer("v1/nodes", model=Pod, transform=untouched_pod)
    common = {"resync_period": 60, "name": "n"}
    whole = {"transform": untouched, "storage": "raw", **common}
    assert [options for _, options in servers.made] == [
        whole,
        whole,
        common,
        {"transform": untouched_pod, **common},
    ]


def test_what_is_configured_for_a_model_is_for_that_model() -> None:
    servers = Servers()
    factory = SharedInformerFactory(servers, transform=untouched, name="n")
    factory.configure(Pod, transform=untouched_pod, resync_period=60)
    factory.configure("v1/nodes", model=Pod, transform=untouched_pod)
    factory.configure("v1/secrets", transform=untouched, storage="raw")
    factory.informer(Pod)
    factory.informer("v1/pods")
    factory.informer("v1/nodes", model=Pod)
    factory.informer("v1/secrets", model=Pod)
    assert [options for _, options in servers.made] == [
        {"transform": untouched_pod, "resync_period": 60, "name": "n"},
        {"transform": untouched, "resync_period": 60, "name": "n"},
        {"transform": untouched_pod, "name": "n"},
        {"name": "n"},
    ]


def test_the_functions_given_to_configure_know_their_objects() -> None:
    """Checked by the type checkers: those of a kind by name are told of an Object."""
    factory = SharedInformerFactory(Servers())
    factory.configure("v1/pods", indexers={"name": lambda obj: obj.name})
    factory.configure(Pod, transform=lambda pod: pod)


def test_a_factory_needs_what_makes_informers() -> None:
    with pytest.raises(UsageError, match="made by a Client, and FakeListWatch makes none"):
        SharedInformerFactory(FakeListWatch())  # type: ignore[arg-type]


# --- life


@in_virtual_time
async def test_entering_it_starts_what_was_asked_for_and_leaving_it_stops_everything() -> None:
    """CG-I37: informers by name see adds, changes and deletes."""
    servers = Servers()
    factory = SharedInformerFactory(servers)
    pods, nodes = factory.informer("v1/pods"), factory.informer("v1/nodes")
    recorder = recorded(pods)
    servers("v1/pods").add(thing("a"))
    async with factory as entered:
        assert entered is factory
        await factory.wait_for_cache_sync(5)
        assert pods.has_synced
        assert nodes.has_synced
        servers("v1/pods").modify(thing("a", "1"))
        servers("v1/pods").delete("a")
        await quiet()
    assert recorder.told == ["+a@2 initial", "a@2>3", "-a@4"]
    assert pods.is_stopped
    assert nodes.is_stopped


@pytest.mark.parametrize("streams", [True, False])
@in_virtual_time
async def test_what_is_selected_is_what_is_seen(streams: bool) -> None:
    """CG-I37: with or without streamed lists."""
    servers = Servers()
    servers("v1/pods", "team").supports_watch_list = streams
    source = servers("v1/pods", "team")
    servers("v1/pods", "other").add(thing("elsewhere", labels={"app": "web"}))
    source.add(thing("web", labels={"app": "web"}))
    source.add(thing("db", labels={"app": "db"}))
    factory = SharedInformerFactory(servers, namespaces="team")
    web = factory.informer("v1/pods", label_selector="app=web")
    named = factory.informer("v1/pods", field_selector="metadata.name=db", metadata_only=True)
    async with factory:
        await factory.wait_for_cache_sync(5)
        assert names(web) == ["web"]
        assert names(named) == ["db"]
        source.modify(thing("db", labels={"app": "web"}))
        source.modify(thing("web", labels={"app": "db"}))
        await quiet()
        assert names(web) == ["db"]
        assert names(named) == ["db"]


@in_virtual_time
async def test_starting_again_starts_only_what_is_new() -> None:
    servers = Servers()
    factory = SharedInformerFactory(servers)
    pods = factory.informer("v1/pods")
    async with factory:
        await factory.start()
        nodes = factory.informer("v1/nodes")
        assert (pods.is_started, nodes.is_started) == (True, False)
        with pytest.raises(UsageError, match="v1/nodes was not started"):
            await factory.wait_for_cache_sync(5)
        await factory.start()
        await factory.start()
        assert nodes.is_started
        await factory.wait_for_cache_sync(5)
    assert len(servers("v1/pods").requests) == 1


@in_virtual_time
async def test_waiting_for_a_factory_that_was_not_started_is_a_mistake() -> None:
    factory = SharedInformerFactory(Servers())
    await factory.wait_for_cache_sync(5)  # it has no informers
    factory.informer("v1/pods")
    with pytest.raises(UsageError, match=r"v1/pods was not started.*await factory.start\(\)"):
        await factory.wait_for_cache_sync(5)
    await factory.shut_down()


@in_virtual_time
async def test_a_removed_informer_stops_and_the_next_to_ask_gets_a_new_one() -> None:
    servers = Servers()
    servers("v1/pods").add(thing("a"))
    factory = SharedInformerFactory(servers)
    pods, nodes = factory.informer("v1/pods", resync_period=5), factory.informer("v1/nodes")
    async with factory:
        await factory.wait_for_cache_sync(5)
        await factory.remove(pods)
        await factory.remove(pods)
        assert pods.is_stopped
        assert not nodes.is_stopped
        again = factory.informer("v1/pods", resync_period=10)
        assert again is not pods
        await factory.start()
        await factory.wait_for_cache_sync(5)
        assert names(again) == ["a"]
        await factory.remove(SharedInformer(servers("v1/pods")))  # not one of its own
    assert again.is_stopped


@in_virtual_time
async def test_one_that_was_stopped_elsewhere_is_made_anew() -> None:
    factory = SharedInformerFactory(Servers())
    pods = factory.informer("v1/pods", indexers={"value": value_of})
    async with factory:
        await factory.wait_for_cache_sync(5)
        async with asyncio.TaskGroup() as group:
            group.create_task(pods.stop())
            await asyncio.sleep(0)  # it is about to stop
            again = factory.informer("v1/pods", resync_period=5)
        assert again is not pods
        factory.configure("v1/nodes", resync_period=5)
        await factory.start()
        await factory.wait_for_cache_sync(5)
        assert again.has_synced


@in_virtual_time
async def test_after_the_end_nothing_can_be_asked_for() -> None:
    factory = SharedInformerFactory(Servers())
    factory.informer("v1/pods")
    async with factory:
        pass
    await factory.shut_down()
    attempts: list[Callable[[], object]] = [
        lambda: factory.informer("v1/pods"),
        lambda: factory.informers("v1/pods"),
    ]
    for attempt in attempts:
        with pytest.raises(UsageError, match="this factory was shut down; make a new one"):
            attempt()
    with pytest.raises(UsageError, match="this factory was shut down"):
        await factory.start()


@in_virtual_time
async def test_informers_that_were_never_started_are_stopped_too() -> None:
    factory = SharedInformerFactory(Servers())
    pods = factory.informer("v1/pods")
    events = pods.events()
    await factory.shut_down()
    assert [event async for event in events] == []
    assert pods.is_stopped


@in_virtual_time
async def test_all_informers_stop_at_once_and_in_time() -> None:
    servers = Servers()
    factory = SharedInformerFactory(servers)

    async def for_ever(_: object) -> None:
        await asyncio.get_running_loop().create_future()

    for i in range(5):
        servers(f"v1/kind{i}").add(thing("a"))
        factory.informer(f"v1/kind{i}").add_event_handler(on_add=for_ever)
    await factory.start()
    await factory.wait_for_cache_sync(5)
    await quiet(1)
    before = asyncio.get_running_loop().time()
    await factory.shut_down(2)
    assert asyncio.get_running_loop().time() - before <= 2.5


@in_virtual_time
async def test_a_callback_may_shut_down_the_factory() -> None:
    servers = Servers()
    factory = SharedInformerFactory(servers)
    told: list[str] = []

    async def end(event: Added[Object]) -> None:
        await factory.shut_down(60)
        told.append(event.key.name)

    servers("v1/pods").add(thing("a"))
    factory.informer("v1/pods").add_event_handler(on_add=end)
    nodes = factory.informer("v1/nodes")
    async with factory:
        await asyncio.sleep(1)
        assert nodes.is_stopped
    assert told == ["a"]
    assert asyncio.get_running_loop().time() < 2


@in_virtual_time
async def test_cancelling_the_end_waives_the_grace_and_leaves_nothing() -> None:
    servers = Servers()
    servers("v1/pods").add(thing("a"))

    async def for_ever(_: object) -> None:
        await asyncio.get_running_loop().create_future()

    async def use() -> None:
        factory = SharedInformerFactory(servers)
        factory.informer("v1/pods").add_event_handler(on_add=for_ever)
        factory.informer("v1/nodes")
        async with factory:
            await asyncio.sleep(100)

    task = asyncio.get_running_loop().create_task(use())
    await asyncio.sleep(1)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0.01)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.get_running_loop().time() < 1.6


# --- syncing


@in_virtual_time
async def test_the_time_out_names_what_has_not_synced() -> None:
    servers = Servers()
    for kind in ("v1/pods", "v1/jobs"):
        servers(kind).fail_watches(REFUSED, forever=True)
        servers(kind).fail_lists(REFUSED, forever=True)
    factory = SharedInformerFactory(servers)
    for kind in ("v1/pods", "v1/nodes", "v1/jobs"):
        factory.informer(kind)
    async with factory:
        with pytest.raises(TimeoutError, match=r"^not synced within 5 s: v1/jobs, v1/pods$"):
            await factory.wait_for_cache_sync(5)


@in_virtual_time
async def test_a_kind_that_does_not_exist_yet_is_waited_for() -> None:
    servers = Servers()
    widgets = servers("example.com/v1/widgets")
    missing = UnknownResourceError("example.com/v1/widgets")
    widgets.fail_lists(missing, forever=True)
    widgets.fail_watches(missing, forever=True)
    factory = SharedInformerFactory(servers)
    informer = factory.informer("example.com/v1/widgets")
    pods = factory.informer("v1/pods")
    recorder = recorded(informer)
    async with factory:
        await pods.wait_synced(5)
        with pytest.raises(TimeoutError, match="widgets") as caught:
            await factory.wait_for_cache_sync(300)
        assert caught.value.__cause__ is not None
        assert caught.value.__cause__.__cause__ is missing
        assert not informer.is_stopped
        widgets.heal()
        widgets.add(thing("first"))
        await factory.wait_for_cache_sync(120)
        await quiet()
        assert recorder.told == ["+first@2 initial"]


@in_virtual_time
async def test_an_informer_that_failed_for_good_is_not_waited_for_in_vain() -> None:
    servers = Servers()
    servers("v1/pods").supports_watch_list = False
    servers("v1/pods").fail_lists(UsageError("the client is closed"))
    factory = SharedInformerFactory(servers)
    factory.informer("v1/pods")
    async with factory:
        await asyncio.sleep(1)
        with pytest.raises(UsageError, match="the client is closed"):
            await factory.wait_for_cache_sync(5)


# --- several namespaces


@in_virtual_time
async def test_several_namespaces_are_used_as_one() -> None:
    servers = Servers()
    servers("v1/pods", "a").add(thing("one", namespace="a", labels={"app": "web"}))
    servers("v1/pods", "b").add(thing("two", namespace="b"))
    factory = SharedInformerFactory(servers, namespaces=["a", "b"])
    group = factory.informers("v1/pods")
    assert factory.informers("v1/pods").informers == group.informers
    assert group.informers["a"] is factory.informer("v1/pods", namespace="a")
    recorder = Recorder()
    registrations = group.add_event_handler(on_add=recorder.note)
    assert group.name == "v1/pods in a, v1/pods in b"
    assert not group.has_synced
    async with factory:
        await group.wait_synced(5)
        assert sorted(obj.name for obj in group.list()) == ["one", "two"]
        assert [obj.name for obj in group.list("app=web")] == ["one"]
        found = group.get("b/two")
        assert found is not None
        assert group.get("b/one") is None
        assert group.get("c/one") is None
        await quiet()
        assert sorted(recorder.told) == ["+one@2 initial", "+two@2 initial"]
        assert sorted(registrations) == ["a", "b"]
        registrations["a"].remove()
        servers("v1/pods", "a").add(thing("three", namespace="a"))
        servers("v1/pods", "b").add(thing("four", namespace="b"))
        await quiet()
        assert recorder.told[2:] == ["+four@3"]


@in_virtual_time
async def test_a_group_of_all_namespaces_finds_objects_wherever_they_are() -> None:
    servers = Servers()
    servers("v1/pods").add(thing("one", namespace="a"))
    factory = SharedInformerFactory(servers)
    group = factory.informers(Pod)
    untyped = factory.informers("v1/pods")
    async with factory:
        await untyped.wait_synced(5)
        assert untyped.get("a/one") is not None
        assert list(group.informers) == [""]


@in_virtual_time
async def test_a_handler_is_added_to_all_of_a_group_or_to_none() -> None:
    factory = SharedInformerFactory(Servers(), namespaces=["a", "b"])
    group = factory.informers("v1/pods")
    async with factory:
        await group.informers["b"].stop()
        with pytest.raises(UsageError, match="has stopped already"):
            group.add_event_handler(on_add=print)
        assert group.informers["a"].statistics().handlers == ()
        with pytest.raises(UsageError, match="without callbacks"):
            group.add_event_handler()


@in_virtual_time
async def test_a_group_can_be_filtered() -> None:
    servers = Servers()
    for namespace in ("a", "b"):
        servers("v1/pods", namespace).add(thing("yes", "yes", namespace=namespace))
        servers("v1/pods", namespace).add(thing("no", "no", namespace=namespace))
    factory = SharedInformerFactory(servers, namespaces=["a", "b"])
    recorder = Recorder()
    factory.informers("v1/pods").add_event_handler(
        on_add=recorder.note, filter=lambda obj: value_of(obj) == "yes"
    )
    async with factory:
        await quiet(1)
    assert recorder.told == ["+yes@2 initial", "+yes@2 initial"]


def test_namespaces_that_make_no_sense_are_refused() -> None:
    with pytest.raises(UsageError, match="namespaces is empty"):
        SharedInformerFactory(Servers(), namespaces=[])
    for odd in (["", "a"], ["a", ""], ["a", "", "b"]):
        with pytest.raises(UsageError, match="the empty namespace means all of them"):
            SharedInformerFactory(Servers(), namespaces=odd)
    for impossible in ("*", ["a", "B"]):
        with pytest.raises(UsageError, match="no namespace can be called"):
            SharedInformerFactory(Servers(), namespaces=impossible)
    everywhere = SharedInformerFactory(Servers(), namespaces=None)
    assert everywhere.informer("v1/pods") is everywhere.informer("v1/pods", namespace="")
    factory = SharedInformerFactory(Servers(), namespaces=["a", "b"])
    with pytest.raises(UsageError, match="this factory has several namespaces"):
        factory.informer("v1/pods")
