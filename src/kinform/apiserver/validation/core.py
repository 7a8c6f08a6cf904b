"""Validation of the core group, but for Services, volumes and quotas, which have modules."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Final

import msgspec

from kinform.apiserver.scheme.field_errors import (
    FieldError,
    Problem,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)
from kinform.apiserver.scheme.resource_quantities import parse
from kinform.apiserver.scheme.type_errors import json_kind
from kinform.apiserver.serializer.json_values import (
    Json,
    JsonValue,
    as_dict,
    as_list,
    at,
    syntax_error,
    text,
)
from kinform.apiserver.validation import events, quotas, services, volumes
from kinform.apiserver.validation.ip_ranges import check_address, check_range, special_address
from kinform.apiserver.validation.labels import unsupported
from kinform.apiserver.validation.metadata import IMMUTABLE
from kinform.apiserver.validation.names import (
    config_key,
    dns_label,
    label_value,
    port_number,
    qualified_name,
)

__all__ = ["VALIDATE", "VALIDATE_UPDATE"]

_Check = Callable[[Json], list[FieldError]]
_LARGEST: Final = 1024 * 1024
_FROZEN: Final = "field is immutable when `immutable` is set"
_ACCOUNT: Final = "kubernetes.io/service-account.name"
_PASSWORDS: Final = ("username", "password")
_KEYS: Final[dict[str, tuple[str, ...]]] = {
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
}
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")


def _config_map(obj: Json) -> list[FieldError]:
    texts: Json = obj.get("data") or {}
    octets: Json = obj.get("binaryData") or {}
    errors: list[FieldError] = []
    size = 0
    for key, value in texts.items():
        if problems := config_key(key):
            errors += [invalid(f"data[{key}]", key, why) for why in problems]
        if key in octets:
            errors.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
        size += len((value or "").encode())
    for key, value in octets.items():
        errors += [invalid(f"binaryData[{key}]", key, why) for why in config_key(key)]
        size += len(value or "") * 3 // 4
    if size > _LARGEST:
        errors.append(too_long("[]", _LARGEST))
    return errors


def _config_map_update(new: Json, old: Json) -> list[FieldError]:
    if not old.get("immutable"):
        return _config_map(new)
    return _frozen(new, old, ("data", "binaryData")) + _config_map(new)


def _frozen(new: Json, old: Json, fields: tuple[str, ...]) -> list[FieldError]:
    """Validate a change of what its owner has declared to be final."""
    if not old.get("immutable"):
        return []
    errors = [] if new.get("immutable") else [forbidden("immutable", _FROZEN)]
    changed = (field for field in fields if (new.get(field) or {}) != (old.get(field) or {}))
    return errors + [forbidden(field, _FROZEN) for field in changed]


def _secret(obj: Json) -> list[FieldError]:
    data = as_dict(obj.get("data"))
    errors: list[FieldError] = []
    for key in data:
        errors += [invalid(f"data[{key}]", key, why) for why in config_key(key)]
    if sum(len(value or "") * 3 // 4 for value in data.values()) > _LARGEST:
        errors.append(too_long("data", _LARGEST))
    return errors + _typed_secret(obj, data)


def _typed_secret(obj: Json, data: Json) -> list[FieldError]:
    kind = obj.get("type", "")
    if kind == "kubernetes.io/service-account-token":
        named = text(obj, "metadata", "annotations", _ACCOUNT)
        return [] if named else [required(f"metadata.annotations[{_ACCOUNT}]")]
    if kind == "kubernetes.io/basic-auth":
        is_there = any(key in data for key in _PASSWORDS)
        return [] if is_there else [required(f"data[{key}]") for key in _PASSWORDS]
    errors = [required(f"data[{key}]") for key in _KEYS.get(kind, ()) if key not in data]
    if not errors and kind.startswith("kubernetes.io/docker"):
        key = _KEYS[kind][0]
        why = _not_json(base64.b64decode(data[key] or ""))
        if why:
            errors.append(invalid(f"data[{key}]", "<secret contents redacted>", why))
    return errors


def _not_json(octets: bytes) -> str:
    """Return the errors of a text that has to be a JSON object, ``""`` if nothing is."""
    try:
        msgspec.json.decode(octets, type=dict[str, JsonValue])
    except (msgspec.DecodeError, UnicodeDecodeError):
        if problem := syntax_error(octets):
            return problem
        given = json_kind(msgspec.json.decode(octets))
        return f"json: cannot unmarshal {given} into Go value of type map[string]interface {{}}"
    return ""


def _secret_update(new: Json, old: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    if new.get("type") != old.get("type"):
        errors.append(invalid("type", new.get("type"), IMMUTABLE))
    return errors + _frozen(new, old, ("data",)) + _secret(new)


def _namespace(obj: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    for name in as_list(at(obj, "spec", "finalizers")):
        problems = [invalid("spec.finalizers", name, why) for why in qualified_name(name)]
        if not problems and "/" not in name and name != "kubernetes":
            why = "name is neither a standard finalizer name nor is it fully qualified"
            problems.append(invalid("spec.finalizers", name, why))
        errors += problems
    return errors


def _namespace_update(new: Json, old: Json) -> list[FieldError]:  # noqa: ARG001 -- of a table
    phase = text(new, "status", "phase")
    if at(new, "metadata", "deletionTimestamp"):
        if phase != "Terminating":
            why = "may only be 'Terminating' if `deletionTimestamp` is not empty"
            return [invalid("status.Phase", phase, why)]
    elif phase != "Active":
        why = "may only be 'Active' if `deletionTimestamp` is empty"
        return [invalid("status.Phase", phase, why)]
    return []


def _node(obj: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: list[tuple[str, str]] = []
    for index, taint in enumerate(as_list(at(obj, "spec", "taints"))):
        errors += _taint(taint, f"metadata.taints[{index}]")
        key = (taint.get("key", ""), taint.get("effect", ""))
        if key in seen:
            shown = {"Key": key[0], "Value": taint.get("value", ""), "Effect": key[1]}
            shown["TimeAdded"] = taint.get("timeAdded")
            why = "taints must be unique by key and effect pair"
            errors.append(FieldError(Problem.DUPLICATE, f"metadata.taints[{index}]", why, shown))
        seen.append(key)
    for index, value in enumerate(as_list(at(obj, "spec", "podCIDRs"))):
        errors += check_range(value, f"spec.podCIDRs[{index}]")
    for field in ("capacity", "allocatable"):
        for name, amount in as_dict(at(obj, "status", field)).items():
            errors += _amount(name, amount, f"status.{field}.{name}")
    return errors


def _taint(taint: Json, path: str) -> list[FieldError]:
    key, value, effect = (taint.get(part) or "" for part in ("key", "value", "effect"))
    errors = [invalid(f"{path}.key", key, why) for why in qualified_name(key)]
    errors += [invalid(f"{path}.value", value, why) for why in label_value(value)]
    if not effect:
        errors.append(required(f"{path}.effect"))
    elif effect not in _EFFECTS:
        errors.append(unsupported(f"{path}.effect", effect, _EFFECTS))
    return errors


def _amount(name: str, amount: object, path: str) -> list[FieldError]:
    quantity = parse(amount)
    if quantity < 0:
        return [invalid(path, str(amount), "must be greater than or equal to 0")]
    is_countable = "/" in name and "kubernetes.io/" not in name
    if (is_countable or name == "pods") and quantity.denominator != 1:
        return [invalid(path, str(amount), "must be an integer")]
    return []


def _node_update(new: Json, old: Json) -> list[FieldError]:
    errors = _node(new)
    for field in ("podCIDRs", "providerID"):
        before = at(old, "spec", field)
        if before and before != at(new, "spec", field):
            why = 'node updates may not change podCIDR except from "" to valid'
            if field == "providerID":
                why = 'node updates may not change providerID except from "" to valid'
            errors.append(forbidden(f"spec.{field}", why))
    return errors


def _endpoints(obj: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, subset in enumerate(as_list(obj.get("subsets"))):
        path = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            why = "must specify `addresses` or `notReadyAddresses`"
            errors.append(required(path, why))
        for field in ("addresses", "notReadyAddresses"):
            for place, address in enumerate(as_list(subset.get(field))):
                errors += _endpoint(address, f"{path}.{field}[{place}]")
        ports = as_list(subset.get("ports"))
        for place, port in enumerate(ports):
            errors += _endpoint_port(port, f"{path}.ports[{place}]", is_alone=len(ports) == 1)
    return errors


def _endpoint(address: Json, path: str) -> list[FieldError]:
    value = address.get("ip") or ""
    errors = check_address(value, f"{path}.ip")
    if errors:
        return [*errors, invalid(f"{path}.ip", value, "must be a valid IP address")]
    host = address.get("hostname") or ""
    if host:
        errors += [invalid(f"{path}.hostname", host, why) for why in dns_label(host)]
    return errors + special_address(value, f"{path}.ip")


def _endpoint_port(port: Json, path: str, *, is_alone: bool) -> list[FieldError]:
    name, number, protocol = port.get("name"), port.get("port") or 0, port.get("protocol")
    errors: list[FieldError] = []
    if not name and not is_alone:
        errors.append(required(f"{path}.name"))
    elif name:
        errors += [invalid(f"{path}.name", name, why) for why in dns_label(name)]
    errors += [invalid(f"{path}.port", number, why) for why in port_number(number)]
    if protocol not in _PROTOCOLS:
        errors.append(not_supported(f"{path}.protocol", protocol, _PROTOCOLS))
    return errors


VALIDATE: Final[dict[str, _Check]] = {
    "configmaps": _config_map,
    "endpoints": _endpoints,
    "events": events.validate,
    "limitranges": quotas.limit_range,
    "namespaces": _namespace,
    "nodes": _node,
    "persistentvolumeclaims": volumes.claim,
    "persistentvolumes": volumes.volume,
    "resourcequotas": quotas.resource_quota,
    "secrets": _secret,
    "services": services.validate,
}
VALIDATE_UPDATE: Final[dict[str, Callable[[Json, Json], list[FieldError]]]] = {
    "configmaps": _config_map_update,
    "events": events.validate_update,
    "namespaces": _namespace_update,
    "nodes": _node_update,
    "persistentvolumeclaims": volumes.claim_update,
    "persistentvolumes": volumes.volume_update,
    "resourcequotas": quotas.resource_quota_update,
    "secrets": _secret_update,
    "services": services.validate_update,
}
