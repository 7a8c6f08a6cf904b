"""Any order of writing, popping and handling, with a plain dict as the oracle.

A server (a dict) is changed, a queue is told, and a pump fills a cache (another dict) with what it
pops. Whatever happens in between, the cache ends as the server is.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kinform.meta import Entry, ObjectMeta, ObjectName
from kinform.sansio.queue.delta_fifo import DeltaFIFO
from kinform.sansio.queue.deltas import Delta, DeltaType, Progress, ReplacedAll, SyncAll
from kinform.sansio.queue.interface import Batch, Queue, QueueFactory
from kinform.sansio.queue.real_fifo import RealFIFO

KEYS = [ObjectName("", name) for name in "abc"]
SUBSETS = [frozenset(chosen) for n in range(4) for chosen in itertools.combinations(KEYS, n)]
keys = st.sampled_from(KEYS)
some_keys = st.sampled_from(SUBSETS)  # one draw, where a set of draws would be slow to shrink
operations = st.one_of(
    st.tuples(st.just("change"), keys),
    st.tuples(st.just("delete"), keys),
    st.tuples(st.just("relist"), some_keys, some_keys),
    st.sampled_from([("resync",), ("bookmark",)]),
)


def raw(key: ObjectName, version: int) -> Entry[str]:
    return Entry(ObjectMeta(name=key.name, resource_version=str(version)), "raw")


def cooked(original: Entry[str]) -> Entry[str]:
    assert original.object == "raw", "transformed twice"
    return Entry(original.metadata, "cooked")


def version_of(stored: Entry[str] | None) -> int:
    assert stored is not None
    assert stored.object == "cooked", "not transformed"
    return int(stored.metadata.resource_version)


class QueueMachine(RuleBasedStateMachine):
    """A server (a dict), a queue, and a pump that fills a cache (another dict)."""

    factory: ClassVar[QueueFactory]

    def __init__(self) -> None:
        super().__init__()
        self.server: dict[ObjectName, int] = {}  # the version of each object there is
        self.cache: dict[ObjectName, Entry[str]] = {}
        self.version = 0
        self.queue: Queue[str] = self.factory(
            known=self.cache, transform=cooked, on_ready=self.wake, high_water=5
        )
        self.asleep = self.woken = False
        self.told: Counter[ObjectName] = Counter()  # the newest version the cache was told
        self.deletes_due: Counter[ObjectName] = Counter()
        self.deletes_told: Counter[ObjectName] = Counter()
        self.bookmarked: dict[str, Mapping[ObjectName, int]] = {}
        self.first_list: Mapping[ObjectName, int] | None = None
        self.gone_at_first: set[ObjectName] = set()
        self.is_populated = self.was_synced = False
        self.history: list[dict[ObjectName, int]] = []  # what the server's state was, in order

    def wake(self) -> None:
        self.woken = True

    def next_version(self) -> int:
        self.version += 1
        return self.version

    @initialize(warm=some_keys)
    def fill_the_cache(self, warm: frozenset[ObjectName]) -> None:
        """Start from a cache that holds something, as after a warm restart."""
        for key in sorted(warm):
            self.server[key] = self.next_version()
            self.cache[key] = cooked(raw(key, self.version))
            self.told[key] = self.version
        self.history.append(dict(self.server))

    # --- the writer

    @rule(operation=operations)
    def write(self, operation: tuple[object, ...]) -> None:
        name, *arguments = operation
        getattr(self, str(name))(*arguments)

    def change(self, key: ObjectName) -> None:
        write = self.queue.update if key in self.server else self.queue.add
        self.server[key] = self.next_version()
        write(raw(key, self.version))
        self.written(DeltaType.UPDATED)

    def delete(self, key: ObjectName) -> None:
        """Delete one that is there, or one that never was."""
        if self.server.pop(key, None):
            self.deletes_due[key] += 1
        self.queue.delete(raw(key, self.next_version()))
        self.written(DeltaType.DELETED)

    def relist(self, shown: frozenset[ObjectName], changed: frozenset[ObjectName]) -> None:
        """After a gap: some changed, some are gone, some are as they were."""
        gone = self.server.keys() - shown
        self.deletes_due.update(gone)
        kept = {key: self.server[key] for key in shown & self.server.keys() - changed}
        self.server = {key: kept.get(key) or self.next_version() for key in sorted(shown)}
        listed = {key: raw(key, version) for key, version in self.server.items()}
        version = str(self.next_version())
        self.bookmarked[version] = dict(self.server)
        if not self.is_populated:
            self.first_list, self.gone_at_first = dict(self.server), gone
        self.queue.replace(listed, version)
        self.written(DeltaType.REPLACED)

    def resync(self) -> None:
        self.queue.resync()

    def bookmark(self) -> None:
        version = str(self.next_version())
        self.bookmarked[version] = dict(self.server)
        self.queue.bookmark(version)

    def written(self, delta_type: DeltaType) -> None:
        self.is_populated = True
        self.history.append(dict(self.server))

    # --- the pump

    @rule(limit=st.integers(1, 3), meanwhile=st.lists(operations, max_size=2), late=st.booleans())
    def handle(self, limit: int, meanwhile: list[tuple[object, ...]], late: bool) -> None:
        """Handle a batch while the writer is busy, before it is applied or after."""
        synced = self.queue.has_synced
        batch = self.queue.pop_batch(limit)
        self.asleep = batch is None
        if batch is None:
            self.woken = False
            return
        assert batch.in_initial_list == (self.first_list is not None and not synced)
        if isinstance(deltas := batch.content, list):
            self.look_at(deltas, limit)
        steps = [partial(self.apply, batch), *(partial(self.write, one) for one in meanwhile)]
        for step in reversed(steps) if late else steps:
            step()
            self.it_is_synced_neither_early_nor_twice()
        self.queue.done(batch)

    @rule()
    def run_dry(self) -> None:
        """Handle all that waits, then sleep."""
        self.asleep = False
        while not self.asleep:
            self.handle(1000, [], late=False)

    def look_at(self, deltas: list[Delta[str]], limit: int) -> None:
        raise NotImplementedError

    def apply(self, batch: Batch[str]) -> None:
        match batch.content:
            case ReplacedAll(entries):
                self.deletes_told.update(self.cache.keys() - entries.keys())
                self.cache.clear()
                self.cache.update(entries)
                for key, stored in entries.items():
                    self.tell(key, version_of(stored))
            case Progress(version):
                # All that the server had by then is in the cache, or something newer is.
                due = self.bookmarked[version]
                assert all(self.told[key] >= due[key] for key in due)
            case SyncAll():
                pass
            case deltas:
                for delta in deltas:
                    self.apply_one(delta)

    def apply_one(self, delta: Delta[str]) -> None:
        assert delta.entry is not None
        self.tell(delta.key, version_of(delta.entry))
        if delta.type is not DeltaType.DELETED:
            self.cache[delta.key] = delta.entry
        elif self.cache.pop(delta.key, None):
            self.deletes_told[delta.key] += 1
        else:
            self.unknown_delete(delta)

    def tell(self, key: ObjectName, version: int) -> None:
        assert version >= self.told[key], "an object went back in time"
        self.told[key] = version

    def unknown_delete(self, delta: Delta[str]) -> None:
        raise NotImplementedError

    # --- what holds at every moment

    @invariant()
    def check_all(self) -> None:
        self.a_reader_that_sleeps_is_woken()
        self.it_is_synced_neither_early_nor_twice()
        self.what_was_popped_adds_up_to_what_was_written()

    def a_reader_that_sleeps_is_woken(self) -> None:
        assert not self.asleep or self.woken == (not self.queue.is_empty)

    def it_is_synced_neither_early_nor_twice(self) -> None:
        synced = self.queue.has_synced
        assert synced >= self.was_synced
        self.was_synced = synced
        if synced and self.first_list is not None:
            assert all(self.told[key] >= version for key, version in self.first_list.items())
            assert all(self.deletes_told[key] for key in self.gone_at_first)

    def what_was_popped_adds_up_to_what_was_written(self) -> None:
        if not self.queue.is_empty:
            return
        cached = {key: version_of(stored) for key, stored in self.cache.items()}
        assert self.server == cached
        assert self.deletes_due == self.deletes_told
        assert self.queue.has_synced == self.is_populated

    def teardown(self) -> None:
        self.queue.close()
        self.run_dry()
        self.check_all()


class RealFIFOMachine(QueueMachine):
    """Everything, in order; a cache that was the server's state at one moment."""

    factory = RealFIFO

    def __init__(self) -> None:
        super().__init__()
        self.moment = 0  # where in the history the cache stands
        self.due: list[tuple[bool, int]] = []  # each delta: is it a delete, and its version

    def written(self, delta_type: DeltaType) -> None:
        super().written(delta_type)
        if delta_type is not DeltaType.REPLACED:
            self.due.append((delta_type is DeltaType.DELETED, self.version))

    def look_at(self, deltas: list[Delta[str]], limit: int) -> None:
        assert len({delta.key for delta in deltas}) == len(deltas) <= limit
        due, self.due = self.due[: len(deltas)], self.due[len(deltas) :]
        assert due == [(one.type is DeltaType.DELETED, version_of(one.entry)) for one in deltas]

    def unknown_delete(self, delta: Delta[str]) -> None:
        assert not delta.final_state_unknown  # somebody wrote it

    @invariant()
    def check_all(self) -> None:
        super().check_all()
        self.no_relist_is_seen_half()

    def no_relist_is_seen_half(self) -> None:
        cached = {key: version_of(stored) for key, stored in self.cache.items()}
        self.moment = self.history.index(cached, self.moment)


class DeltaFIFOMachine(QueueMachine):
    """All deltas of a key at once; no delete of what is not there."""

    factory = DeltaFIFO

    def look_at(self, deltas: list[Delta[str]], limit: int) -> None:
        popped = [delta.key for delta in deltas]
        blocks = [key for at, key in enumerate(popped) if at == 0 or popped[at - 1] != key]
        assert len(set(blocks)) == len(blocks), "the deltas of a key stand side by side"
        assert len(popped) <= limit or len(blocks) == 1

    def unknown_delete(self, delta: Delta[str]) -> None:
        raise AssertionError(f"a delete was told twice, or of nothing: {delta}")


# A broken queue breaks many promises at once: shrinking one of them is enough.
RealFIFOMachine.TestCase.settings = settings(report_multiple_bugs=False)
DeltaFIFOMachine.TestCase.settings = settings(report_multiple_bugs=False)
TestRealFIFOMachine = pytest.mark.slow(RealFIFOMachine.TestCase)
TestDeltaFIFOMachine = pytest.mark.slow(DeltaFIFOMachine.TestCase)


@pytest.mark.slow
@pytest.mark.parametrize("machine", [RealFIFOMachine, DeltaFIFOMachine])
def test_the_same_holds_however_the_dice_fall(machine: type[QueueMachine]) -> None:
    """Hypothesis finds the small example; plain chance goes twenty times as far in its time."""
    for seed in range(400):
        chance = random.Random(seed)
        play = machine()
        play.fill_the_cache(chance.choice(SUBSETS))
        for _ in range(chance.randrange(40)):
            one, *meanwhile = [roll(chance) for _ in range(chance.randrange(1, 4))]
            match chance.randrange(5):
                case 0:
                    play.run_dry()
                case 1 | 2:
                    play.write(one)
                case _:
                    play.handle(chance.randrange(1, 4), meanwhile, late=chance.random() < 0.5)
            play.check_all()
        play.teardown()


def roll(chance: random.Random) -> tuple[object, ...]:
    """Throw the dice for one of the operations."""
    return chance.choice(
        [
            ("change", chance.choice(KEYS)),
            ("delete", chance.choice(KEYS)),
            ("relist", chance.choice(SUBSETS), chance.choice(SUBSETS)),
            chance.choice([("resync",), ("bookmark",)]),
        ]
    )
