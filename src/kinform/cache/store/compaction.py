"""Compaction: reduces the memory of cached objects, in the background.

It happens at two places. `Compactor.settle` runs before the objects of a list are stored: it
shares equal parts of their metadata, and compresses objects as soon as a dictionary is trained on
the first of them. Doing this later would be worse: memory that is freed piece by piece leaves
holes in the heap, and a process with a memory limit might not survive the uncompressed list.
Single events are not settled, to save the time. `Compactor.run` goes over the store after the
first sync and then periodically, and compresses objects in place: entries stay the same, so it
needs no lock and no events.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar, cast, final

from kinform.cache.store.thread_safe_store import ThreadSafeStore
from kinform.clock import offload
from kinform.errors import UsageError
from kinform.meta import Entry
from kinform.objects.object import Object
from kinform.objects.storage import Codec, Packer, Sharing, StorageForm, load_library, train

__all__ = ["MIN_BYTES", "SWEEP_PERIOD", "CompactionStatistics", "Compactor"]

T = TypeVar("T")

SWEEP_PERIOD: Final = 5.0
"""Seconds between two sweeps over the cache; more in very large caches."""
MIN_BYTES: Final = 1024 * 1024
"""Smaller caches are not compressed: the time for reading would outweigh the gain."""

# Enough to train a dictionary; more only takes longer.
_MOST_SAMPLES: Final = 2_000
_LARGEST_SAMPLE: Final = 128 * 1024
_SAMPLED_BYTES: Final = 4 * 1024 * 1024
# Objects packed at a time (some two milliseconds in a thread), and objects checked at a time (a
# quarter of a millisecond on the event loop).
_SLICE: Final = 32
_SLICE_BYTES: Final = 256 * 1024
_GLANCE: Final = 1_024
# Objects per second between two sweeps: checking them takes a hundredth of that time.
_OBJECTS_PER_SECOND: Final = 40_000
_RETURN_AFTER: Final = 32 * 1024 * 1024
# A dictionary of the first objects may not suit the others: a list comes namespace by namespace.
# Everything is compressed again only if that makes it a tenth smaller.
_TRIED: Final = 256
_WORTH_IT: Final = 0.9


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionStatistics:
    """The objects that were packed so far, each version of an object once."""

    objects: int = 0
    raw_bytes: int = 0
    """Their size before packing."""
    packed_bytes: int = 0
    """Their size after packing."""


@final
class Compactor:
    """Keeps the objects of ``entries`` in a storage form.

    ``"raw"``: only `settle` does something, and `run` returns at once. ``"zstd"`` needs the extra
    ``kinform[zstd]`` and packs objects (`Object.pack`) within seconds of their arrival, once the
    cache holds `MIN_BYTES`. A dictionary is then trained on up to 2,000 of them. Both happen in a
    thread, packing in slices of some milliseconds. The freed memory is returned to the system
    where the C library supports that (glibc).

    Of a list that is larger than the samples for a dictionary, the rest is packed as it arrives,
    on the event loop, for 20 to 60 microseconds an object. After the first sync a dictionary of
    the whole cache is tried, and everything packed again if that makes it a tenth smaller.

    All methods must be called on the event loop's thread.

    Args:
        model: the class of the cached objects. Only whole objects can be packed.

    Raises:
        UsageError: the form is unknown, its library is missing, or ``model`` is a projection.
    """

    __slots__ = (
        "_before",
        "_begun",
        "_codec",
        "_entries",
        "_form",
        "_is_provisional",
        "_packer",
        "_replaced",
        "_returned",
        "_samples",
        "_sharing",
        "_taught",
    )

    def __init__(
        self,
        entries: ThreadSafeStore[T],
        *,
        storage: StorageForm = "zstd",
        model: type[object] = Object,
    ) -> None:
        if storage not in {"raw", "zstd"}:
            raise UsageError(f"storage is {storage!r}, expected 'raw' or 'zstd'")
        if storage == "zstd":
            if model is not Object:
                raise UsageError(
                    f"storage='zstd' is for whole objects, and {model.__qualname__} is a "
                    "projection, which is small already: leave out the storage, or the model"
                )
            load_library()
        self._entries = cast("ThreadSafeStore[object]", entries)
        self._form = storage
        self._sharing = Sharing()
        self._samples = Samples()
        self._taught = asyncio.Event()  # there are enough samples, or no more will come
        self._codec: Codec | None = None
        self._is_provisional = False  # trained on the first objects only
        self._replaced: Codec | None = None  # the provisional one, if another was better
        self._packer: Packer | None = None  # only while objects are packed
        self._before = CompactionStatistics()
        self._returned = 0
        self._begun = asyncio.Event()

    def settle(self, entry: Entry[T]) -> None:
        """Make ``entry`` small, in place.

        For the objects of lists, right before they are stored: lists bring many objects at once.
        Takes some two microseconds, five if no other object has the labels; more where the object
        is packed at once.
        """
        obj = entry.object
        if not isinstance(obj, Object) or obj.metadata is not entry.metadata:
            with contextlib.suppress(TypeError):  # a custom source may return anything
                self._sharing.metadata(entry.metadata)
        if isinstance(obj, Object):
            self._sharing.head(obj.head)
            if self._form == "zstd" and not obj.is_packed:
                self._settle_bytes(obj)

    def _settle_bytes(self, obj: Object) -> None:
        if self._codec is not None:
            if self._packer is None:
                self._packer = self._codec.packer()
            obj.pack(self._packer)
            return
        if not self._taught.is_set() and self._samples.add(obj.raw):
            self._taught.set()

    def begin(self) -> None:
        """Note that the first sync is done: a dictionary can be trained on the whole cache."""
        self._begun.set()
        self._taught.set()
        self._sharing = Sharing()  # after the first list few objects arrive at once

    async def run(self) -> None:
        """Wait for `begin`, then pack the current and all later objects, until cancelled.

        Cancellation takes effect at once; a slice that is being packed is finished in its thread.
        """
        if self._form == "raw":
            return
        await self._taught.wait()
        if not self._begun.is_set():
            self._codec = await offload(_learned_from, self._samples.taken)
            self._is_provisional = True
        self._samples = Samples()  # free them
        await self._begun.wait()
        # A cache at rest is not swept: the version shows whether anything was written.
        swept: str | None = None
        while True:
            version = self._entries.resource_version
            if version != swept or not version:  # some servers have no versions
                await self._sweep()
                swept = version
            await asyncio.sleep(max(SWEEP_PERIOD, len(self._entries) / _OBJECTS_PER_SECOND))

    def statistics(self) -> CompactionStatistics:
        """Return the statistics so far."""
        before, packer = self._before, self._packer
        if packer is None:
            return before
        return CompactionStatistics(
            objects=before.objects + packer.objects,
            raw_bytes=before.raw_bytes + packer.raw_bytes,
            packed_bytes=before.packed_bytes + packer.packed_bytes,
        )

    async def _sweep(self) -> None:
        """Pack all objects that are in the cache now."""
        entries = self._entries.list()
        await self._learn(entries)
        codec = self._codec
        if codec is None:
            return
        try:
            for start in range(0, len(entries), _GLANCE):
                glanced = _unpacked(entries[start : start + _GLANCE], self._replaced)
                for some in _slices(glanced):
                    await offload(_pack, some, await self._packer_for(codec))
                    await self._return_memory(at_least=_RETURN_AFTER)
                await asyncio.sleep(0)
            await self._return_memory(at_least=MIN_BYTES)
        # The packer holds a compression context and its dictionary: freed between two sweeps.
        finally:
            self._before, self._packer = self.statistics(), None

    async def _packer_for(self, codec: Codec) -> Packer:
        if self._packer is None:
            packer = await offload(codec.packer)
            if self._packer is None:  # `settle` may have made one meanwhile
                self._packer = packer
        return self._packer

    async def _learn(self, entries: Sequence[Entry[object]]) -> None:
        """Train a codec on ``entries``, if they are large enough."""
        before = self._codec
        if before is not None and not self._is_provisional:
            return
        if not await offload(_is_worth_it, entries):
            return
        self._is_provisional = False
        if before is None:
            self._codec = await offload(lambda: _learned_from(_samples(entries)))
            return
        codec = await offload(lambda: _better(before, entries))
        if codec is not before:  # everything is packed and counted again
            self._codec, self._packer, self._replaced = codec, None, before
            self._before = CompactionStatistics()

    async def _return_memory(self, *, at_least: int) -> None:
        # Freed bytes are scattered over the heap, and count as used until it is trimmed.
        done = self.statistics()
        freed = done.raw_bytes - done.packed_bytes
        if freed - self._returned >= at_least:
            self._returned = freed
            await offload(_return_memory)


@final
class Samples:
    """The bytes of the first objects, until there are enough to train a dictionary."""

    __slots__ = ("_size", "taken")

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self._size = 0

    def add(self, raw: bytes) -> bool:
        """Add one; return whether there are enough."""
        if len(raw) <= _LARGEST_SAMPLE:
            self.taken.append(raw)
            self._size += len(raw)
        is_many = len(self.taken) >= _MOST_SAMPLES and self._size >= MIN_BYTES
        return is_many or self._size >= _SAMPLED_BYTES


def _learned_from(samples: Sequence[bytes]) -> Codec:
    return Codec(train(samples))


def _objects(entries: Sequence[Entry[object]]) -> list[Object]:
    objects = [entry.object for entry in entries]
    return [obj for obj in objects if isinstance(obj, Object)]


def _unpacked(entries: Sequence[Entry[object]], replaced: Codec | None) -> list[Object]:
    """Return the objects that are not packed, or are packed for the ``replaced`` codec.

    Objects packed for any other codec are shared with another cache, whose compactor would pack
    them again in turn.
    """
    objects = [obj for obj in _objects(entries) if not obj.is_packed]
    if replaced is not None:
        objects += [obj for obj in _objects(entries) if obj.is_packed_for(replaced)]
    return objects


def _is_worth_it(entries: Sequence[Entry[object]]) -> bool:
    sizes = (len(obj.raw) for entry in entries for obj in _objects([entry]))
    return any(total >= MIN_BYTES for total in itertools.accumulate(sizes))


def _samples(entries: Sequence[Entry[object]]) -> list[bytes]:
    """Return the bytes of objects from all over the cache, as many as a dictionary needs."""
    # From all over the cache: a list comes namespace by namespace, and the first objects resemble
    # each other.
    step = max(1, -(-len(entries) // _MOST_SAMPLES))
    chosen = [obj.raw for obj in _objects(entries[::step])]
    samples = [raw for raw in chosen if len(raw) <= _LARGEST_SAMPLE]
    return samples[:: sum(map(len, samples)) // _SAMPLED_BYTES + 1]


def _better(codec: Codec, entries: Sequence[Entry[object]]) -> Codec:
    """Return a codec for all of ``entries``: a new one, if it is better. Takes a second."""
    step = max(1, len(entries) // _TRIED)
    # Mostly other objects than the ones that it is trained on, or the new dictionary would always
    # seem better.
    tried = [obj.raw for obj in _objects(entries[step // 2 :: step])]
    other = _learned_from(_samples(entries))
    sizes = [
        sum(len(packer.pack(raw).data) for raw in tried)
        for packer in (codec.packer(), other.packer())
    ]
    return other if sizes[1] < _WORTH_IT * sizes[0] else codec


def _slices(objects: Sequence[Object]) -> Iterator[list[Object]]:
    some: list[Object] = []
    size = 0
    for obj in objects:
        some.append(obj)
        size += obj.kept_size
        if len(some) == _SLICE or size >= _SLICE_BYTES:
            yield some
            some, size = [], 0
    if some:
        yield some


def _pack(objects: Sequence[Object], packer: Packer) -> None:
    for obj in objects:
        obj.pack(packer)


def _return_memory() -> None:
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@functools.cache
def _malloc_trim() -> Callable[[int], int] | None:
    """Return glibc's function that returns free memory to the system, or ``None``."""
    # Imported on use: most programs keep their objects raw and never need it.
    import ctypes

    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # another C library, or not available
        return None
    trim.argtypes, trim.restype = [ctypes.c_size_t], ctypes.c_int
    return cast("Callable[[int], int]", trim)
