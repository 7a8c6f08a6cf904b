"""Conversion of HorizontalPodAutoscalers between v1 and the stored v2.

Version 1 has a field for the use of processors only. All else that version 2 says is there as
annotations, so that nothing is lost on the way there and back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from kinform.apiserver.serializer.json_values import Json, JsonValue, as_dict, as_list, at

__all__ = ["to_first", "to_second"]

_PREFIX: Final = "autoscaling.alpha.kubernetes.io/"
_METRICS: Final = f"{_PREFIX}metrics"
_BEHAVIOR: Final = f"{_PREFIX}behavior"
_CURRENT: Final = f"{_PREFIX}current-metrics"
_CONDITIONS: Final = f"{_PREFIX}conditions"
_ALL: Final = frozenset({_METRICS, _BEHAVIOR, _CURRENT, _CONDITIONS})
_SHARE: Final = "targetCPUUtilizationPercentage"
_CURRENT_SHARE: Final = "currentCPUUtilizationPercentage"

# What version 1 calls the fields of each source of metrics, and where version 2 has them.
_Paths = Mapping[str, tuple[str, ...]]
_RESOURCE: Final = {
    "name": ("name",),
    "targetAverageUtilization": ("target", "averageUtilization"),
    "targetAverageValue": ("target", "averageValue"),
}
_WANTED: Final[Mapping[str, _Paths]] = {
    "resource": _RESOURCE,
    "containerResource": {**_RESOURCE, "container": ("container",)},
    "pods": {
        "metricName": ("metric", "name"),
        "targetAverageValue": ("target", "averageValue"),
        "selector": ("metric", "selector"),
    },
    "external": {
        "metricName": ("metric", "name"),
        "metricSelector": ("metric", "selector"),
        "targetValue": ("target", "value"),
        "targetAverageValue": ("target", "averageValue"),
    },
    "object": {
        "target": ("describedObject",),
        "metricName": ("metric", "name"),
        "targetValue": ("target", "value"),
        "selector": ("metric", "selector"),
        "averageValue": ("target", "averageValue"),
    },
}
_SEEN: Final[Mapping[str, _Paths]] = {
    source: {
        name.replace("target", "current") if name != "target" else name: (
            ("current", *path[1:]) if path[0] == "target" else path
        )
        for name, path in paths.items()
    }
    for source, paths in _WANTED.items()
}


def to_first(obj: Json) -> Json:
    """Return a stored autoscaler as version 1 shows it; what is given is not changed."""
    spec, status = dict(as_dict(obj.get("spec"))), dict(as_dict(obj.get("status")))
    kept: dict[str, str] = {}
    share, metrics = _without_share(as_list(spec.pop("metrics", None)), "target")
    if share is not None:
        spec[_SHARE] = share
    if metrics:
        kept[_METRICS] = _text([_renamed(metric, _WANTED) for metric in metrics])
    behavior = spec.pop("behavior", None)
    if behavior is not None:
        kept[_BEHAVIOR] = _text(_internal(behavior))
    seen = as_list(status.pop("currentMetrics", None))
    share, _ = _without_share(seen, "current")
    if share is not None:
        status[_CURRENT_SHARE] = share
    if seen:
        kept[_CURRENT] = _text([_renamed(metric, _SEEN) for metric in seen])
    conditions = status.pop("conditions", None)
    if conditions:
        kept[_CONDITIONS] = _text(conditions)
    status.setdefault("currentReplicas", 0)
    return {**obj, "metadata": _annotated(obj["metadata"], kept), "spec": spec, "status": status}


def to_second(obj: Json) -> Json:
    """Return an autoscaler of version 1 as it is stored; what is given is not changed."""
    spec, status = dict(as_dict(obj.get("spec"))), dict(as_dict(obj.get("status")))
    annotations = as_dict(obj["metadata"].get("annotations"))
    metrics: list[Json] = []
    share = spec.pop(_SHARE, None)
    if share is not None:
        target = {"type": "Utilization", "averageUtilization": share}
        metrics.append({"type": "Resource", "resource": {"name": "cpu", "target": target}})
    metrics += [_restored(metric, _WANTED) for metric in _listed(annotations, _METRICS)]
    if metrics:
        spec["metrics"] = metrics
    behavior = _value(annotations, _BEHAVIOR)
    if behavior is not None:
        spec["behavior"] = _external(behavior)
    status.pop(_CURRENT_SHARE, None)
    seen = [_restored(metric, _SEEN) for metric in _listed(annotations, _CURRENT)]
    status["currentMetrics"] = seen or None
    if conditions := _listed(annotations, _CONDITIONS):
        status["conditions"] = conditions
    if not status.get("currentReplicas"):
        status.pop("currentReplicas", None)
    return {**obj, "metadata": _annotated(obj["metadata"], {}), "spec": spec, "status": status}


def _annotated(metadata: Json, kept: dict[str, str]) -> Json:
    held = as_dict(metadata.get("annotations"))
    annotations = {key: value for key, value in held.items() if key not in _ALL} | kept
    others = {key: value for key, value in metadata.items() if key != "annotations"}
    return {**others, "annotations": annotations} if annotations else others


def _without_share(metrics: list[Json], part: str) -> tuple[JsonValue, list[Json]]:
    """Return the use of processors in percent, and the metrics that are something else."""
    for index, metric in enumerate(metrics):
        share = at(metric, "resource", part, "averageUtilization")
        if at(metric, "resource", "name") == "cpu" and share is not None:
            return share, metrics[:index] + metrics[index + 1 :]
    return None, metrics


def _renamed(metric: Json, tables: Mapping[str, _Paths]) -> Json:
    found: Json = {"type": metric.get("type")}
    for source, paths in tables.items():
        if source in metric:
            values = {name: at(metric[source], *path) for name, path in paths.items()}
            found[source] = {name: value for name, value in values.items() if value is not None}
    return found


def _restored(metric: Json, tables: Mapping[str, _Paths]) -> Json:
    found: Json = {"type": metric.get("type")}
    for source, paths in tables.items():
        if source in metric:
            made: Json = {}
            for name, path in paths.items():
                if name in metric[source]:
                    *parents, last = path
                    place = made
                    for key in parents:
                        place = place.setdefault(key, {})
                    place[last] = metric[source][name]
            if "target" in made:
                made["target"] = {"type": _target_type(made["target"]), **made["target"]}
            found[source] = made
    return found


def _target_type(target: Json) -> str:
    if "averageUtilization" in target:
        return "Utilization"
    return "AverageValue" if "averageValue" in target else "Value"


_RULES: Final = ("stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance")


def _internal(behavior: Json) -> Json:
    """Return rules of scaling as the server has them inside, with other names and every field."""
    found: Json = {}
    for field in ("scaleUp", "scaleDown"):
        rules = behavior.get(field)
        found[_upper(field)] = rules and {
            _upper(name): [_renamed_keys(it, _upper) for it in as_list(rules.get(name))]
            if name == "policies"
            else rules.get(name)
            for name in _RULES
        }
    return found


def _external(behavior: Json) -> Json:
    found: Json = {}
    for field in ("scaleUp", "scaleDown"):
        rules = behavior.get(_upper(field))
        if rules:
            values = {name: rules.get(_upper(name)) for name in _RULES}
            values["policies"] = [_renamed_keys(it, _lower) for it in as_list(values["policies"])]
            found[field] = {name: value for name, value in values.items() if value is not None}
    return found


def _renamed_keys(value: Json, rename: Callable[[str], str]) -> Json:
    return {rename(key): item for key, item in value.items()}


def _upper(name: str) -> str:
    return name[0].upper() + name[1:]


def _lower(name: str) -> str:
    return name[0].lower() + name[1:]


def _text(value: JsonValue) -> str:
    return msgspec.json.encode(value).decode()


def _value(annotations: Json, key: str) -> Json | None:
    """Return what an annotation says, None if it says nothing that can be read."""
    try:
        return as_dict(msgspec.json.decode(annotations[key])) or None
    except (KeyError, TypeError, msgspec.DecodeError):
        return None


def _listed(annotations: Json, key: str) -> list[Json]:
    try:
        found = as_list(msgspec.json.decode(annotations[key]))
    except (KeyError, TypeError, msgspec.DecodeError):
        return []
    return [it for it in map(as_dict, found) if it]
