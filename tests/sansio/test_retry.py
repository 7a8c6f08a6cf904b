"""The retry rules as a table (client-go: TestRetryableConditions)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.errors import TransportError, TransportFailure, api_error, status_of_code
from kinform.sansio.retry import MAX_RETRY_AFTER, Purpose, retry_after, retry_delay

CALL, STREAM, WATCH = Purpose.CALL, Purpose.STREAM, Purpose.WATCH


def refused(code: int, wait: float | None):
    status = status_of_code(code, method="GET", message="no")
    return api_error(status, retry_after=wait)


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("purpose", list(Purpose))
@pytest.mark.parametrize(
    ("code", "wait", "retried"),
    [
        (429, 1.0, True),
        (429, 0.0, True),
        (429, None, False),
        (500, 2.0, True),
        (500, None, False),
        (503, 2.0, True),
        (504, None, False),
        (404, 2.0, False),
        (409, 2.0, False),
        (429, MAX_RETRY_AFTER + 1, False),
    ],
)
def test_answers_are_retried_only_if_the_server_asks_for_it(
    method: str, purpose: Purpose, code: int, wait: float | None, retried: bool
) -> None:
    """CG-H01: 429 and 5xx for every method, only with Retry-After."""
    delay = retry_delay(refused(code, wait), method=method, purpose=purpose, rand=0.5)
    assert (delay is not None) is retried


@pytest.mark.parametrize(
    ("failure", "method", "purpose", "retried"),
    [
        (TransportFailure.RESET, "GET", CALL, True),
        (TransportFailure.TRUNCATED, "GET", CALL, True),
        (TransportFailure.RESET, "GET", WATCH, True),
        (TransportFailure.RESET, "GET", STREAM, False),
        (TransportFailure.RESET, "POST", CALL, False),
        (TransportFailure.RESET, "DELETE", CALL, False),
        (TransportFailure.TIMEOUT, "GET", WATCH, True),
        (TransportFailure.TIMEOUT, "GET", CALL, False),
        (TransportFailure.REFUSED, "GET", CALL, False),
        (TransportFailure.REFUSED, "GET", WATCH, False),
        (TransportFailure.DNS, "GET", WATCH, False),
        (TransportFailure.TLS, "GET", CALL, False),
        (TransportFailure.REDIRECT, "GET", CALL, False),
    ],
)
def test_network_failures_are_retried_only_where_that_is_safe(
    failure: TransportFailure, method: str, purpose: Purpose, retried: bool
) -> None:
    """CG-H02: reset and EOF for what changes nothing; refused never; silence only for a watch."""
    error = TransportError("x", failure=failure)
    delay = retry_delay(error, method=method, purpose=purpose, rand=0.0)
    assert (delay is not None) is retried


@pytest.mark.parametrize(("method", "retried"), [("POST", False), ("PATCH", False), ("GET", True)])
def test_what_may_have_been_done_is_not_done_again(method: str, retried: bool) -> None:
    """client-go repeats any method; a create that timed out on the server may have worked."""
    delay = retry_delay(refused(504, 1.0), method=method, purpose=CALL, rand=0.5)
    assert (delay is not None) is retried


def test_a_version_from_the_future_is_not_waited_for_ten_times_over() -> None:
    """The server asks for a second's patience there too, but has waited three already."""
    status = status_of_code(504, method="GET", message="Too large resource version: 9, current: 3")
    error = api_error(status, retry_after=1.0)
    assert retry_delay(error, method="GET", purpose=CALL, rand=0.5) is None


@given(
    wait=st.floats(0, MAX_RETRY_AFTER),
    rand=st.floats(0, 1, exclude_max=True),
)
def test_the_wait_is_never_shorter_than_told_and_little_longer(wait: float, rand: float) -> None:
    delay = retry_delay(refused(429, wait), method="GET", purpose=CALL, rand=rand)
    assert delay is not None
    assert wait <= delay <= wait + max(0.1, wait / 4)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("7", 7.0),
        (" 0 ", 0.0),
        ("soon", None),
        ("-3", None),
        ("1.5", None),
        ("٣", None),
        ("Thu, 01 Jan 1970 00:01:40 GMT", 40.0),
        ("Thu, 01 Jan 1970 00:00:10 GMT", 0.0),
        ("Thu, 99 Jan 1970 00:00:10 GMT", None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(
    header: str | None, seconds: float | None
) -> None:
    assert retry_after(header, wall=60.0) == seconds
