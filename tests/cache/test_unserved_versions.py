"""An API version that is no longer served, and a resource that is gone: two different things."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kinform import Client, SharedInformer, UnknownResourceError
from kinform.apiserver import APIServer, faults
from kinform.objects.object import Object
from kinform.runtime.healthz.checks import informers_check
from kinform.testing import in_virtual_time

CRDS = "apiextensions.k8s.io/v1/customresourcedefinitions"


def version(name: str, *, served: bool, storage: bool) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "name": name,
        "served": served,
        "storage": storage,
        "schema": {"openAPIV3Schema": schema},
    }


def versions(*, alpha: bool) -> dict[str, Any]:
    served = version("v1alpha1", served=alpha, storage=False)
    return {"versions": [served, version("v1", served=True, storage=True)]}


async def define(client: Client) -> None:
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, **versions(alpha=True)}
    await client.resource(CRDS).create({"metadata": {"name": "widgets.example.com"}, "spec": spec})
    await asyncio.sleep(5)
    widgets = client.resource("example.com/v1/widgets", namespace="default")
    for name in ("a", "b", "c"):
        await widgets.create({"metadata": {"name": name}})


def deletions(informer: SharedInformer[Object]) -> list[str]:
    told: list[str] = []
    informer.add_event_handler(on_delete=lambda event: told.append(event.key.name))
    return told


@pytest.mark.slow
@pytest.mark.parametrize("name", ["example.com/v1alpha1/widgets", "widgets.v1alpha1.example.com"])
@in_virtual_time
async def test_a_version_that_is_no_longer_served_deletes_nothing(name: str) -> None:
    async with APIServer(port=None) as server, server.connect() as client:
        await define(client)
        informer = client.informer(name)
        told = deletions(informer)
        async with informer:
            await informer.wait_synced(60)
            assert informer.healthy()
            await client.resource(CRDS).patch(
                "widgets.example.com", {"spec": versions(alpha=False)}
            )
            await asyncio.sleep(650)  # until the watch has ended, at its timeout
            assert not informer.healthy()
            wrong = informers_check([informer])()
            assert wrong is not None
            assert "is stale (UnknownResourceError" in wrong
            error = informer.statistics().reflector.last_error
            assert isinstance(error, UnknownResourceError)
            assert error.served_in == ("example.com/v1/widgets",)
            await asyncio.sleep(7200)
            assert (len(informer.indexer), told) == (3, [])
            await client.resource(CRDS).patch("widgets.example.com", {"spec": versions(alpha=True)})
            await informer.wait_for(lambda _: informer.healthy(), 120)
            assert told == []


@in_virtual_time
async def test_a_bare_name_moves_on_to_the_version_that_is_served() -> None:
    async with APIServer(port=None) as server, server.connect() as client:
        await define(client)
        informer = client.informer("widgets")
        told = deletions(informer)
        async with informer:
            await informer.wait_synced(60)
            await client.resource(CRDS).patch(
                "widgets.example.com", {"spec": versions(alpha=False)}
            )
            await asyncio.sleep(700)
            assert informer.healthy(120)
            assert (len(informer.indexer), told) == (3, [])


@in_virtual_time
async def test_a_resource_that_is_deleted_while_cut_off_is_cleared_after_two_proofs() -> None:
    async with (
        APIServer(port=None) as server,
        server.connect() as client,
        server.connect() as admin,
    ):
        await define(admin)
        informer = client.informer("example.com/v1alpha1/widgets")
        told = deletions(informer)
        async with informer:
            await informer.wait_synced(60)
            cut = server.faults.add(faults.half_open(verb="watch", resource="widgets"))
            await asyncio.sleep(700)  # no watch of before is left
            await admin.resource(CRDS).delete("widgets.example.com")
            await asyncio.sleep(1)
            server.faults.remove(cut)
            await informer.wait_for(lambda lister: not lister.list(), 1200)
            assert sorted(told) == ["a", "b", "c"]


@pytest.mark.slow
@pytest.mark.parametrize("resource", [None, "widgets"], ids=["everything", "lists and watches"])
@in_virtual_time
async def test_a_stranger_who_answers_404_deletes_nothing(resource: str | None) -> None:
    async with APIServer(port=None) as server, server.connect() as client:
        await define(client)
        informer = client.informer("example.com/v1/widgets")
        told = deletions(informer)
        async with informer:
            await informer.wait_synced(60)
            fault = server.faults.add(faults.status(404, resource=resource))
            await asyncio.sleep(3600)
            assert (len(informer.indexer), told) == (3, [])
            server.faults.remove(fault)
            await informer.wait_for(lambda _: informer.healthy(60), 120)
