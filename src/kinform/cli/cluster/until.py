"""``--until``: the condition that ends a watch. Pure.

The forms are kubectl wait's: ``delete``, ``condition=Ready``, ``condition=Ready=False``,
``jsonpath={.status.phase}=Running``, ``jsonpath={.status.loadBalancer.ingress}``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Final, cast, final

from kinform.cli.output.json_path import JsonPath, JsonPathError, as_text
from kinform.objects.object import Object

__all__ = ["Until"]

_FORMS: Final = "delete, condition=NAME[=VALUE] or jsonpath={PATH}[=VALUE]"


@final
class Until:
    """A condition, and the objects that do not meet it yet.

    It is met when there is an object and all of them meet it; ``delete``, when none is left.

    Raises:
        ValueError: the text is not a condition.
        JsonPathError: its template cannot be read.
    """

    def __init__(self, text: str) -> None:
        self.text: Final = text
        self.is_delete: Final = text == "delete"
        self._test = _test_of(text)
        self._unmet: dict[Hashable, str] = {}
        self._met: set[Hashable] = set()

    def note(self, key: Hashable, obj: Object) -> None:
        """Record an object's state; ``key`` identifies it."""
        if self._test(obj.to_dict()):
            self._unmet.pop(key, None)
            self._met.add(key)
        else:
            self._met.discard(key)
            self._unmet[key] = str(obj.key)

    def forget(self, key: Hashable) -> None:
        """Record that an object was deleted."""
        self._unmet.pop(key, None)
        self._met.discard(key)

    @property
    def is_met(self) -> bool:
        """All existing objects meet the condition."""
        return not self._unmet if self.is_delete else bool(self._met) and not self._unmet

    def __str__(self) -> str:
        if not self._met and not self._unmet:
            return f"{self.text} is not met: no objects exist"
        first = sorted(self._unmet.values())[:3]
        named = ", ".join(first) + (", ..." if len(self._unmet) > len(first) else "")
        total = len(self._unmet) + len(self._met)
        return f"{self.text} is not met by {len(self._unmet)} of {total} objects: {named}"


def _test_of(text: str) -> Callable[[Mapping[str, object]], bool]:
    form, _, rest = text.partition("=")
    if text == "delete":
        return lambda _: False
    if form == "condition" and rest:
        name, _, value = rest.partition("=")
        return lambda obj: _has_condition(obj, name.lower(), (value or "true").lower())
    if form == "jsonpath" and rest:
        return _path_test(rest)
    raise ValueError(f"{text!r} is not a condition; expected {_FORMS}")


def _has_condition(obj: Mapping[str, object], name: str, value: str) -> bool:
    """Return whether a condition of the current generation has the value, ignoring case."""
    status = _members(obj.get("status"))
    generation = _members(obj.get("metadata")).get("generation")
    conditions = status.get("conditions")
    for each in cast("list[object]", conditions) if isinstance(conditions, list) else ():
        condition = _members(each)
        if str(condition.get("type")).lower() == name:
            observed = condition.get("observedGeneration", status.get("observedGeneration"))
            if isinstance(observed, int) and isinstance(generation, int) and observed < generation:
                return False
            return str(condition.get("status")).lower() == value
    return False


def _path_test(text: str) -> Callable[[Mapping[str, object]], bool]:
    template, value = _split_path(text)
    path = JsonPath(template)

    def test(obj: Mapping[str, object]) -> bool:
        try:
            found = path.find(obj)
        except JsonPathError:  # an index that is not there yet
            return False
        if value is None:
            return any(one is not None for one in found)
        return len(found) == 1 and as_text(found[0]) == value

    return test


def _split_path(text: str) -> tuple[str, str | None]:
    """Return the template and the value it shall have; a comparison may stand in the braces."""
    if text.startswith("{"):
        end = text.rfind("}") + 1
        template, rest = text[:end], text[end:]
        if rest and not rest.startswith("="):
            raise ValueError(f"{rest!r} after the jsonpath; expected =VALUE")
        return template, rest[1:] if rest else None
    template, equals, value = text.partition("=")
    return template, value if equals else None


def _members(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}
