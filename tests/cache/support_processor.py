"""A processor that runs for the length of a block, and handlers that keep what they hear."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Coroutine, Iterable
from typing import final

from kinform.cache.processor.events import Added, Deleted, Event, Updated
from kinform.cache.processor.handlers import EventHandler, handler
from kinform.cache.processor.processor import Processor
from kinform.meta import Entry, ObjectName
from kinform.sansio.queue.deltas import Transition
from tests.cache.support_entries import entry_of

__all__ = [
    "all_settled",
    "awaiting",
    "changed",
    "gone",
    "hearing",
    "in_stepping_time",
    "named",
    "new",
    "pods",
    "running",
    "stepping_loop",
    "words",
]


@contextlib.asynccontextmanager
async def running(
    processor: Processor[str], *, grace: float = 0.0
) -> AsyncGenerator[asyncio.Task[None]]:
    """Run ``processor`` beside the block, and stop it when the block is left."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(processor.run())
        await asyncio.sleep(0)
        yield task
        await processor.stop(grace)


async def all_settled() -> None:
    """Wait, in virtual time, until no task can go on without time passing."""
    await asyncio.sleep(1e-6)


def hearing(heard: list[Event[str]], *, resync_period: float | None = None) -> EventHandler[str]:
    """Return a handler that keeps all events in ``heard``."""
    return handler(
        on_add=heard.append,
        on_update=heard.append,
        on_delete=heard.append,
        resync_period=resync_period,
        name="hearing",
    )


def pods(*names: str, version: int = 1) -> list[Entry[str]]:
    """Return an entry for each name, as a store would have it."""
    return [entry_of(name, f"{name}@{version}", version) for name in names]


def new(name: str, version: int = 1, *, initial: bool = False) -> Transition[str]:
    (entry,) = pods(name, version=version)
    return Transition(ObjectName.parse(name), None, entry, initial)


def changed(name: str, version: int = 2) -> Transition[str]:
    (old,), (entry,) = pods(name, version=version - 1), pods(name, version=version)
    return Transition(ObjectName.parse(name), old, entry)


def gone(name: str, version: int = 1, *, unknown: bool = False) -> Transition[str]:
    (entry,) = pods(name, version=version)
    return Transition(ObjectName.parse(name), entry, None, final_state_unknown=unknown)


def words(events: Iterable[Event[str]]) -> list[str]:
    """Return events in short: ``+web@1``, ``web@1>web@2``, ``-web@2``; ``*`` where initial."""
    told: list[str] = []
    for event in events:
        match event:
            case Added(_, obj, initial):
                told.append(f"{'*' if initial else '+'}{obj}")
            case Updated(_, old, now):
                told.append(f"{old}>{now}")
            case Deleted(_, obj, unknown):
                told.append(f"-{obj}{'?' if unknown else ''}")
    return told


@final
class SteppingLoop(asyncio.SelectorEventLoop):
    """A loop whose clock a plain function can move, as if it had taken its time."""

    behind = 0.0

    def time(self) -> float:
        return self.behind

    def take(self, seconds: float) -> None:
        """Let time pass while nobody else runs."""
        self.behind += seconds


def stepping_loop() -> SteppingLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SteppingLoop)
    return loop


def in_stepping_time(main: Coroutine[object, object, None]) -> None:
    with asyncio.Runner(loop_factory=SteppingLoop) as runner:
        runner.run(main)


def named(name: str) -> EventHandler[str]:
    return handler(on_add=lambda event: None, name=name)


def awaiting(seconds: float, done: list[str]) -> EventHandler[str]:
    """Return a handler whose callbacks take ``seconds`` and say how they ended."""

    async def wait(event: Event[str]) -> None:
        done.append(f"{event.key} begun")
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            done.append(f"{event.key} cancelled")
            raise
        done.append(f"{event.key} done")

    return handler(on_add=wait, on_update=wait, on_delete=wait, name="awaiting")
