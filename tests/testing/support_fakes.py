"""Objects to fill a `FakeListWatch` with, and short ways to ask it."""

from __future__ import annotations

from kinform.objects.object import Object
from kinform.rest.options import ListOptions
from kinform.rest.results import Bookmark, Received, Unreadable, WatchEvent
from kinform.testing import FakeListWatch


def named(name: str, **data: str) -> dict[str, object]:
    return {"metadata": {"name": name}, "data": data}


def labelled(name: str, **labels: str) -> dict[str, object]:
    return {"metadata": {"name": name, "labels": labels}}


def brief(received: Received[Object] | Unreadable) -> tuple[str, str, str]:
    """Return type, name and version."""
    if isinstance(received, WatchEvent):
        meta = received.metadata
        return received.type, meta.name, meta.resource_version
    assert isinstance(received, Bookmark)
    return "END" if received.initial_events_end else "BOOKMARK", "", received.resource_version


async def watch_events(
    source: FakeListWatch[Object], **options: object
) -> list[tuple[str, str, str]]:
    """Return the events of a watch that the source closes as soon as it is open."""
    async with source.watch(ListOptions(**options)) as events:  # type: ignore[arg-type]
        source.close_watches()
        return [brief(received) async for received in events]


async def names(source: FakeListWatch[Object], **options: object) -> list[str]:
    listed = await source.list(ListOptions(**options))  # type: ignore[arg-type]
    return [obj.name for obj in listed]
