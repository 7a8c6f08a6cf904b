"""What models are made of: `WireModel`, and values that stay as they are on the wire.

`kinform.clientset.quantity` and `kinform.clientset.times` read and write them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Self, TypeAlias

import msgspec

__all__ = ["JSON", "IntOrString", "Quantity", "Time", "WireModel"]

Quantity: TypeAlias = str | int | float
"""An amount such as ``"500m"`` or ``"1Gi"``. The server writes text; manifests may hold numbers."""

IntOrString: TypeAlias = int | str
"""A number or a text, such as a port or its name, a count or a percentage."""

Time: TypeAlias = str
"""A moment in RFC 3339: ``"2026-01-02T03:04:05Z"``, a MicroTime with six more digits."""

JSON: TypeAlias = object
"""Anything that JSON can say: dicts, lists, text, numbers, booleans, None."""


class WireModel(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A piece of an object, as JSON has it: what is not there is the default, and is not sent.

    That a value is the default is known by its identity. So a copy is the model itself, which
    nobody can change; and one that goes to another process goes as JSON.
    """

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Callable[..., WireModel], tuple[object, ...]]:
        return _decoded, (type(self), msgspec.json.encode(self))


def _decoded(model: type[WireModel], content: bytes) -> WireModel:
    return msgspec.json.decode(content, type=model)
