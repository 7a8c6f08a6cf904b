"""What happens later: each key once, at the earliest time asked for, in order."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.sansio.workqueue.delays import Delays

K = TypeVar("K", bound=Hashable)


def pop_due(delays: Delays[K], now: float) -> list[K]:
    """Take out what is due by then."""
    due = list[K]()
    while (soonest := delays.next_due) is not None and soonest <= now:
        due.append(delays.pop())
    return due


def test_nothing_is_due_before_its_time() -> None:
    delays = Delays[str]()
    assert delays.add("a", 5.0)
    assert (delays.next_due, pop_due(delays, 4.9), len(delays)) == (5.0, [], 1)
    assert pop_due(delays, 5.0) == ["a"]
    assert (delays.next_due, pop_due(delays, 99.0), len(delays)) == (None, [], 0)


def test_the_earlier_of_two_times_is_kept_whichever_came_first() -> None:
    delays = Delays[str]()
    assert [delays.add("a", due) for due in (5.0, 7.0, 5.0, 3.0)] == [True, False, False, True]
    assert (delays.next_due, "a" in delays, "b" in delays) == (3.0, True, False)
    assert pop_due(delays, 10.0) == ["a"]


def test_what_is_due_at_one_time_comes_in_the_order_of_asking() -> None:
    delays = Delays[object]()
    keys = [object(), "a", 1, object()]  # they cannot be compared, and need not be
    for key in keys:
        delays.add(key, 1.0)
    assert list(delays) == keys
    assert pop_due(delays, 1.0) == keys


def test_times_that_were_overtaken_take_no_room() -> None:
    delays = Delays[str]()
    for due in range(10_000, 0, -1):
        delays.add("a", float(due))
    assert len(delays._heap) <= 2 * 1 + 16
    delays.clear()
    assert (list(delays), delays.next_due) == ([], None)


def test_what_was_overtaken_is_passed_over() -> None:
    delays = Delays[str]()
    for key, due in (("a", 2.0), ("a", 1.0), ("b", 3.0)):
        delays.add(key, due)
    assert [delays.pop(), delays.pop()] == ["a", "b"]
    with pytest.raises(IndexError):
        delays.pop()


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.integers(0, 4), st.integers(0, 10)),
            st.tuples(st.just("wait"), st.integers(1, 6), st.just(0)),
        )
    )
)
def test_it_behaves_as_a_dict_of_times(steps: list[tuple[str, int, int]]) -> None:
    delays, model, now = Delays[int](), dict[int, tuple[float, int]](), 0.0
    for number, (what, which, delay) in enumerate(steps):
        if what == "add":
            due = now + delay
            is_sooner = which not in model or due < model[which][0]
            if is_sooner:
                model[which] = due, number
            assert delays.add(which, due) is is_sooner
        else:
            now += which
            due_now = sorted((key for key in model if model[key][0] <= now), key=model.__getitem__)
            assert pop_due(delays, now) == due_now
            for key in due_now:
                del model[key]
        assert list(delays) == sorted(model, key=model.__getitem__)
        assert delays.next_due == min((due for due, _ in model.values()), default=None)
