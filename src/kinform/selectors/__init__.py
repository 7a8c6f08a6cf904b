"""Label and field selectors: parse, match, render. Pure, and the same on both ends of the wire.

Rule 1: what the server would accept and understand is accepted, with the meaning apimachinery
gives it. Rule 2: what the server would refuse is refused here, with the place and what was
expected. Rule 3: equal selectors have one text, so that it can be a key.

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
"""What stands for a label selector: see `LabelSelector.of`."""
FieldSelectorLike: TypeAlias = FieldSelector | Mapping[str, str] | str | None
"""What stands for a field selector: see `FieldSelector.of`."""


def label_selector(value: LabelSelectorLike) -> str:
    """Return the canonical text of ``value`` for the query; ``""`` selects everything.

    Raises:
        SelectorError: if ``value`` is no selector that the server would take.
    """
    return str(LabelSelector.of(value))


def field_selector(value: FieldSelectorLike) -> str:
    """Return the canonical text of ``value`` for the query; ``""`` selects everything.

    Which fields a kind can be selected by is the server's to say.

    Raises:
        SelectorError: if ``value`` is no selector that the server would take.
    """
    return str(FieldSelector.of(value))
