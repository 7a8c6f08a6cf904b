"""Validation of the remaining groups: leases, autoscalers, budgets, priorities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kinform.apiserver.scheme.field_errors import (
    FieldError,
    forbidden,
    invalid,
    not_supported,
    required,
)
from kinform.apiserver.serializer.json_values import Json, as_dict, as_list
from kinform.apiserver.validation import networking, volumes
from kinform.apiserver.validation.labels import check_label_selector, unsupported
from kinform.apiserver.validation.metadata import IMMUTABLE
from kinform.apiserver.validation.names import path_segment, percent

__all__ = ["VALIDATE", "VALIDATE_UPDATE"]

_METRICS: Final = ("ContainerResource", "External", "Object", "Pods", "Resource")
_SCALING: Final = ("Percent", "Pods")
_EVICTION: Final = ("AlwaysAllow", "IfHealthyBudget")
_PREEMPTION: Final = ("PreemptLowerPriority", "Never")
_HIGHEST_PRIORITY: Final = 1_000_000_000
_SYSTEM_CLASSES: Final = frozenset({"system-cluster-critical", "system-node-critical"})
_NOT_NEGATIVE: Final = "must be greater than or equal to 0"
_ALL: Final = 100


def _lease(obj: Json) -> list[FieldError]:
    spec = as_dict(obj.get("spec"))
    errors: list[FieldError] = []
    length, changes = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if length is not None and length <= 0:
        errors.append(invalid("spec.leaseDurationSeconds", length, "must be greater than 0"))
    if changes is not None and changes < 0:
        errors.append(invalid("spec.leaseTransitions", changes, _NOT_NEGATIVE))
    return errors


def _autoscaler(obj: Json) -> list[FieldError]:
    spec = as_dict(obj.get("spec"))
    errors: list[FieldError] = []
    least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    if least is not None and least < 1:
        errors.append(invalid("spec.minReplicas", least, "must be greater than or equal to 1"))
    if most < 1:
        errors.append(required("spec.maxReplicas", "must be set and greater than 0"))
    if least is not None and most < least:
        why = "must be greater than or equal to `minReplicas`"
        errors.append(invalid("spec.maxReplicas", most, why))
    errors += _scale_target(as_dict(spec.get("scaleTargetRef")))
    metrics = as_list(spec.get("metrics"))
    for index, metric in enumerate(metrics):
        errors += _metric(metric, f"spec.metrics[{index}]")
    if least == 0 and not any(one.get("type") in {"Object", "External"} for one in metrics):
        why = (
            "must specify at least one Object or External metric to support scaling to zero "
            "replicas"
        )
        errors.append(forbidden("spec.metrics", why))
    behavior = as_dict(spec.get("behavior"))
    for field in ("scaleUp", "scaleDown"):
        for index, policy in enumerate(as_list(as_dict(behavior.get(field)).get("policies"))):
            errors += _scaling_policy(policy, f"spec.behavior.{field}.policies[{index}]")
    return errors


def _scale_target(target: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    for field in ("kind", "name"):
        value = target.get(field) or ""
        path = f"spec.scaleTargetRef.{field}"
        if not value:
            errors.append(required(path))
        errors += [invalid(path, value, why) for why in path_segment(value)]
    version = target.get("apiVersion") or ""
    if not version:
        why = "apiVersion must specify API group"
        errors.append(invalid("spec.scaleTargetRef.apiVersion", version, why))
    return errors


def _metric(metric: Json, path: str) -> list[FieldError]:
    kind = metric.get("type") or ""
    errors: list[FieldError] = []
    if not kind:
        errors.append(required(f"{path}.type", "must specify a metric source type"))
    if kind not in _METRICS:
        # The server finds it out twice, and says so in the causes.
        return [*errors, *[not_supported(f"{path}.type", kind, _METRICS)] * 2]
    field = kind[0].lower() + kind[1:]
    source = metric.get(field)
    if source is None:
        why = "must populate information for the given metric source"
        return [*errors, required(f"{path}.{field}", why)]
    target = as_dict(source.get("target"))
    if field in {"resource", "containerResource"}:
        if not source.get("name"):
            errors.append(required(f"{path}.{field}.name", "must specify a resource name"))
        errors += _metric_target(target, f"{path}.{field}.target")
        if target.get("averageUtilization") is None and target.get("averageValue") is None:
            why = "must set either a target raw value or a target utilization"
            errors.append(required(f"{path}.{field}.target.averageUtilization", why))
        return errors
    if not as_dict(source.get("metric")).get("name"):
        errors.append(required(f"{path}.{field}.metric.name", "must specify a metric name"))
    return errors + _metric_target(target, f"{path}.{field}.target")


def _metric_target(target: Json, path: str) -> list[FieldError]:
    kind = target.get("type") or ""
    errors: list[FieldError] = []
    if not kind:
        errors.append(required(f"{path}.type", "must specify a metric target type"))
    if kind not in {"Utilization", "Value", "AverageValue"}:
        why = "must be either Utilization, Value, or AverageValue"
        errors.append(invalid(f"{path}.type", kind, why))
    share = target.get("averageUtilization")
    if share is not None and share < 1:
        errors.append(invalid(f"{path}.averageUtilization", share, "must be greater than 0"))
    return errors


def _scaling_policy(policy: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if policy.get("type") not in _SCALING:
        errors.append(not_supported(f"{path}.type", policy.get("type"), _SCALING))
    for field in ("value", "periodSeconds"):
        if (policy.get(field) or 0) <= 0:
            value = policy.get(field) or 0
            errors.append(invalid(f"{path}.{field}", value, "must be greater than zero"))
    return errors


def _budget(obj: Json) -> list[FieldError]:
    spec = as_dict(obj.get("spec"))
    errors: list[FieldError] = []
    fields = ("minAvailable", "maxUnavailable")
    if all(spec.get(field) is not None for field in fields):
        shown = {
            "MinAvailable": spec["minAvailable"],
            "Selector": spec.get("selector"),
            "MaxUnavailable": spec["maxUnavailable"],
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        why = "minAvailable and maxUnavailable cannot be both set"
        errors.append(invalid("spec", shown, why))
    for field in fields:
        if spec.get(field) is not None:
            errors += _share(spec[field], f"spec.{field}")
    check_label_selector(as_dict(spec.get("selector")), "spec.selector", errors)
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in _EVICTION:
        errors.append(not_supported("spec.unhealthyPodEvictionPolicy", policy, _EVICTION))
    return errors


def _share(value: object, path: str) -> list[FieldError]:
    """Validate a number of pods, or a share of them such as ``50%``."""
    if isinstance(value, int):
        return [invalid(path, value, _NOT_NEGATIVE)] if value < 0 else []
    words = str(value)
    problems = percent(words)
    if problems:
        return [invalid(path, value, why) for why in problems]
    if int(words.removesuffix("%")) > _ALL:
        return [invalid(path, value, "must not be greater than 100%")]
    return []


def _priority_class(obj: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    name: str = obj["metadata"].get("name", "")
    if name in _SYSTEM_CLASSES:
        return errors
    if name.startswith("system-"):
        why = (
            "priority class names with 'system-' prefix are reserved for system use only. "
            f"error: {name} is not a known system priority class"
        )
        errors.append(forbidden("metadata.name", why))
    if obj.get("value", 0) > _HIGHEST_PRIORITY:
        why = f"maximum allowed value of a user defined priority is {_HIGHEST_PRIORITY}"
        errors.append(forbidden("value", why))
    policy = obj.get("preemptionPolicy")
    if policy is not None and policy not in _PREEMPTION:
        errors.append(unsupported("preemptionPolicy", policy, _PREEMPTION))
    return errors


def _priority_class_update(new: Json, old: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    if new.get("value", 0) != old.get("value", 0):
        errors.append(forbidden("value", "may not be changed in an update."))
    if new.get("preemptionPolicy") != old.get("preemptionPolicy"):
        errors.append(invalid("preemptionPolicy", new.get("preemptionPolicy"), IMMUTABLE))
    return errors


VALIDATE: Final[dict[str, Callable[[Json], list[FieldError]]]] = {
    "endpointslices.discovery.k8s.io": networking.endpoint_slice,
    "horizontalpodautoscalers.autoscaling": _autoscaler,
    "ingressclasses.networking.k8s.io": networking.ingress_class,
    "ingresses.networking.k8s.io": networking.ingress,
    "leases.coordination.k8s.io": _lease,
    "networkpolicies.networking.k8s.io": networking.network_policy,
    "poddisruptionbudgets.policy": _budget,
    "priorityclasses.scheduling.k8s.io": _priority_class,
    "storageclasses.storage.k8s.io": volumes.storage_class,
}
VALIDATE_UPDATE: Final[dict[str, Callable[[Json, Json], list[FieldError]]]] = {
    "endpointslices.discovery.k8s.io": networking.endpoint_slice_update,
    "ingressclasses.networking.k8s.io": networking.ingress_class_update,
    "priorityclasses.scheduling.k8s.io": _priority_class_update,
    "storageclasses.storage.k8s.io": volumes.storage_class_update,
}
