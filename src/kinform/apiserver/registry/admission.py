"""Admission: the defaults and checks of a new object that depend on other objects."""

from __future__ import annotations

from typing import Final

from kinform.apiserver._cluster import Cluster
from kinform.apiserver.endpoints import status
from kinform.apiserver.scheme.kind_registry import Kind
from kinform.apiserver.serializer.encoding import decode
from kinform.apiserver.serializer.json_values import Json, as_dict

__all__ = ["admit"]

_CLASSES: Final = "priorityclasses.scheduling.k8s.io"


def admit(cluster: Cluster, kind: Kind, obj: Json) -> None:
    """Admit a new object, and set the fields that it takes from other objects, in place.

    Raises:
        StatusError: an object that it names does not exist, or its CRD is terminating.
    """
    if kind.storage == "pods":
        _prioritize(cluster, kind, obj)
    elif kind.custom is not None and kind.custom.is_terminating:
        why = "create not allowed while custom resource definition is terminating"
        raise status.forbidden(kind, obj["metadata"].get("name") or "", why)


def _prioritize(cluster: Cluster, kind: Kind, obj: Json) -> None:
    """Give a pod the priority of its class, or of the global default class."""
    spec = as_dict(obj.get("spec"))
    found = _priority_class(cluster, kind, obj, spec=spec)
    value = found.get("value", 0)
    policy = found.get("preemptionPolicy") or "PreemptLowerPriority"
    why = "must not be provided in pod spec; priority admission controller computed"
    if spec.get("priority") not in {None, value}:
        why = f"the integer value of priority ({spec['priority']}) {why} {value}"
    elif spec.get("preemptionPolicy") not in {None, policy}:
        given = spec["preemptionPolicy"]
        why = f"the string value of PreemptionPolicy ({given}) {why} {policy}"
    else:
        obj["spec"] = spec
        spec["priority"], spec["preemptionPolicy"] = value, policy
        return
    raise status.forbidden(kind, _name(obj), f"{why} from the given PriorityClass name")


def _priority_class(cluster: Cluster, kind: Kind, obj: Json, *, spec: Json) -> Json:
    table = cluster.storage.table(_CLASSES)
    classes = cluster.kinds.versions(_CLASSES)[0]
    name = spec.get("priorityClassName") or ""
    if name:
        held = table.get(name)
        if held is None:
            why = f"no PriorityClass with name {name} was found"
            raise status.forbidden(kind, _name(obj), why)
        return decode(classes, held.raw)
    everybodys = [it for it in table.now() if b'"globalDefault":true' in it.raw]
    if not everybodys:
        return {}
    found = min((decode(classes, it.raw) for it in everybodys), key=lambda it: it.get("value", 0))
    spec["priorityClassName"] = found["metadata"]["name"]
    return found


def _name(obj: Json) -> str:
    """Return how a refusal calls an object that may not have its name yet."""
    meta = obj["metadata"]
    return meta.get("name") or meta.get("generateName") or ""
