"""EventRecorder: the Events that the server finally has, in both API groups."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform import Object
from kinform.apiserver import APIServer, faults
from kinform.clientset import core_v1, meta_v1
from kinform.errors import UsageError
from kinform.runtime.events._event_objects import reference_of
from kinform.runtime.events.recorder import EventRecorder, ObjectReference
from kinform.testing import in_virtual_time, virtual_time
from tests.runtime.support_recorder import POD, scene

NOW = "2026-01-01T00:00:00Z"
NODE = Object.from_dict({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}})


# --- the core group


@in_virtual_time
async def test_an_event_says_who_reports_what_of_which_object() -> None:
    async with scene() as s, s.recorder as recorder:
        recorder.event(
            POD, "Warning", "Failed", "no luck",
            action="Pull", related=NODE, annotations={"example.com/try": "1"},
        )  # fmt: skip
        await asyncio.sleep(0.1)
        (event,) = await s.events()
    assert event["metadata"]["name"].startswith("web-0.18")
    assert event["metadata"]["annotations"] == {"example.com/try": "1"}
    assert {key: event[key] for key in event if key not in {"metadata", "eventTime"}} == {
        "apiVersion": "v1",
        "kind": "Event",
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "default",
            "name": "web-0",
            "uid": "8c1a",
            "resourceVersion": "7",
        },
        "type": "Warning",
        "reason": "Failed",
        "message": "no luck",
        "action": "Pull",
        "related": {"apiVersion": "v1", "kind": "Node", "name": "node-1"},
        "count": 1,
        "firstTimestamp": NOW,
        "lastTimestamp": NOW,
        "source": {"component": "tests"},
        "reportingComponent": "tests",
        "reportingInstance": "here",
    }


@in_virtual_time
async def test_the_same_event_is_patched_with_its_count_and_time() -> None:
    """CG-H14: same event counts."""
    async with scene() as s, s.recorder:
        for _ in range(3):
            s.say()
            await asyncio.sleep(10)
        (event,) = await s.events()
        statistics = s.recorder.statistics()
    assert (event["count"], event["firstTimestamp"]) == (3, NOW)
    assert event["lastTimestamp"] == "2026-01-01T00:00:20Z"
    assert (statistics.recorded, statistics.sent, statistics.patched) == (3, 1, 2)


@in_virtual_time
async def test_the_annotations_are_those_of_the_latest_event() -> None:
    async with scene() as s, s.recorder as recorder:
        for number in "12":
            recorder.event(POD, "Normal", "Tried", "again", annotations={"example.com/try": number})
            await asyncio.sleep(1)
        (event,) = await s.events()
    assert event["metadata"]["annotations"] == {"example.com/try": "2"}


@in_virtual_time
async def test_an_event_that_is_gone_is_created_anew_with_its_count() -> None:
    async with scene() as s, s.recorder:
        s.say()
        await asyncio.sleep(1)
        await s.client.resource("v1/events", namespace="default").delete_collection()
        s.say()
        await asyncio.sleep(1)
        assert await s.written() == [("Pulled", 2)]


@in_virtual_time
async def test_the_tenth_similar_message_is_combined_with_those_after_it() -> None:
    """CG-H14: 10 similar are aggregated."""
    async with scene() as s, s.recorder:
        for n in range(15):
            s.say("Pulled", f"image {n}")
            await asyncio.sleep(1)
        events = await s.events()
    assert [event["message"] for event in events[:9]] == [f"image {n}" for n in range(9)]
    (combined,) = events[9:]
    assert combined["message"] == "(combined from similar events): image 14"
    assert combined["count"] == 6


@in_virtual_time
async def test_an_object_about_which_there_is_too_much_to_say_is_told_of_less() -> None:
    """CG-H14: more than 25 in a burst are dropped."""
    async with scene() as s, s.recorder:
        for n in range(40):
            s.say(f"Reason{n}")
        s.recorder.event(NODE, "Normal", "Other", "this one is heard")
        await asyncio.sleep(1)
        assert await s.written() == [*((f"Reason{n}", 1) for n in range(25)), ("Other", 1)]
        assert s.recorder.statistics().dropped_spam == 15
        await asyncio.sleep(600)
        s.say("Reason39")  # what was held back was counted
        await asyncio.sleep(1)
        assert ("Reason39", 2) in await s.written()


@in_virtual_time
async def test_events_of_objects_without_a_namespace_are_in_default() -> None:
    async with scene() as s, s.recorder:
        s.say("Ready", regarding=NODE)
        await asyncio.sleep(1)
        (event,) = await s.events("default")
    assert event["involvedObject"] == {"apiVersion": "v1", "kind": "Node", "name": "node-1"}


# --- events.k8s.io


async def modern_events(client: Any) -> list[dict[str, Any]]:
    events = client.resource("events.k8s.io/v1/events", namespace="default")
    return [event.to_dict() for event in await events.list()]


@in_virtual_time
async def test_an_event_of_the_newer_group_has_what_the_server_asks_for() -> None:
    async with scene("events.k8s.io/v1") as s, s.recorder as recorder:
        await asyncio.sleep(0.25)
        recorder.event(POD, "Normal", "Pulled", "x" * 3000)
        await asyncio.sleep(0.1)
        (event,) = await modern_events(s.client)
        assert recorder.statistics().failed == 0
    assert event["regarding"]["uid"] == "8c1a"
    assert event["eventTime"] == "2026-01-01T00:00:00.250000Z"
    assert (event["reason"], event["action"], event["type"]) == ("Pulled", "Pulled", "Normal")
    assert (event["reportingController"], event["reportingInstance"]) == ("tests", "here")
    assert event["note"] == "x" * 1021 + "..."
    assert "series" not in event


@in_virtual_time
async def test_a_series_is_patched_at_the_second_event_and_at_its_end() -> None:
    """CG-H15: create, patch, finish."""
    async with scene("events.k8s.io/v1") as s, s.recorder as recorder:
        for _ in range(5):
            s.say()
            await asyncio.sleep(60)
        (event,) = await modern_events(s.client)
        assert event["series"]["count"] == 2
        await asyncio.sleep(299)  # the last one was a minute ago
        (event,) = await modern_events(s.client)
        assert event["series"]["count"] == 2
        await asyncio.sleep(2)
        (event,) = await modern_events(s.client)
        assert event["series"] == {"count": 5, "lastObservedTime": "2026-01-01T00:04:00.000000Z"}
        s.say()  # another series
        await asyncio.sleep(1)
        assert len(await modern_events(s.client)) == 2
        statistics = recorder.statistics()
    assert (statistics.recorded, statistics.sent, statistics.patched) == (6, 2, 2)


@in_virtual_time
async def test_a_series_that_goes_on_is_refreshed_every_half_hour() -> None:
    """CG-H15: refresh."""
    async with scene("events.k8s.io/v1") as s, s.recorder:
        for _ in range(62):
            s.say()
            await asyncio.sleep(60)
        (event,) = await modern_events(s.client)
        assert event["series"]["count"] == 61
        assert s.recorder.statistics().patched == 3


@in_virtual_time
async def test_a_series_is_told_when_the_recorder_stops() -> None:
    async with scene("events.k8s.io/v1") as s:
        async with s.recorder:
            for _ in range(9):
                s.say()
                await asyncio.sleep(1)
        (event,) = await modern_events(s.client)
    assert event["series"]["count"] == 9


@in_virtual_time
async def test_more_series_than_may_wait_are_told_when_the_recorder_stops() -> None:
    async with scene("events.k8s.io/v1", capacity=5) as s:
        async with s.recorder:
            for n in range(3 * 12):
                s.say(f"Reason{n % 12}")
                await asyncio.sleep(1)
        assert [event["series"]["count"] for event in await modern_events(s.client)] == [3] * 12
        assert s.recorder.statistics().dropped_full == 0


@in_virtual_time
async def test_a_series_whose_event_is_gone_is_created_anew() -> None:
    async with scene("events.k8s.io/v1") as s, s.recorder:
        for _ in range(3):
            s.say()
            await asyncio.sleep(1)
        await s.client.resource("v1/events", namespace="default").delete_collection()
        await asyncio.sleep(400)
        (event,) = await modern_events(s.client)
    assert event["series"]["count"] == 3


# --- every occurrence is counted


async def reported_under_faults(history: list[tuple[str, float]], failures: int, api: Any) -> None:
    async with scene(api) as s:
        s.server.faults.add(faults.status(503, verb="create", times=failures))
        s.server.faults.add(faults.status(500, verb="patch", times=failures))
        s.server.faults.add(faults.close(verb="create", after_bytes=20, times=failures))
        async with s.recorder:
            for reason, pause in history:
                s.say(reason)
                await asyncio.sleep(pause)
            assert await s.recorder.drain(3600) == 0
        if api == "v1":
            counts = [count for _, count in await s.written()]
        else:
            events = await modern_events(s.client)
            counts = [event.get("series", {"count": 1})["count"] for event in events]
        statistics = s.recorder.statistics()
        assert statistics.failed == 0
        assert sum(counts) == len(history) == statistics.recorded
        assert len(counts) == statistics.sent


@pytest.mark.slow
@given(
    history=st.lists(st.tuples(st.sampled_from("ABC"), st.floats(0, 100)), max_size=20),
    failures=st.integers(1, 5),
    api=st.sampled_from(["v1", "events.k8s.io/v1"]),
)
def test_every_event_is_counted_once_whatever_fails_on_the_way(
    history: list[tuple[str, float]], failures: int, api: str
) -> None:
    virtual_time.run(reported_under_faults(history, failures, api))


# --- arguments


@pytest.fixture
async def recorder() -> AsyncIterator[EventRecorder]:
    async with APIServer(port=None) as server, server.connect() as client:
        yield EventRecorder(client, "tests")


@pytest.mark.parametrize(
    "arguments, complaint",
    [
        ((POD, "Error", "Failed", "m"), r"type is 'Normal' or 'Warning', got 'Error'"),
        ((POD, "Normal", "failed", "m"), r"reason is 'failed'; expected .* UpperCamelCase"),
        ((POD, "Normal", "Two Words", "m"), "UpperCamelCase"),
        ((POD, "Normal", "", "m"), "UpperCamelCase"),
        ((POD, "Normal", "R" * 129, "m"), "reason is 'RRR.* at most 128"),
        ((POD, "Normal", "Failed", None), "message must be a string, got NoneType"),
        (("web-0", "Normal", "Failed", "m"), "about an Object or an ObjectReference, not a str"),
        (({"kind": "Pod"}, "Normal", "Failed", "m"), "kind 'Pod' and name ''"),
        (({"metadata": {"name": "a"}}, "Normal", "Failed", "m"), "kind '' and name 'a'"),
        (({"metadata": 1}, "Normal", "Failed", "m"), "is not a dict"),
        (({"kind": 1, "name": "a"}, "Normal", "Failed", "m"), "kind must be a string, got int"),
    ],
)
def test_what_makes_no_event_is_refused_at_once(
    recorder: EventRecorder, arguments: tuple[Any, ...], complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        recorder.event(*arguments)
    assert recorder.statistics().recorded == 0


@pytest.mark.parametrize(
    "options", [{"action": "a" * 129}, {"annotations": {"a": 1}}, {"related": 5}]
)
def test_options_that_make_no_sense_are_refused_at_once(
    recorder: EventRecorder, options: dict[str, Any]
) -> None:
    with pytest.raises(UsageError):
        recorder.event(POD, "Normal", "Failed", "m", **options)


@in_virtual_time
async def test_a_recorder_that_makes_no_sense_is_refused() -> None:
    async with APIServer(port=None) as server, server.connect() as client:
        for component in ("", "two words", "a/b/c", "-", "x" * 64, "Example.com/x", "/x"):
            with pytest.raises(UsageError, match="component is"):
                EventRecorder(client, component)
        with pytest.raises(UsageError, match="api is 'v2'"):
            EventRecorder(client, "tests", api="v2")  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="instance is 'iii"):
            EventRecorder(client, "tests", instance="i" * 129)
        with pytest.raises(UsageError, match="capacity is 0"):
            EventRecorder(client, "tests", capacity=0)
        EventRecorder(client, "example.com/website-operator")


def test_an_object_may_be_named_in_several_ways() -> None:
    named = ObjectReference(
        api_version="v1", kind="Pod", namespace="default", name="web-0", uid="8c1a"
    )
    flat = {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "web-0"}
    for regarding in (POD, POD.to_dict(), {**flat, "uid": "8c1a"}, named):
        assert reference_of(regarding) == named
    path = "spec.containers{web}"
    assert reference_of({**flat, "fieldPath": path}).field_path == path


@in_virtual_time
async def test_nothing_of_what_the_object_holds_is_told() -> None:
    metadata = {"name": "key", "namespace": "default", "annotations": {"last": "hunter2"}}
    content = {"kind": "Secret", "metadata": metadata, "data": {"password": "hunter2"}}
    secret = Object.from_dict({"apiVersion": "v1", **content})
    async with scene() as s, s.recorder as recorder:
        recorder.event(secret, "Normal", "Rotated", "a new password", related=secret)
        await asyncio.sleep(1)
        (event,) = await s.events()
    assert event["involvedObject"]["name"] == "key"
    assert "hunter2" not in json.dumps(event)


def test_a_model_is_what_an_event_can_be_about() -> None:
    metadata = meta_v1.ObjectMeta(
        name="web-0", namespace="default", uid="8c1a", resource_version="7"
    )
    pod = core_v1.Pod(metadata=metadata, spec=core_v1.PodSpec(node_name="not to be published"))
    assert reference_of(pod) == reference_of(POD)
    with pytest.raises(UsageError, match=r"kind 'Pod' and name ''; .* give ObjectReference\("):
        reference_of(core_v1.Pod())
    partial = {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata"}
    with pytest.raises(UsageError, match=r"kind '' and name 'a'"):
        reference_of(Object.from_dict({**partial, "metadata": {"name": "a"}}))
