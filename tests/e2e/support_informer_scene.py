"""An informer under observation: what it shows, what it tells, how often it tries."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Final, NamedTuple, Required, TypedDict, Unpack, final

from kinform import Client, KinformError, Object, ReflectorOptions, ResourceVersionRegressed
from kinform.cache import RealFIFO
from kinform.cache._informer.state_waiters import StateWaiters
from kinform.sansio.queue.interface import QueueFactory
from tests.e2e.support_informer import Heard, States, Writer, shown

MOST_ATTEMPTS: Final = 8
"""Lists, and watches, that an informer may begin in the first minute of a failure."""


def patience(outage: float, *, waits: int = 1) -> float:
    """Return after how long, at the latest, an informer is back after an ``outage``.

    Waits are d * (1 + rand) with d doubling from 0.8 s to 30 s. Those that fell into the outage
    were no longer than it, so the one under way at its end is at most ``2 * (outage + 0.8)``;
    each further one, before a list, is at most twice that. Ten seconds are for the requests.
    """
    longest = 2 * (outage + 0.8)
    return 10 + sum(min(60.0, longest * 2**n) for n in range(waits))


class Attempts(NamedTuple):
    """The number of lists, probes included, and of watches that an informer has started."""

    lists: int
    watches: int

    def since(self, before: Attempts) -> Attempts:
        return Attempts(self.lists - before.lists, self.watches - before.watches)


class SceneOptions(TypedDict, total=False):
    """The arguments of the informer."""

    namespace: Required[str]
    resource: str
    options: ReflectorOptions | None
    queue: QueueFactory
    transform: Callable[[Object], Object]


@final
class Scene:
    """An informer, two recording handlers, and all errors that it reported."""

    def __init__(self, client: Client, writer: Writer, **options: Unpack[SceneOptions]) -> None:
        self.writer = writer
        self.errors: list[tuple[float, KinformError]] = []
        self.heard = (Heard(), Heard())
        self._waiters = StateWaiters()
        self.informer = client.informer(
            options.get("resource", "v1/configmaps"),
            namespace=options["namespace"],
            options=options.get("options"),
            queue=options.get("queue", RealFIFO),
            transform=options.get("transform"),
            watch_error_handler=self._failed,
        )
        self.heard[0].listen(self.informer)
        self.heard[1].listen_slowly(self.informer)

    def _failed(self, error: KinformError) -> None:
        self.errors.append((asyncio.get_running_loop().time(), error))
        if isinstance(error, ResourceVersionRegressed):
            for heard in self.heard:
                heard.begin_again()
        self._waiters.check()

    @property
    def attempts(self) -> Attempts:
        done = self.informer.statistics().reflector
        return Attempts(done.lists + done.probes, done.watches)

    async def wait_reported(
        self, kind: type[KinformError], within: float, *, since: float = 0.0
    ) -> float:
        """Wait until such an error was reported; return the time of the first one."""

        def reported() -> list[float]:
            errors = [when for when, error in self.errors if isinstance(error, kind)]
            return [when for when in errors if when >= since]

        async with asyncio.timeout(within):
            return (await self._waiters.wait(reported))[0]

    async def catch_up(self, within: float) -> None:
        """Wait until cache and handlers are right, and look at how they got there."""
        expected = dict(self.writer.present)
        try:
            await self.informer.wait_for(lambda _: shown(self.informer) == expected, within)
        except TimeoutError as exc:
            exc.add_note(_difference(shown(self.informer), expected))
            raise
        for heard in self.heard:
            try:
                await heard.wait_believes(expected)
            except TimeoutError as exc:
                exc.add_note(_difference(heard.believed, expected))
                raise
            assert not heard.complaints, heard.complaints


def _difference(seen: States, expected: States) -> str:
    wrong = {key for key in seen.keys() | expected if seen.get(key) != expected.get(key)}
    lines = [f"{key}: {seen.get(key)} instead of {expected.get(key)}" for key in sorted(wrong)]
    return "\n".join(lines)


@contextlib.asynccontextmanager
async def scene(
    client: Client, writer: Writer, **options: Unpack[SceneOptions]
) -> AsyncGenerator[Scene]:
    """Run an informer of what ``writer`` writes; it has synced, and shows a few writes already."""
    await writer.write(20)
    made = Scene(client, writer, **options)
    async with made.informer:
        await made.informer.wait_synced(30)
        await writer.write(5)
        await made.catch_up(30)
        yield made
