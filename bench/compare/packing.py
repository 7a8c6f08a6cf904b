"""The size of pods compressed by kinform, depending on the training data of its dictionary.

A cache trains its dictionary on some of its own objects, which is what users get. To show that
this is not the best case of this corpus, the same pods are compressed with a dictionary that has
seen none of them, and with one from another cluster with other applications.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from bench import corpus
from kinform.objects.storage import Codec, train

__all__ = ["packed_sizes"]

_SAMPLES: Final = 2_000
_MEASURED: Final = 2_000
_OTHER_SEED: Final = 2


def packed_sizes(source: Path) -> Mapping[str, float]:
    """Return bytes per pod of ``source``, by where the dictionary is from."""
    every = 3  # of a small corpus, what is learned from is not what is packed
    records = list(islice(corpus.records(source), every * (_SAMPLES + _MEASURED)))
    learned, packed = records[0::every][:_SAMPLES], records[1::every][:_MEASURED]
    others = list(islice(corpus.records(corpus.json_file(_SAMPLES, seed=_OTHER_SEED)), _SAMPLES))
    return {
        "bytes each packed, dictionary of other pods": _mean(learned, packed),
        "bytes each packed, dictionary of another cluster": _mean(others, packed),
        "bytes each packed, no dictionary": _mean((), packed),
    }


def _mean(samples: Sequence[bytes], packed: Sequence[bytes]) -> float:
    packer = Codec(train(samples) if samples else b"").packer()
    return sum(len(packer.pack(raw).data) for raw in packed) / len(packed)
