"""Validation of Services."""

from __future__ import annotations

from typing import Final

from kinform.apiserver.scheme.field_errors import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from kinform.apiserver.serializer.json_values import Json, as_dict, as_list, at
from kinform.apiserver.validation.ip_ranges import check_address, check_range, special_address
from kinform.apiserver.validation.labels import check_labels, unsupported
from kinform.apiserver.validation.names import (
    dns_label,
    dns_subdomain,
    ip_address,
    port_name,
    port_number,
    qualified_name,
)

__all__ = ["check_balancer", "check_port_target", "validate", "validate_update"]

_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_FAMILIES: Final = ("IPv4", "IPv6")
_POLICIES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")
_DISTRIBUTIONS: Final = ("PreferClose", "PreferSameZone", "PreferSameNode")
_LONGEST_AFFINITY: Final = 86400
_FOR_BALANCERS: Final = "may only be used when `type` is 'LoadBalancer'"


def validate(obj: Json) -> list[FieldError]:
    """Return the errors of a Service."""
    spec = as_dict(obj.get("spec"))
    errors = _check_type(spec)
    ports = as_list(spec.get("ports"))
    names: set[str] = set()
    for index, port in enumerate(ports):
        path = f"spec.ports[{index}]"
        errors += _check_port(port, path, is_alone=len(ports) == 1, names=names)
    check_labels(as_dict(spec.get("selector")), "spec.selector", errors)
    errors += _check_affinity(spec)
    for index, address in enumerate(as_list(spec.get("externalIPs"))):
        path = f"spec.externalIPs[{index}]"
        errors += check_address(address, path) or special_address(address, path)
    if spec.get("type") not in _TYPES:
        errors.append(not_supported("spec.type", spec.get("type"), _TYPES))
    errors += _check_unique_ports(spec, ports)
    errors += _check_balancer_fields(spec)
    errors += _check_addresses(spec)
    errors += _check_policies(spec)
    errors += check_balancer(at(obj, "status", "loadBalancer", "ingress"), spec)
    return errors


def _check_type(spec: Json) -> list[FieldError]:
    kind, is_headless = spec.get("type"), spec.get("clusterIP") == "None"
    errors: list[FieldError] = []
    if not spec.get("ports") and not is_headless and kind != "ExternalName":
        errors.append(required("spec.ports"))
    if kind in {"LoadBalancer", "NodePort"} and is_headless:
        why = f"may not be set to 'None' for {kind} services"
        errors.append(invalid("spec.clusterIPs[0]", "None", why))
    if kind == "ExternalName":
        if spec.get("clusterIP") or spec.get("clusterIPs"):
            errors.append(forbidden("spec.clusterIPs", "may not be set for ExternalName services"))
        name = (spec.get("externalName") or "").removesuffix(".")
        if name:
            errors += [invalid("spec.externalName", name, why) for why in dns_subdomain(name)]
        else:
            errors.append(required("spec.externalName"))
    return errors


def _check_port(port: Json, path: str, *, is_alone: bool, names: set[str]) -> list[FieldError]:
    name: str = port.get("name") or ""
    errors: list[FieldError] = []
    if not name:
        if not is_alone:
            errors.append(required(f"{path}.name"))
    else:
        errors += [invalid(f"{path}.name", name, why) for why in dns_label(name)]
        if name in names:
            errors.append(duplicate(f"{path}.name", name))
        names.add(name)
    number = port.get("port") or 0
    errors += [invalid(f"{path}.port", number, why) for why in port_number(number)]
    protocol = port.get("protocol") or ""
    if not protocol:
        errors.append(required(f"{path}.protocol"))
    elif protocol not in _PROTOCOLS:
        errors.append(not_supported(f"{path}.protocol", protocol, _PROTOCOLS))
    errors += check_port_target(port.get("targetPort", 0), f"{path}.targetPort")
    application = port.get("appProtocol")
    if application is not None:
        problems = qualified_name(application)
        errors += [invalid(f"{path}.appProtocol", application, why) for why in problems]
    return errors


def check_port_target(value: object, path: str) -> list[FieldError]:
    """Validate a port by number or by name."""
    if isinstance(value, str):
        return [invalid(path, value, why) for why in port_name(value)]
    number = value if isinstance(value, int) else 0
    return [invalid(path, number, why) for why in port_number(number)]


def _check_affinity(spec: Json) -> list[FieldError]:
    affinity = spec.get("sessionAffinity")
    if not affinity:
        return [required("spec.sessionAffinity")]
    if affinity not in {"ClientIP", "None"}:
        return [not_supported("spec.sessionAffinity", affinity, ("ClientIP", "None"))]
    config = at(spec, "sessionAffinityConfig", "clientIP", "timeoutSeconds")
    if affinity == "ClientIP" and config is not None and not 0 < config <= _LONGEST_AFFINITY:
        path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
        why = f"must be greater than 0 and less than {_LONGEST_AFFINITY}"
        return [invalid(path, config, why)]
    return []


def _check_unique_ports(spec: Json, ports: list[Json]) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        path, protocol = f"spec.ports[{index}]", port.get("protocol", "")
        node_port = port.get("nodePort")
        if node_port and spec.get("type") == "ClusterIP":
            why = "may not be used when `type` is 'ClusterIP'"
            errors.append(forbidden(f"{path}.nodePort", why))
        key = (protocol, port.get("port", 0))
        if key in seen:
            errors.append(duplicate(path, _port_as_seen(port)))
        seen.add(key)
    return errors


def _port_as_seen(port: Json) -> Json:
    """Return a port as the server shows one that is there twice: what makes it the same."""
    return {
        "Name": "",
        "Protocol": port.get("protocol", ""),
        "AppProtocol": None,
        "Port": port.get("port", 0),
        "TargetPort": 0,
        "NodePort": 0,
    }


def _check_balancer_fields(spec: Json) -> list[FieldError]:
    is_balancer = spec.get("type") == "LoadBalancer"
    errors: list[FieldError] = []
    ranges = as_list(spec.get("loadBalancerSourceRanges"))
    if ranges and not is_balancer:
        errors.append(forbidden("spec.LoadBalancerSourceRanges", _FOR_BALANCERS))
    for index, value in enumerate(ranges):
        errors += check_range(value, f"spec.LoadBalancerSourceRanges[{index}]")
    if not is_balancer and spec.get("allocateLoadBalancerNodePorts") is not None:
        errors.append(forbidden("spec.allocateLoadBalancerNodePorts", _FOR_BALANCERS))
    chosen = spec.get("loadBalancerClass")
    if chosen is not None and not is_balancer:
        errors.append(forbidden("spec.loadBalancerClass", _FOR_BALANCERS))
    elif chosen is not None:
        problems = qualified_name(chosen)
        errors += [invalid("spec.loadBalancerClass", chosen, why) for why in problems]
    return errors


def _check_addresses(spec: Json) -> list[FieldError]:
    if spec.get("type") == "ExternalName":
        return []
    first, addresses = spec.get("clusterIP") or "", as_list(spec.get("clusterIPs"))
    path = "spec.clusterIPs"
    if addresses and not first:
        return [invalid(path, addresses, "must be empty when `clusterIP` is not specified")]
    if addresses and addresses[0] != first:
        return [invalid(path, addresses, "first value must match `clusterIP`")]
    errors = _check_families(spec)
    families = as_list(spec.get("ipFamilies"))
    for index, address in enumerate(addresses):
        if address in {"", "None"}:
            continue
        problems = check_address(address, f"{path}[{index}]")
        errors += problems
        family = families[index] if index < len(families) else ""
        if not problems and family in _FAMILIES and (":" in address) != (family == "IPv6"):
            why = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            errors.append(invalid(f"{path}[{index}]", address, why))
    return errors


def _check_families(spec: Json) -> list[FieldError]:
    """Validate the families: this is a cluster of one, IPv4."""
    policy, families = spec.get("ipFamilyPolicy"), as_list(spec.get("ipFamilies"))
    is_free = spec.get("clusterIP") == "None" and not spec.get("selector")
    errors: list[FieldError] = []
    if policy is not None and policy not in _POLICIES:
        errors.append(not_supported("spec.ipFamilyPolicy", policy, _POLICIES))
    elif policy == "RequireDualStack" and not is_free:
        why = "this cluster is not configured for dual-stack services"
        errors.append(invalid("spec.ipFamilyPolicy", policy, why))
    for index, family in enumerate(families):
        path = f"spec.ipFamilies[{index}]"
        if family not in _FAMILIES:
            errors.append(not_supported(path, family, _FAMILIES))
        elif family in families[:index]:
            errors.append(duplicate(path, family))
        elif family != "IPv4" and not is_free and not spec.get("clusterIP"):
            errors.append(invalid(path, family, "not configured on this cluster"))
    return errors


def _check_policies(spec: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    kind, outside = spec.get("type"), spec.get("externalTrafficPolicy")
    is_reachable = kind in {"NodePort", "LoadBalancer"} or bool(spec.get("externalIPs"))
    path = "spec.externalTrafficPolicy"
    if outside and (not is_reachable or kind == "ExternalName"):
        why = "may only be set for externally-accessible services"
        errors.append(invalid(path, outside, why))
    elif outside and outside not in {"Cluster", "Local"}:
        errors.append(not_supported(path, outside, ("Cluster", "Local")))
    if spec.get("healthCheckNodePort") and (kind != "LoadBalancer" or outside != "Local"):
        why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        errors.append(invalid("spec.healthCheckNodePort", spec["healthCheckNodePort"], why))
    inside = spec.get("internalTrafficPolicy")
    if inside is not None and inside not in {"Cluster", "Local"}:
        errors.append(not_supported("spec.internalTrafficPolicy", inside, ("Cluster", "Local")))
    distribution = spec.get("trafficDistribution")
    if distribution is not None and distribution not in _DISTRIBUTIONS:
        errors.append(unsupported("spec.trafficDistribution", distribution, _DISTRIBUTIONS))
    return errors


def check_balancer(ingress: object, spec: Json) -> list[FieldError]:
    """Validate the addresses of a Service's load balancer, which stand in its status."""
    found = as_list(ingress)
    path = "status.loadBalancer.ingress"
    if found and spec.get("type") != "LoadBalancer":
        return [forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")]
    return [
        invalid(f"{path}[{index}].ip", one["ip"], why)
        for index, one in enumerate(found)
        if one.get("ip")
        for why in ip_address(one["ip"])
    ]


def validate_update(new: Json, old: Json) -> list[FieldError]:
    """Return the errors of a change of a Service."""
    after, before = as_dict(new.get("spec")), as_dict(old.get("spec"))
    errors: list[FieldError] = []
    old_ip, new_ip = before.get("clusterIP"), after.get("clusterIP")
    kinds = {after.get("type"), before.get("type")}
    if "ExternalName" not in kinds and old_ip and old_ip != new_ip:
        value = after.get("clusterIPs")
        errors.append(invalid("spec.clusterIPs[0]", value, "may not change once set"))
    chosen = after.get("loadBalancerClass")
    if kinds == {"LoadBalancer"} and chosen != before.get("loadBalancerClass"):
        errors.append(invalid("spec.loadBalancerClass", chosen, "may not change once set"))
    return errors + validate(new)
