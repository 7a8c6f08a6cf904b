"""SharedInformer's life: started once, stopped from any state, and nothing is left behind.

That nothing is left is checked in every test here: virtual time ends with an error if a task
outlives it.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final, Never, TypeAlias

import pytest

from kinform.cache.listwatch import ListWatch
from kinform.cache.processor.events import Added
from kinform.cache.reflector_options import ReflectorOptions
from kinform.cache.shared_informer import SharedInformer
from kinform.errors import UsageError
from kinform.objects.object import Object
from kinform.rest.options import ListOptions
from kinform.rest.results import ListResult
from kinform.testing import FakeListWatch, in_virtual_time
from tests.cache.support_informer import (
    REFUSED,
    Recorder,
    names,
    quiet,
    recorded,
    source_of,
    thing,
)

GRACE: Final = 2.0
"""What these tests give callbacks to end in."""
MARGIN: Final = 0.5
"""What a stop may take beyond that, whatever happens."""


def clock() -> float:
    return asyncio.get_running_loop().time()


async def for_ever(_: object = None) -> None:
    await asyncio.get_running_loop().create_future()


# --- flags


@in_virtual_time
async def test_started_and_stopped_tell_the_truth() -> None:
    """CG-I15."""
    informer = SharedInformer(source_of("a"), name="things")

    def flags() -> tuple[bool, bool, bool]:
        return informer.is_started, informer.is_stopped, informer.has_synced

    assert flags() == (False, False, False)
    assert repr(informer) == "<SharedInformer things not started, 0 objects>"
    async with informer:
        assert flags() == (True, False, False)
        await informer.wait_synced(5)
        assert flags() == (True, False, True)
        assert repr(informer) == "<SharedInformer things running, 1 objects>"
    assert flags() == (True, True, True)
    assert repr(informer) == "<SharedInformer things stopped, 1 objects>"
    assert names(informer) == ["a"]  # readable as it was last


@in_virtual_time
async def test_it_is_started_once() -> None:
    informer = SharedInformer(source_of("a"), name="things")
    async with informer:
        for again in (informer.start, informer.run, informer.__aenter__):
            with pytest.raises(UsageError, match="things was started before; an informer is"):
                await again()
        await informer.wait_synced(5)
    with pytest.raises(UsageError, match="started once"):
        await informer.start()


@in_virtual_time
async def test_its_end_can_be_waited_for_but_not_by_its_own_callbacks() -> None:
    refused: list[str] = []
    informer = SharedInformer(source_of("a"), name="things")

    async def wait_and_stop(_: Added[Object]) -> None:
        try:
            await informer.wait_stopped()
        except UsageError as exc:
            refused.append(str(exc))
        await informer.stop()

    with pytest.raises(UsageError, match="things was not started"):
        await informer.wait_stopped()
    informer.add_event_handler(on_add=wait_and_stop)
    async with informer, asyncio.timeout(30):
        await informer.wait_stopped()
    await informer.wait_stopped()  # over already
    assert len(refused) == 1
    assert "a handler of things cannot wait for the end of things" in refused[0]


@in_virtual_time
async def test_who_waits_for_its_end_is_told_what_it_died_of() -> None:
    async def fail(options: ListOptions) -> ListResult[Object]:
        raise UsageError("not a source")

    def watch(options: ListOptions) -> contextlib.AbstractAsyncContextManager[Never]:
        raise UsageError("not a source")

    informer = SharedInformer(ListWatch(list=fail, watch=watch), name="things")
    await informer.start()
    with pytest.raises(UsageError, match="not a source"):
        await informer.wait_stopped()
    await informer.stop()


@in_virtual_time
async def test_one_that_was_stopped_before_its_start_cannot_be_started() -> None:
    informer = SharedInformer(source_of("a"), name="things")
    await informer.stop()
    assert (informer.is_started, informer.is_stopped) == (False, True)
    with pytest.raises(UsageError, match="things: it cannot be started because it has stopped"):
        await informer.start()
    with pytest.raises(UsageError, match="things has stopped"):
        await informer.wait_synced()


@in_virtual_time
async def test_nothing_can_be_added_to_a_stopped_one() -> None:
    """CG-I16."""
    informer = SharedInformer(source_of("a"))
    async with informer:
        await informer.wait_synced(5)
    attempts: list[Callable[[], object]] = [
        lambda: informer.add_event_handler(on_add=print),
        informer.events,
        lambda: informer.add_indexers({"x": lambda _: "x"}),
    ]
    for attempt in attempts:
        with pytest.raises(UsageError, match=r"because it has stopped already$"):
            attempt()


@in_virtual_time
async def test_a_handler_can_be_removed_from_a_stopped_one() -> None:
    """CG-I17."""
    informer = SharedInformer(source_of("a"))
    registration = informer.add_event_handler(on_add=lambda _: None)
    async with informer:
        await registration.wait_synced(5)
    informer.remove_event_handler(registration)
    informer.remove_event_handler(registration)
    assert registration.is_removed


@in_virtual_time
async def test_nothing_is_left_of_handlers_whenever_they_came_and_went() -> None:
    """CG-I20."""
    informer = SharedInformer(source_of("a"))
    never_run = SharedInformer(source_of("a"))
    never_run.add_event_handler(on_add=lambda _: None)
    early = informer.add_event_handler(on_add=lambda _: None)
    async with informer:
        await early.wait_synced(5)
        early.remove()
        late = informer.add_event_handler(on_add=lambda _: None)
        await late.wait_synced(5)
        late.remove()
        recorder = recorded(informer)
    assert recorder.told == []  # a stop comes first, whatever waits to be told


# --- stopping, wherever it stands


Arrange: TypeAlias = Callable[[FakeListWatch[Object]], SharedInformer[Object]]


def hanging_list(source: FakeListWatch[Object]) -> SharedInformer[Object]:
    source.supports_watch_list = False
    source.hang_lists()
    return SharedInformer(source)


def hanging_stream(source: FakeListWatch[Object]) -> SharedInformer[Object]:
    source.hang_watches()
    return SharedInformer(source)


def unfinished_stream(source: FakeListWatch[Object]) -> SharedInformer[Object]:
    source.ends_initial_events = False
    return SharedInformer(source)


def second_page(source: FakeListWatch[Object]) -> SharedInformer[Object]:
    source.supports_watch_list = False
    source.has_watch_cache = False
    source.latency = 0.7  # at 1 s the second of three pages is on its way
    return SharedInformer(source, options=ReflectorOptions(page_size=1))


def back_off(source: FakeListWatch[Object]) -> SharedInformer[Object]:
    source.fail_watches(REFUSED, forever=True)
    source.fail_lists(REFUSED, forever=True)
    return SharedInformer(source)


def watching(source: FakeListWatch[Object]) -> SharedInformer[Object]:
    return SharedInformer(source)


def fallen_silent(source: FakeListWatch[Object]) -> SharedInformer[Object]:
    informer = SharedInformer(source)
    asyncio.get_running_loop().call_later(0.5, source.freeze_watches)
    return informer


def handler_running(source: FakeListWatch[Object]) -> SharedInformer[Object]:
    async def slow(_: object) -> None:
        await asyncio.sleep(1.5)

    informer = SharedInformer(source)
    informer.add_event_handler(on_add=slow)
    return informer


def handler_for_ever(source: FakeListWatch[Object]) -> SharedInformer[Object]:
    informer = SharedInformer(source)
    informer.add_event_handler(on_add=for_ever)
    return informer


def handler_waiting_for_us(source: FakeListWatch[Object]) -> SharedInformer[Object]:
    informer = SharedInformer(source)

    async def wait(_: object) -> None:
        with contextlib.suppress(UsageError):
            await informer.wait_for(lambda lister: lister.get("default/never"))

    informer.add_event_handler(on_add=wait)
    return informer


def reader_of_events(source: FakeListWatch[Object]) -> SharedInformer[Object]:
    informer = SharedInformer(source)
    recorded(informer)
    informer.events()
    return informer


def much_waiting(source: FakeListWatch[Object]) -> SharedInformer[Object]:
    for i in range(1100):
        source.add(thing(f"more-{i}"))
    informer = SharedInformer(source)
    informer.add_event_handler(on_add=for_ever)
    return informer


AT_ONCE = [
    hanging_list,
    hanging_stream,
    unfinished_stream,
    second_page,
    back_off,
    watching,
    fallen_silent,
    reader_of_events,
    handler_waiting_for_us,
]
IN_TIME = [handler_running, handler_for_ever, much_waiting]


@pytest.mark.parametrize("after", [0.0, 0.001, 1.0], ids=["at once", "soon", "later"])
@pytest.mark.parametrize("arrange", [*AT_ONCE, *IN_TIME])
@in_virtual_time
async def test_it_stops_in_time_from_any_state(arrange: Arrange, after: float) -> None:
    source = source_of("a", "b", "c")
    informer = arrange(source)
    await informer.start()
    if after:
        await asyncio.sleep(after)
    before = clock()
    await informer.stop(GRACE)
    assert clock() - before <= (MARGIN if arrange in AT_ONCE else GRACE + MARGIN)
    assert informer.is_stopped
    assert source.open_watches == 0
    asked = len(source.requests)
    source.heal()
    await asyncio.sleep(100)
    assert len(source.requests) == asked


@in_virtual_time
async def test_a_callback_that_runs_may_end_and_none_begins() -> None:
    source = source_of("a", "b")
    told: list[str] = []

    async def slow(event: Added[Object]) -> None:
        told.append(f"{event.key.name} begins")
        await asyncio.sleep(1.5)
        told.append(f"{event.key.name} ends")

    informer = SharedInformer(source)
    informer.add_event_handler(on_add=slow)
    async with informer:
        await asyncio.sleep(0.5)
        source.add(thing("c"))
    assert told == ["a begins", "a ends"]
    assert clock() == pytest.approx(1.5)


@in_virtual_time
async def test_a_handler_that_ignores_its_cancellation_is_left_behind() -> None:
    released = asyncio.Event()

    async def stubborn(_: object) -> None:
        while not released.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await released.wait()

    informer = SharedInformer(source_of("a"))
    informer.add_event_handler(on_add=stubborn)
    await informer.start()
    await asyncio.sleep(1)
    before = clock()
    await informer.stop(GRACE)
    assert GRACE <= clock() - before <= GRACE + MARGIN
    released.set()


@in_virtual_time
async def test_a_source_that_ignores_its_cancellation_is_left_behind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    released = asyncio.Event()
    source = source_of("a")

    async def stubborn(options: ListOptions) -> ListResult[Object]:
        try:
            await for_ever()
        finally:
            while not released.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await released.wait()
        return await source.list(options)

    lw = ListWatch(list=stubborn, watch=source.watch, supports_watch_list=False)
    informer = SharedInformer(lw, name="things")
    await informer.start()
    await asyncio.sleep(1)
    before = clock()
    await informer.stop(GRACE)
    assert clock() - before <= MARGIN
    assert "things: its source ignores cancellation and is abandoned" in caplog.text
    released.set()


@in_virtual_time
async def test_a_callback_can_stop_its_informer() -> None:
    """It does not wait for its own end; whoever else stops it waits for the callback too."""
    source = source_of("a", "b")
    informer = SharedInformer(source)
    told: list[str] = []

    async def once(event: Added[Object]) -> None:
        await informer.stop(60)
        assert informer.is_stopped
        told.append(event.key.name)
        await asyncio.sleep(3)
        told.append("end")

    informer.add_event_handler(on_add=once)
    await informer.start()
    await asyncio.sleep(1)
    await informer.stop(0)
    assert told == ["a", "end"]
    assert clock() == pytest.approx(3)


@in_virtual_time
async def test_a_late_callback_and_what_it_started_can_stop_its_informer() -> None:
    source = source_of("a")
    informer = SharedInformer(source)

    async def once(event: Added[Object]) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(informer.stop(60))

    async with informer:
        await informer.wait_synced(5)
        informer.add_event_handler(on_add=once)
        await asyncio.sleep(1)
        assert informer.is_stopped
    assert clock() < 2


@in_virtual_time
async def test_a_callback_of_one_informer_waits_for_the_end_of_another() -> None:
    source = source_of("a")
    one, other = SharedInformer(source), SharedInformer(source)
    ended: list[bool] = []

    async def slow(_: object) -> None:
        await asyncio.sleep(1)
        ended.append(True)

    async def end_other(_: object) -> None:
        await asyncio.sleep(0.5)
        await other.stop(60)
        ended.append(other.statistics().handlers[0].busy_for is None)

    one.add_event_handler(on_add=end_other)
    other.add_event_handler(on_add=slow)
    async with one:
        await other.start()
        await asyncio.sleep(2)
    assert ended == [True, True]


@in_virtual_time
async def test_many_may_stop_it_at_once_and_all_wait_for_the_end() -> None:
    informer = handler_running(source_of("a"))
    async with informer:
        await asyncio.sleep(1)
        async with asyncio.TaskGroup() as group:
            waits = [group.create_task(informer.stop()) for _ in range(5)]
        assert [wait.result() for wait in waits] == [None] * 5
        assert clock() == pytest.approx(1.5)


# --- cancellation


@in_virtual_time
async def test_cancelling_run_stops_it() -> None:
    informer = handler_running(source_of("a"))
    async with asyncio.TaskGroup() as group:
        running = group.create_task(informer.run())
        await asyncio.sleep(1)
        running.cancel()
    assert running.cancelled()
    assert informer.is_stopped
    assert clock() == pytest.approx(1.5)  # the callback had its grace


@pytest.mark.parametrize("times", [2, 3, 10])
@in_virtual_time
async def test_cancelling_it_again_waives_the_grace(times: int) -> None:
    informer = handler_for_ever(source_of("a"))
    async with asyncio.TaskGroup() as group:
        running = group.create_task(informer.run())
        await asyncio.sleep(1)
        for _ in range(times):
            running.cancel()
            await asyncio.sleep(0.01)
    assert running.cancelled()
    assert clock() <= 1 + MARGIN


@in_virtual_time
async def test_a_stop_that_is_given_up_waives_the_grace() -> None:
    informer = handler_for_ever(source_of("a"))
    await informer.start()
    await asyncio.sleep(1)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await informer.stop(60)
    assert clock() <= 2 + MARGIN
    await informer.stop()


@in_virtual_time
async def test_a_stop_that_is_given_up_waits_for_callbacks_to_clean_up() -> None:
    cleaned_up: list[float] = []

    async def tidy(_: object) -> None:
        try:
            await for_ever()
        finally:
            await asyncio.sleep(0.1)
            cleaned_up.append(clock())

    informer = SharedInformer(source_of("a"))
    informer.add_event_handler(on_add=tidy)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(informer.run())
        await asyncio.sleep(1)
        running.cancel()
        await asyncio.sleep(1)
        running.cancel()
    assert cleaned_up == [pytest.approx(2.1)]
    assert clock() == pytest.approx(2.1)


@pytest.mark.parametrize("turns", range(30))
@in_virtual_time
async def test_it_may_be_cancelled_at_any_step(turns: int) -> None:
    """F-R37: however far it has come, the body gets its CancelledError and nothing is left."""
    source = source_of("a", "b")

    async def use() -> None:
        informer = SharedInformer(source)
        recorder = recorded(informer)
        async with informer:
            await informer.wait_synced(5)
            source.add(thing("c"))
            await informer.wait_for(lambda lister: lister.get("default/c"))
            async for _ in informer.events():
                if len(recorder.told) == 3:
                    break
            await for_ever()

    task = asyncio.get_running_loop().create_task(use())
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert clock() <= MARGIN


# --- blocks


@in_virtual_time
async def test_an_error_of_the_body_leaves_it_as_it_is() -> None:
    informer = SharedInformer(source_of("a"))
    with pytest.raises(ZeroDivisionError) as caught:
        async with informer:
            _ = 1 / 0
    assert caught.value.__cause__ is None
    assert informer.is_stopped


@in_virtual_time
async def test_it_may_be_entered_in_one_task_and_left_in_another() -> None:
    source = source_of("a")
    informer = SharedInformer(source)
    recorder = recorded(informer)
    async with contextlib.AsyncExitStack() as stack:
        async with asyncio.TaskGroup() as group:
            group.create_task(stack.enter_async_context(informer))
        await informer.wait_synced(5)
        source.add(thing("b"))
        await quiet()
    assert recorder.told == ["+a@2 initial", "+b@3"]
    assert informer.is_stopped


@in_virtual_time
async def test_an_async_generator_may_hold_it() -> None:
    source = source_of("a")

    async def cached() -> AsyncGenerator[SharedInformer[Object]]:
        async with SharedInformer(source) as informer:
            await informer.wait_synced(5)
            yield informer

    async with contextlib.aclosing(cached()) as generator:
        informer = await anext(generator)
        assert names(informer) == ["a"]
    assert informer.is_stopped


# --- failing for good


def misused() -> ListWatch[Object]:
    async def fails(options: ListOptions) -> ListResult[Object]:
        await asyncio.sleep(1)
        raise UsageError("the client is closed")

    source = source_of()
    return ListWatch(list=fails, watch=source.watch, supports_watch_list=False)


@in_virtual_time
async def test_a_mistake_in_its_use_ends_it_and_is_told_as_it_is() -> None:
    informer = SharedInformer(misused())
    with pytest.raises(UsageError, match=r"^the client is closed$"):
        await informer.run()
    assert informer.is_stopped


@in_virtual_time
async def test_who_waits_is_told_the_mistake() -> None:
    informer = SharedInformer(misused())
    with pytest.raises(UsageError, match=r"^the client is closed$"):
        async with informer:
            await informer.wait_synced(5)
    with pytest.raises(UsageError, match=r"^the client is closed$"):
        await informer.wait_synced(5)


@in_virtual_time
async def test_who_did_not_wait_is_told_the_mistake_at_the_end() -> None:
    informer = SharedInformer(misused())
    with pytest.raises(UsageError, match=r"^the client is closed$"):
        async with informer:
            await asyncio.sleep(5)
            assert informer.is_stopped
    with pytest.raises(ZeroDivisionError):
        async with SharedInformer(misused()):
            await asyncio.sleep(5)
            _ = 1 / 0


class Abort(BaseException):
    """What is meant for the whole program."""


@in_virtual_time
async def test_what_a_callback_raises_for_the_program_is_not_lost() -> None:
    def abort(_: object) -> None:
        raise Abort

    informer = SharedInformer(source_of("a"))
    informer.add_event_handler(on_add=abort)
    with pytest.raises(UsageError) as caught:
        await informer.start()
        await informer.wait_for(lambda _: None)
    assert isinstance(caught.value.__cause__, Abort)
    await informer.stop()

    informer = SharedInformer(source_of("a"))
    informer.add_event_handler(on_add=abort)
    with pytest.raises(Abort):
        async with informer:
            await asyncio.sleep(1)


# --- loops and crowds


def test_it_belongs_to_one_event_loop() -> None:
    """F-R40."""
    informer = SharedInformer(source_of("a"), name="things")

    async def elsewhere() -> None:
        attempts: list[Callable[[], Awaitable[None]]] = [
            informer.wait_synced,
            informer.stop,
        ]
        for attempt in attempts:
            with pytest.raises(UsageError, match="things runs in another event loop"):
                await attempt()
        with pytest.raises(UsageError, match="things runs in another event loop"):
            informer.events()

    async def main() -> None:
        async with informer:
            await asyncio.sleep(0)
            asyncio.get_running_loop().call_soon(lambda: None)
            await asyncio.get_running_loop().run_in_executor(None, asyncio.run, elsewhere())
            with pytest.raises(UsageError, match="from other threads it can only be read"):
                await asyncio.get_running_loop().run_in_executor(
                    None, lambda: informer.add_event_handler(on_add=print)
                )

    asyncio.run(main())
    asyncio.run(informer.stop())  # is over already


@pytest.mark.slow
@in_virtual_time
async def test_a_hundred_workers_add_and_remove_handlers_until_it_stops() -> None:
    """CG-I14."""
    source = FakeListWatch()
    informer = SharedInformer(source)
    rng = random.Random(1)
    late: list[UsageError] = []

    async def work() -> None:
        recorder = Recorder()
        while True:
            try:
                registration = informer.add_event_handler(recorder.handler)
            except UsageError as exc:
                late.append(exc)
                return
            await asyncio.sleep(rng.random() / 50)
            registration.remove()
            await asyncio.sleep(rng.random())

    async def write() -> None:
        for i in range(5_000):
            source.add(thing(f"o{i}"))
            if i >= 100:
                source.delete(f"o{i - 100}")
            if i % 50 == 0:
                await asyncio.sleep(0.05)

    async with informer, asyncio.TaskGroup() as group:
        for _ in range(100):
            group.create_task(work())
        await write()
        await informer.stop()
    assert len(late) == 100
    assert all(str(error).endswith("because it has stopped already") for error in late)


@in_virtual_time
async def test_a_stop_while_the_first_list_is_taken_in_leaves_it_unsynced() -> None:
    """What was not processed has not synced: nobody may act on an empty cache."""
    building = asyncio.Event()

    def index(_: Object) -> None:
        building.set()

    informer = SharedInformer(
        source_of(*[f"thing-{number}" for number in range(6_000)]), indexers={"any": index}
    )
    await informer.start()
    await building.wait()
    await informer.stop()
    assert (informer.has_synced, len(informer.lister.list())) == (False, 0)
    with pytest.raises(UsageError):
        await informer.wait_synced(1)
