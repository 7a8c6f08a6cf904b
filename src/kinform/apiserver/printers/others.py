"""Rows of the remaining kinds: leases, bindings of roles, storage, devices, certificates."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from kinform.apiserver.printers import ages
from kinform.apiserver.printers.cell_texts import NONE
from kinform.apiserver.serializer.json_values import Json, JsonValue, as_dict, as_list, at, text

__all__ = [
    "created",
    "csi_driver",
    "csi_node",
    "lease",
    "named",
    "resource_claim",
    "resource_slice",
    "role_binding",
    "runtime_class",
    "signing_request",
    "storage_class",
    "volume_attachment",
    "volume_attributes_class",
]

_DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_NO_TIME: Final = "0001-01-01T00:00:00Z"


def created(obj: Json, now: datetime) -> list[JsonValue]:  # noqa: ARG001 -- a time, no age
    """Return the cells of a kind that has no table of its own: name and creation."""
    metadata = obj["metadata"]
    return [metadata.get("name", ""), metadata.get("creationTimestamp") or _NO_TIME]


def named(obj: Json, now: datetime) -> list[JsonValue]:
    """Return name and age, which is all that some kinds show."""
    return [obj["metadata"].get("name", ""), ages.age_of(obj, now)]


def lease(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a Lease."""
    holder = text(obj, "spec", "holderIdentity")
    return [obj["metadata"].get("name", ""), holder, ages.age_of(obj, now)]


def role_binding(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a RoleBinding or ClusterRoleBinding."""
    role = as_dict(obj.get("roleRef"))
    subjects: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for one in as_list(obj.get("subjects")):
        kind, name = one.get("kind", ""), one.get("name", "")
        if kind in subjects:
            account = f"{one.get('namespace', '')}/{name}"
            subjects[kind].append(account if kind == "ServiceAccount" else name)
    return [
        obj["metadata"].get("name", ""),
        f"{role.get('kind', '')}/{role.get('name', '')}",
        ages.age_of(obj, now),
        *(", ".join(names) for names in subjects.values()),
    ]


def storage_class(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a StorageClass."""
    metadata = obj["metadata"]
    annotations = as_dict(metadata.get("annotations"))
    is_default = any(annotations.get(name) == "true" for name in _DEFAULT_CLASS)
    name = metadata.get("name", "")
    return [
        f"{name} (default)" if is_default else name,
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy") or "Delete",
        obj.get("volumeBindingMode") or "Immediate",
        obj.get("allowVolumeExpansion", False),
        ages.age_of(obj, now),
    ]


def csi_driver(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a CSIDriver."""
    spec = as_dict(obj.get("spec"))
    requests = as_list(spec.get("tokenRequests"))
    return [
        obj["metadata"].get("name", ""),
        spec.get("attachRequired", True),
        spec.get("podInfoOnMount", False),
        spec.get("storageCapacity", False),
        ",".join([one.get("audience", "") for one in requests]) if requests else "<unset>",
        spec.get("requiresRepublish", False),
        ",".join(as_list(spec.get("volumeLifecycleModes"))) or NONE,
        ages.age_of(obj, now),
    ]


def csi_node(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a CSINode."""
    count = len(as_list(at(obj, "spec", "drivers")))
    return [obj["metadata"].get("name", ""), count, ages.age_of(obj, now)]


def volume_attachment(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a VolumeAttachment."""
    return [
        obj["metadata"].get("name", ""),
        text(obj, "spec", "attacher"),
        text(obj, "spec", "source", "persistentVolumeName"),
        text(obj, "spec", "nodeName"),
        at(obj, "status", "attached") or False,
        ages.age_of(obj, now),
    ]


def volume_attributes_class(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a VolumeAttributesClass."""
    return [obj["metadata"].get("name", ""), obj.get("driverName", ""), ages.age_of(obj, now)]


def runtime_class(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a RuntimeClass."""
    return [obj["metadata"].get("name", ""), obj.get("handler", ""), ages.age_of(obj, now)]


def resource_claim(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a ResourceClaim."""
    states: list[str] = []
    if obj["metadata"].get("deletionTimestamp"):
        states.append("deleted")
    if at(obj, "status", "allocation"):
        states.append("allocated")
    elif not states:
        states.append("pending")
    if at(obj, "status", "reservedFor"):
        states.append("reserved")
    return [obj["metadata"].get("name", ""), ",".join(states), ages.age_of(obj, now)]


def resource_slice(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a ResourceSlice."""
    return [
        obj["metadata"].get("name", ""),
        text(obj, "spec", "nodeName"),
        text(obj, "spec", "driver"),
        text(obj, "spec", "pool", "name"),
        ages.age_of(obj, now),
    ]


def signing_request(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a CertificateSigningRequest."""
    spec = as_dict(obj.get("spec"))
    seconds = spec.get("expirationSeconds")
    return [
        obj["metadata"].get("name", ""),
        ages.age_of(obj, now),
        spec.get("signerName") or NONE,
        spec.get("username", ""),
        NONE if seconds is None else ages.duration(seconds),
        _signing_state(obj),
    ]


def _signing_state(obj: Json) -> str:
    present = {one.get("type") for one in as_list(at(obj, "status", "conditions"))}
    states = [name for name in ("Denied", "Approved") if name in present][:1] or ["Pending"]
    if "Failed" in present:
        states.append("Failed")
    if at(obj, "status", "certificate"):
        states.append("Issued")
    return ",".join(states)
