"""Shapes: the Go types of built-in kinds. One walk over schema and value.

A shape is made once of a schema. Reading a value through it returns the value as the server
keeps it: unknown fields are dropped and reported, nulls are nothing, times and quantities have
their canonical form. What is in order costs one comparison of types and is not copied.

Rule 1: objects and lists are changed in place; the walk's caller owns them.
Rule 2: of values that have a wrong type the first one counts; but a type that reads itself (a
time, a quantity) ends the walk at once, as in Go.
"""

from __future__ import annotations

import functools
from typing import Final, TypeAlias, cast, final

import msgspec

from kinform.apiserver.scheme import scalars, type_errors
from kinform.apiserver.scheme.schemas import Schema
from kinform.apiserver.serializer.json_values import Json, JsonValue, as_list

__all__ = ["GoType", "Path", "Walk", "Wrong", "is_read", "shape_of", "steps", "written"]

Path: TypeAlias = "tuple[Path, str | int, Struct | None] | None"
"""The path of a value: that of its container, its name or index, and the struct of the field."""

_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_MICRO_TIME: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime"


class Wrong(Exception):
    """A value has the wrong type, in Go's words."""


@final
class Walk(msgspec.Struct, kw_only=True):
    """The findings of one walk."""

    is_strategic: bool = False
    """A strategic merge made the value: Go converts that one in another way."""
    unknown: list[Path] = []
    """The paths of unknown fields."""
    wrong: Wrong | None = None
    """The first value of a wrong type."""

    def refuse(self, shape: GoType, value: object, path: Path) -> None:
        """Note that a value is not of the shape's type."""
        if self.wrong is None:
            how = _unconverted if self.is_strategic else _mistyped
            self.wrong = Wrong(how(shape.schema, value, path))


class GoType:
    """The values that one type accepts. This one accepts, and keeps, everything."""

    plain: type | None = None
    """Values of exactly this Python type are right as they are."""
    zero: JsonValue = None
    """The value of a null in a list or a map."""

    def __init__(self, schema: Schema) -> None:
        self.schema: Final = schema

    def read(self, value: JsonValue, path: Path, walk: Walk) -> JsonValue:  # noqa: ARG002 (its own kind of nothing to do)
        """Return the value as the server keeps it."""
        return value


@final
class _Text(GoType):
    plain = str
    zero = ""

    def read(self, value: JsonValue, path: Path, walk: Walk) -> JsonValue:
        if not isinstance(value, str):
            walk.refuse(self, value, path)
        return value


@final
class _Flag(GoType):
    plain = bool
    zero = False

    def read(self, value: JsonValue, path: Path, walk: Walk) -> JsonValue:
        if not isinstance(value, bool):
            walk.refuse(self, value, path)
        return value


@final
class _Whole(GoType):
    zero = 0

    def __init__(self, schema: Schema) -> None:
        super().__init__(schema)
        self._limit: Final = 2**31 if schema.format == "int32" else 2**63

    def read(self, value: JsonValue, path: Path, walk: Walk) -> JsonValue:
        if value.__class__ is int and -self._limit <= value < self._limit:
            return value
        if walk.is_strategic and isinstance(value, float) and value.is_integer():
            return int(value)
        walk.refuse(self, value, path)
        return value


@final
class _Float(GoType):
    zero = 0

    def read(self, value: JsonValue, path: Path, walk: Walk) -> JsonValue:
        if isinstance(value, bool) or not isinstance(value, int | float):
            walk.refuse(self, value, path)
        return value


@final
class _IntOrString(GoType):
    plain = str
    zero = 0

    def read(self, value: JsonValue, path: Path, walk: Walk) -> JsonValue:
        if value.__class__ is int and -(2**31) <= value < 2**31:
            return value
        raise Wrong(_mistyped(self.schema, value, None if walk.is_strategic else path))


@final
class _Time(GoType):
    def __init__(self, schema: Schema) -> None:
        super().__init__(schema)
        is_micro = schema.definition == _MICRO_TIME
        self._canonical: Final = scalars.micro_time if is_micro else scalars.time

    def read(self, value: JsonValue, path: Path, walk: Walk) -> JsonValue:
        if not isinstance(value, str):
            raise Wrong(_mistyped(self.schema, value, None if walk.is_strategic else path))
        try:
            return self._canonical(value)
        except scalars.ScalarError as exc:
            raise Wrong(str(exc)) from exc


@final
class _Quantity(GoType):
    zero = "0"

    def read(self, value: JsonValue, path: Path, walk: Walk) -> JsonValue:  # noqa: ARG002 (Go says not where)
        try:
            return scalars.quantity("x" if isinstance(value, bool | list | dict) else value)
        except scalars.ScalarError as exc:
            raise Wrong(str(exc)) from exc


@final
class _Octets(GoType):
    zero = ""

    def read(self, value: JsonValue, path: Path, walk: Walk) -> JsonValue:
        numbers = as_list(value)
        if value.__class__ is list and all(map(_is_octet, numbers)):
            return scalars.written_octets(numbers)
        if value.__class__ is not str:
            walk.refuse(self, value, path)
            return value
        try:
            return scalars.octets(value)
        except scalars.ScalarError as exc:
            raise Wrong(str(exc)) from exc


def _is_octet(item: JsonValue) -> bool:
    return item.__class__ is int and 0 <= item < 256


@final
class _Items(GoType):
    @functools.cached_property
    def below(self) -> GoType:
        return _ANYTHING if self.schema.items is None else shape_of(self.schema.items)

    def read(self, value: JsonValue, path: Path, walk: Walk) -> JsonValue:
        items = value
        if not isinstance(value, list):
            walk.refuse(self, value, path)
            return items
        below = self.below
        for index, item in enumerate(items):
            if item.__class__ is below.plain:
                continue
            if item is None:
                items[index] = {} if isinstance(below, Struct) else below.zero
                continue
            items[index] = below.read(item, (path, index, None), walk)
        return items


@final
class _Map(GoType):
    @functools.cached_property
    def below(self) -> GoType:
        return _ANYTHING if self.schema.values is None else shape_of(self.schema.values)

    def read(self, value: JsonValue, path: Path, walk: Walk) -> JsonValue:
        if not isinstance(value, dict):
            walk.refuse(self, value, path)
            return value
        below = self.below
        entries = cast("Json", value)
        for key, entry in entries.items():
            if entry.__class__ is below.plain:
                continue
            # A dict may be given new values, though not new keys, while it is walked.
            if entry is None:
                entries[key] = {} if isinstance(below, Struct) else below.zero
                continue
            entries[key] = below.read(entry, (path, key, None), walk)
        return entries


@final
class Struct(GoType):
    """An object whose fields are known."""

    @functools.cached_property
    def name(self) -> str:
        """The name of the Go type."""
        return type_errors.struct_name(self.schema)

    @functools.cached_property
    def fields(self) -> dict[str, GoType]:
        """Its fields by name."""
        return {name: shape_of(field) for name, field in self.schema.properties.items()}

    def read(self, value: JsonValue, path: Path, walk: Walk) -> JsonValue:
        if not isinstance(value, dict):
            walk.refuse(self, value, path)
            return value
        fields = self.fields
        obj = cast("Json", value)
        dropped: list[str] = []
        for name, entry in obj.items():
            shape = fields.get(name)
            if shape is None:
                walk.unknown.append((path, name, self))
                dropped.append(name)
            elif entry.__class__ is shape.plain:
                continue
            elif entry is None:
                dropped.append(name)
            else:
                obj[name] = shape.read(entry, (path, name, self), walk)
        for name in dropped:
            del obj[name]
        return obj


def shape_of(schema: Schema) -> GoType:
    """Return the shape of a built-in schema; of a definition always the same one."""
    if schema.type == "object" and schema.definition and schema.properties:
        found = _STRUCTS.get(schema.definition)
        if found is None:
            found = _STRUCTS[schema.definition] = Struct(schema)
        return found
    return _made(schema)


_STRUCTS: Final[dict[str, Struct]] = {}
"""By definition: as many as the data has, so their number is bounded."""


def _made(schema: Schema) -> GoType:
    if schema.is_int_or_string:
        return _IntOrString(schema)
    if schema.definition == _QUANTITY:
        return _Quantity(schema)
    if schema.preserves_unknown:
        return _ANYTHING
    if schema.type == "object":
        return _Map(schema) if schema.values is not None else Struct(schema)
    if schema.type == "string":
        formats = {"byte": _Octets, "date-time": _Time}
        return formats.get(schema.format, _Text)(schema)
    made = {"array": _Items, "boolean": _Flag, "integer": _Whole, "number": _Float}
    return made[schema.type](schema) if schema.type in made else _ANYTHING


_ANYTHING: Final = GoType(Schema({}))


def is_read(shape: GoType, path: tuple[str | int, ...]) -> bool:
    """Return whether a walk looks at a path, rather than passing over something opaque."""
    for step in path:
        if isinstance(shape, Struct):
            if step not in shape.fields:
                return False
            shape = shape.fields[str(step)]
        elif isinstance(shape, _Map | _Items):
            shape = shape.below
        else:
            return False
    return True


def steps(path: Path) -> tuple[str | int, ...]:
    """Return the names and indices of a path, the outermost first."""
    found: list[str | int] = []
    while path is not None:
        found.append(path[1])
        path = path[0]
    return tuple(reversed(found))


def written(path: tuple[str | int, ...]) -> str:
    """Return a path in the server's form.

    >>> written(("spec", "containers", 0, "image"))
    'spec.containers[0].image'
    """
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


def _mistyped(schema: Schema, value: object, path: Path) -> str:
    """Return how Go's JSON decoder refuses a value."""
    names: list[str] = []
    struct = field = ""
    while path is not None:
        path, name, owner = path
        if owner is not None:
            names.append(type_errors.embedded(owner.name, str(name)))
            if not struct:
                struct, field = owner.name, str(name)
    kind = type_errors.json_kind(value)
    expected = type_errors.go_type(schema, struct, field)
    if kind == "number" and expected.startswith("int"):
        kind = f"number {value}"
    if not struct:
        return f"json: cannot unmarshal {kind} into Go value of type {expected}"
    place = ".".join(reversed(names))
    return f"json: cannot unmarshal {kind} into Go struct field {struct}.{place} of type {expected}"


def _unconverted(schema: Schema, value: object, path: Path) -> str:  # noqa: ARG001 (Go says not where)
    """Return how Go's converter, which reads what a strategic merge made, refuses a value."""
    given = type_errors.reflect_kind(value)
    if schema.type == "array":
        return f"cannot restore slice from {given}"
    if schema.type == "object":
        from_ = f"map from {given}" if schema.values is not None else f"struct from: {given}"
        return f"cannot restore {from_}"
    expected = type_errors.go_type(schema)
    is_near = (expected == "string" and given == "int64") or (
        expected.startswith("int") and given in {"float64", "int64"}
    )
    return f"cannot convert {given} to {expected}" if is_near else f"unrecognized type: {expected}"
