"""Sets of field paths, in the form in which ``managedFields`` writes them (FieldsV1).

A set is a tree of plain dicts: ``{"f:spec": {"f:replicas": {}}}`` holds ``.spec.replicas``. The
names of branches say what they lead to: ``f:`` a field, ``k:`` the item of a list that has these
keys, ``v:`` the item of a set, ``i:`` an index. A branch with nothing below is in the set; one
with something below is in the set itself only if it has a ``"."``. The tree at the top stands
for the object, which is never in the set, so an empty tree is the empty set.

Sets are values: nobody changes one that exists, and the results of these functions share their
branches with the arguments. They are therefore never copied between objects either.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias, TypeGuard

import msgspec

from kinform.apiserver.json import Json, JsonValue

__all__ = [
    "FieldSet",
    "difference",
    "intersection",
    "is_valid",
    "ordered",
    "paths",
    "union",
    "without",
]

FieldSet: TypeAlias = Json
"""A set of field paths, as the JSON of a FieldsV1."""

SELF: Final = "."
"""The name that says of a branch with something below that it is in the set itself."""

_ORDER: Final = {"f": 0, "k": 1, "v": 2, "i": 3}
_TYPES: Final[dict[str, Any]] = {"k": dict[str, Any], "v": Any, "i": int}
"""What stands behind these letters, as JSON."""


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return what is in one of the two.

    >>> union({"f:spec": {}}, {"f:spec": {"f:replicas": {}}})
    {'f:spec': {'.': {}, 'f:replicas': {}}}
    """
    if not one:
        return other
    if not other or one is other:
        return one
    both = dict(one)
    for name, theirs in other.items():
        ours = both.get(name)
        both[name] = theirs if ours is None else _joined(ours, theirs)
    return both


def difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return what is in ``one`` and not in ``other``, path by path.

    That a field goes does not take what is below it along: `without` does.

    >>> difference({"f:spec": {".": {}, "f:replicas": {}}}, {"f:spec": {}})
    {'f:spec': {'f:replicas': {}}}
    """
    rest: FieldSet = {}
    for name, ours in one.items():
        theirs = other.get(name)
        if theirs is None:
            rest[name] = ours
            continue
        branch = _remaining(ours, theirs)
        if branch is not None:
            rest[name] = branch
    return rest


def without(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return what is in ``one`` and neither in ``other`` nor below a path in ``other``.

    >>> without({"f:spec": {".": {}, "f:replicas": {}}}, {"f:spec": {}})
    {}
    """
    rest: FieldSet = {}
    for name, ours in one.items():
        theirs = other.get(name)
        if theirs is None:
            rest[name] = ours
        elif theirs and SELF not in theirs:
            below = _plain(without(ours, theirs)) if ours else ours
            if below is not None:
                rest[name] = below
    return rest


def intersection(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return what is in both.

    >>> intersection({"f:spec": {"f:replicas": {}}}, {"f:spec": {".": {}, "f:replicas": {}}})
    {'f:spec': {'f:replicas': {}}}
    """
    both: FieldSet = {}
    for name, ours in one.items():
        theirs = other.get(name)
        if theirs is None or name == SELF:
            continue
        below = intersection(ours, theirs)
        if _is_member(ours) and _is_member(theirs):
            both[name] = itself(below)
        elif below:
            both[name] = below
    return both


def paths(one: FieldSet) -> Iterator[str]:
    """Return the paths as messages print them, in the server's order: parents first.

    >>> list(paths({"f:spec": {'k:{"name":"a"}': {".": {}, "f:image": {}}, "f:x": {}}}))
    ['.spec.x', '.spec[name="a"]', '.spec[name="a"].image']
    """
    yield from _paths(one, "")


def ordered(one: FieldSet) -> FieldSet:
    """Return a set in the order in which the server writes it."""
    # Names sort as they are written: of all that a branch can hold at once, "." comes first.
    return {name: ordered(one[name]) if one[name] else {} for name in sorted(one)}


def is_valid(one: object) -> bool:
    """Tell whether a client's JSON is a set at all."""
    if not is_dict(one):
        return False
    return all(_is_branch(name, below) for name, below in one.items())


def is_dict(value: object) -> TypeGuard[Json]:
    """Tell whether a value is an object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[JsonValue]]:
    """Tell whether a value is a list."""
    return isinstance(value, list)


def _is_branch(name: str, below: object) -> bool:
    if name == SELF:
        return below == {}
    if name[:1] not in _ORDER or name[1:2] != ":":
        return False
    if name[0] != "f" and not _is_json(name[2:], _TYPES[name[0]]):
        return False
    return is_valid(below)


def _is_json(text: str, of_type: Any) -> bool:
    try:
        msgspec.json.decode(text, type=of_type)
    except msgspec.DecodeError:
        return False
    return True


def itself(below: FieldSet) -> FieldSet:
    """Return the branch that is in the set itself, as well as what is below."""
    if not below or SELF in below:
        return below
    branch: FieldSet = {SELF: {}}
    branch.update(below)
    return branch


def _is_member(branch: FieldSet) -> bool:
    return not branch or SELF in branch


def _joined(ours: FieldSet, theirs: FieldSet) -> FieldSet:
    """Return the union of two branches, either of which may be in its set itself."""
    if not ours:
        return theirs if _is_member(theirs) else itself(theirs)
    if not theirs:
        return ours if SELF in ours else itself(ours)
    return union(ours, theirs)


def _remaining(ours: FieldSet, theirs: FieldSet) -> FieldSet | None:
    """Return what stays of a branch, None if nothing does."""
    if not ours:
        return None if _is_member(theirs) else ours
    if not theirs:
        if SELF not in ours:
            return ours
        return {name: below for name, below in ours.items() if name != SELF} or None
    return _plain(difference(ours, theirs)) if ours is not theirs else None


def _plain(branch: FieldSet) -> FieldSet | None:
    """Return a branch in its only form, None if there is nothing in it.

    What has nothing below says by being empty that it is in the set.
    """
    return {} if len(branch) == 1 and SELF in branch else branch or None


def _paths(one: FieldSet, prefix: str) -> Iterator[str]:
    branches = sorted(one.items(), key=lambda branch: _sorting(branch[0]))
    for name, below in branches:
        if name != SELF and _is_member(below):
            yield prefix + _element(name)
    for name, below in branches:
        if below:
            yield from _paths(below, prefix + _element(name))


def _sorting(name: str) -> tuple[int, str]:
    return (_ORDER.get(name[:1], -1), name)


def _element(name: str) -> str:
    """Return one step of a path: ``.name``, ``[name="x"]``, ``[="x"]`` or ``[0]``."""
    sort, _, text = name.partition(":")
    if sort == "f":
        return f".{text}"
    if sort == "i":
        return f"[{text}]"
    if sort == "v":
        return f"[={text}]"
    keys = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    return "[" + ",".join(f"{key}={bytes(value).decode()}" for key, value in keys.items()) + "]"
