"""A watch that has streamed its list has shown a bookmark: the one at the end of the list."""

from __future__ import annotations

from kinform.apiserver import APIServer, faults
from kinform.testing import in_virtual_time


@in_virtual_time
async def test_a_watch_that_falls_silent_behind_its_streamed_list_is_ended_after_idle_timeout() -> (
    None
):
    async with APIServer(port=None) as server, server.connect() as client:
        # The list has no pods: its end is the one event.
        server.faults.add(faults.half_open(resource="pods", after_events=1, times=1))
        async with client.informer("v1/pods") as informer:
            await informer.wait_synced(10)
            await client.resource("v1/pods").create(
                {
                    "metadata": {"name": "a", "namespace": "default"},
                    "spec": {"containers": [{"name": "main", "image": "web"}]},
                }
            )
            await informer.wait_for(lambda pods: pods.get("default/a"), 200)
