"""Statistics of controllers: outcomes and durations, as in client-go and controller-runtime.

The meters are updated on the hot path, at low cost; metrics and people read them as frozen
statistics. All of them belong to one event loop's thread.
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
    """The outcome of a reconcile."""

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
    """The counts of a `Histogram` at one moment."""

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
        """Return the current counts."""
        *within, total = accumulate(self._counts)
        return HistogramSnapshot(
            tuple(zip(self._bounds, within, strict=True)), count=total, sum=self._sum
        )


@final
class QueueMeter:
    """Counts the events of one work queue: the ``metrics=`` of a `WorkQueue`."""

    __slots__ = ("_queue_duration", "_work_duration", "adds", "retries")

    def __init__(self) -> None:
        self.adds: int = 0
        self.retries: int = 0
        self._queue_duration = Histogram(WORKQUEUE_BUCKETS)
        self._work_duration = Histogram(WORKQUEUE_BUCKETS)

    # The depth is not stored: `WorkQueue.statistics` has it.

    def added(self, *, depth: int) -> None:  # noqa: ARG002 - part of the protocol
        """Count a key that was added."""
        self.adds += 1

    def started(self, *, depth: int, waited: float) -> None:  # noqa: ARG002 - part of the protocol
        """Count how long a key has waited."""
        self._queue_duration.observe(waited)

    def finished(self, *, depth: int, took: float) -> None:  # noqa: ARG002 - part of the protocol
        """Count how long a key was worked on."""
        self._work_duration.observe(took)

    def retried(self) -> None:
        """Count a key that was added for later."""
        self.retries += 1

    @property
    def queue_duration(self) -> HistogramSnapshot:
        """How long keys waited in the queue, as a histogram."""
        return self._queue_duration.snapshot()

    @property
    def work_duration(self) -> HistogramSnapshot:
        """How long the processing of keys took, as a histogram."""
        return self._work_duration.snapshot()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerStatistics:
    """The state of a controller, and its counters."""

    name: str
    workers: int
    """The limit of concurrent reconciles."""
    active: int
    """The reconciles that run now."""
    outcomes: Mapping[Outcome, int]
    """The number of reconciles by outcome; every outcome is present."""
    duration: HistogramSnapshot
    """The durations of reconciles, except those that a stop interrupted."""
    queue: QueueStatistics
    queue_adds: int
    queue_retries: int
    queue_duration: HistogramSnapshot
    """How long keys waited in the queue, as a histogram."""
    work_duration: HistogramSnapshot
    """How long the processing of keys took, as a histogram."""
    unexpected_ends: int = 0
    """The number of workers and sources that ended unexpectedly."""


@final
class ControllerMeter:
    """Counts the reconciles of one controller. ``queue`` is for its work queue.

    Every `begin` is followed by exactly one `end`.
    """

    __slots__ = ("_duration", "_outcomes", "active", "queue")

    def __init__(self) -> None:
        self.queue: Final = QueueMeter()
        self.active: int = 0
        self._outcomes = dict.fromkeys(Outcome, 0)
        self._duration = Histogram(RECONCILE_BUCKETS)

    def begin(self) -> None:
        """Count a reconcile that begins."""
        self.active += 1

    def end(self, outcome: Outcome, seconds: float) -> None:
        """Count a reconcile that ended, ``seconds`` after it began."""
        self.active -= 1
        self._outcomes[outcome] += 1
        if outcome is not Outcome.CANCELLED:  # the full duration is unknown
            self._duration.observe(seconds)

    def statistics(
        self, *, name: str, workers: int, queue: QueueStatistics, unexpected_ends: int = 0
    ) -> ControllerStatistics:
        """Return the current statistics."""
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
