"""ListWatch: what it asks for, and that anything can stand behind it."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import AsyncIterator
from urllib.parse import parse_qsl, urlsplit

import msgspec
import pytest

from kinform.cache.listwatch import ListerWatcher, ListWatch
from kinform.errors import UnavailableError
from kinform.meta import Entry, ListMeta, ObjectMeta
from kinform.rest.client import RESTClient
from kinform.rest.options import ListOptions
from kinform.rest.request import Request
from kinform.rest.results import Bookmark, ListResult, Received, WatchEvent
from kinform.sansio.wire.watch import EventType
from kinform.selectors import SelectorError
from kinform.testing import in_virtual_time
from tests.support.scripted import Answer, ScriptedTransport, answer, connection

LIST = {"kind": "PodList", "metadata": {"resourceVersion": "5"}, "items": []}
BOOKMARK = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"8"}}}\n'
EVENT = b'{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"6"}}}\n'


def asked(transport: ScriptedTransport) -> list[tuple[str, dict[str, str]]]:
    urls = [urlsplit(request.url) for request in transport.requests]
    return [(url.path, dict(parse_qsl(url.query))) for url in urls]


@in_virtual_time
async def test_list_and_watch_carry_the_selectors() -> None:
    conn, transport = connection(answer(200, LIST), Answer(200, {}, [EVENT + BOOKMARK]))
    source = ListWatch.from_client(
        RESTClient(conn),
        "pods",
        namespace="default",
        field_selector="spec.nodeName=a",
        label_selector={"app": "web"},
    )
    listed = await source.list(ListOptions(limit=500))
    options = ListOptions(resource_version=listed.resource_version, allow_watch_bookmarks=True)
    async with source.watch(options) as events:
        seen = [event async for event in events]
    assert [type(event) for event in seen] == [WatchEvent, Bookmark]
    path = "/api/v1/namespaces/default/pods"
    selectors = {"labelSelector": "app=web", "fieldSelector": "spec.nodeName=a"}
    watching = {"resourceVersion": "5", "watch": "true", "allowWatchBookmarks": "true"}
    assert asked(transport) == [
        (path, {**selectors, "limit": "500"}),
        (path, {**selectors, **watching}),
    ]


@in_virtual_time
async def test_a_failure_is_told_at_once_for_reflectors_wait_by_themselves() -> None:
    conn, transport = connection(answer(503, headers={"Retry-After": "1"}))
    source = ListWatch.from_client(RESTClient(conn), "pods")
    with pytest.raises(UnavailableError):
        await source.list()
    with pytest.raises(UnavailableError):
        async with source.watch():
            pass
    assert len(transport.requests) == 2


@in_virtual_time
async def test_no_namespace_means_all_of_them() -> None:
    conn, transport = connection(answer(200, LIST))
    await ListWatch.from_client(RESTClient(conn, "apps/v1"), "deployments").list()
    assert asked(transport) == [("/apis/apps/v1/deployments", {})]


@in_virtual_time
async def test_the_modifier_has_the_last_word_and_sees_the_watch_flag() -> None:
    seen: list[bool] = []

    def modify(options: ListOptions) -> ListOptions:
        seen.append(options.watch)
        return dataclasses.replace(options, label_selector="mine=yes")

    conn, transport = connection(answer(200, LIST), Answer(200, {}))
    source = ListWatch.from_client(
        RESTClient(conn), "pods", label_selector="theirs=no", options_modifier=modify
    )
    await source.list()
    async with source.watch():
        pass
    assert seen == [False, True]
    assert [query["labelSelector"] for _, query in asked(transport)] == ["mine=yes", "mine=yes"]


class Getter:
    """Anything with ``get()`` will do."""

    def __init__(self, rest: RESTClient) -> None:
        self.rest = rest
        self.count = 0

    def get(self) -> Request:
        self.count += 1
        return self.rest.get()


@in_virtual_time
async def test_anything_that_can_begin_a_get_will_do() -> None:
    conn, _ = connection(answer(200, LIST))
    getter = Getter(RESTClient(conn))
    source = ListWatch.from_client(getter, "pods", disable_chunking=True)
    await source.list()
    assert (getter.count, source.source_options.disable_chunking) == (1, True)


class Named(msgspec.Struct):
    metadata: dict[str, str]


@in_virtual_time
async def test_objects_may_be_read_as_a_model() -> None:
    conn, _ = connection(Answer(200, {}, [EVENT]))
    source = ListWatch.from_client(RESTClient(conn), "pods", model=Named)
    async with source.watch() as events:
        objects = [event.object async for event in events if isinstance(event, WatchEvent)]
    assert objects == [Named({"name": "a", "resourceVersion": "6"})]


def test_a_bad_selector_is_told_when_the_source_is_made() -> None:
    conn, _ = connection(answer(200, LIST))
    with pytest.raises(SelectorError):
        ListWatch.from_client(RESTClient(conn), "pods", label_selector="a=b=c")


@in_virtual_time
async def test_two_functions_make_a_source_of_anything() -> None:
    async def my_list(options: ListOptions) -> ListResult[int]:
        entries = [Entry(ObjectMeta(name="one"), 1)]
        return ListResult(entries, metadata=ListMeta(resource_version="7"))

    async def my_events() -> AsyncIterator[Received[int]]:
        yield WatchEvent(EventType.ADDED, 2, ObjectMeta(name="two"))
        yield Bookmark("9")

    @contextlib.asynccontextmanager
    async def my_watch(options: ListOptions) -> AsyncIterator[AsyncIterator[Received[int]]]:
        assert options.resource_version == "7"
        yield my_events()

    source: ListerWatcher[int] = ListWatch(list=my_list, watch=my_watch)
    listed = await source.list(ListOptions())
    async with source.watch(ListOptions(resource_version=listed.resource_version)) as events:
        seen = [event async for event in events]
    assert list(listed) == [1]
    assert seen == [WatchEvent(EventType.ADDED, 2, ObjectMeta(name="two")), Bookmark("9")]
