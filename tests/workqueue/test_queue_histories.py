"""Any history of adds, delays, failures, cancelled workers and a drain, in virtual time.

The promises: a key is never processed twice at once; after every add it is processed once more;
no delayed key is dropped silently.
"""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinform.errors import QueueShutDown
from kinform.testing import virtual_time
from kinform.workqueue import FairOrder, Priority, WorkQueue

KEYS = ["a/1", "a/2", "b/1"]
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from(KEYS), st.sampled_from(Priority)),
        st.tuples(st.just("add_after"), st.sampled_from(KEYS), st.integers(-1, 9)),
        st.tuples(st.just("retry"), st.sampled_from(KEYS), st.just(0)),
        st.tuples(st.just("cancel"), st.just(""), st.integers(0, 2)),
        st.tuples(st.just("sleep"), st.just(""), st.integers(0, 5)),
    ),
    max_size=40,
)


class History:
    """Three workers that may be cancelled at any time, and what they did."""

    def __init__(self, *, is_fair: bool) -> None:
        self.queue = WorkQueue[str](order=FairOrder() if is_fair else None)
        self.processing: set[str] = set()
        self.worked: Counter[str] = Counter()
        self.owed: set[str] = set()
        """Keys that were added, and not taken since."""
        self.expected_later: set[str] = set()

    async def work(self) -> None:
        while True:
            try:
                async with self.queue.processing() as key:
                    assert key not in self.processing
                    self.processing.add(key)
                    self.owed.discard(key)
                    self.expected_later.discard(key)
                    try:
                        await asyncio.sleep(0.5 * len(key))
                    finally:
                        self.processing.remove(key)
                    self.worked[key] += 1
            except QueueShutDown:
                return

    async def play(self, steps: list[tuple[str, str, int]]) -> None:
        async with asyncio.TaskGroup() as group:
            workers = [group.create_task(self.work()) for _ in range(3)]
            for what, key, number in steps:
                if what == "add":
                    self.owed.add(key)
                    self.queue.add(key, priority=Priority(number))
                elif what == "add_after":
                    (self.owed if number <= 0 else self.expected_later).add(key)
                    self.queue.add_after(key, number)
                elif what == "retry":
                    self.expected_later.add(key)
                    self.queue.add_rate_limited(key)
                elif what == "cancel":
                    workers[number].cancel()
                    workers[number] = group.create_task(self.work())
                else:
                    await asyncio.sleep(number)
            report = await self.queue.shut_down_with_drain()
            assert report.unfinished == ()
            assert self.owed == set()
            assert self.expected_later <= set(report.delayed)
        figures = self.queue.statistics()
        assert (figures.depth, figures.processing, figures.delayed) == (0, 0, 0)
        assert (self.queue._causes, self.queue._current, self.queue._later) == ({}, {}, {})


@pytest.mark.slow
@settings(max_examples=120)
@given(steps, st.booleans())
def test_no_key_is_lost_or_worked_on_twice_at_once(
    steps: list[tuple[str, str, int]], is_fair: bool
) -> None:
    virtual_time.run(History(is_fair=is_fair).play(steps))
