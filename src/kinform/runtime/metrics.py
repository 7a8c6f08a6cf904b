"""Prometheus metrics of a manager, under client-go's and controller-runtime's names.

Nothing is counted here: a scrape reads the statistics of the source and formats them. That needs
the extra ``kinform[metrics]``; importing this module does not.

The number of series is bounded: labels are the names of controllers and of the lease, and the
labels of informers, never names of other objects. Of more than 200 controllers or informers, the
rest is added up as ``other``; so are those that share a name. The tables below are pure: no metrics
library is needed to read them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar, final

from kinform.cache.informer_statistics import InformerStatistics
from kinform.errors import UsageError
from kinform.runtime.controller.statistics import ControllerStatistics, HistogramSnapshot, Outcome
from kinform.runtime.events.recorder import RecorderStatistics

if TYPE_CHECKING:
    from prometheus_client import Metric
    from prometheus_client.registry import Collector as PrometheusCollector


__all__ = [
    "Collector",
    "ElectionFigures",
    "MetricsSource",
    "exposition",
]

S = TypeVar("S")


class ElectionFigures(Protocol):
    """The statistics of a leader election that become metrics."""

    @property
    def lease(self) -> str:
        """The name of the lease."""
        ...

    @property
    def is_leader(self) -> bool:
        """Whether this process holds the lease."""
        ...

    @property
    def slow_paths(self) -> int:
        """The number of renewals that had to read the lease first."""
        ...


@final
@dataclass(frozen=True, slots=True)
class Figure(Generic[S]):
    """One metric: its name, and the function that reads it. None: there is no value."""

    name: str
    text: str
    of: Callable[[S], float | None]
    merge: Callable[[Iterable[float]], float] = sum
    is_moment: bool = False
    """The value is a time of the event loop, and is exported as its age."""

    @property
    def is_counter(self) -> bool:
        """Whether the value only grows: its name ends in ``_total``."""
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


MAX_NAMES: Final = 200
"""The limit of controllers, and of informers, that have series of their own."""
SCRAPE_TIMEOUT: Final = 5.0
"""Seconds that a scrape in another thread waits for the event loop."""


class MetricsSource(Protocol):
    """The source of the statistics. It is called on the event loop, at every scrape."""

    def controllers(self) -> Iterable[ControllerStatistics]:
        """Return the statistics of every controller."""
        ...

    def informers(self) -> Iterable[InformerStatistics]:
        """Return the statistics of every informer."""
        ...

    def election(self) -> ElectionFigures | None:
        """Return the statistics of the leader election, if there is one."""
        ...

    def recorders(self) -> Iterable[RecorderStatistics]:
        """Return the statistics of every event recorder; they are added up."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Figures:
    """All statistics of one moment."""

    controllers: tuple[ControllerStatistics, ...] = ()
    informers: tuple[InformerStatistics, ...] = ()
    election: ElectionFigures | None = None
    recorders: tuple[RecorderStatistics, ...] = ()
    now: float = 0.0


@final
class Collector:
    """Makes the metrics of ``source``, to be registered where Prometheus' client collects.

    It asks on the event loop on which it was made; a scrape in another thread waits for that.

    Raises:
        UsageError: ``kinform[metrics]`` is not installed, or no event loop runs.
    """

    def __init__(self, source: MetricsSource) -> None:
        _check_library()
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            raise UsageError("make the collector where the event loop runs") from None
        self._source = source

    def describe(self) -> Iterable[Metric]:
        """Return all metrics without values: a registry refuses to have them twice."""
        return list(_families(_Figures()))

    def collect(self) -> Iterable[Metric]:
        """Return all metrics, as they are now.

        Raises:
            TimeoutError: the event loop does not turn.
        """
        if _is_running(self._loop):
            return list(_families(self._ask()))
        answer: Future[_Figures] = Future()
        self._loop.call_soon_threadsafe(self._tell, answer)
        return list(
            _families(answer.result(SCRAPE_TIMEOUT))
        )  # the larger part, and not on the loop

    def _ask(self) -> _Figures:
        source = self._source
        return _Figures(
            controllers=tuple(source.controllers()),
            informers=tuple(source.informers()),
            election=source.election(),
            recorders=tuple(source.recorders()),
            now=self._loop.time(),
        )

    def _tell(self, answer: Future[_Figures]) -> None:
        try:
            answer.set_result(self._ask())
        except Exception as exc:  # noqa: BLE001 - raised again in the thread that waits
            answer.set_exception(exc)


def exposition(
    source: MetricsSource, *, registry: PrometheusCollector | None = None
) -> Callable[[str], tuple[str, bytes]]:
    """Return what makes the answer of ``/metrics``: the metrics of ``source``, and ``registry``'s.

    It takes an ``Accept`` header and returns a content type and a body, as plain text or as
    OpenMetrics. It may be called in any thread; in another than the event loop's is best.

    Args:
        source: is asked on the event loop, where this must be called.
        registry: other metrics to include; by default Prometheus' own: those of the process, and
            all that the program registered. Metrics with the name of one of ours are left out.

    Raises:
        UsageError: ``kinform[metrics]`` is not installed, or no event loop runs.
    """
    ours = Collector(source)
    from prometheus_client import REGISTRY
    from prometheus_client.exposition import choose_encoder

    joined = _Joined(ours, REGISTRY if registry is None else registry)

    def expose(accept: str) -> tuple[str, bytes]:
        try:
            encode, content_type = choose_encoder(accept)
        except (TypeError, ValueError):  # a version that is not a number
            encode, content_type = choose_encoder("")
        return content_type, encode(joined)

    return expose


@final
class _Joined:
    """Our metrics and those of others."""

    def __init__(self, ours: Collector, others: PrometheusCollector) -> None:
        self._ours = ours
        self._others = others

    def collect(self) -> Iterator[Metric]:
        taken = set[str]()
        for metric in self._ours.collect():
            taken.add(metric.name)
            yield metric
        for metric in self._others.collect():
            if metric.name not in taken:
                yield metric


def _check_library() -> None:
    try:
        import_module("prometheus_client")
    except ImportError as exc:
        raise UsageError(
            "metrics need a library that is not installed: pip install kinform[metrics]"
        ) from exc


def _is_running(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


def _families(figures: _Figures) -> Iterator[Metric]:
    by_controller = _by_name(figures.controllers, lambda one: one.name)
    by_informer = _by_name(figures.informers, lambda one: one.label)
    election, recorders = figures.election, figures.recorders
    by_lease = {} if election is None else {election.lease: [election]}
    for figure in QUEUES:
        yield _family(figure, ["name", "controller"], by_controller)
    for wait in WAITS:
        yield _histogram(wait, ["name", "controller"], by_controller)
    yield _results(by_controller)
    for figure in CONTROLLERS:
        yield _family(figure, ["controller"], by_controller)
    for duration in DURATIONS:
        yield _histogram(duration, ["controller"], by_controller)
    for informer in INFORMERS:
        yield _family(informer, ["informer"], by_informer, now=figures.now)
    for lease in ELECTION:
        yield _family(lease, ["name"], by_lease)
    for recorder in RECORDERS:
        yield _family(recorder, [], {"": list(recorders)} if recorders else {})
    yield _dropped(recorders)


def _by_name(figures: Iterable[S], name_of: Callable[[S], str]) -> dict[str, list[S]]:
    groups = dict[str, list[S]]()
    for one in figures:
        name = name_of(one)
        name = name if name in groups or len(groups) < MAX_NAMES else "other"
        groups.setdefault(name, []).append(one)
    return groups


def _family(
    figure: Figure[S],
    labels: Sequence[str],
    groups: Mapping[str, list[S]],
    *,
    now: float = 0.0,
) -> Metric:
    """Return one metric; all its labels have the same value, as controller-runtime has it."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    kind = CounterMetricFamily if figure.is_counter else GaugeMetricFamily
    family = kind(figure.name, figure.text, labels=labels)
    for name, group in groups.items():
        values = [value for one in group if (value := figure.of(one)) is not None]
        if values:
            value = float(figure.merge(values))
            family.add_metric([name] * len(labels), now - value if figure.is_moment else value)
    return family


def _results(groups: Mapping[str, list[ControllerStatistics]]) -> Metric:
    from prometheus_client.core import CounterMetricFamily

    name, text = "controller_runtime_reconcile_total", "Reconciles that ended, by result"
    family = CounterMetricFamily(name, text, labels=["controller", "result"])
    for controller, group in groups.items():
        for result, outcomes in RESULTS.items():
            family.add_metric([controller, result], sum(map(ended(*outcomes), group)))
    return family


def _dropped(recorders: Sequence[RecorderStatistics]) -> Metric:
    from prometheus_client.core import CounterMetricFamily

    name, text = "kinform_events_dropped_total", "Events that were not written, by reason"
    family = CounterMetricFamily(name, text, labels=["reason"])
    for reason, of in DROPPED.items() if recorders else ():
        family.add_metric([reason], sum(map(of, recorders)))
    return family


def _histogram(
    distribution: Distribution,
    labels: Sequence[str],
    groups: Mapping[str, list[ControllerStatistics]],
) -> Metric:
    from prometheus_client.core import HistogramMetricFamily

    family = HistogramMetricFamily(distribution.name, distribution.text, labels=labels)
    for name, group in groups.items():
        found = [distribution.of(one) for one in group]
        buckets = [(repr(bound), count) for bound, count in _added_up(found)]
        buckets.append(("+Inf", sum(one.count for one in found)))
        total = sum(one.sum for one in found)
        family.add_metric([name] * len(labels), buckets, sum_value=total)
    return family


def _added_up(found: Sequence[HistogramSnapshot]) -> Iterator[tuple[float, int]]:
    for column in zip(*(one.buckets for one in found), strict=True):  # all have the same bounds
        yield column[0][0], sum(count for _, count in column)
