"""Selectors: the client's parser and the server's, held against each other."""

# ruff: noqa: PT017 - a refusal is one of two valid results, and is checked where it is caught

from __future__ import annotations

import contextlib
import json

from kinform.apiserver.endpoints.status import StatusError
from kinform.apiserver.storage.selection_predicate import (
    SelectionPredicate,
    Term,
    parse_fields,
    parse_labels,
)
from kinform.selectors import FieldSelector, LabelSelector, Operator, SelectorError
from kinform.selectors.requirements import Requirement

_LABELS: tuple[dict[str, str], ...] = (
    {},
    {"a": "1"},
    {"a": "b", "c": ""},
    {"app": "web", "tier": "db", "x/y": "-5"},
    {"a": "9223372036854775807", "n": "007"},
)


def fuzz_label_selector(data: bytes) -> None:
    """Client and server read the same of any text, and what is written is read again as it was."""
    text = data.decode("utf-8", "replace")
    selector = _labels(text)
    asked = _asked_labels(text)
    assert (selector is None) is (asked is None), (selector, asked)
    if selector is None or asked is None:
        return
    assert LabelSelector(asked) == selector
    written = str(selector)
    assert LabelSelector.parse(written) == selector
    assert str(LabelSelector.parse(written)) == written
    again = parse_labels(written)
    assert LabelSelector(again) == selector
    for labels in _LABELS:
        is_met = selector.matches(labels)
        assert SelectionPredicate(labels=asked).fits(labels, {}) is is_met
        assert SelectionPredicate(labels=again).fits(labels, {}) is is_met


def _labels(text: str) -> LabelSelector | None:
    try:
        return LabelSelector.parse(text)
    except SelectorError as exc:
        assert exc.text == text
        assert exc.position is not None
        assert 0 <= exc.position <= len(text)
        return None


def _asked_labels(text: str) -> tuple[Requirement, ...] | None:
    try:
        return parse_labels(text)
    except StatusError as exc:
        assert exc.code == 400
        return None


def fuzz_field_selector(data: bytes) -> None:
    """Client and server accept the same selectors with the same meaning, and refuse the same."""
    text = data.decode("utf-8", "surrogateescape")
    asked = _asked_fields(text)
    try:
        selector = FieldSelector.parse(text)
    except SelectorError as exc:
        assert exc.text == text
        assert exc.position is not None
        assert 0 <= exc.position <= len(text)
        # Beyond the server's rules: a field must be one, and text must have a UTF-8 form.
        assert asked is None or "is not a field" in exc.message or "surrogate" in exc.message
        return
    assert asked is not None, text
    assert _terms(asked) == _wanted(selector)
    written = str(selector)
    assert FieldSelector.parse(written) == selector
    assert str(FieldSelector.parse(written)) == written
    assert _terms(parse_fields(written)) == _wanted(selector)
    fields = {term.field: term.value for term in asked if term.is_equal}
    is_met = SelectionPredicate(fields=asked).fits({}, fields)
    assert selector.matches(fields.get) is is_met


def _asked_fields(text: str) -> tuple[Term, ...] | None:
    try:
        return parse_fields(text)
    except StatusError as exc:
        assert exc.code == 400
        return None


def _terms(terms: tuple[Term, ...]) -> set[tuple[str, str, bool]]:
    return {(term.field, term.value, term.is_equal) for term in terms}


def _wanted(selector: FieldSelector) -> set[tuple[str, str, bool]]:
    return {(r.field, r.value, r.operator is Operator.EQUALS) for r in selector.requirements}


def fuzz_selector_objects(data: bytes) -> None:
    """A mapping is a selector that the server understands, or a SelectorError."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return
    with contextlib.suppress(SelectorError):
        selector = LabelSelector.of(value)
        assert LabelSelector(parse_labels(str(selector))) == selector
        assert LabelSelector.parse(str(selector)) == selector
    with contextlib.suppress(SelectorError):
        fields = FieldSelector.of(value)
        assert _terms(parse_fields(str(fields))) == _wanted(fields)
