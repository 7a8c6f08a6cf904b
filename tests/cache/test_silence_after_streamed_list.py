"""The idle watchdog and bookmarks: the one that ends a streamed list does not arm it.

Kinds without a watch cache (events) send that one and no other: silence says nothing there.
"""

from __future__ import annotations

import asyncio

import pytest

from kinform.apiserver import APIServer, faults
from kinform.testing import in_virtual_time

POD = {
    "metadata": {"name": "a", "namespace": "default"},
    "spec": {"containers": [{"name": "main", "image": "web"}]},
}


@in_virtual_time
async def test_a_watch_that_falls_silent_after_two_bookmarks_is_ended_after_idle_timeout() -> None:
    async with APIServer(port=None) as server, server.connect() as client:
        # The list has no pods: its end is the first event, a bookmark a minute later the second.
        server.faults.add(faults.half_open(resource="pods", after_events=2, times=1))
        async with client.informer("v1/pods") as informer:
            await informer.wait_synced(10)
            await asyncio.sleep(90)
            await client.resource("v1/pods").create(POD)
            await informer.wait_for(lambda pods: pods.get("default/a"), 200)
            assert informer.statistics().reflector.failures == 1


@pytest.mark.parametrize("resource", ["v1/events", "v1/pods"])
@in_virtual_time
async def test_a_quiet_watch_with_the_end_of_its_list_as_only_bookmark_is_left_alone(
    resource: str,
) -> None:
    async with APIServer(port=None) as server, server.connect() as client:
        server.faults.add(faults.no_bookmarks(initial_end=False, times=None))
        async with client.informer(resource) as informer:
            await informer.wait_synced(10)
            await asyncio.sleep(290)
            assert informer.statistics().reflector.failures == 0
            assert informer.statistics().reflector.watches == 1
