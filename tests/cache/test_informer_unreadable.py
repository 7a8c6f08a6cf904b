"""One object that cannot be read takes neither its kind nor the cache's honesty with it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable

import msgspec
import pytest

from kinform.cache.listwatch import ListWatch
from kinform.cache.shared_informer import SharedInformer
from kinform.errors import DecodeError
from kinform.meta import ObjectMeta, ObjectName
from kinform.objects.object import Object
from kinform.rest.client import RESTClient
from kinform.rest.options import ListOptions
from kinform.rest.results import ListResult, Unreadable
from kinform.sansio.queue.delta_fifo import DeltaFIFO
from kinform.sansio.queue.interface import QueueFactory
from kinform.sansio.queue.real_fifo import RealFIFO
from kinform.sansio.wire.watch import EventType
from kinform.testing import FakeListWatch, in_virtual_time
from tests.cache.support_informer import names, quiet, recorded, source_of, thing, value_of
from tests.support.scripted import Answer, answer, connection

both_queues = pytest.mark.parametrize("queue", [RealFIFO, DeltaFIFO])

A, B = ObjectName("default", "a"), ObjectName("default", "b")


def poison(
    source: FakeListWatch[Object], name: str, kind: EventType = EventType.MODIFIED
) -> Unreadable:
    """Let a watch bring an object of which only the metadata can be made out."""
    source.advance()
    metadata = ObjectMeta(name=name, namespace="default", resource_version=source.resource_version)
    return Unreadable(metadata, DecodeError("nested too deeply"), kind)


@both_queues
@in_virtual_time
async def test_it_leaves_the_cache_is_told_as_gone_and_comes_back_as_new(
    queue: QueueFactory,
) -> None:
    source = source_of("a", "b")
    informer = SharedInformer(source, queue=queue)
    recorder = recorded(informer)
    async with informer:
        await informer.wait_synced(5)
        source.send(poison(source, "a"))
        await quiet()
        assert names(informer) == ["b"]
        assert [*informer.unreadable] == [A]
        assert "nested too deeply" in str(informer.unreadable[A])
        assert informer.statistics().unreadable == 1
        source.modify(thing("b", "goes on"))
        source.modify(thing("a", "readable"))
        await quiet()
        assert names(informer) == ["a", "b"]
        assert not informer.unreadable
    told = [one for one in recorder.told if not one.endswith("initial")]
    assert told == ["-a@2 unseen", "b@3>5", "+a@6"]


@both_queues
@in_virtual_time
async def test_one_that_nobody_knew_is_told_to_nobody(queue: QueueFactory) -> None:
    source = source_of("a")
    informer = SharedInformer(source, queue=queue)
    recorder = recorded(informer)
    async with informer:
        await informer.wait_synced(5)
        source.send(poison(source, "b", EventType.ADDED))
        await quiet()
        assert [*informer.unreadable] == [B]
        source.send(poison(source, "b", EventType.DELETED))
        await quiet()
        assert not informer.unreadable
    assert recorder.told == ["+a@2 initial"]


def spoiling(source: FakeListWatch[Object], *spoilt: str) -> ListWatch[Object]:
    """Return ``source`` with lists in which some objects cannot be read."""

    async def fetch(options: ListOptions) -> ListResult[Object]:
        page = await source.list(options)
        entries = list(page.entries())
        return ListResult(
            [entry for entry in entries if entry.metadata.name not in spoilt],
            metadata=page.metadata,
            kind=page.kind,
            unreadable=[
                Unreadable(entry.metadata, DecodeError("not UTF-8"))
                for entry in entries
                if entry.metadata.name in spoilt
            ],
        )

    return ListWatch(list=fetch, watch=source.watch, supports_watch_list=False)


@both_queues
@in_virtual_time
async def test_it_does_not_keep_the_informer_from_syncing(queue: QueueFactory) -> None:
    source = source_of("a", "b")
    informer = SharedInformer(spoiling(source, "a"), queue=queue)
    recorder = recorded(informer)
    async with informer:
        await informer.wait_synced(5)
        assert names(informer) == ["b"]
        assert [*informer.unreadable] == [A]
        source.modify(thing("a", "fixed"))
        await quiet()
        assert not informer.unreadable
    assert recorder.told == ["+b@3 initial", "+a@4"]


@both_queues
@in_virtual_time
async def test_what_a_relist_cannot_read_is_gone_too(queue: QueueFactory) -> None:
    source = source_of("a", "b")
    spoilt: list[str] = []

    async def fetch(options: ListOptions) -> ListResult[Object]:
        return await spoiling(source, *spoilt).list(options)

    lw = ListWatch(list=fetch, watch=source.watch, supports_watch_list=False)
    informer = SharedInformer(lw, queue=queue)
    recorder = recorded(informer)
    async with informer:
        await informer.wait_synced(5)
        spoilt.append("a")
        source.modify(thing("a"), drop=True)
        source.compact()
        source.close_watches()
        await quiet(60)
        assert names(informer) == ["b"]
        assert [*informer.unreadable] == [A]
        spoilt.clear()
        source.compact()
        source.advance()
        source.compact()
        source.close_watches()
        await quiet(60)
        assert not informer.unreadable
        assert names(informer) == ["a", "b"]
    told = [one for one in recorder.told if not one.endswith("initial")]
    assert told == ["-a@2 unseen", "+a@4"]


# --- models and transforms


class Counted(msgspec.Struct):
    """A model that not every object fits."""

    count: int


def body(name: str, version: int, count: object) -> dict[str, object]:
    metadata = {"name": name, "namespace": "default", "uid": name, "resourceVersion": str(version)}
    return {"metadata": metadata, "count": count}


@in_virtual_time
async def test_a_model_that_does_not_fit_one_object_leaves_it_out() -> None:
    """And no log or error shows what the object holds."""
    listed = {
        "kind": "CounterList",
        "metadata": {"resourceVersion": "5"},
        "items": [body("a", 2, 1), body("b", 3, "hidden text")],
    }
    events = [
        {"type": "MODIFIED", "object": body("a", 6, "hidden text")},
        {"type": "MODIFIED", "object": body("b", 7, 2)},
    ]
    lines = b"".join(json.dumps(event).encode() + b"\n" for event in events)
    conn, _ = connection(answer(200, listed), Answer(200, {}, [lines], stalls=True))
    source = ListWatch.from_client(RESTClient(conn), "counters", model=Counted)
    plain = ListWatch(list=source.list, watch=source.watch, supports_watch_list=False)
    told: list[object] = []
    informer = SharedInformer(plain)
    informer.add_event_handler(
        on_add=lambda event: told.append(event.obj.count),
        on_delete=lambda event: told.append((event.obj.count, event.final_state_unknown)),
    )
    async with informer:
        await informer.wait_synced(5)
        await quiet()
        assert [one.count for one in informer.lister.list()] == [2]
        assert [*informer.unreadable] == [A]
        assert "hidden text" not in str(informer.unreadable[A])
    assert told == [1, (1, True), 2]


def raising(obj: Object) -> Object:
    if value_of(obj) == "bad":
        raise KeyError("spec")
    return obj


def returning_nothing(obj: Object) -> Object:
    return None if value_of(obj) == "bad" else obj  # type: ignore[return-value]


@both_queues
@pytest.mark.parametrize("transform", [raising, returning_nothing])
@pytest.mark.parametrize("streams", [True, False])
@in_virtual_time
async def test_a_transform_that_fails_on_one_object_leaves_it_out(
    transform: Callable[[Object], Object], queue: QueueFactory, streams: bool
) -> None:
    source = FakeListWatch(supports_watch_list=streams)
    source.add(thing("a", "bad"))
    source.add(thing("b"))
    informer = SharedInformer(source, transform=transform, queue=queue)
    recorder = recorded(informer)
    async with informer:
        await informer.wait_synced(5)
        assert names(informer) == ["b"]
        assert [*informer.unreadable] == [A]
        source.modify(thing("a", "good"))
        await quiet()
        source.modify(thing("b", "bad"))
        await quiet()
        assert names(informer) == ["a"]
        assert [*informer.unreadable] == [B]
        source.delete("b")
        await quiet()
        assert not informer.unreadable
    assert recorder.told == ["+b@3 initial", "+a@4", "-b@3 unseen"]


@in_virtual_time
async def test_an_object_without_a_name_costs_a_list_and_no_more() -> None:
    source = source_of("a")
    informer = SharedInformer(source)
    async with informer:
        await informer.wait_synced(5)
        source.send(Unreadable(ObjectMeta(), DecodeError("no metadata"), EventType.ADDED))
        source.add(thing("b"))
        await quiet(60)
        assert names(informer) == ["a", "b"]
        assert not informer.unreadable


@in_virtual_time
async def test_a_kind_that_is_not_ours_is_left_out() -> None:
    source = source_of("a")
    informer = SharedInformer(source, expected_kind="Secret")
    async with informer:
        with contextlib.suppress(TimeoutError):
            await informer.wait_synced(60)
        assert names(informer) == []
