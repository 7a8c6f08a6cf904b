"""Rules for the schema of a definition: it must be structural, and its defaults must match it.

Three looks, as the server takes them: at the structure (`_structure`), at keywords that are not
allowed or do not fit together (`_keywords`), and, if the structure is good, at the defaults.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from kinform.apiserver.apiextensions import embedded_resources
from kinform.apiserver.apiextensions.schema import (
    collection_rules,
    object_validation,
    patterns,
    pruning,
    structural,
)
from kinform.apiserver.apiextensions.schema.json_types import is_list, is_object
from kinform.apiserver.scheme import field_errors
from kinform.apiserver.scheme.field_errors import FieldError
from kinform.apiserver.serializer.json_values import Json, as_dict, as_list

__all__ = ["parts", "problems"]

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_UNSUPPORTED: Final = (
    "definitions", "dependencies", "patternProperties", "additionalItems", "id", "$ref",
)  # fmt: skip
_MUST_BE_FALSE: Final = (
    "nullable", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
)  # fmt: skip
_MUST_BE_EMPTY: Final = (
    "description", "title", "type", "x-kubernetes-list-map-keys", "x-kubernetes-validations",
)  # fmt: skip
_MUST_BE_UNDEFINED: Final = (
    "additionalProperties", "default", "x-kubernetes-list-type", "x-kubernetes-map-type",
)  # fmt: skip
_SINGLE: Final = ("items", "additionalProperties", "not")
_JUNCTORS: Final = ("allOf", "anyOf", "oneOf")
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_REASONS: Final = (
    "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired",
)  # fmt: skip


def problems(schema: Json, path: str) -> list[FieldError]:
    """Return the errors of an ``openAPIV3Schema`` that is found at ``path``."""
    if any(one.get("$schema") for one in _every(schema)):
        words = "OpenAPIV3Schema 'schema' is not supported"
        return [field_errors.invalid(path, "", words)]
    keywords: list[FieldError] = []
    if schema.get("nullable") is True:
        keywords.append(
            field_errors.forbidden(f"{path}.nullable", "nullable cannot be true at the root")
        )
    keywords += _keywords(schema, path)
    if any(map(_is_unsupported, _every(schema))):
        return keywords
    structure = sorted(_root(schema, path) + _structure(schema, path), key=str)
    if not structure:
        structure = _defaults(schema, path, is_root=True)
    return structure + keywords


def _children(schema: Json, path: str) -> list[tuple[Json, str]]:
    """Return the schemas of the parts of a value, with their paths."""
    found = [
        (as_dict(child), f"{path}.properties[{name}]")
        for name, child in as_dict(schema.get("properties")).items()
    ]
    given = (name for name in _SINGLE[:2] if is_object(schema.get(name)))
    return [*found, *((as_dict(schema[name]), f"{path}.{name}") for name in given)]


def _junctors(schema: Json, path: str) -> list[tuple[Json, str]]:
    """Return the alternatives of a schema, with their paths."""
    found = [
        (as_dict(one), f"{path}.{name}[{index}]")
        for name in _JUNCTORS
        for index, one in enumerate(as_list(schema.get(name)))
    ]
    if is_object(schema.get("not")):
        found.append((schema["not"], f"{path}.not"))
    return found


def _every(schema: Json) -> Iterator[Json]:
    """Yield a schema and all schemas in it."""
    waiting = [schema]
    while waiting:
        here = waiting.pop()
        yield here
        waiting += map(as_dict, as_dict(here.get("properties")).values())
        waiting += (here[name] for name in _SINGLE if is_object(here.get(name)))
        for name in _JUNCTORS:
            if name in here:
                waiting += map(as_dict, as_list(here[name]))


def _is_unsupported(schema: Json) -> bool:
    return is_list(schema.get("items")) or any(schema.get(name) for name in _UNSUPPORTED)


# --- structure --------------------------------------------------------------------------------


def _root(schema: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    kind = schema.get("type")
    if not kind:
        errors.append(field_errors.required(f"{path}.type", "must not be empty at the root"))
    elif kind != "object":
        wrong = field_errors.invalid(f"{path}.type", kind, "must be object at the root")
        errors.append(wrong)
    if schema.get("additionalProperties") is not None:
        where = f"{path}.additionalProperties"
        errors.append(field_errors.forbidden(where, "must not be used at the root"))
    metadata = as_dict(schema.get("properties")).get("metadata")
    if metadata is not None and as_dict(metadata).get("type") == "object":
        errors += _root_metadata(as_dict(metadata), f"{path}.properties[metadata]")
    return errors + _identity(schema, path)


def _root_metadata(metadata: Json, path: str) -> list[FieldError]:
    if metadata.get("default") is not None:
        words = "must not be set in top-level metadata"
        return [field_errors.forbidden(f"{path}.default", words)]
    allowed = {"type", "properties", "description", "title"}
    fields = as_dict(metadata.get("properties")).keys()
    if fields <= {"name", "generateName"} and metadata.keys() <= allowed:
        return []
    words = (
        "must not specify anything other than name and generateName, "
        "but metadata is implicitly specified"
    )
    return [field_errors.forbidden(path, words)]


def _identity(schema: Json, path: str) -> list[FieldError]:
    """Validate the fields that every resource has, at the root or embedded."""
    errors: list[FieldError] = []
    known = as_dict(schema.get("properties"))
    for name, wanted in (("metadata", "object"), ("apiVersion", "string"), ("kind", "string")):
        kind = as_dict(known.get(name)).get("type")
        if name in known and kind and kind != wanted:
            where = f"{path}.properties[{name}].type"
            errors.append(field_errors.invalid(where, kind, f"must be {wanted}"))
    return errors


def _structure(schema: Json, path: str) -> list[FieldError]:
    errors = _extensions(schema, path) + _pattern(schema, path)
    for child, where in _children(schema, path):
        errors += _typed(child, where)
        errors += _structure(child, where)
    if schema.get("type") == "array" and not schema.get("items") and schema.get("items") != {}:
        errors.append(field_errors.required(f"{path}.items", "must be specified"))
    for child, where in _junctors(schema, path):
        errors += _alternative(child, where, allows_type=_is_int_or_string(schema, child, where))
    return errors


def _typed(schema: Json, path: str) -> list[FieldError]:
    is_free = any(
        schema.get(f"x-kubernetes-{name}")
        for name in ("int-or-string", "preserve-unknown-fields", "embedded-resource")
    )
    if schema.get("type") or is_free:
        return []
    what = "array items" if path.endswith(".items") else "object fields"
    return [field_errors.required(f"{path}.type", f"must not be empty for specified {what}")]


def _extensions(schema: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    preserves = schema.get("x-kubernetes-preserve-unknown-fields")
    if schema.get("x-kubernetes-int-or-string") and preserves:
        where = f"{path}.x-kubernetes-preserve-unknown-fields"
        words = "must be false if x-kubernetes-int-or-string is true"
        errors.append(field_errors.invalid(where, value=True, detail=words))
    if not schema.get("x-kubernetes-embedded-resource"):
        return errors
    kind = schema.get("type")
    words = "must be object if x-kubernetes-embedded-resource is true"
    if not kind:
        errors.append(field_errors.required(f"{path}.type", words))
    elif kind != "object":
        errors.append(field_errors.invalid(f"{path}.type", kind, words))
    if not preserves and not schema.get("properties"):
        words = (
            "must not be empty if x-kubernetes-embedded-resource is true "
            "without x-kubernetes-preserve-unknown-fields"
        )
        errors.append(field_errors.required(f"{path}.properties", words))
    if schema.get("additionalProperties") is not None:
        words = "must not be used if x-kubernetes-embedded-resource is set"
        errors.append(field_errors.forbidden(f"{path}.additionalProperties", words))
    return errors + _identity(schema, path)


def _pattern(schema: Json, path: str) -> list[FieldError]:
    pattern = schema.get("pattern") or ""
    wrong = patterns.complaint(pattern)
    if not wrong:
        return []
    words = f"must be a valid regular expression, but isn't: {wrong}"
    return [field_errors.invalid(f"{path}.pattern", pattern, words)]


def _is_int_or_string(schema: Json, child: Json, path: str) -> bool:
    """Return whether an alternative is the one place where types may stand in a junctor."""
    if not schema.get("x-kubernetes-int-or-string"):
        return False
    in_any_of = schema.get("anyOf") == _INT_OR_STRING and ".anyOf[" in path
    return in_any_of or (path.endswith(".allOf[0]") and child.get("anyOf") == _INT_OR_STRING)


def _alternative(schema: Json, path: str, *, allows_type: bool = False) -> list[FieldError]:
    """Validate a schema inside of a junctor: it may restrict values, not describe them."""
    errors = _pattern(schema, path)
    for names, words in (
        (_MUST_BE_FALSE, "must be false to be structural"),
        (_MUST_BE_EMPTY, "must be empty to be structural"),
        (_MUST_BE_UNDEFINED, "must be undefined to be structural"),
    ):
        for name in names:
            is_set = schema.get(name) if words.startswith("must be e") else name in schema
            if is_set and schema.get(name) is not False and not (allows_type and name == "type"):
                errors.append(field_errors.forbidden(f"{path}.{name}", words))
    for child, where in _children(schema, path):
        if not where.endswith(".additionalProperties"):
            errors += _alternative(child, where)
    for child, where in _junctors(schema, path):
        in_any_of = allows_type and schema.get("anyOf") == _INT_OR_STRING and ".anyOf[" in where
        errors += _alternative(child, where, allows_type=in_any_of)
    return errors


# --- keywords ---------------------------------------------------------------------------------


def _keywords(schema: Json, path: str) -> list[FieldError]:
    errors = _types(schema, path)
    for name in _UNSUPPORTED:
        if schema.get(name):
            errors.append(field_errors.forbidden(f"{path}.{name}", f"{name} is not supported"))
    if schema.get("uniqueItems") is True:
        words = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        errors.append(field_errors.forbidden(f"{path}.uniqueItems", words))
    more = schema.get("additionalProperties")
    if schema.get("properties") and more is not None and more is not True:
        words = "additionalProperties and properties are mutual exclusive"
        errors.append(field_errors.forbidden(f"{path}.additionalProperties", words))
    if is_list(schema.get("items")):
        words = "items must be a schema object and not an array"
        errors.append(field_errors.forbidden(f"{path}.items", words))
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        where = f"{path}.x-kubernetes-preserve-unknown-fields"
        errors.append(field_errors.invalid(where, value=False, detail="must be true or undefined"))
    errors += collection_rules.problems(schema, path) + _validations(schema, path)
    for child, where in parts(schema, path):
        errors += _keywords(child, where)
    return errors


def _types(schema: Json, path: str) -> list[FieldError]:
    kind = schema.get("type")
    where = f"{path}.type"
    if not kind or kind in _TYPES:
        return []
    errors = [field_errors.not_supported(where, kind, _TYPES)]
    if kind == "null":
        words = "type cannot be set to null, use nullable as an alternative"
        errors.append(field_errors.forbidden(where, words))
    return errors


def _validations(schema: Json, path: str) -> list[FieldError]:
    """Validate the frame of CEL rules; the expressions are not read."""
    errors: list[FieldError] = []
    for index, rule in enumerate(as_list(schema.get("x-kubernetes-validations"))):
        where = f"{path}.x-kubernetes-validations[{index}]"
        if not (rule.get("rule") or "").strip():
            errors.append(field_errors.required(f"{where}.rule", "rule is not specified"))
        message = rule.get("message") or ""
        if message and not message.strip():
            words = "must be non-empty if specified"
            errors.append(field_errors.invalid(f"{where}.message", message, words))
        elif "\n" in message.strip():
            words = "must not contain line breaks"
            errors.append(field_errors.invalid(f"{where}.message", message, words))
        reason = rule.get("reason")
        if reason is not None and reason not in _REASONS:
            errors.append(field_errors.not_supported(f"{where}.reason", reason, _REASONS))
    return errors


# --- defaults ---------------------------------------------------------------------------------


def _defaults(schema: Json, path: str, *, is_root: bool = False) -> list[FieldError]:
    errors: list[FieldError] = []
    default = schema.get("default")
    if default is not None:
        errors += _default(schema, f"{path}.default", is_resource=is_root)
    for child, where in _children(schema, path):
        errors += _defaults(child, where)
    return errors


def _default(schema: Json, path: str, *, is_resource: bool) -> list[FieldError]:
    default = schema["default"]
    if pruning.has_unknown(schema, default):
        # Go prints maps in the order of their keys
        shown = msgspec.json.decode(msgspec.json.encode(default, order="sorted"))
        return [field_errors.invalid(path, shown, "must not have unknown fields")]
    errors = object_validation.problems(schema, default, "")
    node = structural.compiled(schema)
    if is_object(default):
        if is_resource:
            errors += embedded_resources.of_resource(as_dict(default), "")
        else:
            errors += embedded_resources.problems(node, as_dict(default))
    return [
        FieldError(error.problem, _below(path, error.field), error.detail, error.value)
        for error in errors
    ]


def _below(path: str, field: str) -> str:
    return f"{path}.{field}" if field else path


def parts(schema: Json, path: str) -> list[tuple[Json, str]]:
    """Return all schemas right below one, alternatives among them, with their paths."""
    return _children(schema, path) + _junctors(schema, path)
