"""Events on a real kube-apiserver, in both API groups."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kinform import Client, Object
from kinform.runtime.events.recorder import EventRecorder
from kinform.testing import ControlPlane

pytestmark = pytest.mark.e2e


@pytest.fixture
async def client(kinform_control_plane: ControlPlane) -> AsyncIterator[Client]:
    async with kinform_control_plane.connect() as client:
        yield client


async def config_map(client: Client, namespace: str) -> Object:
    """Return an object as a list shows it, where the server leaves out the kind of the items."""
    maps = client.resource("v1/configmaps", namespace=namespace)
    await maps.create({"metadata": {"name": "settings"}, "data": {"password": "hunter2"}})
    (listed,) = await maps.list(field_selector="metadata.name=settings")
    return listed


async def events(client: Client, api: str, namespace: str) -> list[Any]:
    found = await client.resource(f"{api}/events", namespace=namespace).list()
    assert not any(b"hunter2" in event.raw for event in found)
    return [event.to_dict() for event in found]


async def test_events_of_the_core_group_are_counted_combined_and_readable_in_both(
    client: Client, kinform_namespace: str
) -> None:
    """CG-H14."""
    settings = await config_map(client, kinform_namespace)
    async with EventRecorder(client, "example.com/tests", instance="here") as recorder:
        for _ in range(3):
            recorder.event(settings, "Warning", "Failed", "nö" * 2000, action="Read")
            assert await recorder.drain(30) == 0
        for n in range(12):
            recorder.event(settings, "Normal", "Changed", f"change {n}")
            assert await recorder.drain(30) == 0
        statistics = recorder.statistics()
    assert (statistics.failed, statistics.sent, statistics.patched) == (0, 11, 4)

    core = await events(client, "v1", kinform_namespace)
    (failed,) = [event for event in core if event["reason"] == "Failed"]
    assert failed["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "namespace": kinform_namespace,
        "name": "settings",
        "uid": settings.uid,
        "resourceVersion": settings.resource_version,
    }
    assert (failed["type"], failed["count"], failed["action"]) == ("Warning", 3, "Read")
    assert failed["source"] == {"component": "example.com/tests"}
    assert (failed["reportingComponent"], failed["reportingInstance"]) == (
        "example.com/tests",
        "here",
    )
    assert failed["firstTimestamp"] <= failed["lastTimestamp"]
    assert failed["metadata"]["name"].startswith("settings.1")
    combined = [event for event in core if event["message"].startswith("(combined")]
    assert [(event["message"], event["count"]) for event in combined] == [
        ("(combined from similar events): change 11", 3)
    ]

    modern = await events(client, "events.k8s.io/v1", kinform_namespace)
    (failed,) = [event for event in modern if event["reason"] == "Failed"]
    assert failed["deprecatedCount"] == 3
    assert failed["reportingController"] == "example.com/tests"


async def test_a_series_of_the_newer_group_is_accepted_by_a_real_server(
    client: Client, kinform_namespace: str
) -> None:
    """CG-H15."""
    settings = await config_map(client, kinform_namespace)
    node = {"apiVersion": "v1", "kind": "Node", "name": "system:node"}
    recorder = EventRecorder(client, "example.com/tests", api="events.k8s.io/v1")
    async with recorder:
        for n in range(4):
            recorder.event(
                settings, "Normal", "Changed", f"{n}" + "ö" * 2000,
                related=node, annotations={"example.com/a": "b"},
            )  # fmt: skip
            await asyncio.sleep(0)
            assert await recorder.drain(30) == 0
        recorder.event(node, "Normal", "Seen", "about an object without a namespace")
    assert recorder.statistics().failed == 0
    assert (recorder.statistics().sent, recorder.statistics().patched) == (2, 3)

    (event,) = await events(client, "events.k8s.io/v1", kinform_namespace)
    assert event["regarding"]["uid"] == settings.uid
    assert event["related"] == node
    assert (event["reason"], event["action"], event["type"]) == ("Changed", "Changed", "Normal")
    assert event["reportingController"] == "example.com/tests"
    assert event["reportingInstance"]
    assert event["series"]["count"] == 4
    assert event["eventTime"] <= event["series"]["lastObservedTime"]
    assert len(event["note"].encode()) <= 1024
    seen = [it for it in await events(client, "v1", "default") if it["reason"] == "Seen"]
    assert seen[0]["metadata"]["name"].startswith("system-node.")


async def test_an_event_about_a_namespace_that_goes_away_is_dropped_quietly(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    await client.resource("v1/namespaces").create({"metadata": {"name": "recorder-old"}})
    settings = await config_map(client, "recorder-old")
    await client.resource("v1/namespaces").delete("recorder-old")  # it stays Terminating
    async with EventRecorder(client, "tests") as recorder:
        recorder.event(settings, "Normal", "Deleted", "going away")
    assert (recorder.statistics().failed, recorder.statistics().waiting) == (1, 0)
    assert caplog.messages == []
