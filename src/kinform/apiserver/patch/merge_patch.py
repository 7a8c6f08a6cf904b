"""JSON merge patch (RFC 7386)."""

from __future__ import annotations

from typing import cast

from kinform.apiserver.serializer.json_values import Json, JsonValue

__all__ = ["apply"]


def apply(target: Json, patch: Json) -> Json:
    """Return ``target`` changed by ``patch``; neither is changed, and the result shares with both.

    >>> apply({"a": 1, "b": {"c": 2}}, {"a": None, "b": {"d": 3}})
    {'b': {'c': 2, 'd': 3}}
    """
    merged = dict(target)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, dict):
            below: JsonValue = merged.get(name)
            inner = cast("Json", below) if isinstance(below, dict) else {}
            merged[name] = apply(inner, cast("Json", value))
        else:
            merged[name] = value
    return merged
