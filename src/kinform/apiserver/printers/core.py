"""Rows of the kinds that pods use and live in: Services, ConfigMaps, Nodes, volumes, events."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from kinform.apiserver.printers import ages, cell_texts
from kinform.apiserver.printers.cell_texts import NONE
from kinform.apiserver.serializer.json_values import Json, JsonValue, as_dict, as_list, at, text

__all__ = [
    "claim",
    "config_map",
    "endpoints",
    "event",
    "namespace",
    "node",
    "resource_quota",
    "secret",
    "service",
    "service_account",
    "volume",
]

_UNSET: Final = "<unset>"
_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_ROLE_PREFIX: Final = "node-role.kubernetes.io/"
_ROLE: Final = "kubernetes.io/role"


def service(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a Service."""
    spec = as_dict(obj.get("spec"))
    addresses = as_list(spec.get("clusterIPs"))
    return [
        obj["metadata"].get("name", ""),
        spec.get("type", ""),
        addresses[0] if addresses else spec.get("clusterIP") or NONE,
        _external(obj, spec),
        ",".join(map(_port, as_list(spec.get("ports")))) or NONE,
        ages.age_of(obj, now),
        cell_texts.labels(spec.get("selector")),
    ]


def _external(obj: Json, spec: Json) -> str:
    kind: str = spec.get("type", "")
    own: list[str] = as_list(spec.get("externalIPs"))
    if kind == "ExternalName":
        return text(spec, "externalName")
    if kind in {"ClusterIP", "NodePort"}:
        return ",".join(own) or NONE
    if kind != "LoadBalancer":
        return ages.UNKNOWN
    given = balancers(at(obj, "status", "loadBalancer", "ingress"))
    return ",".join([*given, *own]) or "<pending>"


def balancers(ingress: object) -> list[str]:
    """Return the addresses of a load balancer: of each its IP, else its host name."""
    found = [one.get("ip") or one.get("hostname") or "" for one in as_list(ingress)]
    return sorted(set(filter(None, found)))


def _port(port: Json) -> str:
    node = port.get("nodePort")
    middle = f":{node}" if node else ""
    return f"{port.get('port', 0)}{middle}/{port.get('protocol', '')}"


def config_map(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a ConfigMap."""
    count = len(obj.get("data") or ()) + len(obj.get("binaryData") or ())
    return [obj["metadata"].get("name", ""), count, ages.age_of(obj, now)]


def secret(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a Secret."""
    count = len(obj.get("data") or ())
    return [
        obj["metadata"].get("name", ""),
        obj.get("type", ""),
        count,
        ages.age_of(obj, now),
    ]


def namespace(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a Namespace."""
    phase = text(obj, "status", "phase")
    return [obj["metadata"].get("name", ""), phase, ages.age_of(obj, now)]


def service_account(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a ServiceAccount."""
    return [obj["metadata"].get("name", ""), ages.age_of(obj, now)]


def node(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a Node."""
    info = as_dict(at(obj, "status", "nodeInfo"))
    return [
        obj["metadata"].get("name", ""),
        _node_state(obj),
        ",".join(_roles(as_dict(obj["metadata"].get("labels")))) or NONE,
        ages.age_of(obj, now),
        info.get("kubeletVersion", ""),
        _address(obj, "InternalIP"),
        _address(obj, "ExternalIP"),
        info.get("osImage") or ages.UNKNOWN,
        _kernel(info),
        info.get("containerRuntimeVersion") or ages.UNKNOWN,
    ]


def _kernel(info: Json) -> str:
    kernel, machine = info.get("kernelVersion"), info.get("architecture")
    if not kernel:
        return ages.UNKNOWN
    return f"{kernel} ({machine})" if machine else kernel


def _node_state(obj: Json) -> str:
    states = [
        "Ready" if one.get("status") == "True" else "NotReady"
        for one in as_list(at(obj, "status", "conditions"))
        if one.get("type") == "Ready"
    ]
    state = states[-1] if states else "Unknown"
    return f"{state},SchedulingDisabled" if at(obj, "spec", "unschedulable") else state


def _roles(labels: Json) -> list[str]:
    found = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    found.add(labels.get(_ROLE, ""))
    return sorted(filter(None, found))


def _address(obj: Json, kind: str) -> str:
    for one in as_list(at(obj, "status", "addresses")):
        if one.get("type") == kind:
            return text(one, "address")
    return NONE


def event(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of an Event, of the core group or of ``events.k8s.io``."""
    series = as_dict(obj.get("series"))
    first = obj.get("firstTimestamp") or obj.get("deprecatedFirstTimestamp") or obj.get("eventTime")
    last = obj.get("lastTimestamp") or obj.get("deprecatedLastTimestamp") or first
    count = obj.get("count") or obj.get("deprecatedCount") or 1
    if series:
        last, count = series.get("lastObservedTime"), series.get("count", 0)
    target = as_dict(obj.get("involvedObject") or obj.get("regarding"))
    kind = target.get("kind", "").lower()
    return [
        ages.since(last, now),
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{kind}/{target['name']}" if target.get("name") else kind,
        target.get("fieldPath", ""),
        _source(obj),
        (obj.get("message") or obj.get("note") or "").strip(),
        ages.since(first, now),
        count,
        obj["metadata"].get("name", ""),
    ]


def _source(obj: Json) -> str:
    source = as_dict(obj.get("source") or obj.get("deprecatedSource"))
    who = (
        source.get("component")
        or obj.get("reportingComponent")
        or obj.get("reportingController")
        or ""
    )
    where = source.get("host") or obj.get("reportingInstance") or ""
    return f"{who}, {where}" if where else who


def endpoints(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of Endpoints."""
    subsets = as_list(obj.get("subsets"))
    found = [pair for subset in subsets for pair in _pairs(subset)]
    shown = cell_texts.few(found) if subsets else NONE
    return [obj["metadata"].get("name", ""), shown, ages.age_of(obj, now)]


def _pairs(subset: Json) -> Iterable[str]:
    addresses = [one.get("ip", "") for one in as_list(subset.get("addresses"))]
    ports = as_list(subset.get("ports"))
    if not ports:
        return addresses
    return [
        f"[{address}]:{port['port']}" if ":" in address else f"{address}:{port['port']}"
        for port in ports
        for address in addresses
    ]


def volume(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a PersistentVolume."""
    spec, status = as_dict(obj.get("spec")), as_dict(obj.get("status"))
    claimed = as_dict(spec.get("claimRef"))
    return [
        obj["metadata"].get("name", ""),
        _storage(spec),
        _modes(spec),
        spec.get("persistentVolumeReclaimPolicy", ""),
        _phase(obj),
        f"{claimed.get('namespace', '')}/{claimed.get('name', '')}" if claimed else "",
        _class_name(obj),
        spec.get("volumeAttributesClassName") or _UNSET,
        status.get("reason", ""),
        ages.age_of(obj, now),
        spec.get("volumeMode") or _UNSET,
    ]


def claim(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a PersistentVolumeClaim; until bound it has no size."""
    spec, status = as_dict(obj.get("spec")), as_dict(obj.get("status"))
    is_bound = bool(spec.get("volumeName"))
    return [
        obj["metadata"].get("name", ""),
        _phase(obj),
        spec.get("volumeName", ""),
        _storage(status) if is_bound else "",
        _modes(status) if is_bound else "",
        _class_name(obj),
        spec.get("volumeAttributesClassName") or _UNSET,
        ages.age_of(obj, now),
        spec.get("volumeMode") or _UNSET,
    ]


def _storage(node: Json) -> str:
    capacity = as_dict(node.get("capacity"))
    return str(capacity["storage"]) if "storage" in capacity else "0"


def _modes(node: Json) -> str:
    present = as_list(node.get("accessModes"))
    return ",".join([short for mode, short in _MODES.items() if mode in present])


def _phase(obj: Json) -> str:
    return (
        "Terminating" if obj["metadata"].get("deletionTimestamp") else text(obj, "status", "phase")
    )


def _class_name(obj: Json) -> str:
    annotated = text(obj, "metadata", "annotations", "volume.beta.kubernetes.io/storage-class")
    return annotated or text(obj, "spec", "storageClassName")


def resource_quota(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a ResourceQuota: of requests and of limits, used and allowed."""
    hard, used = as_dict(at(obj, "status", "hard")), as_dict(at(obj, "status", "used"))
    parts = [(name, f"{name}: {used.get(name, '0')}/{hard[name]}") for name in sorted(hard)]
    limits = [part for name, part in parts if name.startswith("limits.")]
    requests = [part for name, part in parts if not name.startswith("limits.")]
    return [
        obj["metadata"].get("name", ""),
        ", ".join(requests),
        ", ".join(limits),
        ages.age_of(obj, now),
    ]
