"""What tests of informers share: a source, a handler that remembers, and a moment of quiet."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from kinform.cache.processor.events import Added, Deleted, Event, Updated
from kinform.cache.processor.handlers import EventHandler, handler
from kinform.cache.shared_informer import SharedInformer
from kinform.errors import TransportError, TransportFailure
from kinform.objects.object import Object
from kinform.testing import FakeListWatch

REFUSED: Final = TransportError("nobody there", failure=TransportFailure.REFUSED)
CUT: Final = TransportError("cut", failure=TransportFailure.RESET)


def thing(
    name: str,
    value: str = "",
    *,
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
) -> dict[str, object]:
    """Return an object to give to a `FakeListWatch`."""
    metadata = {"name": name, "namespace": namespace, "labels": dict(labels or {})}
    return {"metadata": metadata, "data": {"value": value}}


def source_of(*names: str) -> FakeListWatch[Object]:
    """Return a source with these objects; their versions are 2, 3 and so on."""
    source = FakeListWatch()
    for name in names:
        source.add(thing(name))
    return source


def value_of(obj: Object) -> str:
    """Return what tests change of an object."""
    value = obj.at("data", "value")
    return value if isinstance(value, str) else ""


def said(event: Event[Object]) -> str:
    """Return an event in a few characters.

    ``+a@2`` was added, ``+a@2 initial``; ``a@2>3`` changed, ``a@3=`` was resynced; ``-a@4`` was
    deleted, ``-a@3 unseen`` likewise, but nobody saw it go.
    """
    name = event.key.name
    match event:
        case Added(obj=obj, initial=initial):
            return f"+{name}@{obj.resource_version}{' initial' if initial else ''}"
        case Updated(old=old, new=new) if old is new:
            return f"{name}@{new.resource_version}="
        case Updated(old=old, new=new):
            return f"{name}@{old.resource_version}>{new.resource_version}"
        case Deleted(obj=obj, final_state_unknown=unknown):
            return f"-{name}@{obj.resource_version}{' unseen' if unknown else ''}"


class Recorder:
    """A handler that remembers what it is told."""

    def __init__(self, name: str = "recorder") -> None:
        self.name = name
        self.events: list[Event[Object]] = []

    def note(self, event: Event[Object]) -> None:
        self.events.append(event)

    @property
    def handler(self) -> EventHandler[Object]:
        return handler(on_add=self.note, on_update=self.note, on_delete=self.note, name=self.name)

    @property
    def told(self) -> list[str]:
        return [said(event) for event in self.events]

    def take(self) -> list[str]:
        """Return what it was told since the last time."""
        told = self.told
        self.events.clear()
        return told


def recorded(informer: SharedInformer[Object], name: str = "recorder") -> Recorder:
    """Return a recorder that was added to ``informer``."""
    recorder = Recorder(name)
    informer.add_event_handler(recorder.handler)
    return recorder


def names(informer: SharedInformer[Object]) -> list[str]:
    """Return the names of what is in the cache."""
    return sorted(key.name for key in informer.indexer.list_keys())


def versions(informer: SharedInformer[Object]) -> dict[str, str]:
    """Return what is in the cache, by key, each with uid and version."""
    return {
        str(entry.metadata.key): f"{entry.metadata.uid}@{entry.metadata.resource_version}"
        for entry in informer.indexer.entries.list()
    }


def source_versions(source: FakeListWatch[Object]) -> dict[str, str]:
    """Return the same of a source."""
    return {
        str(key): f"{entry.metadata.uid}@{entry.metadata.resource_version}"
        for key, entry in source.entries.items()
    }


async def quiet(seconds: float = 0.01) -> None:
    """Let everything happen that can: virtual time moves only when everybody waits."""
    await asyncio.sleep(seconds)
