"""Validation of ``/status``: invalid counts and transitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from kinform.apiserver.scheme.field_errors import FieldError, duplicate, invalid, required
from kinform.apiserver.serializer.json_values import Json, as_dict, as_list
from kinform.apiserver.validation.names import ip_address, qualified_name

__all__ = ["VALIDATE_STATUS"]

_NEGATIVE: Final = "must be greater than or equal to 0"
_TOO_MANY: Final = "cannot be greater than status.replicas"
_FINISHED: Final = ("Complete", "Failed")


class _Counts:
    """The rules of a status that counts replicas.

    Args:
        counts: The counts, in the order of the checks.
        parts: Those that count a part of ``replicas``, in the order of these errors.
        ready: What the ready ones are called.
    """

    def __init__(self, counts: str, *, parts: str = "", ready: str = "") -> None:
        self._counts = counts.split()
        self._parts = parts.split()
        self._ready = ready

    def __call__(self, new: Json, old: Json) -> list[FieldError]:
        status, before = as_dict(new.get("status")), as_dict(old.get("status"))
        errors = _negative(status, self._counts)
        errors += [
            invalid(f"status.{part}", status.get(part, 0), _TOO_MANY)
            for part in self._parts
            if status.get(part, 0) > status.get("replicas", 0)
        ]
        available = status.get("availableReplicas", 0)
        if self._ready and available > status.get("readyReplicas", 0):
            why = f"cannot be greater than {self._ready}"
            errors.append(invalid("status.availableReplicas", available, why))
        collisions, known = status.get("collisionCount"), before.get("collisionCount")
        if known is not None and (collisions or 0) < known:
            errors.append(
                invalid("status.collisionCount", collisions or 0, "cannot be decremented")
            )
        return errors


def _negative(status: Json, counts: Sequence[str]) -> list[FieldError]:
    """Return the errors of counts: they are less than nothing."""
    return [
        invalid(f"status.{count}", status[count], _NEGATIVE)
        for count in counts
        if (status.get(count) or 0) < 0
    ]


def _job(new: Json, old: Json) -> list[FieldError]:
    status, before = as_dict(new.get("status")), as_dict(old.get("status"))
    errors = _negative(status, ("active", "succeeded", "failed", "ready", "terminating"))
    errors += _uncounted(as_dict(status.get("uncountedTerminatedPods")))
    for count in ("failed", "succeeded"):
        value = status.get(count, 0)
        if value < before.get(count, 0):
            why = f"cannot decrease the {count} counter"
            errors.append(invalid(f"status.{count}", value, why))
    active = status.get("active", 0)
    if active >= 0 and (status.get("ready") or 0) > active:
        why = "cannot set more ready pods than active"
        errors.append(invalid("status.ready", status["ready"], why))
    true = {it["type"] for it in as_list(status.get("conditions")) if it.get("status") == "True"}
    was = {it["type"] for it in as_list(before.get("conditions")) if it.get("status") == "True"}
    if true != was:
        errors += _job_end(status, true)
    return errors


def _uncounted(pods: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for field in ("succeeded", "failed"):
        for index, uid in enumerate(as_list(pods.get(field))):
            path = f"status.uncountedTerminatedPods.{field}[{index}]"
            if not uid:
                errors.append(invalid(path, uid, "must not be empty"))
            elif uid in seen:
                errors.append(duplicate(path, uid))
            seen.add(uid)
    return errors


def _job_end(status: Json, true: set[str]) -> list[FieldError]:
    """Validate the conditions of a job, and what must go with them."""
    errors: list[FieldError] = []
    start, end = status.get("startTime"), status.get("completionTime")
    if {"Complete", "Failed"} <= true:
        errors.append(_conditions("cannot set Complete=True and Failed=true conditions"))
    if "Complete" in true and not end:
        why = "completionTime is required for Complete jobs"
        errors.append(required("status.completionTime", why))
    for condition, needed in (("Failed", "FailureTarget"), ("Complete", "SuccessCriteriaMet")):
        if condition in true and needed not in true:
            why = f"cannot set {condition}=True condition without the {needed}=true condition"
            errors.append(_conditions(why))
    if not true.intersection(_FINISHED):
        return errors
    if status.get("active", 0) > 0:
        why = "active>0 is invalid for finished job"
        errors.append(invalid("status.active", status["active"], why))
    if not start:
        errors.append(required("status.startTime", "startTime is required for finished job"))
    elif end and end < start:
        why = "must be equal to or after `startTime`"
        errors.append(invalid("status.completionTime", end, why))
    return errors


def _conditions(why: str) -> FieldError:
    return invalid("status.conditions", msgspec.Raw(why.encode()), "")


def _pod(new: Json, old: Json) -> list[FieldError]:
    status, before = as_dict(new.get("status")), as_dict(old.get("status"))
    errors: list[FieldError] = []
    if status.get("qosClass") != before.get("qosClass"):
        errors.append(invalid("status.qosClass", status.get("qosClass"), "field is immutable"))
    for index, address in enumerate(as_list(status.get("podIPs"))):
        path, ip = f"status.podIPs[{index}]", as_dict(address).get("ip", "")
        errors += [invalid(path, ip, why) for why in ip_address(ip)]
    hosts = [as_dict(it).get("ip", "") for it in as_list(status.get("hostIPs"))]
    if hosts and hosts[0] != status.get("hostIP", ""):
        errors.append(invalid("status.hostIPs[0].ip", hosts[0], "must be equal to `hostIP`"))
    for index, condition in enumerate(as_list(status.get("conditions"))):
        path, kind = f"status.conditions[{index}].Type", as_dict(condition).get("type", "")
        errors += [invalid(path, kind, why) for why in qualified_name(kind)]
    return errors


_REPLICAS: Final = _Counts(
    "replicas fullyLabeledReplicas readyReplicas availableReplicas observedGeneration "
    "terminatingReplicas",
    parts="fullyLabeledReplicas readyReplicas availableReplicas",
    ready="readyReplicas",
)

VALIDATE_STATUS: Final[Mapping[str, Callable[[Json, Json], list[FieldError]]]] = {
    "pods": _pod,
    "replicationcontrollers": _REPLICAS,
    "replicasets.apps": _REPLICAS,
    "deployments.apps": _Counts(
        "observedGeneration replicas updatedReplicas readyReplicas availableReplicas "
        "unavailableReplicas terminatingReplicas collisionCount",
        parts="updatedReplicas readyReplicas availableReplicas",
        ready="readyReplicas",
    ),
    "statefulsets.apps": _Counts(
        "replicas readyReplicas currentReplicas updatedReplicas availableReplicas "
        "observedGeneration collisionCount",
        parts="readyReplicas currentReplicas updatedReplicas availableReplicas",
        ready="status.readyReplicas",
    ),
    "daemonsets.apps": _Counts(
        "currentNumberScheduled numberMisscheduled desiredNumberScheduled numberReady "
        "observedGeneration updatedNumberScheduled numberAvailable numberUnavailable "
        "collisionCount"
    ),
    "jobs.batch": _job,
    "poddisruptionbudgets.policy": _Counts(
        "disruptionsAllowed currentHealthy desiredHealthy expectedPods"
    ),
    "horizontalpodautoscalers.autoscaling": _Counts("currentReplicas desiredReplicas"),
}
"""The checks of an update of ``/status``, where they differ from those of other updates."""
