"""Lists whose items have an identity: sets, and maps by keys."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from kinform.apiserver.apiextensions.schema import keywords, structural
from kinform.apiserver.apiextensions.schema.json_types import is_list, is_object
from kinform.apiserver.scheme import field_errors
from kinform.apiserver.scheme.field_errors import FieldError
from kinform.apiserver.serializer.json_values import Json, JsonValue, as_list

__all__ = ["by_keys", "duplicates", "key_of", "unchanged"]

Key: TypeAlias = bytes


def key_of(node: structural.Node, item: JsonValue) -> Key | None:
    """Return the key of an item of a list of type map, None if it has none."""
    if node.list_type != "map" or not is_object(item):
        return None
    obj = item
    return _exact({name: obj[name] for name in node.list_keys if name in obj})


def by_keys(node: structural.Node, values: list[JsonValue]) -> dict[Key, JsonValue]:
    """Return the items of a list of type map by their keys; nothing of another list."""
    if node.list_type != "map":
        return {}
    keyed = ((key_of(node, item), item) for item in values)
    return {key: item for key, item in keyed if key is not None}


def _exact(value: JsonValue) -> bytes:
    return msgspec.json.encode(value, order="deterministic")


def unchanged(node: structural.Node, new: JsonValue, old: JsonValue) -> bool:
    """Return whether two values are the same to a schema: a list of type map has no order."""
    if is_object(new) and is_object(old):
        ours, theirs = new, old
        return ours.keys() == theirs.keys() and all(
            _child_unchanged(node.child(name), value, theirs[name]) for name, value in ours.items()
        )
    if is_list(new) and is_list(old) and node.list_type == "map":
        items, before = as_list(new), as_list(old)
        if len(items) != len(before):
            return False
        keyed = by_keys(node, before)
        return all(
            _child_unchanged(node.items, item, keyed.get(key_of(node, item) or b""))
            for item in items
        )
    return keywords.same(new, old)


def _child_unchanged(node: structural.Node | None, new: JsonValue, old: JsonValue) -> bool:
    return keywords.same(new, old) if node is None else unchanged(node, new, old)


def duplicates(node: structural.Node, obj: Json) -> list[FieldError]:
    """Return the items of sets and the keys of maps that are there more than once."""
    errors: list[FieldError] = []
    if _has_identities(node):
        _find(node, obj, "", errors=errors)
    return errors


def _has_identities(node: structural.Node) -> bool:
    known = node.has_identities
    if known is None:
        children = [*node.properties.values(), node.values, node.items]
        known = node.list_type != "atomic" or any(
            child is not None and _has_identities(child) for child in children
        )
        node.has_identities = known
    return known


def _find(node: structural.Node, value: JsonValue, path: str, *, errors: list[FieldError]) -> None:
    if is_object(value):
        for name, item in value.items():
            child = node.properties.get(name)
            if child is not None:
                if _has_identities(child):
                    _find(child, item, f"{path}.{name}" if path else name, errors=errors)
            elif node.values is not None and _has_identities(node.values):
                _find(node.values, item, f"{path}[{name}]", errors=errors)
    elif is_list(value):
        items = as_list(value)
        if node.items is not None and _has_identities(node.items):
            for index, item in enumerate(items):
                _find(node.items, item, f"{path}[{index}]", errors=errors)
        if node.list_type != "atomic":
            errors += _repeated(node, items, path)


def _repeated(node: structural.Node, items: list[JsonValue], path: str) -> list[FieldError]:
    """Return one error for each identity that is there more than once, at its second place."""
    seen: dict[bytes, int] = {}
    errors: list[FieldError] = []
    for index, item in enumerate(items):
        key = key_of(node, item) if node.list_type == "map" else _exact(item)
        if key is None:
            continue
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 2:
            error = field_errors.duplicate(f"{path}[{index}]", msgspec.json.decode(key))
            errors.append(error)
    return errors
