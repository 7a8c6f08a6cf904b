"""What kube-rs tests of its watcher, reflector and store, played on our informer.

kube-rs: ``kube-runtime/src/reflector``, ``watcher.rs``, ``utils/predicate.rs``, ``wait.rs``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.cache.lister import Lister
from kinform.cache.processor.events import Added, Updated
from kinform.cache.reflector_options import ReflectorOptions
from kinform.cache.shared_informer import SharedInformer
from kinform.cache.store.store import Indexer
from kinform.meta import ObjectName
from kinform.objects.object import Object
from kinform.runtime.predicate import generation_changed
from kinform.sansio.backoff import Backoff
from kinform.testing import FakeListWatch, in_virtual_time
from tests.cache.support_entries import entry_of
from tests.cache.support_informer import (
    CUT,
    REFUSED,
    names,
    quiet,
    recorded,
    source_of,
    source_versions,
    thing,
    value_of,
    versions,
)

DEVIATIONS: Final = {
    "KR-R07": "a relist delivers only changed objects, not all objects again",
    "KR-R09": "a subscriber that does not read delays nothing: its pending events are merged per "
    "object",
    "KR-S04": "a namespace is part of the key: an object of a cluster-scoped resource has none",
}
NOT_APPLICABLE: Final = {
    "KR-P03": "a predicate compares the old state with the new one; it remembers nothing",
}


# --- the store


@in_virtual_time
async def test_the_store_follows_applies_deletes_and_a_restart() -> None:
    """KR-R01, KR-R02, KR-R03 and KR-R04."""
    source = FakeListWatch()
    async with SharedInformer(source) as informer:
        await informer.wait_synced(5)
        source.add(thing("a", "old"))
        source.add(thing("b"))
        await quiet()
        assert names(informer) == ["a", "b"]
        source.modify(thing("a", "new"))
        await quiet()
        held = informer.lister.get("default/a")
        assert held is not None
        assert value_of(held) == "new"
        source.delete("a")
        await quiet()
        assert names(informer) == ["b"]
        source.delete("b", drop=True)
        source.add(thing("c"), drop=True)
        source.compact()
        source.close_watches()
        await quiet(60)
        assert names(informer) == ["c"]


steps = st.lists(st.tuples(st.sampled_from("+-"), st.integers(0, 9)), max_size=60)


@given(steps)
def test_no_sequence_of_applies_and_deletes_leaves_a_duplicate(ops: list[tuple[str, int]]) -> None:
    """KR-R05."""

    async def run() -> None:
        source = FakeListWatch()
        async with SharedInformer(source) as informer:
            await informer.wait_synced(5)
            for number, (op, name) in enumerate(ops):
                known = ObjectName("default", f"o{name}") in source.entries
                if op == "-" and known:
                    source.delete(f"o{name}")
                elif op == "+" and known:
                    source.modify(thing(f"o{name}", str(number)))
                elif op == "+":
                    source.add(thing(f"o{name}", str(number)))
            await quiet()
            assert versions(informer) == source_versions(source)
            assert len(informer.lister.list()) == len(source.entries)

    in_virtual_time(run)()


@in_virtual_time
async def test_readers_see_the_previous_contents_until_a_relist_is_complete() -> None:
    """KR-R06."""
    source = source_of("a")
    options = ReflectorOptions(stream_lists=False)
    async with SharedInformer(source, options=options) as informer:
        await informer.wait_synced(5)
        source.add(thing("b"), drop=True)
        source.compact()
        source.hang_lists()
        source.close_watches()
        await quiet(60)
        assert names(informer) == ["a"]
        source.heal()
        await quiet(60)
        assert names(informer) == ["a", "b"]


# --- subscribers


@in_virtual_time
async def test_a_subscriber_receives_what_changed_and_no_errors() -> None:
    """KR-R07."""
    source = source_of("a")
    informer = SharedInformer(source)
    seen = recorded(informer)
    async with informer:
        await informer.wait_synced(5)
        seen.take()
        source.fail_watches(REFUSED)
        source.close_watches(CUT)
        await quiet(30)
        assert seen.take() == []
        source.add(thing("b"), drop=True)
        source.compact()
        source.close_watches()
        await quiet(60)
        assert seen.take() == ["+b@3"]


@in_virtual_time
async def test_a_subscriber_reads_what_was_queued_and_then_its_end() -> None:
    """KR-R08."""
    source = source_of("a", "b")
    informer = SharedInformer(source)
    async with informer:
        await informer.wait_synced(5)
        events = informer.events()
        read = [await anext(events)]
        await informer.stop()
        read += [event async for event in events]
    assert sorted(event.key.name for event in read) == ["a", "b"]


@in_virtual_time
async def test_a_subscriber_that_does_not_read_holds_up_no_other() -> None:
    """KR-R09."""
    source = source_of("a")
    informer = SharedInformer(source)
    fast = recorded(informer, "fast")
    never = asyncio.Event()

    async def hang(_: Added[Object] | Updated[Object]) -> None:
        await never.wait()

    informer.add_event_handler(on_add=hang, on_update=hang)
    async with informer:
        await informer.wait_synced(5)
        for number in range(5):
            source.modify(thing("a", str(number)))
        await quiet()
        assert fast.told == ["+a@2 initial", "a@2>3", "a@3>4", "a@4>5", "a@5>6", "a@6>7"]
        never.set()


# --- references


def lister_of(*keys: str, labels: Mapping[str, str] | None = None) -> Lister[str]:
    indexer = Indexer[str]()
    for key in keys:
        indexer.add(entry_of(key, key, labels=labels if key == keys[0] else None))
    return Lister(indexer)


@pytest.mark.parametrize(
    ("stored", "asked", "found"),
    [
        pytest.param("ns/a", ObjectName("ns", "a"), "ns/a", id="KR-S01"),
        pytest.param("ns/a", ObjectName("", "a"), None, id="KR-S02"),
        pytest.param("a", ObjectName("", "a"), "a", id="KR-S03"),
        pytest.param("a", ObjectName("ns", "a"), None, id="KR-S04"),
    ],
)
def test_an_object_is_found_by_its_own_reference_only(
    stored: str, asked: ObjectName, found: str | None
) -> None:
    assert lister_of(stored).get(asked) == found


def test_contents_are_filtered_by_a_predicate_and_by_labels_and_searched() -> None:
    """KR-S05, KR-S06 and KR-S07."""
    lister = lister_of("x/a", "x/b", "y/c", labels={"app": "web"})
    assert [one for one in lister.list() if one.startswith("y/")] == ["y/c"]
    assert lister.list(label_selector="app=web") == ["x/a"]
    assert next(one for one in lister.list() if one.endswith("b")) == "x/b"


# --- the watcher


@in_virtual_time
async def test_only_a_streamed_list_asks_for_initial_events() -> None:
    """KR-W01 and KR-W02."""
    source = source_of("a")
    async with SharedInformer(source) as informer:
        await informer.wait_synced(5)
        source.add(thing("b"))
        await quiet()
        source.close_watches(CUT)
        await quiet(30)
    watches = [one.options for one in source.requests if one.verb == "watch"]
    assert [bool(one.send_initial_events) for one in watches] == [True, False]
    assert [one.resource_version for one in watches] == ["", "3"]


@in_virtual_time
async def test_without_streamed_lists_no_watch_asks_for_initial_events() -> None:
    """KR-W03."""
    source = source_of("a")
    options = ReflectorOptions(stream_lists=False)
    async with SharedInformer(source, options=options) as informer:
        await informer.wait_synced(5)
        await source.wait_for_watches()
        source.close_watches(CUT)
        await quiet(30)
    watches = [one.options for one in source.requests if one.verb == "watch"]
    assert len(watches) == 2
    assert not any(one.send_initial_events for one in watches)


def waits(rand: float, count: int) -> list[float]:
    backoff, found = Backoff(first=0.8, cap=30.0), list[float]()
    for _ in range(count):
        found.append(backoff.delay(rand=rand))
        backoff = backoff.failed()
    return found


def test_waits_double_up_to_their_cap() -> None:
    """KR-W04."""
    assert waits(0.0, 8) == pytest.approx([0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0])


@given(st.floats(0, 1, exclude_max=True))
def test_jitter_spreads_waits_within_their_bounds(rand: float) -> None:
    """KR-W05."""
    for plain, spread in zip(waits(0.0, 8), waits(rand, 8), strict=True):
        assert plain <= spread <= 2 * plain


@in_virtual_time
async def test_a_silent_stream_is_given_up_and_a_busy_one_is_not() -> None:
    """KR-W06, KR-W07 and KR-W08."""
    source = source_of("a")
    options = ReflectorOptions(watch_timeout=3600, idle_timeout=150)
    async with SharedInformer(source, options=options) as informer:
        await informer.wait_synced(5)
        for _ in range(20):
            await quiet(100)
            source.bookmark()
        assert source.open_watches == 1
        asked = len([one for one in source.requests if one.verb == "watch"])
        assert asked == 1
        source.freeze_watches()
        source.add(thing("b"))
        await quiet(200)
        assert names(informer) == ["a", "b"]
        lists = sum(bool(one.options.send_initial_events) for one in source.requests)
        source.close_watches()
        await quiet(60)
        assert source.open_watches == 1
        assert sum(bool(one.options.send_initial_events) for one in source.requests) == lists


@in_virtual_time
async def test_any_number_of_callers_wait_for_the_first_list_in_any_order() -> None:
    """KR-W09 and KR-W10."""
    source = source_of("a")
    source.latency = 5
    order: list[int] = []

    async def wait(number: int, patience: float, informer: SharedInformer[Object]) -> None:
        await informer.wait_synced(patience)
        assert names(informer) == ["a"]
        order.append(number)

    async with SharedInformer(source) as informer:
        async with asyncio.TaskGroup() as group:
            for number, patience in enumerate((60, 10, 30)):
                group.create_task(wait(number, patience, informer))
        await wait(3, 0.001, informer)
    assert sorted(order) == [0, 1, 2, 3]
    assert order[-1] == 3


# --- predicates


def generation(number: int, uid: str = "1") -> Object:
    return Object.from_dict({"metadata": {"name": "blog", "uid": uid, "generation": number}})


@pytest.mark.parametrize(
    ("old", "new", "passes"),
    [
        pytest.param(generation(1), generation(1), False, id="KR-P01 equal"),
        pytest.param(generation(1), generation(2), True, id="KR-P01 other"),
        pytest.param(generation(1), generation(1, uid="2"), True, id="KR-P02"),
    ],
)
def test_a_predicate_compares_generation_and_identity(
    old: Object, new: Object, passes: bool
) -> None:
    assert generation_changed(Updated(ObjectName("", "blog"), old, new)) is passes
