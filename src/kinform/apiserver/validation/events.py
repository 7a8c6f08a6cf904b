"""Validation of Events, of the core group and of ``events.k8s.io``.

What has an ``eventTime`` was made by the rules of the newer group and is held to them; the
server names fields as the core group does, whichever the client used.
"""

from __future__ import annotations

from typing import Final

from kinform.apiserver.scheme.field_errors import FieldError, invalid, required
from kinform.apiserver.serializer.json_values import Json, as_dict, at
from kinform.apiserver.validation.metadata import IMMUTABLE
from kinform.apiserver.validation.names import qualified_name

__all__ = ["validate", "validate_update"]

_SHORT: Final = 128
_LONG: Final = 1024
# Only the series of a modern Event may change; of what follows, the core group's names are shown.
_FINAL: Final = {
    "regarding": "involvedObject",
    "reason": "reason",
    "note": "message",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
    "type": "type",
    "eventTime": "eventTime",
    "action": "action",
    "related": "related",
    "reportingController": "reportingController",
    "reportingInstance": "reportingInstance",
}
_FOR_NODES: Final = frozenset({"", "default"})
"""The namespace of old events about objects without a namespace."""
_NEW_FOR_NODES: Final = frozenset({"default", "kube-system"})
"""The same for new ones: for those with an ``eventTime``."""


def validate(obj: Json) -> list[FieldError]:
    """Return the errors of a new Event."""
    is_new = "regarding" in obj
    when = obj.get("eventTime")
    if not is_new:
        return _modern(obj, "reportingComponent") if when else _about_own_namespace(obj)
    errors: list[FieldError] = []
    if not when:
        errors += [*_about_own_namespace(obj), required("eventTime")]
    else:
        errors += _modern(obj, "reportingController")
    kind = obj.get("type") or ""
    if kind not in {"Normal", "Warning"}:
        errors.append(invalid("type", "", f"has invalid value: {kind}"))
    return errors + _unused(obj)


def validate_update(new: Json, old: Json) -> list[FieldError]:
    """Return the errors of a change of an Event. By its old name it may change at will."""
    if "regarding" not in new:
        return _about_own_namespace(new) if not new.get("eventTime") else []
    return validate(new) + [
        invalid(shown, new.get(field), IMMUTABLE)
        for field, shown in _FINAL.items()
        if field in old and (new.get(field) or None) != (old.get(field) or None)
    ]


def _about_own_namespace(obj: Json) -> list[FieldError]:
    about, own = _namespaces(obj)
    if about == own or (not about and own in _FOR_NODES):
        return []
    return [_mismatch(about)]


def _namespaces(obj: Json) -> tuple[str, str]:
    about = as_dict(obj.get("involvedObject") or obj.get("regarding")).get("namespace") or ""
    return about, at(obj, "metadata", "namespace") or ""


def _mismatch(about: str) -> FieldError:
    return invalid("involvedObject.namespace", about, "does not match event.namespace")


def _modern(obj: Json, controller: str) -> list[FieldError]:
    about, own = _namespaces(obj)
    errors = [] if about or own in _NEW_FOR_NODES else [_mismatch(about)]
    name = obj.get(controller) or ""
    if not name:
        errors.append(required(controller))
    errors += [invalid(controller, name, why) for why in qualified_name(name)]
    for field in ("reportingInstance", "action", "reason"):
        value = obj.get(field) or ""
        if not value:
            errors.append(required(field))
        elif len(value.encode()) > _SHORT:  # bytes, although the message says characters
            errors.append(invalid(field, "", f"can have at most {_SHORT} characters"))
    if len((obj.get("message") or obj.get("note") or "").encode()) > _LONG:
        errors.append(invalid("message", "", f"can have at most {_LONG} characters"))
    series = obj.get("series")
    if series:
        if (series.get("count") or 0) < 2:
            errors.append(invalid("series.count", "", "should be at least 2"))
        if not series.get("lastObservedTime"):
            errors.append(required("series.lastObservedTime"))
    return errors


def _unused(obj: Json) -> list[FieldError]:
    fields = (
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        ("deprecatedSource", "source"),
    )
    return [invalid(shown, "", "needs to be unset") for field, shown in fields if obj.get(field)]
