"""Quantities and moments: what calculating with them needs."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.clientset import meta_v1, ownership, quantity, times
from kinform.errors import DecodeError, UsageError

AMOUNTS = st.decimals(
    min_value=-(10**15), max_value=10**15, places=9, allow_nan=False, allow_infinity=False
)
MOMENTS = st.datetimes(min_value=datetime(1000, 1, 2), timezones=st.just(UTC))  # noqa: DTZ001 - by Hypothesis


@pytest.mark.parametrize(
    "text, amount",
    [
        ("0", "0"),
        ("1", "1"),
        ("-1.5", "-1.5"),
        ("+.5", "0.5"),
        ("5.", "5"),
        ("100n", "1e-7"),
        ("250u", "0.00025"),
        ("500m", "0.5"),
        ("2k", "2000"),
        ("1M", "1e6"),
        ("1G", "1e9"),
        ("1T", "1e12"),
        ("1P", "1e15"),
        ("1E", "1e18"),
        ("1e3", "1000"),
        ("1E-2", "0.01"),
        ("1Ki", "1024"),
        ("0.5Mi", "524288"),
        ("1Ei", str(2**60)),
    ],
)
def test_a_quantity_is_read_exactly(text: str, amount: str) -> None:
    assert quantity.parse(text) == Decimal(amount)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "m",
        "1K",
        "1ki",
        "1 Gi",
        "1mi",
        "0x1",
        "1e",
        "--1",
        "٣",
        "nan",
        float("nan"),
        float("inf"),
    ],
)
def test_what_is_no_quantity_is_refused(text: str | float) -> None:
    with pytest.raises(UsageError, match="is not a quantity"):
        quantity.parse(text)


@pytest.mark.parametrize(
    "amount, notation, text",
    [
        (0, "decimal", "0"),
        (Decimal("0.5"), "decimal", "500m"),
        (1500, "decimal", "1500"),
        (2000, "decimal", "2k"),
        (-2000, "decimal", "-2k"),
        (Decimal("1e-10"), "decimal", "1n"),
        (2**30, "binary", "1Gi"),
        (3 * 2**29, "binary", "1536Mi"),
        (1000, "binary", "1k"),
        (Decimal("0.5"), "binary", "500m"),
        (12_000, "exponent", "12e3"),
        (0.25, "decimal", "250m"),
    ],
)
def test_an_amount_is_written_as_the_server_would(
    amount: Decimal | float, notation: quantity.Notation, text: str
) -> None:
    assert quantity.to_text(amount, notation) == text


@given(AMOUNTS, st.sampled_from(["decimal", "binary", "exponent"]))
def test_what_was_written_is_read_as_the_same_amount(
    amount: Decimal, notation: quantity.Notation
) -> None:
    assert quantity.parse(quantity.to_text(amount, notation)) == amount


@pytest.mark.parametrize("amount", [float("nan"), float("inf"), Decimal("-Infinity")])
def test_what_is_no_number_is_no_amount(amount: Decimal | float) -> None:
    with pytest.raises(UsageError, match="is not an amount"):
        quantity.to_text(amount)


@given(MOMENTS)
def test_a_micro_time_keeps_its_six_digits(moment: datetime) -> None:
    text = times.to_micro_text(moment)
    assert len(text.partition(".")[2]) == len("000000Z")
    assert times.parse(text) == moment
    assert times.to_micro_text(times.parse(text)) == text


@given(MOMENTS)
def test_a_time_is_written_to_the_second(moment: datetime) -> None:
    assert times.parse(times.to_text(moment)) == moment.replace(microsecond=0)


def test_a_moment_of_any_zone_is_written_in_utc() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=2)))
    assert times.to_text(moment) == "2026-01-02T01:04:05Z"
    assert times.parse("2026-01-02T03:04:05+02:00") == moment


def test_a_moment_without_a_zone_is_refused() -> None:
    with pytest.raises(UsageError, match="no time zone"):
        times.to_text(datetime(2026, 1, 2))  # noqa: DTZ001 - that is the mistake


@pytest.mark.parametrize("text", ["", "2026-01-02", "2026-01-02T03:04:05", "2026-13-02T03:04:05Z"])
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a time"):
        times.parse(text)


def test_managed_fields_that_cannot_be_read_say_where() -> None:
    metadata = meta_v1.ObjectMeta(managed_fields=msgspec.Raw(b'{"a":1}'))
    with pytest.raises(DecodeError, match="managedFields"):
        ownership.managed_fields(metadata)
    assert ownership.managed_fields(meta_v1.ObjectMeta()) == ()


def test_kept_metadata_does_not_keep_the_rest_of_the_answer() -> None:
    raw = b'{"managedFields":[{"manager":"m"}],"annotations":{"a":"%s"}}' % (b"x" * 1000)
    before = sys.getrefcount(raw)
    metadata = msgspec.json.decode(raw, type=meta_v1.ObjectMeta)
    assert sys.getrefcount(raw) == before
    assert isinstance(metadata.managed_fields, msgspec.Raw)
    assert bytes(metadata.managed_fields) == b'[{"manager":"m"}]'
