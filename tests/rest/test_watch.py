"""The watch stream over a scripted transport."""

from __future__ import annotations

import asyncio
import json

import pytest

from kinform.errors import (
    ApiError,
    DecodeError,
    ForbiddenError,
    ResourceExpiredError,
    TransportError,
    TransportFailure,
    UnauthorizedError,
    UsageError,
)
from kinform.objects.object import Object
from kinform.rest.client import RESTClient
from kinform.rest.options import ListOptions
from kinform.rest.results import Bookmark, Unreadable, WatchEvent
from kinform.rest.watch import Watch
from kinform.testing import in_virtual_time
from tests.support.scripted import Answer, ScriptedTransport, Step, answer, connection, failed


def line(kind: str, name: str, rv: str, **metadata: object) -> bytes:
    body = {"kind": "Pod", "metadata": {"name": name, "resourceVersion": rv, **metadata}}
    return json.dumps({"type": kind, "object": body}, separators=(",", ":")).encode() + b"\n"


def error(code: int, reason: str = "") -> bytes:
    status = {"kind": "Status", "status": "Failure", "code": code, "reason": reason}
    return json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"


ADDED = line("ADDED", "a", "1")
MODIFIED = line("MODIFIED", "a", "2")
DELETED = line("DELETED", "a", "3")
BOOKMARK = line("BOOKMARK", "", "9", annotations={"k8s.io/initial-events-end": "true"})


def watch(*steps: Step, **options: object) -> tuple[Watch[Object], ScriptedTransport]:
    conn, transport = connection(*steps)
    query = ListOptions(**{"watch": True, **options})  # type: ignore[arg-type]
    return RESTClient(conn).get().resource("pods").params(query).watch(), transport


def stream(*pieces: bytes, **changes: object) -> Answer:
    return Answer(200, {}, pieces, **changes)  # type: ignore[arg-type]


@in_virtual_time
async def test_events_come_in_order_until_the_server_ends_the_watch() -> None:
    events, transport = watch(stream(ADDED + MODIFIED, DELETED))
    async with events:
        seen = [(event.type, event.object.resource_version) async for event in events]
    assert seen == [("ADDED", "1"), ("MODIFIED", "2"), ("DELETED", "3")]
    assert transport.open == 0


@in_virtual_time
async def test_bookmarks_advance_the_version_and_are_shown_on_request() -> None:
    events, _ = watch(stream(ADDED + BOOKMARK), resource_version="0")
    assert events.resource_version == "0"
    async with events:
        assert [event.object.name async for event in events] == ["a"]
    assert events.resource_version == "9"
    assert events.initial_events_end
    events, _ = watch(stream(ADDED + BOOKMARK))
    async with events:
        seen = [event async for event in events.with_bookmarks()]
    assert isinstance(seen[0], WatchEvent)
    assert seen[1:] == [Bookmark("9", initial_events_end=True)]


@in_virtual_time
async def test_the_version_moves_with_the_event_handed_out_not_with_what_has_arrived() -> None:
    events, _ = watch(stream(ADDED + MODIFIED + DELETED))
    async with events:
        async for _event in events:
            break
    assert events.resource_version == "1"


@in_virtual_time
async def test_one_read_gives_one_batch() -> None:
    events, _ = watch(stream(ADDED + MODIFIED, DELETED))
    async with events:
        batches = [
            [event.type for event in batch if not isinstance(event, Bookmark)]
            async for batch in events.batches()
        ]
    assert batches == [["ADDED", "MODIFIED"], ["DELETED"]]


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (410, "Expired", ResourceExpiredError),
        (410, "", ResourceExpiredError),
        (410, "Gone", ResourceExpiredError),
        (500, "InternalError", ApiError),
    ],
)
@in_virtual_time
async def test_an_error_event_is_raised_after_everything_before_it(
    code: int, reason: str, expected: type[ApiError]
) -> None:
    events, transport = watch(stream(ADDED + error(code, reason) + MODIFIED))
    seen: list[str] = []
    with pytest.raises(expected) as caught:
        async with events:
            async for event in events:
                seen.append(event.type)  # noqa: PERF401 - what came before the error counts
    assert type(caught.value) is expected
    assert seen == ["ADDED"]
    assert transport.open == 0


@in_virtual_time
async def test_an_error_event_without_a_status_is_told_after_everything_before_it() -> None:
    events, _ = watch(stream(ADDED + b'{"type":"ERROR","object":{"kind":"Pod"}}\n'))
    seen: list[str] = []
    with pytest.raises(DecodeError):
        async with events:
            async for event in events:
                seen.append(event.type)  # noqa: PERF401 - what came before the error counts
    assert seen == ["ADDED"]


@in_virtual_time
async def test_rubbish_is_a_decode_error_after_everything_before_it() -> None:
    events, _ = watch(stream(ADDED + b"rubbish\n" + MODIFIED))
    seen: list[str] = []
    with pytest.raises(DecodeError):
        async with events:
            async for event in events:
                seen.append(event.type)  # noqa: PERF401 - what came before the error counts
    assert seen == ["ADDED"]


@in_virtual_time
async def test_a_tail_cut_off_is_dropped_and_a_broken_connection_is_told() -> None:
    events, _ = watch(stream(ADDED + MODIFIED[:20]))
    async with events:
        assert [event.type async for event in events] == ["ADDED"]
    cut = stream(ADDED + MODIFIED[:20], error=failed(TransportFailure.TRUNCATED))
    events, _ = watch(cut)
    with pytest.raises(TransportError):
        async with events:
            async for _event in events:
                pass


@in_virtual_time
async def test_a_watch_that_outlives_its_timeout_is_ended_by_us() -> None:
    """F-R02: a server that stops sending but keeps the socket."""
    events, transport = watch(stream(ADDED, stalls=True), timeout=300)
    with pytest.raises(TransportError) as caught:
        async with events:
            async for _event in events:
                pass
    assert caught.value.failure is TransportFailure.TIMEOUT
    assert asyncio.get_running_loop().time() == pytest.approx(310.0)
    assert transport.open == 0


@in_virtual_time
async def test_leaving_early_closes_the_connection() -> None:
    events, transport = watch(stream(ADDED, stalls=True))
    async with events:
        async for _event in events:
            break
    assert transport.open == 0


@in_virtual_time
async def test_a_cancelled_reader_leaves_nothing_open() -> None:
    events, transport = watch(stream(ADDED, stalls=True))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(5), events:
            async for _event in events:
                pass
    assert transport.open == 0


@in_virtual_time
async def test_a_cancelled_read_loses_nothing() -> None:
    release = asyncio.Event()

    class Slow(Answer):
        async def read_some(self, *, gather: float = 0.0) -> bytes:
            await release.wait()
            return await super().read_some()

    conn, _ = connection(Slow(200, {}, [ADDED + MODIFIED]))
    async with RESTClient(conn).get().resource("pods").watch() as events:
        for _ in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1):
                    await anext(events)
        release.set()
        assert (await anext(events)).type == "ADDED"
        async for event in events:  # a loop that is left and entered again goes on, too
            assert event.type == "MODIFIED"
            break
        assert [event async for event in events] == []


@in_virtual_time
async def test_the_deadline_counts_from_the_answer_not_from_the_first_try() -> None:
    busy = answer(429, headers={"Retry-After": "60"})
    events, _ = watch(busy, stream(ADDED, stalls=True), timeout=1)
    with pytest.raises(TransportError, match="11 s after its start"):
        async with events:
            assert (await anext(events)).type == "ADDED"
            await anext(events)


@in_virtual_time
async def test_it_may_be_entered_and_left_in_different_tasks() -> None:
    events, transport = watch(stream(ADDED, MODIFIED))
    async with asyncio.TaskGroup() as group:
        await group.create_task(events.__aenter__())
    assert [event.type async for event in events] == ["ADDED", "MODIFIED"]
    async with asyncio.TaskGroup() as group:
        group.create_task(events.__aexit__(None, None, None))
    assert transport.open == 0


@in_virtual_time
async def test_it_is_opened_once() -> None:
    events, _ = watch(stream(ADDED))
    with pytest.raises(UsageError, match="open the watch first"):
        await anext(aiter(events))
    async with events:
        assert [event.type async for event in events] == ["ADDED"]
        assert [event async for event in events] == []
        with pytest.raises(UsageError, match="opened before"):
            await events.__aenter__()


@pytest.mark.parametrize(("code", "expected"), [(403, ForbiddenError), (401, UnauthorizedError)])
@in_virtual_time
async def test_a_refused_watch_is_a_typed_error(code: int, expected: type[ApiError]) -> None:
    """CG-H05."""
    events, transport = watch(answer(code))
    with pytest.raises(expected):
        async with events:
            pass
    assert len(transport.requests) == 1


@pytest.mark.parametrize("failure", [TransportFailure.RESET, TransportFailure.TIMEOUT])
@in_virtual_time
async def test_a_watch_that_cannot_begin_is_tried_again_and_then_told(
    failure: TransportFailure,
) -> None:
    """CG-H05: three attempts with two retries.

    client-go then hands out an empty watch without an error; we say what happened.
    """
    conn, transport = connection(failed(failure))
    events = RESTClient(conn).get().resource("pods").max_retries(2).watch()
    with pytest.raises(TransportError):
        async with events:
            pass
    assert len(transport.requests) == 3


@in_virtual_time
async def test_a_server_that_asks_for_patience_gets_it_and_then_the_error() -> None:
    """CG-H05: Retry-After on a 500, two retries: the error after three attempts."""
    conn, transport = connection(answer(500, headers={"Retry-After": "1"}))
    events = RESTClient(conn).get().resource("pods").max_retries(2).watch()
    with pytest.raises(ApiError) as caught:
        async with events:
            pass
    assert (caught.value.reason, len(transport.requests)) == ("InternalError", 3)


@in_virtual_time
async def test_a_login_page_is_no_watch() -> None:
    page = answer(200, body=b"<html>", headers={"Content-Type": "text/html"})
    events, transport = watch(page)
    with pytest.raises(DecodeError, match="login page"):
        async with events:
            pass
    assert transport.open == 0


@in_virtual_time
async def test_a_poison_object_is_an_error_that_names_it_and_costs_no_other() -> None:
    poison = b'{"type":"ADDED","object":{"metadata":{"name":"deep"},"x":%b%b}}\n'
    events, _ = watch(stream(ADDED + poison % (b"[" * 20000, b"]" * 20000) + MODIFIED))
    async with events:
        first, unreadable, last = [event async for batch in events.batches() for event in batch]
    assert isinstance(first, WatchEvent)
    assert isinstance(last, WatchEvent)
    assert isinstance(unreadable, Unreadable)
    assert unreadable.metadata.name == "deep"
    assert unreadable.error.key == "deep"
    events, _ = watch(stream(ADDED + poison % (b"[" * 20000, b"]" * 20000) + MODIFIED))
    async with events:
        assert (await anext(events)).type == "ADDED"
        with pytest.raises(DecodeError, match="deep") as caught:
            await anext(events)
        assert caught.value.url.startswith("https://api.test/api/v1/pods")
        assert (await anext(events)).type == "MODIFIED"


@pytest.mark.parametrize("is_list", [True, False])
@in_virtual_time
async def test_only_a_large_streamed_list_is_left_alone_between_two_reads(is_list: bool) -> None:
    """Events and small lists are delivered without delay."""
    plenty = ADDED * 6_000
    pieces = [ADDED, plenty, ADDED, ADDED, plenty, BOOKMARK, MODIFIED, MODIFIED]
    response = stream(*pieces)
    options = {"send_initial_events": True, "resource_version_match": "NotOlderThan"}
    events, _ = watch(response, **(options if is_list else {}))
    async with events:
        async for _ in events.with_bookmarks().batches():
            pass
    waited = [gather > 0 for gather in response.gathered]
    # Not where the read before brought plenty: the server is faster than we are.
    assert waited == [False, False, False, is_list, is_list, False, False, False, False]
