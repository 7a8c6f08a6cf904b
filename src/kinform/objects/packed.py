"""`Packed`: the bytes of an object, perhaps compressed, and its annotations, decoded on access.

Used by `kinform.sansio`, which decodes the metadata of objects, and by `kinform.objects.storage`,
which packs objects: both replace the annotations in the metadata by this.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import Protocol, cast, final

import msgspec
from msgspec.structs import force_setattr

from kinform.meta import ObjectMeta
from kinform.sansio.wire.heads import read_head

__all__ = ["Decompressor", "Packed", "cool"]


class Decompressor(Protocol):
    """Decompresses packed bytes: a `kinform.objects.storage.Codec`."""

    def decompress(self, data: bytes) -> bytes:
        """Return the decompressed ``data``.

        Raises:
            DecodeError: the data is corrupted.
        """
        ...


# gc=False: a codec has no reference to packed objects, so there are no cycles.
@final
class Packed(msgspec.Struct, frozen=True, gc=False, eq=False):  # noqa: PLW1641 - no hash, as dict
    """The bytes of one object, compressed; as a mapping, the object's annotations.

    Decoded annotations would need more memory than the packed object, and often they repeat it:
    ``kubectl apply`` writes the whole object into one. So `cool` replaces them by this, which
    needs no more memory; each access is then a pass over the bytes.
    """

    # Never a reference to the object itself: metadata holds this and is not tracked by the garbage
    # collector, so such a cycle would never be freed.
    codec: Decompressor | None
    """``None`` where the bytes are not compressed yet."""
    data: bytes

    def unpack(self) -> bytes:
        """Return the original bytes; if they are compressed, a new copy each time.

        Raises:
            DecodeError: the data is corrupted.
        """
        return self.data if self.codec is None else self.codec.decompress(self.data)

    def __repr__(self) -> str:
        return f"<Packed {len(self.data)} bytes>"

    def _annotations(self) -> dict[str, str]:
        return dict(read_head(self.unpack()).metadata.annotations)

    def __getitem__(self, key: str) -> str:
        return self._annotations()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._annotations())

    def __len__(self) -> int:
        return len(self._annotations())

    def __bool__(self) -> bool:
        return True

    def __contains__(self, key: object) -> bool:
        return key in self._annotations()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        return self._annotations() == dict(cast("Mapping[str, str]", other))

    def get(self, key: str, default: object = None) -> object:
        """Return one annotation, or ``default``."""
        return self._annotations().get(key, default)

    def keys(self) -> KeysView[str]:
        """Return the names, in the server's order."""
        return self._annotations().keys()

    def values(self) -> ValuesView[str]:
        """Return the values, in the server's order."""
        return self._annotations().values()

    def items(self) -> ItemsView[str, str]:
        """Return names and values, in the server's order."""
        return self._annotations().items()


# Registered, not inherited: a Struct has its own metaclass.
cast("ABCMeta", Mapping).register(Packed)


def cool(metadata: ObjectMeta, source: Packed) -> None:
    """Replace the annotations in ``metadata`` by ``source``, the bytes of its object."""
    if metadata.raw_annotations:
        force_setattr(metadata, "raw_annotations", source)
