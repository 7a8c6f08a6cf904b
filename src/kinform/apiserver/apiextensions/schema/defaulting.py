"""Defaulting of custom objects, and removal of nulls that the schema does not allow."""

from __future__ import annotations

import copy

from kinform.apiserver.apiextensions.schema import structural
from kinform.apiserver.apiextensions.schema.json_types import is_list, is_object
from kinform.apiserver.serializer.json_values import Json, JsonValue, as_list

__all__ = ["default"]


def default(schema: Json, obj: Json) -> None:
    """Set the defaults of ``schema`` in ``obj``, in place; to do it again changes nothing.

    A null in a field that is not nullable is replaced by the field's default, or dropped if there
    is none. The items of a list are not dropped: validation complains of them.
    """
    _fill(structural.compiled(schema), obj)


def _fill(node: structural.Node, value: JsonValue) -> None:
    if is_object(value):
        _fill_object(node, value)
    elif is_list(value) and node.items is not None:
        _fill_list(node.items, as_list(value))


def _fill_object(node: structural.Node, obj: Json) -> None:
    for name, child in node.with_defaults:
        if name not in obj:
            obj[name] = copy.deepcopy(child.default)
    nulls: list[str] = []
    for name, value in obj.items():
        below = node.child(name)
        if below is None:
            continue
        if value is None and not below.is_nullable:
            nulls.append(name)
        elif below.tidies:
            _fill(below, value)
    for name in nulls:
        _replace_null(node, obj, name)


def _replace_null(node: structural.Node, obj: Json, name: str) -> None:
    child = node.child(name)
    if child is None or child.default is None:
        del obj[name]
        return
    obj[name] = copy.deepcopy(child.default)
    _fill(child, obj[name])


def _fill_list(node: structural.Node, values: list[JsonValue]) -> None:
    for index, value in enumerate(values):
        if value is None and not node.is_nullable and node.default is not None:
            values[index] = copy.deepcopy(node.default)
        if node.tidies:
            _fill(node, values[index])
