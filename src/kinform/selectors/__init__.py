"""Label and field selectors: parse, match, render. Pure, for client and embedded server.

Rule 1: a selector that the server accepts is accepted, with apimachinery's meaning. Rule 2: a
selector that the server refuses is refused here, with the position and the expected token.
Rule 3: equal selectors have one text, so that the text can be a key.

>>> label_selector("tier notin (b, a),app==web"), label_selector({"app": "web"})
('app=web,tier notin (a,b)', 'app=web')
>>> field_selector({"metadata.name": "web-0"})
'metadata.name=web-0'
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from kinform.selectors.errors import SelectorError
from kinform.selectors.fields import FieldRequirement, FieldSelector
from kinform.selectors.labels import LabelSelector
from kinform.selectors.requirements import Operator, Requirement

__all__ = [
    "FieldRequirement",
    "FieldSelector",
    "FieldSelectorLike",
    "LabelSelector",
    "LabelSelectorLike",
    "Operator",
    "Requirement",
    "SelectorError",
    "field_selector",
    "label_selector",
]

LabelSelectorLike: TypeAlias = LabelSelector | Mapping[str, object] | str | None
"""Values accepted as a label selector: see `LabelSelector.of`."""
FieldSelectorLike: TypeAlias = FieldSelector | Mapping[str, str] | str | None
"""Values accepted as a field selector: see `FieldSelector.of`."""


def label_selector(value: LabelSelectorLike) -> str:
    """Return the canonical text of ``value`` for the query; ``""`` selects everything.

    Raises:
        SelectorError: if the server would refuse ``value``.
    """
    return str(LabelSelector.of(value))


def field_selector(value: FieldSelectorLike) -> str:
    """Return the canonical text of ``value`` for the query; ``""`` selects everything.

    The server decides which fields of a kind can be selected.

    Raises:
        SelectorError: if the server would refuse ``value``.
    """
    return str(FieldSelector.of(value))
