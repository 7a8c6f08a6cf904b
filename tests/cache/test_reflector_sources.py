"""What somebody is told of a reflector, and what it bears from sources that users write."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kinform.cache.listwatch import ListWatch
from kinform.cache.reflector import Reflector
from kinform.cache.reflector_options import ReflectorOptions
from kinform.cache.store.store import Store
from kinform.errors import (
    DecodeError,
    KinformError,
    SourceError,
    UnavailableError,
    UsageError,
)
from kinform.meta import Entry
from kinform.rest.options import ListOptions
from kinform.rest.results import ListResult, Received
from kinform.sansio.backoff import Backoff
from kinform.tasks import background
from kinform.testing import FakeListWatch, in_virtual_time
from tests.cache.support_reflector import (
    FOREVER,
    PLAIN,
    Script,
    Told,
    assert_in_budget,
    config,
    entry,
    listed,
    names,
    running,
    said,
    seen_until,
    turns,
    until,
)

# --- What somebody is told


@in_virtual_time
async def test_every_failure_is_told_also_those_within_a_watch() -> None:
    """8.3, finding 3."""
    source, told = FakeListWatch(), Told()
    source.fail_lists(said(503))
    source.fail_watches(said(403))
    reflector = Reflector(source, Store(), options=PLAIN, watch_error_handler=told)
    async with running(reflector):
        await source.wait_for_watches()
        source.close_watches(said(500))
        await until(lambda: reflector.statistics().lists == 3)
    assert told.kinds == ["UnavailableError", "ForbiddenError", "ApiError"]
    statistics = reflector.statistics()
    assert (statistics.failures, statistics.last_error) == (3, told.errors[-1])


@in_virtual_time
async def test_its_figures_can_be_read_at_any_time() -> None:
    """8.3, finding 5."""
    source = FakeListWatch()
    reflector = Reflector(source, Store(), options=PLAIN)
    assert (reflector.statistics().phase, reflector.statistics().last_contact) == ("wait", None)
    source.fail_lists(said(503))
    async with running(reflector):
        await turns()
        broken = reflector.statistics()
        assert (broken.phase, broken.failures_in_a_row, broken.is_connected) == ("wait", 1, False)
        assert isinstance(broken.last_error, UnavailableError)
        await source.wait_for_watches()
        await turns()
        well = reflector.statistics()
        assert (well.phase, well.failures_in_a_row, well.is_connected) == ("watch", 0, True)
        assert (well.lists, well.watches) == (2, 1)
        opened = asyncio.get_running_loop().time()
        await asyncio.sleep(100)
        assert reflector.statistics().last_contact == pytest.approx(opened)
    assert not reflector.statistics().is_connected


@in_virtual_time
async def test_a_watch_that_opens_is_news_from_the_server() -> None:
    """F-R44: a quiet kind whose server came back is not stale."""
    source = FakeListWatch()
    reflector = Reflector(source, Store(), options=PLAIN)
    async with running(reflector):
        await source.wait_for_watches()
        source.close_watches(said(429))
        source.fail_watches(*[said(503)] * 3)
        await asyncio.sleep(60)
        statistics = reflector.statistics()
        assert statistics.failures == 4
        assert statistics.failures_in_a_row == 0
        assert (statistics.last_contact or 0) > 5


@in_virtual_time
async def test_an_error_handler_that_fails_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    source, store = FakeListWatch(), Store[Any]()
    source.add(config("a"))
    source.fail_lists(said(503))

    def handler(error: KinformError) -> None:
        raise ValueError

    async with running(Reflector(source, store, options=PLAIN, watch_error_handler=handler)):
        await source.wait_for_watches()
    assert len(store) == 1
    assert "the watch error handler raised" in caplog.text


@in_virtual_time
async def test_the_same_failure_again_and_again_is_logged_once_in_ten_minutes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = FakeListWatch()
    source.fail_lists(said(503), forever=True)
    async with running(Reflector(source, Store(), name="pods", options=PLAIN)):
        await asyncio.sleep(1190)
    told = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(told) == 2
    assert told[0].getMessage().startswith("pods: ")


@in_virtual_time
async def test_a_list_that_takes_long_is_told_step_by_step(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = FakeListWatch()
    source.add(config("a"))
    source.add(config("b"))
    source.latency = 6.0
    options = ReflectorOptions(stream_lists=False, page_size=1)
    async with running(Reflector(source, Store(), name="pods", options=options)):
        await asyncio.sleep(30)
    assert "pods: list took 12.0 s" in caplog.text
    assert caplog.text.count("a page of 1 objects 6.0 s") == 2


# --- Sources that users write


@in_virtual_time
async def test_what_a_users_function_raises_is_waited_out_and_told() -> None:
    told = Told()
    source = Script(lists=[ValueError("odd"), listed(1)], watches=[TypeError("odd"), (FOREVER,)])
    async with running(Reflector(source, Store(), watch_error_handler=told)):
        await until(lambda: source.open)
    assert told.kinds == ["SourceError", "SourceError"]
    assert [type(error.__cause__) for error in told.errors] == [ValueError, TypeError]


@in_virtual_time
async def test_a_list_function_that_returns_nonsense_is_named() -> None:
    async def nonsense(options: ListOptions) -> ListResult[Any]:
        return ["a", "b"]  # type: ignore[return-value]

    source = ListWatch(list=nonsense, watch=FakeListWatch().watch)
    with pytest.raises(SourceError, match="gave a list instead of a ListResult"):
        await Reflector(source, Store(), options=PLAIN).list_and_watch()


@in_virtual_time
async def test_a_mistake_in_using_it_ends_it() -> None:
    source = Script(lists=[UsageError("open the client first")])
    with pytest.raises(UsageError, match="open the client first"):
        await Reflector(source, Store()).run()


@in_virtual_time
async def test_what_a_watch_yields_may_be_nonsense() -> None:
    """F-R28: it is no reason to stop, and a list gets past it."""
    odd: Any = ("ADDED", "a")
    source = Script(lists=[listed(1), listed(2, entry("a", 2))])

    @contextlib.asynccontextmanager
    async def watch(options: ListOptions) -> AsyncIterator[AsyncIterator[Received[Any]]]:
        async def play() -> AsyncIterator[Received[Any]]:
            if options.resource_version == "1":
                yield odd
            await asyncio.sleep(1e9)

        source.requests.append(source.requests[-1])
        yield play()

    store, told = Store[Any](), Told()
    lw = ListWatch(list=source.list, watch=watch)
    async with running(Reflector(lw, store, options=PLAIN, watch_error_handler=told)):
        await until(lambda: names(store) == {"a"})
    assert told.kinds == ["SourceError", "SourceError"]


@in_virtual_time
async def test_a_store_that_refuses_an_object_is_told_of_and_the_rest_goes_on() -> None:
    source, told = FakeListWatch(), Told()

    class Picky(Store[Any]):
        def add(self, entry: Entry[Any]) -> Entry[Any] | None:
            if entry.metadata.name == "b":
                raise LookupError
            return super().add(entry)

    store = Picky()
    async with running(Reflector(source, store, options=PLAIN, watch_error_handler=told)):
        await source.wait_for_watches()
        for name in "abc":
            source.add(config(name))
        await until(lambda: len(store) == 3)  # the list did not go through add()
    assert told.kinds == ["SourceError", "SourceError"]
    assert_in_budget(source.requests)


@pytest.mark.parametrize(
    "wrong",
    [
        {"watch_timeout": 0},
        {"idle_timeout": -1},
        {"probe_period": 0},
        {"page_size": 0},
        {"first_version": "7"},
        {"internal_error_window": -1},
        {"backoff": Backoff(first=0.0)},
        {"backoff": Backoff(first=5.0, cap=1.0)},
    ],
)
def test_options_that_make_no_sense_are_refused(wrong: Any) -> None:
    with pytest.raises(UsageError):
        ReflectorOptions(**wrong)


def test_a_resync_period_is_positive() -> None:
    with pytest.raises(UsageError, match="resync_period"):
        Reflector(FakeListWatch(), Store(), resync_period=0)


def test_errors_that_are_no_ones_fault_here_pass() -> None:
    """KeyboardInterrupt and its like are no failure of a source."""

    async def interrupted(options: ListOptions) -> ListResult[Any]:
        raise KeyboardInterrupt

    async def main() -> None:
        source = ListWatch(list=interrupted, watch=FakeListWatch().watch)
        async with background(asyncio.sleep(0)):
            await Reflector(source, Store(), options=PLAIN).run()

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())


@in_virtual_time
async def test_a_decode_error_of_a_list_is_told_and_nothing_is_replaced() -> None:
    """F-R28: to take it for a list would empty the store."""
    source = Script(
        lists=[
            listed(1, entry("a", 1)),
            listed(2, kind="ServiceList"),
            listed(3, kind="Status"),
            listed(4, kind="Table", api_version="meta.k8s.io/v1"),
            listed(5, entry("b", 5)),
        ],
        watches=[(2.0, said(410)), (FOREVER,)],
    )
    store, told = Store[Any](), Told()
    reflector = Reflector(source, store, expected_kind="Pod", watch_error_handler=told)
    async with running(reflector):
        held = await seen_until(lambda: names(store), {"b"})
    assert all(one in (set(), {"a"}, {"b"}) for one in held)
    assert held.index({"b"}) > held.index({"a"})
    assert set() not in held[held.index({"a"}) :]
    assert [kind for kind in told.kinds if kind != "ResourceExpiredError"] == ["DecodeError"] * 3
    assert all(isinstance(e, DecodeError) for e in told.errors[1:])
