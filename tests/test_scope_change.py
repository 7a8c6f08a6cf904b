"""A CRD that is deleted and created again with another scope: the same client goes on."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

import kinform
from kinform.apiserver import APIServer
from kinform.apiserver.memory import MemoryTransport
from kinform.errors import ConflictError, NotFoundError
from kinform.rest.transport import HttpRequest, HttpResponse
from kinform.testing import in_virtual_time

NAME = "widgets.example.com"
WIDGETS = "example.com/v1/widgets"


def definition(scope: str) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {
            "group": "example.com",
            "scope": scope,
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


class Counting:
    """A transport that remembers the paths of all requests."""

    def __init__(self, inner: MemoryTransport) -> None:
        self._inner = inner
        self.paths: list[str] = []

    def send(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpResponse]:
        self.paths.append(request.url.removeprefix("http://localhost").partition("?")[0])
        return self._inner.send(request)

    async def aclose(self) -> None:
        await self._inner.aclose()

    def lookups(self) -> int:
        return self.paths.count("/apis/example.com/v1")


@contextlib.asynccontextmanager
async def moved(before: str, after: str) -> AsyncGenerator[tuple[kinform.Client, Counting]]:
    """Give a client that has found the resource before its scope changed, and its requests."""
    async with APIServer(port=None) as server, server.connect() as admin:
        transport = Counting(MemoryTransport(server.application))
        config = kinform.Config(server="http://localhost", token=server.token)
        crds = admin.resource("customresourcedefinitions")
        async with kinform.connect(config, transport=transport) as client:
            await crds.create(definition(before))
            await asyncio.sleep(3)
            await client.resource(WIDGETS).list()
            await crds.delete(NAME)
            await asyncio.sleep(10)
            await crds.create(definition(after))
            await asyncio.sleep(3)
            await admin.resource(WIDGETS).create({"metadata": {"name": "here"}})
            transport.paths.clear()
            yield client, transport


async def watched(widgets: kinform.ResourceClient[Any]) -> None:
    async with widgets.watch() as events:
        await anext(events)


async def refused(widgets: kinform.ResourceClient[Any]) -> None:
    with pytest.raises(ConflictError):  # so the path is right
        await widgets.replace({"metadata": {"name": "here", "resourceVersion": "1"}})


APPLIED = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "b"}}
VERBS: dict[str, Any] = {
    "get": lambda widgets: widgets.get("here"),
    "list": lambda widgets: widgets.list(),
    "watch": watched,
    "create": lambda widgets: widgets.create({"metadata": {"name": "a"}}),
    "replace": refused,
    "update": lambda widgets: widgets.update("here", lambda found: {**found, "x": 1}),
    "patch": lambda widgets: widgets.patch("here", {"x": 1}),
    "apply": lambda widgets: widgets.apply(APPLIED, field_manager="t"),
    "delete": lambda widgets: widgets.delete("here"),
    "delete_collection": lambda widgets: widgets.delete_collection(),
}


@pytest.mark.parametrize("scopes", [("Namespaced", "Cluster"), ("Cluster", "Namespaced")])
@pytest.mark.parametrize("verb", VERBS)
@in_virtual_time
async def test_every_verb_finds_a_resource_whose_scope_has_changed(
    verb: str, scopes: tuple[str, str]
) -> None:
    async with moved(*scopes) as (client, transport):
        await VERBS[verb](client.resource(WIDGETS))
        assert transport.lookups() <= 1
        await VERBS["list"](client.resource(WIDGETS))
        assert transport.lookups() <= 1, "the new path is known now"


@in_virtual_time
async def test_a_client_of_the_resource_from_before_finds_it_too() -> None:
    """Also if another one has looked it up meanwhile."""
    async with moved("Namespaced", "Cluster") as (client, transport):
        first, second = client.resource(WIDGETS), client.resource(WIDGETS)
        for widgets in (first, second, first):
            assert (await widgets.get("here")).name == "here"
        assert transport.lookups() == 1


@pytest.mark.slow
@in_virtual_time
async def test_a_path_that_is_never_found_is_looked_up_every_10_seconds_at_most() -> None:
    async with APIServer(port=None) as server, server.connect() as admin:
        transport = Counting(MemoryTransport(server.application))
        config = kinform.Config(server="http://localhost", token=server.token)
        await admin.resource("customresourcedefinitions").create(definition("Cluster"))
        await asyncio.sleep(3)
        async with kinform.connect(config, transport=transport) as client:
            widgets = client.resource(WIDGETS).subresource("nothing")
            await client.resource(WIDGETS).list()
            transport.paths.clear()
            for _ in range(600):
                with pytest.raises(NotFoundError):
                    await widgets.get("here")
                await asyncio.sleep(0.1)
            assert 6 <= transport.lookups() <= 7


@in_virtual_time
async def test_an_object_that_does_not_exist_costs_one_request() -> None:
    """Controllers ask for such objects all the time."""
    async with moved("Cluster", "Cluster") as (client, transport):
        with pytest.raises(NotFoundError, match="missing"):
            await client.resource(WIDGETS).get("missing")
        assert transport.paths == ["/apis/example.com/v1/widgets/missing"]


@pytest.mark.parametrize("scopes", [("Namespaced", "Cluster"), ("Cluster", "Namespaced")])
@in_virtual_time
async def test_requests_that_fail_together_all_find_the_new_path(scopes: tuple[str, str]) -> None:
    async with moved(*scopes) as (client, transport):
        widgets = client.resource(WIDGETS)
        await asyncio.gather(*(widgets.create({"metadata": {"name": f"w{n}"}}) for n in range(4)))
        assert transport.lookups() == 1


class CoreAway:
    """A transport that answers 404 to every path of the core group while ``is_away``."""

    def __init__(self, inner: MemoryTransport) -> None:
        self._inner = inner
        self.is_away = False

    def send(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpResponse]:
        path = request.url.removeprefix("http://localhost").partition("?")[0]
        if self.is_away and (path == "/api" or path.startswith("/api/")):
            request = dataclasses.replace(request, url="http://localhost/no-such-route")
        return self._inner.send(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


@in_virtual_time
async def test_a_short_name_never_moves_to_another_api_group() -> None:
    """While the core group is not found, "secrets" of another group are the only ones."""
    other = definition("Namespaced")
    other["metadata"] = {"name": "secrets.example.com"}
    other["spec"]["names"] = {"plural": "secrets", "singular": "secret", "kind": "Other"}
    async with APIServer(port=None) as server, server.connect() as admin:
        await admin.resource("customresourcedefinitions").create(other)
        await asyncio.sleep(3)
        others = admin.resource("example.com/v1/secrets", namespace="default")
        await others.create({"metadata": {"name": "a"}})
        await admin.resource("v1/secrets", namespace="default").create({"metadata": {"name": "a"}})
        transport = CoreAway(MemoryTransport(server.application))
        config = kinform.Config(server="http://localhost", token=server.token)
        async with kinform.connect(config, transport=transport) as client:
            secrets = client.resource("secrets", namespace="default")
            await secrets.list()
            async with client.informer("secrets", namespace="default") as informer:
                await informer.wait_synced(30)
                transport.is_away = True
                server.cluster.storage.disconnect()
                with pytest.raises(NotFoundError):
                    await secrets.delete("a")
                await asyncio.sleep(900)
                assert [one.kind for one in informer.lister.list()] == ["Secret"]
        assert [one.name for one in await others.list()] == ["a"]
