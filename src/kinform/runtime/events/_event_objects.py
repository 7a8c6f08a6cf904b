"""Events as the two API groups write them. Pure."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast, final, get_args

from kinform.errors import UsageError
from kinform.runtime.map_functions import AnyObject, HasMetadata, metadata_of, type_of
from kinform.sansio.events.correlation import (
    EventRecord,
    EventType,
    ObjectReference,
    Occurrence,
    cut,
)

__all__ = ["FORMATS", "EventAPI", "EventFormat", "Reporter"]

EventAPI: TypeAlias = Literal["v1", "events.k8s.io/v1"]
"""The API group that events are written to. All events can be read through either."""
Content: TypeAlias = dict[str, object]


@final
@dataclass(frozen=True, slots=True)
class Reporter:
    """The reporter of an event: the program, and the instance of it."""

    component: str
    instance: str


@final
@dataclass(frozen=True, slots=True)
class EventFormat:
    """The format of events in one API group."""

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


Regarding: TypeAlias = AnyObject | ObjectReference
"""The object of an event: an object, a reference, either as a dict; or an object's model."""

_MAX_WORD: Final = 128  # the server's, for reason, action and instance
_REASON: Final = re.compile(r"[A-Z][A-Za-z0-9]*")
_PREFIX: Final = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_REPORTER: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_TYPES: Final[tuple[str, ...]] = get_args(EventType)


def occurrence_of(
    regarding: Regarding,
    *,
    type_: str,
    reason: str,
    message: str,
    action: str = "",
    related: Regarding | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Occurrence:
    """Return the occurrence of these parts; a message that is too long is cut.

    Raises:
        UsageError: an argument is invalid.
    """
    if type_ not in _TYPES:
        raise UsageError(f"an event's type is 'Normal' or 'Warning', got {type_!r}")
    return Occurrence(
        regarding=reference_of(regarding),
        type=cast("EventType", type_),
        reason=_checked_reason(reason),
        message=cut(_text("message", message)),
        action=_word("action", action),
        related=None if related is None else reference_of(related),
        annotations=_checked_annotations(annotations),
    )


def reference_of(regarding: Regarding) -> ObjectReference:
    """Return the reference to an object.

    Raises:
        UsageError: it is not an object, or it has no kind or no name.
    """
    if isinstance(regarding, ObjectReference):
        reference = regarding
    elif hasattr(regarding, "metadata"):
        reference = _of_object(cast("HasMetadata", regarding))
    elif isinstance(regarding, Mapping):
        reference = _of_mapping(regarding)
    else:
        raise UsageError(
            f"an event is about an Object or an ObjectReference, not a {type(regarding).__name__}; "
            "or a model that declares its metadata"
        )
    if not reference.kind or not reference.name:
        raise UsageError(
            f"an event must name the kind and the name of its object, got kind "
            f"{reference.kind!r} and name {reference.name!r}; where the object does not say, give "
            "ObjectReference(api_version=..., kind=..., namespace=..., name=..., uid=...)"
        )
    return reference


def reporter_of(component: str, instance: str, *, host: str) -> Reporter:
    """Return who reports; the process is the ``host``'s unless it has a name of its own.

    Raises:
        UsageError: a name does not have the form that the server requires.
    """
    prefix, slash, name = _text("component", component).rpartition("/")
    fits = _PREFIX.fullmatch(prefix) is not None and len(prefix) <= 253 if slash else not prefix
    if not fits or not _REPORTER.fullmatch(name):
        raise UsageError(
            f"component is {component!r}; expected a name like 'website-operator' or "
            "'example.com/website-operator', of at most 63 characters after the slash"
        )
    return Reporter(component, _word("instance", instance) or cut(host, _MAX_WORD) or component)


def _of_object(obj: HasMetadata) -> ObjectReference:
    (api_version, kind), metadata = type_of(obj), metadata_of(obj, "name", "namespace", "uid")
    return ObjectReference(
        api_version=api_version,
        kind=kind,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
    )


def _of_mapping(given: Mapping[str, object]) -> ObjectReference:
    """Read an object, which has metadata, or a reference, which has a name itself."""
    metadata = given.get("metadata", given)
    if not isinstance(metadata, Mapping):
        raise UsageError("the metadata of the object that an event is about is not a dict")
    about = cast("Mapping[str, object]", metadata)
    return ObjectReference(
        api_version=_text("apiVersion", given.get("apiVersion") or ""),
        kind=_text("kind", given.get("kind") or ""),
        namespace=_text("namespace", about.get("namespace") or ""),
        name=_text("name", about.get("name") or ""),
        uid=_text("uid", about.get("uid") or ""),
        field_path=_text("fieldPath", given.get("fieldPath") or ""),
        resource_version=_text("resourceVersion", about.get("resourceVersion") or ""),
    )


def _checked_reason(reason: str) -> str:
    if not _REASON.fullmatch(_word("reason", reason)):
        raise UsageError(
            f"reason is {reason!r}; expected one word in UpperCamelCase, like 'FailedCreate': "
            "it is for programs to read; the message is for people"
        )
    return reason


def _checked_annotations(annotations: Mapping[str, str] | None) -> Mapping[str, str]:
    found = dict(annotations or {})
    for key, value in found.items():
        _text("an annotation's name", key)
        _text(f"annotation {key!r}", value)
    return found


def _word(what: str, value: str) -> str:
    if len(_text(what, value).encode("utf-8", "replace")) > _MAX_WORD:
        raise UsageError(f"{what} is {value[:40]!r}...; expected at most {_MAX_WORD} characters")
    return value


def _text(what: str, value: object) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{what} must be a string, got {type(value).__name__}")
    return value
