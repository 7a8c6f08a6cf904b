"""The states of keys against client-go's own: a line, a dirty set and a processing set."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kinform.sansio.workqueue.fair_order import FairOrder
from kinform.sansio.workqueue.key_queue import AddResult, Priority, WorkState


class Remembered:
    """An order: first come, first served, that notes what it was told."""

    def __init__(self) -> None:
        self.line: list[str] = []
        self.pushed: list[tuple[str, Priority]] = []
        self.touched: list[str] = []

    def push(self, key: str, priority: Priority, /) -> None:
        if key == "bad":
            raise ValueError(key)
        self.line.append(key)
        self.pushed.append((key, priority))

    def touch(self, key: str, priority: Priority, /) -> None:
        self.touched.append(key)

    def pop(self) -> str:
        return self.line.pop(0)

    def __len__(self) -> int:
        return len(self.line)


def test_two_adds_before_it_is_taken_are_one_and_the_order_is_told() -> None:
    """CG-Q05."""
    order = Remembered()
    state = WorkState[str](order)
    assert [state.add("a"), state.add("a")] == [AddResult.QUEUED, AddResult.MERGED]
    assert (order.touched, state.waiting) == (["a"], 1)
    assert (state.take(), state.waiting, state.processing) == ("a", 0, 1)
    assert state.done("a") is False
    assert state.waiting == 0


def test_two_adds_while_it_is_worked_on_are_one_more_turn_after_it_is_done() -> None:
    """CG-Q06."""
    order = Remembered()
    state = WorkState[str](order)
    state.add("a")
    state.take()
    assert [state.add("a"), state.add("a")] == [AddResult.LATER, AddResult.MERGED]
    assert (state.waiting, state.returning, order.touched) == (0, 1, [])
    assert state.done("a") is True
    assert (state.waiting, state.returning, state.processing) == (1, 0, 0)
    assert state.take() == "a"
    assert state.done("a") is False


def test_a_key_that_comes_back_has_the_highest_priority_it_was_added_with() -> None:
    order = Remembered()
    state = WorkState[str](order)
    state.add("a", Priority.LOW)
    state.take()
    for priority in (Priority.LOW, Priority.HIGH, Priority.NORMAL):
        state.add("a", priority)
    state.done("a")
    assert order.pushed == [("a", Priority.LOW), ("a", Priority.HIGH)]


def test_a_key_that_comes_back_stands_at_the_end_of_the_line() -> None:
    state = WorkState[str]()
    for key in "ab":
        state.add(key)
    state.take()
    state.add("a")
    state.add("c")
    state.done("a")
    assert [state.take() for _ in range(3)] == ["b", "c", "a"]


@pytest.mark.parametrize("before", ["nothing", "add", "all"])
def test_done_without_a_take_is_a_key_error_and_changes_nothing(before: str) -> None:
    state = WorkState[str]()
    if before != "nothing":
        state.add("a")
    if before == "all":
        state.take()
        state.done("a")
    with pytest.raises(KeyError):
        state.done("a")
    assert (state.processing, state.unfinished()) == (0, ["a"] if before == "add" else [])


def test_an_order_that_raises_leaves_everything_as_it_was() -> None:
    state = WorkState[str](Remembered())
    with pytest.raises(ValueError, match="bad"):
        state.add("bad")
    assert (state.waiting, "bad" in state) == (0, False)


def test_an_order_that_raises_when_a_key_comes_back_leaves_it_being_worked_on() -> None:
    order = Remembered()
    state = WorkState[str](order)
    order.line, state.waiting, state._states = ["bad"], 1, {"bad": 1}
    state.take()
    state.add("bad")
    with pytest.raises(ValueError, match="bad"):
        state.done("bad")
    assert (state.processing, state.waiting, state.is_processing("bad")) == (1, 0, True)


class Sets(RuleBasedStateMachine):
    """Client-go's three sets are the model; nothing is asked of the order but who waits."""

    fair = False

    def __init__(self) -> None:
        super().__init__()
        self.state = WorkState[str](FairOrder() if self.fair else None)
        self.line: list[str] = []
        self.dirty: set[str] = set()
        self.processing: set[str] = set()

    @rule(key=st.sampled_from("abcde"), priority=st.sampled_from(Priority))
    def add(self, key: str, priority: Priority) -> None:
        added = self.state.add(key, priority)
        if key in self.dirty:
            assert added is AddResult.MERGED
            return
        self.dirty.add(key)
        if key in self.processing:
            assert added is AddResult.LATER
        else:
            assert added is AddResult.QUEUED
            self.line.append(key)

    @precondition(lambda self: self.line)
    @rule()
    def take(self) -> None:
        key = self.state.take()
        assert key in self.line
        assert self.fair or key == self.line[0]
        self.line.remove(key)
        self.dirty.remove(key)
        assert key not in self.processing
        self.processing.add(key)

    @rule(key=st.sampled_from("abcde"))
    def done(self, key: str) -> None:
        if key not in self.processing:
            with pytest.raises(KeyError):
                self.state.done(key)
            return
        self.processing.remove(key)
        assert self.state.done(key) is (key in self.dirty)
        if key in self.dirty:
            self.line.append(key)

    @invariant()
    def same(self) -> None:
        state = self.state
        assert state.waiting == len(self.line)
        assert state.processing == len(self.processing)
        assert state.returning == len(self.dirty & self.processing)
        assert set(state.unfinished()) == self.dirty | self.processing
        assert {key for key in "abcde" if state.is_processing(key)} == self.processing


class FairSets(Sets):
    fair = True


TestSets = pytest.mark.slow(Sets.TestCase)
TestFairSets = pytest.mark.slow(FairSets.TestCase)
TestSets.settings = TestFairSets.settings = settings(max_examples=50, stateful_step_count=30)
