"""Prometheus metrics: the names of client-go and controller-runtime, and a bounded series count."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

import prometheus_client
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as plain

from kinform import Client, Config, SharedInformer, UsageError
from kinform.cache.informer_statistics import InformerStatistics
from kinform.clock import offload
from kinform.runtime.controller.statistics import ControllerMeter, ControllerStatistics, Outcome
from kinform.runtime.events.recorder import RecorderStatistics
from kinform.runtime.metrics import MAX_NAMES, Collector, ElectionFigures, exposition
from kinform.testing import in_virtual_time
from kinform.workqueue import WorkQueue
from tests.cache.support_informer import source_of, thing

OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"


@dataclass
class Election:
    lease: str = "web-leader"
    is_leader: bool = True
    slow_paths: int = 4


@dataclass
class Source:
    """A manager, as far as metrics are concerned."""

    found: list[ControllerStatistics] = field(default_factory=list)
    caches: list[InformerStatistics] = field(default_factory=list)
    lease: Election | None = None
    events: list[RecorderStatistics] = field(default_factory=list)

    def controllers(self) -> Iterable[ControllerStatistics]:
        return iter(self.found)

    def informers(self) -> Iterable[InformerStatistics]:
        return iter(self.caches)

    def election(self) -> ElectionFigures | None:
        return self.lease

    def recorders(self) -> Iterable[RecorderStatistics]:
        return iter(self.events)


def controller(name: str = "web") -> ControllerStatistics:
    """A controller on which every outcome was seen, each once more than the one before."""
    meter = ControllerMeter()
    for times, outcome in enumerate(Outcome, 1):
        for _ in range(times):
            meter.begin()
            meter.end(outcome, 0.02)
    meter.begin()
    queue = WorkQueue[str](name).statistics()
    return meter.statistics(name=name, workers=3, queue=queue, unexpected_ends=2)


async def informer(name: str = "pods") -> InformerStatistics:
    """An informer that saw a list of two and an event, 30 s ago, with a handler that failed."""
    source = source_of("a", "b")
    async with SharedInformer(source, name=name) as one:
        one.add_event_handler(on_update=lambda event: 1 / 0)
        await one.wait_synced(5)
        source.modify(thing("b", "new"))
        await asyncio.sleep(30)
        return one.statistics()


def samples(source: Source, accept: str = "") -> dict[str, float]:
    """Return what a scrape says: ``name{label="value"}`` and values."""
    _, body = exposition(source, registry=prometheus_client.CollectorRegistry())(accept)
    parse = openmetrics if accept else plain
    found = dict[str, float]()
    for family in parse(body.decode()):
        for sample in family.samples:
            labels = ",".join(f'{name}="{value}"' for name, value in sorted(sample.labels.items()))
            series = f"{sample.name}{{{labels}}}"
            assert series not in found
            found[series] = sample.value
    return found


@in_virtual_time
async def test_a_controller_is_told_under_controller_runtimes_names() -> None:
    found = samples(Source([controller()]))
    runtime = {name: value for name, value in found.items() if "bucket" not in name}
    expected = {
        'controller_runtime_reconcile_total{controller="web",result="success"}': 1,
        'controller_runtime_reconcile_total{controller="web",result="requeue_after"}': 2,
        'controller_runtime_reconcile_total{controller="web",result="error"}': 3 + 4 + 5,
        'controller_runtime_reconcile_errors_total{controller="web"}': 3 + 4 + 5,
        'controller_runtime_terminal_reconcile_errors_total{controller="web"}': 4,
        'controller_runtime_reconcile_timeouts_total{controller="web"}': 5,
        'controller_runtime_reconcile_time_seconds_count{controller="web"}': 15,
        'controller_runtime_reconcile_time_seconds_sum{controller="web"}': pytest.approx(0.3),
        'controller_runtime_max_concurrent_reconciles{controller="web"}': 3,
        'controller_runtime_active_workers{controller="web"}': 1,
    }
    assert {name: value for name, value in runtime.items() if name in expected} == expected
    assert found['kinform_reconcile_cancelled_total{controller="web"}'] == 6
    assert found['kinform_controller_unexpected_ends_total{controller="web"}'] == 2
    buckets = [value for name, value in found.items() if "reconcile_time_seconds_bucket" in name]
    assert buckets == [0, 0, *[15] * 17]
    assert 'controller_runtime_reconcile_time_seconds_bucket{controller="web",le="+Inf"}' in found


@in_virtual_time
async def test_a_queue_is_told_under_client_gos_names() -> None:
    """CG-Q23."""
    meter = ControllerMeter()
    queue = WorkQueue[str]("web", metrics=meter.queue)
    for key in "abc":
        queue.add(key)
    queue.add_after("d", 60)
    await asyncio.sleep(2)
    await queue.get()
    queue.done(await queue.get())
    await asyncio.sleep(5)
    statistics = meter.statistics(name="web", workers=1, queue=queue.statistics())
    queue.shut_down()
    labels = '{controller="web",name="web"}'
    found = samples(Source([statistics]))
    assert {name: value for name, value in found.items() if name.endswith(labels)} == {
        f"workqueue_depth{labels}": 1,
        f"workqueue_adds_total{labels}": 3,
        f"workqueue_retries_total{labels}": 1,
        f"workqueue_unfinished_work_seconds{labels}": 5,
        f"workqueue_longest_running_processor_seconds{labels}": 5,
        f"workqueue_queue_duration_seconds_count{labels}": 2,
        f"workqueue_queue_duration_seconds_sum{labels}": 4,
        f"workqueue_work_duration_seconds_count{labels}": 1,
        f"workqueue_work_duration_seconds_sum{labels}": 0,
        f"kinform_workqueue_oldest_waiting_seconds{labels}": 7,
        f"kinform_workqueue_delayed{labels}": 1,
    }
    assert sum("workqueue_queue_duration_seconds_bucket" in name for name in found) == 11


@in_virtual_time
async def test_an_informer_is_told_with_its_handlers(caplog: pytest.LogCaptureFixture) -> None:
    found = samples(Source(caches=[await informer()]))
    assert found.pop('kinform_informer_seconds_since_contact{informer="pods"}') == 30
    assert set(found.values()) != {0.0}
    assert found == {
        f'kinform_{name}{{informer="pods"}}': value
        for name, value in {
            "informer_objects": 2,
            "informer_synced": 1,
            "informer_connected": 1,
            "informer_unreadable": 0,
            "informer_events_total": 1,
            "informer_lists_total": 1,
            "informer_watches_total": 1,
            "informer_probes_total": 0,
            "informer_failures_total": 0,
            "informer_regressions_total": 0,
            "informer_unexpected_ends_total": 0,
            "informer_queue_depth": 0,
            "handler_pending": 0,
            "handler_delivered_total": 3,
            "handler_coalesced_total": 0,
            "handler_failures_total": 1,
            "handler_slow_total": 0,
            "handler_busy_seconds": 0,
        }.items()
    }


@in_virtual_time
async def test_an_informer_that_never_heard_of_the_server_has_no_time_since_then() -> None:
    found = samples(Source(caches=[SharedInformer(source_of(), name="pods").statistics()]))
    assert found['kinform_informer_synced{informer="pods"}'] == 0
    assert not any("since_contact" in name for name in found)


@in_virtual_time
@pytest.mark.parametrize("leads", [True, False])
async def test_a_lease_is_told_under_client_gos_names(leads: bool) -> None:
    assert samples(Source(lease=Election(is_leader=leads))) == {
        'leader_election_master_status{name="web-leader"}': leads,
        'leader_election_slowpath_total{name="web-leader"}': 4,
    }


def recorder() -> RecorderStatistics:
    return RecorderStatistics(
        recorded=9,
        sent=1,
        patched=2,
        dropped_full=3,
        dropped_spam=4,
        dropped_late=5,
        failed=6,
        waiting=7,
    )


@in_virtual_time
async def test_the_figures_of_event_recorders_are_added_up() -> None:
    assert samples(Source(events=[recorder(), recorder()])) == {
        "kinform_events_recorded_total{}": 18,
        "kinform_events_sent_total{}": 2,
        "kinform_events_patched_total{}": 4,
        "kinform_events_failed_total{}": 12,
        "kinform_events_waiting{}": 14,
        'kinform_events_dropped_total{reason="full"}': 6,
        'kinform_events_dropped_total{reason="spam"}': 8,
        'kinform_events_dropped_total{reason="late"}': 10,
    }


@in_virtual_time
async def test_where_there_is_nothing_nothing_is_told() -> None:
    assert samples(Source()) == {}


@in_virtual_time
async def test_openmetrics_says_the_same(caplog: pytest.LogCaptureFixture) -> None:
    source = Source([controller()], [await informer()], Election(), [recorder()])
    assert samples(source, OPENMETRICS) == samples(source)


@in_virtual_time
@pytest.mark.parametrize(
    "accept, expected",
    [
        ("", "text/plain; version=0.0.4; charset=utf-8"),
        ("*/*", "text/plain; version=0.0.4; charset=utf-8"),
        ("application/openmetrics-text; version=x.y", "text/plain; version=0.0.4; charset=utf-8"),
        (OPENMETRICS, "application/openmetrics-text; version=1.0.0; charset=utf-8"),
    ],
)
async def test_the_content_type_is_what_was_asked_for(accept: str, expected: str) -> None:
    content_type, _ = await offload(exposition(Source()), accept)
    assert content_type.removesuffix("; escaping=underscores") == expected


@in_virtual_time
async def test_those_that_share_a_name_are_added_up(caplog: pytest.LogCaptureFixture) -> None:
    """Two series of one name and the same labels would make Prometheus refuse the scrape."""
    pods = await informer()
    waiting = SharedInformer(source_of(), name="pods").statistics()
    found = samples(Source([controller(), controller()], [pods, waiting]))
    assert found['kinform_informer_objects{informer="pods"}'] == 2
    assert found['kinform_informer_synced{informer="pods"}'] == 0  # not all of them
    assert found['controller_runtime_active_workers{controller="web"}'] == 2
    assert found['controller_runtime_reconcile_total{controller="web",result="success"}'] == 2
    buckets = [value for name, value in found.items() if "reconcile_time_seconds_bucket" in name]
    assert buckets == [0, 0, *[30] * 17]


@in_virtual_time
async def test_the_number_of_series_is_bounded() -> None:
    one = SharedInformer(source_of(), name="pods").statistics()
    caches = [replace(one, label=f"i{n}", objects=1) for n in range(MAX_NAMES + 50)]
    found = samples(Source(caches=[*caches, caches[0]]))
    objects = {name: value for name, value in found.items() if "informer_objects" in name}
    assert len(objects) == MAX_NAMES + 1
    assert objects['kinform_informer_objects{informer="other"}'] == 50
    assert objects['kinform_informer_objects{informer="i0"}'] == 2


async def test_no_label_of_an_informer_names_a_namespace_or_an_object() -> None:
    client = Client(Config(server="http://127.0.0.1:1"))
    async with client:
        one = client.informer(
            "v1/secrets",
            namespace="payments",
            label_selector="app=stripe",
            field_selector="metadata.name=stripe-key",
        )
        named = client.informer("v1/secrets", namespace="payments", name="the keys")
        assert "stripe-key" in one.statistics().name  # in logs
        found = samples(Source(caches=[one.statistics(), named.statistics()]))
    labels = {name.partition("informer=")[2] for name in found if "informer=" in name}
    assert labels == {'"v1/secrets"}', '"the keys"}'}


@in_virtual_time
async def test_what_the_program_counts_itself_is_told_too_and_nothing_twice() -> None:
    registry = prometheus_client.CollectorRegistry()
    prometheus_client.Counter("sites_built", "Sites", registry=registry).inc(7)
    source = Source(lease=Election())
    registry.register(Collector(source))
    _, body = exposition(source, registry=registry)("")
    assert b"sites_built_total 7.0\n" in body
    assert body.count(b"leader_election_master_status{") == 1


@in_virtual_time
async def test_a_registry_refuses_the_same_metrics_twice_and_asks_nobody_for_that() -> None:
    class Broken(Source):
        def controllers(self) -> Iterable[ControllerStatistics]:
            raise AssertionError

    registry = prometheus_client.CollectorRegistry()
    registry.register(Collector(Broken()))
    with pytest.raises(ValueError, match="Duplicated timeseries"):
        registry.register(Collector(Source()))


async def test_the_guide_has_every_metric_and_no_other() -> None:
    guide = Path(__file__).parents[2] / "docs" / "guides" / "operations.md"
    text = (await offload(guide.read_text, encoding="utf-8")).partition("## Metrics")[2]
    table = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    documented = {name for cell in table for name in re.findall("`([a-z_]+)`", cell)}
    ours = {
        f"{metric.name}_total" if metric.type == "counter" else metric.name
        for metric in Collector(Source()).describe()
    }
    assert documented == ours


# --- in other threads


class OnTheLoop(Source):
    """Can be asked on the event loop only, as a real manager."""

    def controllers(self) -> Iterable[ControllerStatistics]:
        asyncio.get_running_loop()
        return super().controllers()


async def test_a_scrape_in_another_thread_asks_on_the_event_loop() -> None:
    source = OnTheLoop([controller()])
    _, body = await offload(exposition(source), "")
    assert b'controller_runtime_active_workers{controller="web"} 1.0' in body
    assert b"python_info" in body  # by default, with what Prometheus' client has itself


async def test_what_the_source_raises_reaches_who_scrapes() -> None:
    class Broken(Source):
        def election(self) -> ElectionFigures | None:
            raise ZeroDivisionError

    expose = exposition(Broken())
    with pytest.raises(ZeroDivisionError):
        expose("")
    with pytest.raises(ZeroDivisionError):
        await offload(expose, "")


async def test_a_collector_is_made_where_the_loop_runs() -> None:
    with pytest.raises(UsageError, match="where the event loop runs"):
        await offload(Collector, Source())


WITHOUT = """
import asyncio, sys
sys.modules["prometheus_client"] = None  # as if it were not there
import kinform.runtime.metrics as metrics

async def main():
    try:
        metrics.exposition(None)
    except metrics.UsageError as error:
        print(error)

asyncio.run(main())
"""


@pytest.mark.slow
def test_without_the_library_the_error_says_what_to_install() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip().endswith("pip install kinform[metrics]")
