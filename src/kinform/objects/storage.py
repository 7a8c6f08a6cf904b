"""Storage forms: how a cache keeps its objects' bytes and metadata small.

``"raw"`` keeps the bytes as they came. ``"zstd"`` (extra ``kinform[zstd]``) compresses them,
object by object, with a dictionary trained on others of the kind: a pod of 6.5 KB becomes 0.7 KB,
and each access to it takes some microseconds more. In both forms `Sharing` keeps one copy of
values that occur in the metadata of many objects. `kinform.cache.store.compaction` decides when.

The library is zstandard: it trains and digests dictionaries, releases the interpreter lock, and
has wheels for every supported Python. It is imported only here, and only when needed.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, final

from msgspec.structs import force_setattr

from kinform.errors import DecodeError, UsageError
from kinform.meta import ObjectMeta, OwnerReference
from kinform.objects.packed import Packed
from kinform.sansio.wire.heads import Head

if TYPE_CHECKING:
    import zstandard

__all__ = [
    "Codec",
    "Packer",
    "Sharing",
    "StorageForm",
    "inherit",
    "load_library",
    "train",
]

StorageForm: TypeAlias = Literal["raw", "zstd"]
"""The form in which a cache keeps the bytes of its objects."""

# With these, a pod takes 616 bytes and 50 µs; with level 3 and a quarter of the dictionary it takes
# 690 bytes and 20 µs.
_LEVEL: Final = 5
_DICTIONARY: Final = 128 * 1024
_TYPICAL: Final = 8 * 1024
_MOST_SHARED: Final = 16 * 1024
_DAMAGED: Final = "the object's packed bytes cannot be decompressed"


def load_library() -> None:
    """Check that objects can be packed.

    Raises:
        UsageError: the extra ``kinform[zstd]`` is not installed.
    """
    try:
        import_module("zstandard")
    except ImportError as exc:
        raise UsageError(
            "storage='zstd' needs a library that is not installed: pip install kinform[zstd]"
        ) from exc


def train(samples: Sequence[bytes]) -> bytes:
    """Train a dictionary on ``samples``; ``b""`` if they have too little in common.

    Takes a tenth of a second for four megabytes: do not call it on the event loop.
    """
    import zstandard

    size = min(_DICTIONARY, sum(map(len, samples)) // 16)
    # Objects have long parts in common. The library could choose the parameters itself; that gives
    # no better result, and takes seven times as long.
    try:
        return zstandard.train_dictionary(size, list(samples), k=2048, d=8).as_bytes()
    except (ValueError, zstandard.ZstdError):  # samples too few, too small or all equal
        return b""


@final
class Codec:
    """Decompresses packed objects: a dictionary, and a decompressor for each thread.

    Shared by all objects that were packed with it, and alive as long as one of them is. Each
    thread that reads keeps a decompressor of some 100 KB for as long as both live: two threads
    that use the same one would crash the process.

    Args:
        dictionary: the result of `train`.
    """

    __slots__ = ("_dictionary", "_error", "_local")

    def __init__(self, dictionary: bytes = b"") -> None:
        import zstandard

        self._error = zstandard.ZstdError
        self._dictionary = zstandard.ZstdCompressionDict(dictionary) if dictionary else None
        self._local = threading.local()
        # The first use digests the dictionary for all threads, and is not thread-safe.
        self.decompress(zstandard.ZstdCompressor(dict_data=self._dictionary).compress(b"{}"))

    def decompress(self, data: bytes) -> bytes:
        """Return the decompressed ``data``.

        Raises:
            DecodeError: the data is corrupted.
        """
        try:
            decompressor: zstandard.ZstdDecompressor = self._local.decompressor
        except AttributeError:
            decompressor = self._local.decompressor = self._decompressor()
        # zstandard trusts the size in the frame header. If the header is corrupted, the size may be
        # larger than the memory, or zero; no object has the size zero.
        try:
            if raw := decompressor.decompress(data):
                return raw
        except (self._error, MemoryError) as exc:
            raise DecodeError(_DAMAGED) from exc
        raise DecodeError(_DAMAGED)

    def packer(self) -> Packer:
        """Return a packer for this codec. Takes a millisecond."""
        return Packer(self, b"" if self._dictionary is None else self._dictionary.as_bytes())

    def _decompressor(self) -> zstandard.ZstdDecompressor:
        import zstandard

        return zstandard.ZstdDecompressor(dict_data=self._dictionary)


@final
class Packer:
    """Compresses objects one by one; from any thread. Made by `Codec.packer`.

    Every object is packed, even if it does not become smaller, so that it is not tried again. It
    needs two megabytes: do not keep it longer than needed.
    """

    __slots__ = ("_compressor", "_lock", "codec", "objects", "packed_bytes", "raw_bytes")

    codec: Codec
    """The codec that decompresses them."""
    objects: int
    """The number of objects packed so far."""
    raw_bytes: int
    """Their size before packing."""
    packed_bytes: int
    """Their size after packing."""

    def __init__(self, codec: Codec, dictionary: bytes) -> None:
        import zstandard

        # The checksum detects corrupted data, and a wrong dictionary.
        parameters = zstandard.ZstdCompressionParameters.from_level(  # pyright: ignore[reportUnknownMemberType]
            _LEVEL,
            source_size=_TYPICAL,
            dict_size=len(dictionary),
            write_checksum=True,
            write_dict_id=False,
        )
        digested = None
        if dictionary:
            digested = zstandard.ZstdCompressionDict(dictionary)
            digested.precompute_compress(compression_params=parameters)  # pyright: ignore[reportUnknownMemberType]
        self.codec = codec
        self._compressor = zstandard.ZstdCompressor(
            dict_data=digested, compression_params=parameters
        )
        # One compressor for all threads: it is large, and packing is not urgent.
        self._lock = threading.Lock()
        self.objects = self.raw_bytes = self.packed_bytes = 0

    def pack(self, raw: bytes) -> Packed:
        """Return ``raw``, which must not be empty, compressed."""
        with self._lock:
            # A copy: the result of the compressor may reference a much larger buffer.
            data = bytes(memoryview(self._compressor.compress(raw)))
            self.objects += 1
            self.raw_bytes += len(raw)
            self.packed_bytes += len(data)
        return Packed(self.codec, data)


def inherit(old: ObjectMeta, new: ObjectMeta) -> None:
    """Replace values of ``new`` by the equal values of ``old``, metadata of the same key.

    Most updates change none of them, so a cache stays as small as after its first list.
    """
    put = force_setattr
    if new.name == old.name:
        put(new, "name", old.name)
    if new.namespace == old.namespace:
        put(new, "namespace", old.namespace)
    if new.uid == old.uid:
        put(new, "uid", old.uid)
    if new.creation_timestamp == old.creation_timestamp:
        put(new, "creation_timestamp", old.creation_timestamp)
    if new.generate_name == old.generate_name:
        put(new, "generate_name", old.generate_name)
    if (labels := old.raw_labels) and new.raw_labels == labels:
        put(new, "raw_labels", labels)
    if (owners := old.raw_owner_references) and new.raw_owner_references == owners:
        put(new, "raw_owner_references", owners)


@final
class Sharing:
    """Keeps one copy of equal values in the metadata of many objects: labels, owners, namespaces.

    A value is replaced, in place, by an equal one seen before. Meant for metadata that was just
    decoded: freeing its strings later would leave holes in the heap. It keeps the last thousands
    of distinct values, so it needs little memory.
    """

    __slots__ = ("_labels", "_owners", "_texts")

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._labels: dict[int, dict[str, str]] = {}
        self._owners: dict[tuple[OwnerReference, ...], tuple[OwnerReference, ...]] = {}

    def head(self, head: Head) -> None:
        """Replace values of ``head`` and of its metadata by equal ones seen before."""
        text = self._texts.setdefault
        kind, version = head.kind, head.api_version
        if (kept := text(kind, kind)) is not kind:
            force_setattr(head, "kind", kept)
        if (kept := text(version, version)) is not version:
            force_setattr(head, "api_version", kept)
        self.metadata(head.metadata)

    def metadata(self, metadata: ObjectMeta) -> None:
        """Replace values of ``metadata`` by equal ones seen before."""
        text = self._texts.setdefault
        namespace, prefix = metadata.namespace, metadata.generate_name
        if (kept := text(namespace, namespace)) is not namespace:
            force_setattr(metadata, "namespace", kept)
        if (kept := text(prefix, prefix)) is not prefix:
            force_setattr(metadata, "generate_name", kept)
        if labels := metadata.raw_labels:
            force_setattr(metadata, "raw_labels", self._same_labels(labels))
        if owners := metadata.raw_owner_references:
            force_setattr(metadata, "raw_owner_references", self._same_owners(owners))
        if len(self._texts) > _MOST_SHARED:
            self._texts.clear()

    def _same_labels(self, labels: dict[str, str]) -> dict[str, str]:
        # By hash: a tuple as the key would be larger than the labels.
        mark = hash(tuple(labels.items()))
        kept = self._labels.get(mark)
        if kept is not None and kept == labels:
            return kept
        if len(self._labels) > _MOST_SHARED:
            self._labels.clear()
        text = self._texts.setdefault
        self._labels[mark] = kept = {text(k, k): text(v, v) for k, v in labels.items()}
        return kept

    def _same_owners(self, owners: tuple[OwnerReference, ...]) -> tuple[OwnerReference, ...]:
        kept = self._owners.get(owners)
        if kept is not None:
            return kept
        if len(self._owners) > _MOST_SHARED:
            self._owners.clear()
        text = self._texts.setdefault
        for owner in owners:
            kind, version = owner.kind, owner.api_version
            force_setattr(owner, "kind", text(kind, kind))
            force_setattr(owner, "api_version", text(version, version))
        self._owners[owners] = owners
        return owners
