"""`Packed`: the bytes of an object in the form they are kept in, and what is read from them late.

Between `kinform.sansio`, which reads objects as they come, and `kinform.storage`, which packs
them: both leave annotations where they are, and put this in their place.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import Protocol, cast, final

import msgspec
from msgspec.structs import force_setattr

from kinform.meta import ObjectMeta
from kinform.sansio.heads import read_head

__all__ = ["Decompressor", "Packed", "cool"]


class Decompressor(Protocol):
    """What reads packed bytes: a `kinform.storage.Codec`."""

    def decompress(self, data: bytes) -> bytes:
        """Return what was compressed to ``data``.

        Raises:
            DecodeError: the data is damaged.
        """
        ...


# gc=False: a codec knows nothing of what was packed with it, so there are no cycles.
@final
class Packed(msgspec.Struct, frozen=True, gc=False, eq=False):  # noqa: PLW1641 - no hash, as dict
    """The bytes of one object, compressed; as a mapping, the object's annotations.

    Decoded annotations would outweigh the packed object, and often they repeat it: ``kubectl
    apply`` writes all of an object into one. So `cool` puts this in their place, which costs
    nothing more, and each look at them a pass over the bytes.
    """

    # Never the object itself: metadata holds this and is invisible to the garbage collector,
    # so what leads back to it would never be freed.
    codec: Decompressor | None
    """``None`` where the bytes are not compressed yet."""
    data: bytes

    def unpack(self) -> bytes:
        """Return the bytes as they were; a new copy each time.

        Raises:
            DecodeError: the data is damaged.
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


# By its name alone: a class has one metaclass, and that of structs is another one.
cast("ABCMeta", Mapping).register(Packed)


def cool(metadata: ObjectMeta, source: Packed) -> None:
    """Let the annotations in ``metadata`` be read from ``source``, its object's bytes."""
    if metadata.raw_annotations:
        force_setattr(metadata, "raw_annotations", source)
