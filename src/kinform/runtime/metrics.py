"""Prometheus metrics of a manager, under client-go's and controller-runtime's names.

Nothing is counted here: a scrape asks the source for its figures and writes them down. It needs
the extra ``kinform[metrics]``; importing this module does not.

The number of series is bounded: labels are the names of controllers and of the lease, and the
labels of informers, never names of other objects. Of more than 200 controllers or informers, the
rest is added up as ``other``; so are those that share a name. The table of metrics is
``kinform.runtime.figures``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol, TypeVar, final

from kinform.cache.statistics import InformerStatistics
from kinform.errors import UsageError
from kinform.runtime.figures import (
    CONTROLLERS,
    DROPPED,
    DURATIONS,
    ELECTION,
    INFORMERS,
    QUEUES,
    RECORDERS,
    RESULTS,
    WAITS,
    Distribution,
    ElectionFigures,
    Figure,
    ended,
)
from kinform.runtime.recorder import RecorderStatistics
from kinform.runtime.statistics import ControllerStatistics, HistogramSnapshot

if TYPE_CHECKING:
    from prometheus_client import Metric
    from prometheus_client.registry import Collector as PrometheusCollector

__all__ = ["Collector", "ElectionFigures", "MetricsSource", "exposition"]

S = TypeVar("S")

MAX_NAMES: Final = 200
"""So many controllers, and so many informers, have series of their own."""
PATIENCE: Final = 5.0
"""How long a scrape in another thread waits for the event loop."""


class MetricsSource(Protocol):
    """Whose figures are told. It is asked on the event loop, at every scrape."""

    def controllers(self) -> Iterable[ControllerStatistics]:
        """Return the figures of every controller."""
        ...

    def informers(self) -> Iterable[InformerStatistics]:
        """Return the figures of every informer."""
        ...

    def election(self) -> ElectionFigures | None:
        """Return the figures of the leader election, if there is one."""
        ...

    def recorders(self) -> Iterable[RecorderStatistics]:
        """Return the figures of every event recorder; they are added up."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Figures:
    """All figures of one moment."""

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
        return list(_families(answer.result(PATIENCE)))  # the larger part, and not on the loop

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
        except Exception as exc:  # noqa: BLE001 - raised by who waits
            answer.set_exception(exc)


def exposition(
    source: MetricsSource, *, registry: PrometheusCollector | None = None
) -> Callable[[str], tuple[str, bytes]]:
    """Return what makes the answer of ``/metrics``: the metrics of ``source``, and ``registry``'s.

    It takes an ``Accept`` header and returns a content type and a body, as plain text or as
    OpenMetrics. It may be called in any thread; in another than the event loop's is best.

    Args:
        source: is asked on the event loop, where this must be called.
        registry: what else is told; by default Prometheus' own: figures of the process, and
            whatever else the program counts. What has a name of ours there is left out.

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
        except (TypeError, ValueError):  # a version that is no number
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
