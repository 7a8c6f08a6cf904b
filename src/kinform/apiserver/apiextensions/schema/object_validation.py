"""Validation of custom objects against their schema.

Rule 1: every part is checked, so that all errors are reported at once.
Rule 2: what was wrong before and has not changed is tolerated (`validate_update`), so that a
definition can become stricter without locking the objects that there are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias, final

from kinform.apiserver.apiextensions import embedded_resources, scale
from kinform.apiserver.apiextensions.schema import formats, keywords, list_types, structural
from kinform.apiserver.apiextensions.schema.json_types import is_list, is_object
from kinform.apiserver.apiextensions.schema.keywords import Errors, Rule
from kinform.apiserver.endpoints import work_budget
from kinform.apiserver.scheme.field_errors import FieldError
from kinform.apiserver.scheme.kind_registry import Kind
from kinform.apiserver.serializer.json_values import Json, JsonValue, as_dict, as_list

__all__ = ["problems", "validate", "validate_update"]


def validate(kind: Kind, schema: Json, obj: Json) -> list[FieldError]:
    """Return the errors of a new object, its metadata aside."""
    node = structural.compiled(schema)
    errors: Errors = []
    _checker(node).check(obj, "", errors)
    errors += _scale_errors(kind, obj)
    errors += embedded_resources.problems(node, obj)
    errors += list_types.duplicates(node, obj)
    return errors


def validate_update(  # noqa: PLR0917 - what it is an object of, and the two states of it
    kind: Kind, schema: Json, new: Json, old: Json
) -> list[FieldError]:
    """Return the errors of ``new`` and was not already so in ``old``.

    A part is the same part if it is the same field of an object, or has the same keys in a list
    of type map. Items of other lists have no identity: to change one is to change all.
    """
    node = structural.compiled(schema)
    errors: Errors = []
    checker = _checker(node)
    body = _without_metadata(new), _without_metadata(old)
    checker.ratchet(*body, path="", errors=errors)
    errors += _scale_errors(kind, new)
    errors += embedded_resources.problems(node, new)
    if not list_types.duplicates(node, old):
        errors += list_types.duplicates(node, new)
    return errors


def _without_metadata(obj: Json) -> Json:
    """Return an object with its name alone: the server changes other metadata at each write."""
    meta = as_dict(obj.get("metadata"))
    kept = {name: meta[name] for name in ("name", "generateName") if name in meta}
    return {**obj, "metadata": kept}


def problems(schema: Json, value: JsonValue, path: str) -> list[FieldError]:
    """Return the errors of a value by itself, such as a default, at a path of its own."""
    errors: Errors = []
    _checker(structural.compiled(schema)).check(value, path, errors)
    return errors


def _scale_errors(kind: Kind, obj: Json) -> list[FieldError]:
    if kind.custom is None or kind.custom.scale is None:
        return []
    return scale.problems(kind.custom.scale, obj)


@final
class _Checker:
    """A node with its rules. Children are made when a value first reaches them."""

    __slots__ = ("_after", "_before", "_children", "_has_children", "_is_leaf", "_items", "node")

    def __init__(self, node: structural.Node) -> None:
        self.node: Final = node
        before, after = keywords.of_containers(node)
        values = keywords.of_values(node)
        # junctors come right after the type
        place = 1 if node.types else 0
        self._before: Final[tuple[Rule, ...]] = (
            *values[:place],
            *_junctor_rules(node.raw),
            *values[place:],
            *before,
        )
        self._after: Final[tuple[Rule, ...]] = tuple(after)
        self._children: Final[dict[str, _Checker]] = {}
        self._items: _Checker | None = None
        self._has_children: Final = bool(node.properties) or node.values is not None
        self._is_leaf: Final = not (self._has_children or after or node.items)

    def child(self, name: str) -> _Checker | None:
        """Return what checks a field of an object, None if nothing does."""
        found = self._children.get(name)
        if found is None:
            node = self.node.properties.get(name)
            if node is None:
                if self.node.values is None:
                    return None
                # all keys of a map share one, kept under a name that no property can have
                found = self._children.get("\0")
                if found is None:
                    found = self._children["\0"] = _Checker(self.node.values)
                return found
            found = self._children[name] = _Checker(node)
        return found

    @property
    def items(self) -> _Checker | None:
        """The checker of a list's items."""
        if self._items is None and self.node.items is not None:
            self._items = _Checker(self.node.items)
        return self._items

    def check(self, value: JsonValue, path: str, errors: Errors) -> None:
        """Put into ``errors`` all that is wrong with a value and below it."""
        for rule in self._before:
            rule(value, path, errors)
        if self._is_leaf:
            return
        if is_object(value):
            if self._has_children:
                prefix = f"{path}." if path else ""
                known = self._children
                for name, item in value.items():
                    checker = known.get(name) or self.child(name)
                    if checker is not None:
                        checker.check(item, prefix + name, errors)
        elif is_list(value):
            checker = self.items
            if checker is not None:
                for index, item in enumerate(as_list(value)):
                    checker.check(item, f"{path}[{index}]", errors)
        for rule in self._after:
            rule(value, path, errors)

    def ratchet(self, new: JsonValue, old: JsonValue, *, path: str, errors: Errors) -> None:
        """Put into ``errors`` what is wrong with what has changed."""
        if list_types.unchanged(self.node, new, old):
            return
        for rule in self._before:
            rule(new, path, errors)
        if is_object(new):
            self._ratchet_object(new, as_dict(old), path=path, errors=errors)
        elif is_list(new):
            self._ratchet_list(as_list(new), as_list(old), path=path, errors=errors)
        for rule in self._after:
            rule(new, path, errors)

    def _ratchet_object(self, new: Json, old: Json, *, path: str, errors: Errors) -> None:
        for name, item in new.items():
            checker = self.child(name)
            if checker is None:
                continue
            where = f"{path}.{name}" if path else name
            if name in old:
                checker.ratchet(item, old[name], path=where, errors=errors)
            else:
                checker.check(item, where, errors)

    def _ratchet_list(
        self, new: list[JsonValue], old: list[JsonValue], *, path: str, errors: Errors
    ) -> None:
        checker = self.items
        if checker is None:
            return
        before = list_types.by_keys(self.node, old)
        for index, item in enumerate(new):
            where = f"{path}[{index}]"
            key = list_types.key_of(self.node, item)
            if key is not None and key in before:
                checker.ratchet(item, before[key], path=where, errors=errors)
            else:
                checker.check(item, where, errors)


_checkers: Final[dict[int, _Checker]] = {}


def _checker(node: structural.Node) -> _Checker:
    """Return the checker of a root; forgotten ones are made again."""
    key = id(node)
    found = _checkers.get(key)
    if found is None or found.node is not node:
        if len(_checkers) >= structural.KEPT:
            _checkers.clear()
        found = _checkers[key] = _Checker(node)
    return found


# --- junctors ---------------------------------------------------------------------------------

_UNITS: Final = 20
"""The cost of checking one part of a value against an alternative."""
_Judge: TypeAlias = Callable[[JsonValue, str], tuple[Errors, int]]
"""Tells what is wrong, and how much of the alternative there was to look at."""


def _judge(raw: Json) -> _Judge:
    checker = _Checker(structural.Node(raw))

    def judge(value: JsonValue, path: str) -> tuple[Errors, int]:
        errors: Errors = []
        weight = _weight(checker.node, value)
        work_budget.spend(_UNITS * weight)
        checker.check(value, path, errors)
        return errors, weight

    return judge


def _weight(node: structural.Node, value: JsonValue) -> int:
    """Return how many parts of a value an alternative looks at.

    Of alternatives that all fail, the server shows the complaints of the weightiest.
    """
    has_format = isinstance(value, str) and node.raw.get("format") in formats.CHECKED
    weight = 1 + int(has_format)
    if is_object(value):
        for name, item in value.items():
            child = node.child(name)
            if child is not None:
                weight += _weight(child, item)
    elif is_list(value) and node.items is not None:
        items = node.items
        weight += sum(_weight(items, item) for item in as_list(value))
    return weight


def _junctor_rules(raw: Json) -> list[Rule]:
    found: list[Rule] = []
    for name, make in (("anyOf", _any_of), ("oneOf", _one_of), ("allOf", _all_of)):
        if raw.get(name):
            found.append(make([_judge(as_dict(one)) for one in as_list(raw[name])]))
    if is_object(raw.get("not")):
        found.append(_not(_judge(as_dict(raw["not"]))))
    return found


def _any_of(judges: list[_Judge]) -> Rule:
    def check(value: JsonValue, path: str, errors: Errors) -> None:
        failures = _failures(judges, value, path)
        if len(failures) == len(judges):
            detail = f'"{path}" must validate at least one schema (anyOf)'
            errors.append(keywords.without_field(detail))
            errors.extend(_weightiest(failures))

    return check


def _one_of(judges: list[_Judge]) -> Rule:
    def check(value: JsonValue, path: str, errors: Errors) -> None:
        failures = _failures(judges, value, path)
        good = len(judges) - len(failures)
        if good == 1:
            return
        how_many = f"Found {good} valid alternatives" if good else "Found none valid"
        detail = f'"{path}" must validate one and only one schema (oneOf). {how_many}'
        errors.append(keywords.without_field(detail))
        if not good:
            errors.extend(_weightiest(failures))

    return check


def _all_of(judges: list[_Judge]) -> Rule:
    def check(value: JsonValue, path: str, errors: Errors) -> None:
        failures = _failures(judges, value, path)
        if not failures:
            return
        for failed, _ in failures:
            errors.extend(failed)
        none = ". None validated" if len(failures) == len(judges) else ""
        detail = f'"{path}" must validate all the schemas (allOf){none}'
        errors.append(keywords.without_field(detail))

    return check


def _not(judge: _Judge) -> Rule:
    def check(value: JsonValue, path: str, errors: Errors) -> None:
        if not judge(value, path)[0]:
            errors.append(keywords.without_field(f'"{path}" must not validate the schema (not)'))

    return check


def _failures(judges: list[_Judge], value: JsonValue, path: str) -> list[tuple[Errors, int]]:
    judged = (judge(value, path) for judge in judges)
    return [(errors, weight) for errors, weight in judged if errors]


def _weightiest(failures: list[tuple[Errors, int]]) -> Errors:
    return max(failures, key=lambda failure: failure[1])[0]
