"""FakeListWatch: lists and watches as kube-apiserver answers them."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from kinform.errors import (
    ApiError,
    DecodeError,
    InvalidError,
    ResourceExpiredError,
    ServerTimeoutError,
    TransportError,
    TransportFailure,
    UsageError,
)
from kinform.meta import Entry, ObjectMeta, ObjectName
from kinform.objects.object import Object
from kinform.rest.options import ListOptions
from kinform.rest.results import Bookmark, Unreadable, WatchEvent
from kinform.sansio.wire.watch import EventType
from kinform.testing import FakeListWatch, in_virtual_time
from kinform.testing.fakes._history import ObjectLike
from tests.testing.support_fakes import brief, labelled, named, names, watch_events

CUT = TransportError("cut", failure=TransportFailure.RESET)


# --- Objects ---


def test_the_source_decides_on_uid_and_version_and_fills_in_what_is_missing() -> None:
    source = FakeListWatch(kind="Deployment", api_version="apps/v1")
    sent = {"metadata": {"name": "web", "uid": "mine", "resourceVersion": "77"}}
    entry = source.add(sent)
    assert entry.object.to_dict() == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "web",
            "uid": "uid-1",
            "resourceVersion": "2",
            "namespace": "default",
        },
    }
    assert entry.metadata == entry.object.metadata
    assert sent == {"metadata": {"name": "web", "uid": "mine", "resourceVersion": "77"}}


def test_what_an_object_says_of_itself_stays() -> None:
    source = FakeListWatch(namespace="")
    entry = source.add({"apiVersion": "v2", "kind": "Odd", "metadata": {"name": "a"}})
    assert (entry.object.api_version, entry.object.kind, entry.object.namespace) == (
        "v2",
        "Odd",
        "",
    )


def test_a_later_change_of_the_given_dict_is_not_seen() -> None:
    source = FakeListWatch()
    data = {"colour": "red"}
    source.add({"metadata": {"name": "a"}, "data": data})
    data["colour"] = "blue"
    assert source.delete("a").object.at("data", "colour") == "red"


def test_an_object_keeps_its_uid_until_it_is_deleted() -> None:
    source = FakeListWatch()
    first = source.add(named("a"))
    changed = source.modify(first.object)
    last = source.delete(changed.object)
    again = source.add(first.object)
    assert [e.metadata.uid for e in (first, changed, last, again)] == [*["uid-1"] * 3, "uid-2"]
    versions = [e.metadata.resource_version for e in (first, changed, last, again)]
    assert versions == ["2", "3", "4", "5"]


class Config(msgspec.Struct):
    data: dict[str, str]


def test_objects_are_read_as_the_model() -> None:
    source = FakeListWatch(Config)
    entry = source.add(named("a", colour="red"))
    assert entry.object == Config({"colour": "red"})
    assert entry.metadata.key == ObjectName("default", "a")
    assert source.delete("a").object == Config({"colour": "red"})


def test_an_object_that_does_not_fit_the_model_changes_nothing() -> None:
    source = FakeListWatch(Config)
    with pytest.raises(DecodeError):
        source.add({"metadata": {"name": "a"}, "data": 7})
    assert source.resource_version == "1"
    assert not source.entries


def test_entries_may_hold_anything() -> None:
    source = FakeListWatch(complex)
    entry = source.add(Entry(ObjectMeta(name="a", resource_version="9"), 1j))
    assert entry == Entry(
        ObjectMeta(name="a", namespace="default", uid="uid-1", resource_version="2"), 1j
    )
    assert source.delete(entry).metadata.resource_version == "3"
    with pytest.raises(UsageError, match="not a model"):
        source.add(named("b"))


@pytest.mark.parametrize(
    "obj", ["a", "default/a", ObjectName("default", "a"), named("a"), Object.from_dict(named("a"))]
)
def test_an_object_is_deleted_by_key_or_by_itself(
    obj: str | ObjectName | ObjectLike[Object],
) -> None:
    source = FakeListWatch()
    source.add(named("a"))
    source.delete(obj)
    assert not source.entries


def test_mistakes_are_told() -> None:
    source = FakeListWatch()
    source.add(named("a"))
    with pytest.raises(UsageError, match="default/a is there already"):
        source.add(named("a"))
    with pytest.raises(UsageError, match="there is no default/b"):
        source.modify(named("b"))
    with pytest.raises(UsageError, match="there is no x/a"):
        source.delete("x/a")
    with pytest.raises(UsageError, match="needs a name"):
        source.add({"metadata": {}})
    assert source.resource_version == "2"


def test_its_repr_shows_no_object() -> None:
    source = FakeListWatch()
    source.add(named("a", password="secret"))
    assert repr(source) == "<FakeListWatch of 1 ConfigMap rv=2>"


# --- Lists ---


@in_virtual_time
async def test_a_list_is_in_the_order_of_keys_and_says_its_version() -> None:
    source = FakeListWatch()
    assert (await source.list()).resource_version == "1"
    for name in "cab":
        source.add(named(name))
    source.advance(5)
    listed = await source.list(ListOptions())
    assert [obj.name for obj in listed] == ["a", "b", "c"]
    assert (listed.resource_version, listed.kind) == ("9", "ConfigMapList")
    assert list(listed.entries()) == list(source.entries.values())


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "abc"),
        ({"resource_version": "0"}, "abc"),
        ({"resource_version": "2"}, "abc"),
        ({"resource_version": "3", "resource_version_match": "NotOlderThan"}, "abc"),
        ({"resource_version": "3", "resource_version_match": "Exact"}, "ab"),
        ({"resource_version": "4", "resource_version_match": "Exact"}, "abc"),
        ({"resource_version": "2", "limit": 9}, "a"),
    ],
)
@in_virtual_time
async def test_the_version_asked_for_decides_which_state_is_shown(
    options: dict[str, object], expected: str
) -> None:
    source = FakeListWatch()
    for name in "abc":
        source.add(named(name))
    assert "".join(await names(source, **options)) == expected


@pytest.mark.parametrize("match", [None, "NotOlderThan", "Exact"])
@in_virtual_time
async def test_a_version_that_is_not_there_yet_is_too_large(match: str | None) -> None:
    source = FakeListWatch()
    with pytest.raises(ServerTimeoutError) as caught:
        await names(source, resource_version="2", resource_version_match=match)
    assert caught.value.is_resource_version_too_large
    assert (caught.value.code, caught.value.retry_after) == (504, 1.0)


@in_virtual_time
async def test_pages_show_one_snapshot_whatever_happens_between_them() -> None:
    source = FakeListWatch()
    for name in "abcde":
        source.add(named(name))
    first = await source.list(ListOptions(limit=2))
    source.delete("d")
    source.add(named("bb"))
    second = await source.list(ListOptions(limit=2, continue_token=first.continue_token))
    third = await source.list(ListOptions(limit=2, continue_token=second.continue_token))
    assert [obj.name for page in (first, second, third) for obj in page] == list("abcde")
    assert {page.resource_version for page in (first, second, third)} == {"6"}
    assert [page.metadata.remaining_item_count for page in (first, second, third)] == [3, 1, None]
    assert third.continue_token == ""


@in_virtual_time
async def test_the_limit_counts_what_is_selected() -> None:
    source = FakeListWatch()
    for name in "abcd":
        source.add(labelled(name, odd="yes" if name in "ac" else "no"))
    page = await source.list(ListOptions(limit=1, label_selector="odd=yes"))
    assert [obj.name for obj in page] == ["a"]
    assert page.metadata.remaining_item_count is None
    options = ListOptions(limit=1, label_selector="odd=yes", continue_token=page.continue_token)
    page = await source.list(options)
    assert ([obj.name for obj in page], page.continue_token) == (["c"], "")


@pytest.mark.parametrize("has_watch_cache", [True, False])
@in_virtual_time
async def test_a_list_of_any_version_comes_in_pages_only_without_a_watch_cache(
    has_watch_cache: bool,
) -> None:
    source = FakeListWatch()
    source.has_watch_cache = has_watch_cache
    for name in "abc":
        source.add(named(name))
    assert len(await names(source, resource_version="0", limit=2)) == (3 if has_watch_cache else 2)


@in_virtual_time
async def test_after_compaction_old_states_have_expired_and_the_newest_has_not() -> None:
    source = FakeListWatch()
    for name in "abc":
        source.add(named(name))
    page = await source.list(ListOptions(limit=1))
    source.modify(named("a"))
    source.compact()
    exactly = {"resource_version_match": "Exact"}
    for old in ({"continue_token": page.continue_token}, {"resource_version": "4", **exactly}):
        with pytest.raises(ResourceExpiredError) as caught:
            await names(source, **old)
        assert (caught.value.code, caught.value.reason) == (410, "Expired")
    for new in ({}, {"resource_version": "2"}, {"resource_version": "5", **exactly}):
        assert await names(source, **new) == ["a", "b", "c"]
    source.delete("b")
    assert await names(source, resource_version="5", **exactly) == ["a", "b", "c"]
    assert await names(source, resource_version="6", **exactly) == ["a", "c"]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"resource_version_match": "Exact"}, 422),
        ({"resource_version_match": "Exact", "resource_version": "0"}, 422),
        ({"resource_version": "abc"}, 400),
        ({"resource_version": "2", "continue_token": "2:default/a"}, 400),
        ({"continue_token": "nonsense"}, 400),
        ({"send_initial_events": True}, 422),
        ({"label_selector": "a=b=c"}, 400),
        ({"field_selector": "a"}, 400),
    ],
)
@in_virtual_time
async def test_a_list_that_makes_no_sense_is_refused(options: dict[str, object], code: int) -> None:
    """With the codes of kube-apiserver 1.36."""
    with pytest.raises(InvalidError) as caught:
        await names(FakeListWatch(), **options)
    assert caught.value.code == code


# --- Watches ---


@in_virtual_time
async def test_a_watch_is_told_what_happened_after_its_version() -> None:
    """CG-C13: the numbering of the source, and what is left of it after its history is gone."""
    source = FakeListWatch()
    first = source.add(named("a")).metadata.resource_version
    second = source.modify(named("a")).metadata.resource_version
    third = source.modify(named("a")).metadata.resource_version
    assert [first, second, third] == ["2", "3", "4"]
    changes = [("MODIFIED", "a", "3"), ("MODIFIED", "a", "4")]
    assert await watch_events(source, resource_version=first) == changes
    assert await watch_events(source, resource_version=second) == changes[1:]
    assert await watch_events(source, resource_version=third) == []
    source.compact()
    with pytest.raises(ResourceExpiredError):
        await watch_events(source, resource_version=second)
    assert await watch_events(source, resource_version=third) == []


@in_virtual_time
async def test_an_object_created_between_list_and_watch_is_told_exactly_once() -> None:
    """CG-I36."""
    source = FakeListWatch()
    source.add(named("a"))
    listed = await source.list()
    source.add(named("b"))
    version = listed.resource_version
    assert await watch_events(source, resource_version=version) == [("ADDED", "b", "3")]


@in_virtual_time
async def test_live_changes_come_in_order_and_a_deletion_has_a_version_of_its_own() -> None:
    source = FakeListWatch()
    async with source.watch(ListOptions(resource_version="1")) as events:
        added = source.add(named("a", colour="red"))
        source.modify(named("a", colour="blue"))
        source.delete("a")
        source.close_watches()
        seen = [received async for received in events]
    assert [brief(received) for received in seen] == [
        ("ADDED", "a", "2"),
        ("MODIFIED", "a", "3"),
        ("DELETED", "a", "4"),
    ]
    last = seen[-1]
    assert isinstance(last, WatchEvent)
    assert last.object.at("data", "colour") == "blue"
    assert last.object.uid == added.metadata.uid


@in_virtual_time
async def test_a_dropped_change_is_seen_by_lists_alone() -> None:
    source = FakeListWatch()
    async with source.watch(ListOptions(resource_version="1")) as events:
        source.add(named("a"), drop=True)
        source.add(named("b"))
        source.modify(named("a"), drop=True)
        source.delete("b", drop=True)
        source.close_watches()
        assert [brief(received) async for received in events] == [("ADDED", "b", "3")]
    assert await watch_events(source, resource_version="1") == [("ADDED", "b", "3")]
    assert await names(source) == ["a"]


@pytest.mark.parametrize("version", ["", "0"])
@in_virtual_time
async def test_a_watch_without_a_version_begins_with_what_is_there(version: str) -> None:
    source = FakeListWatch()
    source.add(named("b"))
    source.add(named("a"))
    source.modify(named("a"))
    async with source.watch(ListOptions(resource_version=version)) as events:
        source.delete("b")
        source.bookmark()  # it did not ask for bookmarks
        source.close_watches()
        assert [brief(received) async for received in events] == [
            ("ADDED", "a", "4"),
            ("ADDED", "b", "2"),
            ("DELETED", "b", "5"),
        ]


@in_virtual_time
async def test_a_streamed_list_ends_with_its_bookmark_and_goes_on_as_a_watch() -> None:
    source = FakeListWatch()
    source.add(named("a"))
    source.advance()
    options = ListOptions(
        send_initial_events=True,
        resource_version_match="NotOlderThan",
        allow_watch_bookmarks=True,
    )
    async with source.watch(options) as events:
        source.add(named("b"))
        source.close_watches()
        seen = [brief(received) async for received in events]
    assert seen == [("ADDED", "a", "2"), ("END", "", "3"), ("ADDED", "b", "4")]


@in_virtual_time
async def test_the_end_of_a_streamed_list_can_be_withheld_and_sent_later() -> None:
    source = FakeListWatch()
    source.ends_initial_events = False
    options = ListOptions(
        send_initial_events=True,
        resource_version="1",
        resource_version_match="NotOlderThan",
        allow_watch_bookmarks=True,
    )
    async with source.watch(options) as events:
        source.add(named("a"))
        source.bookmark()
        source.bookmark(initial_events_end=True)
        source.close_watches()
        seen = [brief(received) async for received in events]
    assert seen == [("ADDED", "a", "2"), ("BOOKMARK", "", "2"), ("END", "", "2")]


@pytest.mark.parametrize("version", ["", "0", "2"])
@in_virtual_time
async def test_a_watch_may_decline_what_is_there(version: str) -> None:
    source = FakeListWatch()
    source.add(named("a"))
    options = {"send_initial_events": False, "resource_version_match": "NotOlderThan"}
    assert await watch_events(source, resource_version=version, **options) == []


@in_virtual_time
async def test_a_streamed_list_of_a_version_that_is_not_there_yet_is_too_large() -> None:
    source = FakeListWatch()
    source.expires_at_start = True  # it has not expired: the error comes in the stream
    options = ListOptions(
        send_initial_events=True, resource_version="2", resource_version_match="NotOlderThan"
    )
    async with source.watch(options) as events:
        with pytest.raises(ServerTimeoutError) as caught:
            await anext(events)
    assert caught.value.is_resource_version_too_large


@in_virtual_time
async def test_a_source_without_streamed_lists_refuses_them() -> None:
    source = FakeListWatch(supports_watch_list=False)
    assert not source.supports_watch_list
    options = {"send_initial_events": True, "resource_version_match": "NotOlderThan"}
    with pytest.raises(InvalidError) as caught:
        await watch_events(source, **options)
    assert caught.value.code == 422
    source.supports_watch_list = True
    assert await watch_events(source, **options) == []


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"resource_version": "abc"}, 500),
        ({"resource_version": "1", "resource_version_match": "NotOlderThan"}, 422),
        ({"send_initial_events": True}, 422),
        ({"send_initial_events": True, "resource_version_match": "Exact"}, 422),
        ({"label_selector": "!!"}, 400),
    ],
)
@in_virtual_time
async def test_a_watch_that_makes_no_sense_is_refused(
    options: dict[str, object], code: int
) -> None:
    """With the codes of kube-apiserver 1.36."""
    with pytest.raises(ApiError) as caught:
        await watch_events(FakeListWatch(), **options)
    assert caught.value.code == code


@in_virtual_time
async def test_a_watch_from_the_future_is_silent_until_then() -> None:
    source = FakeListWatch()
    options = ListOptions(resource_version="3", allow_watch_bookmarks=True)
    async with source.watch(options) as events:
        source.add(named("a"))
        source.bookmark()
        source.add(named("b"))
        source.add(named("c"))
        source.close_watches()
        assert [brief(received) async for received in events] == [("ADDED", "c", "4")]


@pytest.mark.parametrize("at_start", [True, False])
@in_virtual_time
async def test_an_expired_version_is_told_at_the_start_or_in_the_stream(at_start: bool) -> None:
    source = FakeListWatch()
    source.add(named("a"))
    source.compact()
    source.expires_at_start = at_start
    is_open = False
    with pytest.raises(ResourceExpiredError):
        async with source.watch(ListOptions(resource_version="1")) as events:
            is_open = True
            assert source.open_watches == 0
            await anext(events)
    assert is_open is not at_start


@in_virtual_time
async def test_compaction_does_not_touch_an_open_watch() -> None:
    source = FakeListWatch()
    async with source.watch(ListOptions(resource_version="1")) as events:
        source.add(named("a"))
        source.compact()
        source.add(named("b"))
        assert [brief(await anext(events)) for _ in range(2)] == [
            ("ADDED", "a", "2"),
            ("ADDED", "b", "3"),
        ]


@in_virtual_time
async def test_a_watch_ends_in_good_order_when_its_time_is_over() -> None:
    source = FakeListWatch()
    loop = asyncio.get_running_loop()
    async with source.watch(ListOptions(resource_version="1", timeout=300)) as events:
        loop.call_later(10, source.add, named("a"))
        assert [brief(received) async for received in events] == [("ADDED", "a", "2")]
        assert source.open_watches == 0
    assert loop.time() == 300


@in_virtual_time
async def test_a_selector_decides_what_is_listed_and_told() -> None:
    source = FakeListWatch()
    source.add(labelled("a", app="web"))
    source.add(labelled("b", app="db"))
    assert await names(source, label_selector="app=web") == ["a"]
    async with source.watch(ListOptions(label_selector="app=web")) as events:
        source.modify(labelled("b", app="web"))
        source.modify(labelled("b", app="web", tier="1"))
        source.modify(labelled("b", app="db"))
        source.delete("b")
        source.close_watches()
        seen = [received async for received in events]
    assert [brief(received) for received in seen] == [
        ("ADDED", "a", "2"),
        ("ADDED", "b", "4"),
        ("MODIFIED", "b", "5"),
        ("DELETED", "b", "6"),
    ]
    last = seen[-1]
    assert isinstance(last, WatchEvent)
    assert last.object.labels == {"app": "web", "tier": "1"}


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("metadata.name=a", ["a"]),
        ("metadata.name!=a", ["b"]),
        ("metadata.namespace=default", ["a", "b"]),
        ("metadata.namespace=other", []),
        ("spec.nodeName=n1", ["a"]),
        ("spec.nodeName=", ["b"]),
        ("spec.replicas=3,spec.paused=true", ["a"]),
    ],
)
@in_virtual_time
async def test_any_field_can_be_selected_by(selector: str, expected: list[str]) -> None:
    source = FakeListWatch()
    spec = {"nodeName": "n1", "replicas": 3, "paused": True}
    source.add({"metadata": {"name": "a"}, "spec": spec})
    source.add(named("b"))
    assert await names(source, field_selector=selector) == expected


@in_virtual_time
async def test_an_entry_can_be_selected_by_name_and_namespace_alone() -> None:
    source = FakeListWatch(complex)
    source.add(Entry(ObjectMeta(name="a"), 1j))
    assert list(await source.list(ListOptions(field_selector="metadata.name=a"))) == [1j]
    assert list(await source.list(ListOptions(field_selector="spec.nodeName=n1"))) == []


@in_virtual_time
async def test_a_batch_is_all_there_is() -> None:
    source = FakeListWatch()
    async with source.watch(ListOptions(resource_version="1")) as events:
        source.add(named("a"))
        source.add(named("b"))
        batches = events.batches()
        assert [brief(one) for one in await anext(batches)] == [
            ("ADDED", "a", "2"),
            ("ADDED", "b", "3"),
        ]
        source.delete("a")
        source.close_watches(CUT)
        assert [brief(one) for one in await anext(batches)] == [("DELETED", "a", "4")]
        with pytest.raises(TransportError):
            await anext(batches)


@in_virtual_time
async def test_a_read_that_is_cancelled_loses_nothing() -> None:
    source = FakeListWatch()
    async with source.watch(ListOptions(resource_version="1")) as events:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await anext(events)
        source.add(named("a"))
        assert brief(await anext(events)) == ("ADDED", "a", "2")


@in_virtual_time
async def test_anything_can_be_sent() -> None:
    source = FakeListWatch()
    unreadable = Unreadable(ObjectMeta(name="x"), DecodeError("too deep"))
    strange: WatchEvent[Object] = WatchEvent(
        EventType.MODIFIED, Object.from_dict(named("never added")), ObjectMeta(name="b")
    )
    async with source.watch() as one, source.watch() as other:
        source.send(Bookmark("1"), unreadable, strange)
        assert await anext(one.batches()) == [Bookmark("1"), unreadable, strange]
        assert await anext(other) == Bookmark("1")
        with pytest.raises(DecodeError):
            await anext(other)
        assert await anext(other) == strange
    assert not source.entries
