"""Rows of the kinds that run pods: Deployments, Jobs and others."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from kinform.apiserver.printers import ages, cell_texts
from kinform.apiserver.printers.cell_texts import NONE
from kinform.apiserver.serializer.json_values import Json, JsonValue, as_dict, as_list, at

__all__ = [
    "controller_revision",
    "cron_job",
    "daemon_set",
    "deployment",
    "job",
    "pod_template",
    "replica_set",
    "replication_controller",
    "stateful_set",
]

# The first of these that is true is the state of a Job; deletion is judged in between.
_ENDED: Final = (("Complete", "Complete"), ("Failed", "Failed"))
_UNDER_WAY: Final = ("Suspended", "FailureTarget", "SuccessCriteriaMet")


def deployment(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a Deployment."""
    spec, status = as_dict(obj.get("spec")), as_dict(obj.get("status"))
    template = as_dict(spec.get("template"))
    chosen = cell_texts.selector(spec.get("selector"))
    return [
        obj["metadata"].get("name", ""),
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        ages.age_of(obj, now),
        cell_texts.containers(template),
        cell_texts.images(template),
        "" if chosen == NONE else chosen,
    ]


def _replicated(obj: Json, now: datetime) -> list[JsonValue]:
    spec, status = as_dict(obj.get("spec")), as_dict(obj.get("status"))
    template = as_dict(spec.get("template"))
    return [
        obj["metadata"].get("name", ""),
        spec.get("replicas", 0),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        ages.age_of(obj, now),
        cell_texts.containers(template),
        cell_texts.images(template),
    ]


def replica_set(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a ReplicaSet."""
    return [*_replicated(obj, now), cell_texts.selector(at(obj, "spec", "selector"))]


def replication_controller(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a ReplicationController, whose selector is plain labels."""
    return [*_replicated(obj, now), cell_texts.labels(at(obj, "spec", "selector"))]


def stateful_set(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a StatefulSet."""
    spec, status = as_dict(obj.get("spec")), as_dict(obj.get("status"))
    template = as_dict(spec.get("template"))
    return [
        obj["metadata"].get("name", ""),
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        ages.age_of(obj, now),
        cell_texts.containers(template),
        cell_texts.images(template),
    ]


def daemon_set(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a DaemonSet."""
    spec, status = as_dict(obj.get("spec")), as_dict(obj.get("status"))
    template = as_dict(spec.get("template"))
    return [
        obj["metadata"].get("name", ""),
        status.get("desiredNumberScheduled", 0),
        status.get("currentNumberScheduled", 0),
        status.get("numberReady", 0),
        status.get("updatedNumberScheduled", 0),
        status.get("numberAvailable", 0),
        cell_texts.labels(at(template, "spec", "nodeSelector")),
        ages.age_of(obj, now),
        cell_texts.containers(template),
        cell_texts.images(template),
        cell_texts.selector(spec.get("selector")),
    ]


def job(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a Job."""
    spec = as_dict(obj.get("spec"))
    template = as_dict(spec.get("template"))
    return [
        obj["metadata"].get("name", ""),
        _job_state(obj),
        _job_completions(obj),
        _job_duration(obj, now),
        ages.age_of(obj, now),
        cell_texts.containers(template),
        cell_texts.images(template),
        cell_texts.selector(spec.get("selector")),
    ]


def _job_state(obj: Json) -> str:
    for condition, state in _ENDED:
        if cell_texts.has_condition(obj, condition):
            return state
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for condition in _UNDER_WAY:
        if cell_texts.has_condition(obj, condition):
            return condition
    return "Running"


def _job_completions(obj: Json) -> str:
    spec = as_dict(obj.get("spec"))
    succeeded = at(obj, "status", "succeeded") or 0
    completions = spec.get("completions")
    if completions is not None:
        return f"{succeeded}/{completions}"
    parallelism = spec.get("parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(obj: Json, now: datetime) -> str:
    status = as_dict(obj.get("status"))
    start = ages.parsed(status.get("startTime"))
    if start is None:
        return ""
    end = ages.parsed(status.get("completionTime")) or now
    return ages.duration((end - start).total_seconds())


def cron_job(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a CronJob."""
    spec, status = as_dict(obj.get("spec")), as_dict(obj.get("status"))
    template = as_dict(at(spec, "jobTemplate", "spec", "template"))
    suspend = spec.get("suspend")
    last = status.get("lastScheduleTime")
    return [
        obj["metadata"].get("name", ""),
        spec.get("schedule", ""),
        cell_texts.or_none(spec.get("timeZone")),
        "<unset>" if suspend is None else str(suspend),
        len(as_list(status.get("active"))),
        ages.since(last, now) if last else NONE,
        ages.age_of(obj, now),
        cell_texts.containers(template),
        cell_texts.images(template),
        cell_texts.selector(at(spec, "jobTemplate", "spec", "selector")),
    ]


def controller_revision(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a ControllerRevision."""
    metadata = obj["metadata"]
    return [
        metadata.get("name", ""),
        _controller(metadata),
        obj.get("revision", 0),
        ages.age_of(obj, now),
    ]


def _controller(metadata: Json) -> str:
    """Return who controls an object, as ``statefulset.apps/web``."""
    for owner in as_list(metadata.get("ownerReferences")):
        if owner.get("controller"):
            group = owner.get("apiVersion", "").rpartition("/")[0]
            kind = owner.get("kind", "").lower()
            return f"{kind}.{group}/{owner['name']}" if group else f"{kind}/{owner['name']}"
    return NONE


def pod_template(obj: Json, now: datetime) -> list[JsonValue]:  # noqa: ARG001 -- it has no age
    """Return the cells of a PodTemplate."""
    template = as_dict(obj.get("template"))
    return [
        obj["metadata"].get("name", ""),
        cell_texts.containers(template),
        cell_texts.images(template),
        cell_texts.labels(at(template, "metadata", "labels")),
    ]
