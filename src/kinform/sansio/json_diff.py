"""`diff`: the difference between two JSON documents as an RFC 6902 patch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias, cast

from kinform.sansio.list_matching import origins

__all__ = ["JsonValue", "Operation", "diff"]

JsonValue: TypeAlias = "dict[str, JsonValue] | list[JsonValue] | str | int | float | bool | None"
Operation: TypeAlias = Mapping[str, JsonValue]


def diff(before: JsonValue, after: JsonValue, path: str = "") -> list[Operation]:
    """Return the operations that turn ``before`` into ``after``; empty if they are equal.

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
    # In Python True == 1 and 1 == 1.0; in JSON true and 1 differ.
    if isinstance(before, bool) is not isinstance(after, bool):
        return False
    if isinstance(before, list) and isinstance(after, list):
        return False  # lengths differ, or we would not be here
    return before == after


def _escape(key: str) -> str:
    # "~" first (RFC 6901): the other order would escape the "~" of "~1" again.
    return key.replace("~", "~0").replace("/", "~1")


def as_json(value: object) -> JsonValue:
    """Declare that ``value`` is made of JSON's types only; nothing is checked."""
    return cast("JsonValue", value)


def rebase(whole: JsonValue, before: JsonValue, after: JsonValue, *, path: str = "") -> JsonValue:
    """Apply the change from ``before`` to ``after`` to ``whole``, of which both are a part.

    Fields that ``before`` does not have are kept. The items of a list are matched by
    `list_matching`; one without an origin is new. ``path`` is the position of ``whole``.

    Raises:
        UsageError: the items of a list cannot be matched, and fields that ``before`` does not
            have would be lost.
    """
    if not diff(before, after):
        return whole
    if isinstance(whole, dict) and isinstance(before, dict) and isinstance(after, dict):
        # A key that the model does not show is in neither, so it stays. One that is in ``before``
        # alone was removed.
        kept = {key: value for key, value in whole.items() if key in after or key not in before}
        changed = {
            key: rebase(whole.get(key), before.get(key), value, path=f"{path}/{_escape(key)}")
            for key, value in after.items()
            if key not in before or diff(before[key], value)
        }
        return kept | changed
    if isinstance(whole, list) and isinstance(before, list) and isinstance(after, list):
        return _rebase_list(whole, before, after, path=path)
    return after


def _rebase_list(
    whole: list[JsonValue], before: list[JsonValue], after: list[JsonValue], *, path: str
) -> list[JsonValue]:
    matched = zip(after, origins(whole, before, after, path=path), strict=True)
    return [
        new
        if origin is None
        else rebase(whole[origin], before[origin], new, path=f"{path}/{origin}")
        for new, origin in matched
    ]
