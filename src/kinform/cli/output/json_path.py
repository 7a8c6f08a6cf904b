"""kubectl's JSONPath templates: the text that a template makes of an object. Pure.

Members that do not exist print nothing; an index beyond a list's end is an error, as with
kubectl. Objects and lists print as compact JSON with sorted keys.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, assert_never, cast, final

from kinform.sansio.json_path import Evaluator, JsonPathError, Literal, Node, Path, Range, parse

__all__ = ["JsonPath", "JsonPathError"]


@final
class JsonPath:
    """A template, read once and applied to many objects.

    >>> JsonPath("{.a[*].b} {.c}").render({"a": [{"b": 1}, {"b": True}], "c": {"x": []}})
    '1 true {"x":[]}'

    Raises:
        JsonPathError: the template cannot be read.
    """

    __slots__ = ("_evaluator", "_nodes", "text")

    def __init__(self, text: str) -> None:
        self.text: Final = text
        self._nodes = parse(text)
        self._evaluator = Evaluator(text)

    def render(self, root: object) -> str:
        """Return the text that the template makes of ``root``.

        Raises:
            JsonPathError: an index is out of bounds, or is applied to something else than a list.
        """
        return "".join(self._texts(self._nodes, root))

    def find(self, root: object) -> list[object]:
        """Return the values that the template's paths lead to, in order; its texts are left out.

        Raises:
            JsonPathError: as `render`.
        """
        paths = [node for node in self._nodes if isinstance(node, Path)]
        return [value for path in paths for value in self._evaluator.follow(path.steps, [root])]

    def _texts(self, nodes: Sequence[Node], here: object) -> Iterator[str]:
        for node in nodes:
            match node:
                case Literal(text):
                    yield str(text)
                case Path():
                    yield " ".join(map(as_text, self._evaluator.follow(node.steps, [here])))
                case Range(over, body):
                    for value in self._evaluator.follow(over.steps, [here]):
                        yield from self._texts(body, value)
                case _ as never:
                    assert_never(never)


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
