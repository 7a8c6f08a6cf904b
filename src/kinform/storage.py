"""Storage forms: how a cache keeps its objects' bytes and metadata small.

``"raw"`` keeps the bytes as they came. ``"zstd"`` (extra ``kinform[zstd]``) compresses them,
object by object, with a dictionary trained on others of the kind: a pod of 6.5 KB becomes 0.7 KB,
and each look into it takes some microseconds more. In both forms `Sharing` keeps one copy of what
many metadata hold. When all this happens is decided in `kinform.cache.compaction`.

The library is zstandard: it trains and digests dictionaries, lets other threads run meanwhile,
and has wheels for every Python we support. It is imported here alone, and only when needed.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, final

from msgspec.structs import force_setattr

from kinform.errors import DecodeError, UsageError
from kinform.meta import ObjectMeta, OwnerReference
from kinform.packed import Packed
from kinform.sansio.heads import Head

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
"""How a cache keeps the bytes of its objects."""

# Of pods these make 616 bytes in 50 µs; level 3 and a quarter of the dictionary 690 in 20 µs.
_LEVEL: Final = 5
_DICTIONARY: Final = 128 * 1024
_TYPICAL: Final = 8 * 1024
_MOST_SHARED: Final = 16 * 1024
_DAMAGED: Final = "the object's packed bytes cannot be decompressed"


def load_library() -> None:
    """Make sure that objects can be packed.

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
    """Return a dictionary of what ``samples`` have in common; ``b""`` if that is too little.

    Takes a tenth of a second for four megabytes: not for the event loop.
    """
    import zstandard

    size = min(_DICTIONARY, sum(map(len, samples)) // 16)
    # Objects have long parts in common. The library could find the best length by itself, as
    # good as this one, in seven times the time.
    try:
        return zstandard.train_dictionary(size, list(samples), k=2048, d=8).as_bytes()
    except (ValueError, zstandard.ZstdError):  # too few, too small, or all the same
        return b""


@final
class Codec:
    """What is needed to read packed objects: the dictionary, and a decompressor per thread.

    Shared by all objects that were packed with it, and alive as long as one of them is. Each
    thread that reads keeps a decompressor of some 100 KB for as long as both live: one that is
    used by two threads at a time would crash the process.

    Args:
        dictionary: what `train` returned.
    """

    __slots__ = ("_dictionary", "_error", "_local")

    def __init__(self, dictionary: bytes = b"") -> None:
        import zstandard

        self._error = zstandard.ZstdError
        self._dictionary = zstandard.ZstdCompressionDict(dictionary) if dictionary else None
        self._local = threading.local()
        # The first use digests the dictionary, for all threads: let no two be the first.
        self.decompress(zstandard.ZstdCompressor(dict_data=self._dictionary).compress(b"{}"))

    def decompress(self, data: bytes) -> bytes:
        """Return what was compressed to ``data``.

        Raises:
            DecodeError: the data is damaged.
        """
        try:
            decompressor: zstandard.ZstdDecompressor = self._local.decompressor
        except AttributeError:
            decompressor = self._local.decompressor = self._decompressor()
        # The size stands in front and is believed: damaged, it may be beyond all memory, or
        # nothing, which no object is.
        try:
            if raw := decompressor.decompress(data):
                return raw
        except (self._error, MemoryError) as exc:
            raise DecodeError(_DAMAGED) from exc
        raise DecodeError(_DAMAGED)

    def packer(self) -> Packer:
        """Return what packs objects for this codec. Takes a millisecond."""
        return Packer(self, b"" if self._dictionary is None else self._dictionary.as_bytes())

    def _decompressor(self) -> zstandard.ZstdDecompressor:
        import zstandard

        return zstandard.ZstdDecompressor(dict_data=self._dictionary)


@final
class Packer:
    """Compresses objects, each by itself; from any thread. Made by `Codec.packer`.

    Everything is packed, also what does not become smaller: nobody tries it again then. Needs
    two megabytes, so one does not keep it longer than needed.
    """

    __slots__ = ("_compressor", "_lock", "codec", "objects", "packed_bytes", "raw_bytes")

    codec: Codec
    """What reads them."""
    objects: int
    """How many were packed so far."""
    raw_bytes: int
    """Their size before."""
    packed_bytes: int
    """Their size after."""

    def __init__(self, codec: Codec, dictionary: bytes) -> None:
        import zstandard

        # The checksum makes sure that damage, or a wrong dictionary, does not pass for data.
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
        # One for all threads: it is large, and there is no hurry.
        self._lock = threading.Lock()
        self.objects = self.raw_bytes = self.packed_bytes = 0

    def pack(self, raw: bytes) -> Packed:
        """Return ``raw``, which must not be empty, compressed."""
        with self._lock:
            # A copy: what the compressor returns may keep its much larger buffer.
            data = bytes(memoryview(self._compressor.compress(raw)))
            self.objects += 1
            self.raw_bytes += len(raw)
            self.packed_bytes += len(data)
        return Packed(self.codec, data)


def inherit(old: ObjectMeta, new: ObjectMeta) -> None:
    """Let ``new`` hold what it has in common with ``old``, metadata of the same key, only once.

    Most changes change none of it, so a cache stays as small as its first list has made it.
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
    """One copy of what the metadata of many objects hold: labels, owners, namespaces, kinds.

    What is equal is replaced by what was seen before, in place. Meant for metadata that was just
    read: freeing its strings one by one later would leave holes that nobody can use. Remembers
    the last thousands of distinct things, so it needs little and keeps nothing alive for long.
    """

    __slots__ = ("_labels", "_owners", "_texts")

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._labels: dict[int, dict[str, str]] = {}
        self._owners: dict[tuple[OwnerReference, ...], tuple[OwnerReference, ...]] = {}

    def head(self, head: Head) -> None:
        """Share what is in ``head``, its metadata included."""
        text = self._texts.setdefault
        kind, version = head.kind, head.api_version
        if (kept := text(kind, kind)) is not kind:
            force_setattr(head, "kind", kept)
        if (kept := text(version, version)) is not version:
            force_setattr(head, "api_version", kept)
        self.metadata(head.metadata)

    def metadata(self, metadata: ObjectMeta) -> None:
        """Share what is in ``metadata``."""
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
