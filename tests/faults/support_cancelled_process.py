"""A program that is cancelled at each step of what it does on real sockets, and then ends.

Prints how many steps each of its parts had.
"""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable
from typing import Final

import kinform
from kinform import Client, Object
from kinform.testing import APIServerThread
from tests.faults.support_cancelling import Cut, Moment, quiet

LIMIT: Final = 20.0


def maps(client: Client) -> kinform.ResourceClient[Object]:
    return client.resource("v1/configmaps", namespace="default")


async def reading(client: Client) -> None:
    await maps(client).list(page_size=1)
    await maps(client).get("a")


async def writing(client: Client) -> None:
    await maps(client).patch("a", {"data": {"n": "1"}})
    await maps(client).apply(
        {"metadata": {"name": "b"}, "data": {"n": "2"}}, field_manager="tests", force=True
    )


async def watching(client: Client) -> None:
    async with maps(client).watch() as events:
        await anext(events)


async def informing(client: Client) -> None:
    async with maps(client).informer() as informer:
        await informer.wait_synced(LIMIT)
        written = await maps(client).patch("a", {"data": {"n": "3"}})
        await informer.wait_until(written.resource_version, LIMIT)


async def cut_at(
    count: int, connect: Callable[[], Client], work: Callable[[Client], Awaitable[None]]
) -> bool:
    """Cancel it at its ``count``-th step; tell whether it has so many."""
    cut, loop = Cut(count, Moment.ANY_STEP), asyncio.get_running_loop()

    async def main() -> None:
        async with connect() as client:
            await work(client)

    loop.set_task_factory(cut.create_task)
    cut.target = task = loop.create_task(main())
    await asyncio.wait([task], timeout=LIMIT)
    assert task.done(), f"it hangs: {task!r}"
    if not cut.has_cut:
        task.result()
    await quiet({current for current in [asyncio.current_task()] if current})
    return cut.has_cut


def main() -> None:
    with APIServerThread() as server:

        async def prepare() -> None:
            async with server.connect() as client:
                await maps(client).create({"metadata": {"name": "a"}})

        asyncio.run(prepare())
        for work in (reading, writing, watching, informing):
            count = 1
            while asyncio.run(cut_at(count, server.connect, work)):
                count += 1
            print(count)  # noqa: T201 - for whoever has started it
    gc.collect()
    assert threading.active_count() == 1, threading.enumerate()


if __name__ == "__main__":
    main()
