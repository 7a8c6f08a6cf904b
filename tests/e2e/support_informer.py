"""Shared code of the informer tests on a real server: a writer with a log, recording handlers.

The truth is what the server answered to the `Writer`. A cache is correct when it shows exactly
that, a handler when the state built from its events is exactly that.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator
from typing import NamedTuple, TypeAlias, final

from kinform import Added, Deleted, Object, ResourceClient, SharedInformer, Updated
from kinform.cache import Event
from kinform.cache._informer.state_waiters import StateWaiters


class State(NamedTuple):
    """The identity of one state of one object."""

    uid: str
    resource_version: str
    data: object

    @classmethod
    def of(cls, obj: Object) -> State:
        return cls(obj.uid, obj.resource_version, obj.at("data", "n", default=None))


States: TypeAlias = dict[str, State]
"""States by key."""


def shown(informer: SharedInformer[Object]) -> States:
    """Return what the cache holds."""
    held = {str(entry.metadata.key): entry for entry in informer.indexer.entries.list()}
    return {key: State.of(entry.object) for key, entry in held.items()}


@final
class Writer:
    """Creates, updates and deletes objects at random, and logs what the server made of it."""

    def __init__(self, objects: ResourceClient[Object], *, names: int = 30) -> None:
        self._objects = objects
        self._names = [f"n-{number:02}" for number in range(names)]
        self._random = random.Random(5)
        self._waiters = StateWaiters()
        self._keys: dict[str, str] = {}
        self.present: States = {}
        self.writes = 0

    async def write(self, times: int = 1) -> None:
        """Do something to some object, ``times`` times."""
        for _ in range(times):
            await self._write_one(self._random.choice(self._names))
            self.writes += 1
            self._waiters.check()

    @contextlib.asynccontextmanager
    async def writing(self) -> AsyncGenerator[None]:
        """Write all the time while the block runs. Nothing is left half done at its end."""
        is_over = asyncio.Event()

        async def go_on() -> None:
            while not is_over.is_set():
                await self.write()

        task = asyncio.get_running_loop().create_task(go_on())
        try:
            yield
        finally:
            is_over.set()
            await task

    async def wait_written(self, more: int, *, within: float = 60.0) -> None:
        """Wait until so many more writes are done."""
        goal = self.writes + more
        async with asyncio.timeout(within):
            await self._waiters.wait(lambda: self.writes >= goal)

    def go_back_to(self, present: States) -> None:
        """Make an earlier ``present`` the truth again, as a restored backup does."""
        self.present = dict(present)
        self._keys = {key.rpartition("/")[2]: key for key in present}

    async def create(self, name: str) -> Object:
        body = {"metadata": {"name": name}, "data": {"n": str(self.writes)}}
        return self._note(await self._objects.create(body))

    async def update(self, name: str) -> Object:
        patch = {"data": {"n": str(self.writes)}}
        return self._note(await self._objects.patch(name, patch))

    async def delete(self, name: str) -> None:
        await self._objects.delete(name)
        del self.present[self._keys.pop(name)]

    async def _write_one(self, name: str) -> None:
        if name not in self._keys:
            await self.create(name)
            return
        match self._random.randrange(10):
            case 0 | 1 | 2:
                await self.delete(name)
            case 3:  # another object of the same name, before anybody can look
                await self.delete(name)
                await self.create(name)
            case _:
                await self.update(name)

    def _note(self, obj: Object) -> Object:
        self._keys[obj.name] = key = str(obj.key)
        self.present[key] = State.of(obj)
        return obj


@final
class Heard:
    """The notes of one handler: what it believes there is, and what it should not have heard."""

    def __init__(self) -> None:
        self.believed: States = {}
        self.complaints: list[str] = []
        self.events = 0
        self._newest: dict[str, int] = {}
        self._waiters = StateWaiters()

    def begin_again(self) -> None:
        """Accept versions that were delivered before: the server was restored."""
        self._newest.clear()

    def hear(self, event: Event[Object]) -> None:
        match event:
            case Added():
                self.on_add(event)
            case Updated():
                self.on_update(event)
            case Deleted():
                self.on_delete(event)

    def on_add(self, event: Added[Object]) -> None:
        key = str(event.key)
        if key in self.believed:
            self.complaints.append(f"{key} was added, and had been before")
        self._believe(key, event.obj)

    def on_update(self, event: Updated[Object]) -> None:
        key = str(event.key)
        before = self.believed.get(key)
        if before is None or before != State.of(event.old):
            self.complaints.append(f"{key} was updated from a state that was never delivered")
        elif before.uid != event.new.uid:
            self.complaints.append(f"{key} was updated to another object")
        self._believe(key, event.new)

    def on_delete(self, event: Deleted[Object]) -> None:
        key = str(event.key)
        gone = self.believed.pop(key, None)
        if gone is None or gone.uid != event.obj.uid:
            self.complaints.append(f"{key} was deleted, and was not there")
        self._heard()

    def _believe(self, key: str, obj: Object) -> None:
        state, newest = State.of(obj), self._newest.get(key, 0)
        if int(state.resource_version) <= newest:
            version = state.resource_version
            self.complaints.append(f"{key} in {version} was delivered after {newest}")
        self._newest[key] = int(state.resource_version)
        self.believed[key] = state
        self._heard()

    def _heard(self) -> None:
        self.events += 1
        self._waiters.check()

    async def wait_believes(self, states: States, within: float = 30.0) -> None:
        """Wait until it believes exactly this."""
        async with asyncio.timeout(within):
            await self._waiters.wait(lambda: self.believed == states)

    def listen(self, informer: SharedInformer[Object]) -> None:
        """Add itself as plain functions."""
        informer.add_event_handler(
            on_add=self.on_add, on_update=self.on_update, on_delete=self.on_delete
        )

    def listen_slowly(self, informer: SharedInformer[Object]) -> None:
        """Add itself as async functions that wait."""

        async def hear(event: Event[Object]) -> None:
            await asyncio.sleep(0)
            self.hear(event)

        informer.add_event_handler(on_add=hear, on_update=hear, on_delete=hear)
