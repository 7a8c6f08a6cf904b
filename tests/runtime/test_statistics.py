"""Statistics of controllers: counters and snapshots."""

from __future__ import annotations

import asyncio
import bisect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.runtime.controller.statistics import (
    RECONCILE_BUCKETS,
    WORKQUEUE_BUCKETS,
    ControllerMeter,
    ControllerStatistics,
    Histogram,
    HistogramSnapshot,
    Outcome,
    QueueMeter,
)
from kinform.testing import in_virtual_time
from kinform.workqueue import QueueMetrics, QueueStatistics, WorkQueue

VALUES = st.lists(st.floats(min_value=0, max_value=1e6))


def idle(name: str = "web") -> QueueStatistics:
    return WorkQueue[str](name).statistics()


def figures(meter: ControllerMeter) -> ControllerStatistics:
    return meter.statistics(name="web", workers=2, queue=idle())


def test_a_histogram_counts_a_bound_with_what_is_below_it() -> None:
    histogram = Histogram([1, 2])
    for value in (0.5, 1, 1.5, 2, 2.5):
        histogram.observe(value)
    assert histogram.snapshot() == HistogramSnapshot(((1, 2), (2, 4)), count=5, sum=7.5)


@given(VALUES)
def test_every_bucket_counts_the_values_that_are_not_above_its_bound(values: list[float]) -> None:
    histogram = Histogram(RECONCILE_BUCKETS)
    for value in values:
        histogram.observe(value)
    snapshot, ordered = histogram.snapshot(), sorted(values)
    assert [count for _, count in snapshot.buckets] == [
        bisect.bisect_right(ordered, bound) for bound in RECONCILE_BUCKETS
    ]
    assert snapshot.count == len(values)
    assert snapshot.sum == pytest.approx(sum(values))


def test_a_snapshot_does_not_change_any_more() -> None:
    histogram = Histogram([1])
    before = histogram.snapshot()
    histogram.observe(0)
    assert before == HistogramSnapshot(((1, 0),), count=0, sum=0)


@pytest.mark.parametrize("bounds", [[1, 1], [2, 1]])
def test_bounds_ascend(bounds: list[float]) -> None:
    with pytest.raises(ValueError, match="each above the one before"):
        Histogram(bounds)


def test_the_buckets_are_those_of_client_go_and_controller_runtime() -> None:
    assert pytest.approx([10e-9 * 10**n for n in range(10)]) == WORKQUEUE_BUCKETS
    assert (RECONCILE_BUCKETS[0], RECONCILE_BUCKETS[-1]) == (0.005, 60)


def test_a_meter_counts_what_begins_and_how_it_ends() -> None:
    meter = ControllerMeter()
    for _ in range(3):
        meter.begin()
    meter.end(Outcome.SUCCESS, 0.02)
    meter.end(Outcome.ERROR, 3)
    found = figures(meter)
    assert (found.name, found.workers, found.active) == ("web", 2, 1)
    assert {outcome: count for outcome, count in found.outcomes.items() if count} == {
        Outcome.SUCCESS: 1,
        Outcome.ERROR: 1,
    }
    assert list(found.outcomes) == list(Outcome)
    assert (found.duration.count, found.duration.sum) == (2, 3.02)
    meter.begin()
    meter.end(Outcome.SUCCESS, 1)
    assert found.outcomes[Outcome.SUCCESS] == 1  # a snapshot does not change


@pytest.mark.parametrize("outcome", Outcome)
def test_how_long_a_reconcile_took_counts_unless_a_stop_cut_it_short(outcome: Outcome) -> None:
    meter = ControllerMeter()
    meter.begin()
    meter.end(outcome, 1)
    assert figures(meter).outcomes[outcome] == 1
    assert figures(meter).duration.count == (outcome is not Outcome.CANCELLED)


@in_virtual_time
async def test_a_queue_meter_adds_up_what_a_work_queue_tells() -> None:
    """CG-Q23."""
    meter = QueueMeter()
    hook: QueueMetrics = meter
    queue = WorkQueue[str](metrics=hook)
    queue.add("a")
    queue.add("a")
    queue.add_after("b", 5)
    await asyncio.sleep(2)
    async with queue.processing():
        await asyncio.sleep(0.05)
    assert (meter.adds, meter.retries) == (1, 1)
    assert (meter.queue_duration.count, meter.queue_duration.sum) == (1, 2)
    assert meter.work_duration.buckets[6:8] == ((0.01, 0), (0.1, 1))
    queue.shut_down()
