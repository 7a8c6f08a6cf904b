"""One writer, readers on any thread: nobody sees a write half done.

The switch interval is lowered so far that threads change places between almost any two
bytecodes. Objects tell by themselves which write they belong to, so that every single answer can
be checked without knowing when it was given.
"""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest

from kinform.cache.lister import Lister
from kinform.cache.store.indexes import NAMESPACE_INDEX, UnknownIndexError
from kinform.cache.store.store import Indexer
from kinform.meta import Entry, ObjectMeta, ObjectName
from kinform.sansio.queue.deltas import Delta, DeltaType
from tests.cache.support_entries import entry_of, keyed

READERS = 2
"""Threads for each check."""
WRITES, ROUNDS = 200, 50
"""How many writes there are at least, and how often every reader looks while they happen."""
COUNT, GROUPS = 24, 4
"""How many objects there are at any time, and in how many groups of equal size."""


class Thing(NamedTuple):
    """What the stores hold here."""

    write: int
    """Which write put it there; the version is the same number."""
    group: str
    """What it is indexed by; the write is part of it, so that no two writes share a value."""


@pytest.fixture(autouse=True)
def impatient_threads() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def things(write: int, *, prefix: str = "") -> list[Entry[Thing]]:
    """Return the ``COUNT`` entries of one write, in ``GROUPS`` groups."""
    return [
        entry_of(f"ns/{prefix}{i}", Thing(write, f"{write}-{i % GROUPS}"), write, uid=f"{write}")
        for i in range(COUNT)
    ]


def keyed_things(write: int, *, prefix: str = "") -> dict[ObjectName, Entry[Thing]]:
    return keyed(*things(write, prefix=prefix))


def by_group() -> Indexer[Thing]:
    return Indexer(indexers={"group": lambda thing: thing.group})


class Readers:
    """Threads that repeat checks, and the writes they check, until both had enough turns."""

    def __init__(self, *checks: Callable[[], None]) -> None:
        self._checks = [check for check in checks for _ in range(READERS)]
        self._rounds = [0] * len(self._checks)
        self._stop = threading.Event()

    def during(self, write: Callable[[int], object]) -> None:
        """Call ``write`` with 2, 3, and so on; raise what any check raised."""
        with ThreadPoolExecutor(len(self._checks)) as pool:
            running = [pool.submit(self._repeat, i) for i in range(len(self._checks))]
            try:
                for number in itertools.count(2):
                    write(number)
                    if number > WRITES and min(self._rounds) >= ROUNDS:
                        break
                    if any(future.done() for future in running):  # only failures end early
                        break
            finally:
                self._stop.set()
            for future in running:
                future.result(30)

    def _repeat(self, i: int) -> None:
        while not self._stop.is_set():
            self._checks[i]()
            self._rounds[i] += 1


class Checks:
    """What must hold of every answer if each write is seen wholly or not at all."""

    def __init__(self, indexer: Indexer[Thing]) -> None:
        self.indexer = indexer
        self.lister = Lister(indexer)
        self.writes_seen: set[int] = set()

    def whole_list(self) -> None:
        """All objects are of one write, which lies between the versions before and after."""
        before = int(self.indexer.resource_version)
        found = self.indexer.list()
        after = int(self.indexer.resource_version)
        (write,) = {thing.write for thing in found}
        assert len(found) == COUNT
        assert before <= write <= after
        self.writes_seen.add(write)

    def whole_namespace(self) -> None:
        found = self.lister.namespace("ns").list()
        assert len({thing.write for thing in found}) == 1
        assert len(found) == COUNT
        assert len(self.indexer.list_keys()) == COUNT

    def whole_groups(self) -> None:
        """A value's objects are there together or not at all, and all have the value."""
        values = self.indexer.list_index_values("group")
        assert len(values) == GROUPS
        assert len({value.partition("-")[0] for value in values}) == 1
        for value in values:
            found = self.indexer.by_index("group", value)
            assert len(found) in {0, COUNT // GROUPS}
            assert {thing.group for thing in found} <= {value}
            assert len(self.indexer.index_keys("group", value)) in {0, COUNT // GROUPS}

    def whole_union(self) -> None:
        write = int(self.indexer.resource_version)
        asked = things(write)[0]
        found = self.indexer.index("group", asked)
        assert len(found) in {0, COUNT // GROUPS}
        assert {thing.group for thing in found} <= {asked.object.group}

    def all(self) -> list[Callable[[], None]]:
        return [self.whole_list, self.whole_namespace, self.whole_groups, self.whole_union]


@pytest.mark.slow
def test_a_relist_is_seen_wholly_or_not_at_all() -> None:
    """Two disjoint sets of keys take turns."""
    indexer = by_group()
    indexer.replace(keyed_things(1), "1")
    checks = Checks(indexer)
    Readers(*checks.all()).during(
        lambda write: indexer.replace(keyed_things(write, prefix="ab"[write % 2]), str(write))
    )
    assert len(checks.writes_seen) > 2


@pytest.mark.slow
def test_a_transaction_is_seen_wholly_or_not_at_all() -> None:
    """Every write deletes a third of the keys, adds as many others and changes the rest."""
    indexer = by_group()
    indexer.replace(keyed_things(1), "1")
    checks = Checks(indexer)
    Readers(*checks.all()).during(lambda write: indexer.apply(_rotation(indexer, write)))
    assert len(checks.writes_seen) > 2


def _rotation(indexer: Indexer[Thing], write: int) -> list[Delta[Thing]]:
    held, new = sorted(indexer.list_keys()), things(write)
    gone, stay = held[: COUNT // 3], held[COUNT // 3 :]
    fresh = [ObjectName("ns", f"{write}-{i}") for i in range(len(gone))]
    places = [*stay, *fresh]
    writes = [
        Delta(DeltaType.UPDATED, key, entry_of(str(key), entry.object, write))
        for key, entry in zip(places, new, strict=True)
    ]
    return [*(Delta[Thing](DeltaType.DELETED, key, None) for key in gone), *writes]


@pytest.mark.slow
def test_one_object_is_always_there_and_never_goes_back_in_time() -> None:
    """Lock-free: neither a change, nor its neighbours coming and going, nor a relist hide it."""
    indexer = by_group()
    indexer.add(entry_of("ns/always", Thing(1, "1"), 1))

    def check() -> None:
        version = int(indexer.resource_version)
        first, second = indexer.get("ns/always"), indexer.entries.get(ObjectName("ns", "always"))
        assert first
        assert second
        assert version <= first.write <= second.object.write
        assert "ns/always" in indexer
        assert len(indexer) >= 1

    def write(number: int) -> None:
        entry = entry_of("ns/always", Thing(number, str(number)), number)
        if number % 3:
            indexer.add(entry_of(f"ns/{number}", Thing(0, "0")))
            indexer.update(entry)
        else:
            indexer.replace(keyed(entry), str(number))

    Readers(check).during(write)


@pytest.mark.slow
def test_a_late_index_appears_complete() -> None:
    indexer = Indexer[Thing]()
    indexer.replace(keyed_things(1), "1")
    adding = [0]

    def check() -> None:
        index = f"late-{adding[-1]}"
        try:
            values = indexer.list_index_values(index)
        except UnknownIndexError:
            return
        assert len(values) == GROUPS
        assert len(indexer.by_index(index, "1-0")) == COUNT // GROUPS

    def write(number: int) -> None:
        adding.append(number)
        indexer.add_indexers({f"late-{number}": lambda thing: thing.group})

    Readers(check).during(write)


# --- one interleaving at a time


class Spy(str):
    """A name that calls back whenever a dict is about to look for it, on the writer's thread."""

    __slots__ = ("look",)
    look: Callable[[], None]

    def __hash__(self) -> int:
        self.look()
        return super().__hash__()

    __eq__ = str.__eq__


def spied(look: Callable[[], None], name: str) -> Spy:
    spy = Spy(name)
    spy.look = look
    return spy


def spied_entry(name: Spy, thing: Thing) -> Entry[Thing]:
    metadata = ObjectMeta(name=name, namespace="ns", uid=name, resource_version=str(thing.write))
    return Entry(metadata, thing)


def test_in_the_middle_of_a_transaction_the_version_is_not_ahead_and_no_key_is_missing() -> None:
    indexer = by_group()
    seen: list[tuple[str, list[int]]] = []

    def look() -> None:
        held = [indexer.entries.get(ObjectName("ns", name)) for name in "ab"]
        assert all(held)
        seen.append((indexer.resource_version, [entry.object.write for entry in held if entry]))

    indexer.replace(keyed(*(entry_of(f"ns/{name}", Thing(1, name), 1) for name in "ab")), "1")
    entries = [spied_entry(spied(look, name), Thing(2, name)) for name in "ab"]
    keys = [entry.metadata.key for entry in entries]
    indexer.apply([Delta(DeltaType.UPDATED, k, e) for k, e in zip(keys, entries, strict=True)])
    assert {version for version, _ in seen} == {"1"}
    assert {tuple(writes) for _, writes in seen} == {(1, 1), (2, 1), (2, 2)}
    assert indexer.resource_version == "2"


def test_in_the_middle_of_a_relist_everything_is_as_before() -> None:
    indexer = by_group()
    indexer.replace(keyed_things(1), "1")
    before = indexer.list()
    looks: list[int] = []

    def look() -> None:
        looks.append(1)
        assert (indexer.list(), indexer.resource_version) == (before, "1")
        assert len(indexer.by_index("group", "1-0")) == COUNT // GROUPS
        assert sorted(indexer.list_index_values("group")) == [f"1-{i}" for i in range(GROUPS)]

    result = indexer.replace(keyed(spied_entry(spied(look, "new"), Thing(2, "2-0"))), "2")
    assert (len(result.added), len(result.deleted)) == (1, COUNT)
    assert looks
    assert indexer.list() == [Thing(2, "2-0")]


@pytest.mark.parametrize(
    "read",
    [
        lambda indexer: indexer.list(),
        lambda indexer: indexer.list_keys(),
        lambda indexer: indexer.by_index("group", "1-0"),
        lambda indexer: indexer.index_keys("group", "1-0"),
        lambda indexer: indexer.list_index_values("group"),
        lambda indexer: indexer.index("group", things(1)[0]),
    ],
    ids=["list", "list_keys", "by_index", "index_keys", "list_index_values", "index"],
)
def test_a_reader_of_many_waits_while_a_transaction_is_under_way(
    read: Callable[[Indexer[Thing]], list[object]],
) -> None:
    indexer = by_group()
    indexer.replace(keyed_things(1), "1")
    with ThreadPoolExecutor(1) as pool:
        with indexer.entries._lock:
            answer = pool.submit(read, indexer)
            with pytest.raises(TimeoutError):
                answer.result(0.02)
        assert answer.result(30) == read(indexer)


def test_a_write_that_waits_for_a_reader_has_changed_nothing_yet() -> None:
    indexer = by_group()
    indexer.replace(keyed_things(1), "1")
    before = (indexer.get("ns/0"), len(indexer), indexer.resource_version)
    new = entry_of("ns/0", Thing(2, "2-0"), 2)
    writes: list[Callable[[], object]] = [
        lambda: indexer.add(new),
        lambda: indexer.delete(new),
        lambda: indexer.apply([Delta(DeltaType.ADDED, new.metadata.key, new)]),
    ]
    for write in writes:
        with ThreadPoolExecutor(1) as pool:
            with indexer.entries._lock:
                written = pool.submit(write)
                with pytest.raises(TimeoutError):
                    written.result(0.02)
                assert (indexer.get("ns/0"), len(indexer), indexer.resource_version) == before
            written.result(30)
        assert indexer.resource_version == "2"
        indexer.replace(keyed_things(1), "1")


def test_single_reads_take_no_lock() -> None:
    indexer = by_group()
    indexer.replace(keyed_things(1), "1")

    def single_reads() -> list[object]:
        thing = indexer.get("ns/0")
        return [thing, "ns/0" in indexer, len(indexer), indexer.resource_version]

    with ThreadPoolExecutor(1) as pool, indexer.entries._lock:
        found = pool.submit(single_reads).result(30)
    assert found == [Thing(1, "1-0"), True, COUNT, "1"]


def test_no_reader_waits_for_an_index_function() -> None:
    """While a function runs, for whichever write, readers see the state before."""
    indexer = Indexer[Thing]()
    indexer.replace(keyed_things(1), "1")
    seen: list[int] = []

    with ThreadPoolExecutor(1) as pool:

        def slow(thing: Thing) -> str:
            listed = pool.submit(indexer.by_index, NAMESPACE_INDEX, "ns").result(30)
            seen.append(max(found.write for found in listed))
            return thing.group

        indexer.add_indexers({"slow": slow})
        indexer.add(entry_of("ns/new", Thing(2, "")))
        indexer.apply([Delta(DeltaType.UPDATED, ObjectName("ns", "0"), things(3)[0])])
        indexer.replace(keyed_things(4), "4")
    assert seen == [1] * (COUNT + 1) + [2] + [3] * COUNT


def test_a_finalizer_that_reads_in_the_middle_of_a_write_does_not_wait_for_itself() -> None:
    """Nor does a signal handler: both run on the writer's own thread, wherever it stands."""
    indexer = Indexer[object]()
    seen: list[int] = []

    class Reads:
        def __del__(self) -> None:
            seen.append(len(indexer.list()))

    indexer.add(entry_of("ns/a", Reads()))
    with indexer.entries._lock:
        indexer.add(entry_of("ns/a", None))
    assert seen == [1]
