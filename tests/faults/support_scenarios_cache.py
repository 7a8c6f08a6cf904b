"""Scenarios of caches and queues, each with the conditions after a cancellation."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Final

import kinform
from kinform import Added, Deleted, Object, SharedInformer, SharedInformerFactory, Updated
from kinform.cache import (
    Controller,
    Event,
    IndexerInformer,
    ListerWatcher,
    Processor,
    RealFIFO,
    Reflector,
    Store,
    handler,
)
from kinform.tasks import background
from kinform.workqueue import WorkQueue
from tests.faults.support_cancelling import Scenario, Scene, Work

__all__ = ["CACHE_SCENARIOS"]

LIMIT: Final = 60.0


def shown(informer: SharedInformer[Object]) -> dict[str, str]:
    return {one.name: one.resource_version for one in informer.lister.list()}


class Believing:
    """A handler that builds its state from events."""

    def __init__(self) -> None:
        self.believed: dict[str, str] = {}
        self.registration: kinform.Registration[Object] | None = None

    def listen(self, informer: SharedInformer[Object]) -> None:
        self.registration = informer.add_event_handler(
            on_add=self._added, on_update=self._updated, on_delete=self._deleted
        )

    async def _added(self, event: Added[Object]) -> None:
        assert event.obj.name not in self.believed
        await asyncio.sleep(0.01)
        self.believed[event.obj.name] = event.obj.resource_version

    async def _updated(self, event: Updated[Object]) -> None:
        assert self.believed[event.old.name] == event.old.resource_version
        await asyncio.sleep(0)
        self.believed[event.new.name] = event.new.resource_version

    def _deleted(self, event: Deleted[Object]) -> None:
        del self.believed[event.obj.name]


async def write_some(here: Scene) -> None:
    await here.maps.patch("a", {"data": {"n": "1"}})
    await asyncio.sleep(0.5)
    await here.maps.delete("b")
    await here.maps.create({"metadata": {"name": "b"}})
    await asyncio.sleep(0.5)
    await here.maps.create({"metadata": {"name": "d"}})


async def is_right(here: Scene, informer: SharedInformer[Object]) -> None:
    """Wait until the cache equals the server."""
    there = await here.on_server()
    await informer.wait_for(lambda _: shown(informer) == there, LIMIT)


@contextlib.asynccontextmanager
async def an_informer_of_its_own(here: Scene) -> AsyncGenerator[Work]:
    """It ends with its owner, however far it has come; another one finds all there is."""
    made: list[SharedInformer[Object]] = []

    async def work() -> None:
        informer = here.maps.informer()
        made.append(informer)
        believing = Believing()
        believing.listen(informer)
        assert believing.registration is not None
        async with informer:
            await informer.wait_synced(LIMIT)
            await write_some(here)
            await is_right(here, informer)
            await believing.registration.wait_synced(LIMIT)
            async with informer.events() as events:
                await anext(events)
            await believing.registration.shut_down()

    yield work()
    assert all(not informer.is_started or informer.is_stopped for informer in made)
    async with here.maps.informer() as informer:
        await informer.wait_synced(LIMIT)
        await is_right(here, informer)


@contextlib.asynccontextmanager
async def started_and_stopped(here: Scene) -> AsyncGenerator[Work]:
    """The stopping task is cancelled: the informer stops anyway."""
    informer, ran = here.maps.informer(), here.maps.informer()

    async def stop_soon() -> None:
        await ran.wait_synced(LIMIT)
        await asyncio.sleep(1)
        await ran.stop()

    async def work() -> None:
        await informer.start()
        try:
            await informer.wait_synced(LIMIT)
        finally:
            await informer.stop(1)
        async with asyncio.TaskGroup() as group:
            group.create_task(ran.run())
            group.create_task(stop_soon())
        await informer.wait_stopped()

    yield work()
    assert not informer.is_started or informer.is_stopped
    assert not ran.is_started or ran.is_stopped


@contextlib.asynccontextmanager
async def waiting_for_a_cache(here: Scene) -> AsyncGenerator[Work]:
    """The informer belongs to another task: it continues, and its handlers miss nothing."""
    here.has_others = True
    informer, believing = here.maps.informer(), Believing()
    believing.listen(informer)
    seen: dict[str, str] = {}
    async with informer, informer.events() as events, background(write_some(here)):

        async def work() -> None:
            await informer.wait_synced(LIMIT)
            await informer.wait_for(lambda lister: lister.get("default/d"), LIMIT)
            d = await here.maps.get("d")
            await informer.wait_until(d.resource_version, LIMIT)
            assert (await informer.verify()).is_equal
            await kinform.wait_for_cache_sync(informer, timeout=LIMIT)
            while seen != shown(informer):
                note(await anext(events))

        def note(event: Event[Object]) -> None:
            match event:
                case Added(obj=obj) | Updated(new=obj):
                    seen[obj.name] = obj.resource_version
                case Deleted(obj=obj):
                    del seen[obj.name]

        yield work()
        await work()
        await is_right(here, informer)
        await asyncio.sleep(1)
        assert believing.believed == shown(informer) == seen


@contextlib.asynccontextmanager
async def a_factory(here: Scene) -> AsyncGenerator[Work]:
    made: list[SharedInformerFactory] = []

    async def work() -> None:
        factory = SharedInformerFactory(here.client)
        made.append(factory)
        maps = factory.informer("v1/configmaps")
        secrets = factory.informers("v1/secrets")
        async with factory:
            await factory.wait_for_cache_sync(LIMIT)
            await secrets.wait_synced(LIMIT)
            await factory.remove(maps)
            factory.informer("v1/configmaps")
            await factory.start()
            await factory.wait_for_cache_sync(LIMIT)
            await factory.shut_down()

    yield work()
    for factory in made:
        assert all(not each.is_started or each.is_stopped for each in factory.all_informers)


@contextlib.asynccontextmanager
async def parts(here: Scene) -> AsyncGenerator[Work]:
    """A reflector, and what is built of one, run in the task that is cancelled."""

    async def for_a_while(work: Work, has_synced: Callable[[], bool]) -> None:
        async with background(work):
            while not has_synced():  # noqa: ASYNC110 - time is virtual
                await asyncio.sleep(0.1)
            await here.maps.patch("a", {"data": {"n": "7"}})
            await asyncio.sleep(1)

    async def reflect(lw: ListerWatcher[Object], run: str) -> None:
        store = Store[Object]()
        reflector = Reflector(lw, store)
        await for_a_while(getattr(reflector, run)(), lambda: bool(store.list()))

    async def work() -> None:
        lw = here.maps.list_watch()
        for run in ("run", "list_and_watch"):
            await reflect(lw, run)
        controller = Controller(lw, process=lambda batch: None, queue=RealFIFO)
        await for_a_while(controller.run(), lambda: controller.has_synced)
        informer = IndexerInformer(lw, handler(on_add=lambda event: None))
        await for_a_while(informer.run(), lambda: informer.has_synced)
        processor: Processor[Object] = Processor(name="maps")
        async with background(processor.run()):
            await asyncio.sleep(0)
            await processor.stop(1)

    yield work()


@contextlib.asynccontextmanager
async def running_a_reflector(here: Scene) -> AsyncGenerator[Work]:
    """It may be run again, and goes on from what it has."""
    store = Store[Object]()
    reflector = Reflector(here.maps.list_watch(), store)

    async def work() -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(20):
                await reflector.run()

    yield work()
    async with background(reflector.run()):
        await write_some(here)
        await asyncio.sleep(5)
    found = {entry.metadata.name: entry.metadata.resource_version for entry in store.list()}
    assert found == await here.on_server()


# --- work queues


@contextlib.asynccontextmanager
async def taking_keys(here: Scene) -> AsyncGenerator[Work]:
    """No key is lost, and none is worked on twice at once, if one of two workers is cancelled."""
    here.has_others = True
    queue: WorkQueue[int] = WorkQueue()
    finished: list[int] = []
    running: set[int] = set()

    async def take() -> None:
        async with queue.processing() as key:
            assert key not in running
            running.add(key)
            try:
                await asyncio.sleep(0.1)
                finished.append(key)
            finally:
                running.discard(key)
                if key not in finished:
                    queue.add(key)

    async def worker(count: int) -> None:
        for _ in range(count):
            await take()

    async def feed() -> None:
        for key in range(12):
            queue.add(key) if key % 2 else queue.add_after(key, 0.2)
            await asyncio.sleep(0.03)

    async with background(feed()), background(worker(6)):

        async def work() -> None:
            key = await queue.get()
            try:
                await asyncio.sleep(0)
            finally:
                queue.done(key)
                queue.add(key)
            await worker(4)

        yield work()
        async with asyncio.timeout(LIMIT):
            while len(set(finished)) < 12:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(1):
                        await take()
    assert sorted(set(finished)) == list(range(12))


@contextlib.asynccontextmanager
async def draining(here: Scene) -> AsyncGenerator[Work]:
    here.has_others = True
    queue: WorkQueue[str] = WorkQueue()
    finished: list[str] = []

    async def worker() -> None:
        with contextlib.suppress(kinform.QueueShutDown):
            while True:
                async with queue.processing() as key:
                    await asyncio.sleep(0.5)
                    finished.append(key)

    for key in "abcd":
        queue.add(key)
    async with background(worker()) as one, background(worker()) as other:

        async def work() -> None:
            await asyncio.sleep(0.1)
            drained = await queue.shut_down_with_drain(LIMIT)
            assert not drained.unfinished

        yield work()
        queue.shut_down()
        async with asyncio.timeout(LIMIT):
            await asyncio.wait([one, other])
    assert sorted(finished) == list("abcd"), "what waited can still be taken"


CACHE_SCENARIOS: Final[dict[str, Scenario]] = {
    "an informer of its own": an_informer_of_its_own,
    "starting and stopping": started_and_stopped,
    "waiting for a cache": waiting_for_a_cache,
    "a factory": a_factory,
    "parts": parts,
    "running a reflector": running_a_reflector,
    "taking keys": taking_keys,
    "draining": draining,
}
