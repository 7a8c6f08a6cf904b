"""`Demo`: runs a demo cluster step by step."""

from __future__ import annotations

import asyncio
import logging
import random
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final, Self, final

from kinform.apiserver.demo import manifests
from kinform.apiserver.demo.chance import Chance
from kinform.apiserver.demo.controllers import Controllers
from kinform.apiserver.demo.pods import Kubelets
from kinform.apiserver.demo.world import DemoWorld
from kinform.errors import UsageError
from kinform.tasks import background

if TYPE_CHECKING:
    from kinform.apiserver.server import APIServer

__all__ = ["PERIOD", "Demo"]

log: Final = logging.getLogger("kinform.apiserver")

PERIOD: Final = 0.5
"""Seconds between two steps. Something visible happens in each."""


@final
class Demo:
    """Keeps a small cluster alive on a server, from entering to leaving.

    It plays scheduler, kubelets and controllers: deployments get replica sets, these get pods,
    pods start, crash and are replaced; also those that clients create, change and delete. By
    chance it scales deployments and rolls out new images; a deployment whose replicas or image a
    client has set is left as it is. The objects stay when the demo ends.

    Args:
        server: A server that runs.
        seed: Decides what happens, together with the server's own seed.

    Example:
        >>> async def main() -> None:
        ...     async with APIServer() as server, Demo(server, seed=1):
        ...         await asyncio.sleep(60)
    """

    def __init__(self, server: APIServer, *, seed: int | None = None) -> None:
        self._server = server
        self._random = random.Random(seed)
        self._stack = AsyncExitStack()
        self._is_started = False

    async def __aenter__(self) -> Self:
        if self._is_started:
            raise UsageError("a Demo can be started once; make another one")
        self._is_started = True
        world = DemoWorld(self._server.application, self._random)
        for obj in manifests.everything():
            if not world.has(obj):
                world.create(obj, manager="kinform-demo")
        await self._stack.enter_async_context(background(_live(world)))
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._stack.aclose()


async def _live(world: DemoWorld) -> None:
    kubelets, controllers, chance = Kubelets(world), Controllers(world), Chance(world)
    step = 0
    while True:
        try:
            before = world.revision
            controllers.step()
            kubelets.step(step)
            chance.step(is_quiet=world.revision == before)
            world.forget_events()
        except Exception:
            # A task boundary: an exception would be lost, and one bad object must not end the demo.
            log.exception("demo cluster step failed")
        step += 1
        await asyncio.sleep(PERIOD)
