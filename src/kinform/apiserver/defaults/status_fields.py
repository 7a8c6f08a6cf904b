"""Defaults of conditions and container statuses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kinform.apiserver.scheme.kind_registry import Kind
from kinform.apiserver.serializer.json_values import Json, as_dict, as_list

__all__ = ["complete"]

_CHANGED: Final[Json] = {"lastTransitionTime": None}
_PROBED: Final[Json] = {"lastProbeTime": None, "lastTransitionTime": None}
_CONDITIONS: Final[Mapping[str, Json]] = {
    "pods": _PROBED,
    "jobs.batch": _PROBED,
    "persistentvolumeclaims": _PROBED,
    "namespaces": _CHANGED,
    "replicationcontrollers": _CHANGED,
    "replicasets.apps": _CHANGED,
    "statefulsets.apps": _CHANGED,
    "daemonsets.apps": _CHANGED,
    "horizontalpodautoscalers.autoscaling": _CHANGED,
    "deployments.apps": {"lastUpdateTime": None, "lastTransitionTime": None},
    "services": {"lastTransitionTime": None, "reason": "", "message": ""},
    "poddisruptionbudgets.policy": {"lastTransitionTime": None, "reason": "", "message": ""},
}
_CONTAINER: Final[Json] = {"ready": False, "restartCount": 0, "image": "", "imageID": ""}
_CONTAINERS: Final = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")


def complete(kind: Kind, obj: Json) -> None:
    """Fill in what every condition of a kind has, and every status of a pod's container."""
    status = as_dict(obj.get("status"))
    listed = as_list(status.get("conditions")) if status else []
    if listed and (fields := _CONDITIONS.get(kind.storage)) is not None:
        for condition in listed:
            for field, value in fields.items():
                condition.setdefault(field, value)
    if kind.storage == "pods":
        _complete_pod(status)


def _complete_pod(status: Json) -> None:
    for field in _CONTAINERS:
        for container in as_list(status.get(field)):
            for part in ("state", "lastState"):
                container[part] = as_dict(container.get(part))
            for name, value in _CONTAINER.items():
                container.setdefault(name, value)
    address, addresses = status.get("podIP"), status.get("podIPs")
    if address and not addresses:
        status["podIPs"] = [{"ip": address}]
    elif addresses and not address:
        status["podIP"] = as_dict(addresses[0]).get("ip", "")
