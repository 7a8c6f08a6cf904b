"""Merging for server-side apply: merge a configuration, remove fields, find type errors.

The parts of server-side apply that work on values. None of them changes its arguments; results
share with them what did not change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kinform.apiserver.fieldmanager.field_sets import (
    LEAF,
    LIST,
    MAP,
    SELF,
    FieldSet,
    Shape,
    is_dict,
    is_list,
    item_name,
    paths,
)
from kinform.apiserver.serializer.json_values import Json, JsonValue, as_list

__all__ = ["merge", "mistakes", "remove"]


def merge(shape: Shape, live: JsonValue, config: JsonValue) -> JsonValue:
    """Return ``live`` with what ``config`` states.

    Leaves are the configuration's. An object or a list of items keeps what the configuration does
    not mention, even if that is empty or null.
    """
    if shape.form == MAP and (_is_filled(live, dict) or _is_filled(config, dict)):
        if not is_dict(config):
            return live if config is None else config
        return _merged_fields(shape, live if is_dict(live) else {}, config)
    if shape.form == LIST and (_is_filled(live, list) or _is_filled(config, list)):
        if not is_list(config):
            return live if config is None else config
        return _merged_items(shape, as_list(live), config)
    return config


def _is_filled(value: JsonValue, kind: type) -> bool:
    return bool(value) and isinstance(value, kind)


def _merged_fields(shape: Shape, live: Json, config: Json) -> Json:
    merged = dict(live)
    for name, stated in config.items():
        below = shape.field(name) or shape.below
        merged[name] = merge(below, live.get(name), stated)
    return merged


def _merged_items(shape: Shape, live: list[JsonValue], config: list[JsonValue]) -> list[JsonValue]:
    """Merge item by item: in the order of the configuration, with the others where they were.

    An item that only the live list has comes after those it came after, as far as the
    configuration leaves them in their order.
    """
    stated = {item_name(shape, item): item for item in config}
    names = [item_name(shape, item) for item in live]
    singles = dict(zip(names, live, strict=True))
    singles |= dict.fromkeys(name for name, count in Counter(names).items() if count > 1)
    merged: list[JsonValue] = []
    for place in _order(names, list(stated)):
        if isinstance(place, int):
            merged.append(live[place])
        else:
            merged.append(merge(shape.below, singles.get(place), stated[place]))
    return merged


def _order(live: list[str | None], config: list[str | None]) -> Iterator[int | str | None]:
    """Return where each item comes from: a name of the configuration, or an index of the live list.

    All names of the configuration are there, in their order. Live items that it does not mention
    stay after what they were after, as long as the configuration does not reorder that.
    """
    had = set(live)
    stated = set(config)
    shared = [name for name in config if name in had]
    index = position = next_shared = 0
    while index < len(live) or position < len(config):
        if index < len(live) and (position == len(config) or live[index] != config[position]):
            name = live[index]
            if name not in stated:
                yield index
                index += 1
                continue
            if position == len(config) or name not in shared[next_shared : next_shared + 1]:
                index += 1
                continue
        name = config[position]
        yield name
        if index < len(live) and live[index] == name:
            index += 1
        if name in shared[next_shared : next_shared + 1]:
            next_shared += 1
        position += 1


def remove(shape: Shape, value: JsonValue, gone: FieldSet) -> JsonValue:
    """Return ``value`` without the fields in ``gone``; None if nothing is left of it.

    A whole leaf that has something in ``gone`` below it goes as well.
    """
    if shape.form == MAP and is_dict(value):
        return _without_fields(shape, value, gone) or None
    if shape.form == LIST and is_list(value):
        return _without_items(shape, value, gone) or None
    return None if shape.form == LEAF and isinstance(value, dict | list) else value


def _without_fields(shape: Shape, value: Json, gone: FieldSet) -> Json:
    left: Json = {}
    for name, inner in value.items():
        branch = gone.get(f"f:{name}")
        if branch is None:
            left[name] = inner
        elif branch and SELF not in branch:
            left[name] = remove(shape.field(name) or shape.below, inner, branch)
    return left


def _without_items(shape: Shape, value: list[JsonValue], gone: FieldSet) -> list[JsonValue]:
    left: list[JsonValue] = []
    for item in value:
        branch = gone.get(item_name(shape, item) or "")
        if branch is None:
            left.append(item)
        elif branch and SELF not in branch:
            left.append(remove(shape.below, item, branch))
    return left


def mistakes(shape: Shape, config: Json) -> list[str]:
    """Return what of a configuration cannot be applied, each with its path."""
    return [f"{path}: {problem}" for path, problem in _mistakes(shape, config, "")]


def _mistakes(shape: Shape, value: JsonValue, path: str) -> Iterator[tuple[str, str]]:
    if value is None:
        return
    schema = shape.schema
    wanted = schema.type if schema is not None else ""
    if wanted == "object":
        if not is_dict(value):
            yield path, f"expected map, got &{{{_shown(value)}}}"
        else:
            yield from _wrong_fields(shape, value, path)
    elif wanted == "array":
        if not is_list(value):
            yield path, f"expected list, got &{{{_shown(value)}}}"
        elif shape.form == LIST:
            yield from _wrong_items(shape, value, path)
    else:
        problem = _wrong_scalar(wanted, value)
        if problem:
            yield path, problem


def _wrong_fields(shape: Shape, value: Json, path: str) -> Iterator[tuple[str, str]]:
    schema = shape.schema
    if schema is None or shape.form == LEAF:
        return
    is_open = schema.preserves_unknown or schema.values is not None
    for name, inner in value.items():
        below = shape.field(name)
        if below is None and not is_open:
            yield f"{path}.{name}", "field not declared in schema"
        else:
            yield from _mistakes(below or shape.below, inner, f"{path}.{name}")


def _wrong_items(shape: Shape, value: list[JsonValue], path: str) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for index, item in enumerate(value):
        name = item_name(shape, item)
        if name is None:
            yield path, f"element {index}: {_without_key(shape, item)}"
            continue
        step = next(paths({name: {}}))
        if name in seen:
            yield path, f"duplicate entries for key {step}"
        seen.add(name)
        yield from _mistakes(shape.below, item, f"{path}{step}")


def _without_key(shape: Shape, item: JsonValue) -> str:
    if not is_dict(item):
        return "associative list with keys may not have non-map elements"
    keys = " ".join(f'"{key}"' for key, _ in shape.keys)
    return (
        f"associative list with keys has an element that omits all key fields [{keys}] "
        "(and doesn't have default values for any key fields)"
    )


def _wrong_scalar(wanted: str, value: JsonValue) -> str:
    """Return the errors of a scalar, in the server's words for it."""
    if wanted == "string" and not isinstance(value, str):
        return f"expected string, got &value.valueUnstructured{{Value:{_in_full(value)}}}"
    if wanted == "boolean" and not isinstance(value, bool):
        return f"expected boolean, got &{{{_shown(value)}}}"
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if wanted in {"integer", "number"} and not is_number:
        return f"expected numeric (int or float), got {_kind_of(value)}"
    return ""


def _kind_of(value: JsonValue) -> str:
    if isinstance(value, str):
        return "string"
    if isinstance(value, bool):
        return "bool"
    return "[]interface {}" if is_list(value) else "map[string]interface {}"


def _shown(value: JsonValue) -> str:
    """Return a value as the server prints it in these messages."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if is_list(value):
        return "[" + " ".join(_shown(item) for item in value) + "]"
    if is_dict(value):
        items = (f"{name}:{_shown(inner)}" for name, inner in sorted(value.items()))
        return f"map[{' '.join(items)}]"
    return str(value)


def _in_full(value: JsonValue) -> str:
    """Return a value as the server prints it with its types."""
    if is_list(value):
        return "[]interface {}{" + ", ".join(_in_full(item) for item in value) + "}"
    if is_dict(value):
        items = (f'"{name}":{_in_full(inner)}' for name, inner in sorted(value.items()))
        return "map[string]interface {}{" + ", ".join(items) + "}"
    return f'"{value}"' if isinstance(value, str) else _shown(value)
