"""A server with websites and the operator at work, in virtual time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Any

from examples import website_operator as program
from examples.website_operator import CONFIG_MAPS, DEPLOYMENTS, DIRECTORY, SERVICES, WEBSITES
from kinform import Client, Controller, LeaderElection, Manager, NotFoundError, Object
from kinform.apiserver import APIServer
from kinform.runtime.status_conditions import find_condition

SETTLED = 10.0
"""Virtual seconds in which the operator has done what there is to do."""


class Scene:
    """A server, and what people and a cluster's controllers do there."""

    def __init__(self, server: APIServer, client: Client) -> None:
        self.server = server
        self.client = client
        self.sites = client.resource(WEBSITES, namespace="default")
        self.deployments = client.resource(DEPLOYMENTS, namespace="default")
        self.config_maps = client.resource(CONFIG_MAPS, namespace="default")
        self.services = client.resource(SERVICES, namespace="default")

    async def settle(self) -> None:
        await asyncio.sleep(SETTLED)

    async def make(self, name: str = "web", **spec: object) -> Object:
        """Make a site, and let the operator have its time."""
        body = {"metadata": {"name": name}, "spec": {"html": "hello", **spec}}
        made = await self.sites.create(body)
        await self.settle()
        return made

    async def change(self, name: str = "web", **spec: object) -> None:
        await self.sites.patch(name, {"spec": spec})
        await self.settle()

    async def roll_out(self, name: str = "web", **status: object) -> None:
        """Do what the Deployment controller does; or write another status."""
        found = await self.deployments.get(name)
        status = program.demo_status(found) | status
        await self.deployments.status.patch(name, {"status": status})
        await self.settle()

    async def children(self, name: str = "web") -> list[Object]:
        return [
            await self.config_maps.get(f"{name}-html"),
            await self.services.get(name),
            await self.deployments.get(name),
        ]

    async def directory(self) -> dict[str, str]:
        try:
            return dict((await self.config_maps.get(DIRECTORY)).at("data", default={}))
        except NotFoundError:
            return {}

    async def conditions(self, name: str = "web") -> dict[str, tuple[str, str]]:
        """Return status and reason of each condition; all belong to the current generation."""
        site = await self.sites.get(name)
        found: list[Any] = site.at("status", "conditions", default=[])
        assert {each["observedGeneration"] for each in found} <= {site.metadata.generation}
        return {each["type"]: (each["status"], each["reason"]) for each in found}

    async def message(self, name: str, condition: str) -> object:
        return (find_condition(await self.sites.get(name), condition) or {}).get("message")

    async def events(self, name: str = "web") -> list[str]:
        """Return the reasons of the Events about a site, each as often as it was recorded."""
        found = await self.client.resource("v1/events", namespace="default").list()
        return [
            event.at("reason")
            for event in sorted(found, key=lambda event: event.metadata.name)
            if event.at("involvedObject", "name") == name
            for _ in range(event.at("count", default=1))
        ]

    @contextlib.asynccontextmanager
    async def operator(
        self,
        *,
        identity: str = "one",
        slow: float = 0.0,
        election: LeaderElection | None = None,
        guard: Callable[[], None] | None = None,
    ) -> AsyncGenerator[Controller]:
        """Run the operator beside the block."""
        client = self.client if guard is None else self.client.guarded(guard)
        controller = program.Operator(identity, slow=slow).controller()
        async with Manager(client, signals=False, leader_election=election) as manager:
            manager.add(controller)
            await manager.start()
            await self.settle()
            yield controller


@contextlib.asynccontextmanager
async def scene(*, installs: bool = True) -> AsyncGenerator[Scene]:
    """Serve, with the kind installed."""
    async with APIServer(port=None, seed=1) as server, server.connect() as client:
        if installs:
            await program.install_crd(client)
        yield Scene(server, client)
