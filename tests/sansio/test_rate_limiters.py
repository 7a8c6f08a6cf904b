"""How long a failed key waits: client-go's figures, and what holds for any sequence of failures."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.sansio.workqueue.rate_limiters import (
    BucketRateLimiter,
    ItemExponentialFailureRateLimiter,
    ItemFastSlowRateLimiter,
    MaxOfRateLimiter,
    RateLimiter,
    WithMaxWaitRateLimiter,
    default_controller_rate_limiter,
)

MS = 0.001


def waits(limiter: RateLimiter[str], item: str, times: int, *, now: float = 0.0) -> list[float]:
    return [limiter.when(item, now) for _ in range(times)]


def test_each_key_waits_twice_as_long_as_before_until_it_is_forgotten() -> None:
    """CG-Q17."""
    limiter = ItemExponentialFailureRateLimiter[str](1 * MS, 1.0)
    assert waits(limiter, "one", 5) == pytest.approx([1 * MS, 2 * MS, 4 * MS, 8 * MS, 16 * MS])
    assert limiter.num_requeues("one") == 5
    assert waits(limiter, "two", 2) == pytest.approx([1 * MS, 2 * MS])
    assert limiter.num_requeues("two") == 2
    limiter.forget("one")
    assert limiter.num_requeues("one") == 0
    assert waits(limiter, "one", 1) == [1 * MS]


@pytest.mark.parametrize(
    ("base", "cap"),
    [pytest.param(MS, 1000.0, id="seconds"), pytest.param(60.0, 3_600_000.0, id="hours")],
)
def test_a_thousand_failures_wait_as_long_as_the_cap_and_overflow_nothing(
    base: float, cap: float
) -> None:
    """CG-Q18."""
    limiter = ItemExponentialFailureRateLimiter[str](base, cap)
    assert waits(limiter, "one", 5)[-1] == pytest.approx(base * 16)
    assert waits(limiter, "one", 3_000)[990:] == [cap] * 2_010
    assert limiter.num_requeues("one") == 3_005


def test_a_few_tries_are_fast_and_the_rest_is_slow() -> None:
    """CG-Q19."""
    limiter = ItemFastSlowRateLimiter[str](5 * MS, 10.0, max_fast_attempts=3)
    assert waits(limiter, "one", 5) == [5 * MS, 5 * MS, 5 * MS, 10.0, 10.0]
    assert limiter.num_requeues("one") == 5
    assert waits(limiter, "two", 2) == [5 * MS, 5 * MS]
    limiter.forget("one")
    assert (limiter.num_requeues("one"), limiter.num_requeues("two")) == (0, 2)
    assert waits(limiter, "one", 4) == [5 * MS, 5 * MS, 5 * MS, 10.0]


def test_of_several_limiters_the_strictest_is_obeyed() -> None:
    """CG-Q20."""
    limiter = MaxOfRateLimiter[str](
        ItemFastSlowRateLimiter(5 * MS, 3.0, max_fast_attempts=3),
        ItemExponentialFailureRateLimiter(1 * MS, 1.0),
    )
    assert waits(limiter, "one", 5) == [5 * MS, 5 * MS, 5 * MS, 3.0, 3.0]
    assert limiter.num_requeues("one") == 5
    assert waits(limiter, "two", 1) == [5 * MS]
    limiter.forget("one")
    assert limiter.num_requeues("one") == 0
    assert waits(limiter, "one", 1) == [5 * MS]


def test_a_longest_wait_cuts_what_another_limiter_says() -> None:
    """CG-Q21."""
    limiter = WithMaxWaitRateLimiter[str](ItemExponentialFailureRateLimiter(1.0, 1000.0), 500.0)
    assert waits(limiter, "one", 12)[-4:] == [256.0, 500.0, 500.0, 500.0]
    assert limiter.num_requeues("one") == 12
    limiter.forget("one")
    assert waits(limiter, "one", 1) == [1.0]


def test_a_bucket_is_shared_by_all_keys_and_fills_with_time() -> None:
    limiter = BucketRateLimiter[str](10.0, burst=2)
    assert [limiter.when(key, 0.0) for key in "abcd"] == pytest.approx([0, 0, 0.1, 0.2])
    limiter.forget("a")
    assert limiter.num_requeues("a") == 0
    assert limiter.when("a", 1.2) == 0


def test_controllers_wait_5_ms_to_1000_s_a_key_and_10_a_second_after_a_burst_of_100() -> None:
    limiter = default_controller_rate_limiter()
    assert [limiter.when("one", 0.0) for _ in range(3)] == [5 * MS, 10 * MS, 20 * MS]
    assert limiter.num_requeues("one") == 3
    others = [limiter.when(f"other {n}", 0.0) for n in range(98)]
    assert others[:97] == [5 * MS] * 97
    assert others[97] == pytest.approx(0.1)
    much_later = 1e9
    assert [limiter.when("one", much_later) for _ in range(30)][-1] == 1000.0


def test_every_default_limiter_counts_for_itself() -> None:
    first, second = default_controller_rate_limiter(), default_controller_rate_limiter()
    first.when("one", 0.0)
    assert second.num_requeues("one") == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda: ItemExponentialFailureRateLimiter(-1.0, 1.0),
        lambda: ItemExponentialFailureRateLimiter(2.0, 1.0),
        lambda: ItemExponentialFailureRateLimiter(1.0, math.inf),
        lambda: ItemExponentialFailureRateLimiter(math.nan, 1.0),
        lambda: ItemFastSlowRateLimiter(-1.0, 1.0, max_fast_attempts=1),
        lambda: ItemFastSlowRateLimiter(1.0, math.nan, max_fast_attempts=1),
        lambda: ItemFastSlowRateLimiter(1.0, 1.0, max_fast_attempts=-1),
        lambda: BucketRateLimiter(0.0),
        lambda: BucketRateLimiter(1.0, burst=0),
        MaxOfRateLimiter,
        lambda: WithMaxWaitRateLimiter(BucketRateLimiter[str](), math.nan),
    ],
)
def test_figures_that_mean_nothing_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"expected|positive"):
        make()


@given(
    st.floats(0, 1e6),
    st.floats(0, 1e6),
    st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=80),
)
def test_waits_of_a_key_never_shrink_nor_leave_their_bounds_until_it_is_forgotten(
    one: float, other: float, steps: list[tuple[str, bool]]
) -> None:
    base, cap = sorted([one, other])
    limiter = ItemExponentialFailureRateLimiter[str](base, cap)
    last: dict[str, float] = {}
    count = dict.fromkeys("abc", 0)
    for key, is_forgotten in steps:
        if is_forgotten:
            limiter.forget(key)
            last.pop(key, None)
            count[key] = 0
        else:
            wait = limiter.when(key, 0.0)
            assert min(base, cap) <= wait <= cap
            assert wait == (base if key not in last else min(2 * last[key], cap))
            last[key] = wait
            count[key] += 1
        assert {each: limiter.num_requeues(each) for each in count} == count
