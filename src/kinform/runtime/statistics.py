"""What controllers count: outcomes and durations, as client-go and controller-runtime count them.

The meters are written to on the hot path and do next to nothing there; what they have counted is
read as frozen figures, by metrics and by people. All of them belong to one event loop's thread.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import Final, final

from kinform.workqueue.metrics import QueueStatistics

__all__ = [
    "RECONCILE_BUCKETS",
    "WORKQUEUE_BUCKETS",
    "ControllerMeter",
    "ControllerStatistics",
    "Histogram",
    "HistogramSnapshot",
    "Outcome",
    "QueueMeter",
]

WORKQUEUE_BUCKETS: Final[tuple[float, ...]] = (
    1e-08, 1e-07, 1e-06, 1e-05, 0.0001, 0.001, 0.01, 0.1, 1.0, 10.0,
)  # fmt: skip
"""Client-go's, in seconds: ten of them, from 10 ns to 10 s."""

RECONCILE_BUCKETS: Final[tuple[float, ...]] = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.5, 5.0, 7.0, 10.0, 20.0, 30.0,
    60.0,
)  # fmt: skip
"""18 of controller-runtime's 40, in seconds: enough for any quantile, and half the series."""


class Outcome(StrEnum):
    """How a reconcile ended."""

    SUCCESS = "success"
    REQUEUE_AFTER = "requeue_after"
    """It went well, and asked to be called again."""
    ERROR = "error"
    """It raised, and is tried again."""
    TERMINAL = "terminal"
    """It raised `TerminalError`: it is not tried again."""
    TIMEOUT = "timeout"
    """It took too long, and is tried again."""
    CANCELLED = "cancelled"
    """The controller was stopped meanwhile: that says nothing about the reconcile."""


@final
@dataclass(frozen=True, slots=True)
class HistogramSnapshot:
    """What a `Histogram` had counted at one moment."""

    buckets: tuple[tuple[float, int], ...]
    """Upper bounds, each with how many values were not above it; what was above all is in
    ``count`` alone."""
    count: int
    sum: float


@final
class Histogram:
    """Counts values by size, in fixed buckets.

    Args:
        bounds: the upper bounds, which belong to their buckets; in ascending order.

    Raises:
        ValueError: they are not.
    """

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        if any(left >= right for left, right in pairwise(bounds)):
            raise ValueError(f"bounds are {list(bounds)}; expected each above the one before")
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(bounds) + 1)  # the last one: above all bounds
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def snapshot(self) -> HistogramSnapshot:
        """Return what was counted so far."""
        *within, total = accumulate(self._counts)
        return HistogramSnapshot(
            tuple(zip(self._bounds, within, strict=True)), count=total, sum=self._sum
        )


@final
class QueueMeter:
    """Counts what one work queue tells it: the ``metrics=`` of a `WorkQueue`."""

    __slots__ = ("_queue_duration", "_work_duration", "adds", "retries")

    def __init__(self) -> None:
        self.adds: int = 0
        self.retries: int = 0
        self._queue_duration = Histogram(WORKQUEUE_BUCKETS)
        self._work_duration = Histogram(WORKQUEUE_BUCKETS)

    # The depth is read from `WorkQueue.statistics` when somebody wants to know.

    def added(self, *, depth: int) -> None:  # noqa: ARG002 - as of the protocol
        """Count a key that was added."""
        self.adds += 1

    def started(self, *, depth: int, waited: float) -> None:  # noqa: ARG002 - as of the protocol
        """Count how long a key has waited."""
        self._queue_duration.observe(waited)

    def finished(self, *, depth: int, took: float) -> None:  # noqa: ARG002 - as of the protocol
        """Count how long a key was worked on."""
        self._work_duration.observe(took)

    def retried(self) -> None:
        """Count a key that was added for later."""
        self.retries += 1

    @property
    def queue_duration(self) -> HistogramSnapshot:
        """How long keys have waited."""
        return self._queue_duration.snapshot()

    @property
    def work_duration(self) -> HistogramSnapshot:
        """How long keys were worked on."""
        return self._work_duration.snapshot()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerStatistics:
    """How a controller stands, and what it has done so far."""

    name: str
    workers: int
    """How many reconciles may run at once."""
    active: int
    """How many run."""
    outcomes: Mapping[Outcome, int]
    """How reconciles ended; every outcome is there."""
    duration: HistogramSnapshot
    """How long reconciles took, but for those that a stop cut short."""
    queue: QueueStatistics
    queue_adds: int
    queue_retries: int
    queue_duration: HistogramSnapshot
    """How long keys have waited."""
    work_duration: HistogramSnapshot
    """How long keys were worked on."""
    unexpected_ends: int = 0
    """How often a worker or a source ended though nothing stopped it."""


@final
class ControllerMeter:
    """Counts what one controller does. ``queue`` is for its work queue.

    Every `begin` is followed by one `end`, whatever happens in between.
    """

    __slots__ = ("_duration", "_outcomes", "active", "queue")

    def __init__(self) -> None:
        self.queue: Final = QueueMeter()
        self.active: int = 0
        self._outcomes = dict.fromkeys(Outcome, 0)
        self._duration = Histogram(RECONCILE_BUCKETS)

    def begin(self) -> None:
        """Note that a reconcile begins."""
        self.active += 1

    def end(self, outcome: Outcome, seconds: float) -> None:
        """Note that a reconcile ended, ``seconds`` after it began."""
        self.active -= 1
        self._outcomes[outcome] += 1
        if outcome is not Outcome.CANCELLED:  # how long it would have taken, nobody knows
            self._duration.observe(seconds)

    def statistics(
        self, *, name: str, workers: int, queue: QueueStatistics, unexpected_ends: int = 0
    ) -> ControllerStatistics:
        """Return the figures of this moment."""
        return ControllerStatistics(
            name=name,
            workers=workers,
            active=self.active,
            outcomes=MappingProxyType(dict(self._outcomes)),
            duration=self._duration.snapshot(),
            queue=queue,
            queue_adds=self.queue.adds,
            queue_retries=self.queue.retries,
            queue_duration=self.queue.queue_duration,
            work_duration=self.queue.work_duration,
            unexpected_ends=unexpected_ends,
        )
