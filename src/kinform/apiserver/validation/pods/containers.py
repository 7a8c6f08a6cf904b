"""Containers of a pod: names, images, ports, environment and mounts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from kinform.apiserver.scheme.field_errors import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_found,
    required,
)
from kinform.apiserver.serializer.json_values import Json, as_dict
from kinform.apiserver.validation.labels import unsupported
from kinform.apiserver.validation.names import dns_label, port_name, port_number
from kinform.apiserver.validation.pods.environment import check_env, check_env_from
from kinform.apiserver.validation.pods.probes import check_lifecycle, check_probes
from kinform.apiserver.validation.pods.resources import check_resources
from kinform.apiserver.validation.pods.security import check_container_security

__all__ = [
    "Surroundings",
    "check_containers",
    "check_image",
    "check_init_containers",
    "check_local_path",
]

_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES: Final = ("File", "FallbackToLogsOnError")
_RESTART_POLICIES: Final = ("Always", "Never", "OnFailure")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_PROPAGATIONS: Final = ("Bidirectional", "HostToContainer", "None")
_ONLY_SIDECARS: Final = "may not be set for init containers without restartPolicy=Always"


class Surroundings(NamedTuple):
    """The parts of the pod that the validation of a container depends on."""

    volumes: Mapping[str, Json]
    """The well-formed volumes of its pod, by name."""
    grace: int
    """The grace period of the pod, in seconds."""


def check_containers(
    containers: list[Json], path: str, errors: list[FieldError], *, around: Surroundings
) -> None:
    """Validate the containers of a pod, of which there must be one."""
    if not containers:
        errors.append(required(path))
    names: set[str] = set()
    for index, container in enumerate(containers):
        at = f"{path}[{index}]"
        _check_identity(container, at, errors)
        name = container.get("name") or ""
        if name and name in names:
            errors.append(duplicate(f"{at}.name", name))
        names.add(name)
        _check_rest(container, at, errors, around=around)
        if lifecycle := container.get("lifecycle"):
            check_lifecycle(lifecycle, f"{at}.lifecycle", errors, grace=around.grace)
        check_probes(container, at, errors)
    _check_host_ports(containers, path, errors)


def check_init_containers(
    spec: Json, path: str, errors: list[FieldError], *, around: Surroundings
) -> None:
    """Validate the containers that run before the others, or beside them."""
    names = {container.get("name") for container in spec.get("containers") or ()}
    for index, container in enumerate(spec.get("initContainers") or ()):
        at = f"{path}[{index}]"
        _check_identity(container, at, errors)
        _check_rest(container, at, errors, around=around)
        name = container.get("name") or ""
        if name and name in names:
            errors.append(duplicate(f"{at}.name", name))
        names.add(name)
        policy = container.get("restartPolicy")
        if policy and policy not in _RESTART_POLICIES:
            errors.append(unsupported(f"{at}.restartPolicy", policy, _RESTART_POLICIES))
        if policy == "Always":
            if lifecycle := container.get("lifecycle"):
                check_lifecycle(lifecycle, f"{at}.lifecycle", errors, grace=around.grace)
            check_probes(container, at, errors)
            continue
        errors += [
            forbidden(f"{at}.{field}", _ONLY_SIDECARS)
            for field in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
            if container.get(field) is not None
        ]


def check_image(image: str, path: str, errors: list[FieldError]) -> None:
    """Validate the name of an image, of which the server asks almost nothing."""
    if not image:
        errors.append(required(path))
    elif image != image.strip():
        errors.append(invalid(path, image, "must not have leading or trailing whitespace"))


def _check_identity(container: Json, path: str, errors: list[FieldError]) -> None:
    name = container.get("name") or ""
    if not name:
        errors.append(required(f"{path}.name"))
    elif problems := dns_label(name):
        errors += [invalid(f"{path}.name", name, problem) for problem in problems]
    check_image(container.get("image") or "", f"{path}.image", errors)


def _check_rest(
    container: Json, path: str, errors: list[FieldError], *, around: Surroundings
) -> None:
    policy = container.get("terminationMessagePolicy") or ""
    if policy not in _MESSAGE_POLICIES:
        errors.append(unsupported(f"{path}.terminationMessagePolicy", policy, _MESSAGE_POLICIES))
    if ports := container.get("ports"):
        _check_ports(ports, f"{path}.ports", errors)
    if env := container.get("env"):
        check_env(env, f"{path}.env", errors)
    if env_from := container.get("envFrom"):
        check_env_from(env_from, f"{path}.envFrom", errors)
    if container.get("volumeMounts"):
        _check_mounts(container, f"{path}.volumeMounts", errors, around=around)
    if container.get("volumeDevices"):
        _check_devices(container, f"{path}.volumeDevices", errors, around=around)
    policy = container.get("imagePullPolicy") or ""
    if policy not in _PULL_POLICIES:
        errors.append(unsupported(f"{path}.imagePullPolicy", policy, _PULL_POLICIES))
    if resources := container.get("resources"):
        check_resources(resources, f"{path}.resources", errors)
    if security := container.get("securityContext"):
        check_container_security(security, f"{path}.securityContext", errors)


def _check_ports(ports: list[Json], path: str, errors: list[FieldError]) -> None:
    names: set[str] = set()
    for index, port in enumerate(ports):
        at = f"{path}[{index}]"
        if name := port.get("name"):
            if problems := port_name(name):
                errors += [invalid(f"{at}.name", name, problem) for problem in problems]
            elif name in names:
                errors.append(duplicate(f"{at}.name", name))
            names.add(name)
        number = port.get("containerPort") or 0
        if not number:
            errors.append(required(f"{at}.containerPort"))
        else:
            problems = port_number(number)
            errors += [invalid(f"{at}.containerPort", number, problem) for problem in problems]
        if host := port.get("hostPort"):
            errors += [invalid(f"{at}.hostPort", host, problem) for problem in port_number(host)]
        protocol = port.get("protocol") or ""
        if not protocol:
            errors.append(required(f"{at}.protocol"))
        elif protocol not in _PROTOCOLS:
            errors.append(unsupported(f"{at}.protocol", protocol, _PROTOCOLS))


def _check_host_ports(containers: list[Json], path: str, errors: list[FieldError]) -> None:
    taken: set[str] = set()
    for index, container in enumerate(containers):
        for place, port in enumerate(container.get("ports") or ()):
            if number := port.get("hostPort"):
                key = f"{port.get('protocol')}/{port.get('hostIP') or ''}/{number}"
                if key in taken:
                    errors.append(duplicate(f"{path}[{index}].ports[{place}].hostPort", key))
                taken.add(key)


def _check_mounts(
    container: Json, path: str, errors: list[FieldError], *, around: Surroundings
) -> None:
    devices = {device.get("name") for device in container.get("volumeDevices") or ()}
    paths: set[str] = set()
    for index, mount in enumerate(container["volumeMounts"]):
        at = f"{path}[{index}]"
        name, where = mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            errors.append(required(f"{at}.name"))
        if name not in around.volumes:
            errors.append(not_found(f"{at}.name", name))
        if not where:
            errors.append(required(f"{at}.mountPath"))
        elif where in paths:
            errors.append(invalid(f"{at}.mountPath", where, "must be unique"))
        paths.add(where)
        if name in devices:
            errors.append(invalid(f"{at}.name", name, "must not already exist in volumeDevices"))
        _check_sub_path(mount, path, errors, at=at)
        if propagation := mount.get("mountPropagation"):
            _check_propagation(propagation, container, f"{path}.mountPropagation", errors=errors)


def _check_sub_path(mount: Json, path: str, errors: list[FieldError], *, at: str) -> None:
    """Validate the part of a volume that is mounted; the server names no index here."""
    check_local_path(mount.get("subPath") or "", f"{path}.subPath", errors)
    if expression := mount.get("subPathExpr"):
        if mount.get("subPath"):
            detail = "subPathExpr and subPath are mutually exclusive"
            errors.append(invalid(f"{at}.subPathExpr", expression, detail))
        check_local_path(expression, f"{path}.subPathExpr", errors)


def _check_propagation(
    propagation: str, container: Json, path: str, *, errors: list[FieldError]
) -> None:
    is_privileged = as_dict(container.get("securityContext")).get("privileged")
    if propagation not in _PROPAGATIONS:
        errors.append(unsupported(path, propagation, _PROPAGATIONS))
    elif propagation == "Bidirectional" and not is_privileged:
        detail = "Bidirectional mount propagation is available only to privileged containers"
        errors.append(forbidden(path, detail))


def check_local_path(text: str, path: str, errors: list[FieldError]) -> None:
    """Validate a path that must not lead out of where it begins."""
    if not text:
        return
    if text.startswith("/"):
        errors.append(invalid(path, text, "must be a relative path"))
    if ".." in text.split("/"):
        errors.append(invalid(path, text, "must not contain '..'"))


def _check_devices(
    container: Json, path: str, errors: list[FieldError], *, around: Surroundings
) -> None:
    mounted = {mount.get("name") for mount in container.get("volumeMounts") or ()}
    for index, device in enumerate(container["volumeDevices"]):
        at = f"{path}[{index}]"
        name = device.get("name") or ""
        if not name:
            errors.append(required(f"{at}.name"))
        elif (volume := around.volumes.get(name)) is None:
            errors.append(not_found(f"{at}.name", name))
        elif not volume.keys() & {"persistentVolumeClaim", "ephemeral"}:
            detail = (
                "can only use volume source type of PersistentVolumeClaim or Ephemeral for block "
                "mode"
            )
            errors.append(invalid(f"{at}.name", name, detail))
        if not device.get("devicePath"):
            errors.append(required(f"{at}.devicePath"))
        if name and name in mounted:
            errors.append(invalid(f"{at}.name", name, "must not already exist in volumeMounts"))
