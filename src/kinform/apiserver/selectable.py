"""Which fields of an object a field selector can name, and their values as text."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final

import msgspec

from kinform.apiserver import status
from kinform.apiserver.json import Json, JsonValue, as_dict, at, text
from kinform.apiserver.kind import Kind
from kinform.apiserver.tables import json_path

__all__ = ["check", "fields", "supported"]

_NAME: Final = "metadata.name"
_NAMESPACE: Final = "metadata.namespace"
_SLICES: Final = "resourceslices.resource.k8s.io"
_REFERENCE: Final = (
    "kind",
    "namespace",
    "name",
    "uid",
    "apiVersion",
    "resourceVersion",
    "fieldPath",
)

# Beyond the name and the namespace, by group and resource. A pod's ``spec.host`` is the node's
# old name; ``status.podIPs`` is accepted but has no value.
_LABELS: Final[dict[str, frozenset[str]]] = {
    "pods": frozenset(
        {
            "spec.host",
            "spec.hostNetwork",
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "status.nominatedNodeName",
            "status.phase",
            "status.podIP",
            "status.podIPs",
        }
    ),
    "events": frozenset(
        {
            *(f"involvedObject.{part}" for part in _REFERENCE),
            "reason",
            "reportingComponent",
            "source",
            "type",
        }
    ),
    "events.events.k8s.io": frozenset(
        {*(f"regarding.{part}" for part in _REFERENCE), "reason", "reportingController", "type"}
    ),
    "namespaces": frozenset({"status.phase"}),
    "nodes": frozenset({"spec.unschedulable"}),
    "replicationcontrollers": frozenset({"status.replicas"}),
    "secrets": frozenset({"type"}),
    "services": frozenset({"spec.clusterIP", "spec.type"}),
    "jobs.batch": frozenset({"status.successful"}),
    "certificatesigningrequests.certificates.k8s.io": frozenset({"spec.signerName"}),
    _SLICES: frozenset({"spec.driver", "spec.nodeName"}),
}
# Of those above, these have the namespace not among their fields.
_WITHOUT_NAMESPACE: Final = frozenset(
    {"namespaces", "nodes", "certificatesigningrequests.certificates.k8s.io", _SLICES}
)


def supported(kind: Kind) -> frozenset[str]:
    """Return the fields that a selector may name; an alias such as ``spec.host`` included."""
    if kind.custom is not None:
        chosen = (path.lstrip(".") for path in kind.custom.selectable_fields)
        return frozenset({_NAME, _NAMESPACE, *chosen})
    return _builtin(kind.qualified)


@functools.cache
def _builtin(qualified: str) -> frozenset[str]:
    own = _LABELS.get(qualified, frozenset())
    return own | ({_NAME} if qualified in _WITHOUT_NAMESPACE else {_NAME, _NAMESPACE})


def check(kind: Kind, field: str) -> None:
    """Judge a field that a selector names. Of several, the server judges the least first.

    Raises:
        StatusError: objects of this kind cannot be selected by it.
    """
    if field in supported(kind):
        return
    if kind.qualified == "jobs.batch":
        message = f'field label "{field}" not supported for Job'
    elif kind.qualified == _SLICES:
        message = f"field label not supported for {kind.api_version}, Kind={kind.kind}: {field}"
    elif kind.custom is not None or kind.qualified in _LABELS:
        message = f"field label not supported: {field}"
    else:
        known = f'only "{_NAME}", "{_NAMESPACE}"'
        shown = msgspec.json.encode(field).decode()
        message = f"{shown} is not a known field selector: {known}"
    raise status.bad_request(message)


def fields(kind: Kind, obj: Json) -> dict[str, str]:
    """Return the value of every field that a selector may name, ``""`` where there is none."""
    metadata: Json = obj["metadata"]
    found: dict[str, str] = {
        _NAME: metadata.get("name", ""),
        _NAMESPACE: metadata.get("namespace", ""),
    }
    if kind.custom is not None:
        for path in kind.custom.selectable_fields:
            values = json_path.compiled(path).find(obj)
            found[path.lstrip(".")] = _shown(values[0]) if values else ""
        return found
    add = _ADD.get(kind.storage)
    if add is not None:
        add(obj, found)
    return found


def _shown(value: JsonValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _pod(obj: Json, found: dict[str, str]) -> None:
    spec, state = as_dict(obj.get("spec")), as_dict(obj.get("status"))
    node = spec.get("nodeName") or ""
    found["spec.nodeName"] = node
    found["spec.host"] = node
    found["spec.restartPolicy"] = spec.get("restartPolicy") or ""
    found["spec.schedulerName"] = spec.get("schedulerName") or ""
    found["spec.serviceAccountName"] = spec.get("serviceAccountName") or ""
    found["spec.hostNetwork"] = "true" if spec.get("hostNetwork") else "false"
    found["status.phase"] = state.get("phase") or ""
    found["status.podIP"] = state.get("podIP") or ""
    found["status.podIPs"] = ""
    found["status.nominatedNodeName"] = state.get("nominatedNodeName") or ""


def _event(obj: Json, found: dict[str, str]) -> None:
    """Add the fields of an Event under the names of both groups, which share their objects."""
    target = as_dict(obj.get("involvedObject") or obj.get("regarding"))
    for part in _REFERENCE:
        found[f"involvedObject.{part}"] = found[f"regarding.{part}"] = target.get(part) or ""
    source = as_dict(obj.get("source") or obj.get("deprecatedSource"))
    reporter: str = obj.get("reportingComponent") or obj.get("reportingController") or ""
    found["reason"] = obj.get("reason") or ""
    found["reportingComponent"] = found["reportingController"] = reporter
    found["source"] = source.get("component") or reporter
    found["type"] = obj.get("type") or ""


def _texts(*labels: str) -> Callable[[Json, dict[str, str]], None]:
    paths = [(label, label.split(".")) for label in labels]

    def add(obj: Json, found: dict[str, str]) -> None:
        for label, path in paths:
            found[label] = text(obj, *path)

    return add


def _node(obj: Json, found: dict[str, str]) -> None:
    found["spec.unschedulable"] = "true" if at(obj, "spec", "unschedulable") else "false"


def _replicas(obj: Json, found: dict[str, str]) -> None:
    found["status.replicas"] = str(at(obj, "status", "replicas") or 0)


def _job(obj: Json, found: dict[str, str]) -> None:
    found["status.successful"] = str(at(obj, "status", "succeeded") or 0)


_ADD: Final[dict[str, Callable[[Json, dict[str, str]], None]]] = {
    "pods": _pod,
    "events": _event,
    "namespaces": _texts("status.phase"),
    "nodes": _node,
    "replicationcontrollers": _replicas,
    "secrets": _texts("type"),
    "services": _texts("spec.clusterIP", "spec.type"),
    "jobs.batch": _job,
    "certificatesigningrequests.certificates.k8s.io": _texts("spec.signerName"),
    _SLICES: _texts("spec.driver", "spec.nodeName"),
}
