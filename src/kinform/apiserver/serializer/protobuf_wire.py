"""Protobuf's wire format: bytes to JSON, by a table of each message's fields.

`read` goes through a message's fields; each is read by a function that is built from its line in
the table (`kinform.apiserver.serializer.protobuf` has the tables of Kubernetes' kinds).

Go writes a field that is not a pointer even when it is empty, and omits it in JSON, so it is left
out here. An empty value of a pointer field was set on purpose, and stays.
"""

from __future__ import annotations

import base64
import functools
import math
import struct
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias, final

import msgspec

from kinform.apiserver.scheme import scalars
from kinform.apiserver.serializer.json_values import Json, JsonValue

__all__ = [
    "EOF",
    "NEGATIVE",
    "Line",
    "Message",
    "WireError",
    "base64_text",
    "message",
    "micro_time",
    "number",
    "quantity",
    "raw",
    "read",
    "signed",
    "text",
    "time",
    "varint",
]

# --- single values: numbers, times, quantities and JSON

EOF: Final = "unexpected EOF"
NEGATIVE: Final = "proto: negative length found during unmarshaling"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_WHOLE: Final = 1 << 53
"""Up to here a float that is a whole number is written like one."""
_FULL: Final = (1 << 64) - 1


class WireError(ValueError):
    """The bytes are not what they have to be, in Go's words."""


def varint(data: bytes, position: int) -> tuple[int, int]:
    """Return an unsigned number of 64 bits, and where it ends.

    Raises:
        WireError: it is longer than that, or the data ends in it.
    """
    value = shift = 0
    for index in range(position, min(position + 10, len(data))):
        byte = data[index]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _FULL, index + 1
        shift += 7
    raise WireError(EOF if position + 10 > len(data) else "proto: integer overflow")


def signed(value: int, *, bits: int) -> int:
    """Return the number whose two's complement the lowest ``bits`` of ``value`` are.

    >>> signed(0xFFFF_FFFF, bits=32)
    -1
    """
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def text(data: bytes) -> str:
    """Return a text; bytes that are not UTF-8 become U+FFFD."""
    return data.decode(errors="replace")


def base64_text(data: bytes) -> str:
    """Return bytes as JSON has them."""
    return base64.b64encode(data).decode()


def number(value: float) -> int | float:
    """Return a float as Go writes it: without a point if it is a whole number."""
    if not math.isfinite(value):
        raise WireError("json: unsupported value: NaN or infinite")
    return int(value) if value.is_integer() and abs(value) < _WHOLE else value


@functools.lru_cache(maxsize=4096)
def quantity(data: bytes) -> str:
    """Return an amount; without any it is 0."""
    content = b""
    for tag, value in _fields(data):
        if tag == 0x0A and isinstance(value, bytes):
            content = value
    try:
        return scalars.quantity(text(content)) if content else "0"
    except scalars.ScalarError as exc:
        raise WireError(str(exc)) from exc


@functools.lru_cache(maxsize=4096)
def time(data: bytes) -> str | None:
    """Return a time in whole seconds; nothing at all is none."""
    moment = _moment(data)
    return moment and moment[:19] + "Z"


@functools.lru_cache(maxsize=4096)
def micro_time(data: bytes) -> str | None:
    """Return a time with microseconds; nothing at all is none."""
    return _moment(data)


def raw(data: bytes) -> JsonValue:
    """Return the JSON that a message carries."""
    content = b""
    for tag, value in _fields(data):
        if tag == 0x0A and isinstance(value, bytes):
            content = value
    if not content:
        return None
    try:
        return msgspec.json.decode(content)
    except (ValueError, RecursionError) as exc:
        raise WireError(f"the raw part is not JSON: {exc}") from exc


def _moment(data: bytes) -> str | None:
    if not data:
        return None
    seconds = nanoseconds = 0
    for tag, value in _fields(data):
        if isinstance(value, int) and tag == 0x08:
            seconds = signed(value, bits=64)
        elif isinstance(value, int) and tag == 0x10:
            nanoseconds = signed(value, bits=32)
    # Microseconds are cut off towards zero.
    microseconds = int(math.copysign(abs(nanoseconds) // 1000, nanoseconds))
    try:
        moment = _EPOCH + timedelta(seconds=seconds, microseconds=microseconds)
    except OverflowError as exc:
        raise WireError("Time.MarshalJSON: year outside of range [0,9999]") from exc
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z".rjust(27, "0")


def _fields(data: bytes) -> list[tuple[int, int | bytes]]:
    """Return the tags and values of a message that has numbers and bytes only."""
    found: list[tuple[int, int | bytes]] = []
    position = 0
    while position < len(data):
        tag, position = varint(data, position)
        value, position = varint(data, position)
        if tag & 7 == 0:
            found.append((tag, value))
        elif tag & 7 == 2:
            if position + value > len(data):
                raise WireError(EOF)
            found.append((tag, data[position : position + value]))
            position += value
        else:
            raise WireError(f"proto: illegal wireType {tag & 7}")
    return found


# --- messages

Line: TypeAlias = tuple[int, str, str, str, str]
"""A field: its number, its names in Go and in JSON, its type, and flags.

The flags are ``r`` repeated, ``k`` a map with such values, ``p`` a pointer, ``o`` left out of
JSON when empty, ``z`` left out when zero, ``i`` its fields are the parent's in JSON.
"""
Lines: TypeAlias = Callable[[str], Sequence[Line]]
"""Finds the table of a message by its name."""
_Put: TypeAlias = Callable[[Json, Any], None]
"""Stores a value from the wire, which is a number or bytes, in an object."""
_Convert: TypeAlias = Callable[[Any], JsonValue]

_VARINT: Final = 0
_FIXED64: Final = 1
_BYTES: Final = 2
_START: Final = 3
_END: Final = 4
_LONG: Final = 0x80
_WIRE_TYPES: Final = {"bool": 0, "int32": 0, "int64": 0, "float64": 1}
_EMPTY: Final[tuple[JsonValue, ...]] = (None, False, 0, "", [])
_DOUBLE: Final = struct.Struct("<d")
_SCHEMA: Final = "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaProps"
_SMALL: Final[dict[str, list[Line]]] = {
    "strings": [(1, "Items", "items", "string", "r")],
    "int-or-string": [
        (1, "Type", "type", "int64", ""),
        (2, "IntVal", "int", "int32", ""),
        (3, "StrVal", "text", "string", ""),
    ],
    "schema-or-bool": [(1, "Allows", "bool", "bool", ""), (2, "Schema", "schema", _SCHEMA, "p")],
    "schema-or-array": [
        (1, "Schema", "schema", _SCHEMA, "p"),
        (2, "JSONSchemas", "list", _SCHEMA, "r"),
    ],
    "schema-or-strings": [
        (1, "Schema", "schema", _SCHEMA, "p"),
        (2, "Property", "list", "string", "r"),
    ],
}
"""Messages that are something else in JSON, with names of our own."""
_JOINED: Final[dict[str, Callable[[Json], JsonValue]]] = {
    "strings": lambda parts: parts.get("items", []),
    "int-or-string": lambda parts: (
        parts.get("text", "") if parts.get("type") else parts.get("int", 0)
    ),
    "schema-or-bool": lambda parts: parts.get("schema", parts.get("bool", False)),
    "schema-or-array": lambda parts: parts.get("list", parts.get("schema")),
    "schema-or-strings": lambda parts: parts.get("list", parts.get("schema")),
}
_SCALARS: Final[dict[str, _Convert]] = {
    "string": text,
    "bool": bool,
    "int32": functools.partial(signed, bits=32),
    "int64": functools.partial(signed, bits=64),
    "float64": number,
    "bytes": base64_text,
    "octets": bytes,
    "quantity": quantity,
    "time": time,
    "micro-time": micro_time,
    "raw": raw,
}


@final
class Message:
    """A message as it is read; what to do with its fields is found out when it is first met."""

    def __init__(self, name: str, lines: Lines, *, table: Sequence[Line] | None = None) -> None:
        self.name: str = name.rpartition(".")[2]
        """As Go calls it in its complaints."""
        self._full_name = name
        self._lines = lines
        self._table = table

    @functools.cached_property
    def lines(self) -> Sequence[Line]:
        """The message's table."""
        return self._table or _SMALL.get(self._full_name) or self._lines(self._full_name)

    @functools.cached_property
    def fields(self) -> dict[int, _Put]:
        """The readers of a message's values, by the tag in front of them."""
        found: dict[int, _Put] = {}
        for line in self.lines:
            number, _, _, kind, flags = line
            wire_type = _BYTES if "k" in flags else _WIRE_TYPES.get(kind, _BYTES)
            put = _put(line, self._lines)
            found[number << 3 | wire_type] = put
            if "r" in flags and wire_type == _VARINT:
                found[number << 3 | _BYTES] = _packed(put)
        return found

    @functools.cached_property
    def silent(self) -> dict[int, str]:
        """The names of the fields that are not there when they are empty, by tag."""
        return {
            line[0] << 3 | _WIRE_TYPES.get(line[3], _BYTES): line[2]
            for line in self.lines
            if _vanishes(line)
        }

    def named(self, number: int) -> str:
        """Return what Go calls the field with a number, ``""`` if there is none."""
        return next((line[1] for line in self.lines if line[0] == number), "")


@functools.cache
def message(name: str, lines: Lines) -> Message:
    """Return the message of that name; there is one of each."""
    return Message(name, lines)


def read(what: Message, data: bytes, into: Json) -> Json:
    """Read a message into an object, which may have fields of it already; return the object.

    Unknown fields are skipped.

    Raises:
        WireError: the bytes are no such message, in Go's words.
    """
    fields, silent = what.fields, what.silent
    position, end = 0, len(data)
    try:
        while position < end:
            tag = data[position]
            position += 1
            if tag >= _LONG:
                tag, position = varint(data, position - 1)
            put = fields.get(tag)
            if put is None:
                position = _skip_field(what, data, position, tag=tag)
                continue
            if tag & 7 == _FIXED64:
                put(into, _DOUBLE.unpack_from(data, position)[0])
                position += 8
                continue
            value = data[position]
            position += 1
            if value == 0 and tag in silent:
                # Most of what Go writes is such; the last value of a field counts.
                into.pop(silent[tag], None)
                continue
            if value >= _LONG:
                value, position = varint(data, position - 1)
            if tag & 7 == _VARINT:
                put(into, value)
                continue
            stop = position + value
            if stop > end:
                raise _too_long(value)
            put(into, data[position:stop])
            position = stop
    except (IndexError, struct.error) as exc:
        raise WireError(EOF) from exc
    return into


def _too_long(length: int) -> WireError:
    return WireError(NEGATIVE if length >= 1 << 63 else EOF)


# --- what is done with a field


def _put(line: Line, lines: Lines) -> _Put:
    _, _, name, kind, flags = line
    if "i" in flags:
        return _inline(message(kind, lines))
    convert = _converter(kind, lines)
    if "k" in flags:
        return _entries(name, kind, lines=lines)
    if "r" in flags:
        return _repeated(name, convert)
    if "." in kind:
        return _part(name, message(kind, lines))
    if kind == "string":
        return _text(name)
    return _value(name, convert, vanishes=_vanishes(line))


def _vanishes(line: Line) -> bool:
    """The field is omitted when it is empty."""
    _, _, _, kind, flags = line
    if set("rki") & set(flags) or "." in kind:
        return False
    if kind in {"time", "micro-time"}:
        return True
    if "p" in flags or kind in {"int-or-string", "quantity"}:
        return False
    return "o" in flags or kind == "raw"


def _converter(kind: str, lines: Lines) -> _Convert:
    """Return what makes JSON of a value from the wire."""
    if kind in _SCALARS:
        return _SCALARS[kind]
    what = message(kind, lines)
    join = _JOINED.get(kind)
    if join is None:
        return lambda data: read(what, data, {})
    return lambda data: join(read(what, data, {}))


def _text(name: str) -> _Put:
    def put(into: Json, data: bytes) -> None:
        into[name] = str(data, "utf-8", "replace")

    return put


def _value(name: str, convert: _Convert, *, vanishes: bool) -> _Put:
    def put(into: Json, data: JsonValue) -> None:
        into[name] = convert(data)

    def put_unless_empty(into: Json, data: JsonValue) -> None:
        # An empty value may be written at length.
        value = convert(data)
        if value in _EMPTY:
            into.pop(name, None)
        else:
            into[name] = value

    return put_unless_empty if vanishes else put


def _part(name: str, what: Message) -> _Put:
    def put(into: Json, data: bytes) -> None:
        part: Json | None = into.get(name)
        if part is None:
            part = into[name] = {}
        if data:
            read(what, data, part)

    return put


def _inline(what: Message) -> _Put:
    def put(into: Json, data: bytes) -> None:
        read(what, data, into)

    return put


def _repeated(name: str, convert: _Convert) -> _Put:
    def put(into: Json, data: JsonValue) -> None:
        items: list[JsonValue] | None = into.get(name)
        if items is None:
            items = into[name] = []
        items.append(convert(data))

    return put


def _packed(put: _Put) -> _Put:
    def put_all(into: Json, data: bytes) -> None:
        position = 0
        while position < len(data):
            value, position = varint(data, position)
            put(into, value)

    return put_all


def _entries(name: str, kind: str, *, lines: Lines) -> _Put:
    """Store an entry of a map, which is a message with a key and a value."""
    table = [(1, "mapkey", "key", "string", ""), (2, "mapvalue", "value", kind, "p")]
    entry = Message(name, lines, table=table)
    convert = _converter(kind, lines)

    def put(into: Json, data: bytes) -> None:
        entries: Json | None = into.get(name)
        if entries is None:
            entries = into[name] = {}
        pair = read(entry, data, {})
        if "value" not in pair:
            pair["value"] = convert(b"")
        entries[pair.get("key", "")] = pair["value"]

    return put


# --- unknown fields


def _skip_field(what: Message, data: bytes, position: int, *, tag: int) -> int:
    """Return where an unknown field ends; a known one has the wrong form."""
    number, wire_type = signed(tag >> 3, bits=32), tag & 7
    if wire_type == _END:
        raise WireError(f"proto: {what.name}: wiretype end group for non-group")
    if number <= 0:
        raise WireError(f"proto: {what.name}: illegal tag {number} (wire type {tag})")
    if known := what.named(number):
        raise WireError(f"proto: wrong wireType = {wire_type} for field {known}")
    position = _skip_value(data, position, wire_type)
    depth = 1 if wire_type == _START else 0
    while depth:
        tag, position = varint(data, position)
        depth += {_START: 1, _END: -1}.get(tag & 7, 0)
        position = _skip_value(data, position, tag & 7)
    if position > len(data):
        raise WireError(EOF)
    return position


def _skip_value(data: bytes, position: int, wire_type: int) -> int:
    match wire_type:
        case 0:
            return varint(data, position)[1]
        case 1:
            return position + 8
        case 2:
            length, position = varint(data, position)
            if position + length > len(data):
                raise _too_long(length)
            return position + length
        case 3 | 4:
            return position
        case 5:
            return position + 4
        case _:
            raise WireError(f"proto: illegal wireType {wire_type}")
