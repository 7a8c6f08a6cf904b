"""A namespace that is being deleted refuses what is to be made in it, for good."""

from __future__ import annotations

import asyncio

import pytest

import kinform
from kinform.apiserver import APIServer, faults
from kinform.errors import ForbiddenError
from kinform.runtime.controller.context import Context
from kinform.runtime.controller.controller import Controller
from kinform.runtime.controller.statistics import Outcome
from kinform.runtime.source.kind import KindSource
from kinform.testing import in_virtual_time
from tests.runtime.support_controllers import MAPS, Log, named, running, served

NEW = {"metadata": {"name": "new"}}


async def _begin_deleting(client: kinform.Client, namespace: str) -> None:
    """Delete a namespace; an object with a finalizer in it keeps it terminating."""
    await client.resource("v1/namespaces").create({"metadata": {"name": namespace}})
    held = {"metadata": {"name": "held", "finalizers": ["example.com/never"]}}
    await client.resource(MAPS, namespace=namespace).create(held)
    await client.resource("v1/namespaces").delete(namespace)


@in_virtual_time
async def test_what_is_refused_there_says_so() -> None:
    async with served() as (server, client):
        await _begin_deleting(client, "blue")
        with pytest.raises(ForbiddenError) as caught:
            await client.resource(MAPS, namespace="blue").create(NEW)
        assert caught.value.is_namespace_terminating
        server.faults.add(faults.status(403))
        with pytest.raises(ForbiddenError) as caught:
            await client.resource(MAPS, namespace="blue").create(NEW)
        assert not caught.value.is_namespace_terminating


@in_virtual_time
async def test_a_reconcile_of_an_object_that_goes_with_it_comes_to_rest() -> None:
    async def make_another(ctx: Context, name: kinform.ObjectName) -> None:
        assert name.namespace is not None
        await ctx.client.resource(MAPS, namespace=name.namespace).create(NEW)

    log = Log(make_another)
    one = Controller("test", log, for_=KindSource(MAPS, namespace="blue"))
    async with served() as (_, client):
        await _begin_deleting(client, "blue")
        async with running(client, one):
            await log.called(1)
            await asyncio.sleep(3600)
            assert log.names.count("held") == 1
            assert sum(one.statistics().outcomes.values()) == 1
            assert one.statistics().outcomes[Outcome.SUCCESS] == 1


@in_virtual_time
async def test_a_refusal_in_other_words_is_tried_again() -> None:
    """Another error with the same text is not about our namespace."""

    async def make_another(ctx: Context, name: kinform.ObjectName) -> None:
        if name.name == "a":
            await ctx.client.resource(MAPS, namespace="default").create(NEW)

    log = Log(make_another)
    one = Controller("test", log, for_=KindSource(MAPS, namespace="default"))
    async with served() as (server, client):
        await client.resource(MAPS, namespace="default").create(named("a"))
        said = "the old machine is being terminated, try again"
        server.faults.add(faults.status(403, message=said, verb="create", times=2))
        async with running(client, one):
            await log.called(3)
            assert one.statistics().outcomes[Outcome.ERROR] == 2


async def test_a_namespace_of_the_same_name_elsewhere_is_another_one() -> None:
    """On sockets: servers in memory all have one address."""
    async with (
        APIServer() as server,
        server.connect() as client,
        APIServer() as other,
        other.connect() as elsewhere,
    ):

        async def make_another(_: Context, __: kinform.ObjectName) -> None:
            await elsewhere.resource(MAPS, namespace="blue").create(NEW)

        log = Log(make_another)
        one = Controller("test", log, for_=KindSource(MAPS, namespace="blue"))
        await client.resource("v1/namespaces").create({"metadata": {"name": "blue"}})
        await client.resource(MAPS, namespace="blue").create(NEW)
        await _begin_deleting(elsewhere, "blue")
        async with running(client, one):
            await log.called(5)
            assert one.statistics().outcomes[Outcome.ERROR] >= 4


@in_virtual_time
async def test_a_reconcile_of_an_object_elsewhere_goes_on_trying() -> None:
    """That namespace may come back, and no event would report it."""

    async def make_another(ctx: Context, _name: kinform.ObjectName) -> None:
        await ctx.client.resource(MAPS, namespace="blue").create(NEW)

    log = Log(make_another)
    one = Controller("test", log, for_=KindSource(MAPS, namespace="default"))
    async with served() as (_, client):
        await client.resource(MAPS, namespace="default").create(named("a"))
        await _begin_deleting(client, "blue")
        async with running(client, one):
            await log.called(5)
            assert one.statistics().outcomes[Outcome.ERROR] >= 4
