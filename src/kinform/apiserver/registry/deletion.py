"""Deletion of one object: preconditions, grace period, finalizers, and its dependents.

An object is removed here, or marked so that it is removed later: when a client removes its last
finalizer, or by `kinform.apiserver.gc`, which knows owners and namespaces.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final, NamedTuple, final

import msgspec

from kinform.apiserver._cluster import Cluster
from kinform.apiserver.apiextensions.custom_objects import DEFINITIONS, mark_deleting
from kinform.apiserver.endpoints import status
from kinform.apiserver.endpoints.list_options import dry_run_problem, integer, invalid_options
from kinform.apiserver.endpoints.messages import ServerRequest
from kinform.apiserver.endpoints.status import StatusError
from kinform.apiserver.registry.objects import ObjectRegistry, spec_finalizers
from kinform.apiserver.scheme import field_errors, go_types, schemas
from kinform.apiserver.scheme.go_types import Walk
from kinform.apiserver.scheme.kind_registry import Kind
from kinform.apiserver.serializer import decoding
from kinform.apiserver.serializer.encoding import decode
from kinform.apiserver.serializer.json_values import Json, as_dict, as_list, at, text
from kinform.apiserver.storage.versioned_store import Stored

__all__ = ["FOREGROUND", "ORPHAN", "DeleteOptions", "Deletion", "DeletionResult", "delete_options"]

ORPHAN: Final = "orphan"
FOREGROUND: Final = "foregroundDeletion"

_POLICIES: Final = ("Foreground", "Background", "Orphan")
_ORPHANS_BY_DEFAULT: Final = frozenset({"replicationcontrollers", "jobs.batch"})
_RETURNED: Final = frozenset(
    """
    pods podtemplates services serviceaccounts resourcequotas persistentvolumes
    persistentvolumeclaims csidrivers.storage.k8s.io csinodes.storage.k8s.io
    storageclasses.storage.k8s.io volumeattachments.storage.k8s.io
    """.split()
)
"""Kinds whose deletion is answered with the object, not with a Status."""
_PODS: Final = "pods"
_IMMORTAL: Final = frozenset({"default", "kube-system", "kube-public"})
"""Namespaces that cannot be deleted."""
_OPTIONS: Final = Kind(
    group="meta.k8s.io", version="v1", kind="DeleteOptions", plural="", singular="",
    namespaced=False, verbs=(), definition="io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
)  # fmt: skip
_GRACE: Final = 30
_LONGEST: Final = 100 * 365 * 24 * 3600
"""A date further away than this many seconds is not reckoned: there may be no such date."""


@final
class DeleteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a deletion."""

    grace: int | None = None
    policy: str = ""
    uid: str = ""
    version: str = ""
    is_dry: bool = False
    is_cascading: bool = False
    """The old way to ask for the Background policy: its answer is 202."""


class DeletionResult(NamedTuple):
    """The result of a deletion."""

    obj: Json
    is_gone: bool
    is_returned: bool
    """Clients of this kind expect the object instead of a Status."""

    def answer(self, kind: Kind) -> Json:
        """Return the body of the answer."""
        if self.is_returned or not self.is_gone:
            return self.obj
        meta = self.obj["metadata"]
        details = {"name": meta["name"], "group": kind.group, "kind": kind.plural}
        details = {key: value for key, value in details.items() if value}
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": {**details, "uid": meta["uid"]},
        }


def delete_options(request: ServerRequest) -> DeleteOptions:
    """Read the options of a deletion, from its body if it has one, else from its query.

    Raises:
        StatusError: one of them is not what it can be.
    """
    body = _body(request)
    grace, policy = body.get("gracePeriodSeconds"), body.get("propagationPolicy")
    orphans = body.get("orphanDependents")
    errors = list[field_errors.FieldError]()
    if policy is not None and orphans is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(field_errors.invalid("propagationPolicy", policy, why))
    elif policy is not None and policy not in _POLICIES:
        names = '"Foreground", "Background", "Orphan", "nil"'
        problem = field_errors.Problem.NOT_SUPPORTED
        detail = f"supported values: {names}"
        errors.append(field_errors.FieldError(problem, "propagationPolicy", detail, policy))
    if problem_ := dry_run_problem(as_list(body.get("dryRun"))):
        errors.append(problem_)
    if errors:
        raise invalid_options("DeleteOptions", errors)
    if orphans is not None:
        policy = "Orphan" if orphans else "Background"
    preconditions = as_dict(body.get("preconditions"))
    return DeleteOptions(
        grace=grace if isinstance(grace, int) else None,
        policy=policy or "",
        uid=text(preconditions, "uid"),
        version=text(preconditions, "resourceVersion"),
        is_dry=bool(body.get("dryRun")),
        is_cascading=orphans is False,
    )


def _body(request: ServerRequest) -> Json:
    if request.body.strip():
        content_type = request.headers.get("content-type", "")
        return _checked(decoding.decode(request.body, content_type)[0])
    found: Json = {"gracePeriodSeconds": integer(request, "gracePeriodSeconds")}
    if policy := request.option("propagationPolicy"):
        found["propagationPolicy"] = policy
    if orphans := request.option("orphanDependents"):
        found["orphanDependents"] = orphans.lower() not in {"false", "0"}
    found["dryRun"] = request.query.get("dryRun", [])
    return found


def _checked(body: Json) -> Json:
    """Make sure that a body is what it has to be; which version of it does not matter."""
    kind = text(body, "kind") or _OPTIONS.kind
    if kind != _OPTIONS.kind:
        version = text(body, "apiVersion") or _OPTIONS.api_version
        raise status.bad_request(
            f'no kind "{kind}" is registered for version "{version}" '
            'in scheme "pkg/runtime/scheme.go:111"'
        )
    walk = Walk()
    go_types.shape_of(schemas.builtin(_OPTIONS.definition)).read(body, None, walk)
    if walk.wrong is not None:
        raise status.bad_request(str(walk.wrong))
    return body


@final
class Deletion:
    """Deletes the objects of one cluster."""

    def __init__(self, cluster: Cluster, objects: ObjectRegistry) -> None:
        self._cluster = cluster
        self._objects = objects

    def delete(self, kind: Kind, key: str, options: DeleteOptions) -> DeletionResult:
        """Delete an object, or mark it as being deleted.

        Raises:
            StatusError: the object does not exist, or its preconditions fail.
        """
        if kind.storage == "namespaces" and key in _IMMORTAL:
            raise status.forbidden(kind, key, "this namespace may not be deleted")
        held = self._objects.held(kind, key)
        return self.delete_held(kind, held, options)

    def delete_held(self, kind: Kind, held: Stored, options: DeleteOptions) -> DeletionResult:
        """Delete an object that was read just now."""
        obj = decode(kind, held.raw)
        _check_preconditions(kind, obj, options)
        is_returned = kind.storage in _RETURNED
        grace = _grace(kind, obj, options)
        finalizers = _finalizers(kind, obj, options)
        meta = obj["metadata"]
        before = decode(kind, held.raw)
        _set(meta, "finalizers", finalizers)
        is_held = bool(finalizers or grace or spec_finalizers(obj))
        is_first = "deletionTimestamp" not in meta
        self._mark(kind, obj, grace)
        if kind.storage == DEFINITIONS and is_first:
            mark_deleting(obj, self._cluster.timestamp())
            is_held = True
        if not is_held:
            if not options.is_dry:
                obj = self._remove(kind, held, obj)
            return DeletionResult(obj, is_gone=True, is_returned=is_returned)
        obj = self._objects.replace(kind, held, obj, old=before, is_dry=options.is_dry)
        return DeletionResult(obj, is_gone=False, is_returned=is_returned)

    def _remove(self, kind: Kind, held: Stored, obj: Json) -> Json:
        if kind.storage == _PODS:  # a pod is marked first, for its kubelet to see
            marked = self._objects.draft(kind, obj)
            held = self._cluster.storage.update(kind.storage, held.key, marked)
        return self._objects.remove(kind, held)

    def _mark(self, kind: Kind, obj: Json, grace: int) -> None:
        """Note when an object goes; one that goes already can only go sooner."""
        meta = obj["metadata"]
        planned = meta.get("deletionGracePeriodSeconds")
        if "deletionTimestamp" in meta and (planned is None or grace >= planned):
            return
        end = self._cluster.now() + timedelta(seconds=min(grace, _LONGEST))
        is_first = "deletionTimestamp" not in meta
        meta["deletionTimestamp"] = end.strftime("%Y-%m-%dT%H:%M:%SZ")
        if kind.storage == "namespaces":
            obj["status"] = {**as_dict(obj.get("status")), "phase": "Terminating"}
        elif kind.storage != DEFINITIONS:
            meta["deletionGracePeriodSeconds"] = grace
            if is_first and meta.get("generation"):
                meta["generation"] += 1


def _check_preconditions(kind: Kind, obj: Json, options: DeleteOptions) -> None:
    meta = obj["metadata"]
    why = ""
    if options.uid and options.uid != meta["uid"]:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record "
            f"({meta['uid']}). The object might have been deleted and then recreated"
        )
    elif options.version and options.version != meta["resourceVersion"]:
        why = (
            f"the ResourceVersion in the precondition ({options.version}) does not match the "
            f"ResourceVersion in record ({meta['resourceVersion']}). "
            "The object might have been modified"
        )
    if why:
        raise _precondition_failed(kind, meta["name"], why)


def _precondition_failed(kind: Kind, name: str, why: str) -> StatusError:
    """Return a conflict, which here calls the kind by its own name and not the resource's."""
    error = status.conflict(kind, name, why)
    error.message = f'Operation cannot be fulfilled on {kind.qualified_kind} "{name}": {why}'
    error.details = {**(error.details or {}), "kind": kind.kind}
    return error


def _grace(kind: Kind, obj: Json, options: DeleteOptions) -> int:
    """Return how many seconds an object has; only pods on a node have any."""
    if kind.storage != _PODS:
        return 0
    is_running = text(obj, "spec", "nodeName") and text(obj, "status", "phase") not in {
        "Succeeded",
        "Failed",
    }
    asked = options.grace
    if asked is None:
        asked = at(obj, "spec", "terminationGracePeriodSeconds")
    if asked is None:
        asked = _GRACE
    if asked < 0:
        asked = 1
    return asked if is_running else 0


def _finalizers(kind: Kind, obj: Json, options: DeleteOptions) -> list[str]:
    """Return the finalizers of an object that is deleted by a policy."""
    held: list[str] = as_list(obj["metadata"].get("finalizers"))
    others = [name for name in held if name not in {ORPHAN, FOREGROUND}]
    policy = options.policy
    if not policy:
        if kind.storage in _ORPHANS_BY_DEFAULT or ORPHAN in held:
            policy = "Orphan"
        elif FOREGROUND in held:
            policy = "Foreground"
    if policy == "Orphan":
        return [*others, ORPHAN]
    if policy == "Foreground":
        return [*others, FOREGROUND]
    return others


def _set(meta: Json, key: str, value: list[str]) -> None:
    if value:
        meta[key] = value
    else:
        meta.pop(key, None)
