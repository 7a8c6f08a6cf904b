"""Validation of volumes, of claims to them, and of their classes."""

from __future__ import annotations

from typing import Final

from kinform.apiserver.scheme.field_errors import (
    FieldError,
    Problem,
    forbidden,
    invalid,
    not_supported,
    required,
)
from kinform.apiserver.scheme.resource_quantities import parse
from kinform.apiserver.serializer.json_values import Json, as_dict, as_list, at
from kinform.apiserver.validation import claim_diffs
from kinform.apiserver.validation.labels import check_label_selector
from kinform.apiserver.validation.metadata import IMMUTABLE
from kinform.apiserver.validation.names import dns_subdomain, qualified_name

__all__ = [
    "claim",
    "claim_update",
    "storage_class",
    "storage_class_update",
    "volume",
    "volume_update",
]

_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_ALONE: Final = "ReadWriteOncePod"
_RECLAIM: Final = ("Delete", "Recycle", "Retain")
_VOLUME_MODES: Final = ("Block", "Filesystem")
_BINDING: Final = ("Immediate", "WaitForFirstConsumer")
_SOURCES: Final[dict[str, tuple[str, ...]]] = {
    "hostPath": ("path",),
    "gcePersistentDisk": ("pdName",),
    "awsElasticBlockStore": ("volumeID",),
    "glusterfs": ("endpoints", "path"),
    "nfs": ("server", "path"),
    "rbd": (),
    "cephfs": (),
    "iscsi": (),
    "cinder": ("volumeID",),
    "fc": (),
    "flocker": (),
    "azureDisk": (),
    "azureFile": (),
    "vsphereVolume": ("volumePath",),
    "photonPersistentDisk": ("pdID",),
    "quobyte": (),
    "portworxVolume": ("volumeID",),
    "scaleIO": (),
    "local": ("path",),
    "storageos": (),
    "csi": ("driver", "volumeHandle"),
    "flexVolume": ("driver",),
}
_CLAIM_FIXED: Final = (
    "spec is immutable after creation except resources.requests and "
    "volumeAttributesClassName for bound claims"
)


def _check_modes(modes: list[str]) -> list[FieldError]:
    errors = [
        not_supported("spec.accessModes", mode, _MODES) for mode in modes if mode not in _MODES
    ]
    if _ALONE in modes and set(modes) != {_ALONE}:
        why = f"may not use {_ALONE} with other access modes"
        errors.append(forbidden("spec.accessModes", why))
    return errors


def _check_class(spec: Json, field: str) -> list[FieldError]:
    name = spec.get(field)
    return [invalid(f"spec.{field}", name, why) for why in dns_subdomain(name)] if name else []


def _check_volume_mode(spec: Json) -> list[FieldError]:
    mode = spec.get("volumeMode")
    if mode is None or mode in _VOLUME_MODES:
        return []
    return [not_supported("spec.volumeMode", mode, _VOLUME_MODES)]


def claim(obj: Json) -> list[FieldError]:
    """Return the errors of a PersistentVolumeClaim."""
    spec = as_dict(obj.get("spec"))
    errors: list[FieldError] = []
    modes = as_list(spec.get("accessModes"))
    if not modes:
        errors.append(required("spec.accessModes", "at least 1 access mode is required"))
    if spec.get("selector"):
        check_label_selector(spec["selector"], "spec.selector", errors)
    errors += _check_modes(modes)
    wanted = as_dict(at(spec, "resources", "requests")).get("storage")
    if wanted is None:
        errors.append(required("spec.resources[storage]"))
    elif parse(wanted) <= 0:
        errors.append(invalid("spec.resources[storage]", wanted, "must be greater than zero"))
    errors += _check_class(spec, "storageClassName")
    errors += _check_volume_mode(spec)
    return errors + _check_class(spec, "volumeAttributesClassName")


def claim_update(new: Json, old: Json) -> list[FieldError]:
    """Return the errors of a change of a claim: once bound, only its size may grow."""
    errors = claim(new)
    after, before = as_dict(new.get("spec")), as_dict(old.get("spec"))
    left, right = dict(after), dict(before)
    # The volume is set when a claim is bound, the class when the default class is applied.
    for field in ("volumeName", "storageClassName"):
        if not before.get(field):
            left.pop(field, None)
            right.pop(field, None)
    is_bound = at(old, "status", "phase") == "Bound"
    if is_bound:
        for spec in (left, right):
            spec.pop("volumeAttributesClassName", None)
            spec.pop("resources", None)
    if left != right:
        shown = dict(before)
        if not before.get("volumeName"):
            shown["volumeName"] = after.get("volumeName")
        wished = dict(after)
        if not before.get("storageClassName"):
            wished["storageClassName"] = before.get("storageClassName")
        what = claim_diffs.difference(shown, wished)
        errors.append(forbidden("spec", f"{_CLAIM_FIXED}\n{what}"))
    if after.get("volumeMode") != before.get("volumeMode"):
        errors.append(invalid("volumeMode", after.get("volumeMode"), IMMUTABLE))
    wanted = at(after, "resources", "requests", "storage")
    earlier = at(before, "resources", "requests", "storage")
    given = at(old, "status", "capacity", "storage")
    is_smaller = wanted and earlier and is_bound and parse(wanted) < parse(earlier)
    if is_smaller and (given is None or parse(wanted) <= parse(given)):
        why = "field can not be less than status.capacity"
        errors.append(forbidden("spec.resources.requests.storage", why))
    return errors


def volume(obj: Json) -> list[FieldError]:
    """Return the errors of a PersistentVolume."""
    spec = as_dict(obj.get("spec"))
    errors: list[FieldError] = []
    modes = as_list(spec.get("accessModes"))
    if not modes:
        errors.append(required("spec.accessModes"))
    errors += _check_modes(modes) + _check_capacity(spec) + _check_source(spec)
    policy = spec.get("persistentVolumeReclaimPolicy")
    if policy not in _RECLAIM:
        errors.append(not_supported("spec.persistentVolumeReclaimPolicy", policy, _RECLAIM))
    if policy == "Recycle" and at(spec, "hostPath", "path") == "/":
        why = "may not be 'recycle' for a hostPath mount of '/'"
        errors.append(forbidden("spec.persistentVolumeReclaimPolicy", why))
    errors += _check_class(spec, "storageClassName")
    return errors + _check_volume_mode(spec)


def _check_capacity(spec: Json) -> list[FieldError]:
    capacity = spec.get("capacity")
    errors: list[FieldError] = []
    if not capacity:
        errors.append(required("spec.capacity"))
    if list(as_dict(capacity)) != ["storage"]:
        return [*errors, not_supported("spec.capacity", capacity, ("storage",))]
    amount = as_dict(capacity)["storage"]
    if parse(amount) <= 0:
        errors.append(invalid("spec.capacity[storage]", amount, "must be greater than zero"))
    return errors


def _check_source(spec: Json) -> list[FieldError]:
    present = [name for name in _SOURCES if spec.get(name) is not None]
    if not present:
        return [required("spec", "must specify a volume type")]
    why = "may not specify more than 1 volume type"
    errors = [forbidden(f"spec.{name}", why) for name in present[1:]]
    name, source = present[0], as_dict(spec[present[0]])
    missing = [field for field in _SOURCES[name] if not source.get(field)]
    errors += [required(f"spec.{name}.{field}") for field in missing]
    path = source.get("path") or ""
    if name == "nfs" and not path.startswith("/"):
        errors.append(invalid("spec.nfs.path", path, "must be an absolute path"))
    if name in {"hostPath", "local"} and ".." in path.split("/"):
        errors.append(invalid(f"spec.{name}.path", path, "must not contain '..'"))
    if name == "local" and not spec.get("nodeAffinity"):
        why = "Local volume requires node affinity"
        errors.append(required("spec.nodeAffinity", why))
    return errors


def volume_update(new: Json, old: Json) -> list[FieldError]:
    """Return the errors of a change of a PersistentVolume."""
    errors = volume(new)
    after, before = as_dict(new.get("spec")), as_dict(old.get("spec"))
    if any(after.get(name) != before.get(name) for name in _SOURCES):
        why = "spec.persistentvolumesource is immutable after creation"
        errors.append(forbidden("spec.persistentvolumesource", why))
    if after.get("volumeMode") != before.get("volumeMode"):
        errors.append(invalid("volumeMode", after.get("volumeMode"), IMMUTABLE))
    return errors


def storage_class(obj: Json) -> list[FieldError]:
    """Return the errors of a StorageClass."""
    errors: list[FieldError] = []
    name = obj.get("provisioner") or ""
    if name:
        problems = qualified_name(name.lower())
        errors += [invalid("provisioner", name, why) for why in problems]
    else:
        errors.append(required("provisioner"))
    if "" in as_dict(obj.get("parameters")):
        errors.append(invalid("parameters", "", "field can not be empty."))
    if obj.get("reclaimPolicy") not in {"Delete", "Retain"}:
        value = obj.get("reclaimPolicy")
        errors.append(not_supported("reclaimPolicy", value, ("Delete", "Retain")))
    if obj.get("volumeBindingMode") not in _BINDING:
        value = obj.get("volumeBindingMode")
        errors.append(not_supported("volumeBindingMode", value, _BINDING))
    for index, term in enumerate(as_list(obj.get("allowedTopologies"))):
        for place, one in enumerate(as_list(term.get("matchLabelExpressions"))):
            if not one.get("values"):
                path = f"allowedTopologies[{index}].matchLabelExpressions[{place}].values"
                errors.append(FieldError(Problem.REQUIRED, path))
    return errors


def storage_class_update(new: Json, old: Json) -> list[FieldError]:
    """Return the errors of a change of a StorageClass: hardly anything may change."""
    errors = storage_class(new)
    for field in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
        if (new.get(field) or None) != (old.get(field) or None):
            errors.append(invalid(field, new.get(field), IMMUTABLE))
    return errors
