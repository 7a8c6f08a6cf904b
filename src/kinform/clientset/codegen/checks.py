"""Refuses schemas that no server would take, before anything is written from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, cast

from kinform.clientset.codegen.schemas import Node
from kinform.errors import UsageError

__all__ = ["check_schema"]

_DEEPEST: Final = 100
"""More than any honest schema has; an alias to a node around it has no end at all."""


def check_schema(node: object, path: str, *, depth: int = 0) -> None:
    """Check the parts of a schema that decide how a model looks, at every level.

    Args:
        node: what should be a schema.
        path: where it is, for people.
        depth: how many schemas are around it.

    Raises:
        UsageError: it is malformed; names the path.
    """
    if not isinstance(node, Mapping):
        raise UsageError(f"{path} is {_shown(node)}, not a schema")
    if depth > _DEEPEST:
        raise UsageError(f"{path} is nested more than {_DEEPEST} schemas deep")
    schema = cast("Node", node)
    _check_words(schema, path)
    for where, inner in _inner(schema, path):
        check_schema(inner, where, depth=depth + 1)


def _check_words(node: Node, path: str) -> None:
    if "$ref" in node:
        raise UsageError(f"{path} has a $ref, which custom kinds cannot have; write it out")
    if not isinstance(node.get("type"), str | None):
        raise UsageError(f"{path}.type is {_shown(node['type'])}, not the name of a type")
    required = _list(node, "required", path)
    if not all(isinstance(name, str) for name in required):
        raise UsageError(f"{path}.required holds what is no text")


def _inner(node: Node, path: str) -> Iterator[tuple[str, object]]:
    """Yield the schemas within ``node``, and where each is."""
    properties = node.get("properties")
    if not isinstance(properties, Mapping | None):
        raise UsageError(f"{path}.properties is {_shown(properties)}, not a mapping of schemas")
    for wire, inner in cast("Mapping[object, object]", properties or {}).items():
        if not isinstance(wire, str):
            raise UsageError(f"{path}.properties has the name {wire!r}, not a text; quote it")
        yield f"{path}.properties.{wire}", inner
    if node.get("items") is not None:
        yield f"{path}.items", node["items"]
    if not isinstance(node.get("additionalProperties"), bool | None):
        yield f"{path}.additionalProperties", node["additionalProperties"]
    for index, inner in enumerate(_list(node, "allOf", path)):
        yield f"{path}.allOf[{index}]", inner


def _list(node: Node, key: str, path: str) -> list[object]:
    value = node.get(key)
    if not isinstance(value, list | None):
        raise UsageError(f"{path}.{key} is {_shown(value)}, not a list")
    return cast("list[object]", value or [])


def _shown(value: object) -> str:
    """Name a value as JSON would, without its contents."""
    match value:
        case None:
            return "null"
        case Mapping():
            return "a mapping"
        case list():
            return "a list"
        case _:
            return repr(value)
