"""Defaults of the remaining groups: leases, slices, ingresses, autoscalers, budgets, storage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kinform.apiserver.defaults.core import keep_status
from kinform.apiserver.serializer.json_values import Json, as_dict, as_list

__all__ = ["DEFAULTS", "PREPARE_CREATE", "PREPARE_UPDATE"]

_BUDGET_COUNTS: Final = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
_SCALE_UP: Final[tuple[Json, ...]] = (
    {"type": "Pods", "value": 4, "periodSeconds": 15},
    {"type": "Percent", "value": 100, "periodSeconds": 15},
)
_SCALE_DOWN: Final[tuple[Json, ...]] = ({"type": "Percent", "value": 100, "periodSeconds": 15},)
_SHARE: Final = 80


def _lease(obj: Json) -> None:
    spec = as_dict(obj.get("spec"))
    # Fields behind a feature that is off are dropped without a word.
    for field in ("strategy", "preferredHolder"):
        spec.pop(field, None)
    obj["spec"] = spec


def _endpoint_slice(obj: Json) -> None:
    obj["endpoints"] = obj.get("endpoints") or None
    obj["ports"] = obj.get("ports") or None
    for endpoint in as_list(obj["endpoints"]):
        endpoint.setdefault("conditions", {})
        endpoint.pop("deprecatedTopology", None)
    for port in as_list(obj["ports"]):
        if port.get("name") is None:
            port["name"] = ""
        port["protocol"] = port.get("protocol") or "TCP"


def _ingress(obj: Json) -> None:
    status = as_dict(obj.get("status"))
    status.setdefault("loadBalancer", {})
    obj["status"] = status
    for rule in as_list(as_dict(obj.get("spec")).get("rules")):
        for path in as_list(as_dict(rule.get("http")).get("paths")):
            if "path" in path and not path["path"]:
                del path["path"]


def _create_ingress(obj: Json) -> None:
    obj["status"] = {"loadBalancer": {}}


def _ingress_class(obj: Json) -> None:
    parameters = as_dict(as_dict(obj.get("spec")).get("parameters"))
    if parameters:
        parameters["scope"] = parameters.get("scope") or "Cluster"


def _network_policy(obj: Json) -> None:
    spec = as_dict(obj.get("spec"))
    spec.setdefault("podSelector", {})
    for direction in ("ingress", "egress"):
        if not spec.get(direction):
            spec.pop(direction, None)
        for rule in as_list(spec.get(direction)):
            for port in as_list(rule.get("ports")):
                port["protocol"] = port.get("protocol") or "TCP"
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    obj["spec"] = spec


def _autoscaler(obj: Json) -> None:
    """Scale by the use of processors if nothing is said, in the terms of the object's version."""
    spec = as_dict(obj.get("spec"))
    obj["spec"] = spec
    if spec.get("minReplicas") is None:
        spec["minReplicas"] = 1
    status = as_dict(obj.get("status"))
    obj["status"] = status
    status.setdefault("desiredReplicas", 0)
    is_old = obj.get("apiVersion") == "autoscaling/v1"
    if is_old:
        spec.setdefault("targetCPUUtilizationPercentage", _SHARE)
        status.setdefault("currentReplicas", 0)
        return
    if not spec.get("metrics"):
        target: Json = {"type": "Utilization", "averageUtilization": _SHARE}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    status.setdefault("currentMetrics", None)
    if isinstance(spec.get("behavior"), dict):
        _default_behavior(spec["behavior"])


def _default_behavior(behavior: Json) -> None:
    for field, policies in (("scaleUp", _SCALE_UP), ("scaleDown", _SCALE_DOWN)):
        rules = as_dict(behavior.get(field))
        behavior[field] = rules
        rules["selectPolicy"] = rules.get("selectPolicy") or "Max"
        if field == "scaleUp":
            rules.setdefault("stabilizationWindowSeconds", 0)
        if not rules.get("policies"):
            rules["policies"] = [dict(policy) for policy in policies]


def _budget(obj: Json) -> None:
    obj.setdefault("spec", {})
    status = as_dict(obj.get("status"))
    for field in _BUDGET_COUNTS:
        status.setdefault(field, 0)
    obj["status"] = status


def _priority_class(obj: Json) -> None:
    obj.setdefault("value", 0)
    obj["preemptionPolicy"] = obj.get("preemptionPolicy") or "PreemptLowerPriority"
    if not obj.get("globalDefault"):
        obj.pop("globalDefault", None)


def _storage_class(obj: Json) -> None:
    obj["reclaimPolicy"] = obj.get("reclaimPolicy") or "Delete"
    obj["volumeBindingMode"] = obj.get("volumeBindingMode") or "Immediate"


def _without_status(obj: Json) -> None:
    obj.pop("status", None)


DEFAULTS: Final[dict[str, Callable[[Json], None]]] = {
    "endpointslices.discovery.k8s.io": _endpoint_slice,
    "horizontalpodautoscalers.autoscaling": _autoscaler,
    "ingressclasses.networking.k8s.io": _ingress_class,
    "ingresses.networking.k8s.io": _ingress,
    "leases.coordination.k8s.io": _lease,
    "networkpolicies.networking.k8s.io": _network_policy,
    "poddisruptionbudgets.policy": _budget,
    "priorityclasses.scheduling.k8s.io": _priority_class,
    "storageclasses.storage.k8s.io": _storage_class,
}
PREPARE_CREATE: Final[dict[str, Callable[[Json], None]]] = {
    "horizontalpodautoscalers.autoscaling": _without_status,
    "ingresses.networking.k8s.io": _create_ingress,
    "poddisruptionbudgets.policy": _without_status,
}
PREPARE_UPDATE: Final[dict[str, Callable[[Json, Json], None]]] = {
    "horizontalpodautoscalers.autoscaling": keep_status,
    "ingresses.networking.k8s.io": keep_status,
    "poddisruptionbudgets.policy": keep_status,
}
