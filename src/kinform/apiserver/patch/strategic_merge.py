"""Strategic merge patch: a merge patch that merges lists by their keys.

A patch may hold directives beside fields: ``$patch`` (replace or delete), ``$retainKeys``,
``$setElementOrder/<list>`` and ``$deleteFromPrimitiveList/<list>``. They count only where there
is something to merge with: an object with a ``$patch`` in a new field is left out, and in a new
item of a list directives stay, as unknown fields.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Final, cast

from kinform.apiserver.endpoints import status
from kinform.apiserver.endpoints.status import StatusError
from kinform.apiserver.scheme.schemas import ANYTHING, Schema
from kinform.apiserver.scheme.type_errors import go_format, reflect_kind, struct_name
from kinform.apiserver.serializer.json_values import Json, JsonValue, as_list

__all__ = ["apply"]

_DIRECTIVE: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_ORDER: Final = "$setElementOrder/"
_DELETE: Final = "$deleteFromPrimitiveList/"


def apply(target: Json, patch: Json, schema: Schema) -> Json:
    """Return ``target`` changed by ``patch``; neither is changed, and the result shares with both.

    Raises:
        StatusError: 500 for a patch that does not fit, as the server has it, or 400.
    """
    return _merged_map(target, patch, schema)


def _error(message: str) -> StatusError:
    # The server has no better name for these than the code.
    return StatusError(500, "", message)


def _unexpected(expected: str, value: JsonValue) -> StatusError:
    return _error(f"expected a {expected}, but received a {_go_type(value)}")


def _go_type(value: JsonValue) -> str:
    if value is None:
        return "%!s(<nil>)"
    names = {"map": "map[string]interface {}", "slice": "[]interface {}"}
    return names.get(kind := reflect_kind(value), kind)


def _merged_map(target: Json, patch: Json, schema: Schema) -> Json:
    if _DIRECTIVE in patch:
        return _directed(patch)
    merged = dict(target)
    if _RETAIN in patch:
        _retain(merged, patch)
    ordered = _ordered_lists(merged, patch, schema)
    for name, value in patch.items():
        if name == _RETAIN or name in ordered or name.startswith(_ORDER):
            continue
        if name.startswith(_DELETE):
            _delete_items(merged, name.removeprefix(_DELETE), value)
        elif value is None:
            merged.pop(name, None)
        elif name not in merged or not _is_alike(merged[name], value):
            merged.pop(name, None)
            if (fresh := _fresh(value)) is not None:
                merged[name] = fresh
        else:
            merged[name] = _merged_value(merged[name], value, _field(schema, name))
    return merged


def _directed(patch: Json) -> Json:
    directive = patch[_DIRECTIVE]
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != _DIRECTIVE}
    if directive == "delete":
        return {}
    raise _unknown_directive(directive, patch)


def _unknown_directive(directive: JsonValue, patch: Json) -> StatusError:
    shown = directive
    if not isinstance(directive, str):
        shown = f"%!s({reflect_kind(directive)}={go_format(directive)})"
    return _error(f"unknown patch type: {shown} in map: {go_format(patch)}")


def _retain(merged: Json, patch: Json) -> None:
    """Drop what ``$retainKeys`` does not list. It must list all that the patch sets."""
    listed = patch[_RETAIN]
    kept = {name for name in as_list(listed) if isinstance(name, str)}
    directives = (_DIRECTIVE, _RETAIN)
    if not isinstance(listed, list) or any(
        name not in kept for name in patch if name not in directives and not name.startswith("$")
    ):
        raise status.bad_request("invalid patch format of retainKeys")
    for name in [name for name in merged if name not in kept]:
        del merged[name]


def _is_alike(target: JsonValue, patch: JsonValue) -> bool:
    """Return whether two values can be merged, or neither has anything to merge."""
    return all(isinstance(target, kind) is isinstance(patch, kind) for kind in (dict, list))


def _field(schema: Schema, name: str) -> Schema:
    return schema.properties.get(name) or schema.values or ANYTHING


def _merged_value(target: JsonValue, patch: JsonValue, schema: Schema) -> JsonValue:
    """Return a value that is in both, merged if both can be."""
    if isinstance(target, dict) and isinstance(patch, dict):
        if "replace" in schema.patch_strategies:
            return cast("Json", patch)
        return _merged_map(cast("Json", target), cast("Json", patch), schema)
    if isinstance(target, list) and isinstance(patch, list):
        items = as_list(cast("object", patch))
        if "merge" in schema.patch_strategies:
            return _merged_list(as_list(cast("object", target)), items, schema)
        return items
    return patch


def _merged_list(
    target: list[JsonValue], patch: list[JsonValue], schema: Schema
) -> list[JsonValue]:
    """Merge a list of objects by their key, or one of plain values as a set."""
    if not patch:
        return target
    key = schema.patch_merge_key
    _check_alike(target, patch)
    if not isinstance(patch[0], dict):
        merged = list(dict.fromkeys([*target, *patch]))
        return _arranged(merged, patch, target, identity=_itself)
    objects, kept, is_replaced = _without_directives(cast("list[Json]", patch), target, key)
    if is_replaced:
        return objects
    identity = _identity(key)
    below = schema.items or ANYTHING
    result = list(kept)
    places = {_hashable(other.get(key)): n for n, other in reversed(list(enumerate(result)))}
    for item in objects:
        value = _hashable(identity(item))
        at = places.get(value)
        if at is None:
            places[value] = len(result)
            result.append(cast("Json", _without_nulls(item)))
        else:
            result[at] = _merged_map(result[at], item, below)
    whole = result
    order = objects
    return _arranged(whole, order, target, identity=identity)


def _check_alike(target: list[JsonValue], patch: list[JsonValue]) -> None:
    kinds = {_element_kind(item) for item in (*target, *patch)}
    if len(kinds) > 1:
        raise _error(f"list element types are not identical: {go_format([target, patch])}")
    if "slice" in kinds:
        raise _error("unexpected nested list")


def _element_kind(item: JsonValue) -> str:
    return "nil" if item is None else reflect_kind(item)


def _without_directives(
    patch: list[Json], target: list[JsonValue], key: str
) -> tuple[list[Json], list[Json], bool]:
    """Return the plain items, the items that directives keep, and whether they replace all."""
    objects: list[Json] = []
    kept = cast("list[Json]", target)
    deleted: set[object] = set()
    is_replaced = False
    identity = _identity(key)
    for item in patch:
        if _DIRECTIVE not in item:
            objects.append(item)
            continue
        directive = item[_DIRECTIVE]
        if directive == "delete":
            deleted.add(_hashable(identity(item)))
        elif directive == "replace":
            is_replaced = True
        elif directive == "merge":
            raise _error("merging lists cannot yet be specified in the patch")
        else:
            raise _unknown_directive(directive, item)
    if deleted:
        kept = [other for other in kept if _hashable(other.get(key)) not in deleted]
    return objects, kept, is_replaced


_Identity = Callable[[JsonValue], JsonValue]
"""Returns the value that identifies an item of a list: its merge key, or the item itself."""


def _itself(item: JsonValue) -> JsonValue:
    return item


def _identity(key: str) -> _Identity:
    def of(item: JsonValue) -> JsonValue:
        if not isinstance(item, dict):
            raise _unexpected("map[string]interface {}", item)
        obj = cast("Json", item)
        if key not in obj:
            shown = go_format(obj)
            raise _error(f"map: {shown} does not contain declared merge key: {key}")
        return obj[key]

    return of


def _arranged(
    merged: Sequence[JsonValue],
    order: Sequence[JsonValue],
    target: Sequence[JsonValue],
    *,
    identity: _Identity,
) -> list[JsonValue]:
    """Put a merged list in order: the patch's items as it has them, the others as they were.

    Where the two meet, an item that only the server has stays before one of the patch if it was
    before it; items that are new to the server come first.
    """
    ranks = {_hashable(identity(item)): rank for rank, item in reversed(list(enumerate(order)))}
    before = {_hashable(identity(item)): rank for rank, item in enumerate(target)}
    named = [(_hashable(identity(item)), item) for item in merged]
    ours = [(ranks[name], name, item) for name, item in named if name in ranks]
    ours.sort(key=itemgetter(0))
    theirs = [(before.get(name, len(before)), item) for name, item in named if name not in ranks]
    theirs.sort(key=itemgetter(0))
    result: list[JsonValue] = []
    at = 0
    for _, name, item in ours:
        rank = before.get(name, -1)
        while at < len(theirs) and theirs[at][0] < rank:
            result.append(theirs[at][1])
            at += 1
        result.append(item)
    return result + [item for _, item in theirs[at:]]


def _hashable(value: JsonValue) -> object:
    return (value.__class__, go_format(value) if value.__class__ in (dict, list) else value)


def _ordered_lists(merged: Json, patch: Json, schema: Schema) -> set[str]:
    """Merge and arrange the lists whose order the patch gives; return their names."""
    done: set[str] = set()
    for directive, order in patch.items():
        if not directive.startswith(_ORDER):
            continue
        name = directive.removeprefix(_ORDER)
        field = schema.properties.get(name)
        if not isinstance(order, list):
            raise _error(f"expected a []interface {{}}, but received a {reflect_kind(order)}")
        if field is None:
            struct = struct_name(schema)
            message = f'unable to find api field in struct {struct} for the json field "{name}"'
            raise _error(message)
        done.add(name)
        _order_list(merged, patch, field=field, directive=directive)
    return done


def _order_list(merged: Json, patch: Json, *, field: Schema, directive: str) -> None:
    name = directive.removeprefix(_ORDER)
    order: list[JsonValue] = patch[directive]
    target, changes = merged.get(name), patch.get(name)
    if name in patch and changes is None:
        merged.pop(name, None)
        return
    for value in (target, changes):
        if not isinstance(value, list | None):
            raise _unexpected("[]interface {}", value)
    key = field.patch_merge_key
    if key and (odd := [at for at, item in enumerate(order) if not isinstance(item, dict)]):
        raise _error(f"value for key {odd[0]} is not a map")
    identity = _identity(key) if key else _itself
    ranks = [identity(item) for item in order]
    if isinstance(changes, list):
        _check_order(as_list(cast("object", changes)), order, (ranks, identity))
    if target is None and changes is None:
        return
    if target is None or changes is None:
        result = cast("list[JsonValue]", changes if target is None else target)
    else:
        result = cast("list[JsonValue]", _merged_value(target, changes, field))
    merged[name] = _arranged(result, order, target or [], identity=identity)


def _check_order(
    patch: list[JsonValue],
    order: list[JsonValue],
    ranked: tuple[list[JsonValue], _Identity],
) -> None:
    """Make sure that the patch's items are in the order that it gives itself."""
    ranks, identity = ranked
    at = 0
    for item in patch:
        if isinstance(item, dict) and _DIRECTIVE in item:
            continue
        value = identity(item)
        while at < len(ranks) and ranks[at] != value:
            at += 1
        if at == len(ranks):
            shown = f"{go_format(patch)}\n doesn't match $setElementOrder list:\n{go_format(order)}"
            raise _error(f"The order in patch list:\n{shown}\n")


def _delete_items(merged: Json, name: str, items: JsonValue) -> None:
    dropped, target = set(map(_hashable, as_list(items))), merged.get(name)
    if dropped and isinstance(target, list):
        kept = as_list(cast("object", target))
        merged[name] = [item for item in kept if _hashable(item) not in dropped]


def _fresh(value: JsonValue) -> JsonValue:
    """Return what a patch sets where nothing was: without nulls, and without what has directives.

    An object with a ``$patch`` says how to merge, and there is nothing to merge with.
    """
    if isinstance(value, list):
        items = [_fresh(item) for item in as_list(cast("object", value))]
        return [item for item in items if item is not None]
    if not isinstance(value, dict):
        return value
    obj = cast("Json", value)
    if _DIRECTIVE in obj:
        return None
    read = {name: _fresh(entry) for name, entry in obj.items()}
    return {name: entry for name, entry in read.items() if entry is not None}


def _without_nulls(value: JsonValue) -> JsonValue:
    """Return a value without the nulls in its objects: they would delete what is not there."""
    if not isinstance(value, dict):
        return value
    obj = cast("Json", value)
    return {name: _without_nulls(entry) for name, entry in obj.items() if entry is not None}
