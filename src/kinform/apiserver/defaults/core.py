"""Defaults of the core group: Services, ConfigMaps, Secrets, Namespaces, Nodes, volumes, quotas."""

from __future__ import annotations

import base64
import copy
from collections.abc import Callable
from typing import Final

from kinform.apiserver.defaults import services
from kinform.apiserver.serializer.json_values import Json, as_dict, as_list, at

__all__ = ["DEFAULTS", "PREPARE_CREATE", "PREPARE_UPDATE", "keep_status"]

_METADATA_NAME: Final = "kubernetes.io/metadata.name"
_NOT_READY: Final = "node.kubernetes.io/not-ready"
_NODE_INFO: Final = (
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
)


def keep_status(new: Json, old: Json) -> None:
    """Carry the status over: an update of the object itself cannot change it."""
    if "status" in old:
        # A copy: defaults are filled in afterwards, and the old object belongs to the storage.
        new["status"] = copy.deepcopy(old["status"])
    else:
        new.pop("status", None)


def _drop_empty(obj: Json, *fields: str) -> None:
    for field in fields:
        if field in obj and not obj[field]:
            del obj[field]


def _config_map(obj: Json) -> None:
    _drop_empty(obj, "data", "binaryData")


def _secret(obj: Json) -> None:
    """Fold the plain texts of ``stringData`` into ``data``; they win."""
    texts = as_dict(obj.pop("stringData", None))
    if texts:
        data = as_dict(obj.get("data"))
        for key, value in texts.items():
            data[key] = base64.b64encode((value or "").encode()).decode()
        obj["data"] = data
    _drop_empty(obj, "data")
    for key, value in as_dict(obj.get("data")).items():
        if value is None:
            obj["data"][key] = ""
    obj["type"] = obj.get("type") or "Opaque"


def _namespace(obj: Json) -> None:
    """Label a Namespace with its own name, so that selectors of namespaces can name it."""
    metadata: Json = obj["metadata"]
    if metadata.get("name"):
        labels = as_dict(metadata.get("labels"))
        labels[_METADATA_NAME] = metadata["name"]
        metadata["labels"] = labels
    obj.setdefault("spec", {})
    _drop_empty(obj["spec"], "finalizers")
    status = as_dict(obj.get("status"))
    status.setdefault("phase", "Active")
    obj["status"] = status


def _create_namespace(obj: Json) -> None:
    obj["status"] = {"phase": "Active"}
    spec = as_dict(obj.get("spec"))
    finalizers = as_list(spec.get("finalizers"))
    if "kubernetes" not in finalizers:
        finalizers = [*finalizers, "kubernetes"]
    obj["spec"] = {**spec, "finalizers": finalizers}


def _update_namespace(new: Json, old: Json) -> None:
    spec = as_dict(new.get("spec"))
    spec.pop("finalizers", None)
    kept = at(old, "spec", "finalizers")
    new["spec"] = {**spec, "finalizers": kept} if kept else spec
    keep_status(new, old)


def _node(obj: Json) -> None:
    spec = as_dict(obj.get("spec"))
    ranges = as_list(spec.get("podCIDRs"))
    if ranges and not spec.get("podCIDR"):
        spec["podCIDR"] = ranges[0]
    elif spec.get("podCIDR") and not ranges:
        spec["podCIDRs"] = [spec["podCIDR"]]
    _drop_empty(spec, "unschedulable", "taints")
    obj["spec"] = spec
    status = as_dict(obj.get("status"))
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])
    for condition in as_list(status.get("conditions")):
        condition.setdefault("lastHeartbeatTime", None)
        condition.setdefault("lastTransitionTime", None)
    ends = status.setdefault("daemonEndpoints", {})
    ends.setdefault("kubeletEndpoint", {"Port": 0})
    info = as_dict(status.get("nodeInfo"))
    for field in _NODE_INFO:
        info.setdefault(field, "")
    status["nodeInfo"] = info
    obj["status"] = status


def _create_node(obj: Json) -> None:
    """Taint a new Node: nothing is to be scheduled on it until it says that it is ready."""
    spec = as_dict(obj.get("spec"))
    taints = as_list(spec.get("taints"))
    if not any(t.get("key") == _NOT_READY and t.get("effect") == "NoSchedule" for t in taints):
        taints = [*taints, {"key": _NOT_READY, "effect": "NoSchedule"}]
    obj["spec"] = {**spec, "taints": taints}


def _endpoints(obj: Json) -> None:
    _drop_empty(obj, "subsets")
    for subset in as_list(obj.get("subsets")):
        for port in as_list(subset.get("ports")):
            port["protocol"] = port.get("protocol") or "TCP"


def _event(obj: Json) -> None:
    """Write out the fields that an Event always has; which ones, its group decides."""
    if "regarding" in obj or obj.get("apiVersion", "v1") != "v1":
        # The names by which the core group calls what this one has no use for.
        obj.setdefault("deprecatedSource", {})
        obj.setdefault("deprecatedFirstTimestamp", None)
        obj.setdefault("deprecatedLastTimestamp", None)
        obj.setdefault("regarding", {})
        obj.setdefault("eventTime", None)
        return
    obj.setdefault("involvedObject", {})
    obj.setdefault("source", {})
    for field in ("firstTimestamp", "lastTimestamp", "eventTime"):
        obj.setdefault(field, None)
    for field in ("reportingComponent", "reportingInstance"):
        obj.setdefault(field, "")


def _claim(obj: Json) -> None:
    spec = as_dict(obj.get("spec"))
    spec["volumeMode"] = spec.get("volumeMode") or "Filesystem"
    spec.setdefault("resources", {})
    for field, other in (("dataSource", "dataSourceRef"), ("dataSourceRef", "dataSource")):
        source = as_dict(spec.get(field))
        if source:
            source.setdefault("apiGroup", None)
            if not spec.get(other) and not source.get("namespace"):
                spec[other] = dict(source)
    obj["spec"] = spec
    status = as_dict(obj.get("status"))
    status["phase"] = status.get("phase") or "Pending"
    obj["status"] = status


def _create_claim(obj: Json) -> None:
    _protect(obj, "kubernetes.io/pvc-protection")
    obj["status"] = {"phase": "Pending"}
    source = as_dict(at(obj, "spec", "dataSource"))
    # A source of the core group is another claim; anything else is quietly dropped.
    if source and not source.get("apiGroup") and source.get("kind") != "PersistentVolumeClaim":
        del obj["spec"]["dataSource"]


def _protect(obj: Json, finalizer: str) -> None:
    """Keep what is in use from being deleted."""
    metadata: Json = obj["metadata"]
    finalizers = as_list(metadata.get("finalizers"))
    if finalizer not in finalizers:
        metadata["finalizers"] = [*finalizers, finalizer]


def _volume(obj: Json) -> None:
    spec = as_dict(obj.get("spec"))
    spec["persistentVolumeReclaimPolicy"] = spec.get("persistentVolumeReclaimPolicy") or "Retain"
    spec["volumeMode"] = spec.get("volumeMode") or "Filesystem"
    _drop_empty(spec, "hostPath")
    path = as_dict(spec.get("hostPath"))
    if path:
        path.setdefault("type", "")
    obj["spec"] = spec
    status = as_dict(obj.get("status"))
    status["phase"] = status.get("phase") or "Pending"
    obj["status"] = status


def _create_volume(obj: Json) -> None:
    _protect(obj, "kubernetes.io/pv-protection")
    obj["status"] = {"phase": "Pending"}
    since = obj["metadata"].get("creationTimestamp")
    if since:
        obj["status"]["lastPhaseTransitionTime"] = since


def _quota(obj: Json) -> None:
    obj.setdefault("spec", {})
    obj.setdefault("status", {})


def _limit_range(obj: Json) -> None:
    """Default the limit to the maximum, and the request to that limit or to the minimum."""
    spec = as_dict(obj.get("spec"))
    spec["limits"] = spec.get("limits") or None
    obj["spec"] = spec
    for limit in as_list(spec["limits"]):
        if limit.get("type") != "Container":
            continue
        default = {**as_dict(limit.get("max")), **as_dict(limit.get("default"))}
        request = {**as_dict(limit.get("min")), **default, **as_dict(limit.get("defaultRequest"))}
        for field, value in (("default", default), ("defaultRequest", request)):
            if value:
                limit[field] = value


def _without_status(obj: Json) -> None:
    obj.pop("status", None)


DEFAULTS: Final[dict[str, Callable[[Json], None]]] = {
    "configmaps": _config_map,
    "endpoints": _endpoints,
    "events": _event,
    "limitranges": _limit_range,
    "namespaces": _namespace,
    "nodes": _node,
    "persistentvolumeclaims": _claim,
    "persistentvolumes": _volume,
    "resourcequotas": _quota,
    "secrets": _secret,
    "services": services.default,
}
PREPARE_CREATE: Final[dict[str, Callable[[Json], None]]] = {
    "namespaces": _create_namespace,
    "nodes": _create_node,
    "persistentvolumeclaims": _create_claim,
    "persistentvolumes": _create_volume,
    "resourcequotas": _without_status,
    "services": services.prepare_create,
}
PREPARE_UPDATE: Final[dict[str, Callable[[Json, Json], None]]] = {
    "namespaces": _update_namespace,
    "nodes": keep_status,
    "persistentvolumeclaims": keep_status,
    "persistentvolumes": keep_status,
    "resourcequotas": keep_status,
    "services": services.prepare_update,
}
