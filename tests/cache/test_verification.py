"""F-P22: `SharedInformer.verify` compares cache and server at one version, and would notice."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncGenerator

import pytest

import kinform
from kinform import Object, ObjectName, SharedInformer
from kinform.apiserver import APIServer, faults
from kinform.cache import DeltaFIFO, ListWatch, RealFIFO
from kinform.cache.verification import Picture, compared
from kinform.errors import ResourceExpiredError, UsageError
from kinform.meta import Entry, ObjectMeta
from kinform.rest.options import ListOptions
from kinform.rest.results import ListResult
from kinform.sansio.queue.interface import QueueFactory
from kinform.tasks import background
from kinform.testing import in_virtual_time


@contextlib.asynccontextmanager
async def following(
    server: APIServer, count: int = 3, *, queue: QueueFactory = RealFIFO
) -> AsyncGenerator[tuple[kinform.ResourceClient[Object], SharedInformer[Object]]]:
    """Give config maps a, b, c and so on, and an informer that has them."""
    async with server, server.connect() as client:
        maps = client.resource("v1/configmaps", namespace="default")
        for number in range(count):
            await maps.create({"metadata": {"name": f"n{number}"}})
        informer = client.informer("v1/configmaps", namespace="default", queue=queue)
        async with informer:
            await informer.wait_synced(30)
            yield maps, informer


def named(name: str) -> ObjectName:
    return ObjectName("default", name)


@pytest.mark.parametrize("queue", [RealFIFO, DeltaFIFO])
@in_virtual_time
async def test_a_cache_that_follows_is_equal_at_its_version(queue: QueueFactory) -> None:
    server = APIServer(port=None)
    async with following(server, queue=queue) as (maps, informer):
        asked = server.faults.add(faults.latency(0.001))  # hits every request, and does no harm
        found = await informer.verify()
        assert asked.hits == 1, "a list"
        assert found.is_equal
        assert found.objects == 3
        assert found.resource_version == informer.last_sync_resource_version
        changed = await maps.patch("n1", {"data": {"k": "v"}})
        await maps.delete("n2")
        assert (await informer.verify()).is_equal, "behind, and right at the version it shows"
        await informer.wait_until(changed.resource_version, 30)
        assert (await informer.verify()).is_equal


@in_virtual_time
async def test_whatever_is_wrong_is_named() -> None:
    async with following(APIServer(port=None)) as (_, informer):
        entries = informer.indexer.entries
        gone, other = (entries.get(named(name)) for name in ("n0", "n1"))
        assert gone is not None
        assert other is not None
        entries.delete(named("n0"))
        stale = ObjectMeta(name="n1", namespace="default", uid=other.metadata.uid)
        ghost = ObjectMeta(name="ghost", namespace="default", uid="u")
        for metadata in (stale, ghost):
            entries.add(metadata.key, Entry(metadata, other.object))
        found = await informer.verify()
        assert not found.is_equal
        assert found.missing == (named("n0"),)
        assert found.different == (named("n1"),)
        assert found.surplus == (named("ghost"),)


@pytest.mark.slow
@in_virtual_time
async def test_a_list_of_many_pages_is_compared_as_one() -> None:
    async with following(APIServer(port=None), 1201) as (_, informer):
        found = await informer.verify()
        assert found.is_equal
        assert found.objects == 1201


@in_virtual_time
async def test_a_version_that_the_server_has_forgotten_is_replaced_by_the_next() -> None:
    server = APIServer(port=None)
    async with following(server) as (maps, informer):
        before = informer.last_sync_resource_version
        other = server.connect()
        async with other:
            await other.resource("v1/secrets", namespace="default").create(
                {"metadata": {"name": "of-another-kind"}}
            )
        server.compact()
        found = await informer.verify()  # until the next bookmark
        assert found.is_equal
        assert found.resource_version != before
        assert len(await maps.list()) == found.objects


@in_virtual_time
async def test_a_server_that_forgets_everything_at_once_is_an_error() -> None:
    server = APIServer(port=None)
    async with following(server) as (maps, informer), background(write_on(maps)):
        server.faults.add(faults.status(410, verb="list", resource="configmaps"))
        with pytest.raises(ResourceExpiredError):
            await informer.verify()


async def write_on(maps: kinform.ResourceClient[Object]) -> None:
    for number in itertools.count():
        await maps.patch("n0", {"data": {"k": str(number)}})
        await asyncio.sleep(1)


async def test_who_was_not_started_cannot_be_compared() -> None:
    async with kinform.connect("http://127.0.0.1:1") as client:
        with pytest.raises(UsageError, match="was not started"):
            await client.informer("v1/configmaps").verify()


@in_virtual_time
async def test_a_source_without_versions_cannot_be_compared() -> None:
    async def list_nothing(options: ListOptions) -> ListResult[Object]:
        del options
        return ListResult([])

    source: ListWatch[Object] = ListWatch(
        list=list_nothing,
        watch=lambda options: contextlib.nullcontext(_never(options)),
        supports_watch_list=False,
    )
    async with SharedInformer(source) as informer:
        await informer.wait_synced(30)
        with pytest.raises(UsageError, match="has no resource version"):
            await informer.verify()


async def _never(options: ListOptions) -> AsyncGenerator[kinform.WatchEvent[Object]]:
    del options
    nothing: list[kinform.WatchEvent[Object]] = []
    for event in nothing:
        yield event


def test_what_cannot_be_read_is_missing_only_if_nobody_knows_of_it() -> None:
    a, b, c = (named(name) for name in "abc")
    cache = Picture("5", {a: ("u", "1")}, frozenset({b}))
    server = Picture("5", {}, frozenset({a, b, c}))
    found = compared(cache, server)
    assert found.missing == (c,)
    assert not found.surplus
    assert not found.different
    assert found.objects == 3
