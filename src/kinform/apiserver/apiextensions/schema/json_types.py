"""Type guards for decoded values."""

from __future__ import annotations

from typing import TypeGuard

from kinform.apiserver.serializer.json_values import Json, JsonValue

__all__ = ["is_list", "is_object"]


def is_object(value: object) -> TypeGuard[Json]:
    """Return whether a decoded value is an object."""
    return type(value) is dict


def is_list(value: object) -> TypeGuard[list[JsonValue]]:
    """Return whether a decoded value is a list."""
    return type(value) is list
