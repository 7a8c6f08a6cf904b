"""The keywords of a schema, each as a function that returns the errors of a value.

The order of a node's rules is the order of the server's complaints: type, junctors, text, format,
number, enumeration, and then what belongs to objects and lists.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec

from kinform.apiserver.apiextensions.schema import formats, patterns, structural
from kinform.apiserver.apiextensions.schema.json_types import is_list, is_object
from kinform.apiserver.endpoints import work_budget
from kinform.apiserver.scheme import field_errors
from kinform.apiserver.scheme.field_errors import FieldError, Problem
from kinform.apiserver.serializer.json_values import Json, JsonValue, as_list

__all__ = ["Errors", "Rule", "go_number", "of_containers", "of_values", "same", "without_field"]

Errors: TypeAlias = list[FieldError]
Rule: TypeAlias = Callable[[JsonValue, str, Errors], None]
"""Takes a value, its path, and where to put what is wrong with it."""

_INT32: Final = 1 << 31
_INT64: Final = 1 << 63
_LARGEST_FLOAT32: Final = 3.4028234663852886e38
_EXACT: Final = 1 << 53
_NEAR: Final = 1e-9
_EXPONENT_FROM: Final = 1e21
_EXPONENT_TO: Final = 1e-4


def of_values(node: structural.Node) -> list[Rule]:
    """Return the rules of text, numbers and enumerations, and first of all that of the type."""
    raw = node.raw
    rules: list[Rule] = []
    if node.types:
        rules.append(_type_rule(node))
    if raw.keys() & {"minLength", "maxLength", "pattern"}:
        rules.append(_text_rule(raw))
    if raw.get("format") in formats.CHECKED:
        rules.append(_format_rule(raw["format"]))
    if raw.keys() & {"minimum", "maximum", "multipleOf"} or {"integer", "number"} & {*node.types}:
        rules.append(_number_rule(node))
    if raw.get("enum"):
        rules.append(_enum_rule(as_list(raw["enum"])))
    return rules


def of_containers(node: structural.Node) -> tuple[list[Rule], list[Rule]]:
    """Return the rules of objects and lists: those before their children's, and those after."""
    raw = node.raw
    before: list[Rule] = []
    after: list[Rule] = []
    if raw.keys() & {"minProperties", "maxProperties"}:
        before.append(_size_rule(raw.get("minProperties"), raw.get("maxProperties"), "properties"))
    if raw.get("additionalProperties") is False:
        before.append(_closed_rule(frozenset(node.properties)))
    if raw.keys() & {"minItems", "maxItems"}:
        after.append(_size_rule(raw.get("minItems"), raw.get("maxItems"), "items"))
    if raw.get("required"):
        after.append(_required_rule(tuple(as_list(raw["required"]))))
    return before, after


def without_field(detail: str) -> FieldError:
    """Return an error that the server pins to no field, and so shows in its own strange way."""
    return field_errors.invalid("<nil>", "", detail)


# --- types ------------------------------------------------------------------------------------

_CALLED: Final[dict[type, str]] = {
    str: "string", bool: "boolean", int: "integer", float: "number", dict: "object", list: "array",
    type(None): "null",
}  # fmt: skip
_FORMAT_OF: Final[dict[str, str]] = {"integer": "int64", "number": "float64"}


def _called(value: JsonValue) -> str:
    name = _CALLED[type(value)]
    # what does not fit in 64 bits has been read as a float
    return "number" if name == "integer" and not -_INT64 <= value < _INT64 else name


def _type_rule(node: structural.Node) -> Rule:
    types = node.types
    wanted = ",".join(types)
    nullable = node.is_nullable
    form: str = node.raw.get("format") or ""
    is_numeric = "integer" in types or "number" in types
    quick: frozenset[type] = frozenset(
        type_ for type_, name in _CALLED.items() if name in types and type_ is not int
    )

    def check(value: JsonValue, path: str, errors: Errors) -> None:
        if type(value) in quick:
            return
        if is_numeric and type(value) is int and -_INT64 <= value < _INT64:
            return
        if value is None and nullable:
            return
        actual = _called(value)
        if actual in types or (actual == "integer" and "number" in types):
            return
        if value is not None and actual == "number" and "integer" in types and _is_whole(value):
            return
        expected = wanted
        if form and value is not None:
            if isinstance(value, (str, list)):
                if not is_numeric:
                    return
            else:
                expected, actual = form, _FORMAT_OF.get(actual, "")
        detail = f'{path} in body must be of type {expected}: "{actual}"'
        errors.append(field_errors.type_invalid(path, actual, detail))

    return check


def _is_whole(value: float) -> bool:
    """Return whether a float is an integer, as near as the server looks."""
    if not -_EXACT < value < _EXACT:
        return False
    near = math.trunc(value)
    return near == value or abs(value - near) < _NEAR * (abs(value) + abs(near))


# --- text -------------------------------------------------------------------------------------


def _text_rule(raw: Json) -> Rule:
    least: int | None = raw.get("minLength")
    most: int | None = raw.get("maxLength")
    pattern: str = raw.get("pattern") or ""
    is_found = None
    if pattern:
        try:
            is_found = patterns.matcher(pattern)
        except patterns.Unsupported:
            pattern = ""  # the definition's warnings say so

    def check(value: JsonValue, path: str, errors: Errors) -> None:
        if not isinstance(value, str):
            return
        if most is not None and len(value) > most:
            unit = "byte" if most == 1 else "bytes"
            detail = f"may not be more than {most} {unit}"
            errors.append(FieldError(Problem.TOO_LONG, path, detail))
        elif least is not None and len(value) < least:
            detail = f"{path} in body should be at least {least} chars long"
            errors.append(field_errors.invalid(path, value, detail))
        elif is_found is not None and not is_found(value):
            work_budget.spend(len(pattern))
            detail = f"{path} in body should match '{pattern}'"
            errors.append(field_errors.invalid(path, value, detail))

    return check


def _format_rule(name: str) -> Rule:
    is_good = formats.CHECKED[name]

    def check(value: JsonValue, path: str, errors: Errors) -> None:
        if isinstance(value, str) and not is_good(value):
            shown = msgspec.json.encode(value).decode()
            detail = f"{path} in body must be of type {name}: {shown}"
            errors.append(field_errors.type_invalid(path, value, detail))

    return check


# --- numbers ----------------------------------------------------------------------------------


def go_number(value: float) -> str:
    """Return a number as Go prints it: an exponent of two digits, and only for the very large."""
    if isinstance(value, int):
        value = float(value)
    size = abs(value)
    if size and not _EXPONENT_TO <= size < _EXPONENT_FROM:
        mantissa, _, exponent = repr(value).partition("e")
        return f"{mantissa}e{int(exponent or 0):+03d}"
    return str(int(value)) if value == int(value) else repr(value)


def _number_rule(node: structural.Node) -> Rule:
    raw = node.raw
    in_range = _range_rule(node)
    multiple: float | None = raw.get("multipleOf")
    limits: tuple[float | None, float | None] = raw.get("maximum"), raw.get("minimum")
    whole_limits = tuple(None if limit is None else int(limit) for limit in limits)
    below, above = raw.get("exclusiveMaximum") is True, raw.get("exclusiveMinimum") is True

    def check(value: JsonValue, path: str, errors: Errors) -> None:
        if type(value) is not int and type(value) is not float:
            return
        if in_range is not None:
            in_range(value, path, errors)
        if multiple is not None:
            _check_multiple(value, multiple, path=path, errors=errors)
        # an integer is compared with what is left of the limit as an integer
        most, least = limits if type(value) is float else whole_limits
        if most is not None and (value > most or (below and value == most)):
            words = "less than" if below else "less than or equal to"
            detail = f"{path} in body should be {words} {go_number(most)}"
            errors.append(field_errors.invalid(path, value, detail))
        if least is not None and (value < least or (above and value == least)):
            words = "greater than" if above else "greater than or equal to"
            detail = f"{path} in body should be {words} {go_number(least)}"
            errors.append(field_errors.invalid(path, value, detail))

    return check


def _check_multiple(value: float, of: float, *, path: str, errors: Errors) -> None:
    if of <= 0:
        detail = f"factor MultipleOf declared for {path} must be positive: {go_number(of)}"
        errors.append(field_errors.invalid(path, of, detail))
        return
    if isinstance(value, int) and isinstance(of, int):
        is_multiple = value % of == 0
    else:
        # as the server does it: to divide by 0.01 is to multiply by what 1/0.01 rounds to
        quotient = value * (1 / of) if of < 1 else value / of
        is_multiple = _is_whole(quotient)
    if not is_multiple:
        detail = f"{path} in body should be a multiple of {go_number(of)}"
        errors.append(field_errors.invalid(path, value, detail))


def _range_rule(node: structural.Node) -> Rule | None:
    """Return the rule of the machine's numbers: that of a type, or that of its format."""
    form: str = node.raw.get("format") or ""
    if node.types == ("number",):
        if form != "float":
            return None
        return _within(-_LARGEST_FLOAT32, _LARGEST_FLOAT32, "number with format float")
    if node.types != ("integer",):
        return None
    limit = _INT32 if form == "int32" else _INT64
    has_format = form in {"int32", "int64"}
    words = f"integer with format {form}" if has_format else "integer (default format)"
    return _within(-limit, limit - 1, words)


def _within(least: float, most: float, words: str) -> Rule:
    is_whole = not isinstance(least, float)

    def check(value: JsonValue, path: str, errors: Errors) -> None:
        if not least <= value <= most or (
            is_whole and type(value) is float and value != math.floor(value)
        ):
            detail = f"Checked value must be of type {words} in {path}"
            errors.append(without_field(detail))

    return check


# --- enumerations, sizes and fields -----------------------------------------------------------


def same(one: JsonValue, other: JsonValue) -> bool:
    """Return whether two values are the same in JSON, where true is not 1."""
    if one != other:
        return False
    if isinstance(one, bool) or isinstance(other, bool):
        return type(one) is type(other)
    if is_object(one):
        theirs = other
        return all(same(value, theirs[key]) for key, value in one.items())
    if is_list(one):
        pairs = zip(as_list(one), as_list(other), strict=True)
        return all(same(mine, their) for mine, their in pairs)
    return True


def _enum_rule(values: list[JsonValue]) -> Rule:
    shown = (
        value if isinstance(value, str) else msgspec.json.encode(value).decode() for value in values
    )
    names = ", ".join(msgspec.json.encode(text).decode() for text in shown)
    detail = f"supported values: {names}"
    texts = frozenset(value for value in values if isinstance(value, str))
    cost = 2 * len(values) + len(detail) // 10

    def check(value: JsonValue, path: str, errors: Errors) -> None:
        if isinstance(value, str) and value in texts:
            return
        work_budget.spend(cost)
        if not any(same(value, one) for one in values):
            errors.append(FieldError(Problem.NOT_SUPPORTED, path, detail, value))

    return check


def _size_rule(least: int | None, most: int | None, noun: str) -> Rule:
    is_it = is_list if noun == "items" else is_object

    def check(value: JsonValue, path: str, errors: Errors) -> None:
        if not is_it(value):
            return
        count = len(value)
        if least is not None and count < least:
            detail = f"{path} in body should have at least {least} {noun}"
            errors.append(field_errors.invalid(path, count, detail))
        if most is not None and count > most:
            unit = "item" if most == 1 else "items"
            detail = f"{count}: must have at most {most} {unit}"
            errors.append(FieldError(Problem.TOO_MANY, path, detail))

    return check


def _closed_rule(known: frozenset[str]) -> Rule:
    def check(value: JsonValue, path: str, errors: Errors) -> None:
        if not is_object(value):
            return
        for name in value:
            if name not in known:
                where = f"{path}.{name}" if path else name
                detail = f"{where} in body is a forbidden property"
                errors.append(field_errors.invalid(path, name, detail))

    return check


def _required_rule(names: tuple[str, ...]) -> Rule:
    cost = 20 * len(names)

    def check(value: JsonValue, path: str, errors: Errors) -> None:
        if not is_object(value):
            return
        work_budget.spend(cost)
        for name in names:
            if name not in value:
                errors.append(field_errors.required(f"{path}.{name}" if path else name))

    return check
