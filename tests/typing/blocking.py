"""The blocking API's types: those of the asyncio API, without the await."""

from __future__ import annotations

from typing import assert_type

import msgspec

import kinform
from kinform import sync
from kinform.clientset import apps_v1, core_v1
from kinform.sync import connect


class Settings(msgspec.Struct):
    __resource__ = "v1/configmaps"
    data: dict[str, str] = {}


def untyped() -> None:
    with connect() as client:
        assert_type(client, sync.Client)
        pods = client.resource("v1/pods", namespace="default")
        assert_type(pods, sync.ResourceClient[kinform.Object])
        assert_type(pods.get("web-0"), kinform.Object)
        assert_type(pods.list(label_selector="app=web"), kinform.ListResult[kinform.Object])
        assert_type(pods.patch("web-0", {}), kinform.Object)
        assert_type(pods.delete("web-0", grace_period=0), kinform.Object | None)
        assert_type(client.version(), kinform.VersionInfo)
        assert_type(client.find("po"), kinform.APIResource)
        for pod in pods.iterate():
            assert_type(pod, kinform.Object)


def mistakes(pods: sync.ResourceClient[kinform.Object]) -> None:
    pods.get(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    pods.get()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    pods.list(limits=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def change(content: dict[str, object]) -> None: ...


def typed(client: sync.Client) -> None:
    settings = client.resource(Settings)
    assert_type(settings, sync.ResourceClient[Settings])
    assert_type(settings.get("web").data, dict[str, str])
    assert_type(settings.list()[0], Settings)
    assert_type(settings.create({}), Settings)
    assert_type(settings.in_namespace("x").apply({}, field_manager="me"), Settings)
    assert_type(settings.metadata_only, sync.ResourceClient[kinform.Object])
    assert_type(settings.update("web", lambda it: Settings({**it.data})), Settings)
    assert_type(client.resource("v1/configmaps", model=Settings).get("a"), Settings)
    assert_type(client.resource("v1/configmaps").update("a", change), kinform.Object)


def watched(client: sync.Client) -> None:
    with client.resource(Settings).watch() as events:
        assert_type(events, sync.Watch[Settings])
        for event in events:
            assert_type(event, kinform.WatchEvent[Settings])
        for received in events.with_bookmarks():
            assert_type(received, kinform.WatchEvent[Settings] | kinform.Bookmark)
    with client.resource("v1/pods").logs("web-0", follow=True) as lines:
        for line in lines:
            assert_type(line, str)


def on_add(event: kinform.Added[Settings]) -> None: ...


def informed(client: sync.Client) -> None:
    with client.informer(Settings, indexers={"n": lambda it: it.data.get("n")}) as informer:
        assert_type(informer, sync.SharedInformer[Settings])
        registration = informer.add_event_handler(on_add=on_add)
        assert_type(registration, sync.Registration[Settings])
        registration.wait_synced(timeout=3)
        informer.wait_synced(30)
        assert_type(informer.lister.get("default/a"), Settings | None)
        assert_type(informer.wait_for(lambda it: it.get("default/a"), 3), Settings)
        for event in informer.events():
            match event:
                case kinform.Added(obj=obj):
                    assert_type(obj, Settings)
                case kinform.Updated(new=new):
                    assert_type(new, Settings)
                case kinform.Deleted(obj=gone):
                    assert_type(gone, Settings)
    assert_type(client.informer("v1/pods"), sync.SharedInformer[kinform.Object])


def shared(client: sync.Client) -> None:
    factory = sync.SharedInformerFactory(client, resync_period=600)
    assert_type(factory.informer("v1/pods"), sync.SharedInformer[kinform.Object])
    assert_type(factory.informer(Settings), sync.SharedInformer[Settings])
    assert_type(factory.informers(Settings), sync.InformerGroup[Settings])
    with factory:
        factory.wait_for_cache_sync(timeout=30)


async def ask(name: str) -> int:
    return len(name)


def escape() -> None:
    assert_type(sync.run(ask, "x"), int)
    sync.run(ask, 3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def waited(one: sync.SharedInformer[Settings], other: sync.Registration[kinform.Object]) -> None:
    sync.wait_for_cache_sync(one, other, timeout=30)


def generated(client: sync.Client) -> None:
    deployments = client.apps_v1.deployments("default")
    assert_type(deployments, sync.ResourceClient[apps_v1.Deployment])
    assert_type(deployments.get("web"), apps_v1.Deployment)
    assert_type(client.core_v1.nodes().list(), kinform.ListResult[core_v1.Node])
    client.core_v1.nodes("default")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
