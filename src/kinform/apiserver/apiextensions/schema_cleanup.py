"""Schemas in the form in which the server returns them, without empty fields."""

from __future__ import annotations

from typing import Final

from kinform.apiserver.apiextensions.schema.json_types import is_object
from kinform.apiserver.serializer.json_values import Json, as_dict, as_list

__all__ = ["tidy"]

_TEXTS: Final = ("$ref", "$schema", "description", "format", "id", "pattern", "title", "type")
_FLAGS: Final = (
    "exclusiveMaximum", "exclusiveMinimum", "nullable", "uniqueItems",
    "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string",
)  # fmt: skip
_LISTS: Final = (
    "allOf", "anyOf", "enum", "oneOf", "required", "x-kubernetes-list-map-keys",
    "x-kubernetes-validations",
)  # fmt: skip
_MAPS: Final = ("definitions", "dependencies", "patternProperties", "properties")


def tidy(schema: Json) -> None:
    """Drop the keywords of a schema that say nothing, in place and all the way down."""
    for name in [name for name, value in schema.items() if value is None]:
        del schema[name]
    for name in (*_TEXTS, *_FLAGS, *_LISTS, *_MAPS):
        if name in schema and not schema[name]:
            del schema[name]
    for name in ("allOf", "anyOf", "oneOf"):
        for one in as_list(schema.get(name)):
            tidy(as_dict(one))
    for child in as_dict(schema.get("properties")).values():
        tidy(as_dict(child))
    for name in ("additionalProperties", "items", "not"):
        if is_object(schema.get(name)):
            tidy(as_dict(schema[name]))
