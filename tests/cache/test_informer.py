"""SharedInformer: the cache equals the source, and everybody is told, in order and once."""

from __future__ import annotations

import asyncio
import functools
from typing import Final

import pytest

from kinform.cache.processor.events import Added, Updated
from kinform.cache.processor.handlers import handler
from kinform.cache.shared_informer import SharedInformer
from kinform.cache.store.indexes import NAMESPACE_INDEX
from kinform.errors import KinformError, UsageError
from kinform.objects.object import Object
from kinform.rest.results import WatchEvent
from kinform.sansio.queue.delta_fifo import DeltaFIFO
from kinform.sansio.queue.interface import QueueFactory
from kinform.sansio.queue.real_fifo import RealFIFO
from kinform.sansio.wire.watch import EventType
from kinform.testing import FakeListWatch, in_virtual_time
from tests.cache.support_entries import entry_of
from tests.cache.support_informer import (
    REFUSED,
    Recorder,
    names,
    quiet,
    recorded,
    said,
    source_of,
    source_versions,
    thing,
    value_of,
    versions,
)

DEVIATIONS: Final = {
    "CG-I06": "a relist that finds an object unchanged notifies no handler, not even one with "
    "resyncs: these come only with their own period",
    "CG-I08": "transform and error handler are constructor arguments, so nothing can race: they "
    "are in use from the first list on",
    "CG-I31": "detection is not needed: a cached Object cannot be changed",
}
NOT_APPLICABLE: Final = {
    "CG-I30": "Lazy is an internal helper of client-go that kinform does not need: no lazily "
    "computed value is shared between tasks",
    "CG-I35": "names need not be unique: statistics are a value that each informer returns, not "
    "metrics in a global registry",
}

both_queues = pytest.mark.parametrize("queue", [RealFIFO, DeltaFIFO])


# --- the cache


@both_queues
@in_virtual_time
async def test_the_cache_follows_the_source(queue: QueueFactory) -> None:
    source = source_of("a", "b")
    async with SharedInformer(source, queue=queue) as informer:
        await informer.wait_synced(5)
        assert names(informer) == ["a", "b"]
        source.modify(thing("a", "new"))
        source.delete("b")
        source.add(thing("c"))
        await quiet()
        assert names(informer) == ["a", "c"]
        assert value_of(informer.lister.namespace("default").list()[0]) == "new"
        assert versions(informer) == source_versions(source)
        assert informer.last_sync_resource_version == source.resource_version


@in_virtual_time
async def test_indexes_are_right_after_the_sync_after_a_change_and_when_added_late() -> None:
    """CG-I01."""
    source = FakeListWatch()
    source.add(thing("a", "red"))
    source.add(thing("b", "blue", namespace="other"))
    async with SharedInformer(source, indexers={"value": value_of}) as informer:
        await informer.wait_synced(5)
        assert [one.name for one in informer.indexer.by_index("value", "red")] == ["a"]
        source.add(thing("c", "red"))
        await quiet()
        informer.add_indexers({"first": lambda obj: obj.name[:1]})
        source.modify(thing("a", "blue"))
        source.add(thing("bb", "green"))
        await quiet()
        by_index, keys = informer.indexer.by_index, informer.indexer.index_keys
        assert [one.name for one in by_index("value", "red")] == ["c"]
        assert sorted(informer.indexer.list_index_values("value")) == ["blue", "green", "red"]
        assert [key.name for key in keys("first", "b")] == ["bb", "b"]
        assert [one.name for one in by_index(NAMESPACE_INDEX, "other")] == ["b"]


@in_virtual_time
async def test_a_cached_object_cannot_be_changed() -> None:
    """CG-I31."""
    source = source_of("a")
    async with SharedInformer(source) as informer:
        await informer.wait_synced(5)
        held = informer.lister.list()[0]
        for place in (held, held["data"]):
            with pytest.raises(TypeError):
                place["value"] = "changed"  # type: ignore[index]
        with pytest.raises(AttributeError):
            held.raw = b"{}"  # type: ignore[misc]
        held.to_dict("data")["value"] = "changed"
        assert value_of(informer.lister.list()[0]) == ""


# --- who is told what


@both_queues
@in_virtual_time
async def test_everybody_is_told_of_everything_in_order(queue: QueueFactory) -> None:
    source = source_of("a")
    informer = SharedInformer(source, queue=queue)
    one, two = recorded(informer, "one"), recorded(informer, "two")
    async with informer:
        await informer.wait_synced(5)
        source.modify(thing("a", "1"))
        source.modify(thing("a", "2"))
        source.delete("a")
        source.add(thing("a"))
        await quiet()
    assert one.told == ["+a@2 initial", "a@2>3", "a@3>4", "-a@5", "+a@6"]
    assert two.told == one.told


@in_virtual_time
async def test_plain_and_async_callbacks_find_the_change_in_the_cache() -> None:
    source = source_of("a")
    informer = SharedInformer(source)
    found: list[str] = []

    def look(event: Added[Object]) -> None:
        held = informer.lister.get(event.key)
        found.append(f"def {held.name if held else None}")

    async def wait_and_look(event: Added[Object]) -> None:
        await asyncio.sleep(1)
        held = informer.lister.get(event.key)
        found.append(f"async def {held.name if held else None}")

    informer.add_event_handler(on_add=look)
    informer.add_event_handler(on_add=wait_and_look)
    async with informer:
        await quiet(2)
    assert found == ["def a", "async def a"]


@in_virtual_time
async def test_a_late_handler_is_told_what_is_there_and_what_follows() -> None:
    """CG-I19: and has synced when it was told all of it, the callback included."""
    source = source_of("a", "b")
    source.latency = 1
    informer = SharedInformer(source)
    early = informer.add_event_handler(on_add=lambda _: None)
    told: list[str] = []

    async def note(event: Added[Object]) -> None:
        await asyncio.sleep(1)
        told.append(said(event))

    async with informer:
        for pause in (0, 0.5):
            await asyncio.sleep(pause)
            assert not early.has_synced
        await informer.wait_synced(5)
        await early.wait_synced(5)
        late = informer.add_event_handler(on_add=note)
        source.add(thing("c"))
        await quiet(1.5)
        assert told == ["+a@2 initial"]
        assert not late.has_synced
        await late.wait_synced(5)
        assert told == ["+a@2 initial", "+b@3 initial"]
        await quiet(5)
        assert told == ["+a@2 initial", "+b@3 initial", "+c@4"]


@both_queues
@pytest.mark.parametrize("delay", [0.0, 0.25, 0.5, 0.75, 1.0, 2.0])
@in_virtual_time
async def test_a_handler_may_be_added_at_any_moment_of_the_start(
    delay: float, queue: QueueFactory
) -> None:
    """CG-I05: it hears of each object exactly once."""
    source = source_of("a", "b", "c")
    source.latency = 0.5
    source.supports_watch_list = False
    async with SharedInformer(source, queue=queue) as informer:
        if delay:
            await asyncio.sleep(delay)
        recorder = recorded(informer)
        await informer.wait_synced(5)
        await quiet()
        assert sorted(recorder.told) == ["+a@2 initial", "+b@3 initial", "+c@4 initial"]


@in_virtual_time
async def test_a_filtered_handler_hears_of_objects_that_begin_and_cease_to_pass() -> None:
    source = source_of("a", "b")
    informer = SharedInformer(source)
    recorder = Recorder()
    informer.add_event_handler(
        on_add=recorder.note,
        on_update=recorder.note,
        on_delete=recorder.note,
        filter=lambda obj: value_of(obj) == "yes",
    )
    async with informer:
        await informer.wait_synced(5)
        source.modify(thing("a", "yes"))
        source.delete("b")
        source.modify(thing("a", "no"))
        await quiet()
    assert recorder.told == ["+a@4", "-a@4"]


@in_virtual_time
async def test_events_can_be_read_instead_of_being_called() -> None:
    source = source_of("a")
    informer = SharedInformer(source)
    told: list[str] = []
    async with informer:
        async with informer.events() as events:
            async for event in events:
                told.append(said(event))
                if len(told) == 1:
                    source.modify(thing("a", "1"))
                    source.delete("a")
                if len(told) == 3:
                    break
        assert told == ["+a@2 initial", "a@2>3", "-a@4"]
        late = informer.events()
        source.add(thing("z"))
        assert said(await anext(late)) == "+z@5"
        await informer.stop()
        assert [said(event) async for event in late] == []


@in_virtual_time
async def test_events_end_when_the_informer_is_stopped_without_ever_having_run() -> None:
    informer = SharedInformer(source_of("a"))
    events = informer.events()
    waiting = informer.add_event_handler(on_add=print)
    await informer.stop()
    assert [event async for event in events] == []
    with pytest.raises(UsageError):
        await waiting.wait_synced()


@in_virtual_time
async def test_a_removed_handler_hears_no_more_and_a_foreign_one_is_left_alone() -> None:
    """CG-I11."""
    source = source_of("a")
    informer, other = SharedInformer(source), SharedInformer(source)
    one, two = Recorder(), Recorder()
    first, second = (informer.add_event_handler(each.handler) for each in (one, two))
    async with informer, other:
        await informer.wait_synced(5)
        other.remove_event_handler(first)
        first.remove()
        informer.remove_event_handler(first)
        assert not second.is_removed
        await quiet()
        source.add(thing("b"))
        await quiet()
    assert "+b@3" not in one.told
    assert two.told == ["+a@2 initial", "+b@3"]


@in_virtual_time
async def test_what_waits_for_a_handler_is_dropped_with_it() -> None:
    """8.3, finding 6: the callback that runs ends, and that is all."""
    told: list[str] = []

    async def slowly(event: Added[Object]) -> None:
        await asyncio.sleep(1)
        told.append(event.key.name)

    informer = SharedInformer(source_of("a", "b", "c"))
    registration = informer.add_event_handler(on_add=slowly)
    async with informer:
        await asyncio.sleep(1.5)
        registration.remove()
        await asyncio.sleep(5)
    assert told == ["a", "b"]


@in_virtual_time
async def test_a_handler_that_fails_on_everything_has_synced_all_the_same() -> None:
    """8.3, finding 12."""

    def fails(_: object) -> None:
        raise ValueError("always")

    informer = SharedInformer(source_of("a", "b"))
    registration = informer.add_event_handler(on_add=fails)
    async with informer:
        await registration.wait_synced(5)
        assert informer.statistics().handlers[0].errors == 2


# --- gaps


@both_queues
@in_virtual_time
async def test_after_a_gap_only_what_changed_is_told(queue: QueueFactory) -> None:
    """CG-I06."""
    source = source_of("pod1", "pod2")
    informer = SharedInformer(source, queue=queue)
    plain, resyncing = recorded(informer), Recorder()
    informer.add_event_handler(on_add=resyncing.note, on_update=resyncing.note, resync_period=1000)
    async with informer:
        await informer.wait_synced(5)
        await quiet()
        plain.take()
        resyncing.take()
        source.modify(thing("pod2", "hidden"), drop=True)
        source.add(thing("pod3"), drop=True)
        source.compact()
        source.close_watches()
        await quiet(60)
        assert sorted(plain.take()) == ["+pod3@5", "pod2@3>4"]
        assert sorted(resyncing.take()) == ["+pod3@5", "pod2@3>4"]
        await asyncio.sleep(1000)
        assert plain.take() == []
        assert sorted(resyncing.take()) == ["pod1@2=", "pod2@4=", "pod3@5="]


@both_queues
@in_virtual_time
async def test_what_was_deleted_or_replaced_unseen_is_told(queue: QueueFactory) -> None:
    source = source_of("gone", "anew", "same")
    informer = SharedInformer(source, queue=queue)
    recorder = recorded(informer)
    async with informer:
        await informer.wait_synced(5)
        await quiet()
        recorder.take()
        source.delete("gone", drop=True)
        source.delete("anew", drop=True)
        source.add(thing("anew"), drop=True)
        source.compact()
        source.close_watches()
        await quiet(60)
    told = recorder.take()
    assert sorted(told) == ["+anew@7", "-anew@3 unseen", "-gone@2 unseen"]
    assert told.index("-anew@3 unseen") < told.index("+anew@7")


@both_queues
@in_virtual_time
async def test_what_a_server_repeats_is_told_once_and_counted(queue: QueueFactory) -> None:
    source = source_of("a")
    informer = SharedInformer(source, queue=queue)
    recorder = recorded(informer)
    async with informer:
        await informer.wait_synced(5)
        source.modify(thing("a", "1"))
        await quiet()
        entry = source.entries[informer.indexer.list_keys()[0]]
        for _ in range(3):
            source.send(WatchEvent(EventType.MODIFIED, entry.object, entry.metadata))
        await quiet()
        assert informer.statistics().replayed == 3
    assert recorder.told == ["+a@2 initial", "a@2>3"]


# --- resyncs


@both_queues
@in_virtual_time
async def test_each_handler_is_resynced_at_its_own_period(queue: QueueFactory) -> None:
    source = source_of("a", "b")
    informer = SharedInformer(source, queue=queue, resync_period=30)
    never_asked = recorded(SharedInformer(source, queue=queue))
    times: dict[str, list[float]] = {"own": [], "informer's": []}
    clock = asyncio.get_running_loop().time

    def noting(name: str, _: Updated[Object]) -> None:
        times[name].append(round(clock()))

    informer.add_event_handler(on_update=functools.partial(noting, "own"), resync_period=20)
    informer.add_event_handler(handler(on_update=functools.partial(noting, "informer's")))
    async with informer:
        await asyncio.sleep(65)
    assert times == {"own": [20, 20, 40, 40, 60, 60], "informer's": [30, 30, 60, 60]}
    assert never_asked.told == []


@both_queues
@in_virtual_time
async def test_a_resync_tells_of_every_object_however_many_there_are(queue: QueueFactory) -> None:
    """More than a queue hands out at once."""
    source = FakeListWatch(str)
    for i in range(2500):
        source.add(entry_of(f"default/o{i}", "any"))
    informer = SharedInformer(source, queue=queue)
    resynced: list[str] = []
    informer.add_event_handler(
        on_update=lambda event: resynced.append(event.key.name), resync_period=10
    )
    async with informer:
        await asyncio.sleep(15)
    assert len(set(resynced)) == 2500
    assert len(resynced) == 2500


@in_virtual_time
async def test_a_resync_of_an_empty_cache_is_not_made_up_for() -> None:
    source = source_of()
    informer = SharedInformer(source)
    slow, fast = Recorder(), Recorder()
    informer.add_event_handler(on_update=slow.note, resync_period=10)
    informer.add_event_handler(on_update=fast.note, resync_period=6)
    async with informer:
        await asyncio.sleep(10.5)
        source.add(thing("a"))
        await asyncio.sleep(2)
        assert fast.take() == ["a@2="]
        assert slow.take() == []
        await asyncio.sleep(8)
        assert slow.take() == ["a@2="]


# --- transforms and errors


@both_queues
@pytest.mark.parametrize("streams", [True, False])
@in_virtual_time
async def test_the_transform_is_all_that_anybody_sees(streams: bool, queue: QueueFactory) -> None:
    """CG-I09, CG-I08, CG-C04: it runs once for each object, also in a list."""
    source = source_of("a")
    source.supports_watch_list = streams
    seen: list[str] = []

    def stamp(obj: Object) -> Object:
        seen.append(obj.resource_version)
        return Object.from_dict({**obj.to_dict(), "data": {"value": f"t{obj.resource_version}"}})

    informer = SharedInformer(source, transform=stamp, queue=queue, indexers={"value": value_of})
    told: list[tuple[str, ...]] = []
    informer.add_event_handler(
        on_add=lambda event: told.append((value_of(event.obj),)),
        on_update=lambda event: told.append((value_of(event.old), value_of(event.new))),
        on_delete=lambda event: told.append((value_of(event.obj),)),
    )
    async with informer:
        await informer.wait_synced(5)
        assert [value_of(obj) for obj in informer.lister.list()] == ["t2"]
        source.modify(thing("a"))
        source.delete("a")
        source.add(thing("b"))
        await quiet()
        assert informer.indexer.list_index_values("value") == ["t5"]
        source.compact()
        source.close_watches()
        await quiet(60)
    assert told == [("t2",), ("t2", "t3"), ("t4",), ("t5",)]
    assert sorted(seen) == ["2", "3", "4", "5"]


@in_virtual_time
async def test_the_watch_error_handler_is_told_from_the_first_failure_on() -> None:
    """CG-I07, CG-I08."""
    source = source_of("a")
    source.fail_watches(REFUSED)
    source.fail_lists(REFUSED)
    errors: list[tuple[float, KinformError]] = []
    clock = asyncio.get_running_loop().time
    informer = SharedInformer(
        source, watch_error_handler=lambda error: errors.append((clock(), error))
    )
    async with informer:
        await informer.wait_synced(30)
        source.close_watches(REFUSED)
        await quiet()
        at, error = errors[0]
        assert (at < 1, error) == (True, REFUSED)
        assert errors[-1][1] is REFUSED
        assert informer.statistics().reflector.failures == len(errors)


@in_virtual_time
async def test_a_watch_error_handler_that_raises_harms_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = source_of("a")
    source.fail_watches(REFUSED)

    def broken(error: KinformError) -> None:
        raise ValueError("no")

    async with SharedInformer(source, name="things", watch_error_handler=broken) as informer:
        await informer.wait_synced(30)
    assert "things: the watch error handler raised" in caplog.text
