"""`Connection`: credentials, limits, retries and errors of every request."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Mapping

import pytest

from kinform.errors import (
    ApiError,
    KinformError,
    TooManyRequestsError,
    TransportError,
    TransportFailure,
    UnauthorizedError,
    UnavailableError,
)
from kinform.rest.connection import Call, Connection, user_agent
from kinform.rest.rate_limits import TokenBucketLimiter
from kinform.rest.transport import HttpRequest, HttpResponse
from kinform.rest.warnings import ApiWarning
from kinform.sansio.retry import Purpose
from kinform.testing import in_virtual_time
from tests.support.scripted import Answer, ScriptedTransport, answer, connection, failed

BUSY = answer(503, headers={"Retry-After": "2"})
OK = answer(200, {"kind": "Pod"})


async def body(response: HttpResponse) -> bytes:
    return await response.read()


def get(**changes: object) -> Call:
    return Call(**{"method": "GET", "path": "/x", **changes})  # type: ignore[arg-type]


@in_virtual_time
async def test_a_busy_server_is_asked_again_after_the_time_it_named() -> None:
    conn, transport = connection(BUSY, BUSY, OK)
    assert await conn.call(get(), body) == b'{"kind":"Pod"}'
    first, second, third = transport.times
    assert 2 <= second - first <= 2.5
    assert 2 <= third - second <= 2.5


@pytest.mark.parametrize(("max_retries", "attempts"), [(0, 1), (3, 4)])
@in_virtual_time
async def test_attempts_are_bounded(max_retries: int, attempts: int) -> None:
    """CG-H03: none for 0; 4 attempts for 3."""
    conn, transport = connection(BUSY)
    with pytest.raises(UnavailableError):
        await conn.call(get(max_retries=max_retries), body)
    assert len(transport.requests) == attempts


@in_virtual_time
async def test_ten_retries_are_the_default() -> None:
    conn, transport = connection(BUSY)
    with pytest.raises(UnavailableError):
        await conn.call(get(), body)
    assert len(transport.requests) == 11


@in_virtual_time
async def test_the_last_error_tells_of_the_one_before() -> None:
    """CG-H04: the caller gets the last attempt's error, with a word on the previous one."""
    conn, _ = connection(BUSY, answer(500, headers={"Retry-After": "1"}), answer(404))
    with pytest.raises(ApiError) as caught:
        await conn.call(get(), body)
    assert caught.value.code == 404
    assert "attempt 3" in caught.value.__notes__[0]
    assert "500" in caught.value.__notes__[0]


@in_virtual_time
async def test_an_answer_that_breaks_off_is_asked_for_again_if_that_changes_nothing() -> None:
    cut = Answer(200, {}, [b"{"], error=failed(TransportFailure.TRUNCATED))
    conn, transport = connection(cut, OK)
    assert await conn.call(get(), body) == b'{"kind":"Pod"}'
    conn, transport = connection(cut, OK)
    with pytest.raises(TransportError):
        await conn.call(get(method="POST", body=b"{}"), body)
    assert len(transport.requests) == 1
    assert transport.open == 0


@in_virtual_time
async def test_a_streamed_body_is_never_sent_twice() -> None:
    async def stream():
        yield b"data"

    conn, transport = connection(BUSY)
    with pytest.raises(UnavailableError):
        await conn.call(get(method="POST", body=stream()), body)
    assert len(transport.requests) == 1


@in_virtual_time
async def test_refused_connections_are_for_the_caller_to_judge() -> None:
    conn, transport = connection(failed(TransportFailure.REFUSED))
    with pytest.raises(TransportError):
        await conn.call(get(purpose=Purpose.WATCH), body)
    assert len(transport.requests) == 1


@in_virtual_time
async def test_the_deadline_covers_all_attempts() -> None:
    conn, transport = connection(BUSY)
    with pytest.raises(TransportError, match="no answer within 5 s") as caught:
        await conn.call(get(timeout=5.0), body)
    assert caught.value.failure is TransportFailure.TIMEOUT
    assert asyncio.get_running_loop().time() == pytest.approx(5.0)
    assert 2 <= len(transport.requests) <= 3
    assert transport.open == 0


@in_virtual_time
async def test_an_answer_that_stalls_meets_the_deadline_too() -> None:
    conn, transport = connection(Answer(200, {}, [b"{"], stalls=True))
    with pytest.raises(TransportError, match="no answer within 3 s"):
        await conn.call(get(timeout=3.0), body)
    assert transport.open == 0


@in_virtual_time
async def test_the_wait_for_the_limiter_does_not_count_against_the_deadline() -> None:
    conn, _ = connection(OK)
    limiter = TokenBucketLimiter(qps=0.1, burst=1)
    for _attempt in range(3):
        await conn.call(get(limiter=limiter, timeout=1.0), body)
    assert asyncio.get_running_loop().time() == pytest.approx(20.0)


@in_virtual_time
async def test_retries_pass_the_limiter_again() -> None:
    transport = ScriptedTransport(answer(429, headers={"Retry-After": "0"}), OK)
    limiter = TokenBucketLimiter(qps=0.5, burst=1)
    conn = Connection("http://api.test", transport, rate_limiter=limiter)
    await conn.call(get(), body)
    assert transport.times[1] >= 2.0


@in_virtual_time
async def test_cancelling_the_wait_for_the_limiter_is_a_plain_cancellation() -> None:
    """CG-H10: not wrapped as an error of the limiter; the place is given back."""
    limiter = TokenBucketLimiter(qps=0.01, burst=1)
    await limiter.wait()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await limiter.wait()
    start = asyncio.get_running_loop().time()
    await limiter.wait()
    assert asyncio.get_running_loop().time() - start == pytest.approx(99.0)


@in_virtual_time
async def test_long_waits_for_the_limiter_are_told_now_and_then(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """CG-H09: over a second is worth a line, at most one every ten seconds."""
    limiter = TokenBucketLimiter(qps=0.5, burst=1)
    with caplog.at_level(logging.INFO, "kinform.rest.rate_limits"):
        for _ in range(16):  # waits of two seconds each: half a minute
            await limiter.wait()
    assert 2 <= len(caplog.records) <= 4


class Rotating:
    """Credentials whose token changes at each refresh."""

    def __init__(self, *, renewable: bool = True) -> None:
        self.renewable = renewable
        self.generation = 0

    async def headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer token-{self.generation}"}

    async def refresh(self, used: Mapping[str, str]) -> bool:
        self.generation += self.renewable
        return self.renewable


@pytest.mark.parametrize("method", ["GET", "POST"])
@in_virtual_time
async def test_after_a_401_fresh_credentials_get_one_more_try(method: str) -> None:
    transport = ScriptedTransport(answer(401), OK)
    conn = Connection("http://api.test", transport, credentials=Rotating())
    assert await conn.call(get(method=method), body)
    sent = [request.headers["Authorization"] for request in transport.requests]
    assert sent == ["Bearer token-0", "Bearer token-1"]


@pytest.mark.parametrize(("renewable", "attempts"), [(True, 2), (False, 1)])
@in_virtual_time
async def test_a_second_401_is_the_answer(renewable: bool, attempts: int) -> None:
    transport = ScriptedTransport(answer(401))
    conn = Connection("http://api.test", transport, credentials=Rotating(renewable=renewable))
    with pytest.raises(UnauthorizedError):
        await conn.call(get(), body)
    assert len(transport.requests) == attempts


@in_virtual_time
async def test_credentials_never_show_in_an_error() -> None:
    transport = ScriptedTransport(answer(403))
    conn = Connection("http://api.test", transport, credentials=Rotating())
    with pytest.raises(KinformError) as caught:
        await conn.call(get(), body)
    assert "token-0" not in f"{caught.value} {caught.value!r} {transport.requests!r}"


@in_virtual_time
async def test_a_failed_certificate_check_is_reported_to_whoever_holds_the_trust() -> None:
    failures: list[str] = []
    transport = ScriptedTransport(failed(TransportFailure.TLS))
    conn = Connection("https://x", transport, on_tls_failure=lambda: failures.append("tls"))
    with pytest.raises(TransportError):
        await conn.call(get(), body)
    assert failures == ["tls"]


@in_virtual_time
async def test_warnings_go_to_the_requests_handler_or_the_clients() -> None:
    warned = answer(200, {}, headers={"Warning": '299 - "old", 299 - "older \\"x\\""'})
    mine: list[ApiWarning] = []
    clients: list[ApiWarning] = []
    transport = ScriptedTransport(warned)
    conn = Connection("http://x", transport, warning_handler=clients.append)
    await conn.call(get(warning_handler=mine.append), body)
    await conn.call(get(), body)
    assert [w.text for w in mine] == [w.text for w in clients] == ["old", 'older "x"']


@in_virtual_time
async def test_each_distinct_warning_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    warned = answer(200, {}, headers={"Warning": '299 - "v1 is old", 199 - "chatter"'})
    conn, _ = connection(warned)
    for _attempt in range(3):
        await conn.call(get(), body)
    assert [record.getMessage() for record in caplog.records] == ["API server warns: v1 is old"]


class Stalling(ScriptedTransport):
    """A server that takes the request and says nothing."""

    @contextlib.asynccontextmanager
    async def send(self, request: HttpRequest) -> AsyncGenerator[HttpResponse]:
        self.requests.append(request)
        await asyncio.get_running_loop().create_future()
        yield Answer()


@pytest.mark.parametrize("purpose", [Purpose.WATCH, Purpose.STREAM])
@in_virtual_time
async def test_an_answer_that_never_begins_is_given_up(purpose: Purpose) -> None:
    """A watch may be silent, but not before it has begun: a paused server must be noticed."""
    conn = Connection("http://x", Stalling(OK))
    with pytest.raises(TransportError, match="not begun to answer within 45 s") as caught:
        async with conn.open(get(purpose=purpose, max_retries=0)):
            pass
    assert caught.value.failure is TransportFailure.TIMEOUT
    assert asyncio.get_running_loop().time() == pytest.approx(45.0)


@in_virtual_time
async def test_an_error_whose_body_never_ends_is_still_that_error() -> None:
    conn, transport = connection(Answer(403, {}, [b"{"], stalls=True))
    with pytest.raises(ApiError) as caught:
        await conn.call(get(), body)
    assert caught.value.code == 403
    assert asyncio.get_running_loop().time() == pytest.approx(10.0)
    assert transport.open == 0


@in_virtual_time
async def test_of_an_endless_error_only_the_beginning_is_read() -> None:
    endless = Answer(500, {"Content-Type": "text/plain"}, [b"x" * 65536] * 1000)
    transport = ScriptedTransport(lambda _: endless)
    conn = Connection("http://x", transport)
    with pytest.raises(ApiError) as caught:
        await conn.call(get(), body)
    assert len(caught.value.message) == 2048


@in_virtual_time
async def test_a_warning_handler_that_fails_does_not_spoil_the_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(_: ApiWarning) -> None:
        raise RuntimeError("mine")

    conn, _ = connection(answer(201, {}, headers={"Warning": '299 - "x"'}))
    assert await conn.call(get(warning_handler=broken), body) == b"{}"
    assert [record.getMessage() for record in caplog.records] == ["warning handler failed"]


@in_virtual_time
async def test_the_requests_own_headers_win_over_everything() -> None:
    transport = ScriptedTransport(OK)
    conn = Connection("http://x", transport, credentials=Rotating())
    await conn.call(get(headers={"authorization": "mine", "user-agent": "me"}), body)
    sent = {name.lower(): value for name, value in transport.requests[0].headers.items()}
    assert sent == {"authorization": "mine", "user-agent": "me"}


@in_virtual_time
async def test_a_streamed_body_is_not_sent_again_after_a_401() -> None:
    async def stream():
        yield b"data"

    transport = ScriptedTransport(answer(401), OK)
    conn = Connection("http://x", transport, credentials=Rotating())
    with pytest.raises(UnauthorizedError):
        await conn.call(get(method="POST", body=stream()), body)
    assert len(transport.requests) == 1


@in_virtual_time
async def test_a_timeout_of_the_callers_own_is_not_taken_for_the_deadline() -> None:
    async def consume(_: HttpResponse) -> bytes:
        raise TimeoutError("mine")

    conn, _ = connection(OK)
    with pytest.raises(TimeoutError, match="mine"):
        await conn.call(get(timeout=5.0), consume)


@in_virtual_time
async def test_leaving_an_open_answer_frees_it() -> None:
    conn, transport = connection(Answer(200, {}, [b"a"], stalls=True))
    async with conn.open(get(purpose=Purpose.WATCH)):
        assert transport.open == 1
    assert transport.open == 0


@pytest.mark.slow
@in_virtual_time
async def test_retried_watches_pass_the_reconnect_limiter() -> None:
    """The limiter all reconnects of a client share: 5 a second after the first 10."""
    reset = failed(TransportFailure.RESET)
    transport = ScriptedTransport(reset)
    conn = Connection("http://x", transport)

    async def one() -> None:
        with pytest.raises(TransportError):
            async with conn.open(get(purpose=Purpose.WATCH, max_retries=2)):
                pass

    async with asyncio.TaskGroup() as group:
        for _ in range(30):
            group.create_task(one())
    retries = sorted(transport.times)[30:]
    span = retries[-1] - retries[0]
    assert len(retries) == 60
    assert 60 <= 10 + 5 * span + 1


@pytest.mark.parametrize(
    ("header", "expected"),
    [("3", 3.0), (None, None), ("x", None)],
)
@in_virtual_time
async def test_a_429_tells_how_long_to_wait(header: str | None, expected: float | None) -> None:
    conn, _ = connection(answer(429, headers={"Retry-After": header} if header else {}))
    with pytest.raises(TooManyRequestsError) as caught:
        await conn.call(get(max_retries=0), body)
    assert caught.value.retry_after == expected


def test_the_user_agent_names_version_and_system() -> None:
    assert user_agent().startswith("kinform/")
