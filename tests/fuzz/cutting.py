"""Cut bytes into pieces, each input always in the same ways."""

from __future__ import annotations

import itertools
import random
import zlib
from collections.abc import Iterator

__all__ = ["chance", "ways"]

_PIECES = 300


def chance(data: bytes) -> random.Random:
    """Return chance that only depends on ``data``."""
    return random.Random(zlib.crc32(data))


def ways(data: bytes) -> Iterator[list[bytes]]:
    """Yield ways to cut ``data``: at a few places, and (if it is short) at every byte."""
    rand = chance(data)
    edges = [0, *sorted(rand.randint(0, len(data)) for _ in range(rand.randint(1, 6))), len(data)]
    yield [data[start:end] for start, end in itertools.pairwise(edges)]
    size = 1 + len(data) // _PIECES
    yield [data[start : start + size] for start in range(0, len(data), size)]
