"""Security contexts of pods and containers."""

from __future__ import annotations

import re
from typing import Final

from kinform.apiserver.scheme.field_errors import FieldError, duplicate, invalid, required
from kinform.apiserver.serializer.json_values import Json, as_dict
from kinform.apiserver.validation.labels import in_order, unsupported
from kinform.apiserver.validation.pods.internal_spec import shown_as

__all__ = ["check_container_security", "check_pod_security"]

_ID: Final = "must be between 0 and 2147483647, inclusive"
_LARGEST: Final = 2**31 - 1
_PROC_MOUNTS: Final = ("Default", "Unmasked")
_PROFILES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
_CHANGE_POLICIES: Final = ("Always", "OnRootMismatch")
_GROUPS_POLICIES: Final = ("Merge", "Strict")
_SYSCTL: Final = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?")
_SYSCTL_TEXT: Final = (
    "must have at most 253 characters and match regex "
    r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
)


def check_pod_security(context: Json, path: str, errors: list[FieldError]) -> None:
    """Validate what holds for all containers of a pod."""
    for field in ("fsGroup", "runAsUser", "runAsGroup"):
        _check_id(context.get(field), f"{path}.{field}", errors)
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        _check_id(group, f"{path}.supplementalGroups[{index}]", errors)
    names: set[str] = set()
    for index, sysctl in enumerate(context.get("sysctls") or ()):
        at = f"{path}.sysctls[{index}].name"
        name = sysctl.get("name") or ""
        if not name:
            errors.append(required(at))
        elif len(name) > 253 or _SYSCTL.fullmatch(name) is None:
            errors.append(invalid(at, name, _SYSCTL_TEXT))
        elif name in names:
            errors.append(duplicate(at, name))
        names.add(name)
    _check_choice(context, path, errors, choice=("fsGroupChangePolicy", _CHANGE_POLICIES))
    _check_profile(context, path, errors, field="seccompProfile")
    _check_profile(context, path, errors, field="appArmorProfile")
    _check_choice(context, path, errors, choice=("supplementalGroupsPolicy", _GROUPS_POLICIES))


def check_container_security(context: Json, path: str, errors: list[FieldError]) -> None:
    """Validate what one container may do."""
    for field in ("runAsUser", "runAsGroup"):
        _check_id(context.get(field), f"{path}.{field}", errors)
    if (mount := context.get("procMount")) and mount not in _PROC_MOUNTS:
        errors.append(unsupported(f"{path}.procMount", mount, _PROC_MOUNTS))
    _check_profile(context, path, errors, field="seccompProfile")
    if context.get("allowPrivilegeEscalation") is False:
        _check_escalation(context, path, errors)
    _check_profile(context, path, errors, field="appArmorProfile")


def _check_escalation(context: Json, path: str, errors: list[FieldError]) -> None:
    added: list[str] = as_dict(context.get("capabilities")).get("add") or []
    if context.get("privileged"):
        detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        errors.append(invalid(path, in_order(shown_as("Security", context)), detail))
    elif "CAP_SYS_ADMIN" in added:
        detail = (
            "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
        )
        errors.append(invalid(path, in_order(shown_as("Security", context)), detail))


def _check_id(number: int | None, path: str, errors: list[FieldError]) -> None:
    if number is not None and not 0 <= number <= _LARGEST:
        errors.append(invalid(path, number, _ID))


def _check_choice(
    context: Json, path: str, errors: list[FieldError], *, choice: tuple[str, tuple[str, ...]]
) -> None:
    field, supported = choice
    if (value := context.get(field)) and value not in supported:
        errors.append(unsupported(f"{path}.{field}", value, supported))


def _check_profile(context: Json, path: str, errors: list[FieldError], *, field: str) -> None:
    if (profile := context.get(field)) is None:
        return
    called = "seccomp" if field == "seccompProfile" else "AppArmor"
    at = f"{path}.{field}"
    kind = profile.get("type") or ""
    if not kind:
        errors.append(required(f"{at}.type", f"type is required when {field} is set"))
    elif kind not in _PROFILES:
        errors.append(unsupported(f"{at}.type", kind, _PROFILES))
    elif kind == "Localhost" and not profile.get("localhostProfile"):
        detail = f"must be set when {called} type is Localhost"
        errors.append(required(f"{at}.localhostProfile", detail))
    elif kind != "Localhost" and "localhostProfile" in profile:
        detail = f"can only be set when {called} type is Localhost"
        errors.append(
            invalid(f"{at}.localhostProfile", in_order(shown_as("Profile", profile)), detail)
        )
