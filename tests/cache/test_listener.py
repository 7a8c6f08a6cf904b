"""One handler and what it may do wrong, without anybody else noticing."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable

import pytest

from kinform.cache.processor._listener import HandlerStatistics
from kinform.cache.processor.events import Added, Event, Updated
from kinform.cache.processor.handlers import EventHandler, handler
from kinform.cache.processor.processor import Processor
from kinform.errors import UsageError
from kinform.tasks import background
from kinform.testing import in_virtual_time, virtual_time
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

PAYLOAD = "s3cr3t"


class Fatal(BaseException):
    """Neither an error nor a cancellation: something that must end the program."""


def figures_of(processor: Processor[str], at: int = 0) -> HandlerStatistics:
    return processor.statistics()[at]


def raising(error: BaseException, on: str, *, awaited: bool, heard: list[str]) -> EventHandler[str]:
    """Return a handler that hears all, and raises ``error`` in one of its callbacks."""

    def hear(event: Event[str]) -> None:
        heard.extend(words([event]))

    def fail(event: Event[str]) -> None:
        hear(event)
        raise error

    async def fail_later(event: Event[str]) -> None:
        hear(event)
        await asyncio.sleep(1)
        raise error

    bad = fail_later if awaited else fail
    return handler(
        on_add=bad if on == "Added" else hear,
        on_update=bad if on == "Updated" else hear,
        on_delete=bad if on == "Deleted" else hear,
        name="bad one",
    )


# --- F-R35: what a callback raises --------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        ValueError(PAYLOAD),
        KeyError(PAYLOAD),
        TimeoutError(),
        RecursionError(),
        MemoryError(),
        StopAsyncIteration(),
        ExceptionGroup("two", [ValueError(), TypeError()]),
        asyncio.CancelledError(),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("on", ["Added", "Updated", "Deleted"])
@pytest.mark.parametrize("awaited", [False, True], ids=["def", "async def"])
@in_virtual_time
async def test_a_callback_that_raises_goes_on_and_nobody_else_notices(
    error: BaseException, on: str, awaited: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """F-R35: each exception class in each callback. It counts as told, and nothing waits for it."""
    processor: Processor[str] = Processor(name="pods")
    heard: list[str] = []
    others: list[Event[str]] = []
    processor.add(raising(error, on, awaited=awaited, heard=heard), present=pods("a"), synced=True)
    processor.add(hearing(others), present=pods("a"), synced=True)
    async with running(processor):
        processor.distribute([changed("a"), gone("a", 2), new("b")])
        await asyncio.sleep(5)
        assert heard == words(others) == ["*a@1", "a@1>a@2", "-a@2", "+b@1"]
        failures = 2 if on == "Added" else 1
        figures, other_figures = processor.statistics()
        assert (figures.errors, figures.delivered) == (failures, 4)
        assert figures.last_error == f"{type(error).__name__} on {'b' if on == 'Added' else 'a'}"
        assert figures.has_synced
        assert (other_figures.errors, other_figures.last_error) == (0, None)
    first, *_ = records = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(records) == failures
    assert first.getMessage() == f"handler bad one failed on {on} of a"
    assert first.exc_info is not None
    assert first.exc_info[1] is error
    assert vars(first).items() >= {"handler": "bad one", "event": on, "key": "a"}.items()


@in_virtual_time
async def test_logs_and_figures_hold_no_payload(caplog: pytest.LogCaptureFixture) -> None:
    def fail(event: Added[str]) -> None:
        raise ValueError

    processor: Processor[str] = Processor(name="pods")
    processor.add(handler(on_add=fail, filter=lambda obj: True), present=pods("a"), synced=True)
    async with running(processor):
        await all_settled()
        assert "a@1" not in repr(processor.statistics())
    (record,) = caplog.records
    assert "a@1" not in repr(vars(record)) + caplog.text


@in_virtual_time
async def test_five_objects_and_two_handlers_that_always_raise(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """CG-I21: each failure is logged with its handler's name. We do not pause for a second."""

    def fail(event: Added[str]) -> None:
        raise ValueError("fake panic")

    processor: Processor[str] = Processor(name="pods")
    first, second = [
        processor.add(handler(on_add=fail, name=name), present=pods(*"abcde"), synced=True)
        for name in ("one", "two")
    ]
    began = asyncio.get_running_loop().time()
    async with running(processor):
        await first.wait_synced()
        await second.wait_synced()
    assert asyncio.get_running_loop().time() == began
    said = sorted(record.getMessage() for record in caplog.records)
    expected = [
        f"handler {one} failed on Added of {key}" for one in ("one", "two") for key in "abcde"
    ]
    assert said == expected


@pytest.mark.parametrize("awaited", [False, True], ids=["def", "async def"])
@in_virtual_time
async def test_a_handler_that_raised_on_the_first_list_has_synced(awaited: bool) -> None:
    """Unlike client-go's, which then waits for ever (kubernetes#129024)."""
    processor: Processor[str] = Processor(name="pods")
    bad = raising(ValueError(), "Added", awaited=awaited, heard=[])
    registration = processor.add(bad, present=pods("a", "b"), synced=False)
    processor.upstream_synced()
    async with running(processor):
        await registration.wait_synced(3)
    assert figures_of(processor).errors == 2


@pytest.mark.parametrize("awaited", [False, True], ids=["def", "async def"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, Fatal])
def test_what_must_end_the_program_passes(error: type[BaseException], awaited: bool) -> None:
    """F-R35: and nothing is left running."""

    async def main() -> None:
        processor: Processor[str] = Processor(name="pods")
        bad = raising(error(), "Added", awaited=awaited, heard=[])
        processor.add(hearing([]), present=pods("a"), synced=True)
        processor.add(bad, present=pods("a"), synced=True)
        await processor.run()

    with pytest.raises(error) as caught:
        virtual_time.run(main())
    assert not isinstance(caught.value, BaseExceptionGroup)


@in_virtual_time
async def test_a_filter_that_raises_costs_the_event_and_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """CG-I33: the handler is not told, and goes on."""
    heard: list[Event[str]] = []
    processor: Processor[str] = Processor(name="pods")

    def picky(obj: str) -> bool:
        if obj == "a@1":
            raise LookupError
        return obj != "b@1"

    processor.add(handler(on_add=heard.append, filter=picky, name="f"), present=(), synced=True)
    async with running(processor):
        processor.distribute([new("a"), new("b"), new("c")])
        await all_settled()
        assert words(heard) == ["+c@1"]
        figures = figures_of(processor)
        assert (figures.errors, figures.last_error) == (1, "LookupError on a")
        assert figures.delivered == 3
    assert [record.getMessage() for record in caplog.records] == ["handler f failed on Added of a"]


@in_virtual_time
async def test_a_handler_hears_what_passes_its_filter() -> None:
    """CG-I33: an update becomes what it is for the handler; callbacks it has not are no matter."""
    heard: list[Event[str]] = []
    processor: Processor[str] = Processor(name="pods")
    even = handler(
        on_add=heard.append, on_delete=heard.append, filter=lambda obj: int(obj[-1]) % 2 == 0
    )
    processor.add(even, present=pods("a"), synced=True)
    async with running(processor):
        processor.distribute([changed("a", 2), changed("a", 3), changed("a", 4), gone("a", 5)])
        await all_settled()
    assert words(heard) == ["+a@2", "-a@2", "+a@4", "-a@5"]


@in_virtual_time
async def test_a_handler_that_cancels_the_task_that_calls_it_is_reported_and_misses_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    heard: list[Event[str]] = []
    told: list[Event[str]] = []

    def suicide(event: Added[str]) -> None:
        told.append(event)
        task = asyncio.current_task()
        assert task is not None
        task.cancel()

    async def wait(event: Event[str]) -> None:
        await asyncio.sleep(1)
        told.append(event)

    processor: Processor[str] = Processor(name="pods")
    bad = handler(on_add=suicide, on_update=wait, on_delete=wait, name="bad one")
    registration = processor.add(bad, present=pods("a"), synced=False)
    processor.add(hearing(heard), present=(), synced=True)
    async with running(processor):
        await all_settled()
        processor.distribute([changed("a"), gone("a", 2)])
        await all_settled()
        assert words(heard) == ["a@1>a@2", "-a@2"]
        assert words(told) == ["*a@1"]
        await asyncio.sleep(2 + 2)  # the pause before the task is replaced, and two callbacks
        assert words(told) == ["*a@1", "a@1>a@2", "-a@2"]
        await registration.shut_down()
    (record,) = caplog.records
    assert "part ended unexpectedly: handler bad one" in record.getMessage()
    assert "was cancelled from outside" in record.getMessage()


@pytest.mark.parametrize("cut_short", ["+a@1", "-a@1"])
@in_virtual_time
async def test_an_event_whose_async_callback_is_cut_short_by_the_end_of_its_task_is_delivered_again(
    cut_short: str,
) -> None:
    """With a filter: the update to a@2 leaves the selection, so the handler receives a delete."""
    begun: list[str] = []
    finished: list[str] = []
    interrupt = asyncio.Event()

    async def callback(event: Event[str]) -> None:
        (word,) = words([event])
        begun.append(word)
        if word == cut_short:
            interrupt.set()
        await asyncio.sleep(1)
        finished.append(word)

    async def cancel_tasks_of_the_handler() -> None:
        await interrupt.wait()
        for task in asyncio.all_tasks():
            if task.get_name() == "handler slow":
                task.cancel()

    slow = handler(
        on_add=callback,
        on_update=callback,
        on_delete=callback,
        filter=lambda obj: obj == "a@1",
        name="slow",
    )
    processor: Processor[str] = Processor(name="pods")
    processor.add(slow, present=(), synced=True)
    async with running(processor), background(cancel_tasks_of_the_handler()):
        processor.distribute([new("a"), changed("a")])
        await asyncio.sleep(10)
        (figures,) = processor.statistics()
    assert finished == ["+a@1", "-a@1"]
    assert begun.count(cut_short) == 2
    assert (figures.delivered, figures.errors) == (2, 0)


@in_virtual_time
async def test_a_handler_whose_task_ends_again_and_again_ends_the_processor_with_the_cause(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def suicide(_: Added[str]) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()

    async def distribute() -> None:
        for number in itertools.count():
            processor.distribute([new(f"pod-{number}")])
            await asyncio.sleep(0.1)

    processor: Processor[str] = Processor(name="pods")
    processor.add(handler(on_add=suicide, name="bad one"), present=(), synced=False)
    async with background(distribute()):
        with pytest.raises(UsageError, match="'handler bad one' was cancelled from outside"):
            await processor.run()
    assert len(caplog.records) == 6


@in_virtual_time
async def test_a_handler_removed_while_its_task_waits_to_be_replaced_holds_up_no_stop() -> None:
    def suicide(_: Added[str]) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()

    processor: Processor[str] = Processor(name="pods")
    processor.add(handler(on_add=suicide, name="bad one"), present=pods("a"), synced=False)
    loop = asyncio.get_running_loop()
    async with running(processor):
        await all_settled()
        began = loop.time()
        await processor.stop(grace=100)
        assert loop.time() == began


@in_virtual_time
async def test_an_async_callback_runs_where_a_failed_task_group_cannot_end_its_handler() -> None:
    """Before Python 3.13 a TaskGroup whose child failed leaves ``cancelling()`` at 1."""
    told: list[str] = []

    async def fail() -> None:
        raise ValueError("mine")

    async def on_add(event: Added[str]) -> None:
        told.append(event.key.name)
        if event.key.name == "a":
            async with asyncio.TaskGroup() as group:
                group.create_task(fail())
        if event.key.name == "b":
            cancelled = asyncio.get_running_loop().create_future()
            cancelled.cancel()
            await cancelled

    processor: Processor[str] = Processor(name="pods")
    processor.add(handler(on_add=on_add, name="h"), present=pods(*"abcd"), synced=True)
    async with running(processor):
        await all_settled()
        assert told == ["a", "b", "c", "d"]
        assert figures_of(processor).errors == 2


@in_virtual_time
async def test_somebody_who_cancels_all_tasks_of_a_handler_leaves_nothing_waiting_for_it() -> None:
    heard: list[Event[str]] = []
    processor: Processor[str] = Processor(name="pods")
    processor.add(handler(on_add=heard.append, name="victim"), present=(), synced=True)
    async with running(processor):
        await all_settled()
        for task in asyncio.all_tasks():
            if task.get_name().endswith("victim"):
                task.cancel()
        await all_settled()
        processor.distribute([new("a")])
        await all_settled()
        assert (heard, figures_of(processor).pending) == ([], 0)


# --- F-R36: what takes too long -----------------------------------------------------------------


@pytest.mark.parametrize("seconds, slow", [(0.24, 0), (0.26, 1), (40.0, 1)])
def test_a_plain_function_that_blocks_the_loop_is_named(
    seconds: float, slow: int, caplog: pytest.LogCaptureFixture
) -> None:
    """F-R36."""
    heard: list[Event[str]] = []

    def block(event: Added[str]) -> None:
        if event.key.name == "b":
            stepping_loop().take(seconds)
        heard.append(event)

    async def main() -> None:
        processor: Processor[str] = Processor(name="pods")
        block_handler = handler(on_add=block, name="blocking")
        registration = processor.add(block_handler, present=pods(*"abc"), synced=True)
        async with running(processor):
            await registration.wait_synced()
            assert (figures_of(processor).slow, len(heard)) == (slow, 3)

    in_stepping_time(main())
    said = [record.getMessage() for record in caplog.records]
    assert said == [f"handler blocking blocked the event loop for {seconds} s on Added of b"] * slow


def test_a_plain_function_that_blocks_and_raises_is_both_slow_and_wrong() -> None:
    def fail(event: Added[str]) -> None:
        stepping_loop().take(1)
        raise ValueError

    async def main() -> None:
        processor: Processor[str] = Processor(name="pods")
        registration = processor.add(handler(on_add=fail), present=pods("a"), synced=True)
        async with running(processor):
            await registration.wait_synced()
            assert (figures_of(processor).slow, figures_of(processor).errors) == (1, 1)

    in_stepping_time(main())


@in_virtual_time
async def test_an_awaited_callback_may_take_its_time_but_not_in_silence(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is named once for each event, after 30 seconds; how long others took is no matter."""
    durations = {"a": 20.0, "b": 29.0, "c": 100.0, "d": 1.0, "e": 31.0, "f": 20.0}
    loop = asyncio.get_running_loop()
    seen: list[tuple[float, str]] = []

    async def sleep(event: Added[str]) -> None:
        await asyncio.sleep(durations[event.key.name])

    class Watch(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append((round(loop.time()), record.getMessage()))

    watch = Watch()
    logging.getLogger("kinform.cache.processor._listener").addHandler(watch)
    processor: Processor[str] = Processor(name="pods")
    registration = processor.add(
        handler(on_add=sleep, name="slow"), present=pods(*"abcdef"), synced=True
    )
    async with running(processor):
        await registration.wait_synced()
        assert figures_of(processor).slow == 0
        await asyncio.sleep(100)
    logging.getLogger("kinform.cache.processor._listener").removeHandler(watch)
    assert seen == [
        (79, "handler slow still runs after 30.0 s on Added of c"),
        (180, "handler slow still runs after 30.0 s on Added of e"),
    ]


@in_virtual_time
async def test_a_callback_that_takes_long_is_named_also_by_a_task_that_was_replaced(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def sleep(event: Added[str]) -> None:
        await asyncio.sleep(40)

    processor: Processor[str] = Processor(name="pods")
    processor.add(handler(on_add=sleep, name="slow"), present=pods("a"), synced=True)
    async with running(processor):
        await asyncio.sleep(1)
        for task in asyncio.all_tasks():
            if task.get_name() == "handler slow":
                task.cancel()
        await asyncio.sleep(60)
    assert "handler slow still runs after 30.0 s on Added of a" in caplog.messages


@in_virtual_time
async def test_statistics_tell_how_long_a_callback_has_been_running() -> None:
    async def sleep(event: Added[str]) -> None:
        await asyncio.sleep(10)

    processor: Processor[str] = Processor(name="pods")
    processor.add(handler(on_add=sleep), present=pods("a", "b"), synced=True)
    assert figures_of(processor).busy_for is None
    async with running(processor):
        await asyncio.sleep(4)
        assert figures_of(processor).busy_for == pytest.approx(4)
        assert (figures_of(processor).pending, figures_of(processor).delivered) == (1, 1)
        await asyncio.sleep(7)
        assert figures_of(processor).busy_for == pytest.approx(1)
        await asyncio.sleep(10)
        assert figures_of(processor).busy_for is None


def test_statistics_tell_of_a_plain_function_too() -> None:
    seen: list[float | None] = []

    async def main() -> None:
        processor: Processor[str] = Processor(name="pods")

        def block(event: Added[str]) -> None:
            stepping_loop().take(0.2)
            seen.append(figures_of(processor).busy_for)

        registration = processor.add(handler(on_add=block), present=pods("a"), synced=True)
        async with running(processor):
            await registration.wait_synced()
            seen.append(figures_of(processor).busy_for)

    in_stepping_time(main())
    assert seen == [pytest.approx(0.2), None]


def test_a_busy_listener_lets_others_have_the_loop_every_few_milliseconds() -> None:
    """Each event takes 0.5 ms: after 2 ms the others are due."""
    told: list[str] = []
    seen: list[int] = []

    def work(event: Added[str]) -> None:
        stepping_loop().take(0.0005)
        told.append(event.obj)

    async def others() -> None:
        while True:
            seen.append(len(told))
            await asyncio.sleep(0)

    async def main() -> None:
        processor: Processor[str] = Processor(name="pods")
        names = [f"pod-{n}" for n in range(100)]
        async with running(processor), asyncio.TaskGroup() as group:
            other = group.create_task(others())
            registration = processor.add(handler(on_add=work), present=pods(*names), synced=True)
            await registration.wait_synced()
            other.cancel()

    in_stepping_time(main())
    assert len(told) == 100
    assert max(after - before for before, after in itertools.pairwise(seen)) <= 5


# --- how it calls ---------------------------------------------------------------------------------


@in_virtual_time
async def test_nothing_is_awaited_for_each_event_of_a_plain_function() -> None:
    """A thousand events take as many turns of the loop as one."""
    heard: list[Event[str]] = []
    processor: Processor[str] = Processor(name="pods")
    processor.add(hearing(heard), present=(), synced=True)
    async with running(processor):
        await all_settled()
        turns: list[int] = []
        for count in (1, 1000):
            heard.clear()
            processor.distribute([new(f"pod-{n}") for n in range(count)])
            turns.append(0)
            while len(heard) < count:
                await asyncio.sleep(0)
                turns[-1] += 1
    assert turns[0] == turns[1] <= 2


@in_virtual_time
async def test_callbacks_of_one_handler_follow_each_other_and_those_of_two_do_not_wait() -> None:
    story: list[str] = []

    def telling(who: str, seconds: float) -> Callable[[Added[str]], object]:
        async def tell(event: Added[str]) -> None:
            story.append(f"{who} begins {event.key}")
            await asyncio.sleep(seconds)
            story.append(f"{who} ends {event.key}")

        return tell

    processor: Processor[str] = Processor(name="pods")
    slow = processor.add(handler(on_add=telling("slow", 10)), present=pods("a", "b"), synced=True)
    quick = processor.add(handler(on_add=telling("quick", 1)), present=pods("a", "b"), synced=True)
    async with running(processor):
        await quick.wait_synced()
        assert not slow.has_synced
        await slow.wait_synced()
    assert story == [
        "slow begins a",
        "quick begins a",
        "quick ends a",
        "quick begins b",
        "quick ends b",
        "slow ends a",
        "slow begins b",
        "slow ends b",
    ]


@in_virtual_time
async def test_a_callback_that_never_returns_keeps_nothing_from_the_others() -> None:
    """F-R34: neither what is there nor what follows."""
    told: list[str] = []
    others: list[Event[str]] = []

    async def wait_for_ever(event: Added[str]) -> None:
        told.append(str(event.key))
        await asyncio.Event().wait()

    processor: Processor[str] = Processor(name="pods")
    stuck = processor.add(handler(on_add=wait_for_ever), present=pods("a", "b"), synced=True)
    free = processor.add(hearing(others), present=pods("a", "b"), synced=True)
    async with running(processor):
        await free.wait_synced()
        for number in range(100):
            processor.distribute([new(f"pod-{number}"), changed("a", number + 2)])
            await asyncio.sleep(60)
            assert (len(others), figures_of(processor, 1).pending) == (2 * number + 4, 0)
        assert told == ["a"]
        assert not stuck.has_synced


@in_virtual_time
async def test_what_a_callback_returns_is_awaited_if_it_can_be_and_dropped() -> None:
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[str] = loop.create_future()

    def on_update(event: Updated[str]) -> asyncio.Future[str]:
        return answer

    processor: Processor[str] = Processor(name="pods")
    both = handler(on_add=lambda event: 42, on_update=on_update)
    processor.add(both, present=pods("a"), synced=True)
    async with running(processor):
        processor.distribute([changed("a"), new("b")])
        await all_settled()
        assert figures_of(processor).pending == 1
        answer.set_result("done")
        await all_settled()
        assert (figures_of(processor).pending, figures_of(processor).errors) == (0, 0)


@in_virtual_time
async def test_an_event_without_a_callback_is_no_matter() -> None:
    heard: list[Event[str]] = []
    processor: Processor[str] = Processor(name="pods")
    processor.add(handler(on_add=heard.append), present=pods("a"), synced=True)
    processor.add(handler(on_update=heard.append), present=pods("a"), synced=True)
    processor.add(handler(on_delete=heard.append), present=pods("a"), synced=True)
    async with running(processor):
        processor.distribute([changed("a"), gone("a", 2, unknown=True)])
        await all_settled()
        assert sorted(words(heard)) == ["*a@1", "-a@2?", "a@1>a@2"]
        assert [figures.delivered for figures in processor.statistics()] == [3, 3, 3]


def test_where_tasks_start_eagerly_no_callback_runs_within_the_call_that_adds_it() -> None:
    eager = getattr(asyncio, "eager_task_factory", None)
    if eager is None:
        pytest.skip("before Python 3.12 no task starts eagerly")

    @in_virtual_time
    async def main() -> None:
        asyncio.get_running_loop().set_task_factory(eager)
        heard: list[Event[str]] = []
        processor: Processor[str] = Processor(name="pods")
        async with running(processor):
            registration = processor.add(hearing(heard), present=pods("a"), synced=True)
            assert heard == []
            await registration.wait_synced()
            assert words(heard) == ["*a@1"]

    main()
