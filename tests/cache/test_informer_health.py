"""What an informer tells of itself: whether it can be believed, and what it has done."""

from __future__ import annotations

import asyncio
import dataclasses
import logging

import pytest

from kinform.cache.processor.events import Added
from kinform.cache.reflector_options import ReflectorOptions
from kinform.cache.shared_informer import SharedInformer
from kinform.objects.object import Object
from kinform.sansio.queue.delta_fifo import DeltaFIFO
from kinform.sansio.queue.interface import QueueFactory
from kinform.sansio.queue.real_fifo import RealFIFO
from kinform.testing import in_virtual_time
from tests.cache.support_informer import CUT, REFUSED, quiet, recorded, source_of, thing

ALONE = ReflectorOptions(probe_period=None, idle_timeout=None)
"""Nothing is asked beside the watch, so that silence is silence."""


# --- healthy


@in_virtual_time
async def test_it_is_healthy_from_its_sync_to_its_end() -> None:
    source = source_of("a")
    source.latency = 1
    informer = SharedInformer(source)
    assert not informer.healthy()
    async with informer:
        assert not informer.healthy()
        await informer.wait_synced(5)
        assert informer.healthy()
        assert informer.healthy(0.5)
    assert not informer.healthy()


@in_virtual_time
async def test_synced_is_not_enough_where_the_server_has_fallen_silent() -> None:
    """F-R44."""
    source = source_of("a")
    async with SharedInformer(source, options=ALONE) as informer:
        await informer.wait_synced(5)
        source.freeze_watches()
        source.hang_watches()
        source.hang_lists()
        await asyncio.sleep(100)
        assert informer.has_synced
        assert informer.healthy(101)
        assert not informer.healthy(99)
        assert informer.healthy()  # by default it may be as long as a quiet watch lives
        await asyncio.sleep(600)
        assert not informer.healthy()
        source.heal()
        recovered: list[bool] = []
        for _ in range(190):  # a watch that hangs ends after 120 s, the backoff takes up to 60 s
            await asyncio.sleep(1)
            recovered.append(informer.healthy(60))
        assert any(recovered)


@in_virtual_time
async def test_what_is_heard_counts_be_it_an_event_a_bookmark_or_a_new_watch() -> None:
    source = source_of("a")
    async with SharedInformer(source, options=ALONE) as informer:
        await informer.wait_synced(5)
        for sign in (lambda: source.add(thing("b")), source.bookmark, source.close_watches):
            await asyncio.sleep(50)
            assert not informer.healthy(40)
            sign()
            await asyncio.sleep(5)
            assert informer.healthy(40)


@in_virtual_time
async def test_a_server_that_only_fails_is_not_heard() -> None:
    source = source_of("a")
    async with SharedInformer(source, options=ALONE) as informer:
        await informer.wait_synced(5)
        source.fail_lists(REFUSED, forever=True)
        source.fail_watches(REFUSED, forever=True)
        source.close_watches(CUT)
        await asyncio.sleep(200)
        assert not informer.healthy(180)
        assert informer.has_synced
        source.heal()
        await asyncio.sleep(120)
        assert informer.healthy(180)


# --- figures


@pytest.mark.parametrize("queue", [RealFIFO, DeltaFIFO])
@in_virtual_time
async def test_the_figures_are_those_of_what_happened(queue: QueueFactory) -> None:
    source = source_of("a", "b")
    informer = SharedInformer(source, name="things", queue=queue)
    recorded(informer, "one")
    recorded(informer, "two")

    def broken(event: Added[Object]) -> None:
        raise ValueError("no")

    informer.add_event_handler(on_add=broken, name="broken")
    async with informer:
        await informer.wait_synced(5)
        source.modify(thing("a", "1"))
        source.delete("b")
        await quiet()
        figures = informer.statistics()
    assert (figures.name, figures.objects, figures.resource_version) == ("things", 1, "5")
    assert (figures.has_synced, figures.unreadable, figures.replayed) == (True, 0, 0)
    assert figures.index_errors == {}
    assert (figures.reflector.lists, figures.reflector.watches) == (1, 1)
    assert figures.reflector.events == 2
    assert figures.queue.waiting == 0
    assert [one.name for one in figures.handlers] == ["one", "two", "broken"]
    assert [one.delivered for one in figures.handlers] == [4, 4, 4]
    assert [one.errors for one in figures.handlers] == [0, 0, 2]
    assert all(one.has_synced for one in figures.handlers)  # who failed was told all the same
    with pytest.raises(dataclasses.FrozenInstanceError):
        figures.objects = 3  # type: ignore[misc]


@in_virtual_time
async def test_they_can_be_had_at_any_time() -> None:
    informer = SharedInformer(source_of("a"))
    assert informer.statistics().objects == 0
    assert informer.last_sync_resource_version == ""
    async with informer:
        await informer.wait_synced(5)
    assert informer.statistics().objects == 1


@in_virtual_time
async def test_an_index_function_that_fails_is_logged_once_and_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its objects are cached all the same; no log shows what they hold."""
    source = source_of("a", "b", "c")

    def broken(obj: Object) -> str:
        if obj.name != "c":
            raise KeyError("spec")
        return "found"

    informer = SharedInformer(source, name="things", indexers={"broken": broken})
    recorder = recorded(informer)
    with caplog.at_level(logging.ERROR, "kinform.cache.shared_informer"):
        async with informer:
            await informer.wait_synced(5)
            source.modify(thing("a", "1"))
            await quiet()
    assert len(informer.lister.list()) == 3
    assert [obj.name for obj in informer.indexer.by_index("broken", "found")] == ["c"]
    assert informer.statistics().index_errors == {"broken": 3}
    assert len(recorder.told) == 4
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith(
        "things: index 'broken' failed on default/a: it raised KeyError; the object is cached"
    )
