"""The environment of a container, and the fields of its pod that it can show."""

from __future__ import annotations

import re
from typing import Final

from kinform.apiserver.scheme.field_errors import FieldError, invalid, required
from kinform.apiserver.serializer.json_values import Json
from kinform.apiserver.validation.labels import unsupported
from kinform.apiserver.validation.names import config_key, dns_subdomain, env_name, qualified_name

__all__ = ["ENV_FIELDS", "check_env", "check_env_from", "check_field_ref", "check_resource_ref"]

ENV_FIELDS: Final = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
"""The fields of its pod that a container can see in its environment."""

_KNOWN_FIELDS: Final = frozenset(
    {
        *ENV_FIELDS,
        "metadata.labels",
        "metadata.annotations",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.hostNetwork",
        "status.phase",
        "status.nominatedNodeName",
    }
)
_RESOURCES: Final = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
_SUBSCRIPT: Final = re.compile(r"(metadata\.(?:labels|annotations))\['(.*)'\]")
_SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_NO_SOURCE: Final = (
    "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or "
    "`fileKeyRef`"
)
_TWO_SOURCES: Final = "may not have more than one field specified at a time"


def check_env(env: list[Json], path: str, errors: list[FieldError]) -> None:
    """Validate variables, one by one."""
    for index, variable in enumerate(env):
        at = f"{path}[{index}]"
        name = variable.get("name") or ""
        if not name:
            errors.append(required(f"{at}.name"))
        elif problems := env_name(name):
            errors += [invalid(f"{at}.name", name, problem) for problem in problems]
        if (source := variable.get("valueFrom")) is not None:
            _check_source(source, f"{at}.valueFrom", errors)
            if variable.get("value") and any(field in source for field in _SOURCES):
                detail = "may not be specified when `value` is not empty"
                errors.append(invalid(f"{at}.valueFrom", "", detail))


def check_env_from(sources: list[Json], path: str, errors: list[FieldError]) -> None:
    """Validate maps whose keys become variables."""
    for index, source in enumerate(sources):
        at = f"{path}[{index}]"
        if prefix := source.get("prefix"):
            errors += [invalid(f"{at}.prefix", prefix, problem) for problem in env_name(prefix)]
        count = 0
        for field in ("configMapRef", "secretRef"):
            if (reference := source.get(field)) is not None:
                count += 1
                _check_reference(reference.get("name") or "", f"{at}.{field}.name", errors)
        if count != 1:
            one_of = "must specify one of: `configMapRef` or `secretRef`"
            # The server forgets the index here.
            errors.append(invalid(path, "", _TWO_SOURCES if count else one_of))


def _check_reference(name: str, path: str, errors: list[FieldError]) -> None:
    if not name:
        errors.append(required(path))
    else:
        errors += [invalid(path, name, problem) for problem in dns_subdomain(name)]


def _check_source(source: Json, path: str, errors: list[FieldError]) -> None:
    count = 0
    if (field := source.get("fieldRef")) is not None:
        count += 1
        check_field_ref(field, f"{path}.fieldRef", errors, supported=ENV_FIELDS)
    if (resource := source.get("resourceFieldRef")) is not None:
        count += 1
        check_resource_ref(resource, f"{path}.resourceFieldRef", errors, in_volume=False)
    for name in ("configMapKeyRef", "secretKeyRef"):
        if (reference := source.get(name)) is not None:
            count += 1
            _check_key(reference, f"{path}.{name}", errors)
    count += "fileKeyRef" in source
    if count != 1:
        errors.append(invalid(path, "", _TWO_SOURCES if count else _NO_SOURCE))


def _check_key(reference: Json, path: str, errors: list[FieldError]) -> None:
    name, key = reference.get("name") or "", reference.get("key") or ""
    errors += [invalid(f"{path}.name", name, problem) for problem in dns_subdomain(name)]
    if not key:
        errors.append(required(f"{path}.key"))
    else:
        errors += [invalid(f"{path}.key", key, problem) for problem in config_key(key)]


def check_field_ref(
    reference: Json, path: str, errors: list[FieldError], *, supported: tuple[str, ...]
) -> None:
    """Validate a reference to a field of the pod itself; one label or annotation is always fine."""
    field = reference.get("fieldPath") or ""
    if not reference.get("apiVersion"):
        errors.append(required(f"{path}.apiVersion"))
        return
    if not field:
        errors.append(required(f"{path}.fieldPath"))
        return
    if match := _SUBSCRIPT.fullmatch(field):
        key = match[2].lower() if match[1].endswith("annotations") else match[2]
        errors += [invalid(path, match[2], problem) for problem in qualified_name(key)]
    elif field not in _KNOWN_FIELDS:
        detail = f"error converting fieldPath: field label not supported: {field}"
        errors.append(invalid(f"{path}.fieldPath", field, detail))
    elif field not in supported:
        errors.append(unsupported(f"{path}.fieldPath", field, supported))


def check_resource_ref(
    reference: Json, path: str, errors: list[FieldError], *, in_volume: bool
) -> None:
    """Validate a reference to what a container may use."""
    resource = reference.get("resource") or ""
    if in_volume and not reference.get("containerName"):
        errors.append(required(f"{path}.containerName"))
    elif not resource:
        errors.append(required(f"{path}.resource"))
    elif resource not in _RESOURCES and ".hugepages-" not in resource:
        errors.append(unsupported(f"{path}.resource", resource, _RESOURCES))
