r"""JSON paths as CustomResourceDefinitions use them: ``.conditions[?(@.type=="Ready")].status``.

Fields (``.a``, ``['a']``, ``.a\.b``), indexes and slices (``[0]``, ``[-1]``, ``[1:3]``, ``[0,2]``),
wildcards (``[*]``, ``.*``), descent (``..a``) and filters (``[?(@.a>1)]``, ``[?(@.a)]``).
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias, cast, final

from kinform.apiserver import work
from kinform.apiserver.json import Json, JsonValue, as_dict, as_list

__all__ = ["Path", "compiled"]

_Step: TypeAlias = Callable[[JsonValue], Sequence[JsonValue]]

_UNITS: Final = 10
"""What it costs to visit a value."""
_FIELD: Final = re.compile(r"(?:\\.|[^.\[\]\\\s])+")
_SLICE: Final = re.compile(r"(-?\d*):(-?\d*)(?::(-?\d*))?")
_INDEX: Final = re.compile(r"-?\d+")
_QUOTED: Final = re.compile(r"""'((?:\\.|[^'\\])*)'|"((?:\\.|[^"\\])*)\"""")
_COMPARISON: Final = re.compile(r"\s*(==|!=|<=|>=|<|>)\s*")
_COMPARE: Final[dict[str, Callable[[JsonValue, JsonValue], object]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}


@final
class Path:
    """A path that was read; it finds values in objects and changes nothing."""

    __slots__ = ("_keys", "_steps")

    def __init__(self, steps: Sequence[_Step], keys: tuple[str, ...] | None) -> None:
        self._steps = steps
        self._keys = keys

    def find(self, obj: Json) -> list[JsonValue]:
        """Return the values at the path, none if there is nothing or if it does not fit.

        Raises:
            kinform.apiserver.work.Exhausted: the path visits more values than the budget allows.
        """
        if self._keys is not None:
            value: JsonValue = obj
            for key in self._keys:
                if not isinstance(value, dict) or key not in value:
                    return []
                value = cast("Json", value)[key]
            return [value]
        values: list[JsonValue] = [obj]
        try:
            for step in self._steps:
                found: list[JsonValue] = []
                for value in values:
                    found += step(value)
                    work.spend(_UNITS * (1 + len(found) // max(len(values), 1)))
                values = found
        except LookupError:
            return []
        return values

    @property
    def keys(self) -> tuple[str, ...] | None:
        """The names of the fields, if the path has nothing else."""
        return self._keys


@functools.lru_cache(maxsize=4096)
def compiled(path: str) -> Path:
    """Read a path such as ``.spec.replicas``.

    Raises:
        ValueError: it is none.
    """
    parts = list(_parts(path))
    names = [name for name, _ in parts if name is not None]
    return Path([step for _, step in parts], tuple(names) if len(names) == len(parts) else None)


def _parts(path: str) -> Iterator[tuple[str | None, _Step]]:
    """Split a path into steps; those that are plain fields come with their name."""
    position = 0
    while position < len(path):
        if path[position] == "[":
            end = _closing(path, position)
            inside = path[position + 1 : end].strip()
            position = end + 1
            yield _bracket(inside)
            continue
        if path.startswith("..", position):
            yield None, _descend
            position += 2
            if path.startswith("[", position):
                continue
        elif path[position] == ".":
            position += 1
            if position == len(path) or path[position] == "[":
                continue
        match = _FIELD.match(path, position)
        if match is None:
            raise ValueError(f"{path!r} has no field name at {position}")
        position = match.end()
        name = _unescaped(match.group())
        yield (None, _every) if name == "*" else (name, _field(name))


def _closing(path: str, start: int) -> int:
    """Return where the bracket at ``start`` ends; brackets in quotes do not count."""
    depth, position = 0, start
    while position < len(path):
        quoted = _QUOTED.match(path, position)
        if quoted is not None:
            position = quoted.end()
            continue
        depth += {"[": 1, "]": -1}.get(path[position], 0)
        if depth == 0:
            return position
        position += 1
    raise ValueError(f"{path!r} has an unterminated bracket")


def _bracket(inside: str) -> tuple[str | None, _Step]:
    if inside == "*":
        return None, _every
    if inside.startswith("?(") and inside.endswith(")"):
        return None, _filter(inside[2:-1].strip())
    quoted = _QUOTED.fullmatch(inside)
    if quoted is not None:
        name = _unescaped(quoted.group(1) or quoted.group(2) or "")
        return name, _field(name)
    return None, _union([_item(part.strip()) for part in inside.split(",")])


def _item(part: str) -> _Step:
    if _INDEX.fullmatch(part):
        return functools.partial(_index, int(part))
    match = _SLICE.fullmatch(part)
    if match is not None:
        numbers = [int(number) if number else None for number in match.groups()]
        return functools.partial(_slice, numbers)
    quoted = _QUOTED.fullmatch(part)
    if quoted is not None:
        return _field(_unescaped(quoted.group(1) or quoted.group(2) or ""))
    raise ValueError(f"{part!r} is no index, slice, filter or name")


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _field(name: str) -> _Step:
    def step(value: JsonValue) -> Sequence[JsonValue]:
        fields = as_dict(value)
        return (fields[name],) if name in fields else ()

    return step


def _union(items: Sequence[_Step]) -> _Step:
    if len(items) == 1:
        return items[0]

    def step(value: JsonValue) -> Sequence[JsonValue]:
        return [found for item in items for found in item(value)]

    return step


def _every(value: JsonValue) -> Sequence[JsonValue]:
    if isinstance(value, dict):
        fields = cast("Json", value)
        return [fields[key] for key in sorted(fields)]
    return as_list(value)


def _descend(value: JsonValue) -> Sequence[JsonValue]:
    found = [value]
    for child in _every(value):
        work.spend(_UNITS)
        found += _descend(child)
    return found


def _listed(value: JsonValue) -> list[JsonValue]:
    items: list[JsonValue] = as_list(value)
    is_list = items is value
    if not is_list:
        raise LookupError("not a list")
    return items


def _index(position: int, value: JsonValue) -> Sequence[JsonValue]:
    if value is None:
        return ()
    items = _listed(value)
    if not -len(items) <= position < len(items):
        raise LookupError("out of bounds")
    return (items[position],)


def _slice(numbers: Sequence[int | None], value: JsonValue) -> Sequence[JsonValue]:
    """Return a part of a list; unlike Python's, its ends must be inside of the list."""
    if value is None:
        return ()
    items = _listed(value)
    start, end, step = numbers
    first = (start or 0) + (len(items) if (start or 0) < 0 else 0)
    last = len(items) if end is None else end + (len(items) if end < 0 else 0)
    if first == last:
        return ()
    if not 0 <= first < len(items) or not first < last <= len(items) or (step or 1) < 1:
        raise LookupError("out of bounds")
    return items[first : last : step or 1]


def _filter(condition: str) -> _Step:
    left_text, comparison, right_text = _split_comparison(condition)
    left = _operand(left_text)
    right = _operand(right_text) if comparison else None
    compare = _COMPARE[comparison or "=="]

    def is_kept(item: JsonValue) -> bool:
        found = left(item)
        if right is None or not found:
            return bool(found)
        wanted = right(item)
        if not wanted:
            return False
        if type(found[0]) is not type(wanted[0]):
            # Text and numbers, or whole and broken numbers, cannot be compared: nothing is found.
            raise LookupError("incompatible types")
        return bool(compare(found[0], wanted[0]))

    def step(value: JsonValue) -> Sequence[JsonValue]:
        items = _listed(value)
        work.spend(_UNITS * len(items))
        return [item for item in items if is_kept(item)]

    return step


def _split_comparison(condition: str) -> tuple[str, str, str]:
    position = 0
    while position < len(condition):
        quoted = _QUOTED.match(condition, position)
        if quoted is not None:
            position = quoted.end()
            continue
        match = _COMPARISON.match(condition, position)
        if match is not None:
            return condition[:position], match.group(1), condition[match.end() :]
        position += 1
    return condition, "", ""


def _operand(text: str) -> _Step:
    if text.startswith("@"):
        path = compiled(text[1:])
        return path.find
    quoted = _QUOTED.fullmatch(text)
    value: JsonValue
    if quoted is not None:
        value = _unescaped(quoted.group(1) or quoted.group(2) or "")
    elif text in {"true", "false"}:
        value = text == "true"
    else:
        value = int(text) if _INDEX.fullmatch(text) else float(text)
    return lambda _: (value,)
