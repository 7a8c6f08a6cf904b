"""Four threads read the cache while its informer applies a long history: no half relist is seen.

The informer's loop runs in virtual time, so that back-off costs nothing; the threads that read know
nothing of it. Each object says to which generation it belongs. A relist replaces one generation
by the next, under other names; changes in between leave the generation as it is.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest

from kinform.cache.shared_informer import SharedInformer
from kinform.cache.store.thread_safe_store import Replacing, ThreadSafeStore
from kinform.meta import ObjectName
from kinform.testing import FakeListWatch
from kinform.testing.virtual_time import run
from tests.cache.support_entries import entry_of

if TYPE_CHECKING:
    from _typeshed import TraceFunction

pytestmark = pytest.mark.slow

COUNT: Final = 24
GROUPS: Final = 4
GENERATIONS: Final = 40
ROUNDS: Final = 50
"""How often every reader looks at least."""


class Thing(NamedTuple):
    generation: int
    group: str
    """What it is indexed by; no two generations share one."""
    step: int


@pytest.fixture(autouse=True)
def impatient_threads() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


class Source:
    """A source whose generations follow each other."""

    def __init__(self) -> None:
        self.lw: FakeListWatch[Thing] = FakeListWatch(Thing)
        self.generation = 0
        self.renew()

    def renew(self) -> None:
        """Put the next generation in the place of the one that is there, unseen by watches."""
        for key in self.lw.entries:
            self.lw.delete(key, drop=True)
        self.generation += 1
        for i in range(COUNT):
            self.lw.add(self._entry(i, 0), drop=True)
        self.lw.advance()
        self.lw.compact()
        self.lw.close_watches()

    def change(self, step: int) -> None:
        """Change every object, for everybody to see."""
        for i in range(COUNT):
            self.lw.modify(self._entry(i, step))

    def _entry(self, i: int, step: int):
        thing = Thing(self.generation, f"{self.generation}-{i % GROUPS}", step)
        return entry_of(f"default/{self.generation}-{i}", thing)


class Checks:
    """What must hold of every answer, whenever it is given."""

    def __init__(self, informer: SharedInformer[Thing]) -> None:
        self._informer = informer
        self._lister = informer.lister
        self._first_version = informer.indexer.resource_version
        self.generations_seen: set[int] = set()
        self._steps: dict[ObjectName, tuple[int, int]] = {}

    def whole_list(self) -> None:
        found = self._lister.list()
        assert len(found) == COUNT
        (generation,) = {thing.generation for thing in found}
        assert not self.generations_seen or generation >= max(self.generations_seen)
        self.generations_seen.add(generation)

    def whole_namespace(self) -> None:
        found = self._lister.namespace("default").list()
        assert len(found) == COUNT
        assert len({thing.generation for thing in found}) == 1

    def whole_groups(self) -> None:
        indexer = self._informer.indexer
        values = indexer.list_index_values("group")
        assert len(values) == GROUPS
        assert len({value.partition("-")[0] for value in values}) == 1
        for value in values:
            found = indexer.by_index("group", value)
            assert len(found) in {0, COUNT // GROUPS}
            assert {thing.group for thing in found} <= {value}

    def one_by_one(self) -> None:
        for key in self._informer.indexer.list_keys():
            thing = self._lister.get(key)
            if thing is None:
                continue  # the next generation is there
            assert key.name.startswith(f"{thing.generation}-")
            now = (thing.generation, thing.step)
            assert now >= self._steps.get(key, now)
            self._steps[key] = now

    def one_generation(self) -> None:
        """Of several answers, which only at one and the same moment must agree."""
        (generation,) = {thing.generation for thing in self._lister.list()}
        groups = {
            value.partition("-")[0] for value in self._informer.indexer.list_index_values("group")
        }
        assert groups == {str(generation)}
        is_first = self._informer.indexer.resource_version == self._first_version
        assert is_first == (generation == 1)

    def all(self) -> list[Callable[[], None]]:
        return [self.whole_list, self.whole_namespace, self.whole_groups, self.one_by_one]


class Readers:
    """A thread for each check, which repeats it until it is told to stop."""

    def __init__(self, checks: list[Callable[[], None]]) -> None:
        self._checks = checks
        self._stop = threading.Event()
        self.rounds = [0] * len(checks)
        self.has_failed = False

    def repeat(self, i: int) -> None:
        try:
            while not self._stop.is_set():
                self._checks[i]()
                self.rounds[i] += 1
        except BaseException:
            self.has_failed = True
            raise

    def stop(self) -> None:
        self._stop.set()


def test_no_reader_sees_a_relist_half_applied() -> None:
    source = Source()

    async def main() -> None:
        informer = SharedInformer(source.lw, indexers={"group": lambda thing: thing.group})
        checks = Checks(informer)
        readers = Readers(checks.all())
        async with informer:
            await informer.wait_synced(5)
            with ThreadPoolExecutor(len(readers.rounds)) as pool:
                running = [pool.submit(readers.repeat, i) for i in range(len(readers.rounds))]
                try:
                    await history(readers)
                finally:
                    readers.stop()
                for future in running:
                    future.result(30)
        assert len(checks.generations_seen) > 2
        assert {thing.generation for thing in informer.lister.list()} == {source.generation}
        assert {thing.step for thing in informer.lister.list()} == {3}

    async def history(readers: Readers) -> None:
        while not readers.has_failed:
            source.renew()
            await asyncio.sleep(100)
            for step in (1, 2, 3):
                source.change(step)
                await asyncio.sleep(1)
            if source.generation > GENERATIONS and min(readers.rounds) >= ROUNDS:
                return

    run(main(), max_turns=10_000_000)


def test_at_every_step_of_a_relist_the_old_or_the_new_is_seen() -> None:
    """No luck needed: it is looked at between any two instructions."""
    source = Source()
    problems: list[str] = []
    looks = 0
    taken = (ThreadSafeStore.replace, ThreadSafeStore.publish, Replacing.advance)
    steps = {step.__code__ for step in taken}

    async def main() -> None:
        informer = SharedInformer(source.lw, indexers={"group": lambda thing: thing.group})

        def look(frame: FrameType, event: str, _: object) -> TraceFunction | None:
            nonlocal looks
            if frame.f_code not in steps:
                return None
            frame.f_trace_opcodes = True
            looks += 1
            for check in (*checks.all()[:3], checks.one_generation):
                try:
                    check()
                except AssertionError as exc:
                    problems.append(f"{check.__name__} in line {frame.f_lineno}: {exc}")
            return look

        async with informer:
            await informer.wait_synced(5)
            checks = Checks(informer)
            source.renew()
            before = sys.gettrace()
            sys.settrace(look)
            try:
                await asyncio.sleep(100)
            finally:
                sys.settrace(before)
            assert {thing.generation for thing in informer.lister.list()} == {2}
        assert checks.generations_seen == {1, 2}

    run(main())
    assert looks > 100
    assert problems == []
