"""Rules for the merge extensions of a schema: ``x-kubernetes-list-type`` and the like."""

from __future__ import annotations

from typing import Final

from kinform.apiserver.apiextensions.schema.json_types import is_object
from kinform.apiserver.scheme import field_errors
from kinform.apiserver.scheme.field_errors import FieldError, Problem
from kinform.apiserver.serializer.json_values import Json, as_dict, as_list

__all__ = ["problems"]

_SCALARS: Final = frozenset({"boolean", "integer", "number", "string"})


def problems(schema: Json, path: str) -> list[FieldError]:
    """Return the errors of the types of a list or a map, one node of a schema."""
    return _maps(schema, path) + _lists(schema, path)


def _unsupported(path: str, value: object, names: tuple[str, ...]) -> FieldError:
    listed = ", ".join(f'"{name}"' for name in names)
    return FieldError(Problem.NOT_SUPPORTED, path, f"supported values: {listed}", value)


def _wrong_type(schema: Json, path: str, *, wanted: str, because: str) -> list[FieldError]:
    kind = schema.get("type")
    if kind == wanted:
        return []
    words = f"must be {wanted} if {because} is specified"
    if not kind:
        return [field_errors.required(f"{path}.type", words)]
    return [field_errors.invalid(f"{path}.type", kind, words)]


def _maps(schema: Json, path: str) -> list[FieldError]:
    map_type = schema.get("x-kubernetes-map-type")
    if map_type is None:
        return []
    because = "x-kubernetes-map-type"
    errors = _wrong_type(schema, path, wanted="object", because=because)
    if map_type not in {"atomic", "granular"}:
        errors.append(_unsupported(f"{path}.{because}", map_type, ("atomic", "granular")))
    return errors


def _lists(schema: Json, path: str) -> list[FieldError]:
    list_type = schema.get("x-kubernetes-list-type")
    keys = as_list(schema.get("x-kubernetes-list-map-keys"))
    where = f"{path}.x-kubernetes-list-type"
    errors: list[FieldError] = []
    if list_type is not None:
        because = "x-kubernetes-list-type"
        errors += _wrong_type(schema, path, wanted="array", because=because)
        if list_type not in {"atomic", "set", "map"}:
            errors.append(_unsupported(where, list_type, ("atomic", "set", "map")))
    if keys and list_type != "map":
        words = "must be map if x-kubernetes-list-map-keys is non-empty"
        wrong = field_errors.invalid(where, list_type, words)
        errors.append(wrong if list_type else field_errors.required(where, words))
    items = as_dict(schema.get("items"))
    if list_type == "map":
        errors += _map_keys(keys, f"{path}.x-kubernetes-list-map-keys", items)
    if list_type in {"set", "map"} and is_object(schema.get("items")):
        errors += _items(items, f"{path}.items", list_type=list_type, keys=keys)
    return errors


def _map_keys(keys: list[str], path: str, items: Json) -> list[FieldError]:
    if not keys:
        words = "must not be empty if x-kubernetes-list-type is map"
        return [field_errors.required(path, words)]
    errors: list[FieldError] = []
    known = as_dict(items.get("properties"))
    if items.get("type") == "object" and not {*keys} <= known.keys():
        words = "entries must all be names of item properties"
        errors.append(field_errors.invalid(path, keys, words))
    if len({*keys}) < len(keys):
        errors.append(field_errors.invalid(path, keys, "must not contain duplicate entries"))
    return errors


def _items(items: Json, path: str, *, list_type: str, keys: list[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    if items.get("nullable") is True:
        words = f"cannot be nullable when x-kubernetes-list-type is {list_type}"
        errors.append(field_errors.forbidden(f"{path}.nullable", words))
    kind = items.get("type")
    if list_type == "set":
        map_type = items.get("x-kubernetes-map-type")
        if kind == "object" and map_type != "atomic":
            words = "must be atomic as item of a list with x-kubernetes-list-type=set"
            where = f"{path}.x-kubernetes-map-type"
            errors.append(field_errors.invalid(where, map_type, words))
        return errors
    if kind != "object":
        words = "must be object if parent array's x-kubernetes-list-type is map"
        errors.append(field_errors.invalid(f"{path}.type", kind, words))
        return errors
    for key in dict.fromkeys(keys):
        errors += _key_property(items, key, f"{path}.properties[{key}]")
    return errors


def _key_property(items: Json, key: str, path: str) -> list[FieldError]:
    schema = as_dict(items.get("properties")).get(key)
    if schema is None:
        return []
    errors: list[FieldError] = []
    kind = schema.get("type")
    if kind not in _SCALARS and not schema.get("x-kubernetes-int-or-string"):
        words = "must be a scalar type if parent array's x-kubernetes-list-type is map"
        errors.append(field_errors.invalid(f"{path}.type", kind, words))
    because = "this property is in x-kubernetes-list-map-keys, so it"
    if schema.get("default") is None and key not in as_list(items.get("required")):
        words = f"{because} must have a default or be a required property"
        errors.append(field_errors.required(f"{path}.default", words))
    if schema.get("nullable") is True:
        errors.append(field_errors.forbidden(f"{path}.nullable", f"{because} cannot be nullable"))
    return errors
