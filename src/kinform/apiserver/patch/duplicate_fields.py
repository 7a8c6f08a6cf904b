"""Repeated fields in the value of a JSON patch: they stay as they are written.

The server does not look into a value that it moves to its place, so what is twice in it is twice
in the result too, until that is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias, cast, final

import msgspec

from kinform.apiserver.serializer.json_values import JsonValue, as_dict, as_list

__all__ = ["Repeated", "found", "plain", "text"]

_Steps: TypeAlias = tuple[str | int, ...]


@final
class Repeated(dict[str, Any]):
    """An object that had a field twice: what it means, and how it was written."""

    def __init__(self, meaning: dict[str, Any], pairs: list[tuple[str, JsonValue]]) -> None:
        super().__init__(meaning)
        self.pairs = pairs


def found(value: JsonValue, path: _Steps = ()) -> Iterator[_Steps]:
    """Return where in a value fields are twice."""
    if isinstance(value, Repeated):
        names = [name for name, _ in value.pairs]
        yield from ((*path, name) for name in dict.fromkeys(names) if names.count(name) > 1)
    if isinstance(value, dict):
        for name, entry in as_dict(cast("object", value)).items():
            yield from found(entry, (*path, name))
    elif isinstance(value, list):
        for index, entry in enumerate(as_list(cast("object", value))):
            yield from found(entry, (*path, index))


def text(value: JsonValue) -> str:
    """Return a value as JSON, with all that is written twice."""
    if isinstance(value, dict):
        entries = as_dict(cast("object", value)).items()
        pairs = value.pairs if isinstance(value, Repeated) else entries
        return "{" + ",".join(f"{text(name)}:{text(entry)}" for name, entry in pairs) + "}"
    if isinstance(value, list):
        return f"[{','.join(map(text, as_list(cast('object', value))))}]"
    return msgspec.json.encode(value).decode()


def plain(value: JsonValue) -> JsonValue:
    """Return a value as it is decoded: of repeated fields the last one."""
    if isinstance(value, dict):
        entries = as_dict(cast("object", value))
        return {name: plain(entry) for name, entry in entries.items()}
    if isinstance(value, list):
        return [plain(entry) for entry in as_list(cast("object", value))]
    return value
