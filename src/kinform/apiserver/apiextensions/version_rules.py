"""Rules for a version of a definition beyond its schema: columns, scale, selectable fields."""

from __future__ import annotations

import re
from typing import Final

from kinform.apiserver.apiextensions.schema.json_types import is_object
from kinform.apiserver.scheme import field_errors
from kinform.apiserver.scheme.field_errors import FieldError
from kinform.apiserver.serializer.json_values import Json, as_dict, as_list

__all__ = ["columns", "deprecation", "selectable_fields", "subresources"]

_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = (
    "byte", "date", "date-time", "double", "float", "int32", "int64", "password",
)  # fmt: skip
_SIMPLE_PATH: Final = "must be a simple json path starting with ."
_LONGEST_WARNING: Final = 256
_MOST_SELECTABLE: Final = 8


def deprecation(version: Json, path: str) -> list[FieldError]:
    """Validate the warning that clients of a deprecated version get."""
    warning = version.get("deprecationWarning")
    if warning is None:
        return []
    where = f"{path}.deprecationWarning"
    errors: list[FieldError] = []
    if version.get("deprecated") is not True:
        words = "can only be set for deprecated versions"
        errors.append(field_errors.invalid(where, warning, words))
    if len(warning) > _LONGEST_WARNING:
        words = f"must be <= {_LONGEST_WARNING} characters long"
        errors.append(field_errors.invalid(where, warning, words))
    if not warning:
        errors.append(field_errors.invalid(where, warning, "must not be an empty string"))
    strange = next((at for at, char in enumerate(warning) if not char.isprintable()), None)
    if strange is not None:
        words = (
            "must only contain printable UTF-8 characters; "
            f"non-printable character found at index {strange}"
        )
        errors.append(field_errors.invalid(where, warning, words))
    return errors


def columns(listed: object, path: str) -> list[FieldError]:
    """Validate the ``additionalPrinterColumns`` that are found at ``path``."""
    errors: list[FieldError] = []
    for index, column in enumerate(as_list(listed)):
        errors += _column(as_dict(column), f"{path}[{index}]")
    return errors


def _column(column: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if not column.get("name"):
        errors.append(field_errors.required(f"{path}.name"))
    kind = column.get("type")
    words = f"must be one of {','.join(_COLUMN_TYPES)}"
    if not kind:
        errors.append(field_errors.required(f"{path}.type", words))
    elif kind not in _COLUMN_TYPES:
        errors.append(field_errors.invalid(f"{path}.type", kind, words))
    form = column.get("format")
    if form and form not in _COLUMN_FORMATS:
        words = f"must be one of {','.join(_COLUMN_FORMATS)}"
        errors.append(field_errors.invalid(f"{path}.format", form, words))
    json_path = column.get("jsonPath")
    if not json_path:
        errors.append(field_errors.required(f"{path}.JSONPath"))
    elif not json_path.startswith("."):
        errors.append(field_errors.invalid(f"{path}.JSONPath", json_path, _SIMPLE_PATH))
    return errors


def subresources(enabled: object, path: str) -> list[FieldError]:
    """Validate the ``subresources`` that are found at ``path``."""
    scale = as_dict(enabled).get("scale")
    if scale is None:
        return []
    rules = (
        ("specReplicasPath", (".spec.",), "should be a json path under .spec"),
        ("statusReplicasPath", (".status.",), "should be a json path under .status"),
        (
            "labelSelectorPath",
            (".spec.", ".status."),
            "should be a json path under either .spec or .status",
        ),
    )
    errors: list[FieldError] = []
    for name, roots, words in rules:
        json_path = scale.get(name)
        where = f"{path}.scale.{name}"
        if not json_path:
            if name != "labelSelectorPath":
                errors.append(field_errors.required(where))
        elif not json_path.startswith("."):
            errors.append(field_errors.invalid(where, json_path, _SIMPLE_PATH))
        elif not json_path.startswith(roots):
            errors.append(field_errors.invalid(where, json_path, words))
    return errors


def selectable_fields(listed: object, path: str, schema: Json | None) -> list[FieldError]:
    """Validate the ``selectableFields`` that are found at ``path``, by the schema next to them."""
    fields = as_list(listed)
    if not fields:
        return []
    if schema is None:
        # the server's own words; the condition is that the schema is said in the same place
        schemas = "validations.schema is included"
        if path.startswith("spec.versions"):
            schemas = "`version.schema.openAPIV3Schema` is not included"
        return [field_errors.invalid(path, "", f"may only be set when {schemas}")]
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, one in enumerate(fields):
        json_path = as_dict(one).get("jsonPath") or ""
        where = f"{path}[{index}].jsonPath"
        errors += _selectable(json_path, where, schema)
        if json_path and json_path in seen:
            errors.append(field_errors.duplicate(where, json_path))
        seen.add(json_path)
    if len(seen) > _MOST_SELECTABLE:
        errors.append(field_errors.too_many(path, len(fields), _MOST_SELECTABLE))
    return errors


def _selectable(json_path: str, path: str, schema: Json) -> list[FieldError]:
    if not json_path:
        return [field_errors.required(path)]
    wrong = ""
    if not json_path.startswith((".", "[")):
        first = re.split(r"[.\[]", json_path)[0]
        wrong = f"expected [ or . but got: {first}"
    elif "[" in json_path:
        wrong = "array notation is not allowed"
    node = None if wrong else _at(schema, json_path)
    if node is None:
        words = f"is an invalid path: {wrong or 'does not refer to a valid field'}"
        return [field_errors.invalid(path, json_path, words)]
    if node.get("type") in {"string", "boolean", "integer"}:
        return []
    words = (
        "must point to a field of type string, boolean or integer. "
        "Enum string fields and strings with formats are allowed."
    )
    return [field_errors.invalid(path, json_path, words)]


def _at(schema: Json, json_path: str) -> Json | None:
    if json_path.startswith(".metadata"):
        return None
    node = schema
    for name in json_path[1:].split("."):
        below = as_dict(node.get("properties")).get(name, node.get("additionalProperties"))
        if not is_object(below):
            return None
        node = as_dict(below)
    return node
