"""Rows of custom kinds: their printer columns, found by JSON path."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Final

import msgspec

from kinform.apiserver.endpoints import work_budget
from kinform.apiserver.printers import ages, column_paths
from kinform.apiserver.scheme.kind_registry import CustomVersion
from kinform.apiserver.serializer.json_values import Json, JsonValue

__all__ = ["cells", "columns"]

_AGE: Final = ".metadata.creationTimestamp"
_ESCAPES: Final = {
    character: f"\\u{ord(character):04x}" for character in ("<", ">", "&", "\u2028", "\u2029")
}
_ESCAPED: Final = re.compile("[<>&\u2028\u2029]")
_LARGEST: Final = 2**63
_WORK: Final = 20_000
"""Units of work for the cells of one object: two thousand values are visited in two ms."""
# Between these, numbers are written without an exponent.
_TINY: Final = 1e-4
_LARGE: Final = 1e6


def columns(custom: CustomVersion, name: Json, age: Json) -> list[Json]:
    """Return the columns: the name first, then those asked for, or the age if none are.

    ``name`` and ``age`` are these two columns as built-in kinds have them.
    """
    if not custom.columns:
        return [name, {**age, "type": "date"}]
    return [name, *map(_column, _readable(custom))]


def _readable(custom: CustomVersion) -> Iterator[dict[str, object]]:
    """Yield the columns before the first whose path cannot be read: the server gives up there."""
    for column in custom.columns:
        try:
            column_paths.compiled(str(column.get("jsonPath", "")))
        except ValueError:
            return
        yield column


def _column(asked: dict[str, object]) -> Json:
    kind, path = asked.get("type", ""), asked.get("jsonPath", "")
    described = asked.get("description") or (
        f"Custom resource definition column (in JSONPath format): {path}"
    )
    return {
        "name": asked.get("name", ""),
        "type": kind,
        "format": asked.get("format", ""),
        "description": described,
        "priority": asked.get("priority", 0),
    }


def cells(custom: CustomVersion, obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of an object of a custom kind.

    A cell is None if its path finds no value, or visits so many values that showing many
    objects would take long.
    """
    found: list[JsonValue] = [obj["metadata"].get("name", "")]
    if not custom.columns:
        found.append(_cell("date", _AGE, obj, now=now))
    with work_budget.limited(_WORK):
        for column in _readable(custom):
            kind, path = str(column.get("type", "")), str(column.get("jsonPath", ""))
            try:
                found.append(_cell(kind, path, obj, now=now))
            except work_budget.Exhausted:
                found.append(None)
    return found


def _cell(kind: str, path: str, obj: Json, *, now: datetime) -> JsonValue:
    values = column_paths.compiled(path).find(obj)
    if not values:
        return None
    if kind == "date":
        return _date(values[0], now)
    show = _SHOW.get(kind)
    return show(values[0]) if show is not None else None


def _text(value: JsonValue) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return "<no value>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) or (isinstance(value, int) and abs(value) >= _LARGEST):
        return _float(float(value))
    encoded = msgspec.json.encode(value, order="deterministic").decode()
    return _ESCAPED.sub(lambda match: _ESCAPES[match.group()], encoded)


def _float(value: float) -> str:
    """Return a number in the fewest digits, with an exponent if it is large or tiny.

    >>> _float(1.5), _float(3.0), _float(1234567.5), _float(1e20)
    ('1.5', '3', '1.2345675e+06', '1e+20')
    """
    shortest = repr(value)
    if value == 0 or _TINY <= abs(value) < _LARGE or not math.isfinite(value):
        return shortest.removesuffix(".0")
    digits = shortest.partition("e")[0].replace(".", "").strip("-0")
    return f"{value:.{len(digits) - 1}e}"


def _integer(value: JsonValue) -> int | None:
    if isinstance(value, bool):
        return None
    if not isinstance(value, int | float):
        return None
    # What does not fit in 64 bits becomes the least that does, as on the machines it runs on.
    return int(value) if -_LARGEST <= value < _LARGEST else -_LARGEST


def _number(value: JsonValue) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _boolean(value: JsonValue) -> bool | None:
    return value if isinstance(value, bool) else None


_SHOW: Final[dict[str, Callable[[JsonValue], JsonValue]]] = {
    "string": _text,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
}


def _date(value: JsonValue, now: datetime) -> str | None:
    if not isinstance(value, str):
        return None
    if value in {"", "null"}:
        return ages.UNKNOWN
    return "<invalid>" if ages.parsed(value) is None else ages.since(value, now)
