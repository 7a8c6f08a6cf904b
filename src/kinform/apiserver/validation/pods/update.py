"""Validation of pod updates: few fields of a pod can be changed."""

from __future__ import annotations

from typing import Final

from kinform.apiserver.scheme.field_errors import FieldError, forbidden, invalid
from kinform.apiserver.serializer.json_values import Json
from kinform.apiserver.validation.pods.containers import check_image
from kinform.apiserver.validation.pods.internal_spec import difference
from kinform.apiserver.validation.pods.pod_spec import check_pod_spec

__all__ = ["validate_ephemeral_update", "validate_pod_update"]

_MAY_NOT: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)
_GATED: Final = ("nodeSelector", "affinity")
"""The fields that can be changed while a pod has scheduling gates."""


def validate_pod_update(new: Json, old: Json) -> list[FieldError]:
    """Return the errors of a change of a pod, metadata aside."""
    errors: list[FieldError] = []
    after: Json = new.get("spec") or {}
    before: Json = old.get("spec") or {}
    if after == before:
        return errors
    check_pod_spec(after, "spec", errors)
    for kind in ("containers", "initContainers"):
        if len(after.get(kind) or ()) != len(before.get(kind) or ()):
            detail = "pod updates may not add or remove containers"
            errors.append(forbidden(f"spec.{kind}", detail))
            return errors
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(after.get(kind) or ()):
            at = f"spec.{kind}[{index}].image"
            check_image(container.get("image") or "", at, errors)
    count = len(errors)
    _check_deadline(after, before, errors)
    if len(errors) > count:
        return errors
    _check_gates(after, before, errors)
    _check_tolerations(after, before, errors)
    _check_rest(after, before, errors)
    return errors


def validate_ephemeral_update(new: Json, old: Json) -> list[FieldError]:
    """Return the errors of a pod's new ephemeral containers: there can only be more."""
    errors: list[FieldError] = []
    after: Json = new.get("spec") or {}
    check_pod_spec(after, "spec", errors)
    path = "spec.ephemeralContainers"
    given = {one.get("name"): one for one in after.get("ephemeralContainers") or ()}
    for one in old["spec"].get("ephemeralContainers") or ():
        name = one.get("name")
        if name not in given:
            errors.append(
                forbidden(path, f'existing ephemeral containers "{name}" may not be removed\n')
            )
        elif given[name] != one:
            errors.append(
                forbidden(path, f'existing ephemeral containers "{name}" may not be changed\n')
            )
    return errors


def _check_deadline(after: Json, before: Json, errors: list[FieldError]) -> None:
    old = before.get("activeDeadlineSeconds")
    new = after.get("activeDeadlineSeconds")
    path = "spec.activeDeadlineSeconds"
    if old is None or new == old:
        return
    if new is None:
        detail = "must not update from a positive integer to nil value"
        errors.append(invalid(path, None, detail))
    elif new > old:
        errors.append(invalid(path, new, "must be less than or equal to previous value"))


def _check_gates(after: Json, before: Json, errors: list[FieldError]) -> None:
    known = {gate.get("name") for gate in before.get("schedulingGates") or ()}
    for index, gate in enumerate(after.get("schedulingGates") or ()):
        if gate.get("name") not in known:
            detail = "only deletion is allowed, but found new scheduling gate "
            at = f"spec.schedulingGates[{index}].name"
            errors.append(forbidden(at, f"{detail}'{gate.get('name')}'"))
    selector: Json = after.get("nodeSelector") or {}
    wanted: Json = before.get("nodeSelector") or {}
    if known and any(selector.get(key) != value for key, value in wanted.items()):
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        errors.append(invalid("spec.nodeSelector", dict(sorted(selector.items())), detail))


def _check_tolerations(after: Json, before: Json, errors: list[FieldError]) -> None:
    """Every toleration must stay, though for how long may be changed."""
    kept = [_without_time(one) for one in after.get("tolerations") or ()]
    if any(_without_time(one) not in kept for one in before.get("tolerations") or ()):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        errors.append(forbidden("spec.tolerations", detail))


def _without_time(toleration: Json) -> Json:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _check_rest(after: Json, before: Json, errors: list[FieldError]) -> None:
    """Put back what may be changed; nothing else may be left."""
    rest = {**after}
    for kind in ("containers", "initContainers"):
        if kind in after:
            rest[kind] = [
                {**one, "image": old.get("image")}
                for one, old in zip(after[kind], before[kind], strict=True)
            ]
    fields = ["activeDeadlineSeconds", "tolerations", "schedulingGates"]
    if before.get("schedulingGates"):
        fields += _GATED
    if after.get("terminationGracePeriodSeconds") == 1 and (
        (before.get("terminationGracePeriodSeconds") or 0) < 0
    ):
        fields.append("terminationGracePeriodSeconds")
    for field in fields:
        rest.pop(field, None)
        if field in before:
            rest[field] = before[field]
    if rest != before:
        errors.append(forbidden("spec", f"{_MAY_NOT}\n{difference(before, rest)}"))
