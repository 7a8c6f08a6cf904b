"""Policies of a Job: which failures of its pods count, and when it has succeeded."""

from __future__ import annotations

from typing import Final

import msgspec

from kinform.apiserver.scheme.field_errors import FieldError, duplicate, invalid, required
from kinform.apiserver.serializer.json_values import Json, as_list
from kinform.apiserver.validation.labels import in_order, unsupported
from kinform.apiserver.validation.names import qualified_name

__all__ = ["check_failures", "check_success", "shown_failures"]

_ACTIONS: Final = ("Count", "FailIndex", "FailJob", "Ignore")
_STATUSES: Final = ("False", "True", "Unknown")


def check_failures(spec: Json, path: str, errors: list[FieldError]) -> None:
    """Validate the rules for failed pods."""
    pod: Json = spec["template"]["spec"]
    names = {
        one.get("name") for kind in ("containers", "initContainers") for one in pod.get(kind) or ()
    }
    for index, rule in enumerate(spec["podFailurePolicy"].get("rules") or ()):
        at = f"{path}.rules[{index}]"
        action = rule.get("action") or ""
        if not action:
            errors.append(required(f"{at}.action"))
        elif action not in _ACTIONS:
            errors.append(unsupported(f"{at}.action", action, _ACTIONS))
        elif action == "FailIndex" and "backoffLimitPerIndex" not in spec:
            detail = "requires the backoffLimitPerIndex to be set"
            errors.append(invalid(f"{at}.action", action, detail))
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions")
        if codes is not None:
            _check_codes(codes, f"{at}.onExitCodes", errors, names=names)
        if conditions:
            _check_conditions(conditions, f"{at}.onPodConditions", errors)
        _check_one_cause(at, errors, given=(codes is not None) + bool(conditions))


def _check_one_cause(path: str, errors: list[FieldError], *, given: int) -> None:
    """Validate that a rule has one cause; the error shows a fixed text instead of a value."""
    text = b""
    if given == 0:
        text = b"specifying one of OnExitCodes and OnPodConditions is required"
    elif given > 1:
        text = b"specifying both OnExitCodes and OnPodConditions is not supported"
    if text:
        errors.append(invalid(path, msgspec.Raw(text), ""))


def _check_codes(
    codes: Json, path: str, errors: list[FieldError], *, names: set[str | None]
) -> None:
    operator, values = codes.get("operator") or "", as_list(codes.get("values"))
    if operator not in {"In", "NotIn"}:
        errors.append(unsupported(f"{path}.operator", operator, ("In", "NotIn")))
    if (name := codes.get("containerName")) is not None and name not in names:
        detail = "must be one of the container or initContainer names in the pod template"
        errors.append(invalid(f"{path}.containerName", name, detail))
    if not values:
        errors.append(invalid(f"{path}.values", [], "at least one value is required"))
    seen: set[int] = set()
    for index, value in enumerate(values):
        at = f"{path}.values[{index}]"
        if value == 0 and operator == "In":
            errors.append(invalid(at, 0, "must not be 0 for the In operator"))
        if value in seen:
            errors.append(duplicate(at, value))
        seen.add(value)
    if values != sorted(values):
        errors.append(invalid(f"{path}.values", values, "must be ordered"))


def _check_conditions(conditions: list[Json], path: str, errors: list[FieldError]) -> None:
    for index, condition in enumerate(conditions):
        at = f"{path}[{index}]"
        kind, status = condition.get("type") or "", condition.get("status") or ""
        errors += [invalid(f"{at}.type", kind, problem) for problem in qualified_name(kind)]
        if status not in _STATUSES:
            errors.append(unsupported(f"{at}.status", status, _STATUSES))


def check_success(spec: Json, path: str, errors: list[FieldError]) -> None:
    """Validate the rules for an early success."""
    rules: list[Json] = spec["successPolicy"].get("rules") or []
    if spec.get("completionMode") != "Indexed":
        shown = {"Rules": [_shown_success(rule) for rule in rules]}
        errors.append(invalid(path, in_order(shown), "requires indexed completion mode"))
        return
    if not rules:
        errors.append(required(f"{path}.rules", "at least one rules must be specified"))
    completions = spec.get("completions") or 0
    for index, rule in enumerate(rules):
        at = f"{path}.rules[{index}]"
        count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
        if count is None and indexes is None:
            detail = "at least one of succeededCount or succeededIndexes must be specified"
            errors.append(required(at, detail))
        if indexes is not None and (problem := _index_problem(indexes, completions)):
            detail = f"error parsing succeededIndexes: {problem}"
            errors.append(invalid(f"{at}.succeededIndexes", indexes, detail))
        elif count is not None and count <= 0:
            detail = "must be greater than zero"
            errors.append(invalid(f"{at}.succeededCount", count, detail))


def _index_problem(indexes: str, completions: int) -> str:
    """Return the errors of a list such as ``0,2-4``, ``""`` if nothing is."""
    last = -1
    for part in indexes.split(","):
        for text in part.split("-"):
            if not text.isascii() or not text.isdigit():
                return f'cannot convert string to integer for index: "{text}"'
            if int(text) >= completions:
                return f'too large index: "{text}"'
            if int(text) <= last:
                return f"non-increasing order, previous: {last}, current: {int(text)}"
            last = int(text)
    return ""


def _shown_success(rule: Json) -> Json:
    return {
        "SucceededIndexes": rule.get("succeededIndexes"),
        "SucceededCount": rule.get("succeededCount"),
    }


def shown_failures(policy: Json) -> Json:
    """Return a podFailurePolicy as the server prints it in a message."""
    return {"Rules": [_shown_failure(rule) for rule in policy.get("rules") or ()]}


def _shown_failure(rule: Json) -> Json:
    codes: Json | None = rule.get("onExitCodes")
    conditions: list[Json] | None = rule.get("onPodConditions")
    return {
        "Action": rule.get("action") or "",
        "OnExitCodes": codes
        and {
            "ContainerName": codes.get("containerName"),
            "Operator": codes.get("operator") or "",
            "Values": codes.get("values"),
        },
        "OnPodConditions": conditions
        and [{"Type": one.get("type"), "Status": one.get("status")} for one in conditions],
    }
