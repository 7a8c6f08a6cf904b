"""Every fault over real sockets: exactly what a client sees."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from email.utils import parsedate_to_datetime

import pytest

from kinform.apiserver import APIServer, faults
from tests.apiserver.faults_wire import CONFIGS, WATCH, ask, put, wire

NAMES = ["a", "b", "c", "d"]


@pytest.fixture
async def server() -> AsyncIterator[APIServer]:
    async with APIServer() as server:
        await put(server, *NAMES)
        yield server


def names(chunks: list[bytes]) -> list[str]:
    return [json.loads(chunk)["object"]["metadata"]["name"] for chunk in chunks]


# --- connections


async def test_refuse_closes_the_listener_until_it_is_removed(server: APIServer) -> None:
    fault = server.faults.add(faults.refuse())
    with pytest.raises(ConnectionRefusedError):
        await ask(server, CONFIGS)
    with pytest.raises(ConnectionRefusedError):
        await ask(server, "/healthz")
    server.faults.remove(fault)
    assert (await ask(server, CONFIGS)).status == 200


async def test_refuse_ends_by_itself_after_its_duration(server: APIServer) -> None:
    changed = asyncio.Event()
    server.faults.add(faults.refuse(duration=0.01))
    server.faults.when_refusing(changed.set)
    with pytest.raises(ConnectionRefusedError):
        await ask(server, CONFIGS)
    async with asyncio.timeout(10):
        await changed.wait()
    assert not server.faults.is_refusing
    assert (await ask(server, CONFIGS)).status == 200


async def test_refuse_may_begin_with_a_request_which_is_reset(server: APIServer) -> None:
    fault = server.faults.add(faults.refuse(verb="list", nth=2))
    assert (await ask(server, CONFIGS)).status == 200
    with pytest.raises(ConnectionResetError):
        await ask(server, CONFIGS)
    with pytest.raises(ConnectionRefusedError):
        await ask(server, f"{CONFIGS}/a")
    server.faults.remove(fault)
    assert (await ask(server, CONFIGS)).status == 200


async def test_refuse_resets_connections_that_are_open_and_spares_answers_under_way(
    server: APIServer,
) -> None:
    async with wire(server) as idle, wire(server) as watching:
        await idle.ask(CONFIGS)
        await watching.send(WATCH)
        await watching.head()
        assert (await watching.event())["object"]["metadata"]["name"] == "a"
        server.faults.add(faults.refuse())
        with pytest.raises(ConnectionResetError):
            await idle.ask(CONFIGS)
        assert (await watching.event())["object"]["metadata"]["name"] == "b"


async def test_a_server_that_refuses_can_be_stopped() -> None:
    async with APIServer() as server:
        server.faults.add(faults.refuse())
    async with APIServer(faults=faults.FaultPlan([faults.refuse()])) as server:
        with pytest.raises(ConnectionRefusedError):
            await ask(server, CONFIGS)


async def test_reset_before_the_answer(server: APIServer) -> None:
    server.faults.add(faults.reset(verb="list", nth=1))
    with pytest.raises(ConnectionResetError):
        await ask(server, CONFIGS)
    assert (await ask(server, CONFIGS)).status == 200


async def test_reset_after_so_many_events(server: APIServer) -> None:
    server.faults.add(faults.reset(after_events=2))
    async with wire(server) as connection:
        await connection.send(WATCH)
        assert (await connection.head())[0] == 200
        assert [(await connection.event())["type"] for _ in range(2)] == ["ADDED"] * 2
        with pytest.raises(ConnectionResetError):
            await connection.chunk()


async def test_reset_after_so_many_bytes(server: APIServer) -> None:
    server.faults.add(faults.reset(after_bytes=10, verb="list"))
    async with wire(server) as connection:
        await connection.send(CONFIGS)
        assert (await connection.head())[0] == 200
        assert await connection.chunk() == b'{"kind":"C'
        with pytest.raises(ConnectionResetError):
            await connection.chunk()


async def test_close_before_the_answer(server: APIServer) -> None:
    server.faults.add(faults.close())
    async with wire(server) as connection:
        await connection.send(CONFIGS)
        assert await connection.is_closed()


async def test_close_after_so_many_events_leaves_the_last_chunk_out(server: APIServer) -> None:
    server.faults.add(faults.close_watch(after_events=3, resource="configmaps", nth=1, times=1))
    answer = await ask(server, WATCH)
    assert names(answer.chunks) == ["a", "b", "c"]
    assert not answer.is_whole


async def test_close_after_so_many_bytes(server: APIServer) -> None:
    server.faults.add(faults.close(after_bytes=100))
    answer = await ask(server, CONFIGS)
    assert (answer.status, len(answer.body), answer.is_whole) == (200, 100, False)
    watched = await ask(server, WATCH)
    assert (len(watched.body), watched.is_whole) == (100, False)


async def test_close_loses_nothing_of_what_was_sent_before(server: APIServer) -> None:
    body = {"metadata": {"name": "large"}, "data": {"key": "x" * 900_000}}
    assert (await ask(server, CONFIGS, method="POST", body=body)).status == 201
    server.faults.add(faults.close(verb="list", after_bytes=800_000))
    answer = await ask(server, CONFIGS)
    assert (len(answer.body), answer.is_whole) == (800_000, False)


async def test_half_open_is_silent_after_so_many_events(server: APIServer) -> None:
    server.faults.add(faults.half_open(after_events=1))
    async with wire(server) as silent, wire(server) as sound:
        await silent.send(WATCH)
        await silent.head()
        assert (await silent.event())["object"]["metadata"]["name"] == "a"
        more = asyncio.get_running_loop().create_task(silent.chunk())
        server.faults.clear()
        await put(server, "e")
        await sound.send(WATCH)
        await sound.head()
        assert [(await sound.event())["object"]["metadata"]["name"] for _ in range(5)]
        assert not more.done()  # although there is more to tell, and the fault is gone
        more.cancel()
        await asyncio.wait([more])


async def test_half_open_without_more_sends_the_headers_alone(server: APIServer) -> None:
    server.faults.add(faults.half_open(verb="list"))
    async with wire(server) as connection:
        await connection.send(CONFIGS)
        assert (await connection.head())[0] == 200
        more = asyncio.get_running_loop().create_task(connection.chunk())
        assert (await ask(server, f"{CONFIGS}/a")).status == 200
        assert not more.done()
        more.cancel()
        await asyncio.wait([more])


async def test_stall_answers_once_it_is_removed(server: APIServer) -> None:
    fault = server.faults.add(faults.stall(verb="list"))
    async with wire(server) as connection:
        await connection.send(CONFIGS)
        answered = asyncio.get_running_loop().create_task(connection.answer())
        for _ in range(5):  # others are answered meanwhile
            assert (await ask(server, f"{CONFIGS}/a")).status == 200
        assert fault.hits == 1
        assert not answered.done()
        server.faults.remove(fault)
        assert (await answered).status == 200


async def test_drip_sends_small_chunks(server: APIServer) -> None:
    whole = (await ask(server, f"{CONFIGS}/a")).body
    server.faults.add(faults.drip(size=50, every=0))
    answer = await ask(server, f"{CONFIGS}/a")
    assert answer.body == whole
    assert {len(chunk) for chunk in answer.chunks[:-1]} == {50}
    assert answer.is_whole


async def test_gzip_compresses_whole_bodies(server: APIServer) -> None:
    whole = (await ask(server, CONFIGS)).body
    server.faults.add(faults.gzip())
    answer = await ask(server, CONFIGS)
    assert answer.headers["content-encoding"] == "gzip"
    assert gzip.decompress(answer.body) == whole


async def test_gzip_makes_each_event_of_a_watch_a_member_of_its_own(server: APIServer) -> None:
    server.faults.add(faults.gzip())
    async with wire(server) as connection:
        await connection.send(WATCH)
        _, headers = await connection.head()
        assert headers["content-encoding"] == "gzip"
        seen = [gzip.decompress(await connection.chunk() or b"") for _ in NAMES]
        assert names(seen) == NAMES


async def test_gzip_may_send_the_members_of_many_events_together(server: APIServer) -> None:
    server.faults.add(faults.gzip(together=True))
    async with wire(server) as connection:
        await connection.send(WATCH)
        await connection.head()
        together = gzip.decompress(await connection.chunk() or b"")
        assert names(together.splitlines()) == NAMES


# --- content


async def test_truncate_frame_ends_in_order_within_an_event(server: APIServer) -> None:
    server.faults.add(faults.truncate_frame(event=3))
    answer = await ask(server, WATCH)
    assert answer.is_whole
    assert names(answer.chunks[:2]) == ["a", "b"]
    assert len(answer.chunks) == 3
    assert answer.chunks[2].startswith(b'{"type":"ADDED"')
    with pytest.raises(json.JSONDecodeError):
        json.loads(answer.chunks[2])


async def test_corrupt_events_are_not_utf8(server: APIServer) -> None:
    server.faults.add(faults.corrupt(event=2, verb="watch"))
    async with wire(server) as connection:
        await connection.send(WATCH)
        await connection.head()
        first, second, third = [await connection.chunk() for _ in range(3)]
        assert first is not None
        assert second is not None
        assert third is not None
        assert names([first, third]) == ["a", "c"]
        with pytest.raises(UnicodeDecodeError):
            second.decode()


async def test_corrupt_bodies_are_not_utf8(server: APIServer) -> None:
    server.faults.add(faults.corrupt(verb="list"))
    answer = await ask(server, CONFIGS)
    assert answer.is_whole
    with pytest.raises(UnicodeDecodeError):
        answer.body.decode()


async def test_duplicate_events_come_twice_and_bookmarks_once(server: APIServer) -> None:
    server.faults.add(faults.duplicate_events())
    initial = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    async with wire(server) as connection:
        await connection.send(f"{CONFIGS}?watch=true&{initial}")
        await connection.head()
        events = [await connection.event() for _ in range(9)]
        assert [event["object"]["metadata"].get("name") for event in events[:8]] == [
            name for name in NAMES for _ in range(2)
        ]
        assert events[8]["type"] == "BOOKMARK"


async def test_older_events_come_once_more_behind_newer_ones(server: APIServer) -> None:
    server.faults.add(faults.older_events())
    async with wire(server) as connection:
        await connection.send(f"{CONFIGS}?watch=true")
        await connection.head()
        added = [await connection.event() for _ in NAMES]
        body = {"metadata": {"name": "a"}, "data": {"new": "yes"}}
        assert (await ask(server, f"{CONFIGS}/a", method="PUT", body=body)).status == 200
        changed = await connection.event()
        assert (changed["type"], changed["object"]["data"]) == ("MODIFIED", {"new": "yes"})
        assert await connection.event() == added[0]
        assert (await ask(server, f"{CONFIGS}/a", method="DELETE")).status == 200
        await put(server, "e")
        assert [(await connection.event())["type"] for _ in range(2)] == ["DELETED", "ADDED"]


async def test_stray_bookmarks_are_of_the_past_and_no_end_of_initial_events(
    server: APIServer,
) -> None:
    server.faults.add(faults.stray_bookmarks(revisions=2))
    initial = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    async with wire(server) as connection:
        await connection.send(f"{CONFIGS}?watch=true&{initial}")
        await connection.head()
        for name in NAMES:
            event, bookmark = await connection.event(), await connection.event()
            assert event["object"]["metadata"]["name"] == name
            version = int(event["object"]["metadata"]["resourceVersion"]) - 2
            assert bookmark == {
                "type": "BOOKMARK",
                "object": {
                    "kind": "ConfigMap",
                    "apiVersion": "v1",
                    "metadata": {"resourceVersion": str(version)},
                },
            }
        assert "annotations" in (await connection.event())["object"]["metadata"]


@pytest.mark.parametrize("initial_end", [False, True])
async def test_no_bookmarks_keeps_the_end_of_initial_events_by_default(
    server: APIServer, initial_end: bool
) -> None:
    server.faults.add(faults.no_bookmarks(initial_end=initial_end))
    initial = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    async with wire(server) as connection:
        await connection.send(f"{CONFIGS}?watch=true&{initial}")
        await connection.head()
        for _ in NAMES:
            await connection.event()
        await put(server, "e")
        assert (await connection.event())["type"] == ("ADDED" if initial_end else "BOOKMARK")


async def test_no_watch_list_refuses_initial_events_as_older_servers_do(server: APIServer) -> None:
    server.faults.add(faults.no_watch_list())
    initial = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    answer = await ask(server, f"{CONFIGS}?watch=true&{initial}")
    status = answer.json()
    text = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
    assert (answer.status, status["code"], status["reason"]) == (422, 422, "Invalid")
    assert status["message"] == (
        f'ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: {text}'
    )
    assert status["details"]["causes"] == [
        {
            "reason": "FieldValueForbidden",
            "message": f"Forbidden: {text}",
            "field": "sendInitialEvents",
        }
    ]
    server.faults.add(faults.close_watch(after_events=1))
    assert names((await ask(server, WATCH)).chunks) == ["a"]


# --- answers


async def test_status_is_a_refusal_with_the_reason_of_its_code(server: APIServer) -> None:
    server.faults.add(faults.status(503, verb="create", message="not now"))
    answer = await ask(server, CONFIGS, method="POST", body={"metadata": {"name": "x"}})
    assert answer.status == 503
    assert answer.json() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "not now",
        "reason": "ServiceUnavailable",
        "code": 503,
    }
    assert "retry-after" not in answer.headers
    assert (await ask(server, f"{CONFIGS}/x")).status == 404  # it was not done


async def test_status_may_ask_for_patience(server: APIServer) -> None:
    server.faults.add(faults.status(429, retry_after=7))
    answer = await ask(server, CONFIGS)
    assert answer.headers["retry-after"] == "7"
    assert answer.json()["details"] == {"retryAfterSeconds": 7}
    assert answer.json()["reason"] == "TooManyRequests"


async def test_status_may_be_the_text_of_a_proxy(server: APIServer) -> None:
    server.faults.add(faults.status(502, text="<h1>bad gateway</h1>"))
    answer = await ask(server, CONFIGS)
    assert (answer.status, answer.body) == (502, b"<h1>bad gateway</h1>")
    assert answer.headers["content-type"].startswith("text/plain")


async def test_a_watch_may_end_cleanly_after_some_events(server: APIServer) -> None:
    server.faults.add(faults.end_watch(after_events=2))
    answer = await ask(server, WATCH)
    assert answer.is_whole
    assert names(answer.chunks) == ["a", "b"]


async def test_error_event_is_the_last_of_a_watch(server: APIServer) -> None:
    server.faults.add(faults.error_event(410, after_events=2))
    answer = await ask(server, WATCH)
    assert answer.is_whole
    assert names(answer.chunks[:2]) == ["a", "b"]
    last = json.loads(answer.chunks[2])
    assert last["type"] == "ERROR"
    assert (last["object"]["kind"], last["object"]["code"]) == ("Status", 410)
    assert last["object"]["reason"] == "Expired"


# --- state


async def test_stale_reads_are_behind_by_so_many_revisions(server: APIServer) -> None:
    fresh = (await ask(server, CONFIGS)).json()["metadata"]["resourceVersion"]
    fault = server.faults.add(faults.stale(revisions=2))
    listed = (await ask(server, f"{CONFIGS}?resourceVersion=0")).json()
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a", "b"]
    assert int(listed["metadata"]["resourceVersion"]) == int(fresh) - 2
    assert (await ask(server, f"{CONFIGS}/d?resourceVersion=0")).status == 404
    async with wire(server) as connection:
        await connection.send(WATCH)
        await connection.head()
        assert [(await connection.event())["object"]["metadata"]["name"] for _ in "ab"] == [*"ab"]
        await put(server, "e")  # one more revision, so one more is shown
        assert (await connection.event())["object"]["metadata"]["name"] == "c"
        server.faults.remove(fault)
        assert await connection.chunk() == b""  # the replica is gone
    listed = (await ask(server, CONFIGS)).json()
    assert [item["metadata"]["name"] for item in listed["items"]] == [*NAMES, "e"]


async def test_a_stale_cache_is_not_asked_for_the_newest_state(server: APIServer) -> None:
    server.faults.add(faults.stale_cache(revisions=2))
    for version, shown in (("", NAMES), ("0", ["a", "b"])):
        listed = (await ask(server, f"{CONFIGS}?resourceVersion={version}")).json()
        assert [item["metadata"]["name"] for item in listed["items"]] == shown
    assert (await ask(server, f"{CONFIGS}/d")).status == 200


async def test_writes_are_never_stale(server: APIServer) -> None:
    server.faults.add(faults.stale(revisions=100))
    again = await ask(server, CONFIGS, method="POST", body={"metadata": {"name": "d"}})
    assert again.status == 409


async def test_compact_happens_with_the_request(server: APIServer) -> None:
    fault = server.faults.add(faults.compact(verb="watch"))
    expired = json.loads((await ask(server, WATCH)).chunks[0])
    assert (expired["type"], expired["object"]["code"]) == ("ERROR", 410)
    assert fault.hits == 1


async def test_restore_brings_the_past_back_and_ends_watches(server: APIServer) -> None:
    async with wire(server) as connection:
        await connection.send(WATCH)
        await connection.head()
        for _ in NAMES:
            await connection.event()
        server.faults.add(faults.restore(by=2, verb="list"))
        listed = (await ask(server, CONFIGS)).json()
        assert [item["metadata"]["name"] for item in listed["items"]] == ["a", "b"]
        assert await connection.chunk() == b""
    server.faults.add(faults.restore(by=10_000))
    listed = (await ask(server, CONFIGS)).json()
    assert listed["items"] == []
    assert (await ask(server, "/api/v1/namespaces/default")).status == 200


async def test_clock_offset_shows_in_timestamps_and_dates(server: APIServer) -> None:
    before = parsedate_to_datetime((await ask(server, "/version")).headers["date"])
    fault = server.faults.add(faults.clock_offset(86_400))
    answer = await ask(server, CONFIGS, method="POST", body={"metadata": {"name": "later"}})
    tomorrow = (before + timedelta(days=1)).date().isoformat()
    created = answer.json()["metadata"]["creationTimestamp"]
    assert created.startswith(tomorrow) or created > tomorrow
    assert parsedate_to_datetime(answer.headers["date"]) - before >= timedelta(days=1)
    server.faults.remove(fault)
    now = parsedate_to_datetime((await ask(server, "/version")).headers["date"])
    assert now - before < timedelta(hours=1)


# --- the whole server


async def test_pause_says_nothing_until_resumed(server: APIServer) -> None:
    loop = asyncio.get_running_loop()
    async with wire(server) as watching:
        await watching.send(WATCH)
        await watching.head()
        for _ in NAMES:
            await watching.event()
        server.pause()
        asked = loop.create_task(put(server, "e"))
        event = loop.create_task(watching.event())
        async with wire(server) as other:  # connections are accepted all the same
            await other.send("/healthz")
            assert not asked.done()
            assert not event.done()
            server.resume()
            assert (await other.answer()).body == b"ok"
        await asked
        assert (await event)["object"]["metadata"]["name"] == "e"


async def test_a_paused_server_can_be_stopped() -> None:
    async with APIServer() as server, wire(server) as connection:
        server.pause()
        await connection.send(CONFIGS)
