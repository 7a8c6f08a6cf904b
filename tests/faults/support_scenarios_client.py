"""Scenarios of the client, each with the conditions after a cancellation."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

import kinform
from kinform import (
    NotFoundError,
    Object,
    TokenBucketLimiter,
    Updated,
    WatchEvent,
    retry_on_conflict,
)
from kinform.cache import Event, RetryWatcher, until, until_with_sync, until_without_retry
from kinform.tasks import background
from tests.faults.support_cancelling import Scenario, Scene, Work

__all__ = ["CLIENT_SCENARIOS"]

WRITES: Final = 8


def body(number: int, name: str = "x") -> dict[str, Any]:
    """Return a config map that says how often it was written."""
    return {"metadata": {"name": name}, "data": {"n": str(number)}}


async def number_of(here: Scene, name: str = "x") -> int:
    """Return what the server's config map says; 0: there is none."""
    try:
        return int((await here.maps.get(name)).at("data", "n"))
    except NotFoundError:
        return 0


@contextlib.asynccontextmanager
async def connecting(here: Scene) -> AsyncGenerator[Work]:
    clients: list[kinform.Client] = []

    async def work() -> None:
        client = here.server.connect()
        clients.append(client)
        async with client:
            await client.version()
            await client.api_resources()
            await client.find("apps/v1/deployments")
            await client.resource("v1/configmaps", namespace="default").get("a")

    yield work()
    for client in clients:
        assert not client.is_open
        await client.aclose()


@contextlib.asynccontextmanager
async def writing(here: Scene) -> AsyncGenerator[Work]:
    """Each write is done or not done, and none that was confirmed is undone."""
    confirmed = 0

    async def write(number: int, work: Work) -> None:
        nonlocal confirmed
        await work
        confirmed = number

    def change(found: dict[str, Any]) -> None:
        found["data"]["n"] = "3"

    async def work() -> None:
        maps = here.maps
        await write(1, maps.create(body(1)))
        await write(2, maps.replace(body(2)))
        await write(3, maps.update("x", change))
        await write(4, maps.patch("x", {"data": {"n": "4"}}))
        await write(5, maps.apply(body(5), field_manager="tests", force=True))
        await write(6, maps.delete("x"))

    yield work()
    states = [0, 1, 2, 3, 4, 5, 0]
    assert await number_of(here) in states[confirmed : confirmed + 2]
    await here.maps.apply(body(9), field_manager="tests", force=True)
    assert await number_of(here) == 9


@contextlib.asynccontextmanager
async def deleting_all(here: Scene) -> AsyncGenerator[Work]:
    async def work() -> None:
        await here.maps.delete_collection()

    yield work()
    left = await here.on_server()
    assert here.was_cut or not left
    await here.maps.delete_collection()
    assert not await here.on_server()


@contextlib.asynccontextmanager
async def reading(here: Scene) -> AsyncGenerator[Work]:
    async def work() -> None:
        assert (await here.maps.get("a")).name == "a"
        assert len(await here.maps.list(page_size=2)) == 3
        async with contextlib.aclosing(here.maps.iterate(page_size=1)) as each:
            assert [one.name async for one in each] == ["a", "b", "c"]

    yield work()
    assert len(await here.on_server()) == 3


@contextlib.asynccontextmanager
async def requesting(here: Scene) -> AsyncGenerator[Work]:
    """A limiter whose waits are cancelled gives the places back."""
    limiter = TokenBucketLimiter(qps=1, burst=2)
    clock = asyncio.get_running_loop().time

    def request() -> kinform.Request:
        return here.client.rest("v1").get().namespace("default").resource("configmaps")

    async def conflicts() -> None:
        await limiter.wait()
        raise kinform.ConflictError(kinform.meta.Status(code=409))

    async def work() -> None:
        await request().do()
        await request().raw()
        assert len(await request().list()) == 3
        assert (await request().name("a").into(Object)).name == "a"
        async with request().params({"watch": "true"}).watch() as events:
            assert (await anext(events)).object.name == "a"
        with contextlib.suppress(kinform.ConflictError):
            await retry_on_conflict(conflicts, steps=4)

    yield work()
    await asyncio.sleep(10)  # taken tokens are back
    began = clock()
    for _ in range(3):
        await limiter.wait()
    assert clock() - began < 1.1


@contextlib.asynccontextmanager
async def reading_lines(here: Scene) -> AsyncGenerator[Work]:
    """A log is any answer, read by lines; the embedded server has none, so it is a list."""

    async def work() -> None:
        request = here.client.rest("v1").get().namespace("default").resource("configmaps")
        lines = list[str]()
        async with kinform.LogStream(request.stream) as log:
            async for batch in log.batches():
                lines += batch
        assert "".join(lines).startswith("{")

    yield work()


# --- watches: what was not read yet can be read, once and in order


async def write_on(here: Scene) -> None:
    for number in range(1, WRITES + 1):
        await asyncio.sleep(0.1 * (number % 3))
        await here.maps.patch("a", {"data": {"n": str(number)}})


Reading = Callable[[Scene, str], AbstractAsyncContextManager[Any]]


@contextlib.asynccontextmanager
async def plain_watch(here: Scene, version: str) -> AsyncGenerator[Any]:
    async with here.maps.watch(resource_version=version) as events:
        yield events


@contextlib.asynccontextmanager
async def retried_watch(here: Scene, version: str) -> AsyncGenerator[Any]:
    async with RetryWatcher(here.maps.list_watch(), version) as events:
        yield events


def interrupted(reading: Reading) -> Scenario:
    """Return a scenario in which a reader is cancelled and another reads on."""

    @contextlib.asynccontextmanager
    async def scenario(here: Scene) -> AsyncGenerator[Work]:
        here.has_others = True
        version = (await here.maps.list()).resource_version
        seen: list[str] = []
        async with reading(here, version) as events, background(write_on(here)):

            async def work() -> None:
                while len(seen) < WRITES:
                    seen.append((await anext(events)).object.at("data", "n"))

            yield work()
            await work()
        assert seen == [str(number) for number in range(1, WRITES + 1)]

    return scenario


@contextlib.asynccontextmanager
async def in_batches(here: Scene) -> AsyncGenerator[Work]:
    """Watches that the cancelled one has opened itself."""

    async def work() -> None:
        async with here.maps.watch() as events:
            async for batch in events.batches():
                if batch:
                    break
        lw = here.maps.list_watch()
        listed = await lw.list()
        async with RetryWatcher(lw, listed.resource_version) as events:
            await here.maps.patch("a", {"data": {"n": "1"}})
            await anext(events)
            await events.aclose()

    yield work()


@contextlib.asynccontextmanager
async def until_met(here: Scene) -> AsyncGenerator[Work]:
    last = str(WRITES)

    def is_last(event: WatchEvent[Object]) -> bool:
        return event.object.name == "a" and bool(event.object.at("data", "n") == last)

    def is_updated(event: Event[Object]) -> bool:
        return isinstance(event, Updated) and bool(event.new.at("data", "n") == last)

    async def work() -> None:
        lw = here.maps.list_watch()
        version = (await here.maps.list()).resource_version
        async with background(write_on(here)):
            await until(lw, version, is_last)
        async with here.maps.watch(resource_version=version) as events:
            await until_without_retry(events, is_last)
        async with background(write_on(here)):
            await until_with_sync(lw, is_updated)

    yield work()


CLIENT_SCENARIOS: Final[dict[str, Scenario]] = {
    "connecting": connecting,
    "writing": writing,
    "deleting all": deleting_all,
    "reading": reading,
    "requesting": requesting,
    "reading lines": reading_lines,
    "a watch": interrupted(plain_watch),
    "a watch that is retried": interrupted(retried_watch),
    "watches of its own": in_batches,
    "until something is met": until_met,
}
