"""Shared code of the tests that cut responses."""

from __future__ import annotations

import asyncio
import enum
from typing import final

from kinform import Added, Client, Deleted, Object, ReflectorOptions, Resource, Updated
from kinform.cache.reflector_reports import ReflectorStatistics
from kinform.sansio.backoff import Backoff

__all__ = ["LISTED", "MAPS", "Ending", "followed"]

MAPS = Resource.of("v1/configmaps", kind="ConfigMap", namespaced=True)
AT_ONCE = ReflectorOptions(backoff=Backoff(first=0.001, cap=0.001))
LISTED = b'"k8s.io/initial-events-end":"true"}}}}'
"""The end of the event that ends the list."""


class Ending(enum.Enum):
    """The way in which a connection ends."""

    FIN = "in good order"
    RST = "by a reset"


@final
class Listener:
    """Builds its state from events, and records impossible ones."""

    def __init__(self, expected: dict[str, str]) -> None:
        self._expected = expected
        self._is_right = asyncio.Event()
        self.believed: dict[str, str] = {}
        self.complaints: list[str] = []

    async def wait_right(self) -> None:
        async with asyncio.timeout(20):
            await self._is_right.wait()

    def added(self, event: Added[Object]) -> None:
        self._note(event.obj, is_right=event.obj.name not in self.believed)

    def updated(self, event: Updated[Object]) -> None:
        known = self.believed.get(event.new.name)
        self._note(event.new, is_right=known == event.old.resource_version)

    def deleted(self, event: Deleted[Object]) -> None:
        if self.believed.pop(event.key.name, None) is None:
            self.complaints.append(f"{event.key} goes, and was not there")
        self._look()

    def _note(self, obj: Object, *, is_right: bool) -> None:
        if not is_right or obj.resource_version == self.believed.get(obj.name):
            self.complaints.append(f"{obj.name} comes as {obj.resource_version}")
        self.believed[obj.name] = obj.resource_version
        self._look()

    def _look(self) -> None:
        if self.believed == self._expected:
            self._is_right.set()


async def followed(
    client: Client, *, namespace: str, expected: dict[str, str]
) -> ReflectorStatistics:
    """Run an informer until it has delivered ``expected``, versions by name; return statistics.

    At every moment its notifications must be possible, and at the end its cache must be equal.
    """
    listener = Listener(expected)
    informer = client.informer(MAPS, namespace=namespace, options=AT_ONCE)
    informer.add_event_handler(
        on_add=listener.added, on_update=listener.updated, on_delete=listener.deleted
    )
    async with informer:
        await listener.wait_right()
        shown = {one.name: one.resource_version for one in informer.lister.list()}
        figures = informer.statistics().reflector
    assert shown == listener.believed == expected
    assert not listener.complaints
    return figures
