"""Pruning: fields that the schema does not specify are dropped from custom objects."""

from __future__ import annotations

import copy
from typing import Final, NamedTuple

import msgspec

from kinform.apiserver.apiextensions import embedded_resources
from kinform.apiserver.apiextensions.schema import structural
from kinform.apiserver.apiextensions.schema.json_types import is_list, is_object
from kinform.apiserver.endpoints import status
from kinform.apiserver.scheme.kind_registry import Kind
from kinform.apiserver.serializer.json_values import Json, JsonValue, as_dict, as_list

__all__ = ["coerce", "has_unknown", "prune"]

_NOTHING: Final = structural.Node({})
_ROOT_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})
_OWNER_FIELDS: Final = frozenset({
    "apiVersion", "blockOwnerDeletion", "controller", "kind", "name", "uid",
})  # fmt: skip
_META_FIELDS: Final = frozenset({
    "annotations", "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp",
    "finalizers", "generateName", "generation", "labels", "managedFields", "name", "namespace",
    "ownerReferences", "resourceVersion", "selfLink", "uid",
})  # fmt: skip


class _Drops(NamedTuple):
    """The paths that were dropped, for the schema's sake and from metadata."""

    fields: list[str]
    metadata: list[str]


def prune(schema: Json, obj: Json) -> list[str]:
    """Drop from ``obj``, in place, what ``schema`` does not know; return the dropped paths.

    ``apiVersion``, ``kind`` and ``metadata`` are known at the root and in embedded resources; of
    metadata the fields that every object has are kept. What was dropped for the schema's sake
    comes first, sorted, then what was dropped from metadata.
    """
    drops = _Drops([], [])
    _prune_resource(structural.compiled(schema), obj, "", drops=drops)
    return [*sorted(drops.fields), *drops.metadata]


def has_unknown(schema: Json, value: JsonValue) -> bool:
    """Return whether a value, such as a default, has parts that its schema does not know."""
    drops = _Drops([], [])
    _prune(structural.compiled(schema), copy.deepcopy(value), "", drops=drops)
    return bool(drops.fields)


def _prune_resource(node: structural.Node, obj: Json, path: str, *, drops: _Drops) -> None:
    _prune_object(node, obj, path, drops=drops, spares=_ROOT_FIELDS)
    meta = obj.get("metadata")
    if is_object(meta):
        _prune_metadata(meta, f"{path}.metadata" if path else "metadata", drops.metadata)


def _prune_object(
    node: structural.Node,
    obj: Json,
    path: str,
    *,
    drops: _Drops,
    spares: frozenset[str] = frozenset(),
) -> None:
    properties = node.properties
    unknown: list[str] = []
    for name, value in obj.items():
        child = properties.get(name) or node.values
        if child is None:
            if node.preserves or name in spares:
                continue
            if not node.is_open_map:
                unknown.append(name)
                continue
            child = _NOTHING
        if isinstance(value, (dict, list)) and not (name == "metadata" and name in spares):
            _prune(child, value, f"{path}.{name}" if path else name, drops=drops)
    for name in unknown:
        del obj[name]
        drops.fields.append(f"{path}.{name}" if path else name)


def _prune(node: structural.Node, value: JsonValue, path: str, *, drops: _Drops) -> None:
    if is_object(value):
        if node.is_embedded:
            _prune_resource(node, value, path, drops=drops)
        else:
            _prune_object(node, value, path, drops=drops)
    elif is_list(value) and not (node.preserves and node.items is None):
        items = node.items or _NOTHING
        for index, item in enumerate(value):
            if isinstance(item, (dict, list)):
                _prune(items, item, f"{path}[{index}]", drops=drops)


def _prune_metadata(meta: Json, path: str, dropped: list[str]) -> None:
    _keep(meta, _META_FIELDS, path, dropped=dropped)
    for index, owner in enumerate(as_list(meta.get("ownerReferences"))):
        if is_object(owner):
            _keep(
                as_dict(owner), _OWNER_FIELDS, f"{path}.ownerReferences[{index}]", dropped=dropped
            )


def _keep(obj: Json, known: frozenset[str], path: str, *, dropped: list[str]) -> None:
    if obj.keys() <= known:
        return
    for name in sorted(obj.keys() - known):
        del obj[name]
        dropped.append(f"{path}.{name}")


def coerce(kind: Kind, schema: Json, obj: Json) -> None:
    """Refuse embedded resources whose apiVersion, kind or metadata have no place in any object.

    Raises:
        StatusError: 400, as the server does before it looks at the schema any further.
    """
    node = structural.compiled(schema)
    wrong = _uncoercible(node, obj, "") if embedded_resources.has_embedded(node) else ""
    if wrong:
        raise status.bad_request(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {wrong}'
        )


def _uncoercible(node: structural.Node, value: JsonValue, path: str) -> str:
    if is_list(value):
        items = enumerate(as_list(value))
        children = ((node.items, item, f"{path}[{index}]") for index, item in items)
    elif is_object(value):
        obj = value
        if node.is_embedded and (wrong := _wrong_identity(obj, path)):
            return wrong
        children = (
            (node.child(name), item, f"{path}.{name}" if path else name)
            for name, item in obj.items()
        )
    else:
        return ""
    found = (
        _uncoercible(child, item, below)
        for child, item, below in children
        if child is not None and isinstance(item, (dict, list))
    )
    return next(filter(None, found), "")


def _wrong_identity(obj: Json, path: str) -> str:
    for name in ("apiVersion", "kind"):
        value = obj.get(name)
        if value is not None and not isinstance(value, str):
            shown = _shown(value)
            return f"{path}.{name}: Invalid value: {shown}: must be a string"
    meta = obj.get("metadata")
    wrong = _wrong_metadata(meta)
    return f"{path}.metadata: Invalid value: {_shown(meta)}: {wrong}" if wrong else ""


_CALLED: Final[dict[type, str]] = {str: "string", bool: "bool", list: "array", dict: "object"}


def _called(value: object) -> str:
    return _CALLED.get(type(value), "number")


def _wrong_metadata(meta: JsonValue) -> str:
    if meta is None:
        return ""
    if not is_object(meta):
        return f"json: cannot unmarshal {_called(meta)} into Go value of type v1.ObjectMeta"
    for name in ("labels", "annotations"):
        for value in as_dict(meta.get(name)).values():
            if value is not None and not isinstance(value, str):
                where = f"Go struct field ObjectMeta.{name}"
                return f"json: cannot unmarshal {_called(value)} into {where} of type string"
    return ""


def _shown(value: JsonValue) -> str:
    return msgspec.json.encode(value).decode()
