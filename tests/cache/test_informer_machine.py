"""Start and stop, add and remove, wait and cancel, from several tasks and in any order (F-R40).

Whatever happens in whichever order: nothing hangs, nothing is left, and nobody gets another error
than those that are documented.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final, TypeAlias

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kinform.cache.processor.events import Event
from kinform.cache.processor.processor import Registration
from kinform.cache.shared_informer import SharedInformer
from kinform.errors import UsageError
from kinform.meta import ObjectName
from kinform.objects.object import Object
from kinform.sansio.queue.delta_fifo import DeltaFIFO
from kinform.sansio.queue.interface import QueueFactory
from kinform.sansio.queue.real_fifo import RealFIFO
from kinform.testing import FakeListWatch, in_virtual_time
from tests.cache.support_informer import REFUSED, thing

pytestmark = pytest.mark.slow

GRACE: Final = 2.0
CALLBACKS: Final = ("quick", "slow", "for ever", "failing", "stopping", "leaving", "adding")

Act: TypeAlias = tuple[str, int]

LIFE: Final = ("start", "enter", "run", "stop", "stop without grace")
HANDLERS: Final = ("add", "add", "remove", "shut down", "events", "index")
WAITS: Final = ("synced", "until", "for", "handler synced")
EVENTS: Final = ("write", "write", "delete", "close", "fail", "hang", "heal")
PAUSES: Final = ("turn", "turn", "sleep", "sleep", "cancel")

acts: Final = st.lists(
    st.tuples(
        st.sampled_from((*LIFE, *HANDLERS, *WAITS, *EVENTS, *PAUSES)),
        st.integers(0, len(CALLBACKS) - 1),
    ),
    max_size=12,
)


class Stage:
    """One informer, and the tasks that do things to it."""

    def __init__(self, queue: QueueFactory) -> None:
        self.source: FakeListWatch[Object] = FakeListWatch()
        self.source.add(thing("a"))
        self.informer: SharedInformer[Object] = SharedInformer(
            self.source, queue=queue, watch_error_handler=lambda error: None
        )
        self.registrations: list[Registration[Object]] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.ended_at: float | None = None
        self.late_calls = 0
        self._indexes = 0

    async def play(self, acts: list[Act]) -> None:
        """Do one thing after the other; what is documented to be refused may be refused."""
        for act in acts:
            with contextlib.suppress(UsageError, TimeoutError):
                await self._do(*act)

    async def _do(self, what: str, number: int) -> None:
        if what in LIFE:
            await self._live(what, number)
        elif what in HANDLERS:
            await self._handle(what, number)
        elif what in WAITS:
            await self._wait(what, number or None)
        elif what == "cancel":
            self.tasks[number % len(self.tasks)].cancel()
        else:
            await self._happen(what, number)

    async def _live(self, what: str, number: int) -> None:
        informer = self.informer
        match what:
            case "start":
                await informer.start()
            case "enter":
                async with informer:
                    await asyncio.sleep(number)
            case "run":
                await informer.run()
            case _:
                await informer.stop(GRACE if what == "stop" else 0)
                self._check_ended()

    async def _handle(self, what: str, number: int) -> None:
        informer, registrations = self.informer, self.registrations
        match what:
            case "add":
                registrations.append(self._add(CALLBACKS[number]))
            case "remove" if registrations:
                informer.remove_event_handler(registrations[number % len(registrations)])
            case "shut down" if registrations:
                await registrations[number % len(registrations)].shut_down()
            case "events":
                async for _ in informer.events():
                    if not number:
                        break
            case "index":
                self._indexes += 1
                informer.add_indexers({f"index-{self._indexes}": lambda obj: obj.name})
            case _:
                pass

    async def _wait(self, what: str, number: int | None) -> None:
        informer, registrations = self.informer, self.registrations
        match what:
            case "synced":
                await informer.wait_synced(number)
            case "until":
                await informer.wait_until(str(number or 1), number)
            case "for":
                await informer.wait_for(lambda cache: len(cache.list()) == number, number)
            case "handler synced" if registrations:
                await registrations[(number or 0) % len(registrations)].wait_synced(number or 5)
            case _:
                pass

    async def _happen(self, what: str, number: int) -> None:
        source, name = self.source, f"o{number}"
        is_there = ObjectName("default", name) in source.entries
        match what:
            case "write":
                (source.modify if is_there else source.add)(thing(name))
            case "delete" if is_there:
                source.delete(name)
            case "close":
                source.close_watches()
            case "fail":
                source.fail_lists(*([REFUSED] * number))
                source.fail_watches(*([REFUSED] * number))
            case "hang":
                source.hang_watches()
            case "heal":
                source.heal()
            case "sleep":
                await asyncio.sleep(number / 2)
            case _:
                for _ in range(number):
                    await asyncio.sleep(0)

    def _add(self, kind: str) -> Registration[Object]:
        own: list[Registration[Object]] = []

        async def callback(event: Event[Object]) -> None:
            self.late_calls += self.ended_at is not None
            match kind:
                case "slow":
                    await asyncio.sleep(1.3)
                case "for ever":
                    await asyncio.get_running_loop().create_future()
                case "failing":
                    raise ValueError("always")
                case "stopping":
                    await self.informer.stop(GRACE)
                case "leaving":
                    own[0].remove()
                case "adding" if len(self.registrations) < 10:
                    with contextlib.suppress(UsageError):
                        self.registrations.append(self._add("quick"))
                case _:
                    pass

        own.append(
            self.informer.add_event_handler(
                on_add=callback, on_update=callback, on_delete=callback, resync_period=1
            )
        )
        return own[0]

    def _check_ended(self) -> None:
        assert self.informer.is_stopped
        assert self.source.open_watches == 0
        if self.ended_at is None:
            self.ended_at = asyncio.get_running_loop().time()


async def play(scripts: list[list[Act]], queue: QueueFactory) -> None:
    stage = Stage(queue)
    loop = asyncio.get_running_loop()
    stage.tasks = [loop.create_task(stage.play(script)) for script in scripts]
    await asyncio.wait(stage.tasks, timeout=60)
    before = loop.time()
    await stage.informer.stop(GRACE)
    assert loop.time() - before <= GRACE + 0.5
    for task in stage.tasks:
        if not task.done():  # what waits without a limit was ended by the stop, or waits for hands
            await asyncio.wait([task], timeout=300)
    assert [task for task in stage.tasks if not task.done()] == []
    failures = [task.exception() for task in stage.tasks if not task.cancelled()]
    assert [failure for failure in failures if failure is not None] == []
    requests = len(stage.source.requests)
    stage.source.heal()
    await asyncio.sleep(100)
    assert len(stage.source.requests) == requests
    assert stage.late_calls == 0


@pytest.mark.parametrize("queue", [RealFIFO, DeltaFIFO])
@given(scripts=st.lists(acts, min_size=1, max_size=4))
@settings(max_examples=150)
@example(scripts=[[("start", 0), ("add", 4), ("events", 1)], [("synced", 0), ("stop", 0)]])
@example(scripts=[[("enter", 3)], [("turn", 2), ("cancel", 0), ("turn", 1), ("cancel", 0)]])
@example(scripts=[[("add", 2), ("run", 0)], [("sleep", 4), ("cancel", 0), ("stop", 0)]])
@in_virtual_time
async def test_any_order_of_calls_ends_well(scripts: list[list[Act]], queue: QueueFactory) -> None:
    await play(scripts, queue)
