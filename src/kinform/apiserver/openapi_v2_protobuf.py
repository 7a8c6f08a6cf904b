"""The definitions of the OpenAPI document of version 2, in protobuf.

kubectl wants them so, and only so, where it cannot do with version 3: to check what is in a
``List`` before it sends it. It reads nothing but definitions, so no operations are written. The
numbers below are those of the messages that the server's own answer is made of.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import msgspec

from kinform.apiserver.json import Json, JsonValue, as_dict, as_list

__all__ = ["ACCEPTED", "MEDIA_TYPE", "encode"]

ACCEPTED: Final = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
"""What clients ask for."""
MEDIA_TYPE: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""What they get."""

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
        _bytes(1, _text(1, name) + _bytes(2, _schema(schema))) for name, schema in schemas.items()
    )


def _schema(value: JsonValue) -> bytes:
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
    return _bytes(21, _bytes(1, _schema(value)))


def _items(value: JsonValue) -> bytes:
    return _bytes(23, _bytes(1, _schema(value)))


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
    "allOf": _each(24, _schema),
    "properties": _properties,
    "example": _values(30),
}
