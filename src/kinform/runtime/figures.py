"""Which metrics there are: their names, what they mean, and where in the figures they are found.

Pure: no metrics library is needed to read this table. Names are client-go's and
controller-runtime's where they have one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar, final

from kinform.cache.statistics import InformerStatistics
from kinform.runtime.recorder import RecorderStatistics
from kinform.runtime.statistics import ControllerStatistics, HistogramSnapshot, Outcome

__all__ = [
    "CONTROLLERS",
    "DROPPED",
    "DURATIONS",
    "ELECTION",
    "INFORMERS",
    "QUEUES",
    "RECORDERS",
    "RESULTS",
    "WAITS",
    "Distribution",
    "ElectionFigures",
    "Figure",
    "ended",
]

S = TypeVar("S")


class ElectionFigures(Protocol):
    """What is told of a leader election."""

    @property
    def lease(self) -> str:
        """The name of the lease."""
        ...

    @property
    def is_leader(self) -> bool:
        """Whether this process has it."""
        ...

    @property
    def slow_paths(self) -> int:
        """How often the lease had to be read before it could be renewed."""
        ...


@final
@dataclass(frozen=True, slots=True)
class Figure(Generic[S]):
    """One metric: how it is called, and how it is read. None: there is nothing to tell."""

    name: str
    text: str
    of: Callable[[S], float | None]
    merge: Callable[[Iterable[float]], float] = sum
    is_moment: bool = False
    """It is a time of the event loop, and told as how long ago that is."""

    @property
    def is_counter(self) -> bool:
        """Whether it only grows, which its name says."""
        return self.name.endswith("_total")


@final
@dataclass(frozen=True, slots=True)
class Distribution:
    """One histogram of a controller."""

    name: str
    text: str
    of: Callable[[ControllerStatistics], HistogramSnapshot]


RESULTS: Final[dict[str, tuple[Outcome, ...]]] = {
    "success": (Outcome.SUCCESS,),
    "requeue_after": (Outcome.REQUEUE_AFTER,),
    "error": (Outcome.ERROR, Outcome.TERMINAL, Outcome.TIMEOUT),
}
"""Controller-runtime's results; what a stop cut short is not among them."""


def ended(*outcomes: Outcome) -> Callable[[ControllerStatistics], float]:
    """Return what counts the reconciles that ended in one of these ways."""
    return lambda one: sum(one.outcomes[outcome] for outcome in outcomes)


QUEUES: Final[tuple[Figure[ControllerStatistics], ...]] = (
    Figure("workqueue_depth", "Keys that wait to be taken", lambda one: one.queue.depth),
    Figure("workqueue_adds_total", "Keys that were added", lambda one: one.queue_adds),
    Figure(
        "workqueue_retries_total", "Keys that were added for later", lambda one: one.queue_retries
    ),
    Figure(
        "workqueue_unfinished_work_seconds",
        "How long all keys that are worked on have been, together",
        lambda one: one.queue.unfinished_work,
    ),
    Figure(
        "workqueue_longest_running_processor_seconds",
        "How long the key that is worked on longest has been",
        lambda one: one.queue.longest_running,
        max,
    ),
    Figure(
        "kinform_workqueue_oldest_waiting_seconds",
        "How long the key that waits longest has waited",
        lambda one: one.queue.oldest_waiting,
        max,
    ),
    Figure(
        "kinform_workqueue_delayed", "Keys that are to be added later", lambda o: o.queue.delayed
    ),
)
WAITS: Final = (
    Distribution(
        "workqueue_queue_duration_seconds",
        "How long keys waited before they were taken",
        lambda one: one.queue_duration,
    ),
    Distribution(
        "workqueue_work_duration_seconds",
        "How long keys were worked on",
        lambda one: one.work_duration,
    ),
)
CONTROLLERS: Final[tuple[Figure[ControllerStatistics], ...]] = (
    Figure(
        "kinform_controller_unexpected_ends_total",
        "Workers and sources that ended though nothing stopped them",
        lambda one: one.unexpected_ends,
    ),
    Figure(
        "controller_runtime_reconcile_errors_total",
        "Reconciles that failed, terminal errors and time-outs included",
        ended(*RESULTS["error"]),
    ),
    Figure(
        "controller_runtime_terminal_reconcile_errors_total",
        "Reconciles that failed and are not tried again",
        ended(Outcome.TERMINAL),
    ),
    Figure(
        "controller_runtime_reconcile_timeouts_total",
        "Reconciles that took too long",
        ended(Outcome.TIMEOUT),
    ),
    Figure(
        "kinform_reconcile_cancelled_total",
        "Reconciles that a stop of the controller cut short",
        ended(Outcome.CANCELLED),
    ),
    Figure(
        "controller_runtime_max_concurrent_reconciles",
        "How many reconciles may run at once",
        lambda one: one.workers,
    ),
    Figure("controller_runtime_active_workers", "Reconciles that run", lambda one: one.active),
)
DURATIONS: Final = (
    Distribution(
        "controller_runtime_reconcile_time_seconds",
        "How long reconciles took",
        lambda one: one.duration,
    ),
)

INFORMERS: Final[tuple[Figure[InformerStatistics], ...]] = (
    Figure("kinform_informer_objects", "Objects in the cache", lambda one: one.objects),
    Figure(
        "kinform_informer_synced",
        "1 if the first list is in the cache",
        lambda o: o.has_synced,
        min,
    ),
    Figure(
        "kinform_informer_connected",
        "1 if a watch is open",
        lambda one: one.reflector.is_connected,
        min,
    ),
    Figure(
        "kinform_informer_seconds_since_contact",
        "Time since the server was last heard of; not there before the first time",
        lambda one: one.reflector.last_contact,
        min,
        is_moment=True,
    ),
    Figure(
        "kinform_informer_unreadable", "Objects that cannot be read", lambda one: one.unreadable
    ),
    Figure("kinform_informer_events_total", "Events of watches", lambda one: one.reflector.events),
    Figure(
        "kinform_informer_lists_total", "Lists that were begun", lambda one: one.reflector.lists
    ),
    Figure("kinform_informer_watches_total", "Watches begun", lambda one: one.reflector.watches),
    Figure(
        "kinform_informer_probes_total",
        "Requests for the server's version",
        lambda one: one.reflector.probes,
    ),
    Figure(
        "kinform_informer_failures_total",
        "Lists and watches failed",
        lambda o: o.reflector.failures,
    ),
    Figure(
        "kinform_informer_regressions_total",
        "How often the server's version went back",
        lambda one: one.reflector.regressions,
    ),
    Figure(
        "kinform_informer_unexpected_ends_total",
        "Reflectors, pumps and handlers' tasks that ended though nothing stopped them",
        lambda one: one.unexpected_ends,
    ),
    Figure(
        "kinform_informer_queue_depth", "Changes before the cache", lambda one: one.queue.waiting
    ),
    Figure(
        "kinform_handler_pending",
        "Notifications that wait for handlers",
        lambda one: sum(handler.pending for handler in one.handlers),
    ),
    Figure(
        "kinform_handler_delivered_total",
        "Notifications that handlers have dealt with",
        lambda one: sum(handler.delivered for handler in one.handlers),
    ),
    Figure(
        "kinform_handler_coalesced_total",
        "Notifications that were merged, because too many waited",
        lambda one: sum(handler.coalesced for handler in one.handlers),
    ),
    Figure(
        "kinform_handler_failures_total",
        "Handlers that raised",
        lambda one: sum(handler.errors for handler in one.handlers),
    ),
    Figure(
        "kinform_handler_slow_total",
        "Handlers that blocked the event loop",
        lambda one: sum(handler.slow for handler in one.handlers),
    ),
    Figure(
        "kinform_handler_busy_seconds",
        "How long the handler that runs longest has been running",
        lambda one: max((handler.busy_for or 0.0 for handler in one.handlers), default=0.0),
        max,
    ),
)

ELECTION: Final[tuple[Figure[ElectionFigures], ...]] = (
    Figure("leader_election_master_status", "1 if this process leads", lambda one: one.is_leader),
    Figure(
        "leader_election_slowpath_total", "Renewals that read first", lambda one: one.slow_paths
    ),
)


RECORDERS: Final[tuple[Figure[RecorderStatistics], ...]] = (
    Figure("kinform_events_recorded_total", "Calls of event()", lambda one: one.recorded),
    Figure("kinform_events_sent_total", "Events that were created", lambda one: one.sent),
    Figure("kinform_events_patched_total", "Events counted again", lambda one: one.patched),
    Figure("kinform_events_failed_total", "Events the server refused", lambda one: one.failed),
    Figure("kinform_events_waiting", "Events that wait to be written", lambda one: one.waiting),
)
DROPPED: Final[dict[str, Callable[[RecorderStatistics], int]]] = {
    "full": lambda one: one.dropped_full,
    "spam": lambda one: one.dropped_spam,
    "late": lambda one: one.dropped_late,
}
"""Why events are not written."""
