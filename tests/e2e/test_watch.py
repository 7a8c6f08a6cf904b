"""Watches on a real kube-apiserver: bookmarks, initial events, time-outs, chunks, 410."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from kinform import (
    Bookmark,
    Client,
    ListResult,
    Object,
    ResourceClient,
    ResourceExpiredError,
    TransportError,
    TransportFailure,
)
from kinform.cache import ListWatch
from kinform.rest.options import ListOptions
from kinform.rest.pager import ListPager
from kinform.rest.transport import HttpResponse
from kinform.testing import ControlPlane
from kinform.testing.plugin import ControlPlaneFactory

pytestmark = pytest.mark.e2e


@pytest.fixture
async def client(kinform_control_plane: ControlPlane) -> AsyncIterator[Client]:
    async with kinform_control_plane.connect() as client:
        yield client


@pytest.fixture
def maps(client: Client, kinform_namespace: str) -> ResourceClient[Object]:
    return client.resource("v1/configmaps", namespace=kinform_namespace)


def named(name: str) -> dict[str, object]:
    return {"metadata": {"name": name}, "data": {"n": "0"}}


async def test_a_watch_goes_on_where_the_list_ended(maps: ResourceClient[Object]) -> None:
    await maps.create(named("before"))
    listed = await maps.list()
    async with asyncio.timeout(30), maps.watch(resource_version=listed.resource_version) as events:
        await maps.create(named("a"))
        await maps.patch("a", {"data": {"n": "1"}})
        await maps.delete("a")
        seen: list[tuple[str, str]] = []
        async for event in events:
            seen.append((event.type, event.object.name))
            if event.type == "DELETED":
                break
    assert seen == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    assert int(events.resource_version) > int(listed.resource_version)


async def test_a_streamed_list_ends_with_a_bookmark(maps: ResourceClient[Object]) -> None:
    for name in ("a", "b", "c"):
        await maps.create(named(name))
    async with asyncio.timeout(30), maps.watch(send_initial_events=True) as events:
        names: list[str] = []
        async for event in events.with_bookmarks():
            if isinstance(event, Bookmark):
                assert event.initial_events_end
                break
            names.append(event.object.name)
    assert sorted(names) == ["a", "b", "c"]
    assert events.initial_events_end
    listed = await maps.list()
    assert int(events.resource_version) >= max(int(one.resource_version) for one in listed)


async def test_the_server_ends_a_watch_after_its_timeout(maps: ResourceClient[Object]) -> None:
    started = asyncio.get_running_loop().time()
    async with asyncio.timeout(10), maps.watch(timeout=1) as events:
        assert [event async for event in events] == []
    assert asyncio.get_running_loop().time() - started >= 0.9
    assert events.resource_version  # a last bookmark had the version


async def test_a_watch_can_follow_one_object_and_a_selector(maps: ResourceClient[Object]) -> None:
    await maps.create(named("a"))
    await maps.create({"metadata": {"name": "b", "labels": {"watched": "yes"}}})
    async with asyncio.timeout(10), maps.watch(name="a", timeout=1) as events:
        assert [event.object.name async for event in events] == ["a"]
    async with asyncio.timeout(30), maps.watch(label_selector="watched=yes") as events:
        seen: list[tuple[str, str]] = []
        async for event in events:
            seen.append((event.type, event.object.name))
            if event.type == "DELETED":
                break
            await maps.patch("b", {"metadata": {"labels": {"watched": "no"}}})
    # An object that leaves the selector leaves the watch.
    assert seen == [("ADDED", "b"), ("DELETED", "b")]


@pytest.mark.parametrize("form", ["deprecated", "modern"])
async def test_each_event_comes_in_an_http_chunk_of_its_own(
    client: Client, maps: ResourceClient[Object], kinform_namespace: str, form: str
) -> None:
    """The experiment of the seed text on HTTP chunks: edit a ConfigMap, look at the wire."""
    await maps.create(named("coredns"))
    if form == "deprecated":
        path = f"/api/v1/watch/namespaces/{kinform_namespace}/configmaps/coredns"
        request = client.rest().get().abs_path(path)
    else:
        query = {"watch": True, "fieldSelector": "metadata.name=coredns"}
        request = client.rest().get().namespace(kinform_namespace).resource("configmaps")
        request.params(query)
    async with asyncio.timeout(30), request.stream() as response:
        assert response.headers["Transfer-Encoding"] == "chunked"
        chunks = http_chunks(response)
        first = await anext(chunks)
        await maps.patch("coredns", {"data": {"n": "1"}})
        second = await anext(chunks)
        await chunks.aclose()
    events = [json.loads(chunk) for chunk in (first, second)]
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED"]
    assert [event["object"]["data"]["n"] for event in events] == ["0", "1"]


async def http_chunks(response: HttpResponse):
    """Put the pieces of each HTTP chunk together."""
    whole = b""
    async for data, ends in response.iter_chunks():
        whole += data
        if ends:
            yield whole
            whole = b""


async def test_a_list_watch_is_made_from_a_rest_client(
    client: Client, maps: ResourceClient[Object], kinform_namespace: str
) -> None:
    for name in ("a", "b"):
        await maps.create(named(name))
    source = ListWatch.from_client(
        client.rest("v1"),
        "configmaps",
        namespace=kinform_namespace,
        field_selector="metadata.name=a",
    )
    listed = await source.list(ListOptions())
    assert [one.name for one in listed] == ["a"]
    options = ListOptions(resource_version=listed.resource_version)
    async with asyncio.timeout(30), source.watch(options) as events:
        await maps.patch("b", {"data": {"n": "1"}})
        await maps.patch("a", {"data": {"n": "1"}})
        async for event in events:
            assert not isinstance(event, Bookmark)
            assert (event.type, event.object.name) == ("MODIFIED", "a")
            break


async def test_a_paused_server_is_noticed_in_every_state(
    kinform_control_plane_factory: ControlPlaneFactory,
) -> None:
    """F-R02: the sockets stay open and nothing comes; every call ends by its own deadline."""
    async with kinform_control_plane_factory() as cp, cp.connect() as client:
        maps = client.resource("v1/configmaps", namespace="default")
        await maps.list()
        async with maps.watch(timeout=1) as events:
            cp.pause()
            async with asyncio.timeout(15):  # its time-out and ten seconds
                with pytest.raises(TransportError) as caught:
                    while True:
                        await anext(events)
                assert caught.value.failure is TransportFailure.TIMEOUT
        async with asyncio.timeout(5):
            with pytest.raises(TransportError, match="no answer within 1 s"):
                await maps.list(timeout=1)
        cp.resume()
        async with asyncio.timeout(15):
            await maps.list()


async def test_a_list_whose_token_expires_on_the_way_is_still_complete(
    kinform_control_plane_factory: ControlPlaneFactory,
) -> None:
    """Compaction and a restart between two pages: the token is gone, the list is not."""
    async with kinform_control_plane_factory() as cp, cp.connect() as client:
        maps = client.resource("v1/configmaps", namespace="default")
        for number in range(6):
            await maps.create(named(f"n{number}"))
        tokens: list[str] = []

        async def fetch(options: ListOptions) -> ListResult[Object]:
            tokens.append(options.continue_token)
            if options.continue_token:
                await maps.create(named("late"))
                await cp.compact()
            request = client.rest().get().namespace("default").resource("configmaps")
            return await request.params(options).list()

        listed = await ListPager(fetch, page_size=2).list(ListOptions())
        names = [one.name for one in listed if one.name.startswith(("n", "late"))]
        assert names == ["late", "n0", "n1", "n2", "n3", "n4", "n5"]
        assert [bool(token) for token in tokens] == [False, True, False]

        with pytest.raises(ResourceExpiredError):
            await maps.list(limit=2, continue_token=tokens[1])
        oldest = listed[0].resource_version
        await cp.restart_apiserver()
        with pytest.raises(ResourceExpiredError):
            async with maps.watch(resource_version=oldest) as events:
                async for _event in events:
                    pass
