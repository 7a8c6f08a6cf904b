"""Errors of the server, as they are shown and acted on."""

from __future__ import annotations

import pytest

from kinform.errors import api_error
from kinform.meta import Status, StatusDetails


def test_what_the_server_says_is_shown_without_control_characters() -> None:
    error = api_error(Status(code=500, reason="a\x1b[31m\nb", message="c\r\nd"))
    assert str(error) == "500 a [31m b: c  d"


def test_a_reason_without_end_is_shown_in_part() -> None:
    assert len(str(api_error(Status(code=500, reason="x" * 100_000)))) < 1000


@pytest.mark.parametrize(
    ("seconds", "expected"), [(3, 3.0), (0, None), (-3, None), (None, None), (10**400, 2**31 - 1)]
)
def test_a_wait_is_what_the_details_say_if_that_is_one(
    seconds: int | None, expected: float | None
) -> None:
    details = StatusDetails(retry_after_seconds=seconds)
    assert api_error(Status(code=429, details=details)).retry_after == expected
