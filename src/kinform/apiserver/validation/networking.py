"""Validation of slices of endpoints, of ingresses and of network policies."""

from __future__ import annotations

import ipaddress
from typing import Final

from kinform.apiserver.scheme.field_errors import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from kinform.apiserver.serializer.json_values import Json, as_dict, as_list
from kinform.apiserver.validation.ip_ranges import check_address, check_range, special_address
from kinform.apiserver.validation.labels import check_label_selector, unsupported
from kinform.apiserver.validation.metadata import IMMUTABLE
from kinform.apiserver.validation.names import (
    dns_label,
    dns_subdomain,
    ip_address,
    port_name,
    port_number,
)
from kinform.apiserver.validation.services import check_port_target

__all__ = [
    "endpoint_slice",
    "endpoint_slice_update",
    "ingress",
    "ingress_class",
    "ingress_class_update",
    "network_policy",
]

_ADDRESS_TYPES: Final = ("FQDN", "IPv4", "IPv6")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_PATH_TYPES: Final = ("Exact", "ImplementationSpecific", "Prefix")
_IN_PATHS: Final = ("//", "/./", "/../", "%2f", "%2F")
_AT_ENDS: Final = ("/..", "/.")


def endpoint_slice(obj: Json) -> list[FieldError]:
    """Return the errors of an EndpointSlice."""
    kind = obj.get("addressType") or ""
    if not kind:
        return [required("addressType")]
    if kind not in _ADDRESS_TYPES:
        return [not_supported("addressType", kind, _ADDRESS_TYPES)]
    errors: list[FieldError] = []
    for index, endpoint in enumerate(as_list(obj.get("endpoints"))):
        errors += _slice_endpoint(endpoint, f"endpoints[{index}]", kind)
    names: set[str] = set()
    for index, port in enumerate(as_list(obj.get("ports"))):
        path, name = f"ports[{index}]", port.get("name") or ""
        if name:
            errors += [invalid(f"{path}.name", name, why) for why in dns_label(name)]
        if name in names:
            errors.append(duplicate(f"{path}.name", name))
        names.add(name)
        if port.get("protocol") not in _PROTOCOLS:
            errors.append(not_supported(f"{path}.protocol", port.get("protocol"), _PROTOCOLS))
    return errors


def _slice_endpoint(endpoint: Json, path: str, kind: str) -> list[FieldError]:
    errors: list[FieldError] = []
    addresses = as_list(endpoint.get("addresses"))
    if not addresses:
        errors.append(required(f"{path}.addresses", "must contain at least 1 address"))
    for index, address in enumerate(addresses):
        errors += _slice_address(address, f"{path}.addresses", index, kind=kind)
    node, host = endpoint.get("nodeName"), endpoint.get("hostname")
    if node is not None:
        errors += [invalid(f"{path}.nodeName", node, why) for why in dns_subdomain(node)]
    if host is not None:
        errors += [invalid(f"{path}.hostname", host, why) for why in dns_label(host)]
    seen: set[str] = set()
    for index, zone in enumerate(as_list(as_dict(endpoint.get("hints")).get("forZones"))):
        name = zone.get("name", "")
        if name in seen:
            errors.append(duplicate(f"{path}.hints.forZones[{index}].name", name))
        seen.add(name)
    return errors


def _slice_address(address: str, path: str, index: int, *, kind: str) -> list[FieldError]:
    own = f"{path}[{index}]"
    if kind == "FQDN":
        return [invalid(own, address, why) for why in dns_subdomain(address)]
    errors = check_address(address, own)
    if errors:
        return errors
    if (":" in address) != (kind == "IPv6"):
        errors.append(invalid(path, address, f"must be an {kind} address"))
    return errors + special_address(address, own)


def endpoint_slice_update(new: Json, old: Json) -> list[FieldError]:
    """Return the errors of a change of an EndpointSlice."""
    kind = new.get("addressType")
    if kind != old.get("addressType"):
        return [invalid("addressType", kind, IMMUTABLE)]
    return endpoint_slice(new)


def ingress(obj: Json) -> list[FieldError]:
    """Return the errors of an Ingress."""
    spec = as_dict(obj.get("spec"))
    errors: list[FieldError] = []
    backend, rules = spec.get("defaultBackend"), as_list(spec.get("rules"))
    if backend is None and not rules:
        why = "either `defaultBackend` or `rules` must be specified"
        errors.append(invalid("spec", None, why))
    if backend is not None:
        errors += _backend(backend, "spec.defaultBackend")
    for index, rule in enumerate(rules):
        errors += _rule(rule, f"spec.rules[{index}]")
    for index, tls in enumerate(as_list(spec.get("tls"))):
        for place, host in enumerate(as_list(tls.get("hosts"))):
            errors += _host(host, f"spec.tls[{index}].hosts[{place}]")
    chosen = spec.get("ingressClassName")
    if chosen is not None:
        errors += [invalid("spec.ingressClassName", chosen, why) for why in dns_subdomain(chosen)]
    return errors


def _host(host: str, path: str) -> list[FieldError]:
    return [invalid(path, host, why) for why in dns_subdomain(host.removeprefix("*."))]


def _rule(rule: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    host = rule.get("host") or ""
    if host and not ip_address(host):
        errors.append(invalid(f"{path}.host", host, "must be a DNS name, not an IP address"))
    elif host:
        errors += _host(host, f"{path}.host")
    http = rule.get("http")
    if http is None:
        return errors
    paths = as_list(http.get("paths"))
    if not paths:
        errors.append(required(f"{path}.http.paths"))
    for index, one in enumerate(paths):
        errors += _path(one, f"{path}.http.paths[{index}]")
    return errors


def _path(one: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    kind, value = one.get("pathType"), one.get("path") or ""
    if kind is None:
        errors.append(required(f"{path}.pathType", "pathType must be specified"))
    elif kind not in _PATH_TYPES:
        errors.append(not_supported(f"{path}.pathType", kind, _PATH_TYPES))
    elif kind != "ImplementationSpecific" or value:
        if not value.startswith("/"):
            errors.append(invalid(f"{path}.path", value, "must be an absolute path"))
        if kind != "ImplementationSpecific" and value:
            inside = [f"must not contain '{part}'" for part in _IN_PATHS if part in value]
            ends = [f"cannot end with '{part}'" for part in _AT_ENDS if value.endswith(part)]
            errors += [invalid(f"{path}.path", value, why) for why in [*inside, *ends]]
    return errors + _backend(as_dict(one.get("backend")), f"{path}.backend")


def _backend(backend: Json, path: str) -> list[FieldError]:
    service = backend.get("service")
    if service is not None and backend.get("resource") is not None:
        return [invalid(path, "", "cannot set both resource and service backends")]
    if backend.get("resource") is not None:
        return []
    if service is None:
        return [invalid(path, "", "resource or service backend is required")]
    errors: list[FieldError] = []
    name, port = service.get("name") or "", as_dict(service.get("port"))
    if name:
        errors += [invalid(f"{path}.service.name", name, why) for why in dns_label(name)]
    else:
        errors.append(required(f"{path}.service.name"))
    named, number = port.get("name") or "", port.get("number") or 0
    if named and number:
        errors.append(invalid(path, "", "cannot set both port name & port number"))
    elif named:
        errors += [invalid(f"{path}.service.port.name", named, why) for why in port_name(named)]
    elif number:
        problems = port_number(number)
        errors += [invalid(f"{path}.service.port.number", number, why) for why in problems]
    else:
        errors.append(required(path, "port name or number is required"))
    return errors


def ingress_class(obj: Json) -> list[FieldError]:
    """Return the errors of an IngressClass."""
    controller = as_dict(obj.get("spec")).get("controller") or ""
    if not controller:
        return [required("spec.controller")]
    domain, slash, _ = controller.partition("/")
    if not slash or dns_subdomain(domain):
        why = 'must be a domain-prefixed path (such as "acme.io/foo")'
        return [invalid("spec.controller", controller, why)]
    return []


def ingress_class_update(new: Json, old: Json) -> list[FieldError]:
    """Return the errors of a change of an IngressClass."""
    controller = as_dict(new.get("spec")).get("controller")
    if controller != as_dict(old.get("spec")).get("controller"):
        return [invalid("spec.controller", controller, IMMUTABLE)]
    return ingress_class(new)


def network_policy(obj: Json) -> list[FieldError]:
    """Return the errors of a NetworkPolicy."""
    spec = as_dict(obj.get("spec"))
    errors: list[FieldError] = []
    check_label_selector(as_dict(spec.get("podSelector")), "spec.podSelector", errors)
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(as_list(spec.get(direction))):
            path = f"spec.{direction}[{index}]"
            for place, port in enumerate(as_list(rule.get("ports"))):
                errors += _policy_port(port, f"{path}.ports[{place}]")
            for place, peer in enumerate(as_list(rule.get(peers))):
                errors += _peer(peer, f"{path}.{peers}[{place}]")
    for index, kind in enumerate(as_list(spec.get("policyTypes"))):
        if kind not in {"Ingress", "Egress"}:
            path = f"spec.policyTypes[{index}]"
            errors.append(unsupported(path, kind, ("Ingress", "Egress")))
    return errors


def _policy_port(port: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    protocol, value, end = port.get("protocol"), port.get("port"), port.get("endPort")
    if protocol is not None and protocol not in _PROTOCOLS:
        errors.append(unsupported(f"{path}.protocol", protocol, ("TCP", "UDP", "SCTP")))
    if value is not None:
        errors += check_port_target(value, f"{path}.port")
    if end is not None and isinstance(value, int) and end < value:
        errors.append(invalid(f"{path}.endPort", value, "must be greater than or equal to `port`"))
    return errors


def _peer(peer: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    kinds = [kind for kind in ("podSelector", "namespaceSelector", "ipBlock") if kind in peer]
    if not kinds:
        return [required(path, "must specify a peer")]
    for kind in kinds[:2]:
        if kind != "ipBlock":
            check_label_selector(as_dict(peer[kind]), f"{path}.{kind}", errors)
    if "ipBlock" in kinds:
        errors += _block(as_dict(peer["ipBlock"]), f"{path}.ipBlock")
        if len(kinds) > 1:
            errors.append(forbidden(path, "may not specify both ipBlock and another peer"))
    return errors


def _block(block: Json, path: str) -> list[FieldError]:
    whole = block.get("cidr") or ""
    errors = check_range(whole, f"{path}.cidr") if whole else [required(f"{path}.cidr")]
    if errors:
        return errors
    network = ipaddress.ip_network(whole)
    for index, part in enumerate(as_list(block.get("except"))):
        own = f"{path}.except[{index}]"
        problems = check_range(part, own)
        if not problems and not _is_inside(part, network):
            problems = [invalid(own, part, "must be a strict subset of `cidr`")]
        errors += problems
    return errors


def _is_inside(part: str, whole: ipaddress.IPv4Network | ipaddress.IPv6Network) -> bool:
    inner = ipaddress.ip_network(part)
    is_same = inner.version == whole.version and inner.prefixlen > whole.prefixlen
    return is_same and inner.network_address in whole
