"""Large lists are taken in turns: the same outcome, seen at once, and nobody is held up."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.cache.controller import apply, apply_in_turns, is_large
from kinform.cache.store.indexes import IndexFunctionError, function_index
from kinform.cache.store.thread_safe_store import ThreadSafeStore
from kinform.errors import UsageError
from kinform.meta import Entry, ObjectName
from kinform.sansio.queue.deltas import Delta, DeltaType, ReplacedAll
from kinform.sansio.queue.interface import Batch
from tests.cache.support_entries import entry_of, keyed

_states = st.dictionaries(st.integers(0, 30), st.integers(1, 3), max_size=20)


def _entries(state: dict[int, int]) -> dict[ObjectName, Entry[str]]:
    return keyed(*[entry_of(f"ns/{name}", f"{name}@{rv}", rv) for name, rv in state.items()])


def _store() -> ThreadSafeStore[str]:
    return ThreadSafeStore(indexes=[function_index("last", lambda text: text[-1])])


def _many(count: int, rv: int = 1) -> dict[ObjectName, Entry[str]]:
    return _entries(dict.fromkeys(range(count), rv))


def _content(store: ThreadSafeStore[str]) -> tuple[object, ...]:
    by_value = {value: store.index_keys("last", value) for value in store.list_index_values("last")}
    return sorted(entry.object for entry in store.list()), by_value, store.resource_version


@given(_states, _states, st.integers(1, 7), st.booleans())
def test_in_steps_of_any_size_it_does_what_it_does_at_once(
    before: dict[int, int], after: dict[int, int], step: int, afresh: bool
) -> None:
    at_once, stepwise = _store(), _store()
    for store in (at_once, stepwise):
        store.replace(_entries(before), "5")
    expected = at_once.replace(_entries(after), "6", afresh=afresh)
    shown = _content(stepwise)
    work = stepwise.replacing(_entries(after), "6", afresh=afresh)
    while not work.advance(step):
        assert _content(stepwise) == shown  # nothing is seen of it before it is whole
    assert stepwise.publish(work) == expected
    assert _content(stepwise) == _content(at_once)


async def test_others_have_turns_while_a_large_list_is_taken_in() -> None:
    store = _store()
    batch = Batch(ReplacedAll(_many(5_000), "9"), in_initial_list=True)
    assert is_large(batch)
    turns: list[int] = []

    async def others() -> None:
        while not len(store):
            turns.append(len(store))
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        group.create_task(others())
        applied = await group.create_task(apply_in_turns(batch, store))
    assert len(turns) >= 10
    assert len(applied.notifications) == len(store) == 5_000
    again = _store()
    assert apply(batch, again).notifications == applied.notifications


async def test_a_small_list_needs_no_turns() -> None:
    store, small = _store(), Batch(ReplacedAll(_many(3), "9"), in_initial_list=True)
    assert not is_large(small)
    work = apply_in_turns(small, store)
    with pytest.raises(StopIteration):  # it returns without having awaited anything
        work.send(None)
    assert len(store) == 3


async def test_cancelled_it_has_changed_nothing() -> None:
    store = _store()
    store.replace(_many(2), "5")
    shown = _content(store)
    batch = Batch(ReplacedAll(_many(5_000, rv=2), "9"), in_initial_list=False)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(apply_in_turns(batch, store))
        await asyncio.sleep(0)
        task.cancel()
    assert _content(store) == shown


def test_an_index_that_is_added_meanwhile_is_there_afterwards() -> None:
    store = _store()
    store.replace(_many(2), "5")
    work = store.replacing(_many(6, rv=2), "9")
    work.advance(3)
    store.add_indexes([function_index("first", lambda text: text[0])])
    assert sorted(store.list_index_values("first")) == ["0", "1"]
    while not work.advance(3):
        pass
    store.publish(work)
    assert sorted(store.list_index_values("first")) == list("012345")
    assert [str(key) for key in store.index_keys("first", "5")] == ["ns/5"]


def test_what_was_not_ended_or_is_outdated_is_not_published() -> None:
    store = _store()
    work = store.replacing(_many(6), "9")
    work.advance(3)
    with pytest.raises(UsageError):
        store.publish(work)
    store.replace(_many(2), "10")
    work.advance()
    with pytest.raises(UsageError):
        store.publish(work)
    assert len(store) == 2


@pytest.mark.parametrize("write", ["add", "delete", "apply", "bookmark"])
def test_what_was_written_meanwhile_is_not_lost_in_silence(write: str) -> None:
    store = _store()
    store.replace(_many(2), "5")
    work = store.replacing(_many(6, rv=2), "9")
    work.advance()
    entry = entry_of("ns/new", "new@7", 7)
    key = entry.metadata.key
    match write:
        case "add":
            store.add(key, entry)
        case "delete":
            store.delete(key)
        case "apply":
            store.apply([Delta(DeltaType.ADDED, key, entry)])
        case _:
            store.bookmark("8")
    with pytest.raises(UsageError):
        store.publish(work)


def test_keys_are_those_that_were_given() -> None:
    """A store of somebody's own keys: what metadata calls an object does not matter."""
    store: ThreadSafeStore[str] = ThreadSafeStore()
    a, b = entry_of("ns/z", "a", 1), entry_of("ns/z", "b", 2)
    keys = [ObjectName("ns", "a"), ObjectName("ns", "b")]
    store.replace(dict(zip(keys, (a, b), strict=True)), "5")
    done = store.replace({keys[0]: a}, "6")
    assert [gone.key for gone in done.deleted] == [keys[1]]
    assert store.keys() == [keys[0]]
    other = entry_of("ns/y", "c", 3)
    store.apply([Delta(DeltaType.UPDATED, keys[0], other)])
    assert other.metadata.name == "y"


def test_an_index_function_that_fails_in_the_middle_changes_nothing() -> None:
    store: ThreadSafeStore[str] = ThreadSafeStore(
        indexes=[function_index("last", lambda text: text[int(text[0]) and 99])]
    )
    store.replace(_many(1), "5")
    work = store.replacing(_many(6, rv=2), "9")
    with pytest.raises(IndexFunctionError):
        work.advance()
    with pytest.raises(UsageError):
        store.publish(work)
    assert store.resource_version == "5"
