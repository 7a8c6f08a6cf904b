"""Rate limits: never more than burst + rate * t, and reconnects that are apart and spread."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.sansio.token_bucket import (
    MAX_LATENESS,
    Departure,
    Pace,
    TokenBucket,
    Wave,
    reconnect_rate,
)


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


# --- reconnects


@pytest.mark.parametrize(
    ("informers", "rate"), [(0, 5), (1, 5), (100, 5), (101, 5.05), (1_000, 50), (10_000, 500)]
)
def test_the_default_rate_brings_all_informers_back_within_20_seconds(
    informers: int, rate: float
) -> None:
    assert reconnect_rate(informers) == rate
    assert informers / reconnect_rate(informers) <= 20


def test_turns_are_apart_and_idle_time_is_not_saved() -> None:
    pace = Pace()
    taken: list[float] = []
    for asked in (0.0, 0.0, 0.0, 100.0, 100.0):
        taken.append(pace.due(asked))
        pace.take(asked, now=taken[-1], rate=5)
    assert taken == pytest.approx([0, 0.2, 0.4, 100, 100.2])


def test_a_rate_that_grows_counts_from_the_next_turn_on() -> None:
    pace = Pace()
    pace.take(0.0, now=0.0, rate=1)
    pace.take(0.0, now=1.0, rate=10)
    assert pace.due(0.0) == pytest.approx(1.1)


@given(
    rate=st.floats(0.5, 100),
    steps=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 0.5)), min_size=1, max_size=60),
    is_busy=st.booleans(),
)
def test_in_any_span_there_are_no_more_turns_than_the_rate_allows(
    rate: float, steps: list[tuple[float, float]], *, is_busy: bool
) -> None:
    """A busy loop takes turns late: it makes up for the last tenth of a second, not for more."""
    pace, asked, now, taken = Pace(), 0.0, 0.0, list[float]()
    for step, late in steps:
        asked += step
        now = max(now, pace.due(asked) + (late if is_busy else 0.0))
        pace.take(asked, now=now, rate=rate)
        taken.append(now)
    slack = MAX_LATENESS if is_busy else 0.0
    for start in range(len(taken)):
        for end in range(start, len(taken)):
            allowed = rate * (taken[end] - taken[start] + slack) + 1
            assert end - start + 1 <= allowed + 1e-6


def test_a_busy_loop_keeps_the_rate_if_it_is_late_by_little() -> None:
    pace, now = Pace(), 0.0
    for _ in range(100):
        now = pace.due(0.0) + 0.05
        pace.take(0.0, now=now, rate=10)
    assert now == pytest.approx(99 / 10 + 0.05)


def test_watches_that_end_together_are_spread_over_the_time_they_need() -> None:
    wave = Wave()
    ends = [wave.join(7.0, rand=number / 1000) for number in range(1000)]
    due = [wave.due(end, rate=50, informers=1000) for end in ends]
    assert due == pytest.approx([7.0 + number / 1000 * 20 for number in range(1000)])


def test_a_watch_that_ends_alone_waits_for_one_turn_at_most() -> None:
    wave = Wave()
    for _ in range(1000):
        end = wave.join(0.0, rand=0.5)
        assert wave.due(end, rate=50, informers=1000) == pytest.approx(0.5 / 50)
        wave.leave()


def test_a_wave_that_grows_puts_off_those_that_came_first() -> None:
    wave = Wave()
    first = wave.join(0.0, rand=0.5)
    before = wave.due(first, rate=5, informers=10)
    for _ in range(9):
        wave.join(0.1, rand=0.5)
    assert (before, wave.due(first, rate=5, informers=10)) == pytest.approx((0.1, 1.0))


@given(
    moves=st.lists(st.floats(0, 0.999) | st.none(), max_size=80),
    informers=st.integers(0, 20),
    rate=st.floats(0.5, 100),
)
def test_nothing_is_put_off_for_longer_than_all_informers_need(
    moves: list[float | None], informers: int, rate: float
) -> None:
    wave, ends = Wave(), list[Departure]()
    for rand in moves:
        if rand is not None:
            ends.append(wave.join(0.0, rand=rand))
        elif wave.waiting:
            wave.leave()
    for end in ends:
        assert 0.0 <= wave.due(end, rate=rate, informers=informers) <= max(informers, 1) / rate
