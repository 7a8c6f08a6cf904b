"""Metadata: the rules that hold for objects of every kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from kinform.apiserver.field_errors import FieldError, forbidden, invalid, required
from kinform.apiserver.json import Json
from kinform.apiserver.kind import Kind
from kinform.apiserver.validation.labels import check_annotations, check_labels, in_order
from kinform.apiserver.validation.names import (
    dns_label,
    dns_subdomain,
    path_segment,
    qualified_name,
    trimmed,
)

__all__ = ["IMMUTABLE", "check_finalizers", "validate_metadata", "validate_metadata_update"]

IMMUTABLE: Final = "field is immutable"
"""What is said of a field that cannot be changed."""

_Rule: TypeAlias = Callable[[str], tuple[str, ...]]


def _subdomain_of_bytes(text: str) -> tuple[str, ...]:
    return dns_subdomain(text, "bytes")


_RULES: Final[Mapping[str, _Rule]] = {
    "services": dns_label,
    "namespaces": dns_label,
    "statefulsets.apps": dns_label,
    "replicationcontrollers": _subdomain_of_bytes,
    "events": path_segment,
    "certificatesigningrequests.certificates.k8s.io": path_segment,
    "poddisruptionbudgets.policy": path_segment,
    "roles.rbac.authorization.k8s.io": path_segment,
    "rolebindings.rbac.authorization.k8s.io": path_segment,
    "clusterroles.rbac.authorization.k8s.io": path_segment,
    "clusterrolebindings.rbac.authorization.k8s.io": path_segment,
    "apiservices.apiregistration.k8s.io": path_segment,
    "ipaddresses.networking.k8s.io": path_segment,
}
_OWNER_FIELDS: Final = (
    "apiVersion",
    "kind",
    "name",
    "uid",
    "controller",
    "blockOwnerDeletion",
)
_CRON_JOB_NAME: Final = 52
"""Jobs get the CronJob's name and eleven characters more."""
_STANDARD_FINALIZERS: Final = frozenset({"kubernetes", "orphan", "foregroundDeletion"})


def validate_metadata(kind: Kind, obj: Json) -> list[FieldError]:
    """Return what is wrong with the metadata of a new object."""
    metadata: Json = obj.get("metadata") or {}
    errors: list[FieldError] = []
    _check_names(kind, metadata, errors)
    _check_place(metadata, errors, namespaced=kind.namespaced)
    if (generation := metadata.get("generation") or 0) < 0:
        detail = "must be greater than or equal to 0"
        errors.append(invalid("metadata.generation", generation, detail))
    _check_common(metadata, errors)
    return errors


def validate_metadata_update(kind: Kind, new: Json, old: Json) -> list[FieldError]:
    """Return what is wrong with a change of metadata.

    What the server sets itself may be missing in ``new``, but not be different.
    """
    after: Json = new.get("metadata") or {}
    before: Json = old.get("metadata") or {}
    errors: list[FieldError] = []
    for field in ("name", "namespace", "uid", "creationTimestamp"):
        _check_unchanged(after, before, errors, field=field)
    if before.get("deletionTimestamp"):
        _check_no_new_finalizers(after, before, errors)
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        _check_unchanged(after, before, errors, field=field)
    _check_place(after, errors, namespaced=kind.namespaced)
    _check_common(after, errors)
    return errors


def check_finalizers(finalizers: list[str], path: str, errors: list[FieldError]) -> None:
    """Judge finalizers: qualified names, and not both ways to delete dependents."""
    for name in finalizers:
        errors += [invalid(path, name, problem) for problem in qualified_name(name)]
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        errors.append(invalid(path, finalizers, detail))
    for index, name in enumerate(finalizers):
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            errors.append(invalid(f"{path}[{index}]", name, detail))


def _check_names(kind: Kind, metadata: Json, errors: list[FieldError]) -> None:
    rule = _RULES.get(kind.storage, dns_subdomain) if kind.custom is None else dns_subdomain
    if prefix := metadata.get("generateName"):
        problems = rule(trimmed(prefix))
        errors += [invalid("metadata.generateName", prefix, problem) for problem in problems]
    name = metadata.get("name")
    if not name:
        errors.append(required("metadata.name", "name or generateName is required"))
        return
    if problems := rule(name):
        errors += [invalid("metadata.name", name, problem) for problem in problems]
    if kind.storage == "cronjobs.batch" and len(name) > _CRON_JOB_NAME:
        detail = f"must be no more than {_CRON_JOB_NAME} characters"
        errors.append(invalid("metadata.name", name, detail))


def _check_place(metadata: Json, errors: list[FieldError], *, namespaced: bool) -> None:
    namespace = metadata.get("namespace")
    if namespaced:
        if not namespace:
            errors.append(required("metadata.namespace"))
        elif problems := dns_label(namespace):
            errors += [invalid("metadata.namespace", namespace, problem) for problem in problems]
    elif namespace:
        errors.append(forbidden("metadata.namespace", "not allowed on this type"))


def _check_common(metadata: Json, errors: list[FieldError]) -> None:
    if labels := metadata.get("labels"):
        check_labels(labels, "metadata.labels", errors)
    if annotations := metadata.get("annotations"):
        check_annotations(annotations, "metadata.annotations", errors)
    if owners := metadata.get("ownerReferences"):
        _check_owners(owners, "metadata.ownerReferences", errors)
    if finalizers := metadata.get("finalizers"):
        check_finalizers(finalizers, "metadata.finalizers", errors)


def _check_owners(owners: list[Json], path: str, errors: list[FieldError]) -> None:
    controller = ""
    for owner in owners:
        _check_owner(owner, path, errors)
        if not owner.get("controller"):
            continue
        name = f"{owner.get('kind', '')}/{owner.get('name', '')}"
        if controller:
            detail = (
                'Only one reference can have Controller set to true. Found "true" in references '
                f"for {controller} and {name}"
            )
            errors.append(invalid(path, in_order(list(map(_shown, owners))), detail))
        controller = controller or name


def _check_owner(owner: Json, path: str, errors: list[FieldError]) -> None:
    api_version = owner.get("apiVersion") or ""
    if not api_version or api_version.count("/") > 1 or api_version.endswith("/"):
        detail = "version must not be empty"
        errors.append(invalid(f"{path}.apiVersion", api_version, detail))
    errors += [
        invalid(f"{path}.{field}", "", "must not be empty")
        for field in ("kind", "name", "uid")
        if not owner.get(field)
    ]
    if owner.get("kind") == "Event" and api_version == "v1":
        detail = "/v1, Kind=Event is disallowed from being an owner"
        errors.append(invalid(path, in_order(_shown(owner)), detail))


def _shown(owner: Json) -> Json:
    """Return a reference with its fields in the order of the server."""
    return {field: owner[field] for field in _OWNER_FIELDS if field in owner}


def _check_unchanged(after: Json, before: Json, errors: list[FieldError], *, field: str) -> None:
    value = after.get(field)
    if value is not None and value != "" and value != before.get(field):
        errors.append(invalid(f"metadata.{field}", value, IMMUTABLE))


def _check_no_new_finalizers(after: Json, before: Json, errors: list[FieldError]) -> None:
    known: list[str] = before.get("finalizers") or []
    added = sorted(set(after.get("finalizers") or ()) - set(known))
    if added:
        names = ", ".join(f'"{name}"' for name in added)
        detail = (
            "no new finalizers can be added if the object is being deleted, found new "
            f"finalizers []string{{{names}}}"
        )
        errors.append(forbidden("metadata.finalizers", detail))
