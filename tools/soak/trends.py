"""Trend of a figure over time: the Theil-Sen slope, with a confidence interval by bootstrap.

A median of slopes is robust against the spikes of a garbage collector. The slope is that of the
medians of bins, because neighbouring samples are correlated, and bins are less so.
"""

from __future__ import annotations

import itertools
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, final

__all__ = ["Trend", "trend_of"]

Point: TypeAlias = tuple[float, float]

_BINS: Final = 60
_ROUNDS: Final = 400
_WARM_UP: Final = 0.2
_HOUR: Final = 3600.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """The change of a value per hour, with 95 % confidence between ``low`` and ``high``."""

    slope: float
    low: float
    high: float
    hours: float
    """The observed time, without the warm-up."""

    def grows(self, *, per_hour: float, resolution: float) -> bool:
        """Return whether the value grew by more than the allowed slope and by more than noise.

        ``resolution`` is the allowed difference between start and end of any run: within
        minutes, a slope says little.
        """
        return self.low > max(per_hour, resolution / self.hours)


def trend_of(
    points: Sequence[Point], *, warm_up: float = 0.0, shortest: float = 0.0, seed: int = 0
) -> Trend | None:
    """Return the trend of (seconds, figure), without the first fifth, and ``warm_up`` at least.

    None: what is left is too little to tell, or less than ``shortest`` seconds.
    """
    settled = [point for point in points[int(len(points) * _WARM_UP) :] if point[0] >= warm_up]
    binned = _binned(settled)
    if len(binned) < 8 or settled[-1][0] - settled[0][0] < shortest:
        return None
    rng = random.Random(seed)
    slopes = sorted(_slope(rng.choices(binned, k=len(binned))) for _ in range(_ROUNDS))
    return Trend(
        slope=_slope(binned) * _HOUR,
        low=slopes[int(_ROUNDS * 0.025)] * _HOUR,
        high=slopes[int(_ROUNDS * 0.975)] * _HOUR,
        hours=(settled[-1][0] - settled[0][0]) / _HOUR,
    )


def _binned(points: Sequence[Point]) -> list[Point]:
    size = max(1, -(-len(points) // _BINS))
    return [
        (
            statistics.median(at for at, _ in some),
            statistics.median(value for _, value in some),
        )
        for some in (points[start : start + size] for start in range(0, len(points), size))
    ]


def _slope(points: Sequence[Point]) -> float:
    slopes = [
        (value - before) / (at - since)
        for (since, before), (at, value) in itertools.combinations(sorted(points), 2)
        if at > since
    ]
    return statistics.median(slopes) if slopes else 0.0
