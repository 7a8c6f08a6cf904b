"""A server without sockets under virtual time, an informer of it, and writes no fault can hit."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable

from kinform.apiserver import APIServer
from kinform.apiserver.endpoints.messages import ServerRequest
from kinform.apiserver.endpoints.request_paths import Route, route
from kinform.apiserver.registry.deletion import delete_options
from kinform.cache.shared_informer import SharedInformer
from kinform.objects.object import Object

CONFIGS = "/api/v1/namespaces/default/configmaps"
HOUR = 3600.0


class World:
    """One server and one informer of its config maps."""

    def __init__(self, server: APIServer, informer: SharedInformer[Object]) -> None:
        self.server = server
        self.informer = informer

    def create(self, name: str, value: str = "") -> None:
        request = self._request("POST", CONFIGS, {"metadata": {"name": name}, "data": {"v": value}})
        self.server.application.writing.create(request, self._route(CONFIGS))

    def change(self, name: str, value: str) -> None:
        path = f"{CONFIGS}/{name}"
        request = self._request("PUT", path, {"metadata": {"name": name}, "data": {"v": value}})
        self.server.application.writing.put(request, self._route(path))

    def delete(self, name: str) -> None:
        path = f"{CONFIGS}/{name}"
        options = delete_options(self._request("DELETE", path, {}))
        self.server.application.writing.delete(self._route(path), options)

    async def get(self, name: str, query: str = "") -> int:
        """Read an object, with all faults; return the status."""
        headers = {"Authorization": f"Bearer {self.server.token}"}
        request = ServerRequest.of("GET", f"{CONFIGS}/{name}?{query}", headers=headers)
        return (await self.server.application.handle(request)).status

    def names(self) -> list[str]:
        return [key.partition("/")[2] for key in self.on_server()]

    def on_server(self) -> dict[str, str]:
        """Return the versions of all objects, by their keys."""
        table = self.server.cluster.storage.table("configmaps")
        return {stored.key: str(stored.revision) for stored in table.now()}

    def in_cache(self) -> dict[str, str]:
        """Return the same, as the informer has it."""
        return {
            f"{obj.namespace}/{obj.name}": obj.resource_version
            for obj in sorted(self.informer.lister.list(), key=lambda it: it.name)
        }

    def is_equal(self) -> bool:
        """Tell whether the cache has all that the server has, but what it says it cannot read."""
        there = self.on_server()
        for key in self.informer.unreadable:
            there.pop(str(key), None)
        return self.in_cache() == there

    async def settled(self, within: float = HOUR) -> None:
        """Wait until the cache equals the server, and no object is quarantined."""
        await until(lambda: self.is_equal() and not self.informer.unreadable, within=within)

    def lists(self) -> int:
        """Return how often the informer has listed."""
        return self.informer.statistics().reflector.lists

    def _request(self, method: str, path: str, body: object) -> ServerRequest:
        headers = {"Content-Type": "application/json"}
        return ServerRequest.of(method, path, headers=headers, body=json.dumps(body).encode())

    def _route(self, path: str) -> Route:
        return route(self.server.cluster.kinds, path)


async def until(condition: Callable[[], bool], *, within: float = HOUR) -> None:
    """Wait for a condition, looking four times a (virtual) second."""
    async with asyncio.timeout(within):
        while not condition():  # noqa: ASYNC110 - a look costs nothing under virtual time
            await asyncio.sleep(0.25)


@contextlib.asynccontextmanager
async def world(*names: str, server: APIServer | None = None) -> AsyncIterator[World]:
    """Run a server that has config maps of these names; the informer is not started."""
    async with server or APIServer(port=None, seed=1) as running, running.connect() as client:
        informer = client.informer("v1/configmaps", namespace="default")
        made = World(running, informer)
        for name in names:
            made.create(name)
        yield made
