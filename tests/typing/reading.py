"""The client's types: without a model everything is an Object, with one it is the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict, assert_type

import msgspec

import kinform


class Settings(msgspec.Struct):
    __resource__ = "v1/configmaps"
    data: dict[str, str] = {}


@dataclass
class Spec:
    node_name: str = ""


class Raw(TypedDict):
    kind: str


async def untyped(client: kinform.Client) -> None:
    pods = client.resource("v1/pods", namespace="default")
    assert_type(pods, kinform.ResourceClient[kinform.Object])
    assert_type(await pods.get("web-0"), kinform.Object)
    listed = await pods.list(label_selector="app=web")
    assert_type(listed, kinform.ListResult[kinform.Object])
    assert_type(listed[0], kinform.Object)
    assert_type(listed.resource_version, str)
    async for pod in pods.iterate():
        assert_type(pod, kinform.Object)


async def typed(client: kinform.Client) -> None:
    settings = client.resource(Settings)
    assert_type(settings, kinform.ResourceClient[Settings])
    assert_type((await settings.get("web")).data, dict[str, str])
    assert_type(client.resource("v1/pods", model=Spec), kinform.ResourceClient[Spec])
    assert_type(client.resource("v1/pods", model=Raw), kinform.ResourceClient[Raw])
    assert_type(settings.status, kinform.ResourceClient[Settings])
    assert_type(settings.metadata_only, kinform.ResourceClient[kinform.Object])


async def watched(client: kinform.Client) -> None:
    async with client.resource(Settings).watch() as events:
        async for event in events:
            assert_type(event, kinform.WatchEvent[Settings])
            assert_type(event.object, Settings)


async def connected() -> None:
    async with kinform.connect("http://127.0.0.1:8001") as client:
        assert_type(client, kinform.Client)
