"""Labels and the selectors on them."""

from __future__ import annotations

from typing import Final

import msgspec

from kinform.apiserver.scheme.field_errors import FieldError, Problem, forbidden, invalid, required
from kinform.apiserver.serializer.json_values import Json, as_list
from kinform.apiserver.validation.names import label_value, qualified_name

__all__ = [
    "check_annotations",
    "check_label_selector",
    "check_labels",
    "check_requirement_values",
    "in_order",
    "selector_matches",
    "shown_selector",
    "unsupported",
]

_ANNOTATIONS_LIMIT: Final = 256 * 1024


def unsupported(path: str, value: object, supported: tuple[str, ...]) -> FieldError:
    """Make the error of a value that is none of ``supported``, which are named in this order."""
    names = ", ".join(f'"{one}"' for one in supported)
    return FieldError(Problem.NOT_SUPPORTED, path, f"supported values: {names}", value)


def check_labels(labels: Json, path: str, errors: list[FieldError]) -> None:
    """Validate labels, or anything of their form such as a nodeSelector."""
    for key, value in labels.items():
        if problems := qualified_name(key):
            errors += [invalid(path, key, problem) for problem in problems]
        if problems := label_value(value or ""):
            errors += [invalid(path, value, problem) for problem in problems]


def check_annotations(annotations: Json, path: str, errors: list[FieldError]) -> None:
    """Validate annotations: their keys, in any case, and their size."""
    size = 0
    for key, value in annotations.items():
        if problems := qualified_name(key.lower()):
            errors += [invalid(path, key, problem) for problem in problems]
        size += len(key.encode()) + len((value or "").encode())
    if size > _ANNOTATIONS_LIMIT:
        detail = f"may not be more than {_ANNOTATIONS_LIMIT} bytes"
        errors.append(FieldError(Problem.TOO_LONG, path, detail))


def check_requirement_values(one: Json, path: str, errors: list[FieldError]) -> bool:
    """Validate operator and values of a selector's expression; False if the operator is unknown."""
    operator = one.get("operator") or ""
    if operator in {"In", "NotIn"}:
        if not one.get("values"):
            detail = "must be specified when `operator` is 'In' or 'NotIn'"
            errors.append(required(f"{path}.values", detail))
    elif operator in {"Exists", "DoesNotExist"}:
        if one.get("values"):
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            errors.append(forbidden(f"{path}.values", detail))
    else:
        return False
    return True


def check_label_selector(selector: Json, path: str, errors: list[FieldError]) -> None:
    """Validate a selector made of matchLabels and matchExpressions."""
    if labels := selector.get("matchLabels"):
        check_labels(labels, f"{path}.matchLabels", errors)
    for index, one in enumerate(selector.get("matchExpressions") or ()):
        at = f"{path}.matchExpressions[{index}]"
        if not check_requirement_values(one, at, errors):
            operator = one.get("operator") or ""
            errors.append(invalid(f"{at}.operator", operator, "not a valid selector operator"))
        key = one.get("key") or ""
        errors += [invalid(f"{at}.key", key, problem) for problem in qualified_name(key)]
        for place, value in enumerate(as_list(one.get("values"))):
            where = f"{at}.values[{place}]"
            errors += [invalid(where, value, problem) for problem in label_value(value)]


def selector_matches(selector: Json, labels: Json) -> bool:
    """Return whether a well-formed selector selects ``labels``. An empty one selects everything."""
    wanted: Json = selector.get("matchLabels") or {}
    if any(key not in labels or labels[key] != value for key, value in wanted.items()):
        return False
    return all(_holds(one, labels) for one in selector.get("matchExpressions") or ())


def in_order(value: object) -> msgspec.Raw:
    """Return a value that messages show with its fields in this order, not by name."""
    return msgspec.Raw(msgspec.json.encode(value))


def shown_selector(selector: Json | None) -> object:
    """Return a selector as messages show it: its labels by name."""
    if selector is None:
        return None
    shown: Json = {}
    if labels := selector.get("matchLabels"):
        shown["matchLabels"] = dict(sorted(labels.items()))
    if expressions := selector.get("matchExpressions"):
        fields = ("key", "operator", "values")
        shown["matchExpressions"] = [
            {field: one[field] for field in fields if field in one} for one in expressions
        ]
    return in_order(shown)


def _holds(one: Json, labels: Json) -> bool:
    key, values = one.get("key"), one.get("values") or ()
    match one.get("operator"):
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case _:
            return key not in labels
