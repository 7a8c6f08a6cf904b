"""The difference between two JSON documents as an RFC 6902 patch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias, cast

__all__ = ["JsonValue", "Operation", "diff"]

JsonValue: TypeAlias = "dict[str, JsonValue] | list[JsonValue] | str | int | float | bool | None"
Operation: TypeAlias = Mapping[str, JsonValue]


def diff(before: JsonValue, after: JsonValue, path: str = "") -> list[Operation]:
    """Return the operations that turn ``before`` into ``after``; none if they are equal.

    Objects are compared key by key, lists of equal length item by item; a list whose length
    changed is replaced whole. ``1`` and ``true`` differ, as they do in JSON.
    """
    return list(_walk(before, after, path))


def _walk(before: JsonValue, after: JsonValue, path: str) -> Iterator[Operation]:
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _walk_objects(before, after, path)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _walk(old, new, f"{path}/{index}")
    elif not _same(before, after):
        yield {"op": "replace", "path": path, "value": after}


def _walk_objects(
    before: dict[str, JsonValue], after: dict[str, JsonValue], path: str
) -> Iterator[Operation]:
    for key, old in before.items():
        below = f"{path}/{_escape(key)}"
        if key in after:
            yield from _walk(old, after[key], below)
        else:
            yield {"op": "remove", "path": below}
    for key, new in after.items():
        if key not in before:
            yield {"op": "add", "path": f"{path}/{_escape(key)}", "value": new}


def _same(before: JsonValue, after: JsonValue) -> bool:
    # Python says True == 1 and 1 == 1.0; JSON does not say the first.
    if isinstance(before, bool) is not isinstance(after, bool):
        return False
    if isinstance(before, list) and isinstance(after, list):
        return False  # lengths differ, or we would not be here
    return before == after


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def as_json(value: object) -> JsonValue:
    """Declare that ``value`` is made of JSON's types only; nothing is checked."""
    return cast("JsonValue", value)


def rebase(whole: JsonValue, before: JsonValue, after: JsonValue) -> JsonValue:
    """Carry the change from ``before`` to ``after`` over to ``whole``, of which they are a part.

    What ``before`` does not show is kept. An item of a list is recognised by being unchanged,
    else by its ``name``, else by its place if the length is the same; an item that is not
    recognised is taken as new.
    """
    if not diff(before, after):
        return whole
    if isinstance(whole, dict) and isinstance(before, dict) and isinstance(after, dict):
        kept = {key: value for key, value in whole.items() if key in after or key not in before}
        changed = {
            key: rebase(whole.get(key), before.get(key), value)
            for key, value in after.items()
            if key not in before or diff(before[key], value)
        }
        return kept | changed
    if isinstance(whole, list) and isinstance(before, list) and isinstance(after, list):
        return _rebase_list(whole, before, after)
    return after


def _rebase_list(
    whole: list[JsonValue], before: list[JsonValue], after: list[JsonValue]
) -> list[JsonValue]:
    if len(whole) != len(before):
        return after
    origins = _origins(before, after)
    return [
        new if origin is None else rebase(whole[origin], before[origin], new)
        for new, origin in zip(after, origins, strict=True)
    ]


def _origins(before: list[JsonValue], after: list[JsonValue]) -> list[int | None]:
    """Tell for each item of ``after`` which item of ``before`` it was."""
    found: list[int | None] = [None] * len(after)
    free = list(range(len(before)))

    def match(same: Callable[[int, int], bool]) -> None:
        for new, origin in enumerate(found):
            old = next((i for i in free if same(i, new)), None) if origin is None else None
            if old is not None:
                found[new] = old
                free.remove(old)

    match(lambda old, new: not diff(before[old], after[new]))
    match(lambda old, new: _name(before[old]) == _name(after[new]) is not None)
    if len(before) == len(after):
        match(lambda old, new: old == new and _name(before[old]) is _name(after[new]) is None)
    return found


def _name(item: JsonValue) -> JsonValue:
    return item.get("name") if isinstance(item, dict) else None
