"""Controllers, elections and their helpers: what must be true when they were interrupted."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, Final

import kinform
from kinform import (
    ChannelSource,
    Context,
    Controller,
    EventRecorder,
    Finalizer,
    LeaderElection,
    LeaderElector,
    Manager,
    ObjectName,
    StreamSource,
    TimerSource,
)
from kinform.runtime import Source, apply, apply_status
from kinform.tasks import background
from tests.faults.support_cancelling import Scenario, Scene, Work

__all__ = ["RUNTIME_SCENARIOS"]

LIMIT: Final = 60.0
MAPS: Final = "v1/configmaps"
SECRETS: Final = "v1/secrets"
FINALIZER: Final = Finalizer("example.com/tests")
POD: Final = {
    "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "web", "image": "web:1"}]},
}


class Children:
    """A reconcile that gives each config map a secret, and is never to run twice at once."""

    def __init__(self) -> None:
        self._running: set[ObjectName] = set()

    async def __call__(self, ctx: Context, name: ObjectName) -> None:
        assert name not in self._running, "twice at once"
        self._running.add(name)
        try:
            owner = ctx.lister(MAPS).get(name)
            if owner is None:
                return
            child = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"of-{name.name}"}}
            written = await ctx.apply(child, owner=owner)
            await ctx.wait_for_cache(written)
            await asyncio.sleep(0.2)
        finally:
            self._running.discard(name)


async def ticks() -> AsyncIterator[str]:
    for name in "ab":
        await asyncio.sleep(0.5)
        yield name


def manager_of(here: Scene, reconcile: Children, **options: Any) -> Manager:
    channel = ChannelSource()
    channel.send(ObjectName("default", "c"))
    sources: list[Source] = [
        TimerSource(2, [ObjectName("default", "a")]),
        StreamSource(ticks, lambda name: ObjectName("default", name)),
        channel,
    ]
    made = Manager(here.client, signals=False, grace=2, namespaces="default", **options)
    made.add(Controller("tests", reconcile, for_=MAPS, owns=[SECRETS], watches=sources, workers=2))
    return made


async def all_have_children(here: Scene) -> None:
    secrets = here.client.resource(SECRETS, namespace="default")
    async with asyncio.timeout(LIMIT):
        while len(await secrets.list()) < 3:  # noqa: ASYNC110 - time is virtual
            await asyncio.sleep(0.4)


@contextlib.asynccontextmanager
async def a_manager_that_runs(here: Scene) -> AsyncGenerator[Work]:
    """Another one finishes what this one has begun."""
    reconcile = Children()

    async def stop_soon(manager: Manager) -> None:
        await all_have_children(here)
        await asyncio.sleep(1)
        await manager.stop()

    async def work() -> None:
        manager = manager_of(here, reconcile)
        async with background(stop_soon(manager)):
            await manager.run()

    yield work()
    assert not reconcile._running
    async with background(manager_of(here, reconcile).run()):
        await all_have_children(here)


@contextlib.asynccontextmanager
async def a_manager_as_a_block(here: Scene) -> AsyncGenerator[Work]:
    reconcile = Children()
    election = LeaderElection(lease="tests")

    async def work() -> None:
        async with manager_of(here, reconcile, leader_election=election) as manager:
            await manager.start()
            await manager.wait_warm(LIMIT)
            await all_have_children(here)
            async with background(manager.stop()):
                await manager.wait_stopped()

    yield work()
    assert not reconcile._running
    async with manager_of(here, reconcile, leader_election=election) as manager:
        await manager.start()
        await all_have_children(here)


@contextlib.asynccontextmanager
async def an_election(here: Scene) -> AsyncGenerator[Work]:
    """Never two at once, and the next one waits for no longer than a lease lasts."""
    clock = asyncio.get_running_loop().time
    leading: list[str] = []
    began: list[float] = []

    async def lead(name: str) -> None:
        assert not leading, f"{name} and {leading} at once"
        leading.append(name)
        try:
            began.append(clock())
            await asyncio.sleep(5)
        finally:
            leading.remove(name)

    def elector(name: str) -> LeaderElector:
        return LeaderElector(here.client, LeaderElection(lease="tests", identity=name))

    async def work() -> None:
        await elector("a").run(lambda: lead("a"))
        await elector("a").run(lambda: lead("a"))

    yield work()
    now = clock()
    async with asyncio.timeout(LIMIT):
        await elector("b").run(lambda: lead("b"))
    assert began[-1] - now <= 15 + 2 * 2.2


@contextlib.asynccontextmanager
async def recording(here: Scene) -> AsyncGenerator[Work]:
    """Recorded events are written by the task that drains."""
    recorder = EventRecorder(here.client, "tests")
    a, b = await here.maps.get("a"), await here.maps.get("b")
    for number in range(3):
        recorder.event(a, "Normal", f"Reason{number}", "something happened")

    async def work() -> None:
        async with EventRecorder(here.client, "others") as others:
            others.event(b, "Normal", "Other", "something else happened")
            await others.drain(5)
            await others.stop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1):
                await recorder.run()

    yield work()
    assert await recorder.drain(100) == 0
    events = await here.client.resource("v1/events", namespace="default").list()
    reasons = [one.at("reason") for one in events if one.at("source", "component") == "tests"]
    assert sorted(reasons) == ["Reason0", "Reason1", "Reason2"], reasons


@contextlib.asynccontextmanager
async def helpers(here: Scene) -> AsyncGenerator[Work]:
    """No object is deleted before its cleanup, and all are deleted eventually."""
    cleaned: list[str] = []

    async def clean_up() -> None:
        await asyncio.sleep(0.1)
        cleaned.append("a")

    async def end(name: str) -> None:
        current = await here.maps.get(name)
        assert await FINALIZER.handle(here.maps, current, clean_up)

    async def work() -> None:
        b = await FINALIZER.ensure(here.maps, await here.maps.get("b"))
        await FINALIZER.remove(here.maps, b)
        await FINALIZER.ensure(here.maps, await here.maps.get("a"))
        await here.maps.delete("a")
        await end("a")
        pods = here.client.resource("v1/pods", namespace="default")
        pod = await pods.create(POD)
        await apply_status(here.client, pod, status={"phase": "Running"}, field_manager="tests")
        child = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "child"}}
        owner = await here.maps.get("c")
        await apply(here.client, child, field_manager="tests", owner=owner)

    yield work()
    if "a" in await here.on_server():
        await here.maps.delete("a")
        with contextlib.suppress(kinform.NotFoundError):
            await end("a")
    else:
        assert cleaned
    assert "a" not in await here.on_server()


RUNTIME_SCENARIOS: Final[dict[str, Scenario]] = {
    "a manager that runs": a_manager_that_runs,
    "a manager as a block": a_manager_as_a_block,
    "an election": an_election,
    "recording": recording,
    "helpers": helpers,
}
