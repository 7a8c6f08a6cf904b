"""Client-go's figures, each at its moment, in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from kinform.testing import in_virtual_time
from kinform.workqueue import QueueMetrics, QueueStatistics, WorkQueue


class Recorded:
    """A hook that keeps its calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []

    def added(self, *, depth: int) -> None:
        self.calls.append(("added", depth))

    def started(self, *, depth: int, waited: float) -> None:
        self.calls.append(("started", depth, round(waited, 6)))

    def finished(self, *, depth: int, took: float) -> None:
        self.calls.append(("finished", depth, round(took, 6)))

    def retried(self) -> None:
        self.calls.append(("retried",))

    def take(self) -> list[tuple[object, ...]]:
        calls, self.calls = self.calls, []
        return calls


def times(queue: WorkQueue[str]) -> tuple[float, float, float]:
    figures = queue.statistics()
    return figures.oldest_waiting, figures.unfinished_work, figures.longest_running


@in_virtual_time
async def test_every_figure_of_a_key_and_of_one_that_is_added_again_while_it_is_worked_on() -> None:
    """CG-Q23."""
    hook = Recorded()
    metrics: QueueMetrics = hook
    queue = WorkQueue[str]("pods", metrics=metrics)
    queue.add("a")
    queue.add("a")  # counts once
    await asyncio.sleep(5)
    assert times(queue) == (5, 0, 0)
    assert await queue.get() == "a"
    assert hook.take() == [("added", 1), ("started", 0, 5)]

    await asyncio.sleep(7)
    queue.add("a")
    queue.add("a")
    await asyncio.sleep(1)
    assert times(queue) == (1, 8, 8)
    queue.done("a")
    assert hook.take() == [("added", 0), ("finished", 1, 8)]

    await asyncio.sleep(3)
    await queue.get()
    queue.add("b")
    await queue.get()
    await asyncio.sleep(2)
    assert times(queue) == (0, 4, 2)
    queue.done("a")
    queue.done("b")
    assert hook.take() == [
        ("started", 0, 4),  # from the first add, not from done
        ("added", 1),
        ("started", 0, 0),
        ("finished", 0, 2),
        ("finished", 0, 2),
    ]
    assert times(queue) == (0, 0, 0)


@in_virtual_time
async def test_everything_that_is_added_for_later_counts_as_a_retry() -> None:
    hook = Recorded()
    queue = WorkQueue[str](metrics=hook)
    queue.add_after("a", 1)
    queue.add_rate_limited("b")
    queue.add_after("c", 0)
    assert hook.take() == [("retried",), ("retried",), ("retried",), ("added", 1)]


@in_virtual_time(timeout=None)
async def test_no_timer_ticks_for_the_figures_before_or_after_a_shut_down() -> None:
    """CG-Q22 differs: durations are computed when they are read, so no ticker runs."""
    queue = WorkQueue[str](metrics=Recorded())
    queue.add("a")
    await queue.get()
    scheduled = getattr(asyncio.get_running_loop(), "_scheduled", [])
    assert list(scheduled) == []
    queue.shut_down()
    await asyncio.sleep(2)
    assert queue.statistics().longest_running == 2


@in_virtual_time
async def test_without_a_hook_there_are_counts_and_no_times() -> None:
    queue = WorkQueue[str]("pods")
    for key in "ab":
        queue.add(key)
    queue.add_after("c", 1)
    await queue.get()
    assert queue.statistics() == QueueStatistics(
        name="pods",
        depth=1,
        processing=1,
        delayed=1,
        oldest_waiting=0.0,
        unfinished_work=0.0,
        longest_running=0.0,
    )
    assert queue.statistics().longest_running == pytest.approx(0)
    queue.shut_down()


@in_virtual_time
async def test_a_hook_may_shut_the_queue_down_while_delayed_keys_come() -> None:
    class Closing(Recorded):
        def added(self, *, depth: int) -> None:
            queue.shut_down()

    queue = WorkQueue[str](metrics=Closing())
    for key in "abc":
        queue.add_after(key, 1)
    queue.add_after("later", 2)
    await asyncio.sleep(5)
    assert (len(queue), queue.statistics().delayed) == (1, 0)
