"""Everybody who listens: added, told, synced, removed."""

from __future__ import annotations

import asyncio
import random

import pytest

from kinform.cache.processor.events import Added, Event
from kinform.cache.processor.handlers import EventHandler, handler
from kinform.cache.processor.processor import Processor, Registration
from kinform.errors import UsageError
from kinform.testing import in_virtual_time
from tests.cache.support_processor import (
    all_settled,
    awaiting,
    changed,
    gone,
    hearing,
    named,
    new,
    pods,
    running,
    words,
)

# --- who is told, and of what -------------------------------------------------------------------


@in_virtual_time
async def test_all_are_told_all_in_order_and_first_of_what_is_there() -> None:
    early: list[Event[str]] = []
    late: list[Event[str]] = []
    processor: Processor[str] = Processor(name="pods")
    processor.add(hearing(early), present=(), synced=False)
    async with running(processor):
        processor.distribute([new("a", initial=True), new("b", initial=True)])
        processor.upstream_synced()
        await all_settled()
        processor.add(hearing(late), present=pods("a", "b"), synced=True)
        processor.distribute([changed("a"), gone("b", unknown=True)])
        processor.distribute([new("b")])
        await all_settled()
    assert words(early) == ["*a@1", "*b@1", "a@1>a@2", "-b@1?", "+b@1"]
    assert words(late) == words(early)


@in_virtual_time
async def test_what_is_told_before_it_runs_waits() -> None:
    heard: list[Event[str]] = []
    processor: Processor[str] = Processor(name="pods")
    processor.add(hearing(heard), present=pods("a"), synced=True)
    processor.distribute([changed("a")])
    await all_settled()
    assert heard == []
    assert processor.statistics()[0].pending == 2
    async with running(processor):
        await all_settled()
    assert words(heard) == ["*a@1", "a@1>a@2"]


@in_virtual_time
async def test_nothing_to_distribute_wakes_nobody() -> None:
    processor: Processor[str] = Processor(name="pods")
    processor.add(hearing([]), present=(), synced=False)
    async with running(processor):
        processor.distribute([])
        processor.distribute([new("a")])
        await all_settled()
        assert processor.statistics()[0].delivered == 1


@in_virtual_time
async def test_handlers_are_removed_before_the_start() -> None:
    """CG-I10."""
    processor: Processor[str] = Processor(name="pods")
    registrations = [processor.add(named(name), present=(), synced=False) for name in "ab"]
    counts = [len(processor.statistics())]
    for registration in registrations:
        processor.remove(registration)
        counts.append(len(processor.statistics()))
    assert counts == [2, 1, 0]


@in_virtual_time
async def test_a_foreign_handler_is_not_removed() -> None:
    """CG-I11."""
    ours: Processor[str] = Processor(name="ours")
    theirs: Processor[str] = Processor(name="theirs")
    ours.add(named("a"), present=(), synced=True)
    registration = theirs.add(named("a"), present=(), synced=True)
    ours.remove(registration)
    assert (len(ours.statistics()), len(theirs.statistics())) == (1, 1)
    assert not registration.is_removed
    assert registration in theirs
    assert registration not in ours


@in_virtual_time
async def test_one_handler_added_twice_is_told_twice_and_removed_one_by_one() -> None:
    """CG-I12."""
    heard: list[Event[str]] = []
    processor: Processor[str] = Processor(name="pods")
    same = hearing(heard)
    first = processor.add(same, present=(), synced=True)
    second = processor.add(same, present=(), synced=True)
    async with running(processor):
        for registration in (first, second):
            processor.distribute([new("a")])
            await all_settled()
            registration.remove()
        processor.distribute([new("b")])
        await all_settled()
    assert words(heard) == ["+a@1"] * 3


@in_virtual_time
async def test_removing_twice_is_fine_also_after_the_end() -> None:
    """CG-I13, CG-I17."""
    processor: Processor[str] = Processor(name="pods")
    first = processor.add(named("a"), present=(), synced=True)
    second = processor.add(named("b"), present=(), synced=True)
    async with running(processor):
        first.remove()
        first.remove()
        await first.shut_down()
        assert (first.is_removed, second.is_removed) == (True, False)
    second.remove()
    first.remove()
    assert (first.is_removed, second.is_removed) == (True, True)


@pytest.mark.slow
@in_virtual_time
async def test_a_hundred_tasks_that_add_and_remove_handlers_all_the_time() -> None:
    """CG-I14: through 10,000 events and a stop. The only complaint is that it has stopped."""
    processor: Processor[str] = Processor(name="pods")
    complaints: list[str] = []
    chance = random.Random(14)

    async def abuse() -> None:
        mine: list[Registration[str]] = []
        try:
            while True:
                await asyncio.sleep(chance.random() / 100)
                if mine and chance.random() < 0.5:
                    mine.pop(chance.randrange(len(mine))).remove()
                else:
                    mine.append(processor.add(hearing([]), present=pods("a"), synced=True))
        except UsageError as exc:
            complaints.append(str(exc))

    async with asyncio.TaskGroup() as group:
        group.create_task(processor.run())
        for _ in range(100):
            group.create_task(abuse())
        for batch in range(100):
            processor.distribute([changed("a", batch * 100 + n) for n in range(100)])
            await asyncio.sleep(0.001)
        await processor.stop(1)
    told = "handler 'hearing' was not added to pods because it has stopped already"
    assert complaints == [told] * 100


@in_virtual_time
async def test_after_removal_nothing_is_heard() -> None:
    """CG-I18: what waited is dropped."""
    heard: list[Event[str]] = []
    processor: Processor[str] = Processor(name="pods")
    registration = processor.add(hearing(heard), present=(), synced=True)
    async with running(processor):
        processor.distribute([new("a")])
        await all_settled()
        processor.distribute([new("b"), new("c")])
        registration.remove()
        processor.distribute([new("d")])
        await all_settled()
    assert words(heard) == ["+a@1"]


@in_virtual_time
async def test_a_handler_may_remove_itself() -> None:
    heard: list[str] = []
    processor: Processor[str] = Processor(name="pods")

    def once(event: Added[str]) -> None:
        heard.append(event.obj)
        registration.remove()

    registration = processor.add(handler(on_add=once), present=pods("a", "b"), synced=True)
    async with running(processor):
        await all_settled()
        assert (heard, processor.statistics()) == (["a@1"], ())


@in_virtual_time
async def test_a_handler_may_add_and_remove_others() -> None:
    heard: list[Event[str]] = []
    processor: Processor[str] = Processor(name="pods")

    def swap(event: Added[str]) -> None:
        victim.remove()
        processor.add(hearing(heard), present=pods("late"), synced=True)

    processor.add(handler(on_add=swap), present=(), synced=True)
    victim = processor.add(hearing(heard), present=(), synced=True)
    async with running(processor):
        processor.distribute([new("a")])
        await all_settled()
    assert words(heard) == ["*late@1"]


@in_virtual_time
async def test_removal_does_not_wait_for_the_callback_that_runs() -> None:
    """CG-I22: and the callback ends in peace."""
    done: list[str] = []
    processor: Processor[str] = Processor(name="pods")
    registration = processor.add(awaiting(5, done), present=pods("a", "b"), synced=True)
    async with running(processor):
        await all_settled()
        registration.remove()
        assert done == ["a begun"]
        await asyncio.sleep(6)
        assert done == ["a begun", "a done"]


@in_virtual_time
async def test_shutting_down_waits_for_the_callback_that_runs() -> None:
    """CG-I23."""
    done: list[str] = []
    processor: Processor[str] = Processor(name="pods")
    registration = processor.add(awaiting(5, done), present=pods("a", "b"), synced=True)
    async with running(processor):
        await all_settled()
        await registration.shut_down()
        assert done == ["a begun", "a done"]
        assert registration.is_removed


@in_virtual_time
async def test_a_shut_down_that_is_cancelled_leaves_the_callback_alone() -> None:
    done: list[str] = []
    processor: Processor[str] = Processor(name="pods")
    registration = processor.add(awaiting(5, done), present=pods("a"), synced=True)
    async with running(processor):
        await all_settled()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await registration.shut_down()
        assert registration.is_removed
        await registration.shut_down()
        assert done == ["a begun", "a done"]


@pytest.mark.parametrize("added", ["never started", "before the start", "after the start"])
@in_virtual_time
async def test_shutting_down_returns_wherever_the_handler_is_in_its_life(added: str) -> None:
    """CG-I24."""
    processor: Processor[str] = Processor(name="pods")
    if added == "never started":
        await processor.add(named("a"), present=pods("a"), synced=True).shut_down()
        return
    registration = processor.add(named("a"), present=pods("a"), synced=True)
    async with running(processor):
        if added == "after the start":
            registration = processor.add(named("b"), present=pods("a"), synced=True)
        await registration.shut_down()
        assert registration.is_removed
        assert not registration.has_synced


@in_virtual_time
async def test_a_callback_cannot_wait_for_its_own_end() -> None:
    """CG-I24: it is told so, and nothing else happens."""
    complaints: list[str] = []
    processor: Processor[str] = Processor(name="pods")

    async def end(event: Added[str]) -> None:
        try:
            await registration.shut_down()
        except UsageError as exc:
            complaints.append(str(exc))

    registration = processor.add(handler(on_add=end, name="own"), present=pods("a"), synced=True)
    async with running(processor):
        await registration.wait_synced()
        assert complaints == ["handler 'own' cannot wait for its own callback; use remove() there"]
        assert not registration.is_removed
        await registration.shut_down()


@pytest.mark.parametrize("when", ["before", "later"])
@in_virtual_time
async def test_nothing_is_left_running_of_a_handler_that_is_removed(when: str) -> None:
    """CG-I20: whether it was added before the start or later."""
    processor: Processor[str] = Processor(name="pods")
    tasks = len(asyncio.all_tasks()) + 1  # and the one that runs the processor
    added: list[Registration[str]] = []
    if when == "before":
        added.append(processor.add(named("a"), present=pods("a"), synced=True))
    async with running(processor):
        if when == "later":
            added.append(processor.add(named("a"), present=pods("a"), synced=True))
        await all_settled()
        assert len(asyncio.all_tasks()) == tasks + 2
        added[0].remove()
        await all_settled()
        assert len(asyncio.all_tasks()) == tasks


@in_virtual_time
async def test_nothing_runs_where_nothing_was_started() -> None:
    """CG-I20: virtual time complains of every task that is left."""
    processor: Processor[str] = Processor(name="pods")
    processor.add(named("a"), present=pods("a"), synced=True)
    assert len(asyncio.all_tasks()) == 1


# --- synced ---------------------------------------------------------------------------------------


@in_virtual_time
async def test_a_handler_has_synced_after_its_own_first_events() -> None:
    """CG-I19: false before it runs; a late handler hears what is there, then what is new."""
    done: list[str] = []
    processor: Processor[str] = Processor(name="pods")
    early = processor.add(awaiting(1, done), present=(), synced=False)
    processor.distribute([new("a", initial=True), new("b", initial=True)])
    processor.upstream_synced()
    processor.distribute([new("c")])
    await all_settled()
    assert not early.has_synced
    async with running(processor):
        await asyncio.sleep(1.5)
        assert not early.has_synced
        await early.wait_synced()
        assert done == ["a begun", "a done", "b begun", "b done"]
        heard: list[Event[str]] = []
        late = processor.add(hearing(heard), present=pods("a", "b", "c"), synced=True)
        assert not late.has_synced
        await late.wait_synced(1)
        assert words(heard) == ["*a@1", "*b@1", "*c@1"]
        processor.distribute([new("d")])
        await all_settled()
        assert (early.has_synced, late.has_synced) == (True, True)


@pytest.mark.parametrize(
    "upstream, finished, synced",
    [
        pytest.param(None, True, False, id="CG-I27 all handled, upstream not synced"),
        pytest.param("after", False, False, id="CG-I27 upstream synced, one not handled"),
        pytest.param("before", False, False, id="CG-I27 upstream synced at once, one not handled"),
        pytest.param(None, False, False, id="CG-I27 neither"),
        pytest.param("after", True, True, id="CG-I27 all handled, then upstream"),
        pytest.param("before", True, True, id="CG-I27 upstream, then all handled"),
    ],
)
@in_virtual_time
async def test_synced_is_upstream_synced_and_all_handled_in_either_order(
    upstream: str | None, finished: bool, synced: bool
) -> None:
    release = asyncio.Event()

    async def wait(event: Added[str]) -> None:
        await release.wait()

    processor: Processor[str] = Processor(name="pods")
    registration = processor.add(handler(on_add=wait), present=(), synced=False)
    processor.distribute([new("a", initial=True)])
    async with running(processor):
        if upstream == "before":
            processor.upstream_synced()
        await all_settled()
        if finished:
            release.set()
        await all_settled()
        if upstream == "after":
            processor.upstream_synced()
        await all_settled()
        assert registration.has_synced == synced


@in_virtual_time
async def test_no_handler_has_synced_early_however_long_each_event_takes() -> None:
    """CG-I28: many handlers at once, each with events under way when the others are done."""
    chance = random.Random(28)
    processor: Processor[str] = Processor(name="pods")
    handled = [0] * 50

    def handling(who: int) -> EventHandler[str]:
        async def handle(event: Added[str]) -> None:
            await asyncio.sleep(chance.random())
            handled[who] += 1

        return handler(on_add=handle)

    async def watch(who: int, registration: Registration[str]) -> None:
        await registration.wait_synced()
        assert handled[who] == 20

    async with running(processor), asyncio.TaskGroup() as group:
        for who in range(50):
            registration = processor.add(handling(who), present=(), synced=False)
            group.create_task(watch(who, registration))
        processor.distribute([new(f"pod-{n}", initial=True) for n in range(20)])
        processor.upstream_synced()


@in_virtual_time
async def test_to_sync_twice_changes_nothing() -> None:
    """CG-I29: where client-go counts, and panics below zero, we have one mark for each handler."""
    processor: Processor[str] = Processor(name="pods")
    early = processor.add(named("early"), present=pods("a"), synced=False)
    late = processor.add(named("late"), present=pods("a"), synced=True)
    async with running(processor):
        for _ in range(3):
            processor.upstream_synced()
            await all_settled()
            assert (early.has_synced, late.has_synced) == (True, True)
        processor.distribute([new("b")])
        await all_settled()
        assert [figures.delivered for figures in processor.statistics()] == [2, 2]
        assert (early.has_synced, late.has_synced) == (True, True)


@in_virtual_time
async def test_waiting_for_sync_has_a_limit() -> None:
    processor: Processor[str] = Processor(name="pods")
    registration = processor.add(named("a"), present=(), synced=False)
    async with running(processor):
        with pytest.raises(TimeoutError):
            await registration.wait_synced(5)
        processor.upstream_synced()
        await registration.wait_synced(5)
    await registration.wait_synced()


@pytest.mark.parametrize("how", ["removed", "stopped"])
@in_virtual_time
async def test_waiting_for_a_sync_that_will_never_be_ends(how: str) -> None:
    processor: Processor[str] = Processor(name="pods")
    registration = processor.add(named("web"), present=(), synced=False)

    async def wait() -> None:
        with pytest.raises(UsageError, match="handler 'web' was removed or stopped before it had"):
            await registration.wait_synced()

    async with asyncio.TaskGroup() as group:
        group.create_task(processor.run())
        group.create_task(wait())
        await all_settled()
        if how == "removed":
            registration.remove()
            await all_settled()
        await processor.stop(0)
