"""Validation of roles and of their bindings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kinform.apiserver.scheme.field_errors import FieldError, invalid, required
from kinform.apiserver.serializer.json_values import Json, as_dict, as_list
from kinform.apiserver.validation.labels import check_label_selector, unsupported
from kinform.apiserver.validation.names import dns_subdomain, path_segment

__all__ = ["VALIDATE", "VALIDATE_UPDATE"]

_GROUP: Final = "rbac.authorization.k8s.io"
_SUBJECTS: Final = ("ServiceAccount", "User", "Group")


def _role(obj: Json) -> list[FieldError]:
    return _rules(obj, namespaced=True)


def _cluster_role(obj: Json) -> list[FieldError]:
    errors = _rules(obj, namespaced=False)
    aggregation = obj.get("aggregationRule")
    if aggregation is None:
        return errors
    path = "aggregationRule.clusterRoleSelectors"
    selectors = as_list(as_dict(aggregation).get("clusterRoleSelectors"))
    if not selectors:
        why = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        errors.append(required(path, why))
    for index, selector in enumerate(selectors):
        count = len(errors)
        check_label_selector(selector, f"{path}[{index}]", errors)
        if len(errors) > count:
            errors.append(invalid(f"{path}[{index}]", None, "invalid label selector."))
    return errors


def _rules(obj: Json, *, namespaced: bool) -> list[FieldError]:
    return [
        error
        for index, rule in enumerate(as_list(obj.get("rules")))
        for error in _rule(rule, f"rules[{index}]", namespaced=namespaced)
    ]


def _rule(rule: Json, path: str, *, namespaced: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    if not rule.get("verbs"):
        errors.append(required(f"{path}.verbs", "verbs must contain at least one value"))
    urls = as_list(rule.get("nonResourceURLs"))
    if urls:
        at = f"{path}.nonResourceURLs"
        if namespaced:
            why = "namespaced rules cannot apply to non-resource URLs"
            errors.append(invalid(at, urls, why))
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            why = "rules cannot apply to both regular resources and non-resource URLs"
            errors.append(invalid(at, urls, why))
        return errors
    if not rule.get("apiGroups"):
        why = "resource rules must supply at least one api group"
        errors.append(required(f"{path}.apiGroups", why))
    if not rule.get("resources"):
        why = "resource rules must supply at least one resource"
        errors.append(required(f"{path}.resources", why))
    return errors


def _role_binding(obj: Json) -> list[FieldError]:
    return _binding(obj, ("Role", "ClusterRole"), namespaced=True)


def _cluster_role_binding(obj: Json) -> list[FieldError]:
    return _binding(obj, ("ClusterRole",), namespaced=False)


def _binding(obj: Json, kinds: tuple[str, ...], *, namespaced: bool) -> list[FieldError]:
    role = as_dict(obj.get("roleRef"))
    errors: list[FieldError] = []
    if role.get("apiGroup") != _GROUP:
        errors.append(unsupported("roleRef.apiGroup", role.get("apiGroup", ""), (_GROUP,)))
    if role.get("kind") not in kinds:
        errors.append(unsupported("roleRef.kind", role.get("kind") or "", kinds))
    name = role.get("name") or ""
    if not name:
        errors.append(required("roleRef.name"))
    errors += [invalid("roleRef.name", name, why) for why in path_segment(name)]
    for index, subject in enumerate(as_list(obj.get("subjects"))):
        errors += _subject(subject, f"subjects[{index}]", namespaced=namespaced)
    return errors


def _subject(subject: Json, path: str, *, namespaced: bool) -> list[FieldError]:
    kind, name = subject.get("kind") or "", subject.get("name") or ""
    errors: list[FieldError] = []
    if not name:
        errors.append(required(f"{path}.name"))
    if kind not in _SUBJECTS:
        errors.append(unsupported(f"{path}.kind", kind, _SUBJECTS))
        return errors
    is_account = kind == "ServiceAccount"
    if is_account and name:
        errors += [invalid(f"{path}.name", name, why) for why in dns_subdomain(name)]
    group = subject.get("apiGroup") or ""
    wanted = "" if is_account else _GROUP
    if group != wanted:
        errors.append(unsupported(f"{path}.apiGroup", group, (wanted,)))
    if is_account and not namespaced and not subject.get("namespace"):
        errors.append(required(f"{path}.namespace"))
    return errors


def _same_role(new: Json, old: Json) -> list[FieldError]:
    role = as_dict(new.get("roleRef"))
    if role == as_dict(old.get("roleRef")):
        return []
    shown = {
        "APIGroup": role.get("apiGroup", ""),
        "Kind": role.get("kind", ""),
        "Name": role.get("name", ""),
    }
    return [invalid("roleRef", shown, "cannot change roleRef")]


def _role_binding_update(new: Json, old: Json) -> list[FieldError]:
    return _role_binding(new) + _same_role(new, old)


def _cluster_role_binding_update(new: Json, old: Json) -> list[FieldError]:
    return _cluster_role_binding(new) + _same_role(new, old)


VALIDATE: Final[dict[str, Callable[[Json], list[FieldError]]]] = {
    f"roles.{_GROUP}": _role,
    f"clusterroles.{_GROUP}": _cluster_role,
    f"rolebindings.{_GROUP}": _role_binding,
    f"clusterrolebindings.{_GROUP}": _cluster_role_binding,
}
VALIDATE_UPDATE: Final[dict[str, Callable[[Json, Json], list[FieldError]]]] = {
    f"rolebindings.{_GROUP}": _role_binding_update,
    f"clusterrolebindings.{_GROUP}": _cluster_role_binding_update,
}
