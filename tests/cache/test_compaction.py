"""`Compactor`: objects are packed in the background, and nobody else can tell."""

from __future__ import annotations

import asyncio
import contextlib
import random
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar, cast

import pytest

from kinform.cache.store.compaction import MIN_BYTES, SWEEP_PERIOD, CompactionStatistics, Compactor
from kinform.cache.store.store import Indexer
from kinform.errors import UsageError
from kinform.meta import Entry, ObjectMeta
from kinform.objects.object import Object
from kinform.objects.storage import StorageForm
from kinform.tasks import background
from kinform.testing import in_virtual_time

R = TypeVar("R")

COUNT = 150
PAYLOAD = "".join(map(str, range(2_500)))
"""Makes 150 objects large enough to be packed."""


def pod(number: int, version: int = 1, *, payload: str = PAYLOAD) -> Entry[Object]:
    obj = Object.from_dict(
        {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {
                "name": f"web-{number}",
                "namespace": "default",
                "uid": f"uid-{number}",
                "resourceVersion": str(version),
                "labels": {"app": "web"},
                "annotations": {"number": str(number)},
            },
            "spec": {"nodeName": f"node-{number % 3}", "containers": [{"image": "web"}] * 5},
            "data": payload,
        }
    )
    return Entry(obj.metadata, obj)


def cache(count: int = COUNT, **options: Any) -> Indexer[Object]:
    indexer: Indexer[Object] = Indexer(indexers={"node": lambda pod: pod.at("spec", "nodeName")})
    fill(indexer, count, **options)
    return indexer


def fill(indexer: Indexer[Object], count: int, version: int = 1, **options: Any) -> None:
    entries = [pod(number, version, **options) for number in range(count)]
    indexer.replace({entry.metadata.key: entry for entry in entries}, str(version))


def packed(indexer: Indexer[Object]) -> int:
    return sum(obj.is_packed for obj in indexer.list())


@contextlib.asynccontextmanager
async def compacting(indexer: Indexer[Object]) -> AsyncIterator[Compactor]:
    compactor = Compactor(indexer.entries)
    compactor.begin()
    async with background(compactor.run()) as running:
        yield compactor
        assert not running.done()


@in_virtual_time
async def test_what_the_cache_holds_is_packed_after_the_first_sync() -> None:
    indexer = cache()
    compactor = Compactor(indexer.entries)
    async with background(compactor.run()):
        await asyncio.sleep(3600)
        assert packed(indexer) == 0
        compactor.begin()
        await asyncio.sleep(1)
        assert packed(indexer) == COUNT


@in_virtual_time
async def test_packing_changes_no_entry_and_no_answer() -> None:
    indexer = cache()
    before = indexer.entries.list()
    contents = [entry.object.to_dict() for entry in before]
    async with compacting(indexer):
        await asyncio.sleep(1)
    after = indexer.entries.list()
    assert all(one is other for one, other in zip(before, after, strict=True))
    assert [entry.object.to_dict() for entry in after] == contents
    assert indexer.index_keys("node", "node-1") == cache().index_keys("node", "node-1")
    found = indexer.get("default/web-7")
    assert found is not None
    assert found.annotations == {"number": "7"}


@in_virtual_time
async def test_what_comes_later_is_packed_within_the_period() -> None:
    indexer = cache()
    async with compacting(indexer) as compactor:
        await asyncio.sleep(1)
        for number in (3, COUNT):
            indexer.add(pod(number, 2))
        assert packed(indexer) == COUNT - 1
        await asyncio.sleep(SWEEP_PERIOD)
        assert packed(indexer) == len(indexer) == COUNT + 1
        fill(indexer, COUNT, version=3)
        await asyncio.sleep(SWEEP_PERIOD)
        assert packed(indexer) == COUNT
        assert compactor.statistics().objects == COUNT + 2 + COUNT


@in_virtual_time
async def test_a_cache_at_rest_is_not_looked_at() -> None:
    indexer = cache()
    async with compacting(indexer):
        await asyncio.sleep(1)
        # The one way to change an object and not the version: nobody does it.
        slip = indexer.get("default/web-3")
        assert slip is not None
        slip._raw = slip.raw
        await asyncio.sleep(60)
        assert packed(indexer) == COUNT - 1
        indexer.bookmark("2")
        await asyncio.sleep(SWEEP_PERIOD)
        assert packed(indexer) == COUNT


@in_virtual_time
async def test_a_server_without_versions_is_no_hindrance() -> None:
    indexer = cache()
    indexer.replace({entry.metadata.key: entry for entry in indexer.entries.list()}, "")
    async with compacting(indexer):
        await asyncio.sleep(1)
        indexer.add(pod(1, cast("int", "")))
        assert indexer.resource_version == ""
        await asyncio.sleep(SWEEP_PERIOD)
        assert packed(indexer) == COUNT


@in_virtual_time
async def test_a_small_cache_is_left_alone_until_it_grows() -> None:
    indexer = cache(payload="")
    async with compacting(indexer) as compactor:
        await asyncio.sleep(60)
        assert packed(indexer) == 0
        assert compactor.statistics() == CompactionStatistics()
        indexer.add(pod(COUNT, 2, payload="x" * MIN_BYTES))
        await asyncio.sleep(SWEEP_PERIOD)
        assert packed(indexer) == COUNT + 1


@in_virtual_time
async def test_statistics_tell_how_much_was_gained() -> None:
    indexer = cache()
    raw = sum(len(obj.raw) for obj in indexer.list())
    async with compacting(indexer) as compactor:
        await asyncio.sleep(1)
        figures = compactor.statistics()
    assert (figures.objects, figures.raw_bytes) == (COUNT, raw)
    assert 0 < figures.packed_bytes < 0.25 * raw


@in_virtual_time
async def test_objects_of_any_size_are_packed() -> None:
    """Larger than a sample may be, larger than a slice, and too alike to learn from."""
    indexer = cache(payload="x" * 600_000)
    async with compacting(indexer) as compactor:
        await asyncio.sleep(1)
    assert packed(indexer) == COUNT
    assert compactor.statistics().packed_bytes < 100_000


@in_virtual_time
async def test_what_is_no_object_is_passed_over() -> None:
    """A transform may have put anything there."""
    indexer: Indexer[Object] = Indexer()
    fill(indexer, COUNT)
    indexer.add(Entry(ObjectMeta(name="odd"), cast("Object", "text")))
    async with compacting(indexer):
        await asyncio.sleep(1)
        assert [obj for obj in indexer.list() if not getattr(obj, "is_packed", False)] == ["text"]


@in_virtual_time
async def test_it_may_be_told_of_the_sync_before_it_runs_and_run_again() -> None:
    indexer = cache()
    compactor = Compactor(indexer.entries)
    compactor.begin()
    for version in (2, 3):
        fill(indexer, COUNT, version)
        async with background(compactor.run()):
            await asyncio.sleep(1)
        assert packed(indexer) == COUNT


class Stuck:
    """A clock whose calls off the loop never end, from the second on."""

    def __init__(self) -> None:
        self.begun = 0

    def boot(self) -> float:
        return 0.0

    def wall(self) -> float:
        return 0.0

    async def offload(self, call: Callable[[], R]) -> R:
        self.begun += 1
        if self.begun > 1:
            await asyncio.Event().wait()
        return call()


@in_virtual_time
async def test_cancelling_takes_effect_at_once_also_while_a_slice_is_packed() -> None:
    clock = Stuck()
    vars(asyncio.get_running_loop())["clock"] = clock
    async with compacting(cache()) as compactor:
        await asyncio.sleep(1)
        assert clock.begun == 2
        assert compactor.statistics().objects == 0


@pytest.mark.slow
async def test_readers_on_other_threads_see_no_difference() -> None:
    """On a real loop: training and packing happen in a thread, and readers are in two more."""
    indexer = cache(600)
    expected = [f"node-{number % 3}" for number in range(600)]
    stop = threading.Event()

    def read() -> int:
        rounds = 0
        while not stop.is_set() or not rounds:
            pods = [indexer.get(f"default/web-{number}") for number in range(600)]
            assert [pod and pod.at("spec", "nodeName") for pod in pods] == expected
            rounds += 1
        return rounds

    loop = asyncio.get_running_loop()
    readers = [loop.run_in_executor(None, read) for _ in range(2)]
    await Compactor(indexer.entries)._sweep()
    stop.set()
    assert min(await asyncio.gather(*readers)) >= 1
    assert packed(indexer) == 600


# --- before the store -------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["raw", "zstd"])
def test_objects_that_settle_share_what_is_equal(form: StorageForm) -> None:
    indexer: Indexer[Object] = Indexer()
    compactor = Compactor(indexer.entries, storage=form)
    entries = [pod(number) for number in (1, 2)]
    for entry in entries:
        compactor.settle(entry)
    one, other = (entry.object for entry in entries)
    assert one.metadata.raw_labels is other.metadata.raw_labels
    assert one.metadata == pod(1).metadata
    assert one.annotations == {"number": "1"}


def test_of_projections_the_metadata_is_shared_all_the_same() -> None:
    compactor = Compactor(Indexer[str]().entries, storage="raw", model=str)
    one, other = (Entry(pod(number).metadata, "text") for number in (1, 2))
    compactor.settle(one)
    compactor.settle(other)
    assert one == Entry(pod(1).metadata, "text")
    assert one.metadata.raw_labels is other.metadata.raw_labels


@in_virtual_time
async def test_settled_objects_let_go_of_their_bytes_when_they_are_packed() -> None:
    indexer = cache()
    async with compacting(indexer) as compactor:
        for entry in indexer.entries.list():
            compactor.settle(entry)
        await asyncio.sleep(1)
        for entry in indexer.entries.list():
            compactor.settle(entry)
            obj = entry.object
            assert cast("object", obj.metadata.raw_annotations) is obj._raw


def _varied(number: int, template: int) -> Entry[Object]:
    """Return an object that is like others of its template and like none of another."""
    rng = random.Random(template)
    text = "".join(rng.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=6_000))
    return pod(number, payload=f"{text}{number}")


@pytest.mark.slow
@in_virtual_time
async def test_a_large_list_is_packed_while_it_arrives() -> None:
    compactor = Compactor(Indexer[Object]().entries)
    async with background(compactor.run()):
        for number in range(800):
            compactor.settle(early := _varied(number, number % 7))
            assert not early.object.is_packed
        await asyncio.sleep(1)  # off the loop a dictionary is trained
        entries = [_varied(number, number % 7) for number in range(100)]
        for entry in entries:
            compactor.settle(entry)
        later = [entry.object for entry in entries]
        assert all(obj.is_packed for obj in later)
        assert max(obj.kept_size for obj in later) < 400
        assert later[3].at("data") == _varied(3, 3).object.at("data")
        assert later[3].annotations == {"number": "3"}
        assert compactor.statistics().objects == 100


@pytest.mark.slow
@in_virtual_time
async def test_what_the_first_of_a_list_taught_is_replaced_if_it_does_not_fit_the_others() -> None:
    """Namespace by namespace: the first 800 objects are of one kind, the others of six more."""
    indexer: Indexer[Object] = Indexer()
    compactor = Compactor(indexer.entries)
    entries: list[Entry[Object]] = []
    async with background(compactor.run()):
        for number in range(3_000):
            entry = _varied(number, 0 if number < 800 else number % 7)
            compactor.settle(entry)
            entries.append(entry)
            if number == 1_000:
                await asyncio.sleep(1)
        indexer.replace({entry.metadata.key: entry for entry in entries}, "5")
        before = sum(obj.kept_size for obj in indexer.list())
        compactor.begin()
        await asyncio.sleep(1)
        assert packed(indexer) == 3_000
        after = sum(obj.kept_size for obj in indexer.list())
        assert after < before / 4
        assert after / 3_000 < 400
        figures = compactor.statistics()
        assert (figures.objects, figures.packed_bytes) == (3_000, after)
        assert all(
            obj.at("data") == _varied(n, 0 if n < 800 else n % 7).object.at("data")
            for n, obj in ((0, entries[0].object), (2_999, entries[2_999].object))
        )


@pytest.mark.slow
@in_virtual_time
async def test_what_the_first_of_a_list_taught_is_kept_if_it_fits() -> None:
    indexer: Indexer[Object] = Indexer()
    compactor = Compactor(indexer.entries)
    entries = [_varied(number, number % 7) for number in range(2_000)]
    async with background(compactor.run()):
        for number, entry in enumerate(entries):
            compactor.settle(entry)
            if number == 1_000:
                await asyncio.sleep(1)
        indexer.replace({entry.metadata.key: entry for entry in entries}, "5")
        kept = [entry.object._raw for entry in entries[1_001:]]
        compactor.begin()
        await asyncio.sleep(1)
        assert packed(indexer) == 2_000
        pairs = zip(kept, entries[1_001:], strict=True)
        assert all(raw is entry.object._raw for raw, entry in pairs)
        assert compactor.statistics().objects == 2_000


@pytest.mark.slow
@in_virtual_time
async def test_a_cache_that_is_empty_after_all_is_packed_when_it_fills() -> None:
    """The list that taught it broke off, and the next one showed nothing."""
    indexer: Indexer[Object] = Indexer()
    compactor = Compactor(indexer.entries)
    async with background(compactor.run()) as running:
        for number in range(800):
            compactor.settle(_varied(number, number % 7))
        await asyncio.sleep(1)
        compactor.begin()
        await asyncio.sleep(60)
        assert not running.done()
        fill(indexer, COUNT, version=2)
        await asyncio.sleep(60)
        assert packed(indexer) == COUNT


@in_virtual_time
async def test_many_small_objects_are_left_alone_too() -> None:
    compactor = Compactor(Indexer[Object]().entries)
    async with background(compactor.run()):
        for number in range(3_000):
            compactor.settle(entry := pod(number, payload=""))
            assert not entry.object.is_packed
        await asyncio.sleep(1)
        compactor.settle(entry := pod(1, payload=""))
        assert not entry.object.is_packed


@in_virtual_time
async def test_two_caches_of_the_same_objects_leave_each_others_alone() -> None:
    one, other = cache(), Indexer[Object]()
    other.replace({entry.metadata.key: entry for entry in one.entries.list()}, "1")
    async with compacting(one) as first, compacting(other) as second:
        for version in range(2, 6):
            await asyncio.sleep(60)
            one.entries.bookmark(str(version))
            other.entries.bookmark(str(version))
        assert first.statistics().objects + second.statistics().objects <= 2 * COUNT


def test_metadata_of_a_source_of_ones_own_may_be_anything() -> None:
    metadata = ObjectMeta(name="a", raw_labels=cast("Any", {"a": ["b"]}))
    Compactor(Indexer[str]().entries, storage="raw", model=str).settle(Entry(metadata, "text"))
    assert metadata.labels == {"a": ["b"]}


@in_virtual_time
async def test_raw_objects_stay_raw() -> None:
    indexer = cache()
    compactor = Compactor(indexer.entries, storage="raw")
    compactor.begin()
    await compactor.run()
    assert packed(indexer) == 0


# --- mistakes ---------------------------------------------------------------------------------


def test_a_form_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UsageError, match="storage is 'gzip', expected 'raw' or 'zstd'"):
        Compactor(Indexer[Object]().entries, storage=cast("StorageForm", "gzip"))


def test_projections_are_not_packed_and_the_error_says_why() -> None:
    class View:
        pass

    with pytest.raises(UsageError, match="View is a projection, which is small already"):
        Compactor(Indexer[View]().entries, storage="zstd", model=View)


def test_without_the_library_a_compactor_cannot_be_made() -> None:
    program = """
import sys
sys.modules["zstandard"] = None  # as if it were not there
from kinform.cache import Indexer
from kinform.cache.store.compaction import Compactor
Compactor(Indexer().entries, storage="raw")
Compactor(Indexer().entries)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "UsageError: storage='zstd' needs" in done.stderr
    assert done.stderr.strip().endswith("pip install kinform[zstd]")
