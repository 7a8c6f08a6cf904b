"""Conversion between the stored form of an object and that of a served version.

Events are one such case: ``events.k8s.io`` calls by other names what the core group stores.
Autoscalers are the other one: version 1 is narrower than version 2, which is stored. All other
versions of a kind, custom ones included, have the same form.
"""

from __future__ import annotations

from typing import Final

from kinform.apiserver.registry import autoscaler_versions
from kinform.apiserver.scheme.kind_registry import Kind
from kinform.apiserver.serializer.json_values import Json

__all__ = ["to_served", "to_stored"]

_EVENTS: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
"""The fields of an event in the core group, and their names in ``events.k8s.io``."""
_STORED: Final = {served: stored for stored, served in _EVENTS.items()}
_OMITTED_EMPTY: Final = frozenset({"reportingController", "reportingInstance"})
"""Fields that the core group always shows, and ``events.k8s.io`` only if there is something."""


def to_served(kind: Kind, obj: Json) -> Json:
    """Return a stored object in the form of ``kind``, of which ``is_converted`` is true."""
    if kind.group == "autoscaling":
        return autoscaler_versions.to_first(obj)
    found = {_EVENTS.get(field, field): value for field, value in obj.items()}
    return {k: v for k, v in found.items() if v != "" or k not in _OMITTED_EMPTY}


def to_stored(kind: Kind, obj: Json) -> Json:
    """Return an object of ``kind``, of which ``is_converted`` is true, in its stored form."""
    if kind.group == "autoscaling":
        return autoscaler_versions.to_second(obj)
    found = {_STORED.get(field, field): value for field, value in obj.items()}
    return {"reportingComponent": "", "reportingInstance": "", **found}
