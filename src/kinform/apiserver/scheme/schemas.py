"""Schemas: the fields of a kind, their merge strategies, unknown fields and defaults.

A `Schema` is a view of one node of an OpenAPI schema, of a built-in kind or of a
CustomResourceDefinition. It is resolved lazily and cached, so that unused kinds cost nothing and a
schema may contain itself. Reading is thread-safe: at worst a node is resolved twice, with the same
result.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Final, final

from kinform.apiserver import _recorded
from kinform.apiserver.serializer.json_values import Json, as_dict, as_list

__all__ = ["ANYTHING", "OBJECT_META", "Schema", "builtin", "custom"]

OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

_REFERENCE: Final = "#/components/schemas/"
_NOTHING: Final[Mapping[str, object]] = MappingProxyType({})
_EMPTY_STRUCTS: Final = frozenset(
    {
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceSubresourceStatus",
    }
)
"""Objects that have no fields; every other object without structure keeps what it is given."""
_TYPE_META: Final[Json] = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}


@final
class Schema:
    """One node of a schema. Read-only.

    A node that refers to a definition shows the definition's fields, and its own where it has
    any: the description, the default and the patch strategy are those of the place.
    """

    def __init__(
        self, node: Json, *, definition: str = "", is_custom: bool = False, is_root: bool = False
    ) -> None:
        target = _target(node)
        if target is not None:
            definition = target.definition
            node = target.raw | {key: node[key] for key in node if key not in {"allOf", "$ref"}}
        self._target: Final = target
        self._is_custom: Final = is_custom
        self._is_root: Final = is_root
        self.definition: Final[str] = definition
        """The built-in definition it is, or refers to; empty for an inline node."""
        self.raw: Final[Json] = node
        """The node itself, a reference resolved: defaults, enumerations and validations."""
        kind = node.get("type")
        self.type: Final[str] = kind if isinstance(kind, str) else ""
        """``object``, ``array``, ``string``, ``integer``, ``number`` or ``boolean``.

        Empty where anything may stand, and for quantities and ``is_int_or_string``.
        """
        self.format: Final[str] = node.get("format", "")
        self.list_type: Final[str] = node.get("x-kubernetes-list-type", "atomic")
        """The merge strategy of an array: ``atomic``, ``set`` or ``map``."""
        self.list_keys: Final = tuple(as_list(node.get("x-kubernetes-list-map-keys")))
        """The keys that identify an item where ``list_type`` is ``map``."""
        self.is_atomic: Final = node.get("x-kubernetes-map-type") == "atomic"
        """An object that has one owner as a whole."""
        strategies: str = node.get("x-kubernetes-patch-strategy", "")
        self.patch_strategies: Final = tuple(strategies.split(",")) if strategies else ()
        self.patch_merge_key: Final[str] = node.get("x-kubernetes-patch-merge-key", "")
        self.is_int_or_string: Final = (
            node.get("x-kubernetes-int-or-string") is True or self.format == "int-or-string"
        )
        self.is_embedded: Final = node.get("x-kubernetes-embedded-resource") is True
        """A whole object of some kind, with ``apiVersion``, ``kind`` and ``metadata``."""
        self.nullable: Final = node.get("nullable") is True
        self.preserves_unknown: Final = self._preserves_unknown()
        """Fields it does not know are kept."""

    def __repr__(self) -> str:
        return f"<Schema {self.definition or self.type or 'anything'}>"

    @cached_property
    def properties(self) -> Mapping[str, Schema]:
        """An object's known fields."""
        if self._target is not None:
            return self._target.properties
        nodes = as_dict(self.raw.get("properties"))
        found = {name: self._child(as_dict(node)) for name, node in nodes.items()}
        if self._is_root or (self._is_custom and self.is_embedded):
            for name in _TYPE_META:
                found.setdefault(name, Schema(_TYPE_META[name]))
            found["metadata"] = builtin(OBJECT_META)
        return found

    @cached_property
    def values(self) -> Schema | None:
        """The schema of the values, if the object is a map with names that the client chooses."""
        if self._target is not None:
            return self._target.values
        if self.raw.get("additionalProperties") is True:
            return self._child({})  # anything, but a custom object in it keeps no fields
        return self._below("additionalProperties")

    @cached_property
    def items(self) -> Schema | None:
        """The schema of an array's items."""
        if self._target is not None:
            return self._target.items
        return self._below("items")

    @cached_property
    def key_defaults(self) -> Mapping[str, object]:
        """The defaults of those ``list_keys`` that have one: ``{"protocol": "TCP"}``.

        Zero values count: the server fills them in where a client leaves the key out.
        """
        if not self.list_keys or self.items is None:
            return _NOTHING
        fields = self.items.properties
        return {
            key: fields[key].raw["default"]
            for key in self.list_keys
            if key in fields and "default" in fields[key].raw
        }

    def _below(self, key: str) -> Schema | None:
        if not isinstance(self.raw.get(key), dict):
            return None
        return self._child(as_dict(self.raw[key]))

    def _child(self, node: Json) -> Schema:
        return Schema(node, is_custom=self._is_custom)

    def _preserves_unknown(self) -> bool:
        if self.raw.get("x-kubernetes-preserve-unknown-fields") is True:
            return True
        if self._is_custom or self.type not in {"", "object"}:
            return False
        # Definitions like RawExtension and JSON say nothing of what is in them.
        structure = self.raw.keys() & {"properties", "additionalProperties", "oneOf"}
        return not structure and self.definition not in _EMPTY_STRUCTS


def _target(node: Json) -> Schema | None:
    """Return the definition that a node refers to, if it refers to one."""
    reference = node.get("$ref")
    if not isinstance(reference, str):
        parts = as_list(node.get("allOf"))
        reference = as_dict(parts[0]).get("$ref") if len(parts) == 1 else None
    if not isinstance(reference, str) or not reference.startswith(_REFERENCE):
        return None
    return builtin(reference.removeprefix(_REFERENCE))


@functools.cache
def builtin(definition: str) -> Schema:
    """Return a built-in definition, such as ``io.k8s.api.core.v1.Pod``: always the same one.

    Raises:
        KeyError: the definition does not exist.
    """
    return Schema(_recorded.schemas()[definition], definition=definition)


def custom(schema: Json) -> Schema:
    """Return the schema of a custom kind, from its ``openAPIV3Schema`` (or an empty object).

    The root has ``apiVersion``, ``kind`` and ``metadata`` as every object has; what the
    CustomResourceDefinition itself says of them stays in ``raw``.
    """
    return Schema(schema, is_custom=True, is_root=True)


ANYTHING: Final = Schema({})
"""A schema that allows, and keeps, everything."""
