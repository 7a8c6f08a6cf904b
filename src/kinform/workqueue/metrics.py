"""Metrics of a work queue: client-go's, pushed to a hook or read as statistics.

================================== ================================================
client-go                          here
================================== ================================================
depth                              ``depth`` of every call
adds_total                         calls of `QueueMetrics.added`
queue_duration_seconds             ``waited`` of `QueueMetrics.started`
work_duration_seconds              ``took`` of `QueueMetrics.finished`
retries_total                      calls of `QueueMetrics.retried`
unfinished_work_seconds            `QueueStatistics.unfinished_work`
longest_running_processor_seconds  `QueueStatistics.longest_running`
================================== ================================================

The last two change while nothing happens. Client-go updates them by a ticker; here
`WorkQueue.statistics` computes them when it is called.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol, TypeVar, final

__all__ = ["QueueMetrics", "QueueStatistics"]

K = TypeVar("K", bound=Hashable)


class QueueMetrics(Protocol):
    """A hook that is called for each event in one queue. Methods must be quick and not raise."""

    def added(self, *, depth: int) -> None:
        """A key was added that was not yet waiting or marked to be processed again."""
        ...

    def started(self, *, depth: int, waited: float) -> None:
        """A key was taken, ``waited`` seconds after it was added first."""
        ...

    def finished(self, *, depth: int, took: float) -> None:
        """A key is done, ``took`` seconds after it was taken."""
        ...

    def retried(self) -> None:
        """A key was added for later, by a delay or a rate limiter."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatistics:
    """Statistics of one work queue at one moment.

    Times are 0 for a queue without a metrics hook: it does not read the clock.
    """

    name: str
    depth: int
    """Keys that wait to be taken."""
    processing: int
    """Keys that are worked on."""
    delayed: int
    """Keys that are to be added later."""
    oldest_waiting: float
    """The longest time that a key has been waiting."""
    unfinished_work: float
    """The total time that the keys in processing have been processed."""
    longest_running: float
    """The longest time that a key has been processed."""
