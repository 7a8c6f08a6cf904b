"""A process with a network of its own, in which packets get lost: see `test_half_open`.

It prints after how many seconds a watch was given up, and whether the cache was right again once
packets passed.
"""

from __future__ import annotations

import asyncio
import json
import subprocess

from kinform.apiserver import APIServer
from kinform.errors import KinformError

LONGEST = 120.0


def network(*commands: str) -> None:
    for command in commands:
        subprocess.run(["ip", *command.split()], check=True)


async def main() -> None:
    network("link set lo up")
    loop = asyncio.get_running_loop()
    given_up: asyncio.Future[float] = loop.create_future()

    def note(_: KinformError) -> None:
        if not given_up.done():
            given_up.set_result(loop.time())

    async with APIServer() as server, server.connect() as client:
        maps = client.resource("v1/configmaps", namespace="default")
        informer = client.informer("v1/configmaps", namespace="default", watch_error_handler=note)
        async with informer:
            await informer.wait_synced(30)
            made = await maps.create({"metadata": {"name": "before"}})
            await informer.wait_until(made.resource_version, 30)
            network("route flush table local")  # packets are dropped silently
            began = loop.time()
            async with asyncio.timeout(LONGEST):
                noticed = await given_up - began
            network("link set lo down", "link set lo up")
            async with server.connect() as other:  # the connections kept here may be over too
                others = other.resource("v1/configmaps", namespace="default")
                made = await others.create({"metadata": {"name": "after"}})
            await informer.wait_until(made.resource_version, LONGEST)
            figures = informer.statistics().reflector
    print(json.dumps({"noticed": noticed, "lists": figures.lists}))  # noqa: T201 - its answer


if __name__ == "__main__":
    asyncio.run(main())
