"""Validation of resource quotas and limit ranges."""

from __future__ import annotations

from typing import Final

from kinform.apiserver.scheme.field_errors import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    required,
)
from kinform.apiserver.scheme.resource_quantities import parse
from kinform.apiserver.serializer.json_values import Json, as_dict, as_list, at
from kinform.apiserver.validation.metadata import IMMUTABLE
from kinform.apiserver.validation.names import qualified_name

__all__ = ["limit_range", "resource_quota", "resource_quota_update"]

_COUNTED: Final = frozenset(
    {
        "configmaps",
        "persistentvolumeclaims",
        "pods",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "services",
        "services.loadbalancers",
        "services.nodeports",
    }
)
_COMPUTE: Final = frozenset(
    {
        name
        for resource in ("cpu", "memory", "ephemeral-storage")
        for name in (resource, f"requests.{resource}", f"limits.{resource}")
    }
)
_STANDARD: Final = _COUNTED | _COMPUTE | {"requests.storage"}
_SCOPES: Final = frozenset(
    {
        "BestEffort",
        "CrossNamespacePodAffinity",
        "NotBestEffort",
        "NotTerminating",
        "PriorityClass",
        "Terminating",
        "VolumeAttributesClass",
    }
)
_CONTRARY: Final = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_TYPES: Final = ("Container", "Pod", "PersistentVolumeClaim")
_CONTAINER: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_HUGE: Final = ("hugepages-", "requests.hugepages-")


def resource_quota(obj: Json) -> list[FieldError]:
    """Return the errors of a ResourceQuota."""
    spec = as_dict(obj.get("spec"))
    errors: list[FieldError] = []
    for name, amount in as_dict(spec.get("hard")).items():
        errors += _amount(name, amount, f"spec.hard[{name}]")
    errors += _scopes(spec) + _scope_selector(spec)
    for field in ("hard", "used"):
        for name, amount in as_dict(at(obj, "status", field)).items():
            errors += _amount(name, amount, f"status.{field}[{name}]")
    return errors


def _amount(name: str, amount: object, path: str) -> list[FieldError]:
    errors = [invalid(path, name, why) for why in qualified_name(name)]
    if "/" not in name and name not in _STANDARD and not name.startswith(_HUGE):
        if not errors:
            why = "must be a standard resource type or fully qualified"
            errors.append(invalid(path, name, why))
        errors.append(invalid(path, name, "must be a standard resource for quota"))
    quantity = parse(amount)
    if quantity < 0:
        errors.append(invalid(path, str(amount), "must be greater than or equal to 0"))
    if name in _COUNTED and quantity.denominator != 1:
        errors.append(invalid(path, str(amount), "must be an integer"))
    return errors


def _scopes(spec: Json) -> list[FieldError]:
    scopes = as_list(spec.get("scopes"))
    path = "spec.scopes"
    errors: list[FieldError] = []
    for scope in scopes:
        if scope not in _SCOPES:
            errors.append(invalid(path, scopes, "unsupported scope"))
        counted = _STANDARD.intersection(as_dict(spec.get("hard"))) - {"pods"}
        if scope == "BestEffort" and counted:
            why = "unsupported scope applied to resource"
            errors += [invalid(path, scopes, why)] * len(counted)
    if any(pair <= set(scopes) for pair in _CONTRARY):
        errors.append(invalid(path, scopes, "conflicting scopes"))
    return errors


def _scope_selector(spec: Json) -> list[FieldError]:
    path = "spec.scopeSelector.matchExpressions"
    errors: list[FieldError] = []
    for one in as_list(at(spec, "scopeSelector", "matchExpressions")):
        scope, operator = one.get("scopeName", ""), one.get("operator", "")
        if scope not in _SCOPES:
            errors.append(invalid(f"{path}.scopeName", scope, "unsupported scope"))
        if operator in {"In", "NotIn"}:
            if not one.get("values"):
                why = "must be at least one value when `operator` is 'In' or 'NotIn'"
                why = f"{why} for scope selector"
                errors.append(required(f"{path}.values", why))
        elif operator not in {"Exists", "DoesNotExist"}:
            errors.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    return errors


def resource_quota_update(new: Json, old: Json) -> list[FieldError]:
    """Return the errors of a change of a ResourceQuota."""
    errors = resource_quota(new)
    scopes, before = as_list(at(new, "spec", "scopes")), as_list(at(old, "spec", "scopes"))
    if set(scopes) != set(before):
        errors.append(invalid("spec.scopes", scopes, IMMUTABLE))
    return errors


def limit_range(obj: Json) -> list[FieldError]:
    """Return the errors of a LimitRange."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, limit in enumerate(as_list(at(obj, "spec", "limits"))):
        path, kind = f"spec.limits[{index}]", limit.get("type") or ""
        problems = [invalid(f"{path}.type", kind, why) for why in qualified_name(kind)]
        if not problems and "/" not in kind and kind not in _TYPES:
            why = "must be a standard limit type or fully qualified"
            problems.append(invalid(f"{path}.type", kind, why))
        errors += problems
        if kind in seen:
            errors.append(duplicate(f"{path}.type", kind))
        seen.add(kind)
        errors += _names(limit, path, kind) + _limit(limit, path, kind)
    return errors


def _names(limit: Json, path: str, kind: str) -> list[FieldError]:
    errors: list[FieldError] = []
    fields = ("max", "min", "default", "defaultRequest") if kind == "Container" else ("max", "min")
    for field in fields:
        for name in as_dict(limit.get(field)):
            at_name = f"{path}.{field}[{name}]"
            known = "/" in name or name in _CONTAINER or name.startswith(_HUGE)
            if kind == "Container" and not known:
                why = "must be a standard resource type or fully qualified"
                errors.append(invalid(at_name, name, why))
                why = "must be a standard resource for containers"
                errors.append(invalid(at_name, name, why))
    return errors


def _limit(limit: Json, path: str, kind: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if kind == "Pod":
        for field in ("default", "defaultRequest"):
            if limit.get(field):
                why = "may not be specified when `type` is 'Pod'"
                errors.append(forbidden(f"{path}.{field}", why))
    if kind == "PersistentVolumeClaim":
        sizes = (as_dict(limit.get(field)) for field in ("min", "max"))
        if not any("storage" in size for size in sizes):
            why = "either minimum or maximum storage value is required, but neither was provided"
            errors.append(required(f"{path}.limits", why))
    values = [as_dict(limit.get(field)) for field in ("max", "min", "default", "defaultRequest")]
    for name in dict.fromkeys(name for value in values for name in value):
        errors += _order(name, limit, path)
    for name, ratio in as_dict(limit.get("maxLimitRequestRatio")).items():
        if parse(ratio) < 1:
            why = f"ratio {ratio} is less than 1"
            errors.append(invalid(f"{path}.maxLimitRequestRatio[{name}]", ratio, why))
    return errors


# Which of two amounts may not be above the other, where it is said and what the two are called.
_ORDER: Final = (
    ("min", "max", "min", "min", "min value", "max value"),
    ("min", "defaultRequest", "defaultRequest", "defaultRequest", "min value",
     "default request value"),
    ("defaultRequest", "max", "defaultRequest", "defaultRequest", "default request value",
     "max value"),
    ("defaultRequest", "default", "defaultRequest", "defaultRequest", "default request value",
     "default limit value"),
    ("min", "default", "default", "min", "min value", "default value"),
    ("default", "max", "default", "max", "default value", "max value"),
)  # fmt: skip


def _order(name: str, limit: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for low, high, field, shown, low_words, high_words in _ORDER:
        less, more = as_dict(limit.get(low)).get(name), as_dict(limit.get(high)).get(name)
        if less is not None and more is not None and parse(less) > parse(more):
            why = f"{low_words} {less} is greater than {high_words} {more}"
            value = as_dict(limit.get(shown)).get(name)
            errors.append(invalid(f"{path}.{field}[{name}]", value, why))
    return errors
