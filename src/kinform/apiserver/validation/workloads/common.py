"""Rules common to the kinds that run pods: selectors, templates and percentages."""

from __future__ import annotations

from typing import Final

from kinform.apiserver.scheme.field_errors import FieldError, forbidden, invalid, required
from kinform.apiserver.serializer.json_values import Json, JsonValue, as_dict
from kinform.apiserver.validation.labels import (
    check_label_selector,
    selector_matches,
    unsupported,
)
from kinform.apiserver.validation.names import percent
from kinform.apiserver.validation.pods.probes import at_least_zero

__all__ = [
    "MISMATCH",
    "amount",
    "check_always",
    "check_counts",
    "check_match",
    "check_not_more",
    "check_selector",
    "check_share",
    "labels_of",
]

MISMATCH: Final = "`selector` does not match template `labels`"
"""The message about a template whose pods the selector does not match."""


def labels_of(template: Json) -> Json | None:
    """Return the labels a template gives, by name, None if it gives none."""
    labels: Json | None = as_dict(template.get("metadata")).get("labels")
    return dict(sorted(labels.items())) if labels else None


def check_selector(spec: Json, errors: list[FieldError], *, kind: str) -> bool:
    """Validate the selector itself; tell whether it is well-formed."""
    selector: Json | None = spec.get("selector")
    if selector is None:
        errors.append(required("spec.selector"))
        return True
    before = len(errors)
    check_label_selector(selector, "spec.selector", errors)
    is_well_formed = len(errors) == before
    if not (selector.get("matchLabels") or selector.get("matchExpressions")):
        detail = f"empty selector is invalid for {kind}"
        errors.append(invalid("spec.selector", selector, detail))
    return is_well_formed


def check_counts(spec: Json, errors: list[FieldError], *, fields: tuple[str, ...]) -> None:
    """Validate fields of a spec that count something."""
    for field in fields:
        at_least_zero(spec.get(field) or 0, f"spec.{field}", errors)


def check_match(spec: Json, errors: list[FieldError]) -> None:
    """Validate that a template makes pods that its owner will find."""
    selector: Json | None = spec.get("selector")
    labels = labels_of(as_dict(spec.get("template")))
    if selector is None or not selector_matches(selector, labels or {}):
        errors.append(invalid("spec.template.metadata.labels", labels, MISMATCH))


def check_always(spec: Json, errors: list[FieldError], *, kind: str) -> None:
    """Validate that the pods of a template are restarted always."""
    pod: Json = as_dict(spec.get("template")).get("spec") or {}
    policy = pod.get("restartPolicy") or ""
    if policy != "Always":
        errors.append(unsupported("spec.template.spec.restartPolicy", policy, ("Always",)))
    if pod.get("activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {kind} is not Supported"
        errors.append(forbidden("spec.template.spec.activeDeadlineSeconds", detail))


def check_share(value: JsonValue, path: str, errors: list[FieldError]) -> None:
    """Validate a number, or a share of one in percent."""
    if isinstance(value, str):
        errors += [invalid(path, value, problem) for problem in percent(value)]
    else:
        at_least_zero(value or 0, path, errors)


def check_not_more(value: JsonValue, path: str, errors: list[FieldError]) -> None:
    """Validate that a share is not more than everything."""
    if isinstance(value, str) and not percent(value) and int(value[:-1]) > 100:
        errors.append(invalid(path, value, "must not be greater than 100%"))


def amount(value: JsonValue) -> int:
    """Return the number in ``25%`` or in 25; what is malformed counts as nothing."""
    if isinstance(value, str):
        return 0 if percent(value) else int(value[:-1])
    return int(value or 0)
