"""Nobody starves: shares, priorities and ageing, and the bound that holds whatever is added."""

from __future__ import annotations

import time
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinform.meta import ObjectName
from kinform.sansio.workqueue.fair_order import AGEING, FairOrder, by_namespace
from kinform.sansio.workqueue.key_queue import Priority

LOW, NORMAL, HIGH = Priority.LOW, Priority.NORMAL, Priority.HIGH


def take(order: FairOrder[str], count: int) -> list[str]:
    return [order.pop() for _ in range(count)]


def tenants(keys: list[str]) -> Counter[str]:
    return Counter(key.partition("/")[0] for key in keys)


def test_one_tenant_with_one_priority_is_served_first_come_first_served() -> None:
    order = FairOrder[str]()
    for n in range(5):
        order.push(f"a/{n}", NORMAL)
    assert (len(order), take(order, 5)) == (5, [f"a/{n}" for n in range(5)])
    with pytest.raises(IndexError):
        order.pop()


def test_a_busy_tenant_does_not_keep_the_others_waiting() -> None:
    order = FairOrder[str]()
    for n in range(1_000):
        order.push(f"busy/{n}", NORMAL)
    take(order, 100)
    order.push("other/1", NORMAL)
    order.push("other/2", NORMAL)
    assert tenants(take(order, 4)) == {"busy": 2, "other": 2}


def test_tenants_that_all_have_work_get_equal_shares() -> None:
    order = FairOrder[str]()
    for n in range(300):
        order.push(f"a/{n}", NORMAL)
    for tenant in "bc":
        for n in range(100):
            order.push(f"{tenant}/{n}", NORMAL)
    for count in (30, 150):
        assert tenants(take(order, count)) == dict.fromkeys("abc", count // 3)


def test_live_work_overtakes_a_long_first_list() -> None:
    order = FairOrder[str]()
    for n in range(10_000):
        order.push(f"a/{n}", LOW)
    take(order, 5_000)
    order.push("a/live", HIGH)
    assert "a/live" in take(order, 2)
    order.push("a/changed", NORMAL)
    assert "a/changed" in take(order, 2)


def test_a_stream_of_urgent_work_does_not_starve_the_rest() -> None:
    """What controller-runtime's queue does: there the low one is never taken."""
    order = FairOrder[str]()
    order.push("a/low", LOW)
    for n in range(10):
        order.push(f"a/{n}", HIGH)
    taken = list[str]()
    for n in range(10, 1_000):
        order.push(f"a/{n}", HIGH)
        taken.append(order.pop())
    assert taken.index("a/low") <= order.most_before(LOW, tenants=1)


def test_urgent_work_that_comes_key_by_key_does_not_starve_the_rest_either() -> None:
    order = FairOrder[str]()
    order.push("a/low", LOW)
    taken = list[str]()
    for n in range(1_000):
        order.push(f"a/{n}", HIGH)
        taken.append(order.pop())
        if taken[-1] == "a/low":
            break
    assert len(taken) == AGEING**2 + 1


@pytest.mark.parametrize("ageing", [1, 2, AGEING])
def test_for_so_many_keys_of_one_priority_one_of_the_next_is_taken(ageing: int) -> None:
    order = FairOrder[str](ageing=ageing)
    for priority in Priority:
        for n in range(1_000):
            order.push(f"{priority.name}/{n}", priority)
    shares = {"LOW": 10, "NORMAL": 10 * ageing, "HIGH": 10 * ageing**2}
    assert tenants(take(order, sum(shares.values()))) == pytest.approx(shares, abs=1)


def test_a_key_added_again_with_a_higher_priority_goes_forward_and_comes_once() -> None:
    order = FairOrder[str]()
    for n in range(100):
        order.push(f"a/{n}", LOW)
    order.touch("a/99", LOW)
    assert order.pop() == "a/0"
    for priority in (NORMAL, HIGH, LOW):
        order.touch("a/99", priority)
    assert (len(order), order.pop(), len(order)) == (99, "a/99", 98)
    assert take(order, 98) == [f"a/{n}" for n in range(1, 99)]
    with pytest.raises(IndexError):
        order.pop()


def test_a_key_that_is_raised_and_still_first_in_its_old_line_is_taken_there() -> None:
    order = FairOrder[str]()
    order.push("a/old", LOW)
    for n in range(1_000):
        order.push(f"a/{n}", HIGH)
    take(order, AGEING**2 - 1)
    order.touch("a/old", HIGH)  # at the end of a long line
    assert "a/old" in take(order, 2)


def test_a_key_that_is_alone_can_be_raised_too() -> None:
    order = FairOrder[str]()
    order.push("a/1", LOW)
    order.touch("a/1", HIGH)
    order.push("a/2", NORMAL)
    assert (take(order, 2), len(order)) == (["a/1", "a/2"], 0)


def test_nobody_gains_by_being_idle_for_a_moment() -> None:
    """One that puts in a key whenever its last was taken, against one with a long line."""
    order = FairOrder[str]()
    for n in range(200):
        order.push(f"line/{n}", NORMAL)
    order.push("drop/0", NORMAL)
    taken = list[str]()
    for n in range(1, 101):
        taken.append(order.pop())
        if taken[-1].startswith("drop"):
            order.push(f"drop/{n}", NORMAL)
    assert tenants(taken) == pytest.approx({"line": 50, "drop": 50}, abs=1)


def test_tenants_without_work_are_forgotten() -> None:
    order = FairOrder[str]()
    order.push("always/0", LOW)
    for n in range(2_000):
        order.push(f"tenant-{n}/x", LOW)
        order.touch(f"tenant-{n}/x", HIGH)
        order.push(f"always/{n + 1}", LOW)
        take(order, 2)
    assert max(len(line.round) for line in order._lines) == 1
    assert not order._raised


@pytest.mark.slow
def test_a_long_line_is_emptied_in_linear_time() -> None:
    def seconds(count: int) -> float:
        order = FairOrder[str]()
        for n in range(count):
            order.push(f"a/{n}", NORMAL)
        began = time.process_time()
        take(order, count)
        return time.process_time() - began

    few = min(seconds(5_000) for _ in range(3))
    assert min(seconds(50_000) for _ in range(2)) < 10 * 4 * few


@pytest.mark.parametrize("ageing", [-1, 0])
def test_ageing_must_be_positive(ageing: int) -> None:
    with pytest.raises(ValueError, match=f"ageing is {ageing}; expected at least 1"):
        FairOrder[str](ageing=ageing)


@pytest.mark.parametrize(
    ("key", "namespace"),
    [
        (ObjectName("default", "web"), "default"),
        (ObjectName("", "node"), ""),
        ("default/web", "default"),
        ("node", ""),
        (7, ""),
    ],
)
def test_the_tenant_is_the_namespace(key: object, namespace: str) -> None:
    assert by_namespace(key) == namespace


def no_bad_ones(key: str) -> str:
    if key == "bad":
        raise KeyError(key)
    return ""


def test_a_tenant_function_that_raises_changes_nothing() -> None:
    order = FairOrder[str](tenant=no_bad_ones)
    order.push("good", NORMAL)
    with pytest.raises(KeyError):
        order.push("bad", NORMAL)
    assert (len(order), order.pop(), len(order)) == (1, "good", 0)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("push"), st.integers(0, 3), st.sampled_from(Priority)),
        st.tuples(st.just("raise"), st.integers(0, 60), st.sampled_from(Priority)),
        st.tuples(st.just("pop"), st.integers(1, 4), st.just(NORMAL)),
    ),
    max_size=150,
)


@pytest.mark.slow
@settings(max_examples=200)
@given(steps, st.integers(1, 4))
def test_every_key_is_taken_once_and_within_its_bound_whatever_is_added_after_it(
    steps: list[tuple[str, int, Priority]], ageing: int
) -> None:
    """At most `most_before` others go first, also where keys are raised and tenants come and go."""
    order = FairOrder[str](ageing=ageing)
    lines: dict[tuple[object, Priority], set[str]] = {}
    deadline: dict[str, int] = {}
    taken = 0

    def pop() -> None:
        nonlocal taken
        key = order.pop()
        assert taken <= deadline.pop(key), f"{key} waited too long"
        taken += 1
        for line in lines.values():
            line.discard(key)

    def stand_in(key: str, priority: Priority) -> None:
        line = lines.setdefault((by_namespace(key), priority), set())
        latest = taken + order.most_before(priority, tenants=4, ahead=len(line))
        deadline[key] = min(latest, deadline.get(key, latest))
        line.add(key)

    for number, (what, which, priority) in enumerate(steps):
        if what == "push":
            order.push(key := f"{which}/{number}", priority)
            stand_in(key, priority)
        elif what == "raise" and deadline:
            key = sorted(deadline)[which % len(deadline)]
            order.touch(key, priority)
            if priority > max(each for (_, each), line in lines.items() if key in line):
                stand_in(key, priority)
        else:
            for _ in range(min(which, len(order))):
                pop()
        assert len(order) == len(deadline)
    while deadline:
        pop()
    assert len(order) == 0


@pytest.mark.slow
@settings(max_examples=100)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from(Priority)), min_size=1, max_size=20),
    st.integers(1, 5),
    st.sampled_from(Priority),
)
def test_the_bound_holds_against_an_endless_stream(
    stream: list[tuple[int, Priority]], ageing: int, priority: Priority
) -> None:
    """The worst case: for each key that is taken more come, of old tenants and of new ones."""
    order = FairOrder[str](ageing=ageing)
    for n, (tenant, each) in enumerate(stream):
        order.push(f"{tenant}/{n}", each)
    order.push("victim/x", priority)
    bound = order.most_before(priority, tenants=4 + 1)
    for taken in range(bound + 1):
        for n, (tenant, each) in enumerate(stream[:3]):
            order.push(f"{tenant}/{taken}-{n}", each)
            order.push(f"new {taken}/{n}", each)
        if order.pop() == "victim/x":
            return
    pytest.fail(f"more than {bound} went first")
