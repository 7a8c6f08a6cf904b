"""Writers that never rest: they create, change, relabel, delete and create anew."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator
from typing import Final, final

from kinform import Client, KinformError, Object, ResourceClient
from tools.soak.messages import Views
from tools.soak.subject import KIND, SELECTED, state_of

__all__ = ["Churn"]

_NAMES: Final = 200
_PAUSE: Final = 0.08
_TIMEOUT: Final = 10.0
_LABEL, _, _CHOSEN = SELECTED.partition("=")


def _name(number: int) -> str:
    return f"soak-{number:03}"


@final
class Churn:
    """Some writers on one client, who can be made to pause."""

    def __init__(self, client: Client, namespace: str, rng: random.Random) -> None:
        self._maps: ResourceClient[Object] = client.resource(KIND, namespace=namespace)
        self._random = rng
        self._may_write = asyncio.Event()
        self._idle = asyncio.Condition()
        self._writing = 0
        self.writes = 0
        self.refused = 0

    @contextlib.asynccontextmanager
    async def pausing(self) -> AsyncGenerator[None]:
        """Pause all writers during the block; it begins when running writes have ended."""
        self._may_write.clear()
        async with self._idle:
            await self._idle.wait_for(lambda: not self._writing)
        try:
            yield
        finally:
            self._may_write.set()

    async def fill(self) -> None:
        """Create every object, so that the number of them does not grow any more."""
        for number in range(_NAMES):
            await self._maps.create(self._body(_name(number)))

    async def run(self) -> None:
        """Write until cancelled."""
        self._may_write.set()
        while True:
            await self._may_write.wait()
            self._writing += 1
            try:
                async with asyncio.timeout(_TIMEOUT):
                    await self._write(_name(self._random.randrange(_NAMES)))
                self.writes += 1
            except (KinformError, TimeoutError):
                self.refused += 1  # gone, there already, or the server is in trouble
            finally:
                self._writing -= 1
                async with self._idle:
                    self._idle.notify_all()
            await asyncio.sleep(self._random.uniform(0, 2 * _PAUSE))

    async def _write(self, name: str) -> None:
        match self._random.randrange(10):
            case 0:
                await self._maps.delete(name)
            case 1:  # another object of the same name, before anybody can look
                await self._maps.delete(name)
                await self._maps.create(self._body(name))
            case 2 | 3:
                await self._maps.create(self._body(name))
            case 4 | 5:
                labels = {_LABEL: self._random.choice([_CHOSEN, "left", None])}
                await self._maps.patch(name, {"metadata": {"labels": labels}})
            case _:
                await self._maps.patch(name, {"data": {"n": str(self.writes)}})

    def _body(self, name: str) -> dict[str, object]:
        size = self._random.choice([10, 200, 3000])
        return {
            "metadata": {"name": name, "labels": {_LABEL: self._random.choice([_CHOSEN, "left"])}},
            "data": {"n": str(self.writes), "filler": "x" * size},
        }

    async def truth(self) -> Views:
        """Return the objects on the server, by the name of each view that should show them."""
        found = list(await self._maps.list())
        whole = {one.name: state_of(one) for one in found}
        chosen = {one.name: state_of(one) for one in found if one.labels.get(_LABEL) == _CHOSEN}
        return {
            "cache": whole,
            "handler": whole,
            "slow handler": whole,
            "reconciled": whole,
            "chosen cache": chosen,
            "chosen handler": chosen,
        }
