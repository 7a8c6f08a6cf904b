"""Volumes of a pod."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kinform.apiserver.scheme.field_errors import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    required,
)
from kinform.apiserver.scheme.resource_quantities import parse
from kinform.apiserver.serializer.json_values import Json, as_dict, as_list
from kinform.apiserver.validation.labels import unsupported
from kinform.apiserver.validation.names import dns_label, dns_subdomain
from kinform.apiserver.validation.pods.containers import check_local_path
from kinform.apiserver.validation.pods.environment import check_field_ref, check_resource_ref

__all__ = ["check_claim_spec", "check_volumes"]

_MODE: Final = "must be a number between 0 and 0777 (octal), both inclusive"
_ORDER: Final = (
    "emptyDir hostPath gitRepo gcePersistentDisk awsElasticBlockStore secret nfs iscsi glusterfs "
    "flocker persistentVolumeClaim rbd cinder cephfs quobyte downwardAPI fc flexVolume configMap "
    "azureFile vsphereVolume photonPersistentDisk portworxVolume azureDisk storageos projected "
    "scaleIO csi ephemeral image"
)
"""The server looks for sources in this order; of two, the later one is forbidden."""

_HOST_PATH_TYPES: Final = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_VOLUME_FIELDS: Final = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "secret": ("secretName",),
    "configMap": ("name",),
    "persistentVolumeClaim": ("claimName",),
    "gitRepo": ("repository",),
    "awsElasticBlockStore": ("volumeID",),
    "gcePersistentDisk": ("pdName",),
    "iscsi": ("targetPortal", "iqn"),
    "image": ("reference",),
    "cephfs": ("monitors",),
    "glusterfs": ("endpoints", "path"),
    "rbd": ("monitors", "image"),
    "flexVolume": ("driver",),
    "nfs": ("server", "path"),
    "csi": ("driver",),
    "cinder": ("volumeID",),
    "azureFile": ("secretName", "shareName"),
    "vsphereVolume": ("volumePath",),
    "portworxVolume": ("volumeID",),
}
_ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")


def check_volumes(volumes: list[Json], path: str, errors: list[FieldError]) -> dict[str, Json]:
    """Validate volumes; return those that containers may mount, by name."""
    found: dict[str, Json] = {}
    for index, volume in enumerate(volumes):
        at = f"{path}[{index}]"
        before = len(errors)
        _check_source(volume, at, errors)
        name = volume.get("name") or ""
        if not name:
            errors.append(required(f"{at}.name"))
        elif problems := dns_label(name):
            errors += [invalid(f"{at}.name", name, problem) for problem in problems]
        if name in found:
            errors.append(duplicate(f"{at}.name", name))
        if len(errors) == before:
            found[name] = volume
    return found


def _check_source(volume: Json, path: str, errors: list[FieldError]) -> None:
    sources = [key for key in volume if key != "name"]
    if len(sources) > 1:
        sources.sort(key=_ORDER.find)
        detail = "may not specify more than 1 volume type"
        errors += [forbidden(f"{path}.{source}", detail) for source in sources[1:]]
        del sources[1:]
    for source in sources:
        at = f"{path}.{source}"
        for field in _NEEDED.get(source, ()):
            if not volume[source].get(field):
                errors.append(required(f"{at}.{field}"))
        if (check := _CHECKS.get(source)) is not None:
            check(volume[source], at, errors)


def _check_empty_dir(source: Json, path: str, errors: list[FieldError]) -> None:
    if "sizeLimit" in source and parse(source["sizeLimit"]) < 0:
        detail = "SizeLimit field must be a valid resource quantity"
        errors.append(forbidden(f"{path}.sizeLimit", detail))


def _check_host_path(source: Json, path: str, errors: list[FieldError]) -> None:
    where = source.get("path") or ""
    if not where:
        errors.append(required(f"{path}.path"))
    elif ".." in where.split("/"):
        errors.append(invalid(f"{path}.path", where, "must not contain '..'"))
    kind = source.get("type") or ""
    if kind not in _HOST_PATH_TYPES:
        errors.append(unsupported(f"{path}.type", kind, _HOST_PATH_TYPES))


def _check_mode(mode: int | None, path: str, errors: list[FieldError]) -> None:
    if mode is not None and not 0 <= mode <= 0o777:
        errors.append(invalid(path, mode, _MODE))


def _check_files(source: Json, path: str, errors: list[FieldError]) -> None:
    _check_mode(source.get("defaultMode"), f"{path}.defaultMode", errors)
    _check_items(source, path, errors)


def _check_items(source: Json, path: str, errors: list[FieldError]) -> None:
    for index, item in enumerate(source.get("items") or ()):
        at = f"{path}.items[{index}]"
        if not item.get("key"):
            errors.append(required(f"{at}.key"))
        _check_file_path(item.get("path") or "", f"{at}.path", errors)
        _check_mode(item.get("mode"), f"{at}.mode", errors)


def _check_file_path(text: str, path: str, errors: list[FieldError]) -> None:
    if not text:
        errors.append(required(path))
    check_local_path(text, path, errors)
    if text.startswith("..") and not text.startswith("../"):
        errors.append(invalid(path, text, "must not start with '..'"))


def _check_nfs(source: Json, path: str, errors: list[FieldError]) -> None:
    where = source.get("path") or ""
    if not where.startswith("/"):
        errors.append(invalid(f"{path}.path", where, "must be an absolute path"))


def _check_csi(source: Json, path: str, errors: list[FieldError]) -> None:
    if driver := source.get("driver"):
        problems = dns_subdomain(driver.lower())
        errors += [invalid(f"{path}.driver", driver, problem) for problem in problems]


def _check_fc(source: Json, path: str, errors: list[FieldError]) -> None:
    if bool(source.get("targetWWNs")) == bool(source.get("wwids")):
        detail = "must specify either targetWWNs or wwids, but not both"
        errors.append(required(f"{path}.targetWWNs", detail))


def _check_downward(source: Json, path: str, errors: list[FieldError]) -> None:
    _check_mode(source.get("defaultMode"), f"{path}.defaultMode", errors)
    _check_downward_items(source, path, errors)


def _check_downward_items(source: Json, path: str, errors: list[FieldError]) -> None:
    """Validate files with fields of the pod in them; the server names no index here."""
    for item in source.get("items") or ():
        field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
        _check_file_path(item.get("path") or "", f"{path}.path", errors)
        if field is not None:
            at = f"{path}.fieldRef"
            check_field_ref(field, at, errors, supported=_VOLUME_FIELDS)
            if resource is not None:
                detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
                errors.append(invalid(path, "resource", detail))
        elif resource is not None:
            check_resource_ref(resource, f"{path}.resourceFieldRef", errors, in_volume=True)
        else:
            detail = "one of fieldRef and resourceFieldRef is required"
            errors.append(required(path, detail))
        _check_mode(item.get("mode"), f"{path}.mode", errors)


def _check_projected(source: Json, path: str, errors: list[FieldError]) -> None:
    _check_mode(source.get("defaultMode"), f"{path}.defaultMode", errors)
    taken: set[str] = set()
    for index, one in enumerate(source.get("sources") or ()):
        at = f"{path}.sources[{index}]"
        if len(one) > 1:
            errors.append(forbidden(at, "may not specify more than 1 volume type per source"))
            continue
        for kind in ("secret", "configMap"):
            if (files := one.get(kind)) is not None:
                if not files.get("name"):
                    errors.append(required(f"{at}.{kind}.name"))
                _check_items(files, f"{at}.{kind}", errors)
                paths: set[str] = {item.get("path") for item in as_list(files.get("items"))}
                if paths & taken:
                    detail = "conflicting duplicate paths"
                    errors.append(invalid(path, files.get("name") or "", detail))
                taken |= paths
        if (downward := one.get("downwardAPI")) is not None:
            _check_downward_items(downward, f"{at}.downwardAPI", errors)
        if (token := one.get("serviceAccountToken")) is not None:
            _check_token(token, f"{at}.serviceAccountToken", errors, volume=path)


def _check_token(token: Json, path: str, errors: list[FieldError], *, volume: str) -> None:
    at = f"{path}.expirationSeconds"
    seconds = token.get("expirationSeconds") or 0
    if seconds < 600:
        detail = "may not specify a duration less than 10 minutes"
        errors.append(invalid(at, seconds, detail))
    elif seconds > 2**32:
        errors.append(invalid(at, seconds, "may not specify a duration larger than 2^32 seconds"))
    if not token.get("path"):
        errors.append(required(f"{volume}.path"))


def _check_ephemeral(source: Json, path: str, errors: list[FieldError]) -> None:
    at = f"{path}.volumeClaimTemplate"
    if (template := source.get("volumeClaimTemplate")) is None:
        errors.append(required(at))
    else:
        check_claim_spec(as_dict(template.get("spec")), f"{at}.spec", errors)


def check_claim_spec(spec: Json, path: str, errors: list[FieldError]) -> None:
    """Validate what is claimed of a volume."""
    modes: list[str] = spec.get("accessModes") or []
    if not modes:
        errors.append(required(f"{path}.accessModes", "at least 1 access mode is required"))
    errors += [
        unsupported(f"{path}.accessModes", mode, _ACCESS_MODES)
        for mode in modes
        if mode not in _ACCESS_MODES
    ]
    if "ReadWriteOncePod" in modes and len(set(modes)) > 1:
        detail = "may not use ReadWriteOncePod with other access modes"
        errors.append(forbidden(f"{path}.accessModes", detail))
    storage = as_dict(as_dict(spec.get("resources")).get("requests")).get("storage")
    if storage is None:
        errors.append(required(f"{path}.resources[storage]"))
    elif parse(storage) <= 0:
        at = f"{path}.resources[storage]"
        errors.append(invalid(at, storage, "must be greater than zero"))


_CHECKS: Final[Mapping[str, Callable[[Json, str, list[FieldError]], None]]] = {
    "emptyDir": _check_empty_dir,
    "hostPath": _check_host_path,
    "secret": _check_files,
    "configMap": _check_files,
    "nfs": _check_nfs,
    "csi": _check_csi,
    "fc": _check_fc,
    "downwardAPI": _check_downward,
    "projected": _check_projected,
    "ephemeral": _check_ephemeral,
}
