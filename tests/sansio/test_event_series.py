"""Series of Events: counted in memory, told at the second, at the end and every half hour."""

from __future__ import annotations

import dataclasses
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.sansio.events.correlation import EventRecord, ObjectReference, Occurrence
from kinform.sansio.events.series import EventSeries

DEVIATIONS: Final = {
    "CG-H15": "a series whose full count is on the server ends without another patch; the number "
    "of series is bounded",
}

WEB = ObjectReference(api_version="v1", kind="Pod", namespace="shop", name="web-0", uid="u1")
PULLED = Occurrence(
    regarding=WEB, type="Normal", reason="Pulled", message="pulled", action="Pulling"
)
MINUTE = 60.0


class Server:
    """Takes what is to be written, as the recorder does with a server that is well."""

    def __init__(self, series: EventSeries) -> None:
        self.series = series
        self.writes: list[tuple[str, int]] = []
        self.counts: dict[str, int] = {}

    def observe(self, occurrence: Occurrence, now: float) -> None:
        self.write(*self.series.observe(occurrence, now=now, wall=now))

    def write(self, *records: EventRecord) -> None:
        for record in records:
            self.writes.append(("patch" if record.exists else "create", record.count))
            self.counts[record.name] = record.count
            record.settle(record.count)


def test_the_second_makes_a_series_and_the_others_are_only_counted() -> None:
    """CG-H15: create, patch."""
    server = Server(EventSeries())
    for second in range(50):
        server.observe(dataclasses.replace(PULLED, message=f"pulled {second}"), float(second))
    assert server.writes == [("create", 1), ("patch", 2)]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"action": "Other"}, id="action"),
        pytest.param({"type": "Warning"}, id="type"),
        pytest.param({"reason": "Other"}, id="reason"),
        pytest.param({"regarding": dataclasses.replace(WEB, name="web-1")}, id="object"),
        pytest.param({"related": WEB}, id="related"),
    ],
)
def test_what_differs_is_no_series(other: dict[str, object]) -> None:
    server = Server(EventSeries())
    server.observe(PULLED, 0.0)
    server.observe(dataclasses.replace(PULLED, **other), 0.0)  # type: ignore[arg-type]
    assert server.writes == [("create", 1), ("create", 1)]


def test_a_series_ends_after_six_minutes_of_silence_with_its_count() -> None:
    """CG-H15: finish."""
    series = EventSeries()
    server = Server(series)
    for second in range(5):
        server.observe(PULLED, float(second))
    assert series.next_due() == 4 + 6 * MINUTE
    server.write(*series.due(3 + 6 * MINUTE))
    assert len(server.writes) == 2
    server.write(*series.due(4 + 6 * MINUTE))
    assert server.writes[2:] == [("patch", 5)]
    assert (len(series), series.next_due()) == (0, None)
    server.observe(PULLED, 5 + 6 * MINUTE)
    assert server.writes[3:] == [("create", 1)]


def test_what_the_server_knows_already_ends_without_a_write() -> None:
    """CG-H15: an event that was no series is forgotten."""
    series = EventSeries()
    server = Server(series)
    server.observe(PULLED, 0.0)
    assert series.due(6 * MINUTE) == ()
    assert len(series) == 0


def test_a_series_that_is_over_is_told_before_the_next_one_begins() -> None:
    server = Server(EventSeries())
    for now in (0.0, 1.0, 2.0, 400.0):
        server.observe(PULLED, now)
    assert server.writes == [("create", 1), ("patch", 2), ("patch", 3), ("create", 1)]


def test_a_series_that_goes_on_is_told_every_half_hour() -> None:
    """CG-H15: refresh."""
    series = EventSeries()
    server = Server(series)
    now = 0.0
    while now <= 95 * MINUTE:
        server.observe(PULLED, now)
        due = series.next_due()
        assert due is not None
        assert due > now
        now += 5 * MINUTE
        server.write(*series.due(now))
    assert server.writes == [
        ("create", 1), ("patch", 2), ("patch", 6), ("patch", 12), ("patch", 18)
    ]  # fmt: skip


def test_a_flush_tells_what_was_only_counted() -> None:
    series = EventSeries()
    server = Server(series)
    for _ in range(7):
        server.observe(PULLED, 0.0)
    server.write(*series.flush())
    assert server.writes[2:] == [("patch", 7)]
    assert series.flush() == ()


def test_the_series_that_was_silent_for_longest_is_told_before_it_makes_room() -> None:
    series = EventSeries(size=2)
    server = Server(series)
    a, b, c = (dataclasses.replace(PULLED, reason=reason) for reason in "ABC")
    for occurrence in (a, a, a, b, c):
        server.observe(occurrence, 0.0)
    assert server.writes == [
        ("create", 1), ("patch", 2), ("create", 1), ("patch", 3), ("create", 1)
    ]  # fmt: skip


STEPS = st.lists(
    st.tuples(st.sampled_from("ABCDE"), st.floats(0, 500), st.booleans()), max_size=150
)


@given(STEPS, st.integers(1, 5))
def test_everything_is_told_in_the_end_with_few_writes_and_little_memory(
    steps: list[tuple[str, float, bool]], size: int
) -> None:
    series = EventSeries(size=size)
    server = Server(series)
    now = 0.0
    for reason, pause, wakes in steps:
        now += pause
        if wakes:
            server.write(*series.due(now))
        server.observe(dataclasses.replace(PULLED, reason=reason), now)
        assert len(series) <= size
    server.write(*series.flush())
    assert sum(server.counts.values()) == len(steps)
    begun = len(server.counts)
    refreshes = now // 1800 + 1
    assert len(server.writes) <= 3 * begun + size * refreshes


@given(STEPS)
def test_what_was_never_written_is_due_in_the_end(steps: list[tuple[str, float, bool]]) -> None:
    """As if no write had been possible at the time: the outbox was full."""
    series = EventSeries()
    now, told = 0.0, set[EventRecord]()
    for reason, pause, _ in steps:
        now += pause
        told.update(series.observe(dataclasses.replace(PULLED, reason=reason), now=now, wall=now))
    told.update(series.due(now + 360.0))
    assert sum(record.count for record in told) == len(steps)
    assert series.next_due() is None
