"""Everybody who listens: added, told, resynced, removed, stopped."""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import Iterable

import pytest

from kinform.cache.events import Added, Event, Updated
from kinform.cache.handlers import EventHandler, handler
from kinform.cache.processor import Processor, Registration
from kinform.errors import UsageError
from kinform.meta import Entry
from kinform.sansio.notifications import Notification
from kinform.testing import in_virtual_time, virtual_time
from tests.cache.support_entries import entry_of
from tests.cache.support_processor import (
    all_settled,
    changed,
    gone,
    hearing,
    in_stepping_time,
    new,
    pods,
    running,
    stepping_loop,
    words,
)


def named(name: str) -> EventHandler[str]:
    return handler(on_add=lambda event: None, name=name)


def awaiting(seconds: float, done: list[str]) -> EventHandler[str]:
    """Return a handler whose callbacks take ``seconds`` and say how they ended."""

    async def wait(event: Event[str]) -> None:
        done.append(f"{event.key} begun")
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            done.append(f"{event.key} cancelled")
            raise
        done.append(f"{event.key} done")

    return handler(on_add=wait, on_update=wait, on_delete=wait, name="awaiting")


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
        assert done == ["a begun", "a done", "b begun", "b done", "c begun"]
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


# --- resyncs --------------------------------------------------------------------------------------


class Resyncing:
    """A processor whose resyncs lead to all entries being told again, as an informer's do."""

    def __init__(self, entries: Iterable[Entry[str]] = (), *, delay: float = 0) -> None:
        self.entries = list(entries)
        self.delay = delay
        self.asked_at: list[float] = []
        self.processor: Processor[str] = Processor(name="pods", resync=self.resync)
        self.loop = asyncio.get_running_loop()

    def resync(self) -> None:
        self.asked_at.append(round(self.loop.time(), 3))
        self.loop.call_later(self.delay, self.processor.distribute_resync, self.entries)

    def add(self, period: float | None) -> list[float]:
        """Add a handler with that period; return when it is told of a resync of one object."""
        told_at: list[float] = []

        def on_update(event: Updated[str]) -> None:
            assert event.old is event.new
            told_at.append(round(self.loop.time(), 3))

        self.processor.add(
            handler(on_update=on_update, resync_period=period), present=self.entries, synced=True
        )
        return told_at


@pytest.mark.parametrize("delay", [0, 1], ids=["CG-I02", "CG-I03 started late"])
@in_virtual_time
async def test_each_handler_is_resynced_at_its_own_period(delay: float) -> None:
    """CG-I02, CG-I03: never, every 2 s and every 3 s, counted from the start."""
    resyncing = Resyncing(pods("pod1", "pod2"))
    never, second, third = resyncing.add(None), resyncing.add(2), resyncing.add(3)
    await asyncio.sleep(delay)
    async with running(resyncing.processor):
        await asyncio.sleep(6.5)
    assert never == []
    assert second == [delay + at for at in (2, 2, 4, 4, 6, 6)]
    assert third == [delay + at for at in (3, 3, 6, 6)]


@in_virtual_time
async def test_a_shorter_period_of_one_handler_is_none_of_the_others_business() -> None:
    """CG-I04: client-go lowers one period for all, or raises the late one's. Here each has one."""
    resyncing = Resyncing(pods("pod1"))
    day, never = resyncing.add(43_200), resyncing.add(None)
    async with running(resyncing.processor):
        await asyncio.sleep(10)
        minute = resyncing.add(60)
        odd = resyncing.add(55)
        short = resyncing.add(5)
        await asyncio.sleep(131)
    assert (day, never) == ([], [])
    assert minute == [70, 130]
    assert odd == [65, 120]
    assert short == [10 + 5 * n for n in range(1, 27)]
    assert len(resyncing.asked_at) == 2 + 2 + 26


@in_virtual_time
async def test_a_resync_that_is_late_is_told_once_to_all_who_wait_for_one() -> None:
    resyncing = Resyncing(pods("pod1"), delay=2.5)
    two, three, five = resyncing.add(2), resyncing.add(3), resyncing.add(5)
    async with running(resyncing.processor):
        await asyncio.sleep(5.2)
    assert resyncing.asked_at == [2, 3, 4, 5]
    assert (two, three, five) == ([4.5], [4.5], [])


@in_virtual_time
async def test_a_resync_nobody_asked_for_is_told_to_nobody() -> None:
    resyncing = Resyncing(pods("pod1"))
    told = resyncing.add(10)
    async with running(resyncing.processor):
        resyncing.processor.distribute_resync(resyncing.entries)
        await all_settled()
        assert told == []


@pytest.mark.parametrize("how", ["removed", "stopped"])
@in_virtual_time
async def test_a_handler_that_is_gone_asks_for_no_resync(how: str) -> None:
    asked: list[None] = []
    processor: Processor[str] = Processor(name="pods", resync=lambda: asked.append(None))
    registration = processor.add(hearing([], resync_period=10), present=(), synced=True)
    async with running(processor):
        await asyncio.sleep(5)
        if how == "removed":
            registration.remove()
            await asyncio.sleep(100)
    await asyncio.sleep(100)
    assert asked == []


def test_a_loop_that_was_held_up_does_not_make_up_for_the_resyncs_it_missed() -> None:
    asked_at: list[float] = []

    async def main() -> None:
        loop = stepping_loop()
        processor: Processor[str] = Processor(
            name="pods", resync=lambda: asked_at.append(loop.time())
        )
        processor.add(hearing([], resync_period=10), present=(), synced=True)
        async with running(processor):
            for seconds in (10, 10, 35, 5, 5):
                for _ in range(3):
                    await asyncio.sleep(0)
                loop.take(seconds)
            for _ in range(3):
                await asyncio.sleep(0)

    in_stepping_time(main())
    assert asked_at == [10, 20, 55, 65]


@in_virtual_time
async def test_whoever_cares_for_no_resync_gives_no_function_for_it() -> None:
    processor: Processor[str] = Processor(name="pods")
    processor.add(hearing([], resync_period=10), present=(), synced=True)
    async with running(processor):
        await asyncio.sleep(25)


# --- the end --------------------------------------------------------------------------------------


@in_virtual_time
async def test_stopping_lets_the_callback_that_runs_end_and_begins_no_other() -> None:
    done: list[str] = []
    processor: Processor[str] = Processor(name="pods")
    processor.add(awaiting(5, done), present=pods("a", "b"), synced=True)
    loop = asyncio.get_running_loop()
    async with running(processor, grace=10):
        await all_settled()
        processor.add(awaiting(5, done), present=pods("c"), synced=True)
        began = loop.time()
    assert loop.time() - began == pytest.approx(5, abs=0.001)
    assert done == ["a begun", "a done"]
    processor.distribute([new("d")])
    assert [figures.pending for figures in processor.statistics()] == [0, 0]


@in_virtual_time
async def test_stopping_cancels_a_callback_that_exceeds_the_grace(
    caplog: pytest.LogCaptureFixture,
) -> None:
    done: list[str] = []
    processor: Processor[str] = Processor(name="pods")
    processor.add(awaiting(50, done), present=pods("a", "b"), synced=True)
    processor.add(awaiting(1, done), present=pods("c", "d"), synced=True)
    loop = asyncio.get_running_loop()
    async with running(processor, grace=10):
        await all_settled()
        began = loop.time()
    assert loop.time() - began == pytest.approx(10, abs=0.001)
    assert done == ["a begun", "c begun", "c done", "a cancelled"]
    assert [figures.errors for figures in processor.statistics()] == [0, 0]
    assert caplog.records == []


@in_virtual_time
async def test_the_last_callback_of_a_removed_handler_has_the_same_grace() -> None:
    done: list[str] = []
    processor: Processor[str] = Processor(name="pods")
    patient = processor.add(awaiting(2, done), present=pods("a"), synced=True)
    endless = processor.add(awaiting(50, done), present=pods("b"), synced=True)
    async with running(processor, grace=3):
        await all_settled()
        patient.remove()
        endless.remove()
    assert done == ["a begun", "b begun", "a done", "b cancelled"]


def ignoring(release: asyncio.Event, name: str = "deaf") -> EventHandler[str]:
    """Return a handler that does not hear that it is cancelled."""

    async def wait(event: Added[str]) -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        raise ValueError("too late")

    return handler(on_add=wait, name=name)


@pytest.mark.parametrize("grace", [0.0, 7.0, -1.0])
@pytest.mark.parametrize("way", ["stop", "cancel"])
@in_virtual_time
async def test_a_callback_that_ignores_its_cancellation_is_abandoned_by_name(
    grace: float, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It is over within the grace and half a second, whatever the handler does."""
    release = asyncio.Event()
    processor: Processor[str] = Processor(name="pods")
    processor.add(ignoring(release), present=pods("a", "b"), synced=True)
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(processor.run())
        await all_settled()
        began = loop.time()
        if way == "stop":
            await processor.stop(grace)
        else:
            grace = 0.0
            task.cancel()
    assert max(grace, 0) <= loop.time() - began <= max(grace, 0) + 0.5
    assert task.cancelled() == (way == "cancel")
    said = [record.getMessage() for record in caplog.records]
    assert said == ["handler deaf ignores its cancellation and is abandoned"]
    release.set()
    await all_settled()
    (figures,) = processor.statistics()
    assert (figures.delivered, figures.busy_for) == (1, None)


@in_virtual_time
async def test_cancelled_again_and_again_it_still_waits_for_callbacks_to_clean_up() -> None:
    """Each handler gets its quarter of a second, however often everybody is cancelled."""
    done: list[str] = []
    processor: Processor[str] = Processor(name="pods")

    async def wait(event: Added[str]) -> None:
        try:
            await asyncio.sleep(100)
        finally:
            await asyncio.sleep(0.2)
            done.append("cleaned up")

    processor.add(handler(on_add=wait, name="tidy"), present=pods("a"), synced=True)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(processor.run())
        await all_settled()
        supervisors = [one for one in asyncio.all_tasks() if one.get_name() == "pods: tidy"]
        for _ in range(3):
            task.cancel()
            supervisors[0].cancel()
            await asyncio.sleep(0.01)
    assert (done, task.cancelled()) == (["cleaned up"], True)


@in_virtual_time
async def test_cancelling_run_in_the_middle_of_a_stop_cuts_the_grace_short() -> None:
    done: list[str] = []
    processor: Processor[str] = Processor(name="pods")
    processor.add(awaiting(50, done), present=pods("a"), synced=True)
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(processor.run())
        await all_settled()
        stopping = group.create_task(processor.stop(40))
        await asyncio.sleep(1)
        task.cancel()
        await stopping
    assert loop.time() == pytest.approx(1, abs=0.001)
    assert (done, task.cancelled()) == (["a begun", "a cancelled"], True)


@in_virtual_time
async def test_a_stop_that_is_cancelled_goes_on_and_another_waits_for_its_end() -> None:
    done: list[str] = []
    processor: Processor[str] = Processor(name="pods")
    processor.add(awaiting(5, done), present=pods("a"), synced=True)
    async with asyncio.TaskGroup() as group:
        group.create_task(processor.run())
        await all_settled()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await processor.stop(10)
        assert done == ["a begun"]
        await processor.stop(0)
        assert done == ["a begun", "a done"]
        await processor.stop(0)


@in_virtual_time
async def test_a_callback_may_stop_the_processor() -> None:
    """F-R39: it waits for the others, not for itself, whose grace runs all the same."""
    done: list[str] = []
    processor: Processor[str] = Processor(name="pods")

    async def stop(event: Added[str]) -> None:
        await asyncio.sleep(1)
        await processor.stop(3)
        done.append("stopped")
        try:
            await asyncio.sleep(100)
        finally:
            done.append("cancelled")

    processor.add(handler(on_add=stop), present=pods("a", "b"), synced=True)
    processor.add(awaiting(2, done), present=pods("c", "d"), synced=True)
    loop = asyncio.get_running_loop()
    await processor.run()
    assert loop.time() == pytest.approx(4, abs=0.001)
    assert done == ["c begun", "c done", "stopped", "cancelled"]


@in_virtual_time
async def test_stopped_before_it_ran_it_does_not_run() -> None:
    heard: list[Event[str]] = []
    processor: Processor[str] = Processor(name="pods")
    processor.add(hearing(heard), present=pods("a"), synced=True)
    await processor.stop(10)
    await processor.run()
    assert heard == []


@in_virtual_time
async def test_it_runs_once() -> None:
    processor: Processor[str] = Processor(name="pods")
    async with running(processor):
        with pytest.raises(UsageError, match="pods was started already; it runs once"):
            await processor.run()
    with pytest.raises(UsageError, match="pods was started already; it runs once"):
        await processor.run()


@in_virtual_time
async def test_a_handler_is_not_added_to_a_stopped_processor() -> None:
    """CG-I16."""
    processor: Processor[str] = Processor(name="pods")
    async with running(processor):
        pass
    complaint = "handler 'web' was not added to pods because it has stopped already"
    with pytest.raises(UsageError, match=f"^{complaint}$"):
        processor.add(named("web"), present=(), synced=True)


@in_virtual_time
async def test_a_callback_that_ends_the_program_takes_the_others_along() -> None:
    class Fatal(BaseException):
        pass

    async def fail(event: Added[str]) -> None:
        await asyncio.sleep(1)
        raise Fatal

    done: list[str] = []
    processor: Processor[str] = Processor(name="pods")
    processor.add(handler(on_add=fail), present=pods("a"), synced=True)
    processor.add(awaiting(50, done), present=pods("a"), synced=True)
    with pytest.raises(Fatal):
        await processor.run()
    assert done == ["a begun", "a cancelled"]
    with pytest.raises(UsageError, match="stopped already"):
        processor.add(named("late"), present=(), synced=True)


@in_virtual_time
async def test_cancelled_at_every_turn_it_leaves_nothing_behind() -> None:
    """F-R37: virtual time complains of every task that is left."""
    for turns in range(25):
        done: list[str] = []
        processor: Processor[str] = Processor(name="pods")
        processor.add(awaiting(1, done), present=pods("a", "b"), synced=True)
        processor.add(hearing([], resync_period=1), present=pods("a"), synced=True)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(processor.run())
            for turn in range(turns):
                await asyncio.sleep(turn // 8)
                if turn == turns // 2:
                    processor.add(awaiting(1, done), present=pods("c"), synced=True)
            task.cancel()
        begun = sum(word.endswith("begun") for word in done)
        assert begun == len(done) - begun
        assert task.cancelled()


def test_nothing_is_left_that_could_wake_the_loop() -> None:
    """Neither a resync nor the watch over a long callback: a loop with a timer is no deadlock."""
    loops: list[asyncio.AbstractEventLoop] = []

    async def main() -> None:
        loops.append(asyncio.get_running_loop())
        processor: Processor[str] = Processor(name="pods")
        processor.add(awaiting(1, []), present=pods("a"), synced=True)
        processor.add(hearing([], resync_period=10), present=(), synced=True)
        async with running(processor):
            await asyncio.sleep(2)
        await asyncio.Event().wait()

    with pytest.raises(virtual_time.Deadlock):
        virtual_time.run(main(), timeout=None)
    assert loops[0].time() == pytest.approx(2)


# --- memory ---------------------------------------------------------------------------------------


@pytest.mark.slow
@in_virtual_time
async def test_a_million_updates_and_a_handler_that_is_blocked() -> None:
    """F-R34: 10^6 updates of 10^3 keys. What waits is bounded by keys; then all is told."""
    release = asyncio.Event()
    final: dict[str, int] = {}

    async def wait(event: Updated[int]) -> None:
        await release.wait()
        assert final.get(event.key.name, 0) == event.old
        final[event.key.name] = event.new

    processor: Processor[int] = Processor(name="pods")
    present = [entry_of(f"pod-{n}", 0, 0) for n in range(1000)]
    registration = processor.add(handler(on_update=wait), present=present, synced=True)
    async with asyncio.TaskGroup() as group:
        group.create_task(processor.run())
        await registration.wait_synced()
        objects = len(gc.get_objects())
        for version in range(1, 1001):
            after = [Entry(entry.metadata, version) for entry in present]
            processor.distribute(
                [
                    Notification(new.metadata.key, old, new)
                    for old, new in zip(present, after, strict=True)
                ]
            )
            present = after
            await asyncio.sleep(0)
        (figures,) = processor.statistics()
        assert figures.pending <= 1000
        assert figures.peak <= 1024
        assert figures.pending + figures.coalesced + figures.delivered == 1_001_000
        assert len(gc.get_objects()) - objects < 10_000
        release.set()
        await all_settled()
        assert final == {f"pod-{n}": 1000 for n in range(1000)}
        assert processor.statistics()[0].pending == 0
        await processor.stop(0)


@in_virtual_time
async def test_what_was_there_at_first_is_not_merged_with_what_came_later() -> None:
    """F-R34: has_synced stands between the two, so a key can wait on either side of it."""
    release = asyncio.Event()
    heard: list[str] = []
    synced: list[bool] = []

    async def wait(event: Event[str]) -> None:
        await release.wait()
        heard.extend(words([event]))
        synced.append(registration.has_synced)

    processor: Processor[str] = Processor(name="pods")
    names = [f"pod-{n}" for n in range(2000)]
    blocked = handler(on_add=wait, on_update=wait, on_delete=wait)
    registration = processor.add(blocked, present=pods(*names), synced=True)
    async with running(processor):
        for version in range(2, 12):
            processor.distribute([changed(name, version) for name in names])
        await all_settled()
        assert processor.statistics()[0].pending == 3999
        release.set()
        await all_settled()
    later = [f"{name}@1>{name}@11" for name in names]
    assert heard == [f"*{name}@1" for name in names] + later
    assert synced == [False] * 2000 + [True] * 2000
