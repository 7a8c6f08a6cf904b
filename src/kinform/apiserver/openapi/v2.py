"""The OpenAPI document of version 2, made from those of version 3.

kubectl asks for it only in protobuf, to compare (``kubectl diff``), and does without where the
server has none. Other clients read the JSON: definitions with the group, version and kind they
belong to, and the operations.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

import msgspec

from kinform.apiserver.serializer.json_values import Json, JsonValue, as_dict, as_list

__all__ = ["ACCEPTED", "MEDIA_TYPE", "document", "encode"]

_V3_REFERENCE: Final = "#/components/schemas/"
_V2_REFERENCE: Final = "#/definitions/"
_UNSAID: Final = frozenset({"oneOf", "anyOf", "allOf", "not", "nullable", "default"})
"""Keywords that version 2 does not have; a reference in ``allOf`` is kept."""
_KINDS: Final = "x-kubernetes-group-version-kind"
_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_METHODS: Final = frozenset({"get", "put", "post", "delete", "options", "head", "patch"})


def document(documents: Iterable[Json]) -> Json:
    """Return one document of all that the documents of version 3 say."""
    paths: Json = {}
    definitions: Json = {}
    for it in documents:
        is_custom = "securitySchemes" not in it["components"]
        paths |= {path: _path(item) for path, item in it["paths"].items()}
        for name, schema in as_dict(it["components"].get("schemas")).items():
            if name not in definitions:
                definitions[name] = _schema(schema, is_custom=is_custom)
            else:
                _add_kinds(definitions[name], schema)
    token = {
        "description": "Bearer Token authentication",
        "type": "apiKey",
        "name": "authorization",
        "in": "header",
    }
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "1.36"},
        "paths": dict(sorted(paths.items())),
        "definitions": dict(sorted(definitions.items())),
        "securityDefinitions": {"BearerToken": token},
        "security": [{"BearerToken": []}],
    }


# Schemas.


def _add_kinds(found: Json, schema: Json) -> None:
    """Add the groups that share a definition; each document of version 3 names only its own."""
    known = as_list(found.get(_KINDS))
    if more := [it for it in as_list(schema.get(_KINDS)) if it not in known]:
        found[_KINDS] = [*known, *more]


def _schema(node: Json, *, is_custom: bool) -> Json:
    """Return a schema in the words of version 2."""
    if target := _reference(node):
        own = {key: value for key, value in node.items() if key not in _UNSAID | {"$ref"}}
        return own | {"$ref": target}
    found: Json = {
        key: _schema_part(key, value, is_custom=is_custom)
        for key, value in node.items()
        if key not in _UNSAID
    }
    if is_custom:
        _forget_types(node, found)
    elif "oneOf" in node:  # quantities, and what is a number or a string
        found["type"] = "string"
    return found


def _schema_part(key: str, value: JsonValue, *, is_custom: bool) -> JsonValue:
    if key == "properties":
        return {
            name: _schema(as_dict(it), is_custom=is_custom) for name, it in as_dict(value).items()
        }
    if key in {"items", "additionalProperties"} and value is not True and value is not False:
        return _schema(as_dict(value), is_custom=is_custom)
    return value


def _forget_types(node: Json, found: Json) -> None:
    """Take from a custom schema what clients of version 2 would refuse objects for."""
    if node.get("nullable") is not True and node.get(_PRESERVE) is not True:
        return
    for key in ("type", "properties", "items", "required", "additionalProperties"):
        found.pop(key, None)
    if _KINDS in node:
        found["type"] = "object"
        found.pop(_PRESERVE, None)


def _reference(node: Json) -> str:
    reference = node.get("$ref")
    if not isinstance(reference, str):
        parts = as_list(node.get("allOf"))
        reference = as_dict(parts[0]).get("$ref") if len(parts) == 1 else None
    if not isinstance(reference, str):
        return ""
    return reference.replace(_V3_REFERENCE, _V2_REFERENCE)


# Paths.


def _path(item: Json) -> Json:
    """Return the operations at one path."""
    found: Json = {
        method: _operation(as_dict(it)) for method, it in item.items() if method in _METHODS
    }
    if "parameters" in item:
        found["parameters"] = [_parameter(it) for it in item["parameters"]]
    return found


def _operation(operation: Json) -> Json:
    found = {
        key: value
        for key, value in operation.items()
        if key not in {"parameters", "requestBody", "responses"}
    }
    body = as_dict(operation.get("requestBody"))
    content = as_dict(body.get("content"))
    found["consumes"] = [it for it in content if operation.get("x-kubernetes-action") == "patch"]
    found["consumes"] = found["consumes"] or ["*/*"]
    responses: Json = as_dict(operation.get("responses"))
    found["produces"] = list(as_dict(as_dict(responses.get("200")).get("content"))) or ["*/*"]
    found["schemes"] = ["https"]
    parameters = [_parameter(it) for it in as_list(operation.get("parameters"))]
    if content:
        required = {"required": True} if body.get("required") else {}
        entry = {"name": "body", "in": "body"} | required | {"schema": _content_schema(content)}
        parameters.insert(0, entry)
    if parameters:
        found["parameters"] = parameters
    found["responses"] = {code: _response(as_dict(it)) for code, it in responses.items()}
    return found


def _parameter(parameter: Json) -> Json:
    own = {key: value for key, value in parameter.items() if key != "schema"}
    return own | as_dict(parameter.get("schema"))


def _response(response: Json) -> Json:
    found: Json = {"description": response.get("description", "")}
    if schema := _content_schema(as_dict(response.get("content"))):
        found["schema"] = schema
    return found


def _content_schema(content: Json) -> Json:
    """Return the schema of a body; it is the same for each of its media types."""
    for entry in content.values():
        return _schema(as_dict(as_dict(entry).get("schema")), is_custom=False)
    return {}


# --- protobuf

# kubectl asks for the definitions in protobuf, and only in protobuf, where it cannot use version 3:
# to validate the items of a ``List`` before it sends it. It reads nothing but definitions, so no
# operations are written. The numbers below are the field numbers of kube-apiserver's messages.

ACCEPTED: Final = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
"""The media type that clients ask for."""
MEDIA_TYPE: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""The media type of the answer."""

_Encode: TypeAlias = "Callable[[JsonValue], bytes]"

_VARINT, _DOUBLE, _BYTES = 0, 1, 2
_EXTENSION: Final = 31


def encode(document: Json) -> bytes:
    """Return the definitions of a document of version 2 as a message ``Document``."""
    info = as_dict(document["info"])
    definitions = as_dict(document["definitions"])
    return b"".join(
        (
            _text(1, document["swagger"]),
            _bytes(2, _text(1, info["title"]) + _text(2, info["version"])),
            _bytes(9, _named(definitions)),
        )
    )


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _tag(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _bytes(number: int, content: bytes) -> bytes:
    return _tag(number, _BYTES) + _varint(len(content)) + content


def _text(number: int, value: JsonValue) -> bytes:
    return _bytes(number, str(value).encode())


def _named(schemas: Mapping[str, JsonValue]) -> bytes:
    """Return schemas with their names: the properties of one, or all definitions."""
    return b"".join(
        _bytes(1, _text(1, name) + _bytes(2, _schema_message(schema)))
        for name, schema in schemas.items()
    )


def _schema_message(value: JsonValue) -> bytes:
    parts: list[bytes] = []
    for key, part in as_dict(value).items():
        if write := _FIELDS.get(key):
            parts.append(write(part))
        elif key.startswith("x-"):
            parts.append(_bytes(_EXTENSION, _text(1, key) + _bytes(2, _any(part))))
    return b"".join(parts)


def _any(value: JsonValue) -> bytes:
    """Return any value: as text, which is YAML if it is JSON."""
    return _bytes(2, msgspec.json.encode(value))


def _texts(number: int) -> _Encode:
    return lambda value: _text(number, value)


def _numbers(number: int) -> _Encode:
    return lambda value: _tag(number, _DOUBLE) + struct.pack("<d", value)


def _counts(number: int) -> _Encode:
    return lambda value: _tag(number, _VARINT) + _varint(int(value))


def _values(number: int) -> _Encode:
    return lambda value: _bytes(number, _any(value))


def _each(number: int, encode_one: _Encode) -> _Encode:
    return lambda value: b"".join(_bytes(number, encode_one(it)) for it in as_list(value))


def _type(value: JsonValue) -> bytes:
    return _bytes(22, _text(1, value))


def _additional(value: JsonValue) -> bytes:
    if isinstance(value, bool):
        return _bytes(21, _counts(2)(value))
    return _bytes(21, _bytes(1, _schema_message(value)))


def _items(value: JsonValue) -> bytes:
    return _bytes(23, _bytes(1, _schema_message(value)))


def _properties(value: JsonValue) -> bytes:
    return _bytes(25, _named(as_dict(value)))


_FIELDS: Final[Mapping[str, _Encode]] = {
    "$ref": _texts(1),
    "format": _texts(2),
    "title": _texts(3),
    "description": _texts(4),
    "default": _values(5),
    "multipleOf": _numbers(6),
    "maximum": _numbers(7),
    "exclusiveMaximum": _counts(8),
    "minimum": _numbers(9),
    "exclusiveMinimum": _counts(10),
    "maxLength": _counts(11),
    "minLength": _counts(12),
    "pattern": _texts(13),
    "maxItems": _counts(14),
    "minItems": _counts(15),
    "uniqueItems": _counts(16),
    "maxProperties": _counts(17),
    "minProperties": _counts(18),
    "required": _each(19, lambda value: str(value).encode()),
    "enum": _each(20, _any),
    "additionalProperties": _additional,
    "type": _type,
    "items": _items,
    "allOf": _each(24, _schema_message),
    "properties": _properties,
    "example": _values(30),
}
