"""Reads of a reconcile: a cache that has not synced is not an empty one."""

from __future__ import annotations

import asyncio

import pytest

import kinform
from kinform.apiserver import faults
from kinform.runtime.controller.context import Context
from kinform.runtime.manager import Manager
from kinform.runtime.source.kind import KindSource
from kinform.testing import in_virtual_time
from tests.runtime.support_controllers import (
    MAPS,
    SECRETS,
    Log,
    controller,
    key,
    named,
    running,
    served,
)


@in_virtual_time
async def test_reconcile_cannot_read_a_cache_of_its_manager_that_has_not_synced(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Only the caches that a controller names are waited for; others are not empty, but unread."""
    said: dict[str, str] = {}

    async def work(ctx: Context, _name: kinform.ObjectName) -> None:
        for name, informer in {"managed": managed, "own": own}.items():
            try:
                said[name] = str(informer.lister.list())
            except kinform.UsageError as error:
                said[name] = str(error)
        said["its own kind"] = str(ctx.lister(MAPS).get(key("none")))

    async with served() as (server, client):
        server.faults.add(faults.status(503, resource="secrets"))
        await client.resource(MAPS).create(named("a"))
        log, own = Log(work), client.informer(SECRETS)
        async with Manager(client, signals=False) as manager:
            manager.add(controller(log))
            managed = manager.factory.informer(SECRETS)
            await manager.start()
            async with own:
                await log.called(1)
                await asyncio.sleep(1)
        assert said["managed"].startswith("v1/secrets has not synced, so a reconcile cannot rely")
        assert said["own"] == "[]"
        assert said["its own kind"] == "None"
    assert len([one for one in caplog.records if "before its first sync" in one.msg]) == 1


@pytest.mark.parametrize("in_thread", [False, True], ids=["async", "plain"])
@in_virtual_time
async def test_reconcile_in_a_thread_or_not_cannot_read_it(*, in_thread: bool) -> None:
    raised: list[Exception] = []
    called = asyncio.Event()

    def read(_ctx: Context, _name: kinform.ObjectName) -> None:
        try:
            managed.lister.list()
        except kinform.UsageError as error:
            raised.append(error)
        called.set()

    async def read_on_the_loop(ctx: Context, name: kinform.ObjectName) -> None:
        read(ctx, name)

    async with served() as (server, client):
        server.faults.add(faults.status(503, resource="secrets"))
        await client.resource(MAPS).create(named("a"))
        async with Manager(client, signals=False) as manager:
            manager.add(controller(read if in_thread else read_on_the_loop))
            managed = manager.factory.informer(SECRETS)
            await manager.start()
            await called.wait()
    assert len(raised) == 1


@in_virtual_time
async def test_source_of_several_namespaces_follows_each_of_them() -> None:
    log = Log()
    async with served() as (_, client):
        for namespace in ("a", "b", "c"):
            await client.resource("v1/namespaces").create({"metadata": {"name": namespace}})
            await client.resource(MAPS, namespace=namespace).create(
                {"metadata": {"name": namespace}}
            )
        source = KindSource(MAPS, namespaces=["a", "b"])
        async with running(client, controller(log, for_=source)):
            await log.called(2)
            await asyncio.sleep(1)
    assert sorted(log.names) == ["a", "b"]
