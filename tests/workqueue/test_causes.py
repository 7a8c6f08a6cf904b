"""Why a key is worked on: every cause, merged, bounded, and readable while it is worked on."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.testing import in_virtual_time
from kinform.workqueue import (
    Cause,
    CauseKind,
    Causes,
    ItemExponentialFailureRateLimiter,
    WorkQueue,
)

ADDED, UPDATED, RETRY, TIMER = (
    CauseKind.ADDED,
    CauseKind.UPDATED,
    CauseKind.RETRY,
    CauseKind.TIMER,
)


def update(pod: str, old: int, new: int) -> Cause:
    return Cause(UPDATED, "pods", pod, old_version=str(old), new_version=str(new))


def texts(causes: Causes) -> list[str]:
    return [str(cause) for cause in causes]


@in_virtual_time
async def test_all_causes_of_merged_adds_can_be_read_while_the_key_is_worked_on() -> None:
    queue = WorkQueue[str]()
    queue.add("web", cause=Cause(ADDED, "deployments", "web", new_version="3"))
    queue.add("web", cause=update("web-0", 4, 5))
    queue.add("web", cause=update("web-1", 5, 6))
    queue.add("web", cause=update("web-0", 5, 7))
    assert len(queue.causes("web")) == 3
    async with queue.processing() as key:
        assert texts(queue.causes(key)) == [
            "deployments: web added (3)",
            "pods: web-0 updated (4 → 7), 2 times",
            "pods: web-1 updated (5 → 6)",
        ]
    assert texts(queue.causes("web")) == []


@in_virtual_time
async def test_causes_that_come_while_it_is_worked_on_belong_to_the_next_turn() -> None:
    queue = WorkQueue[str]()
    queue.add("web", cause=update("web-0", 1, 2))
    async with queue.processing() as key:
        queue.add(key, cause=update("web-0", 2, 3))
        assert texts(queue.causes(key)) == ["pods: web-0 updated (1 → 2)"]
    async with queue.processing() as key:
        assert texts(queue.causes(key)) == ["pods: web-0 updated (2 → 3)"]


@in_virtual_time
async def test_without_a_cause_there_is_none_not_even_of_the_turn_to_come() -> None:
    queue = WorkQueue[str]()
    queue.add("web")
    async with queue.processing() as key:
        queue.add(key, cause=update("web-0", 2, 3))
        assert texts(queue.causes(key)) == []


@in_virtual_time
async def test_a_retry_keeps_the_causes_of_the_try_that_failed() -> None:
    queue = WorkQueue[str](rate_limiter=ItemExponentialFailureRateLimiter())
    queue.add("web", cause=update("web-0", 1, 2))
    for _ in range(2):
        async with queue.processing() as key:
            queue.add_rate_limited(key)
    async with queue.processing() as key:
        assert texts(queue.causes(key)) == ["pods: web-0 updated (1 → 2)", "retry, 2 times"]


@in_virtual_time
async def test_a_timer_is_a_cause_that_waits_with_its_key() -> None:
    queue = WorkQueue[str]()
    queue.add_after("web", 5)
    queue.add_after("web", 9, cause=Cause(TIMER, "certificates"))
    queue.add("web", cause=update("web-0", 1, 2))
    async with queue.processing() as key:
        assert texts(queue.causes(key)) == ["pods: web-0 updated (1 → 2)"]
    async with queue.processing() as key:
        assert texts(queue.causes(key)) == ["timer", "certificates: timer"]
    assert asyncio.get_running_loop().time() == pytest.approx(5)


@in_virtual_time
async def test_what_does_not_fit_is_counted() -> None:
    queue = WorkQueue[str](max_causes=2)
    for n in range(5):
        queue.add("web", cause=update(f"web-{n}", 1, 2))
    queue.add_after("web", 1)
    queue.add_after("web", 1, cause=update("web-0", 2, 3))
    await asyncio.sleep(2)
    async with queue.processing() as key:
        causes = queue.causes(key)
        assert texts(causes) == [
            "pods: web-0 updated (1 → 3), 2 times",
            "pods: web-1 updated (1 → 2)",
        ]
        assert (causes.dropped, len(causes)) == (4, 2)
        assert repr(causes).endswith("; pods: web-1 updated (1 → 2), and 4 more>")


@in_virtual_time
async def test_causes_can_be_turned_off() -> None:
    queue = WorkQueue[str](max_causes=0)
    queue.add("web", cause=update("web-0", 1, 2))
    async with queue.processing() as key:
        assert (texts(queue.causes(key)), queue.causes(key).dropped) == ([], 1)


@in_virtual_time
async def test_causes_are_dropped_with_keys_that_are_never_worked_on() -> None:
    queue = WorkQueue[str]()
    queue.add_after("web", 1)
    queue.shut_down()
    queue.add("web", cause=update("web-0", 1, 2))
    assert (queue._causes, queue._current, queue._later) == ({}, {}, {})


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(1, 3)), max_size=30))
def test_no_cause_is_lost_uncounted(steps: list[tuple[str, int]]) -> None:
    causes = Causes(limit=3)
    for pod, count in steps:
        before = texts(causes)
        more = causes.with_more([Cause(UPDATED, "pods", pod, count=count)])
        assert texts(causes) == before
        causes = more
    assert len(causes) <= 3
    assert sum(cause.count for cause in causes) + causes.dropped == sum(n for _, n in steps)
