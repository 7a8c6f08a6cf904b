"""The text of lists, labels, selectors and owners in one cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kinform.apiserver.serializer.json_values import Json, JsonValue, as_dict, as_list, at

__all__ = ["NONE", "containers", "few", "has_condition", "images", "labels", "or_none", "selector"]

NONE: Final = "<none>"
_EXPRESSIONS: Final = {
    "In": "{key} in ({values})",
    "NotIn": "{key} notin ({values})",
    "Exists": "{key}",
    "DoesNotExist": "!{key}",
}


def or_none(value: JsonValue) -> JsonValue:
    """Return the value, or ``<none>`` if there is none."""
    return value or NONE


def few(items: Sequence[str], *, limit: int = 3) -> str:
    """Return the first few items, and how many more there are.

    >>> few(["a", "b", "c", "d"])
    'a,b,c + 1 more...'
    """
    shown = ",".join(items[:limit])
    return shown if len(items) <= limit else f"{shown} + {len(items) - limit} more..."


def labels(value: object) -> str:
    """Return labels as a selector would have them, in alphabetical order."""
    pairs: Mapping[str, str] = as_dict(value)
    return ",".join([f"{key}={pairs[key]}" for key in sorted(pairs)]) or NONE


def selector(value: object) -> str:
    """Return a label selector (``matchLabels``, ``matchExpressions``) as text."""
    node = as_dict(value)
    terms = [(key, f"{key}={wanted}") for key, wanted in as_dict(node.get("matchLabels")).items()]
    for expression in as_list(node.get("matchExpressions")):
        form = _EXPRESSIONS.get(expression.get("operator", ""))
        if form is None:
            return "<error>"
        values = ",".join(sorted(as_list(expression.get("values"))))
        key: str = expression.get("key", "")
        terms.append((key, form.format(key=key, values=values)))
    # Of two terms with one key, labels precede expressions: the sort keeps their order.
    terms.sort(key=lambda term: term[0])
    return ",".join([text for _, text in terms]) or NONE


def containers(template: Json) -> str:
    """Return the names of a pod template's containers."""
    return ",".join([one.get("name", "") for one in as_list(at(template, "spec", "containers"))])


def images(template: Json) -> str:
    """Return the images of a pod template's containers."""
    return ",".join([one.get("image", "") for one in as_list(at(template, "spec", "containers"))])


def has_condition(obj: Json, name: str) -> bool:
    """Return whether a condition of the status is true."""
    return any(
        one.get("type") == name and one.get("status") == "True"
        for one in as_list(at(obj, "status", "conditions"))
    )
