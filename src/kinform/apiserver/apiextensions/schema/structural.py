"""Structural schemas, compiled once: the tree that defaulting, pruning and validation walk."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, final

from kinform.apiserver.apiextensions.schema.json_types import is_object
from kinform.apiserver.serializer.json_values import Json, JsonValue, as_dict, as_list

__all__ = ["KEPT", "Node", "compiled"]

KEPT: Final = 512
"""The number of schemas that stay compiled. A server has about one per served custom version."""


@final
class Node:
    """One node of a schema, with its keywords as attributes and its children as nodes."""

    __slots__ = (
        "default",
        "has_embedded",
        "has_identities",
        "is_embedded",
        "is_int_or_string",
        "is_nullable",
        "is_open_map",
        "items",
        "list_keys",
        "list_type",
        "preserves",
        "properties",
        "raw",
        "tidies",
        "types",
        "values",
        "with_defaults",
    )

    def __init__(self, raw: Json) -> None:
        self.raw: Final = raw
        self.is_int_or_string: Final = raw.get("x-kubernetes-int-or-string") is True
        kind = raw.get("type")
        self.types: Final[tuple[str, ...]] = (
            ("integer", "string") if self.is_int_or_string else (kind,) if kind else ()
        )
        self.is_nullable: Final = raw.get("nullable") is True
        self.preserves: Final = raw.get("x-kubernetes-preserve-unknown-fields") is True
        self.is_embedded: Final = raw.get("x-kubernetes-embedded-resource") is True
        self.list_type: Final[str] = raw.get("x-kubernetes-list-type") or "atomic"
        self.list_keys: Final = tuple(as_list(raw.get("x-kubernetes-list-map-keys")))
        self.default: Final[JsonValue] = raw.get("default")
        self.properties: Final = {
            name: Node(as_dict(child)) for name, child in as_dict(raw.get("properties")).items()
        }
        more = raw.get("additionalProperties")
        self.values: Final = Node(as_dict(more)) if is_object(more) else None
        self.is_open_map: Final = isinstance(more, bool)
        items = raw.get("items")
        self.items: Final = Node(as_dict(items)) if is_object(items) else None
        self.with_defaults: Final = tuple(
            (name, child) for name, child in self.properties.items() if child.default is not None
        )
        self.tidies: Final = self._tidies()
        self.has_embedded: bool | None = None
        """Embedded resources exist at or below this node; None until it was computed."""
        self.has_identities: bool | None = None
        """Sets or maps exist at or below this node; None until it was computed."""

    def _tidies(self) -> bool:
        """Return whether defaulting can change a value here, beyond what its parent does."""
        return bool(self.properties) or self.values is not None or self.items is not None

    def child(self, name: str) -> Node | None:
        """Return the node of an object's field, None if the schema does not speak of it."""
        return self.properties.get(name, self.values)


_cache: Final[OrderedDict[int, tuple[Json, Node]]] = OrderedDict()


def compiled(schema: Json) -> Node:
    """Return the node of a schema's root; the same one for the same dictionary.

    Who changes a schema in place after that is not noticed: schemas belong to frozen kinds.
    """
    key = id(schema)
    known = _cache.get(key)
    # the entry holds the schema, so that its id cannot be another's as long as it is here
    if known is not None and known[0] is schema:
        return known[1]
    node = Node(schema)
    _cache[key] = (schema, node)
    if len(_cache) > KEPT:
        _cache.popitem(last=False)
    return node
