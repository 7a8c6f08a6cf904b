"""Scheduling constraints of a pod: affinity, tolerations, spreading and gates."""

from __future__ import annotations

from typing import Final

from kinform.apiserver.scheme.field_errors import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    required,
)
from kinform.apiserver.serializer.json_values import Json, as_dict, as_list
from kinform.apiserver.validation.labels import (
    check_label_selector,
    check_requirement_values,
    unsupported,
)
from kinform.apiserver.validation.names import dns_label, label_value, qualified_name

__all__ = ["check_affinity", "check_gates", "check_spread", "check_tolerations"]

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_OPERATORS: Final = ("Equal", "Exists")
_WHEN: Final = ("DoNotSchedule", "ScheduleAnyway")
_POLICIES: Final = ("Honor", "Ignore")
_WEIGHT: Final = "must be in the range 1-100"
_NO_OPERATOR: Final = "not a valid selector operator"


def check_affinity(affinity: Json, path: str, errors: list[FieldError]) -> None:
    """Validate what attracts a pod to nodes and to other pods."""
    if nodes := affinity.get("nodeAffinity"):
        _check_node_affinity(nodes, f"{path}.nodeAffinity", errors)
    for field in ("podAffinity", "podAntiAffinity"):
        if pods := affinity.get(field):
            _check_pod_affinity(pods, f"{path}.{field}", errors)


def _check_node_affinity(affinity: Json, path: str, errors: list[FieldError]) -> None:
    if (needed := affinity.get(_REQUIRED)) is not None:
        at = f"{path}.{_REQUIRED}.nodeSelectorTerms"
        terms: list[Json] = needed.get("nodeSelectorTerms") or []
        if not terms:
            errors.append(required(at, "must have at least one node selector term"))
        for index, term in enumerate(terms):
            _check_node_term(term, f"{at}[{index}]", errors)
    for index, preferred in enumerate(affinity.get(_PREFERRED) or ()):
        at = f"{path}.{_PREFERRED}[{index}]"
        _check_weight(preferred, at, errors)
        _check_node_term(as_dict(preferred.get("preference")), f"{at}.preference", errors)


def _check_weight(preferred: Json, path: str, errors: list[FieldError]) -> None:
    weight = preferred.get("weight") or 0
    if not 1 <= weight <= 100:
        errors.append(invalid(f"{path}.weight", weight, _WEIGHT))


def _check_node_term(term: Json, path: str, errors: list[FieldError]) -> None:
    for index, one in enumerate(term.get("matchExpressions") or ()):
        _check_node_requirement(one, f"{path}.matchExpressions[{index}]", errors)
    for index, one in enumerate(term.get("matchFields") or ()):
        _check_node_field(one, f"{path}.matchFields[{index}]", errors)


def _check_node_requirement(one: Json, path: str, errors: list[FieldError]) -> None:
    operator, values = one.get("operator") or "", as_list(one.get("values"))
    if not check_requirement_values(one, path, errors):
        if operator not in {"Gt", "Lt"}:
            errors.append(invalid(f"{path}.operator", operator, _NO_OPERATOR))
        elif len(values) != 1:
            detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            errors.append(required(f"{path}.values", detail))
    key = one.get("key") or ""
    errors += [invalid(f"{path}.key", key, problem) for problem in qualified_name(key)]
    for index, value in enumerate(values):
        at = f"{path}.values[{index}]"
        errors += [invalid(at, value, problem) for problem in label_value(value)]


def _check_node_field(one: Json, path: str, errors: list[FieldError]) -> None:
    operator, key = one.get("operator") or "", one.get("key") or ""
    if operator not in {"In", "NotIn"}:
        errors.append(invalid(f"{path}.operator", operator, _NO_OPERATOR))
    elif len(one.get("values") or ()) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        errors.append(required(f"{path}.values", detail))
    if key != "metadata.name":
        errors.append(invalid(f"{path}.key", key, "not a valid field selector key"))


def _check_pod_affinity(affinity: Json, path: str, errors: list[FieldError]) -> None:
    for index, term in enumerate(affinity.get(_REQUIRED) or ()):
        _check_pod_term(term, f"{path}.{_REQUIRED}[{index}]", errors)
    for index, preferred in enumerate(affinity.get(_PREFERRED) or ()):
        at = f"{path}.{_PREFERRED}[{index}]"
        _check_weight(preferred, at, errors)
        _check_pod_term(as_dict(preferred.get("podAffinityTerm")), f"{at}.podAffinityTerm", errors)


def _check_pod_term(term: Json, path: str, errors: list[FieldError]) -> None:
    for field in ("labelSelector", "namespaceSelector"):
        if selector := term.get(field):
            check_label_selector(selector, f"{path}.{field}", errors)
    for name in term.get("namespaces") or ():
        errors += [invalid(f"{path}.namespace", name, problem) for problem in dns_label(name)]
    for field in ("matchLabelKeys", "mismatchLabelKeys"):
        if term.get(field) and term.get("labelSelector") is None:
            detail = "must not be specified when labelSelector is not set"
            errors.append(forbidden(f"{path}.{field}", detail))
    key = term.get("topologyKey") or ""
    if not key:
        errors.append(required(f"{path}.topologyKey", "can not be empty"))
    errors += [invalid(f"{path}.topologyKey", key, problem) for problem in qualified_name(key)]


def check_tolerations(tolerations: list[Json], path: str, errors: list[FieldError]) -> None:
    """Validate the taints that a pod bears."""
    for index, one in enumerate(tolerations):
        at = f"{path}[{index}]"
        key, operator = one.get("key") or "", one.get("operator") or ""
        value, effect = one.get("value") or "", one.get("effect") or ""
        if key and (problems := qualified_name(key)):
            errors += [invalid(f"{at}.key", key, problem) for problem in problems]
        if not key and operator != "Exists":
            detail = (
                "operator must be Exists when `key` is empty, which means "
                '"match all values and all keys"'
            )
            errors.append(invalid(f"{at}.operator", operator, detail))
        if "tolerationSeconds" in one and effect != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            errors.append(invalid(f"{at}.effect", effect, detail))
        _check_operator(operator, value, f"{at}.operator", errors=errors)
        if effect and effect not in _EFFECTS:
            errors.append(unsupported(f"{at}.effect", effect, _EFFECTS))


def _check_operator(operator: str, value: str, path: str, *, errors: list[FieldError]) -> None:
    if operator in {"Equal", ""}:
        if problems := label_value(value):
            errors.append(invalid(path, value, "; ".join(problems)))
    elif operator != "Exists":
        errors.append(unsupported(path, operator, _OPERATORS))
    elif value:
        errors.append(invalid(path, value, "value must be empty when `operator` is 'Exists'"))


def check_gates(gates: list[Json], path: str, errors: list[FieldError]) -> None:
    """Validate what keeps a pod from being scheduled."""
    names: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.get("name") or ""
        at = f"{path}[{index}]"
        errors += [invalid(at, name, problem) for problem in qualified_name(name)]
        if name in names:
            errors.append(duplicate(at, name))
        names.add(name)


def check_spread(constraints: list[Json], path: str, errors: list[FieldError]) -> None:
    """Validate how pods are spread over nodes."""
    pairs = [(one.get("topologyKey") or "", one.get("whenUnsatisfiable") or "")
             for one in constraints]  # fmt: skip
    for index, one in enumerate(constraints):
        at = f"{path}[{index}]"
        if (skew := one.get("maxSkew") or 0) <= 0:
            errors.append(invalid(f"{at}.maxSkew", skew, "must be greater than zero"))
        key, when = pairs[index]
        if not key:
            errors.append(required(f"{at}.topologyKey", "can not be empty"))
        if when not in _WHEN:
            errors.append(unsupported(f"{at}.whenUnsatisfiable", when, _WHEN))
        if (key, when) in pairs[index + 1 :]:
            where = f"{at}.{{topologyKey, whenUnsatisfiable}}"
            errors.append(duplicate(where, f"{{{key}, {when}}}"))
        _check_spread_options(one, at, errors)


def _check_spread_options(one: Json, path: str, errors: list[FieldError]) -> None:
    when = one.get("whenUnsatisfiable") or ""
    if (domains := one.get("minDomains")) is not None:
        if domains <= 0:
            errors.append(invalid(f"{path}.minDomains", domains, "must be greater than zero"))
        if when != "DoNotSchedule":
            detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {when}"
            errors.append(invalid(f"{path}.minDomains", domains, detail))
    for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        policy = one.get(field) or "Honor"
        if policy not in _POLICIES:
            errors.append(unsupported(f"{path}.{field}", policy, _POLICIES))
    if selector := one.get("labelSelector"):
        check_label_selector(selector, f"{path}.labelSelector", errors)
