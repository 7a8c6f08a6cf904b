"""JSON patch (RFC 6902), with kube-apiserver's deviations.

It is more lenient than the standard: to replace a field that is not there adds it, to copy one
copies null, and an index below zero counts from the end.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from typing import Final, cast

import msgspec

from kinform.apiserver.endpoints.status import StatusError
from kinform.apiserver.scheme import type_errors
from kinform.apiserver.scheme.object_checks import Patched
from kinform.apiserver.serializer.json_values import Json, JsonValue, as_list

__all__ = ["apply"]

_COPIED: Final = 3 * 1024 * 1024
"""The most bytes that the copies of one patch may add: each could double the object."""
_INDEX: Final = re.compile(r"[+-]?[0-9]{1,18}")


class _Impossible(Exception):
    """An operation cannot be done, or its test failed."""


def apply(target: Json, patch: Sequence[Json]) -> Json:
    """Return ``target`` changed by the operations; neither is changed.

    The result shares with both what was not changed.

    Raises:
        StatusError: 422 for an operation that cannot be done (the server does not tell which), or
            if an object is not what comes out.
    """
    document: JsonValue = target
    editor = _Editor()
    for operation in patch:
        try:
            document = editor.applied(document, operation)
        except _Impossible as exc:
            message = "the server rejected our request due to an error in our request"
            raise StatusError(422, "Invalid", message, details={}) from exc
    if not isinstance(document, dict):
        raise Patched(msgspec.json.encode(document)).refusal(type_errors.no_object(document))
    return cast("Json", document)


class _Editor:
    """Applies the operations of one patch, and copies what is on their ways once."""

    def __init__(self) -> None:
        # Objects and lists that were made here, by their ids: they may be changed in place.
        # Invariant: each is in the document at most once.
        self._own: dict[int, JsonValue] = {}
        self._copied = 0

    def applied(self, document: JsonValue, operation: Json) -> JsonValue:
        path = operation.get("path")
        if not isinstance(path, str):
            raise _Impossible
        steps = _steps(path)
        match operation.get("op"):
            case "add":
                return self._changed(document, steps, _Add(operation.get("value")))
            case "remove":
                return self._changed(document, steps, _Remove())
            case "replace":
                value = operation.get("value")
                return value if not path else self._changed(document, steps, _Replace(value))
            case "move":
                source = _source(operation)
                moved = _value_at(document, source, is_strict=True)
                document = self._changed(document, source, _Remove())
                return self._changed(document, steps, _Add(moved))
            case "copy":
                copied = self._copy(_value_at(document, _source(operation), is_strict=False))
                return self._changed(document, steps, _Add(copied))
            case "test":
                found = document if not path else _value_at(document, steps, is_strict=False)
                if not _is_same(found, operation.get("value")):
                    raise _Impossible
                return document
            case _:
                raise _Impossible

    def _copy(self, value: JsonValue) -> JsonValue:
        """Return a copy, if there were not too many already."""
        self._copied += len(msgspec.json.encode(value))
        if self._copied > _COPIED:
            raise _Impossible
        return copy.deepcopy(value)

    def _changed(self, value: JsonValue, steps: Sequence[str], change: _Add | _Remove) -> JsonValue:
        """Return a value with a change at a path; what is not ours on the way is copied."""
        if not steps:
            raise _Impossible
        step, rest = steps[0], steps[1:]
        if isinstance(value, dict):
            obj = cast("Json", self._ours(value))
            if not rest:
                change.in_object(obj, step)
            elif step in obj:
                obj[step] = self._changed(obj[step], rest, change)
            else:
                raise _Impossible
            return obj
        if not isinstance(value, list):
            raise _Impossible
        items = as_list(self._ours(cast("object", value)))
        if rest:
            index = _index(step, len(items))
            items[index] = self._changed(items[index], rest, change)
        else:
            change.in_list(items, step)
        return items

    def _ours(self, value: JsonValue) -> JsonValue:
        if id(value) not in self._own:
            is_object = isinstance(value, dict)
            value = dict(cast("Json", value)) if is_object else list(as_list(value))
            self._own[id(value)] = value
        return value


def _source(operation: Json) -> list[str]:
    source = operation.get("from")
    if not isinstance(source, str):
        raise _Impossible
    return _steps(source)


def _steps(pointer: str) -> list[str]:
    """Return the steps of a pointer. What stands before the first slash does not count."""
    steps = pointer.split("/")[1:]
    if "~" in pointer:
        return [step.replace("~1", "/").replace("~0", "~") for step in steps]
    return steps


class _Add:
    """Set a field, or put an item before the one at an index."""

    def __init__(self, value: JsonValue) -> None:
        self._value: Final = value

    def in_object(self, obj: Json, name: str) -> None:
        obj[name] = self._value

    def in_list(self, items: list[JsonValue], step: str) -> None:
        if step == "-":
            items.append(self._value)
            return
        items.insert(_index(step, len(items) + 1), self._value)


class _Replace(_Add):
    """Set a field, or the item at an index."""

    def in_list(self, items: list[JsonValue], step: str) -> None:
        items[_index(step, len(items))] = self._value


class _Remove:
    """Delete a field or an item, which must be there."""

    def in_object(self, obj: Json, name: str) -> None:
        if name not in obj:
            raise _Impossible
        del obj[name]

    def in_list(self, items: list[JsonValue], step: str) -> None:
        del items[_index(step, len(items))]


def _value_at(value: JsonValue, steps: Sequence[str], *, is_strict: bool) -> JsonValue:
    """Return the value at a path. Unless strict, a field that is not there is null."""
    if not steps:
        raise _Impossible
    for depth, step in enumerate(steps, start=1):
        if isinstance(value, dict):
            obj = cast("Json", value)
            if step not in obj and (is_strict or depth < len(steps)):
                raise _Impossible
            value = obj.get(step)
        elif isinstance(value, list):
            items = as_list(cast("object", value))
            value = items[_index(step, len(items))]
        else:
            raise _Impossible
    return value


def _index(step: str, length: int) -> int:
    """Return an index below ``length``; a negative one counts from the end."""
    if not _INDEX.fullmatch(step):
        raise _Impossible
    index = int(step)
    if index < 0:
        index += length
    if not 0 <= index < length:
        raise _Impossible
    return index


def _is_same(one: JsonValue, other: JsonValue) -> bool:
    """Return whether two values are the same JSON. True is not 1, and 1 is not 1.0."""
    if one.__class__ is not other.__class__:
        return False
    if isinstance(one, dict):
        left, right = cast("Json", one), cast("Json", other)
        return left.keys() == right.keys() and all(
            _is_same(value, right[name]) for name, value in left.items()
        )
    if isinstance(one, list):
        ours, theirs = as_list(cast("object", one)), as_list(other)
        return len(ours) == len(theirs) and all(map(_is_same, ours, theirs))
    return bool(one == other)
