"""kubectl's JSONPath: what a template says of an object. Pure.

Members that are not there print nothing; an index beyond a list's end is an error, as with
kubectl. Objects and lists print as compact JSON with sorted keys.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, assert_never, cast, final

from kinform.cli.json_path_syntax import (
    Compare,
    Descend,
    Each,
    Field,
    JsonPathError,
    Literal,
    Node,
    Path,
    Range,
    Slice,
    Step,
    Union,
    parse,
)

__all__ = ["JsonPath", "JsonPathError"]

_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], object]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@final
class JsonPath:
    """A template, read once and applied to many objects.

    >>> JsonPath("{.a[*].b} {.c}").render({"a": [{"b": 1}, {"b": True}], "c": {"x": []}})
    '1 true {"x":[]}'

    Raises:
        JsonPathError: the template cannot be read.
    """

    __slots__ = ("_nodes", "text")

    def __init__(self, text: str) -> None:
        self.text: Final = text
        self._nodes = parse(text)

    def render(self, root: object) -> str:
        """Return the text that the template makes of ``root``.

        Raises:
            JsonPathError: an index is out of bounds, or asked of what is no list.
        """
        return "".join(self._texts(self._nodes, root))

    def find(self, root: object) -> list[object]:
        """Return the values that the template's paths lead to, in order; its texts are left out.

        Raises:
            JsonPathError: as `render`.
        """
        paths = [node for node in self._nodes if isinstance(node, Path)]
        return [value for path in paths for value in self._follow(path.steps, [root])]

    def _texts(self, nodes: Sequence[Node], here: object) -> Iterator[str]:
        for node in nodes:
            match node:
                case Literal(text):
                    yield str(text)
                case Path():
                    yield " ".join(map(as_text, self._follow(node.steps, [here])))
                case Range(over, body):
                    for value in self._follow(over.steps, [here]):
                        yield from self._texts(body, value)
                case _ as never:
                    assert_never(never)

    def _follow(self, steps: Sequence[Step], values: list[object]) -> list[object]:
        for step in steps:
            if isinstance(step, Union):
                ways = (self._follow(choice, values) for choice in step.choices)
                values = [found for way in ways for found in way]
            else:
                values = [found for value in values for found in self._take(step, value)]
        return values

    def _take(
        self, step: Field | Each | Descend | Slice | Compare, value: object
    ) -> Iterator[object]:
        match step:
            case Field(name):
                if isinstance(value, Mapping) and name in value:
                    yield value[name]
            case Each():
                yield from _children(value)
            case Descend():
                yield from _descendants(value)
            case Slice():
                yield from self._slice(step, value)
            case Compare():
                for item in _children(value):
                    if self._holds(step, item):
                        yield item
            case _ as never:
                assert_never(never)

    def _slice(self, step: Slice, value: object) -> Iterator[object]:
        if value is None:
            return
        if not isinstance(value, list):
            raise self._error(f"there is no list to index, but {_type_name(value)}")
        items = cast("list[object]", value)
        size = len(items)
        start = step.start or 0
        start += size if start < 0 else 0
        if not step.is_range:
            if not 0 <= start < size:
                raise self._error(f"index {step.start} is out of bounds: the list has {size} items")
            yield items[start]
            return
        stop = size if step.stop is None else step.stop + (size if step.stop < 0 else 0)
        if not 0 <= start <= stop <= size:
            raise self._error(f"the slice is out of bounds: the list has {size} items")
        yield from items[start : stop : step.step]

    def _holds(self, compare: Compare, item: object) -> bool:
        left = self._operand(compare.left, item)
        if compare.right is None:
            return bool(left)
        right = self._operand(compare.right, item)
        if not left or not right:
            return False  # what is not there equals nothing, and differs from nothing
        try:
            return bool(_COMPARISONS[compare.operator](left[0], right[0]))
        except TypeError:  # a text is neither more nor less than a number
            return False

    def _operand(self, operand: Path | Literal, item: object) -> list[object]:
        if isinstance(operand, Literal):
            return [operand.value]
        return self._follow(operand.steps, [item])

    def _error(self, message: str) -> JsonPathError:
        return JsonPathError(message, text=self.text)


def as_text(value: object) -> str:
    r"""Return a value as kubectl prints it: texts bare, all else as Go's JSON.

    >>> as_text("a<b"), as_text({"b": 1.0, "a": "<"})
    ('a<b', '{"a":"\\u003c","b":1}')
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    text = json.dumps(_whole(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _whole(value: object) -> object:
    """Return ``value`` with whole floats as integers: 1.0 prints as 1."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {str(k): _whole(v) for k, v in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list):
        return [_whole(item) for item in cast("list[object]", value)]
    return value


def _children(value: object) -> Iterator[object]:
    if isinstance(value, Mapping):
        yield from cast("Mapping[str, object]", value).values()
    elif isinstance(value, list):
        yield from cast("list[object]", value)


def _descendants(value: object) -> Iterator[object]:
    if isinstance(value, Mapping | list):
        yield cast("object", value)
        for child in _children(cast("object", value)):
            yield from _descendants(child)


def _type_name(value: object) -> str:
    if isinstance(value, Mapping):
        return "an object"
    return "a text" if isinstance(value, str) else "a plain value"
