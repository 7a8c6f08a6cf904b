r"""JSON paths of CustomResourceDefinitions: printer columns and selectable fields.

The paths are those of `kinform.sansio.json_path` without braces, such as
``.conditions[?(@.type=="Ready")].status``. A path that does not fit an object finds nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Final, cast, final

from kinform.apiserver.endpoints import work_budget
from kinform.apiserver.serializer.json_values import Json, JsonValue
from kinform.sansio import json_path
from kinform.sansio.json_path import Evaluator, Field, JsonPathError, Step

__all__ = ["ColumnPath", "compiled"]

_UNITS: Final = 10
"""The cost of a visit to a value."""


@final
class ColumnPath:
    """A parsed path. Finds values in objects and changes nothing."""

    __slots__ = ("_evaluator", "_keys", "_steps")

    def __init__(self, text: str, steps: Sequence[Step]) -> None:
        self._steps = steps
        self._evaluator = Evaluator(text, is_strict=True, spend=_spend)
        names = tuple(step.name for step in steps if isinstance(step, Field))
        self._keys = names if len(names) == len(steps) else None

    def find(self, obj: Json) -> list[JsonValue]:
        """Return the values at the path: none where nothing is found or the path does not fit.

        Raises:
            kinform.apiserver.endpoints.work_budget.Exhausted: the path visits more values than the
                budget allows.
        """
        if self._keys is None:
            try:
                return self._evaluator.follow(self._steps, [obj])
            except JsonPathError:
                return []
        value: JsonValue = obj
        for key in self._keys:
            if not isinstance(value, dict) or key not in value:
                return []
            value = cast("Json", value)[key]
        return [value]


def _spend(values: int) -> None:
    work_budget.spend(_UNITS * values)


@functools.lru_cache(maxsize=4096)
def compiled(path: str) -> ColumnPath:
    """Parse a path such as ``.spec.replicas``.

    Raises:
        ValueError: it is not one.
    """
    try:
        nodes = json_path.parse(f"{{{path}}}")
    except JsonPathError as exc:
        raise ValueError(str(exc)) from exc
    if len(nodes) != 1 or not isinstance(nodes[0], json_path.Path):
        raise ValueError(f"{path!r} is not one path")
    return ColumnPath(path, nodes[0].steps)
