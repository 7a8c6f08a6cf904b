"""RealFIFO: client-go's scenarios (CG-F..), in the atomic form, which is the only one here.

There a list comes out object by object unless a gate says otherwise, and needs to be told what
the cache holds. Ours is always one `ReplacedAll`: what it deletes is found where it is applied.
"""

from __future__ import annotations

import random
from typing import Final

import pytest

from kinform.meta import Entry, ObjectMeta, ObjectName
from kinform.sansio.queue.deltas import Delta, DeltaType, Progress, ReplacedAll, SyncAll
from kinform.sansio.queue.interface import Batch
from kinform.sansio.queue.real_fifo import RealFIFO

NOT_APPLICABLE: Final = {
    "CG-F12": "a list is one item; its deletes and objects are delivered as in CG-C09",
    "CG-F27": "a key is read with the metadata, before an item is queued, so it cannot fail",
}

DEVIATIONS: Final = {
    "CG-F02": "as CG-F03",
    "CG-F03": (
        "only the atomic form exists, client-go's default since 1.36: a list is one item, and "
        "its deletes are computed when it is applied"
    ),
    "CG-F08": "as CG-F03",
    "CG-F10": "as CG-F03: a resync is one item too",
    "CG-F14": "as CG-F03",
    "CG-F17": "a list is a mapping, so it cannot contain a key twice",
    "CG-F24": "as CG-F03: no limit splits a list; in DeltaFIFO it does, and the test proves that",
    "CG-F26": "as CG-F24",
}


def entry(name: str, value: int) -> Entry[int]:
    return Entry(ObjectMeta(name=name, resource_version=str(value)), value)


def objects(**values: int) -> dict[ObjectName, Entry[int]]:
    """Return a list, or what the cache holds: ``objects(foo=1, bar=2)``."""
    return {ObjectName("", name): entry(name, value) for name, value in values.items()}


def show(batch: Batch[int]) -> list[str]:
    match batch.content:
        case ReplacedAll(entries, version):
            shown = [f"{key}={listed.object}" for key, listed in entries.items()]
            return [" ".join([f"ReplacedAll@{version}", *shown])]
        case SyncAll():
            return ["SyncAll"]
        case Progress(version):
            return [f"Progress {version}"]
        case deltas:
            return [show_delta(delta) for delta in deltas]


def show_delta(delta: Delta[int]) -> str:
    assert delta.entry is not None
    return f"{delta.type.value} {delta.key} {delta.entry.object}"


def pop_all(queue: RealFIFO[int], limit: int = 1000) -> list[list[str]]:
    popped: list[list[str]] = []
    while (batch := queue.pop_batch(limit)) is not None:
        queue.done(batch)
        popped.append(show(batch))
    return popped


def pop_each(queue: RealFIFO[int]) -> list[str]:
    """Pop one by one, as client-go's Pop does."""
    return [text for batch in pop_all(queue, limit=1) for text in batch]


def do(queue: RealFIFO[int], *steps: str) -> None:
    """Write as the steps say: ``add foo 1``, ``replace foo 1``; lists are of version 9."""
    for step in steps:
        match step.split():
            case ["replace"]:
                queue.replace({}, "9")
            case ["replace", name, value]:
                queue.replace(objects(**{name: int(value)}), "9")
            case ["bookmark", version]:
                queue.bookmark(version)
            case ["resync"]:
                queue.resync()
            case [operation, name, value]:
                getattr(queue, operation)(entry(name, int(value)))
            case _:
                raise AssertionError(step)


# --- everything, in order ---------------------------------------------------------------------


def test_the_order_is_kept_across_producers() -> None:
    """CG-F01: each producer's order, and the one in which they took turns."""
    queue: RealFIFO[int] = RealFIFO()
    chance = random.Random(7)
    written = [f"{chance.choice('ab')}-{number}" for number in range(1000)]
    for number, name in enumerate(written):
        queue.add(entry(name, number))
    assert written == [text.split()[1] for text in pop_each(queue)]


IN_ORDER = {
    "CG-F02": (["delete foo 1", "replace foo 2"], ["Deleted foo 1", "ReplacedAll@9 foo=2"]),
    "CG-F03 as CG-D08": (["add foo 1", "replace"], ["Added foo 1", "ReplacedAll@9"]),
    "CG-F03 as CG-D10": (
        ["add foo 1", "delete foo 1", "replace"],
        ["Added foo 1", "Deleted foo 1", "ReplacedAll@9"],
    ),
    "CG-F03 as CG-D11": (
        ["add foo 1", "replace foo 1", "replace foo 1", "replace"],
        ["Added foo 1", "ReplacedAll@9 foo=1", "ReplacedAll@9 foo=1", "ReplacedAll@9"],
    ),
    "CG-F03 as CG-D12": (
        ["add foo 1", "replace", "replace"],
        ["Added foo 1", "ReplacedAll@9", "ReplacedAll@9"],
    ),
    "CG-F03 as CG-D13": (
        ["add foo 1", "delete foo 1", "add foo 2", "replace"],
        ["Added foo 1", "Deleted foo 1", "Added foo 2", "ReplacedAll@9"],
    ),
    "CG-F04": (
        ["add foo 10", "update foo 12", "delete foo 15"],
        ["Added foo 10", "Updated foo 12", "Deleted foo 15"],
    ),
    "CG-F06": (
        ["add foo 10", "update bar 15", "add qux 17", "delete qux 18", "delete baz 20"],
        ["Added foo 10", "Updated bar 15", "Added qux 17", "Deleted qux 18", "Deleted baz 20"],
    ),
    "CG-F08": (["add foo 10", "replace foo 15"], ["Added foo 10", "ReplacedAll@9 foo=15"]),
    "CG-F10": (["resync"], ["SyncAll"]),
    "CG-F11": (["add foo 5", "delete foo 6"], ["Added foo 5", "Deleted foo 6"]),
    "CG-F15": (
        ["add foo 10", "add bar 1", "add foo 11", "add foo 13", "add zab 30", "add foo 14"],
        [f"Added {text}" for text in ("foo 10", "bar 1", "foo 11", "foo 13", "zab 30", "foo 14")],
    ),
}


@pytest.mark.parametrize(("steps", "expected"), IN_ORDER.values(), ids=IN_ORDER)
def test_everything_written_comes_out_in_order(steps: list[str], expected: list[str]) -> None:
    queue: RealFIFO[int] = RealFIFO()
    do(queue, *steps)
    assert expected == pop_each(queue)


def test_what_the_cache_holds_makes_no_difference() -> None:
    """CG-F07."""
    queue = RealFIFO(known=objects(foo=5, bar=6, baz=7))
    do(queue, "add foo 10", "update bar 15", "delete baz 20")
    assert ["Added foo 10", "Updated bar 15", "Deleted baz 20"] == pop_each(queue)


def test_each_object_is_transformed_once_and_every_delta_kept() -> None:
    """CG-F05: also two deletes of bar in a row."""
    seen: list[int] = []

    def transform(original: Entry[int]) -> Entry[int]:
        seen.append(original.object)
        return Entry(original.metadata, -original.object)

    queue = RealFIFO(transform=transform)
    steps = ["add foo 10", "add bar 11", "update foo 12", "delete foo 15", "replace baz 16"]
    do(queue, *steps, "delete bar 17", "delete bar 18", "resync")
    assert [10, 11, 12, 15, 16, 17, 18] == seen
    expected = ["Added foo -10", "Added bar -11", "Updated foo -12", "Deleted foo -15"]
    expected += ["ReplacedAll@9 baz=-16", "Deleted bar -17", "Deleted bar -18", "SyncAll"]
    assert expected == pop_each(queue)


@pytest.mark.parametrize(
    ("step", "told"), [("delete foo 10", []), ("update foo 10", [10])], ids=["CG-F09", "CG-F13"]
)
def test_a_resync_tells_of_what_the_cache_holds_by_then(step: str, told: list[int]) -> None:
    """It stands behind what was queued before, so it cannot undo it."""
    cache = objects(foo=5)
    queue = RealFIFO(known=cache)
    do(queue, step, "resync")
    synced: list[int] = []
    while (batch := queue.pop_batch()) is not None:
        queue.done(batch)
        if isinstance(batch.content, SyncAll):
            synced += [held.object for held in cache.values()]
            continue
        assert isinstance(batch.content, list)
        for delta in batch.content:
            del cache[delta.key]
            if delta.type is not DeltaType.DELETED and delta.entry is not None:
                cache[delta.key] = delta.entry
    assert told == synced


def test_resyncs_in_a_row_do_not_pile_up() -> None:
    queue: RealFIFO[int] = RealFIFO()
    do(queue, "resync", "resync", "add foo 1", "resync")
    assert ["SyncAll", "Added foo 1", "SyncAll"] == pop_each(queue)


def test_the_key_of_a_delta_is_that_of_its_object() -> None:
    """CG-F16; for tombstones see CG-D26."""
    queue: RealFIFO[int] = RealFIFO()
    queue.add(Entry(ObjectMeta(name="web-0", namespace="default"), 1))
    batch = queue.pop_batch()
    assert batch is not None
    assert isinstance(batch.content, list)
    assert ["default/web-0"] == [str(delta.key) for delta in batch.content]


# --- lists ------------------------------------------------------------------------------------

ATOMIC = {
    "empty": (["replace"], ["ReplacedAll@9"]),
    "one": (["replace foo 1"], ["ReplacedAll@9 foo=1"]),
    "what was added stays": (
        ["add bar 1", "replace foo 2"],
        ["Added bar 1", "ReplacedAll@9 foo=2"],
    ),
    "several stay in order": (
        ["replace foo 1", "replace bar 2", "replace"],
        ["ReplacedAll@9 foo=1", "ReplacedAll@9 bar=2", "ReplacedAll@9"],
    ),
    "a bookmark comes first": (
        ["bookmark 5", "replace foo 6"],
        ["Progress 5", "ReplacedAll@9 foo=6"],
    ),
}


@pytest.mark.parametrize(("steps", "expected"), ATOMIC.values(), ids=ATOMIC)
def test_a_list_is_one_item_with_its_version(steps: list[str], expected: list[str]) -> None:
    """CG-F28, CG-F29: and nothing is left behind it."""
    queue: RealFIFO[int] = RealFIFO()
    do(queue, *steps)
    assert expected == pop_each(queue)
    assert queue.is_empty


def test_a_list_is_handed_over_not_copied() -> None:
    """A hundred thousand objects are queued by one append."""
    queue: RealFIFO[int] = RealFIFO()
    listed = objects(foo=1)
    queue.replace(listed, "9")
    batch = queue.pop_batch()
    assert batch is not None
    assert isinstance(batch.content, ReplacedAll)
    assert listed is batch.content.entries


def test_a_resync_is_one_item() -> None:
    """CG-F30: however much the cache holds."""
    queue = RealFIFO(known=objects(foo=5, bar=6))
    do(queue, "resync")
    assert ["SyncAll"] == pop_each(queue)


# --- the first list ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "pops", "synced"),
    [
        ([], 0, False),
        (["add foo 1"], 0, True),
        (["replace"], 0, False),
        (["replace"], 1, True),
        (["replace foo 1"], 0, False),
        (["replace foo 1"], 1, True),
        (["bookmark 5", "resync", "replace foo 1"], 2, False),
        (["bookmark 5", "resync", "replace foo 1"], 3, True),
        (["replace foo 1", "add bar 2"], 1, True),
    ],
)
def test_synced_when_the_first_list_is_handled(steps: list[str], pops: int, synced: bool) -> None:
    """CG-F17. An empty list has to be popped as well; a mapping has no key twice."""
    queue: RealFIFO[int] = RealFIFO()
    do(queue, *steps)
    for _ in range(pops):
        batch = queue.pop_batch(1)
        assert batch is not None
        queue.done(batch)
    assert synced == queue.has_synced


def test_synced_when_what_the_first_list_deletes_is_handled_too() -> None:
    """CG-F14: it is all in the one item, which counts as initial."""
    queue = RealFIFO(known=objects(foo=5, bar=6, baz=7))
    do(queue, "replace foo 5")
    batch = queue.pop_batch()
    assert batch is not None
    assert (batch.in_initial_list, queue.has_synced) == (True, False)
    queue.done(batch)
    assert queue.has_synced


# --- batches ----------------------------------------------------------------------------------


def written(queue: RealFIFO[int], names: str) -> None:
    """Write a change of each of the names, numbered from 1."""
    for value, name in enumerate(names, start=1):
        queue.update(entry(name, value))


def numbers(batches: list[list[str]]) -> list[list[int]]:
    return [[int(text.split()[-1]) for text in batch] for batch in batches]


@pytest.mark.parametrize(
    ("names", "limit", "batches"),
    [
        pytest.param("abc", 1000, [[1, 2, 3]], id="distinct"),
        pytest.param("aaa", 1000, [[1], [2], [3]], id="CG-F21"),
        pytest.param("abbc", 1000, [[1, 2], [3, 4]], id="CG-F22"),
        pytest.param("abcb", 1000, [[1, 2, 3], [4]], id="CG-F23"),
        pytest.param("abc", 2, [[1, 2], [3]], id="CG-F25"),
        pytest.param("aba", 2, [[1, 2], [3]], id="full before the duplicate"),
    ],
)
def test_a_batch_ends_before_a_duplicate_and_at_its_limit(
    names: str, limit: int, batches: list[list[int]]
) -> None:
    queue: RealFIFO[int] = RealFIFO()
    written(queue, names)
    assert batches == numbers(pop_all(queue, limit))


@pytest.mark.parametrize("limit", [2, 1000])
def test_the_first_list_is_never_mixed_with_what_came_later(limit: int) -> None:
    """CG-F19, CG-F20, CG-F24, CG-F26: nor is it split by a limit."""
    queue: RealFIFO[int] = RealFIFO()
    queue.replace(objects(a=1, b=2, c=3), "3")
    do(queue, "add d 4")
    batches: list[tuple[bool, list[str]]] = []
    while (batch := queue.pop_batch(limit)) is not None:
        queue.done(batch)
        batches.append((batch.in_initial_list, show(batch)))
    assert [(True, ["ReplacedAll@3 a=1 b=2 c=3"]), (False, ["Added d 4"])] == batches


def test_a_change_of_everything_stands_alone() -> None:
    queue: RealFIFO[int] = RealFIFO()
    do(queue, "add a 1", "add b 2", "resync", "add c 3", "bookmark 3", "add d 4", "replace a 5")
    do(queue, "add e 6")
    expected = [["Added a 1", "Added b 2"], ["SyncAll"], ["Added c 3"], ["Progress 3"]]
    expected += [["Added d 4"], ["ReplacedAll@9 a=5"], ["Added e 6"]]
    assert expected == pop_all(queue)
