"""Field sets: sets of field paths in the form of ``managedFields`` (FieldsV1).

A set is a tree of plain dicts: ``{"f:spec": {"f:replicas": {}}}`` holds ``.spec.replicas``. The
names of branches say what they lead to: ``f:`` a field, ``k:`` the item of a list that has these
keys, ``v:`` the item of a set, ``i:`` an index. A branch with nothing below is in the set; one
with something below is in the set itself only if it has a ``"."``. The tree at the top stands
for the object, which is never in the set, so an empty tree is the empty set.

Sets are values: an existing one is never changed, and the results of these functions share their
branches with the arguments.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, TypeGuard, cast, final

import msgspec

from kinform.apiserver.scheme.schemas import Schema
from kinform.apiserver.serializer.json_values import Json, JsonValue, as_list

__all__ = [
    "FieldChanges",
    "FieldSet",
    "Shape",
    "applied",
    "changes",
    "difference",
    "intersection",
    "is_valid",
    "item_name",
    "named",
    "ordered",
    "paths",
    "shape_of",
    "union",
    "without",
]

FieldSet: TypeAlias = Json
"""A set of field paths, as the JSON of a FieldsV1."""

SELF: Final = "."
"""The name that marks a branch with children as a member of the set."""

_ORDER: Final = {"f": 0, "k": 1, "v": 2, "i": 3}
_TYPES: Final[dict[str, Any]] = {"k": dict[str, Any], "v": Any, "i": int}
"""The JSON type of the text after each letter."""


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
        if ours is None:
            both[name] = theirs
        elif ours and theirs:
            both[name] = union(ours, theirs)
        elif ours or theirs:  # the empty one says that the branch itself is in its set
            both[name] = itself(ours or theirs)
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
        elif not ours:
            if theirs and SELF not in theirs:
                rest[name] = ours
        elif ours is not theirs:
            below = _without_self(ours) if not theirs else difference(ours, theirs)
            if len(below) == 1 and SELF in below:
                rest[name] = {}  # what has nothing below is in the set by being empty
            elif below:
                rest[name] = below
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
    found: FieldSet = {}
    for name in sorted(one):
        found[name] = ordered(one[name]) if one[name] else {}
    return found


def is_valid(one: object) -> bool:
    """Return whether a client's JSON is a set at all."""
    if not is_dict(one):
        return False
    return all(_is_branch(name, below) for name, below in one.items())


def is_dict(value: object) -> TypeGuard[Json]:
    """Return whether a value is an object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[JsonValue]]:
    """Return whether a value is a list."""
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


def _without_self(branch: FieldSet) -> FieldSet:
    if SELF not in branch:
        return branch
    return {name: below for name, below in branch.items() if name != SELF}


def _plain(branch: FieldSet) -> FieldSet | None:
    """Return a branch in canonical form, None if it is empty.

    A member of the set without children is an empty dict.
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


# --- schemas, as field ownership sees them

# A `Shape` is built once from a `Schema` and walked for every write. It has one of three forms: an
# object whose fields are owned one by one (``MAP``), a list whose items are (``LIST``), and a value
# that is owned as a whole (``LEAF``): scalars, atomic lists and atomic objects. Where the schema
# is unknown, objects are granular and lists are atomic.
#
# The shapes of built-in kinds also know which fields are *implied*. kube-apiserver keeps these
# kinds in Go structs. A field that is a struct itself always exists there, if empty, and a required
# pointer is null until it is set. So no manager owns ``.spec`` of a Pod, because it existed before,
# but a manager that sets ``.spec`` of a custom object owns it.

_RAW: Final = "io.k8s.apimachinery.pkg.runtime.RawExtension"
"""An object of any kind, which is kept as it was sent."""

LEAF: Final = 0
MAP: Final = 1
LIST: Final = 2

_encoder: Final = msgspec.json.Encoder()


@final
class Shape:
    """One node of a schema: how its value divides into fields."""

    __slots__ = (
        "_below",
        "_names",
        "fields",
        "form",
        "implied",
        "is_typed",
        "keys",
        "label",
        "schema",
    )

    def __init__(self, schema: Schema | None, *, is_typed: bool, label: str = "") -> None:
        self.schema: Final = schema
        self.is_typed: Final = is_typed
        """Nulls are not kept, and some fields are implied."""
        self.label: Final = label
        """The name of a known field in a set."""
        self.form: Final = _form(schema)
        self.keys: Final = _keys(schema)
        """Of a list's items, sorted, with their defaults; empty for a set."""
        self.fields: Final[dict[str, Shape]] = {}
        """The known fields that were asked for until now."""
        self._names: Final[Mapping[str, Schema]] = (
            schema.properties if schema and self.form == MAP else {}
        )
        self._below: Shape | None = None
        self.implied: Final[Mapping[str, JsonValue]] = (
            _implied(schema) if is_typed and schema and self.form == MAP else {}
        )
        """Fields that are there with this value if they are not there."""

    def field(self, name: str) -> Shape | None:
        """Return the shape of a known field, None for a name that the client chose."""
        found = self.fields.get(name)
        if found is None and name in self._names:
            found = Shape(self._names[name], is_typed=self.is_typed, label=f"f:{name}")
            self.fields[name] = found
        return found

    @property
    def below(self) -> Shape:
        """The shape of the values of a map, or of the items of a list."""
        found = self._below
        if found is None:
            schema = self.schema
            inner = None
            if schema is not None:
                inner = schema.items if self.form == LIST else schema.values
            found = self._below = Shape(inner, is_typed=self.is_typed and inner is not None)
        return found


class FieldChanges(NamedTuple):
    """The difference of two objects, as three disjoint sets."""

    added: FieldSet
    modified: FieldSet
    removed: FieldSet


@functools.lru_cache(maxsize=2048)
def _root(schema: Schema, is_typed: bool) -> Shape:  # noqa: FBT001 - lru_cache keys
    return Shape(schema, is_typed=is_typed)


def shape_of(schema: Schema, *, is_typed: bool) -> Shape:
    """Return the shape of a kind's objects; ``is_typed`` for a built-in kind."""
    return _root(schema, is_typed)


def _form(schema: Schema | None) -> int:
    if schema is None:
        return MAP
    if schema.type == "array":
        return LIST if schema.list_type in {"map", "set"} else LEAF
    if schema.type == "object":
        return LEAF if schema.is_atomic or schema.definition == _RAW else MAP
    # Quantities and the like are one of several types; what has no type at all can be an object.
    is_scalar = schema.type or schema.is_int_or_string or "oneOf" in schema.raw
    return LEAF if is_scalar else MAP


def _keys(schema: Schema | None) -> Sequence[tuple[str, JsonValue]]:
    if schema is None or schema.list_type != "map":
        return ()
    return tuple((key, schema.key_defaults.get(key)) for key in sorted(schema.list_keys))


@functools.lru_cache(maxsize=8192)
def _implied(schema: Schema) -> Mapping[str, JsonValue]:
    """Return the fields that an empty structure has.

    The recorded schemas describe them: a default is the zero value of a field that is not a
    pointer; a required field without a default is a list, a map or a pointer.
    """
    required = as_list(schema.raw.get("required"))
    found: Json = {}
    for name, below in schema.properties.items():
        default = below.raw.get("default")
        if default == {} and below.type == "object":
            found[name] = dict(_implied(below))
        elif name in required or default in ("", 0):
            found[name] = default
    return found


def item_name(shape: Shape, item: JsonValue) -> str | None:
    """Return the name of a list's item in a set, None if it has no key at all."""
    keys = shape.keys
    if not keys:
        return f"v:{_encoder.encode(item).decode()}"
    if not is_dict(item):
        return None
    if len(keys) == 1:
        key, default = keys[0]
        value = item.get(key, default)
        if value is None:
            return None
        # Most names need no escapes, and an encoder is slower than a look.
        is_plain = isinstance(value, str) and value.isidentifier()
        shown = f'"{value}"' if is_plain else _encoder.encode(value).decode()
        return f'k:{{"{key}":{shown}}}'
    given = {key: item.get(key, default) for key, default in keys}
    given = {key: value for key, value in given.items() if value is not None}
    return f"k:{_encoder.encode(given).decode()}" if given else None


def applied(shape: Shape, value: Json) -> FieldSet:
    """Return the fields that a configuration states.

    Only what is stated counts: structures on the way are not in the set, items of lists and of
    maps are.
    """
    return _stated(shape, value)


def _stated(shape: Shape, value: JsonValue) -> FieldSet:
    """Return what is below a value; empty for a leaf."""
    found: FieldSet = {}
    if shape.form == MAP and is_dict(value):
        for name, inner in value.items():
            known = shape.field(name)
            below = _stated(known or shape.below, inner)
            if known is None:
                found[f"f:{name}"] = itself(below)
            elif below or not _is_structure(known, inner):
                found[known.label] = below
    elif shape.form == LIST and is_list(value):
        for name, items in _indexed(shape, value).items():
            below = _stated(shape.below, items[0]) if len(items) == 1 else {}
            found[name] = itself(below)
    return found


def _is_structure(shape: Shape, value: JsonValue) -> bool:
    """Return whether a known field is owned only by way of what is in it."""
    if shape.form == LIST:
        return is_list(value)
    return shape.form == MAP and is_dict(value) and bool(value)


def changes(shape: Shape, old: Json, new: Json) -> FieldChanges:
    """Return what was added, modified and removed between two objects.

    What appears or goes with all that is in it is in the set at every level.
    """
    added, modified, removed = _changes(shape, old, new) or (None, None, None)
    return FieldChanges(added or {}, modified or {}, removed or {})


_Difference = tuple[FieldSet | None, FieldSet | None, FieldSet | None]


def _changes(shape: Shape, old: JsonValue, new: JsonValue) -> _Difference | None:
    """Return what differs below two values, or the values themselves as an empty branch."""
    if shape.form == MAP:
        before = cast("Json", old) if isinstance(old, dict) else None
        after = cast("Json", new) if isinstance(new, dict) else None
        if before or after:
            found = _fields_changed(shape, before or {}, after or {})
            # Where the schema is unknown, one of the two may be no object: it changed as a whole.
            if (before is None and old is not None) or (after is None and new is not None):
                return (found[0], {}, found[2])
            return found
    elif shape.form == LIST and ((old and is_list(old)) or (new and is_list(new))) and old != new:
        return _items_changed(shape, as_list(old), as_list(new))
    return None if old == new else (None, {}, None)


def _fields_changed(shape: Shape, old: Json, new: Json) -> _Difference:
    added: FieldSet = {}
    modified: FieldSet = {}
    removed: FieldSet = {}
    implied = shape.implied
    for name, after in new.items():
        if name in old:
            before = old[name]
            if before == after:
                continue
        elif name in implied:
            before = implied[name]
        else:
            if after is not None or not shape.is_typed:
                added[f"f:{name}"] = _whole(shape.field(name) or shape.below, after)
            continue
        known = shape.fields.get(name) or shape.field(name)
        found = _changes(known or shape.below, before, after)
        if found is not None:
            _note(f"f:{name}", found, (added, modified, removed))
    for name, before in old.items():
        if name in new:
            continue
        if name in implied:
            found = _changes(shape.field(name) or shape.below, before, implied[name])
            if found is not None:
                _note(f"f:{name}", found, (added, modified, removed))
        elif before is not None or not shape.is_typed:
            removed[f"f:{name}"] = _whole(shape.field(name) or shape.below, before)
    return (added or None, modified or None, removed or None)


def _items_changed(shape: Shape, old: list[JsonValue], new: list[JsonValue]) -> _Difference:
    added: FieldSet = {}
    modified: FieldSet = {}
    removed: FieldSet = {}
    before = _indexed(shape, old)
    after = _indexed(shape, new)
    below = shape.below
    for name, items in after.items():
        were = before.get(name, [])
        if len(items) > 1 and len(were) > 1:
            if items != were:
                modified[name] = {}
        elif len(items) > 1:
            # Twice the same key: the pair has owners as a whole, its fields have none.
            added[name] = {}
            if were:
                removed[name] = _whole(below, were[0])
        elif len(were) == 1:
            found = _changes(below, were[0], items[0])
            if found is not None:
                _note(name, found, (added, modified, removed))
        else:
            added[name] = _whole(below, items[0])
            if were:
                removed[name] = {}
    for name, were in before.items():
        if name not in after:
            removed[name] = _whole(below, were[0]) if len(were) == 1 else {}
    return (added or None, modified or None, removed or None)


def _note(name: str, found: _Difference, into: tuple[FieldSet, FieldSet, FieldSet]) -> None:
    for part, target in zip(found, into, strict=True):
        if part is not None:
            target[name] = part


def _indexed(shape: Shape, items: list[JsonValue]) -> dict[str, list[JsonValue]]:
    """Return the items by their names; more than one where a key is there twice."""
    found: dict[str, list[JsonValue]] = {}
    for item in items:
        name = item_name(shape, item)
        if name is not None:
            found.setdefault(name, []).append(item)
    return found


def _whole(shape: Shape, value: JsonValue) -> FieldSet:
    """Return the branch of a value that is new as a whole: everything in it, and itself."""
    if not value or shape.form == LEAF:
        return {}
    if shape.form == MAP:
        return _whole_object(shape, value) if is_dict(value) else {}
    if not is_list(value):
        return {}
    found: FieldSet = {SELF: {}}
    below = shape.below
    for item in value:
        name = item_name(shape, item)
        if name is not None:
            found[name] = {} if name in found else _whole(below, item)
    return found


def _whole_object(shape: Shape, value: Json) -> FieldSet:
    # Hot: every field of every object that is created goes through here.
    found: FieldSet = {SELF: {}}
    fields = shape.fields
    for name, inner in value.items():
        known = fields.get(name) or shape.field(name)
        if known is None:
            found[f"f:{name}"] = _whole(shape.below, inner) if inner else {}
        elif known.form == LEAF or not inner:
            found[known.label] = {}
        else:
            found[known.label] = _whole(known, inner)
    for name, inner in shape.implied.items():
        if name not in value:
            found[f"f:{name}"] = _whole(shape.field(name) or shape.below, inner)
    return found


def named(shape: Shape, one: FieldSet) -> FieldSet:
    """Return the set with the known fields on the way to its members as members too.

    Structures have no owner, but are removed with the last field in them.
    """
    found: FieldSet = {}
    for name, branch in one.items():
        if not branch:
            found[name] = branch
            continue
        field = shape.field(name[2:]) if name[:2] == "f:" and shape.form == MAP else None
        below = named(field or shape.below, branch)
        found[name] = itself(below) if field is not None else below
    return found
