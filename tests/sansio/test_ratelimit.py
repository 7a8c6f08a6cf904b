"""The token bucket's one promise: never more than burst + rate * t."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.sansio.ratelimit import TokenBucket


def test_a_burst_is_free_and_then_the_rate_rules() -> None:
    bucket = TokenBucket(rate=5, burst=2)
    assert [bucket.reserve(0.0) for _ in range(4)] == pytest.approx([0, 0, 0.2, 0.4])


def test_tokens_come_back_with_time_up_to_the_burst() -> None:
    bucket = TokenBucket(rate=1, burst=2)
    waits = [bucket.reserve(now) for now in (0.0, 0.0, 100.0, 100.0, 100.0)]
    assert waits == pytest.approx([0, 0, 0, 0, 1])


def test_a_reservation_given_back_is_not_lost() -> None:
    bucket = TokenBucket(rate=1, burst=1)
    bucket.reserve(0.0)
    due = bucket.reserve(0.0)
    bucket.give_back(due)
    assert bucket.reserve(0.0) == due == 1.0


def test_a_token_given_back_after_others_were_promised_is_lost() -> None:
    """Otherwise two would fall due at the same moment."""
    bucket = TokenBucket(rate=1, burst=1)
    first, second, third = (bucket.reserve(0.0) for _ in range(3))
    bucket.give_back(second)
    assert [first, second, third, bucket.reserve(0.0)] == [0.0, 1.0, 2.0, 3.0]


def test_giving_back_more_than_was_taken_does_not_raise_the_burst() -> None:
    bucket = TokenBucket(rate=1, burst=1)
    bucket.give_back(0.0)
    assert [bucket.reserve(0.0), bucket.reserve(0.0)] == [0.0, 1.0]


@pytest.mark.parametrize(("rate", "burst"), [(0, 1), (-1, 1), (1, 0), (float("nan"), 1)])
def test_a_bucket_that_never_fills_is_refused(rate: float, burst: int) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        TokenBucket(rate=rate, burst=burst)


@given(
    rate=st.floats(0.5, 100),
    burst=st.integers(1, 20),
    steps=st.lists(st.tuples(st.floats(-0.1, 1), st.booleans()), min_size=1, max_size=60),
)
def test_in_any_span_at_most_burst_plus_rate_times_time_fall_due(
    rate: float, burst: int, steps: list[tuple[float, bool]]
) -> None:
    """Also when the clock stands still or steps back, and when some are given back."""
    bucket = TokenBucket(rate=rate, burst=burst)
    now, due = 0.0, list[float]()
    for step, is_given_back in steps:
        now += step
        due.append(now + bucket.reserve(now))
        if is_given_back and due[-1] > now:
            bucket.give_back(due.pop())
    due.sort()
    for start in range(len(due)):
        for end in range(start, len(due)):
            allowed = burst + rate * (due[end] - due[start])
            assert end - start + 1 <= allowed + 1e-6
