"""Events as the two API groups write them. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, final

from kinform.sansio.event_correlation import EventRecord, ObjectReference

__all__ = ["FORMATS", "EventAPI", "EventFormat", "Reporter"]

EventAPI: TypeAlias = Literal["v1", "events.k8s.io/v1"]
"""Which API group events are written to. All of them can be read through either."""
Content: TypeAlias = dict[str, object]


@final
@dataclass(frozen=True, slots=True)
class Reporter:
    """Who reports: the program, and which of its processes."""

    component: str
    instance: str


@final
@dataclass(frozen=True, slots=True)
class EventFormat:
    """How one API group writes events."""

    body: Callable[[EventRecord, Reporter], Content]
    """Returns the object to create."""
    patch: Callable[[EventRecord], Content]
    """Returns the merge patch that brings the object up to date."""


def _core_body(record: EventRecord, reporter: Reporter) -> Content:
    occurrence = record.occurrence
    return _without_empty(
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": _metadata(record),
            "involvedObject": _reference(occurrence.regarding),
            "type": occurrence.type,
            "reason": occurrence.reason,
            "message": occurrence.message,
            "action": occurrence.action,
            "related": _reference(occurrence.related),
            "count": record.count,
            "firstTimestamp": _seconds(record.first),
            "lastTimestamp": _seconds(record.last),
            "source": {"component": reporter.component},
            "reportingComponent": reporter.component,
            "reportingInstance": reporter.instance,
        }
    )


def _core_patch(record: EventRecord) -> Content:
    occurrence = record.occurrence
    patch: Content = {
        "count": record.count,
        "lastTimestamp": _seconds(record.last),
        "message": occurrence.message,  # differs where several are combined
    }
    if occurrence.annotations:
        patch["metadata"] = {"annotations": dict(occurrence.annotations)}
    return patch


def _modern_body(record: EventRecord, reporter: Reporter) -> Content:
    occurrence = record.occurrence
    return _without_empty(
        {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": _metadata(record),
            "regarding": _reference(occurrence.regarding),
            "type": occurrence.type,
            "reason": occurrence.reason,
            "note": occurrence.message,
            "action": occurrence.action or occurrence.reason,  # the server wants one
            "related": _reference(occurrence.related),
            "eventTime": _micros(record.first),
            "series": _series(record) if record.count > 1 else None,
            "reportingController": reporter.component,
            "reportingInstance": reporter.instance,
        }
    )


def _modern_patch(record: EventRecord) -> Content:
    return {"series": _series(record)}  # nothing else may change


FORMATS: Final[Mapping[EventAPI, EventFormat]] = {
    "v1": EventFormat(_core_body, _core_patch),
    "events.k8s.io/v1": EventFormat(_modern_body, _modern_patch),
}


def _metadata(record: EventRecord) -> Content:
    return _without_empty(
        {
            "name": record.name,
            "namespace": record.namespace,
            "annotations": dict(record.occurrence.annotations),
        }
    )


def _series(record: EventRecord) -> Content:
    return {"count": record.count, "lastObservedTime": _micros(record.last)}


def _reference(reference: ObjectReference | None) -> Content | None:
    if reference is None:
        return None
    return _without_empty(
        {
            "apiVersion": reference.api_version,
            "kind": reference.kind,
            "namespace": reference.namespace,
            "name": reference.name,
            "uid": reference.uid,
            "resourceVersion": reference.resource_version,
            "fieldPath": reference.field_path,
        }
    )


def _without_empty(content: Content) -> Content:
    return {key: value for key, value in content.items() if value not in ("", None, {})}


def _seconds(wall: float) -> str:
    return _utc(wall).strftime("%Y-%m-%dT%H:%M:%SZ")


def _micros(wall: float) -> str:
    return _utc(wall).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _utc(wall: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(wall, datetime.UTC)
