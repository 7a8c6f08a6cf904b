"""A server in memory, a recorder on it, and a short way to read what the server has."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from typing import Any

from kinform import Client, Object
from kinform.apiserver import APIServer
from kinform.runtime.events._event_objects import EventAPI
from kinform.runtime.events.recorder import EventRecorder

POD = Object.from_dict(
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "web-0",
            "namespace": "default",
            "uid": "8c1a",
            "resourceVersion": "7",
        },
        "spec": {"nodeName": "not to be published"},
    }
)


class Scene:
    """A server, a client and a recorder that is not started yet."""

    def __init__(self, server: APIServer, client: Client, recorder: EventRecorder) -> None:
        self.server = server
        self.client = client
        self.recorder = recorder

    def say(self, reason: str = "Pulled", message: str = "", *, regarding: Object = POD) -> None:
        self.recorder.event(regarding, "Normal", reason, message or reason.lower())

    async def events(self, namespace: str = "default") -> list[dict[str, Any]]:
        """Return the events of the core group, in the order of their creation."""
        events = self.client.resource("v1/events", namespace=namespace)
        found: list[dict[str, Any]] = [event.to_dict() for event in await events.list()]
        return sorted(found, key=lambda it: it["metadata"]["name"].rpartition(".")[2])

    async def written(self, namespace: str = "default") -> list[tuple[str, int]]:
        """Return reason and count of these events."""
        return [(event["reason"], event["count"]) for event in await self.events(namespace)]


@contextlib.asynccontextmanager
async def scene(api: EventAPI = "v1", *, capacity: int = 1000) -> AsyncGenerator[Scene]:
    async with APIServer(port=None) as server, server.connect() as client:
        recorder = EventRecorder(client, "tests", instance="here", api=api, capacity=capacity)
        yield Scene(server, client, recorder)
