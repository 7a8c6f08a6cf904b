"""DeltaFIFO: client-go's scenarios (CG-D..), and what ours does on its own account.

A pop is written as the strings of its deltas: ``"Added foo 10"``; a tombstone is a ``Tombstone``.
"""

from __future__ import annotations

import random
from typing import Final

import pytest

from kinform.cache.store.thread_safe_store import ThreadSafeStore
from kinform.meta import Entry, ObjectMeta, ObjectName
from kinform.sansio.queue.delta_fifo import DeltaFIFO
from kinform.sansio.queue.deltas import Delta, DeltaType, Progress
from kinform.sansio.queue.interface import Batch

DEVIATIONS: Final = {
    "CG-D02": "kinform has no FIFO: a key comes out once, with all its deltas",
    "CG-D03": "as CG-D02",
}


def entry(name: str, value: int) -> Entry[int]:
    return Entry(ObjectMeta(name=name, resource_version=str(value)), value)


def objects(**values: int) -> dict[ObjectName, Entry[int]]:
    """Return a list, or what the cache holds: ``objects(foo=1, bar=2)``."""
    return {ObjectName("", name): entry(name, value) for name, value in values.items()}


def show(batch: Batch[int]) -> list[str]:
    if isinstance(batch.content, Progress):
        return [f"Progress {batch.content.resource_version}"]
    assert isinstance(batch.content, list)
    return [show_delta(delta) for delta in batch.content]


def show_delta(delta: Delta[int]) -> str:
    kind = "Tombstone" if delta.final_state_unknown else delta.type.value
    return f"{kind} {delta.key} {delta.entry.object if delta.entry else None}"


def pop(queue: DeltaFIFO[int]) -> list[str]:
    """Pop and handle one key, as client-go's Pop does."""
    batch = queue.pop_batch(1)
    assert batch is not None
    queue.done(batch)
    return show(batch)


def pop_all(queue: DeltaFIFO[int]) -> list[list[str]]:
    return [pop(queue) for _ in iter(lambda: queue.is_empty, True)]


def versions_shown(queue: DeltaFIFO[int], store: ThreadSafeStore[int]) -> list[str]:
    """Apply all that waits, and return the store's version after each batch."""
    shown: list[str] = []
    while batch := queue.pop_batch():
        if isinstance(content := batch.content, Progress):
            store.bookmark(content.resource_version, of_list=content.of_list)
        else:
            assert isinstance(content, list)
            store.apply(content)
        queue.done(batch)
        shown.append(store.resource_version)
    return shown


def do(queue: DeltaFIFO[int], *steps: str) -> None:
    """Write as the steps say: ``add foo 1``, ``replace foo 1``; lists have no version here."""
    for step in steps:
        match step.split():
            case ["replace"]:
                queue.replace({}, "")
            case ["replace", name, value]:
                queue.replace(objects(**{name: int(value)}), "")
            case [operation, name, value]:
                getattr(queue, operation)(entry(name, int(value)))
            case _:
                raise AssertionError(step)


# --- order ------------------------------------------------------------------------------------


def test_each_producer_keeps_its_order() -> None:
    """CG-D01."""
    queue: DeltaFIFO[int] = DeltaFIFO()
    producers = {"a": list(range(500)), "b": list(range(500))}
    chance = random.Random(7)
    while ready := [name for name, left in producers.items() if left]:
        name = chance.choice(ready)
        value = producers[name].pop(0)
        queue.add(entry(f"{name}-{value}", value))
    popped = [text.split()[1] for (text,) in pop_all(queue)]
    assert [f"a-{n}" for n in range(500)] == [key for key in popped if key.startswith("a")]
    assert [f"b-{n}" for n in range(500)] == [key for key in popped if key.startswith("b")]


def test_an_added_and_updated_key_is_popped_once_and_its_newest_comes_last() -> None:
    """CG-D02."""
    queue: DeltaFIFO[int] = DeltaFIFO()
    do(queue, "add foo 10", "update foo 15")
    assert [["Added foo 10", "Updated foo 15"]] == pop_all(queue)


@pytest.mark.parametrize("emit_replaced", [True, False])
def test_an_added_and_listed_key_is_popped_once_and_the_listed_comes_last(
    emit_replaced: bool,
) -> None:
    """CG-D03, CG-D18."""
    queue: DeltaFIFO[int] = DeltaFIFO(emit_replaced=emit_replaced)
    do(queue, "add foo 10", "replace foo 15")
    listed = "Replaced foo 15" if emit_replaced else "Sync foo 15"
    assert [["Added foo 10", listed]] == pop_all(queue)


def test_a_key_that_was_popped_goes_to_the_end_of_the_line() -> None:
    """CG-D04."""
    queue: DeltaFIFO[int] = DeltaFIFO()
    do(queue, "add foo 10", "add bar 1", "add foo 11", "add foo 13", "add zab 30")
    assert ["Added foo 10", "Added foo 11", "Added foo 13"] == pop(queue)
    do(queue, "add foo 14")
    assert [["Added bar 1"], ["Added zab 30"], ["Added foo 14"]] == pop_all(queue)


def test_all_deltas_of_a_key_come_at_once_and_none_twice() -> None:
    """CG-D14."""
    queue: DeltaFIFO[int] = DeltaFIFO()
    do(queue, "add foo 10", "update foo 12", "delete foo 15")
    assert ["Added foo 10", "Updated foo 12", "Deleted foo 15"] == pop(queue)
    assert queue.is_empty


def test_a_limit_never_parts_the_deltas_of_a_key() -> None:
    queue: DeltaFIFO[int] = DeltaFIFO()
    do(queue, "add a 1", "update a 2", "update a 3", "add b 4", "add c 5", "update c 6")
    sizes: list[int] = []
    while (batch := queue.pop_batch(2)) is not None:
        queue.done(batch)
        sizes.append(len(show(batch)))
    assert [3, 1, 2] == sizes


# --- the first list ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "pops", "synced"),
    [
        ([], 0, False),
        (["add foo 1"], 0, True),
        (["replace"], 0, True),
        (["replace 2"], 0, False),
        (["replace 2"], 1, False),
        (["replace 2"], 2, True),
    ],
    ids=["fresh", "add first", "empty list", "two listed", "one popped", "both popped"],
)
def test_synced_when_the_first_list_is_popped(steps: list[str], pops: int, synced: bool) -> None:
    """CG-D05. Duplicate keys in a list count once: a list is a mapping here."""
    queue: DeltaFIFO[int] = DeltaFIFO()
    for step in steps:
        if step == "replace 2":
            queue.replace(objects(a=1, b=2), "")
        else:
            do(queue, step)
    for _ in range(pops):
        pop(queue)
    assert synced == queue.has_synced


def test_tombstones_of_the_first_list_are_part_of_it() -> None:
    """CG-D25."""
    queue = DeltaFIFO(known=objects(foo=5, bar=6, baz=7))
    queue.replace(objects(foo=5), "")
    flags: list[tuple[bool, bool]] = []
    while (batch := queue.pop_batch(1)) is not None:
        queue.done(batch)
        flags.append((batch.in_initial_list, queue.has_synced))
    assert [(True, False), (True, False), (True, True)] == flags


def test_the_first_list_counts_keys_not_their_deltas() -> None:
    queue: DeltaFIFO[int] = DeltaFIFO()
    queue.replace(objects(a=1, b=2), "")
    do(queue, "update a 3")
    assert ["Replaced a 1", "Updated a 3"] == pop(queue)
    assert not queue.has_synced


def test_a_delete_that_is_ignored_still_comes_before_any_list() -> None:
    queue: DeltaFIFO[int] = DeltaFIFO()
    do(queue, "delete foo 1")
    assert (queue.is_empty, queue.has_synced) == (True, True)


def test_a_batch_ends_with_the_first_list() -> None:
    """CG-F20, CG-F24, CG-F26 in their split form, which RealFIFO's single item does not have."""
    queue: DeltaFIFO[int] = DeltaFIFO()
    queue.replace(objects(a=1, b=2, c=3), "")
    do(queue, "add d 4")
    batches: list[tuple[bool, list[str]]] = []
    while (batch := queue.pop_batch(2)) is not None:
        queue.done(batch)
        batches.append((batch.in_initial_list, show(batch)))
    assert [
        (True, ["Replaced a 1", "Replaced b 2"]),
        (True, ["Replaced c 3"]),
        (False, ["Added d 4"]),
    ] == batches


# --- lists ------------------------------------------------------------------------------------


def test_a_create_is_not_lost_behind_a_delete() -> None:
    """CG-D07."""
    queue = DeltaFIFO(known=objects(foo=1), emit_replaced=False)
    do(queue, "delete foo 1", "replace foo 2")
    assert [["Deleted foo 1", "Sync foo 2"]] == pop_all(queue)


ONLY_IN_QUEUE = {
    "CG-D08": (["add foo 1", "replace"], ["Added foo 1", "Tombstone foo 1"]),
    "CG-D09": (
        ["add foo 1", "replace foo 1", "replace"],
        ["Added foo 1", "Sync foo 1", "Tombstone foo 1"],
    ),
    "CG-D10": (["add foo 1", "delete foo 1", "replace"], ["Added foo 1", "Deleted foo 1"]),
    "CG-D11": (
        ["add foo 1", "replace foo 1", "replace foo 1", "replace"],
        ["Added foo 1", "Sync foo 1", "Sync foo 1", "Tombstone foo 1"],
    ),
    "CG-D12": (["add foo 1", "replace", "replace"], ["Added foo 1", "Tombstone foo 1"]),
    "CG-D13": (
        ["add foo 1", "delete foo 1", "add foo 2", "replace"],
        ["Added foo 1", "Deleted foo 1", "Added foo 2", "Tombstone foo 2"],
    ),
}


@pytest.mark.parametrize("known", [None, objects(foo=1)], ids=["alone", "known"])
@pytest.mark.parametrize("emit_replaced", [True, False], ids=["Replaced", "Sync"])
@pytest.mark.parametrize(("steps", "expected"), ONLY_IN_QUEUE.values(), ids=ONLY_IN_QUEUE)
def test_a_list_deletes_what_is_only_in_the_queue(
    steps: list[str],
    expected: list[str],
    emit_replaced: bool,
    known: dict[ObjectName, Entry[int]] | None,
) -> None:
    """CG-D26: the object and its tombstone are told under one key."""
    queue: DeltaFIFO[int] = DeltaFIFO(known=known, emit_replaced=emit_replaced)
    do(queue, *steps)
    listed = "Replaced" if emit_replaced else "Sync"
    assert [[text.replace("Sync", listed) for text in expected]] == pop_all(queue)


MAKES_DELETIONS = {
    "queued delete": (
        ["delete baz 10", "replace foo 5"],
        [["Deleted baz 10"], ["Sync foo 5"], ["Tombstone bar 6"]],
        [["Sync foo 5"]],
    ),
    "queued add": (
        ["add baz 10", "replace foo 5"],
        [["Added baz 10", "Tombstone baz 10"], ["Sync foo 5"], ["Tombstone bar 6"]],
        [["Added baz 10", "Tombstone baz 10"], ["Sync foo 5"]],
    ),
    "deleted and created again": (
        ["delete bar 6", "add bar 100", "replace foo 5"],
        [
            ["Deleted bar 6", "Added bar 100", "Tombstone bar 100"],
            ["Sync foo 5"],
            ["Tombstone baz 7"],
        ],
        [["Added bar 100", "Tombstone bar 100"], ["Sync foo 5"]],
    ),
    "listed before": (
        ["replace bar 100", "replace foo 5"],
        [
            ["Sync bar 100", "Tombstone bar 100"],
            ["Tombstone foo 5", "Sync foo 5"],
            ["Tombstone baz 7"],
        ],
        [["Sync bar 100", "Tombstone bar 100"], ["Sync foo 5"]],
    ),
}


@pytest.mark.parametrize("emit_replaced", [True, False], ids=["CG-D23", "CG-D22"])
@pytest.mark.parametrize(("steps", "known", "alone"), MAKES_DELETIONS.values(), ids=MAKES_DELETIONS)
def test_a_list_deletes_what_it_does_not_show(
    steps: list[str], known: list[list[str]], alone: list[list[str]], emit_replaced: bool
) -> None:
    """Told as REPLACED or as SYNC; without a cache only queued keys are known."""
    for cache, expected in ((objects(foo=5, bar=6, baz=7), known), (None, alone)):
        queue: DeltaFIFO[int] = DeltaFIFO(known=cache, emit_replaced=emit_replaced)
        do(queue, *steps)
        listed = "Replaced" if emit_replaced else "Sync"
        assert [[text.replace("Sync", listed) for text in one] for one in expected] == pop_all(
            queue
        )


def test_a_known_key_that_cannot_be_looked_up_is_a_tombstone_without_an_object() -> None:
    """CG-D26: its key is known all the same."""

    class Forgetful:
        def keys(self) -> list[ObjectName]:
            return [ObjectName("", "foo")]

        def get(self, key: ObjectName, /) -> None:
            return None

    queue: DeltaFIFO[int] = DeltaFIFO(known=Forgetful())
    queue.resync()
    assert queue.is_empty
    queue.replace({}, "")
    assert [["Tombstone foo None"]] == pop_all(queue)


def test_the_version_of_a_list_follows_its_last_key() -> None:
    """Not in client-go, whose store has no version with this queue."""
    queue = DeltaFIFO(known=objects(bar=1))
    queue.replace(objects(foo=2), "7")
    assert [["Replaced foo 2"], ["Tombstone bar 1"], ["Progress 7"]] == pop_all(queue)


def test_a_list_without_a_version_makes_no_progress() -> None:
    """Some aggregated APIs have none."""
    queue: DeltaFIFO[int] = DeltaFIFO()
    queue.replace(objects(foo=1), "")
    assert pop_all(queue) == [["Replaced foo 1"]]


def test_an_empty_first_list_without_a_version_is_popped_all_the_same() -> None:
    """Who waits for the first list is told after a pop."""
    queue: DeltaFIFO[int] = DeltaFIFO()
    queue.replace({}, "")
    batch = queue.pop_batch()
    assert batch is not None
    assert batch.content == Progress("", of_list=True)


def test_a_list_without_a_version_takes_back_the_one_that_was_told() -> None:
    """The kind is gone, and with it all that its version stood for."""
    queue: DeltaFIFO[int] = DeltaFIFO()
    queue.replace(objects(foo=1), "7")
    assert pop_all(queue) == [["Replaced foo 1"], ["Progress 7"]]
    queue.replace({}, "")
    batch = queue.pop_batch()
    assert batch is not None
    assert batch.content == Progress("", of_list=True)


def test_an_event_that_joins_a_list_is_not_taken_back_by_its_end() -> None:
    store: ThreadSafeStore[int] = ThreadSafeStore()
    queue: DeltaFIFO[int] = DeltaFIFO(known=store)
    queue.replace(objects(foo=2), "2")
    queue.update(entry("foo", 3))
    assert versions_shown(queue, store) == ["3", "3"]


def test_a_list_of_another_history_takes_the_version_back_but_not_behind_what_joins_it() -> None:
    store: ThreadSafeStore[int] = ThreadSafeStore()
    queue: DeltaFIFO[int] = DeltaFIFO(known=store)
    queue.replace(objects(foo=2), "100")
    assert versions_shown(queue, store) == ["2", "100"]
    queue.replace(objects(foo=2), "10", afresh=True)
    queue.add(entry("bar", 11))
    queue.update(entry("foo", 12))
    assert versions_shown(queue, store) == ["100", "10", "11", "12"]


@pytest.mark.parametrize("afresh", [False, True])
def test_equal_versions_prove_nothing_in_a_list_of_another_history(afresh: bool) -> None:
    key = ObjectName("", "foo")
    metadata = ObjectMeta(name="foo", uid="u", resource_version="5")
    store: ThreadSafeStore[str] = ThreadSafeStore()
    queue: DeltaFIFO[str] = DeltaFIFO(known=store)
    store.add(key, Entry(metadata, "lost"))
    queue.replace({key: Entry(metadata, "restored")}, "9", afresh=afresh)
    batch = queue.pop_batch()
    assert batch is not None
    assert isinstance(batch.content, list)
    store.apply(batch.content)
    held = store.get(key)
    assert held is not None
    assert held.object == ("restored" if afresh else "lost")


# --- deletes ----------------------------------------------------------------------------------


def test_without_a_cache_the_delete_of_an_unknown_key_is_ignored() -> None:
    """CG-D16."""
    queue: DeltaFIFO[int] = DeltaFIFO()
    do(queue, "add foo 10", "update bar 15", "add qux 17", "delete qux 18", "delete baz 20")
    expected = [["Added foo 10"], ["Updated bar 15"], ["Added qux 17", "Deleted qux 18"]]
    assert expected == pop_all(queue)


def test_the_delete_of_a_known_key_is_queued() -> None:
    """CG-D17."""
    queue = DeltaFIFO(known=objects(foo=5, bar=6, baz=7))
    do(queue, "add foo 10", "update bar 15", "delete baz 20", "delete nobody 21")
    assert [["Added foo 10"], ["Updated bar 15"], ["Deleted baz 20"]] == pop_all(queue)


def test_an_add_and_its_delete_are_both_kept() -> None:
    """CG-D21: the handlers are told of both, though the cache never held it."""
    queue: DeltaFIFO[int] = DeltaFIFO(known={})
    do(queue, "add foo 5", "delete foo 6")
    assert [["Added foo 5", "Deleted foo 6"]] == pop_all(queue)


def test_of_two_deletes_that_were_seen_the_first_stays() -> None:
    queue: DeltaFIFO[int] = DeltaFIFO()
    do(queue, "add foo 1", "delete foo 2", "delete foo 3")
    assert [["Added foo 1", "Deleted foo 2"]] == pop_all(queue)
    assert queue.statistics().waiting == 0


def test_a_delete_that_was_seen_takes_the_place_of_a_tombstone() -> None:
    queue: DeltaFIFO[int] = DeltaFIFO()
    do(queue, "add foo 1", "replace", "delete foo 2")
    assert [["Added foo 1", "Deleted foo 2"]] == pop_all(queue)


def test_a_key_is_known_without_looking_at_the_object() -> None:
    """For an object, for a tombstone, and for a tombstone that has no object."""
    key = ObjectName("", "foo")
    deltas = [
        Delta(DeltaType.ADDED, entry("foo", 1).metadata.key, entry("foo", 1)),
        Delta(DeltaType.DELETED, key, entry("foo", 1), final_state_unknown=True),
        Delta[int](DeltaType.DELETED, key, None, final_state_unknown=True),
    ]
    assert [key, key, key] == [delta.key for delta in deltas]


# --- resyncs ----------------------------------------------------------------------------------


def test_a_resync_tells_of_nothing_that_is_being_deleted() -> None:
    """CG-D19."""
    queue = DeltaFIFO(known=objects(foo=5))
    do(queue, "delete foo 10")
    queue.resync()
    assert [["Deleted foo 10"]] == pop_all(queue)


def test_a_resync_tells_of_each_known_object() -> None:
    """CG-D20."""
    queue = DeltaFIFO(known=objects(foo=5, bar=6))
    queue.resync()
    assert [["Sync foo 5"], ["Sync bar 6"]] == pop_all(queue)


def test_a_resync_does_not_undo_an_update() -> None:
    """CG-D24."""
    queue = DeltaFIFO(known=objects(foo=5))
    do(queue, "update foo 6")
    queue.resync()
    assert [["Updated foo 6"]] == pop_all(queue)


@pytest.mark.parametrize("known", [None, objects()], ids=["no cache", "empty cache"])
def test_a_resync_of_nothing_wakes_nobody(known: dict[ObjectName, Entry[int]] | None) -> None:
    wakes: list[None] = []
    queue: DeltaFIFO[int] = DeltaFIFO(known=known, on_ready=lambda: wakes.append(None))
    queue.resync()
    assert (queue.is_empty, wakes) == (True, [])


# --- transform --------------------------------------------------------------------------------


def test_each_object_is_transformed_once_and_tombstones_not_again() -> None:
    """CG-D15; nor resyncs, nor deletes that are ignored."""
    seen: list[int] = []

    def transform(original: Entry[int]) -> Entry[int]:
        seen.append(original.object)
        return Entry(original.metadata, -original.object)

    queue = DeltaFIFO(known=objects(known=99), transform=transform, emit_replaced=False)
    queue.resync()
    do(queue, "add foo 10", "update foo 12", "delete unknown 13", "replace bar 14", "replace")
    assert [10, 12, 14] == seen
    assert [
        ["Sync known 99", "Tombstone known 99"],
        ["Added foo -10", "Updated foo -12", "Tombstone foo -12"],
        ["Sync bar -14", "Tombstone bar -14"],
    ] == pop_all(queue)


# --- a batch on its way -----------------------------------------------------------------------
#
# client-go holds the queue's lock while it handles what it popped. Here the writer may write
# meanwhile, and the cache may have taken the batch in or not: neither may make a difference.


@pytest.fixture(params=[False, True], ids=["not applied yet", "applied"])
def applied(request: pytest.FixtureRequest) -> bool:
    return request.param


def pop_out(queue: DeltaFIFO[int], cache: dict[ObjectName, Entry[int]], *, apply: bool):
    """Pop a batch and leave it out, applied to the cache or not."""
    batch = queue.pop_batch()
    assert batch is not None
    assert isinstance(batch.content, list)
    for delta in batch.content if apply else ():
        if delta.type is DeltaType.DELETED:
            cache.pop(delta.key, None)
        else:
            assert delta.entry is not None
            cache[delta.key] = delta.entry
    return batch


def test_the_delete_of_a_key_on_its_way_is_not_lost(applied: bool) -> None:
    cache: dict[ObjectName, Entry[int]] = {}
    queue = DeltaFIFO(known=cache)
    do(queue, "add foo 1")
    batch = pop_out(queue, cache, apply=applied)
    do(queue, "delete foo 2")
    queue.done(batch)
    assert [["Deleted foo 2"]] == pop_all(queue)


def test_a_key_whose_delete_is_on_its_way_is_not_deleted_again(applied: bool) -> None:
    cache = objects(foo=1)
    queue = DeltaFIFO(known=cache)
    do(queue, "delete foo 2")
    batch = pop_out(queue, cache, apply=applied)
    do(queue, "delete foo 3", "replace")
    queue.done(batch)
    assert queue.is_empty


def test_a_list_deletes_what_is_on_its_way(applied: bool) -> None:
    cache = objects(foo=1)
    queue = DeltaFIFO(known=cache)
    do(queue, "update foo 2", "add bar 3")
    batch = pop_out(queue, cache, apply=applied)
    do(queue, "replace")
    queue.done(batch)
    assert [["Tombstone foo 2"], ["Tombstone bar 3"]] == pop_all(queue)


def test_a_resync_does_not_undo_what_is_on_its_way(applied: bool) -> None:
    cache = objects(foo=1)
    queue = DeltaFIFO(known=cache)
    do(queue, "update foo 2")
    batch = pop_out(queue, cache, apply=applied)
    queue.resync()
    queue.done(batch)
    assert queue.is_empty


@pytest.mark.parametrize(
    ("out", "queued", "expected"),
    [
        (["add foo 2", "delete foo 3"], ["delete foo 4", "replace"], []),
        (["delete foo 2", "add foo 3"], ["delete foo 4"], [["Deleted foo 4"]]),
        (["delete foo 2"], ["add foo 3", "replace"], [["Added foo 3", "Tombstone foo 3"]]),
    ],
    ids=["created and deleted", "deleted and created", "deleted, then created behind it"],
)
def test_the_newest_delta_tells_what_becomes_of_a_key(
    out: list[str], queued: list[str], expected: list[list[str]], applied: bool
) -> None:
    cache = objects(foo=1)
    queue = DeltaFIFO(known=cache)
    do(queue, *out)
    batch = pop_out(queue, cache, apply=applied)
    do(queue, *queued)
    queue.done(batch)
    assert expected == pop_all(queue)
