"""Rows of the kinds that scale, budget and admit: autoscalers, budgets, webhooks, flow control."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from kinform.apiserver.printers import ages, cell_texts
from kinform.apiserver.printers.cell_texts import NONE
from kinform.apiserver.serializer.json_values import Json, JsonValue, as_dict, as_list, at, text

__all__ = [
    "admission_binding",
    "autoscaler",
    "disruption_budget",
    "flow_schema",
    "mutating_policy",
    "priority_class",
    "priority_level",
    "validating_policy",
    "webhooks",
]

_UNSET: Final = "<unset>"
_SHOWN_METRICS: Final = 2


def autoscaler(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a HorizontalPodAutoscaler of either version."""
    spec = as_dict(obj.get("spec"))
    target = as_dict(spec.get("scaleTargetRef"))
    smallest = spec.get("minReplicas")
    return [
        obj["metadata"].get("name", ""),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        _metrics(obj),
        _UNSET if smallest is None else str(smallest),
        spec.get("maxReplicas", 0),
        at(obj, "status", "currentReplicas") or 0,
        ages.age_of(obj, now),
    ]


def _metrics(obj: Json) -> str:
    wanted = as_list(at(obj, "spec", "metrics"))
    current = as_list(at(obj, "status", "currentMetrics"))
    share = at(obj, "spec", "targetCPUUtilizationPercentage")
    if share is not None:
        now_used = at(obj, "status", "currentCPUUtilizationPercentage")
        wanted = [{"type": "Resource", "resource": _cpu("target", share)}]
        current = [{"resource": _cpu("current", now_used)}]
    shown = [
        _metric(metric, as_dict(current[index]) if index < len(current) else {})
        for index, metric in enumerate(wanted[:_SHOWN_METRICS])
    ]
    if not shown:
        return NONE
    more = len(wanted) - len(shown)
    return ", ".join(shown) + (f" + {more} more..." if more else "")


def _cpu(which: str, share: object) -> Json:
    return {"name": "cpu", which: {"averageUtilization": share}}


def _metric(metric: Json, status: Json) -> str:
    """Return how much there is of a metric, and how much there should be."""
    kind: str = metric.get("type", "")
    if not kind:
        return "<unknown type>"
    field = kind[0].lower() + kind[1:]
    source, target = as_dict(metric.get(field)), as_dict(at(metric, field, "target"))
    now_used = as_dict(at(status, field, "current"))
    average = target.get("averageValue")
    if field in {"resource", "containerResource"}:
        return f"{source.get('name', '')}: {_usage(now_used, target)}"
    if average is not None:
        suffix = "" if field == "pods" else " (avg)"
        return f"{now_used.get('averageValue') or ages.UNKNOWN}/{average}{suffix}"
    return f"{now_used.get('value') or ages.UNKNOWN}/{target.get('value', 0)}"


def _usage(now_used: Json, target: Json) -> str:
    average = target.get("averageValue")
    if average is not None:
        return f"{now_used.get('averageValue') or ages.UNKNOWN}/{average}"
    used, wanted = now_used.get("averageUtilization"), target.get("averageUtilization")
    left = ages.UNKNOWN if used is None else f"{used}%"
    return f"{left}/<auto>" if wanted is None else f"{left}/{wanted}%"


def disruption_budget(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a PodDisruptionBudget."""
    spec = as_dict(obj.get("spec"))
    return [
        obj["metadata"].get("name", ""),
        str(spec.get("minAvailable", "N/A")),
        str(spec.get("maxUnavailable", "N/A")),
        at(obj, "status", "disruptionsAllowed") or 0,
        ages.age_of(obj, now),
    ]


def priority_class(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a PriorityClass."""
    return [
        obj["metadata"].get("name", ""),
        obj.get("value", 0),
        obj.get("globalDefault", False),
        ages.age_of(obj, now),
        obj.get("preemptionPolicy", ""),
    ]


def webhooks(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a configuration of webhooks."""
    count = len(as_list(obj.get("webhooks")))
    return [obj["metadata"].get("name", ""), count, ages.age_of(obj, now)]


def validating_policy(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a ValidatingAdmissionPolicy."""
    return _policy(obj, "validations", now)


def mutating_policy(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a MutatingAdmissionPolicy."""
    return _policy(obj, "mutations", now)


def _policy(obj: Json, rules: str, now: datetime) -> list[JsonValue]:
    parameter = as_dict(at(obj, "spec", "paramKind"))
    kind = f"{parameter.get('apiVersion', '')}/{parameter.get('kind', '')}"
    return [
        obj["metadata"].get("name", ""),
        len(as_list(at(obj, "spec", rules))),
        kind if parameter else _UNSET,
        ages.age_of(obj, now),
    ]


def admission_binding(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a binding of an admission policy."""
    return [
        obj["metadata"].get("name", ""),
        text(obj, "spec", "policyName"),
        _parameter(as_dict(at(obj, "spec", "paramRef"))),
        ages.age_of(obj, now),
    ]


def _parameter(reference: Json) -> str:
    if not reference:
        return _UNSET
    chosen = reference.get("selector")
    if chosen is None:
        where = reference.get("namespace")
        name = reference.get("name", "")
        return f"{where}/{name}" if where else f"*/{name}"
    pairs = as_dict(chosen.get("matchLabels"))
    equal = "".join([f"{key}: {pairs[key]}," for key in sorted(pairs)])
    expressions = "".join(map(_expression, as_list(chosen.get("matchExpressions"))))
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{equal}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


def _expression(one: Json) -> str:
    key, what = one.get("key", ""), one.get("operator", "")
    values = " ".join(as_list(one.get("values")))
    return f"LabelSelectorRequirement{{Key:{key},Operator:{what},Values:[{values}],}},"


def flow_schema(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a FlowSchema."""
    spec = as_dict(obj.get("spec"))
    dangling = "?"
    for one in as_list(at(obj, "status", "conditions")):
        if one.get("type") == "Dangling":
            dangling = one.get("status", "")
    return [
        obj["metadata"].get("name", ""),
        text(spec, "priorityLevelConfiguration", "name"),
        spec.get("matchingPrecedence", 0),
        text(spec, "distinguisherMethod", "type") or NONE,
        ages.age_of(obj, now),
        dangling,
    ]


def priority_level(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a PriorityLevelConfiguration."""
    spec = as_dict(obj.get("spec"))
    limited = as_dict(spec.get("limited"))
    queuing = as_dict(at(limited, "limitResponse", "queuing"))
    return [
        obj["metadata"].get("name", ""),
        spec.get("type", ""),
        cell_texts.or_none(limited.get("nominalConcurrencyShares")),
        cell_texts.or_none(queuing.get("queues")),
        cell_texts.or_none(queuing.get("handSize")),
        cell_texts.or_none(queuing.get("queueLengthLimit")),
        ages.age_of(obj, now),
    ]
