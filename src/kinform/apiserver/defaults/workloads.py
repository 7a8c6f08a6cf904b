"""Defaults of the kinds that run pods, and their preparation for the storage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kinform.apiserver.defaults.pods import (
    default_pod,
    default_template,
    prepare_pod,
    prepare_pod_update,
)
from kinform.apiserver.defaults.pods_omitted import omit_empty, section
from kinform.apiserver.defaults.pods_volumes import default_claim_spec
from kinform.apiserver.serializer.json_values import Json, as_dict

__all__ = ["DEFAULTS", "PREPARE_CREATE", "PREPARE_UPDATE", "TEMPLATE_GENERATION"]

TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
"""The annotation in which a DaemonSet counts the changes of its template."""

_LARGEST: Final = 2**31 - 1


def _spec_of(obj: Json) -> Json:
    spec: Json = section(obj, "spec")
    omit_empty(spec)
    default_template(section(spec, "template"))
    return spec


def _default_deployment(obj: Json) -> None:
    spec = _spec_of(obj)
    put = spec.setdefault
    put("replicas", 1)
    strategy: Json = put("strategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling: Json = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    put("revisionHistoryLimit", 10)
    put("progressDeadlineSeconds", 600)
    obj.setdefault("status", {})


def _default_replica_set(obj: Json) -> None:
    _spec_of(obj).setdefault("replicas", 1)
    obj.setdefault("status", {}).setdefault("replicas", 0)


def _default_replication_controller(obj: Json) -> None:
    spec: Json = section(obj, "spec")
    omit_empty(spec)
    spec.setdefault("replicas", 1)
    template: Json | None = spec.get("template")
    if template is not None:
        default_template(template)
        labels: Json = template["metadata"].get("labels") or {}
        if labels:
            if not spec.get("selector"):
                spec["selector"] = dict(labels)
            if not obj["metadata"].get("labels"):
                obj["metadata"]["labels"] = dict(labels)
    obj.setdefault("status", {}).setdefault("replicas", 0)


def _default_stateful_set(obj: Json) -> None:
    spec = _spec_of(obj)
    put = spec.setdefault
    put("replicas", 1)
    put("serviceName", "")
    put("podManagementPolicy", "OrderedReady")
    strategy: Json = put("updateStrategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if "rollingUpdate" in strategy and strategy["type"] == "RollingUpdate":
        strategy["rollingUpdate"].setdefault("partition", 0)
    put("revisionHistoryLimit", 10)
    retention: Json = put("persistentVolumeClaimRetentionPolicy", {})
    retention.setdefault("whenDeleted", "Retain")
    retention.setdefault("whenScaled", "Retain")
    for claim in spec.get("volumeClaimTemplates") or ():
        claim.setdefault("kind", "PersistentVolumeClaim")
        claim.setdefault("apiVersion", "v1")
        claim.setdefault("metadata", {})
        default_claim_spec(claim.setdefault("spec", {}))
        claim.setdefault("status", {}).setdefault("phase", "Pending")
    status: Json = obj.setdefault("status", {})
    status.setdefault("replicas", 0)
    status.setdefault("availableReplicas", 0)


def _default_daemon_set(obj: Json) -> None:
    spec = _spec_of(obj)
    strategy: Json = spec.setdefault("updateStrategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling: Json = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    elif "rollingUpdate" in strategy:
        strategy["rollingUpdate"] = {"maxUnavailable": 0, "maxSurge": 0} | strategy["rollingUpdate"]
    spec.setdefault("revisionHistoryLimit", 10)
    annotations: Json = obj["metadata"].get("annotations") or {}
    obj["metadata"]["annotations"] = {TEMPLATE_GENERATION: "0", **annotations}
    status: Json = obj.setdefault("status", {})
    for count in (
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
    ):
        status.setdefault(count, 0)


def _default_job_spec(spec: Json) -> None:
    put = spec.setdefault
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = spec["parallelism"] = 1
    put("parallelism", 1)
    put("backoffLimit", _LARGEST if "backoffLimitPerIndex" in spec else 6)
    put("completionMode", "NonIndexed")
    put("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    for flag in ("suspend", "manualSelector"):
        spec[flag] = bool(spec.get(flag))
    _default_conditions(spec)


def _default_conditions(spec: Json) -> None:
    for rule in as_dict(spec.get("podFailurePolicy")).get("rules") or ():
        for condition in rule.get("onPodConditions") or ():
            condition.setdefault("status", "True")


def _default_job(obj: Json) -> None:
    spec = _spec_of(obj)
    _default_job_spec(spec)
    labels: Json = spec["template"]["metadata"].get("labels") or {}
    if labels and not obj["metadata"].get("labels"):
        obj["metadata"]["labels"] = dict(labels)
    obj.setdefault("status", {})


def _default_cron_job(obj: Json) -> None:
    spec: Json = section(obj, "spec")
    omit_empty(spec)
    put = spec.setdefault
    put("schedule", "")
    put("concurrencyPolicy", "Allow")
    spec["suspend"] = bool(spec.get("suspend"))
    put("successfulJobsHistoryLimit", 3)
    put("failedJobsHistoryLimit", 1)
    template: Json = put("jobTemplate", {})
    section(template, "metadata")
    job: Json = section(template, "spec")
    default_template(section(job, "template"))
    _default_conditions(job)
    obj.setdefault("status", {})


def _default_pod_template(obj: Json) -> None:
    default_template(section(obj, "template"))


DEFAULTS: Final[dict[str, Callable[[Json], None]]] = {
    "pods": default_pod,
    "podtemplates": _default_pod_template,
    "replicationcontrollers": _default_replication_controller,
    "deployments.apps": _default_deployment,
    "replicasets.apps": _default_replica_set,
    "statefulsets.apps": _default_stateful_set,
    "daemonsets.apps": _default_daemon_set,
    "jobs.batch": _default_job,
    "cronjobs.batch": _default_cron_job,
}
"""By storage: fills in an object's defaults in place."""


def _prepare(obj: Json) -> None:
    obj["metadata"]["generation"] = 1
    obj["status"] = {}


def _prepare_pod_template(obj: Json) -> None:
    obj["metadata"]["generation"] = 1


def _prepare_daemon_set(obj: Json) -> None:
    _prepare(obj)
    annotations: Json = obj["metadata"].get("annotations") or {}
    obj["metadata"]["annotations"] = {**annotations, TEMPLATE_GENERATION: "1"}


def _prepare_job(obj: Json) -> None:
    """Give a Job the labels and the selector by which it finds its pods: they hold its uid."""
    _prepare(obj)
    metadata: Json = obj["metadata"]
    spec: Json = section(obj, "spec")
    if spec.get("manualSelector"):
        return
    uid, name = metadata.get("uid") or "", metadata.get("name") or ""
    template: Json = section(spec, "template")
    meta: Json = template.get("metadata") or {}
    template["metadata"] = meta
    labels: Json = {**as_dict(meta.get("labels"))}
    meta["labels"] = labels
    for key, value in (("controller-uid", uid), ("job-name", name)):
        labels.setdefault(key, value)
        labels.setdefault(f"batch.kubernetes.io/{key}", value)
    selector: Json = spec.get("selector") or {}
    wanted: Json = selector.get("matchLabels") or {}
    selector["matchLabels"] = {"batch.kubernetes.io/controller-uid": uid} | wanted
    spec["selector"] = selector


def _prepare_update(new: Json, old: Json, *, default: Callable[[Json], None]) -> None:
    """Keep the status; count the change if the spec, with its defaults, is another one."""
    new["status"] = old.get("status") or {}
    default(new)
    changed = new.get("spec") != old.get("spec")
    new["metadata"]["generation"] = (old["metadata"].get("generation") or 0) + changed


def _update_deployment(new: Json, old: Json) -> None:
    """Change a Deployment: its annotations count, its ReplicaSets carry them."""
    _prepare_update(new, old, default=_default_deployment)
    before: Json = old["metadata"].get("annotations") or {}
    after: Json = new["metadata"].get("annotations") or {}
    if before != after and new["spec"] == old.get("spec"):
        new["metadata"]["generation"] += 1


def _update_daemon_set(new: Json, old: Json) -> None:
    before: Json = old["metadata"].get("annotations") or {}
    count = int(before.get(TEMPLATE_GENERATION) or "0")
    _prepare_update(new, old, default=_default_daemon_set)
    if new["spec"].get("template") != as_dict(old.get("spec")).get("template"):
        count += 1
    new["metadata"]["annotations"][TEMPLATE_GENERATION] = str(count)


def _update_pod_template(new: Json, old: Json) -> None:
    _default_pod_template(new)
    changed = new["template"] != old.get("template")
    new["metadata"]["generation"] = (old["metadata"].get("generation") or 0) + changed


def _keeping_status(default: Callable[[Json], None]) -> Callable[[Json, Json], None]:
    def update(new: Json, old: Json) -> None:
        _prepare_update(new, old, default=default)

    return update


PREPARE_CREATE: Final[dict[str, Callable[[Json], None]]] = {
    "pods": prepare_pod,
    "podtemplates": _prepare_pod_template,
    "replicationcontrollers": _prepare,
    "deployments.apps": _prepare,
    "replicasets.apps": _prepare,
    "statefulsets.apps": _prepare,
    "daemonsets.apps": _prepare_daemon_set,
    "jobs.batch": _prepare_job,
    "cronjobs.batch": _prepare,
}
"""By storage: resets what a client may not choose. Runs once, at creation, before the defaults."""

PREPARE_UPDATE: Final[dict[str, Callable[[Json, Json], None]]] = {
    "pods": prepare_pod_update,
    "podtemplates": _update_pod_template,
    "replicationcontrollers": _keeping_status(_default_replication_controller),
    "deployments.apps": _update_deployment,
    "replicasets.apps": _keeping_status(_default_replica_set),
    "statefulsets.apps": _keeping_status(_default_stateful_set),
    "daemonsets.apps": _update_daemon_set,
    "jobs.batch": _keeping_status(_default_job),
    "cronjobs.batch": _keeping_status(_default_cron_job),
}
"""By storage: given the new object and the old one, keeps the status and counts the generation.

It fills in defaults itself, because only with them can it tell whether the spec has changed.
"""
