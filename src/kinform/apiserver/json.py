"""JSON as the server handles it: decoded objects, read and changed in place."""

from __future__ import annotations

from typing import Any, TypeAlias, cast

__all__ = ["Json", "JsonValue", "as_dict", "as_list", "at", "text"]

JsonValue: TypeAlias = Any
"""What a decoder gives: None, bool, int, float, str, list or dict. Its shape is the client's."""

Json: TypeAlias = dict[str, JsonValue]
"""An object that was decoded from JSON. Whoever holds it may change it."""


def as_dict(value: object) -> Json:
    """Return ``value`` if it is an object, else an empty one that belongs to nobody."""
    return cast("Json", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[JsonValue]:
    """Return ``value`` if it is a list, else an empty one that belongs to nobody."""
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]


def at(obj: Json, *path: str) -> JsonValue:
    """Return the value at a path of keys, None if there is none.

    >>> at({"spec": {"nodeName": "a"}}, "spec", "nodeName")
    'a'
    >>> at({"spec": None}, "spec", "nodeName")
    """
    value: JsonValue = obj
    for key in path:
        if not isinstance(value, dict):
            return None
        value = cast("Json", value).get(key)
    return value


def text(obj: Json, *path: str) -> str:
    """Return the text at a path of keys, ``""`` if there is none."""
    value = at(obj, *path)
    return value if isinstance(value, str) else ""
