"""Which Event an occurrence is counted in: client-go's figures, and bounds for any history."""

from __future__ import annotations

import dataclasses
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.apiserver.validation.names import dns_subdomain
from kinform.sansio.events.correlation import (
    LRU,
    EventCorrelator,
    EventNames,
    EventRecord,
    ObjectReference,
    Occurrence,
    cut,
    event_name,
)

DEVIATIONS: Final = {
    "CG-H14": "the spam filter counts writes, not events: an event that is counted into a pending "
    "write costs nothing; and the first nine messages keep their own events when later ones are "
    "aggregated",
}

WEB = ObjectReference(api_version="v1", kind="Pod", namespace="shop", name="web-0", uid="u1")
PULLED = Occurrence(regarding=WEB, type="Normal", reason="Pulled", message="pulled")


def said(message: str, *, of: Occurrence = PULLED) -> Occurrence:
    return dataclasses.replace(of, message=message)


def observed(
    correlator: EventCorrelator, occurrence: Occurrence, *, now: float = 0.0
) -> EventRecord:
    (record,) = correlator.observe(occurrence, now=now, wall=1_000.0 + now)
    return record


# --- counting


def test_the_same_event_is_counted_in_one_record() -> None:
    """CG-H14: same event counts."""
    correlator = EventCorrelator()
    first = observed(correlator, PULLED)
    assert (first.count, first.exists, first.is_settled) == (1, False, False)
    for minute in range(1, 200):
        assert observed(correlator, PULLED, now=60.0 * minute) is first
    assert (first.count, first.first, first.last) == (200, 1_000.0, 1_000.0 + 60 * 199)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"message": "other"}, id="message"),
        pytest.param({"type": "Warning"}, id="type"),
        pytest.param({"reason": "Pulling"}, id="reason"),
        pytest.param({"regarding": dataclasses.replace(WEB, name="web-1")}, id="object"),
        pytest.param({"regarding": dataclasses.replace(WEB, uid="u2")}, id="incarnation"),
        pytest.param({"regarding": dataclasses.replace(WEB, kind="Service")}, id="kind"),
    ],
)
def test_what_differs_is_counted_on_its_own(other: dict[str, object]) -> None:
    correlator = EventCorrelator()
    one = observed(correlator, PULLED)
    two = observed(correlator, dataclasses.replace(PULLED, **other))  # type: ignore[arg-type]
    assert one is not two
    assert (one.count, two.count) == (1, 1)
    assert one.name != two.name


def test_different_container_paths_are_not_counted_together() -> None:
    """CG-H14: different container paths are not merged by count."""
    correlator = EventCorrelator()
    paths = ("spec.containers{a}", "spec.containers{b}")
    parts = [dataclasses.replace(WEB, field_path=path) for path in paths]
    records = {
        observed(correlator, dataclasses.replace(PULLED, regarding=part)) for part in parts * 3
    }
    assert sorted(record.count for record in records) == [3, 3]


def test_another_version_of_the_object_is_the_same_object() -> None:
    correlator = EventCorrelator()
    newer = dataclasses.replace(PULLED, regarding=dataclasses.replace(WEB, resource_version="9"))
    assert observed(correlator, PULLED) is observed(correlator, newer)


# --- combining


def test_the_tenth_distinct_message_and_those_after_it_are_one_combined_event() -> None:
    """CG-H14: 10 similar are aggregated."""
    correlator = EventCorrelator()
    single = [observed(correlator, said(f"message {n}")) for n in range(9)]
    assert len(set(single)) == 9
    combined = observed(correlator, said("message 9"))
    assert combined not in single
    assert combined.occurrence.message == "(combined from similar events): message 9"
    assert observed(correlator, said("message 10"), now=599.0) is combined
    assert combined.occurrence.message == "(combined from similar events): message 10"
    assert combined.count == 2
    # Those that had an event of their own are still counted there.
    assert observed(correlator, said("message 3"), now=600.0) is single[3]


def test_similar_events_of_another_reason_or_object_are_not_combined() -> None:
    correlator = EventCorrelator()
    for n in range(9):
        observed(correlator, said(f"message {n}"))
    warning = dataclasses.replace(PULLED, type="Warning", message="message 9")
    elsewhere = dataclasses.replace(WEB, name="web-1")
    moved = dataclasses.replace(PULLED, regarding=elsewhere, message="message 9")
    assert observed(correlator, warning).occurrence.message == "message 9"
    assert observed(correlator, moved).occurrence.message == "message 9"


def test_messages_that_come_more_than_ten_minutes_apart_are_not_combined() -> None:
    """CG-H14: an interval of more than 600 s resets."""
    correlator = EventCorrelator()
    for n in range(30):
        record = observed(correlator, said(f"message {n}"), now=601.0 * n)
        assert record.occurrence.message == f"message {n}"


def test_a_combined_message_is_cut_as_any_other() -> None:
    correlator = EventCorrelator()
    records = [observed(correlator, said(f"{n}{'x' * 1023}")) for n in range(10)]
    message = records[-1].occurrence.message
    assert message.startswith("(combined from similar events): 9xxx")
    assert len(message) == 1024


# --- too many


def test_an_object_has_25_writes_at_once_and_one_more_every_five_minutes() -> None:
    """CG-H14: more than 25 in a burst are dropped."""
    correlator = EventCorrelator()
    record = observed(correlator, PULLED)
    assert [correlator.allows(record, 0.0) for _ in range(30)] == [True] * 25 + [False] * 5
    other = observed(
        correlator, dataclasses.replace(PULLED, regarding=dataclasses.replace(WEB, name="b"))
    )
    assert correlator.allows(other, 0.0)
    assert not correlator.allows(record, 299.0)
    assert correlator.allows(record, 300.0)
    assert not correlator.allows(record, 301.0)


@given(
    times=st.lists(st.floats(0, 5_000), max_size=120).map(sorted),
    data=st.data(),
)
def test_writes_about_one_object_are_bounded_and_nothing_allowed_is_uncounted(
    times: list[float], data: st.DataObject
) -> None:
    correlator = EventCorrelator()
    records: set[EventRecord] = set()
    allowed = 0
    for now in times:
        record = observed(correlator, said(data.draw(st.sampled_from("abc"))), now=now)
        records.add(record)
        allowed += correlator.allows(record, now)
    assert allowed <= 25 + (times[-1] - times[0]) / 300 + 1e-6 if times else allowed == 0
    assert allowed >= min(25, len(times))
    assert sum(record.count for record in records) == len(times)


@given(st.lists(st.text("abcdefghijklmnop", max_size=2), max_size=300))
def test_however_many_messages_a_handful_of_events_tells_all_of_them(messages: list[str]) -> None:
    correlator = EventCorrelator()
    records = {observed(correlator, said(message)) for message in messages}
    assert len(records) <= 10
    assert sum(record.count for record in records) == len(messages)


@given(st.integers(1, 8), st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=100))
def test_memory_is_bounded_whoever_reports_what(size: int, history: list[tuple[int, int]]) -> None:
    correlator = EventCorrelator(size=size)
    for who, what in history:
        regarding = dataclasses.replace(WEB, name=f"web-{who}")
        record = observed(
            correlator,
            Occurrence(regarding=regarding, type="Normal", reason=f"R{what}", message="m"),
        )
        correlator.allows(record, 0.0)
        assert len(correlator) <= size


# --- the cache


@given(st.integers(1, 6), st.lists(st.tuples(st.booleans(), st.integers(0, 12)), max_size=80))
def test_a_cache_keeps_what_was_used_last(size: int, steps: list[tuple[bool, int]]) -> None:
    cache: LRU[int, str] = LRU(size)
    used: list[int] = []  # the model: keys by their last use
    for is_put, key in steps:
        if is_put:
            evicted = cache.put(key, str(key))
            used = [*(it for it in used if it != key), key]
            expected = str(used.pop(0)) if len(used) > size else None
            assert evicted == expected
        else:
            assert cache.get(key) == (str(key) if key in used else None)
            used = [*(it for it in used if it != key), key] if key in used else used
        assert list(cache.values()) == [str(key) for key in used]
        assert len(cache) <= size


def test_a_cache_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match="size is 0"):
        LRU(0)


# --- names and texts


@given(st.text(max_size=300) | st.from_regex(r"[a-z0-9.-]{0,260}", fullmatch=True), st.integers(0))
def test_every_event_name_is_a_dns_subdomain(name: str, stamp: int) -> None:
    stamp %= 1 << 64
    made = event_name(name, stamp)
    assert dns_subdomain(made) == ()
    assert made.endswith(f"{stamp:x}")


def test_an_event_is_named_after_its_object() -> None:
    assert event_name("web-0", 0x188677E25AC90000) == "web-0.188677e25ac90000"
    assert event_name("Web_0.-x-.", 255) == "web-0.x.ff"
    assert len(event_name("x" * 253, 0x188677E25AC90000)) == 253


@given(st.lists(st.floats(0, 2e9), min_size=1, max_size=50))
def test_no_two_names_are_equal_wherever_the_clock_jumps(walls: list[float]) -> None:
    names = EventNames()
    made = [names.make("web", wall=wall) for wall in walls * 2]
    assert len(set(made)) == len(made)


@given(st.text(st.characters(), max_size=60), st.integers(3, 100))
def test_a_message_is_cut_to_its_bytes_and_stays_text(message: str, size: int) -> None:
    short = cut(message, size)
    whole = message.encode("utf-8", "replace")
    assert len(short.encode()) <= size
    assert (short == whole.decode()) == (len(whole) <= size)
    if len(whole) > size:
        assert short.endswith("...")
        assert whole.decode().startswith(short[:-3])


# --- records


def test_a_record_is_settled_when_the_server_knows_its_count() -> None:
    record = EventRecord("web.1", PULLED, wall=0.0)
    settled = [record.is_settled]
    record.settle(1)
    settled.append(record.is_settled)
    record.count_one(wall=2.0)
    settled.append(record.is_settled)
    record.settle(2)
    settled.append(record.is_settled)
    record.vanish()
    settled.append(record.is_settled)
    assert settled == [False, True, False, True, False]
    assert (record.exists, record.written, record.attempts) == (False, 0, 0)


def test_events_of_objects_without_a_namespace_live_in_default() -> None:
    node = Occurrence(
        regarding=ObjectReference(kind="Node", name="n"), type="Normal", reason="R", message="m"
    )
    assert EventRecord("n.1", node, wall=0.0).namespace == "default"
    assert EventRecord("n.1", PULLED, wall=0.0).namespace == "shop"
