"""A small controller and its tests: on the embedded API server, with pytest's fixtures.

The controller keeps a copy of each ConfigMap that is labelled ``mirror`` in the namespace that the
label names. ``python examples/testing_a_controller.py`` runs the tests of this file, as ``pytest``
does.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys

import kinform
from kinform.apiserver import APIServer, faults
from kinform.testing import in_virtual_time

# --- the controller


class Mirror:
    """Copies ConfigMaps from one namespace to others, until the block is left."""

    def __init__(self, client: kinform.Client, namespace: str) -> None:
        self._client = client
        self._informer = client.informer("v1/configmaps", namespace=namespace)

    async def run(self) -> None:
        """Follow the informer: level by level, so that a step done twice does no harm."""
        async with self._informer:
            async for event in self._informer.events():
                match event:
                    case kinform.Added(_, obj) | kinform.Updated(_, _, obj):
                        await self._copy(obj)
                    case kinform.Deleted(_, obj):
                        await self._forget(obj)

    async def _copy(self, obj: kinform.Object) -> None:
        namespace = obj.metadata.labels.get("mirror")
        if namespace is None:
            return
        copy = {"metadata": {"name": obj.name}, "data": obj.at("data", default={})}
        await self._maps(namespace).apply(copy, field_manager="mirror", force=True)

    async def _forget(self, obj: kinform.Object) -> None:
        namespace = obj.metadata.labels.get("mirror")
        if namespace is not None:
            await self._maps(namespace).delete(obj.name)

    def _maps(self, namespace: str) -> kinform.ResourceClient[kinform.Object]:
        return self._client.resource("v1/configmaps", namespace=namespace)


# --- its tests

RED = {"metadata": {"name": "red", "labels": {"mirror": "kube-public"}}, "data": {"n": "1"}}


async def test_a_copy_follows_its_original(kinform_client: kinform.Client) -> None:
    async with kinform_client as client, asyncio.TaskGroup() as group:
        maps = client.resource("v1/configmaps", namespace="default")
        await maps.create(RED)
        controller = group.create_task(Mirror(client, "default").run())

        async with client.informer("v1/configmaps", namespace="kube-public") as copies:
            await copies.wait_for(lambda cache: cache.get("kube-public/red"), 10)
            await maps.patch("red", {"data": {"n": "2"}})
            await copies.wait_for(lambda cache: has(cache, "2"), 10)
            await maps.delete("red")
            await copies.wait_for(lambda cache: not cache.get("kube-public/red"), 10)
        controller.cancel()


def has(cache: kinform.Lister[kinform.Object], value: str) -> bool:
    red = cache.get("kube-public/red")
    return red is not None and red.at("data", "n") == value


@in_virtual_time
async def test_a_change_during_an_outage_is_copied_afterwards() -> None:
    async with (
        APIServer(port=None) as server,
        server.connect() as client,
        asyncio.TaskGroup() as group,
    ):
        controller = group.create_task(Mirror(client, "default").run())
        originals = client.resource("v1/configmaps", namespace="default")
        copies = client.resource("v1/configmaps", namespace="kube-public")
        server.faults.add(faults.reset(verb="list", namespace="default"))
        server.faults.add(faults.reset(verb="watch", namespace="default"))  # none comes through
        await originals.create(RED)
        await asyncio.sleep(60)  # virtual: takes no time
        assert "red" not in {one.name for one in await copies.list()}
        server.faults.clear()
        await asyncio.sleep(120)
        assert (await copies.get("red")).at("data", "n") == "1"
        controller.cancel()


if __name__ == "__main__":
    # A process of its own: pytest looks into the code it imports, before anybody else did.
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    sys.exit(subprocess.run(command, check=False).returncode)
