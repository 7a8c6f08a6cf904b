"""A program that is cancelled at each step of what it does on real sockets, and then ends.

Prints how many steps each of its parts had, for each moment in a step.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import logging
import threading
from collections.abc import Awaitable, Callable
from typing import Final

import kinform
from kinform import (
    Client,
    Context,
    Controller,
    EventRecorder,
    LeaderElection,
    Manager,
    Object,
    ObjectName,
)
from kinform.testing import APIServerThread
from tests.faults.support_cancelling import Cut, Moment, quiet

LIMIT: Final = 20.0
NUMBERS: Final = itertools.count()


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


async def leading(client: Client) -> None:
    """A manager that is asked for its health, and whose leader reconciles."""
    has_reconciled = asyncio.Event()

    async def reconcile(_: Context, name: ObjectName) -> None:
        await maps(client).get(name.name)
        has_reconciled.set()

    # A lease of its own: no run has to wait for a lease that was not released.
    election = LeaderElection(lease=f"tests-{next(NUMBERS)}")
    manager = Manager(
        client, namespaces="default", signals=False, grace=1, health=0, leader_election=election
    )
    manager.add(Controller("tests", reconcile, for_="v1/configmaps"))
    async with manager, asyncio.timeout(LIMIT):
        await manager.start()
        await has_reconciled.wait()


async def recording(client: Client) -> None:
    found = await maps(client).get("a")
    async with EventRecorder(client, "tests") as recorder:
        recorder.event(found, "Normal", "Happened", "something happened")
        assert await recorder.drain(LIMIT) == 0


async def cut_at(
    cut: Cut, connect: Callable[[], Client], work: Callable[[Client], Awaitable[None]]
) -> bool:
    """Cancel it where ``cut`` says; tell whether it has so many steps."""
    loop = asyncio.get_running_loop()

    async def main() -> None:
        async with connect() as client:
            await work(client)

    loop.set_task_factory(cut.create_task)
    cut.target = task = loop.create_task(main())
    await asyncio.wait([task], timeout=LIMIT)
    assert task.done(), f"it hangs: {task!r}"
    if cut.has_cut:
        assert task.cancelled(), f"it swallowed its cancellation: {task!r}"
    else:
        task.result()
    current = {task for task in [asyncio.current_task()] if task}
    await quiet(current, within=cut.aftermath)
    return cut.has_cut


def main() -> None:
    kinform_log = logging.getLogger("kinform")
    with APIServerThread() as server:

        async def prepare() -> None:
            async with server.connect() as client:
                await maps(client).create({"metadata": {"name": "a"}})

        asyncio.run(prepare())
        for work in (reading, writing, watching, informing, leading, recording):
            for moment in Moment:
                # After a second cancellation it does not wait: others find the client closed.
                kinform_log.setLevel("ERROR" if moment is Moment.TWICE else "NOTSET")
                count = 1
                while asyncio.run(cut_at(Cut(count, moment), server.connect, work)):
                    count += 1
                print(count)  # noqa: T201 - for the parent process
    gc.collect()
    assert threading.active_count() == 1, threading.enumerate()


if __name__ == "__main__":
    main()
