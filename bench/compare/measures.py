"""Quantities derived from the numbers of one life: names, units and formulas.

Memory per object is the growth of the process since it was ready, before it listed anything,
as the kernel counts it while the process is idle. Spare memory of a garbage collector is included,
because a container's limit includes it; the memory after a forced collection is a second
quantity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bench.compare.results import Lived, Measure

__all__ = ["MEASURES", "SECTIONS", "Quantity"]


@dataclass(frozen=True, slots=True)
class Quantity:
    """Something that can be compared."""

    title: str
    unit: str
    of: Measure
    more_is_better: bool = False


def _per(name: str, count: str | None = None, *, scale: float = 1.0) -> Measure:
    """A figure for each object, or for each of another figure."""

    def of(life: Lived) -> float | None:
        number = life.objects if count is None else life.figures.get(count)
        value = life.figures.get(name)
        return None if value is None or not number else value / number * scale

    return of


def _plain(name: str, *, scale: float = 1.0) -> Measure:
    def of(life: Lived) -> float | None:
        value = life.figures.get(name)
        return None if value is None else value * scale

    return of


def _difference(name: str, base: str, *, of: Callable[[Lived], float]) -> Measure:
    def difference(life: Lived) -> float | None:
        value, before = life.figures.get(name), life.figures.get(base)
        return None if value is None or before is None else (value - before) / of(life)

    return difference


def _sum(names: Sequence[str], *, scale: float, of: str | None = None) -> Measure:
    """The sum of figures for each object, or for each of another figure."""

    def total(life: Lived) -> float | None:
        number = life.objects if of is None else life.figures.get(of)
        values = [life.figures.get(name) for name in names]
        known = [value for value in values if value is not None]
        return sum(known) / number * scale if number and len(known) == len(names) else None

    return total


def _rate(count: str, wall: str) -> Measure:
    def of(life: Lived) -> float | None:
        number, took = life.figures.get(count), life.figures.get(wall)
        return number / took * 1e9 if number and took else None

    return of


def _share(cpu: str, wall: str) -> Measure:
    def of(life: Lived) -> float | None:
        used, took = life.figures.get(cpu), life.figures.get(wall)
        return None if used is None or not took else used / took * 100

    return of


def _times(name: str, other: str) -> Measure:
    def of(life: Lived) -> float | None:
        value, base = life.figures.get(name), life.figures.get(other)
        return None if value is None or not base else value / base

    return of


def _peak_over_settled(life: Lived) -> float | None:
    names = ("relist_peak", "before_relist_resident", "ready_resident")
    peak, settled, ready = (life.figures.get(name) for name in names)
    if peak is None or settled is None or ready is None or settled <= ready:
        return None
    return (peak - ready) / (settled - ready)


def _memory_after_events(life: Lived) -> float | None:
    """Return the memory after events; None unless there were enough to update every object."""
    updated = life.figures.get("events", 0) >= min(life.objects, 100_000)
    return _grown("events_alone")(life) if updated else None


def _grown(name: str) -> Measure:
    return _difference(name, "ready_resident", of=lambda life: life.objects)


MEASURES: Final[Mapping[str, Quantity]] = {
    "ready_wall": Quantity("start-up, until ready", "ms", _plain("ready_wall_ns", scale=1e-6)),
    "ready_cpu": Quantity("start-up, CPU", "ms", _plain("ready_cpu_ns", scale=1e-6)),
    "ready_memory": Quantity("memory when ready", "MB", _plain("ready_resident", scale=1e-6)),
    "sync_wall": Quantity("first sync", "s", _plain("sync_wall_ns", scale=1e-9)),
    "sync_wall_each": Quantity("first sync, each object", "µs", _per("sync_wall_ns", scale=1e-3)),
    "sync_cpu": Quantity("first sync, CPU per object", "µs", _per("sync_cpu_ns", scale=1e-3)),
    "sync_all_cpu": Quantity(
        "first sync, CPU per object until idle", "µs",
        _sum(("sync_cpu_ns", "sync_settle_cpu_ns"), scale=1e-3),
    ),
    "memory": Quantity("memory per object, after the sync", "bytes", _grown("sync_alone")),
    "memory_needed": Quantity("the same, if it gives back what it can", "bytes",
                              _grown("sync_resident")),
    "memory_peak": Quantity("memory per object, peak of the sync", "bytes", _grown("sync_peak")),
    "memory_events": Quantity("memory per object after the events", "bytes",
                              _memory_after_events),
    "memory_relist": Quantity("memory per object after a relist", "bytes",
                              _grown("relist_alone")),
    "relist_peak": Quantity("memory per object, peak of a relist", "bytes", _grown("relist_peak")),
    "total": Quantity("memory in all, settled", "MB", _plain("sync_resident", scale=1e-6)),
    "events_rate": Quantity("events", "1/s", _rate("events", "events_wall_ns"),
                            more_is_better=True),
    "events_cpu": Quantity("CPU per event", "µs", _per("events_cpu_ns", "events", scale=1e-3)),
    "events_all_cpu": Quantity(
        "CPU per event until idle", "µs",
        _sum(("events_cpu_ns", "events_settle_cpu_ns"), of="events", scale=1e-3),
    ),
    "server_share": Quantity("the server's CPU meanwhile", "%",
                             _share("events_server_cpu_ns", "events_wall_ns")),
    "p50": Quantity("latency at 1,000 events/s, p50", "ms", _plain("latency_p50", scale=1e-6)),
    "p99": Quantity("latency at 1,000 events/s, p99", "ms", _plain("latency_p99", scale=1e-6)),
    "p999": Quantity("latency at 1,000 events/s, p99.9", "ms", _plain("latency_p999", scale=1e-6)),
    "paced_cpu": Quantity("CPU at 1,000 events/s", "%",
                          _share("latency_cpu_ns", "latency_wall_ns")),
    "key": Quantity("lookup by key", "ns", _plain("lookup_key_ns")),
    "key_over_dict": Quantity("lookup by key, over dict.get", "x",
                              _times("lookup_key_ns", "lookup_dict_get_ns")),
    "index": Quantity("lookup by index", "ns", _plain("lookup_index_ns")),
    "index_objects": Quantity("objects of one index value", "", _plain("lookup_index_objects")),
    "list": Quantity("full list", "ms", _plain("lookup_list_ms")),
    "selector": Quantity("list with a selector", "ms", _plain("lookup_selector_ms")),
    "join": Quantity("late handler has all", "ms", _plain("join_joined_ms")),
    "relist_wall": Quantity("relist, nothing changed", "s", _plain("relist_wall_ns", scale=1e-9)),
    "relist_cpu": Quantity("relist, CPU per object", "µs", _per("relist_cpu_ns", scale=1e-3)),
    "relist_over_sync": Quantity("relist, CPU over that of the sync", "x",
                                 _times("relist_cpu_ns", "sync_cpu_ns")),
    "relist_peak_over_settled": Quantity("relist, peak over settled memory", "x",
                                         _peak_over_settled),
    "idle": Quantity("CPU when idle", "%", _share("idle_cpu_ns", "idle_wall_ns")),
    "queue_rate": Quantity("work queue, keys", "1/s", _rate("queue_items", "queue_wall_ns"),
                           more_is_better=True),
    "queue_cpu": Quantity("work queue, CPU per key", "µs",
                          _per("queue_cpu_ns", "queue_items", scale=1e-3)),
    "controller_rate": Quantity("no-op controller, events", "1/s",
                                _rate("controller_events", "controller_wall_ns"),
                                more_is_better=True),
    "controller_cpu": Quantity("no-op controller, CPU per event", "µs",
                               _per("controller_cpu_ns", "controller_events", scale=1e-3)),
}  # fmt: skip

SECTIONS: Final[Sequence[tuple[str, str, Sequence[str]]]] = (
    ("First sync", "life", ("sync_wall", "sync_cpu", "sync_all_cpu")),
    ("Events", "life", ("events_rate", "events_cpu", "events_all_cpu", "server_share")),
    ("Memory", "life",
     ("memory", "memory_needed", "memory_events", "memory_relist", "memory_peak", "total")),
    ("Latency", "life", ("p50", "p99", "p999", "paced_cpu")),
    ("Lookups", "life", ("key", "key_over_dict", "index", "list", "selector", "join")),
    ("Relist, nothing changed", "life",
     ("relist_wall", "relist_cpu", "relist_over_sync", "relist_peak",
      "relist_peak_over_settled")),
    ("Start-up and idling", "life", ("ready_wall", "ready_cpu", "ready_memory", "idle")),
    ("A handler that reads fields", "fields",
     ("sync_cpu", "events_rate", "events_cpu", "memory_events")),
    ("Fifty informers", "informers", ("sync_wall", "idle", "total")),
    ("Queues and controllers", "queue",
     ("queue_rate", "queue_cpu", "controller_rate", "controller_cpu")),
    ("A real kube-apiserver over TLS", "real", ("sync_wall", "sync_cpu", "memory")),
    ("The server alone: a client that only reads", "null",
     ("sync_wall_each", "events_rate", "events_cpu", "server_share")),
)  # fmt: skip
"""The tables: title, part of the run, columns. Ways to list and growth have tables of their own."""
