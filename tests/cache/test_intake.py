"""The intake: what becomes of an object between its arrival and the store."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable
from typing import Any

import pytest

from kinform.cache._reflector.intake import TURN, Intake
from kinform.cache.controller import apply_in_turns
from kinform.cache.store.store import Store
from kinform.cache.store.thread_safe_store import ThreadSafeStore
from kinform.errors import DecodeError, ResourceVersionRegressed
from kinform.meta import Entry, ListMeta, ObjectMeta, ObjectName
from kinform.objects.object import Object
from kinform.rest.results import Bookmark, ListResult, Unreadable, WatchEvent
from kinform.sansio.queue.real_fifo import RealFIFO
from kinform.sansio.wire.watch import EventType
from tests.cache.support_reflector import end, entry, event, listed, names

SECRET = "hunter2"


def unreadable(name: str, version: int | str, what: str = "ADDED", why: str = "too deep") -> Any:
    metadata = ObjectMeta(name=name, namespace="default", resource_version=str(version))
    return Unreadable(metadata, DecodeError(why), EventType(what))


def intake_of(store: Any, **more: Any) -> Intake[Any]:
    return Intake(store, name="pods", **more)


def take(intake: Intake[Any], *pages: ListResult[Any]) -> None:
    intake.begin_list()
    for page in pages:
        add_page(intake, page)
    intake.finish_list(pages[0].resource_version)


def add_page(intake: Intake[Any], page: ListResult[Any]) -> int:
    """Have all of a page taken; return how many of its objects are new to the list."""
    before = intake.listed
    for _ in intake.add_page(page):
        pass
    return intake.listed - before


def versions(store: Store[Any]) -> dict[str, str]:
    return {one.metadata.name: one.metadata.resource_version for one in store.entries.list()}


# --- Lists


def test_a_list_is_in_the_store_when_it_is_finished_and_not_before() -> None:
    store = Store[Any]()
    intake = intake_of(store)
    intake.begin_list()
    assert add_page(intake, listed(5, entry("a", 1), entry("b", 2))) == 2
    assert (len(store), intake.version) == (0, "")
    assert intake.finish_list("5") == 2
    assert (versions(store), intake.version) == ({"a": "1", "b": "2"}, "5")


def test_of_a_projections_metadata_annotations_are_not_kept() -> None:
    """They may be as large as the object, and nobody can ask for them."""
    store = Store[Any]()
    intake = intake_of(store)
    given = [ObjectMeta(name=name, raw_annotations={"a": "b"}) for name in ("model", "other")]
    whole = Object.from_dict({"metadata": {"name": "whole", "annotations": {"a": "b"}}})
    entries: list[Entry[Any]] = [Entry(given[0], "model"), Entry(whole.metadata, whole)]
    take(intake, ListResult(entries, metadata=ListMeta(resource_version="5")))
    intake.write([WatchEvent(EventType.ADDED, "other", given[1])])
    kept = {one.metadata.name: dict(one.metadata.annotations) for one in store.entries.list()}
    assert kept == {"model": {}, "other": {}, "whole": {"a": "b"}}
    assert [metadata.annotations for metadata in given] == [{"a": "b"}] * 2  # not ours


def test_what_a_transform_was_given_is_not_kept_for_its_annotations() -> None:
    """They are a window into bytes that are otherwise gone."""
    whole = Object.from_dict({"metadata": {"name": "whole", "annotations": {"a": "b"}}})
    store = Store[Any]()
    intake = intake_of(store, transform=lambda obj: Object.from_dict(obj.to_dict()))
    before = sys.getrefcount(whole.raw)
    take(intake, ListResult([Entry(whole.metadata, whole)], metadata=ListMeta("5")))
    intake.write([WatchEvent(EventType.MODIFIED, whole, whole.metadata)])
    [kept] = store.entries.list()
    assert kept.object.annotations == {"a": "b"}
    assert kept.metadata.annotations == {}
    assert whole.metadata.annotations == {"a": "b"}
    after = sys.getrefcount(whole.raw)
    assert after == before


def test_a_list_that_begins_anew_forgets_the_one_before() -> None:
    store = Store[Any]()
    intake = intake_of(store)
    intake.begin_list()
    add_page(intake, listed(5, entry("old", 1)))
    take(intake, listed(6, entry("new", 2)))
    assert names(store) == {"new"}


def test_an_object_on_two_pages_is_one_and_the_later_counts() -> None:
    store = Store[Any]()
    intake = intake_of(store)
    intake.begin_list()
    assert add_page(intake, listed(5, entry("a", 1), entry("b", 1))) == 2
    assert add_page(intake, listed(5, entry("a", 2))) == 0
    bad = listed(5, unreadable=[unreadable("b", 2)])
    assert add_page(intake, bad) == 0
    intake.finish_list("5")
    assert versions(store) == {"a": "2"}
    assert [key.name for key in intake.unreadable] == ["b"]


def test_a_store_that_refuses_a_list_keeps_what_belongs_to_it() -> None:
    """Rule 3: the version, and what cannot be read, are those of what is in the store."""

    class Refusing(Store[Any]):
        fails = False

        def replace(self, entries: Any, resource_version: str, *, afresh: bool = False) -> Any:
            if self.fails:
                raise LookupError
            return super().replace(entries, resource_version, afresh=afresh)

    store = Refusing()
    intake = intake_of(store)
    take(intake, listed(5, unreadable=[unreadable("a", 1)]))
    store.fails = True
    with pytest.raises(LookupError):
        take(intake, listed(6, unreadable=[unreadable("b", 2)]))
    assert (intake.version, [key.name for key in intake.unreadable]) == ("5", ["a"])


def test_objects_of_another_kind_in_a_mixed_list_are_left_out() -> None:
    store = Store[Any]()
    intake = intake_of(store, expected_kind="Pod")
    pages = entry("a", 1), entry("b", 1, kind="Service"), entry("c", 1, kind="")
    take(intake, listed(5, *pages, kind="List"))
    assert (names(store), intake.ignored) == ({"a", "c"}, 1)


@pytest.mark.parametrize("kind", ["Pods", "PodCollectionList"])
def test_a_crd_may_name_its_lists_as_it_likes(kind: str) -> None:
    store = Store[Any]()
    take(intake_of(store, expected_kind="Pod"), listed(5, entry("a", 1), kind=kind))
    assert names(store) == {"a"}


@pytest.mark.parametrize(
    "page",
    [
        listed(5, kind="ServiceList"),
        listed(5, entry("a", 1), entry("b", 1, kind="Service"), kind="ServiceList"),
        listed(5, entry("a", 1, kind=""), kind="ServiceList"),
        listed(5, kind="Status"),
        listed(5, kind="Table", api_version="meta.k8s.io/v1"),
    ],
    ids=["empty", "mixed", "untold", "status", "table"],
)
def test_what_may_be_a_list_of_something_else_is_refused(page: ListResult[Any]) -> None:
    """F-R28: to take it for an empty list of ours would delete everything."""
    intake = intake_of(Store(), expected_kind="Pod")
    intake.begin_list()
    with pytest.raises(DecodeError):
        add_page(intake, page)


@pytest.mark.parametrize("kind", ["Status", "Table"])
def test_what_is_no_list_of_anything_is_refused_whatever_is_expected(kind: str) -> None:
    intake = intake_of(Store())
    intake.begin_list()
    with pytest.raises(DecodeError, match=f"answered with a {kind}"):
        add_page(intake, listed(5, kind=kind, api_version="meta.k8s.io/v1"))


def test_metadata_alone_is_a_list_of_any_kind() -> None:
    store = Store[Any]()
    page = listed(5, entry("a", 1, kind="PartialObjectMetadata"), kind="PartialObjectMetadataList")
    take(intake_of(store, expected_kind="Pod"), page)
    assert names(store) == {"a"}


@pytest.mark.parametrize(
    ("reuse", "version", "kept"),
    [(True, 9, True), (False, 9, False), (True, 4, False)],
    ids=["not older", "in doubt", "older"],
)
def test_what_did_not_change_is_kept_if_the_list_is_surely_not_older(
    reuse: bool, version: int, kept: bool
) -> None:
    """F-R07: a server that went back gives the same versions to other states."""
    store, replaced = Store[Any](), list[Any]()

    class Recording(RealFIFO[Any]):  # type: ignore[misc]
        def replace(self, entries: Any, resource_version: str, *, afresh: bool = False) -> None:
            assert afresh is (version == 4)
            replaced.append(dict(entries))

    intake = Intake(Recording(), name="pods", known=store.entries)
    held = entry("a", 3)
    store.add(held)
    intake.version = "5"
    intake.begin_list(reuse=reuse)
    add_page(intake, listed(version, entry("a", 3)))
    intake.finish_list(str(version))
    assert (replaced[0][held.metadata.key] is held) is kept


def test_a_stream_that_turns_out_to_be_older_is_not_finished_and_the_next_trusts_nothing() -> None:
    """F-R07: only its end tells which version a streamed list shows."""
    store = Store[Any]()
    intake = intake_of(store, known=store.entries)
    take(intake, listed(5, entry("a", 3), entry("b", 4)))
    intake.begin_list(reuse=True)
    events: list[Any] = [event("ADDED", "a", 3), end(4)]
    assert intake.add_streamed(iter(events)) == "4"
    with pytest.raises(ResourceVersionRegressed, match="went back from version 5 to 4"):
        intake.finish_list("4")
    assert (versions(store), intake.version) == ({"a": "3", "b": "4"}, "5")
    held = store.get("default/a")
    intake.begin_list(reuse=True)
    intake.add_streamed(iter(events))
    intake.finish_list("4")
    assert (versions(store), intake.version) == ({"a": "3"}, "4")
    assert store.get("default/a") is not held


def test_something_without_uid_or_version_is_never_the_same() -> None:
    """F-R16."""
    store = Store[Any]()
    store.add(entry("a", "", uid=""))
    intake = intake_of(store, known=store.entries)
    new = entry("a", "", uid="")
    intake.begin_list(reuse=True)
    add_page(intake, listed("", new))
    intake.finish_list("")
    assert store.get("default/a") is new.object


# --- Streamed lists


def test_what_is_behind_the_end_of_a_stream_is_left_in_the_batch() -> None:
    intake = intake_of(Store())
    intake.begin_list()
    events: list[Any] = [event("ADDED", "a", 1), Bookmark("2"), end(3), event("ADDED", "b", 4)]
    batch = iter(events)
    assert intake.add_streamed(batch) == "3"
    assert [one.metadata.name for one in batch if isinstance(one, WatchEvent)] == ["b"]


@pytest.mark.parametrize(
    ("events", "readable", "apart"),
    [
        ([unreadable("a", 1), event("MODIFIED", "a", 2)], {"a"}, set()),
        ([event("ADDED", "a", 1), unreadable("a", 2, "MODIFIED")], set(), {"a"}),
        ([unreadable("a", 1), unreadable("a", 2, "DELETED")], set(), set()),
        ([event("ADDED", "a", 1), unreadable("a", 2, "DELETED")], set(), set()),
        ([unreadable("a", 1), event("DELETED", "a", 2)], set(), set()),
        ([event("ADDED", "", 1), event("ADDED", "b", 2)], {"b"}, {""}),
        ([unreadable("", 1), event("ADDED", "b", 2)], {"b"}, {""}),
    ],
)
def test_a_stream_shows_the_last_state_of_each_object_or_none(
    events: list[Any], readable: set[str], apart: set[str]
) -> None:
    """F-R27."""
    store = Store[Any]()
    intake = intake_of(store)
    intake.begin_list()
    assert intake.add_streamed(iter([*events, end(9)])) == "9"
    intake.finish_list("9")
    assert names(store) == readable
    assert {key.name for key in intake.unreadable} == apart


@pytest.mark.parametrize("what", ["MODIFIED", "DELETED"])
def test_a_change_of_nobody_knows_what_ends_a_stream(what: str) -> None:
    """Some object in it is not what it was."""
    intake = intake_of(Store())
    intake.begin_list()
    with pytest.raises(DecodeError, match="too deep"):
        intake.add_streamed(iter([event("ADDED", "a", 1), unreadable("", 2, what)]))


# --- Watches


def test_everything_before_an_object_without_a_key_is_written() -> None:
    store = Store[Any]()
    intake = intake_of(store)
    for nobody in (event("ADDED", "", 3), unreadable("", 3)):
        with pytest.raises(DecodeError):
            intake.write([event("ADDED", "a", 2), nobody, event("ADDED", "b", 4)])
        assert (names(store), intake.version) == ({"a"}, "2")


def test_the_version_moves_after_the_write_it_speaks_of() -> None:
    """Rule 3."""

    class Refusing(Store[Any]):
        def update(self, entry: Any) -> Any:
            raise LookupError

    intake = intake_of(Refusing())
    with pytest.raises(LookupError):
        intake.write([event("ADDED", "a", 2), event("MODIFIED", "a", 3)])
    assert intake.version == "2"


@pytest.mark.parametrize("start", ["", "0"])
def test_what_a_watch_from_no_version_begins_with_says_nothing_about_its_version(
    start: str,
) -> None:
    """client-go: kubernetes#136583. The objects come in no order of versions."""
    store = Store[Any]()
    intake = intake_of(store)
    intake.begin_watch(start)
    intake.write([event("ADDED", "a", 9), event("ADDED", "b", 4)])
    assert (len(store), intake.version) == (2, "")
    intake.write([event("MODIFIED", "b", 10), event("ADDED", "c", 11)])
    assert intake.version == "11"
    intake.begin_watch("11")
    intake.write([event("ADDED", "d", 12)])
    assert intake.version == "12"


def test_a_bookmark_ends_what_a_watch_begins_with() -> None:
    intake = intake_of(Store())
    intake.begin_watch("")
    intake.write([event("ADDED", "a", 9), Bookmark("10"), event("ADDED", "b", 11)])
    assert intake.version == "11"


def test_a_bookmark_moves_the_version_forwards_only() -> None:
    """F-R15."""
    store = Store[Any]()
    intake = intake_of(store)
    intake.write([event("ADDED", "a", 9), Bookmark("8"), Bookmark(""), Bookmark("12")])
    assert (intake.version, store.resource_version) == ("12", "12")
    assert (intake.bookmarks, intake.stale_bookmarks) == (3, 1)


def test_no_older_state_of_an_unreadable_object_stays_readable() -> None:
    """F-R27: and it is readable again once it is."""
    store = Store[Any]()
    intake = intake_of(store)
    intake.write([event("ADDED", "a", 1), unreadable("a", 2, "MODIFIED")])
    assert (names(store), [key.name for key in intake.unreadable]) == (set(), ["a"])
    assert intake.version == "2"
    intake.write([event("MODIFIED", "a", 3)])
    assert (names(store), dict(intake.unreadable)) == ({"a"}, {})
    intake.write([unreadable("a", 4, "MODIFIED"), unreadable("a", 5, "DELETED")])
    assert (names(store), dict(intake.unreadable)) == (set(), {})
    intake.write([unreadable("a", 6), event("DELETED", "a", 7)])
    assert dict(intake.unreadable) == {}


def test_an_unreadable_object_is_logged_once_and_its_content_never(
    caplog: pytest.LogCaptureFixture,
) -> None:
    intake = intake_of(Store(), transform=lambda obj: obj["nothing"])
    secret = entry("a", 1)
    intake.write([WatchEvent(EventType.ADDED, {"data": SECRET}, secret.metadata)] * 5)
    intake.write([unreadable("b", 2)] * 5)
    take(intake, listed(3, unreadable=[unreadable("b", 2)]))
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 2
    assert lines[0].startswith("pods: default/a cannot be read: ")
    assert SECRET not in caplog.text + repr(intake.unreadable)


# --- Transforms


def transforming(calls: list[str]) -> Any:
    def transform(obj: Any) -> Any:
        calls.append(obj.metadata.name)
        if "bad" in obj.metadata.name:
            raise LookupError
        return None if "none" in obj.metadata.name else obj.to_dict()

    return transform


ALL = ("a", "bad", "none", "b")


def test_a_transform_that_fails_costs_one_object() -> None:
    """F-R27: by a list."""
    calls, store = list[str](), Store[Any]()
    intake = intake_of(store, transform=transforming(calls))
    take(intake, listed(5, *(entry(name, 1) for name in ALL)))
    assert calls == list(ALL)
    assert names(store) == {"a", "b"}
    assert {key.name: str(error) for key, error in intake.unreadable.items()} == {
        "bad": "default/bad: the transform raised LookupError",
        "none": "default/none: the transform returned None",
    }
    cause = intake.unreadable[ObjectName("default", "bad")].__cause__
    assert isinstance(cause, LookupError)
    assert cause.__traceback__ is None, "it would keep the object alive"


def test_a_transform_that_fails_costs_one_object_of_a_watch_or_a_stream_too() -> None:
    """F-R27."""

    def streamed(intake: Intake[Any], events: Iterable[Any]) -> None:
        intake.begin_list()
        intake.add_streamed(iter([*events, end(9)]))
        intake.finish_list("9")

    for feed in (Intake[Any].write, streamed):
        calls, store = list[str](), Store[Any]()
        intake = intake_of(store, transform=transforming(calls))
        feed(intake, [event("ADDED", name, 1) for name in ALL])
        assert calls == list(ALL)
        assert names(store) == {"a", "b"}
        assert {key.name for key in intake.unreadable} == {"bad", "none"}


def test_what_a_transform_cannot_read_is_deleted_all_the_same() -> None:
    store, queue = Store[Any](), RealFIFO[Any]()
    for target in (store, queue):
        intake = intake_of(target, transform=transforming([]))
        intake.write([event("ADDED", "a", 1), event("DELETED", "a", 2)])
        intake.write([event("DELETED", "bad", 3)])
        assert (intake.version, dict(intake.unreadable)) == ("3", {})
    assert len(store) == 0
    batch = queue.pop_batch()
    assert batch is not None


def test_the_final_state_is_transformed_too() -> None:
    queue = RealFIFO[Any]()
    intake = intake_of(queue, transform=lambda obj: "transformed")
    intake.write([event("DELETED", "a", 2)])
    batch: Any = queue.pop_batch()
    assert batch.content[0].entry.object == "transformed"


def test_other_kinds_are_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    intake = intake_of(Store(), expected_kind="Pod")
    intake.write([event("ADDED", f"s{n}", n, kind="Service") for n in range(1, 6)])
    assert (intake.ignored, intake.events, intake.version) == (5, 0, "")
    assert caplog.text.count("dropped an object of kind Service") == 1


@pytest.mark.parametrize("change", [unreadable("a", 7, "MODIFIED"), event("MODIFIED", "a", 7)])
def test_the_stores_version_moves_also_past_what_cannot_be_read(change: Any) -> None:
    def refuse(obj: object) -> object:
        raise LookupError

    store = Store[Any]()
    intake = intake_of(store, transform=refuse)
    take(intake, listed(5))
    intake.begin_watch("5")
    intake.write([change])
    assert (intake.version, store.resource_version, len(store)) == ("7", "7", 0)


@pytest.mark.parametrize("distrusted", [False, True])
def test_after_the_server_went_back_one_list_is_taken_as_it_is(distrusted: bool) -> None:
    """F-R07: also if it has passed our version by then."""
    store = Store[Any]()
    intake = intake_of(store, known=store.entries)
    lost, restored, same = entry("a", 3), entry("a", 3), entry("a", 3)
    take(intake, listed(5, lost))
    if distrusted:
        intake.distrust()
    take(intake, listed(9, restored))
    held = restored if distrusted else lost
    assert store.entries.list()[0].object is held.object
    take(intake, listed(10, same))
    assert store.entries.list()[0].object is held.object


def test_after_a_restore_a_refused_list_does_not_make_known_objects_usable() -> None:
    """F-R07: the store still has the objects of the old history."""

    class Refusing(Store[Any]):
        fails = False

        def replace(self, entries: Any, resource_version: str, *, afresh: bool = False) -> Any:
            if self.fails:
                raise LookupError
            return super().replace(entries, resource_version, afresh=afresh)

    store = Refusing()
    intake = intake_of(store, known=store.entries)
    take(intake, listed(5, entry("a", 3)))
    intake.distrust()  # restored from a backup
    store.fails = True
    with pytest.raises(LookupError):
        take(intake, listed(9, entry("a", 3)))
    store.fails = False
    restored = entry("a", 3)
    take(intake, listed(10, restored))
    assert store.entries.list()[0].object is restored.object


async def test_no_list_takes_objects_of_a_history_that_another_list_is_about_to_replace() -> None:
    """F-R07: what is known is of the old history until the new one is in the store."""
    store, queue = ThreadSafeStore[Any](), RealFIFO[Any]()
    intake = Intake(queue, name="pods", known=store)
    filler = [entry(f"filler-{number}", number + 1) for number in range(600)]

    def old_and_new(version: int, *more: Any) -> None:
        intake.begin_list(reuse=True)
        add_page(intake, listed(version, *filler, *more))
        intake.finish_list(str(version))

    def a_of(store: ThreadSafeStore[Any]) -> list[Any]:
        return [one.object for one in store.list() if one.metadata.name == "a"]

    async def pump() -> None:
        while (batch := queue.pop_batch()) is not None:
            await apply_in_turns(batch, store)
            queue.done(batch)

    old, new = entry("a", 1005), entry("a", 1005)
    old_and_new(1010, old)
    await pump()
    intake.distrust()  # restored from a backup
    old_and_new(1000, entry("a", 900))
    async with asyncio.TaskGroup() as group:
        group.create_task(pump())
        await asyncio.sleep(0)  # it is being taken in
        assert [held is old.object for held in a_of(store)] == [True]
        old_and_new(1012, new)
    assert [held is new.object for held in a_of(store)] == [True]


async def test_a_page_of_many_objects_is_taken_in_turns() -> None:
    store = Store[Any]()
    intake = intake_of(store)
    intake.begin_list()
    page = listed(5, *[entry(f"n{number}", 1) for number in range(3 * TURN + 1)])
    steps = intake.add_page(page)
    assert [intake.listed for _ in steps] == [TURN, 2 * TURN, 3 * TURN]
    assert intake.finish_list("5") == 3 * TURN + 1
