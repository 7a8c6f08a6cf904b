"""Metadata: the rules that hold for objects of every kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from kinform.apiserver.scheme.field_errors import FieldError, forbidden, invalid, required
from kinform.apiserver.scheme.kind_registry import Kind
from kinform.apiserver.serializer.json_values import Json
from kinform.apiserver.validation.labels import check_annotations, check_labels, in_order
from kinform.apiserver.validation.names import (
    dns_label,
    dns_subdomain,
    path_segment,
    qualified_name,
    trimmed,
)

__all__ = [
    "IMMUTABLE",
    "check_finalizers",
    "validate_metadata",
    "validate_metadata_update",
    "validate_metadata_update_again",
]

IMMUTABLE: Final = "field is immutable"
"""The message about a field that cannot be changed."""

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
_OWNER_FIELDS: Final = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
_OWNER_REQUIRED: Final = 4
"""The number of these that are shown even if they are empty."""
_CRON_JOB_NAME: Final = 52
"""Jobs get the CronJob's name and eleven characters more."""
# The server looks at metadata once for all kinds, and then as each kind does, often twice more; it
# reports what it found as often as it found it. These are its ways to look at it:
_NEW: Final = "new"
"""As at an object that is new."""
_NEW_STRICT: Final = "new, strict"
"""The same, and finalizers must be known or qualified."""
_CHANGE: Final = "change"
"""As at a change: what cannot be changed, labels, annotations and owners."""
_CHANGE_STRICT: Final = "change, strict"

_Looks: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]
"""The checks of an update's metadata, before and after those of the rest."""


def _looks(*before: str, after: tuple[str, ...] = ()) -> _Looks:
    return before, after


_USUAL: Final = _looks(_CHANGE_STRICT)
_NOT_AGAIN: Final = _looks()
_LENIENT: Final = _looks(_CHANGE)
_BOTH: Final = _looks(_CHANGE_STRICT, _NEW_STRICT)
_AS_NEW: Final = _looks(_NEW_STRICT)
_NEW_FIRST: Final = _looks(_NEW_STRICT, after=(_CHANGE_STRICT,))
_UPDATES: Final[Mapping[str, _Looks]] = {
    **dict.fromkeys(
        """
        pods configmaps secrets endpoints serviceaccounts persistentvolumeclaims
        ingresses.networking.k8s.io ingressclasses.networking.k8s.io controllerrevisions.apps
        """.split(),
        _BOTH,
    ),
    **dict.fromkeys(
        """
        endpointslices.discovery.k8s.io limitranges csinodes.storage.k8s.io
        volumeattachments.storage.k8s.io flowschemas.flowcontrol.apiserver.k8s.io
        prioritylevelconfigurations.flowcontrol.apiserver.k8s.io
        """.split(),
        _AS_NEW,
    ),
    **dict.fromkeys(
        """
        namespaces nodes jobs.batch storageclasses.storage.k8s.io roles.rbac.authorization.k8s.io
        rolebindings.rbac.authorization.k8s.io clusterroles.rbac.authorization.k8s.io
        clusterrolebindings.rbac.authorization.k8s.io
        """.split(),
        _NEW_FIRST,
    ),
    **dict.fromkeys(
        "leases.coordination.k8s.io customresourcedefinitions.apiextensions.k8s.io".split(),
        _LENIENT,
    ),
    **dict.fromkeys(
        """
        validatingwebhookconfigurations.admissionregistration.k8s.io
        mutatingwebhookconfigurations.admissionregistration.k8s.io
        """.split(),
        _looks(_NEW),
    ),
    "persistentvolumes": _looks(_NEW_STRICT, _NEW_STRICT),
    "runtimeclasses.node.k8s.io": _looks(_NEW, after=(_CHANGE,)),
    "apiservices.apiregistration.k8s.io": _looks(_CHANGE, _NEW),
    "events": _NOT_AGAIN,
    "poddisruptionbudgets.policy": _NOT_AGAIN,
}
_STATUS_UPDATES: Final[Mapping[str, _Looks]] = {
    "cronjobs.batch": _NOT_AGAIN,
    "poddisruptionbudgets.policy": _NOT_AGAIN,
    "customresourcedefinitions.apiextensions.k8s.io": _LENIENT,
}
_STRICT: Final = frozenset({_NEW_STRICT, _CHANGE_STRICT})
_STANDARD_FINALIZERS: Final = frozenset({"kubernetes", "orphan", "foregroundDeletion"})


def validate_metadata(kind: Kind, obj: Json) -> list[FieldError]:
    """Return the errors of the metadata of a new object."""
    looks = _looks_of(kind, "")
    is_strict = looks == _NOT_AGAIN or not _STRICT.isdisjoint(looks[0] + looks[1])
    metadata: Json = obj.get("metadata") or {}
    errors: list[FieldError] = []
    _look_new(kind, metadata, errors, is_strict=is_strict)
    return errors


def validate_metadata_update(
    kind: Kind, new: Json, old: Json, *, subresource: str = ""
) -> list[FieldError]:
    """Return the errors of a change of metadata, each repeated as often as the server repeats it.

    Fields that the server sets may be missing in ``new``, but must not be different.
    """
    before, after = _looks_of(kind, subresource)
    once = (_NEW if _STRICT.isdisjoint(before + after) else _NEW_STRICT, _CHANGE)
    if not _looked(kind, new, old, looks=once):
        return []  # to look again finds nothing else
    return _looked(kind, new, old, looks=(_NEW, _CHANGE, *before))


def validate_metadata_update_again(
    kind: Kind, new: Json, old: Json, *, subresource: str = ""
) -> list[FieldError]:
    """Return the errors of metadata that some kinds report after those of the rest."""
    after = _looks_of(kind, subresource)[1]
    return _looked(kind, new, old, looks=after) if after else []


def _looks_of(kind: Kind, subresource: str) -> _Looks:
    if kind.custom is not None:
        return _LENIENT
    return (_STATUS_UPDATES if subresource else _UPDATES).get(kind.storage, _USUAL)


def _looked(kind: Kind, new: Json, old: Json, *, looks: Sequence[str]) -> list[FieldError]:
    # What an update says of the generation is ignored, not judged.
    after: Json = {**(new.get("metadata") or {}), "generation": 0}
    before: Json = old.get("metadata") or {}
    errors: list[FieldError] = []
    for look in looks:
        is_strict = look in _STRICT
        if look in {_NEW, _NEW_STRICT}:
            _look_new(kind, after, errors, is_strict=is_strict)
        else:
            _look_change(after, before, errors, is_strict=is_strict)
    return errors


def _look_new(kind: Kind, metadata: Json, errors: list[FieldError], *, is_strict: bool) -> None:
    _check_names(kind, metadata, errors)
    _check_place(metadata, errors, namespaced=kind.namespaced)
    if (generation := metadata.get("generation") or 0) < 0:
        detail = "must be greater than or equal to 0"
        errors.append(invalid("metadata.generation", generation, detail))
    _check_maps(metadata, errors)
    if finalizers := metadata.get("finalizers"):
        check_finalizers(finalizers, "metadata.finalizers", errors, is_strict=is_strict)


def _look_change(after: Json, before: Json, errors: list[FieldError], *, is_strict: bool) -> None:
    for field in ("name", "namespace", "uid", "creationTimestamp"):
        _check_unchanged(after, before, errors, field=field)
    if before.get("deletionTimestamp"):
        _check_no_new_finalizers(after, before, errors)
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        _check_unchanged(after, before, errors, field=field)
    _check_maps(after, errors)
    if is_strict:
        _check_known(after.get("finalizers") or (), "metadata.finalizers", errors)


def check_finalizers(
    finalizers: list[str], path: str, errors: list[FieldError], *, is_strict: bool = True
) -> None:
    """Validate finalizers: qualified names, and not both ways to delete dependents.

    Most built-in kinds are strict: a name of one part must be one of the server's own.
    """
    for name in finalizers:
        errors += [invalid(path, name, problem) for problem in qualified_name(name)]
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        errors.append(invalid(path, finalizers, detail))
    if is_strict:
        _check_known(finalizers, path, errors)


def _check_known(finalizers: Sequence[str], path: str, errors: list[FieldError]) -> None:
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


def _check_maps(metadata: Json, errors: list[FieldError]) -> None:
    if labels := metadata.get("labels"):
        check_labels(labels, "metadata.labels", errors)
    if annotations := metadata.get("annotations"):
        check_annotations(annotations, "metadata.annotations", errors)
    if owners := metadata.get("ownerReferences"):
        _check_owners(owners, "metadata.ownerReferences", errors)


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
    """Return a reference with its fields in the order of the server, the required ones always."""
    return {
        field: owner.get(field, "")
        for index, field in enumerate(_OWNER_FIELDS)
        if index < _OWNER_REQUIRED or field in owner
    }


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
