"""CustomResourceDefinitions: defaults and validation.

What all versions share counts as said once, at the top of the spec: the server converts to its
internal form before it judges, and its complaints have the paths of that form.
"""

from __future__ import annotations

from typing import Final

from kinform.apiserver.apiextensions import name_rules, schema_cleanup, version_rules
from kinform.apiserver.apiextensions.schema import formats, patterns, schema_rules
from kinform.apiserver.apiextensions.schema.json_types import is_object
from kinform.apiserver.apiextensions.schema.keywords import same
from kinform.apiserver.scheme import field_errors
from kinform.apiserver.scheme.field_errors import FieldError
from kinform.apiserver.serializer.json_values import Json, JsonValue, as_dict, as_list, at, text

__all__ = ["default", "validate", "validate_update", "warnings"]

_APPROVAL: Final = "api-approved.kubernetes.io"
_APPROVAL_RULE: Final = "https://github.com/kubernetes/enhancements/pull/1111"
_PROTECTED: Final = (".k8s.io", ".kubernetes.io")
_UNDERSTOOD_REVIEWS: Final = ("v1", "v1beta1")


def default(obj: Json) -> None:
    """Set the defaults of a CustomResourceDefinition's spec, in place.

    Keywords of schemas that say nothing, such as an empty ``required``, are dropped.
    """
    spec = as_dict(obj.get("spec"))
    obj["spec"] = spec
    for version in as_list(spec.get("versions")):
        schema_cleanup.tidy(as_dict(at(version, "schema", "openAPIV3Schema")))
    called = as_dict(spec.get("names"))
    kind = called.get("kind") or ""
    if kind:
        called["singular"] = called.get("singular") or kind.lower()
        called["listKind"] = called.get("listKind") or f"{kind}List"
    if spec.get("preserveUnknownFields") is False:
        del spec["preserveUnknownFields"]
    if spec.get("conversion") is None:
        spec["conversion"] = {"strategy": "None"}
    service = at(spec, "conversion", "webhook", "clientConfig", "service")
    if is_object(service):
        service.setdefault("port", 443)


def validate(obj: Json) -> list[FieldError]:
    """Return the errors of a new definition, its metadata aside but for its name."""
    spec = as_dict(obj.get("spec"))
    errors: list[FieldError] = []
    name = text(obj, "metadata", "name")
    if name and name != f"{text(spec, 'names', 'plural')}.{text(spec, 'group')}":
        words = 'must be spec.names.plural+"."+spec.group'
        errors.append(field_errors.invalid("metadata.name", name, words))
    errors += _spec(spec)
    errors += _stored_versions(obj)
    errors += _approval(obj)
    return errors + _preserving(spec)


def validate_update(new: Json, old: Json) -> list[FieldError]:
    """Return the errors of a definition that takes the place of ``old``.

    Names and scope cannot change once the definition is established.
    """
    spec = as_dict(new.get("spec"))
    errors = _spec(spec)
    if _is_established(old):
        for path in (("group",), ("scope",), ("names", "kind"), ("names", "plural")):
            value = at(spec, *path)
            if value != at(old, "spec", *path):
                where = ".".join(("spec", *path))
                errors.append(field_errors.invalid(where, value, "field is immutable"))
    errors += _stored_versions(new)
    errors += _approval(new)
    return errors + _preserving(spec)


def _is_established(obj: Json) -> bool:
    conditions = as_list(at(obj, "status", "conditions"))
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


# --- the spec ---------------------------------------------------------------------------------


def _spec(spec: Json) -> list[FieldError]:
    versions = [as_dict(one) for one in as_list(spec.get("versions"))]
    return [
        *_group(text(spec, "group")),
        *_scope(text(spec, "scope")),
        *_schemas_there(versions),
        *_versions(versions),
        *_storage(spec, versions),
        *_names(as_dict(spec.get("names"))),
        *_shared(versions),
        *_conversion(as_dict(spec.get("conversion"))),
    ]


def _group(group: str) -> list[FieldError]:
    if not group:
        return [field_errors.required("spec.group")]
    wrong = name_rules.dns_subdomain("spec.group", group)
    if not wrong and "." not in group:
        words = "should be a domain with at least one dot"
        return [field_errors.invalid("spec.group", group, words)]
    return wrong


def _scope(scope: str) -> list[FieldError]:
    if not scope:
        return [field_errors.required("spec.scope")]
    if scope in {"Cluster", "Namespaced"}:
        return []
    return [field_errors.not_supported("spec.scope", scope, ("Cluster", "Namespaced"))]


def _names(called: Json) -> list[FieldError]:
    errors = [
        field_errors.required(f"spec.names.{name}")
        for name in ("plural", "singular", "kind", "listKind")
        if not called.get(name)
    ]
    for name in ("plural", "singular"):
        if called.get(name):
            errors += name_rules.resource_label(f"spec.names.{name}", called[name])
    for name in ("kind", "listKind"):
        if called.get(name):
            errors += name_rules.kind_label(f"spec.names.{name}", called[name])
    for name in ("shortNames", "categories"):
        for index, one in enumerate(as_list(called.get(name))):
            errors += name_rules.resource_label(f"spec.names.{name}[{index}]", one)
    if called.get("kind") and called.get("kind") == called.get("listKind"):
        words = "kind and listKind may not be the same"
        errors.append(field_errors.invalid("spec.names.listKind", called["listKind"], words))
    return errors


# --- versions ---------------------------------------------------------------------------------

_SHARED: Final = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")


def _is_shared(versions: list[Json], name: str) -> bool:
    first = versions[0].get(name) if versions else None
    return all(same(version.get(name), first) for version in versions)


def _schema(version: Json) -> Json | None:
    found = at(version, "schema", "openAPIV3Schema")
    return as_dict(found) if is_object(found) else None


def _schemas_there(versions: list[Json]) -> list[FieldError]:
    return [
        field_errors.required(f"spec.versions[{index}].schema.openAPIV3Schema")
        for index, version in enumerate(versions)
        if _schema(version) is None
    ]


def _versions(versions: list[Json]) -> list[FieldError]:
    errors: list[FieldError] = []
    shared = {name for name in _SHARED if _is_shared(versions, name)}
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        own = {name: value for name, value in version.items() if name not in shared}
        errors += name_rules.resource_label(f"{path}.name", text(version, "name"))
        errors += version_rules.deprecation(version, path)
        errors += _parts(own, path, f"{path}.schema", hides_schema="schema" in shared)
    return errors


def _shared(versions: list[Json]) -> list[FieldError]:
    if not versions:
        return []
    first = versions[0]
    own = {name: first.get(name) for name in _SHARED if _is_shared(versions, name)}
    return _parts(own, "spec", "spec.validation", hides_schema=False)


def _parts(parts: Json, path: str, schema_path: str, *, hides_schema: bool) -> list[FieldError]:
    """Validate what may be said of each version, or of all at once."""
    schema = None if hides_schema else _schema(parts)
    errors: list[FieldError] = []
    if schema is not None:
        errors += schema_rules.problems(schema, f"{schema_path}.openAPIV3Schema")
    errors += version_rules.subresources(parts.get("subresources"), f"{path}.subresources")
    listed = parts.get("additionalPrinterColumns")
    errors += version_rules.columns(listed, f"{path}.additionalPrinterColumns")
    where = f"{path}.selectableFields"
    errors += version_rules.selectable_fields(parts.get("selectableFields"), where, schema)
    return errors


def _storage(spec: Json, versions: list[Json]) -> list[FieldError]:
    errors: list[FieldError] = []
    called = [text(version, "name") for version in versions]
    shown = None if spec.get("versions") is None else [_internal(version) for version in versions]
    if len({*called}) < len(called):
        words = "must contain unique version names"
        errors.append(field_errors.invalid("spec.versions", shown, words))
    if sum(version.get("storage") is True for version in versions) != 1:
        words = "must have exactly one version marked as storage version"
        errors.append(field_errors.invalid("spec.versions", shown, words))
    if called and called[0]:
        errors += name_rules.resource_label("spec.version", called[0])
    return errors


def _internal(version: Json) -> Json:
    """Return a version as the server's internal form shows in messages."""
    return {
        "Name": text(version, "name"),
        "Served": version.get("served") is True,
        "Storage": version.get("storage") is True,
        "Deprecated": version.get("deprecated") is True,
        "DeprecationWarning": version.get("deprecationWarning"),
        "Schema": None,
        "Subresources": None,
        "AdditionalPrinterColumns": None,
        "SelectableFields": None,
    }


def _stored_versions(obj: Json) -> list[FieldError]:
    """Validate ``status.storedVersions``; without any, the storage version is assumed."""
    path = "status.storedVersions"
    versions = [as_dict(one) for one in as_list(at(obj, "spec", "versions"))]
    storing = [text(one, "name") for one in versions if one.get("storage") is True]
    stored: list[str] = as_list(at(obj, "status", "storedVersions")) or storing[:1]
    if not stored:
        return [field_errors.invalid(path, None, "must have at least one stored version")]
    called = {text(one, "name") for one in versions}
    errors: list[FieldError] = []
    for index, name in enumerate(stored):
        if name not in called:
            words = (
                f"missing from spec.versions; {name} was previously a storage version, and must "
                "remain in spec.versions until a storage migration ensures no data remains "
                f"persisted in {name} and removes {name} from status.storedVersions"
            )
            errors.append(field_errors.invalid(f"{path}[{index}]", name, words))
    if storing and storing[-1] not in stored:
        words = f"must have the storage version {storing[-1]}"
        errors.append(field_errors.invalid(path, stored, words))
    return errors


# --- conversion, approval ---------------------------------------------------------------------


def _conversion(conversion: Json) -> list[FieldError]:
    strategy = text(conversion, "strategy")
    path = "spec.conversion"
    if not strategy:
        return [field_errors.required(f"{path}.strategy")]
    if strategy not in {"None", "Webhook"}:
        return [field_errors.not_supported(f"{path}.strategy", strategy, ("None", "Webhook"))]
    webhook = as_dict(conversion.get("webhook"))
    reviews = as_list(webhook.get("conversionReviewVersions"))
    config = webhook.get("clientConfig")
    if strategy == "Webhook":
        return [
            *_client_config(config, f"{path}.webhookClientConfig"),
            *_reviews(reviews, f"{path}.conversionReviewVersions"),
        ]
    words = "should not be set when strategy is not set to Webhook"
    unwanted = (("webhookClientConfig", config), ("conversionReviewVersions", reviews))
    return [field_errors.forbidden(f"{path}.{name}", words) for name, value in unwanted if value]


def _client_config(config: JsonValue, path: str) -> list[FieldError]:
    if config is None:
        return [field_errors.required(path, "required when strategy is set to Webhook")]
    url, service = text(config, "url"), as_dict(config.get("service"))
    if bool(url) == bool(service):
        return [field_errors.required(path, "exactly one of url or service is required")]
    scheme, _, _ = url.partition("://")
    if url and scheme != "https":
        words = "'https' is the only allowed URL scheme; desired format: https://host[/path]"
        return [field_errors.invalid(f"{path}.url", scheme, words)]
    return []


def _reviews(reviews: list[str], path: str) -> list[FieldError]:
    if not reviews:
        return [field_errors.required(path)]
    errors: list[FieldError] = []
    for index, name in enumerate(reviews):
        errors += name_rules.resource_label(f"{path}[{index}]", name)
    if not {*reviews} & {*_UNDERSTOOD_REVIEWS}:
        words = f"must include at least one of {', '.join(_UNDERSTOOD_REVIEWS)}"
        errors.append(field_errors.invalid(path, reviews, words))
    return errors


def _approval(obj: Json) -> list[FieldError]:
    """Validate the annotation that groups of the Kubernetes community need."""
    group = "." + text(obj, "spec", "group")
    if not group.endswith(_PROTECTED):
        return []
    path = f"metadata.annotations[{_APPROVAL}]"
    words = f'protected groups must have approval annotation "{_APPROVAL}"'
    approval = text(obj, "metadata", "annotations", _APPROVAL)
    if not approval:
        return [field_errors.required(path, f"{words}, see {_APPROVAL_RULE}")]
    if approval.startswith(("unapproved", "http://", "https://")):
        return []
    words += ' with either a URL or a reason starting with "unapproved"'
    return [field_errors.invalid(path, approval, f"{words}, see {_APPROVAL_RULE}")]


def _preserving(spec: Json) -> list[FieldError]:
    if spec.get("preserveUnknownFields") is not True:
        return []
    words = (
        "cannot set to true, set x-kubernetes-preserve-unknown-fields to true "
        "in spec.versions[*].schema instead"
    )
    return [field_errors.invalid("spec.preserveUnknownFields", value=True, detail=words)]


# --- warnings ---------------------------------------------------------------------------------


def warnings(obj: Json) -> list[str]:
    """Return the warnings about a definition: unknown formats and unsupported features.

    CEL rules, conversion webhooks and a few regular expressions are stored and served, but not
    evaluated. Each place is named.
    """
    found: list[str] = []
    for index, version in enumerate(as_list(at(obj, "spec", "versions"))):
        schema = _schema(as_dict(version))
        if schema is not None:
            _schema_warnings(schema, f"spec.versions[{index}].schema.openAPIV3Schema", found)
    if at(obj, "spec", "conversion", "strategy") == "Webhook":
        found.append(
            "spec.conversion.webhook: conversion webhooks are not called by this server: "
            "objects are served in every version as they are stored"
        )
    return list(dict.fromkeys(found))


def _schema_warnings(schema: Json, path: str, found: list[str]) -> None:
    if schema.get("x-kubernetes-validations"):
        rules = f"{path}.x-kubernetes-validations"
        found.append(f"{rules}: CEL rules are not evaluated by this server")
    form = schema.get("format")
    if form and form not in formats.KNOWN.get(schema.get("type") or "", formats.KNOWN["string"]):
        found.append(f'unrecognized format "{form}"')
    if schema.get("pattern"):
        try:
            patterns.matcher(schema["pattern"])
        except patterns.Unsupported:
            where = f"{path}.pattern"
            hint = "" if patterns.has_re2 else " without google-re2 (kinform[testing])"
            words = f"this regular expression is not evaluated by this server{hint}"
            found.append(f"{where}: {words}")
    for child, where in schema_rules.parts(schema, path):
        _schema_warnings(child, where, found)
