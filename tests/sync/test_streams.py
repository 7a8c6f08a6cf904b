"""Watches and logs as plain iterators."""

from __future__ import annotations

import threading

import pytest

import kinform
from kinform.apiserver import faults
from kinform.resource import Resource
from kinform.sync import ResourceClient, connect, run
from kinform.testing import APIServerThread
from tests.support.scripted import Answer, ScriptedTransport
from tests.sync.test_client import body, tasks_on_the_loop
from tests.testing.eventually import eventually


@pytest.mark.slow
def test_a_watch_is_a_plain_iterator_and_ends_with_the_servers_watch(
    maps: ResourceClient,
) -> None:
    version = maps.list().resource_version
    for n in range(3):
        maps.create(body(f"m{n}"))
    seen = []
    with maps.watch(resource_version=version, timeout=1) as events:
        for event in events:
            seen.append((event.type, event.object.name))
            assert events.resource_version == event.object.resource_version
    assert seen == [(kinform.EventType.ADDED, f"m{n}") for n in range(3)]
    assert run(tasks_on_the_loop) == 0


def test_a_watch_goes_on_where_a_loop_was_left(maps: ResourceClient) -> None:
    for n in range(4):
        maps.create(body(f"m{n}"))
    with maps.watch() as events:
        first = next(events)
        rest = [event for _, event in zip(range(3), events, strict=False)]
    assert [one.object.name for one in (first, *rest)] == [f"m{n}" for n in range(4)]


def test_bookmarks_are_yielded_to_who_wants_them(maps: ResourceClient) -> None:
    maps.create(body("a"))
    with maps.watch(send_initial_events=True) as events:
        seen = []
        for received in events.with_bookmarks():
            seen.append(type(received).__name__)
            if isinstance(received, kinform.Bookmark):
                assert received.initial_events_end
                assert events.resource_version == received.resource_version
                break
        assert events.initial_events_end
    assert seen == ["WatchEvent", "Bookmark"]


def test_an_error_event_is_raised_after_what_came_before_it(
    server: APIServerThread, maps: ResourceClient
) -> None:
    maps.create(body("a"))
    server.faults.add(faults.error_event(410, after_events=1))
    with maps.watch() as events:
        assert next(events).object.name == "a"
        with pytest.raises(kinform.ResourceExpiredError):
            next(events)


def test_a_watch_the_server_refuses_is_an_error_on_entering(
    server: APIServerThread, maps: ResourceClient
) -> None:
    server.faults.add(faults.status(403, verb="watch"))
    with pytest.raises(kinform.ForbiddenError), maps.watch():
        pass
    assert run(tasks_on_the_loop) == 0


def test_a_watch_that_was_not_opened_says_how(maps: ResourceClient) -> None:
    with pytest.raises(kinform.UsageError, match=r"with resource\.watch\(\) as events"):
        next(maps.watch())


def test_a_second_reader_of_one_watch_is_refused(maps: ResourceClient) -> None:
    with maps.watch() as events:
        reader = threading.Thread(target=lambda: next(events, None))
        reader.start()
        eventually(lambda: run(tasks_on_the_loop) > 0)
        with pytest.raises(kinform.UsageError, match="another thread reads this watch"):
            next(events)
        maps.create(body("a"))  # lets the first one go
        reader.join(10)
        assert not reader.is_alive()


def test_a_log_that_was_not_opened_says_how(maps: ResourceClient) -> None:
    with pytest.raises(kinform.UsageError, match=r"with pods\.logs\(name\) as lines"):
        next(maps.logs("web-0"))


def test_a_log_that_is_not_there_is_an_error_on_entering(maps: ResourceClient) -> None:
    with pytest.raises(kinform.ApiError), maps.logs("web-0"):
        pass


def test_the_lines_of_a_log_are_a_plain_iterator() -> None:
    pieces = [b"one\ntwo", b" and a half\n\nf", b"o", b"ur"]
    transport = ScriptedTransport(Answer(200, {"Content-Type": "text/plain"}, pieces))
    pods = Resource.of("v1/pods", kind="Pod", namespaced=True)
    with connect("http://api.test", transport=transport) as client:
        with client.resource(pods).logs("web-0", follow=True) as lines:
            assert list(lines) == ["one", "two and a half", "", "four"]
            assert next(lines, None) is None
        assert transport.open == 0


def test_a_log_can_be_left_in_the_middle() -> None:
    answer = Answer(200, {"Content-Type": "text/plain"}, [b"one\ntwo\n"], stalls=True)
    transport = ScriptedTransport(answer)
    pods = Resource.of("v1/pods", kind="Pod", namespaced=True)
    with connect("http://api.test", transport=transport) as client:
        with client.resource(pods).logs("web-0", follow=True) as lines:
            assert next(lines) == "one"
        assert transport.open == 0
    assert run(tasks_on_the_loop) == 0
