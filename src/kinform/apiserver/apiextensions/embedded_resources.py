"""Embedded resources in custom objects: they have a kind and metadata of their own."""

from __future__ import annotations

import re
from typing import Final

from kinform.apiserver.apiextensions import name_rules
from kinform.apiserver.apiextensions.schema import structural
from kinform.apiserver.apiextensions.schema.json_types import is_list, is_object
from kinform.apiserver.scheme import field_errors
from kinform.apiserver.scheme.field_errors import FieldError
from kinform.apiserver.serializer.json_values import Json, JsonValue, as_dict, as_list

__all__ = ["has_embedded", "of_resource", "problems"]

_GROUP_VERSION: Final = re.compile(r"[^/]+(?:/[^/]+)?|/")


def problems(node: structural.Node, obj: Json) -> list[FieldError]:
    """Return the errors of the identity of the resources embedded in ``obj``."""
    errors: list[FieldError] = []
    if has_embedded(node):
        _find(node, obj, "", errors=errors)
    return errors


def has_embedded(node: structural.Node) -> bool:
    """Return whether there are embedded resources below a node, or if it is one."""
    known = node.has_embedded
    if known is None:
        children = [*node.properties.values(), node.values, node.items]
        known = node.is_embedded or any(
            child is not None and has_embedded(child) for child in children
        )
        node.has_embedded = known
    return known


def _find(node: structural.Node, value: JsonValue, path: str, *, errors: list[FieldError]) -> None:
    if is_object(value):
        obj = value
        if node.is_embedded:
            errors += of_resource(obj, path)
        for name, item in obj.items():
            child = node.properties.get(name)
            where = f"{path}.{name}" if path else name
            if child is None and node.values is not None:
                child, where = node.values, f"{path}[{name}]"
            if child is not None and has_embedded(child):
                _find(child, item, where, errors=errors)
    elif is_list(value) and node.items is not None:
        for index, item in enumerate(as_list(value)):
            _find(node.items, item, f"{path}[{index}]", errors=errors)


def of_resource(obj: Json, path: str) -> list[FieldError]:
    """Return the errors of apiVersion, kind and metadata of one resource."""
    dot = f"{path}." if path else ""
    return [
        *_api_version(obj.get("apiVersion"), f"{dot}apiVersion"),
        *_kind(obj.get("kind"), f"{dot}kind"),
        *_metadata(as_dict(obj.get("metadata")), f"{dot}metadata"),
    ]


def _api_version(value: JsonValue, path: str) -> list[FieldError]:
    if value is None:
        return [field_errors.required(path)]
    if value == "":
        return [field_errors.invalid(path, value, "must not be empty")]
    if not _GROUP_VERSION.fullmatch(str(value)):
        return [field_errors.invalid(path, value, f"unexpected GroupVersion string: {value}")]
    return []


def _kind(value: JsonValue, path: str) -> list[FieldError]:
    if value is None:
        return [field_errors.required(path)]
    if value == "":
        return [field_errors.invalid(path, value, "must not be empty")]
    return name_rules.kind_label(path, str(value))


def _metadata(meta: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    namespace = meta.get("namespace")
    if namespace:
        errors += name_rules.dns_label(f"{path}.namespace", namespace)
    for key, value in as_dict(meta.get("labels")).items():
        errors += name_rules.qualified_name(f"{path}.labels", key)
        errors += name_rules.label_value(f"{path}.labels", value)
    for key in as_dict(meta.get("annotations")):
        errors += name_rules.qualified_name(f"{path}.annotations", key.lower(), shown=key)
    for owner in as_list(meta.get("ownerReferences")):
        errors += _owner(as_dict(owner), f"{path}.ownerReferences")
    return errors


def _owner(owner: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    version = owner.get("apiVersion") or ""
    if not version.rpartition("/")[2]:
        wrong = field_errors.invalid(f"{path}.apiVersion", version, "version must not be empty")
        errors.append(wrong)
    missing = (name for name in ("kind", "name", "uid") if not owner.get(name))
    words = "must not be empty"
    return [*errors, *(field_errors.invalid(f"{path}.{name}", "", words) for name in missing)]
