"""The ``scale`` subresource of custom kinds: the current and the wanted number of replicas."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Final

from kinform.apiserver.apiextensions.schema.json_types import is_list, is_object
from kinform.apiserver.endpoints import status
from kinform.apiserver.scheme import field_errors
from kinform.apiserver.scheme.field_errors import FieldError
from kinform.apiserver.scheme.kind_registry import Kind
from kinform.apiserver.serializer.json_values import Json, JsonValue, as_dict, as_list, at, text

__all__ = ["check_patched", "patchable", "problems", "replicas_path", "scale_of", "set_scale"]

_MOST: Final = (1 << 31) - 1
_BUILTIN: Final = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
_SCALE: Final = Kind(
    group="autoscaling", version="v1", kind="Scale", plural="scales", singular="scale",
    namespaced=True, verbs=(),
)  # fmt: skip


def scale_of(kind: Kind, obj: Json) -> Json:
    """Return the ``autoscaling/v1`` Scale of an object.

    Raises:
        StatusError: 500, if the object has no number of replicas where its definition says.
    """
    paths = _paths(kind)
    replicas = _replicas(kind, obj, paths["specReplicasPath"])
    meta = as_dict(obj.get("metadata"))
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    state: Json = {"replicas": _count(obj, paths["statusReplicasPath"])}
    selector = _selector(kind, obj)
    if selector:
        state["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: meta[name] for name in kept if meta.get(name)},
        "spec": {"replicas": replicas} if replicas else {},
        "status": state,
    }


def patchable(kind: Kind, obj: Json) -> Json:
    """Return the Scale of an object as patches see it: without a number it has null there."""
    path = _paths(kind)["specReplicasPath"]
    if kind.custom is None or _lookup(obj, path)[0]:
        return scale_of(kind, obj)
    counted: Json = copy.deepcopy(obj)
    set_scale(kind, counted, {})
    return {**scale_of(kind, counted), "spec": {"replicas": None}}


def check_patched(kind: Kind, obj: Json, scale: Json) -> None:
    """Refuse a patch after which there would still be no number of replicas.

    Raises:
        StatusError: 400.
    """
    path = _paths(kind)["specReplicasPath"]
    if kind.custom is None or _lookup(obj, path)[0]:
        return
    if at(scale, "spec", "replicas") is None:
        raise status.bad_request(f'the spec replicas field "{path}" cannot be empty')


def replicas_path(kind: Kind) -> tuple[str, ...]:
    """Return where an object of a kind has the number of replicas that there should be."""
    return tuple(_paths(kind)["specReplicasPath"][1:].split("."))


def set_scale(kind: Kind, obj: Json, scale: Json) -> None:
    """Write the number of replicas that ``scale`` asks for into ``obj``, in place.

    Nothing else of a Scale is written: its status and its labels are not the client's.

    Raises:
        StatusError: 422, if the number is negative.
    """
    wanted = at(scale, "spec", "replicas") or 0
    path = _paths(kind)["specReplicasPath"]
    if wanted < 0:
        name = text(obj, "metadata", "name")
        if kind.custom is None:
            words = "must be greater than or equal to 0"
            raise status.invalid(_SCALE, name, [field_errors.invalid(path[1:], wanted, words)])
        words = "should be a non-negative integer"
        raise status.invalid(kind, name, [field_errors.invalid(path, wanted, words)])
    *parents, last = path[1:].split(".")
    place = obj
    for key in parents:
        below = place.get(key)
        if not is_object(below):
            below = place[key] = {}
        place = below
    place[last] = wanted


def problems(paths: Mapping[str, str], obj: Json) -> list[FieldError]:
    """Return what a scale could not be made of, in an object that is to be written."""
    errors: list[FieldError] = []
    for name in ("specReplicasPath", "statusReplicasPath"):
        errors += _count_problems(paths.get(name, ""), obj)
    path = paths.get("labelSelectorPath", "")
    if path:
        exists, value = _lookup(obj, path)
        if exists and not isinstance(value, str):
            errors.append(field_errors.invalid(path, "", _accessor(path, value, "string")))
    return errors


def _count_problems(path: str, obj: Json) -> list[FieldError]:
    exists, value = _lookup(obj, path)
    if not exists:
        return []
    if type(value) is not int:
        return [field_errors.invalid(path, 0, _accessor(path, value, "int64"))]
    if value < 0:
        return [field_errors.invalid(path, value, "should be a non-negative integer")]
    if value > _MOST:
        return [field_errors.invalid(path, value, f"should be less than or equal to {_MOST}")]
    return []


def _accessor(path: str, value: JsonValue, wanted: str) -> str:
    shown, called = _in_go(value)
    return f"{path} accessor error: {shown} is of the type {called}, expected {wanted}"


def _in_go(value: JsonValue) -> tuple[str, str]:
    """Return a value as Go prints it, and the name of its type."""
    if value is None:
        return "<nil>", "<nil>"
    if isinstance(value, bool):
        return str(value).lower(), "bool"
    if is_object(value):
        fields = sorted(value.items())
        inside = " ".join(f"{key}:{_in_go(item)[0]}" for key, item in fields)
        return f"map[{inside}]", "map[string]interface {}"
    if is_list(value):
        inside = " ".join(_in_go(item)[0] for item in as_list(value))
        return f"[{inside}]", "[]interface {}"
    names: dict[type, str] = {str: "string", int: "int64", float: "float64"}
    return str(value), names[type(value)]


def _paths(kind: Kind) -> Mapping[str, str]:
    if kind.custom is None or kind.custom.scale is None:
        return _BUILTIN
    return kind.custom.scale


def _lookup(obj: Json, path: str) -> tuple[bool, JsonValue]:
    value: JsonValue = obj
    for key in path[1:].split("."):
        if not is_object(value) or key not in value:
            return False, None
        value = value[key]
    return True, value


def _replicas(kind: Kind, obj: Json, path: str) -> int:
    exists, value = _lookup(obj, path)
    if kind.custom is None:
        return value if isinstance(value, int) else 0
    if not exists:
        raise status.internal(f'the spec replicas field "{path}" does not exist')
    if type(value) is not int:
        raise status.internal(_accessor(path, value, "int64"))
    return value


def _count(obj: Json, path: str) -> int:
    _, value = _lookup(obj, path)
    return value if type(value) is int else 0


def _selector(kind: Kind, obj: Json) -> str:
    if kind.custom is not None:
        path = _paths(kind).get("labelSelectorPath", "")
        value = _lookup(obj, path)[1] if path else None
        return value if isinstance(value, str) else ""
    selector = as_dict(at(obj, "spec", "selector"))
    if kind.kind == "ReplicationController":
        selector = {"matchLabels": selector}
    labels = as_dict(selector.get("matchLabels"))
    terms = [(key, f"{key}={value}") for key, value in labels.items()]
    terms += [_term(as_dict(one)) for one in as_list(selector.get("matchExpressions"))]
    return ",".join(term for _, term in sorted(terms, key=lambda term: term[0]))


def _term(expression: Json) -> tuple[str, str]:
    key = expression.get("key") or ""
    values = ",".join(sorted(as_list(expression.get("values"))))
    written = {
        "In": f"{key} in ({values})",
        "NotIn": f"{key} notin ({values})",
        "Exists": key,
        "DoesNotExist": f"!{key}",
    }
    return key, written.get(expression.get("operator") or "", "")
